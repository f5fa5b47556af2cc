"""A crawl through Scrapy and Frontera 0.7.2 over loopback."""

import json
import re
import textwrap
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crawlcommand import Forked
from inlink.crawl.crawl import Crawl
from patience import PATIENCE
from sites import ROBOTS, Answer, Asked, Says, Site, html, moved

pytest.importorskip("scrapy", reason="scrapy is not installed: pip install 'inlink[frontera]'")
pytest.importorskip("frontera", reason="frontera 0.7.2 is not installed: pip install 'inlink[frontera]'")


PAGES = 60
HELD_AFTER = 25  # pages, in the crawl that is killed


def links_of(number: int) -> list[int]:
    """A tree with more links in it, so that every page is known by several."""
    found = [3 * number + k for k in (1, 2, 3)] + [(7 * number + 5) % PAGES, number, 0]
    return [one for one in found if one < PAGES]


def cookie(asked: Asked) -> Answer:
    """Redirects to itself once."""
    return (
        html()
        if "seen=1" in asked.headers.get("Cookie", "")
        else moved("/cookie", **{"Set-Cookie": "seen=1"})
    )


def pages() -> dict[str, Says]:
    """Pages /0 … /59, and some that fail, each in its own way."""
    failing = ["gone", "broken", "busy", "twice", "cookie", "private", "crash", "loop"]
    busy = [Answer("", 503, {"Retry-After": "0"})]
    found: dict[str, Says] = {
        f"/{number}": html(*(f"/{one}" for one in links_of(number) + failing * (number == 0)))
        for number in range(PAGES)
    }
    return found | {
        **dict.fromkeys(("/target", "/private", "/crash", "/0?from-crash"), html()),
        ROBOTS: Answer("User-agent: *\nDisallow: /private\n"),
        "/broken": Answer(raw=b""),
        "/busy": lambda _: busy.pop() if busy else html(),
        "/moved": moved("/target"),
        "/twice": moved("/moved"),
        "/loop": moved("/loop"),
        "/cookie": cookie,
    }


@pytest.fixture
def site() -> Iterator[Site]:
    with Site(pages()) as one:
        yield one


SPIDER = """
    import json, sys
    import scrapy
    from scrapy.crawler import CrawlerProcess

    seed, settings = sys.argv[1], json.loads(sys.argv[2])

    class Spider(scrapy.Spider):
        name = "s"
        start_urls = [] if "SEEDS_SOURCE" in settings else [seed + "0"]

        def parse(self, response):
            number = response.url.rpartition("/")[2]
            response.meta["score"] = 0.5
            response.meta["content_hash"] = 258
            if not isinstance(response, scrapy.http.HtmlResponse):
                return
            for href in response.css("a::attr(href)").getall():
                yield response.follow(href, meta={"score": 1 / (2 + len(href))})
            yield {"url": response.url}
            yield scrapy.FormRequest(seed + "post", formdata={"a": "1"})
            if number == "crash":
                yield scrapy.Request(seed + "0?from-crash")
                raise RuntimeError("the spider's own fault")

    process = CrawlerProcess({
        "BACKEND": "inlink.frontera.Backend",
        "SCHEDULER": "frontera.contrib.scrapy.schedulers.frontier.FronteraScheduler",
        "SPIDER_MIDDLEWARES": {"inlink.frontera.SchedulerSpiderMiddleware": 999},
        "DOWNLOADER_MIDDLEWARES": {"inlink.frontera.SchedulerDownloaderMiddleware": 999},
        "DELAY_ON_EMPTY": 0.0,
        "DOWNLOAD_DELAY": 0,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 4,
        "ROBOTSTXT_OBEY": True,
        "RETRY_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "REDIRECT_MAX_TIMES": 3,
        "INLINK_RETRY_SECONDS": 0.05,
        "INLINK_MAX_RETRIES": 2,
        **settings,
    })
    crawler = process.create_crawler(Spider)
    process.crawl(crawler)
    process.start()
    stats = crawler.stats.get_stats()
    print(json.dumps({k: v for k, v in stats.items() if isinstance(v, int | float | str)}))
"""

Start = Callable[..., Forked]


@pytest.fixture
def start(tmp_path: Path, site: Site) -> Iterator[Start]:
    """Start Scrapy in a process of its own."""
    script = tmp_path / "spider.py"
    script.write_text(textwrap.dedent(SPIDER))
    running: list[Forked] = []

    def begin(**settings: Any) -> Forked:
        told = {
            "PAGE_DB_PATH": str(tmp_path / "crawl"),
            "SCORER": "HitsScorer",
            "USE_SCORES": True,
            **settings,
        }
        out = tmp_path / f"stats{len(running)}"
        command = (script, site.url("/"), json.dumps(told))
        running.append(Forked(*command, cwd=tmp_path, out=out, err=tmp_path / "log"))
        return running[-1]

    yield begin
    for one in running:
        one.kill()
        one.wait()


def stats_of(spider: Forked) -> dict[str, Any]:
    """Wait for a spider, and return its statistics."""
    assert spider.wait() == 0, spider.err
    stats: dict[str, Any] = json.loads(spider.out.splitlines()[-1])
    return stats


def numbers(found: dict[str, Any]) -> Any:
    """The items of the pages /0 … /59."""
    return type(found)({path: value for path, value in found.items() if path[1:].isdigit()})


@pytest.mark.slow
def test_a_site_is_crawled_each_page_once_and_failures_are_kept(tmp_path: Path, site: Site, start: Start):
    spider = start()
    stats = stats_of(spider)
    assert stats["finish_reason"] == "finished", (tmp_path / "log").read_text()
    assert numbers(site.counts()) == Counter(f"/{k}" for k in range(PAGES))
    asked = site.counts()
    once = ("/gone", "/crash", "/moved", "/twice", "/target")
    assert {path: asked[path] for path in once} == dict.fromkeys(once, 1)
    assert [asked[path] for path in ("/private", "/post", "/busy", "/cookie", "/loop")] == [0, 0, 2, 2, 4]
    assert asked["/broken"] >= 3  # Twisted asks a second time where a kept connection breaks
    assert stats["item_scraped_count"] == stats["frontera/crawled_pages_count/200"]

    with Crawl(tmp_path / "crawl") as crawl:
        known = {path: crawl.page(site.root + path) for path in asked}
        for number in range(PAGES):
            page = known[f"/{number}"]
            assert (page.state, page.crawls, page.status, page.score) == ("crawled", 1, 200, 0.5)
            assert page.content_hash == (258).to_bytes(8, "little")
        assert (known["/gone"].state, known["/gone"].status) == ("gone", 404)
        assert (known["/broken"].state, known["/broken"].errors) == ("failed", 3)
        assert re.search("Fail|Never|Lost|Conn", known["/broken"].error)
        assert (known["/busy"].state, known["/busy"].errors) == ("crawled", 0)
        assert known["/crash"].state == "crawled"
        assert crawl.page(f"{site.root}/0?from-crash").state == "crawled"
        assert [known[path].state for path in ("/twice", "/moved", "/target")] == [
            "merged",
            "merged",
            "crawled",
        ]
        assert known["/cookie"].state == "crawled"
        private = crawl.page(f"{site.root}/private")
        assert (private.state, private.error) == ("excluded", "IgnoreRequest")
        assert (known["/loop"].state, known["/loop"].error) == ("excluded", "dropped by a middleware")
        assert crawl.page(f"{site.root}/post") is None
        assert crawl.due_in() is None


@pytest.mark.slow
def test_a_crawl_that_is_killed_goes_on_where_it_was(tmp_path: Path, site: Site, start: Start):
    held, go = threading.Event(), threading.Event()

    def hold(page: Answer, _: Asked) -> Answer:
        if numbers(site.counts()).total() <= HELD_AFTER:
            return page
        held.set()
        return page._replace(gate=go)

    site.pages |= {path: partial(hold, page) for path, page in numbers(site.pages).items()}
    spider = start()
    assert held.wait(PATIENCE), (tmp_path / "log").read_text()
    spider.kill()
    spider.wait()
    with Crawl(tmp_path / "crawl") as crawl:
        crawled = {f"/{k}" for k in range(PAGES) if (page := crawl.page(f"{site.root}/{k}")) and page.crawls}
    assert len(crawled) >= HELD_AFTER - 15  # but for those under way
    before = site.counts()
    go.set()
    spider = start()
    stats = stats_of(spider)
    assert stats["finish_reason"] == "finished", (tmp_path / "log").read_text()
    after = numbers(site.counts() - before)
    assert not crawled & after.keys()
    assert crawled | after.keys() == {f"/{k}" for k in range(PAGES)}
    assert max(after.values()) == 1


@pytest.mark.slow
def test_scrapys_own_retries_go_through(site: Site, start: Start, tmp_path: Path):
    site.pages[ROBOTS] = Answer(raw=b"")  # it cannot be read, which is no business of Frontera's
    spider = start(RETRY_ENABLED=True, RETRY_TIMES=1, INLINK_MAX_RETRIES=1)
    stats = stats_of(spider)
    log = (tmp_path / "log").read_text()
    assert stats["finish_reason"] == "finished", log
    assert "is not a method of" not in log
    assert stats["frontera/request_errors_count"] == 2
    assert (site.counts()["/busy"], site.counts()["/private"]) == (2, 1)
    with Crawl(tmp_path / "crawl") as crawl:
        assert crawl.page(f"{site.root}/busy").state == "crawled"
        broken = crawl.page(f"{site.root}/broken")
        assert broken.errors == 2  # a failed download is the crawl's to try again
        assert (broken.depth, broken.score) == (1, pytest.approx(1 / 9))  # and did not become a seed


@pytest.mark.slow
def test_the_settings_block_of_aduanas_article_crawls(tmp_path: Path, site: Site, start: Start):
    (tmp_path / "seeds.txt").write_text(f"# seeds\n{site.root}/20\n")
    (tmp_path / "block.py").write_text(
        "BACKEND = 'inlink.frontera.Backend'\nMAX_NEXT_REQUESTS = 10\nBC_MIN_HOSTS = 3\n"
    )
    middlewares = {
        "frontera.contrib.scrapy.middlewares.seeds.file.FileSeedLoader": 1,
        "inlink.frontera.SchedulerSpiderMiddleware": 999,
    }
    spider = start(
        SPIDER_MIDDLEWARES=middlewares, SEEDS_SOURCE="seeds.txt", FRONTERA_SETTINGS="block", BACKEND=None
    )
    stats = stats_of(spider)
    log = (tmp_path / "log").read_text()
    assert stats["finish_reason"] == "finished", log
    assert numbers(site.counts()) == Counter(f"/{k}" for k in range(PAGES))
    assert log.count("settings without effect in inlink: BC_MIN_HOSTS (docs/migration.md") == 1
