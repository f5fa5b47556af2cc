"""Outcomes of pages: each end of a request has its outcome in the crawl, and counts once."""

import asyncio
import socket
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from inlink.crawl.crawl import Crawl
from inlink.scrapy.engine import mend_delay
from sites import Answer, Asked, Site, html
from spiderruns import Walker, crawl, hrefs


def flaky(*answers: Answer) -> Any:
    """Each time the next answer; the last for ever."""
    left = list(answers)

    def says(_: Asked) -> Answer:
        return left.pop(0) if len(left) > 1 else left[0]

    return says


def outcome(ran: Any, path: str) -> tuple[str, int, str | None]:
    page = ran.pages[path]
    return page.state, page.status, page.error


class Careless(Walker):
    """Callbacks that fail, wait, or are asynchronous."""

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        path = response.url.rpartition("/")[2]
        if path == "":
            for href in hrefs(response):
                name = href.strip("/").replace("-", "_")
                yield response.follow(href, callback=getattr(self, name, None), errback=self.failed)
        yield {"url": path}

    def failed(self, failure: Any) -> None:
        self.notes.append([failure.request.url.rpartition("/")[2], failure.type.__name__])

    def raises_before(self, response: Response) -> Iterator[Any]:
        raise ValueError("too early")
        yield

    def raises_after(self, response: Response) -> Iterator[Any]:
        yield response.follow("/found-1")
        yield {"url": "raises-after"}
        yield response.follow("/found-2")
        raise ValueError("too late")

    async def coroutine(self, response: Response) -> list[Any]:
        await asyncio.sleep(0.01)
        return [response.follow("/found-3"), {"url": "coroutine"}]

    async def generator(self, response: Response) -> AsyncIterator[Any]:
        yield response.follow("/found-4")
        await asyncio.sleep(0.01)
        yield {"url": "generator"}

    async def generator_raises(self, response: Response) -> AsyncIterator[Any]:
        yield response.follow("/found-5")
        await asyncio.sleep(0.01)
        raise KeyError("gone")


CALLBACKS = ["raises-before", "raises-after", "coroutine", "generator", "generator-raises"]


@pytest.mark.slow
def test_callbacks(tmp_path):
    found = {f"/found-{k}": html() for k in range(1, 6)}
    pages = {"/": html(*[f"/{name}" for name in CALLBACKS]), **{f"/{name}": html() for name in CALLBACKS}}
    with Site({**pages, **found}) as site:
        ran = crawl(Careless, tmp_path / "c", site)
        assert outcome(ran, "/raises-before") == ("failed", 200, "ValueError: too early")
        assert outcome(ran, "/raises-after") == ("failed", 200, "ValueError: too late")
        assert outcome(ran, "/generator-raises") == ("failed", 200, "KeyError: 'gone'")
        assert ran.crawled == {
            "/",
            "/coroutine",
            "/generator",
            *found,
        }  # links from before the failure are kept
        assert set(site.counts().values()) == {1}
        assert sorted(item["url"] for item in ran.items) == sorted(
            ["", "raises-after", "coroutine", "generator", *[f"found-{k}" for k in range(1, 6)]]
        )
        with Crawl(tmp_path / "c") as again:
            assert again.reload() == 3
        crawl(Careless, tmp_path / "c", site)
        assert {path for path, count in site.counts().items() if count == 2} == {
            "/raises-before",
            "/raises-after",
            "/generator-raises",
        }


def closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Told(Careless):
    """All callbacks are ``parse``; failures are noted."""

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        yield {"url": response.url.rpartition("/")[2], "status": response.status}
        for href in hrefs(response):
            # only this page: on a busy machine others may be slow as well
            meta = {"download_timeout": 0.5} if href.endswith("/slow") else None
            yield response.follow(href, errback=self.failed, meta=meta)


@pytest.mark.slow
def test_outcomes_of_the_network(tmp_path):
    """Statuses, retries, time-outs, connections that break; each error is told to the errback, once."""
    at = {"500": 2, "flaky": 3, "slow": 4, "cut": 5}  # hosts of their own, since failures tell against a host
    names = ["404", "410", "403", "strange", "pdf", "empty", "no-text"]
    away = f"http://127.0.0.1:{closed_port()}/away"
    pages = {
        "/410": Answer("gone", 410),
        "/403": Answer("no", 403),
        "/500": Answer("oh", 500),
        "/flaky": flaky(Answer("", 502), Answer("", 502), html()),
        "/slow": Answer("never", gate=threading.Event()),
        "/cut": Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"),
        "/strange": Answer(raw=b"HTTP/1.1 1234 Strange\r\nContent-Length: 2\r\n\r\nhm"),
        "/pdf": Answer(b"%PDF-1.7\0\xff\xfe" * 50, headers={"Content-Type": "application/pdf"}),
        "/empty": Answer(""),
        "/no-text": Answer("<html><body><img src=x></body></html>"),
    }
    with Site(pages, hosts=5) as site:
        site.pages["/"] = html(
            *names, *[site.url(f"/{name}", host) for name, host in at.items()], away, title="all"
        )
        ran = crawl(Told, tmp_path / "c", site, RETRY_TIMES=2)
    pages = {path.rpartition("/")[2]: page for path, page in ran.pages.items()}
    assert {name: page.state for name, page in pages.items()} == {
        **dict.fromkeys(["", "flaky", "pdf", "empty", "no-text"], "crawled"),
        **dict.fromkeys(["403", "500", "slow", "cut", "strange", "away"], "failed"),
        **dict.fromkeys(["404", "410"], "gone"),
    }
    assert {name: page.status for name, page in pages.items() if page.status not in (0, 200)} == {
        "404": 404,
        "410": 410,
        "403": 403,
        "500": 500,
        "strange": 999,
    }
    assert site.counts() == {**dict.fromkeys([f"/{name}" for name in ["", *names]], 1)} | {
        f"/{name}": 3 for name in at
    }
    assert dict(ran.notes) == {
        **dict.fromkeys(["404", "410", "403", "500", "strange"], "HttpError"),
        "slow": "DownloadTimeoutError",
        "cut": "ResponseDataLossError",
        "away": "DownloadConnectionRefusedError",
    }
    assert len(ran.notes) == 8
    for name, kind in dict(ran.notes).items():
        assert (pages[name].error or "").startswith("" if kind == "HttpError" else kind)
    assert ran.stats["retry/count"] == 2 * 5
    assert ran.stats["retry/max_reached"] == 4
    assert ran.outcomes[("/404", "failed")] == 1
    assert ran.outcomes[(site.url("/500", 2), "failed")] == 3
    assert [one["counted"] for one in ran.reported] == [True] * len(ran.reported)


class Handling(Told):
    """Statuses that are handled, errbacks that go on, requests that say how often they may be tried."""

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        if not response.url.endswith("/"):
            yield {"url": response.url.rpartition("/")[2], "status": response.status}
            for href in hrefs(response):
                yield response.follow(href)
            return
        here = response.urljoin
        yield Request(here("/handled"), meta={"handle_httpstatus_list": [404]})
        yield Request(here("/handled-bare"), meta={"handle_httpstatus_list": [404]})
        yield Request(here("/errback"), errback=self.go_on)
        yield Request(here("/errback-raises"), errback=self.raises)
        yield Request(here("/large"), errback=self.failed)

    def go_on(self, failure: Any) -> Iterator[Any]:
        yield {"url": "errback", "status": failure.value.response.status}
        yield Request(failure.request.url.replace("errback", "found-1"))

    def raises(self, failure: Any) -> None:
        raise ValueError("in the errback")


def test_statuses_that_are_handled(tmp_path):
    pages = {
        "/": html(),
        "/handled": html("/found-2", status=404),
        "/handled-bare": html(status=404),
        "/errback": Answer("", 404),
        "/errback-raises": Answer("", 404),
        "/large": Answer("x" * 5000),
        "/found-1": html(),
        "/found-2": html(),
    }
    with Site(pages) as site:
        ran = crawl(Handling, tmp_path / "c", site, DOWNLOAD_MAXSIZE=4000)
    assert ran.crawled == {"/", "/found-1", "/found-2", "/handled", "/errback"}
    assert ran.pages["/handled"].status == ran.pages["/errback"].status == 404
    assert ran.states["/handled-bare"] == "gone"
    assert outcome(ran, "/errback-raises") == ("gone", 404, "ValueError: in the errback")
    assert ran.states["/large"] == "excluded"
    assert "DownloadCancelledError" in (ran.pages["/large"].error or "")
    assert ran.notes == [["large", "DownloadCancelledError"]]
    assert {(item["url"], item["status"]) for item in ran.items} == {
        ("handled", 404),
        ("handled-bare", 404),
        ("errback", 404),
        ("found-1", 200),
        ("found-2", 200),
    }
    assert set(site.counts().values()) == {1}


class Trying(Told):
    def __init__(self, meta: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.meta = meta

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        if response.url.endswith("/"):
            yield response.follow("/bad", meta=dict(self.meta), errback=self.failed)


TRIES: list[
    tuple[dict[str, Any], dict[str, Any], int, int]
] = [  # meta, settings, fetched, told to the errback
    ({}, {"RETRY_TIMES": 2}, 3, 1),
    ({}, {"RETRY_TIMES": 0}, 1, 1),
    ({"max_retry_times": 4}, {"RETRY_TIMES": 1}, 5, 1),
    ({"max_retry_times": 0}, {"RETRY_TIMES": 2}, 1, 1),
    ({"dont_retry": True}, {"RETRY_TIMES": 2}, 1, 1),
    ({"retry_times": 1}, {"RETRY_TIMES": 2}, 2, 1),  # as if copied from a page that was tried twice
    ({}, {"RETRY_TIMES": 2, "INLINK_MAX_RETRIES": 0}, 1, 1),
    ({}, {"RETRY_TIMES": 1, "INLINK_MAX_RETRIES": 3}, 4, 1),
    ({}, {"RETRY_ENABLED": False, "RETRY_TIMES": 2}, 3, 3),  # the crawl's own
]


@pytest.mark.parametrize(("meta", "settings", "fetched", "told"), TRIES, ids=[str(one[:2]) for one in TRIES])
def test_a_page_is_tried_as_often_as_meta_and_settings_say(tmp_path, meta, settings, fetched, told):
    with Site({"/": html(), "/bad": Answer("", 502)}) as site:
        ran = crawl(Trying, tmp_path / "c", site, args={"meta": meta}, INLINK_RETRY_SECONDS=0.01, **settings)
    assert site.counts()["/bad"] == fetched
    assert ran.notes == [["bad", "HttpError"]] * told
    assert outcome(ran, "/bad") == ("failed", 502, "")


@pytest.mark.slow
def test_a_retry_waits_longer_each_time(tmp_path):
    with Site({"/": flaky(*[Answer("", 500)] * 3, html())}) as site:
        ran = crawl(Told, tmp_path / "c", site, RETRY_TIMES=3, INLINK_RETRY_SECONDS=0.15)
        times = site.times()
    assert ran.crawled == {"/"}
    assert [later - earlier >= 0.15 * 2**k * 0.8 for k, (earlier, later) in enumerate(pairwise(times))] == [
        True
    ] * 3


def test_requests_that_would_wait_too_long_leave_the_downloader():
    """Scrapy holds requests by the delay of their slot. Ours fail at once, and stand in no queue any more."""
    failures: dict[str, Failure] = {}
    slot = SimpleNamespace(queue=deque(), lastseen=time.monotonic(), delay=60.0, jitter=0.0)
    for url in ("http://a.com/ours", "http://a.com/foreign", "http://a.com/ours/2"):
        waiting = Deferred[None]()
        waiting.addErrback(partial(failures.__setitem__, url))
        slot.queue.append((Request(url), waiting))
    downloader = SimpleNamespace(_process_queue=lambda slot: None)
    crawler = cast(Crawler, SimpleNamespace(engine=SimpleNamespace(downloader=downloader)))
    mend_delay(crawler, 9.0, lambda request: "ours" in request.url, lambda: TimeoutError("too long"))
    slot.delay = 5.0
    downloader._process_queue(slot)
    assert (len(slot.queue), failures) == (3, {})
    slot.delay = 60.0
    downloader._process_queue(slot)
    assert [request.url for request, _ in slot.queue] == ["http://a.com/foreign"]
    assert sorted(failures) == ["http://a.com/ours", "http://a.com/ours/2"]
    assert all(failure.check(TimeoutError) for failure in failures.values())


class Together:
    """A pipeline that takes its time, and notes how many items it has at once."""

    now = 0

    async def process_item(self, item: dict[str, int]) -> dict[str, int]:
        self.now += 1
        item["together"] = self.now
        await asyncio.sleep(0.05)
        self.now -= 1
        return item


class ManyItems(Walker):
    custom_settings: ClassVar[dict[str, Any]] = {"ITEM_PIPELINES": {Together: 1}, "CONCURRENT_ITEMS": 3}

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        for number in range(7):
            yield {"number": number}
            yield response.follow(f"/{number}", self.nothing)

    def nothing(self, response: Response) -> None:
        pass


def test_pipelines_get_as_many_items_at_once_as_scrapy_is_told(tmp_path):
    pages = {"/": html(), **{f"/{number}": html() for number in range(7)}}
    with Site(pages) as site:
        ran = crawl(ManyItems, tmp_path / "c", site)
    assert sorted(item["number"] for item in ran.items) == list(range(7))
    assert max(item["together"] for item in ran.items) == 3
    assert ran.crawled == set(pages)
