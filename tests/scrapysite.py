"""Crawls with Scrapy for tests: a site on loopback, and a process in which spiders run one after the other.

A reactor starts once a process, so that a test cannot run a spider itself: :func:`crawl` has it run by a worker, which
is this file as a program. Spiders are classes of the test modules, which the worker imports.
"""

import asyncio
import atexit
import contextlib
import importlib
import json
import logging
import os
import re
import select
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from scrapy import Spider, signals
from scrapy.core.engine import ExecutionEngine
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.http import Response

from inlink.store.page import Page
from inlink.store.reader import open_pages

# -- the site ---------------------------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """A request as the site saw it; times are of ``time.monotonic``."""

    at: float
    host: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Answer(NamedTuple):
    """What the site says to it; ``delay`` is in seconds, ``raw`` goes out instead of all the rest."""

    body: bytes | str = b""
    status: int = 200
    headers: Mapping[str, str] = {}
    delay: float = 0.0
    raw: bytes | None = None


def html(*links: str, title: str = "", text: str = "") -> Answer:
    """A page with links."""
    found = "".join(f'<a href="{link}">{link}</a>\n' for link in links)
    return Answer(f"<html><title>{title}</title><body>{found}<p>{text}</p></body></html>")


def moved(to: str, status: int = 302, **headers: str) -> Answer:
    """A redirect."""
    return Answer(status=status, headers={"Location": to, **headers})


Says = Answer | Callable[[Asked], Answer]


class Site:
    """Pages by path, on as many addresses of loopback as there are hosts; what is no path is a 404.

    Attributes
    ----------
    asked : list of Asked
        All requests so far, in the order in which they came.
    most : int
        How many were under way at once.
    """

    def __init__(self, pages: Mapping[str, Says], hosts: int = 1) -> None:
        self.pages, self.asked, self.most = dict(pages), [], 0
        self._open, self._lock = 0, threading.Lock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                site._serve(self)

            do_POST = do_HEAD = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False
            request_queue_size = 128

            def handle_error(self, *_: object) -> None:  # whoever asked has gone away
                pass

        self._servers = [Server(("127.0.0.1", 0), Handler)]
        self.port = self._servers[0].server_port
        self._servers += [Server((f"127.0.0.{k}", self.port), Handler) for k in range(2, hosts + 1)]

    def url(self, path: str = "/", host: int = 1) -> str:
        return f"http://127.0.0.{host}:{self.port}{path}"

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        host = str(handler.server.server_address[0])
        asked = Asked(time.monotonic(), host, handler.command, handler.path, dict(handler.headers), body)
        with self._lock:
            self.asked.append(asked)
            self._open += 1
            self.most = max(self.most, self._open)
        says = self.pages.get(handler.path, Answer("no such page", 404))
        answer = says if isinstance(says, Answer) else says(asked)
        if answer.delay:
            time.sleep(answer.delay)
        with self._lock:
            self._open -= 1
        if answer.raw is not None:
            handler.wfile.write(answer.raw)
            handler.close_connection = True
            return
        text = answer.body.encode() if isinstance(answer.body, str) else answer.body
        handler.send_response(answer.status)
        for name, value in {"Content-Type": "text/html; charset=utf-8", **answer.headers}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def counts(self) -> Counter[str]:
        """How often each path was asked for, robots.txt left out."""
        return Counter(one.path for one in self.asked if one.path != "/robots.txt")

    def times(self, host: int = 1, path: str = "") -> list[float]:
        """When a host was asked for pages whose path begins so, robots.txt left out."""
        return [
            one.at
            for one in self.asked
            if one.host == f"127.0.0.{host}" and one.path.startswith(path) and one.path != "/robots.txt"
        ]

    def __enter__(self) -> "Site":
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()


def web(size: int, degree: int = 3, seed: int = 1) -> dict[str, Says]:
    """A site of ``size`` pages, all of which can be reached from /0; /0 is /, too."""
    pages: dict[str, Says] = {}
    for k in range(size):
        links = {2 * k + 1, 2 * k + 2} | {(k * 7919 + j * 104729 * seed) % size for j in range(degree)}
        pages[f"/{k}"] = html(*[f"/{j}" for j in sorted(links) if j < size], title=f"page {k}")
    return {"/": pages["/0"], **pages}


# -- spiders ----------------------------------------------------------------------------------------------------------


def hrefs(response: Response) -> list[str]:
    """The links of a page, without a parser."""
    return [href.decode() for href in re.findall(rb'href="([^"]*)"', response.body)]


class Walker(Spider):
    """Follows every link, and yields an item for each page; starts where it is told to."""

    name = "walker"

    def __init__(self, start: list[str] | str = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [start] if isinstance(start, str) else list(start)
        self.notes: list[Any] = []

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        yield {"url": response.url}
        for href in hrefs(response):
            yield response.follow(href, callback=None)


class Quiet(Walker):
    """Asks for nothing by itself: for a crawl that has its pages already."""

    async def start(self) -> AsyncIterator[Any]:
        for one in ():
            yield one


# -- the test's side --------------------------------------------------------------------------------------------------


class Log(NamedTuple):
    """A record of a log, from INFO on; ``trace`` is the traceback's text, or empty."""

    level: str
    name: str
    message: str
    trace: str


@dataclass
class Ran:
    """What came of a spider."""

    folder: Path
    base: str
    reason: str = ""
    error: str = ""
    stats: dict[str, Any] = field(default_factory=dict)
    items: list[Any] = field(default_factory=list)
    reported: list[dict[str, Any]] = field(default_factory=list)
    notes: list[Any] = field(default_factory=list)
    logs: list[Log] = field(default_factory=list)

    def short(self, url: str) -> str:
        """A URL without the site's address."""
        return url.removeprefix(self.base)

    @cached_property
    def pages(self) -> dict[str, Page]:
        """All that the crawl knows of each page, by its path."""
        return {self.short(url): page for url, page in pages_of(self.folder).items()}

    @property
    def states(self) -> dict[str, str]:
        return {path: page.state for path, page in self.pages.items()}

    @property
    def crawled(self) -> set[str]:
        return {path for path, page in self.pages.items() if page.state == "crawled"}

    @property
    def outcomes(self) -> Counter[tuple[str, str]]:
        """(path, outcome) of all that was reported."""
        return Counter((self.short(one["url"]), one["outcome"]) for one in self.reported)

    def told(self, level: str, name: str = "inlink") -> list[str]:
        """What was logged at a level by a logger and those below it."""
        return [one.message for one in self.logs if one.level == level and one.name.startswith(name)]


def pages_of(folder: Path) -> dict[str, Page]:
    """All that a crawl's folder tells of each URL."""
    pages = open_pages(folder)
    try:
        pages.recover()
        return {pages.url(k): pages.page(k) for k in range(pages.num_pages)}
    finally:
        pages.close()


PLAIN: dict[str, Any] = {
    "SCHEDULER": "inlink.scrapy.Scheduler",
    "TELNETCONSOLE_ENABLED": False,
    "INLINK_RETRY_SECONDS": 0.05,
    "ROBOTSTXT_OBEY": False,
    "DOWNLOAD_DELAY_JITTER": 0.0,
}
_workers: list["_Worker"] = []


def crawl(
    spider: type[Spider],
    folder: Path,
    site: Site | None = None,
    start: str | list[str] = "/",
    *,
    bugs: bool = False,
    seconds: float = 60.0,
    args: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Ran:
    """Let the worker run a spider to its end.

    Parameters
    ----------
    spider : class
        At the top level of a module of the tests.
    folder : Path
        The crawl's.
    site : Site or None
    start : str or list of str
        Paths at the site, or URLs, where the spider begins.
    bugs : bool
        Tracebacks that end within inlink are looked for by the caller; else one fails the test.
    seconds : float
        After which the worker is killed.
    args : mapping or None
        More arguments of the spider.
    **settings
        Beside :data:`PLAIN`; one that is ``...`` is left out.
    """
    return crawl_together([(spider, folder, start, args, settings)], site, bugs=bugs, seconds=seconds)[0]


def crawl_together(
    runs: list[tuple[type[Spider], Path, str | list[str], Mapping[str, Any] | None, Mapping[str, Any]]],
    site: Site | None = None,
    *,
    bugs: bool = False,
    seconds: float = 60.0,
) -> list[Ran]:
    """Let the worker run spiders at the same time, as :func:`crawl` does one."""
    jobs = []
    for spider, folder, start, args, settings in runs:
        urls = [start] if isinstance(start, str) else start
        if site is not None:
            urls = [url if "://" in url else site.url(url) for url in urls]
        given = {**PLAIN, "INLINK_CRAWL": str(folder), **settings}
        jobs.append(
            {
                "spider": f"{spider.__module__}:{spider.__qualname__}",
                "settings": {name: value for name, value in given.items() if value is not ...},
                "args": {"start": urls, **(args or {})},
            }
        )
    if not _workers:
        _workers.append(_Worker())
        atexit.register(lambda: [one.end() for one in _workers])
    found = _workers[0].ask(jobs, seconds)
    rans = []
    for raw, (_, folder, *_) in zip(found, runs, strict=True):
        raw["logs"] = [Log(*one) for one in raw["logs"]]
        rans.append(Ran(folder, "" if site is None else site.url(""), **raw))
    if not bugs:
        for ran in rans:
            ours = [one for one in ran.logs if _ends_in_inlink(one.trace)]
            assert not ours, ours[0].message + "\n" + ours[0].trace
            assert not ran.error, ran.error
    return rans


def _ends_in_inlink(trace: str) -> bool:
    places = [line for line in trace.splitlines() if line.startswith("  File ")]
    return bool(places) and "/inlink/" in places[-1] and "/tests/" not in places[-1]


class _Worker:
    """The process that runs spiders; one that hangs is killed, and the next is a new one."""

    def __init__(self) -> None:
        self._grace = 240.0  # on a cold cache, kernels are compiled meanwhile
        here = str(Path(__file__).parent)
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])},
        )

    def ask(self, jobs: list[dict[str, Any]], seconds: float) -> list[dict[str, Any]]:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(jobs).encode() + b"\n")
        process.stdin.flush()
        line, until = b"", time.monotonic() + seconds + self._grace
        self._grace = 0.0
        while not line.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                self.end(kill=True)
                raise TimeoutError(f"the spider did not end within {seconds:g} s: {jobs}")
            some = os.read(process.stdout.fileno(), 1 << 20)
            if not some:
                self.end(kill=True)
                raise RuntimeError(f"the worker died, with {process.returncode}: {jobs}")
            line += some
        answer: list[dict[str, Any]] = json.loads(line)
        return answer

    def end(self, kill: bool = False) -> None:
        if kill:
            self._process.kill()
            _workers.remove(self)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process.wait()


# -- the worker's side ------------------------------------------------------------------------------------------------


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.found: list[Log] = []

    def emit(self, record: logging.LogRecord) -> None:
        trace = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else ""
        self.found.append(Log(record.levelname, record.name, record.getMessage(), trace))


async def _one(job: dict[str, Any], records: _Records) -> dict[str, Any]:
    from inlink.scrapy.signals import page_reported

    module, _, name = job["spider"].partition(":")
    runner = AsyncCrawlerRunner(job["settings"])
    ran: dict[str, Any] = {"reason": "", "error": "", "items": [], "reported": []}

    def closed(spider: Spider, reason: str) -> None:
        ran["reason"], ran["notes"] = reason, getattr(spider, "notes", [])

    def scraped(item: Any) -> None:
        ran["items"].append(item)

    def reported(**what: Any) -> None:
        ran["reported"].append({key: what[key] for key in what if key not in ("signal", "sender")})

    try:
        crawler = runner.create_crawler(getattr(importlib.import_module(module), name))
        for handler, signal in (
            (closed, signals.spider_closed),
            (scraped, signals.item_scraped),
            (reported, page_reported),
        ):
            crawler.signals.connect(handler, signal, weak=False)
        await runner.crawl(crawler, **job["args"])
        ran["stats"] = crawler.stats.get_stats() if crawler.stats else {}
    except Exception as error:
        ran["error"] = f"{type(error).__name__}: {error}"
    ran["logs"] = records.found
    return ran


async def _work() -> None:
    loop = asyncio.get_running_loop()
    # 5 s hide that the engine was not woken when it should; Scrapy needs it where start() ends with an item
    ExecutionEngine._SLOT_HEARTBEAT_INTERVAL = 12.0
    records = _Records()
    logging.getLogger().addHandler(records)
    logging.getLogger().setLevel(logging.INFO)
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)  # what spiders print is no answer
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            records.found = []
            found = await asyncio.gather(*[_one(job, records) for job in json.loads(line)])
            out.write(json.dumps(found, default=repr) + "\n")
            out.flush()


def _main() -> None:
    from scrapy.utils.reactor import install_reactor

    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    from twisted.internet import reactor

    def begin() -> None:
        work = asyncio.ensure_future(_work())
        work.add_done_callback(lambda _: reactor.stop())  # type: ignore[attr-defined]

    reactor.callWhenRunning(begin)  # type: ignore[attr-defined]
    reactor.run(installSignalHandlers=False)  # type: ignore[attr-defined]


if __name__ == "__main__":
    _main()
