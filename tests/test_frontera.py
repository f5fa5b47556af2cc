"""A crawl through Scrapy and Frontera 0.7.2 over loopback, and Frontera's backend by itself."""

import json
import logging
import os
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
from inlink.errors import InUseError, OutputError, ParameterError
from patience import PATIENCE, finish

pytest.importorskip("scrapy", reason="scrapy is not installed: pip install 'inlink[frontera]'")
pytest.importorskip("frontera", reason="frontera 0.7.2 is not installed: pip install 'inlink[frontera]'")

import frontera
from frontera.core.models import Request, Response

from inlink.frontera import Backend

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
        start_urls = [seed + "0"]

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


# -- the backend by itself ---------------------------------------------------------------------------------------------

SEED = "http://a.com/"


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Frontera with our backend, and Frontera's own middlewares."""
    running: list[Any] = []

    def begin(**settings: Any) -> Any:
        told = {"BACKEND": "inlink.frontera.Backend", "PAGE_DB_PATH": str(tmp_path / "c"), **settings}
        one = frontera.FrontierManager.from_settings(frontera.Settings(attributes=told))
        running.append(one)
        return one

    yield begin
    for one in running:
        if not one._stopped:
            one.stop()


def request(url: str, method: str = "GET", **meta: Any) -> Request:
    return Request(url, method=method, meta={b"scrapy_meta": meta})


def answer(asked: Request, status: int = 200, headers: Any = None, **meta: Any) -> Response:
    asked.meta[b"scrapy_meta"].update(meta)
    return Response(asked.url, status, headers, request=asked)


def known(manager: Any, url: str) -> Any:
    return manager.backend._crawl.page(url)


def test_scores_and_hashes_arrive(manager):
    front = manager()
    front.add_seeds([request(SEED), request("http://b.com/", score=0.25), request("http://c.com/", "POST")])
    assert (known(front, SEED).score, known(front, "http://b.com/").score) == (1.0, 0.25)
    assert known(front, "http://c.com/") is None
    asked = front.get_next_requests()
    assert [one.url for one in asked] == [SEED, "http://b.com/"]
    assert asked[0].meta[b"scrapy_meta"] == {"depth": 0}
    front.page_crawled(answer(asked[0], score=0.75, content_hash=b"abc"))
    front.links_extracted(asked[0], [request("http://d.com/", score=2), request("http://e.com/")])
    page = known(front, SEED)
    assert (page.state, page.score, page.content_hash) == ("crawled", 0.75, b"abc")
    assert (known(front, "http://d.com/").score, known(front, "http://e.com/").score) == (2.0, 0.0)
    assert known(front, "http://d.com/").depth == 1


@pytest.mark.parametrize(
    ("given", "kept"), [(2**64 - 1, b"\xff" * 8), (-1, b"\xff" * 8), ("é", "é".encode())]
)
def test_a_content_hash_may_be_a_number_or_a_text(manager, given, kept):
    front = manager()
    front.add_seeds([request(SEED)])
    asked = front.get_next_requests()[0]
    front.page_crawled(answer(asked, content_hash=given))
    front.links_extracted(asked, [])
    assert known(front, SEED).content_hash == kept


@pytest.mark.parametrize("bad", [float("nan"), "high", None, 1e39])
def test_a_score_that_is_none_is_told_and_passed_over(manager, bad, caplog):
    front = manager()
    with caplog.at_level(logging.WARNING):
        front.add_seeds([request(SEED, score=bad)])
    assert known(front, SEED).score == 1.0
    assert f"{SEED}: score must be a finite number, not {bad!r}" in caplog.text


@pytest.mark.parametrize("then", ["next", "other", "stop", "error", "seed"])
def test_a_page_without_links_told_counts_when_anything_else_happens(manager, then, tmp_path):
    front = manager()
    front.add_seeds([request(SEED), request("http://b.com/")])
    first, second = front.get_next_requests()
    front.page_crawled(answer(first, score=0.5))
    assert known(front, SEED).state == "leased"
    assert not front.finished
    if then == "next":
        front.get_next_requests()
    elif then == "other":
        front.page_crawled(answer(second))
    elif then == "error":
        front.request_error(second, "TimeoutError")
    elif then == "seed":
        front.add_seeds([request("http://c.com/")])
    else:
        front.stop()
        with Crawl(tmp_path / "c") as crawl:
            assert crawl.page(SEED).score == 0.5
        return
    assert (known(front, SEED).state, known(front, SEED).score) == ("crawled", 0.5)


def test_failures_are_told_apart(manager):
    front = manager()
    urls = [f"http://{host}.com/" for host in "abcde"]
    front.add_seeds([request(url) for url in urls])
    asked = {one.url: one for one in front.get_next_requests()}
    front.request_error(asked[urls[0]], "DNSLookupError")
    front.request_error(asked[urls[1]], "IgnoreRequest")
    front.page_crawled(answer(asked[urls[2]], 410))
    front.links_extracted(asked[urls[2]], [request("http://x.com/")])
    front.page_crawled(answer(asked[urls[3]], 503, {"Retry-After": b"7"}))
    front.page_crawled(answer(asked[urls[4]], 403))
    pages = [known(front, url) for url in urls]
    assert [page.state for page in pages] == ["discovered", "excluded", "gone", "discovered", "failed"]
    assert [page.errors for page in pages if page.state != "excluded"] == [1, 1, 1, 1]
    assert (pages[0].error, pages[4].status) == ("DNSLookupError", 403)
    assert known(front, "http://x.com/") is None
    assert not front.finished
    front.request_error(asked[urls[4]], "again")  # it was answered for
    assert known(front, urls[4]).errors == 1


def test_what_a_middleware_sends_back_is_handed_out_again_with_its_lease(manager):
    front = manager()
    front.add_seeds([request(SEED)])
    asked = front.get_next_requests()[0]
    back = Request(SEED, headers={"X": "1"}, cookies={"c": "2"}, meta=asked.meta)
    front.add_seeds([back])
    assert not front.finished
    again = front.get_next_requests()[0]
    assert (again.url, again.headers, again.cookies) == (SEED, {"X": "1"}, {"c": "2"})
    assert front.get_next_requests() == []
    front.page_crawled(answer(again))
    front.links_extracted(again, [])
    assert known(front, SEED).crawls == 1
    front.add_seeds([Request(SEED, meta=asked.meta)])  # too late
    assert front.finished


@pytest.mark.parametrize("solver", ["Basic", "CorporateWebsiteFriendly"])
def test_a_redirect_is_followed_and_the_page_merged(manager, solver):
    front = manager(CANONICAL_SOLVER=f"frontera.contrib.canonicalsolvers.{solver}")
    front.add_seeds([request(SEED), request("http://b.com/")])
    first, second = front.get_next_requests()
    front.page_crawled(answer(second))
    front.links_extracted(second, [])
    for target in ("http://a.com/x", "http://a.com/y"):
        meta = {**first.meta, b"redirect_urls": [first.url]}
        front.add_seeds([Request(target, meta=meta)])
        (first,) = front.get_next_requests()
        assert first.url == target
    front.page_crawled(answer(first))
    front.links_extracted(first, [])
    states = [known(front, SEED + path).state for path in ("", "x", "y")]
    assert states == ["merged", "merged", "crawled"]
    assert front.finished


def test_a_redirect_to_a_page_that_was_fetched_ends_there(manager):
    front = manager()
    front.add_seeds([request(SEED), request("http://b.com/")])
    first, second = front.get_next_requests()
    front.page_crawled(answer(second))
    front.links_extracted(second, [])
    front.add_seeds([Request("http://b.com/", meta={**first.meta, b"redirect_urls": [SEED]})])
    assert front.get_next_requests() == []
    assert known(front, SEED).merged_into == "http://b.com/"
    assert front.finished


def test_requests_that_are_not_of_the_crawl_are_passed_over(manager):
    front = manager()
    stray = request("http://stray.com/")
    front.request_error(stray, "TimeoutError")
    front.page_crawled(answer(stray))
    front.links_extracted(stray, [request("http://x.com/")])
    assert known(front, "http://stray.com/") is None
    assert front.finished


def test_what_is_out_waits_again_after_a_stop_and_after_a_death(manager, tmp_path):
    front = manager()
    front.add_seeds([request(SEED)])
    assert len(front.get_next_requests()) == 1
    front.stop()
    with Crawl(tmp_path / "c") as crawl:
        assert crawl.page(SEED).state == "discovered"
        assert crawl.next(1)  # left out, as by a process that died
    front = manager()
    # Nobody can say that the other caller is dead: its lease holds until it expires, and the crawl is not over.
    assert front.get_next_requests() == []
    assert not front.finished


def test_a_url_is_fetched_as_it_was_given(manager):
    front = manager()
    front.add_seeds([request("http://user:secret@a.com/#top")])
    assert [one.url for one in front.get_next_requests()] == ["http://user:secret@a.com/#top"]


def test_a_crawl_ends_where_nothing_is_due_soon(manager):
    front = manager(INLINK_MAX_WAIT=50.0, INLINK_RETRY_SECONDS=100.0)
    front.add_seeds([request(SEED), request("http://b.com/")])
    first, second = front.get_next_requests()
    front.request_error(first, "TimeoutError")
    assert not front.finished  # the other one is out
    front.page_crawled(answer(second))
    front.links_extracted(second, [])
    assert front.finished
    assert known(front, SEED).state == "discovered"


def test_a_forgotten_request_is_excluded_once_and_an_answered_one_is_not(manager):
    front = manager()
    front.add_seeds([request(f"http://{host}.com/") for host in "abc"])
    first, second, third = front.get_next_requests()
    front.page_crawled(answer(first))
    front.add_seeds([Request(third.url, meta=third.meta)])  # a retry: the first request for it is let go of
    (again,) = front.get_next_requests()
    front.backend.forgotten += [first, second, third]
    assert not front.finished
    states = [known(front, f"http://{host}.com/").state for host in "abc"]
    assert states == ["crawled", "excluded", "leased"]
    front.backend.forgotten.append(again)
    assert front.finished


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("INLINK_POLITENESS", {"delays": 1}, "INLINK_POLITENESS: no setting is called 'delays'"),
        ("INLINK_REVISIT", {"seconds": 1}, "INLINK_REVISIT"),
        ("INLINK_RULES", {"denied": []}, "INLINK_RULES"),
        ("INLINK_DAMPING", {"a": 1}, "INLINK_DAMPING"),
    ],
)
def test_dicts_that_say_nothing_are_refused(manager, setting, value, said):
    with pytest.raises(ParameterError, match=said):
        manager(**{setting: value})


def test_objects_may_be_dicts(manager):
    front = manager(
        INLINK_POLITENESS={"delay": 2.0},
        INLINK_RULES={"deny": ["x"]},
        INLINK_REVISIT={"schedule": "FixedInterval", "seconds": 5.0},
    )
    found = front.backend._crawl.settings
    assert (found.politeness.delay, found.politeness.soft_rate) == (2.0, 0.25)
    assert found.rules.deny == ("x",)
    assert front.backend._crawl.settings.revisit.seconds == 5.0


def test_own_settings_win_over_aduanas(manager, tmp_path):
    front = manager(
        SCORER="HitsScorer",
        INLINK_CRAWL=str(tmp_path / "other"),
        INLINK_CROSS_DOMAIN_ONLY=False,
        INLINK_LEASE_SECONDS=7.0,
    )
    found = front.backend._crawl.settings
    assert (found.policy, found.cross_domain_only, found.lease_seconds) == ("hits", False, 7.0)
    assert found.politeness.hard_rate == 100.0
    assert (tmp_path / "other" / "events.log").exists()


def test_without_a_folder_the_crawl_is_temporary(manager, caplog):
    with caplog.at_level(logging.WARNING):
        front = manager(PAGE_DB_PATH=None)
    assert "the crawl is forgotten at its end" in caplog.text
    folder = front.backend._crawl.folder
    assert folder.exists()
    front.stop()
    assert not folder.parent.exists()


def test_wrong_settings_and_a_folder_in_use_are_refused(manager):
    with pytest.raises(ParameterError, match="SCORER must be None or HitsScorer or PageRankScorer; got 'x'"):
        manager(SCORER="x")
    manager()
    with pytest.raises(InUseError, match=str(os.getpid())):
        manager()


def test_aduanas_page_database_is_not_overwritten(manager, tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "data.mdb").write_bytes(b"\0" * 4096)
    with pytest.raises(OutputError, match="exists and holds something else, not a crawl"):
        manager()
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["data.mdb"]


def test_the_backend_is_fronteras(manager):
    assert issubclass(Backend, frontera.Backend)
    assert manager().backend.name == "inlink"


def test_every_setting_of_fronteras_is_in_the_migration_guide():
    page = (Path(__file__).parents[1] / "docs" / "migration.md").read_text()
    told = set(re.findall(r"`([A-Z][A-Z_]+)`", page))
    beginnings = tuple(re.findall(r"`([A-Z_]+_)…`", page))
    assert len(told) > 60
    assert len(beginnings) >= 8
    names = {name for name in vars(frontera.settings.default_settings) if name.isupper()}
    assert not {name for name in names if name not in told and not name.startswith(beginnings)}
