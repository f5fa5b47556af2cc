from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlink import Graph
from inlink.errors import ParameterError
from inlink.rank.mcmc import Walks, mcmc
from strategies import Arcs, arcs
from test_measures import Interrupting, reporting
from test_pagerank import exact

METHODS = ["end-point", "complete-path", "stop-at-dangling"]
methods, orders = st.sampled_from(METHODS), st.sampled_from(["cyclic", "random"])
either = st.one_of(arcs(min_nodes=1), arcs(min_nodes=1, weighted=True))


def web(n: int, seed: int = 0, weighted: bool = False) -> Graph:
    """A fifth of its nodes dangles."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, n, (3 * n, 2))
    pairs = pairs[pairs[:, 0] % 5 > 0].astype(np.uint32)
    return Graph.from_arcs(pairs, num_nodes=n, weights=rng.integers(1, 9, len(pairs)) if weighted else None)


def truth(graph: Graph, c: float = 0.85) -> np.ndarray:
    return exact(graph.to_scipy().toarray(), c)


def assert_unbiased(values: np.ndarray, expected: np.ndarray) -> None:
    """The samples' means are as far from the truth as their spread lets one expect."""
    off = (values.mean(0) - expected) / (values.std(0, ddof=1) / len(values) ** 0.5)
    assert np.abs(off).max() < 5
    assert 0.7 < off.std() < 1.35


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "weighted"),
    [
        ("cyclic", False),
        ("random", True),
        # Weights choose the steps, and `start` chooses where a walk begins.
        pytest.param("cyclic", True, marks=pytest.mark.soak),
        pytest.param("random", False, marks=pytest.mark.soak),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_each_algorithm_estimates_pagerank(method: str, start: str, weighted: bool):
    graph = web(60, weighted=weighted)
    expected = truth(graph)
    samples = [mcmc(graph, walks=30, method=method, order=start, seed=s) for s in range(120)]
    values = np.array([sample.values for sample in samples])
    assert_unbiased(values, expected)
    errors = np.abs(values - expected).sum(1)
    assert (errors <= [sample.error_bound for sample in samples]).all()
    told = np.array([sample.parameters["l1_estimate"] for sample in samples])
    assert 0.9 < told.mean() / errors.mean() < 1.15


@pytest.mark.slow
def test_confidence_is_what_is_told():
    graph = web(60)
    expected = truth(graph)
    top = int(np.argmax(expected))
    for method in METHODS:
        samples = [mcmc(graph, walks=20, method=method, confidence=0.8, seed=s) for s in range(150)]
        # the widest interval is that of the highest page, here and nearly always
        inside = np.mean([abs(s[top] - expected[top]) <= s.parameters["half_width"] for s in samples])
        assert 0.8 - 4 * 0.0327 < inside < 0.97
    wide = mcmc(graph, walks=20, confidence=0.99).parameters["half_width"]
    assert wide > 1.5 * mcmc(graph, walks=20, confidence=0.8).parameters["half_width"]
    assert "confidence 0.95 each" in mcmc(graph).verdict()


def test_few_rounds_tell_their_error_too():
    graph = web(400)
    samples = [mcmc(graph, walks=2, seed=s) for s in range(20)]
    expected = truth(graph)
    errors = [np.abs(s.values - expected).sum() for s in samples]
    assert 0.85 < np.mean([s.parameters["l1_estimate"] for s in samples]) / np.mean(errors) < 1.15


@given(either, methods, orders, st.sampled_from([0.0, 0.5, 0.85, 0.99]))
def test_the_bound_holds_on_any_graph(a: Arcs, method: str, start: str, c: float):
    ranking = mcmc(a.graph(), walks=2, method=method, order=start, damping=c)
    assert np.abs(ranking.values - exact(a.dense(), c)).sum() <= ranking.error_bound + 1e-12
    assert ranking.values.sum() == pytest.approx(1, abs=1e-12)
    assert not ranking.converged
    if c == 0 and start == "cyclic":
        np.testing.assert_allclose(ranking.values, 1 / a.num_nodes, rtol=1e-12)


# -- recorded walks ----------------------------------------------------------------------------------------------


def recorded(walks: Walks) -> list[list[list[int]]]:
    return [
        [path[int(ends[w]) : int(ends[w + 1])].tolist() for w in range(len(ends) - 1)]
        for ends, path in walks._recorded
    ]


def assert_walks_of(walks: Walks, graph: Graph) -> None:
    links = [set(graph.outlinks(i).tolist()) for i in range(graph.num_nodes)]
    for one in recorded(walks):
        assert len(one) == graph.num_nodes
        for start, path in enumerate(one):
            assert path[0] == start
            assert all(j in links[i] for i, j in pairwise(path))


@given(either, either)
def test_recorded_walks_are_those_of_mcmc_and_stay_walks_of_the_graph(a: Arcs, b: Arcs):
    graph = a.graph()
    walks = Walks(graph, walks=3)
    assert_walks_of(walks, graph)
    ours, theirs = walks.ranking(), mcmc(graph, walks=3)
    assert (ours.values == theirs.values).all()
    assert ours.error_bound == theirs.error_bound
    before = recorded(walks)
    assert walks.update(graph) == 0
    assert recorded(walks) == before
    if b.num_nodes < a.num_nodes:
        with pytest.raises(ParameterError, match="keep all nodes with their numbers"):
            walks.update(b.graph())
    else:
        walks.update(b.graph())
        assert_walks_of(walks, b.graph())


@pytest.mark.slow
def test_only_what_new_arcs_touch_is_walked_anew():
    graph = web(2000)
    pairs = np.stack(graph.to_scipy().nonzero(), axis=1)
    added = np.array([[7, 1], [12, 1999]])
    walks = Walks(graph, walks=10)
    before = recorded(walks)
    anew = walks.update(Graph.from_arcs(np.concatenate([pairs, added]).astype(np.uint32), num_nodes=2000))
    after = recorded(walks)
    changed = [
        (x, y)
        for one, two in zip(before, after, strict=True)
        for x, y in zip(one, two, strict=True)
        if x != y
    ]
    assert 0 < len(changed) <= anew
    visits = sum(
        x.count(7) / (len(graph.outlinks(7)) + 1) + x.count(12) / (len(graph.outlinks(12)) + 1)
        for one in before
        for x in one
    )
    assert anew < 2 * visits  # one of d visits goes another way
    for x, y in changed:
        same = next((k for k, (i, j) in enumerate(zip(x, y, strict=False)) if i != j), min(len(x), len(y)))
        assert x[same - 1] in (7, 12)
    assert anew < 10 * 2000 / 20


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.soak), True])
def test_updated_walks_are_as_good_as_new_ones(weighted: bool):
    """Arcs come, go and change their weights, nodes come, dangling ones begin to link and others cease to."""
    first = web(60, weighted=weighted)
    rng = np.random.default_rng(9)
    A = first.to_scipy().toarray()
    B = np.zeros((70, 70))
    B[:60, :60] = A
    gone = rng.random(B.shape) < 0.2
    come = rng.random(B.shape) < 0.02
    B[gone] = 0
    B[come] = rng.integers(1, 9, come.sum()) if weighted else 1
    B[7] = 0  # dangles from now on
    assert ((A.sum(1) == 0) & (B[:60].sum(1) > 0)).any()
    second = Graph.from_arcs(
        np.argwhere(B).astype(np.uint32), num_nodes=70, weights=B[B > 0] if weighted else None
    )
    values, anew = [], []
    for seed in range(150):
        walks = Walks(first, walks=30, seed=seed)
        anew.append(walks.update(second))
        values.append(walks.ranking().values)
    assert_unbiased(np.array(values), truth(second))
    fresh = np.array([mcmc(second, walks=30, seed=seed).values for seed in range(150)])
    assert np.mean(np.array(values).std(0) / fresh.std(0)) == pytest.approx(1, abs=0.1)
    assert max(anew) < 30 * 60


@pytest.mark.slow
def test_a_step_is_taken_with_its_new_chance():
    """The coupling itself, at one node: from weights (1, 1, 2) on a, b, c to (3, 1, 4) on b, c, d."""
    n = 40_000
    ends = n + np.arange(4)

    def graph(weights: list[float]) -> Graph:
        pairs = [(i, ends[k]) for i in range(n) for k in range(4) if weights[k]]
        return Graph.from_arcs(pairs, num_nodes=n + 4, weights=[w for _ in range(n) for w in weights if w])

    old, new = [1.0, 1.0, 2.0, 0.0], [0.0, 3.0, 1.0, 4.0]
    walks = Walks(graph(old), walks=2, damping=0.5)
    before = recorded(walks)
    walks.update(graph(new))
    after = recorded(walks)
    steps = [
        (x[1] - n, y[1] - n)
        for one, two in zip(before, after, strict=True)
        for x, y in zip(one, two, strict=True)
        if len(x) > 1
    ]
    assert [len(x) for one in before for x in one] == [
        len(y) for one in after for y in one
    ]  # coins are not thrown again
    p, q = np.array(old) / 4, np.array(new) / 8
    for weights, taken in ((p, [x for x, _ in steps]), (q, [y for _, y in steps])):
        found = np.bincount(taken, minlength=4) / len(steps)
        assert (np.abs(found - weights) <= 5 * np.sqrt(weights * (1 - weights) / len(steps))).all()
    kept = np.mean([x == y for x, y in steps])
    assert kept == pytest.approx(
        np.minimum(p, q).sum(), abs=5 * 0.5 / len(steps) ** 0.5
    )  # no more than must be


@pytest.mark.slow
def test_many_small_updates_stay_right():
    rng = np.random.default_rng(4)
    pairs = rng.integers(0, 30, (90, 2)).astype(np.uint32)
    first, *others = [Graph.from_arcs(pairs[:k], num_nodes=30) for k in range(40, 91, 10)]
    values = []
    for seed in range(50):
        walks = Walks(first, walks=20, seed=seed)
        for graph in others:
            walks.update(graph)
        values.append(walks.ranking().values)
    assert walks.ranking().parameters["updates"] == 5
    assert_unbiased(np.array(values), truth(others[-1]))


def test_walks_that_need_more_room_are_walked_to_their_end():
    n = 50
    ring = Graph.from_arcs([(i, (i + 1) % n) for i in range(n)])
    walks = Walks(ring, walks=2, damping=0.999)
    lengths = [len(path) for one in recorded(walks) for path in one]
    assert 500 < np.mean(lengths) < 1500
    assert_walks_of(walks, ring)
    assert (walks.ranking().values == mcmc(ring, walks=2, damping=0.999).values).all()


def test_walks_of_nothing_wrong_arguments_and_ctrl_c():
    walks = Walks(Graph.from_arcs([], num_nodes=0))
    assert len(walks.ranking()) == 0
    assert walks.update(Graph.from_arcs([(0, 1)])) == 0
    assert len(walks.ranking()) == 2
    graph = Graph.from_arcs([(0, 1)])
    for options in ({"walks": 1}, {"damping": 1}, {"seed": -1}, {"weighted": True}):
        with pytest.raises(ParameterError, match=next(iter(options))):
            Walks(graph, **options)
    with pytest.raises(ParameterError, match="confidence"):
        Walks(graph).ranking(confidence=0)
    with reporting(Interrupting()), pytest.raises(KeyboardInterrupt):
        Walks(graph)
