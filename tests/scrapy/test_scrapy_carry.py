"""Data of requests reach the callback that they name by way of the crawl's folder."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from scrapy import FormRequest, Request
from scrapy.http import JsonRequest, Response
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from foldercommands import look_at
from inlink.crawl.crawl import Crawl
from inlink.protocol import Link
from sites import Answer, Asked, Site, html, moved, web
from spiderruns import Quiet, Walker, crawl, hrefs

STOCK = "scrapy.core.scheduler.Scheduler"
MARKS = {"tuple": (1, ("two", b"\xff")), "nested": {"a": [1.5, None, {"b": True}], 3: "three"}}


def echo(asked: Asked) -> Answer:
    """A page that says how it was asked for."""
    headers = {
        name: value for name, value in asked.headers.items() if name.startswith(("X-", "Cookie", "Content-T"))
    }
    return Answer(json.dumps([asked.method, headers, asked.body.decode("latin-1")]))


class Carrier(Walker):
    """Yields one request of each kind."""

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        url = response.urljoin
        yield Request(url("/kwargs"), callback=self.marked, cb_kwargs=MARKS)
        yield Request(url("/headers"), headers={"X-One": "1", "X-Two": "zwei"}, callback=self.echoed)
        yield Request(url("/cookies"), cookies={"taste": "sweet"}, callback=self.echoed)
        yield FormRequest(url("/form"), formdata={"a": "1 2"}, callback=self.echoed)
        yield FormRequest(url("/form"), formdata={"a": "other"}, callback=self.echoed)
        yield FormRequest(url("/form"), formdata={"a": "1 2"}, callback=self.echoed)  # the same again
        yield JsonRequest(url("/json"), data={"b": [1]}, callback=self.echoed)
        yield Request(url("/form"), callback=self.echoed)  # the same URL by GET
        yield Request(url("/meta"), meta={"mine": MARKS, "dont_redirect": True}, callback=self.with_meta)
        yield Request(url("/flags"), flags=["a"], callback=self.with_meta, priority=3)
        yield Request(url("/404"), errback=self.failed, cb_kwargs={"k": 1})
        yield Request(url("/fragment") + "#part", callback=self.with_meta)

    def marked(self, response: Response, **marks: Any) -> Iterator[Any]:
        yield {"kwargs": repr(marks)}

    def echoed(self, response: Response) -> Iterator[Any]:
        path, (method, headers, body) = response.url.rpartition("/")[2], json.loads(response.body)
        if path != "cookies":
            headers.pop("Cookie", None)  # it goes to all pages that are fetched later, whichever these are
        yield {"echo": [path, method, headers, body], "kind": type(response.request).__name__}

    def with_meta(self, response: Response) -> Iterator[Any]:
        request = response.request
        assert request is not None
        yield {"meta": repr(response.meta.get("mine")), "flags": request.flags, "priority": request.priority}
        yield {"url": request.url, "depth": response.meta["depth"], "referer": request.headers.get("Referer")}

    def failed(self, failure: Any) -> Iterator[Any]:
        yield {"failed": failure.request.cb_kwargs}


@pytest.mark.slow
def test_each_kind_of_request(tmp_path):
    """Exactly what Scrapy's own scheduler makes of the same spider, in this run or, after a stop, in the next."""
    paths = ["kwargs", "headers", "cookies", "form", "json", "meta", "flags", "fragment"]
    pages = {"/": html(), **{f"/{name}": echo for name in paths}}

    def told(ran: Any) -> list[str]:
        return sorted(json.dumps(item, sort_keys=True) for item in ran.items)

    with Site(pages) as site:
        stock = crawl(Carrier, tmp_path / "none", site, SCHEDULER=STOCK)
        ours = crawl(Carrier, tmp_path / "c", site)
        first = crawl(Carrier, tmp_path / "d", site, CLOSESPIDER_PAGECOUNT=1, CONCURRENT_REQUESTS=1)
        second = crawl(QuietCarrier, tmp_path / "d", site, [])
    assert len(told(stock)) == 14
    assert told(ours) == told(stock)
    assert len(first.items) < 10
    assert sorted(told(first) + told(second)) == told(stock)
    assert ours.stats.get("inlink/not_kept") is None


class QuietCarrier(Quiet, Carrier):
    pass


class Rules(CrawlSpider):
    name = "rules"
    rules = (
        Rule(LinkExtractor(allow=r"/list"), follow=True),
        Rule(LinkExtractor(allow=r"/item/[a-m]"), callback="item", cb_kwargs={"kind": "early"}),
        Rule(LinkExtractor(allow=r"/item/"), callback="item", errback="missing", follow=True),
        Rule(LinkExtractor(restrict_css="p.more"), process_request="marked", callback="more"),
    )

    def __init__(self, start: list[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = start

    def parse_start_url(self, response: Response, **_: Any) -> Any:
        return [{"start": response.url}]

    def item(self, response: Response, kind: str = "late") -> Iterator[Any]:
        yield {"item": response.url, "kind": kind, "text": response.meta["link_text"]}

    def missing(self, failure: Any) -> Iterator[Any]:
        yield {"missing": failure.request.url}

    def marked(self, request: Request, response: Response) -> Request:
        request.meta["came_from"] = response.url
        return request

    def more(self, response: Response) -> Iterator[Any]:
        yield {"more": response.url, "from": response.meta["came_from"]}


@pytest.mark.slow
def test_a_crawlspider(tmp_path):
    letters = "abcmnxyz"
    pages = {
        "/": html("/list/1", "/list/2", "/item/a", "/other"),
        "/list/1": html("/list/2", "/item/b", "/item/x", "/list/3"),
        "/list/2": html("/item/m", "/item/n", "/item/void"),
        "/list/3": Answer(
            '<p class="more"><a href="/deep">deep</a><a href="/item/y">y</a></p><a href="/other">o</a>'
        ),
        "/item/x": html("/item/z", "/list/1", "/item/c"),
        "/deep": html("/item/c"),
    }
    pages = {**{f"/item/{one}": html() for one in letters}, **pages}
    with Site(pages) as site:
        stock = crawl(Rules, tmp_path / "none", site, SCHEDULER=STOCK)
        asked = site.counts()
        site.asked.clear()
        ours = crawl(Rules, tmp_path / "c", site)
    assert len(stock.items) == 11
    assert sorted(map(str, ours.items)) == sorted(map(str, stock.items))
    assert site.counts() == asked
    assert ours.states["/item/void"] == "gone"
    assert set(ours.pages) == set(asked)  # all of it has its order from the crawl
    assert "inlink/not_kept" not in ours.stats


class Again(Walker):
    """Fetches a page again and again; copies meta about; repeats what failed."""

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        count = response.meta.get("count", 0)
        yield {"url": response.url, "count": count, "depth": response.meta["depth"]}
        if response.url.endswith("/poll") and count < 3:
            yield response.request.replace(meta={"count": count + 1}, dont_filter=True)
        if response.url.endswith("/"):
            yield Request(response.urljoin("/poll"))
            for path in ("/copied", "/poll", "/off"):
                yield Request(response.urljoin(path), meta=response.meta, errback=self.once_more)

    def once_more(self, failure: Any) -> Iterator[Any]:
        if failure.request.meta.get("tries", 0) < 2:
            tries = failure.request.meta.get("tries", 0) + 1
            yield failure.request.replace(dont_filter=True, meta={**failure.request.meta, "tries": tries})
        else:
            yield {"gave up": failure.request.url}


def test_dont_filter_and_copied_meta(tmp_path):
    with Site({"/": html(), "/poll": html(), "/copied": html(), "/off": Answer("", 410)}) as site:
        ran = crawl(Again, tmp_path / "c", site)
        assert site.counts() == {"/": 1, "/poll": 1 + 3, "/copied": 1, "/off": 3}
        polls = Counter(item["count"] for item in ran.items if item.get("url", "").endswith("/poll"))
        assert polls == {0: 1, 1: 1, 2: 1, 3: 1}
        assert [item for item in ran.items if "gave up" in item] == [{"gave up": site.url("/off")}]
        with Crawl(tmp_path / "c") as seen:
            assert seen.page(site.url("/poll")).crawls == 4
        assert {state for path, state in ran.states.items() if path.startswith("/poll#again")} == {"merged"}
        site.asked.clear()
        assert crawl(Again, tmp_path / "c", site).reason == "finished"  # what was asked for again is done
        assert not site.asked


class StartFails(Walker):
    """A start request whose errback tries again, which has its meta, as all that copy a request have."""

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.start_urls[0], errback=self.once_more)

    def once_more(self, failure: Any) -> Iterator[Any]:
        self.notes.append(failure.type.__name__)
        if len(self.notes) < 3:
            yield failure.request.replace(dont_filter=True)


def test_a_start_request_that_is_repeated_by_its_errback(tmp_path):
    left = [Answer("", 403)] * 2
    with Site({"/": lambda _: left.pop() if left else html("/next"), "/next": html()}) as site:
        ran = crawl(StartFails, tmp_path / "c", site)
    assert ran.notes == ["HttpError"] * 2
    assert ran.crawled == {"/", "/next"} | {path for path in ran.crawled if "#again" in path}
    assert ran.states["/"] == "crawled"


class Unkept(Walker):
    """Requests that cannot be written down."""

    custom_settings = {"DEPTH_LIMIT": 3}  # noqa: RUF012

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        yield {"url": response.url, "depth": response.meta["depth"]}
        for href in hrefs(response):
            if href == "/large":
                yield response.follow(href, cb_kwargs={"text": "x" * 100_000}, callback=self.sized)
            elif href == "/data":
                yield Request("data:,hello", callback=lambda response: {"data": response.text})
            elif href == "/data-too":
                yield Request("data:,hallo")
            else:
                yield response.follow(href, callback=lambda response: self.parse(response), priority=10**400)

    def sized(self, response: Response, text: str) -> Iterator[Any]:
        yield {"size": len(text), "url": response.url}


def test_requests_that_cannot_be_kept_are_fetched_all_the_same(tmp_path):
    """It stays in Scrapy's own queue; links on such pages count as seeds, and are as deep as they are."""
    pages = {f"/{k}": html(f"/{k + 1}") for k in range(1, 9)}
    with Site({"/": html("/1", "/large", "/data", "/data-too"), **pages, "/large": html()}) as site:
        ran = crawl(Unkept, tmp_path / "c", site)
    assert ran.stats["inlink/not_kept"] == 6
    (warning,) = ran.told("WARNING")
    assert "/1> is not kept: its callback is not a method of the spider" in warning
    assert "docs/scrapy.md" in warning
    assert sorted(str(item.get("url", item)).removeprefix(site.url("")) for item in ran.items) == sorted(
        ["/", "/1", "/2", "/3", "/large", "{'data': 'hello'}", "data:,hallo"]
    )
    assert set(site.counts()) == {"/", "/1", "/2", "/3", "/large"}


class AddOn:
    """Puts a set into the meta of each request, as scrapy-zyte-api does."""

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for output in start:
            yield self._marked(output)

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        async for output in result:
            yield self._marked(output)

    def _marked(self, output: Any) -> Any:
        if isinstance(output, Request):
            output.meta["_pre_mw_headers"] = {name.lower() for name in output.headers}
        return output


class Added(Walker):
    custom_settings = {"SPIDER_MIDDLEWARES": {AddOn: 100}}  # noqa: RUF012

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        headers = response.meta["_pre_mw_headers"]
        self.notes.append(sorted(name.decode() for name in headers))
        for href in hrefs(response):
            yield response.follow(href, headers={"X-Mine": "1", "Accept-Language": "de"})


def test_requests_with_a_set_in_their_meta_are_the_crawls(tmp_path):
    with Site({"/": html("/1", "/2"), "/1": html("/3"), "/2": html(), "/3": html()}) as site:
        ran = crawl(Added, tmp_path / "c", site)
    assert "inlink/not_kept" not in ran.stats
    assert ran.crawled == {"/", "/1", "/2", "/3"}
    assert sorted(ran.notes) == [[], *([["accept-language", "referer", "x-mine"]] * 3)]
    assert ran.told("WARNING") == []


class NoneKept(Walker):
    async def start(self) -> AsyncIterator[Any]:
        for k in range(150):
            yield Request(self.start_urls[0] + str(k), meta={"made": object()})


class FewKept(NoneKept):
    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.start_urls[0])
        async for request in super().start():
            yield request


@pytest.mark.slow
def test_a_spider_of_which_no_request_can_be_kept_ends_with_an_error(tmp_path):
    with Site({"/": html(), **{f"/{k}": html() for k in range(150)}}) as site:
        ran = crawl(NoneKept, tmp_path / "none", site)
        assert ran.reason == "inlink_failed"
        assert ran.stats["inlink/not_kept"] == 100
        (error,) = ran.told("ERROR")
        assert error.startswith("none of the first 100 requests can be kept")
        assert "meta['made'] cannot be stored: it holds builtins.object" in error
        (warning,) = ran.told("WARNING")
        assert "/0> is not kept: meta['made'] cannot be stored" in warning
        some = crawl(FewKept, tmp_path / "few", site)
    assert some.reason == "finished"
    assert some.stats["inlink/not_kept"] == 150
    assert len(some.told("WARNING")) == 1
    assert some.told("ERROR") == []


class Behind(Walker):
    """Links behind a page that could not be kept, and behind redirects, which the crawl counts."""

    custom_settings = {"DEPTH_LIMIT": 4}  # noqa: RUF012

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        self.notes.append([response.url.rpartition("/")[2], response.meta["depth"]])
        for href in hrefs(response):
            yield response.follow(href, callback=(lambda one: self.parse(one)) if href == "/2" else None)


def test_depth_is_what_scrapy_counts(tmp_path):
    pages = {f"/{k}": html(f"/{k + 1}") for k in range(9)}
    with Site({**pages, "/": moved("/0"), "/1": moved("/1b"), "/1b": html("/2")}) as site:
        ran = crawl(Behind, tmp_path / "c", site)
    assert ran.notes == [["0", 0], ["1b", 1], ["2", 2], ["3", 3], ["4", 4]]
    assert not {path for path in ran.pages if path > "/4"}


class Before(Walker):
    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        for href in hrefs(response):
            yield response.follow(href, callback=self.old_name)

    def old_name(self, response: Response) -> Iterator[Any]:
        yield {"old": response.url}


class After(Quiet):
    def new_name(self, response: Response) -> Iterator[Any]:
        yield {"new": response.url}


def test_a_callback_that_has_another_name_now(tmp_path):
    """Each page says why it cannot be fetched; the host has nothing to do with it, and ``reload`` brings them back."""
    pages = {"/": html(*[f"/{k}" for k in range(20)]), **{f"/{k}": html() for k in range(20)}}
    with Site(pages) as site:
        crawl(Before, tmp_path / "c", site, CLOSESPIDER_PAGECOUNT=1, CONCURRENT_REQUESTS=1)
        left = 21 - len(site.asked)
        ran = crawl(After, tmp_path / "c", site, [], INLINK_RETRY_SECONDS=600)
        assert left > 10
        assert ran.stats["inlink/excluded"] == left
        assert len(site.asked) == 21 - left
        errors = {page.error for page in ran.pages.values() if page.state == "excluded"}
        assert len(errors) == 1
        assert "cannot be restored: Method 'old_name' not found" in errors.pop()
        with Crawl(tmp_path / "c") as again:
            assert again.reload("excluded") == left
        back = crawl(QuietBefore, tmp_path / "c", site, [])
    assert len(back.items) == left
    assert set(back.states.values()) == {"crawled"}


class QuietBefore(Quiet, Before):
    pass


@pytest.mark.slow
def test_carried_data_of_a_folder_may_be_anything(tmp_path):
    """Such pages are told and left out; the others go on."""
    hostile = [
        b"junk",
        b"[]",
        b'{"meta":{"retry_times":"many"}}',
        b'{"callback":"crawler"}',
        b'{"meta":{"depth":"x"}}',
    ]
    with Site({f"/{k}": html() for k in range(9)}) as site:
        with Crawl(tmp_path / "c") as crawl_:
            seeds = [Link(site.url(f"/{k}"), 1.0, raw) for k, raw in enumerate(hostile)]
            crawl_.seed([*seeds, *[site.url(f"/{k}") for k in range(5, 9)]])
        ran = crawl(Walker, tmp_path / "c", site, [])
    assert ran.states == {f"/{k}": "excluded" if k < 4 else "crawled" for k in range(9)}


def test_nothing_is_kept_for_what_has_only_the_defaults(tmp_path):
    with Site(web(30)) as site:
        crawl(Walker, tmp_path / "c", site)
    with look_at(tmp_path / "c") as seen:
        assert not any(seen.pages.carried(page) for page in range(31))
        assert seen.pages.num_pages == 31
