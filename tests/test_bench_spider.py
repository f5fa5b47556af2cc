"""The benchmark of Scrapy's door: the site, its server, each scheduler with each spider, and the table."""

import json
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import spider, tables
from bench.spiders import base
from bench.spidersite import CHILDREN, HOSTS, LINKS, Page, Pages, Site, speed
from bench.spidertable import spider_table

from inlink.scoring.reading import read_page
from inlink.urls.canonical import canonical
from patience import PATIENCE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


# -- the site ----------------------------------------------------------------------------------------------------


def wander(pages: Pages, choose: random.Random, steps: int) -> Iterator[tuple[Page, set[str]]]:
    """Pages in some order in which a spider might come to them, with the URLs that it knew before each."""
    known, waiting = {pages.root.url}, [pages.root]
    for _ in range(steps):
        page = waiting.pop(choose.randrange(len(waiting)))
        yield page, known
        new = [one for one in pages.links(page) if one.url not in known]
        known |= {one.url for one in new}
        waiting += new


@given(st.integers(0, 2**32))
def test_each_page_makes_sixteen_known_in_any_order(seed: int) -> None:
    pages = Pages(8080)
    for page, known in wander(pages, random.Random(seed), 60):
        links = [one.url for one in pages.links(page)]
        assert len(set(links)) == len(links) <= LINKS
        assert page.url not in links
        assert len(set(links) - known) == CHILDREN
        assert not set(links[-CHILDREN:]) & known


@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_a_page_is_the_same_whatever_order_they_are_asked_for_in(one: int, other: int) -> None:
    first: dict[str, str] = {}
    second: dict[str, str] = {}
    for found, seed in ((first, one), (second, other)):
        pages = Pages(8080)
        found |= {page.url: pages.html(page) for page, _ in wander(pages, random.Random(seed), 40)}
    both = first.keys() & second.keys()
    assert len(both) >= 1
    assert {url: first[url] for url in both} == {url: second[url] for url in both}


def test_pages_say_what_they_link_to_and_look_alike() -> None:
    pages = Pages(8080)
    hosts, sizes, local = set(), [], []
    for page, _ in wander(pages, random.Random(1), 400):
        text = pages.html(page)
        wanted = [one.url for one in pages.links(page)]
        response = HtmlResponse(page.url, body=text.encode())
        assert [link.url for link in LinkExtractor().extract_links(response)] == wanted
        reading = read_page(text.encode(), page.url)
        assert [link.url for link in reading.links] == wanted
        assert reading.canonical == canonical(page.url) == page.url
        assert pages.find("/" + page.url.split("/", 3)[3]) is page
        host = page.url.split("/")[2]
        hosts.add(host)
        local += [one.url.split("/")[2] == host for one in pages.children(page)]
        if page.parent is not None and page.parent.parent is not None:
            sizes.append(len(text))
            assert len(wanted) == LINKS
    assert len(hosts) == HOSTS
    assert 0.7 < sum(local) / len(local) < 0.85
    assert 9_500 < min(sizes) < max(sizes) < 11_500


def test_a_site_with_an_end() -> None:
    pages = Pages(8080, 2)
    order = list(wander(pages, random.Random(2), 1 + CHILDREN + CHILDREN**2))
    assert len({page.url for page, _ in order}) == len(order)
    assert all(not pages.children(page) for page, _ in order if page.depth == 2)


# -- its server --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site(1) as found:
        yield found


def ask(port: int, text: bytes, answers: int, host: str = "127.0.0.1") -> bytes:
    heard = b""
    with socket.create_connection((host, port), PATIENCE) as one:
        one.sendall(text)
        while heard.count(b"HTTP/1.1 ") < answers or not heard.endswith(b"\n"):
            heard += one.recv(1 << 16)
    return heard


def test_the_server_counts_what_it_sends(site: Site) -> None:
    site.tell("forget")
    before = time.monotonic()
    two = ask(site.port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /robots.txt HTTP/1.1\r\nHost: a\r\n\r\n", 2)
    assert two.count(b"HTTP/1.1 200 OK") == 2
    assert b"User-agent: *" in two
    body = two.partition(b"\r\n\r\n")[2].partition(b"HTTP/1.1")[0]
    assert b"Content-Length: %d\r\n" % len(body) in two
    same = Pages(site.port, 1)
    assert body.decode() == same.html(same.root)
    ask(site.port, b"GET / HTTP/1.1\r\n\r\n", 1, "127.0.0.7")
    told = site.tell("told")
    # The site notes the time of a page after it has sent it.
    after = time.monotonic()
    assert before < told.pop("first") <= told.pop("last") < after
    assert told.pop("left") == 16
    assert told.pop("cpu") >= 0
    assert told == {"pages": 2, "robots": 1, "missing": 0, "different": 1, "twice": 1}
    site.tell("mark")
    assert site.tell("wait 2 0.01") == {"pages": 0}
    with socket.create_connection(("127.0.0.1", site.port), 10) as sock:
        sock.sendall(b"GET /nothing HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n")
        assert site.tell("wait 1 10") == {"pages": 1}
        assert b"404 Not Found" in sock.recv(1 << 16)
    told = site.tell("told")
    assert (told["pages"], told["missing"], told["different"], told["twice"]) == (1, 1, 1, 2)


def test_speed_comes_to_as_many_pages_as_it_says() -> None:
    with Site() as endless:
        assert speed(endless, 300, 4) > 0
        told = endless.tell("told")
        assert (told["pages"], told["missing"], told["different"]) == (300, 0, 300)


# -- the schedulers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", spider.rows(base.ALL))
def test_each_scheduler_fetches_each_page_once(key: str, site: Site, tmp_path: Path) -> None:
    name, kind, *robots = key.split()
    site.tell("forget")
    told = spider._figures(spider.Spider(name, kind, bool(robots), site, 10**6, tmp_path, 120), site)
    assert told["said"] == []
    assert (told["reason"], told["different"], told["missing"]) == ("finished", 17, 0)
    again = name != "inlink"  # Scrapy's filter does not know where it began
    assert (told["pages"], told["twice"]) == (17 + again, again)
    assert told["not kept"] == 0
    pages = Pages(site.port, 1)
    hosts = {page.url.split("/")[2] for page in [pages.root, *pages.children(pages.root)]}
    assert site.tell("told")["robots"] == (len(hosts) if robots else 0)
    assert 0 < told["first"] < told["first"] + told["wall"] < told["whole"]
    assert told["cpu"] > 0
    assert told["peak"] >= told["memory"] > 1e7
    kept = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert ("requests.seen" in kept, "crawl/events.log" in kept) == (
        name == "scrapy_jobdir",
        name == "inlink",
    )


@pytest.mark.parametrize("name", ["scrapy_jobdir", "inlink"])
def test_crawls_that_are_gone_on_with(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spider, "AGAIN", 30)
    with Site() as endless:
        found = spider.restart(name, endless, 60, tmp_path, 120)
    assert found["stopped"]["pages"] >= 30
    assert found["stopped"]["twice"] == 0
    assert found["killed"]["first"] > 0
    if name == "inlink":
        assert found["killed"]["pages"] >= 30
        assert found["killed"]["twice"] < 60
    else:  # the queue was not written down, the filter was
        assert (found["killed"]["reason"], found["killed"]["pages"]) == ("finished", 1)
    assert list(tmp_path.iterdir()) == []


def test_failed_runs_are_named(site: Site, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"failed: 18 pages, then finished"):
        spider.crawl("scrapy_memory", "plain", False, site, 19, tmp_path, 120)
    with pytest.raises(RuntimeError, match="no scheduler 'none'"):
        spider.crawl("none", "plain", False, site, 18, tmp_path, 120)


# -- from end to end ---------------------------------------------------------------------------------------------


def test_a_comparison_becomes_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(spider, "WARM", 20)
    monkeypatch.setattr(spider, "speed", lambda site: 4321.4)
    options = ["--pages", "30", "--rounds", "1", "--restarts", "0", "--peers", "scrapy_memory"]
    spider.main([*options, "--data", str(tmp_path / "data"), "--results", str(tmp_path)])
    shown = capsys.readouterr().out
    assert shown.startswith("30 pages of 10 kB from 20 hosts on loopback")
    assert "481 URLs known at the end. The site sends 4,321 pages a second" in shown
    assert [line.split(" | ")[:3] for line in shown.splitlines() if line.startswith("| ")][2:6] == [
        ["| plain", "no", "Scrapy"],
        ["| carried", "no", "Scrapy"],
        ["| rules", "no", "Scrapy"],
        ["| plain", "yes", "Scrapy"],
    ]
    assert tables.tables(tmp_path) == {"spider": shown.rstrip("\n")}
    kept = json.loads((tmp_path / "spider.json").read_text())
    assert [len(row["runs"]) for row in kept["rows"].values()] == [1, 1, 1, 1]
    assert list((tmp_path / "data").iterdir()) == []


def told_by_hand() -> dict[str, object]:
    def run(pages: int, wall: float, cpu: float) -> dict[str, object]:
        figures = {"pages": pages, "wall": wall, "cpu": cpu, "ranking": 1.0, "disk": 2_500_000, "first": 0.5}
        return figures | {"peak": 150_000_000, "peak of children": 90_000_000, "twice": 7}

    def row(peer: str, kind: str, robots: bool, *runs: dict[str, object]) -> dict[str, object]:
        return {"peer": peer, "spider": kind, "robots": robots, "runs": list(runs)}

    peers = {
        "scrapy_memory": {"name": "Scrapy", "computes": "a"},
        "inlink": {"name": "inlink", "computes": "b"},
    }
    return {
        "pages": 1000,
        "known": 16001,
        "again": 500,
        "alone": 4000.0,
        "load": [0.1, 1.2],
        "machine": {"processor": "P", "cores": 2, "python": "3.11"},
        "peers": peers,
        "rows": {
            "scrapy_memory plain": row("scrapy_memory", "plain", False, run(1000, 10, 8), run(1000, 8, 8)),
            "inlink plain": row("inlink", "plain", False, run(1000, 5, 4), run(1000, 8, 6)),
            "inlink links": row("inlink", "links", False, run(1000, 4, 2), run(1000, 4, 2)),
            "inlink rules": row("inlink", "rules", False) | {"skipped": "failed: 3 requests were not kept"},
        },
        "restarts": {"inlink": [{"stopped": run(500, 1, 1), "killed": run(501, 1, 1) | {"first": 1.25}}]},
        "cold": {"cold": {"whole": 30.0, "first": 20.0}, "warm": {"whole": 9.0, "first": 1.5}},
    }


def test_the_table_is_what_the_figures_say() -> None:
    table = spider_table(told_by_hand())
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.splitlines()
        if line[:1] == "|"
    ]
    assert rows[2][3:8] == [
        "112 (100–125)",
        "1.00 (1.00–1.00)",
        "8.00 (8.00–8.00)",
        "1.00 (1.00–1.00)",
        "1.00",
    ]
    assert rows[3][3:8] == [
        "162 (125–200)",
        "1.50 (1.00–2.00)",
        "5.00 (4.00–6.00)",
        "0.62 (0.50–0.75)",
        "1.00",
    ]
    assert rows[3][8:] == ["150", "90", "2.5"]
    assert rows[4][4] == "2.25 (2.00–2.50)"  # beside the plain spider on Scrapy's own
    assert rows[7] == ["inlink", "0.50 (0.50–0.50)", "0.50 (0.50–0.50)", "7", "1.25 (1.25–1.25)", "501", "7"]
    assert "- Not in the table, rules on inlink: failed: 3 requests were not kept." in table
    assert "500 pages took 30.0 s, with the first request after 20.0 s; from then on 9.0 and 1.5 s." in table


def test_the_command_line_knows_it() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "bench", "spider", "--help"], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0
    assert "--restarts" in run.stdout
