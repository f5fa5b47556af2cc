"""Where inlink reaches into Scrapy beyond what it documents: all such places, and no other.

Scrapy announces neither that a request has been dealt with to the end, nor which page a request was found on to a
scheduler, nor failures that nobody handles. What is used here has been there since Scrapy 2.14 and is tested with 2.19;
:func:`check` says so in one line where a later Scrapy has it no more.
"""

from collections.abc import Callable
from typing import Any

from scrapy import Request, __version__
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware

from inlink.errors import ParameterError
from inlink.scrapy.robots import Robots

__all__ = ["add_downloader_middleware", "add_spider_middleware", "check", "dealt_with", "mend_robots", "wake"]


def check(crawler: Crawler) -> None:
    """Refuse a Scrapy that is built otherwise.

    Raises
    ------
    inlink.errors.ParameterError
        If something that is needed is not there.
    """
    engine: Any = crawler.engine
    try:
        _ = engine._slot.inprogress, engine._slot.nextcall.schedule
        _ = engine.scraper.spidermw.methods["process_spider_output"].append
        _ = engine.downloader.middleware._add_middleware
    except (AttributeError, KeyError) as error:
        raise ParameterError(
            f"Scrapy {__version__} is built otherwise than inlink knows it ({error}): use Scrapy 2.19"
        ) from None


def dealt_with(crawler: Crawler, requests: list[Request]) -> list[Request]:
    """Those requests that Scrapy has nothing left to do with: downloaded, parsed, their items through the pipelines."""
    engine: Any = crawler.engine
    slot = engine._slot
    if slot is None:
        return requests
    return [request for request in requests if request not in slot.inprogress]


def wake(crawler: Crawler) -> None:
    """Let the engine ask for requests again, if it is still there."""
    engine: Any = crawler.engine
    if engine is not None and engine._slot is not None and engine._slot.closing is None:
        engine._slot.nextcall.schedule()


def add_spider_middleware(crawler: Crawler, process_spider_output: Callable[..., Any]) -> None:
    """See what callbacks give after all other spider middlewares have."""
    engine: Any = crawler.engine
    manager = engine.scraper.spidermw
    manager.methods["process_spider_output"].append(process_spider_output)
    manager.methods["process_spider_exception"].append(None)  # both count the same middlewares


def add_downloader_middleware(crawler: Crawler, middleware: object) -> None:
    """See what comes from the network before all other downloader middlewares do."""
    engine: Any = crawler.engine
    engine.downloader.middleware._add_middleware(middleware)


def mend_robots(crawler: Crawler) -> None:
    """Let Scrapy's own robots.txt middleware wait as it should, where the project has it."""
    engine: Any = crawler.engine
    for middleware in engine.downloader.middleware.middlewares:
        if type(middleware) is RobotsTxtMiddleware:
            middleware.__class__ = Robots
