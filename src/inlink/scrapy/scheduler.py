"""The scheduler: Scrapy gets its requests from it, and it gets its tasks from the crawl.

Requests that a callback yields become links of its page. They are reported to the crawl when the page has been
processed completely. Start requests become seeds. The crawl hands out tasks a little in advance, and these become
requests. The methods that Scrapy calls only move requests; :mod:`inlink.scrapy.pump` calls the crawl.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

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

from inlink.client.channel import is_url
from inlink.client.spider import Client, connect
from inlink.crawl.intake import MOST_ITEMS
from inlink.crawl.permissions import Permissions, keep, refuse_losses
from inlink.crawl.settings import choose
from inlink.crawl.unread import warning
from inlink.errors import InlinkError, ParameterError
from inlink.frontier.settings import Settings
from inlink.protocol import (
    AnyLink,
    Crawled,
    Excluded,
    Failed,
    HostDelay,
    Receipt,
    Redirected,
    Released,
    Task,
)
from inlink.scoring.choose import content_scorer, link_scorer
from inlink.scrapy import engine
from inlink.scrapy.addresses import AddressGuard
from inlink.scrapy.progress import left
from inlink.scrapy.pump import Pump, Told
from inlink.scrapy.requests import Converter, NotPackable
from inlink.scrapy.robots import crawl_delay
from inlink.scrapy.settings import crawl_settings, spider_settings, unread_settings
from inlink.scrapy.signals import page_reported
from inlink.scrapy.visits import LEASE, Network, Visit, Withdrawn, answer_for, item_line
from inlink.store.inbox import seeds_of
from inlink.urls.addresses import NOT_ALLOWED

log = logging.getLogger("inlink.scrapy")

# Number of hosts that the message about left pages counts, and of messages about hosts that are held back.
HOSTS_NAMED = 1000
# If the crawl can store none of so many requests, the spider ends.
FIRST_REQUESTS = 100
REMEDY = (
    "Use methods of the spider as callback and errback, and in meta and cb_kwargs only values that docs/scrapy.md "
    'lists in "Data of requests".'
)
# Seconds after which a wait is long.
LONG_WAIT = 3600.0
BAD_ITEM = "an item cannot be kept"
# HTTP statuses that ask for a pause.
LATER = (429, 503)


class Links:
    """Links of a page. A callback yields them if a Request for each link would cost too much.

    Parameters
    ----------
    links : iterable of str or (str, float)
        URLs, absolute or relative, with or without scores. The pages come to the spider's ``parse``.
    """

    def __init__(self, links: Iterable[str | tuple[str, float]]) -> None:
        self.links: list[AnyLink] = list(links)


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
        self._ahead = max(settings.getint("CONCURRENT_REQUESTS"), 1)
        # In memory, for requests that the crawl cannot store.
        self._own = OwnQueue.from_crawler(crawler)
        self._ready: deque[Visit] = deque()
        self._out: dict[Request, Visit] = {}
        self._by_lease: dict[int, Visit] = {}
        # A request that a callback has yielded, and the visit of its page, while the request is taken in.
        self._found: tuple[Request | None, Visit | None] = (None, None)
        # The Crawl-delay in seconds, by slot of the downloader.
        self._delays: dict[str, float] = {}
        self._pump: Pump | None = None
        self._closing = self._broken = False
        # Requests that the crawl could store, and that it could not.
        self._kept = self._not_kept = 0
        # Whether the log has warned of an item that belongs to no page.
        self._stray_items = False
        # The hosts that the log has named as held back, with the kind of reason, and whether for a long time.
        self._held: set[tuple[str, str, bool]] = set()
        # True if the spider ends although pages are due later.
        self._left = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy."""
        return cls(crawler)

    # -- open and close -----------------------------------------------------------------------------------------------

    def open(self, spider: Spider) -> "Deferred[None]":
        """Open the crawl. If that fails, log the reason in one line and close the spider."""
        return deferred_from_coro(self._open(spider))

    async def _open(self, spider: Spider) -> None:
        settings = self.crawler.settings
        try:
            if not is_asyncio_available():
                raise ParameterError("inlink needs Scrapy's asyncio reactor, which is its default")
            engine.check(self.crawler)
            if not engine.is_crawl(self.crawler):
                log.info("this command fetches single pages: it uses Scrapy's own queue, and not the crawl")
                self._own.open(spider)
                engine.replace_scheduler(self.crawler, self._own)
                return
            where, arguments = crawl_settings(settings)
            chosen = None if is_url(where) else choose(Path(where), arguments)
            told_here = spider_settings(settings, Settings() if chosen is None else chosen.settings)
            self._scorer = content_scorer(told_here.content_scorer)
            self._link_scorer = link_scorer(told_here.link_scorer)
            permissions = Permissions(
                told_here.allow_private,
                self.typed_hosts(),
                tuple(told_here.allow_addresses),
                tuple(told_here.deny_addresses),
            )
            if permissions.rules:
                guard = AddressGuard(permissions.rules, permissions.hosts, self.host_seen)
                engine.guard_addresses(self.crawler, guard)
            seeds = seeds_of(told_here.seeds)
            if chosen is not None and not told_here.apply_rules:
                refuse_losses(Path(where), chosen, permissions, project=True)
            client, told = await connect(where, owner=told_here.owner, name=spider.name, **arguments)
            if chosen is not None:
                self.keep(Path(where), permissions)
        except (InlinkError, OSError) as error:
            log.error("%s", error)
            engine.fail(self.crawler)
            self.crawler.signals.connect(self._refuse, signals.spider_opened)
            return
        log.info("%s", told)
        self._max_retries = client.settings.max_retries
        self._converter = Converter(self.crawler, spider, self._max_retries)
        self._max_wait = spider_settings(settings, client.settings).max_wait
        if names := unread_settings(settings):
            log.warning("%s", warning(names))
        self.client = self.watched(client)
        self._own.open(spider)
        listen = self.crawler.signals.connect
        listen(self._response_downloaded, signals.response_downloaded)
        listen(self._spider_error, signals.spider_error)
        listen(self._robots_parsed, signals.robots_parsed)
        if told_here.items:
            listen(self._item_scraped, signals.item_scraped)
        engine.take_output(self.crawler, self._take_output)
        engine.add_downloader_middleware(self.crawler, Network(self._out))
        engine.mend_robots(self.crawler)
        engine.mend_concurrency(self.crawler)
        if self._max_wait is not None:
            engine.mend_delay(self.crawler, self._max_wait, self._comes_back, Withdrawn)
        self._pump = Pump(
            self.client, self._ahead, lambda: len(self._ready), self._take, self._taken_in, self._failed
        )
        self._pump.seed(*seeds)

    def watched(self, client: Client) -> Client:
        """Return the client that the scheduler uses. A subclass may wrap it."""
        return client

    def say_left(self, line: str) -> None:
        """Log which pages are left for a later run."""
        log.info("no page is due within %g s (INLINK_MAX_WAIT); %s", self._max_wait, line)

    def take_sitemap(self, entries: Iterable[tuple[str, float | None, float | None]]) -> None:
        """Hand the entries of a sitemap to the crawl: URL, lastmod, priority."""
        if self._pump is not None and not self._closing:
            self._pump.sitemap(list(entries))

    def typed_hosts(self) -> dict[str, str]:
        """Hosts that are permitted because the user typed their URLs, and their addresses; none in a project."""
        return {}

    def host_seen(self, host: str, address: str) -> None:
        """Note the address of a host whose URL the user typed; it is empty if the host needs no permission."""

    def keep(self, folder: Path, permissions: Permissions) -> None:
        """Write down the addresses that this run may connect to. Those of a project do not hold for other commands."""
        if permissions.rules:
            keep(folder, permissions, hold=False)

    def close(self, reason: str) -> "Deferred[None] | None":
        """Report all requests that were fetched, give back the other requests, and close the crawl."""
        return deferred_from_coro(self._close(reason))

    async def _close(self, reason: str) -> None:
        self._closing = True
        # The crawl could not be opened.
        if self._pump is None:
            return
        self._sweep()
        for visit in [*self._ready, *self._out.values()]:
            if not visit.over:
                self._pump.tell(Told(Released(visit.task.lease), visit))
        self._ready.clear()
        self._out.clear()
        await self._pump.close()
        self._own.close(reason)
        try:
            if self._left and reason == "finished" and not self._broken:
                self.say_left(left(await self.client.standing(HOSTS_NAMED)))
            await self.client.close()
        except InlinkError as error:
            # If the crawl is broken, the error was logged before.
            if not self._broken:
                log.error("%s", error)

    def _refuse(self) -> None:
        # If open() raised this, Scrapy would log a stack trace.
        raise CloseSpider("inlink_refused")

    def _failed(self) -> None:
        """The crawl cannot go on: end the spider."""
        self._closing = self._broken = True
        engine.fail(self.crawler)
        crawler_engine: Any = self.crawler.engine
        self._ending = asyncio.ensure_future(crawler_engine.close_spider_async(reason="inlink_failed"))

    # -- methods that Scrapy calls ------------------------------------------------------------------------------------

    def has_pending_requests(self) -> bool:
        """Return whether a page is due within ``INLINK_MAX_WAIT`` seconds, or other sessions may bring more pages."""
        self._sweep()
        if self._pump is None or self._closing:
            return False
        if self._ready or self._out or self._pump.busy or self._own.has_pending_requests():
            return True
        due_in = self._pump.due_in
        if self._pump.others_busy:
            return True
        if due_in is None or self._max_wait is None or due_in <= self._max_wait:
            return due_in is not None
        self._left = True
        return False

    def next_request(self) -> Request | None:
        """The next request, if one is ready."""
        self._sweep()
        if self._pump is None:
            return None
        own = self._own.next_request()
        if own is not None:
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
        """Take in a request. It is a link of the page on which it was found, a retry or redirect, or a seed."""
        if self._pump is None or self._closing:
            return False
        parent = self._found[1] if self._found[0] is request else None
        before = self._of(request)
        if isinstance(request.errback, _Errback):
            request.errback = request.errback.own
        if parent is None and before is not None and before.response is None and before.failure is None:
            self._follow(self._pump, before, request)
            return True
        # A callback may copy the meta of its response's request.
        copied = request.meta.pop(LEASE, None) is not None
        try:
            link = self._converter.link(request, parent, start=parent is None and not copied)
        except NotPackable as error:
            self._say_not_kept(request, error)
            return self._own.enqueue_request(request)
        self._kept += 1
        self._count("scheduler/enqueued")
        if parent is not None:
            parent.links.append(link)
        else:
            self._pump.seed(link)
        return True

    def _say_not_kept(self, request: Request, error: NotPackable) -> None:
        """Warn at the first request that the crawl cannot store, and end the spider if it can store none at all."""
        self._not_kept += 1
        self._count("inlink/not_kept")
        log.log(
            logging.WARNING if self._not_kept == 1 else logging.DEBUG,
            "%s is not kept: %s. It is fetched, but the crawl does not order it, and it is lost if the spider is "
            "killed. %s The stats count such requests as inlink/not_kept.",
            *(request, error, REMEDY),
        )
        if self._not_kept == FIRST_REQUESTS and not self._kept:
            log.error(
                "none of the first %d requests can be kept, so the crawl stays empty; the last one: %s. %s",
                *(FIRST_REQUESTS, error, REMEDY),
            )
            self._failed()

    def __len__(self) -> int:
        return len(self._ready) + len(self._own)

    # -- requests in and out ------------------------------------------------------------------------------------------

    def _take(self, tasks: list[Task]) -> None:
        for task in tasks:
            visit = self._visit(task)
            if visit is not None:
                self._ready.append(visit)
        engine.wake(self.crawler)

    def _visit(self, task: Task) -> Visit | None:
        """Make a request of a task. If its data cannot be decoded, exclude the page and return None."""
        assert self._pump is not None
        try:
            visit = self._converter.visit(task)
        except NotPackable as error:
            visit = Visit(task, Request(task.url.partition("#")[0]))
            self._pump.tell(Told(Excluded(task.lease, str(error)), visit))
            return None
        return self._hand_out(visit)

    def _hand_out(self, visit: Visit) -> Visit:
        request = visit.request
        request.meta[LEASE] = visit.task.lease
        request.errback = _Errback(visit, request.errback)
        self._by_lease[visit.task.lease] = visit
        return visit

    def _follow(self, pump: Pump, before: Visit, request: Request) -> None:
        """Take in a request that a downloader middleware made from another request: a retry, a redirect, or its own."""
        meta, old, task = request.meta, before.request.meta, before.task
        before.over = True
        retry = meta.get("retry_times", 0) > old.get("retry_times", 0)
        moved = meta.get("redirect_times", 0) > old.get("redirect_times", 0)
        if retry and task.failures < self._max_retries:
            answer = Failed(task.lease, before.trouble, before.status, True, before.retry_after)
            pump.tell(Told(answer, before))
        elif moved and not before.form:
            try:
                carried = self._converter.target(request)
            except NotPackable as error:
                carried = b""
                self._count("inlink/redirect_data_lost")
                log.warning("%s: the target of a redirect is fetched without its data: %s", request, error)
            again = request.dont_filter and task.linked_from is not None
            pump.tell(
                Told(Redirected(task.lease, request.url, carried, again, before.status or 0), before, request)
            )
        else:
            # The request is for the same page. The target of a form counts as the form's page.
            self._ready.appendleft(self._hand_out(Visit(task, request, alias=before.alias, form=before.form)))

    def _count(self, name: str, number: int = 1) -> None:
        if self.crawler.stats is not None:
            self.crawler.stats.inc_value(name, number)

    # -- signals of Scrapy --------------------------------------------------------------------------------------------

    def _of(self, request: Request | None) -> Visit | None:
        token = None if request is None else request.meta.get(LEASE)
        return self._by_lease.get(token) if isinstance(token, int) else None

    def _response_downloaded(self, response: Response, request: Request) -> None:
        """Pause the host of a response from the network if the response asks for that."""
        slot = engine.slot_of(self.crawler, request)
        asks = response.status == 429 or (response.status in LATER and b"Retry-After" in response.headers)
        if asks and request in self._out:
            # The pause lasts until the crawl has the answer, and holds the host back or not.
            engine.pause(self.crawler, slot)
        # AutoThrottle may have changed the delay.
        if slot in self._delays:
            engine.keep_delay(self.crawler, slot, self._delays[slot])

    def _comes_back(self, request: Request) -> bool:
        """Return whether the crawl applies the Crawl-delay of a request's host and will hand out the request again."""
        return request in self._out and engine.slot_of(self.crawler, request) in self._delays

    def _spider_error(self, failure: Failure, response: Any) -> None:
        visit = self._of(getattr(response, "request", None))
        if visit is not None and visit.error is None:
            visit.error = f"{type(failure.value).__name__}: {failure.value}"

    def _item_scraped(self, item: Any, response: Any) -> None:
        """Keep an item that the pipelines have passed for the answer of its page. If that fails, the page fails."""
        visit = self._of(response.request) if isinstance(response, Response) else None
        if visit is None or self._out.get(visit.request) is not visit:
            self._say_stray(1)
            return
        try:
            line = item_line(item)
            if len(visit.items) + len(line) > MOST_ITEMS:
                raise ValueError(f"the items of a page may take {MOST_ITEMS:,} bytes as JSON")
        except Exception as error:
            # Serializers of the project may raise anything.
            self._count("inlink/items_not_kept")
            problem = f"{BAD_ITEM}: {type(error).__name__}: {error}"
            named = (visit.error or "").startswith(BAD_ITEM)
            log.log(logging.DEBUG if named else logging.ERROR, "%s: %s", response, problem)
            visit.error = visit.error or problem
        else:
            visit.items += line

    def _say_stray(self, number: int) -> None:
        """Count items that belong to no fetched page, and warn of the first."""
        self._count("inlink/items_not_kept", number)
        log.log(
            logging.DEBUG if self._stray_items else logging.WARNING,
            "an item belongs to no fetched page, so it is not kept: the crawl keeps the items that the callback of a "
            "page yields, and none of start(), of signal handlers, and of errbacks after a failed download. The stats "
            "count such items as inlink/items_not_kept.",
        )
        self._stray_items = True

    def _robots_parsed(self, robotparser: Any, request: Request) -> None:
        """Apply the Crawl-delay of a robots.txt that was parsed, if it has a delay, and report it to the crawl."""
        settings, pump = self.crawler.settings, self._pump
        agent = (
            settings["ROBOTSTXT_USER_AGENT"] or request.headers.get(b"User-Agent") or settings["USER_AGENT"]
        )
        if isinstance(agent, bytes):
            agent = agent.decode("latin-1")
        delay = crawl_delay(robotparser, agent)
        if pump is not None and delay is not None:
            slot = engine.slot_of(self.crawler, request)
            # The delay applies between pages. The first page need not wait for it after robots.txt.
            engine.keep_delay(self.crawler, slot, delay, after_next=slot not in self._delays)
            self._delays[slot] = max(delay, self._delays.get(slot, 0.0))
            visit = self._out.get(request)
            pump.tell(Told(HostDelay(request.url if visit is None else visit.task.url, delay)))

    def _take_output(self, output: Any, response: Any) -> bool:
        """Take in a request or links of a page; return False for an item. After a failure, the page is not known."""
        visit = self._of(response.request) if isinstance(response, Response) else None
        if isinstance(output, Request):
            self._found = output, visit
            crawler_engine: Any = self.crawler.engine
            crawler_engine.crawl(output)
            self._found = None, None
        elif isinstance(output, Links):
            if visit is not None:
                visit.links += output.links
        else:
            return output is None
        return True

    # -- answers ------------------------------------------------------------------------------------------------------

    def _sweep(self) -> None:
        """Report the requests that Scrapy has finished."""
        if not self._out or self._pump is None:
            return
        for request in engine.dealt_with(self.crawler, list(self._out)):
            visit = self._out.pop(request)
            if isinstance(request.errback, _Errback) and request.errback.visit is visit:
                # Break the cycle of request, errback and visit. Else they stay in memory.
                request.errback = request.errback.own
            if not visit.over:
                answer = answer_for(visit, self._scorer, self._link_scorer, self._retries)
                if isinstance(answer, Crawled) and isinstance(answer.canonical_link, str):
                    answer.canonical_link = self._converter.canonical(visit.task, answer.canonical_link)
                if visit.items and not isinstance(answer, Crawled):
                    self._say_stray(visit.items.count(b"\n"))
                self._pump.tell(Told(answer, visit))
            visit.forget()

    def _taken_in(self, told: Told, receipt: Receipt) -> None:
        """Handle the receipt of an answer. After a redirect, the receipt may have the next task."""
        answer, visit = told.answer, told.visit
        if visit is not None:
            if self._by_lease.get(visit.task.lease) is visit:
                del self._by_lease[visit.task.lease]
            outcome = type(answer).__name__.lower()
            self._count(f"inlink/{outcome}")
            if isinstance(answer, Crawled) and answer.items and receipt.counted:
                self._count("inlink/items", answer.items.count(b"\n"))
            if isinstance(answer, Excluded) and answer.reason.startswith(NOT_ALLOWED):
                self._count("inlink/address_not_allowed")
            self.crawler.signals.send_catch_log(
                page_reported,
                url=visit.request.url,
                outcome=outcome,
                status=getattr(answer, "status", None) or visit.status,
                score=getattr(answer, "score", 0.0),
                links=len(getattr(answer, "links", ())),
                error=getattr(answer, "error", None) or getattr(answer, "reason", None),
                counted=receipt.counted,
            )
            slot = engine.slot_of(self.crawler, visit.request)
            if isinstance(answer, Failed) and receipt.host_wait > 0:
                self._say_held(slot, answer, receipt.host_wait)
                self._leave_alone(slot)
            elif visit.status in LATER:
                # The answer holds only its page back, so the pause ends.
                engine.withdraw(self.crawler, slot, (), Withdrawn())
        task = receipt.task
        if task is not None and told.follower is not None and self._pump is not None:
            follower = self._hand_out(Visit(task, told.follower))
            if self._closing:
                self._pump.tell(Told(Released(task.lease), follower))
            else:
                self._ready.appendleft(follower)
                engine.wake(self.crawler)

    def _say_held(self, slot: str, answer: Failed, wait: float) -> None:
        """Log that a host is held back, once for each reason."""
        self._count("inlink/host_held")
        kind = f"status {answer.status}" if answer.status else answer.error.partition(":")[0]
        # A host that is parked after many failures is named again.
        reason = slot, kind, wait >= LONG_WAIT
        if reason in self._held or len(self._held) == HOSTS_NAMED:
            return
        self._held.add(reason)
        why = kind if answer.status else f"{answer.error:.200}"
        if answer.retry_after is not None:
            why += f", Retry-After {answer.retry_after!r:.40}"
        elif answer.status == 503:
            why += " twice in a row"
        log.info("%s is held back for %s s: %s", slot, f"{wait:,.0f}", why)

    def _leave_alone(self, slot: str) -> None:
        """Give back the unsent requests to a host that is held back."""
        assert self._pump is not None
        ready, self._ready = self._ready, deque()
        for visit in ready:
            if engine.slot_of(self.crawler, visit.request) == slot:
                self._pump.tell(Told(Released(visit.task.lease), visit))
            else:
                self._ready.append(visit)
        engine.withdraw(self.crawler, slot, self._out, Withdrawn())


class _Errback:
    """A request's errback that records the failure first."""

    def __init__(self, visit: Visit, own: Any) -> None:
        self.visit, self.own = visit, own

    def __call__(self, failure: Failure) -> Any:
        if self.visit.failure is None:
            self.visit.failure = failure.value
        return failure if self.own is None or isinstance(failure.value, Withdrawn) else self.own(failure)
