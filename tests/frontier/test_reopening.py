"""A crawl that is closed and opened again is the crawl that it was: order, priorities, budgets, and counts of hosts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoints import everything
from crawlstrategies import SEEDED, Clock, differences, frontier_in, opened
from histories import BY_VALUE, MORE, POLITE, do
from inlink.crawl.crawl import Crawl
from inlink.frontier.policies import POLICIES
from inlink.frontier.revisit import FixedInterval
from inlink.store.format import KINDS
from patience import wait_until


def all_of(crawl: Crawl) -> dict[str, Any]:
    """Everything that a crawl is, with the budgets of domains, and its hosts as its users see them."""
    found = everything(crawl)
    front = frontier_in(crawl)
    domains, size = max(len(front.hosts._domains), 1), front.pages.num_pages
    # A lost page does not wait for its date.
    kept = front.pages.losses[:size] == 0
    return found | {
        "domain budgets": front.queue.slots.domain_budgets[:domains].tolist(),
        "hosts": crawl.view.hosts().rows,
        "alone": dict(front.lost.alone),
        "dates by value": front.values and np.where(kept, front.values.due[:size], 0).tolist(),
        "standing": {
            name: getattr(crawl.standing(), name) for name in ("states", "planned", "waiting", "leased")
        },
        "next": [(row.url, row.due_in) for row in crawl.view.order(50).rows],
    }


def changed_by_reopening(
    folder: Path, history: list[tuple[Any, ...]], policy: str, **options: Any
) -> dict[str, Any]:
    """Make a crawl with a history, and return what differs after it was closed and opened again."""
    clock, leases = Clock(), []
    with opened(folder, clock, policy=policy, **options) as crawl:
        for done in SEEDED + history:
            do(crawl, clock, leases, done)
        wait_until(lambda: not (crawl.next(0) or crawl.ranking), "the end of a ranking")
        crawl.pause()  # No time passes while it is closed.
        crawl.resume()
        live = all_of(crawl)
    with Crawl(folder, clock=clock, policy=policy) as crawl:
        return differences(live, all_of(crawl))


@pytest.mark.slow
@pytest.mark.parametrize("policy", sorted(POLICIES))
@settings(max_examples=12)
@given(
    st.lists(MORE, max_size=40),
    POLITE,
    st.sampled_from([None, FixedInterval(50.0), BY_VALUE]),
    st.sampled_from([(), ("host:a.com 40", "b[.]com 100..200")]),
    st.integers(1, 3),
    st.fixed_dictionaries(
        {}, optional={n: st.just(True) for n in ("cross_domain_only", "self_links", "sink_duplicates")}
    ),
)
def test_reopening_changes_nothing(tmp_path_factory, policy, history, polite, revisit, rules, most, more):
    found = changed_by_reopening(
        tmp_path_factory.mktemp("c") / "c",
        history,
        policy=policy,
        politeness={"delay": 0.0, "in_flight": 1000} | polite,
        revisit=revisit,
        revisit_rules=rules,
        max_losses=most,
        max_retries=2,
        **more,
    )
    assert not found, found


A, B = "http://a.com/", "http://b.com/"
ASK, SOON, LOSE = ("next", 3), ("wait", 30.0), ("wait", 700.0)
ANSWERED = [ASK, ("crawled", 0, [], {}), ("failed", 0, 404, None), ("failed", 0, 500, None)]
"""The first page is crawled, the second is gone, and the third waits for its retry."""

RETRY = [*ANSWERED, SOON, ("failed by URL", 0, None)]
"""The first page was crawled, and then it waits for a retry."""

GONE = [("crawled by URL", 1, []), ("failed by URL", 1, 404)]
"""The second page was crawled, and then it is gone."""

DENY = ("deny", "host:a.com")
ELSEWHERE = [("next", 2), DENY, ("redirected", 1, A, True)]
"""The second page redirects to the first, which is leased and refused by the rules."""


@pytest.mark.parametrize("revisit", [None, FixedInterval(50.0), BY_VALUE])
@pytest.mark.parametrize(
    "history",
    [
        pytest.param([*ANSWERED, LOSE, ASK, LOSE], id="a retry is lost"),
        pytest.param([ASK, LOSE, ("next", 0), LOSE, ("next", 1)], id="a lost page is leased alone"),
        pytest.param([*ANSWERED[:2], ("redirected", 0, A, True)], id="leased before its date by value"),
        pytest.param([ASK, LOSE, ("next", 0), LOSE, ("next", 1), SOON, ("release", 3)], id="and released"),
        pytest.param([*ANSWERED, ("reload",)], id="reloaded pages wait"),
        pytest.param([*ANSWERED, ("reload",), LOSE, ASK, ("failed", 0, 500, None)], id="a reload and a retry"),
        pytest.param([("next", 1), DENY, ("redirected", 0, A, False)], id="a leased page is refused"),
        pytest.param(ELSEWHERE, id="a page that is leased elsewhere is refused"),
        pytest.param([*ELSEWHERE, ("crawled", 0, [], {})], id="and crawled"),
        pytest.param([*ELSEWHERE, LOSE], id="and its lease is lost"),
        pytest.param([*ELSEWHERE, ("release", 0)], id="and its lease is released"),
        pytest.param([*GONE, ("reload",)], id="a reload of a page that was crawled before"),
        pytest.param([*GONE, ("reload",), ("crawled by URL", 1, [])], id="an answer ends a reload"),
        pytest.param([*ANSWERED, ("set_due", 0, 300.0), SOON, ("sitemap", 0, 0.0)], id="a hint ends a date"),
        pytest.param([*ANSWERED, SOON, ("sitemap", 0, 0.0), ("set_due", 0, 300.0)], id="a date ends a hint"),
        pytest.param([*RETRY, ("sitemap", 0, 0.0)], id="a hint ends a retry"),
        pytest.param([*RETRY, ("set_due", 0, 300.0), ("sitemap", 0, 0.0)], id="a hint on a retry with a date"),
        pytest.param([*ANSWERED, ("set_due", 0, 300.0), ("crawled by URL", 0, [])], id="an answer ends a date"),
        pytest.param([("set_due", 1, 300.0), ("exclude by URL", 1), ("reload",)], id="a reload ends a date"),
        pytest.param([*ANSWERED, ("set_due", 1, 300.0), ("reload",), ("set_due", 2, 0.0)], id="dates and a reload"),
        pytest.param([*GONE, ("set_due", 1, 300.0), ("seed", [B])], id="a link to a gone page with a date"),
        pytest.param([("failed by URL", 1, 404), ("set_due", 1, 0.0), ("seed", [B])], id="due at once, and a link"),
        pytest.param([*ANSWERED, ("set_due", 0, 0.0), ASK], id="leased at a date that was set"),
        pytest.param([*ANSWERED, ("set_due", 0, 0.0), ASK, ("release", 0)], id="leased at such a date, and released"),
        pytest.param([*ANSWERED, ("set_due", 0, 0.0), SOON, ("sitemap", 0, 0.0), ASK], id="leased after a hint"),
        pytest.param([*ANSWERED, ("set_due", 0, 0.0), ASK, ("crawled", 0, [], {}), LOSE, ASK], id="leased when due"),
    ],
)  # fmt: skip
def test_reopening_after_a_few_events_changes_nothing(tmp_path, history, revisit):
    found = changed_by_reopening(
        tmp_path / "c", history, policy="host-diverse", revisit=revisit, max_losses=3, max_retries=3
    )
    assert not found, found


def test_a_page_that_was_answered_without_a_lease_counts_against_its_budget(tmp_path):
    crawl = opened(tmp_path / "c", Clock(), politeness={"delay": 0.0, "in_flight": 9, "host_budget": 3})
    with crawl:
        crawl.seed([f"http://a.com/{k}" for k in range(9)])
        crawl.crawled("http://a.com/0")
        crawl.failed("http://a.com/1", status=404)
        assert crawl.view.hosts().rows[0].taken == 2
        assert len(crawl.next(9)) == 1
    with Crawl(tmp_path / "c", clock=Clock()) as crawl:
        assert (crawl.view.hosts().rows[0].taken, crawl.view.hosts().rows[0].budget_left) == (3, 0)


def test_hosts_keep_their_turns(tmp_path):
    pages = [f"http://{host}.com/{k}" for k in range(2) for host in "abc"]
    with opened(tmp_path / "c", Clock(), policy="hosts-in-turns") as crawl:
        crawl.seed(pages)
        assert [lease.url for lease in crawl.next(4)] == pages[:4]
    with opened(tmp_path / "c", Clock()) as crawl:
        crawl.seed(["http://a.com/last"])
        assert [lease.url for lease in crawl.next(4)] == [*pages[4:], "http://a.com/last"]


@pytest.mark.parametrize("crawls", [0, 1])
def test_a_page_that_fails_because_its_lease_was_lost_counts_against_its_budget(tmp_path, crawls):
    clock = Clock()
    with opened(tmp_path / "c", clock, max_losses=1, revisit=FixedInterval(50.0)) as crawl:
        crawl.seed(["http://a.com/"])
        for _ in range(crawls):
            crawl.crawled(crawl.next(1)[0])
            clock.now += 50
        crawl.next(1)
        clock.now += 700
        assert crawl.next(1) == []
        assert crawl.view.page("http://a.com/").state == "failed"
        assert crawl.view.hosts().rows[0].taken == 1
    with Crawl(tmp_path / "c", clock=clock) as crawl:
        assert crawl.view.hosts().rows[0].taken == 1
        crawl.reload("failed")
        assert len(crawl.next(1)) == 1
        assert crawl.view.hosts().rows[0].taken == 1


def test_the_order_leaves_out_hosts_of_a_domain_that_spent_its_budget(tmp_path):
    polite = {"delay": 0.0, "domain_budget": 1}
    with opened(tmp_path / "c", Clock(), politeness=polite) as crawl:
        crawl.seed([A, "http://www.a.com/", B])
        assert [row.url for row in crawl.view.order(9).rows] == [A, B]
        crawl.crawled(A)
        assert [row.url for row in crawl.view.order(9).rows] == [B]
        assert [lease.url for lease in crawl.next(1)] == [B]
        assert crawl.due_in() == 600  # when the lease expires


def test_a_budget_that_is_given_back_serves_all_hosts_of_the_domain(tmp_path):
    with opened(tmp_path / "c", Clock(), politeness={"delay": 0.0, "domain_budget": 1}) as crawl:
        crawl.seed([A, "http://www.a.com/"])
        (lease,) = crawl.next(9)
        assert crawl.next(9) == []
        crawl.set_host("a.com", block=1e6)
        crawl.release(lease)
        assert [lease.url for lease in crawl.next(9)] == ["http://www.a.com/"]


@pytest.mark.parametrize("gone", [False, True])
def test_a_link_to_a_page_does_not_end_its_date(tmp_path, gone):
    with opened(tmp_path / "c", Clock()) as crawl:
        crawl.seed(["http://a.com/", "http://b.com/"])
        if gone:
            crawl.failed("http://b.com/", status=404)
        crawl.set_due("http://b.com/", 50)
        crawl.crawled("http://a.com/", ["http://b.com/"])
        assert (crawl.next(9), crawl.due_in()) == ([], 50)


def test_a_link_to_a_page_that_waits_for_another_visit_changes_its_priority(tmp_path):
    clock = Clock()
    with opened(tmp_path / "c", clock, policy="pagerank", revisit=FixedInterval(50.0)) as crawl:
        crawl.seed(["http://a.com/", "http://b.com/", "http://c.com/"])
        crawl.crawled("http://a.com/")
        crawl.crawled("http://b.com/")
        clock.now += 50
        crawl.next(0)
        crawl.crawled("http://c.com/", ["http://b.com/"])
        assert [lease.url for lease in crawl.next(2)] == ["http://b.com/", "http://a.com/"]


def test_times_in_the_log_never_go_back(tmp_path):
    clock = Clock()
    with opened(tmp_path / "c", clock) as crawl:
        crawl.seed(["http://a.com/", "http://b.com/"])
        clock.now += 100
        crawl.next(1)
    clock.now -= 50
    with opened(tmp_path / "c", clock) as crawl:
        crawl.next(1)
        pages = frontier_in(crawl).pages
        times = [pages.frames.frame(place).time for place in pages.frames.of_kind(*range(1, len(KINDS)))]
        assert times == sorted(times)
        assert times[-1] == clock.now + 50


@pytest.mark.parametrize("by", ["host", "domain"])
@pytest.mark.parametrize("closed", [0.0, 4.0, 9.5, 30.0])
def test_the_usual_delay_holds_over_a_restart(tmp_path, by, closed):
    clock = Clock()
    polite = {"delay": 10.0, "in_flight": 9, "by": by}
    with opened(tmp_path / "c", clock, politeness=polite) as crawl:
        crawl.seed([f"http://{host}.com/{k}" for host in "ab" for k in range(3)])
        for lease in crawl.next(2):
            crawl.crawled(lease)
    clock.now += closed
    with Crawl(tmp_path / "c", clock=clock) as crawl:
        wait = max(10.0 - closed, 0.0)
        assert crawl.due_in() == wait
        assert len(crawl.next(9)) == (0 if wait else 2)
        clock.now += wait
        assert len(crawl.next(9)) == (2 if wait else 0)


def test_a_longer_delay_after_a_restart_counts_from_the_last_fetch(tmp_path):
    clock = Clock()
    with opened(tmp_path / "c", clock, politeness={"delay": 1.0, "in_flight": 9}) as crawl:
        crawl.seed(["http://a.com/0", "http://a.com/1"])
        crawl.failed(crawl.next(1)[0], "it broke", status=500)
        crawl.change_settings(politeness={"delay": 100.0, "in_flight": 9})
    clock.now += 40
    with Crawl(tmp_path / "c", clock=clock) as crawl:
        assert crawl.view.hosts().rows[0].due_in == 60
        crawl.change_settings(politeness={"delay": 200.0, "in_flight": 9})
        assert crawl.view.hosts().rows[0].due_in == 160


@pytest.mark.parametrize("limit", ["soft_rate", "hard_rate"])
def test_the_temperature_of_a_crawl_rate_holds_over_a_restart(tmp_path, monkeypatch, limit):
    monkeypatch.setattr("inlink.frontier.restoring._AT_A_TIME", 5)
    clock = Clock()
    polite = {"delay": 0.0, "in_flight": 99, limit: 0.05, "rate_window": 100.0}
    with opened(tmp_path / "c", clock, politeness=polite) as crawl:
        crawl.seed([f"http://a.com/{k}" for k in range(30)])
        for _ in range(12):
            crawl.next(1)
            clock.now += 3
        before = frontier_in(crawl).queue.rows[0].copy()
    with Crawl(tmp_path / "c", clock=clock) as crawl:
        after = frontier_in(crawl).queue.rows[0]
        for name in ("heat", "heated", "due", "soft_due"):
            assert after[name] == pytest.approx(before[name], rel=1e-6, abs=1e-6), name
        assert after["heat"] > 1
