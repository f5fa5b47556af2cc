"""The spider of ``inlink crawl``. It only reads links."""

import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any, Self

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from inlink.errors import OutputError
from inlink.scrapy.job import Job, Note
from inlink.scrapy.progress import Lines
from inlink.scrapy.scheduler import Links
from inlink.scrapy.visits import LEASE, reading

log = logging.getLogger("inlink.scrapy")

MOST_LINKS = 100_000
"""Maximum number of links of a page that are followed."""


class BroadSpider(Spider):
    """Follows the links of each page, except nofollow links.

    Parameters
    ----------
    urls : list of str
        The URLs to begin at.
    job : Job
        Its preset, if it has one, defines which part of a page is read.
    """

    name = "inlink"

    def __init__(self, urls: list[str], job: Job, progress: Lines | None = None) -> None:
        super().__init__()
        self.urls, self.job, self.progress = urls, job, progress
        self._many_told = False

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Made by Scrapy."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        if spider.job.sitemaps is not None:
            crawler.signals.connect(spider.robots_parsed, signals.robots_parsed)
        return spider

    def robots_parsed(self, robotparser: Any, request: Request) -> None:
        """Read the sitemaps of a host after its robots.txt was parsed."""
        if self.job.sitemaps is not None:
            self.job.sitemaps.found(self.crawler, robotparser, request)

    async def start(self) -> AsyncIterator[Any]:
        """The URLs to begin at. A page that an earlier run has crawled is not fetched again."""
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Response, **_: Any) -> Iterator[Links]:
        """Yield the links of a page, and note its other data."""
        page = reading(response, self_links=self.settings.getbool("INLINK_SELF_LINKS"))
        preset = self.job.preset
        note = Note(page.title, page.canonical, page.problem)
        if page.nofollow:
            urls = []
        elif preset is None:
            urls = [link.url for link in page.links if not link.nofollow]
        else:
            note.articles = preset.articles(page)
            urls = [article.url for article in note.articles]
        request = response.request
        lease = request.meta.get(LEASE) if request is not None else None
        if lease is not None:
            self.job.notes[lease] = note
        yield Links(self._first(list(dict.fromkeys(urls)), response.url))

    def _first(self, urls: list[str], page: str) -> list[str]:
        """At most :data:`MOST_LINKS` of a page's links."""
        if len(urls) > MOST_LINKS and not self._many_told:
            self._many_told = True
            log.warning(
                "%s has %s links: only the first %s are followed; further pages like this are not reported",
                page,
                f"{len(urls):,}",
                f"{MOST_LINKS:,}",
            )
        return urls[:MOST_LINKS]


class WireMiddleware:
    """The innermost downloader middleware: it writes each response to the job's WARC, still compressed."""

    def __init__(self, crawler: Any) -> None:
        self._job: Job = crawler.spider.job

    @classmethod
    def from_crawler(cls, crawler: Any) -> "WireMiddleware":
        """Made by Scrapy."""
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Response:
        """Write a response.

        Raises
        ------
        scrapy.exceptions.IgnoreRequest
            If the response cannot be written. Then the run ends, and the page waits again.
        """
        job = self._job
        try:
            if job.error is None and job.warc is not None:
                job.warc.write(request, response)
        except OutputError as error:
            job.error = error
        if job.error is not None:
            raise IgnoreRequest(str(job.error))
        return response
