import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlink import Graph
from inlink.errors import ParameterError
from inlink.rank.eigenvector import eigenvector
from strategies import Arcs, arcs


def ring(a: Arcs) -> Arcs:
    """The same with a cycle through all nodes, so that the answer is unique."""
    pairs = a.pairs + [(i, (i + 1) % a.num_nodes) for i in range(a.num_nodes)]
    weights = None if a.weights is None else a.weights + [1.0] * a.num_nodes
    return Arcs(a.num_nodes, pairs, weights)


def principal(A: np.ndarray) -> tuple[np.ndarray, float]:
    values, vectors = np.linalg.eig(A.T)
    k = int(np.argmax(values.real))
    return np.abs(vectors[:, k].real) / np.linalg.norm(vectors[:, k].real), float(values[k].real)


@given(st.one_of(arcs(min_nodes=1), arcs(min_nodes=1, weighted=True)))
def test_in_a_strongly_connected_graph_it_is_the_principal_eigenvector(a: Arcs):
    a = ring(a)
    ours = eigenvector(a.graph(), tol=1e-11, max_iter=20_000)
    exact, eigenvalue = principal(a.dense())
    assert ours.converged
    assert ours.unique
    np.testing.assert_allclose(ours.values, exact, atol=1e-7)
    assert ours.parameters["eigenvalue"] == pytest.approx(eigenvalue, rel=1e-9)
    assert np.linalg.norm(ours.values) == pytest.approx(1, abs=1e-14)


@given(arcs(), st.integers(0, 40))
def test_the_residual_is_what_it_says(a: Arcs, rounds: int):
    ours = eigenvector(a.graph(), tol=None, max_iter=rounds)
    x, A = ours.values, a.dense()
    assert (x >= 0).all()
    acyclic = not np.linalg.matrix_power(A, max(a.num_nodes, 1)).any()
    if acyclic:
        assert not x.any()
        assert ours.converged
        assert "no page reaches itself" in ours.note
        return
    assert np.linalg.norm(x) == pytest.approx(1, abs=1e-12)
    assert not ours.converged
    assert ours.iterations == rounds
    eigenvalue = ours.parameters["eigenvalue"]
    assert eigenvalue == pytest.approx(float(x @ A.T @ x), rel=1e-12)
    if eigenvalue:
        residual = np.linalg.norm(A.T @ x - eigenvalue * x) / eigenvalue
        assert ours.residual == pytest.approx(residual, rel=1e-6, abs=1e-12)


def test_closed_forms():
    n = 50
    cycle = eigenvector(Graph.from_arcs([(i, (i + 1) % n) for i in range(n)]))
    np.testing.assert_allclose(cycle.values, n**-0.5, rtol=1e-12)
    assert cycle.parameters["eigenvalue"] == pytest.approx(1)
    whole = eigenvector(nx.complete_graph(n))
    np.testing.assert_allclose(whole.values, n**-0.5, rtol=1e-12)
    assert whole.parameters["eigenvalue"] == pytest.approx(n - 1)
    star = eigenvector(nx.star_graph(10_000), tol=1e-9)  # its other eigenvalue is −100
    np.testing.assert_allclose(star.values, [0.5**0.5] + [20_000**-0.5] * 10_000, rtol=1e-8)
    assert star.iterations < 100
    # the loop feeds a chain: x = 1, 1, 1
    fed = eigenvector(Graph.from_arcs([(0, 0), (0, 1), (1, 2), (3, 0)]), tol=1e-12, max_iter=10_000)
    np.testing.assert_allclose(fed.values, [3**-0.5] * 3 + [0], atol=1e-9)


def test_two_like_communities_are_said_to_have_no_unique_answer():
    pairs = [(c + i, c + j) for c in (0, 40) for i in range(40) for j in range(40) if i != j]
    ours = eigenvector(Graph.from_arcs(pairs))
    assert ours.converged
    assert ours.unique is False
    assert "not unique" in ours.note
    other = eigenvector(Graph.from_arcs(pairs), start={0: 1.0})
    assert np.abs(other.values - ours.values).sum() > 1
    stronger = eigenvector(Graph.from_arcs([*pairs, (0, 0)]), max_iter=100_000)
    assert stronger.unique
    assert stronger.note == ""


@pytest.mark.slow
def test_a_second_eigenvalue_that_is_near_takes_few_products():
    n = 120  # two rings with chords, one a little heavier; the power method would take some ten thousand rounds
    rng = np.random.default_rng(8)
    chords = rng.integers(0, n, (2 * n, 2))
    pairs = np.concatenate([[(i, (i + 1) % n) for i in range(n)], chords])
    both = np.unique(np.concatenate([pairs, pairs + n, [[0, n]]]), axis=0)
    weights = np.where(both[:, 0] < n, 1.001, 1.0)
    ours = eigenvector(Graph.from_arcs(both.astype(np.uint32), weights=weights), tol=1e-9)
    exact, _ = principal(Graph.from_arcs(both.astype(np.uint32), weights=weights).to_scipy().toarray())
    assert ours.converged
    assert ours.iterations < 500
    np.testing.assert_allclose(ours.values, exact, atol=1e-5)


def test_slow_ones_are_not_called_converged():
    # one cycle feeds another: the distance falls like 1/rounds only
    pairs = [(0, 1), (1, 0), (2, 3), (3, 2), (1, 2)]
    ours = eigenvector(Graph.from_arcs(pairs), tol=1e-9)
    assert not ours.converged
    assert ours.residual > 1e-9
    assert ours.iterations == 1000
    assert ours.unique is None
    assert "not converged" in ours.verdict()


def test_a_start_that_reaches_no_cycle():
    graph = Graph.from_arcs([(0, 0), (1, 2)])
    ours = eigenvector(graph, start=[0, 1, 0])
    assert not ours.values.any()
    assert "no page of the start" in ours.note
    assert eigenvector(graph, start=[1, 1, 0]).values.round(6).tolist() == [1, 0, 0]
    with pytest.raises(ParameterError, match=r"-1\.0 for node 1"):
        eigenvector(graph, start=[1, -1, 0])
    with pytest.raises(ParameterError, match="`start` must have a value above 0"):
        eigenvector(graph, start=[0, 0, 0])
