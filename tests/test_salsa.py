from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given

import inlink
from inlink import Graph
from inlink.errors import ParameterError
from inlink.graph.graph import Rows
from inlink.rank.salsa import salsa
from strategies import Arcs, arcs
from test_pagerank import web


def walk(A: np.ndarray) -> np.ndarray:
    """Ã of the authorities: A_colᵀ·A_row, where rows and columns that are 0 stay so."""
    columns, rows = A.sum(0), A.sum(1)
    back = A / np.where(columns, columns, 1)
    forth = A / np.where(rows, rows, 1)[:, None]
    return back.T @ forth


def stationary(A: np.ndarray) -> np.ndarray:
    """By component of the bipartite graph, as NetworkX finds them, the left eigenvector of its walk."""
    G = nx.Graph()
    G.add_edges_from((("hub", i), ("authority", j)) for i, j in zip(*np.nonzero(A), strict=True))
    P, x = walk(A), np.zeros(len(A))
    for component in nx.connected_components(G):
        nodes = sorted(number for side, number in component if side == "authority")
        equations = np.vstack([P[np.ix_(nodes, nodes)].T - np.eye(len(nodes)), np.ones(len(nodes))])
        right = np.append(np.zeros(len(nodes)), len(nodes))
        x[nodes] = np.linalg.lstsq(equations, right, rcond=None)[0]
    return x / max(x.sum(), 1)


@given(arcs())
def test_it_is_the_stationary_distribution_of_each_component(a: Arcs):
    ranking = salsa(a.graph())
    np.testing.assert_allclose(ranking.authorities, stationary(a.dense()), atol=1e-12)
    np.testing.assert_allclose(ranking.hubs, stationary(a.dense().T), atol=1e-12)
    assert ranking.verdict() == "exact"


@given(arcs(weighted=True))
def test_walks_go_by_weight(a: Arcs):
    ranking = salsa(a.graph())
    np.testing.assert_allclose(ranking.authorities, stationary(a.dense()), atol=1e-10)
    np.testing.assert_allclose(ranking.hubs, stationary(a.dense().T), atol=1e-10)
    plain = salsa(a.graph(), weighted=False)
    np.testing.assert_allclose(plain.authorities, stationary((a.dense() > 0).astype(float)), atol=1e-12)


@given(arcs(min_nodes=1))
def test_it_is_the_limit_of_walks_from_everywhere(a: Arcs):
    A = a.dense()
    for matrix, ours in ((A, salsa(a.graph()).authorities), (A.T, salsa(a.graph()).hubs)):
        on = matrix.sum(0) > 0
        P = walk(matrix)[np.ix_(on, on)]
        for _ in range(20):  # a million steps
            P = P @ P
            P /= P.sum(1, keepdims=True)
        np.testing.assert_allclose(ours[on], P.mean(0) if on.any() else [], atol=1e-9)
        assert not ours[~on].any()


@given(arcs(min_nodes=1, max_nodes=30))
def test_the_bound_holds_against_fractions(a: Arcs):
    pairs = set(a.pairs)
    G = nx.Graph((("h", i), ("a", j)) for i, j in pairs)
    parts = [{j for side, j in part if side == "a"} for part in nx.connected_components(G)]
    total, distance = sum(map(len, parts)), Fraction()
    ranking = salsa(a.graph())
    assert ranking.parameters["components"] == len(parts)
    for part in parts:
        links = sum(j in part for _, j in pairs)
        for node in part:
            exact = Fraction(len(part), total) * Fraction(sum(j == node for _, j in pairs), links)
            distance += abs(Fraction(float(ranking.values[node])) - exact)
    assert distance <= ranking.error_bound <= 1e-15


def test_closed_forms():
    ranking = salsa(Graph.from_arcs([("h", "a"), ("h", "b"), ("g", "a"), ("x", "y")], num_nodes=None))
    values = dict(zip(ranking.names, ranking.authorities.tolist(), strict=True))
    assert values == pytest.approx({"a": 4 / 9, "b": 2 / 9, "y": 1 / 3, "h": 0, "g": 0, "x": 0})
    hubs = dict(zip(ranking.names, ranking.hubs.tolist(), strict=True))
    assert hubs == pytest.approx({"h": 4 / 9, "g": 2 / 9, "x": 1 / 3, "a": 0, "b": 0, "y": 0})
    assert ranking.parameters["components"] == 2
    loop = salsa(Graph.from_arcs([(0, 0), (1, 2)], num_nodes=4))
    assert loop.authorities.tolist() == [0.5, 0, 0.5, 0]
    assert loop.hubs.tolist() == [0.5, 0.5, 0, 0]
    # a cycle: each link is a component of its own
    assert salsa(Graph.from_arcs([(i, (i + 1) % 5) for i in range(5)])).values.tolist() == [0.2] * 5


def test_in_one_component_it_is_the_degree():
    A = web(2000).toarray()
    A[0] = 1  # one page links to all
    graph = Graph.from_arcs(np.argwhere(A))
    ranking = salsa(graph)
    assert ranking.parameters["components"] == 1
    np.testing.assert_allclose(ranking.authorities, graph.indegrees / graph.num_arcs, rtol=1e-15)
    np.testing.assert_allclose(ranking.hubs, graph.outdegrees / graph.num_arcs, rtol=1e-15)


def test_many_components_of_a_larger_graph():
    rng = np.random.default_rng(0)
    n = 20_000
    A = scipy.sparse.csr_array((np.ones(n), (rng.integers(0, n, n), rng.integers(0, n, n))), shape=(n, n))
    A.data[:] = 1
    ranking = salsa(A)
    both = scipy.sparse.block_array([[None, A], [A.T, None]])
    _, label = scipy.sparse.csgraph.connected_components(both, directed=False)
    indegrees, label = A.sum(0), label[n:]
    links = np.bincount(label, indegrees)
    sizes = np.bincount(label, indegrees > 0)
    exact = sizes[label] / sizes.sum() * indegrees / np.where(links, links, 1)[label]
    np.testing.assert_allclose(ranking.authorities, exact, rtol=1e-14)
    assert ranking.parameters["components"] == np.count_nonzero(sizes) > 1000


def test_it_is_not_drawn_to_one_tight_community():
    tight = [(f"fan{i}", f"idol{j}") for i in range(6) for j in range(6)]
    broad = [(f"reader{i}", "paper") for i in range(20)] + [(f"reader{i}", f"own{i}") for i in range(20)]
    graph = Graph.from_arcs([*tight, *broad, ("fan0", "paper")])
    assert inlink.hits(graph).top(1)[0][0].startswith("idol")
    assert salsa(graph).top(1)[0][0] == "paper"


def test_no_nodes_and_no_arcs():
    nothing = salsa(Graph.from_arcs(np.empty((0, 2), np.uint32)))
    assert len(nothing) == 0
    assert nothing.error_bound == 0
    bare = salsa(Graph.from_arcs(np.empty((0, 2), np.uint32), num_nodes=3))
    assert bare.authorities.tolist() == bare.hubs.tolist() == [0, 0, 0]
    assert bare.parameters["components"] == 0


def test_it_takes_the_arguments_of_pagerank_and_its_ranking_is_kept(tmp_path):
    assert salsa(scipy.sparse.csr_array([[0, 3.0, 1.0], [0, 0, 0], [0, 0, 0]])).values.tolist() == [
        0,
        0.75,
        0.25,
    ]
    assert salsa(nx.DiGraph([(0, 1), (0, 2)])).hubs.tolist() == [1, 0, 0]
    kept = Graph.from_arcs([("a", "b"), ("b", "a")], into=tmp_path / "g")
    salsa(kept).save(kept)
    again = inlink.Ranking.load(kept, "salsa")
    assert again.hubs.tolist() == again.authorities.tolist() == [0.5, 0.5]


def test_nonsense():
    with pytest.raises(ParameterError, match="no weights"):
        salsa(Graph.from_arcs([(0, 1)]), weighted=True)
    # hubs 0, 2 and 4 link to 1, to 1 and 3, and to 3
    offsets, nodes = np.array([0, 1, 1, 3, 3, 4], np.uint64), np.array([1, 1, 3, 3], np.uint32)
    for weights, says in (
        ([1e308, 1e308, 1.0, 1.0], "rescale"),  # one page's inlinks
        ([1e308, 1.0, 1.0, 1e308], "component's arcs add up"),
    ):
        with pytest.raises(ParameterError, match=says):
            salsa(Graph(Rows(offsets, nodes, np.array(weights))))
