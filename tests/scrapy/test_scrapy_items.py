"""Items of a Scrapy crawl in the crawl's log: items that are kept, their JSON, and messages about others."""

import json
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from scrapy import Field, Item, Request
from scrapy.exceptions import DropItem
from scrapy.exporters import JsonLinesItemExporter
from scrapy.http import Response

import inlink
from inlink.crawl.intake import MOST_ITEMS
from inlink.errors import ParameterError
from inlink.scrapy.visits import item_line
from inlink.sources.dumping import item_lines
from inlink.store.reader import known_pages
from served import served
from sites import Answer, Asked, Site, html, moved
from spiderruns import Ran, Walker, crawl, hrefs


def exported(folder: Path, *, latest: bool = False) -> list[Any]:
    pages = known_pages(folder)
    try:
        text = b"".join(block for block, _ in item_lines(pages, latest=latest))
    finally:
        pages.close()
    return [json.loads(line) for line in text.splitlines()]


def paths(ran: Ran) -> list[str]:
    """The paths of the kept items, which each have the URL of their page."""
    return sorted(ran.short(item["url"]) for item in exported(ran.folder))


# -- the JSON of items ----------------------------------------------------------------------------


def upper(value: str) -> str:
    return value.upper()


class Product(Item):  # type: ignore[misc]  # Scrapy's metaclass is untyped
    name = Field(serializer=upper)
    price = Field()
    seen = Field()


@dataclass
class Point:
    x: float
    tags: set[str]


@pytest.mark.parametrize(
    "item",
    [
        {"a": 1, "b": [1.5, None, True], "c": {"d": "é\n\u2028"}},
        {},
        Product(name="tea", price=Decimal("1.50"), seen=datetime(2026, 1, 2, 3, 4, 5)),
        Product(name="tea"),
        Point(1e16, {"x"}),
        {"on": date(2026, 1, 2), "nested": Point(0.0, set()), "product": Product(name="x")},
        {"big": 2**70, "page": Response("https://e.org/"), "request": Request("https://e.org/")},
    ],
    ids=repr,
)
def test_an_item_is_written_as_scrapy_writes_it(item: Any) -> None:
    file = BytesIO()
    JsonLinesItemExporter(file, encoding="utf-8").export_item(item)
    assert item_line(item) == file.getvalue()


def cyclic() -> dict[str, Any]:
    found: dict[str, Any] = {}
    found["self"] = found
    return found


@pytest.mark.parametrize(
    ("item", "error"),
    [
        ({"x": object()}, TypeError),
        ({"x": b"bytes"}, TypeError),
        ({"x": float("nan")}, ValueError),
        ({"x": float("inf")}, ValueError),
        ({"x": "\ud800"}, UnicodeEncodeError),
        (cyclic(), ValueError),
        ({"x": "y" * MOST_ITEMS}, ParameterError),
        (3, TypeError),
        (Product(name=7), AttributeError),
    ],
    ids=["object", "bytes", "nan", "infinity", "surrogate", "cycle", "large", "number", "serializer"],
)
def test_an_item_that_json_cannot_hold_is_refused(item: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        item_line(item)


# -- items that are kept ----------------------------------------------------------------------------


class Choosy:
    """A pipeline that drops, breaks and changes items."""

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        if item.get("drop"):
            raise DropItem("not wanted")
        if item.get("break"):
            raise RuntimeError("broken pipeline")
        return item | {"passed": True}


class Chooser(Walker):
    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        yield {"url": response.url, "number": 1}
        yield {"url": response.url, "drop": True}
        yield {"url": response.url, "break": True}
        yield {"url": response.url, "number": 2}
        yield from (response.follow(href) for href in hrefs(response))


def test_items_are_kept_after_the_pipelines(tmp_path: Path) -> None:
    with Site({"/": html("/a"), "/a": html()}) as site:
        ran = crawl(
            Chooser, tmp_path / "c", site, INLINK_ITEMS=True, ITEM_PIPELINES={f"{__name__}.Choosy": 300}
        )
        again = crawl(Chooser, tmp_path / "c", site, INLINK_ITEMS=True)
    assert exported(tmp_path / "c") == [
        {"url": site.url(path), "number": number, "passed": True} for path in ("/", "/a") for number in (1, 2)
    ]
    assert ran.states == {"/": "crawled", "/a": "crawled"}
    assert ran.stats["inlink/items"] == 4
    assert "inlink/items_not_kept" not in ran.stats
    # Nothing is fetched again, so nothing is kept again.
    assert again.items == []


def test_items_are_not_kept_by_default(tmp_path: Path) -> None:
    with Site({"/": html()}) as site:
        ran = crawl(Walker, tmp_path / "c", site)
    assert len(ran.items) == 1
    assert exported(tmp_path / "c") == []


def later(asked: Asked) -> Answer:
    """Fails at the first request, and answers the second."""
    tried.append(asked.path)
    return html() if tried.count(asked.path) > 1 else Answer(status=503)


tried: list[str] = []


class Lister(Walker):
    """Accepts a page that is not there, fails half-way on one page, and visits one page three times."""

    handle_httpstatus_list = (404,)

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        yield {"url": response.url, "status": response.status}
        if response.url.endswith("/half"):
            raise ValueError("half-way")
        for href in hrefs(response):
            yield response.follow(href)
        if response.url.endswith("/often"):
            for name in ("first", "second"):
                yield Request(response.url, getattr(self, name), dont_filter=True)

    def first(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "by": "first"}

    def second(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "by": "second"}


def test_items_belong_to_the_page_that_was_fetched_in_the_end(tmp_path: Path) -> None:
    tried.clear()
    pages = {
        "/": html("/moved", "/later", "/half", "/often", "/none"),
        "/moved": moved("/target"),
        "/target": html(),
        "/later": later,
        "/half": html("/never"),
        "/often": html(),
    }
    with Site(pages) as site:
        ran = crawl(Lister, tmp_path / "c", site, INLINK_ITEMS=True)
    # The same as Scrapy's own feed has.
    assert sorted(map(str, exported(ran.folder))) == sorted(map(str, ran.items))
    assert paths(ran) == ["/", "/half", "/later", "/none", "/often", "/often", "/often", "/target"]
    assert ran.states["/half"] == "failed"
    assert ran.states["/none"] == "crawled"
    assert ran.stats["inlink/items"] == 8
    latest = [item for item in exported(ran.folder, latest=True) if item["url"].endswith("/often")]
    assert len(latest) == 1
    assert "by" in latest[0]


class Returning(Walker):
    """Fetches its pages twice: ends when it has seen each of them twice."""

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        self.notes.append(response.url)
        yield {"url": response.url, "visit": self.notes.count(response.url)}
        yield from (response.follow(href) for href in hrefs(response))
        if len(self.notes) >= 4:
            self.crawler.engine.close_spider(self, "seen")  # type: ignore[union-attr]


@pytest.mark.slow
def test_each_visit_has_its_items(tmp_path: Path) -> None:
    revisit = {"schedule": "FixedInterval", "seconds": 0.5}
    with Site({"/": html("/a"), "/a": html()}) as site:
        ran = crawl(Returning, tmp_path / "c", site, INLINK_ITEMS=True, INLINK_REVISIT=revisit)
    kept = exported(ran.folder)
    assert sorted(map(str, kept)) == sorted(map(str, ran.items))
    last = {item["url"]: item for item in kept}
    assert sorted(map(str, exported(ran.folder, latest=True))) == sorted(map(str, last.values()))
    assert len(kept) >= 4


# -- items that are not kept, and the messages --------------------------------------------------------------------


class Spoiler(Walker):
    """Yields items that cannot be kept, among others that can."""

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        yield {"url": response.url, "n": 1}
        if response.url.endswith("/bad"):
            yield {"url": response.url, "when": object()}
            yield {"url": response.url, "when": object()}
        if response.url.endswith("/large"):
            for _ in range(3):
                yield {"url": response.url, "text": "x" * (MOST_ITEMS // 2 - 100)}
        yield {"url": response.url, "n": 2}
        yield from (response.follow(href) for href in hrefs(response))


def test_a_page_fails_if_one_of_its_items_cannot_be_kept(tmp_path: Path) -> None:
    with Site({"/": html("/bad", "/large"), "/bad": html("/a"), "/large": html(), "/a": html()}) as site:
        ran = crawl(Spoiler, tmp_path / "c", site, INLINK_ITEMS=True)
    assert ran.states == {"/": "crawled", "/bad": "failed", "/large": "failed", "/a": "crawled"}
    assert ran.pages["/bad"].error == (
        "an item cannot be kept: TypeError: Object of type object is not JSON serializable"
    )
    assert "an item cannot be kept" in ran.pages["/large"].error
    assert "1,048,576 bytes" in ran.pages["/large"].error
    # The other items of these pages are kept.
    assert paths(ran) == ["/"] * 2 + ["/a"] * 2 + ["/bad"] * 2 + ["/large"] * 4
    assert ran.stats["inlink/items_not_kept"] == 3
    # Once for each page.
    assert len([line for line in ran.told("ERROR") if "an item cannot be kept" in line]) == 2


class Stray(Walker):
    """Yields items that belong to no page."""

    async def start(self) -> AsyncIterator[Any]:
        yield {"from": "start"}
        for url in self.start_urls:
            yield Request(url, errback=self.failed)

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        yield {"url": response.url}
        for href in hrefs(response):
            yield response.follow(href, errback=self.failed)

    def failed(self, failure: Any) -> Iterator[Any]:
        yield {"url": failure.request.url, "from": "errback"}


def test_an_item_of_no_page_is_counted_and_warned_of_once(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        away = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        pages = {"/": html("/none", "/mail", away), "/mail": moved("mailto:a@e.org")}
        with Site(pages) as site:
            ran = crawl(Stray, tmp_path / "c", site, INLINK_ITEMS=True, RETRY_TIMES=0)
    # A page with an HTTP error was fetched, so the items of its errback are kept.
    assert paths(ran) == ["/", "/none"]
    assert ran.states == {"/": "crawled", "/none": "crawled", "/mail": "failed", away: "failed"}
    assert len(ran.items) == 5
    assert ran.stats["inlink/items_not_kept"] == 3
    assert ran.stats["inlink/items"] == 2
    assert len([line for line in ran.told("WARNING") if "an item belongs to no fetched page" in line]) == 1


# -- through a server ----------------------------------------------------------------------------


def test_items_go_through_a_server(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with Site({"/": html("/a", "/b"), "/a": html(), "/b": html()}) as site, served(folder) as server:
        # The server decides the settings of the crawl.
        settings = {"INLINK_CRAWL": f"{server.url}/v1/crawls/c", "INLINK_RETRY_SECONDS": ...}
        ran = crawl(Walker, folder, site, INLINK_ITEMS=True, **settings)
    assert ran.reason == "finished"
    assert paths(ran) == ["/", "/a", "/b"]
    with inlink.Crawl(folder) as opened:
        assert opened.standing().crawled == 3
