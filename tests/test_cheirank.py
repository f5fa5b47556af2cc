import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import inlink
from inlink import Graph
from inlink.errors import ParameterError, UnknownNodeError
from inlink.rank.cheirank import cheirank
from strategies import Arcs, arcs
from test_pagerank import dampings, exact, web


@given(arcs(min_nodes=1), dampings, st.sampled_from(["gauss-seidel", "power"]))
def test_it_is_pagerank_of_the_reversed_graph_and_the_bound_holds(a: Arcs, c: float, method: str):
    ranking = cheirank(a.graph(), damping=c, tol=1e-8, method=method, max_iter=200_000)
    assert np.abs(ranking.values - exact(a.dense().T, c)).sum() <= ranking.error_bound + 1e-12
    assert ranking.converged
    assert ranking.error_bound <= 1e-8


@given(arcs(min_nodes=1, weighted=True), st.data())
def test_personalized_and_weighted(a: Arcs, data):
    r = data.draw(st.lists(st.floats(0, 10), min_size=a.num_nodes, max_size=a.num_nodes).filter(any))
    ranking = cheirank(a.graph(), personalization=r, tol=1e-9)
    theirs = exact(a.dense().T, 0.85, np.array(r) / max(r))
    assert np.abs(ranking.values - theirs).sum() <= ranking.error_bound + 1e-12


def test_networkx_agrees():
    A = web(300)
    theirs = nx.pagerank(
        nx.from_scipy_sparse_array(A, create_using=nx.DiGraph).reverse(), tol=1e-14, max_iter=1000
    )
    np.testing.assert_allclose(cheirank(A, tol=1e-12).values, [theirs[i] for i in range(300)], atol=1e-11)


def test_closed_forms():
    # a star whose centre links to k leaves: centre = c·k·leaf + leaf
    k, c = 9, 0.85
    star = cheirank(Graph.from_arcs([(0, i) for i in range(1, k + 1)]), tol=1e-12).values
    leaf = 1 / (k + 1 + c * k)
    np.testing.assert_allclose(star, [leaf * (1 + c * k)] + [leaf] * k, atol=1e-11)


def test_it_is_kept_with_the_graph_that_was_given(tmp_path):
    graph = Graph.from_arcs([("index", "a"), ("index", "b"), ("a", "b")], into=tmp_path / "g")
    ranking = cheirank(graph, personalization={"b": 1.0}, start={"index": 1.0}, tol=1e-10)
    assert [name for name, _ in ranking.top(2)] == ["b", "index"]
    ranking.save(graph)
    again = inlink.Ranking.load(graph, "cheirank")
    assert again.values.tolist() == ranking.values.tolist()
    assert again.parameters["personalized"]
    warm = cheirank(graph, personalization={"b": 1.0}, start=again, tol=1e-10)
    assert warm.iterations <= ranking.iterations


def test_it_takes_the_arguments_of_pagerank():
    A = [[0, 1, 1], [0, 0, 0], [0, 0, 0]]
    for graph in (scipy.sparse.csr_array(A), scipy.sparse.csr_matrix(A), nx.DiGraph([(0, 1), (0, 2)])):
        assert cheirank(graph).top(1)[0][0] == 0
    assert len(cheirank(Graph.from_arcs(np.empty((0, 2), np.uint32)))) == 0


def test_nonsense():
    graph = Graph.from_arcs([("a", "b")])
    with pytest.raises(ParameterError, match="`damping` must be"):
        cheirank(graph, damping=2)
    with pytest.raises(UnknownNodeError, match="personalization"):
        cheirank(graph, personalization={"c": 1.0})
