"""Turn Scrapy's requests into links of the crawl, and the crawl's tasks into requests."""

import secrets
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler

from inlink.protocol import AnyLink, Link, Task
from inlink.scrapy.requests import NotPackable, pack, unpack
from inlink.scrapy.visits import Visit, usable_score

__all__ = ["Converter"]

# The variant of a request with `dont_filter` begins with this text: the same URL is requested once more.
_AGAIN = "again:"


class Converter:
    """Conversion between requests and links or tasks, by the settings of a Scrapy project.

    Parameters
    ----------
    crawler : Crawler
    spider : Spider
        The callbacks of requests are its methods.
    max_retries : int
        The crawl's setting. Requests whose project sets another number carry it in their meta.
    """

    def __init__(self, crawler: Crawler, spider: Spider, max_retries: int) -> None:
        settings = crawler.settings
        self._spider = spider
        self._fingerprinter: Any = crawler.request_fingerprinter
        self._referer = settings.getbool("REFERER_ENABLED")
        self._depth_counts = settings.getint("DEPTH_LIMIT") > 0 or settings.getint("DEPTH_PRIORITY") != 0
        self._max_retries = None if max_retries == settings.getint("RETRY_TIMES") else max_retries

    def link(self, request: Request, parent: Visit | None, start: bool) -> AnyLink:
        """Return a request's URL, its data, and a variant if it differs from other requests to the URL.

        Parameters
        ----------
        request : Request
        parent : Visit or None
            The visit that found the request.
        start : bool
            Whether it may be a start request.

        Raises
        ------
        NotPackable
            If the URL is not http or https, or the request has data that the crawl cannot store.
        """
        url = request.url
        if not url.startswith(("http://", "https://")):
            raise NotPackable("a URL that is not http or https")
        score = usable_score(request.meta.get("score"))
        if score is None and request.priority:
            score = usable_score(request.priority)
        start = start and bool(request.meta.get("is_start_request"))
        variant = self._variant(request, start)
        found_on = parent.response.url.partition("#")[0] if parent and parent.response else None
        depth = request.meta.get("depth")
        if self._depth_counts:
            depth = parent.task.depth + 1 if parent else 0
        carried = pack(request, self._spider, url.partition("#")[0], found_on, depth=depth, start=start)
        if carried or variant:
            return Link(url, score, carried, variant)
        return url if score is None else (url, score)

    def _variant(self, request: Request, start: bool) -> str:
        if request.dont_filter and not start:
            return _AGAIN + secrets.token_hex(8)
        method = request.method
        if method == "GET" and not request.body:
            return ""
        name = method if method.isascii() and method.isalpha() else "other"
        return f"{name[:8]}:{self._fingerprinter.fingerprint(request).hex()[:40]}"

    def target(self, request: Request) -> bytes:
        """Return the data of a request to the target of a redirect.

        Raises
        ------
        NotPackable
            If the crawl cannot store them.
        """
        return pack(request, self._spider, None)

    def canonical(self, task: Task, url: str) -> str | Link:
        """Return a link to the canonical page of a task's page, with the callback and the other data of its request."""
        if not task.carried:
            return url
        try:
            request = unpack(task.carried, url, self._spider).replace(url=url)
            return Link(url, data=pack(request, self._spider, url))
        except NotPackable:
            return url

    def visit(self, task: Task) -> Visit:
        """Return a visit with the request of a task.

        Raises
        ------
        NotPackable
            If the task's data cannot be decoded.
        """
        url, _, variant = task.url.partition("#")
        request = unpack(task.carried, url, self._spider)
        meta = request.meta
        # As in browsers, a page of http does not learn which page of https links to it.
        if self._referer and task.linked_from and task.linked_from[:5] <= url[:5]:
            request.headers.setdefault(b"Referer", task.linked_from.partition("#")[0])
        if task.linked_from is None:
            # Like Scrapy's own start requests, a seed may be off site.
            request.dont_filter = True
        meta.setdefault("depth", task.depth)
        if task.failures:
            meta["retry_times"] = meta.get("retry_times", 0) + task.failures
        if self._max_retries is not None:
            meta.setdefault("max_retry_times", self._max_retries)
        again = variant.startswith(_AGAIN)
        return Visit(task, request, alias=request.url if again else None, form=bool(variant) and not again)
