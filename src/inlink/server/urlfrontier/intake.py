"""Collect items for a crawl: many messages become one call, and discovered URLs become links of their source.

**Sources.** The protocol has no field for the page that links to a discovered URL. StormCrawler sends it in the
metadata: it is the last entry of ``url.path``. The links of this page wait here until its answer comes. StormCrawler
sends discovered URLs in batches, up to a second after their page's own message. So once a client sends paths, an answer
for a page is taken in and acknowledged only :data:`HOLD_SECONDS` after it came. Links that come later are added by a
second visit of the page.
"""

import asyncio
import logging
import time
from collections import deque
from typing import Any

from inlink.base.table import counted
from inlink.errors import InlinkError, StoreError
from inlink.server.keeper import BusyError, Keeper
from inlink.server.urlfrontier.taken import Put, add_late, take_in
from inlink.server.urlfrontier.wire import FAIL
from inlink.urls.canonical import MAX_LENGTH

log = logging.getLogger("inlink.server")

HOLD_SECONDS = 1.5
"""Seconds for which an answer waits for the links of its page."""

GATHER_SECONDS = 0.004
"""Seconds for which the first item waits for further items, because one event for many items costs little more."""

AT_ONCE = 2000
"""Maximum number of URLs in one call of the crawl."""

MOST_WAITING = 20_000
"""Maximum number of URLs that wait to be taken in. Beyond it, no further messages of clients are read."""

MOST_HELD = 20_000
"""Maximum number of answers that wait for links. Beyond it, the oldest answer is taken in."""

MOST_LINKS, MOST_TRAILED = 10_000, 1_000_000
"""Maximum numbers of waiting links of a page, and of all pages. Beyond, the links of the oldest page are dropped."""

LONGEST_URL = 2 * MAX_LENGTH
"""Maximum number of characters of a URL that waits here, which need not be in canonical form."""

TRAIL_SECONDS = 3600.0
"""Seconds for which links wait for their page's answer."""

RETRY_SECONDS, RETRIES = 0.05, 600
"""Maximum number of times that a call is tried again while the crawl is busy."""


class Intake:
    """The items of one crawl. Its methods belong to the event loop.

    Attributes
    ----------
    trailed : int
        Number of links that wait for their page's answer.
    """

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self._waiting: deque[Put] = deque()
        self._size = 0
        self._room = asyncio.Event()
        self._room.set()
        self._working: asyncio.Task[None] | None = None
        self._tending: asyncio.Task[None] | None = None
        self._held: dict[str, tuple[float, Put]] = {}
        self._trails: dict[str, dict[str, None]] = {}
        self._unasked: dict[str, float] = {}
        self._asked: dict[str, float] = {}
        self.trailed = 0
        self._with_paths = False

    async def room(self) -> None:
        """Wait until there is room for further items."""
        await self._room.wait()

    def put(self, put: Put) -> bool:
        """Take in a message, now or when the links of its page have come; return whether it waits for links."""
        known = put.known
        if known is None or known.error is not None or not self._with_paths:
            self._go(put)
            return False
        self.release([known.url])
        self._held[known.url] = time.monotonic() + HOLD_SECONDS, put
        if len(self._held) > MOST_HELD:
            self.release([next(iter(self._held))])
        self._tend()
        return True

    def link(self, source: str, url: str) -> None:
        """Note that a page links to a URL. URLs that are too long to be valid are left out."""
        self._with_paths = True
        if len(source) > LONGEST_URL or len(url) > LONGEST_URL:
            return
        trail = self._trails.get(source)
        if trail is None:
            trail = self._trails[source] = {}
            self._unasked[source] = time.monotonic()
            self._tend()
        if len(trail) < MOST_LINKS and url not in trail:
            trail[url] = None
            self.trailed += 1
            while self.trailed > MOST_TRAILED:
                oldest = next(iter(self._trails))
                log.warning(
                    "%s: the links of %.200s are dropped, because no answer for this page came",
                    self.keeper.name,
                    oldest,
                )
                self._links(oldest)

    def release(self, urls: list[str]) -> None:
        """Take in answers that wait for links."""
        for url in urls:
            held = self._held.pop(url, None)
            if held is not None:
                self._go(held[1])

    async def close(self) -> None:
        """Take in all waiting items."""
        self.release(list(self._held))
        if self._tending is not None:
            self._tending.cancel()
            await asyncio.gather(self._tending, return_exceptions=True)
        if self._working is not None:
            await self._working

    # -- inside -------------------------------------------------------------------------------------------------------

    def _links(self, url: str) -> list[str]:
        """Remove and return the waiting links of a page."""
        trail = self._trails.pop(url, {})
        self._unasked.pop(url, None)
        self._asked.pop(url, None)
        self.trailed -= len(trail)
        return list(trail)

    def _go(self, put: Put) -> None:
        if put.known is not None:
            links = self._links(put.known.url)
            put.known.links = links if put.known.error is None else []
        self._waiting.append(put)
        self._size += len(put.found) or 1
        if self._size > MOST_WAITING:
            self._room.clear()
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work())

    async def _work(self) -> None:
        while self._waiting:
            if self._size < AT_ONCE:
                # Items that come at the same moment are taken in together.
                await asyncio.sleep(GATHER_SECONDS)
            puts: list[Put] = []
            size = 0
            while self._waiting and size < AT_ONCE:
                puts.append(self._waiting.popleft())
                size += len(puts[-1].found) or 1
            told = await self._call(puts)
            self._size -= size
            if self._size <= MOST_WAITING:
                self._room.set()
            for put, statuses in zip(puts, told, strict=True):
                # A client that went away no longer waits.
                if not put.statuses.done():
                    put.statuses.set_result(statuses)

    async def _call(self, puts: list[Put]) -> list[list[int]]:
        fault: Any = None
        for _ in range(RETRIES):
            try:
                # The keeper runs a generator step by step, and returns its result.
                result: Any = await self.keeper.change(lambda crawl: take_in(crawl, puts))
                return result  # type: ignore[no-any-return]
            except BusyError as error:
                fault = error
                if self.keeper.ending:
                    break
                await asyncio.sleep(RETRY_SECONDS)
            except Exception as error:
                fault = error
                if not isinstance(error, InlinkError):
                    log.exception("%s: URLFrontier's items", self.keeper.name)
                break
        log.warning("%s: URLFrontier: %s failed: %s", self.keeper.name, counted(len(puts), "item"), fault)
        return [[FAIL] * (len(put.found) or 1) for put in puts]

    def _tend(self) -> None:
        if self._tending is None or self._tending.done():
            self._tending = asyncio.create_task(self._tend_all())

    async def _tend_all(self) -> None:
        """Take in the answers whose waiting time is over, and check the links whose page has no answer."""
        while self._held or self._trails:
            await asyncio.sleep(HOLD_SECONDS / 5)
            if self.keeper.closed:
                # A client has deleted the crawl.
                self.release(list(self._held))
                return
            now = time.monotonic()
            self.release([url for url, (until, _) in self._held.items() if until <= now])
            for url, since in list(self._asked.items()):
                if since > now - TRAIL_SECONDS:
                    break
                self._links(url)
            due: list[str] = []
            for url, since in self._unasked.items():
                if since > now - HOLD_SECONDS or len(due) == AT_ONCE:
                    break
                if url not in self._held:
                    due.append(url)
            if due:
                await self._ask(due)

    async def _ask(self, urls: list[str]) -> None:
        """Add links to pages that have an answer already. The links of other pages go on waiting."""
        trails = {url: list(self._trails[url]) for url in urls}
        try:
            told: Any = await self.keeper.change(lambda crawl: add_late(crawl, trails))
        except (BusyError, StoreError):
            # The page is tried again.
            return
        except Exception as error:
            log.warning(
                "%s: dropped the links of %s: %s", self.keeper.name, counted(len(urls), "page"), error
            )
            told = []
        waiting, asked_at = set(told), time.monotonic()
        for url in urls:
            if url in waiting and url in self._unasked:
                self._asked[url] = asked_at
                del self._unasked[url]
            elif url not in waiting and len(self._trails.get(url, ())) == len(trails[url]):
                self._links(url)
