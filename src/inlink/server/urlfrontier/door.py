"""The gRPC server of URLFrontier. It has the same crawls, tokens and certificate as the HTTP server."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from inlink.errors import InlinkError, InputError, OutputError
from inlink.server.site import Site, UnknownCrawlError
from inlink.server.tokens import Role
from inlink.server.urlfrontier import asks, puts, steers
from inlink.server.urlfrontier.intake import Intake
from inlink.server.urlfrontier.wire import DEFAULT, SERVICE, Peer, code_of, decoded, message, request_of

log = logging.getLogger("inlink.server")

MOST_BYTES = 8 << 20
"""Maximum number of bytes of a message."""

MOST_CALLS = 1000
"""Maximum number of calls at a time. Further calls end with RESOURCE_EXHAUSTED."""

MOST_CONNECTIONS = 256
"""Maximum number of connections. Further ones are closed at once. gRPC cannot bound those of each peer."""

IDLE_SECONDS = 60
"""Seconds without a call after which a connection is closed. Clients connect again by themselves."""

HANDSHAKE_SECONDS = 10
"""Seconds within which a handshake must end."""

DRAIN_SECONDS = 1.0
"""Seconds for which open calls may go on after their items were taken in."""

CALLS: dict[str, Callable[..., Any]] = {
    "ListCrawls": asks.list_crawls,
    "GetStats": asks.get_stats,
    "ListQueues": asks.list_queues,
    "GetURLStatus": asks.get_url_status,
    "CountURLs": asks.count_urls,
    "SetDelay": steers.set_delay,
    "BlockQueueUntil": steers.block_queue_until,
    "SetCrawlLimit": steers.set_crawl_limit,
    "SetActive": steers.set_active,
    "GetActive": steers.get_active,
    "SetLogLevel": steers.set_log_level,
    "DeleteQueue": steers.delete_queue,
    "PurgeURLs": steers.purge_urls,
    "DeleteCrawl": steers.delete_crawl,
    "ListURLs": asks.list_urls,
    "PutURLs": puts.put_urls,
    "PutDiscovered": puts.put_discovered,
}

FIND_NOTHING = {
    "GetStats",
    "ListQueues",
    "CountURLs",
    "DeleteQueue",
    "PurgeURLs",
    "DeleteCrawl",
    "GetURLs",
    "ListURLs",
}
"""Calls that succeed on a crawl that does not exist, if clients can make it. Their reply is empty."""


class Door:
    """A gRPC server.

    Parameters
    ----------
    site : Site
        The open site. Its crawls are closed after this server.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self._intakes: dict[str, Intake] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._where = ""
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", MOST_BYTES),
                ("grpc.so_reuseport", 0),
                ("grpc.keepalive_time_ms", 60_000),
                ("grpc.max_allowed_incoming_connections", MOST_CONNECTIONS),
                ("grpc.max_connection_idle_ms", IDLE_SECONDS * 1000),
                ("grpc.server_handshake_timeout_ms", HANDSHAKE_SECONDS * 1000),
            ],
            interceptors=[_TokensFirst(site)],
            maximum_concurrent_rpcs=MOST_CALLS,
        )
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE.full_name, self._handlers()),)
        )

    async def open(
        self,
        host: str,
        port: int,
        cert: Path | None = None,
        key: Path | None = None,
        client_ca: Path | None = None,
    ) -> str:
        """Listen; return the address for clients.

        Raises
        ------
        inlink.errors.OutputError
            If the address cannot be listened on.
        inlink.errors.InputError
            If a file of TLS cannot be read.
        """
        shown = f"[{host}]" if ":" in host else host
        try:
            if cert is None:
                port = self._server.add_insecure_port(f"{shown}:{port}")
            else:
                port = self._server.add_secure_port(f"{shown}:{port}", _credentials(cert, key, client_ca))
        except RuntimeError as error:
            raise OutputError(
                f"{host} port {port}: {str(error).splitlines()[0][:200]}: choose another --host or --grpc-port"
            ) from None
        self._where = f"{shown}:{port}"
        self.site.beside.append(self.close)
        await self._server.start()
        return self._where

    async def close(self) -> None:
        """End the open calls, and take in the items that have come."""
        for intake in self._intakes.values():
            await intake.close()
        # StormCrawler never ends its streams.
        await self._server.stop(DRAIN_SECONDS)
        for intake in self._intakes.values():
            await intake.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def intake(self, peer: Peer, crawl: str) -> Intake:
        """Return the intake for the items of a crawl. Make the crawl if it does not exist and clients can make crawls.

        Raises
        ------
        inlink.errors.InlinkError
            If there is no such crawl, or the peer may not work on it.
        """
        keeper = await peer.made(crawl, "spider")
        intake = self._intakes.get(keeper.name)
        if intake is None or intake.keeper is not keeper:
            intake = self._intakes[keeper.name] = Intake(keeper)
        return intake

    # -- inside -------------------------------------------------------------------------------------------------------

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _handlers(self) -> dict[str, Any]:
        calls = CALLS | {"ListNodes": self._list_nodes, "GetURLs": partial(asks.get_urls, self._spawn)}
        handlers = {}
        for name, method in SERVICE.methods_by_name.items():
            call, kind = calls[name], request_of(name)
            empty = None
            if self.site.clients is not None and name in FIND_NOTHING:
                empty = message(method.output_type.name)
            if method.client_streaming:
                handlers[name] = grpc.stream_stream_rpc_method_handler(self._both_ways(call))
            elif method.server_streaming:
                handlers[name] = grpc.unary_stream_rpc_method_handler(self._replies(kind, call, empty))
            else:
                handlers[name] = grpc.unary_unary_rpc_method_handler(self._one_reply(kind, call, empty))
        return handlers

    async def _list_nodes(self, peer: Peer, _: Any) -> Any:
        peer.admit("reader", None)
        return message("StringList")(values=[self._where])

    def _peer(self, context: Any) -> Peer:
        return Peer(self.site, context.invocation_metadata() or ())

    def _one_reply(self, kind: Any, call: Callable[[Peer, Any], Awaitable[Any]], empty: Any) -> Any:
        async def handle(raw: bytes, context: Any) -> bytes:
            try:
                asked = decoded(kind, raw)
                try:
                    reply = await call(self._peer(context), asked)
                except UnknownCrawlError:
                    if empty is None:
                        raise
                    reply = empty()
                    if "crawlID" in empty.DESCRIPTOR.fields_by_name:
                        reply.crawlID = asked.crawlID or DEFAULT
            except Exception as error:
                await _refuse(context, error)
                raise
            coded: bytes = reply.SerializeToString()
            return coded

        return handle

    def _replies(self, kind: Any, call: Callable[[Peer, Any], AsyncIterator[Any]], empty: Any) -> Any:
        async def handle(raw: bytes, context: Any) -> None:
            replies = None
            try:
                replies = call(self._peer(context), decoded(kind, raw))
                async for reply in replies:
                    await context.write(reply.SerializeToString())
            except Exception as error:
                if empty is None or not isinstance(error, UnknownCrawlError):
                    await _refuse(context, error)
            finally:
                if replies is not None:
                    await replies.aclose()  # type: ignore[attr-defined]

        return handle

    def _both_ways(self, call: Callable[..., Awaitable[None]]) -> Any:
        async def handle(requests: AsyncIterator[bytes], context: Any) -> None:
            try:
                await call(self._peer(context), self.intake, requests, context.write)
            except Exception as error:
                await _refuse(context, error)

        return handle


class _TokensFirst(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Refuses a call without a good token before its message is read; the call checks its own role later."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        """Return the handler of a call, or one that refuses it."""
        handler = await continuation(details)
        try:
            if handler is not None:
                role: Role = "spider" if handler.request_streaming else "reader"
                Peer(self._site, details.invocation_metadata or ()).check(role)
        except InlinkError as error:
            refusal = error

            async def refuse(_: AsyncIterator[bytes], context: Any) -> None:
                await _refuse(context, refusal)

            # A handler of a stream is called before a message is read.
            return grpc.stream_stream_rpc_method_handler(refuse)
        return handler


async def _refuse(context: Any, error: Exception) -> None:
    """End a call with the status of an error."""
    if isinstance(error, InlinkError):
        await context.abort(code_of(error), str(error)[:1000])
    elif isinstance(error, grpc.aio.AbortError):
        raise error
    else:
        log.exception("URLFrontier", exc_info=error)
        await context.abort(grpc.StatusCode.INTERNAL, "the server failed: its log has the traceback")


def _credentials(cert: Path, key: Path | None, client_ca: Path | None) -> Any:
    try:
        chain, private = cert.read_bytes(), (key or cert).read_bytes()
        authority = None if client_ca is None else client_ca.read_bytes()
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}: give a file of TLS, as PEM") from None
    return grpc.ssl_server_credentials([(private, chain)], authority, authority is not None)
