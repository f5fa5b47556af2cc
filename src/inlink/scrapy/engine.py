"""All uses of Scrapy's internals.

Scrapy does not tell a scheduler when a request has been processed completely, or on which page a request was found. It
does not report failures without a handler. Its downloader sends every request that it has taken, even if the host asks
for a pause in the meantime.

The internals used here are tested with Scrapy 2.19; most of them exist since 2.14. :func:`check` refuses a later Scrapy
that lacks them.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Container
from typing import Any

from scrapy import Request, Spider, __version__, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import aiter_errback
from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.error import DNSLookupError
from twisted.python.failure import Failure

from inlink.errors import ParameterError
from inlink.scrapy.addresses import AddressGuard, AddressNotAllowed, Resolver
from inlink.scrapy.robots import Robots

# Number of requests of a callback that are taken before other work of the process has its turn.
OUTPUTS_AT_ONCE = 200
# Longest pause of a slot, in seconds.
LONGEST_PAUSE = 5.0


def check(crawler: Crawler) -> None:
    """Refuse a version of Scrapy that lacks the internals used here.

    Raises
    ------
    inlink.errors.ParameterError
        If an attribute is missing.
    """
    engine: Any = crawler.engine
    try:
        _ = engine._slot.scheduler, engine._slot.close_if_idle
        _ = engine._slot.inprogress, engine._slot.nextcall.schedule
        scraper = engine.scraper
        _ = scraper.handle_spider_output_async, scraper._process_spidermw_output_async
        _ = scraper.handle_spider_error, scraper.concurrent_items
        downloader = engine.downloader
        _ = downloader.middleware._add_middleware, downloader.middleware.methods["process_response"]
        _ = downloader.slots, downloader.per_slot_settings, downloader._delay, downloader.get_slot_key
        _ = (
            engine._spider_closed_callback,
            downloader._latercall,
            downloader._process_queue,
            downloader._wait_for_download,
        )
    except (AttributeError, KeyError) as error:
        raise ParameterError(
            f"Scrapy {__version__} does not have the internals that inlink uses ({error}): use Scrapy 2.19"
        ) from None


def is_crawl(crawler: Crawler) -> bool:
    """Return whether a spider crawls, and does not fetch single pages for ``scrapy shell``, fetch, parse or check."""
    engine: Any = crawler.engine
    spider: Any = crawler.spider
    # The shell ends its spider itself. The other commands have replaced the spider's start.
    start_of = str(getattr(spider.start, "__module__", ""))
    return bool(engine._slot.close_if_idle) and not start_of.startswith("scrapy.commands.")


def replace_scheduler(crawler: Crawler, scheduler: BaseScheduler) -> None:
    """Let the engine use another scheduler for the spider that is being opened."""
    engine: Any = crawler.engine
    engine._slot.scheduler = scheduler


def dealt_with(crawler: Crawler, requests: list[Request]) -> list[Request]:
    """The requests among ``requests`` that Scrapy has finished: downloaded and parsed, with all items processed."""
    engine: Any = crawler.engine
    slot = engine._slot
    if slot is None:
        return requests
    return [request for request in requests if request not in slot.inprogress]


def wake(crawler: Crawler) -> None:
    """Let the engine ask for requests again, if it still runs."""
    engine: Any = crawler.engine
    if engine is not None and engine._slot is not None and engine._slot.closing is None:
        engine._slot.nextcall.schedule()


def take_output(crawler: Crawler, take: Callable[[Any, Any], bool]) -> None:
    """Hand the output of callbacks to ``take``, after all spider middlewares. What it leaves are items for pipelines.

    Scrapy starts a hundred tasks for each response (``CONCURRENT_ITEMS``), which take all requests and items from a
    queue. That costs a seventh of the CPU time of a page. Here only items get tasks.
    """
    engine: Any = crawler.engine
    scraper = engine.scraper

    async def handle(result: Any, request: Request, response: Any) -> None:
        room, items = asyncio.Semaphore(scraper.concurrent_items), set[asyncio.Task[None]]()

        def over(item: asyncio.Task[None]) -> None:
            items.discard(item)
            room.release()

        outputs = result if isinstance(result, AsyncIterator) else as_async_generator(result)
        taken = 0
        async for output in aiter_errback(outputs, scraper.handle_spider_error, request, response):
            if take(output, response):
                taken += 1
                if taken % OUTPUTS_AT_ONCE == 0:
                    await asyncio.sleep(0)
                continue
            await room.acquire()
            item = asyncio.create_task(scraper._process_spidermw_output_async(output, response))
            items.add(item)
            item.add_done_callback(over)
        if items:
            await asyncio.wait(items)

    scraper.handle_spider_output_async = handle


def add_downloader_middleware(crawler: Crawler, middleware: Any) -> None:
    """Add the innermost downloader middleware, next to the network.

    Its ``received`` gets each response after all other middlewares.
    """
    engine: Any = crawler.engine
    manager = engine.downloader.middleware
    manager._add_middleware(middleware)
    manager.methods["process_response"].append(middleware.received)


def mend_concurrency(crawler: Crawler) -> None:
    """Make the downloader keep its limits for each host. Without this, it counts a request only once its task began."""
    engine: Any = crawler.engine
    downloader = engine.downloader
    begin = downloader._wait_for_download

    def counted(slot: Any, request: Request, deferred: Any) -> Any:
        slot.transferring.add(request)
        return begin(slot, request, deferred)

    downloader._wait_for_download = counted


def mend_delay(
    crawler: Crawler, longest: float, ours: Callable[[Request], bool], why: Callable[[], Exception]
) -> None:
    """Keep the downloader from holding a request of ours for longer than ``longest`` seconds because of a delay.

    Such a request fails with ``why`` instead. The crawl hands it out again later.
    """
    engine: Any = crawler.engine
    downloader = engine.downloader
    process = downloader._process_queue

    def bounded(slot: Any) -> None:
        process(slot)
        if slot.queue and slot.lastseen + slot.delay * (1 - slot.jitter) - time.monotonic() > longest:
            for deferred in _taken_back(slot, ours):
                deferred.errback(Failure(why()))  # type: ignore[no-untyped-call]

    downloader._process_queue = bounded


def mend_robots(crawler: Crawler) -> None:
    """Replace Scrapy's own robots.txt middleware by :class:`~inlink.scrapy.robots.Robots`, if the project uses it."""
    engine: Any = crawler.engine
    for middleware in engine.downloader.middleware.middlewares:
        if type(middleware) is RobotsTxtMiddleware:
            middleware.__class__ = Robots
            robots: Any = middleware
            robots.begin()
            crawler.signals.connect(robots.received, signals.bytes_received)


def guard_addresses(crawler: Crawler, guard: AddressGuard) -> None:
    """Let the downloader connect only to addresses that a guard allows, and to the proxies of requests.

    Raises
    ------
    inlink.errors.ParameterError
        If http or https URLs are not downloaded by Scrapy's own handler for HTTP/1.1.
    """
    # Scrapy's module inspects the whole stack while it is imported. Scrapy has imported it by now, from a short stack;
    # from the stack of this module's own import it would take 0.1 s more.
    from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler

    engine: Any = crawler.engine
    for scheme in ("http", "https"):
        handler = engine.downloader.handlers._get_handler(scheme)
        # A subclass may download in its own way: scrapy-playwright's lets a browser connect.
        if getattr(type(handler), "download_request", None) is not HTTP11DownloadHandler.download_request:
            raise ParameterError(
                f"{scheme} URLs are downloaded by {type(handler).__name__}, whose addresses cannot be checked: "
                "use Scrapy's HTTP11DownloadHandler, or allow all addresses (INLINK_ALLOW_PRIVATE = True)"
            )
        _guard_pool(handler._pool, guard)
    engine.downloader.middleware._add_middleware(guard)


def _guard_pool(pool: Any, guard: AddressGuard) -> None:
    """Give each new connection of a pool a resolver that returns only allowed addresses."""
    from scrapy.core.downloader.handlers.http11 import _TunnelingTCP4ClientEndpoint

    connect = pool._newConnection

    def guarded(key: Any, endpoint: Any) -> Any:
        if key[0] == b"http-proxy" or type(endpoint) is _TunnelingTCP4ClientEndpoint:
            return connect(key, endpoint)
        # With TLS, an endpoint wraps the endpoint that connects.
        inner = getattr(endpoint, "_wrappedEndpoint", endpoint)
        if type(inner) is not HostnameEndpoint:
            raise AddressNotAllowed(f"the address of {endpoint!r} cannot be checked")
        resolver = Resolver(guard, inner._hostBytes.decode("ascii").lower(), inner._reactor.nameResolver)
        inner._getNameResolverAndMaybeWarn = lambda _: resolver  # type: ignore[method-assign,assignment,return-value]

        def told(failure: Failure) -> Failure:
            if resolver.refused is not None and failure.check(DNSLookupError):  # type: ignore[no-untyped-call]
                raise AddressNotAllowed(resolver.refused)
            return failure

        return connect(key, endpoint).addErrback(told)

    pool._newConnection = guarded


def fail(crawler: Crawler) -> None:
    """Make ``scrapy crawl`` end with exit code 1, as Scrapy does for a crawler that ends without a spider."""
    engine: Any = crawler.engine
    callback = engine._spider_closed_callback

    async def closed(spider: Spider) -> None:
        try:
            await callback(spider)
        finally:
            crawler.spider = None

    engine._spider_closed_callback = closed


def slot_of(crawler: Crawler, request: Request) -> str:
    """The key of the downloader's slot for a request; usually its host."""
    engine: Any = crawler.engine
    return str(engine.downloader.get_slot_key(request))


def keep_delay(crawler: Crawler, key: str, seconds: float, *, after_next: bool = False) -> None:
    """Keep at least ``seconds`` between two requests of a downloader's slot.

    With ``after_next`` the next request of the slot may still follow its former delay.
    """
    engine: Any = crawler.engine
    downloader = engine.downloader
    known = downloader.per_slot_settings.get(key, {})
    slot = downloader.slots.get(key)
    if slot is None or slot.delay * (1 - slot.jitter) < seconds:
        delay = max(float(known.get("delay", downloader._delay)), seconds)
        # These settings hold if the slot is removed and made again.
        downloader.per_slot_settings[key] = {**known, "delay": delay, "jitter": 0.0}
        if slot is not None:
            if after_next:
                slot.lastseen -= max(seconds - slot.delay, 0.0)
            slot.delay, slot.jitter = max(slot.delay, seconds), 0.0


def pause(crawler: Crawler, key: str) -> None:
    """Send no request of a slot until :func:`withdraw` is called, for a few seconds at most."""
    engine: Any = crawler.engine
    slot = engine.downloader.slots.get(key)
    if slot is not None:
        # This ends the timer, if there is one.
        slot.close()
        slot.latercall = call_later(LONGEST_PAUSE, engine.downloader._latercall, slot)


def withdraw(crawler: Crawler, key: str, requests: Container[Request], why: Exception) -> None:
    """Take back the given requests that wait in a slot to be sent. In Scrapy they fail with ``why``."""
    engine: Any = crawler.engine
    slot = engine.downloader.slots.get(key)
    if slot is None:
        return
    failing = _taken_back(slot, requests.__contains__)
    slot.close()
    engine.downloader._process_queue(slot)
    for deferred in failing:
        deferred.errback(Failure(why))  # type: ignore[no-untyped-call]


def _taken_back(slot: Any, ours: Callable[[Request], bool]) -> list[Any]:
    """Take our requests out of a slot's queue, and return their Deferreds."""
    waiting = list(slot.queue)
    slot.queue.clear()
    slot.queue.extend(row for row in waiting if not ours(row[0]))
    return [deferred for request, deferred in waiting if ours(request)]
