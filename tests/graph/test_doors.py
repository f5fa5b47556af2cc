"""Every public function refuses arrays and parameters out of their range, in one line."""

import inspect
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import example, given
from hypothesis import strategies as st

import inlink
from inlink import Graph, InlinkError, Ranking
from inlink.cli.rank import ALGORITHMS
from inlink.errors import ParameterError
from inlink.graph.graph import Rows
from inlink.graph.names import Names

GRAPH = Graph.from_arcs([(0, 1), (1, 2), (2, 0), (2, 1), (3, 0)])
RANKINGS = {name: getattr(inlink, name.replace("-", "_")) for name in ALGORITHMS}
RANKINGS |= {"linkrank": inlink.linkrank, "loops": inlink.loops, "Walks": inlink.Walks}
NEEDED = {"trustrank": [0], "spam-mass": [0], "anti-trustrank": [0]}


def arguments(name: str) -> tuple[Any, ...]:
    return (GRAPH, NEEDED[name]) if name in NEEDED else (GRAPH,)


NUMBERS = [
    True,
    False,
    "1",
    b"1",
    1j,
    [1],
    {},
    object(),
    math.nan,
    math.inf,
    -math.inf,
    -1,
    np.float32("nan"),
]
WRONG: dict[str, list[object]] = {
    "damping": [*NUMBERS, 7, 1.0000001, np.float64(2), None],
    "alpha": [*NUMBERS, None],
    "beta": [*NUMBERS, 0, None],
    "gamma": [*NUMBERS, 0, 1.5, None],
    "rho": [*NUMBERS, None],
    "confidence": [*NUMBERS, 0, 1, None],
    "tol": [*NUMBERS, 0],
    "max_iter": [*NUMBERS, 1.5, np.float64(2)],
    "depth": [*NUMBERS, 1.5, None],
    "walks": [*NUMBERS, 0, 1, 2.5, None],
    "seed": [*NUMBERS, 0.5, None],
    "k": [*NUMBERS, 0, 5, 1.5],
    "top": [*NUMBERS, 0, 1.5],
    "epsilon": [*NUMBERS, 0, 1],
    "log2m": [*NUMBERS, 3, 17, 6.5],
    "runs": [*NUMBERS, 0, 1.5, None],
    "exact": [0, 1, "yes", [True]],
    "threads": [*NUMBERS, 0, 1.5],
    "certain": [*NUMBERS, 0, 1.5],
    "weighted": [0, 1, "yes", 1.0, [True]],
    **{
        name: [0, 1, "yes", None, [True]]
        for name in ("normalized", "endpoints", "wf_improved", "limit_page", "limit_domain")
    },
    "method": ["best", "", None, 3, ["power"]],
    "order": ["best", None, 3],
    "direction": ["up", None, 3],
}
VECTORS = ("personalization", "start", "scores", "states")
CASES = [
    (name, parameter)
    for name, function in RANKINGS.items()
    for parameter in inspect.signature(function).parameters
    if parameter in WRONG
]


def test_every_parameter_has_its_cases():
    have = {name for function in RANKINGS.values() for name in inspect.signature(function).parameters}
    assert have - set(WRONG) == {"graph", "trusted", "spam", "loops", *VECTORS}


@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_parameters_outside_their_meaning(name: str, parameter: str):
    for value in WRONG[parameter]:
        with pytest.raises(ParameterError) as error:
            RANKINGS[name](*arguments(name), **{parameter: value})
        said = str(error.value)
        assert f"`{parameter}`" in said, (value, said)
        assert " must be " in said, said
        assert "; got " in said, said
        assert "\n" not in said


@pytest.mark.parametrize("name", RANKINGS)
def test_numbers_of_numpy_are_numbers(name: str):
    """They are kept as Python's, so that a ranking can be saved."""
    parameters = inspect.signature(RANKINGS[name]).parameters
    given = {"damping": np.float32(0.5), "max_iter": np.int64(3), "seed": np.uint8(1), "threads": np.int32(1)}
    ranking = RANKINGS[name](*arguments(name), **{key: v for key, v in given.items() if key in parameters})
    if isinstance(ranking, Ranking):
        assert not any(isinstance(value, np.generic) for value in ranking.parameters.values())


def test_the_range_is_said():
    with pytest.raises(ParameterError, match=r"^`damping` must be a number in \[0, 1\]; got 7$"):
        inlink.pagerank(GRAPH, damping=7)
    with pytest.raises(ParameterError, match=r"^`threads` must be a whole number of at least 1, .*; got 0$"):
        inlink.pagerank(GRAPH, threads=0)


# -- values of nodes ---------------------------------------------------------------------------------------------------

BAD_VALUES: list[object] = [
    [1, 2, 3], [[1, 2, 3, 4]], [1, 2, 3, math.nan], [1, 2, 3, math.inf], [1, 2, 3, -1], 3, "1234", None.__class__,
    ["1", "2", "3", "4"], [1, 2, 3, 4j], [1, [2], 3, 4], [2**70, 1, 1, "x"], np.zeros(4, "datetime64[s]"),
    np.array([1, 2, 3, np.nan], ">f8"), scipy.sparse.eye_array(4), {0: "3"}, {0: math.nan}, {0: None}, {0: -1}, {0: 1j},
    {9: 1.0}, {"a": 1.0}, {None: 1.0}, {1.5: 1.0}, {True: 1.0}, {(0, 1): 1.0},
        np.full(4, 1e5, "g") * np.longdouble("1e400"),
]  # fmt: skip
WITH_VECTORS = [
    (name, parameter)
    for name, function in RANKINGS.items()
    for parameter in inspect.signature(function).parameters
    if parameter in VECTORS and name != "linkrank"
]


@pytest.mark.parametrize(("name", "parameter"), WITH_VECTORS)
def test_values_of_nodes(name: str, parameter: str):
    for values in BAD_VALUES:
        with pytest.raises(InlinkError) as error:
            RANKINGS[name](*arguments(name), **{parameter: values})
        assert f"`{parameter}`" in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(("name", "parameter"), WITH_VECTORS)
def test_sound_values_of_any_type_and_layout_mean_the_same(name: str, parameter: str):
    values = np.array([1.0, 2.0, 3.0, 4.0])
    read_only = values.copy()
    read_only.flags.writeable = False
    options: dict[str, Any] = (
        {"threads": 1} if "threads" in inspect.signature(RANKINGS[name]).parameters else {}
    )
    first = RANKINGS[name](*arguments(name), **{parameter: values}, **options).values
    for same in (
        values.astype(">f8"), values.astype("<f4"), values.astype(">u2"), np.repeat(values, 3)[::3], read_only,
        values[::-1].copy()[::-1], values.tolist(), dict(enumerate(values)), values.astype(np.float16),
    ):  # fmt: skip
        given = RANKINGS[name](*arguments(name), **{parameter: same}, **options).values
        assert given.tolist() == first.tolist()
    assert values.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("name", NEEDED)
@pytest.mark.parametrize("pages", [[], "0", 0, None, [4], [-1], [0.0], [True], [None], ["a"], [[0]], {0: 1}])
def test_sets_of_pages(name: str, pages: object):
    with pytest.raises(InlinkError, match=r"`(trusted|spam)`"):
        RANKINGS[name](GRAPH, pages)


# -- nodes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("node", [1.0, 1.5, None, True, [1], object(), 4, -1, 2**80, "a", math.nan])
def test_nodes(node: object):
    ranking = inlink.pagerank(GRAPH)
    for call in (GRAPH.node, GRAPH.outlinks, GRAPH.inlinks, ranking.rank_of, ranking.__getitem__):
        with pytest.raises(InlinkError):
            call(node)
    with pytest.raises(InlinkError):
        GRAPH.reachable([node])


@pytest.mark.parametrize("k", [-1, 1.5, "3", None, True, math.nan])
def test_the_number_of_best_nodes_is_checked(k: object):
    with pytest.raises(ParameterError, match="`k` must be a whole number of at least 0"):
        inlink.pagerank(GRAPH).top(k)


# -- graphs of arrays --------------------------------------------------------------------------------------------------


def test_arcs_that_are_none():
    wrong: list[object] = [
        3, None, "ab", {1: 2}, [1, 2], [(1, 2, 3)], ["ab"], [(0, 1), (1,)], [(0, 1.5)], [(0, -1)],
        [(0, 2**32 - 1)], [(0, 2**80)],
        [(0, "a")], [(0, None)], [("a", None)], [([0], [1])], np.arange(4), np.zeros((2, 3), int), np.zeros((2, 2)),
        np.ones((2, 2), bool), np.array([[0, -1]]), np.array([[0, 2**40]]), np.zeros((2, 2, 2), int),
        np.array("a"), np.array(["a", "b"]), np.array([["a", 0]], object), np.array([[0, 1.5]], object),
    ]  # fmt: skip
    for arcs in wrong:
        with pytest.raises(ParameterError) as error:
            Graph.from_arcs(arcs)
        assert "\n" not in str(error.value)
    for num_nodes in (-1, 1.5, "3", True, 2**40):
        with pytest.raises(ParameterError, match="`num_nodes` must be"):
            Graph.from_arcs([(0, 1)], num_nodes=num_nodes)
    for weights in (
        [1],
        1.0,
        "12",
        [1, "2"],
        [1, math.nan],
        [1, math.inf],
        [1, 0],
        [1, -1],
        [[1, 2]],
        [1, 2j],
        [1, [2]],
    ):
        with pytest.raises(ParameterError):
            Graph.from_arcs([(0, 1), (1, 0)], weights=weights)


def test_arcs_of_any_type_and_layout():
    arcs = np.array([[0, 1], [2, 1], [1, 0]])
    for same in (
        arcs.astype(">i4"), arcs.astype("u1"), np.asfortranarray(arcs), np.repeat(arcs, 2, 0)[::2], arcs.tolist(),
        map(tuple, arcs.tolist()), arcs.astype(">u8"),
    ):  # fmt: skip
        graph = Graph.from_arcs(same, weights=np.array([1, 2, 3], ">f4"))
        assert graph.out_rows.nodes.tolist() == [1, 0, 1]
        assert graph.out_rows.weights.tolist() == [1, 3, 2]


def csr(data: Any, indices: Any, indptr: Any, n: int = 3) -> Any:
    """A matrix that SciPy has not checked."""
    matrix = scipy.sparse.csr_array((n, n))
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix


WILD = [
    csr(np.ones(2), np.array([0, 3]), np.array([0, 1, 2, 2])),
    csr(np.ones(2), np.array([0, -1]), np.array([0, 1, 2, 2])),
    csr(np.ones(2), np.array([0, 2**31 - 1]), np.array([0, 1, 2, 2])),
    csr(np.ones(2), np.array([0, 1]), np.array([0, 2, 1, 2])),
    csr(np.ones(2), np.array([0, 1]), np.array([0, 1, 2, 10**9])),
    csr(np.ones(2), np.array([0, 1]), np.array([1, 1, 2, 2])),
    csr(np.ones(2), np.array([0, 1]), np.array([0, -1, 2, 2])),
    csr(np.ones(2), np.array([0, 1]), np.array([0, 1, 2])),
    csr(np.ones(2), np.array([0, 1]), np.array([], int)),
    csr(np.ones(2), np.array([0.0, 1.0]), np.array([0, 1, 2, 2])),
    csr(np.ones(2), np.array([[0, 1]]), np.array([0, 1, 2, 2])),
    csr(np.ones(1), np.array([0, 1]), np.array([0, 1, 2, 2])),
    csr(np.array([1, np.nan]), np.array([0, 1]), np.array([0, 1, 2, 2])),
    csr(np.array([1, np.inf]), np.array([0, 1]), np.array([0, 1, 2, 2])),
    csr(np.array([1, -1]), np.array([0, 1]), np.array([0, 1, 2, 2])),
    csr(np.array([1, 1j]), np.array([0, 1]), np.array([0, 1, 2, 2])),
    csr(np.array(["a", "b"]), np.array([0, 1]), np.array([0, 1, 2, 2])),
    scipy.sparse.eye_array(3, 4).tocsr(),
    scipy.sparse.coo_array(np.ones(3)),
]


@pytest.mark.parametrize("graph", [None, 5, "links.tsv", Path("links"), {"a": "b"}])
def test_graphs_that_are_none(graph: Any):
    remedy = "inlink.read makes a Graph of a file" if isinstance(graph, str | Path) else "got"
    with pytest.raises(ParameterError, match=rf"^`graph` must be a Graph, .* {remedy}"):
        inlink.pagerank(graph)


def test_matrices_that_are_none():
    for matrix in WILD:
        for door in (inlink.pagerank, inlink.read, inlink.hits):
            with pytest.raises(ParameterError) as error:
                door(matrix)
            assert "\n" not in str(error.value)
    for matrix in WILD[:12]:
        columns = scipy.sparse.csc_array((3, 3))
        columns.data, columns.indices, columns.indptr = matrix.data, matrix.indices, matrix.indptr
        with pytest.raises(ParameterError):
            inlink.degree(columns)
    ends = scipy.sparse.coo_array((np.ones(2), ([0, 1], [1, 2])), shape=(3, 3))
    for row in ([0, 3], [0, -1], [0.5, 1], [0]):
        ends.coords = (np.array(row), np.array([1, 2]))
        with pytest.raises(ParameterError):
            inlink.degree(ends)
    lists = scipy.sparse.lil_array((3, 3))
    lists[0, 1] = 1
    lists.rows[0] = [7]
    with pytest.raises(ParameterError):
        inlink.degree(lists)
    blocks = scipy.sparse.bsr_array(np.ones((4, 4)), blocksize=(2, 2))
    blocks.indices = np.array([0, 7, 0, 1])
    with pytest.raises(ParameterError):
        inlink.degree(blocks)
    for graph in (3, None, "x", np.eye(3), b"x", object()):
        with pytest.raises(ParameterError, match="`graph` must be a Graph"):
            inlink.degree(graph)
    net = networkx.DiGraph()
    net.add_edge("a", "b", weight="heavy")
    with pytest.raises(ParameterError, match="weights"):
        inlink.degree(net)


@given(
    st.lists(st.integers(-2, 5), max_size=6),
    st.lists(st.integers(-2, 7), min_size=1, max_size=6),
    st.lists(st.sampled_from([0.0, 1.0, 2.5, -1.0, math.nan, math.inf]), min_size=6, max_size=6),
    st.sampled_from(["<i4", ">i4", "<i8", ">i8", "<u4", "<i2"]),
    st.booleans(),
)
@example([2, 1, 1], [0, 3, 3, 3, 3], [1.0, 2.5, 0.0, 1.0, 1.0, 1.0], ">i4", True)
def test_matrices_are_what_they_say_or_refused(indices, indptr, data, dtype, strided):
    """A matrix of any content gives the answer of its entries, one by one, or an error."""
    n = 4
    kinds = (
        np.array(indices, "i8").astype(dtype),
        np.array(indptr, "i8").astype(dtype),
        np.array(data[: len(indices)]),
    )
    if strided:
        kinds = tuple(np.repeat(values, 2)[::2] for values in kinds)
    matrix = csr(kinds[2], kinds[0], kinds[1], n)
    matrix.has_canonical_format = matrix.has_sorted_indices = True
    used = data[: max(indptr[-1], 0)]
    good = (
        len(indptr) == n + 1
        and indptr[0] == 0
        and all(a <= b for a, b in pairwise(indptr))
        and indptr[-1] <= len(indices)
        and (np.dtype(dtype).kind == "i" or min(indptr + indices, default=0) >= 0)
        and all(0 <= index < n for index in indices[: indptr[-1]])
        and all(0 <= value < math.inf for value in used)
    )
    if not good:
        with pytest.raises(ParameterError):
            inlink.read(matrix)
        return
    expected: dict[tuple[int, int], float] = {}
    for row in range(n):
        for place in range(indptr[row], indptr[row + 1]):
            arc = row, indices[place]
            expected[arc] = expected.get(arc, 0.0) + data[place]
    expected = {arc: weight for arc, weight in expected.items() if weight > 0}
    graph = inlink.read(matrix)
    rows = graph.out_rows
    found = {}
    for row in range(n):
        for place in range(int(rows.offsets[row]), int(rows.offsets[row + 1])):
            found[row, int(rows.nodes[place])] = 1.0 if rows.weights is None else float(rows.weights[place])
    assert found == expected
    inlink.pagerank(matrix)


def test_graphs_of_rows():
    offsets, nodes = np.array([0, 2, 3, 3], np.uint64), np.array([1, 2, 0], np.uint32)
    turned = Rows(np.array([0, 1, 2, 3], np.uint64), np.array([1, 0, 0], np.uint32))
    Graph(Rows(offsets, nodes), turned)
    for dtype in ("<i8", ">i8", "<u4", "<i2"):
        graph = Graph(Rows(np.repeat(offsets.astype(dtype), 2)[::2], nodes.astype(dtype)))
        assert graph.outlinks(0).tolist() == [1, 2]
        assert inlink.pagerank(graph).converged
    for kind, kept in {"<f4": "<f8", "<f8": "<f8", "<i4": "<f8", "<u2": "<f8", "<u4": "<u4"}.items():
        weights = np.array([2.5, 1, 4]).astype(kind)
        graph = Graph(Rows(offsets, nodes, weights))
        assert (graph.out_weights.dtype, graph.out_weights.tolist()) == (np.dtype(kept), weights.tolist())
    wrong: list[tuple[object, ...]] = [
        (offsets, [1, 3, 0]), (offsets, [2, 1, 0]), (offsets, [1, 1, 0]), (offsets, [1, -2, 0]), (offsets, [1, 2]),
        ([1, 2, 3, 3], nodes), ([0, 3, 2, 3], nodes), ([0, 2, 3, 9], nodes), ([0, -1, 3, 3], nodes),
        ([], nodes), ([], []),
        (offsets, [0.5, 1, 2]), (offsets, [[1, 2, 0]]), (offsets, nodes, [1, 2]), (offsets, nodes, [1, 2, math.nan]),
        (offsets, nodes, [1, 2, 0]), (offsets, nodes, [1, 2, -1]), (offsets, nodes, ["a"] * 3),
        (offsets, nodes, np.zeros(3, "u4")),
    ]  # fmt: skip
    for arrays in wrong:
        with pytest.raises(ParameterError, match="`out_rows`") as error:
            Graph(Rows(*arrays))
        assert "\n" not in str(error.value)
    with pytest.raises(ParameterError, match="the same arcs"):
        Graph(Rows(offsets, nodes), Rows(offsets, nodes))
    with pytest.raises(ParameterError, match="`in_rows`"):
        Graph(Rows(offsets, nodes), Rows(offsets, np.array([9, 9, 9])))
    with pytest.raises(ParameterError, match="`level` must be"):
        Graph(Rows(offsets, nodes), level="planet")


def test_names_of_rows():
    rows = Rows(np.array([0, 0, 0], np.uint64), np.empty(0, np.uint32))
    assert Graph(rows, names=Names.of(["b", "a"])).node("a") == 1
    text = np.frombuffer(b"ab", np.uint8)
    for names in (
        Names.of(["a"]),
        ["a", "b"],
        Names(text, np.array([0, 1, 9], np.uint64)),
        Names(text, np.array([0, 2, 1], np.uint64)),
        Names(text, np.array([1, 2, 2], np.uint64)),
        Names(text, np.array([0, 1, 2])),
        Names(text, np.array([0, 1, 2], np.uint64), np.array([1, 0], np.uint32)),
        Names(text, np.array([0, 1, 2], np.uint64), np.array([0, 7], np.uint32)),
        Names(text, np.array([0, 1, 2], np.uint64), np.array([0], np.uint32)),
    ):
        with pytest.raises(ParameterError, match="`names` must"):
            Graph(rows, names=names)
