import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import inlink
from inlink import Graph
from inlink.rank.cheirank import cheirank
from strategies import Arcs, arcs
from test_pagerank import dampings, exact


@given(arcs(min_nodes=1), dampings, st.sampled_from(["gauss-seidel", "power"]))
def test_it_is_pagerank_of_the_reversed_graph_and_the_bound_holds(a: Arcs, c: float, method: str):
    ranking = cheirank(a.graph(), damping=c, tol=1e-8, method=method, max_iter=200_000)
    assert np.abs(ranking.values - exact(a.dense().T, c)).sum() <= ranking.error_bound + 1e-12
    assert ranking.converged
    assert ranking.error_bound <= 1e-8


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
