"""The order: scores of pages and links, priorities, limits; and the same pages as with Scrapy's own scheduler."""

import asyncio
import gc
import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response

from inlink.scoring.reading import Reading
from inlink.scrapy import Links, reading
from sites import Site, html, moved
from spiderruns import Quiet, Walker, crawl, crawl_together, hrefs

pytestmark = pytest.mark.slow

STOCK = "scrapy.core.scheduler.Scheduler"
ONE = {"CONCURRENT_REQUESTS": 1}  # at a time, so that the order is what the site saw


def order(site: Site) -> list[str]:
    return [one.path for one in site.asked]


class Judge(Walker):
    """Link scores by what the link says, in each way that there is."""

    def __init__(self, way: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.way = way

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        for href in hrefs(response):
            score = int(href.rpartition("-")[2])
            if self.way == "meta":
                yield response.follow(href, meta={"score": score / 100})
            elif self.way == "meta and priority":
                yield response.follow(href, meta={"score": score / 100}, priority=-score)
            elif self.way == "priority":
                yield response.follow(href, priority=score)
            elif self.way == "carried":
                yield response.follow(href, meta={"score": score}, cb_kwargs={"more": score})
            else:
                yield Links([(href, score)])


@pytest.mark.parametrize("way", ["meta", "meta and priority", "priority", "carried", "links"])
def test_the_better_linked_pages_come_first(tmp_path, way):
    numbers = list(range(1, 13))
    random.Random(3).shuffle(numbers)
    with Site({"/": html(*[f"/p-{k}" for k in numbers]), **{f"/p-{k}": html() for k in numbers}}) as site:
        crawl(Judge, tmp_path / "c", site, args={"way": way}, INLINK_POLICY="best-first", **ONE)
        assert order(site) == ["/", *[f"/p-{k}" for k in sorted(numbers, reverse=True)]]


def topical(path: str) -> str:
    return "postgres replication" if "good" in path else "something else"


def test_content_and_link_scorers(tmp_path):
    """Links on good pages, with good words around them, are followed first."""
    pages = {f"/{kind}-{k}": html(text=topical(kind)) for kind in ("good", "bad") for k in range(6)}
    with Site({"/": html(*sorted(pages)), **pages}) as site:
        ran = crawl(
            Walker,
            tmp_path / "c",
            site,
            INLINK_POLICY="best-first",
            INLINK_CONTENT_SCORER={"topic": "postgres replication good"},
            INLINK_LINK_SCORER={"topic": "good"},
            **ONE,
        )
        assert {path[:5] for path in order(site)[1:7]} == {"/good"}
    assert min(page.score for path, page in ran.pages.items() if "good" in path) > 0.1
    assert max(page.score for path, page in ran.pages.items() if "bad" in path) == 0


class Scorer(Walker):
    """Scores of its own, and what inlink has read."""

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        page = reading(response)
        assert reading(response) is page
        response.meta["score"] = 0.75 if "good" in page.title else "none"
        yield Links(link.url for link in page.links)


def test_a_score_of_the_callbacks(tmp_path):
    pages = {"/": html("/a", "/b", title="good"), "/a": html(title="good"), "/b": html(title="bad")}
    with Site(pages) as site:
        ran = crawl(Scorer, tmp_path / "c", site)
    assert {path: page.score for path, page in ran.pages.items()} == {"/": 0.75, "/a": 0.75, "/b": 0.0}


class Keeper(Walker):
    """Keeps responses, as Scrapy's own cycles do until the garbage collector comes."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kept: list[Response] = []

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        self.kept.append(response)
        yield Links(link.url for link in reading(response).links)

    def closed(self, reason: str) -> None:
        gc.collect()
        self.notes.append(sum(isinstance(thing, Reading) for thing in gc.get_objects()))


def test_the_reading_of_a_page_is_dropped_when_the_page_is_done(tmp_path):
    with Site({"/": html("/a", "/b"), "/a": html(), "/b": html()}) as site:
        ran = crawl(Keeper, tmp_path / "c", site)
    assert {path: page.state for path, page in ran.pages.items()} == dict.fromkeys(
        ["/", "/a", "/b"], "crawled"
    )
    assert ran.notes == [0]


@pytest.mark.parametrize("use_scores", [False, True])
def test_use_scores(tmp_path, use_scores):
    """PageRank from links alone, or from good pages: which of the two that are left comes first."""
    pages = {
        "/": html("/good", "/hub-1", "/hub-2"),
        "/good": html("/from-good", text="topic topic topic"),
        "/hub-1": html("/from-hubs"),
        "/hub-2": html("/from-hubs"),
        "/from-good": html(),
        "/from-hubs": html(),
    }
    scorer = {"INLINK_CONTENT_SCORER": {"keywords": ["topic"]}, **ONE}
    with Site(pages) as site:
        # not CLOSESPIDER_PAGECOUNT, with which Scrapy may have sent the next request before it closes the spider
        first = {"INLINK_POLICY": "breadth-first", "INLINK_POLITENESS": {"host_budget": 4}}
        crawl(Walker, tmp_path / "c", site, **scorer, **first)
        assert len(site.asked) == 4
        second = {
            "INLINK_POLICY": "pagerank",
            "INLINK_USE_SCORES": use_scores,
            "INLINK_POLITENESS": {"host_budget": 9},
        }
        crawl(Quiet, tmp_path / "c", site, [], **scorer, **second)
        assert order(site)[4] == ("/from-good" if use_scores else "/from-hubs")


class Bounded(Walker):
    allowed_domains = ("127.0.0.1",)


def test_limits_of_depth_and_site(tmp_path):
    pages = {f"/{k}": html(f"/{k + 1}") for k in range(9)}
    with Site(pages, hosts=2) as site:
        site.pages["/1"] = html("/2", site.url("/far", 2))
        ours = crawl(Bounded, tmp_path / "c", site, "/0", DEPTH_LIMIT=4)
        asked = site.counts()
        site.asked.clear()
        stock = crawl(Bounded, tmp_path / "none", site, "/0", DEPTH_LIMIT=4, SCHEDULER=STOCK)
        assert site.counts() == asked == {f"/{k}": 1 for k in range(5)}
    assert ours.stats["offsite/filtered"] == stock.stats["offsite/filtered"] == 1
    assert ours.stats["request_depth_max"] == stock.stats["request_depth_max"] == 4
    assert [ours.pages[f"/{k}"].depth for k in range(5)] == [0, 1, 2, 3, 4]


def random_site(seed: int) -> dict[str, Any]:
    """Pages with random links, some of which lead nowhere, twice to the same, or by way of a redirect."""
    rng = random.Random(seed)
    size = rng.randrange(5, 60)
    pages: dict[str, Any] = {}
    for k in range(size):
        links = [f"/{rng.randrange(size + 3)}" for _ in range(rng.randrange(4))]
        links += [f"/{k}#top", f"/r{rng.randrange(size)}", f"/{k + 1}?a={rng.randrange(2)}"][
            : rng.randrange(4)
        ]
        pages[f"/{k}"] = html(*links)
        pages[f"/r{k}"] = moved(f"/{rng.randrange(size)}", rng.choice([301, 302, 307]))
        pages[f"/{k}?a=0"] = html(*links[:1])
    return {**pages, "/": html("/0", "/1", "/2")}


@pytest.mark.parametrize("seed", range(6))
def test_the_same_pages_as_scrapys_own_scheduler(tmp_path, seed):
    """Each once. Where a redirect leads to a page, Scrapy may fetch that once more: it knows only by the URL asked."""
    with Site(random_site(seed)) as site:
        stock = crawl(Walker, tmp_path / "none", site, SCHEDULER=STOCK)
        asked = site.counts()
        site.asked.clear()
        policy = ["first-come", "host-diverse", "opic", "random", "depth-first", "hosts-in-turns"][seed]
        ours = crawl(Walker, tmp_path / "c", site, INLINK_POLICY=policy)
        assert set(site.counts()) == set(asked)
        assert set(site.counts().values()) == {1}
    urls = [item["url"].partition("#")[0] for item in ours.items]
    assert len(urls) == len(set(urls))
    assert set(urls) == {item["url"].partition("#")[0] for item in stock.items}
    assert ours.stats["response_received_count"] == len(urls) + ours.stats.get(
        "httperror/response_ignored_count", 0
    )


class Slow(Walker):
    """Starts slowly, while its callbacks are quick."""

    async def start(self) -> AsyncIterator[Any]:
        for url in self.start_urls:
            await asyncio.sleep(0.1)
            yield Request(url)


class Many(Walker):
    """More start requests than anyone needs, and then an item."""

    async def start(self) -> AsyncIterator[Any]:
        for k in range(10_000):
            yield Request(f"{self.start_urls[0]}{k}")
        yield {"last": True}


class OnlyItems(Walker):
    async def start(self) -> AsyncIterator[Any]:
        yield {"only": 1}
        await asyncio.sleep(0.01)
        yield {"only": 2}


def test_starts(tmp_path):
    with Site({f"/{k}": html(f"/{k + 10}") for k in range(14)}) as site:
        slow = crawl(Slow, tmp_path / "slow", site, [f"/{k}" for k in range(4)])
        assert site.counts() == dict.fromkeys(
            [f"/{k}" for k in (0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23)], 1
        )
        site.asked.clear()
        many = crawl(Many, tmp_path / "many", site, INLINK_RULES={"allow": [r"/1\d$"]})
        assert site.counts() == dict.fromkeys([f"/{k}" for k in range(10, 20)], 1)
        items = crawl(OnlyItems, tmp_path / "items", site)
    assert slow.reason == many.reason == items.reason == "finished"
    assert many.items[-1] == {"last": True}
    assert len(many.pages) == 10_000
    assert items.items == [{"only": 1}, {"only": 2}]
    assert items.pages == {}


def test_two_spiders_in_one_process(tmp_path):
    """Each on a folder of its own; and on one folder, where the second is refused."""
    with Site({**{f"/{k}": html(f"/{k + 2}") for k in range(20)}}) as site:
        runs = [(Walker, tmp_path / name, path, None, {}) for name, path in (("a", "/0"), ("b", "/1"))]
        one, other = crawl_together(runs, site)
        assert one.crawled == {f"/{k}" for k in range(0, 20, 2)}
        assert other.crawled == {f"/{k}" for k in range(1, 20, 2)}
        site.pages["/again"] = html(delay=1.5)
        first, second = crawl_together([(Walker, tmp_path / "a", "/again", None, {})] * 2, site)
    assert sorted([first.reason, second.reason]) == ["finished", "inlink_refused"]
