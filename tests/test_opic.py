import sys

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import inlink
from inlink import Graph
from inlink.errors import ParameterError
from inlink.rank.opic import _stationary, opic
from strategies import Arcs, arcs
from test_closeness import Interrupting, reporting
from test_pagerank import web

both = st.one_of(arcs(min_nodes=1), arcs(min_nodes=1, weighted=True))
orders = st.sampled_from(["greedy", "cyclic", "random"])


def chain(A: np.ndarray) -> np.ndarray:
    """L with the virtual page at the end: of d links and one to it each is as likely, or as its weight says."""
    n = len(A)
    L = np.zeros((n + 1, n + 1))
    for i in range(n):
        d = np.count_nonzero(A[i])
        if d:
            L[i, :n] = d / (d + 1) * A[i] / A[i].sum()
        L[i, n] = 1 / (d + 1)
    L[n, :n] = 1 / n
    return L


def stationary(A: np.ndarray) -> np.ndarray:
    L = chain(A)
    equations = np.vstack([L.T - np.eye(len(L)), np.ones(len(L))])
    return np.linalg.lstsq(equations, np.append(np.zeros(len(L)), 1), rcond=None)[0]


def simulated(A: np.ndarray, order: str, rounds: int, seed: int = 0) -> tuple[np.ndarray, float]:
    """The paper's algorithm as it stands there; X and how much was handed over."""
    L = chain(A)
    n = len(A)
    cash, history = np.full(n + 1, 1 / (n + 1)), np.zeros(n + 1)
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        pages = rng.integers(0, n + 1, n + 1, dtype=np.uint32) if order == "random" else range(n + 1)
        for page in pages:
            i = int(np.argmax(cash)) if order == "greedy" else page
            spent, cash[i] = cash[i], 0
            history[i] += spent
            cash += spent * L[i]
    return (history + cash) / (history.sum() + 1), float(history.sum())


@given(both, orders, st.integers(0, 30))
def test_the_bound_holds(a: Arcs, order: str, rounds: int):
    ranking = opic(a.graph(), order=order, tol=None, max_iter=rounds)
    exact = stationary(a.dense())
    distance = np.abs(ranking.values - exact[:-1]).sum()
    assert distance <= ranking.error_bound + 1e-12
    assert ranking.error_bound <= distance + 1e-5  # it is the error, and not only above it
    assert ranking.iterations == rounds
    assert not ranking.converged
    assert ranking.values.sum() + ranking.parameters["virtual"] == pytest.approx(1, abs=1e-14)


@given(both, orders)
def test_it_converges_to_the_stationary_distribution(a: Arcs, order: str):
    ranking = opic(a.graph(), order=order, tol=0.02)
    assert ranking.converged
    assert np.abs(ranking.values - stationary(a.dense())[:-1]).sum() <= 0.02


@given(both, st.sampled_from(["cyclic", "random"]), st.integers(0, 5))
def test_it_is_the_papers_algorithm(a: Arcs, order: str, rounds: int):
    ranking = opic(a.graph(), order=order, tol=None, max_iter=rounds, seed=3)
    exact, handed = simulated(a.dense(), order, rounds, 3)
    np.testing.assert_allclose([*ranking.values, ranking.parameters["virtual"]], exact, atol=1e-14)
    assert np.abs(chain(a.dense()).T @ exact - exact).sum() <= 2 / (handed + 1) + 1e-14


@pytest.mark.parametrize("seed", range(5))
def test_greedy_takes_the_richest(seed: int):
    rng = np.random.default_rng(seed)
    A = np.where(rng.random((60, 60)) < 0.06, rng.random((60, 60)), 0)
    A[5] = 0
    ranking = opic(scipy.sparse.csr_array(A), tol=None, max_iter=7)
    exact, _ = simulated(A, "greedy", 7)
    np.testing.assert_allclose([*ranking.values, ranking.parameters["virtual"]], exact, atol=1e-13)


def test_the_limit_is_certified_on_a_larger_graph():
    A = web(800)
    exact = stationary(A.toarray())[:-1]
    values, bound = _stationary(inlink.graph.interop.as_graph(A), False, 1e-9)
    assert np.abs(values - exact).sum() <= bound + 1e-12
    assert bound <= 2.1e-9
    ranking = opic(A, tol=1e-3)
    assert ranking.converged
    assert np.abs(ranking.values - exact).sum() <= ranking.error_bound <= 1e-3


def test_greedy_needs_fewer_rounds_than_random():
    rounds = {
        order: opic(web(), order=order, tol=3e-3).iterations for order in ("greedy", "cyclic", "random")
    }
    assert rounds["greedy"] < 0.7 * rounds["random"]
    assert rounds["greedy"] < 0.7 * rounds["cyclic"]


def test_a_large_clique_keeps_its_cash_long_and_the_limit_is_found_all_the_same():
    n = 300
    A = np.ones((n, n)) - np.eye(n)
    A = scipy.sparse.block_diag([A, scipy.sparse.csr_array(([1.0], ([0], [1])), shape=(3, 3))]).toarray()
    ranking = opic(scipy.sparse.csr_array(A), tol=None, max_iter=50, weighted=False)
    distance = np.abs(ranking.values - stationary(A)[:-1]).sum()
    assert distance <= ranking.error_bound <= distance + 1e-5


def test_closed_forms():
    # expected visits between two of the virtual page's: 1, 1 + 1/2, 1 + 3/4, and 3 starts
    ranking = opic(Graph.from_arcs([(0, 1), (1, 2)]), tol=1e-4, max_iter=100_000)
    np.testing.assert_allclose(ranking.values * 29, [4, 6, 7], atol=29e-4)
    assert ranking.converged
    alone = opic(Graph.from_arcs(np.empty((0, 2), np.uint32), num_nodes=4), tol=1e-3)
    np.testing.assert_allclose(alone.values, 1 / 8, atol=1e-3)
    loop = opic(Graph.from_arcs([(0, 0)]), tol=1e-3)
    np.testing.assert_allclose(loop.values, [2 / 3], atol=1e-3)  # two visits each time


@pytest.mark.parametrize("order", ["greedy", "cyclic", "random"])
def test_the_same_seed_gives_the_same_bits(order: str):
    rng = np.random.default_rng(3)
    graph = Graph.from_arcs(rng.integers(0, 4000, (150_000, 2)).astype(np.uint32))
    one, two = (opic(graph, order=order, tol=None, max_iter=3) for _ in range(2))
    assert (one.values == two.values).all()
    assert one.error_bound == two.error_bound
    other = opic(graph, order=order, tol=None, max_iter=3, seed=1)
    assert (other.values == one.values).all() == (order != "random")


def test_stretches_change_nothing(monkeypatch):
    A = web(500)
    for order in ("greedy", "cyclic"):
        whole = opic(A, order=order, tol=None, max_iter=3)
        with monkeypatch.context() as patched:
            patched.setattr(sys.modules[opic.__module__], "STRETCH", 7)
            assert (opic(A, order=order, tol=None, max_iter=3).values == whole.values).all()


def test_it_takes_the_arguments_of_pagerank_and_its_ranking_is_kept(tmp_path):
    weighty = scipy.sparse.csr_array([[0, 3.0, 1.0], [0, 0, 0], [0, 0, 0]])
    y = np.array([1, 1.5, 1 + 1 / 6])
    np.testing.assert_allclose(opic(weighty, tol=1e-3).values, y / (3 + y.sum()), atol=1e-3)
    y = np.array([1, 4 / 3, 4 / 3])
    np.testing.assert_allclose(opic(weighty, tol=1e-3, weighted=False).values, y / (3 + y.sum()), atol=1e-3)
    assert opic(nx.star_graph(5)).top(1)[0][0] == 0
    kept = Graph.from_arcs([("a", "b"), ("b", "a")], into=tmp_path / "g")
    ranking = opic(kept)
    ranking.save(kept)
    assert inlink.Ranking.load(kept, "opic").parameters == ranking.parameters


def test_nothing_and_nonsense():
    nothing = opic(Graph.from_arcs(np.empty((0, 2), np.uint32)))
    assert len(nothing) == 0
    assert nothing.converged
    graph = Graph.from_arcs([(0, 1)])
    with pytest.raises(ParameterError, match="`order` must be 'greedy', 'cyclic' or 'random'; got 'best'"):
        opic(graph, order="best")
    for seed in (-1, 1.5, True, None):
        with pytest.raises(ParameterError, match="`seed` must be"):
            opic(graph, seed=seed)
    with pytest.raises(ParameterError, match="tol"):
        opic(graph, tol=-1)
    with pytest.raises(ParameterError, match="without either"):
        opic(graph, tol=None)
    with pytest.raises(ParameterError, match="no weights"):
        opic(graph, weighted=True)
    with reporting(Interrupting()), pytest.raises(KeyboardInterrupt):
        opic(graph)
