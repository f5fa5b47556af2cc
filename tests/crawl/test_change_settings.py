"""Settings that change while the crawl runs: as if it were closed and opened with them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlstrategies import Clock, differences, histories, opened, perform, plans, stored_pages, whole
from crawlworld import A, B, C
from inlink.crawl.operator import AT_OPENING
from inlink.crawl.settings import stored
from inlink.errors import ParameterError
from inlink.frontier.revisit import ByValue, FixedInterval
from inlink.frontier.rules import Rules
from inlink.frontier.settings import Politeness
from inlink.store.format import SETTINGS
from settingscases import OTHERS, as_given, got

AT_ONCE = Politeness(delay=0, in_flight=99)
OPENING = {*AT_OPENING, "politeness.by", "rules.shard"}


def pages(host: str, count: int) -> list[str]:
    return [f"http://{host}/{k}" for k in range(count)]


# -- which settings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OTHERS)
def test_every_setting_changes_or_says_that_it_needs_opening(world, name):
    crawl = world.open(policy="host-diverse", politeness=Politeness())
    crawl.seed([A, B])
    before, events = crawl.settings, crawl.view.info().events
    if name in OPENING or name.partition(".")[0] in OPENING:
        refused = name if name in ("politeness.by", "rules.shard") else name.partition(".")[0]
        when = "after a crawl was made" if name == "rules.shard" else "while a crawl is open: close"
        with pytest.raises(ParameterError, match=f"`{refused}` cannot change {when}"):
            crawl.change_settings(max_retries=7, **as_given(name, OTHERS[name]))
        assert (crawl.settings, crawl.view.info().events) == (before, events)
        return
    crawl.next(1)
    events = len(stored_pages(crawl).frames.of_kind(SETTINGS))
    assert got(crawl.change_settings(**as_given(name, OTHERS[name])), name) == OTHERS[name]
    assert len(stored_pages(crawl).frames.of_kind(SETTINGS)) == events + 1
    assert crawl.settings == stored(world.folder)
    crawl.change_settings(**as_given(name, OTHERS[name]))
    assert len(stored_pages(crawl).frames.of_kind(SETTINGS)) == events + 1  # nothing was to change
    kept = crawl.settings
    world.close()
    (world.folder / "settings.json").unlink()  # the log has them too
    crawl = opened(world.folder, world.clock, politeness=kept.politeness)
    assert crawl.settings == kept
    crawl.close()


def test_settings_that_need_an_opening_are_named_even_with_the_value_that_holds(world):
    crawl = world.open()
    with pytest.raises(ParameterError, match="`damping` cannot change"):
        crawl.change_settings(damping=crawl.settings.damping)
    crawl.change_settings(politeness={"by": "host", "delay": 9})  # a group may name it
    assert crawl.settings.politeness.delay == 9


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"max_retries": 300}, "max_retries must be a whole number in"),
        ({"max_retriez": 3}, "did you mean max_retries"),
        ({"politeness": {"delay": -1}}, "politeness.delay must be"),
        ({"politeness": {"dellay": 1}}, "did you mean delay"),
        ({"politeness": None}, "politeness must be"),
        ({"rules": {"deny": ["("]}}, "deny"),
        ({"rules": 5}, "rules must be"),
        ({"revisit": {"schedule": "Never"}}, "the schedules are"),
        ({"lease_seconds": 0}, "lease_seconds must be"),
        ({"folder": "x"}, "no setting is called 'folder'"),
    ],
)
def test_all_or_nothing(world, given_, said):
    crawl = world.open()
    crawl.seed([A])
    before = whole(crawl)
    kept, data = crawl.settings, (world.folder / "settings.json").read_bytes()
    with pytest.raises(ParameterError, match=said) as caught:
        crawl.change_settings(retry_seconds=1, **given_)
    assert "\n" not in str(caught.value)
    assert (crawl.settings, (world.folder / "settings.json").read_bytes()) == (kept, data)
    assert differences(before, whole(crawl)) == {}


# -- what they do ---------------------------------------------------------------------------------------------------


def test_a_delay_counts_from_the_last_fetch(world):
    crawl = world.open(politeness=Politeness(delay=10, in_flight=9))
    crawl.seed([*pages("a.com", 9), *pages("b.com", 9), *pages("c.org", 9)])
    one, two, _ = crawl.next(9)
    crawl.failed(one, status=429, retry_after=100)
    crawl.host_delay(two, 20)
    world.clock.now += 4
    crawl.change_settings(politeness={"delay": 30})
    assert [row.due_in for row in crawl.view.hosts().rows] == [96, 26, 26]
    crawl.change_settings(politeness={"delay": 5})
    assert [row.due_in for row in crawl.view.hosts().rows] == [96, 16, 1]
    assert [row.delay for row in crawl.view.hosts().rows] == [5, 20, 5]
    crawl.change_settings(politeness={"delay": 0})
    assert [row.due_in for row in crawl.view.hosts().rows] == [96, 16, 0]
    assert len(world.urls()) == 8  # of 9 leases at a time one is out
    crawl.seed(["http://new.com/"])
    assert crawl.view.hosts().rows[3].delay == 0
    crawl.change_settings(politeness={"delay": 2})
    assert [row.due_in for row in crawl.view.hosts().rows] == [96, 16, 2, 0]


def test_an_operators_delay_is_above_the_settings(world):
    crawl = world.open(politeness=Politeness(delay=10))
    crawl.seed([A, B])
    crawl.set_host("a.com", delay=1, block=50)
    crawl.change_settings(politeness={"delay": 3, "host_budget": 7})
    crawl.set_host("b.com", budget=2)
    crawl.change_settings(politeness={"host_budget": 9})
    rows = crawl.view.hosts().rows
    assert [(row.delay, row.due_in, row.budget_left) for row in rows] == [(1, 50, 9), (3, 0, 2)]


def test_leases_at_a_time_and_budgets_open_and_close_hosts_at_once(world):
    crawl = world.open(politeness=Politeness(delay=0))
    crawl.seed([*pages("a.com", 9), *pages("x.b.com", 9), *pages("y.b.com", 9)])
    assert len(world.urls()) == 3
    crawl.change_settings(politeness={"in_flight": 3})
    assert len(world.urls()) == 6
    crawl.change_settings(politeness={"in_flight": 1, "host_budget": 4})
    assert len(world.urls()) == 0
    crawl.change_settings(politeness={"in_flight": 99})
    assert len(world.urls()) == 3  # 4 of each
    crawl.change_settings(politeness={"host_budget": None, "domain_budget": 10})
    assert sorted(url.split("/")[2] for url in world.urls()) == ["a.com"] * 5 + ["x.b.com"] * 2
    crawl.seed(["http://z.b.com/"])
    assert world.urls() == []
    crawl.change_settings(politeness={"domain_budget": None})
    crawl.seed(["http://z.b.com/2"])
    crawl.change_settings(politeness={"domain_budget": 12})
    assert len(world.urls()) == 2
    assert crawl.view.hosts().rows[3].domain_budget_left == 0


def test_crawl_rates(world):
    crawl = world.open(politeness=Politeness(delay=0, hard_rate=0.001, rate_window=5, in_flight=9))
    crawl.seed([*pages("a.com", 9), "http://b.com/"])
    assert len(world.urls()) == 2
    assert crawl.due_in() > 100
    crawl.change_settings(politeness={"hard_rate": 0.0})
    assert len(world.urls()) == 8


def test_a_soft_rate_that_goes_lets_a_host_compete_again(world):
    crawl = world.open(
        policy="best-first", politeness=Politeness(delay=0, soft_rate=0.01, rate_window=5, in_flight=9)
    )
    crawl.seed([(url, 0.9) for url in pages("a.com", 5)] + [(url, 0.1) for url in pages("b.com", 5)])
    assert [url.split("/")[2] for url in world.urls(2)] == ["a.com", "b.com"]
    crawl.change_settings(politeness={"soft_rate": 0.0})
    assert [url.split("/")[2] for url in world.urls(2)] == ["a.com", "a.com"]


def test_rules_that_change_hold_for_what_waits_and_let_return(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([A, B, C])
    crawl.change_settings(rules={"deny": ["host:b.com"]})
    assert [row.url for row in crawl.view.order().rows] == [A, C]
    assert world.urls(2) == [A, C]
    crawl.seed(["http://b.com/new"])
    assert world.urls() == []
    assert [world.state(url) for url in (B, "http://b.com/new")] == ["excluded"] * 2
    assert crawl.page(B).error == "denied by host:b.com"
    crawl.change_settings(rules=Rules(deny=["new"]))
    assert world.urls() == [B]
    crawl.change_settings(rules=None)
    assert world.urls() == ["http://b.com/new"]


def test_revisits_are_planned_anew(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([A, B])
    for lease in crawl.next(9):
        crawl.crawled(lease)
    assert crawl.due_in() is None
    crawl.change_settings(revisit=FixedInterval(100))
    assert crawl.due_in() == 100
    crawl.change_settings(revisit={"schedule": "FixedInterval", "seconds": 40})
    assert crawl.due_in() == 40
    world.clock.now += 40
    assert crawl.due_in() == 0  # both wait in the queue
    crawl.change_settings(revisit=FixedInterval(60))
    assert (crawl.next(9), crawl.due_in()) == ([], 20)
    crawl.change_settings(revisit=FixedInterval(10))
    assert sorted(world.urls()) == [A, B]
    crawl.change_settings(revisit=None)
    assert crawl.due_in() == 600  # the leases'


def test_retries_losses_and_leases(world):
    crawl = world.open(politeness=AT_ONCE, max_retries=0)
    crawl.seed([A, B])
    crawl.change_settings(max_retries=1, retry_seconds=5, lease_seconds=10, max_losses=1)
    one, _ = crawl.next(2)
    crawl.failed(one, status=500)
    assert crawl.due_in() == 5
    world.clock.now += 10
    assert world.urls() == [A]
    assert world.state(B) == "failed"


# -- the twin -------------------------------------------------------------------------------------------------------

POLITE = st.fixed_dictionaries(
    {},
    optional={
        "in_flight": st.sampled_from([1, 2, 99]),
        "host_budget": st.sampled_from([None, 0, 2, 5]),
        "domain_budget": st.sampled_from([None, 0, 3, 6]),
        "park_after": st.sampled_from([1, 8]),
    },
)
GIVEN = st.fixed_dictionaries(
    {},
    optional={
        "politeness": POLITE,
        "rules": st.sampled_from([None, {"deny": ["host:b.com"]}, {"max_depth": 0}, {"domains": ["a.com"]}]),
        "revisit": st.sampled_from(
            [None, FixedInterval(20.0), FixedInterval(600.0), ByValue(budget=5_000.0, initial=50.0)]
        ),
        "revisit_rules": st.sampled_from([[], ["host:a.com 40", "b[.]com 100..200"]]),
        "max_retries": st.integers(0, 3),
        "max_losses": st.integers(1, 3),
        "retry_seconds": st.sampled_from([1.0, 30.0]),
        "lease_seconds": st.sampled_from([1e5, 1e7]),
    },
)
PLACED = {"counts", "rows", "visit places", "visits"}
"""Attributes that hold places in the log: a crawl that was opened once more has other events there."""


def described(crawl: Any) -> dict[str, Any]:
    found = {name: value for name, value in whole(crawl).items() if name not in PLACED}
    hosts = crawl.view.hosts().rows
    return {
        **found,
        "taken": [host.taken for host in hosts],
        "budgets": [(host.budget_left, host.domain_budget_left) for host in hosts],
        "order": [(row.url, row.due_in) for row in crawl.view.order().rows],
        "plans": plans(crawl),
    }


@given(histories(14), histories(6), GIVEN)
def test_it_is_as_if_the_crawl_were_opened_with_them(tmp_path_factory, history, later, wanted):
    folder, results = tmp_path_factory.mktemp("c"), []
    for live in (True, False):
        clock, leases = Clock(), []
        place = folder / ("live" if live else "opened")
        crawl = opened(place, clock, policy="first-come", revisit=FixedInterval(90.0), lease_seconds=1e6)
        for done in history:
            perform(crawl, clock, leases, done)
        crawl.seed(["http://a.com/last"])  # no time passes while it is closed
        crawl.next(0)
        if live:
            crawl.change_settings(**wanted)
        else:
            crawl.close()
            crawl = opened(place, clock, **{"politeness": {}, **wanted})
        results.append([described(crawl)])
        for done in later:
            perform(crawl, clock, leases, done)
            results[-1].append(described(crawl))
        crawl.close()
    for one, other in zip(*results, strict=True):
        assert differences(one, other) == {}
