"""robots.txt as it should be waited for.

Scrapy's own middleware (2.14 to 2.19) lets the first requests to a host through while that host's robots.txt is
fetched: those that wait share one Deferred, whose result is gone once the first has taken it. Here each waits for
itself.

What a robots.txt that cannot be had means follows RFC 9309, section 2.3.1: where there is none (4xx), all is allowed;
where the host does not answer, or with 5xx or 429, nothing is, until it does. Of the pages that wait for it one
fails, so that the host is asked again later; the others wait on.
"""

import asyncio
from typing import Any

from scrapy import Request, signals
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.robotstxt import RobotParser
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler

from inlink.scrapy.addresses import AddressNotAllowed

__all__ = ["FORBIDDEN", "Robots", "RobotsUnreachable"]

FORBIDDEN = "Forbidden by robots.txt"
LONGEST = 500 * 1024
"""Bytes of a robots.txt that are read: what RFC 9309 asks for at least."""


class RobotsUnreachable(IgnoreRequest):
    """A host's robots.txt could not be had; not now, at least.

    ``asked`` is whether it was this request for which it was asked for; others have waited for the same answer.
    """

    def __init__(self, why: str, retry_after: str | None = None, asked: bool = True) -> None:
        super().__init__(why)
        self.retry_after, self.asked = retry_after, asked


class Robots(RobotsTxtMiddleware):
    """Scrapy's middleware, waiting as it should. The scheduler puts it in the place of Scrapy's own."""

    async def robot_parser(self, request: Request) -> RobotParser | None:
        """The rules of a request's host, fetched once.

        Raises
        ------
        RobotsUnreachable
            If they could not be had.
        """
        netloc = urlparse_cached(request).netloc
        parsers: dict[str, Any] = self._parsers
        found = parsers.get(netloc)
        asked = found is None
        if asked:
            found = parsers[netloc] = asyncio.ensure_future(self._fetch(request))
        if not isinstance(found, asyncio.Future):
            return found
        try:
            parser: RobotParser = await asyncio.shield(found)
        except Exception as error:
            if parsers.get(netloc) is found:
                del parsers[netloc]  # the next request asks again
            if isinstance(error, RobotsUnreachable):
                raise RobotsUnreachable(str(error), error.retry_after, asked) from None
            raise
        parsers[netloc] = parser
        return parser

    async def _fetch(self, request: Request) -> RobotParser:
        url = urlparse_cached(request)
        wanted = Request(
            f"{url.scheme}://{url.netloc}/robots.txt",
            priority=self.DOWNLOAD_PRIORITY,
            meta={"dont_obey_robotstxt": True},
            callback=NO_CALLBACK,
        )
        self._stats.inc_value("robotstxt/request_count")
        try:
            response: Response = await self.crawler.engine.download_async(wanted)
        except AddressNotAllowed:
            raise
        except Exception as error:
            self._stats.inc_value(f"robotstxt/exception_count/{type(error)}")
            raise RobotsUnreachable(f"robots.txt: {type(error).__name__}: {error}") from None
        self._stats.inc_value("robotstxt/response_count")
        self._stats.inc_value(f"robotstxt/response_status_count/{response.status}")
        if response.status >= 500 or response.status == 429:
            wait = response.headers.get(b"Retry-After")
            raise RobotsUnreachable(
                f"robots.txt: {response.status}", wait.decode("latin-1") if wait else None
            )
        body = response.body[:LONGEST] if response.status < 400 else b""
        parser: RobotParser = build_from_crawler(self._parserimpl, self.crawler, body)
        await self.crawler.signals.send_catch_log_async(
            signal=signals.robots_parsed, robotparser=parser, request=request
        )
        return parser
