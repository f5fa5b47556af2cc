"""Middlewares between Scrapy and Frontera's scheduler, in place of Frontera's two middlewares of the same names.

The middlewares of Frontera 0.7.2 do not work from Scrapy 2.16 on, because they are not async generators. They also do
not report pages that Scrapy keeps from the spider for their status, or pages whose callback failed.
"""

from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.asyncio import CallLaterResult, call_later

from inlink.frontera.backend import Backend

# Both are in seconds. Scrapy's engine asks every five seconds by itself.
SHORTEST_WAIT, HEARTBEAT = 0.01, 5.0
# Key under which Frontera puts its request into Scrapy's meta.
OURS: Any = b"frontier_request"


class _Middleware:
    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "_Middleware":
        """Make the middleware; Scrapy calls this."""
        return cls(crawler)

    @property
    def scheduler(self) -> Any:
        """Frontera's scheduler."""
        engine: Any = self.crawler.engine
        try:
            return engine.scheduler
        except AttributeError:
            # Before Scrapy 2.19, the scheduler is an attribute of the slot.
            return engine._slot.scheduler


class SchedulerSpiderMiddleware(_Middleware):
    """Takes the links out of the spider's output, and reports the page to Frontera.

    Its order must be 999, nearest to the spider.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        # Responses for which the spider's output is being read, by their id().
        self._read: set[int] = set()

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any], spider: Spider | None = None
    ) -> AsyncIterator[Any]:
        """Pass items on. Report the links found so far when the callback ends or fails."""
        links: list[Request] = []
        self._read.add(id(response))
        try:
            async for output in result:
                if isinstance(output, Request):
                    links.append(output)
                else:
                    yield output
        except Exception:
            self._tell(response, links)
            raise
        finally:
            self._read.discard(id(response))
        self._tell(response, links)

    def process_spider_exception(
        self, response: Response, exception: Exception, spider: Spider | None = None
    ) -> None:
        """Report a page that the spider did not get for its status, or whose callback failed before any output."""
        if id(response) not in self._read:
            self._tell(response, [])

    def _tell(self, response: Response, links: list[Request]) -> None:
        if OURS in response.meta:
            for _ in self.scheduler.process_spider_output(response, links, self.crawler.spider):
                # The generator yields items, and there are none here.
                pass


class SchedulerDownloaderMiddleware(_Middleware):
    """Reports failed downloads to Frontera. Its order must be 999, nearest to the downloader.

    It does two more things for inlink's backend:

    - It reports every request that Scrapy has dropped. If a middleware raises while it processes a response, as after
      too many redirects, nothing else reports the request.
    - It wakes Scrapy's engine when pages become due. By itself, the engine looks only every five seconds.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._timer: CallLaterResult | None = None
        # Number of followed requests above which the dropped ones are looked for.
        self._most = 64
        # Maps each request that is followed to Frontera's request.
        self._under_way: dict[Request, Any] = {}

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        """Follow a request until Scrapy drops it or is done with it."""
        ours, backend = request.meta.get(OURS), self.scheduler.frontier.manager.backend
        if ours is not None and isinstance(backend, Backend):
            backend.wait = self._wait
            self._under_way[request] = ours
            if len(self._under_way) > self._most:
                self._let_go(backend)

    def _let_go(self, backend: Backend) -> None:
        engine: Any = self.crawler.engine
        for request in [known for known in self._under_way if known not in engine._slot.inprogress]:
            backend.forgotten.append(self._under_way.pop(request))
        self._most = 2 * len(self._under_way) + 64

    def _wait(self, seconds: float) -> None:
        backend = self.scheduler.frontier.manager.backend
        self._let_go(backend)
        if backend.forgotten:
            seconds = 0.0
        if self._timer is not None:
            # The new time replaces the old one.
            self._timer.cancel()
        if seconds < HEARTBEAT:
            self._timer = call_later(max(seconds, SHORTEST_WAIT), self._wake)

    def _wake(self) -> None:
        engine: Any = self.crawler.engine
        if engine is not None and engine._slot is not None and engine._slot.closing is None:
            engine._slot.nextcall.schedule()

    def process_exception(self, request: Request, exception: Exception, spider: Spider | None = None) -> None:
        """Report a failed download, unless the request is Scrapy's own, such as for robots.txt."""
        ours = request.meta.get(OURS)
        if ours is not None:
            self.scheduler.process_exception(request, exception, self.crawler.spider)
            # Frontera removed this key, but a retry is recognised by it.
            request.meta[OURS] = ours
