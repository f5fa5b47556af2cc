from fractions import Fraction

import igraph
import networkx as nx
import numpy as np
import pytest
import scipy.sparse.csgraph
from hypothesis import given
from hypothesis import strategies as st

from inlink import Graph
from inlink.base.progress import LineReporter, Work, reporting
from inlink.errors import ParameterError
from inlink.rank.closeness import closeness, harmonic
from inlink.rank.kernels import paths
from inlink.rank.kernels.blocks import each_block
from strategies import Arcs, arcs


def digraph(a: Arcs) -> nx.DiGraph:
    G = nx.DiGraph()
    G.add_nodes_from(range(a.num_nodes))
    G.add_edges_from(a.pairs)
    return G


def distances(A: np.ndarray) -> np.ndarray:
    """d[u, v], infinite where v cannot be reached, by SciPy."""
    return scipy.sparse.csgraph.shortest_path(scipy.sparse.csr_array(A), unweighted=True)


@given(arcs(), st.sampled_from(["in", "out"]), st.booleans(), st.sampled_from([1, 2]))
def test_they_are_networkx(a: Arcs, direction: str, improved: bool, threads: int):
    G = digraph(a) if direction == "in" else digraph(a).reverse()
    near = closeness(a.graph(), direction=direction, wf_improved=improved, threads=threads)
    theirs = nx.closeness_centrality(G, wf_improved=improved)
    np.testing.assert_allclose(near.values, [theirs[i] for i in range(a.num_nodes)], rtol=1e-14)
    sums = harmonic(a.graph(), direction=direction, threads=threads)
    theirs = nx.harmonic_centrality(G)
    np.testing.assert_allclose(sums.values, [theirs[i] for i in range(a.num_nodes)], rtol=1e-14)
    for ranking in (near, sums):
        assert ranking.converged
        assert ranking.verdict() == "exact"


@given(arcs(min_nodes=1, max_nodes=30))
def test_the_bounds_hold_against_fractions(a: Arcs):
    d = distances(a.dense())
    near, far, n = Fraction(), Fraction(), a.num_nodes
    ours, sums = closeness(a.graph()), harmonic(a.graph())
    for v in range(n):
        steps = [int(x) for u, x in enumerate(d[:, v]) if u != v and np.isfinite(x)]
        exact = Fraction(len(steps) ** 2, sum(steps) * (n - 1)) if steps else Fraction()
        near += abs(Fraction(float(ours.values[v])) - exact)
        far += abs(Fraction(float(sums.values[v])) - sum(Fraction(1, x) for x in steps))
    assert near <= ours.error_bound <= 1e-13
    assert far <= sums.error_bound <= 1e-11


@given(arcs(min_nodes=1, max_nodes=8))
def test_igraph_agrees(a: Arcs):
    g = igraph.Graph(n=a.num_nodes, edges=sorted(set(a.pairs)), directed=True)
    theirs = g.harmonic_centrality(mode="in", normalized=False)
    if a.num_nodes > 1:  # for one node igraph has no number
        np.testing.assert_allclose(harmonic(a.graph()).values, theirs, rtol=1e-12)


def test_closed_forms():
    n = 3000
    chain = Graph.from_arcs([(i, i + 1) for i in range(n - 1)])
    np.testing.assert_allclose(
        harmonic(chain).values, np.cumsum([0, *(1 / k for k in range(1, n))]), rtol=1e-13
    )
    i = np.arange(1, n)
    np.testing.assert_allclose(closeness(chain).values[1:], 2 / (i + 1) * (i / (n - 1)), rtol=1e-14)
    assert closeness(chain, wf_improved=False)[1] == 1.0
    assert closeness(chain, direction="out").values.tolist() == closeness(chain).values[::-1].tolist()
    ring = closeness(Graph.from_arcs([(i, (i + 1) % 700) for i in range(700)]))
    np.testing.assert_allclose(ring.values, 2 / 700, rtol=1e-14)
    whole = Graph.from_arcs([(i, j) for i in range(9) for j in range(9)])
    assert closeness(whole).values.tolist() == [1.0] * 9
    assert harmonic(whole).values.tolist() == [8.0] * 9
    star = Graph.from_arcs([(i, 0) for i in range(1, 8)])
    assert harmonic(star).values.tolist() == [7.0] + [0.0] * 7


def test_nodes_in_many_blocks_and_any_number_of_threads():
    n = 3 * paths.SOURCES + 7
    rng = np.random.default_rng(5)
    graph = Graph.from_arcs(rng.integers(0, n, (2 * n, 2)).astype(np.uint32), num_nodes=n)
    d = distances(graph.to_scipy().toarray())
    np.fill_diagonal(d, np.inf)
    for direction, axis in (("in", 0), ("out", 1)):
        one, three = (harmonic(graph, direction=direction, threads=t) for t in (1, 3))
        np.testing.assert_allclose(one.values, (1 / d).sum(axis), rtol=1e-12)
        assert (one.values == three.values).all()
        reached = np.isfinite(d).sum(axis)
        far = np.where(np.isfinite(d), d, 0).sum(axis)
        exact = np.divide(reached**2, far * (n - 1), out=np.zeros(n), where=far > 0)
        near = closeness(graph, direction=direction, threads=3)
        np.testing.assert_allclose(near.values, exact, rtol=1e-13)


@pytest.mark.parametrize("name", ["gr0.Harbour", "graphs/gr0.California"])
def test_networkx_agrees_on_links(data, name):
    import inlink

    graph = inlink.read(data(name))
    theirs = nx.harmonic_centrality(graph.to_networkx())
    ours = harmonic(graph)
    np.testing.assert_allclose(ours.values, [theirs[one] for one in graph.names], rtol=1e-11)
    theirs = nx.closeness_centrality(graph.to_networkx())
    np.testing.assert_allclose(closeness(graph).values, [theirs[one] for one in graph.names], rtol=1e-13)


def test_it_takes_the_arguments_of_pagerank_and_its_ranking_is_kept(tmp_path):
    matrix = scipy.sparse.csr_array([[0, 1, 0], [0, 0, 5], [0, 0, 0]])
    assert harmonic(matrix).values.tolist() == [0, 1, 1.5]  # a weight is no length
    assert harmonic(nx.path_graph(3)).values.tolist() == [1.5, 2, 1.5]
    kept = Graph.from_arcs([("a", "b"), ("b", "c")], into=tmp_path / "g")
    for function in (closeness, harmonic):
        ranking = function(kept)
        ranking.save(kept)
        again = type(ranking).load(kept, function.__name__)
        assert again.top(1)[0][0] == "c"
        assert again.parameters == ranking.parameters


def test_nothing_and_nonsense():
    for function in (closeness, harmonic):
        assert len(function(Graph.from_arcs(np.empty((0, 2), np.uint32)))) == 0
        assert function(Graph.from_arcs([(0, 0)])).values.tolist() == [0.0]
        assert function(Graph.from_arcs(np.empty((0, 2), np.uint32), num_nodes=3)).values.tolist() == [
            0,
            0,
            0,
        ]
        with pytest.raises(ParameterError, match="'in' or 'out'; got 'both'"):
            function(Graph.from_arcs([(0, 1)]), direction="both")
        with pytest.raises(ParameterError, match="threads"):
            function(Graph.from_arcs([(0, 1)]), threads=0)


class Interrupting:
    """A reporter that presses Ctrl-C after the first piece of work."""

    def __init__(self) -> None:
        self.totals: list[float | None] = []

    def task(self, label: str, total: float | None, unit: str) -> Work:
        self.totals.append(total)

        class One(Work):
            def advance(self, amount: float, note: str = "") -> None:
                raise KeyboardInterrupt

        return One(label, total, unit)


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_it(threads: int):
    reporter = Interrupting()
    graph = Graph.from_arcs([(i, i + 1) for i in range(4000)])
    with reporting(reporter), pytest.raises(KeyboardInterrupt):
        harmonic(graph, threads=threads)
    assert reporter.totals == [4001]


def test_progress_adds_up(capsys):
    with reporting(LineReporter(every=0.0)):
        harmonic(Graph.from_arcs([(i, i + 1) for i in range(1100)]))
    assert "harmonic centrality: 1,101 sources (100%)" in capsys.readouterr().err


@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_come_in_order_and_drop_what_was_not_begun(threads: int):
    made, begun = [], []

    def scratch() -> list[int]:
        made.append([])
        return made[-1]

    def work(own: list[int], block: int) -> int:
        own.append(block)
        begun.append(block)
        return block * block

    assert list(each_block(20, threads, scratch, work)) == [b * b for b in range(20)]
    assert 1 <= len(made) <= threads
    assert sorted(block for own in made for block in own) == list(range(20))
    assert list(each_block(0, threads, scratch, work)) == []
    begun.clear()
    blocks = each_block(1000, threads, scratch, work)
    assert next(blocks) == 0
    blocks.close()
    assert len(begun) <= 2 * threads + 1

    def broken(own: list[int], block: int) -> int:
        raise ValueError(block)

    with pytest.raises(ValueError, match=r"^0$"):
        list(each_block(9, threads, scratch, broken))
