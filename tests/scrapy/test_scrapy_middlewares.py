"""Requests that middlewares drop, replace, answer themselves, break by a bug, or send elsewhere."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response

from sites import Answer, Asked, Site, html
from spiderruns import Walker, crawl, hrefs


class Meddler:
    """Does to a request what its path says, before it is sent or after."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "Meddler":
        return cls(crawler)

    async def process_request(self, request: Request) -> Any:
        path = request.url.rpartition("/")[2]
        if path == "drop":
            raise IgnoreRequest("not this one")
        if path == "bug-before":
            raise ValueError("a bug")
        if path == "own-response":
            return HtmlResponse(request.url, body=b'<a href="/found-1">1</a>')
        if path == "own-request" and "tried" not in request.meta:
            return request.replace(url=request.url + "?really", meta={**request.meta, "tried": True})
        if path == "same-request" and "tried" not in request.meta:
            request.meta["tried"], request.dont_filter = True, True
            return request
        if path == "other-request":
            return Request(request.url.replace("other-request", "found-2"))
        if path == "fetched-otherwise":
            other = Request(request.url.replace("fetched-otherwise", "other-way"))
            return await self.crawler.engine.download_async(other)
        if path == "asks-first":
            more = await self.crawler.engine.download_async(
                request.replace(url=request.url.replace("asks-first", "token"))
            )
            request.headers["X-Token"] = more.body
        return None

    def process_response(self, request: Request, response: Response) -> Any:
        path = request.url.rpartition("/")[2]
        if path == "bug-after":
            raise ValueError("a bug")
        if path == "drop-after":
            raise IgnoreRequest("not this one either")
        if path == "once-more" and "tried" not in request.meta:
            return request.replace(meta={**request.meta, "tried": True}, dont_filter=True)
        return response

    def process_exception(self, request: Request, exception: Exception) -> Any:
        if request.url.endswith("/rescued"):
            return HtmlResponse(request.url, body=b'<a href="/found-3">3</a>')
        return None


class Noting(Walker):
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {Meddler: 543}}  # noqa: RUF012

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        yield {"url": response.url.rpartition("/")[2]}
        for href in hrefs(response):
            yield response.follow(href, errback=self.failed)

    def failed(self, failure: Any) -> None:
        self.notes.append([failure.request.url.rpartition("/")[2], failure.type.__name__])


def test_downloader_middlewares(tmp_path):
    names = ["drop", "drop-after", "bug-before", "bug-after", "own-response", "own-request", "same-request"]
    names += ["other-request", "fetched-otherwise", "asks-first", "once-more", "rescued"]

    def asks_first(asked: Asked) -> Answer:
        return html(text="good") if asked.headers.get("X-Token") == "let me in" else Answer("no", 403)

    pages = {"/": html(*names), **{f"/{name}": html(text=name) for name in names}}
    pages |= {f"/found-{k}": html() for k in (1, 2, 3, 4)}
    pages |= {
        "/own-request?really": html(text="it"),
        "/other-way": html("/found-4"),
        "/token": Answer("let me in"),
    }
    pages |= {"/asks-first": asks_first, "/rescued": Answer(raw=b"HTTP/1.1 ")}
    with Site(pages) as site:
        ran = crawl(Noting, tmp_path / "c", site, INLINK_RETRY_SECONDS=300, RETRY_TIMES=0)
    assert ran.reason == "finished"
    assert {path: page.state for path, page in ran.pages.items() if page.state != "crawled"} == {
        "/drop": "excluded",
        "/drop-after": "excluded",
        "/bug-before": "excluded",
        "/other-request": "excluded",
        "/bug-after": "failed",
    }
    assert {f"/found-{k}" for k in (1, 2, 3, 4)} <= ran.crawled
    assert {path: page.error for path, page in ran.pages.items() if page.error} == {
        "/drop": "IgnoreRequest: not this one",
        "/drop-after": "IgnoreRequest: not this one either",
        "/bug-before": "ValueError: a bug",
        "/bug-after": "ValueError: a bug",
        "/other-request": "dropped by a middleware: its target must not be fetched",
    }
    assert dict(ran.notes) == {
        "drop": "IgnoreRequest",
        "drop-after": "IgnoreRequest",
        "bug-before": "ValueError",
        "bug-after": "ValueError",
    }
    counts = site.counts()
    assert counts.pop("/once-more") == 2
    assert set(counts.values()) == {1}
    assert not {"/drop", "/bug-before", "/own-response", "/own-request", "/other-request"} & set(counts)
    assert sorted(item["url"] for item in ran.items) == sorted(
        {*names, "", "own-request?really", "other-way", *[f"found-{k}" for k in (1, 2, 3, 4)]}
        - {
            "drop",
            "drop-after",
            "bug-before",
            "bug-after",
            "other-request",
            "own-request",
            "fetched-otherwise",
        }
    )


class Breaker:
    """A spider middleware with bugs in it."""

    def process_spider_input(self, response: Response) -> None:
        if response.url.endswith("/bug-in-input"):
            raise ValueError("not this page")

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        async for one in result:
            if isinstance(one, Request) and one.url.endswith("/stop-here"):
                raise ValueError("not this link")
            yield one


class Broken(Noting):
    custom_settings = {"SPIDER_MIDDLEWARES": {Breaker: 543}}  # noqa: RUF012


def test_spider_middlewares(tmp_path):
    pages = {
        "/": html("bug-in-input", "bug-in-output"),
        "/bug-in-input": html("/never"),
        "/bug-in-output": html("/found", "/stop-here", "/never"),
        "/found": html(),
    }
    with Site(pages) as site:
        ran = crawl(Broken, tmp_path / "c", site)
    assert ran.states == {
        "/": "crawled",
        "/bug-in-input": "failed",
        "/bug-in-output": "failed",
        "/found": "crawled",
    }
    assert ran.pages["/bug-in-input"].error == "ValueError: not this page"
    assert ran.pages["/bug-in-output"].error == "ValueError: not this link"
    assert set(site.counts().values()) == {1}
    assert ran.notes == [["bug-in-input", "ValueError"]]


def test_a_bug_of_ones_own_does_not_tell_against_the_host(tmp_path):
    """Eight failures of a host in a row park it for a day; these are none of its."""
    pages = {"/": html(*[f"/{k}/bug-after" for k in range(20)], "/last")}
    pages |= {f"/{k}/bug-after": html() for k in range(20)} | {"/last": html()}
    with Site(pages) as site:
        ran = crawl(Noting, tmp_path / "c", site, INLINK_RETRY_SECONDS=600)
    assert len(ran.notes) == 20
    assert ran.states["/last"] == "crawled"
    assert sum(state == "failed" for state in ran.states.values()) == 20
