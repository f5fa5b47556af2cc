"""Real sites: how they are served, and what is known of them before a crawl; skipped where a package is absent."""

import gzip
import http.client
import os
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

import websites
from websites import SITES, TOPICS, Topic


def need(name):
    """A site by its name; the test is skipped, naming the package, where it is not installed."""
    site = next(site for site in SITES if site.name == name)
    if site not in websites.sites():
        pytest.skip(f"Debian package absent: {site.package}")
    return site


def files(site):
    """URL paths of a site's pages, Apache's in English only."""
    folder = site.root / "en" if site.name == "apache" else site.root
    return sorted("/" + quote(path.relative_to(site.root).as_posix()) for path in folder.rglob("*.html"))


def get(server, host, path, **headers):
    with closing(http.client.HTTPConnection(host, server.port, timeout=30)) as line:
        line.request("GET", path, headers=headers)
        answer = line.getresponse()
        return answer, answer.read()


# -- the handler ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_text("secret")
    root = outside / "root"
    (root / "sub").mkdir(parents=True)
    (root / "index.html").write_text("<title>Home</title>")
    (root / "sub" / "index.html.en").write_text("sub")
    (root / "style.css").write_text("p {}")
    (root / "a b&ü.html").write_text("odd")
    (root / "big.html.gz").write_bytes(gzip.compress(b"<p>big"))
    (root / "page.html.en").write_text("english")
    (root / "page.html.fr").write_text("français")
    (root / "noise").write_bytes(b"\0\1")
    (root / "way-out").symlink_to(outside / "secret")
    (root / "way-up").symlink_to(outside)
    (root / "round").symlink_to("round")
    (root / "inner").symlink_to("style.css")
    return root


@pytest.fixture(scope="module")
def server(folder):
    with websites.WebServer({"127.0.0.1": websites.static(folder)}) as server:
        yield server


@pytest.mark.parametrize(
    ("path", "status", "kind", "body"),
    [
        ("/", 200, "text/html", b"<title>Home</title>"),
        ("/index.html?x=1", 200, "text/html", b"<title>Home</title>"),
        ("/style.css", 200, "text/css", b"p {}"),
        ("/inner", 200, "application/octet-stream", b"p {}"),
        ("/sub/", 200, "text/html", b"sub"),
        ("/page.html", 200, "text/html", b"english"),
        ("/page.html.fr", 200, None, "français".encode()),
        ("/big.html", 200, "text/html", b"<p>big"),
        ("/noise", 200, "application/octet-stream", b"\0\1"),
        ("/a%20b&%C3%BC.html", 200, "text/html", b"odd"),
        ("/none.html", 404, "text/html", None),
        ("/robots.txt", 404, "text/html", None),
    ],
)
def test_files_come_as_what_they_are(server, path, status, kind, body):
    answer, found = get(server, "127.0.0.1", path)
    assert answer.status == status
    assert kind is None or answer.headers.get_content_type() == kind
    assert body is None or found == body


def test_compressed_files_stay_so_where_that_is_accepted(server):
    answer, body = get(server, "127.0.0.1", "/big.html", **{"Accept-Encoding": "br, gzip"})
    assert (answer.headers["Content-Encoding"], gzip.decompress(body)) == ("gzip", b"<p>big")
    answer, body = get(server, "127.0.0.1", "/big.html.gz")
    assert (answer.headers["Content-Encoding"], answer.headers["Content-Type"]) == (None, "application/gzip")


def test_a_folder_is_sent_to_its_slash(server):
    answer, _ = get(server, "127.0.0.1", "/sub?x=1")
    assert (answer.status, answer.headers["Location"]) == (301, "/sub/")
    assert get(server, "127.0.0.1", "/page.html")[0].headers["Content-Language"] == "en"


@pytest.mark.parametrize(
    "path",
    [
        "/../secret",
        "/%2e%2e/secret",
        "/sub/../../secret",
        "//../secret",
        "/way-out",
        "/way-up/secret",
        "/way-up",
    ]
    + [
        "/round",
        "/..%2fsecret",
        "/%00",
        "/" + "x" * 300,
        "/%ff",
        "/sub/../..",
        "/style.css/",
        "/style.css/x",
    ],
)
def test_nothing_leads_out(server, path):
    answer, body = get(server, "127.0.0.1", path)
    assert answer.status == 404
    assert b"secret" not in body


@given(
    st.lists(
        st.sampled_from(["..", ".", "", "sub", "way-up", "way-out", "secret", "root", "\0", "ü"]), max_size=7
    )
)
def test_no_path_leads_out(folder, parts):
    reply = websites.static(folder)("/" + quote("/".join(parts)), {})
    assert b"secret" not in reply.body
    if reply.status == 200:
        inside = os.path.normpath(folder / "/".join(parts).lstrip("/"))
        assert Path(inside).resolve().is_relative_to(folder)


def test_rules_and_latency_are_the_tests_own(folder):
    reply = websites.static(folder, "User-agent: *\nDisallow: /sub/\n", 0.25)("/robots.txt", {})
    assert (reply.status, reply.body, reply.wait) == (200, b"User-agent: *\nDisallow: /sub/\n", 0.25)
    assert websites.static(folder, None, 0.25)("/none", {}).wait == 0.25


# -- topics ---------------------------------------------------------------------------------------------------------


def test_the_rule_looks_at_title_and_h1_only():
    topic = Topic("t", "", ("ssl", "high availability"))
    for text in (
        "<title>mod_ssl - Apache</title>",
        "<H1 class=x>About <b>High</b> </H1><h1>the SSL&amp;TLS how</h1>",
    ):
        assert topic.fits(text)
    for text in ("<title>openssl</title>", "<p>ssl<h2>ssl</h2>", "<h1>high</h1><h1>availability</h1>", ""):
        assert not topic.fits(text)
    assert topic.fits("<title>27. High\n Availability</title>")


def test_topics_are_one_to_ten_percent_of_the_pages():
    for site in SITES:
        need(site.name)
    urls = [f"http://{site.host}:1{path}" for site in SITES for path in files(site)]
    assert len(urls) > 2000
    for topic in TOPICS:
        assert 0.01 <= len(topic.relevant(urls)) / len(urls) <= 0.1, topic.name


# -- crawls ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["anarchism"])
def test_scrapy_reaches_what_robots_allow(name):
    pytest.importorskip("scrapy")
    site = need(name)
    with websites.serve([site], robots={name: "User-agent: *\nDisallow: /secH\n"}) as server:
        found = websites.reachable([site.url(server.port)], [site.host])
        statuses = {request.path: request.status for request in server.log}
    paths = {urlsplit(url).path for url in found}
    assert paths <= set(files(site))
    assert len(paths) > 0.9 * len([path for path in files(site) if not path.startswith("/secH")])
    assert not any(path.startswith("/secH") for path in paths)
    assert all(statuses[path] == 200 for path in paths)
    assert 404 in statuses.values()  # real sites have dead links; they are not among what is found
