"""The messages and calls of ``urlfrontier.proto``.

``urlfrontier.binpb`` is what protobuf's compiler reads from it: ``make proto`` writes it. Generated Python code would
tie inlink to one version of protobuf.
"""

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

__all__ = ["SERVICE", "message", "request_of"]

_POOL = descriptor_pool.DescriptorPool()
for _file in descriptor_pb2.FileDescriptorSet.FromString(
    Path(__file__).with_name("urlfrontier.binpb").read_bytes()
).file:
    _POOL.Add(_file)

SERVICE = _POOL.FindServiceByName("urlfrontier.URLFrontier")
"""The calls: names, types of messages, and streams."""


def message(name: str) -> Any:
    """Return the class of a message."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"urlfrontier.{name}"))


def request_of(call: str) -> Any:
    """Return the class of the message that a call sends."""
    return message_factory.GetMessageClass(SERVICE.methods_by_name[call].input_type)
