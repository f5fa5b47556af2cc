"""A crawl through Scrapy and Frontera 0.7.2 over loopback."""

import json
import re
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from inlink.crawl.crawl import Crawl
from patience import PATIENCE, finish

pytest.importorskip("scrapy", reason="scrapy is not installed: pip install 'inlink[frontera]'")
pytest.importorskip("frontera", reason="frontera 0.7.2 is not installed: pip install 'inlink[frontera]'")


PAGES = 60
HELD_AFTER = 25  # pages, in the crawl that is killed


def links_of(number: int) -> list[int]:
    """A tree with more links in it, so that every page is known by several."""
    found = [3 * number + k for k in (1, 2, 3)] + [(7 * number + 5) % PAGES, number, 0]
    return [one for one in found if one < PAGES]


class Site:
    """Pages /0 … /59, and some that fail, each in its own way."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.robots = True
        self.held, self.go = threading.Event(), threading.Event()
        self.go.set()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path
        self.asked[path] += 1
        status, body, headers = 200, "", {"Content-Type": "text/html"}
        if path == "/broken" or (path == "/robots.txt" and not self.robots):
            handler.close_connection = True
            return
        elif path == "/robots.txt":
            body = "User-agent: *\nDisallow: /private\n"
        elif path in ("/moved", "/twice", "/loop"):
            status, headers["Location"] = 302, {"/moved": "/target", "/twice": "/moved"}.get(path, "/loop")
        elif path == "/cookie":  # redirects to itself once
            if "seen=1" not in handler.headers.get("Cookie", ""):
                status, headers["Location"], headers["Set-Cookie"] = 302, "/cookie", "seen=1"
        elif path == "/busy":
            status, headers["Retry-After"] = (200, "0") if self.asked[path] > 1 else (503, "0")
        elif path == "/gone":
            status = 404
        elif path[1:].isdigit():
            if sum(numbers(self.asked).values()) > HELD_AFTER and not self.go.is_set():
                self.held.set()
                self.go.wait(PATIENCE)
            number = int(path[1:])
            more = (
                ["gone", "broken", "busy", "twice", "cookie", "private", "crash", "loop"]
                if number == 0
                else []
            )
            body = "".join(f'<a href="/{one}">{one}</a>' for one in [*links_of(number), *more])
        data = body.encode()
        try:
            handler.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(data)
        except OSError:
            pass  # the spider was killed

    def close(self) -> None:
        self.go.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def site() -> Iterator[Site]:
    one = Site()
    yield one
    one.close()


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

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path, site: Site) -> Iterator[Start]:
    """Start Scrapy in a process of its own."""
    script = tmp_path / "spider.py"
    script.write_text(textwrap.dedent(SPIDER))
    running: list[subprocess.Popen[str]] = []

    def begin(**settings: Any) -> "subprocess.Popen[str]":
        told = {
            "PAGE_DB_PATH": str(tmp_path / "crawl"),
            "SCORER": "HitsScorer",
            "USE_SCORES": True,
            **settings,
        }
        argv = [sys.executable, str(script), f"{site.url}/", json.dumps(told)]
        log = (tmp_path / "log").open("a")
        one = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=log, text=True, cwd=tmp_path)
        log.close()
        running.append(one)
        return one

    yield begin
    for one in running:
        if one.poll() is None:
            one.kill()
        one.wait()
        one.stdout.close()


def numbers(counter: Counter[str]) -> Counter[str]:
    return Counter({path: count for path, count in counter.items() if path[1:].isdigit()})


@pytest.mark.slow
def test_a_site_is_crawled_each_page_once_and_failures_are_kept(tmp_path: Path, site: Site, start: Start):
    spider = start()
    stats = json.loads(finish(spider)[0].splitlines()[-1])
    assert stats["finish_reason"] == "finished", (tmp_path / "log").read_text()
    assert numbers(site.asked) == Counter(f"/{k}" for k in range(PAGES))
    assert site.asked["/private"] == 0
    assert site.asked["/post"] == 0
    assert {
        path: site.asked[path] for path in ("/gone", "/crash", "/moved", "/twice", "/target")
    } == dict.fromkeys(("/gone", "/crash", "/moved", "/twice", "/target"), 1)
    assert (site.asked["/busy"], site.asked["/cookie"], site.asked["/loop"]) == (2, 2, 4)
    assert site.asked["/broken"] >= 3  # Twisted asks a second time where a kept connection breaks
    assert stats["item_scraped_count"] == stats["frontera/crawled_pages_count/200"]

    with Crawl(tmp_path / "crawl") as crawl:
        known = {path: crawl.page(site.url + path) for path in site.asked if path != "/robots.txt"}
        for number in range(PAGES):
            page = known[f"/{number}"]
            assert (page.state, page.crawls, page.status, page.score) == ("crawled", 1, 200, 0.5)
            assert page.content_hash == (258).to_bytes(8, "little")
        assert (known["/gone"].state, known["/gone"].status) == ("gone", 404)
        assert (known["/broken"].state, known["/broken"].errors) == ("failed", 3)
        assert re.search("Fail|Never|Lost|Conn", known["/broken"].error)
        assert (known["/busy"].state, known["/busy"].errors) == ("crawled", 0)
        assert known["/crash"].state == "crawled"
        assert crawl.page(f"{site.url}/0?from-crash").state == "crawled"
        assert [known[path].state for path in ("/twice", "/moved", "/target")] == [
            "merged",
            "merged",
            "crawled",
        ]
        assert known["/cookie"].state == "crawled"
        private = crawl.page(f"{site.url}/private")
        assert (private.state, private.error) == ("excluded", "IgnoreRequest")
        assert (known["/loop"].state, known["/loop"].error) == ("excluded", "dropped by a middleware")
        assert crawl.page(f"{site.url}/post") is None
        assert crawl.due_in() is None


@pytest.mark.slow
def test_a_crawl_that_is_killed_goes_on_where_it_was(tmp_path: Path, site: Site, start: Start):
    site.go.clear()
    spider = start()
    assert site.held.wait(PATIENCE), (tmp_path / "log").read_text()
    spider.kill()
    spider.communicate()
    with Crawl(tmp_path / "crawl") as crawl:
        crawled = {f"/{k}" for k in range(PAGES) if (page := crawl.page(f"{site.url}/{k}")) and page.crawls}
    assert len(crawled) >= HELD_AFTER - 15  # but for those under way
    before = site.asked.copy()
    site.go.set()
    spider = start()
    stats = json.loads(finish(spider)[0].splitlines()[-1])
    assert stats["finish_reason"] == "finished", (tmp_path / "log").read_text()
    after = numbers(site.asked - before)
    assert not crawled & after.keys()
    assert crawled | after.keys() == {f"/{k}" for k in range(PAGES)}
    assert max(after.values()) == 1


@pytest.mark.slow
def test_scrapys_own_retries_go_through(site: Site, start: Start, tmp_path: Path):
    site.robots = False  # it cannot be read, which is no business of Frontera's
    spider = start(RETRY_ENABLED=True, RETRY_TIMES=1, INLINK_MAX_RETRIES=1)
    stats = json.loads(finish(spider)[0].splitlines()[-1])
    log = (tmp_path / "log").read_text()
    assert stats["finish_reason"] == "finished", log
    assert "is not a method of" not in log
    assert stats["frontera/request_errors_count"] == 2
    assert (site.asked["/busy"], site.asked["/private"]) == (2, 1)
    with Crawl(tmp_path / "crawl") as crawl:
        assert crawl.page(f"{site.url}/busy").state == "crawled"
        broken = crawl.page(f"{site.url}/broken")
        assert broken.errors == 2  # a failed download is the crawl's to try again
        assert (broken.depth, broken.score) == (1, pytest.approx(1 / 9))  # and did not become a seed


@pytest.mark.slow
def test_the_settings_block_of_aduanas_article_crawls(tmp_path: Path, site: Site, start: Start):
    (tmp_path / "seeds.txt").write_text(f"# seeds\n{site.url}/20\n")
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
    stats = json.loads(finish(spider)[0].splitlines()[-1])
    log = (tmp_path / "log").read_text()
    assert stats["finish_reason"] == "finished", log
    assert numbers(site.asked) == Counter(f"/{k}" for k in range(PAGES))
    assert log.count("settings without effect in inlink: BC_MIN_HOSTS (docs/migration.md") == 1
