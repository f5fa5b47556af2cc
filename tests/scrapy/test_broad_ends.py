"""A crawl ends when only pages are left that are due much later, and says which."""

import re
from pathlib import Path

import pytest

pytest.importorskip("scrapy")

from crawlcommand import crawl
from inlink.crawl.folder import look
from sites import ROBOTS, Answer, Asked, Site, html, moved
from spiderruns import Walker
from spiderruns import crawl as crawl_by_scrapy

pytestmark = pytest.mark.slow

SLOW = "User-agent: *\nCrawl-delay: 290\n"


def robots(asked: Asked) -> Answer:
    """The first host asks for a delay of minutes, the second for none."""
    text = SLOW if asked.host == "127.0.0.1" else ""
    return Answer(text, headers={"Content-Type": "text/plain"})


def states(folder: Path) -> dict[str, str]:
    pages = look(folder).pages
    return {pages.url(page): pages.page(page).state for page in range(pages.num_pages)}


def test_a_crawl_delay_does_not_hold_up_the_end(tmp_path):
    """The fast host is crawled to its end; of the slow one a page, and its others are left and named."""
    pages = {f"/{k}": html() for k in range(10)}
    with Site({**pages, ROBOTS: robots}, hosts=2) as site:
        site.pages["/"] = html(*(site.url(f"/{k}", host) for k in range(10) for host in (1, 2)))
        done = crawl(site.url("/", 2), "-o", "c", "--delay", 0, "--everywhere", cwd=tmp_path)
        assert len(site.times(2)) == 11
        assert len(site.times(1)) == 1
        assert re.search(
            r"; no page is due soon \(--max-wait\), 9 pages are left for later: 127\.0\.0\.1 9 \(in 2\d\d s\)$",
            done.stdout.strip(),
        ), done.stdout
        assert list(states(tmp_path / "c").values()).count("discovered") == 9
        again = crawl("-o", "c", "--delay", 0, cwd=tmp_path)  # the delay holds in the next run too
        assert "9 pages are left" in again.stdout
        assert len(site.times(1)) == 1


def test_a_redirect_on_a_slow_host_waits_in_the_crawl(tmp_path):
    with Site({"/": moved("/to"), "/to": html(), ROBOTS: robots}) as site:
        done = crawl(f"{site.root}/", "-o", "c", "--delay", 0, cwd=tmp_path, code=1)  # no page yet
        assert site.paths() == ["/"]
        assert "1 page is left for later: 127.0.0.1 1 (in 2" in done.stdout
    assert states(tmp_path / "c") == {f"{site.root}/": "merged", f"{site.root}/to": "discovered"}


def test_a_run_waits_for_as_long_as_it_is_told(tmp_path):
    with Site({"/": html("/a", "/b"), "/a": html(), "/b": html()}) as site:
        # On a slow machine, a page may take several of these seconds.
        site.pages[ROBOTS] = Answer("User-agent: *\nCrawl-delay: 9\n", headers={"Content-Type": "text/plain"})
        done = crawl(f"{site.root}/", "-o", "c", "--delay", 0, "--max-wait", 1, cwd=tmp_path)
        assert "2 pages are left for later" in done.stdout
        done = crawl(f"{site.root}/", "-o", "c", "--delay", 0, "--max-wait", 300, cwd=tmp_path)
        assert done.stdout.endswith("; nothing more to fetch now\n")
        assert site.counts() == {"/": 1, "/a": 1, "/b": 1}


def test_a_project_that_has_many_pages_of_a_slow_host_in_hand(tmp_path):
    """Requests that the downloader would hold for minutes are given back, and do not count as failed."""
    pages = {f"/{k}": html() for k in range(12)}
    with Site({**pages, ROBOTS: robots}, hosts=2) as site:
        starts = [site.url(f"/{k}", host) for k in range(12) for host in (1, 2)]
        ran = crawl_by_scrapy(Walker, tmp_path / "c", site, starts, ROBOTSTXT_OBEY=True)
        assert len(site.times(1)) == 1
        assert len(site.times(2)) == 12
    assert ran.reason == "finished"
    assert sorted(ran.states.values()) == ["crawled"] * 13 + ["discovered"] * 11
    (said,) = [line for line in ran.told("INFO") if "no page is due" in line]
    assert "(INLINK_MAX_WAIT); 11 pages are left for later: 127.0.0.1 11 (in 2" in said
