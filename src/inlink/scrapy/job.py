"""One run of ``inlink crawl``: its limits, and the files that it writes beside the crawl.

:class:`Watched` stands between Scrapy's scheduler and the crawl. It writes a page to the files before the crawl takes
the answer in, so the files miss no page that the crawl knows as crawled. It also limits the tasks that are handed out:
a run starts gently, and ends in time.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from inlink.client.spider import Client
from inlink.crawl.certificate import Certifier
from inlink.crawl.permissions import Permissions
from inlink.errors import InlinkError
from inlink.protocol import (
    Answer,
    AnyLink,
    Crawled,
    Excluded,
    Failed,
    HostDelay,
    Receipt,
    Redirected,
    Standing,
    Task,
    Tasks,
)
from inlink.scrapy.causes import Causes, cause_of
from inlink.scrapy.outputs import Appended, WarcFile, WikiTables
from inlink.scrapy.preset import Article, Preset
from inlink.scrapy.sitemaps import Sitemaps

_POLL = 0.5
"""Seconds between two looks at the number of pages."""

_LEAST_GROWTH = 10
_GROWTH = 0.02
"""The bounds are computed again when the crawl has grown by this share, and by ``_LEAST_GROWTH`` answers."""

_REST = 9.0
"""Seconds without work for each second of work, so that the bounds take a tenth of one processor."""


class Stopping:
    """Computes the bounds of a crawl from its folder, in a thread, while the crawl goes on.

    Parameters
    ----------
    folder : Path
        The crawl's folder. It must exist when :meth:`watch` begins.
    count : int
        Number of places, 1 … 1,000.
    within : float
        ε, a share of all rank: see :class:`inlink.protocol.Certificate`.
    """

    def __init__(self, folder: Path, count: int, within: float) -> None:
        self.folder, self.count, self.within = folder, count, within
        self._over = threading.Event()

    def watch(self, answers: Callable[[], int]) -> bool:
        """Block until all places are certain, and return True. Return False once :meth:`stop` is called.

        Parameters
        ----------
        answers : callable
            Returns the number of answers in this run so far.

        Raises
        ------
        inlink.errors.InlinkError
            If the crawl cannot be read.
        """
        certifier, seen = None, 0
        try:
            while not self._over.wait(_POLL):
                if answers() < seen + max(_LEAST_GROWTH, _GROWTH * seen):
                    continue
                seen, began = answers(), time.monotonic()
                if certifier is None:
                    certifier = Certifier(self.folder, self.count, self.within, self._between)
                if certifier.look().holds:
                    return True
                self._over.wait(_REST * (time.monotonic() - began))
        except _OverError:
            pass
        finally:
            if certifier is not None:
                certifier.close()
        return False

    def stop(self) -> None:
        """End :meth:`watch` from another thread. It returns as soon as the events at hand are read."""
        self._over.set()

    def _between(self) -> None:
        if self._over.is_set():
            raise _OverError


class _OverError(Exception):
    """The run has ended."""


Ending = Literal["finished", "pages", "seconds", "certain", "interrupted"]

# Tasks at the beginning. Each successful answer allows one more.
_FIRST = 2
# Showing the progress takes at most this fraction of the time: 1/20.
_BUSY = 20


@dataclass
class Note:
    """The spider's data of a page that is not reported yet."""

    title: str = ""
    canonical: str | None = None
    # The reason why the page, or a part of it, was not read.
    problem: str | None = None
    articles: list[Article] = field(default_factory=list)


@dataclass
class RunCounts:
    """Counts of the run so far."""

    began: float = field(default_factory=time.monotonic)
    crawled: int = 0
    failed: int = 0
    excluded: int = 0
    # The reasons why pages were not fetched, or not read.
    causes: Causes = field(default_factory=Causes)
    scores: deque[float] = field(default_factory=lambda: deque(maxlen=100))


@dataclass
class Job:
    """A run: its limits, its files, and its result.

    Attributes
    ----------
    pages : int or None
        The run ends when the crawl has this many crawled pages.
    seconds : float or None
        The run ends after this time.
    stopping : Stopping or None
        Ends the run when the best places are certain.
    preset, warc, items, tables
        The preset and the output files; None if not used.
    sitemaps : Sitemaps or None
        Reads the sitemaps of hosts; None if they are not read.
    permissions : Permissions
        The addresses that the spider may connect to.
    notes : dict
        The spider's data of pages, by lease.
    ending : Ending
        The reason why the run ended.
    error : Exception or None
        The error that ended the run.
    close : callable
        Stops the spider.
    last : Standing or None
        The crawl's progress at the end.
    left : str
        The pages that are due later than the run waits, in words.
    """

    pages: int | None = None
    seconds: float | None = None
    stopping: Stopping | None = None
    preset: Preset | None = None
    warc: WarcFile | None = None
    items: Appended | None = None
    tables: WikiTables | None = None
    sitemaps: Sitemaps | None = None
    permissions: Permissions = field(default_factory=Permissions)
    tally: RunCounts = field(default_factory=RunCounts)
    notes: dict[int, Note] = field(default_factory=dict)
    ending: Ending = "finished"
    error: Exception | None = None
    last: Standing | None = None
    left: str = ""
    close: Callable[[], None] = lambda: None

    def end(self, ending: Ending) -> None:
        """Hand out no more tasks, and stop the spider."""
        if self.ending == "finished":
            self.ending = ending
            self.close()


class Watched:
    """A client that records each outcome for a job; see :class:`inlink.client.spider.Client`.

    Parameters
    ----------
    client : Client
    job : Job
    show : callable or None
        Called with the crawl's standing about every ``period`` seconds.
    """

    def __init__(
        self, client: Client, job: Job, show: Callable[[Standing], None] | None = None, period: float = 1.0
    ) -> None:
        self._client, self._job, self._show, self._period = client, job, show, period
        # The tasks by lease, each with the URLs that redirected to it.
        self._out: dict[int, tuple[Task, list[str]]] = {}
        self._allowed = _FIRST
        self._crawled: int | None = None
        self._watch = asyncio.ensure_future(self._look()) if show is not None else None
        self._stopping = None if job.stopping is None else asyncio.ensure_future(self._until(job.stopping))
        self._timer: asyncio.TimerHandle | None = None
        if job.seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(job.seconds, job.end, "seconds")
        job.tally.began = time.monotonic()

    async def seed(self, urls: Iterable[AnyLink]) -> int:
        """Make URLs known."""
        return await self._client.seed(urls)

    async def sitemap(self, entries: Iterable[tuple[str, float | None, float | None]]) -> int:
        """Take in a sitemap's entries."""
        return await self._client.sitemap(entries)

    async def standing(self, hosts: int = 5) -> Standing:
        """The crawl's progress."""
        return await self._client.standing(hosts)

    async def next(self, count: int, wait: float = 0.0) -> Tasks:
        """Tasks, as far as the job allows. If it allows no more, the reply is that of a crawl that has ended."""
        job = self._job
        room = min(count, self._allowed - len(self._out))
        if job.pages is not None:
            if self._crawled is None or (self._crawled >= job.pages and not self._out):
                # Pages that were merged count once.
                self._crawled = (await self.standing(0)).crawled
                if self._crawled >= job.pages and job.ending == "finished":
                    job.ending = "pages"
            room = min(room, job.pages - self._crawled - len(self._out))
        # After the answers for open tasks, the scheduler asks again.
        if room <= 0 or job.ending != "finished":
            return Tasks([])
        found = await self._client.next(room, wait)
        self._out.update((task.lease, (task, [])) for task in found.tasks)
        return found

    async def report(self, answers: Sequence[Answer]) -> list[Receipt]:
        """Write pages to the files, then let the crawl take the answers in.

        Raises
        ------
        inlink.errors.InlinkError
            If either fails, or failed before. Then the crawl takes none of the answers in.
        """
        if self._job.error is not None:
            raise self._job.error
        try:
            for answer in answers:
                if isinstance(answer, Crawled) and answer.lease in self._out:
                    self._keep(answer)
            receipts = await self._client.report(answers)
        except Exception as error:
            self._job.error = error
            raise
        for answer, receipt in zip(answers, receipts, strict=True):
            self._count(answer, receipt)
        return receipts

    def split(self, answers: Sequence[Answer]) -> list[list[int]]:
        """The places of answers, by report."""
        return self._client.split(answers)

    async def close(self) -> None:
        """Keep the last standing, and close the client."""
        if self._timer is not None:
            self._timer.cancel()
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        if self._job.stopping is not None and self._stopping is not None:
            self._job.stopping.stop()
            await self._stopping
        try:
            self._job.last = await self.standing(0)
        finally:
            await self._client.close()

    def _keep(self, answer: Crawled) -> None:
        job = self._job
        task, aliases = self._out[answer.lease]
        note = job.notes.get(answer.lease) or Note()
        if job.items is not None:
            item = {
                "url": task.url.partition("#")[0],
                "title": note.title,
                "score": answer.score,
                "status": answer.status,
                "depth": task.depth,
                "links": len(answer.links),
                "fetched": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            }
            job.items.append(msgspec.json.encode(item) + b"\n")
        if job.tables is not None and job.preset is not None and answer.error is None:
            urls = dict.fromkeys([*aliases, task.url.partition("#")[0], note.canonical or ""])
            addresses = [(url, job.preset.title_of(url)) for url in urls if job.preset.is_article(url)]
            job.tables.crawled(addresses, [(article.url, article.title) for article in note.articles])

    def _count(self, answer: Answer, receipt: Receipt) -> None:
        if isinstance(answer, HostDelay):
            return
        task, aliases = self._out.pop(answer.lease, (None, []))
        note = self._job.notes.pop(answer.lease, None)
        tally = self._job.tally
        url = "" if task is None else task.url.partition("#")[0]
        cause = cause_of(answer, url)
        if cause is not None:
            tally.causes.add(*cause, url)
        elif note is not None and note.problem is not None:
            tally.causes.add(f"not read, {note.problem}", url, url)
        if receipt.task is not None:
            known = [*aliases, url] if task else []
            self._out[receipt.task.lease] = (receipt.task, known)
        if isinstance(answer, Crawled):
            tally.scores.append(answer.score)
            tally.crawled += receipt.counted
            if self._crawled is not None:
                self._crawled += receipt.counted
        tally.failed += isinstance(answer, Failed)
        if isinstance(answer, Excluded):
            tally.excluded += 1
        self._allowed += isinstance(answer, Crawled | Redirected)

    async def _until(self, stopping: Stopping) -> None:
        """End the run when its best places are certain."""
        tally = self._job.tally
        try:
            if await asyncio.to_thread(stopping.watch, lambda: tally.crawled + tally.failed):
                self._job.end("certain")
        except InlinkError as error:
            self._job.error = self._job.error or error
            self._job.close()

    async def _look(self) -> None:
        while self._show is not None:
            began = time.monotonic()
            try:
                self._show(await self.standing())
            except InlinkError:
                # The spider gets the same error in its next call.
                return
            await asyncio.sleep(max(self._period, _BUSY * (time.monotonic() - began)))
