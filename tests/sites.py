"""Sites on loopback that tests crawl: their pages are data, and all that is asked for is recorded."""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

from patience import PATIENCE

__all__ = ["ROBOTS", "Answer", "Asked", "Routes", "Says", "Site", "html", "moved", "spacing", "web"]

ROBOTS = "/robots.txt"
TRIES = 100  # at a port that is free on all hosts


@dataclass
class Asked:
    """A request as the site saw it.

    ``at`` is in seconds of ``time.monotonic``. ``path`` is as it was sent, with its query. ``status`` is that of the
    answer, 0 until there is one.
    """

    at: float
    host: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    status: int = 0


class Answer(NamedTuple):
    """The answer of a site.

    It comes after ``delay`` seconds, and not before ``gate`` is set. ``raw`` is sent instead of status, headers and
    body, and then the connection is closed: b"" hangs up without a word.
    """

    body: bytes | str = b""
    status: int = 200
    headers: Mapping[str, str] = {}
    delay: float = 0.0
    raw: bytes | None = None
    gate: threading.Event | None = None


def html(*links: str, title: str = "", text: str = "", **more: Any) -> Answer:
    """A page with links, whose anchor text is the link itself."""
    found = "".join(f'<a href="{link}">{link}</a>\n' for link in links)
    body = f"<!doctype html><html><title>{title}</title><body><p>{text}</p>{found}</body></html>"
    return Answer(body, **more)


def moved(to: str, status: int = 302, **headers: str) -> Answer:
    """A redirect."""
    return Answer(status=status, headers={"Location": to, **headers})


Says = Answer | str | bytes | Callable[[Asked], Answer]
"""A page: an answer, the body of one, or what makes it. It may block, since each connection has a thread."""

Routes = Mapping[str, Says]


class Site:
    """Pages by path, on one or more addresses of loopback that share a port; used in a ``with`` block.

    Parameters
    ----------
    pages : mapping or callable
        What each path answers, on all hosts alike; any other path is a 404. Or a function that answers all requests.
        If a function raises, the client gets a 500, and the ``with`` block raises the error when it ends.
    hosts : int
        127.0.0.1 to 127.0.0.``hosts``.

    Attributes
    ----------
    pages : dict
        May be changed meanwhile.
    asked : list of Asked
        All requests so far, in the order in which they came.
    most : int
        How many were under way at once.
    root : str
        The URL of the first host, without a slash at its end.
    """

    def __init__(self, pages: Routes | Callable[[Asked], Answer], hosts: int = 1) -> None:
        self.pages: dict[str, Says] = {} if callable(pages) else dict(pages)
        self._any = pages if callable(pages) else None
        self.asked: list[Asked] = []
        self.most = 0
        self._open, self._arrived, self._ended = 0, threading.Condition(), threading.Event()
        self._failure: Exception | None = None
        self._servers = _bind(self, hosts)
        self.port = self._servers[0].server_port
        self.root = self.url("")

    def url(self, path: str = "/", host: int = 1) -> str:
        """The URL of a path."""
        return f"http://127.0.0.{host}:{self.port}{path}"

    # -- what was asked for -------------------------------------------------------------------------------------------

    def paths(self) -> list[str]:
        """Paths in the order in which they were asked for, without robots.txt."""
        return [one.path for one in self.asked if one.path != ROBOTS]

    def counts(self) -> Counter[str]:
        """The number of requests for each path, without robots.txt."""
        return Counter(self.paths())

    def times(self, host: int = 1, path: str = "") -> list[float]:
        """The times of requests to a host for pages whose path begins with ``path``, without robots.txt."""
        return [
            one.at
            for one in self.asked
            if one.host == f"127.0.0.{host}" and one.path.startswith(path) and one.path != ROBOTS
        ]

    def wait_for_path(self, path: str) -> None:
        """Wait until a path has been asked for."""
        self._wait(lambda: any(one.path == path for one in self.asked), path)

    def wait_for(self, count: int) -> None:
        """Wait until ``count`` pages have been asked for in all, without robots.txt."""
        self._wait(lambda: len(self.paths()) >= count, f"{count} requests")

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        with self._arrived:
            if not self._arrived.wait_for(condition, PATIENCE):
                raise TimeoutError(f"waited {PATIENCE:g} s for {what}; there were {len(self.asked)} requests")

    # -- life ---------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ended.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()
        if self._failure is not None and kind is None:
            raise self._failure

    # -- one request --------------------------------------------------------------------------------------------------

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        host = str(handler.server.server_address[0])
        asked = Asked(time.monotonic(), host, handler.command, handler.path, dict(handler.headers), body)
        with self._arrived:
            self.asked.append(asked)
            self._open += 1
            self.most = max(self.most, self._open)
            self._arrived.notify_all()
        try:
            try:
                answer = self._answer(asked)
            except Exception as error:
                self._failure = self._failure or error
                answer = Answer(f"{error!r}", 500)
            if answer.gate is not None:
                while not answer.gate.wait(0.05) and not self._ended.is_set():
                    pass
            if answer.delay:
                time.sleep(answer.delay)
        finally:
            with self._arrived:
                self._open -= 1
        if answer.raw is not None:
            handler.wfile.write(answer.raw)
            handler.close_connection = True
            return
        asked.status = answer.status
        content = answer.body.encode() if isinstance(answer.body, str) else answer.body
        handler.send_response(answer.status)
        for name, value in {"Content-Type": "text/html; charset=utf-8", **answer.headers}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        if asked.method != "HEAD":
            handler.wfile.write(content)

    def _answer(self, asked: Asked) -> Answer:
        says = self._any or self.pages.get(asked.path, Answer("no such page", 404))
        if isinstance(says, str | bytes):
            return Answer(says)
        return says if isinstance(says, Answer) else says(asked)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """Whoever asked has gone away."""


def _bind(site: Site, hosts: int) -> list[_Server]:
    """A server for each host, at a port that is free on all of them."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body are two writes

        def do_GET(self) -> None:
            site._serve(self)

        do_POST = do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    for attempt in range(TRIES):
        with contextlib.ExitStack() as bound:
            servers: list[_Server] = []
            try:
                for number in range(1, hosts + 1):
                    port = servers[0].server_port if servers else 0
                    servers.append(_Server((f"127.0.0.{number}", port), Handler))
                    bound.callback(servers[-1].server_close)
            except OSError:
                if attempt == TRIES - 1:
                    raise
                continue
            bound.pop_all()
            return servers
    raise AssertionError


def spacing(times: Sequence[float]) -> float:
    """The longest delay that was kept between requests, as far as a site can tell.

    A busy machine may hold up a request on its way, which makes the gap behind it too short. So n requests must take
    at least n - 2 delays, and a gap alone says nothing.
    """
    times = sorted(times)
    return min(
        (later - earlier) / (k - 1)
        for i, earlier in enumerate(times)
        for k, later in enumerate(times[i:])
        if k > 1
    )


def web(size: int, degree: int = 3, seed: int = 1) -> dict[str, Says]:
    """A site of ``size`` pages, all of which can be reached from /0; /0 is /, too."""
    pages: dict[str, Says] = {}
    for k in range(size):
        links = {2 * k + 1, 2 * k + 2} | {(k * 7919 + j * 104729 * seed) % size for j in range(degree)}
        pages[f"/{k}"] = html(*[f"/{j}" for j in sorted(links) if j < size], title=f"page {k}")
    return {"/": pages["/0"], **pages}
