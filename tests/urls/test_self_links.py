"""Links to a place on the page itself are no self-loops, unless they are asked for."""

from pathlib import Path

import pytest

import inlink
from archives import A, B, anchors, response, warcinfo, wat_json, wat_record, write
from inlink.protocol import Link
from inlink.scoring.reading import read_page
from inlink.urls.canonical import Base, UrlRules, canonical

HREFS = ["#top", "", "./#two", A + "#three", "/other#x", B]
"""Links of the page A: to places on it, to itself, to a place on another page, and to another page."""

KEPT = [A, A + "other", B]


def test_only_links_with_a_fragment_are_left_out():
    refused: dict[str, int] = {}
    assert Base(A).canonical_links(HREFS, refused) == KEPT
    assert Base(A, self_links=True).canonical_links(HREFS, refused) == [A, A, A, A, A + "other", B]
    assert refused == {}
    # A fragment is resolved against the base, which need not be the page.
    assert Base(A, "/base").canonical_links(["#x", "/#y"], refused) == [A + "base"]
    rules = UrlRules(drop_parameters=("utm_*",))
    page = canonical(A + "p?utm_source=x", rules=rules) or ""
    assert Base(page, rules=rules).canonical_links(["?utm_source=y#top", "?utm_source=y"], refused) == [page]


@pytest.mark.parametrize("kind", ["warc", "wat"])
def test_archives(tmp_path: Path, kind: str):
    page = "".join(f'<a href="{href}">x</a>' for href in HREFS)
    body = response(A, page) if kind == "warc" else wat_record(wat_json(A, anchors(*HREFS)))
    path = write(tmp_path / f"x.{kind}", [warcinfo(), body])
    graph = inlink.read(path)
    assert [graph.names[int(node)] for node in graph.outlinks(graph.names.find(A))] == KEPT
    # An arc counts once, however many links there are.
    assert inlink.read(path, count=True).info().self_loops == 1
    arcs = {
        own: inlink.read(path, self_links=own, count=True).out_rows.weights.sum() for own in (False, True)
    }
    assert arcs == {False: 3, True: 6}
    assert inlink.read(path, level="host").info().self_loops == 0


def links_of(crawl: inlink.Crawl, url: str) -> set[str]:
    return {row.url for row in crawl.view.links(url).rows}


def test_a_crawl(tmp_path: Path):
    with inlink.Crawl(tmp_path / "c") as crawl:
        crawl.seed([A])
        crawl.crawled(A, links=["#top", (f"{A}#x", 0.5), Link("#y", data=b"z"), "/other#x"])
        assert links_of(crawl, A) == {A + "other"}
        # A link with a variant is a request of its own.
        crawl.crawled(A, links=[Link("#y", variant="again:1"), ""])
        assert links_of(crawl, A) == {A, f"{A}#again:1"}
    with inlink.Crawl(tmp_path / "c", self_links=True) as crawl:
        crawl.crawled(A, links=["#top", "/other"])
        assert links_of(crawl, A) == {A, A + "other"}


def test_a_page_that_is_read():
    body = "".join(f'<a href="{href}">x</a>' for href in HREFS).encode()
    assert [link.url for link in read_page(body, A).links] == KEPT
    assert len(read_page(body, A, self_links=True).links) == 6


@pytest.mark.parametrize("own", [False, True])
def test_the_spider_of_inlink_crawl(own: bool):
    scrapy = pytest.importorskip("scrapy")
    from inlink.scrapy.job import Job
    from inlink.scrapy.options import CrawlOptions, settings_of
    from inlink.scrapy.spider import BroadSpider

    spider = BroadSpider([], Job())
    options = CrawlOptions(settings={"self_links": own})
    spider.settings = scrapy.settings.Settings(settings_of(Path("none"), options, None, []))
    body = b'<a href="#top">x</a><a href="/other">y</a>'
    page = scrapy.http.HtmlResponse(A, body=body, request=scrapy.Request(A))
    (found,) = spider.parse(page)
    assert found.links == ([A] if own else []) + [A + "other"]
