"""The spider of ``inlink crawl``: it reads links, and nothing else is its business."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from inlink.errors import OutputError
from inlink.scrapy.job import Job, Note
from inlink.scrapy.progress import Lines
from inlink.scrapy.requests import LEASE
from inlink.scrapy.scheduler import Links
from inlink.scrapy.visits import reading

__all__ = ["BroadSpider", "WireMiddleware"]


class BroadSpider(Spider):
    """Follows the links of each page, except those that ask not to be followed.

    Parameters
    ----------
    urls : list of str
        Where to begin.
    job : Job
        Whose preset says what to read of a page, if it has one.
    """

    name = "inlink"

    def __init__(self, urls: list[str], job: Job, progress: Lines | None = None) -> None:
        super().__init__()
        self.urls, self.job, self.progress = urls, job, progress

    async def start(self) -> AsyncIterator[Any]:
        """The places to begin at; a page that an earlier run has crawled is not fetched again."""
        for url in self.urls:
            yield Request(url)

    def parse(self, response: Response, **_: Any) -> Iterator[Links]:
        """The links of a page, and a note of what else was read in it."""
        page, preset = reading(response), self.job.preset
        note = Note(page.title, page.canonical)
        if page.nofollow:
            urls = []
        elif preset is None:
            urls = [link.url for link in page.links if not link.nofollow]
        else:
            note.articles = preset.articles(response.body, response.url, content_type=_type_of(response))
            urls = [article.url for article in note.articles]
        request = response.request
        lease = request.meta.get(LEASE) if request is not None else None
        if lease is not None:
            self.job.notes[lease] = note
        yield Links(list(dict.fromkeys(urls)))


class WireMiddleware:
    """Stands next to the network: writes what comes from there into the job's WARC, still packed."""

    def __init__(self, crawler: Any) -> None:
        self._job: Job = crawler.spider.job

    @classmethod
    def from_crawler(cls, crawler: Any) -> "WireMiddleware":
        """Made by Scrapy."""
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Response:
        """Write an answer.

        Raises
        ------
        scrapy.exceptions.IgnoreRequest
            If it cannot be written: then the job is over, and the page waits again.
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


def _type_of(response: Response) -> str | None:
    kind = response.headers.get("Content-Type")
    return None if kind is None else kind.decode("latin-1")
