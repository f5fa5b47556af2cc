"""Fetch the sitemaps of the sites of a crawl, and hand their URLs to the crawl.

The sitemaps are those that a host's robots.txt names and, if asked for, ``/sitemap.xml``. They are fetched one after
the other for each host, through Scrapy's downloader, which keeps the delay, robots.txt and the rules for addresses.
Only URLs on the host's own registered domain count, so a sitemap cannot lead the crawl to other sites. An index may
name sitemaps and further indexes. At most :data:`MOST_FILES` files are fetched for a host.

A sitemap may take a second to parse, so a worker thread parses it, one sitemap at a time. Meanwhile the event loop goes
on with other fetches. No further sitemap is fetched while more than :data:`MOST_UNREAD` bytes wait to be parsed.
"""

import asyncio
import logging
from collections.abc import Callable, Set
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http.request import NO_CALLBACK

from inlink.base.table import counted
from inlink.scrapy.causes import Causes
from inlink.scrapy.sitemapfile import Entry, SitemapFile, read_sitemap
from inlink.urls.canonical import canonical
from inlink.urls.hosts import same_domain

__all__ = ["MOST_FILES", "Sitemaps"]

log = logging.getLogger("inlink.sitemaps")

MOST_FILES = 100
"""Maximum number of sitemaps that are fetched for a host."""

DEEPEST = 2
"""Maximum depth of nested indexes above a sitemap."""

MOST_UNREAD = 64 << 20
"""Number of bytes of fetched sitemaps that wait to be parsed, beyond which no further sitemap is fetched."""


class Sitemaps:
    """The sitemaps of a run.

    Parameters
    ----------
    hosts : set of str or None
        Hosts whose sitemaps are read; None is all.
    guess : bool
        Also ask a host for ``/sitemap.xml`` if its robots.txt names no sitemap.
    causes : Causes
        Counts the sitemaps that cannot be read.
    scored : bool
        Whether the crawl scores links. If it does, priorities in sitemaps count as 0. Otherwise their pages would come
        before the most promising links.

    Attributes
    ----------
    give : callable
        Takes in entries; set by the scheduler.
    """

    def __init__(self, hosts: Set[str] | None, guess: bool, causes: Causes, *, scored: bool = False) -> None:
        self._hosts, self._guess, self._causes, self._scored = hosts, guess, causes, scored
        self._begun: set[str] = set()
        self._running: set[asyncio.Task[None]] = set()
        self._parsing, self._room, self._unread = asyncio.Lock(), asyncio.Event(), 0
        self._room.set()
        self.give: Callable[[list[Entry]], None] = lambda entries: None

    @property
    def busy(self) -> bool:
        """True while sitemaps are being fetched."""
        return bool(self._running)

    def found(self, crawler: Crawler, robotparser: Any, request: Request) -> None:
        """Begin to fetch the sitemaps of a host after its robots.txt was parsed."""
        parts = urlsplit(request.url)
        if parts.netloc in self._begun or not (self._hosts is None or parts.hostname in self._hosts):
            return
        self._begun.add(parts.netloc)
        origin = f"{parts.scheme}://{parts.netloc}/"
        try:
            named = [str(url) for url in robotparser.rp.sitemaps]
        except (AttributeError, TypeError):
            # This parser knows no sitemaps.
            named = []
        urls = dict.fromkeys(form for url in named[:MOST_FILES] if (form := canonical(url, origin)))
        if not urls and not self._guess:
            return
        work = self._read(crawler, origin, list(urls) or [f"{origin}sitemap.xml"], bool(urls))
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def stop(self) -> None:
        """Stop fetching sitemaps."""
        for task in self._running:
            task.cancel()

    async def _read(self, crawler: Crawler, origin: str, urls: list[str], named: bool) -> None:
        waiting = [(url, 0) for url in reversed(urls)]
        seen, files, count = set(urls), 0, 0
        while waiting and files < MOST_FILES:
            url, depth = waiting.pop()
            files += 1
            await self._room.wait()
            body = await self._fetch(crawler, url, named or depth > 0)
            if body is None:
                continue
            sitemap = await self._parsed(body, url, origin)
            if sitemap.problem is not None and (named or depth or sitemap.entries):
                self._causes.add(f"sitemap not read completely, {sitemap.problem}", url, url)
            if not sitemap.is_index:
                count += len(sitemap.entries)
                self.give(sitemap.entries)
            elif depth < DEEPEST:
                new = [entry.url for entry in sitemap.entries if entry.url not in seen]
                new = list(dict.fromkeys(new))[: MOST_FILES - files]
                seen.update(new)
                waiting += [(url, depth + 1) for url in reversed(new)]
        if count:
            log.info("%s: %s in %s", origin, counted(count, "URL"), counted(files, "sitemap"))

    async def _parsed(self, body: bytes, url: str, origin: str) -> SitemapFile:
        """Parse a sitemap in a worker thread, and keep the entries that are on the host's own registered domain."""
        self._unread += len(body)
        if self._unread > MOST_UNREAD:
            self._room.clear()
        try:
            async with self._parsing:
                return await asyncio.to_thread(self._parse, body, url, origin)
        finally:
            self._unread -= len(body)
            if self._unread <= MOST_UNREAD:
                self._room.set()

    def _parse(self, body: bytes, url: str, origin: str) -> SitemapFile:
        sitemap = read_sitemap(body)
        entries = [
            entry._replace(url=form, priority=0.0 if self._scored else entry.priority)
            for entry in sitemap.entries
            if (form := canonical(entry.url, url)) is not None and same_domain(form, origin)
        ]
        return sitemap._replace(entries=entries)

    async def _fetch(self, crawler: Crawler, url: str, named: bool) -> bytes | None:
        """The body of a sitemap; None if it cannot be fetched. The failure is counted only if the sitemap was named."""
        engine: Any = crawler.engine
        try:
            response = await engine.download_async(Request(url, callback=NO_CALLBACK, dont_filter=True))
        except Exception as error:
            log.debug("%s: %s", url, error)
            response = None
        if response is not None and response.status == 200:
            return bytes(response.body)
        if named:
            self._causes.add("sitemap not fetched", url, url)
        return None
