"""Crawls of real sites from end to end, by ``inlink crawl`` in a process of its own; the sites are in another.

What is checked is what the sites' own log says, what Scrapy's own crawler finds, and topics fixed beforehand
(:data:`websites.TOPICS`). Skipped where a Debian package is absent.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest

import websites
from crawlcommand import LOOPBACK
from websites import SITES, TOPICS, WebServer

sys.path.insert(0, str(Path(__file__).parents[2] / "demo"))

from harvest import visited
from webserver import Request, read_log

pytestmark = pytest.mark.slow

# The two smaller sites. robots.txt forbids a part of each, and allows one page in it.
SMALL = [site for site in SITES if site.name in ("apache", "anarchism")]
FORBIDDEN = {"apache": "/en/howto/", "anarchism": "/secH"}
ALLOWED = ("127.0.0.2", "/en/howto/auth.html")
HOSTS = [site.host for site in SITES]
PATIENCE = 300  # seconds, for a crawl on a busy machine


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
    """Serve sites from another process. Yield their front pages and the file with the log of requests."""
    log = folder / "requests.log"
    command = [sys.executable, __file__, str(log), json.dumps(robots or {})]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = process.stdout.readline()
        try:
            yield [site.url(int(port)) for site in sites], log
        finally:
            process.stdin.close()  # at which it ends


def serve(log: str, robots: str) -> None:
    """The other process."""
    rules = json.loads(robots)
    handlers = {site.host: websites.static(site.root, rules.get(site.name, site.robots)) for site in SITES}
    with WebServer(handlers, log=Path(log)) as server:
        print(server.port, flush=True)
        sys.stdin.read()


def command(folder: Path, seeds: Iterable[str], *given: object) -> list[str]:
    own = ["-o", str(folder), "--domains", ",".join(HOSTS)]
    return [sys.executable, "-m", "inlink", "-q", "crawl", *seeds, *own, *LOOPBACK, *map(str, given)]


def crawl(folder: Path, seeds: Iterable[str], *given: object) -> str:
    """``inlink crawl``, to its end; returns what it says."""
    done = subprocess.run(command(folder, seeds, *given), capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def crawl_until_killed(log: Path, requests: int, folder: Path, seeds: Iterable[str], *given: object) -> None:
    """The same, up to a ``kill -9`` when so many requests have been made."""
    with subprocess.Popen(command(folder, seeds, *given), stdout=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + PATIENCE
            while len(read_log(log)) < requests:
                assert process.poll() is None, "it ended before it could be killed"
                assert time.monotonic() < deadline
                time.sleep(0.02)
        finally:
            process.kill()


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
        site.name: (site.robots or "User-agent: *\n") + f"Disallow: {FORBIDDEN[site.name]}\n"
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
        kill_at = 60 + os.getpid() % 150
        print("killed after", kill_at, "requests")
        crawl_until_killed(log, kill_at, tmp_path / "c", seeds, "--delay", 0, "--agent", "first")
        said = crawl(tmp_path / "c", seeds, "--delay", 0, "--agent", "second")
        before, after = ([one for one in read_log(log) if one.agent == run] for run in ("first", "second"))
        expected = {place(url) for url in theirs.result()}
    assert said.endswith("; nothing more to fetch now\n")

    reached = {place(url) for url in visited(tmp_path / "c")}
    assert len(expected) > 250
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
    delay, longer = 0.25, 0.75
    with apart(tmp_path, {"anarchism": f"User-agent: *\nCrawl-delay: {longer}\n"}) as (seeds, log):
        crawl(tmp_path / "c", seeds, "--delay", delay, "--pages", 80)
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


def first_tenth(folder: Path, seeds: list[str], *given: object) -> list[str]:
    """The first pages of a crawl, in its order: a tenth of all that the sites have.

    One request at a time: with more, hosts are asked in turns, each for a quarter, whatever the policy.
    """
    roots = [site.root / "en" if site.name == "apache" else site.root for site in SITES]
    tenth = sum(1 for root in roots for _ in root.rglob("*.html")) // 10
    crawl(folder, seeds, "--delay", 0, "--concurrency", 1, "--pages", tenth, *given)
    return visited(folder)[:tenth]


@pytest.fixture(scope="module")
def breadth_first(web, tmp_path_factory):
    return first_tenth(tmp_path_factory.mktemp("breadth") / "c", web, "--policy", "breadth-first")


@pytest.mark.parametrize(
    "topic",
    [
        pytest.param(topic, id=topic.name, marks=[] if topic.name == QUICK else pytest.mark.soak)
        for topic in TOPICS
    ],
)
def test_a_topic_crawl_finds_twice_as_much_at_once(topic, web, breadth_first, tmp_path):
    """With nothing but the topic's description, and what ``inlink crawl`` does with one by itself."""
    order = first_tenth(tmp_path / "c", web, "--topic", topic.description)
    assert len(order) == len(set(order)) == len(breadth_first) > 200
    assert len(topic.relevant(order)) >= 2 * max(len(topic.relevant(breadth_first)), 1)


if __name__ == "__main__":
    serve(*sys.argv[1:])
