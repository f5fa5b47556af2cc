"""Several hosts on 127.0.0.x, all on one port, served by one thread; each request is logged.

The address of a connection determines the host, whatever its ``Host`` header says. A function computes the answers, so
the same server can serve a generated web and folders of files.
"""

import asyncio
import json
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, TextIO

__all__ = ["Handler", "Reply", "Request", "WebServer", "read_log"]

HTML = "text/html; charset=utf-8"
MOST_HEAD = 64 << 10  # bytes of a request's head; also of a body, which is read and ignored
TRIES = 100  # to find a port that is free on all hosts


class Request(NamedTuple):
    """A line of the log, written when the request has been read, before any wait.

    ``time`` is in seconds of the monotonic clock, which all processes of a machine share. ``path`` is as it was sent,
    with its query. ``status`` is 0 where the server hung up without an answer.
    """

    time: float
    host: str
    path: str
    status: int
    agent: str
    referer: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A host's answer, sent after ``wait`` seconds; if ``hang_up`` is set, the connection is closed instead."""

    status: int = 200
    body: bytes = b""
    content_type: str = HTML
    headers: tuple[tuple[str, str], ...] = ()
    wait: float = 0.0
    hang_up: bool = False


Handler = Callable[[str, Mapping[str, str]], Reply]
"""Computes a reply from the path with its query, as sent, and the request's headers with names in lower case."""


class WebServer:
    """A server that runs during a ``with`` block.

    Parameters
    ----------
    hosts : mapping of str to Handler
        Addresses, all within 127.0.0.0/8, and what each answers. A handler that raises is told when the block ends.
    port : int
        The same for all; 0 is any that is free on all.
    log : Path or None
        Where requests are written as well, a JSON array a line.

    Attributes
    ----------
    port : int
        Known once the block is entered.

    Raises
    ------
    OSError
        If the port is taken, or none is free on all hosts.
    """

    def __init__(self, hosts: Mapping[str, Handler], port: int = 0, log: Path | None = None) -> None:
        self.hosts, self.port = dict(hosts), port
        self._log: list[Request] = []
        self._path = log
        self._file: TextIO | None = None
        self._failure: BaseException | None = None
        self._ready = threading.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def log(self) -> list[Request]:
        """All requests so far, in the order of their arrival."""
        return self._log.copy()

    def root(self, host: str) -> str:
        """The URL of a host's home page."""
        return f"http://{host}:{self.port}/"

    # -- life -----------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._file = self._path.open("w") if self._path else None
        try:
            self.port, sockets = bind(list(self.hosts), self.port)
        except OSError:
            if self._file:
                self._file.close()
            raise
        self._thread = threading.Thread(target=self._run, args=(sockets,), name="web", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        if self._file:
            self._file.close()
        if self._failure is not None and error is None:
            raise self._failure

    def _run(self, sockets: dict[str, socket.socket]) -> None:
        """The thread."""
        try:
            with asyncio.Runner() as runner:
                runner.run(self._life(sockets))
        except BaseException as error:  # raised when the block ends
            self._failure = self._failure or error
        finally:
            self._ready.set()

    async def _life(self, sockets: dict[str, socket.socket]) -> None:
        """Listen, serve until the end, close everything."""
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        servers = [await self._listen(host, one) for host, one in sockets.items()]
        self._ready.set()
        await self._end.wait()
        for server in servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # lets closed transports release their sockets

    async def _listen(self, host: str, listening: socket.socket) -> asyncio.Server:
        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.get_running_loop().create_task(self._serve(host, reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return await asyncio.start_server(connected, sock=listening, limit=MOST_HEAD)

    # -- one connection -------------------------------------------------------------------------------------------

    async def _serve(self, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(host, reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):  # the client has hung up
            pass
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            writer.close()

    async def _answer(self, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Read one request and answer it; returns whether the connection stays open."""
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, target, version = lines[0].split(" ")
            headers = {name.strip().lower(): value.strip() for name, _, value in map(_field, lines[1:])}
            length = int(headers.get("content-length", 0))
            if "transfer-encoding" in headers or not 0 <= length <= MOST_HEAD:
                raise ValueError
            await reader.readexactly(length)
        except (asyncio.LimitOverrunError, ValueError):
            writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            return False
        if not target.startswith("/"):  # an absolute URL, as in a request to a proxy
            target = "/" + target.partition("://")[2].partition("/")[2]
        reply = self._reply(host, method, target, headers)
        if reply.wait:
            await asyncio.sleep(reply.wait)
        if reply.hang_up:
            return False
        stays = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
        reason = HTTPStatus(reply.status).phrase
        head = [
            f"HTTP/1.1 {reply.status} {reason}",
            f"Date: {formatdate(usegmt=True)}",
            f"Content-Type: {reply.content_type}",
            f"Content-Length: {len(reply.body)}",
            f"Connection: {'keep-alive' if stays else 'close'}",
            *(f"{name}: {value}" for name, value in reply.headers),
        ]
        body = b"" if method == "HEAD" else reply.body
        writer.write("\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body)
        await writer.drain()
        return stays

    def _reply(self, host: str, method: str, target: str, headers: Mapping[str, str]) -> Reply:
        """Ask the host, and log the request."""
        now = time.monotonic()
        if method in ("GET", "HEAD"):
            try:
                reply = self.hosts[host](target, headers)
            except Exception as error:  # a defect of the handler must fail the test, not only the connection
                traceback.print_exc(file=sys.stderr)
                self._failure = self._failure or error
                reply = Reply(500)
        else:
            reply = Reply(405, headers=(("Allow", "GET, HEAD"),))
        status = 0 if reply.hang_up else reply.status
        agent, referer = headers.get("user-agent", ""), headers.get("referer", "")
        request = Request(now, host, target, status, agent, referer)
        self._log.append(request)
        if self._file:
            self._file.write(json.dumps(request) + "\n")
            self._file.flush()
        return reply


def _field(line: str) -> tuple[str, str, str]:
    return line.partition(":")


def bind(hosts: list[str], port: int = 0) -> tuple[int, dict[str, socket.socket]]:
    """A port that is free on all hosts, or the given one, and a socket bound to it for each host.

    Raises
    ------
    OSError
        If there is none, or the one given is taken.
    """
    for attempt in range(TRIES):
        sockets: dict[str, socket.socket] = {}
        chosen = port
        try:
            for host in hosts:
                sockets[host] = one = socket.socket(proto=socket.IPPROTO_TCP)  # for asyncio to set NODELAY
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                one.bind((host, chosen))
                one.listen(100)
                chosen = one.getsockname()[1]
        except OSError:
            for one in sockets.values():
                one.close()
            if port or attempt == TRIES - 1:
                raise
        else:
            return chosen, sockets
    raise AssertionError


def read_log(path: Path) -> list[Request]:
    """The complete lines of the log that a server in another process writes."""
    lines = path.read_text().split("\n")[:-1]
    return [Request(*json.loads(line)) for line in lines]
