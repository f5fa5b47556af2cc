"""Revisits by value: formulas against integrals and closed forms, and crawls whose dates follow from their events."""

import math

import numpy as np
import pytest
from bench.freshness import Switched, weighted_freshness
from hypothesis import given
from hypothesis import strategies as st

from crawlstrategies import Clock, frontier_in, opened
from inlink import Graph, VirtualClock
from inlink.crawl.asof import as_of
from inlink.crawl.crawl import Crawl
from inlink.crawl.folder import look
from inlink.errors import ParameterError
from inlink.frontier import byvalue
from inlink.frontier.byvalue import ages_of, intervals, kinds_of, threshold_of, value_of
from inlink.frontier.revisit import DAY, ByValue, FixedInterval, History
from inlink.rank.pagerank import pagerank
from inlink.replaying.lines import best_fresh_rank
from inlink.replaying.play import ReplayTask, play
from inlink.replaying.web import web_of_graph
from inlink.store.format import HINT
from patience import wait_until

HOME = "http://a.com/"
SAME = np.array([1.0]), np.array([1e8])
"""The shortest and the longest interval of all pages."""


def integral(shape: float, age: float) -> float:
    """V with w/λ = 1: the mean of ∫λs·e^(−λs)·ds over the gamma distribution of λ with mean 1, by the midpoint rule."""
    steps = 200_000
    times = (np.arange(steps) + 0.5) * age / steps
    return float((times * (1 + times / shape) ** (-shape - 1)).sum() * age / steps)


@pytest.mark.parametrize("shape", [0.5, 1.5, 4.0, 200.0])
@pytest.mark.parametrize("age", [0.1, 1.0, 7.0])
def test_the_value_is_the_mean_over_the_rates(shape, age):
    assert value_of(np.array([shape]), np.array([age]))[0] == pytest.approx(integral(shape, age), rel=1e-5)


def test_with_much_evidence_the_value_is_that_of_a_known_rate():
    ages = np.array([0.1, 1.0, 3.0])
    known = 1 - np.exp(-ages) * (1 + ages)
    assert value_of(np.full(3, 1e5), ages) == pytest.approx(known, rel=1e-3)


@given(st.floats(0.5, 200.0), st.floats(1e-3, 4.0))
def test_the_table_is_the_inverse_of_the_formula(found, age):
    kinds = kinds_of(np.array([found]))
    shapes = byvalue._SHAPES[kinds]
    assert shapes[0] == pytest.approx(found, rel=0.07)
    value = np.log(value_of(shapes, np.array([age])))
    assert ages_of(kinds, value)[0] == pytest.approx(age, rel=1e-3)
    assert ages_of(kinds_of(np.array([20.0])), np.array([math.log(21 / 20) + 0.1]))[0] == math.inf


@given(
    st.lists(st.tuples(st.floats(1e-6, 1), st.floats(1, 50), st.floats(0.1, 100)), min_size=1, max_size=40)
)
def test_the_threshold_uses_the_budget(pages):
    rates, shapes, ranks = (np.array(column) for column in zip(*pages, strict=True))
    budget = len(pages) / 1e4
    threshold = threshold_of(rates, shapes, ranks, budget, *SAME, np.zeros(len(pages), np.uint32))

    def fetches(threshold):
        return (1 / np.clip(intervals(rates, shapes, ranks, threshold), 1.0, 1e8)).sum()

    # Pages are counted in bins, so the threshold has a small error.
    assert fetches(threshold * 1.06) <= budget * 1.02
    assert fetches(threshold / 1.06) >= budget * 0.98


def test_equal_pages_are_fetched_at_the_fixed_interval():
    rates, shapes, ranks = np.full(50, 0.01), np.full(50, 3.0), np.ones(50)
    threshold = threshold_of(rates, shapes, ranks, 0.5, *SAME, np.zeros(50, np.uint32))
    assert intervals(rates, shapes, ranks, threshold) == pytest.approx(np.full(50, 100.0), rel=0.01)


def fetch(crawl, clock, count, links=(), changing=(), until=math.inf):
    """Fetch pages; the content of those in ``changing`` is always new."""
    for _ in range(count):
        while not (leases := crawl.next(1)):
            due = crawl.due_in()
            if due is None or clock.now + due > until:
                return
            clock.now += max(due, 1e-3)
        (lease,) = leases
        mark = repr(clock.now) if lease.url in changing else "same"
        crawl.crawled(lease, links if lease.url == HOME else [HOME], content_hash=mark.encode())


PAGES = [f"{HOME}{k}" for k in range(30)]
PLAN = ByValue(budget=DAY / 10, initial=300.0, shortest=1.0, longest=1e6)
CALM = {"rerank_share": None}
"""No process ranks by itself."""


def crawled(folder, clock, count=400, **more):
    crawl = opened(folder, clock, policy="pagerank", revisit=PLAN, politeness={"delay": 0.0}, **more | CALM)
    crawl.seed([HOME])
    fetch(crawl, clock, count, PAGES, set(PAGES[:10]))
    return crawl


@pytest.mark.slow
def test_a_crawl_uses_its_budget_and_learns_which_pages_change(tmp_path):
    clock = Clock()
    with crawled(tmp_path / "c", clock, 300) as crawl:
        began = clock.now
        fetch(crawl, clock, 300, PAGES, set(PAGES[:10]))
        assert 300 / (clock.now - began) == pytest.approx(0.1, rel=0.1)
        values = [crawl.why(url).value for url in PAGES]
        assert min(value.rate for value in values[:10]) > 3 * max(value.rate for value in values[10:])
        crawls = [crawl.page(url).crawls for url in PAGES]
        assert min(crawls[:10]) > max(crawls[10:])


@pytest.mark.slow
def test_why_says_the_rate_the_rank_and_the_date(tmp_path):
    clock = Clock()
    with crawled(tmp_path / "c", clock) as crawl:
        url = next(url for url in PAGES if crawl.why(url).due_in)
        clock.now += crawl.why(url).due_in / 2
        why = crawl.why(url)
        assert why.value.threshold > why.value.value > 0
        assert "revisit by value: changes every" in str(why)
        # At its date, the value of a fetch is the threshold.
        clock.now += why.due_in
        assert crawl.why(url).value.value == pytest.approx(why.value.threshold, rel=0.05)


def plans_of(frontier, clock):
    frontier.advance(clock.now)
    return dict(frontier.plans), frontier.values.numbers()["state"]


@pytest.mark.slow
def test_a_reader_and_an_earlier_moment_have_the_same_dates(tmp_path):
    clock = Clock()
    with crawled(tmp_path / "c", clock) as crawl:
        crawl.rerank(wait=True)
        crawl.next(0)
        moment = clock.now
        early = plans_of(frontier_in(crawl), clock)
        seen = plans_of(look(tmp_path / "c", clock), clock)
        assert seen == early
        clock.now += 1
        fetch(crawl, clock, 100, PAGES)
        crawl.change_settings(revisit=FixedInterval(50.0))
    with as_of(tmp_path / "c", moment, tmp_path) as then:
        assert not then.approximate
        assert plans_of(look(then.folder, Clock(moment)), Clock(moment)) == early


@pytest.mark.slow
def test_another_budget_plans_all_pages_anew(tmp_path):
    clock = Clock()
    with crawled(tmp_path / "c", clock) as crawl:
        # No ranking may finish in the background between here and the second opening.
        crawl.rerank(wait=True)
        before = frontier_in(crawl).values._threshold
        crawl.change_settings(revisit=ByValue(budget=DAY, initial=300.0, shortest=1.0, longest=1e6))
        crawl.next(0)
        assert frontier_in(crawl).values._threshold < before
        live = plans_of(frontier_in(crawl), clock)
    with Crawl(tmp_path / "c", clock=clock) as crawl:
        crawl.next(0)
        assert plans_of(frontier_in(crawl), clock) == live


@pytest.mark.slow
def test_the_call_that_adopts_a_ranking_plans_anew(tmp_path):
    clock = Clock()
    with crawled(tmp_path / "c", clock) as crawl:
        crawl.rerank(wait=True)
        fetch(crawl, clock, 5, PAGES)
        crawl.rerank()
        wait_until(lambda: crawl.next(0) or not crawl.ranking, "the ranking")
        assert not frontier_in(crawl).values.outdated


def test_pages_that_are_gone_leave_their_budget_to_the_others(tmp_path):
    clock = Clock()
    with crawled(tmp_path / "c", clock) as crawl:
        before = frontier_in(crawl).values._threshold
        for url in PAGES[:9]:
            crawl.failed(url, "gone", status=410)
        fetch(crawl, clock, 40, PAGES)
        assert frontier_in(crawl).values._threshold < before
        assert crawl.why(PAGES[0]).value is None
        assert crawl.why(PAGES[0]).due_in is None


@pytest.mark.slow
def test_a_date_from_outside_holds_over_a_new_threshold(tmp_path):
    clock = Clock()
    with crawled(tmp_path / "c", clock) as crawl:
        crawl.set_due(PAGES[3], 1e7)
        crawl.set_due(PAGES[4], math.inf)
        fetch(crawl, clock, 100, PAGES)
        assert crawl.why(PAGES[3]).due_in == pytest.approx(1e7 - 100 / 0.1, rel=1e-2)
        assert crawl.why(PAGES[4]).never_due


def test_pages_without_hashes_are_no_evidence(tmp_path):
    clock = Clock()
    with opened(tmp_path / "c", clock, revisit=PLAN, politeness={"delay": 0.0}, **CALM) as crawl:
        crawl.seed([HOME])
        for _ in range(5):
            clock.now += crawl.due_in() or 0
            crawl.crawled(crawl.next(1)[0], [])
        assert crawl.why(HOME).value.rate == pytest.approx(1 / PLAN.initial)


def learned(answers, seconds, initial=1000.0):
    """The rate that a single page has after answers, each so many seconds after the one before."""
    values = byvalue.PageValues(_OnePage(), ByValue(budget=1.0, initial=initial))
    for changed in answers:
        values._learn(1, seconds, changed=changed)
    return float(values._rates(np.array([1]))[0])


class _OnePage:
    """As much of Pages as learning reads."""

    answered, hosts, depths = np.zeros(2, np.uint32), np.zeros(1, np.uint32), np.zeros(1, np.uint16)


@pytest.mark.parametrize("rate", [0.002, 0.01, 0.05])
def test_the_rate_is_learned_from_changes_that_hide_others(rate):
    dice, seconds = np.random.default_rng(3), 30.0
    rates = [learned(dice.random(60) < 1 - math.exp(-rate * seconds), seconds, 100.0) for _ in range(60)]
    assert np.median(rates) == pytest.approx(rate, rel=0.4)


def test_old_evidence_is_forgotten_when_answers_contradict_it():
    before = learned([False] * 100, 100.0)
    assert before < 1 / 5000
    assert learned([False] * 100 + [True] * 6, 100.0) > 5 * before
    assert learned([True] * 60 + [False] * 40, 100.0) < learned([True] * 60, 100.0) / 3


@pytest.mark.parametrize(
    "fields", [{"budget": 0}, {"budget": -1}, {"budget": math.inf}, {"budget": 1, "initial": 0}]
)
def test_wrong_fields_are_refused(fields):
    with pytest.raises(ParameterError, match=r"ByValue\.(budget|initial) must be"):
        ByValue(**fields)
    with pytest.raises(ParameterError, match="is above longest"):
        ByValue(budget=1, shortest=100, longest=99)


def test_alone_the_schedule_has_no_dates():
    assert ByValue(budget=1).next(History(0.0, 0.0, 1)).due_in is None


@pytest.mark.slow
def test_most_of_the_rank_that_the_optimum_keeps_current_is_kept():
    """A small site that changes: ahead of a fixed interval with the same budget, and near the optimum."""
    n, mean, budget = 60, 100.0, 0.6
    graph = Graph.from_arcs([(0, k) for k in range(n)] + [(k, 1 + k // 8) for k in range(n)])
    ranks, rates = pagerank(graph).values, np.random.default_rng(4).exponential(1, n) / mean
    shares = []
    for schedule in (FixedInterval(n / budget), ByValue(budget=budget * DAY, initial=mean, shortest=1.0)):
        settings = {"revisit": schedule, "politeness": {"delay": 0.0}, "rerank_seconds": mean}
        task = ReplayTask("host-diverse", [0], 1500, settings, 1, 0.2)
        played = play(web_of_graph(graph, "site", 0), task, changes=Switched(rates, rates, 0.0, 5))
        end = float(played.times[-1])
        shares.append(weighted_freshness(played, ranks, end / 2, end) / best_fresh_rank(ranks, rates, budget))
    fixed, by_value = shares
    assert fixed + 0.05 < by_value
    assert 0.93 < by_value < 1.05


def test_virtual_time_may_begin_at_zero(tmp_path):
    clock = VirtualClock(0.0)
    with Crawl(tmp_path / "c", clock=clock, revisit=PLAN, politeness={"delay": 0.0}, **CALM) as crawl:
        crawl.seed([HOME])
        for k in range(4):
            if k:
                crawl.wait()
            crawl.crawled(crawl.next(1)[0], [], content_hash=b"%d" % k)
        assert crawl.why(HOME).value.rate > 1 / PLAN.initial


# -- what sitemaps and validators report ------------------------------------------------------------------------------


def site_with_a_sitemap(folder, reports, turns=500):
    """A crawl of 40 pages that change at random. Every 100 s, a sitemap reports pages: ``reports(page, changed, now)``.

    Returns the mean share of pages whose copy is current in the second half of the time, fetches a second in that
    half, and the trust in the sitemap.
    """
    clock, dice, began = Clock(), np.random.default_rng(7), 1_000_000.0
    plan = ByValue(budget=DAY / 25, initial=1000.0, shortest=1.0)
    rates = np.repeat([1 / 300, 1 / 5000], 20)
    urls = [f"{HOME}{k}" for k in range(40)]
    changed_at, fetched_at, fresh, fetches = np.full(40, began), np.zeros(40), [], 0
    with opened(folder, clock, policy="first-come", revisit=plan, politeness={"delay": 0.0}) as crawl:
        crawl.seed(urls)
        for turn in range(turns):
            if turn % 10 == 0:
                crawl.sitemap(
                    [
                        (url, reports(page, float(changed_at[page]), clock.now), 0.5)
                        for page, url in enumerate(urls)
                    ]
                )
            for lease in crawl.next(9):
                page = urls.index(lease.url)
                crawl.crawled(lease, content_hash=b"%f" % changed_at[page])
                fetched_at[page] = clock.now
                fetches += turn >= turns // 2
            if turn >= turns // 2:
                fresh.append((changed_at <= fetched_at).mean())
            clock.now += 10.0
            changed_at[dice.random(40) < 1 - np.exp(-10 * rates)] = clock.now - 1
        values = frontier_in(crawl).values
        return float(np.mean(fresh)), fetches / (10 * (turns - turns // 2)), float(values._trust[0])


REPORTS = {
    "none": lambda page, changed, now: None,
    "honest": lambda page, changed, now: changed,
    "always now": lambda page, changed, now: now,
    "future": lambda page, changed, now: now + 1e6,
}


@pytest.mark.slow
def test_an_honest_sitemap_helps_and_a_lying_one_does_no_harm(tmp_path):
    found = {name: site_with_a_sitemap(tmp_path / name, report) for name, report in REPORTS.items()}
    usual, rate, _ = found["none"]
    assert found["future"] == found["none"]
    assert found["honest"][0] > usual + 0.05
    assert found["honest"][2] > 0.4
    # Reports of the lying sitemap are right only by chance.
    assert found["always now"][2] < 0.1
    assert found["always now"][0] > usual - 0.05
    assert found["always now"][1] < 1.25 * rate


@pytest.mark.slow
def test_a_report_that_is_believed_makes_the_date_earlier_everywhere(tmp_path):
    clock, folder = Clock(), tmp_path / "c"
    with crawled(folder, clock) as crawl:
        url = PAGES[20]
        for turn in range(20):
            clock.now += 5
            crawl.sitemap([(url, clock.now - 1, 0.5)])
            if turn == 0:
                # There is no evidence on the sitemap yet.
                assert crawl.why(url).value.trust == 0
            crawl.crawled(url, content_hash=b"%d" % turn)
        # The page no longer changes, so it is due late.
        for _ in range(60):
            clock.now += 200
            crawl.crawled(url, content_hash=b"same")
        crawl.rerank(wait=True)
        crawl.next(0)
        before = crawl.why(url).due_in
        crawl.set_due(url, math.inf)
        clock.now += 2
        crawl.sitemap([(url, clock.now - 1, 0.5)])
        why = crawl.why(url)
        assert why.due_in < before - 3
        assert 0 < why.value.trust < 1
        assert "its sitemap reports a change, which is trusted by" in str(why)
        live = plans_of(frontier_in(crawl), clock)
        assert plans_of(look(folder, clock), clock) == live
        assert frontier_in(crawl).pages.frames.of_kind(HINT)
    with Crawl(folder, clock=clock) as crawl:
        assert plans_of(frontier_in(crawl), clock) == live


def test_an_answer_of_304_is_an_answer_without_a_change(tmp_path):
    clock = Clock()
    with opened(tmp_path / "c", clock, revisit=PLAN, politeness={"delay": 0.0}, **CALM) as crawl:
        crawl.seed([HOME])
        for status, mark in ((200, b"a"), (304, b""), (200, b"a"), (304, b""), (304, b"")):
            clock.now += crawl.due_in() or 0
            crawl.crawled(crawl.next(1)[0], status=status, content_hash=mark)
        page = crawl.page(HOME)
        assert (page.crawls, page.changes, page.content_hash, page.status) == (5, 0, b"a", 304)
        assert crawl.why(HOME).value.rate < 1 / PLAN.initial
        clock.now += crawl.due_in()
        crawl.crawled(crawl.next(1)[0], content_hash=b"b")
        assert crawl.page(HOME).changes == 1


def test_the_prior_is_that_of_the_pages_of_the_same_host_and_depth(tmp_path):
    clock = Clock()
    chain = [HOME, *(f"{HOME}{k}" for k in range(12))]
    with opened(
        tmp_path / "c", clock, revisit=PLAN, politeness={"delay": 0.0, "in_flight": 99}, **CALM
    ) as crawl:
        crawl.seed([HOME])
        crawl.crawled(HOME, chain[1:7])
        crawl.crawled(chain[1], chain[7:])
        for turn in range(40):
            clock.now += 50
            for url in chain[1:6]:
                crawl.crawled(url, chain[7:] if url == chain[1] else [], content_hash=b"%d" % turn)
            for url in chain[7:12]:
                crawl.crawled(url, content_hash=b"same")
        # Neither page was fetched before, and both have the same host.
        crawl.crawled(chain[6])
        crawl.crawled(chain[12])
        crawl.rerank(wait=True)
        crawl.next(0)
        shallow, deep = crawl.why(chain[6]).value, crawl.why(chain[12]).value
        assert (crawl.page(chain[6]).depth, crawl.page(chain[12]).depth) == (1, 2)
        assert shallow.usual == shallow.rate > 3 * deep.rate == 3 * deep.usual
