"""Freshness of a replay: against brute force, closed forms and recorded changes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import inlink
from archives import http, record, write
from inlink import Graph, VirtualClock
from inlink.errors import FolderError
from inlink.frontier.revisit import ByValue, FixedInterval
from inlink.replaying.archived import web_of_archive
from inlink.replaying.changes import Drawn, RecordedChanges, counted_copies, fresh_rank_of, freshness_of
from inlink.replaying.lines import best_fresh_rank
from inlink.replaying.play import ReplayTask, play
from inlink.replaying.recording import web_of_crawl
from inlink.replaying.web import NO_PAGE, web_of_graph
from inlink.store import format as kinds
from inlink.store.format import struct_of
from inlink.store.log import EVENTS, URLS
from inlink.store.reader import hash_seed_of
from wildframes import resealed, stretches

EAGER = inlink.Politeness(delay=0.0, in_flight=9)


class Yearly:
    """A schedule of the user's own, without fields."""

    def next(self, history):
        return inlink.frontier.revisit.Next(50.0, 50.0)


def brute_freshness(fetches, watched, moment):
    """The share of the copies held at a moment that are current, of those that count; None if none counts."""
    counted, fresh = 0, 0
    for k, (page, time, stale) in enumerate(fetches):
        if page is None or time > moment:
            continue
        if any(other == page and later <= moment for other, later, _ in fetches[k + 1 :]):
            continue
        begin, end = watched[page] if watched else (-math.inf, math.inf)
        if begin <= time <= end and moment < end:
            counted += 1
            fresh += moment < stale
    return fresh / counted if counted else None


@st.composite
def histories(draw):
    """Fetches of four pages, the next change after each fetch, and the known facts about the pages."""
    times = sorted(draw(st.lists(st.integers(0, 12), min_size=1, max_size=10)))
    pages = st.one_of(st.none(), st.integers(0, 3))
    later = st.one_of(st.just(math.inf), st.integers(1, 6))
    fetches = [(draw(pages), float(time), time + draw(later)) for time in times]
    if draw(st.booleans()):
        return fetches, None
    spans = st.one_of(st.just((math.nan, math.nan)), st.tuples(st.integers(0, 6), st.integers(6, 14)))
    return fetches, [draw(spans) for _ in range(4)]


@settings(max_examples=300, deadline=None)
@given(histories())
def test_freshness_is_what_brute_force_counts(history):
    fetches, watched = history
    copies, times, _ = counted(history)
    values, mean = freshness_of(copies, times)
    wanted = [brute_freshness(fetches, watched, time) for _, time, _ in fetches]
    assert [None if math.isnan(value) else value for value in values] == pytest.approx(wanted)
    # All times are whole numbers, so halves between them have the freshness of their intervals.
    last = int(fetches[-1][1])
    between = [brute_freshness(fetches, watched, k + 0.5) for k in range(last)]
    known = [value for value in between if value is not None] or [one for one in wanted if one is not None]
    assert mean == pytest.approx(np.mean(known) if known else math.nan, nan_ok=True)
    held = {page: k for k, (page, _, _) in enumerate(fetches) if page is not None}
    counts = [brute_freshness([fetches[k]], watched, float(last)) is not None for k in held.values()]
    assert copies.left_out == counts.count(False)


def counted(history):
    """The copies of a history that count, the ends of its fetches, and the times between which pages are watched."""
    fetches, watched = history
    times = np.array([time for _, time, _ in fetches])
    spans = None if watched is None else np.array(watched, np.float64)
    pages = np.array([NO_PAGE if page is None else page for page, _, _ in fetches], np.uint32)
    return counted_copies(pages, times, np.array([stale for _, _, stale in fetches]), spans), times, spans


RANKS = (0.5, 0.25, 0.0, 0.125)


def brute_fresh_rank(fetches, watched, moment):
    """Of the rank of the pages watched at a moment, the share with a current copy; None if they have no rank."""
    whole, fresh = 0.0, 0.0
    for page, rank in enumerate(RANKS):
        begin, end = watched[page] if watched else (-math.inf, math.inf)
        if not begin <= moment < end:
            continue
        whole += rank
        held = [(time, stale) for other, time, stale in fetches if other == page and time <= moment]
        fresh += rank * (bool(held) and held[-1][0] >= begin and moment < held[-1][1])
    return fresh / whole if whole else None


@given(histories())
def test_fresh_rank_is_what_brute_force_counts(history):
    fetches, watched = history
    copies, times, spans = counted(history)
    values, mean = fresh_rank_of(copies, times, np.array(RANKS), spans)
    wanted = [brute_fresh_rank(fetches, watched, time) for _, time, _ in fetches]
    assert [None if math.isnan(value) else value for value in values] == pytest.approx(wanted)
    between = [brute_fresh_rank(fetches, watched, k + 0.5) for k in range(int(fetches[-1][1]))]
    known = [value for value in between if value is not None] or [
        value for value in wanted if value is not None
    ]
    assert mean == pytest.approx(np.mean(known) if known else math.nan, nan_ok=True)


def test_the_optimum_of_equal_pages_is_the_closed_form():
    """Equal pages are fetched equally often: B/n times a second."""
    for often in (0.25, 1.0, 4.0):
        best = best_fresh_rank(np.ones(7), np.full(7, 2.0), 7 * 2.0 * often)
        assert best == pytest.approx(often * (1 - math.exp(-1 / often)), rel=1e-6)


def test_no_other_division_of_the_budget_is_better_than_the_best_fresh_rank():
    ranks, rates, budget = np.array([1.0, 3.0, 0.2]), np.array([0.5, 2.0, 9.0]), 1.7
    best, dice = best_fresh_rank(ranks, rates, budget), np.random.default_rng(1)
    often = dice.dirichlet(np.ones(3), 20_000) * budget
    freshness = ((ranks * -np.expm1(-rates / often) * often / rates).sum(1) / ranks.sum()).max()
    assert best - 1e-3 < freshness <= best + 1e-9


@pytest.mark.slow
def test_the_optimum_is_a_line_of_drawn_changes_and_no_schedule_is_above_it(star):
    """A fixed interval keeps less rank current than the optimum."""
    replayed = {
        interval: inlink.replay(
            star, policies=["breadth-first", "random"], seeds=[[0]], budget=3000, marks=[1.0], host_pages=[0],
            changes=300.0, settings={"revisit": FixedInterval(interval)}, fetch_seconds=1.0, tau=False,
        )
        for interval in (100.0, 300.0)
    }  # fmt: skip
    for result in replayed.values():
        best = result.values("optimum of revisits", "fresh-rank")
        assert result.values("breadth-first", "fresh-rank")[0] < best[0]
        assert result.values("optimum of revisits", "pagerank") == []
        assert "optimum of revisits" in [row[0] for row in result.table("fresh-rank")[1]]
    recorded = inlink.replay(star, policies=["random"], seeds=[[0]], budget=300, marks=[1.0], tau=False)
    assert "optimum of revisits" not in recorded.orders


@pytest.mark.slow
def test_drawn_changes_are_a_poisson_process_of_each_page():
    horizon, gaps = 2_000.0, []
    for page in range(300):
        drawn, times, time = Drawn(10.0, 7), [], 0.0
        while (time := drawn.at(page, time)[1]) < horizon:
            times.append(time)
        # The number of changes is the same whether it is asked for in steps or at once.
        assert Drawn(10.0, 7).at(page, horizon)[0] == len(times)
        if len(times) > 50:
            gaps.append(np.diff(times) / np.mean(np.diff(times)))
    joined = np.concatenate(gaps)
    # Exponential gaps: the variance is the square of the mean, and e⁻¹ of them are longer than the mean.
    assert joined.var() == pytest.approx(1.0, abs=0.05)
    assert (joined > 1).mean() == pytest.approx(math.exp(-1), abs=0.01)
    assert Drawn(10.0, 7).at(3, 100.0) != Drawn(10.0, 8).at(3, 100.0)


@pytest.fixture(scope="module")
def star() -> Graph:
    return Graph.from_arcs([(0, k) for k in range(1, 300)])


@pytest.mark.parametrize(
    "ratio", [1.0, *(pytest.param(ratio, marks=pytest.mark.slow) for ratio in (0.2, 5.0))]
)
def test_a_fixed_interval_has_the_freshness_of_the_formula(star, ratio):
    """A page with rate λ is fresh for (1 − e^−λI)/λI of the time; over exponential rates that is ln(1 + r)/r."""
    found = inlink.replay(
        star, policies=["breadth-first"], seeds=[[0]], budget=300 * 5, marks=[1.0], host_pages=[0], changes=100.0,
        settings={"revisit": FixedInterval(100.0 * ratio)}, tau=False,
    )  # fmt: skip
    assert found.values("breadth-first", "freshness") == pytest.approx([math.log1p(ratio) / ratio], abs=0.02)
    # All pages are fetched at the same moment, so after each round all copies are current.
    assert found.values("breadth-first", "freshness", 1.0) == [1.0]
    assert found.measures[-2:] == ["freshness", "fresh-rank"]
    assert "sort bound" in {run.order for run in found.runs}
    assert found.values("sort bound", "freshness") == []


@pytest.mark.slow
def test_without_revisits_copies_grow_old(star):
    given = {
        "policies": ["breadth-first", "random"], "seeds": [[0]], "budget": 300, "host_pages": [0], "changes": 50.0,
        "settings": {"politeness": {"delay": 1.0}}, "marks": [0.1, 1.0], "tau": False,
    }  # fmt: skip
    found = inlink.replay(star, **given)
    early, late = (found.values("random", "freshness", at)[0] for at in (0.1, 1.0))
    assert 0 < late < early < 1
    assert inlink.replay(star, **given, random_seed=2).to_json() != found.to_json()
    assert [row[0] for row in found.table("freshness")[1]] == ["breadth-first", "random"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "revisit",
    [ByValue(budget=86_400.0, initial=40.0), Yearly(), {"schedule": "FixedInterval", "seconds": 30.0}],
)
def test_any_schedule_can_be_replayed(star, revisit):
    found = inlink.replay(
        star, policies=["breadth-first"], seeds=[[0]], budget=700, marks=[1.0], changes=20.0, tau=False,
        settings={"revisit": revisit}, host_pages=[0], jobs=2, lines=False,
    )  # fmt: skip
    assert found.runs[0].fetches == 700
    assert 0 < found.values("breadth-first", "freshness")[0] < 1
    assert found.values("breadth-first", "pagerank", 1.0) == pytest.approx([1.0])
    assert found.settings["crawl"]["revisit"]["schedule"]


@pytest.mark.slow
def test_a_schedule_by_value_learns_which_pages_change(star):
    """Half of the pages never change. A schedule that notices this fetches them less often."""

    class Half(Drawn):
        def at(self, page, time):
            return super().at(page, time) if page % 2 else (0, math.inf)

    revisit = {"schedule": "ByValue", "budget": 86_400.0, "initial": 10.0, "shortest": 1.0}
    web = web_of_graph(star, "star", 0)
    played = play(web, ReplayTask("breadth-first", [0], 3_000, {"revisit": revisit}), changes=Half(5.0, 1))
    changing = np.bincount(played.copies % 2)
    assert changing[1] > 1.5 * changing[0]


@pytest.fixture
def recorded(tmp_path):
    """Pages that were fetched at 0, 10, 20, 30 s. /a changes at 20 s, /b has no hashes, /once fails after 0 s."""
    clock, folder = VirtualClock(1_000.0), tmp_path / "rec"
    with inlink.Crawl(
        folder, policy="first-come", politeness=EAGER, clock=clock, revisit=FixedInterval(10.0)
    ) as crawl:
        crawl.seed([f"http://a.example/{name}" for name in ("", "a", "b", "once")])
        for turn in range(4):
            for lease in crawl.next(9):
                name = lease.url.rpartition("/")[2]
                if name == "once" and turn:
                    crawl.failed(lease, "gone", status=410)
                    continue
                content = {"": b"same", "a": b"new" if turn > 1 else b"old", "b": b"", "once": b"x"}[name]
                crawl.crawled(lease, ["/", "/a", "/b", "/once"], content_hash=content)
            clock.advance(10.0)
    return folder


def test_recorded_changes_are_those_that_visits_found(recorded):
    web = web_of_crawl(recorded)
    known = {
        url.rpartition("/")[2]: (web.watched[page].tolist(), RecordedChanges(web).at(page, 0.0))
        for page, url in enumerate(web.urls)
    }
    assert known[""] == ([0.0, 30.0], (0, math.inf))
    assert known["a"] == ([0.0, 30.0], (0, 20.0))
    assert np.isnan(known["b"][0]).all()
    assert np.isnan(known["once"][0]).all()
    assert RecordedChanges(web).at(web.urls.index("http://a.example/a"), 20.0) == (1, math.inf)


@pytest.mark.parametrize("kind", [kinds.SEED, kinds.LEASE, kinds.VISIT])
def test_an_earlier_visit_that_is_another_event_is_refused_in_one_line(recorded, kind):
    events, urls = (recorded / EVENTS).read_bytes(), (recorded / URLS).read_bytes()
    heads = [
        (begin, end, kinds.Head._make(struct_of(kinds.Head).unpack_from(events, begin)))
        for begin, end in stretches(events)
    ]
    begin, end, last = [row for row in heads if row[2].kind == kinds.VISIT][-1]
    wrong = next(row[0] for row in heads if row[2].kind == kind and row[2].page != last.page)
    packed = struct_of(kinds.VisitRecord)
    visit = kinds.VisitRecord._make(packed.unpack_from(events, begin + kinds.HEAD_SIZE))
    frame, salt = bytearray(events[begin:end]), kinds.salt_of(hash_seed_of(recorded))
    packed.pack_into(frame, kinds.HEAD_SIZE, *visit._replace(previous=wrong + 1))
    (recorded / EVENTS).write_bytes(events[:begin] + resealed(bytes(frame), urls, salt) + events[end:])
    with pytest.raises(
        FolderError, match=f"no earlier visit of page {last.page} is at byte {wrong:,}"
    ) as told:
        web_of_crawl(recorded)
    assert "\n" not in str(told.value)


def test_pages_that_a_recording_lacks_are_counted(recorded):
    found = inlink.replay(
        recorded, policies=["first-come"], seeds="recorded", budget=8, marks=[1.0], tau=False,
        settings={"revisit": FixedInterval(24.0)},
    )  # fmt: skip
    (run,) = (run for run in found.runs if run.order == "first-come")
    # Four pages are fetched at 0 s and at 24 s; / and /a count, and /a is old from 20 s to 24 s.
    assert found.values("first-come", "freshness") == pytest.approx([(20 + 4 * 0.5) / 24])
    assert found.values("first-come", "freshness", 1.0) == [1.0]
    assert run.counts["copies whose changes are not recorded"] == 2


def capture(kind, path, body, second, status="200 OK"):
    whole = http(body.encode(), status=status) if kind == "response" else b""
    return record(kind, whole, url=f"http://a.example/{path}", date=f"2024-05-01T00:00:{second:02}Z")


def test_an_archive_knows_changes_of_pages_that_it_has_several_times(tmp_path):
    path = write(
        tmp_path / "a.warc.gz",
        [
            capture("response", "", '<a href="/a">a</a>', 10),
            capture("revisit", "early", "", 10),
            capture("revisit", "", "", 30),
            # Out of order: the page changed between 20 s and 40 s, and was the same at 30 s.
            capture("response", "a", "new", 40),
            capture("response", "a", "old", 20),
            capture("revisit", "a", "", 30),
            # Neither an error page nor a record without an HTTP response is a capture of the page.
            capture("response", "a", "gone", 50, status="404 Not Found"),
            record("response", b"rubbish", url="http://a.example/a", date="2024-05-01T00:00:55Z"),
            capture("response", "late", "x", 11),
        ],
        packed="gzip",
    )
    web = web_of_archive(path)
    known = {
        url.rpartition("/")[2]: (web.watched[page].tolist(), RecordedChanges(web).at(page, 0.0))
        for page, url in enumerate(web.urls)
    }
    assert known[""] == ([0.0, 20.0], (0, math.inf))
    assert known["a"] == ([10.0, 30.0], (0, 30.0))
    assert np.isnan(known["late"][0]).all()
    assert "early" not in known
    found = inlink.replay(
        path, policies=["breadth-first"], seeds=[["http://a.example/"]], budget=4, marks=[1.0], tau=False,
        settings={"revisit": FixedInterval(15.0)},
    )  # fmt: skip
    assert found.measures[-2:] == ["freshness", "fresh-rank"]
