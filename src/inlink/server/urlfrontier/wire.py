"""Common parts of the calls of URLFrontier: messages, statuses, access, and the metadata that pages carry.

``urlfrontier.binpb`` is what protobuf's compiler reads from ``urlfrontier.proto``: ``make proto`` writes it. Generated
Python code would tie inlink to one version of protobuf.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from inlink.errors import InlinkError, ParameterError, SessionError, StoreError, UnknownNodeError
from inlink.frontier.sessions import SessionLimitError
from inlink.server.clientcrawls import TooManyCrawlsError
from inlink.server.keeper import BusyError, Keeper
from inlink.server.site import AccessError, Site
from inlink.server.tokens import Role

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


OWNER = "urlfrontier"
"""The owner of the session in which all clients of URLFrontier work."""

DEFAULT = "DEFAULT"
"""The protocol's name of the crawl if a request does not name a crawl."""

OK, SKIPPED, FAIL = range(3)

_MARK = b"\x00urlfrontier\x01"
"""Prefix of the metadata that a page carries. Other spiders give pages other data."""

_INFO = message("URLInfo")

CODES: tuple[tuple[type[InlinkError], grpc.StatusCode], ...] = (
    (BusyError, grpc.StatusCode.UNAVAILABLE),
    (UnknownNodeError, grpc.StatusCode.NOT_FOUND),
    (SessionLimitError, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (TooManyCrawlsError, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (SessionError, grpc.StatusCode.ABORTED),
    (ParameterError, grpc.StatusCode.INVALID_ARGUMENT),
    (StoreError, grpc.StatusCode.UNAVAILABLE),
)
"""The gRPC status of each refusal of the crawl's."""


class RefusedError(InlinkError):
    """A call is refused with the given status."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def code_of(error: InlinkError) -> grpc.StatusCode:
    """The gRPC status of an error."""
    if isinstance(error, RefusedError):
        return error.code
    if isinstance(error, AccessError):
        return grpc.StatusCode.UNAUTHENTICATED if error.status == 401 else grpc.StatusCode.PERMISSION_DENIED
    return next((code for kind, code in CODES if isinstance(error, kind)), grpc.StatusCode.INTERNAL)


class Peer:
    """The caller, identified by the call's metadata."""

    def __init__(self, site: Site, metadata: Iterable[tuple[str, Any]]) -> None:
        self.site = site
        # A call has no cookies, and the rest of its metadata says nothing about its access.
        self._scope = {
            "headers": [
                (b"authorization", value.encode("utf-8", "replace") if isinstance(value, str) else value)
                for name, value in metadata
                if name == "authorization"
            ]
        }

    def admit(self, role: Role, crawl: str | None) -> None:
        """Let the call pass if its bearer may do what a role may, on a crawl or on the server.

        Raises
        ------
        inlink.server.site.AccessError
            If not.
        """
        self.site.admit(self._scope, role, crawl)

    def keeper(self, crawl: str, role: Role) -> Keeper:
        """The keeper of a crawl. An empty name and DEFAULT mean the first crawl that the operator named, if any.

        Raises
        ------
        inlink.server.site.UnknownCrawlError
            If there is no crawl of that name.
        inlink.server.site.AccessError
            If the peer may not ask.
        """
        name = self._named(crawl)
        self.admit(role, name)
        return self.site.keeper(name)

    async def made(self, crawl: str, role: Role) -> Keeper:
        """Return the keeper of a crawl. Make the crawl if it does not exist and clients can make crawls.

        Raises
        ------
        inlink.errors.InlinkError
            As :meth:`keeper` does, or if the crawl cannot be made.
        """
        name = self._named(crawl)
        self.admit(role, name)
        return await self.site.make(name)

    def _named(self, crawl: str) -> str:
        unnamed = crawl in ("", DEFAULT) and crawl not in self.site.keepers
        return (self.site.default or DEFAULT) if unnamed else crawl

    def check(self, role: Role) -> None:
        """Let the call pass if its bearer has a role on any crawl. Each item is checked for its own crawl later.

        Raises
        ------
        inlink.server.site.AccessError
            If not.
        """
        token = self.site.bearer(self._scope)
        self.admit(role, None if token is None else token.crawl)

    def all(self, role: Role) -> list[Keeper]:
        """The keepers of all crawls.

        Raises
        ------
        inlink.server.site.AccessError
            If the peer may not ask about one of them.
        """
        for name in self.site.keepers:
            self.admit(role, name)
        return list(self.site.keepers.values())


def decoded(kind: Any, raw: bytes) -> Any:
    """A message from its bytes.

    Raises
    ------
    inlink.errors.ParameterError
        If the bytes are not a message of this kind.
    """
    try:
        return kind.FromString(raw)
    except (DecodeError, UnicodeDecodeError, ValueError) as error:
        raise ParameterError(
            f"the bytes are not a {kind.DESCRIPTOR.name} ({str(error).splitlines()[0][:200]}): "
            "is the client's version of the protocol that of urlfrontier.proto?"
        ) from None


def packed(info: Any) -> bytes:
    """Encode the metadata of a URLInfo for its page; empty if there are none. Clears the other fields of ``info``."""
    if not info.metadata:
        return b""
    info.ClearField("url")
    info.ClearField("key")
    info.ClearField("crawlID")
    coded: bytes = info.SerializeToString()
    return _MARK + coded


def metadata_of(data: bytes | None) -> Any:
    """A new URLInfo with the metadata that a page carries."""
    if data is not None and data.startswith(_MARK):
        return _INFO.FromString(data[len(_MARK) :])
    return _INFO()
