"""The interface of peers in the benchmark of the crawl, and the loop for peers in Python.

A crawler is a program: it gets a folder, and on its standard input commands, one a line, some with as many bytes
behind them as they say. It answers each with a line of JSON, and tells first of all how long it took to open.

    seed BYTES                        the seeds, one a line
    take MODE PAGES BYTES             pages as bench.crawlweb writes them, in the order in which they were crawled
    next MODE BATCHES SIZE            ask for URLs, and answer for those of two batches ago
    rerank BATCHES SIZE PAGES BYTES   the same for as long as a ranking runs, a page taken in after each batch
    reopen                            close and open again
    settle                            give back memory that is not needed

Seconds throughout, taken around the calls of the crawl alone: not while a text becomes strings. The generator is
another process and waits meanwhile, so that neither its memory nor its time is the crawler's. This module imports
only the standard library, so that a peer may run in another Python than inlink's.
"""

import gc
import importlib
import importlib.util
import json
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

__all__ = ["ALL", "Crawl", "Page", "Peer", "ask", "needs", "parse", "peer", "serve", "take"]

# A URL and its links.
Page = tuple[str, list[str]]

# The order in which they run and stand in the tables
ALL = ["inlink", "aduana", "aduana_limits", "scrapy_scheduler"]

# Batches handed out and not yet answered for.
IN_FLIGHT = 2
# Seconds between two batches, and two pages, while a ranking runs.
PACE = 0.01


class Peer(Protocol):
    """A module of this package."""

    # The name in the tables.
    NAME: str
    # Description of its work for a link.
    COMPUTES: str
    # The largest number of known URLs that is tried.
    LARGEST: int
    # The modes in which pages are taken in: their names, and the share of a window's links.
    MODES: Mapping[str, tuple[str, float]]
    # The modes in which URLs are asked for, and the share of the batches.
    NEXT: Mapping[str, float]

    # A peer with ``lookup(folder, url)``, the seconds of looking up one URL from another process while the crawl is
    # open, is also asked to reopen and to rerank.

    def available(self) -> str | None:
        """None, or the reason why it cannot run here."""
        ...

    def command(self, folder: Path) -> list[str]:
        """The program, which keeps all its files below the folder."""
        ...


class Crawl(Protocol):
    """The interface of a peer's crawl in Python."""

    def seed(self, urls: list[str]) -> None:
        """Take in the first URLs."""
        ...

    def mode(self, name: str) -> None:
        """From now on work in another of the modes; not timed."""
        ...

    def take(self, url: str, links: list[str]) -> None:
        """A page was crawled, and these are its links."""
        ...

    def tick(self) -> None:
        """Between two batches, so much time passes that politeness does not stop all; not timed."""
        ...

    def next(self, size: int) -> list[Any]:
        """Up to so many URLs to be crawled."""
        ...

    def answer(self, one: Any) -> None:
        """Report a page that was handed out as crawled."""
        ...

    def rerank(self) -> Callable[[], bool]:
        """Begin a ranking; returns a function that tells whether it still runs."""
        ...

    def close(self) -> None:
        """Close the crawl, with all that it holds in memory."""
        ...


def peer(name: str) -> Peer:
    """A peer by the name of its file."""
    if name not in ALL:
        raise SystemExit(f"no crawler {name!r}: there are {', '.join(ALL)}")
    return cast(Peer, importlib.import_module(f"bench.crawlers.{name}"))


def needs(module: str) -> str | None:
    """None if a module can be imported, else the reason to give."""
    return None if importlib.util.find_spec(module) else f"{module} is not installed"


def _calls(seconds: list[float]) -> dict[str, float]:
    """The median, the 99th percentile and the longest of some calls; 0 for none."""
    ordered = sorted(seconds) or [0.0]
    return {
        "median": statistics.median(ordered),
        "p99": ordered[min(len(ordered) * 99 // 100, len(ordered) - 1)],
        "slowest": ordered[-1],
    }


def parse(text: bytes) -> list[Page]:
    """The pages that :meth:`bench.crawlweb.Web.text` wrote: the URL of each, and its links."""
    pages = []
    for lines in text[:-2].decode().split("\n\n") if text else ():
        url, *links = lines.split("\n")
        pages.append((url, links))
    return pages


def take(crawl: Crawl, pages: list[Page]) -> dict[str, Any]:
    """Take pages in, and the figures of it."""
    took: list[float] = []
    crawled, clock = crawl.take, time.perf_counter
    cpu, began = time.process_time(), clock()
    before = began
    for url, links in pages:
        crawled(url, links)
        now = clock()
        took.append(now - before)
        before = now
    wall, cpu = clock() - began, time.process_time() - cpu
    links_in = sum(len(links) for _, links in pages)
    return {"pages": len(pages), "links": links_in, "cpu": cpu, "wall": wall} | _calls(took)


def ask(
    crawl: Crawl,
    batches: int,
    size: int,
    pages: list[Page],
    busy: Callable[[], bool] | None = None,
) -> dict[str, Any]:
    """Ask for URLs, and the figures of it; what answers cost is told apart.

    With ``busy``, only for as long as that is true, and at the pace of a crawl, not as fast as can be.
    """
    took: list[float] = []
    flying: deque[list[Any]] = deque()
    urls = short = answers = 0
    cpu = answering = 0.0
    coming = iter(pages)
    for _ in range(batches):
        if busy:
            if not busy():
                break
            time.sleep(PACE)
        crawl.tick()
        cpu_began, began = time.process_time(), time.perf_counter()
        handed = crawl.next(size)
        took.append(time.perf_counter() - began)
        now = time.process_time()
        cpu += now - cpu_began
        urls += len(handed)
        short += len(handed) < size
        flying.append(handed)
        if len(flying) > IN_FLIGHT:
            for one in flying.popleft():
                crawl.answer(one)
                answers += 1
        answering += time.process_time() - now
        for page in coming:
            crawl.take(*page)
            break
    for handed in flying:
        for one in handed:
            crawl.answer(one)
    figures = {"urls": urls, "cpu": cpu, "wall": sum(took), "short": short, "batches": len(took)}
    return figures | {"answer": answering / answers if answers else 0.0} | _calls(took)


def serve(name: str, folder: Path) -> None:
    """Be the crawler: open it in the folder, and follow the commands until there are no more."""
    module = importlib.import_module(f"bench.crawlers.{name}")
    source, output = sys.stdin.buffer, sys.stdout
    module.warm_up()
    began = time.perf_counter()
    crawl: Crawl = module.Crawl(folder)
    answer: dict[str, Any] = {"open": time.perf_counter() - began}
    while True:
        output.write(json.dumps(answer) + "\n")
        output.flush()
        line = source.readline().decode().split(" ")
        what = line[0].strip()
        answer = {}
        if what == "seed":
            crawl.seed(source.read(int(line[1])).decode().splitlines())
        elif what == "take":
            pages = parse(source.read(int(line[3])))
            crawl.mode(line[1])
            answer = take(crawl, pages)
            del pages
        elif what == "next":
            crawl.mode(line[1])
            answer = ask(crawl, int(line[2]), int(line[3]), [])
        elif what == "rerank":
            pages = parse(source.read(int(line[4])))
            crawl.mode("plain")
            began = time.perf_counter()
            busy = crawl.rerank()
            answer = ask(crawl, int(line[1]), int(line[2]), pages, busy)
            answer["ranking"] = time.perf_counter() - began
        elif what == "reopen":
            crawl.close()
            del crawl
            gc.collect()
            began = time.perf_counter()
            crawl = module.Crawl(folder)
            answer["open"] = time.perf_counter() - began
        elif what == "settle":
            gc.collect()
        else:
            break
    crawl.close()
