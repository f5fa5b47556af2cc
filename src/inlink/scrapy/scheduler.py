"""The scheduler: Scrapy asks it what to fetch, and it asks the crawl.

Requests that a callback yields become links of its page, and are known to the crawl once that page has been dealt
with. Requests that begin a crawl become seeds. What comes out is what the crawl hands out, a little ahead of need.
The methods that Scrapy calls only move things; :mod:`inlink.scrapy.pump` speaks with the crawl.
"""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, Self
from weakref import WeakKeyDictionary

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.core.scheduler import Scheduler as OwnQueue
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from inlink.client import Client, HostDelay, Redirected, Released, Task, connect
from inlink.client import Failed as FailedAnswer
from inlink.errors import InlinkError, InputError, ParameterError
from inlink.frontier.intake import CarriedLink, Link
from inlink.scoring.choose import content_scorer, link_scorer
from inlink.scrapy import engine
from inlink.scrapy.pump import Pump, Told
from inlink.scrapy.requests import LEASE, NotPackable, pack, unpack
from inlink.scrapy.settings import crawl_settings, max_wait
from inlink.scrapy.signals import page_reported
from inlink.scrapy.visits import Visit, answer_for, usable_score
from inlink.store.inbox import seeds_in

__all__ = ["Links", "Scheduler"]

log = logging.getLogger("inlink.scrapy")

LONGEST_CRAWL_DELAY = 300.0  # seconds


class Links:
    """Links of a page, for a callback to yield where making a Request of each would cost too much.

    Parameters
    ----------
    links : iterable of str or (str, float)
        URLs, relative ones too, with scores or without. The pages come to the spider's ``parse``.
    """

    def __init__(self, links: Iterable[str | tuple[str, float]]) -> None:
        self.links: list[Link] = list(links)


class Scheduler(BaseScheduler):
    """Scrapy's scheduler on a crawl: ``SCHEDULER = "inlink.scrapy.Scheduler"``.

    Attributes
    ----------
    client : Client
        The crawl, while the spider is open.
    """

    client: Client

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        self.crawler = crawler
        self._retries = settings.getbool("RETRY_ENABLED")
        self._referer = settings.getbool("REFERER_ENABLED")
        self._ahead = max(settings.getint("CONCURRENT_REQUESTS"), 1)
        self._own = OwnQueue.from_crawler(crawler)  # for what cannot be kept: in memory
        self._ready: deque[Visit] = deque()
        self._out: dict[Request, Visit] = {}
        self._by_lease: dict[int, Visit] = {}
        self._found_on: WeakKeyDictionary[Request, Visit] = WeakKeyDictionary()
        self._pump: Pump | None = None
        self._closing = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Made by Scrapy."""
        return cls(crawler)

    # -- open and close -----------------------------------------------------------------------------------------------

    def open(self, spider: Spider) -> "Deferred[None]":
        """Open the crawl; where that cannot be, one line says why and the spider is closed."""
        return deferred_from_coro(self._open(spider))

    async def _open(self, spider: Spider) -> None:
        settings = self.crawler.settings
        try:
            if not is_asyncio_available():
                raise ParameterError("inlink needs Scrapy's asyncio reactor, which is its default")
            engine.check(self.crawler)
            where, arguments = crawl_settings(settings)
            self._max_wait = max_wait(settings, arguments)
            self._scorer = content_scorer(settings.get("INLINK_CONTENT_SCORER"))
            self._link_scorer = link_scorer(settings.get("INLINK_LINK_SCORER"))
            seeds = _seeds(settings.get("INLINK_SEEDS"))
            self.client, told = await connect(where, **arguments)
        except InlinkError as error:
            log.error("%s", error)
            self.crawler.signals.connect(self._refuse, signals.spider_opened)
            return
        log.info("%s", told)
        self._own.open(spider)
        listen = self.crawler.signals.connect
        listen(self._response_received, signals.response_received)
        listen(self._spider_error, signals.spider_error)
        listen(self._robots_parsed, signals.robots_parsed)
        engine.add_spider_middleware(self.crawler, self.process_spider_output)
        engine.add_downloader_middleware(self.crawler, self)
        engine.mend_robots(self.crawler)
        self._pump = Pump(
            self.client, self._ahead, lambda: len(self._ready), self._take, self._taken_in, self._failed
        )
        self._pump.seed(*seeds)

    def close(self, reason: str) -> "Deferred[None] | None":
        """Answer for all that was fetched, give back the rest, and let go of the crawl."""
        return deferred_from_coro(self._close(reason))

    async def _close(self, reason: str) -> None:
        self._closing = True
        if self._pump is None:
            return  # it was never opened
        self._sweep()
        for visit in [*self._ready, *self._out.values()]:
            if not visit.over:
                self._pump.tell(Told(Released(visit.task.lease), visit))
        self._ready.clear()
        self._out.clear()
        await self._pump.close()
        self._own.close(reason)
        await self.client.close()

    def _refuse(self) -> None:
        raise CloseSpider("inlink_refused")  # from here, and not from open(), Scrapy takes it without a stack trace

    def _failed(self) -> None:
        """The crawl cannot go on: end the spider."""
        self._closing = True
        crawler_engine: Any = self.crawler.engine
        self._ending = asyncio.ensure_future(crawler_engine.close_spider_async(reason="inlink_failed"))

    # -- what Scrapy asks ---------------------------------------------------------------------------------------------

    def has_pending_requests(self) -> bool:
        """Whether there is something to fetch, now or within ``INLINK_MAX_WAIT`` seconds."""
        self._sweep()
        if self._pump is None or self._closing:
            return False
        if self._ready or self._out or self._pump.busy or self._own.has_pending_requests():
            return True
        due_in = self._pump.due_in
        return due_in is not None and (self._max_wait is None or due_in <= self._max_wait)

    def next_request(self) -> Request | None:
        """The next request, if one is at hand."""
        self._sweep()
        own = self._own.next_request()
        if own is not None or self._pump is None:
            return own
        if len(self._ready) <= self._ahead // 2:
            self._pump.ask()
        if not self._ready:
            return None
        visit = self._ready.popleft()
        self._out[visit.request] = visit
        self._count("scheduler/dequeued")
        return visit.request

    def enqueue_request(self, request: Request) -> bool:
        """Take in a request: a link of the page that it was found on, a follower of one that is out, or a seed."""
        if self._pump is None or self._closing:
            return False
        parent = self._found_on.pop(request, None)
        before = self._of(request)
        if isinstance(request.errback, _Errback):
            request.errback = request.errback.own
        if parent is None and before is not None and before.response is None and before.failure is None:
            self._follow(self._pump, before, request)
            return True
        request.meta.pop(LEASE, None)  # the user has copied another request's meta
        try:
            link = self._link(request, parent)
        except NotPackable as error:
            self._count("inlink/not_kept")
            log.debug("%s is in Scrapy's own queue only: %s", request, error)
            return self._own.enqueue_request(request)
        self._count("scheduler/enqueued")
        if parent is not None:
            parent.links.append(link)
        else:
            self._pump.seed(link)
        return True

    def __len__(self) -> int:
        return len(self._ready) + len(self._own)

    # -- requests in and out ------------------------------------------------------------------------------------------

    def _link(self, request: Request, parent: Visit | None) -> Link:
        """A request as a link: its URL, what it carries, and what tells it from others to the same URL."""
        spider, url = self._spider(), request.url
        score = usable_score(request.meta.get("score"))
        if score is None and request.priority:
            score = float(request.priority)
        variant = ""
        start = parent is None and bool(request.meta.get("is_start_request"))
        if request.dont_filter and not start:
            variant = f"again:{secrets.token_hex(8)}"
        elif request.method != "GET" or request.body:
            fingerprinter: Any = self.crawler.request_fingerprinter
            variant = f"{request.method[:8]}:{fingerprinter.fingerprint(request).hex()[:40]}"
        found_on = parent.response.url.partition("#")[0] if parent and parent.response else None
        carried = pack(request, spider, url.partition("#")[0], found_on, start=start)
        if carried or variant:
            if score is None:
                score = 1.0 if parent is None else float("nan")
            return CarriedLink(url, score, carried, variant)
        return url if score is None else (url, score)

    def _take(self, tasks: list[Task]) -> None:
        for task in tasks:
            visit = self._visit(task)
            if visit is not None:
                self._ready.append(visit)
        engine.wake(self.crawler)

    def _visit(self, task: Task) -> Visit | None:
        """A task as a request; None, and an answer, if what it carries cannot be made one."""
        url, _, variant = task.url.partition("#")
        try:
            request = unpack(task.carried, url, self._spider())
        except NotPackable as error:
            assert self._pump is not None
            self._pump.tell(Told(FailedAnswer(task.lease, str(error), retry=False)))
            return None
        if self._referer and task.linked_from and task.linked_from[:5] <= url[:5]:  # not from https to http
            request.headers.setdefault(b"Referer", task.linked_from.partition("#")[0])
        request.meta.setdefault("depth", task.depth)
        if task.failures:
            request.meta.setdefault("retry_times", task.failures)
        alias = request.url if variant.startswith("again:") else None
        return self._hand_out(Visit(task, request, alias=alias))

    def _hand_out(self, visit: Visit) -> Visit:
        request = visit.request
        request.meta[LEASE] = visit.task.lease
        request.errback = _Errback(visit, request.errback)
        self._by_lease[visit.task.lease] = visit
        return visit

    def _follow(self, pump: Pump, before: Visit, request: Request) -> None:
        """A downloader middleware made another request of one that is out: a retry, a redirect, or one of its own."""
        meta, old, lease = request.meta, before.request.meta, before.task.lease
        before.over = True
        if meta.get("retry_times", 0) > old.get("retry_times", 0):
            answer = FailedAnswer(lease, before.trouble, before.status, True, before.retry_after)
            pump.tell(Told(answer, before))
        elif meta.get("redirect_times", 0) > old.get("redirect_times", 0):
            try:
                carried = pack(request, self._spider(), None)
            except NotPackable:
                carried = b""
            answer_to = Redirected(lease, request.url, carried, request.dont_filter)
            pump.tell(Told(answer_to, before, request))
        else:
            self._ready.appendleft(self._hand_out(Visit(before.task, request, alias=before.alias)))

    def _spider(self) -> Spider:
        spider = self.crawler.spider
        assert spider is not None
        return spider

    def _count(self, name: str) -> None:
        if self.crawler.stats is not None:
            self.crawler.stats.inc_value(name)

    # -- what Scrapy tells --------------------------------------------------------------------------------------------

    def _of(self, request: Request | None) -> Visit | None:
        token = None if request is None else request.meta.get(LEASE)
        return self._by_lease.get(token) if isinstance(token, int) else None

    def _response_received(self, response: Response, request: Request) -> None:
        visit = self._of(request)
        if visit is not None and visit.response is None:
            visit.response = response

    def _spider_error(self, failure: Failure, response: Any) -> None:
        visit = self._of(getattr(response, "request", None))
        if visit is not None and visit.error is None:
            visit.error = f"{type(failure.value).__name__}: {failure.value}"

    def _robots_parsed(self, robotparser: Any, request: Request) -> None:
        """A host's robots.txt was read: hand in its Crawl-delay, if the parser knows one."""
        settings, pump = self.crawler.settings, self._pump
        agent = (
            settings["ROBOTSTXT_USER_AGENT"] or request.headers.get(b"User-Agent") or settings["USER_AGENT"]
        )
        if isinstance(agent, bytes):
            agent = agent.decode("latin-1")
        parser = getattr(robotparser, "rp", None)  # Protego, or Python's own
        try:
            delay = usable_score(parser.crawl_delay(agent)) if parser is not None else None
        except Exception as error:  # whatever another parser may raise: a delay is only asked for
            log.debug("no Crawl-delay: %s", error)
            return
        if pump is not None and delay is not None and delay > 0:
            pump.tell(Told(HostDelay(request.url, min(delay, LONGEST_CRAWL_DELAY))))

    def process_response(self, request: Request, response: Response) -> Response:
        """Note what came from the network, as the innermost downloader middleware."""
        visit = self._of(request)
        if visit is not None:
            wait = response.headers.get(b"Retry-After")
            visit.status, visit.trouble = response.status, ""
            visit.retry_after = wait.decode("latin-1") if wait else None
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Note what went wrong in the network, as the innermost downloader middleware."""
        visit = self._of(request)
        if visit is not None:
            visit.status, visit.trouble = None, f"{type(exception).__name__}: {exception}"

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Note which page requests and links were found on, as the outermost spider middleware."""
        visit = self._of(response.request)
        async for one in result:
            if isinstance(one, Links):
                if visit is not None:
                    visit.links += one.links
                continue
            if visit is not None and isinstance(one, Request):
                self._found_on[one] = visit
            yield one

    # -- answers ------------------------------------------------------------------------------------------------------

    def _sweep(self) -> None:
        """Answer for requests that Scrapy has dealt with."""
        if not self._out or self._pump is None:
            return
        for request in engine.dealt_with(self.crawler, list(self._out)):
            visit = self._out.pop(request)
            if not visit.over:
                answer = answer_for(visit, self._scorer, self._link_scorer, self._retries)
                self._pump.tell(Told(answer, visit))

    def _taken_in(self, told: Told, result: Task | bool) -> None:
        """The crawl has taken an answer in; a redirect leads on."""
        answer, visit = told.answer, told.visit
        if visit is not None:
            if self._by_lease.get(visit.task.lease) is visit:
                del self._by_lease[visit.task.lease]
            outcome = type(answer).__name__.lower()
            self._count(f"inlink/{outcome}")
            self.crawler.signals.send_catch_log(
                page_reported,
                url=visit.request.url,
                outcome=outcome,
                status=getattr(answer, "status", None) or visit.status,
                score=getattr(answer, "score", 0.0),
                links=len(getattr(answer, "links", ())),
                error=getattr(answer, "error", None) or getattr(answer, "reason", None),
                counted=result is not False,
            )
        if isinstance(result, Task) and told.follower is not None and self._pump is not None:
            follower = self._hand_out(Visit(result, told.follower))
            if self._closing:
                self._pump.tell(Told(Released(result.lease), follower))
            else:
                self._ready.appendleft(follower)


class _Errback:
    """A request's errback, which notes the failure first."""

    def __init__(self, visit: Visit, own: Any) -> None:
        self.visit, self.own = visit, own

    def __call__(self, failure: Failure) -> Any:
        if self.visit.failure is None:
            self.visit.failure = failure.value
        return failure if self.own is None else self.own(failure)


def _seeds(path: str | None) -> list[Link]:
    """The URLs of a file, one a line, a tab and a score behind where one is given."""
    if path is None:
        return []
    try:
        text = Path(path).read_text("utf-8", "surrogateescape")
    except OSError as error:
        raise InputError(f"INLINK_SEEDS: {path}: {error.strerror}") from None
    return list(seeds_in(text, path))
