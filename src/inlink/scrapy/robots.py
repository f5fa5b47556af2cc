"""Obey robots.txt by RFC 9309, and read its Crawl-delay. Each request waits until the rules of its host are known.

Scrapy's own middleware (2.14 to 2.19) lets the first requests to a host through while that host's robots.txt is
fetched: the requests that wait share one Deferred, whose result is gone once the first request has taken it. Here each
request waits for itself.

If a host has no robots.txt (4xx), all pages are allowed. If the host does not answer, or answers with 5xx or 429, no
page is allowed until it answers (section 2.3.1). Then one of the pages that wait for robots.txt fails, so that it is
requested again later. The other pages go on waiting.

The first 500 KiB of a robots.txt count (section 2.5), up to the end of the last complete line. The rest is not
downloaded.

A host may send so many rules that their parser takes 75 MB, and a site may have any number of hosts. So the rules that
are kept are limited over all hosts. If there are more, those of the hosts with the most rules are dropped, and fetched
again when they are needed.
"""

import asyncio
import logging
import math
from heapq import heappop, heappush
from typing import Any

from scrapy import Request, signals
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.robotstxt import RobotParser
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler

from inlink.scrapy.addresses import AddressNotAllowed

_log = logging.getLogger("inlink.scrapy")
FORBIDDEN = "Forbidden by robots.txt"
LONGEST = 500 * 1024
"""Maximum number of bytes of a robots.txt that are read. RFC 9309 asks for at least this number."""

LONGEST_DELAY = 300.0
"""Maximum Crawl-delay in seconds."""

MOST_WORK = 1_000_000
"""Maximum number of rules of a robots.txt that are read. A rule counts once for each of its agents."""

MOST_KEPT = 2_000_000
"""Maximum number of rules that are kept, over all hosts: at most about 0.6 GB."""

_RECEIVED = "inlink_robots"
"""Key in the meta of a request for robots.txt; its value is the number of bytes received so far."""


def readable(body: bytes) -> tuple[bytes, int]:
    """Return the part of a robots.txt that counts, and its number of rules, each counted once for each of its agents.

    The part has complete lines, at most :data:`LONGEST` bytes and :data:`MOST_WORK` rules.
    """
    if len(body) > LONGEST:
        body = body[: max(body.rfind(b"\n", 0, LONGEST), body.rfind(b"\r", 0, LONGEST)) + 1]
    # Lines are split as in the parser, which also ends a line at U+2028 and similar characters.
    lines = body.decode("utf-8", "ignore").splitlines()
    agents = work = 0
    rules_began = True
    for number, line in enumerate(lines):
        field = line.strip()[:20].lower()
        if field.startswith(("user-agent", "useragent", "user agent")):
            agents = 1 if rules_began else agents + 1
            rules_began = False
        elif field:
            work += agents
            # The parser also accepts misspelt names such as "dissalow".
            rules_began = rules_began or field.startswith(("allow", "di"))
        if work > MOST_WORK:
            return "\n".join(lines[:number]).encode(), MOST_WORK
    return body, work


def crawl_delay(parser: RobotParser, agent: str) -> float | None:
    """Return the Crawl-delay for an agent in seconds, at most :data:`LONGEST_DELAY`; None if there is no delay."""
    # Scrapy's adapters keep the parser of Protego, or Python's own, as `rp`.
    own: Any = getattr(parser, "rp", None)
    try:
        seconds = None if own is None else own.crawl_delay(agent)
        delay = 0.0 if seconds is None else float(seconds)
    except Exception as error:
        # Another parser may raise anything, and the delay is only a wish.
        _log.debug("no Crawl-delay: %s", error)
        return None
    return min(delay, LONGEST_DELAY) if 0 < delay < math.inf else None


class RobotsUnreachable(IgnoreRequest):
    """A host's robots.txt cannot be fetched now.

    ``asked`` is True for the request that caused the fetch. Other requests have waited for its result.
    """

    def __init__(self, why: str, retry_after: str | None = None, asked: bool = True) -> None:
        super().__init__(why)
        self.retry_after, self.asked = retry_after, asked


class Robots(RobotsTxtMiddleware):
    """Scrapy's middleware, with requests that wait correctly. The scheduler puts it in place of Scrapy's own."""

    def begin(self) -> None:
        """Set up the count of the rules that are kept. Scrapy has made this object as one of its own class."""
        self._rules = 0
        # A heap of the hosts whose rules are kept, each with minus their number.
        self._most_rules: list[tuple[int, str]] = []

    async def robot_parser(self, request: Request) -> RobotParser | None:
        """The rules of a request's host, fetched once as long as they are kept.

        Raises
        ------
        RobotsUnreachable
            If the rules cannot be fetched.
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
            parser: RobotParser
            rules: int
            parser, rules = await asyncio.shield(found)
        except Exception as error:
            if parsers.get(netloc) is found:
                # The next request fetches the rules again.
                del parsers[netloc]
            if isinstance(error, RobotsUnreachable):
                raise RobotsUnreachable(str(error), error.retry_after, asked) from None
            raise
        if parsers.get(netloc) is found:
            self._keep(netloc, parser, rules)
        return parser

    def _keep(self, netloc: str, parser: RobotParser, rules: int) -> None:
        """Keep the rules of a host. If too many are kept, drop those of the hosts that have the most."""
        self._parsers[netloc] = parser
        # The parser of a robots.txt without rules takes memory too.
        rules += 10
        self._rules += rules
        heappush(self._most_rules, (-rules, netloc))
        while self._rules > MOST_KEPT:
            fewer, dropped = heappop(self._most_rules)
            self._rules += fewer
            del self._parsers[dropped]

    def received(self, data: bytes, request: Request) -> None:
        """Stop a download of robots.txt when enough bytes have come. Scrapy calls this for all received data.

        Raises
        ------
        scrapy.exceptions.StopDownload
            To keep the data received so far.
        """
        count = request.meta.get(_RECEIVED)
        if count is None:
            return
        if not count:
            # From now on this limits the unpacked size of a compressed response.
            request.meta["download_maxsize"] = self.crawler.settings.getint("DOWNLOAD_MAXSIZE")
        request.meta[_RECEIVED] = count + len(data)
        if request.meta[_RECEIVED] >= LONGEST:
            raise StopDownload(fail=False)

    async def _fetch(self, request: Request) -> tuple[RobotParser, int]:
        """Fetch the rules of a request's host; return their parser and their number."""
        url = urlparse_cached(request)
        wanted = Request(
            f"{url.scheme}://{url.netloc}/robots.txt",
            priority=self.DOWNLOAD_PRIORITY,
            # Without compression, the first bytes received are the first bytes of the file. Its length does not matter.
            headers={"Accept-Encoding": "identity"},
            meta={"dont_obey_robotstxt": True, "download_maxsize": 0, _RECEIVED: 0},
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
        body, rules = readable(response.body) if response.status < 400 else (b"", 0)
        parser: RobotParser = build_from_crawler(self._parserimpl, self.crawler, body)
        await self.crawler.signals.send_catch_log_async(
            signal=signals.robots_parsed, robotparser=parser, request=request
        )
        return parser, rules
