"""The messages of ``urlfrontier.proto``, made from a table when they are first needed.

There is no generated code, which would tie inlink to one version of protobuf. A test compiles the ``.proto`` and
compares it with this table.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

__all__ = ["MESSAGES", "METHODS", "SERVICE", "described", "message"]

SERVICE = "urlfrontier.URLFrontier"

MESSAGES = """
Empty
AnyCrawlID
Local local:1b
Boolean state:1b
Long value:1u64
StringList values:1*s
Active state:1b local:2b
DeleteCrawlMessage value:1s local:2b
Stats size:1u64 inProcess:2u32 counts:3mu64 numberOfQueues:4u64 crawlID:5s
Pagination start:1u32 size:2u32 include_inactive:3b crawlID:4s local:5b
QueueList values:1*s total:2u64 start:3u32 size:4u32 crawlID:5s
QueueWithinCrawlParams key:1s crawlID:2s local:3b
QueueDelayParams key:1s delay_requestable:2u32 crawlID:3s local:4b
BlockQueueParams key:1s time:2u64 crawlID:3s local:4b
GetParams max_urls_per_queue:1u32 max_queues:2u32 key:3s delay_requestable:4u32 anyCrawlID:5|AnyCrawlID crawlID:6|s
URLInfo url:1s key:2s metadata:3mStringList crawlID:4s
DiscoveredURLItem info:1URLInfo
KnownURLItem info:1URLInfo refetchable_from_date:2u64
URLItem discovered:1|DiscoveredURLItem known:2|KnownURLItem ID:3s creation_date:4u64
AckMessage ID:1s status:2AckMessage.Status
DiscoveredBatch ID:1s items:2*URLInfo
BatchAck ID:1s statuses:2*AckMessage.Status
LogLevelParams package:1s level:2LogLevelParams.Level local:3b
CrawlLimitParams key:1s limit:2u32 crawlID:3s local:4b
URLStatusRequest url:1s key:2s crawlID:3s
ListUrlParams start:1u32 size:2u32 key:3s crawlID:4s local:5b filter:6?s ignoreCase:7?b
CountUrlParams key:1s crawlID:2s filter:3?s ignoreCase:4?b local:5?b
PurgeUrlParams key:1s crawlID:2s days:3u32
"""
"""A message a line: its fields, each with its number, ``*`` repeated, ``?`` optional, ``|`` of the message's oneof,
``m`` a map from strings, and its type: s, b, u32, u64, or a message's or an enum's name."""

ENUMS = {"AckMessage.Status": "OK SKIPPED FAIL", "LogLevelParams.Level": "TRACE DEBUG INFO WARN ERROR"}
ONEOFS = {"GetParams": "crawl", "URLItem": "item"}

METHODS = """
ListNodes Empty StringList
ListCrawls Local StringList
DeleteCrawl DeleteCrawlMessage Long
ListQueues Pagination QueueList
GetURLs GetParams *URLInfo
PutURLs *URLItem *AckMessage
PutDiscovered *DiscoveredBatch *BatchAck
GetStats QueueWithinCrawlParams Stats
DeleteQueue QueueWithinCrawlParams Long
BlockQueueUntil BlockQueueParams Empty
SetActive Active Empty
GetActive Local Boolean
SetDelay QueueDelayParams Empty
SetLogLevel LogLevelParams Empty
SetCrawlLimit CrawlLimitParams Empty
GetURLStatus URLStatusRequest URLItem
ListURLs ListUrlParams *URLItem
CountURLs CountUrlParams Long
PurgeURLs PurgeUrlParams Long
"""
"""A call a line: its name, what is sent, and what is replied; ``*`` is a stream."""

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "s": _Field.TYPE_STRING,
    "b": _Field.TYPE_BOOL,
    "u32": _Field.TYPE_UINT32,
    "u64": _Field.TYPE_UINT64,
}


def described() -> descriptor_pb2.FileDescriptorProto:
    """The file ``urlfrontier.proto`` as protobuf describes it."""
    file = descriptor_pb2.FileDescriptorProto(
        name="urlfrontier.proto", package="urlfrontier", syntax="proto3"
    )
    file.options.java_package = "crawlercommons.urlfrontier"
    for line in MESSAGES.split("\n")[1:-1]:
        name, *fields = line.split()
        _describe(file.message_type.add(name=name), fields)
    service = file.service.add(name="URLFrontier")
    for line in METHODS.split("\n")[1:-1]:
        name, sent, replied = line.split()
        method = service.method.add(name=name)
        method.input_type, method.output_type = (
            f".urlfrontier.{sent.strip('*')}",
            f".urlfrontier.{replied.strip('*')}",
        )
        if sent[0] == "*":
            method.client_streaming = True
        if replied[0] == "*":
            method.server_streaming = True
    return file


def _describe(described_as: Any, fields: list[str]) -> None:
    name = described_as.name
    for enum, values in ENUMS.items():
        if enum.partition(".")[0] == name:
            added = described_as.enum_type.add(name=enum.partition(".")[2])
            for number, value in enumerate(values.split()):
                added.value.add(name=value, number=number)
    if name in ONEOFS:
        described_as.oneof_decl.add(name=ONEOFS[name])
    for field in fields:
        called, _, rest = field.partition(":")
        number, mark, kind = int(rest[0]), rest[1], rest[1:].lstrip("*?|m")
        added = described_as.field.add(name=called, number=number, label=_Field.LABEL_OPTIONAL)
        if mark == "m":
            entry = described_as.nested_type.add(name=called.capitalize() + "Entry")
            entry.options.map_entry = True
            for place, (part, of) in enumerate((("key", "s"), ("value", kind)), 1):
                _type(entry.field.add(name=part, number=place, label=_Field.LABEL_OPTIONAL), of)
            kind = f"{name}.{entry.name}"
        if mark in "*m":
            added.label = _Field.LABEL_REPEATED
        elif mark == "|":
            added.oneof_index = 0
        elif mark == "?":
            added.proto3_optional = True
            added.oneof_index = len(described_as.oneof_decl)
            described_as.oneof_decl.add(name=f"_{called}")
        _type(added, kind)


def _type(field: Any, kind: str) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = _Field.TYPE_ENUM if kind in ENUMS else _Field.TYPE_MESSAGE
        field.type_name = f".urlfrontier.{kind}"


_POOL = descriptor_pool.DescriptorPool()
_POOL.AddSerializedFile(described().SerializeToString())


def message(name: str) -> Any:
    """The class of a message."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"urlfrontier.{name}"))
