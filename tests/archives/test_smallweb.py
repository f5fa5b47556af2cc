"""The small web serves what it says of itself; what the demo measures with it is right."""

import functools
import hashlib
import http.client
import re
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from random import Random
from urllib.parse import urljoin, urlsplit
from urllib.robotparser import RobotFileParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "demo"))

import harvest
import smallweb
import webplan
from smallweb import SmallWeb
from webserver import Reply, WebServer, read_log

import inlink
from inlink.archives.html import decode_html, html_links
from inlink.urls.canonical import Base, canonical
from patience import PATIENCE

DEMO = Path(__file__).parents[2] / "demo"
ALWAYS_200 = webplan.COUNTED.keys() - smallweb.ONCE.keys() | {
    "alias",
    "forbidden",
    "doubtful",
    "hidden",
    "orphan",
}


class Client:
    """One connection to each host, kept alive."""

    def __init__(self):
        self.connections = {}

    def get(self, url, method="GET", **headers):
        parts = urlsplit(url)
        line = self.connections.setdefault(
            parts.netloc, http.client.HTTPConnection(parts.netloc, timeout=PATIENCE)
        )
        line.request(method, url[url.index(parts.netloc) + len(parts.netloc) :] or "/", headers=headers)
        answer = line.getresponse()
        return answer, answer.read()

    def status(self, url):
        return self.get(url)[0].status

    def close(self):
        for line in self.connections.values():
            line.close()


def read(client, url):
    """The links of a page as a crawler sees them, and its text."""
    answer, body = client.get(url)
    charset = answer.headers.get_content_charset() if "charset" in answer.headers["Content-Type"] else None
    found = html_links(body, charset=charset)
    base = Base(url, found.base)
    return {base.canonical(link) for link in found.links}, decode_html(body, charset)


@pytest.fixture(scope="module")
def web():
    with SmallWeb(pages=300, hosts=9, seed=5) as web:
        yield web


@pytest.fixture
def client():
    with closing(Client()) as client:
        yield client


# -- the plan ------------------------------------------------------------------------------------------------------


def digest(web):
    rows = [
        web.html(node) if node.kind in webplan.COUNTED else node.kind + node.path
        for node in web.nodes.values()
    ]
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


@pytest.mark.slow
def test_the_same_numbers_give_the_same_bytes_in_any_process():
    script = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "from test_smallweb import digest, SmallWeb\nprint(digest(SmallWeb(200, 8, 3, port=8000)))"
    )
    other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert digest(SmallWeb(200, 8, 3, port=8000)) == other.stdout.strip()
    assert digest(SmallWeb(200, 8, 4, port=8000)) != other.stdout.strip()


@settings(max_examples=15)
@given(st.integers(200, 900), st.integers(8, 30), st.integers(0, 10**6))
def test_any_web_is_whole(pages, hosts, seed):
    if pages < 20 * hosts:
        with pytest.raises(ValueError, match="20 pages"):
            SmallWeb(pages, hosts, seed)
        return
    web = SmallWeb(pages, hosts, seed, port=8000)
    assert len(web.pages()) == pages
    assert 0 < len(web.relevant()) <= pages / 10
    assert web.relevant() <= web.pages()
    assert {web.kind_of(url) for kind in webplan.KINDS for url in web.of_kind(kind)} == set(webplan.KINDS)
    assert all(canonical(url) == url for url in (web.url(place) for place in web.nodes))
    # all that counts can be reached without nofollow, without what fails, and without other kinds
    seen, waiting = set(), [web.node(url) for url in web.seeds()]
    while waiting:
        node = waiting.pop()
        if node.kind in webplan.COUNTED and node.place not in seen:
            seen.add(node.place)
            if node.kind != "nofollow":
                waiting += [web.nodes[link.place] for link in node.links if not link.nofollow]
    assert {web.url(place) for place in seen} == web.pages()


@pytest.mark.slow
def test_its_shape_is_that_of_a_web():
    web = SmallWeb(port=8000)
    sizes = sorted(Counter(urlsplit(url).hostname for url in web.pages()).values(), reverse=True)
    assert len(sizes) == 11
    assert sizes[0] > 2 * sizes[1] > 2 * sizes[3]
    relevant = web.relevant()
    assert 0.05 < len(relevant) / 2000 <= 0.1
    assert len({urlsplit(url).hostname for url in relevant}) > 5
    pages = web.pages()
    near = [link in relevant for url in relevant for link in web.links(url) if link in pages]
    assert 0.35 < sum(near) / len(near) < 0.8  # a page's links keep to its topic, not all of them
    text = {url: web.html(web.node(url)) for url in web.pages() - set(web.of_kind("huge"))}
    said = {url for url, page in text.items() if len(re.findall(r"\b(bee|honey|hive)\b", page)) >= 2}
    assert len(said & relevant) > 0.8 * len(relevant)
    assert len(said - relevant) > 0.2 * len(relevant)  # words alone do not tell
    anchors = re.findall(r"<a [^>]*>([^<]*)</a>", "".join(text.values()))
    plain = sum(anchor in ("read more", "here", "click here", "this page", "next") for anchor in anchors)
    assert 0.05 < plain / len(anchors) < 0.3
    farm = web.of_kind("farm")
    assert all(len(set(web.links(url)) & set(farm)) >= 15 for url in farm)
    inlinks = Counter(link for url in pages for link in web.links(url))
    assert max(inlinks.values()) > 50  # hubs' opposites


# -- what is served ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_pages_are_what_the_truth_says(web, client):
    for node in list(web.nodes.values()):
        url = web.url(node.place)
        if node.kind not in ALWAYS_200 or node.kind == "doubtful":
            continue
        links, text = read(client, url)
        assert links == set(web.links(url)), url
        assert client.get(url)[0].status == 200
        assert node.title in text or node.kind in ("empty", "twin")


@pytest.mark.slow
def test_failing_pages_fail_as_planned(client):
    with SmallWeb(200, 8, 2) as web:
        for kind, first in smallweb.ONCE.items():
            for url in web.of_kind(kind):
                answer, _ = client.get(url)
                assert answer.status == first
                assert answer.headers["Retry-After"] == (None if kind == "flaky" else "1")
                assert [client.status(url), client.status(url)] == [200, 200]
        assert {client.status(url) for url in web.of_kind("broken")} == {500}
        assert {client.status(url) for url in web.of_kind("gone")} == {404, 410}
        assert client.status(web.url((0, "/nowhere"))) == 404
        with pytest.raises(http.client.RemoteDisconnected):
            Client().get(web.of_kind("hang")[0])
        assert web.log[-1].status == 0
        for url in web.of_kind("binary"):
            answer, body = client.get(url)
            assert answer.status == 200
            assert body.startswith(b"%PDF-")
            html_links(body)  # the one that is declared as HTML must not hurt


def test_redirects_lead_to_pages_and_loops_nowhere(web, client):
    hosts, statuses = set(), set()
    for url in web.of_kind("redirect"):
        here = url
        for _ in range(3):
            answer, _ = client.get(here)
            if answer.status == 200:
                break
            statuses.add(answer.status)
            here = urljoin(here, answer.headers["Location"])
        assert here in web.pages()
        hosts.add(urlsplit(here).hostname == urlsplit(url).hostname)
    assert (statuses, hosts) == ({301, 302}, {True, False})
    a, b = web.of_kind("loop")
    assert urljoin(a, client.get(a)[0].headers["Location"]) == b
    assert urljoin(b, client.get(b)[0].headers["Location"]) == a


def test_encodings_can_be_decoded_but_for_the_wrong_one(web, client):
    markers = [web.marker(url) for url in web.of_kind("encoded")]
    assert markers.count("") == 1
    for url, marker in zip(web.of_kind("encoded"), markers, strict=True):
        links, text = read(client, url)
        assert marker in text
        assert ("\ufffd" in text) == (not marker)
        assert links == set(web.links(url))


def test_twins_aliases_the_huge_and_the_empty(web, client):
    for url in web.of_kind("twin"):
        original = web.url(web.node(url).target)
        assert original != url
        assert client.get(url)[1] == client.get(original)[1]
        assert b"canonical" not in client.get(url)[1]
    for url in web.of_kind("alias"):
        target = re.search(r'<link rel="canonical" href="([^"]+)">', client.get(url)[1].decode())
        assert urljoin(url, target[1]) in web.pages()
        assert url not in web.pages()
    assert len(client.get(web.of_kind("huge")[0])[1]) >= smallweb.HUGE
    assert sorted(bool(client.get(url)[1]) for url in web.of_kind("empty")) == [False, True]
    for kind in ("noindex", "nofollow"):
        assert f'content="{kind}"'.encode() in client.get(web.of_kind(kind)[0])[1]
    hidden = set(web.of_kind("hidden"))
    nofollow = set(web.of_kind("nofollow"))
    for url in web.pages() - nofollow:
        kept = html_links(web.html(web.node(url)).encode(), nofollow=False)
        assert not {Base(url).canonical(link) for link in kept.links} & hidden
    assert hidden <= set(web.links(nofollow.pop()))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["calendar", "session"])
@pytest.mark.parametrize("seed", [1, 2])
def test_traps_never_end(web, client, kind, seed):
    rng, (url,) = Random(seed), web.of_kind(kind)
    seen = set()
    for _ in range(150):
        links, _ = read(client, url)
        assert links == set(web.links(url))
        assert web.kind_of(url) == kind
        assert web.topic_of(url) is None
        assert url not in web.pages()
        seen.add(url)
        fresh = sorted(links - seen)
        assert fresh
        url = rng.choice([one for one in fresh if "?d=" not in one])
    assert client.status(url) == 200


def test_the_shop_is_small_without_its_session_ids(web, client):
    (url,) = web.of_kind("session")
    seen, waiting = set(), [url]
    while waiting:
        one = waiting.pop()
        bare = re.sub(r"\?sid=\w+", "", one)
        if bare not in seen:
            seen.add(bare)
            waiting += read(client, one)[0]
    assert len(seen) == smallweb.ITEMS + 1


def test_robots_and_sitemap(web, client):
    roles = web.roles
    answers = {host: client.get(web.url((host, "/robots.txt"))) for host in range(len(web.hosts))}
    assert {host for host, (answer, _) in answers.items() if answer.status != 200} == {
        roles.shop,
        roles.unsure,
    }
    assert answers[roles.shop][0].status == 404
    assert answers[roles.unsure][0].status == 500
    rules = RobotFileParser()
    rules.parse(
        answers[roles.polite][1].decode().replace("0.2", "2").splitlines()
    )  # it knows whole seconds only
    assert rules.crawl_delay("any") == 2
    assert f"Crawl-delay: {smallweb.CRAWL_DELAY}".encode() in answers[roles.polite][1]
    of_polite = [url for url in web.pages() if urlsplit(url).hostname == web.hosts[roles.polite]]
    assert all(rules.can_fetch("any", url) for url in of_polite)
    assert not any(rules.can_fetch("any", url) for url in web.of_kind("forbidden"))
    assert web.of_kind("forbidden")
    assert set(web.of_kind("doubtful")).isdisjoint(web.pages())
    rules.parse(answers[roles.portal][1].decode().splitlines())
    (sitemap,) = rules.site_maps()
    rows = ET.fromstring(client.get(sitemap)[1]).iter("{http://www.sitemaps.org/schemas/sitemap/0.9}loc")
    found = {row.text for row in rows}
    assert set(web.of_kind("orphan")) <= found
    assert found == {
        url for url in web.pages() | set(web.of_kind("orphan")) if web.node(url).host == roles.portal
    }
    assert not any(set(web.of_kind("orphan")) & set(web.links(url)) for url in web.pages())


def test_hosts_are_separate(web, client):
    mine = next(url for url in web.pages() if web.node(url).host == 1 and web.node(url).path != "/")
    elsewhere = mine.replace("//127.0.0.2:", "//127.0.0.1:")
    assert client.status(mine) == 200
    assert client.status(elsewhere) == 404
    answer, _ = client.get(elsewhere, Host=urlsplit(mine).netloc)  # who says it is another is not believed
    assert answer.status == 404
    assert {request.host for request in web.log[-2:]} == {"127.0.0.1"}


def test_the_log_is_right(client, tmp_path):
    with SmallWeb(200, 8, log=tmp_path / "log") as web:
        asked = [*web.seeds(), web.url((1, "/shop/?sid=a%20b")), web.url((4, "/none"))]
        for url in asked:
            client.get(url, **{"User-Agent": "tést", "Referer": "http://x/?a=1"})
        log = web.log
    assert [(r.host, r.path, r.status) for r in log] == [
        ("127.0.0.1", "/", 200),
        ("127.0.0.3", "/", 200),
        ("127.0.0.2", "/shop/?sid=a%20b", 404),
        ("127.0.0.5", "/none", 404),
    ]
    assert {(r.agent, r.referer) for r in log} == {("tést", "http://x/?a=1")}
    assert all(a.time < b.time for a, b in pairwise(log))
    assert read_log(tmp_path / "log") == log


def test_a_web_in_another_process(tmp_path, client):
    with SmallWeb.apart(tmp_path / "log", 200, 8, 7) as web:
        for url in sorted(web.pages() - set(web.of_kind("huge")))[:40]:
            if web.kind_of(url) in ALWAYS_200:
                assert read(client, url)[0] == set(web.links(url))
        log = read_log(tmp_path / "log")
        assert len(log) > 30
        assert {request.status for request in log} == {200}
    with pytest.raises(OSError):
        Client().get(web.seeds()[0])  # it has ended with the block


def test_wrong_arguments_are_told_in_one_line():
    wrong = [sys.executable, DEMO / "smallweb.py", "--pages", "10"]
    done = subprocess.run(wrong, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "200 pages" in done.stderr


# -- the server ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_many_connections_at_a_time():
    hosts = [f"127.0.0.{k}" for k in range(1, 5)]
    told = {
        host: functools.partial(lambda host, path, _: Reply(body=f"{host}{path}".encode()), host)
        for host in hosts
    }
    with WebServer(told) as server, ThreadPoolExecutor(32) as pool:
        gate = threading.Barrier(32)

        def ask(worker):
            with closing(Client()) as client:
                gate.wait()
                for k in range(40):
                    url = f"{server.root(hosts[worker % 4])}{worker}/{k}"
                    answer, body = client.get(url)
                    assert answer.status == 200
                    assert body.decode() == f"{hosts[worker % 4]}/{worker}/{k}"
                return client.connections.values().__len__()

        assert list(pool.map(ask, range(32))) == [1] * 32
        assert len(server.log) == 32 * 40
        for worker in range(32):  # each connection's requests came in their order
            mine = [request.path for request in server.log if request.path.startswith(f"/{worker}/")]
            assert mine == [f"/{worker}/{k}" for k in range(40)]


def test_a_defect_in_a_handler_fails_the_test(client, capsys):
    def broken(path, _):
        raise KeyError(path)

    with pytest.raises(KeyError), WebServer({"127.0.0.1": broken}) as server:
        assert client.status(server.root("127.0.0.1")) == 500
    assert "KeyError" in capsys.readouterr().err


# -- the harvest -----------------------------------------------------------------------------------------------------


def test_a_harvest_by_hand():
    assert harvest.harvest(["a", "x", "a", "b"], {"a", "b", "c", "d"}) == [0.25, 0.25, 0.25, 0.5]
    assert harvest.ideal(2, 3) == [0.5, 1.0, 1.0]
    assert [harvest.after([0.25, 0.5], k) for k in (0, 1, 2, 9)] == [0.0, 0.25, 0.5, 0.5]
    with pytest.raises(ValueError, match="nothing to find"):
        harvest.harvest(["a"], set())


@given(st.lists(st.integers(0, 30)), st.sets(st.integers(0, 30), min_size=1))
def test_no_harvest_is_better_than_the_ideal(order, relevant):
    curve = harvest.harvest(order, relevant)
    assert curve == sorted(curve)
    assert all(a <= b + 1e-12 for a, b in zip(curve, harvest.ideal(len(relevant), len(order)), strict=True))
    if order:
        assert curve[-1] == pytest.approx(len(relevant & set(order)) / len(relevant))


@pytest.mark.slow
def test_the_table_shows_both_and_the_ideal(tmp_path):
    curves = {"breadth-first": [0.0] * 50 + [1.0] * 50, "focused": [k / 20 for k in range(1, 21)]}
    lines = harvest.table(curves, 20, 100).splitlines()
    assert lines[0].split() == ["pages", "fetched", "breadth-first", "focused", "ideal"]
    assert [line.split()[-3:] for line in lines[1:]] == [
        ["0%", "25%", "25%"],
        ["0%", "50%", "50%"],
        ["0%", "100%", "100%"],
        ["0%", "100%", "100%"],
        ["100%", "100%", "100%"],
    ]
    pytest.importorskip("matplotlib")
    harvest.draw(tmp_path / "h.png", curves, 20, 100)
    drawn = (tmp_path / "h.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")
    harvest.draw(tmp_path / "other.png", curves | {"focused": [0.0]}, 20, 100)
    assert (tmp_path / "other.png").read_bytes() != drawn


def test_the_order_of_visits_is_read_from_a_crawl(tmp_path):
    a, b, c, d = (f"http://a.example/{name}" for name in "abcd")
    with inlink.Crawl(tmp_path / "c", politeness=inlink.Politeness(delay=0)) as crawl:
        crawl.seed([b, a, c])
        crawl.crawled(b, links=[d])
        crawl.failed(c, "gone", status=404)
        crawl.crawled(a, redirected_to=d)
        crawl.crawled(b)
        assert harvest.visited(tmp_path / "c") == [b, d, b]  # while it runs
    assert harvest.visited(tmp_path / "c") == [b, d, b]
