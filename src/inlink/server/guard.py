"""The first check of every request: host names and origins. Also the headers of replies, and refusals.

A browser on the operator's machine can reach a server on loopback, and any site that the operator visits can make it
send requests. So the server answers only requests under its own names (against DNS rebinding). It refuses requests that
a page of another site sends. Endpoints take changes only as JSON, also changes without a body: no form can send JSON.
"""

from collections.abc import Iterable
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from inlink.errors import InlinkError
from inlink.protocol import Refusal

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Allows scripts and styles only from the server's own files, and none within the page."""

HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class StatusError(InlinkError):
    """A refusal with an HTTP status of its own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Guard:
    """An ASGI application around another.

    Parameters
    ----------
    app : ASGI application
    names : iterable of str
        Host names that requests may use, besides those of loopback and the address of the connection.
    """

    def __init__(self, app: ASGIApp, names: Iterable[str] = ()) -> None:
        self.app = app
        self._names = frozenset(name.lower().removesuffix(".") for name in (*LOOPBACK, *names))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        connection = scope["state"]["connection"]
        connection.serve_for(address_of(scope))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                ending = [(b"connection", b"close")] if connection.is_deaf else []
                message["headers"] = [*message["headers"], *HEADERS, *ending]
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            await self.app(scope, receive, send_with_headers)
        else:
            await send_refusal(send_with_headers, *refusal)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        host = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
        if not self._is_own(_without_port(host), scope):
            return 421, (
                f"this server is not called {host[:100]!r}: use its own name, or start it with --name for this one"
            )
        site = header(scope, b"sec-fetch-site")
        if site in (b"cross-site", b"same-site") and not self._is_visit(scope):
            return 403, "a page of another site sent this request: open this server's own page"
        origin = header(scope, b"origin")
        if origin is not None and origin.decode("latin-1") != f"{scope['scheme']}://{host}":
            return 403, "a page of another origin sent this request: open this server's own page"
        return None

    def _is_own(self, name: str, scope: Scope) -> bool:
        if name in self._names:
            return True
        server = scope.get("server")
        try:
            # An address cannot be rebound to another one.
            return server is not None and ip_address(name) == ip_address(server[0])
        except ValueError:
            return False

    @staticmethod
    def _is_visit(scope: Scope) -> bool:
        """Return whether the request comes from following a link to the page."""
        return (
            scope["method"] in ("GET", "HEAD")
            and header(scope, b"sec-fetch-mode") == b"navigate"
            and header(scope, b"sec-fetch-dest") == b"document"
        )


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower().removesuffix(".")


def address_of(scope: Scope) -> str:
    """The address that sent a request. Only configured proxies may name another address than their own."""
    client = scope.get("client")
    return "" if client is None else str(client[0])


def header(scope: Scope, name: bytes) -> bytes | None:
    """A header of a request, by its name in lower case; None if it is missing."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return None


async def send_refusal(
    send: Send, status: int, error: str, kind: str = "", headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """Refuse a request in one line."""
    line = " ".join(error.split()) or HTTPStatus(status).phrase
    await send_bytes(send, status, msgspec.json.encode(Refusal(line, kind)), b"application/json", headers)


async def send_bytes(
    send: Send, status: int, body: bytes, content_type: bytes, headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """Reply with a complete body."""
    length = (b"content-length", str(len(body)).encode())
    await send_start(send, content_type, status, [length, *headers])
    await send({"type": "http.response.body", "body": body})


async def send_start(
    send: Send, content_type: bytes, status: int = 200, headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """Begin a reply; its body follows in parts."""
    start: dict[str, Any] = {
        "type": "http.response.start",
        "status": status,
        "headers": [(b"content-type", content_type), (b"cache-control", b"no-store"), *headers],
    }
    await send(start)
