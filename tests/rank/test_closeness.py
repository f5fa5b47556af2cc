from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
import scipy.sparse.csgraph
from hypothesis import given
from hypothesis import strategies as st

from inlink import Graph
from inlink.base.progress import LineReporter, reporting
from inlink.rank.closeness import closeness, harmonic
from inlink.rank.kernels import paths
from inlink.rank.kernels.blocks import each_block
from strategies import Arcs, arcs


def distances(A: np.ndarray) -> np.ndarray:
    """d[u, v], infinite where v cannot be reached, by SciPy."""
    return scipy.sparse.csgraph.shortest_path(scipy.sparse.csr_array(A), unweighted=True)


@given(arcs(), st.sampled_from(["in", "out"]), st.booleans(), st.sampled_from([1, 2]))
def test_they_are_networkx(a: Arcs, direction: str, improved: bool, threads: int):
    G = a.digraph() if direction == "in" else a.digraph().reverse()
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


@pytest.mark.slow
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


def test_progress_adds_up(capsys):
    with reporting(LineReporter(every=0.0)):
        harmonic(Graph.from_arcs([(i, i + 1) for i in range(1100)]))
        harmonic(Graph.from_arcs([(0, 1)]), log2m=4, runs=2)
    shown = capsys.readouterr().err
    assert "harmonic centrality: 1,101 sources (100%)" in shown
    assert "harmonic, run 2 of 2: " in shown


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
