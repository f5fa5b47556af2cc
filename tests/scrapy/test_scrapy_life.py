"""A spider's life: when a page is reported, how runs end and go on, what is counted, what is kept in memory."""

import asyncio
import gc
import textwrap
import weakref
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from scrapy import Request, signals
from scrapy.crawler import Crawler as ScrapyCrawler
from scrapy.exceptions import CloseSpider, DontCloseSpider, DropItem
from scrapy.http import Response

from crawlcommand import inlink
from inlink.crawl.crawl import Crawl
from inlink.scrapy.signals import page_reported
from inlink.scrapy.visits import Visit
from sites import Answer, Site, html, moved, web
from spiderruns import Quiet, Walker, crawl, hrefs, pages_of

pytestmark = pytest.mark.slow


class Listening(Walker):
    """Notes what comes when."""

    @classmethod
    def from_crawler(cls, crawler: ScrapyCrawler, *args: Any, **kwargs: Any) -> Any:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.reported, page_reported)
        crawler.signals.connect(spider.closing, signals.spider_idle)
        crawler.signals.connect(spider.opened, signals.spider_opened)
        return spider

    def reported(self, url: str, outcome: str) -> None:
        self.notes.append(["reported", url.rpartition("/")[2], outcome])

    def opened(self) -> None:
        pass

    def closing(self) -> None:
        pass


class SlowPipeline:
    async def process_item(self, item: Any) -> Any:
        await asyncio.sleep(0.1)
        if item["url"].endswith("/dropped"):
            raise DropItem("not good enough")
        if item["url"].endswith("/broken"):
            raise ValueError("a bug")
        item["spider"].notes.append(["through", item["url"].rpartition("/")[2]])
        return {"url": item["url"]}


class Piped(Listening):
    custom_settings = {"ITEM_PIPELINES": {SlowPipeline: 1}}  # noqa: RUF012

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        yield from ({"url": response.url, "spider": self} for _ in range(3))
        for href in hrefs(response):
            yield response.follow(href)


def test_a_page_is_reported_when_its_items_are_through(tmp_path):
    pages = {"/": html("/a", "/dropped", "/broken"), "/a": html(), "/dropped": html(), "/broken": html()}
    with Site(pages) as site:
        ran = crawl(Piped, tmp_path / "c", site)
    assert ran.crawled == set(pages)  # what becomes of its items is no matter of the page's
    for name in ("", "a"):
        times = [at for at, note in enumerate(ran.notes) if note[:2] == ["through", name]]
        assert len(times) == 3
        assert ran.notes.index(["reported", name, "crawled"]) > max(times)
    assert ran.stats["item_scraped_count"] == 6
    assert ran.stats["item_dropped_count"] == 3


class Closing(Walker):
    def __init__(self, after: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.after = after

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        self.after -= 1
        for k, href in enumerate(hrefs(response)):
            if self.after == 0 and k == 2:
                raise CloseSpider("enough")
            yield response.follow(href)


def test_a_spider_that_ends_early_and_goes_on(tmp_path):
    """By itself, by a limit, and then to the end: each page once, none lost."""
    with Site(web(60, degree=5)) as site:
        one = crawl(Closing, tmp_path / "c", site, "/0", args={"after": 9}, CONCURRENT_REQUESTS=3)
        assert one.reason == "enough"
        assert 9 <= len(one.crawled) < 20
        two = crawl(Walker, tmp_path / "c", site, "/0", CLOSESPIDER_PAGECOUNT=10)
        assert two.reason == "closespider_pagecount"
        assert 10 <= len(two.crawled) - len(one.crawled) < 40
        assert set(one.states.values()) == set(two.states.values()) == {"crawled", "discovered"}
        with Crawl(tmp_path / "c") as seen:
            assert seen.standing().leased == 0
            assert "were given back" not in seen.recovered
        three = crawl(Quiet, tmp_path / "c", site, [])
        assert three.reason == "finished"
        assert set(site.counts().values()) == {1}
        assert len(site.counts()) >= 55  # links behind the CloseSpider were not yielded
        site.asked.clear()
        four = crawl(Walker, tmp_path / "c", site, "/0")
        assert four.reason == "finished"
        assert not site.asked  # a crawl that is through ends at once
        assert four.stats.get("response_received_count") is None


def test_stats_and_signals(tmp_path):
    pages = {
        "/": html("/a", "/gone", "/away", "/raises", "/no", "/a"),
        "/a": html(),
        "/gone": Answer("", 410),
        "/away": moved("/target"),
        "/target": html("/a", "/"),
        "/raises": html("/a"),
    }
    with Site({**pages, "/robots.txt": Answer("User-agent: *\nDisallow: /no")}) as site:
        ran = crawl(
            Raising, tmp_path / "c", site, ROBOTSTXT_OBEY=True, INLINK_CONTENT_SCORER="test_scrapy_life.half"
        )
    stats = ran.stats
    assert {name: value for name, value in stats.items() if name.startswith("inlink/")} == {
        "inlink/crawled": 4,
        "inlink/failed": 1,
        "inlink/excluded": 1,
        "inlink/redirected": 1,
    }
    assert stats["scheduler/dequeued"] == 7
    assert stats["scheduler/enqueued"] == 1 + 6 + 2 + 1
    assert stats["response_received_count"] == 5 + 1  # and robots.txt
    assert stats["downloader/request_count"] == 7
    assert stats["item_scraped_count"] == 3
    assert stats["spider_exceptions/count"] == 1
    assert stats["log_count/ERROR"] == 1
    assert stats["request_depth_max"] == 2
    assert stats["robotstxt/forbidden"] == 1
    assert stats["finish_reason"] == "finished"
    told = {ran.short(one["url"]): one for one in ran.reported}
    usual = {"counted": True, "score": 0.0, "error": None, "links": 0}
    wanted = {
        "/": {"outcome": "crawled", "status": 200, "score": 0.5, "links": 6},
        "/a": {"outcome": "crawled", "status": 200, "score": 0.5},
        "/gone": {"outcome": "failed", "status": 410, "error": None},
        "/away": {"outcome": "redirected", "status": 302},
        "/target": {"outcome": "crawled", "status": 200, "score": 0.5, "links": 2},
        "/raises": {"outcome": "crawled", "status": 200, "score": 0.5, "links": 1, "error": "ValueError: no"},
        "/no": {"outcome": "excluded", "status": None, "error": "Forbidden by robots.txt"},
    }
    assert len(ran.reported) == 7
    for path, what in wanted.items():
        assert {key: told[path].get(key) for key in usual | what} == {**usual, **what}, path


def half(page: Any) -> float:
    return 0.5


class Raising(Walker):
    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        if response.url.endswith("/raises"):
            yield response.follow("/a")
            raise ValueError("no")
        yield from super().parse(response)


def visits() -> int:
    """The number of visits in memory."""
    return sum(isinstance(thing, Visit) for thing in gc.get_objects())


class Remembering(Listening):
    """Keeps weak references to all that it gets, and looks what is left of it before garbage is collected."""

    def opened(self) -> None:
        gc.collect()
        gc.disable()
        self.responses: weakref.WeakSet[Any] = weakref.WeakSet()
        self.requests: weakref.WeakSet[Any] = weakref.WeakSet()
        self.most = self.visits = 0

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        self.visits = self.visits or visits()
        self.responses.add(response)
        self.requests.add(response.request)
        self.most = max(self.most, len(self.responses))
        for href in hrefs(response):
            yield (
                response.follow(href, cb_kwargs={"mark": 1}) if href.endswith("3") else response.follow(href)
            )

    def closing(self) -> None:
        self.notes = [self.most, len(self.responses), len(self.requests), self.visits]
        gc.enable()
        gc.collect()
        self.notes += [len(self.responses), len(self.requests), visits()]


def test_memory(tmp_path):
    """Nothing of a page that was reported is held: no response lives on until garbage is collected, even."""
    with Site(web(200)) as site:
        ran = crawl(Remembering, tmp_path / "c", site, "/0")
    assert len(ran.crawled) == 200
    most, responses, requests, visits_meanwhile, *collected = ran.notes
    assert most <= 40
    assert responses <= 16
    assert requests <= 16
    assert visits_meanwhile > 0
    assert collected == [0, 0, 0]


class Counting(Listening):
    """Counts how often the engine wakes up, and how often the crawl is asked."""

    def opened(self) -> None:
        engine: Any = self.crawler.engine
        self.notes = [0, 0]
        nextcall, client = engine._slot.nextcall, engine.scheduler.client
        wake, ask = nextcall._func, client.next

        def waking() -> None:
            self.notes[0] += 1
            wake()

        async def asking(count: int, wait: float = 0.0) -> Any:
            self.notes[1] += 1
            return await ask(count, wait)

        nextcall._func, client.next = waking, asking

    def reported(self, url: str, outcome: str) -> None:
        pass


QUIET = {
    "a page takes long": {"INLINK_POLITENESS": {"in_flight": 1}},
    "a page takes long, and nothing else waits": {},
    "the host has a delay": {"INLINK_POLITENESS": {"delay": 0.7}, "CONCURRENT_REQUESTS": 4},
}


@pytest.mark.parametrize("why", QUIET)
def test_nothing_is_done_while_there_is_nothing_to_do(tmp_path, why):
    links = ["/slow"] if "nothing else" in why else ["/slow", "/1", "/2"]
    slow = html(delay=0.0 if "delay" in why else 2.0)
    with Site({"/": html(*links), "/slow": slow, "/1": html(), "/2": html()}) as site:
        ran = crawl(Counting, tmp_path / "c", site)
    assert ran.crawled == {"/", *links}
    wakes, asked = ran.notes
    assert wakes <= 30
    assert asked <= 20


class Idle(Listening):
    """Finds more to do when it is idle, twice."""

    def closing(self) -> None:
        if len(self.notes) < 5:
            self.crawler.engine.crawl(Request(f"{self.start_urls[0]}idle-{len(self.notes)}"))  # type: ignore[union-attr]
            raise DontCloseSpider


def test_more_to_do_when_idle(tmp_path):
    with Site({"/": html(), **{f"/idle-{k}": html() for k in range(9)}}) as site:
        ran = crawl(Idle, tmp_path / "c", site)
    assert ran.crawled == {"/", "/idle-1", "/idle-2", "/idle-3", "/idle-4"}


def test_a_page_that_takes_longer_than_its_lease(tmp_path):
    """The spider is alive and has it: it is not handed out again meanwhile, and counts when it comes."""
    with Site({"/": html("/slow", "/quick"), "/slow": html("/behind", delay=2.5), "/quick": html()}) as site:
        site.pages["/behind"] = html()
        ran = crawl(Listening, tmp_path / "c", site, INLINK_LEASE_SECONDS=0.4)
        assert site.counts() == {"/": 1, "/slow": 1, "/quick": 1, "/behind": 1}
    assert ran.crawled == {"/", "/slow", "/quick", "/behind"}
    assert ran.notes.count(["reported", "slow", "crawled"]) == 1
    assert ran.pages["/slow"].crawls == 1


def test_revisits(tmp_path):
    """A page that is fetched again and again keeps what its request carries."""
    with Site({"/": html("/3"), "/3": html()}) as site:
        ran = crawl(
            Remembering,
            tmp_path / "c",
            site,
            INLINK_REVISIT={"schedule": "FixedInterval", "seconds": 0.2},
            CLOSESPIDER_PAGECOUNT=7,
        )
    assert min(site.counts().values()) >= 2
    assert min(page.crawls for page in ran.pages.values()) >= 2
    assert ran.reason == "closespider_pagecount"


PROJECT = {
    "scrapy.cfg": "[settings]\ndefault = shop.settings\n",
    "shop/__init__.py": "",
    "shop/settings.py": """
        BOT_NAME = "shop"
        SPIDER_MODULES = ["shop.spiders"]
        SCHEDULER = "inlink.scrapy.Scheduler"
        INLINK_CRAWL = "mycrawl"
        ROBOTSTXT_OBEY = True
        TELNETCONSOLE_ENABLED = False
    """,
    "shop/spiders/__init__.py": "",
    "shop/spiders/walker.py": """
        from scrapy import Spider

        class Walker(Spider):
            name = "walker"
            allowed_domains = ["127.0.0.1"]
            start_urls = ["SITE"]

            def parse(self, response):
                '''
                @url SITE
                @returns items 1 1
                @returns requests 2 2
                '''
                yield {"title": response.css("title::text").get()}
                yield from response.follow_all(css="a")
    """,
}
COMMANDS = [
    (["fetch", "--nolog", "SITE"], "<title>Shop</title>"),
    (["fetch", "--nolog", "--spider", "walker", "--headers", "SITE"], "Content-Length"),
    (["shell", "--nolog", "-c", "response.css('title::text').get()", "SITE"], "Shop"),
    (["shell", "--nolog", "--spider", "walker", "-c", "(fetch('SITE'), response.status)[1]"], "200"),
    (["parse", "--nolog", "--spider", "walker", "-d", "2", "SITE"], "{'title': 'Shop'}"),
    (["check", "walker"], "OK"),
]


def test_commands_of_scrapy_leave_the_crawl_alone(tmp_path):
    """`scrapy shell`, `fetch`, `parse` and `check` answer as with Scrapy's own scheduler, whether a spider crawls."""
    pages = {"/": html("/a", "/b", title="Shop"), "/a": html(), "/b": html()}
    with Site(pages) as site:
        for name, text in PROJECT.items():
            place = tmp_path / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(textwrap.dedent(text).replace("SITE", site.url("/")))
        # A command that does not open the crawl cannot disturb a spider, so one command beside a spider is enough.
        for running, commands in ((False, COMMANDS), (True, COMMANDS[:1])):
            with Crawl(tmp_path / "mycrawl") if running else nullcontext() as crawl_:
                if crawl_ is not None:
                    crawl_.seed(["http://example.org/"])
                for words, expected in commands:
                    given = [word.replace("SITE", site.url("/")) for word in words]
                    done = inlink(*given, program="scrapy", cwd=tmp_path)
                    assert expected in done.stdout + done.stderr * (words[0] == "check"), (words, done)
                    assert "Traceback" not in done.stderr, (words, done.stderr)
                    assert (tmp_path / "mycrawl").exists() is running
                assert crawl_ is None or [*pages_of(tmp_path / "mycrawl")] == ["http://example.org/"]
