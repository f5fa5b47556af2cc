"""A server of crawls in this process, for tests: it listens on loopback, in a thread of its own."""

import asyncio
import contextlib
import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvloop

from inlink.server.run import Server, listening
from inlink.server.site import Site, named
from inlink.server.tokens import Tokens
from patience import wait_until


class Served:
    """A server that runs, and a plain client of it."""

    def __init__(self, port: int, site: Site, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.port, self.site, self.server, self.loop = port, site, server, loop
        self.headers: dict[str, str] = {}

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Send a request with a JSON body; return the status and what the reply's JSON holds."""
        status, raw, _ = self.raw(
            method,
            path,
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"} | (headers or {}),
        )
        return status, json.loads(raw)

    def raw(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, http.client.HTTPMessage]:
        """Send a request; return status, body and headers of the reply."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body, self.headers | (headers or {}))
            reply = connection.getresponse()
            return reply.status, reply.read(), reply.headers

    def crawl(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Ask about the first crawl."""
        return self.ask(method, f"/v1/crawls/{next(iter(self.site.keepers))}/{path}", body)


@contextlib.contextmanager
def served(
    *folders: Path,
    tokens: Path | None = None,
    needs_token: bool = False,
    context: Any = None,
    host: str = "127.0.0.1",
    port: int = 0,
    edge: dict[str, Any] | None = None,
    **settings: Any,
) -> Iterator[Served]:
    """Serve crawls; ``edge`` are bounds for strangers, and ``settings`` those of :class:`inlink.Crawl`."""
    settings = {"politeness": {"delay": 0.0}} | settings
    ready: list[Served] = []
    faults: list[BaseException] = []
    listener = listening(host, port)

    async def run() -> None:
        site = Site(Tokens(tokens or folders[0].parent / "tokens.json"), not needs_token)
        await site.open(named(list(folders)), settings)
        server = Server(site, context=context, **(edge or {}))
        ready.append(Served(listener.getsockname()[1], site, server, asyncio.get_running_loop()))
        await server.serve([listener])

    def work() -> None:
        try:
            uvloop.run(run())
        except BaseException as error:
            faults.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        wait_until(lambda: faults or (ready and ready[0].server.started), "the server to listen")
        if faults:
            raise faults[0]
        yield ready[0]
    finally:
        if ready:
            ready[0].loop.call_soon_threadsafe(ready[0].server.end)
        thread.join()
        listener.close()
