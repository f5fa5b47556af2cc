from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from inlink import Graph
from inlink.errors import ParameterError
from inlink.graph.graph import Rows
from inlink.rank.salsa import salsa
from strategies import Arcs, arcs


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


@given(arcs(weighted=True))
def test_it_is_the_stationary_distribution_of_each_component(a: Arcs):
    ranking = salsa(a.graph())
    np.testing.assert_allclose(ranking.authorities, stationary(a.dense()), atol=1e-10)
    np.testing.assert_allclose(ranking.hubs, stationary(a.dense().T), atol=1e-10)
    plain = salsa(a.graph(), weighted=False)
    np.testing.assert_allclose(plain.authorities, stationary((a.dense() > 0).astype(float)), atol=1e-12)
    assert ranking.verdict() == "exact"


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


def test_weights_that_add_up_to_infinity_are_refused():
    # hubs 0, 2 and 4 link to 1, to 1 and 3, and to 3
    offsets, nodes = np.array([0, 1, 1, 3, 3, 4], np.uint64), np.array([1, 1, 3, 3], np.uint32)
    for weights, says in (
        ([1e308, 1e308, 1.0, 1.0], "rescale"),  # one page's inlinks
        ([1e308, 1.0, 1.0, 1e308], "component's arcs add up"),
    ):
        with pytest.raises(ParameterError, match=says):
            salsa(Graph(Rows(offsets, nodes, np.array(weights))))
