"""Scrapy's own scheduler with its disk queue and its duplicate filter (``JOBDIR`` set), driven as a spider drives it.

It runs in the Python that ``SCRAPY_PYTHON`` names, where ``pip install scrapy`` is all that is needed, else in this
one. Scheduler, filter, queue and downloader are Scrapy's; no reactor runs, nothing is fetched.

Unfair to Scrapy: a link becomes a ``Request`` within the time, since its scheduler takes nothing else, and a request
carries headers, callbacks and more, which no other peer keeps.

Unfair to the others: it keeps no links and no pages, only the fingerprints it has met and the requests not yet made;
nothing is synced, and the queue's files can be read again only after a stop in good order; there are no scores, no
leases, and politeness is the downloader's business. The queue is ``ScrapyPriorityQueue``, the default of earlier
versions: that of Scrapy 2.19 keeps a file open for each host and looks through all hosts for each request. At 40,000
known URLs it took 1.3 times as long a link, and eight times as long a request.
"""

import importlib
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench.crawlers.base import needs

NAME = "Scrapy's scheduler, disk queue"
COMPUTES = (
    "duplicate filter (canonical URL, SHA-1, a set in memory and a file) and pickled requests on disk; "
    "not synced, no links, scores or leases"
)
LARGEST = 1_000_000
MODES = {"plain": ("", 0.1)}
NEXT = {"plain": 1.0}


def _python() -> str:
    return os.environ.get("SCRAPY_PYTHON") or sys.executable


def available() -> str | None:
    if _python() == sys.executable:
        return needs("scrapy")
    if shutil.which(_python()) is None:
        return "SCRAPY_PYTHON names no Python"
    found = subprocess.run([_python(), "-c", "import scrapy"], capture_output=True)
    return "SCRAPY_PYTHON's Python has no scrapy" if found.returncode else None


def command(folder: Path) -> list[str]:
    return [_python(), "-m", "bench", "crawler", "scrapy_scheduler", str(folder)]


def warm_up() -> None:
    for name in ("scrapy", "scrapy.core.downloader", "scrapy.core.scheduler", "scrapy.utils.test"):
        importlib.import_module(name)
    logging.disable(logging.CRITICAL)


class Crawl:
    """See :class:`bench.crawlers.base.Crawl`."""

    def __init__(self, folder: Path) -> None:
        scrapy: Any = importlib.import_module("scrapy")
        testing: Any = importlib.import_module("scrapy.utils.test")
        downloader: Any = importlib.import_module("scrapy.core.downloader")
        scheduler: Any = importlib.import_module("scrapy.core.scheduler")
        queue = "scrapy.pqueues.ScrapyPriorityQueue"
        crawler = testing.get_crawler(
            scrapy.Spider, {"JOBDIR": str(folder), "SCHEDULER_PRIORITY_QUEUE": queue}
        )
        crawler.spider = crawler._create_spider("bench")
        crawler.engine = SimpleNamespace(downloader=downloader.Downloader(crawler))
        self._scheduler: Any = scheduler.Scheduler.from_crawler(crawler)
        self._scheduler.open(crawler.spider)
        self._request: Any = scrapy.Request

    def seed(self, urls: list[str]) -> None:
        self.take("", urls)

    def mode(self, name: str) -> None:
        pass

    def take(self, url: str, links: list[str]) -> None:
        enqueue, request = self._scheduler.enqueue_request, self._request
        for link in links:
            enqueue(request(link))

    def tick(self) -> None:
        pass

    def next(self, size: int) -> list[Any]:
        requests = (self._scheduler.next_request() for _ in range(size))
        return [one for one in requests if one is not None]

    def answer(self, one: Any) -> None:
        pass

    def rerank(self) -> Callable[[], bool]:
        raise NotImplementedError

    def close(self) -> None:
        self._scheduler.close("finished")
