"""A date from outside: when a page is due, whatever the schedule of revisits says."""

import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlstrategies import Clock, differences, frontier_in, histories, opened, perform, whole
from crawlworld import A, B
from inlink.frontier.revisit import FixedInterval
from inlink.frontier.settings import Politeness
from inlink.store.format import DUE
from wildframes import refused_when_wild

AT_ONCE = Politeness(delay=0, in_flight=99)
INF = math.inf


@pytest.mark.parametrize("revisit", [None, FixedInterval(1000.0)])
@pytest.mark.parametrize("reopened", [False, True])
def test_a_crawled_page_is_due_when_it_is_said(world, revisit, reopened):
    crawl = world.open(politeness=AT_ONCE, revisit=revisit)
    crawl.seed([A])
    crawl.crawled(crawl.next(1)[0])
    assert crawl.set_due(A, 70)
    assert crawl.set_due("HTTP://A.com", 50)  # the last date counts
    if reopened:
        crawl = world.again()
    assert crawl.why(A).due_in == crawl.due_in() == 50
    world.clock.now += 50
    if reopened:
        crawl = world.again()
    crawl.crawled(crawl.next(1)[0])
    if reopened:
        crawl = world.again()
    assert crawl.due_in() == (None if revisit is None else 1000)  # for once


@pytest.mark.parametrize("reopened", [False, True])
def test_never(world, reopened):
    crawl = world.open(politeness=AT_ONCE, revisit=FixedInterval(10.0))
    crawl.seed([A, B])
    crawl.crawled(crawl.next(1)[0])
    assert crawl.set_due(A, INF)
    assert crawl.set_due(B, INF)  # it waited in the queue
    if reopened:
        crawl = world.again()
    world.clock.now += 1e6
    assert (crawl.next(9), crawl.due_in()) == ([], None)
    why = crawl.why(A)
    assert (why.due_in, why.never_due) == (None, True)
    assert "never due again" in str(why)
    assert crawl.standing().planned == 0
    crawl.change_settings(revisit=FixedInterval(20.0))
    assert crawl.due_in() is None
    crawl.set_due(A, 0)
    crawl.set_due(B, 5)
    assert world.urls() == [A]
    world.clock.now += 5
    assert world.urls() == [B]
    assert not crawl.why(A).never_due


def test_pages_in_other_states(world):
    crawl = world.open(politeness=AT_ONCE, max_retries=1)
    names = ["gone", "failed", "retried", "excluded", "merged", "out", "target", "waiting"]
    urls = {name: f"http://a.com/{name}" for name in names}
    crawl.seed(list(urls.values()))
    leases = dict(zip(names, crawl.next(6), strict=False))
    crawl.failed(leases["gone"], status=404)
    crawl.failed(leases["failed"], status=403)
    crawl.failed(leases["retried"], status=500)
    crawl.exclude(leases["excluded"], "robots.txt")
    crawl.crawled(leases["merged"], redirected_to=urls["target"])
    counted = {name: crawl.set_due(url, 30) for name, url in urls.items()}
    assert counted == dict.fromkeys(names, True) | {"excluded": False, "out": False}
    crawl.next(0)
    assert [world.state(urls[name]) for name in ("gone", "failed", "retried")] == ["discovered"] * 3
    before = whole(crawl)
    crawl = world.again()
    assert differences(before, whole(crawl)) == {}
    assert crawl.due_in() == 30
    world.clock.now += 60  # the host waits after a 500
    assert sorted(world.urls()) == sorted(
        urls[name] for name in ("gone", "failed", "retried", "target", "waiting")
    )
    assert crawl.failed(urls["gone"], status=404)
    assert crawl.set_due(urls["gone"], INF)
    assert world.state(urls["gone"]) == "gone"


def test_a_reload_and_a_hint_overrule_it(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([A, B])
    one, two = crawl.next(2)
    crawl.crawled(one)
    crawl.failed(two, status=404)
    crawl.set_due(A, 500)
    crawl.set_due(B, 500)
    world.clock.now += 5
    crawl.sitemap([(A, world.clock.now, None)])
    crawl.exclude_host("b.com")
    crawl.reload("excluded")
    before = whole(crawl)
    crawl = world.again()
    assert differences(before, whole(crawl)) == {}
    assert sorted(world.urls()) == [A, B]


def test_a_budget_counts_a_page_that_waits_for_its_date_once(world):
    crawl = world.open(politeness=Politeness(delay=0, in_flight=9, host_budget=2))
    crawl.seed([A, "http://a.com/2", "http://a.com/3"])
    crawl.crawled(crawl.next(1)[0])
    crawl.set_due(A, 5)
    crawl.set_due("http://a.com/2", 5)
    crawl = world.again()
    assert crawl.view.hosts().rows[0].taken == 1
    world.clock.now += 5
    assert len(world.urls()) == 2
    assert crawl.view.hosts().rows[0].budget_left == 0


DATES = st.lists(
    st.tuples(st.integers(0, 16), st.integers(0, 40), st.sampled_from([0.0, 10.0, 300.0, INF])),
    min_size=1,
    max_size=6,
)


@settings(max_examples=30)
@given(histories(16), DATES, st.sampled_from([None, FixedInterval(50.0)]))
def test_reopening_changes_nothing(tmp_path_factory, history, dates, revisit):
    folder, clock, leases = tmp_path_factory.mktemp("c") / "c", Clock(), []
    given_ = {"policy": "first-come", "revisit": revisit}
    crawl = opened(folder, clock, **given_)
    held: dict[int, float] = {}
    for k, done in enumerate(history):
        perform(crawl, clock, leases, done)
        for at, page, seconds in dates:
            if at == k:
                pages = frontier_in(crawl).pages
                url = pages.url(page % pages.num_pages)
                if crawl.set_due(url, seconds) and crawl.page(url).state in ("discovered", "crawled"):
                    held[pages.survivor(page % pages.num_pages)] = clock.now + seconds
                    assert crawl.why(url).never_due == (seconds == INF)
    crawl.pause()  # no time passes while it is closed
    crawl.resume()
    before, never = whole(crawl), set(frontier_in(crawl).never)
    crawl.close()
    crawl = opened(folder, clock, **given_)
    assert differences(before, whole(crawl)) == {}
    assert frontier_in(crawl).never == never
    crawl.close()


@pytest.mark.slow
def test_wild_dates_are_damage_or_harmless(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([A, B])
    crawl.crawled(crawl.next(1)[0])
    crawl.set_due(A, 50)
    (place,) = frontier_in(crawl).pages.frames.of_kind(DUE)
    end = frontier_in(crawl).pages.frames.end
    world.close()

    def use(crawl):
        crawl.next(9)
        assert msgspec.json.encode(crawl.view.why(A))

    refused = refused_when_wild(world, place, end, use)
    assert {"page 2147483648", "DateRecord.date nan"} <= refused
    assert "DateRecord.date inf" not in refused
