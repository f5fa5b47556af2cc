"""Failures of a crawl by their causes."""

import itertools
import time

import pytest

import inlink
from inlink.crawl.questions import searches
from inlink.errors import ParameterError
from inlink.frontier.causes import cause_of


def url(k):
    return f"http://h{k}.example/"


@pytest.fixture
def crawl(tmp_path):
    with inlink.Crawl(
        tmp_path / "c", clock=inlink.VirtualClock(1e9), politeness={"delay": 0.0}, max_retries=1
    ) as opened:
        yield opened


def whole(view):
    found = view.errors()
    while found.cursor is not None:
        assert found.searched < found.known
        found = view.errors(found.cursor)
    return found


@pytest.mark.parametrize(
    ("status", "error", "excluded", "cause"),
    [
        (404, "", False, "HTTP 404 Not Found"),
        (999, "x", False, "HTTP 999"),
        (0, "CannotResolveHostError: a.example", False, "host name not found"),
        (0, "DownloadTimeoutError: took longer than 180 s", False, "no answer in time"),
        (0, "DownloadConnectionRefusedError: 111", False, "connection refused"),
        (0, "ConnectionLost: reset by peer", False, "connection broken"),
        (0, "robots.txt: 503", False, "robots.txt cannot be read"),
        (0, "Forbidden by robots.txt", True, "excluded: forbidden by robots.txt"),
        (0, "address not allowed: 10.0.0.1", True, "excluded: address not allowed"),
        (0, "lost 3 times: the spider ended", False, "lost: the spider ended or did not answer"),
        (0, "lost 1 time: the spider ended", False, "lost: the spider ended or did not answer"),
        (200, "KeyError: 'price'", False, "not processed: KeyError"),
        (0, "", False, "no reason given"),
        (0, "strange 17 at http://x.example/ in 'y'", False, "strange … at … in …"),
        (0, "x" * 500, False, "x" * 59 + "…"),
    ],
)
def test_causes(status, error, excluded, cause):
    assert cause_of(status, error, excluded) == cause


def test_errors_are_counted_by_cause_with_the_last_examples(crawl):
    crawl.seed([url(k) for k in range(9)])
    assert crawl.view.errors().causes == []
    for k in range(5):
        crawl.failed(url(k), status=404)
    crawl.failed(url(5), "TimeoutError: no answer")
    crawl.failed(url(5), "TimeoutError: still no answer")
    crawl.exclude(url(6), "Forbidden by robots.txt")
    crawl.crawled(url(7), links=[url(100)])
    found = whole(crawl.view)
    assert [(one.cause, one.count) for one in found.causes] == [
        ("HTTP 404 Not Found", 5),
        ("no answer in time", 2),
        ("excluded: forbidden by robots.txt", 1),
    ]
    assert found.total == 8
    # The last three, of different pages, the last one first.
    assert [one.url for one in found.causes[0].examples] == [url(4), url(3), url(2)]
    assert [(one.url, one.error) for one in found.causes[1].examples] == [
        (url(5), "TimeoutError: still no answer")
    ]
    # What comes later is added.
    crawl.failed(url(8), status=404)
    assert crawl.view.errors().causes[0].count == 6
    # A folder shows the same.
    assert whole(inlink.CrawlView.open(crawl.folder, clock=lambda: 1e9)).causes == crawl.view.errors().causes


def test_the_number_of_causes_is_bounded(crawl, monkeypatch):
    monkeypatch.setattr(searches, "MOST_CAUSES", 3)
    words = ["one", "two", "three", "four", "five"]
    crawl.seed([url(k) for k in range(5)])
    for k, word in enumerate(words):
        crawl.failed(url(k), word)
    found = whole(crawl.view)
    assert {one.cause: one.count for one in found.causes} == {"one": 1, "two": 1, "three": 1, "others": 2}


def test_a_long_log_is_read_in_parts(crawl, monkeypatch):
    monkeypatch.setattr(searches, "_LOG_BYTES", 200)
    ticks = itertools.count()
    monkeypatch.setattr(time, "thread_time", lambda: float(next(ticks)))
    crawl.seed([url(k) for k in range(20)])
    for k in range(20):
        crawl.failed(url(k), status=500 + k % 2)
    parts, found = 1, crawl.view.errors()
    while found.cursor is not None:
        parts, found = parts + 1, crawl.view.errors(found.cursor)
    assert parts > 10
    assert {one.cause: one.count for one in found.causes} == {
        "HTTP 500 Internal Server Error": 10,
        "HTTP 501 Not Implemented": 10,
    }
    with pytest.raises(ParameterError, match="cursor"):
        crawl.view.errors("x")


def test_the_fullest_hosts_come_first(crawl):
    crawl.seed([url(1), url(2), url(2) + "x", url(3), url(3) + "x", url(3) + "y"])
    found = crawl.view.hosts(2, fullest=True)
    assert [(one.name, one.waiting) for one in found.rows] == [("h3.example", 3), ("h2.example", 2)]
    assert (found.known, found.cursor) == (3, None)
