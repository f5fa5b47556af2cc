"""Split rows of inlinks against the plain rows that they stand for."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlink import Graph
from inlink.base.folder import Folder, building
from inlink.errors import FolderError, ParameterError
from inlink.graph.graph import FORMAT, KIND
from inlink.graph.rows import (
    Rows,
    SplitRows,
    join_rows,
    node_bounds,
    nodes_at_places,
    row_places,
    split_transpose,
    unsplit,
)
from strategies import Arcs, arcs

both = st.one_of(arcs(), arcs(weighted=True))


def equal(one: tuple, other: tuple) -> None:
    for left, right in zip(one, other, strict=True):
        assert (left is None) == (right is None)
        np.testing.assert_array_equal(left, right)


def slowly_split(graph: Graph) -> SplitRows:
    """Split rows, arc by arc."""
    rows, n = Graph(graph.out_rows).in_rows, graph.num_nodes
    linking = [i for i in range(n) if len(graph.outlinks(i))]
    order = linking + [i for i in range(n) if i not in linking]
    offsets, nodes, weights = [0], [], []
    for i in order:
        for k in range(int(rows.offsets[i]), int(rows.offsets[i + 1])):
            nodes.append(linking.index(rows.nodes[k]))
            weights.append(None if rows.weights is None else rows.weights[k])
        offsets.append(len(nodes))
    kept = None if rows.weights is None else np.array(weights, rows.weights.dtype)
    return SplitRows(np.array(offsets), np.array(nodes), kept, np.array(linking))


@given(both)
def test_built_and_turned_rows_are_split_alike(a: Arcs):
    graph = a.graph()
    wanted = slowly_split(graph)
    equal(graph.split_in_rows, wanted)
    equal(split_transpose(graph.out_rows), wanted)
    equal(graph.in_rows, Graph(graph.out_rows).in_rows)
    equal(join_rows(graph.split_in_rows), graph.in_rows)


@given(arcs())
def test_places_and_nodes_are_each_other_turned_round(a: Arcs):
    graph = a.graph()
    rows, n = graph.split_in_rows, graph.num_nodes
    at = nodes_at_places(rows.linking, n)
    assert row_places(rows.linking, n)[at].tolist() == list(range(n))
    assert rows.places(at).tolist() == list(range(n))
    sources = len(rows.linking) or n
    assert rows.named(np.arange(sources)).tolist() == at[:sources].tolist()
    assert unsplit(graph.in_rows).places(at).tolist() == at.tolist()


@given(arcs(max_nodes=40), st.integers(1, 6))
def test_bounds_cut_the_work_evenly(a: Arcs, count: int):
    graph = a.graph()
    plain = graph.in_rows.offsets.astype(int) + np.arange(graph.num_nodes + 1)
    for rows in (graph.split_in_rows, unsplit(graph.in_rows)):
        bounds = node_bounds(rows.offsets, rows.linking, count).astype(int)
        assert bounds[0] == 0
        assert bounds[-1] == graph.num_nodes
        assert (np.diff(bounds) >= 0).all()
        inner = range(1, count)
        assert bounds[1:-1].tolist() == [
            int(np.searchsorted(plain, plain[-1] * part // count)) for part in inner
        ]


@given(both)
def test_look_ups_and_reversed_graphs(a: Arcs):
    graph, A = a.graph(), a.dense()
    matrix = Graph(Rows(*graph.out_rows), Rows(*graph.in_rows))
    lazy = Graph(Rows(*graph.out_rows))
    for one in (graph, matrix, lazy):
        assert one.indegrees.tolist() == (A > 0).sum(0).tolist()
        for node in range(len(A)):
            assert one.inlinks(node).tolist() == A[:, node].nonzero()[0].tolist()
        turned = one.transpose()
        assert (turned.num_nodes, turned.num_arcs, turned.is_weighted) == (
            len(A),
            one.num_arcs,
            one.is_weighted,
        )
        assert turned.outdegrees.tolist() == (A > 0).sum(0).tolist()
        np.testing.assert_allclose(turned.to_scipy().toarray(), A.T)
        equal(turned.in_rows, one.out_rows)
        assert turned.transpose() is one


def test_split_rows_are_not_accepted_unchecked():
    graph = Graph.from_arcs([(0, 1)])
    with pytest.raises(ParameterError, match="`in_rows` must be plain rows"):
        Graph(graph.out_rows, graph.split_in_rows)


@pytest.mark.parametrize(
    ("name", "wrong", "told"),
    [
        ("in.linking", [0, 1], "node 1 has no outlinks"),
        ("in.linking", [2, 0], "node 0 at place 1"),
        ("in.linking", [0, 9], "node 9 at place 1"),
        ("in.linking", [0], "it has 1 node, and 2 nodes have outlinks"),
        ("in.linking", [0, 1, 2, 3, 4], "in.linking has 5 elements for 4 nodes"),
        ("in.linking", None, "in.linking is missing"),
        ("in.nodes", [0, 0, 2, 0], "arc 2 begins at node 2, and there are 2 linking nodes"),
        ("in.nodes", [1, 0, 0, 1], "the inlinks are not those of the outlinks"),
        ("in.offsets", [0, 1, 1, 2, 4], "the inlinks are not those of the outlinks"),
    ],
)
def test_unsound_split_rows_are_refused(tmp_path: Path, name: str, wrong: list[int] | None, told: str):
    Graph.from_arcs([(0, 1), (0, 2), (2, 3), (0, 3)], into=tmp_path / "g")
    sound = Folder(tmp_path / "g", KIND, FORMAT)
    with building(tmp_path / "bad", KIND, FORMAT) as writer:
        for other in sound.header.files:
            values = np.array(sound.array(other))
            if other == name and wrong is not None:
                writer.write(other, np.array(wrong, values.dtype))
            elif other != name:
                writer.write(other, values)
    with pytest.raises(FolderError, match=told):
        Graph.open(tmp_path / "bad")
    shutil.rmtree(tmp_path / "bad")
