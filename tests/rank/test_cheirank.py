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


@given(arcs(min_nodes=1, weighted=True), st.data())
def test_personalized_and_weighted(a: Arcs, data):
    r = data.draw(st.lists(st.floats(0, 10), min_size=a.num_nodes, max_size=a.num_nodes).filter(any))
    ranking = cheirank(a.graph(), personalization=r, tol=1e-9)
    theirs = exact(a.dense().T, 0.85, np.array(r) / max(r))
    assert np.abs(ranking.values - theirs).sum() <= ranking.error_bound + 1e-12


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
