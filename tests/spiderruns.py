"""Crawls with Scrapy for tests: a process in which spiders run one after the other.

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
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

from scrapy import Spider, signals
from scrapy.core.engine import ExecutionEngine
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.http import Response

from inlink.store.page import Page
from inlink.store.reader import open_pages
from patience import PATIENCE
from sites import Site

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
    """The result of a spider's run."""

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
        """The messages that a logger and those below it wrote at a level."""
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
    args : mapping or None
        More arguments of the spider.
    **settings
        Beside :data:`PLAIN`; one that is ``...`` is left out.
    """
    return crawl_together([(spider, folder, start, args, settings)], site, bugs=bugs)[0]


def crawl_together(
    runs: list[tuple[type[Spider], Path, str | list[str], Mapping[str, Any] | None, Mapping[str, Any]]],
    site: Site | None = None,
    *,
    bugs: bool = False,
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
    found = _workers[0].ask(jobs)
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
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def ask(self, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(jobs).encode() + b"\n")
        process.stdin.flush()
        line, until = b"", time.monotonic() + PATIENCE
        while not line.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not wait([process.stdout], left):
                self.end(kill=True)
                raise TimeoutError(f"the spider did not end within {PATIENCE:g} s: {jobs}")
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
