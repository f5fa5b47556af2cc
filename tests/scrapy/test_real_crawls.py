"""Crawls of real sites from end to end, by ``inlink crawl`` in a process of its own.

What is checked is what the sites' own log says, what Scrapy's own crawler finds, and topics fixed beforehand
(:data:`websites.TOPICS`). Skipped where a Debian package is absent.
"""

import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest

import websites
from crawlcommand import begin, crawl
from patience import wait_until
from websites import SITES, TOPICS, WebServer

sys.path.insert(0, str(Path(__file__).parents[2] / "demo"))

from harvest import visited
from webserver import Request, read_log

pytestmark = pytest.mark.slow

# The two smaller sites. robots.txt forbids a part of each, and allows one page in it.
SMALL = [site for site in SITES if site.name in ("apache", "anarchism")]
FORBIDDEN = {"apache": "/en/howto/", "anarchism": "/secH"}
# These parts are left out to keep the test short.
LEFT_OUT = {"apache": ["/en/mod/", "/en/rewrite/"], "anarchism": ["/secA", "/secB", "/secC", "/append"]}
ALLOWED = ("127.0.0.2", "/en/howto/auth.html")
HOSTS = [site.host for site in SITES]


@pytest.fixture(scope="module", autouse=True)
def _packages():
    pytest.importorskip("scrapy")
    absent = [site.package for site in SITES if site not in websites.sites()]
    if absent:
        pytest.skip(f"Debian packages absent: {', '.join(absent)}")


@contextmanager
def apart(
    folder: Path, robots: Mapping[str, str] | None = None, sites: Iterable[websites.Site] = SITES
) -> Iterator[tuple[list[str], Path]]:
    """Serve sites. Yield their front pages and the file with the log of requests."""
    rules = robots or {}
    handlers = {site.host: websites.static(site.root, rules.get(site.name, site.robots)) for site in SITES}
    log = folder / "requests.log"
    with WebServer(handlers, log=log) as server:
        yield [site.url(server.port) for site in sites], log


def arguments(seeds: Iterable[str], *options: object) -> list[object]:
    return [*seeds, "-o", "c", "--domains", ",".join(HOSTS), "--delay", 0, *options]


def place(url: str) -> tuple[str, str]:
    """A URL without its port; ``<a href="\\">`` is / for browsers, and // for Scrapy."""
    parts = urlsplit(url)
    return str(parts.hostname), re.sub("/+", "/", parts.path) + (f"?{parts.query}" if parts.query else "")


def pages(requests: Iterable[Request]) -> list[tuple[str, str]]:
    return [(one.host, one.path) for one in requests if one.path != websites.ROBOTS]


def test_all_is_reached_once_and_nothing_forbidden_across_a_kill(tmp_path):
    """Killed in the middle and started again, a crawl has what Scrapy's own has, and asks for no page twice: but for
    the one of each host that it had in hand when it died."""
    (tmp_path / "theirs").mkdir()
    rules = {
        site.name: (site.robots or "User-agent: *\n")
        + "".join(f"Disallow: {path}\n" for path in [FORBIDDEN[site.name], *LEFT_OUT[site.name]])
        for site in SMALL
    }
    rules["apache"] += f"Allow: {ALLOWED[1]}\n"
    hosts = [site.host for site in SMALL]
    with (
        apart(tmp_path, rules, SMALL) as (seeds, log),
        apart(tmp_path / "theirs", rules, SMALL) as (their_seeds, _),
        ThreadPoolExecutor(1) as beside,
    ):
        theirs = beside.submit(websites.reachable, their_seeds, hosts)
        # Another moment in each run.
        kill_at = 20 + os.getpid() % 50
        print("killed after", kill_at, "requests")
        with begin(*arguments(seeds, "--agent", "first"), cwd=tmp_path) as run:
            wait_until(lambda: len(read_log(log)) >= kill_at, f"{kill_at} requests")
            assert run.poll() is None, run.err
        done = crawl(*arguments(seeds, "--agent", "second"), cwd=tmp_path)
        before, after = ([one for one in read_log(log) if one.agent == run] for run in ("first", "second"))
        expected = {place(url) for url in theirs.result()}
    assert done.stdout.endswith("; nothing more to fetch now\n")
    assert done.stderr == ""

    reached = {place(url) for url in visited(tmp_path / "c")}
    assert len(expected) > 100
    assert expected <= reached
    assert reached <= {(one.host, one.path) for one in [*before, *after] if one.status == 200}

    for run in (before, after):
        assert [key for key, times in Counter((one.host, one.path) for one in run).items() if times > 1] == []
    again = set(pages(before)) & set(pages(after))
    assert again <= {[page for page in pages(before) if page[0] == host][-1] for host in hosts}

    known = (tmp_path / "c" / "urls.txt").read_text()
    for site, seed in zip(SMALL, seeds, strict=True):
        assert urljoin(seed, FORBIDDEN[site.name]) in known  # links to what is forbidden were found
        for run in (before, after):
            mine = [one.path for one in run if one.host == site.host]
            assert mine[:1] == [websites.ROBOTS][: len(mine)]  # first, where the host was asked at all
            asked = {path for path in mine if path.startswith(FORBIDDEN[site.name])}
            assert {(site.host, path) for path in asked} <= {ALLOWED}
    assert ALLOWED in reached


def test_delays_are_held(tmp_path):
    """The last of n requests to a host comes at least n - 2 delays after the first.

    One delay is left out, because something may hold up the first request on its way.
    """
    delay, longer = 0.2, 0.4
    with apart(tmp_path, {"anarchism": f"User-agent: *\nCrawl-delay: {longer}\n"}) as (seeds, log):
        crawl(*arguments(seeds, "--delay", delay, "--pages", 60), cwd=tmp_path)
        requests = read_log(log)
    times = defaultdict(list)
    for one in requests:
        if one.path != websites.ROBOTS:
            times[one.host].append(one.time)
    assert sorted(times) == HOSTS
    for site in SITES:
        mine = times[site.host]
        least = longer if site.name == "anarchism" else delay
        assert len(mine) > 3
        for n in range(2, len(mine)):
            spans = [mine[k + n] - mine[k] for k in range(len(mine) - n)]
            assert min(spans) >= (n - 1) * least, (site.name, n)


# -- topics -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def web(tmp_path_factory):
    with apart(tmp_path_factory.mktemp("web")) as (seeds, _):
        yield seeds


# `make soak` tries the other topics.
QUICK = "replication"


def first_pages(folder: Path, seeds: list[str], *options: object) -> list[str]:
    """Return the first twentieth of the pages of all sites, in the order of a crawl.

    One request at a time: with more, hosts are asked in turns, each for a quarter, whatever the policy.
    """
    roots = [site.root / "en" if site.name == "apache" else site.root for site in SITES]
    count = sum(1 for root in roots for _ in root.rglob("*.html")) // 20
    crawl(*arguments(seeds, "--concurrency", 1, "--pages", count, *options), cwd=folder)
    return visited(folder / "c")[:count]


@pytest.fixture(scope="module")
def breadth_first(web, tmp_path_factory):
    return first_pages(tmp_path_factory.mktemp("breadth"), web, "--policy", "breadth-first")


@pytest.mark.parametrize(
    "topic",
    [
        pytest.param(topic, id=topic.name, marks=[] if topic.name == QUICK else pytest.mark.soak)
        for topic in TOPICS
    ],
)
def test_a_topic_crawl_finds_twice_as_much_at_once(topic, web, breadth_first, tmp_path):
    """With nothing but the topic's description, and what ``inlink crawl`` does with one by itself."""
    order = first_pages(tmp_path, web, "--topic", topic.description)
    assert len(order) == len(set(order)) == len(breadth_first) > 100
    assert len(topic.relevant(order)) >= 2 * max(len(topic.relevant(breadth_first)), 1)
