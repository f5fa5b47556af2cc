"""Politeness, from the site's own log: robots.txt, delays, concurrency, and what a host asks for."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from scrapy import Request

from inlink import CrawlView
from sites import ROBOTS, Answer, Asked, Site, html, spacing
from spiderruns import Walker, crawl

pytestmark = pytest.mark.slow


def many(count: int, delay: float = 0.0) -> dict[str, Answer]:
    """/ links to so many pages."""
    return {"/": html(*[f"/{k}" for k in range(count)]), **{f"/{k}": html(delay=delay) for k in range(count)}}


def robots(*lines: str, delay: float = 0.0) -> Answer:
    return Answer("\n".join(["User-agent: *", *lines]), headers={"Content-Type": "text/plain"}, delay=delay)


def test_many_forbidden_pages_at_once(tmp_path):
    """Scrapy's own middleware lets some of them through while robots.txt is on its way."""
    forbidden = [f"/private/{k}" for k in range(8)]
    pages = {ROBOTS: robots("Disallow: /private", delay=0.3), "/public": html()}
    with Site({**pages, **{path: html() for path in forbidden}}) as site:
        ran = crawl(Walker, tmp_path / "c", site, [*forbidden, "/public"], ROBOTSTXT_OBEY=True)
        assert [one.path for one in site.asked] == [ROBOTS, "/public"]
    assert ran.states == {**dict.fromkeys(forbidden, "excluded"), "/public": "crawled"}
    assert {page.error for page in ran.pages.values()} == {None, "Forbidden by robots.txt"}
    assert ran.stats["robotstxt/forbidden"] == 8
    assert ran.stats["robotstxt/request_count"] == 1


@pytest.mark.parametrize("trouble", ["5xx", "429", "cut"])
def test_a_robots_txt_that_cannot_be_had(tmp_path, trouble):
    """Nothing is fetched until the host answers, and no page is lost by that."""
    bad = {"5xx": Answer("", 500), "429": Answer("", 429), "cut": Answer(raw=b"HTTP/1.1 200 OK\r\n")}[trouble]
    left = [bad] * 5

    def says(_: Asked) -> Answer:
        return left.pop() if left else robots("Disallow: /3")

    with Site({**many(12), ROBOTS: says}) as site:
        ran = crawl(Walker, tmp_path / "c", site, ROBOTSTXT_OBEY=True, RETRY_TIMES=1, INLINK_MAX_RETRIES=9)
        asked = [one.path for one in site.asked]
    assert asked[:6] == [ROBOTS] * 6
    assert sorted(asked[6:]) == sorted(["/", *[f"/{k}" for k in range(12) if k != 3]])
    assert ran.states.pop("/3") == "excluded"


def test_a_robots_txt_that_fails_for_many_pages_at_once(tmp_path):
    """Eight failures in a row park a host for a day: those who wait for one robots.txt have seen one failure."""
    left = [Answer("", 503, delay=0.1)] * 2

    def says(_: Asked) -> Answer:
        return left.pop() if left else robots()

    with Site({**many(20), ROBOTS: says}) as site:
        starts = [f"/{k}" for k in range(20)]
        ran = crawl(Walker, tmp_path / "c", site, starts, ROBOTSTXT_OBEY=True, RETRY_ENABLED=False)
    assert ran.crawled == set(starts)
    assert ran.stats["inlink/failed"] == 2
    assert site.counts() == dict.fromkeys(starts, 1)


@pytest.mark.parametrize("throttle", [False, True])
def test_crawl_delay(tmp_path, throttle):
    """It holds for what was handed out before it was known, against AutoThrottle, and in the next run."""
    delay = 0.25
    with Site(many(14), hosts=2) as site:
        site.pages[ROBOTS] = lambda asked: robots(
            f"Crawl-delay: {delay}" if asked.host == "127.0.0.1" else ""
        )
        starts = [site.url(f"/{k}", host) for k in range(5) for host in (1, 2)]
        more = {"AUTOTHROTTLE_ENABLED": throttle, "AUTOTHROTTLE_START_DELAY": 0.01}
        crawl(Walker, tmp_path / "c", site, starts, ROBOTSTXT_OBEY=True, DOWNLOAD_DELAY_JITTER=0.5, **more)
        assert len(site.times(1)) == len(site.times(2)) == 5
        assert spacing(site.times(1)) >= delay
        # AutoThrottle and a busy machine may hold up requests to the other host too. So its gaps prove nothing.
        delays = {host.name: host.delay for host in CrawlView.open(tmp_path / "c").hosts().rows}
        assert delays["127.0.0.1"] == delay > delays["127.0.0.2"]
        # This run does not read robots.txt, but the crawl knows the delay.
        crawl(Walker, tmp_path / "c", site, [f"/{k}" for k in range(5, 9)])
        assert len(site.times(1)) == 9
        assert spacing(site.times(1)[5:]) >= delay


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after(tmp_path, status):
    """A host asks to be left alone: what was handed out already is taken back, the other host goes on."""
    refused: list[float] = []
    arrived: list[str] = []
    passed: list[str] = []
    lock = threading.Lock()

    def says(asked: Asked) -> Answer:
        if asked.host == "127.0.0.2":
            return html(delay=0.8)
        arrived.append(asked.path)
        with lock:
            if asked.path == "/5" and not refused:
                while len(arrived) - len(passed) < 4:  # as many wait behind it as may
                    time.sleep(0.01)
                time.sleep(1.0)  # and others wait in Scrapy's queue
                refused.append(time.monotonic())
                return Answer("", status, {"Retry-After": "3"})
            passed.append(asked.path)
        # Those that wait behind it answer late: by then even a slow spider has understood what the host asked for.
        return html(delay=2.0 if refused and asked.at < refused[0] else 0.0)

    pages = {f"/{k}": says for k in range(40)}
    with Site(pages, hosts=2) as site:
        starts = [site.url(f"/{k}", 1 + k // 30) for k in range(40)]
        ran = crawl(
            Walker,
            tmp_path / "c",
            site,
            starts,
            CONCURRENT_REQUESTS=12,
            CONCURRENT_REQUESTS_PER_DOMAIN=4,
            INLINK_POLICY="first-come",
        )
    assert len(ran.crawled) == 40
    assert ran.stats["inlink/released"] >= 1
    at = refused[0]
    assert not [when - at for when in site.times(1) if at < when < at + 3]
    assert [when - at for when in site.times(2) if at < when < at + 3]
    counts = site.counts()
    assert counts.pop("/5") == 2
    assert set(counts.values()) == {1}


@pytest.mark.parametrize(("answers", "said"), [
    ([Answer("", 503)], []),
    ([Answer("", 503)] * 3, ["status 503 twice in a row"]),
    ([Answer("", 429, {"Retry-After": "1"})] * 2, ["status 429, Retry-After '1'"]),
    ([Answer("", 403, {"Retry-After": "1"})], ["status 403, Retry-After '1'"]),
    ([Answer("", 503, {"Retry-After": "1"}), Answer("", 500)], ["status 503, Retry-After '1'", "status 500"]),
])  # fmt: skip
def test_the_log_names_a_host_that_is_held_back_once_for_each_reason(tmp_path, answers, said):
    left = list(answers)
    pages = {f"/{k}": lambda _: left.pop(0) if left else html() for k in range(12)}
    with Site(pages) as site:
        ran = crawl(Walker, tmp_path / "c", site, sorted(pages), CONCURRENT_REQUESTS_PER_DOMAIN=1)
    forbidden = sum(answer.status == 403 for answer in answers)
    assert len(ran.crawled) == 12 - forbidden
    lines = [line for line in ran.told("INFO") if "is held back for" in line]
    assert [line.partition(": ")[2] for line in lines] == said
    assert all(line.startswith("127.0.0.1 is held back for ") for line in lines)
    assert (ran.stats.get("inlink/host_held", 0) > 0) == bool(said)


class Mixed(Walker):
    """One request of the crawl's, and behind it some that are in Scrapy's own queue only."""

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.start_urls[0])
        while not self.crawler.engine.downloader.active:  # type: ignore[union-attr]
            await asyncio.sleep(0.01)
        for url in self.start_urls[1:]:
            yield Request(url, callback=lambda response: self.parse(response))


def test_only_what_is_the_crawls_is_taken_back(tmp_path):
    left = [Answer("", 503, {"Retry-After": "1"}, delay=0.5)]
    pages = {"/0": lambda _: left.pop() if left else html(), **{f"/{k}": html() for k in range(1, 5)}}
    with Site(pages) as site:
        starts = [f"/{k}" for k in range(5)]
        ran = crawl(Mixed, tmp_path / "c", site, starts, CONCURRENT_REQUESTS_PER_DOMAIN=1)
        assert site.asked[0].path == "/0"
    assert len(ran.items) == 5
    assert ran.stats["inlink/not_kept"] == 4


def test_download_delay(tmp_path):
    with Site(many(4), hosts=2) as site:
        starts = [site.url(f"/{k}", host) for k in range(4) for host in (1, 2)]
        crawl(Walker, tmp_path / "c", site, starts, DOWNLOAD_DELAY=0.2)
        assert min(spacing(site.times(1)), spacing(site.times(2))) >= 0.2
        assert len(site.times(1)) == len(site.times(2)) == 4
        assert spacing(site.times(1) + site.times(2)) < 0.2  # each host has its own


@pytest.mark.parametrize(("all_", "per_domain", "most"), [(3, 8, 3), (16, 2, 2), (1, 1, 1)])
def test_concurrency(tmp_path, all_, per_domain, most):
    with Site(many(20, delay=0.03)) as site:
        ran = crawl(
            Walker, tmp_path / "c", site, CONCURRENT_REQUESTS=all_, CONCURRENT_REQUESTS_PER_DOMAIN=per_domain
        )
    assert len(ran.crawled) == 21
    assert site.most == most


def test_autothrottle(tmp_path):
    """One request at a time, as the latency has it; without it there would be eight."""
    with Site(many(12, delay=0.05)) as site:
        ran = crawl(
            Walker,
            tmp_path / "c",
            site,
            AUTOTHROTTLE_ENABLED=True,
            AUTOTHROTTLE_START_DELAY=0.06,
            AUTOTHROTTLE_TARGET_CONCURRENCY=1.0,
        )
    assert len(ran.crawled) == 13
    assert site.most <= 3
