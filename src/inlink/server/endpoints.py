"""Endpoints as a table, from which the routes and the OpenAPI document are made.

An endpoint is a function that gets its arguments by name. ``crawl`` is the keeper of the crawl that the path names. A
function that takes ``opened``, the open crawl, is called in the crawl's thread; all others are coroutines.
``body`` and ``query`` are structs of :mod:`msgspec` to which the request's body and query are decoded. ``site`` is the
server, ``caller`` the sender of the request, and ``raw`` the undecoded body. Any other name is a part of the path. The
result is encoded as JSON.
"""

import asyncio
import inspect
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive, Scope, Send

from inlink.base.decoding import converted, decoded
from inlink.client.remote import LONGEST_WAIT
from inlink.errors import (
    FolderError,
    InlinkError,
    InputError,
    MissingExtraError,
    ParameterError,
    SessionError,
    StoreError,
    UnknownNodeError,
)
from inlink.frontier.sessions import SessionLimitError
from inlink.server.bodies import MOST_BYTES, MOST_OF_STRANGERS, BodyError, read_body
from inlink.server.guard import StatusError, header, send_bytes, send_refusal, send_start
from inlink.server.keeper import BusyError
from inlink.server.site import Site
from inlink.server.tokens import Role

F = TypeVar("F", bound=Callable[..., Any])

log = logging.getLogger("inlink.server")

SECONDS = 30.0
"""Maximum number of seconds of a request, in addition to the wait that it asks for."""

JSON = b"application/json"

HERE = "/v1/crawls/{name}"
"""Beginning of the paths on a crawl."""

STATUSES: tuple[tuple[type[InlinkError], int], ...] = (
    (BusyError, 503),
    (UnknownNodeError, 404),
    (SessionLimitError, 429),
    (SessionError, 409),
    (ParameterError, 422),
    (FolderError, 404),
    (InputError, 422),
    (MissingExtraError, 501),
    (StoreError, 503),
)
"""The HTTP status of each refusal of the crawl's."""


class Raw(msgspec.Struct, frozen=True):
    """A body that the endpoint decodes itself."""

    body: bytes


class Plain(msgspec.Struct, frozen=True):
    """A reply that is not JSON."""

    body: bytes
    content_type: bytes
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True)
class EventStream:
    """A reply of server-sent events.

    Parameters
    ----------
    events : callable
        Called with ``Last-Event-ID``, or an empty string, and a function that raises an error once the caller has lost
        its access. Returns an asynchronous iterator of bytes.
    """

    events: Callable[[str, Callable[[], None]], AsyncIterator[bytes]]

    async def serve(self, scope: Scope, receive: Receive, send: Send, check: Callable[[], None]) -> None:
        """Send the events until they end, or until the client goes away."""
        last_id = (header(scope, b"last-event-id") or b"").decode("latin-1")
        events = self.events(last_id, check)
        # The first part is computed before the reply begins, so that a refusal can have its own status.
        first = await anext(events)
        await send_start(send, b"text/event-stream")
        sending = asyncio.ensure_future(_send_all(first, events, send))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
                await send({"type": "http.response.body", "body": b""})
        finally:
            for task in (sending, gone):
                task.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)


async def _send_all(first: bytes, events: AsyncIterator[bytes], send: Send) -> None:
    try:
        await send({"type": "http.response.body", "body": first, "more_body": True})
        async for part in events:
            await send({"type": "http.response.body", "body": part, "more_body": True})
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@dataclass(frozen=True, eq=False)
class Endpoint:
    """A method and a path, and the function that serves them.

    Attributes
    ----------
    method, path : str
        The path has names in braces.
    role : {"reader", "spider", "admin"} or None
        The role that is needed; None means that no role is needed.
    call : function
    status : int
        HTTP status of a reply that is not a refusal.
    summary : str
        The first line of the docstring.
    """

    method: str
    path: str
    role: Role | None
    call: Callable[..., Any]
    status: int
    types: dict[str, Any]

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return (inspect.getdoc(self.call) or "").partition("\n")[0]

    @property
    def on_crawl(self) -> bool:
        """True if the path names a crawl."""
        return self.path.startswith(HERE)

    async def __call__(self, site: Site, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        began, status = time.perf_counter(), 500
        try:
            status = await self._serve(site, scope, receive, send)
        except InlinkError as error:
            kinds = (status for kind, status in STATUSES if isinstance(error, kind))
            status = error.status if isinstance(error, StatusError) else next(kinds, 500)
            headers = {401: [(b"www-authenticate", b"Bearer")], 503: [(b"retry-after", b"1")]}.get(status, ())
            if status >= 500:
                log.warning("%s %s: %s", self.method, scope["path"], error)
            keeper = site.keepers.get(scope["path_params"].get("name", "")) if self.on_crawl else None
            line = str(error) if keeper is None else keeper.without_folder(str(error))
            await send_refusal(send, status, line, type(error).__name__, headers)
        except TimeoutError:
            status = 503
            await send_refusal(
                send,
                503,
                f"no reply within {SECONDS:.0f} seconds: try again later",
                "",
                [(b"retry-after", b"5")],
            )
        except Exception:
            log.exception("%s %s", self.method, scope["path"])
            await send_refusal(send, 500, "the server failed: its log has the traceback")
        finally:
            site.requests[self.method, self.path, status] += 1
            site.seconds[self.method, self.path] += time.perf_counter() - began

    def _refuse_other_than_json(self, scope: Scope) -> None:
        """Refuse a change that a form or a script of another site can send without the browser's leave."""
        sent = header(scope, b"content-type")
        # Aduana's client names no type. A form always names one.
        if sent is None and "raw" in self.types:
            return
        if (sent or b"").partition(b";")[0].strip().lower() != JSON:
            raise BodyError(415, "send changes as Content-Type: application/json, also without a body")

    async def _serve(self, site: Site, scope: Scope, receive: Receive, send: Send) -> int:
        path = scope["path_params"]
        check = partial(site.admit, scope, self.role, path.get("name") if self.on_crawl else None)
        check()
        if self.role is not None:
            scope["state"]["connection"].trust()
        if self.method != "GET":
            self._refuse_other_than_json(scope)
        given: dict[str, Any] = {}
        for name, kind in self.types.items():
            if name == "opened":
                keeper = site.keeper(path["name"])
            elif name == "crawl":
                given[name] = site.keeper(path["name"])
            elif name == "site":
                given[name] = site
            elif name == "caller":
                given[name] = site.caller(scope)
            elif name == "query":
                given[name] = _query(scope["query_string"], kind)
            elif name == "raw":
                given[name] = Raw(await read_body(scope, receive))
            elif name == "body":
                most = MOST_BYTES if self.role is not None else MOST_OF_STRANGERS
                given[name] = await _body(scope, receive, kind, most)
            else:
                given[name] = _part(path[name], name, kind)
        wait = min(getattr(given.get("body"), "wait", 0.0), LONGEST_WAIT)
        async with asyncio.timeout(SECONDS + wait):
            if "opened" in self.types:
                run = keeper.run if self.method == "GET" else keeper.change
                result = await run(lambda opened: self.call(opened=opened, **given))
            else:
                result = await self.call(**given)
        if isinstance(result, EventStream):
            await result.serve(scope, receive, send, check)
            return 200
        if isinstance(result, Plain):
            await send_bytes(send, result.status, result.body, result.content_type, result.headers)
            return result.status
        await send_bytes(send, self.status, msgspec.json.encode(result), JSON)
        return self.status


class Endpoints:
    """A list of endpoints, filled by decorators."""

    def __init__(self) -> None:
        self.all: list[Endpoint] = []

    def add(self, method: str, path: str, role: Role | None, status: int = 200) -> Callable[[F], F]:
        """Register a function as an endpoint. A path that does not begin with a slash is one on a crawl."""

        def register(call: F) -> F:
            types = get_type_hints(call)
            del types["return"]
            whole = path if path.startswith("/") else f"{HERE}/{path}"
            self.all.append(Endpoint(method, whole, role, call, status, types))
            return call

        return register


def _part(text: str, name: str, kind: Any) -> Any:
    if kind is not int:
        return text
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise UnknownNodeError(f"{name} must be a number in the path; got {text[:40]!r}")
    return int(text)


def _query(raw: bytes, kind: Any) -> Any:
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, strict_parsing=bool(raw), errors="strict"
        )
    except ValueError:
        raise ParameterError("the query is not name=value&… in percent-encoded UTF-8") from None
    named = dict(pairs)
    if len(named) < len(pairs):
        raise ParameterError("a name occurs twice in the query: give it once")
    try:
        return converted(named, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ParameterError(f"the query does not fit this request ({error}): see /openapi.json") from None


async def _body(scope: Scope, receive: Receive, kind: Any, most: int) -> Any:
    raw = await read_body(scope, receive, most)
    try:
        return decoded(raw, kind)
    except msgspec.ValidationError as error:
        raise BodyError(422, f"the body does not fit this request ({error}): see /openapi.json") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BodyError(400, f"the body is not JSON ({error}): send JSON in UTF-8") from None
