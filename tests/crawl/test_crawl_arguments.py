"""Arguments outside their meaning, in one table: each is refused by name, before anything changes."""

import math
from collections.abc import Callable
from typing import Any

import pytest

import inlink
from crawlstrategies import EAGER, Clock, differences, whole
from inlink.crawl.crawl import Crawl
from inlink.crawl.view import CrawlView
from inlink.errors import ParameterError
from inlink.frontier.leases import Lease
from inlink.frontier.revisit import ByValue, FixedInterval, RevisitRules
from inlink.protocol import Crawled, Excluded, Failed, HostDelay, Link, Redirected, Released

A, B = "http://a.com/", "http://b.com/"
NAN, INF = math.nan, math.inf
NO_TEXT: list[Any] = [5, b"x", 2.5, ["x"], True]
NO_FLAG: list[Any] = [0, 1, "yes", None, 2]
NO_SCORE: list[Any] = [NAN, INF, -INF, "1", None, True, 3e39, [1.0], 1j]
NO_SECONDS: list[Any] = [NAN, INF, -INF, -1, "3", True, [1]]
NO_COUNT: list[Any] = [-1, "5", 2.5, True, None, NAN, 1 << 40, [1]]
NO_LINKS: list[Any] = [
    "http://b.com/",
    b"http://b.com/",
    None,
    7,
    [7],
    [None],
    [b"x"],
    [(A, "1")],
    [(A, NAN)],
    [(A,)],
]
NO_LINKS += [[(A, 1.0, 2)], [(5, 1.0)], [Link(A, data="x")], [Link(A, score=NAN)], [Link(A, score="1")]]  # type: ignore[arg-type]
NO_LINKS += [
    [Link(5)],
    [Link(A, variant="a b")],
    [Link(A, data=b"x" * 65_537)],
    [(A, True)],
    [Link(A, data=bytearray())],
    [A, (B, None)],
    [Link(A, text=5)],
    *([Link(A, variant=variant)] for variant in ("x" * 81, "é", "a#b", "\n")),
]  # type: ignore[arg-type]
NO_PAGE: list[Any] = [None, 2.5, b"x", True, [A], Lease(A, "1", 0, 0.0, 0)]  # type: ignore[arg-type]

TABLE: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "seed": (lambda crawl, bad: crawl.seed(bad), NO_LINKS),
    "sitemap": (lambda crawl, bad: crawl.sitemap(bad), ["x", None, 5, [A], [(A, None)], [(5, None, None)]]),
    "sitemap: lastmod": (
        lambda crawl, bad: crawl.sitemap([(B, None, None), (A, bad, None)]),
        [NAN, INF, "x", True, 1e12],
    ),
    "sitemap: priority": (
        lambda crawl, bad: crawl.sitemap([(B, None, None), (A, None, bad)]),
        [NAN, INF, "x", True, -0.1, 2],
    ),
    "crawled: page": (lambda crawl, bad: crawl.crawled(bad), NO_PAGE),
    "crawled: links": (lambda crawl, bad: crawl.crawled(A, bad), NO_LINKS),
    "crawled: score": (lambda crawl, bad: crawl.crawled(A, [B], score=bad), NO_SCORE),
    "crawled: content_hash": (
        lambda crawl, bad: crawl.crawled(A, [B], content_hash=bad),
        ["x", 5, None, [1]],
    ),
    "crawled: fingerprint": (
        lambda crawl, bad: crawl.crawled(A, [B], fingerprint=bad),
        [-1, 2**64, "1", 2.5, None, True, NAN],
    ),
    "crawled: status": (
        lambda crawl, bad: crawl.crawled(A, [B], status=bad),
        [-1, 1000, "200", 2.5, None, True, NAN],
    ),
    "crawled: redirected_to": (lambda crawl, bad: crawl.crawled(A, [B], redirected_to=bad), NO_TEXT),
    "crawled: canonical_link": (lambda crawl, bad: crawl.crawled(A, [B], canonical_link=bad), NO_TEXT),
    "crawled: noindex": (lambda crawl, bad: crawl.crawled(A, [B], noindex=bad), NO_FLAG),
    "crawled: nofollow": (lambda crawl, bad: crawl.crawled(A, [B], nofollow=bad), NO_FLAG),
    "crawled: links_are_canonical": (
        lambda crawl, bad: crawl.crawled(A, [B], links_are_canonical=bad),
        NO_FLAG,
    ),
    "crawled: canonical links": (
        lambda crawl, bad: crawl.crawled(A, [bad], links_are_canonical=True),
        [
            "/a",
            "http://ä.com/",
            "http://b.com/ x",
            "http://b.com/\nhttp://c.com/",
            "",
            "http://b.com/" + "a" * 3000,
        ],
    ),
    "failed: page": (lambda crawl, bad: crawl.failed(bad), NO_PAGE),
    "failed: error": (lambda crawl, bad: crawl.failed(A, bad), [*NO_TEXT, None]),
    "failed: status": (lambda crawl, bad: crawl.failed(A, status=bad), [-1, 1000, "200", 2.5, True, NAN]),
    "failed: retry": (lambda crawl, bad: crawl.failed(A, retry=bad), [0, 1, "yes"]),
    "failed: retry_after": (lambda crawl, bad: crawl.failed(A, retry_after=bad), [NAN, INF, -1, True, [1]]),
    "exclude: page": (lambda crawl, bad: crawl.exclude(bad), NO_PAGE),
    "exclude: reason": (lambda crawl, bad: crawl.exclude(A, bad), [*NO_TEXT, None]),
    "redirected: lease": (lambda crawl, bad: crawl.redirected(bad, B), NO_PAGE),
    "redirected: to": (lambda crawl, bad: crawl.redirected(1, bad), [*NO_TEXT, None]),
    "redirected: carried": (
        lambda crawl, bad: crawl.redirected(1, B, carried=bad),
        ["x", 5, "", b"x" * 65_537],
    ),
    "redirected: status": (lambda crawl, bad: crawl.redirected(1, B, status=bad), [-1, 1000, "301", None]),
    "redirected: again": (lambda crawl, bad: crawl.redirected(1, B, again=bad), NO_FLAG),
    "release": (lambda crawl, bad: crawl.release(bad), NO_PAGE),
    "host_delay: page": (lambda crawl, bad: crawl.host_delay(bad, 1.0), NO_PAGE),
    "host_delay: seconds": (lambda crawl, bad: crawl.host_delay(A, bad), [*NO_SECONDS, None]),
    "set_host: host": (lambda crawl, bad: crawl.set_host(bad, delay=1), [*NO_TEXT, None, "", "a b"]),
    "set_host: block": (
        lambda crawl, bad: crawl.set_host("a.com", block=bad, delay=1),
        [NAN, -INF, -1, "3", True, [1], None, 1e10],
    ),
    "set_host: delay": (lambda crawl, bad: crawl.set_host("a.com", block=1, delay=bad), NO_SECONDS),
    "set_host: budget": (
        lambda crawl, bad: crawl.set_host("a.com", block=1, budget=bad),
        [bad for bad in NO_COUNT if bad is not None],
    ),
    "exclude_host: host": (lambda crawl, bad: crawl.exclude_host(bad), [*NO_TEXT, None, "", "a b"]),
    "exclude_host: reason": (lambda crawl, bad: crawl.exclude_host("a.com", bad), [*NO_TEXT, None]),
    "exclude_host: older_than": (
        lambda crawl, bad: crawl.exclude_host("a.com", older_than=bad),
        NO_SECONDS,
    ),
    "set_due: url": (lambda crawl, bad: crawl.set_due(bad, 1.0), [*NO_TEXT, None]),
    "set_due: seconds": (
        lambda crawl, bad: crawl.set_due(A, bad),
        [NAN, -INF, "3", True, [1], None, 1e10],
    ),
    "next": (lambda crawl, bad: crawl.next(bad), NO_COUNT),
    "rerank": (lambda crawl, bad: crawl.rerank(wait=bad), NO_FLAG),
    "standing": (lambda crawl, bad: crawl.standing(bad), [-1, "5", 2.5, True, None, 1001]),
    "standing: within": (lambda crawl, bad: crawl.standing(within=bad), [-0.1, 1.1, NAN, "0", True, None]),
    "page": (lambda crawl, bad: crawl.page(bad), [None, 2.5, b"x", True]),
    "why": (lambda crawl, bad: crawl.why(bad), [None, 2.5, b"x", True]),
    "hello: owner": (lambda crawl, bad: crawl.desk.hello(bad), [*NO_TEXT, None, "", "a\nb", "x" * 201]),
    "hello: silent_after": (lambda crawl, bad: crawl.desk.hello("b", silent_after=bad), [*NO_SECONDS, 0]),
    "hello: rejoin": (lambda crawl, bad: crawl.desk.hello("b", rejoin=bad), NO_FLAG),
    "renew": (lambda crawl, bad: crawl.desk.renew(bad), NO_COUNT[:-2]),
    "bye": (lambda crawl, bad: crawl.desk.bye(bad), NO_COUNT[:-2]),
    "desk.next: session": (lambda crawl, bad: crawl.desk.next(bad, 1), NO_COUNT[:-2]),
    "desk.next: count": (lambda crawl, bad: crawl.desk.next(1, bad), NO_COUNT),
    "desk.next: request": (lambda crawl, bad: crawl.desk.next(1, 1, bad), NO_COUNT[:-2]),
    "desk.next: lost": (lambda crawl, bad: crawl.desk.next(1, 1, lost=bad), NO_FLAG),
    "report: session": (lambda crawl, bad: crawl.desk.report(bad, []), NO_COUNT[:-2]),
    "report: request": (lambda crawl, bad: crawl.desk.report(1, [], bad), NO_COUNT[:-2]),
    "report: answers": (
        lambda crawl, bad: crawl.desk.report(1, bad),
        [None, 5, "x", [None], ["x"], [Crawled("1")], [Crawled(True)], [Released(-1)]],  # type: ignore[arg-type]
    ),
    "report: an answer": (
        lambda crawl, bad: crawl.desk.report(1, [Crawled(1, [B]), bad]),
        [
            Crawled(1, score=NAN),
            Crawled(1, status=7000),
            Crawled(1, content_hash="x"),  # type: ignore[arg-type]
            Crawled(1, noindex=2),  # type: ignore[arg-type]
            Crawled(1, redirected_to=5),  # type: ignore[arg-type]
            Crawled(1, error=5),  # type: ignore[arg-type]
            Failed(1, error=None),  # type: ignore[arg-type]
            Failed(1, status="200"),  # type: ignore[arg-type]
            Failed(1, retry_after=NAN),
            Excluded(1, 5),  # type: ignore[arg-type]
            Redirected(1, 5),  # type: ignore[arg-type]
            Redirected(1, B, carried="x"),  # type: ignore[arg-type]
            Redirected(1, B, b"x" * 65_537),
            *(Redirected(1, B, status=status) for status in (-1, 1000, "301", None)),  # type: ignore[arg-type]
            HostDelay(None, 1.0),  # type: ignore[arg-type]
            HostDelay(A, NAN),
            HostDelay(A, INF),
            HostDelay(A, -1.0),
        ],
    ),
    "view.number": (lambda crawl, bad: crawl.view.number(bad), [None, 2.5, b"x", True]),
    "view.path": (lambda crawl, bad: crawl.view.path(A, bad), [*NO_COUNT, 0, 1001]),
    "view.path: cursor": (lambda crawl, bad: crawl.view.path(A, 1, bad), [5, "-1", "x", "99", b"1"]),
    "view.links": (lambda crawl, bad: crawl.view.links(A, "from", bad), [*NO_COUNT, 0, 1001]),
    "view.links: direction": (lambda crawl, bad: crawl.view.links(A, bad), ["sideways", None, 5]),
    "view.find": (lambda crawl, bad: crawl.view.find(bad), [*NO_TEXT, None, "("]),
    "view.find: kind": (lambda crawl, bad: crawl.view.find("a", bad), ["like", None, 5]),
    "view.find: count": (lambda crawl, bad: crawl.view.find("a", count=bad), [*NO_COUNT, 0, 1001]),
    "view.top": (lambda crawl, bad: crawl.view.top(None, bad), [*NO_COUNT, 0, 1001]),
    "view.dump": (lambda crawl, bad: crawl.view.dump(bad), ["all", None, 5]),
    "view.dump: cursor": (lambda crawl, bad: crawl.view.dump("pages", bad), [5, "-1", "x", "99"]),
    "view.dump: aduana": (lambda crawl, bad: crawl.view.dump(aduana=bad), NO_FLAG),
    "view.dump: seconds": (lambda crawl, bad: crawl.view.dump(seconds=bad), [*NO_SECONDS, None]),
    "view.order": (lambda crawl, bad: crawl.view.order(bad), [*NO_COUNT, 0, 101]),
    "view.hosts": (lambda crawl, bad: crawl.view.hosts(bad), [*NO_COUNT, 0, 1001]),
    "clock": (lambda crawl, bad: at(crawl, bad), [NAN, INF, 1e12, "now", None, True]),
}


CLOCK = Clock()


def at(crawl: Crawl, now: Any) -> None:
    """Use a crawl while its clock says something else than a time."""
    before, CLOCK.now = CLOCK.now, now
    try:
        crawl.next()
    finally:
        CLOCK.now = before


@pytest.mark.parametrize("name", TABLE)
def test_an_argument_outside_its_meaning_changes_nothing(name, tmp_path):
    call, values = TABLE[name]
    with Crawl(tmp_path / "c", policy="pagerank", politeness=EAGER, clock=CLOCK, rerank_share=None) as crawl:
        crawl.seed([A])
        session = crawl.desk.hello("a").number
        assert [task.lease for task in crawl.desk.next(session, 1).tasks] == [1]
        before, place = whole(crawl), crawl.view.info().event_bytes
        for bad in values:
            with pytest.raises(ParameterError) as caught:
                call(crawl, bad)
            said = str(caught.value)
            assert "\n" not in said, bad
            assert len(said) < 1000, bad
            assert differences(before, whole(crawl)) == {}, bad
            assert crawl.view.info().event_bytes == place, bad
        assert crawl.crawled(1, [B])
    with Crawl(tmp_path / "c", policy="pagerank", politeness=EAGER, clock=Clock()) as crawl:
        assert [lease.url for lease in crawl.next(5)] == [B]


SCHEDULES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "FixedInterval": (lambda bad: FixedInterval(bad), [*NO_SECONDS, None, 0]),
    "ByValue.budget": (lambda bad: ByValue(budget=bad), [*NO_SECONDS, None, 0]),
    "ByValue.longest": (lambda bad: ByValue(budget=1.0, longest=bad), [*NO_SECONDS, None, 1]),
    "RevisitRules": (lambda bad: RevisitRules([bad]), ["", " ", "a", "a 0", "a nan", "( 5", "host:/ 5"]),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_fields_of_schedules_are_checked(name):
    call, values = SCHEDULES[name]
    for bad in values:
        with pytest.raises(ParameterError) as caught:
            call(bad)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("clock", [lambda: NAN, lambda: INF, lambda: "now", lambda: None])
def test_a_clock_that_tells_no_time_leaves_no_folder(clock, tmp_path):
    with pytest.raises(ParameterError, match="Unix time that `clock` returns must be"):
        Crawl(tmp_path / "c", clock=clock)
    assert list(tmp_path.iterdir()) == []


def test_a_view_of_a_folder_refuses_the_same(tmp_path):
    with Crawl(tmp_path / "c", clock=inlink.VirtualClock()) as crawl:
        crawl.seed([A])
    for name, (call, values) in TABLE.items():
        if not name.startswith("view."):
            continue
        for bad in values:
            view = CrawlView.open(tmp_path / "c")
            with pytest.raises(ParameterError):
                call(type("Shown", (), {"view": view}), bad)


def test_why_tells_of_a_loss(tmp_path):
    clock = Clock()
    settings: dict[str, Any] = {
        "politeness": EAGER,
        "clock": clock,
        "lease_seconds": 100,
        "retry_seconds": 60,
    }
    with Crawl(tmp_path / "c", **settings) as crawl:
        crawl.seed([A])
        crawl.next()
        clock.now += 110
        crawl.next(0)
        why = crawl.why(A)
        assert (why.losses, why.due_in, why.waits) == (1, 60.0, False)
        assert str(why).startswith(f"{A}: discovered, waiting to be handed out alone")
        assert "lost 1 time: its spider ended, or did not answer in time" in str(why)
        assert "handed out again in 60.0 s" in str(why)
        folder = CrawlView.open(tmp_path / "c", clock=clock).why(A)
        assert (folder.losses, folder.due_in) == (1, 60.0)
        clock.now += 60
        assert [lease.url for lease in crawl.next()] == [A]
        assert crawl.why(A).due_in is None
