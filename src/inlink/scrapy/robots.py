"""robots.txt as it should be waited for.

Scrapy's own middleware (2.14 to 2.19) lets the first requests to a host through while that host's robots.txt is
fetched: those that wait share one Deferred, whose result is gone once the first has taken it. Here each waits for
itself.

What a robots.txt that cannot be had means follows RFC 9309, section 2.3.1: where there is none (4xx), all is allowed;
where the host does not answer, or with 5xx, nothing is, until it does. Such pages fail, and are tried again later.
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

__all__ = ["FORBIDDEN", "Robots", "RobotsUnreachable"]

FORBIDDEN = "Forbidden by robots.txt"
LONGEST = 500 * 1024
"""Bytes of a robots.txt that are read: what RFC 9309 asks for at least."""


class RobotsUnreachable(IgnoreRequest):
    """A host's robots.txt could not be had; not now, at least."""


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
        if found is None:
            found = parsers[netloc] = asyncio.ensure_future(self._fetch(request))
        if not isinstance(found, asyncio.Future):
            return found  # type: ignore[no-any-return]
        try:
            parser: RobotParser = await asyncio.shield(found)
        except Exception:
            if parsers.get(netloc) is found:
                del parsers[netloc]  # the next request asks again
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
        except Exception as error:
            self._stats.inc_value(f"robotstxt/exception_count/{type(error)}")
            raise RobotsUnreachable(f"robots.txt: {type(error).__name__}: {error}") from None
        self._stats.inc_value("robotstxt/response_count")
        self._stats.inc_value(f"robotstxt/response_status_count/{response.status}")
        if response.status >= 500:
            raise RobotsUnreachable(f"robots.txt: {response.status}")
        body = response.body[:LONGEST] if response.status < 400 else b""
        parser: RobotParser = build_from_crawler(self._parserimpl, self.crawler, body)
        await self.crawler.signals.send_catch_log_async(
            signal=signals.robots_parsed, robotparser=parser, request=request
        )
        return parser
