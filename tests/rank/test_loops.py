"""Loops against Nutch's own way: every route, one link at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inlink
from inlink.errors import FolderError, OutputError
from inlink.rank.loops import Loops, loops
from strategies import Arcs, arcs


def routes(a: Arcs, depth: int) -> set[tuple[int, int]]:
    """The result of Nutch's Initializer, Loopers and Finalizer, written as they are."""
    outlinks: dict[int, set[int]] = {}
    for u, o in a.pairs:
        outlinks.setdefault(u, set()).add(o)
    has_inlinks = {o for _, o in a.pairs}
    # a route stands at a node, looks for where it began, and knows its first link's end
    waiting = [(o, u, o) for u in outlinks if u in has_inlinks for o in outlinks[u]]
    found = set()
    for step in range(depth):
        going = set()
        for at, wanted, first in waiting:
            if wanted in outlinks.get(at, set()):
                found.add((wanted, first))
            elif step < depth - 1:
                going |= {(end, wanted, first) for end in outlinks.get(at, set())}
        waiting = list(going)
    return found


def found_in(loops: Loops) -> set[tuple[int, int]]:
    graph = loops.graph
    return {(u, int(o)) for u in range(graph.num_nodes) for o in loops.of(u)}


@given(arcs(max_nodes=9), st.integers(0, 6))
def test_they_are_the_links_that_nutch_finds(a, depth):
    found = loops(a.graph(), depth=depth)
    assert found_in(found) == routes(a, depth)
    assert len(found) == len(routes(a, depth))


def test_depth_one_is_reciprocal_links_and_self_links_depth_two_triangles():
    graph = inlink.Graph.from_arcs([(0, 1), (1, 0), (2, 2), (3, 4), (4, 5), (5, 3), (5, 6)])
    assert found_in(loops(graph, depth=0)) == set()
    assert found_in(loops(graph, depth=1)) == {(0, 1), (1, 0), (2, 2)}
    assert found_in(loops(graph)) == {(0, 1), (1, 0), (2, 2), (3, 4), (4, 5), (5, 3)}
    assert found_in(loops(graph, depth=10**30)) == found_in(loops(graph))


@pytest.mark.parametrize("name", ["web", pytest.param("graphs/cnr-2000", marks=pytest.mark.slow)])
def test_threads_find_the_same(data, name):
    graph = inlink.read(data(name))
    one, two = loops(graph, depth=3, threads=1), loops(graph, depth=3, threads=2)
    assert np.array_equal(one.marks, two.marks)
    assert len(one) == {"web": 2_276, "graphs/cnr-2000": 1_663_031}[name]
    assert len(loops(graph, depth=1)) == graph.to_scipy().multiply(graph.to_scipy().T).nnz


def test_they_are_kept_with_their_graph(tmp_path):
    pairs = [("a", "b"), ("b", "a"), ("b", "c")]
    graph = inlink.Graph.from_arcs(pairs, into=tmp_path / "g")
    with pytest.raises(FolderError, match="has no loops"):
        Loops.load(graph)
    loops(graph, depth=1).save()
    again = Loops.load(tmp_path / "g")
    assert (again.depth, found_in(again)) == (1, {(0, 1), (1, 0)})
    assert repr(again) == "<inlink loops of depth 1: 2 of 3 arcs>"
    loops(graph, depth=0).save()
    assert len(Loops.load(graph)) == 0
    inlink.Graph.from_arcs(pairs, into=tmp_path / "g")
    with pytest.raises(FolderError, match="an earlier version"):
        Loops.load(tmp_path / "g")
    with pytest.raises(OutputError, match="memory only"):
        loops(graph.to_scipy(), depth=1).save()
