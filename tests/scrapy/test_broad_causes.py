"""Why a crawl did not fetch or read pages: by cause, with an example; and the exit code of one that got nothing."""

import pytest

pytest.importorskip("scrapy")

from crawlcommand import crawl
from inlink.protocol import Answer as Told
from inlink.protocol import Crawled, Excluded, Failed, Released
from inlink.scrapy.causes import Causes, cause_of
from sites import Answer, Site, html, moved

URL = "http://a.example:81/x"
HOST = "a.example:81"


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (Failed(1, "DownloadConnectionRefusedError: …: 111"), ("connection refused", HOST)),
        (Failed(1, "robots.txt: DownloadConnectionRefusedError: …"), ("connection refused", HOST)),
        (Failed(1, "robots.txt: CannotResolveHostError: …"), ("host name not found", HOST)),
        (Failed(1, "DownloadTimeoutError: took longer"), ("no answer in time", HOST)),
        (Failed(1, "DownloadFailedError: [('SSL routines', '', '')]"), ("no secure connection", HOST)),
        (Failed(1, "DownloadFailedError: …"), ("connection broken", HOST)),
        (Failed(1, "robots.txt: 503"), ("robots.txt answered 503", HOST)),
        (Failed(1, "", 404), ("HTTP 404 Not Found", URL)),
        (Failed(1, "", 799), ("HTTP 799", URL)),
        (Failed(1, "redirects to 'ftp:x'", 302), ("redirect to what must not be fetched", URL)),
        (Failed(1, "SomeError: " + "x" * 9999), ("other errors", HOST)),
        (Excluded(1, "address not allowed: 10.0.0.1"), ("address not allowed, see --allow-address", "10.0.0.1")),
        (Excluded(1, "Forbidden by robots.txt"), ("forbidden by robots.txt", URL)),
        (Excluded(1, "DownloadCancelledError: too much"), ("response too large", URL)),
        (Excluded(1, "denied by x"), ("refused by the rules of this crawl", URL)),
        (Excluded(1, "outside the hosts and domains of this crawl"),
         ("outside the sites of this crawl, see --everywhere", URL)),
        (Excluded(1, "?"), ("dropped by a middleware or refused", URL)),
        (Crawled(1, error="ValueError: x"), ("error while the page was processed", URL)),
        (Crawled(1), None),
        (Released(1), None),
    ],
)  # fmt: skip
def test_each_answer_has_its_cause(answer: Told, cause: tuple[str, str] | None):
    assert cause_of(answer, URL) == cause


def test_causes_are_told_with_an_example_the_most_frequent_first():
    causes = Causes()
    assert not causes
    for cause, example in [("a", "1"), ("b", "2"), ("b", "3"), ("b", "4"), *3 * [("a", "1")]]:
        causes.add(cause, example, f"http://{example}/")
    # A page that is tried four times is one page.
    assert list(causes.lines()) == ["b (3 URLs), such as 2", "a: 1"]


@pytest.mark.slow
def test_a_crawl_that_brings_nothing_home_says_why_and_fails(tmp_path):
    done = crawl("http://127.0.0.99:1/", "-o", "a", "--max-wait", 0, cwd=tmp_path, code=1)
    why, last = done.stdout.splitlines()
    assert why == "connection refused: 127.0.0.99:1"
    assert last.startswith("a: 0 pages in ")
    pages = {
        "/": html("/a", "/b", "/page", "/binary"),
        "/b": Answer("", 410),
        "/page": Answer("<html><a href=/c>c</a>", headers={"Content-Type": "application/octet-stream"}),
        "/binary": Answer("\0", headers={"Content-Type": "application/octet-stream"}),
        "/c": html(),
    }
    with Site(pages, hosts=2) as site:
        site.pages["/out"] = moved(site.url("/", host=2))
        # Refused at the door, by a redirect and by a rule: no answer tells of it.
        done = crawl(f"{site.root}/out", "-o", "b", "--delay", 0, cwd=tmp_path, code=1)
        said = f"outside the sites of this crawl, see --everywhere: {site.url('/', host=2)}"
        assert done.stdout.splitlines()[0] == said
        # A crawl that brings something home is a success, and says what it did not get.
        done = crawl(f"{site.root}/", "-o", "c", "--delay", 0, cwd=tmp_path)
        assert {*done.stdout.splitlines()[:-1]} == {
            f"HTTP 404 Not Found: {site.root}/a",
            f"HTTP 410 Gone: {site.root}/b",
            f"not read, content is neither HTML nor text: {site.root}/binary",
        }
        assert "/c" in site.paths()
