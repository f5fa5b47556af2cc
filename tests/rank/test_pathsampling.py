"""Betweenness from a sample of shortest paths: intervals, uniform paths, the bound on their length, and the values."""

import json
import math

import networkx as nx
import numpy as np
import pytest
import scipy.stats
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import inlink
from inlink import Graph, Ranking
from inlink.cli import commands
from inlink.errors import ParameterError
from inlink.rank.betweenness import betweenness
from inlink.rank.intervals import intervals, planned_trials
from inlink.rank.kernels.pathsampling import PairSearch, sample_paths
from inlink.rank.pathsampling import path_length_bound, path_sample
from strategies import Arcs, arcs

# A guarantee that fails in one of a thousand million runs.
SURE = 1 - 1e-9


# -- intervals ------------------------------------------------------------------------------------------


@given(st.integers(1, 400), st.floats(1e-6, 1), st.floats(2, 1e6))
def test_an_interval_misses_as_rarely_as_it_promises(trials: int, b: float, constant: float):
    """The exact probability, by the binomial distribution, against 2b/C."""
    counts = np.arange(trials + 1)
    low, high = intervals(counts, trials, constant)
    missed = (b < low) | (b > high)
    assert scipy.stats.binom.pmf(counts[missed], trials, b).sum() <= 2 * b / constant


@given(st.integers(2, 300), st.floats(2, 1e6))
def test_the_ends_of_intervals_solve_the_equation(trials: int, constant: float):
    counts = np.arange(trials + 1)
    low, high = intervals(counts[::-1], trials, constant)
    low, high = low[::-1], high[::-1]
    share = counts / trials
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()
    assert (low <= share).all()
    assert (share <= high).all()
    for ends, inner in ((low, counts >= 2), (high, counts < trials)):
        x, b = share[inner], ends[inner]
        kl = scipy.special.rel_entr(x, b) + scipy.special.rel_entr(1 - x, 1 - b)
        np.testing.assert_allclose(trials * kl, np.log(constant / b), rtol=1e-6, atol=1e-5)


@given(st.floats(1e-3, 0.5), st.floats(2, 1e9))
def test_the_first_look_suffices_for_no_path_and_the_last_for_any_number(width: float, odds: float):
    looks = planned_trials(width, odds)
    assert looks == sorted(set(looks))
    constant = len(looks) * odds
    assert intervals(np.zeros(1), looks[0], constant)[1][0] <= width * (1 + 1e-6)
    counts = np.unique(np.geomspace(1, looks[-1] + 1, 300).astype(int) - 1)
    low, high = intervals(np.concatenate([counts, looks[-1] - counts]), looks[-1], constant)
    share = np.concatenate([counts, looks[-1] - counts]) / looks[-1]
    assert np.maximum(high - share, share - low).max() <= width * (1 + 1e-3)


# -- the bound on the length ----------------------------------------------------------------------------


@given(arcs())
def test_no_shortest_path_is_longer_than_the_bound(a: Arcs):
    lengths = dict(nx.all_pairs_shortest_path_length(a.digraph()))
    longest = max((length for row in lengths.values() for length in row.values()), default=0)
    assert longest <= path_length_bound(a.graph()) <= max(a.num_nodes - 1, 0)


@pytest.mark.parametrize(
    ("pairs", "longest"),
    [
        ([(k, k + 1) for k in range(9)], 9),
        ([(k, (k + 1) % 7) for k in range(7)], 6),
        ([(0, k) for k in range(1, 5)] + [(k, 0) for k in range(1, 5)], 2),
        # Two rings of three nodes, and an arc between them
        ([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)], 5),
    ],
)
def test_the_bound_is_tight_where_it_can_be(pairs: list[tuple[int, int]], longest: int):
    assert path_length_bound(Graph.from_arcs(pairs)) == longest


# -- uniform paths --------------------------------------------------------------------------------------


def paths_between(graph: Graph, source: int, target: int, number: int, seed: int = 7) -> np.ndarray:
    """Which nodes lie on each of ``number`` sampled paths: bool[number, n]."""
    n, out, into = graph.num_nodes, graph.out_rows, graph.in_rows
    search = PairSearch(*(np.zeros(n, dtype) for dtype in (np.uint32, np.float64, np.uint32, np.uint32)))
    rows = out.offsets, out.nodes, into.offsets, into.nodes
    ends = np.array([source], np.uint32), np.array([target], np.uint32)
    on = np.zeros((number, n), bool)
    for k in range(number):
        search.counts[:] = 0
        sample_paths(*rows, *ends, np.uint64(seed), np.uint64(k), np.uint64(k + 1), True, search)
        assert search.counts.max() <= 1
        assert not search.marks.any()
        on[k] = search.counts > 0
    return on


@pytest.mark.slow
@pytest.mark.parametrize("turned", [False, True])
def test_all_shortest_paths_are_equally_likely(turned: bool):
    """Layers of 1, 3, 4, 3, 2 and 1 nodes with gaps, and detours that are too long."""
    pairs = [(0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (2, 5), (2, 6), (2, 7), (3, 7), (4, 8), (5, 8), (5, 9)]
    pairs += [(6, 9), (6, 10), (7, 10), (7, 8), (8, 11), (9, 11), (9, 12), (10, 12), (11, 13), (12, 13)]
    pairs += [(0, 14), (14, 1), (5, 5), (13, 0), (9, 2), (12, 11), (0, 15), (15, 16)]
    ends = (13, 0) if turned else (0, 13)
    graph = Graph.from_arcs([(j, i) for i, j in pairs] if turned else pairs)
    theirs = [frozenset(path) for path in nx.all_shortest_paths(graph.to_networkx(), *ends)]
    ours = [frozenset(np.flatnonzero(row).tolist()) for row in paths_between(graph, *ends, 400 * len(theirs))]
    assert set(ours) == set(theirs)
    assert len(theirs) == 14
    assert scipy.stats.chisquare([ours.count(path) for path in theirs]).pvalue > 0.01


def test_more_paths_than_a_float_can_count_are_equally_likely_too():
    """One way doubles the paths 1,200 times, the other 1,199 times and has a layer of one node: it has half as many."""
    pairs, layers, last = list[tuple[int, int]](), list[list[int]](), 1
    n = 2
    for way in range(2):
        layer = [0]
        for k in range(1200):
            size = 1 if way and k == 700 else 2
            following = list(range(n, n + size))
            n += size
            pairs += [(i, j) for i in layer for j in following]
            layer = following
            layers.append(following)
        pairs += [(i, last) for i in layer]
    on = paths_between(Graph.from_arcs(pairs), 0, last, 600)
    assert (on.sum(1) == 1202).all()
    first_way = on[:, layers[0]].any(1)
    assert scipy.stats.binomtest(int(first_way.sum()), 600, 2 / 3).pvalue > 0.01
    for way, layer in ((first_way, layers[0]), (first_way, layers[1199]), (~first_way, layers[1200])):
        taken = on[way][:, layer]
        assert (taken.sum(1) == 1).all()
        assert scipy.stats.binomtest(int(taken[:, 0].sum()), len(taken), 0.5).pvalue > 0.01


def test_a_pair_without_a_path_and_one_that_is_an_arc():
    graph = Graph.from_arcs([(0, 1), (2, 3), (3, 2), (1, 1)])
    assert not paths_between(graph, 0, 3, 3).any()
    assert not paths_between(graph, 2, 1, 3).any()
    assert paths_between(graph, 0, 1, 2).tolist() == [[True, True, False, False]] * 2


# -- values ---------------------------------------------------------------------------------------------


def check_against_exact(graph: Graph, epsilon: float, **options: bool) -> Ranking:
    exact = betweenness(graph, **options).values
    ours = betweenness(graph, epsilon=epsilon, confidence=SURE, **options)
    low, high = ours.intervals()
    rounding = 1e-12 * max(float(exact.max(initial=0.0)), 1e-300)
    assert (low - rounding <= exact).all()
    assert (exact <= high + rounding).all()
    assert (low <= ours.values + rounding).all()
    assert (ours.values <= high + rounding).all()
    error = ours.parameters["max_error"]
    assert (np.abs(ours.values - exact) <= error + rounding).all()
    others = graph.num_nodes if options.get("endpoints") else graph.num_nodes - 1
    factor = 1 if options.get("normalized", True) else max(others * (others - 1), 1)
    assert error <= epsilon * factor * (1 + 1e-6)
    return ours


@settings(max_examples=60)
@given(arcs(), st.booleans(), st.booleans())
def test_exact_values_are_inside_the_intervals(a: Arcs, normalized: bool, endpoints: bool):
    check_against_exact(a.graph(), 0.1, normalized=normalized, endpoints=endpoints)


@pytest.mark.parametrize(
    "pairs",
    [
        [(k, k + 1) for k in range(30)],
        [(k, (k + 1) % 30) for k in range(30)],
        [pair for k in range(1, 30) for pair in ((0, k), (k, 0))],
        [(i, j) for i in range(12) for j in range(12) if i != j],
    ],
    ids=["path", "cycle", "star", "complete"],
)
def test_closed_forms(pairs: list[tuple[int, int]]):
    for endpoints in (False, True):
        check_against_exact(Graph.from_arcs(pairs), 0.03, endpoints=endpoints)


def test_the_hub_of_a_star_is_on_all_paths_of_two_arcs():
    star = Graph.from_arcs([pair for k in range(1, 30) for pair in ((0, k), (k, 0))])
    ours = betweenness(star, epsilon=0.02, confidence=0.9)
    assert ours.top(1)[0][0] == 0
    assert abs(ours[0] - 1) <= ours.parameters["max_error"] <= 0.02
    places = ours.places(3)
    assert places is not None
    assert places.summary() == "1 of the first 3 places are certain; no proven order at places 2 to 3"
    # A complete graph has no inner nodes, and no count is above 0.
    complete = betweenness(Graph.from_arcs([(i, j) for i in range(9) for j in range(9)]), epsilon=0.02)
    assert not complete.values.any()


def web(n: int, seed: int = 0) -> Graph:
    rng = np.random.default_rng(seed)
    pairs = np.stack([rng.integers(0, n, 3 * n), (n * rng.random(3 * n) ** 2).astype(int)], axis=1)
    return Graph.from_arcs(pairs[pairs[:, 0] % 4 > 0].astype(np.uint32), num_nodes=n)


@pytest.mark.slow
def test_the_guarantee_holds_in_as_many_runs_as_promised():
    graph = web(300)
    exact = betweenness(graph).values
    missed = 0
    for seed in range(40):
        ours = betweenness(graph, epsilon=0.03, confidence=0.75, seed=seed)
        low, high = ours.intervals()
        missed += bool(((exact < low) | (exact > high)).any())
        assert ours.parameters["max_error"] <= 0.03
    assert missed <= 10


@pytest.mark.slow
def test_the_result_depends_on_the_seed_and_not_on_the_threads():
    graph = web(2000)
    ours = [betweenness(graph, epsilon=0.02, seed=3, threads=threads) for threads in (1, 2, 5)]
    assert all((other.values == ours[0].values).all() for other in ours)
    assert all(other.parameters == ours[0].parameters for other in ours)
    assert (betweenness(graph, epsilon=0.02, seed=4).values != ours[0].values).any()
    assert ours[0].converged
    assert ours[0].iterations == ours[0].parameters["paths"] in planned(graph, 0.02)
    assert ours[0].note.startswith(
        f"from {ours[0].iterations:,} shortest paths: with confidence 0.95 no value"
    )


def planned(graph: Graph, epsilon: float) -> list[int]:
    n = graph.num_nodes
    pairs = path_sample(graph, epsilon, False, 0.95, 0, 1).pairs
    width, odds = epsilon * (n - 1) * (n - 2) / pairs, 2 * (path_length_bound(graph) - 1) / (1 - 0.95)
    return planned_trials(width, odds)


@pytest.mark.slow
def test_certain_places_are_right():
    """Stars of 10, 20, 40, … nodes, the two smallest of the same size."""
    pairs, first = list[tuple[int, int]](), 6
    for hub, size in enumerate((160, 10, 80, 20, 40, 10)):
        pairs += [pair for k in range(first, first + size) for pair in ((hub, k), (k, hub))]
        first += size
    places = betweenness(Graph.from_arcs(pairs), epsilon=0.002, confidence=SURE).places(8)
    assert places is not None
    assert places.nodes[:4].tolist() == [0, 2, 4, 3]
    assert places.certain.tolist() == [True] * 4 + [False] * 4
    assert places.ties() == [(5, 8)]


@pytest.mark.parametrize(
    "pairs", [[], [(0, 0)], [(0, 1)], [(i, 10 + j) for i in range(10) for j in range(5)]]
)
def test_graphs_in_which_no_path_has_an_inner_node(pairs: list[tuple[int, int]]):
    graph = Graph.from_arcs(np.array(pairs, np.uint32).reshape(-1, 2), num_nodes=20 if pairs else 0)
    ours = betweenness(graph, epsilon=0.1)
    assert not ours.values.any()
    assert (ours.iterations, ours.parameters["max_error"]) == (0, 0.0)
    low, high = ours.intervals()
    assert not low.any()
    assert not high.any()


def test_arguments_are_checked():
    graph = Graph.from_arcs([(0, 1), (1, 2)])
    with pytest.raises(ParameterError, match="`k` draws sources and `epsilon` draws paths: give one of them"):
        betweenness(graph, k=1, epsilon=0.1)
    for epsilon in (0, 1, -0.1, math.nan, "x"):
        with pytest.raises(ParameterError, match="`epsilon` must be a number in"):
            betweenness(graph, epsilon=epsilon)
    with pytest.raises(ParameterError, match="has no intervals"):
        betweenness(graph).intervals()


def test_the_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs = [pair for k in range(1, 30) for pair in ((0, k), (k, 0))]
    inlink.read([(f"h{i}.example", f"h{j}.example") for i, j in pairs], into="g")
    run = CliRunner().invoke
    done = run(
        commands, ["-q", "rank", "g", "--algorithm", "betweenness", "--epsilon", ".02", "--confidence", ".9"]
    )
    assert done.exit_code == 0, done.output
    assert "estimated: from" in done.output
    assert "with confidence 0.9 no value is off by more than 0.01" in done.output
    rows = json.loads(run(commands, ["top", "g", "--by", "betweenness", "-n", "2", "--json"]).stdout)
    assert [(row["node"], row["certain"]) for row in rows] == [("h0.example", True), ("h1.example", False)]
    low, high = Ranking.load("g", "betweenness").intervals()
    assert low[0] <= 1 <= high[0] * (1 + 1e-12)
    refused = run(commands, ["rank", "g", "--algorithm", "betweenness", "--epsilon", ".02", "-k", "3"])
    assert refused.exit_code == 2 or "give one of them" in str(refused.exception)


def test_more_paths_than_can_be_counted_are_refused_before_any_is_drawn():
    ring = Graph.from_arcs([(0, 1), (1, 2), (2, 0)])
    with pytest.raises(
        ParameterError, match=r"`epsilon` 0\.0001 may need [\d,]+ paths on this graph.*exact values"
    ):
        betweenness(ring, epsilon=1e-4, confidence=1 - 1e-12)
    with pytest.raises(ParameterError, match="`epsilon` must be a number"):
        betweenness(ring, epsilon=1e-300)
