"""Scrapy's way to Frontera's scheduler, in place of Frontera's two middlewares of the same names.

Frontera 0.7.2's refuse to work from Scrapy 2.16 on, since they are no async generators. And through them Frontera never
hears of pages that Scrapy keeps from the spider for their status, nor of those at which a callback failed.
"""

from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.asyncio import CallLaterResult, call_later

from inlink.frontera.backend import Backend

__all__ = ["SchedulerDownloaderMiddleware", "SchedulerSpiderMiddleware"]

SHORTEST_WAIT, HEARTBEAT = 0.01, 5.0  # seconds; Scrapy's engine asks every five by itself
OURS: Any = b"frontier_request"  # where Frontera puts its request into Scrapy's meta


class _Middleware:
    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "_Middleware":
        """What Scrapy calls."""
        return cls(crawler)

    @property
    def scheduler(self) -> Any:
        """Frontera's scheduler."""
        engine: Any = self.crawler.engine
        try:
            return engine.scheduler
        except AttributeError:  # before Scrapy 2.19
            return engine._slot.scheduler


class SchedulerSpiderMiddleware(_Middleware):
    """Takes the links out of what a spider yields, and tells Frontera of the page; at 999, nearest to the spider."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._read: set[int] = set()  # responses of which the spider's output is being read

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any], spider: Spider | None = None
    ) -> AsyncIterator[Any]:
        """Pass items on; when the spider is done, or has failed, the links that it found are the page's."""
        links: list[Request] = []
        self._read.add(id(response))
        try:
            async for one in result:
                if isinstance(one, Request):
                    links.append(one)
                else:
                    yield one
        except Exception:
            self._tell(response, links)
            raise
        finally:
            self._read.discard(id(response))
        self._tell(response, links)

    def process_spider_exception(
        self, response: Response, exception: Exception, spider: Spider | None = None
    ) -> None:
        """A page whose status kept it from the spider, or whose callback failed before it yielded anything."""
        if id(response) not in self._read:
            self._tell(response, [])

    def _tell(self, response: Response, links: list[Request]) -> None:
        if OURS in response.meta:
            for _ in self.scheduler.process_spider_output(response, links, self.crawler.spider):
                pass  # it yields items, and here are none


class SchedulerDownloaderMiddleware(_Middleware):
    """Tells Frontera of failed downloads; at 999, nearest to the downloader.

    It does two more things for inlink's backend. It tells it of every request that Scrapy has let go of: a middleware
    that raises while it looks at a response, as at a redirect too many, is heard of by nobody. And it wakes
    Scrapy's engine when pages become due, which by itself looks every five seconds.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._timer: CallLaterResult | None = None
        self._most = 64  # that may be under way before it is looked which of them are not
        self._under_way: dict[Request, Any] = {}  # and what Frontera calls each

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        """Follow a request until Scrapy lets go of it."""
        ours, backend = request.meta.get(OURS), self.scheduler.frontier.manager.backend
        if ours is not None and isinstance(backend, Backend):
            backend.wait = self._wait
            self._under_way[request] = ours
            if len(self._under_way) > self._most:
                self._let_go(backend)

    def _let_go(self, backend: Backend) -> None:
        engine: Any = self.crawler.engine
        for request in [one for one in self._under_way if one not in engine._slot.inprogress]:
            backend.forgotten.append(self._under_way.pop(request))
        self._most = 2 * len(self._under_way) + 64

    def _wait(self, seconds: float) -> None:
        backend = self.scheduler.frontier.manager.backend
        self._let_go(backend)
        if backend.forgotten:
            seconds = 0.0
        if self._timer is not None:
            self._timer.cancel()  # what is known now counts
        if seconds < HEARTBEAT:
            self._timer = call_later(max(seconds, SHORTEST_WAIT), self._wake)

    def _wake(self) -> None:
        engine: Any = self.crawler.engine
        if engine is not None and engine._slot is not None and engine._slot.closing is None:
            engine._slot.nextcall.schedule()

    def process_exception(self, request: Request, exception: Exception, spider: Spider | None = None) -> None:
        """Tell of it, unless the request is Scrapy's own, as for robots.txt."""
        ours = request.meta.get(OURS)
        if ours is not None:
            self.scheduler.process_exception(request, exception, self.crawler.spider)
            request.meta[OURS] = ours  # Frontera took it out; a retry is known by it
