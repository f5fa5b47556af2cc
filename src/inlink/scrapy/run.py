"""The library side of ``inlink crawl``: a polite broad spider on one folder, without a Scrapy project."""

import asyncio
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from scrapy.crawler import AsyncCrawlerProcess, Crawler
from scrapy.logformatter import LogFormatter, LogFormatterResult

from inlink.base import extras
from inlink.client.spider import Client
from inlink.crawl.permissions import Permissions, keep
from inlink.crawl.settings import choose
from inlink.crawl.view import CrawlView
from inlink.errors import InlinkError, OutputError, ParameterError
from inlink.protocol import Standing
from inlink.scrapy.causes import Causes, cause_of_page
from inlink.scrapy.job import Ending, Job, Stopping, Watched
from inlink.scrapy.options import (
    CrawlOptions,
    beginnings,
    folder_for,
    permissions_of,
    seeds_in_file,
    settings_of,
    sites_of,
)
from inlink.scrapy.outputs import Appended, WarcFile, WikiTables, whole_lines
from inlink.scrapy.preset import load
from inlink.scrapy.progress import Display, Lines
from inlink.scrapy.scheduler import Scheduler
from inlink.scrapy.sitemaps import Sitemaps
from inlink.scrapy.spider import BroadSpider
from inlink.scrapy.wacz import pack_wacz
from inlink.urls.canonical import canonical

_log = logging.getLogger("inlink.addresses")

_MOST_EXPLAINED = 1000


@dataclass(frozen=True)
class Summary:
    """The result of a run.

    Attributes
    ----------
    folder : Path
        The crawl's folder.
    crawled, failed : int
        Number of pages and of errors in this run.
    seconds : float
        Duration.
    ending : {"finished", "pages", "seconds", "certain", "interrupted"}
        The reason why the run ended.
    standing : Standing
        The crawl's progress.
    causes : tuple of str
        The causes for which pages were not fetched or not read: a line for each cause, with an example.
    left : str
        Set if the run ended because no page was due soon. It says how many pages are left, on which hosts, and when
        they are due.
    nothing : bool
        Whether the run crawled no page although there were pages to crawl.
    """

    folder: Path
    crawled: int
    failed: int
    seconds: float
    ending: Ending
    standing: Standing
    causes: tuple[str, ...] = ()
    left: str = ""
    nothing: bool = False


def crawl(
    urls: tuple[str, ...],
    folder: Path | None,
    options: CrawlOptions,
    *,
    quiet: bool = False,
    verbose: bool = False,
) -> Summary:
    """Crawl until nothing is left, a limit is reached, or a signal interrupts.

    This function runs Twisted's reactor, so it works only once in a process. In the main thread, SIGINT and SIGTERM
    end the crawl cleanly. A second signal ends the process at once with exit code 130, also without loss of data.

    Parameters
    ----------
    urls : tuple of str
        URLs to start from; the default scheme is ``http://``.
    folder : Path or None
        The crawl's folder; it is created if it does not exist. None: a folder in the working directory, named after the
        first host.
    options : CrawlOptions
    quiet : bool
        Show no progress.
    verbose : bool
        Show Scrapy's log from INFO on.

    Raises
    ------
    inlink.errors.InlinkError
        If an option is outside its range, or a file cannot be read or written. The crawl can be continued.
    """
    _check_archives(options)
    preset = None if options.preset is None else load(options.preset)
    begin = beginnings(urls, options, preset)
    seeds = seeds_in_file(options.seeds)
    if folder is None:
        folder = folder_for(begin or [url for url in seeds if canonical(url)])
    if not begin and not seeds and not folder.exists():
        raise ParameterError(f"no URL to begin at, and no crawl in {folder}: give a URL, --seeds or --start")
    permissions, told = permissions_of(folder, options, begin)
    settings = settings_of(folder, options, preset, [*begin, *seeds], permissions)
    if told and not quiet:
        sys.stderr.write(f"crawl: {told}\n")
    with ExitStack() as stack:
        job = Job(options.pages, options.seconds, preset=preset, permissions=permissions)
        if options.until_top is not None:
            job.stopping = Stopping(folder, options.until_top, options.until_within)
        if preset is None and options.sitemaps is not False:
            job.sitemaps = Sitemaps(
                _sitemap_hosts(folder, settings, [*begin, *seeds]),
                bool(options.sitemaps),
                job.tally.causes,
                scored=settings["INLINK_LINK_SCORER"] is not None,
            )
        if options.warc is not None:
            job.warc = stack.enter_context(WarcFile(options.warc, options.agent, options.warc_seen))
        if options.items is not None:
            job.items = stack.enter_context(Appended(options.items, whole_lines))
        if options.sqlite is not None:
            job.tables = stack.enter_context(WikiTables(options.sqlite))
        progress = None if quiet else Display(job.tally) if sys.stderr.isatty() else Lines(job.tally)
        if progress is not None:
            stack.callback(progress.close)
        stack.enter_context(logging_to(job, verbose, quiet))
        _run(settings, begin, job, progress)
    if job.error is not None:
        raise job.error
    if options.wacz is not None and options.warc is not None and job.ending != "interrupted":
        pack_wacz(options.warc, options.wacz)
    if job.last is None:
        raise ParameterError(f"{folder}: the crawl did not begin: use -v to see Scrapy's log")
    tally = job.tally
    seconds = time.monotonic() - tally.began
    nothing = not tally.crawled and (bool(tally.causes) or not job.last.crawled)
    if nothing and not tally.causes:
        _explain(folder, [*begin, *seeds], tally.causes)
    return Summary(
        folder,
        tally.crawled,
        tally.failed,
        seconds,
        job.ending,
        job.last,
        tuple(tally.causes.lines()),
        job.left,
        nothing,
    )


def _check_archives(options: CrawlOptions) -> None:
    """Refuse options of archives that need others, or a package that is not installed."""
    for option, given in (("--warc-seen", options.warc_seen), ("--wacz", options.wacz)):
        if given and options.warc is None:
            raise ParameterError(f"{option} applies to the archive of --warc: give --warc too")
    if options.wacz is not None:
        if not options.wacz.name.endswith(".wacz"):
            raise OutputError(f"{options.wacz}: name a file that ends with .wacz")
        extras.load("wacz", "wacz", "--wacz")


def _sitemap_hosts(folder: Path, settings: dict[str, Any], urls: list[str]) -> frozenset[str] | None:
    """Hosts whose sitemaps are read: all (None) if the crawl stays on its sites, else the hosts of the URLs."""
    given = {"rules": settings["INLINK_RULES"]} if "INLINK_RULES" in settings else {}
    rules = choose(folder, given).settings.rules
    limited = rules is not None and (rules.hosts is not None or rules.domains is not None)
    return None if limited else frozenset(sites_of(urls))


def _explain(folder: Path, urls: list[str], causes: Causes) -> None:
    """Add causes from the crawl for the first URLs of a run that got no answer at all."""
    with CrawlView.open(folder) as view:
        for url in urls[:_MOST_EXPLAINED]:
            form = canonical(url)
            page = None if form is None else view.page(form)
            while page is not None and page.merged_into is not None:
                page = view.page(page.merged_into)
            if page is not None:
                causes.add(*cause_of_page(page), page.url)


class WatchedScheduler(Scheduler):
    """A scheduler whose client also records its answers in the job."""

    _folder: Path

    @property
    def _spider(self) -> BroadSpider:
        spider = self.crawler.spider
        assert isinstance(spider, BroadSpider)
        return spider

    @property
    def _job(self) -> Job:
        return self._spider.job

    def say_left(self, line: str) -> None:
        """Keep the line for the summary."""
        self._job.left = line

    def typed_hosts(self) -> dict[str, str]:
        """Return the hosts of the URLs that were given to this run or an earlier one directly, not in a file."""
        return self._job.permissions.hosts

    def host_seen(self, host: str, address: str) -> None:
        """Keep the address of a typed host; forget a host that was never seen at an address that is not public."""
        hosts = dict(self._job.permissions.hosts)
        before = hosts.pop(host)
        if before and address in ("", before):
            return
        if address:
            hosts[host] = address
        if address and not before:
            said = host if host == address else f"{host} ({address})"
            _log.info("%s is not a public address; it is fetched because you gave this URL", said)
        self.keep(self._folder, msgspec.structs.replace(self._job.permissions, hosts=hosts))

    def keep(self, folder: Path, permissions: Permissions) -> None:
        """Keep the addresses that this run may connect to for later runs in this folder."""
        self._folder, self._job.permissions = folder, permissions
        keep(folder, permissions)

    def has_pending_requests(self) -> bool:
        """Return whether there are pages to fetch, or sitemaps that may name more."""
        sitemaps, over = self._job.sitemaps, self._job.ending != "finished"
        if sitemaps is not None and over:
            sitemaps.stop()
        return super().has_pending_requests() or (sitemaps is not None and sitemaps.busy and not over)

    def watched(self, client: Client) -> Client:
        """Return the client, wrapped so that the job sees each answer."""
        job, progress = self._job, self._spider.progress
        if job.sitemaps is not None:
            job.sitemaps.give = self.take_sitemap
        if progress is None:
            return Watched(client, job)
        return Watched(client, job, progress.show, progress.period)


def _run(settings: dict[str, Any], urls: list[str], job: Job, progress: Lines | None) -> None:
    process = AsyncCrawlerProcess(settings)
    crawler = process.create_crawler(BroadSpider)
    # The list keeps the futures from being garbage-collected before they are done.
    closings: list[asyncio.Future[None]] = []
    job.close = partial(_close, crawler, closings)
    task = process.crawl(crawler, urls=urls, job=job, progress=progress)
    # The modules stay until the end. A full collection would go through all their objects and stop the crawl.
    gc.freeze()
    with _interrupts(asyncio.get_event_loop(), job, progress):
        process.start(install_signal_handlers=False)
    if task.done() and not task.cancelled() and (error := task.exception()) is not None:
        job.error = job.error or (error if isinstance(error, Exception) else None)


def _close(crawler: Crawler, closings: list[asyncio.Future[None]]) -> None:
    """Stop the spider once its open requests have ended. A spider that is not open yet gets no requests."""
    try:
        running = crawler.engine.running
    except RuntimeError:
        return
    if running:
        closings.append(asyncio.ensure_future(crawler.stop_async()))


@contextmanager
def _interrupts(loop: asyncio.AbstractEventLoop, job: Job, progress: Lines | None) -> Iterator[None]:
    """End the crawl cleanly on the first signal. End the process at once on the second signal."""
    asked = False

    def interrupted() -> None:
        nonlocal asked
        if asked:
            if progress is not None:
                progress.close()
            sys.stderr.write("inlink: interrupted twice; the same command continues the crawl\n")
            sys.stderr.flush()
            # Any other exit would wait for the threads that look up names.
            os._exit(130)
        asked = True
        if progress is not None:
            progress.say("stopping after the pages that are being fetched; interrupt again to stop at once")
        job.end("interrupted")

    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in signals}
    try:
        for number in signals:
            loop.add_signal_handler(number, interrupted)
    except (ValueError, RuntimeError, NotImplementedError):
        # Outside the main thread, signals cannot be handled.
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            if not loop.is_closed():
                loop.remove_signal_handler(number)
            signal.signal(number, handler)


_TOLD = ("inlink.compiling", "inlink.addresses", "inlink.sitemaps")
"""Loggers whose messages of level INFO are shown too, unless the run is quiet."""


class CalmLog(LogFormatter):
    """Logs download errors at level DEBUG: they are normal, and the crawl counts and keeps them."""

    def download_error(self, *args: Any, **kwargs: Any) -> LogFormatterResult:
        """The record of a download that failed."""
        return {**super().download_error(*args, **kwargs), "level": logging.DEBUG}


class _StderrHandler(logging.Handler):
    """Writes lines to the present standard error, so that a progress display can print them above itself."""

    def __init__(self, job: Job, verbose: bool) -> None:
        super().__init__(logging.INFO)
        self._job, self._verbose = job, verbose

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, with its traceback if verbose. The reason why a crawl cannot go on is written only once."""
        quiet = record.levelno < logging.WARNING and record.name not in _TOLD
        if (quiet and not self._verbose) or getattr(record, "shown", False):
            return
        if record.name == "inlink.scrapy" and isinstance(record.args, tuple):
            told = next((argument for argument in record.args if isinstance(argument, InlinkError)), None)
            if told is not None:
                # This is the reason why the scheduler cannot go on.
                self._job.error = self._job.error or told
                return
        if record.name == "py.warnings" and not self._verbose:
            return
        line = record.getMessage() if not self._verbose else self.format(record)
        if not self._verbose:
            line = "".join(c if c.isprintable() else " " for c in line[:1000])
        sys.stderr.write(f"crawl: {record.levelname.lower()}: {line}\n")


@contextmanager
def logging_to(job: Job, verbose: bool, quiet: bool) -> Iterator[None]:
    """Show the log while the block runs. If the crawl cannot go on, store the reason in the job."""
    root, told = logging.getLogger(), [logging.getLogger(name) for name in _TOLD]
    handler = _StderrHandler(job, verbose)
    level = root.level
    root.addHandler(handler)
    if verbose:
        root.setLevel(logging.INFO)
    if not quiet:
        for logger in told:
            logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        for logger in told:
            logger.setLevel(logging.NOTSET)
