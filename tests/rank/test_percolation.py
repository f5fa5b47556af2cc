from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlink import Graph
from inlink.errors import ParameterError, UnknownNodeError
from inlink.rank.betweenness import betweenness
from inlink.rank.percolation import percolation
from strategies import Arcs, arcs
from test_betweenness import exact_dependencies, web


def exact(graph: Graph, x: list[float]) -> list[Fraction]:
    """The formula in fractions; 0 where it is 0/0."""
    n = graph.num_nodes
    states = [Fraction(value) for value in x]
    behind = [exact_dependencies(graph, s) for s in range(n)]
    result = []
    for v in range(n):
        others = sum(states) - states[v]
        through = sum((behind[s][v] * states[s] for s in range(n) if s != v), Fraction())
        result.append(through / others / (n - 2) if others and n > 2 else Fraction())
    return result


states = st.sampled_from([0.0, 0.0, 0.1, 0.5, 1.0, 3.0])


@given(arcs(min_nodes=3), st.data(), st.sampled_from([1, 2]))
def test_it_is_networkx(a: Arcs, data, threads: int):
    x = data.draw(st.lists(states, min_size=a.num_nodes, max_size=a.num_nodes))
    ours = percolation(a.graph(), x, threads=threads)
    assert ours.verdict() == "exact"
    if all(sum(x) - one > 1e-9 for one in x):  # NetworkX divides by it
        theirs = nx.percolation_centrality(a.digraph(), states=dict(enumerate(x)))
        np.testing.assert_allclose(ours.values, [theirs[i] for i in range(a.num_nodes)], rtol=1e-12)


@given(arcs(min_nodes=1), st.data())
def test_the_bound_holds_against_fractions(a: Arcs, data):
    x = data.draw(st.lists(states, min_size=a.num_nodes, max_size=a.num_nodes))
    ours = percolation(a.graph(), x)
    error = sum(abs(Fraction(float(y)) - z) for y, z in zip(ours.values, exact(a.graph(), x), strict=True))
    assert error <= ours.error_bound <= 1e-11


def test_equal_states_are_betweenness():
    graph = web(200)
    same = betweenness(graph).values
    np.testing.assert_allclose(percolation(graph).values, same, rtol=1e-12)
    np.testing.assert_allclose(percolation(graph, np.full(200, 7e307)).values, same, rtol=1e-12)
    np.testing.assert_allclose(percolation(graph, np.full(200, 1e-300)).values, same, rtol=1e-12)


def test_one_percolated_page_and_one_that_has_nearly_all():
    chain = Graph.from_arcs([("a", "b"), ("b", "c"), ("c", "d")])
    one = percolation(chain, {"a": 1.0})
    assert one.values.tolist() == [0.0, 1.0, 0.5, 0.0]
    assert percolation(chain, {"b": 1.0}).values.tolist() == [0.0, 0.0, 0.5, 0.0]
    assert not percolation(chain, {"d": 1.0}).values.any()
    assert not percolation(chain, [0, 0, 0, 0]).values.any()
    with pytest.raises(ParameterError, match=r"-1\.0 for node 'b'"):
        percolation(chain, {"b": -1})
    with pytest.raises(UnknownNodeError, match=r"`states`: .*'x'"):
        percolation(chain, {"x": 1})
    tiny = percolation(chain, {"b": 1.0, "a": 1e-30})
    assert tiny["b"] == pytest.approx(1.0, rel=1e-14)  # all that goes through b comes from a
    assert tiny["c"] == pytest.approx(0.5, rel=1e-14)


def test_a_sample_is_right_on_average_and_within_its_bound():
    graph = web(300)
    x = np.random.default_rng(1).random(300) ** 3
    exact_values = percolation(graph, x).values
    samples = [percolation(graph, x, k=60, seed=s) for s in range(100)]
    values = np.array([sample.values for sample in samples])
    off = (values.mean(0) - exact_values)[(seen := exact_values > 1e-4)] / (values.std(0)[seen] / 10)
    assert seen.sum() > 50
    assert np.abs(off).max() < 5
    assert 0.7 < off.std() < 1.4
    assert (np.abs(values - exact_values).max(1) <= [s.parameters["max_error"] for s in samples]).all()
    more = percolation(graph, x, k=200)
    assert more.parameters["max_error"] < 0.6 * samples[0].parameters["max_error"]
    assert not more.converged
    assert more.error_bound is None
    assert "from 200 draws of" in more.verdict()
    assert (percolation(graph, x, k=60, seed=7, threads=3).values == samples[7].values).all()
    assert (percolation(graph, x, k=300).values == exact_values).all()


def test_the_bound_of_a_sample_is_neither_too_small_nor_idle():
    """Half of what is percolated goes through one hub to nearly all pages: errors are binomial."""
    size, k = 400, 100
    pairs = [(i, 400 if i < 200 else 5000 + i) for i in range(size)] + [(400, 401 + j) for j in range(4500)]
    graph, x = Graph.from_arcs(pairs), [1.0] * size
    x += [0.0] * (graph.num_nodes - size)
    samples = [percolation(graph, x, k=k, confidence=0.5, seed=seed) for seed in range(60)]
    hub = percolation(graph, x)[400]
    assert hub == pytest.approx(0.5 * 4500 / (graph.num_nodes - 2))
    deviation = 4500 / (graph.num_nodes - 2) * np.sqrt(0.25 / k)
    bounds = np.array([sample.parameters["max_error"] for sample in samples])
    assert (np.abs(np.array([sample[400] for sample in samples]) - hub) > bounds).sum() <= 30
    assert (bounds > deviation).all()
    assert (bounds < 4 * deviation).all()
