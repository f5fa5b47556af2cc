import networkx as nx
import numpy as np
from hypothesis import given

import inlink
from inlink import Graph
from strategies import Arcs, arcs


@given(arcs(min_nodes=2))
def test_it_is_networkx_degree_centrality(a: Arcs):
    graph = a.graph()
    G = a.digraph()
    for direction, theirs in (
        ("in", nx.in_degree_centrality(G)),
        ("out", nx.out_degree_centrality(G)),
        ("both", nx.degree_centrality(G)),
    ):
        ours = inlink.degree(graph, direction=direction)
        np.testing.assert_allclose(ours.values, [theirs[i] for i in range(a.num_nodes)], rtol=1e-12)
        assert ours.converged
        counts = inlink.degree(graph, direction=direction, normalized=False)
        np.testing.assert_allclose(counts.values, ours.values * (a.num_nodes - 1), rtol=1e-12)


@given(arcs(min_nodes=1, weighted=True))
def test_weights_add_up(a: Arcs):
    graph = a.graph()
    ranking = inlink.degree(graph, direction="out", normalized=False, weighted=True)
    assert np.abs(ranking.values - a.dense().sum(1)).sum() <= 1e-12 * max(1, a.dense().sum())


def test_parallel_links_count_in_a_multigraph():
    graph = Graph.from_arcs([("a", "b"), ("a", "b"), ("c", "b")], count=True)
    assert inlink.degree(graph, normalized=False, weighted=True)["b"] == 3
    assert inlink.degree(graph, normalized=False, weighted=False)["b"] == 2
