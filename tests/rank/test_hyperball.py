"""HyperBall against a twin in plain Python, against exact sums, and against the theory of its error."""

import hashlib
import math
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inlink
from inlink import Graph
from inlink.errors import ParameterError
from inlink.rank.closeness import closeness, harmonic
from inlink.rank.hyperball import HyperBall, mean_of_runs
from inlink.rank.kernels.hyperball import LONG
from strategies import Arcs, arcs

MASK = (1 << 64) - 1


def hashed(node: int, key: int) -> int:
    h = (key + node * 0x9E3779B97F4A7C15) & MASK
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    h = (h ^ (h >> 27)) * 0x94D049BB133111EB & MASK
    return h ^ (h >> 31)


def registers(ball: set[int], key: int, log2m: int) -> list[int]:
    counter = [0] * (1 << log2m)
    for node in ball:
        h = hashed(node, key)
        zeros = len(f"{h:064b}") - len(f"{h:064b}".rstrip("0"))
        place = h >> (64 - log2m)
        counter[place] = max(counter[place], min(zeros + 1, 40))
    return counter


def size(counter: list[int]) -> float:
    m, zeros = len(counter), counter.count(0)
    if zeros == m:
        return 0.0
    # σ(x) of Ertl's algorithm 4, as a series
    sigma = zeros / m + sum((zeros / m) ** (2**k) * 2 ** (k - 1) for k in range(1, 40))
    return 0.7213 / (1 + 1.079 / m) * m * m / (sum(2.0**-r for r in counter if r) + m * sigma)


def twin(a: Arcs, key: int, log2m: int) -> tuple[np.ndarray, np.ndarray, list[list[float]]]:
    """Σ 1/d and Σ d to each node, from sets of nodes, and the sizes of its balls."""
    before = [{u for u, w in a.pairs if w == v and u != v} for v in range(a.num_nodes)]
    inverse, far = np.zeros(a.num_nodes), np.zeros(a.num_nodes)
    balls: list[list[float]] = []
    for v in range(a.num_nodes):
        # The first step is exact. The others are estimated, unless no neighbour has a neighbour.
        ball, sizes = {v} | before[v], [1.0, 1.0 + len(before[v])]
        while any(before[u] for u in before[v]):
            grown = ball.union(*(before[u] for u in ball))
            sizes.append(size(registers(grown, key, log2m)))
            if grown == ball:
                break
            ball = grown
        inverse[v] = sum((s - r) / t for t, (r, s) in enumerate(pairwise(sizes), 1))
        far[v] = sum((s - r) * t for t, (r, s) in enumerate(pairwise(sizes), 1))
        balls.append(sizes)
    return inverse, far, balls


def check_against_twin(a: Arcs, key: int, log2m: int, threads: int, few: int | None):
    graph = a.graph()
    inverse, far, sizes = twin(a, key, log2m)
    balls = HyperBall(graph.split_in_rows, graph.out_rows, log2m, threads, few)
    # Each run makes its own counters, whatever an earlier run left in them.
    balls.run(key ^ 1, inverse=True, label="")
    # Sizes are kept with 24 bits.
    np.testing.assert_allclose(balls.run(key, inverse=True, label="").sums, inverse, rtol=1e-6, atol=1e-6)
    run = balls.run(key, inverse=False, label="")
    np.testing.assert_allclose(run.sums, far, rtol=1e-5, atol=1e-5)
    assert len(run.pairs) == run.steps + 1
    pairs = [sum(row[min(t, len(row) - 1)] for row in sizes) for t in range(run.steps + 1)]
    np.testing.assert_allclose(run.pairs, pairs, rtol=1e-6)


@given(
    arcs(max_nodes=20),
    st.integers(0, MASK),
    st.sampled_from([4, 5, 8]),
    st.sampled_from([1, 2]),
    st.sampled_from([0, 3, None]),
)
def test_registers_and_sums_are_those_of_sets(a: Arcs, key: int, log2m: int, threads: int, few: int | None):
    check_against_twin(a, key, log2m, threads, few)


@pytest.mark.slow
@pytest.mark.parametrize("few", [0, 40, None])
def test_nodes_that_nobody_reads(few: int | None):
    # A node with a long row and without outlinks has one counter; one with a short row has none.
    rng = np.random.default_rng(4)
    n = 150
    pairs = [(int(u), int(v)) for u, v in rng.integers(0, n - 4, (3 * n, 2))]
    pairs += [(i, i + 1) for i in range(60)]
    pairs += [(int(u), n - 1) for u in rng.choice(n - 4, LONG + 1, replace=False)]
    pairs += [(int(u), n - 2) for u in rng.choice(n - 4, LONG, replace=False)]
    pairs += [(n - 3, 5)]
    check_against_twin(Arcs(n, pairs), 77, 5, 2, few)


def a_web(n: int, seed: int) -> Graph:
    """Hubs, dangling nodes, nodes without inlinks, and paths of many lengths."""
    rng = np.random.default_rng(seed)
    source = rng.integers(0, n // 2, 3 * n)
    target = (n * rng.random(3 * n) ** 3).astype(np.int64)
    near = rng.random(3 * n) < 0.5
    target[near] = np.clip(source[near] + rng.integers(-3, 4, near.sum()), 0, n - 1)
    return Graph.from_arcs(np.stack([source, target], 1).astype(np.uint32), num_nodes=n)


@pytest.mark.slow
@pytest.mark.parametrize("function", [harmonic, closeness])
@pytest.mark.parametrize("log2m", [4, 6])
def test_bias_and_error_are_those_of_the_theory(function, log2m: int):
    graph = a_web(400, 1)
    exact = function(graph, exact=True).values
    reached = exact > 0
    seeds = 300
    errors = np.empty((seeds, int(reached.sum())))
    for seed in range(seeds):
        values = function(graph, log2m=log2m, seed=seed, threads=1).values
        assert (values[~reached] == 0).all()
        errors[seed] = values[reached] / exact[reached] - 1
    theory = 1.06 / math.sqrt(1 << log2m)
    assert 0.2 * theory < math.sqrt((errors**2).mean()) < theory
    # The nodes of a run share its error, so that the runs count and not the nodes.
    assert abs(errors.mean()) < 4 * errors.mean(1).std() / math.sqrt(seeds)


@given(arcs(), st.sampled_from(["in", "out"]), st.integers(1, 3))
def test_any_number_of_threads_and_either_direction(a: Arcs, direction: str, runs: int):
    graph = a.graph()
    for function in (harmonic, closeness):
        one = function(graph, direction=direction, log2m=4, runs=runs, threads=1)
        three = function(graph, direction=direction, log2m=4, runs=runs, threads=3)
        assert (one.values == three.values).all()
        other = "out" if direction == "in" else "in"
        turned = function(graph.transpose(), direction=other, log2m=4, runs=runs)
        assert (one.values == turned.values).all()
        assert (one.values >= 0).all()
        assert np.isfinite(one.values).all()


def test_steps_over_all_rows_and_from_node_to_node_are_the_same():
    graph = a_web(3000, 3)
    found = [
        HyperBall(graph.in_rows, graph.out_rows, 6, threads, few).run(9, inverse=True, label="")
        for threads, few in ((1, 0), (3, 0), (1, 10**6), (1, 500), (2, None))
    ]
    for other in found[1:]:
        assert (other.sums == found[0].sums).all()
        assert (other.reached == found[0].reached).all()
        assert other.steps == found[0].steps
        # The sizes are added in another order.
        np.testing.assert_allclose(other.pairs, found[0].pairs, rtol=1e-12)


@pytest.mark.parametrize(
    ("log2m", "inwards", "digest"),
    [
        (4, True, "b4b8d43c9f6f9b70"),
        (4, False, "9ebba2508ee689a2"),
        (5, True, "5fe6b750a50911b2"),
        (6, True, "7cc9376e843ac0b1"),
        (6, False, "8f1111f0813d5e48"),
        (8, True, "80865549f247218c"),
    ],
)
def test_the_bits_stay_the_same(log2m: int, inwards: bool, digest: str):
    """The digests are those of the first version of the loops, which took one register after the other."""
    graph = a_web(3000, 3)
    rows = graph.split_in_rows, graph.out_rows
    for threads in (1, 3):
        run = HyperBall(*(rows if inwards else rows[::-1]), log2m, threads).run(9, inverse=True, label="")
        assert hashlib.sha256(run.sums.tobytes() + run.reached.tobytes()).hexdigest()[:16] == digest


@given(arcs(max_nodes=20), st.integers(0, MASK), st.sampled_from([1, 2]), st.sampled_from([0, 3, None]))
def test_split_and_plain_inlinks_give_the_same_bits(a: Arcs, key: int, threads: int, few: int | None):
    graph = a.graph()
    check_split_against_plain(graph, key, threads, few)


@pytest.mark.parametrize("few", [0, 500, None])
def test_split_and_plain_inlinks_of_a_larger_web_give_the_same_bits(few: int | None):
    check_split_against_plain(a_web(3000, 8), 5, 2, few)


def check_split_against_plain(graph: Graph, key: int, threads: int, few: int | None):
    plain, split, out = graph.in_rows, graph.split_in_rows, graph.out_rows
    assert len(split.linking) == np.count_nonzero(graph.outdegrees)
    for one, other in (((plain, out), (split, out)), ((out, plain), (out, split))):
        wanted, found = (
            HyperBall(*rows, 4, threads, few).run(key, inverse=True, label="") for rows in (one, other)
        )
        assert found.sums.tobytes() == wanted.sums.tobytes()
        assert found.reached.tobytes() == wanted.reached.tobytes()
        assert found.steps == wanted.steps


def test_an_estimate_makes_no_copy_of_the_inlinks(monkeypatch):
    graph = a_web(300, 9)
    values = [harmonic(graph, direction=direction, log2m=4).values for direction in ("in", "out")]

    def refuse(rows: object) -> None:
        raise AssertionError("the inlinks are copied")

    monkeypatch.setattr("inlink.graph.graph.join_rows", refuse)
    graph = a_web(300, 9)
    for direction, wanted in zip(("in", "out"), values, strict=True):
        assert (harmonic(graph, direction=direction, log2m=4).values == wanted).all()


def test_the_mean_of_runs_and_their_spread():
    graph = a_web(300, 5)
    keys = np.random.SeedSequence(3).generate_state(4, np.uint64)
    balls = HyperBall(graph.in_rows, graph.out_rows, 5)
    single = np.array([balls.run(int(key), inverse=True, label="").sums for key in keys])
    four = harmonic(graph, log2m=5, runs=4, seed=3)
    np.testing.assert_allclose(four.values, single.mean(0), rtol=1e-12)
    some = single.mean(0) > 0
    relative = single[:, some].std(0, ddof=1) / 2 / single[:, some].mean(0)
    assert four.parameters["spread"] == pytest.approx(math.sqrt((relative**2).mean()), rel=1e-9)
    # The first runs are those of fewer runs.
    two = harmonic(graph, log2m=5, runs=2, seed=3)
    np.testing.assert_allclose(two.values, single[:2].mean(0), rtol=1e-12)
    assert harmonic(graph, log2m=5, seed=3).parameters["spread"] is None
    assert (harmonic(graph, log2m=5, seed=4).values != single[0]).any()


def test_the_spread_tells_the_error_of_the_mean():
    graph = a_web(400, 6)
    exact = harmonic(graph, exact=True).values
    errors, spreads = [], []
    for seed in range(60):
        mean = harmonic(graph, log2m=5, runs=4, seed=seed, threads=1)
        errors.append((mean.values[exact > 0] / exact[exact > 0] - 1) ** 2)
        spreads.append(mean.parameters["spread"] ** 2)
        assert mean.parameters["relative_error"] == pytest.approx(1.06 / math.sqrt(32 * 4))
    assert math.sqrt(np.mean(errors)) == pytest.approx(math.sqrt(np.mean(spreads)), rel=0.25)


def test_a_ranking_says_whether_it_is_exact(tmp_path, monkeypatch):
    graph = Graph.from_arcs([("a", "b"), ("b", "c"), ("c", "a")], into=tmp_path / "g")
    for function in (harmonic, closeness):
        assert function(graph).verdict() == "exact"
        assert function(graph, exact=False).parameters["log2m"] == 8
        with monkeypatch.context() as patch:
            patch.setattr(sys.modules["inlink.rank.closeness"], "EXACT_NODES", 2)
            large = function(graph, runs=2)
            assert function(graph, exact=True).is_exact()
        with pytest.raises(ParameterError, match="give `exact` or `log2m`, not both"):
            function(graph, exact=True, log2m=8)
        assert not large.is_exact()
        assert large.error_bound is None
        assert large.places(2) is None
        assert not large.converged
        assert large.iterations == 3
        assert large.verdict().startswith(
            "estimated: HyperBall with 256 registers, mean of 2 runs: relative standard error 0.047 by theory, "
        )
        large.save(graph)
        again = type(large).load(graph, function.__name__)
        assert again.verdict() == large.verdict()
        assert again.parameters == large.parameters


def test_graphs_without_nodes_arcs_or_readers():
    for function in (harmonic, closeness):
        for runs in (1, 2):
            assert len(function(Graph.from_arcs(np.empty((0, 2), np.uint32)), log2m=4, runs=runs)) == 0
            lone = function(Graph.from_arcs([(0, 0), (2, 2)]), log2m=4, runs=runs)
            assert lone.values.tolist() == [0.0, 0.0, 0.0]
            assert lone.parameters["spread"] == (None if runs == 1 else 0.0)


@pytest.mark.soak
def test_cnr_2000(data):
    graph = inlink.read(data("graphs/cnr-2000.graph"))
    rows = graph.in_rows, graph.out_rows
    values, _, steps = mean_of_runs(*rows, 6, 2, 0, None, lambda sums, _: sums, inverse=True)
    # The nodes' own inlinks are counted exactly, and all others are at least two steps away.
    assert (values >= (graph.indegrees - 1) / 2 - 1e-6).all()
    assert (values[graph.indegrees == 0] == 0).all()
    assert steps >= 40
