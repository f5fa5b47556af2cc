import sys

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from inlink import Graph
from inlink.rank.opic import opic
from strategies import Arcs, arcs
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


def test_a_large_clique_keeps_its_cash_long_and_the_limit_is_found_all_the_same():
    n = 300
    A = np.ones((n, n)) - np.eye(n)
    A = scipy.sparse.block_diag([A, scipy.sparse.csr_array(([1.0], ([0], [1])), shape=(3, 3))]).toarray()
    ranking = opic(scipy.sparse.csr_array(A), tol=None, max_iter=50, weighted=False)
    distance = np.abs(ranking.values - stationary(A)[:-1]).sum()
    assert distance <= ranking.error_bound <= distance + 1e-5


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
