"""NetworkX with inlink as its backend: equal answers, refusals with reasons, and NetworkX's own tests."""

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from inlink import Graph
from inlink.networkx import backend
from inlink.networkx.backend import LinkGraph
from inlink.networkx.info import info
from networkxruns import QUICK, count, environment, run

FUNCTIONS = sorted(info()["functions"])
WITH_WEIGHTS = (
    "pagerank",
    "hits",
    "eigenvector_centrality",
    "eigenvector_centrality_numpy",
    "katz_centrality",
    "katz_centrality_numpy",
)


def converted(graph: Any, weight: str | None = None, **options: Any) -> LinkGraph:
    return backend.convert_from_nx(graph, edge_attrs=None if weight is None else {weight: 1}, **options)


def answer(name: str, graph: Any, **options: Any) -> Any:
    """Call inlink's function as NetworkX's dispatcher does."""
    weight = {"pagerank": "weight", "hits": "weight"}.get(name, options.get("weight"))
    assert backend.can_run(name, (graph,), options) is True
    return getattr(backend, name)(converted(graph, weight), **options)


def original(name: str, graph: Any, **options: Any) -> Any:
    return getattr(nx, name).orig_func(graph, **options)


@st.composite
def graphs(draw: st.DrawFn, *kinds: Any, weighted: bool = False, min_nodes: int = 0) -> Any:
    """NetworkX graphs of any kind, with self-loops, parallel edges, islands and labels of several types."""
    graph = draw(st.sampled_from(kinds or (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)))()
    labels: list[Any] = [3, "b", (1, 2), 2.5, "a", frozenset([1]), b"x", -1]
    nodes = labels[: draw(st.integers(min_nodes, len(labels)))]
    graph.add_nodes_from(nodes)
    if nodes:
        node = st.sampled_from(nodes)
        for source, target in draw(st.lists(st.tuples(node, node), max_size=20)):
            if weighted and draw(st.booleans()):
                graph.add_edge(source, target, weight=draw(st.sampled_from([0.5, 1, 2, 3.5])))
            else:
                graph.add_edge(source, target)
    return graph


@st.composite
def graphs_of_any_weights(draw: st.DrawFn) -> Any:
    """Graphs whose edges have two attributes, each missing, 0, 1, above 1, or rarely below 0."""
    graph = draw(graphs())
    values = st.sampled_from([None, 0, 0.5, 1, 10.0, *([-1] if draw(st.integers(0, 9)) == 0 else [])])
    for *_, data in graph.edges(data=True):
        for name in ("weight", "cost"):
            if (value := draw(values)) is not None:
                data[name] = value
    for node, data in graph.nodes(data=True):
        if draw(st.booleans()):
            data["percolation"], data["share"] = 0.5, 0.25 + 0.5 * (node == "a")
    return graph


def close(found: dict[Any, float], expected: dict[Any, float], tolerance: float = 1e-9) -> None:
    assert list(found) == list(expected) or set(found) == set(expected)
    for node, value in expected.items():
        assert type(found[node]) in (int, float)
        assert found[node] == pytest.approx(value, rel=tolerance, abs=tolerance), node


@given(graphs(weighted=True), st.sampled_from([0.0, 0.5, 0.85]), st.sampled_from([None, "weight"]), st.data())
def test_pagerank_is_networkxs(graph: Any, alpha: float, weight: str | None, data: st.DataObject):
    options: dict[str, Any] = {"alpha": alpha, "weight": weight, "max_iter": 10_000, "tol": 1e-12}
    if len(graph) and data.draw(st.booleans()):
        chosen = data.draw(
            st.dictionaries(st.sampled_from([*graph, "stranger"]), st.integers(1, 5), min_size=1)
        )
        assume(set(chosen) != {"stranger"})
        options["personalization"] = chosen
    found = backend.pagerank(converted(graph, weight), **options)
    close(found, original("pagerank", graph, **options))


@given(graphs(weighted=True))
def test_degrees_have_the_bits_of_networkxs(graph: Any):
    names = ["degree_centrality"]
    if graph.is_directed():
        names += ["in_degree_centrality", "out_degree_centrality"]
    for name in names:
        assert answer(name, graph) == getattr(nx, name)(graph)


@given(graphs(), st.booleans())
def test_paths_are_networkxs(graph: Any, flag: bool):
    close(answer("harmonic_centrality", graph), original("harmonic_centrality", graph))
    close(
        answer("closeness_centrality", graph, wf_improved=flag),
        original("closeness_centrality", graph, wf_improved=flag),
    )


@given(graphs(), st.booleans(), st.booleans())
def test_betweenness_is_networkxs(graph: Any, normalized: bool, endpoints: bool):
    options = {"normalized": normalized, "endpoints": endpoints}
    close(
        answer("betweenness_centrality", graph, **options),
        nx.betweenness_centrality(graph, **options),
    )


@given(graphs(nx.Graph, nx.DiGraph, min_nodes=3), st.data())
def test_percolation_is_networkxs(graph: Any, data: st.DataObject):
    states = {node: data.draw(st.sampled_from([0.25, 0.5, 1])) for node in graph}
    expected = original("percolation_centrality", graph, states=states)
    close(answer("percolation_centrality", graph, states=states), expected)
    some = dict(list(states.items())[::2])
    nx.set_node_attributes(graph, some, "percolation")
    found = backend.percolation_centrality(converted(graph, node_attrs={"percolation": None}))
    close(found, original("percolation_centrality", graph))
    with pytest.raises(NotImplementedError, match="each node needs a state"):
        backend.percolation_centrality(converted(graph), states={**states, "stranger": 1})


@given(graphs(nx.Graph, nx.DiGraph, weighted=True), st.sampled_from([None, "weight"]), st.booleans())
def test_katz_is_networkxs(graph: Any, weight: str | None, normalized: bool):
    options = {"alpha": 0.03, "beta": 2.0, "weight": weight, "normalized": normalized}
    close(
        answer("katz_centrality", graph, tol=1e-12, **options),
        original("katz_centrality", graph, tol=1e-13, **options),
    )
    # NetworkX's function fails on a graph of one node.
    if len(graph) != 1:
        expected = original("katz_centrality_numpy", graph, **options)
        close(answer("katz_centrality_numpy", graph, **options), expected)


@given(graphs(nx.Graph, nx.DiGraph, weighted=True, min_nodes=1), st.sampled_from([None, "weight"]))
def test_eigenvectors_solve_the_equation_or_are_declined(graph: Any, weight: str | None):
    connected = nx.is_strongly_connected(nx.DiGraph(graph))
    options = {"weight": weight, "max_iter": 20_000}
    try:
        found = answer("eigenvector_centrality", graph, tol=1e-10, **options)
    except (NotImplementedError, nx.PowerIterationFailedConvergence):
        # Without a cycle all values are 0, and of several components each may have its own vector.
        assert not connected or not graph.number_of_edges()
        return
    matrix = nx.to_numpy_array(graph, weight=weight)
    x = np.array(list(found.values()))
    assert np.linalg.norm(x) == pytest.approx(1)
    assert matrix.T @ x == pytest.approx(x * (x @ matrix.T @ x), abs=1e-6)
    if connected:
        close(found, original("eigenvector_centrality", graph, tol=1e-12, **options), 1e-6)


@given(graphs(nx.Graph, nx.DiGraph, weighted=True, min_nodes=3), st.sampled_from([None, "weight"]))
def test_eigenvectors_by_arpack_are_networkxs(graph: Any, weight: str | None):
    nodes = list(graph)
    graph.add_edges_from(zip(nodes, nodes[1:] + nodes[:1], strict=True))
    found = answer("eigenvector_centrality_numpy", graph, weight=weight)
    close(found, original("eigenvector_centrality_numpy", graph, weight=weight), 1e-7)
    graph.add_node("alone")
    with pytest.raises(nx.AmbiguousSolution):
        answer("eigenvector_centrality_numpy", graph, weight=weight)


@given(graphs(nx.DiGraph, weighted=True, min_nodes=3))
def test_hits_solves_networkxs_equations(graph: Any):
    assume(graph.number_of_edges())
    hubs, authorities = answer("hits", graph, max_iter=10_000, tol=1e-12)
    matrix = nx.to_numpy_array(graph)
    a, h = np.array(list(authorities.values())), np.array(list(hubs.values()))
    image = matrix.T @ matrix @ a
    assert image / image.sum() == pytest.approx(a, abs=1e-6)
    assert matrix @ a / (matrix @ a).sum() == pytest.approx(h, abs=1e-6)
    largest = np.linalg.norm(matrix, 2) ** 2
    assert np.linalg.norm(image) == pytest.approx(largest * np.linalg.norm(a), rel=1e-4)


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("pagerank", {"dangling": {0: 1}}, "dangling"),
        ("pagerank", {"alpha": 1.0}, "alpha"),
        ("pagerank", {"tol": 0}, "tolerance"),
        ("pagerank", {"no_such": 1}, "no_such"),
        ("hits", {"normalized": False}, "signs"),
        ("katz_centrality", {"beta": {0: 1.0}}, "above 0"),
        ("katz_centrality", {"beta": "foo"}, "above 0"),
        ("katz_centrality_numpy", {"alpha": -1}, "below 0"),
        ("closeness_centrality", {"u": 1}, "all nodes"),
        ("closeness_centrality", {"distance": "weight"}, "one step"),
        ("harmonic_centrality", {"nbunch": [0]}, "all nodes"),
        ("harmonic_centrality", {"sources": [0]}, "all nodes"),
        ("betweenness_centrality", {"k": 2}, "samples"),
        ("betweenness_centrality", {"weight": "weight"}, "one step"),
        ("percolation_centrality", {"weight": "weight"}, "one step"),
    ],
)
def test_can_run_declines_what_differs(name: str, options: dict[str, Any], reason: str):
    declined = backend.can_run(name, (nx.path_graph(3),), options)
    assert isinstance(declined, str)
    assert reason in declined


def test_weights_that_inlink_cannot_use_are_left_to_networkx():
    for weight in (-1, float("nan"), float("inf"), "heavy", None):
        graph = nx.DiGraph()
        graph.add_edge(0, 1, weight=weight)
        with pytest.raises(NotImplementedError, match="cannot use these weights"):
            converted(graph, "weight")
    with pytest.raises(NotImplementedError, match="one attribute"):
        backend.convert_from_nx(graph, preserve_edge_attrs=True)
    with pytest.raises(NotImplementedError, match="weight 1"):
        backend.convert_from_nx(graph, edge_attrs={"weight": 0})


def test_calls_that_do_not_converge_raise_networkxs_error():
    graph = nx.path_graph(50)
    for name, options in [
        ("pagerank", {"max_iter": 0}),
        ("pagerank", {"max_iter": 1, "tol": 1e-12}),
        ("hits", {"max_iter": 0}),
        ("hits", {"max_iter": 1}),
        ("eigenvector_centrality", {"max_iter": 0}),
        ("eigenvector_centrality", {"max_iter": 2, "tol": 1e-12}),
        ("katz_centrality", {"max_iter": 0}),
        ("katz_centrality", {"max_iter": 1}),
        ("katz_centrality", {"alpha": 5}),
    ]:
        with pytest.raises(nx.PowerIterationFailedConvergence):
            answer(name, graph, **options)
    with pytest.raises(ZeroDivisionError):
        answer("pagerank", graph, personalization={0: 0})
    with pytest.raises(NotImplementedError, match="personalization"):
        answer("pagerank", graph, personalization={0: -1})
    with pytest.raises(NotImplementedError, match="below 1/λ₁"):
        answer("katz_centrality_numpy", graph, alpha=5)


def test_pagerank_accepts_what_networkx_accepts_when_sweeps_are_few():
    graph = nx.gnp_random_graph(40, 0.1, seed=1, directed=True)
    sweeps = next(k for k in range(1, 200) if _converges(graph, k))
    close(
        answer("pagerank", graph, max_iter=sweeps), original("pagerank", graph, tol=1e-12, max_iter=999), 1e-3
    )


def _converges(graph: Any, sweeps: int) -> bool:
    try:
        original("pagerank", graph, max_iter=sweeps)
    except nx.PowerIterationFailedConvergence:
        return False
    return True


VIEWS = (
    lambda graph: graph,
    lambda graph: graph.reverse(copy=False) if graph.is_directed() else graph,
    lambda graph: graph.subgraph([*graph][1::2]),
    lambda graph: nx.subgraph_view(graph, filter_edge=lambda *ends: 3 not in ends[:2]),
)


@given(graphs_of_any_weights(), st.sampled_from(VIEWS))
def test_conversions_are_networkxs_own_to_a_sparse_matrix(graph: Any, view: Any):
    graph = view(graph)
    assume(len(graph))
    assert (backend._matrix(graph, [*graph]) != nx.to_scipy_sparse_array(graph, weight=None)).nnz == 0
    assume(all(data.get("cost", 1) >= 0 for *_, data in graph.edges(data=True)))
    link = converted(graph, "cost")
    assert (link.weights.to_scipy() != nx.to_scipy_sparse_array(graph, weight="cost")).nnz == 0
    counts = nx.to_scipy_sparse_array(graph, weight=None)
    assert (link.graph.to_scipy() != counts).nnz == 0


@given(graphs(nx.Graph, nx.DiGraph, weighted=True))
def test_a_converted_graph_converts_back(graph: Any):
    link = converted(graph, "weight")
    back = backend.convert_to_nx(link)
    assert (len(link), link.is_directed(), link.is_multigraph()) == (len(graph), graph.is_directed(), False)
    assert list(back) == list(graph) == list(link)
    expected = nx.to_numpy_array(graph, weight="weight")
    assert (nx.to_numpy_array(back, nodelist=list(graph), weight="weight") == expected).all()
    assert backend.convert_to_nx(3) == 3
    assert set(backend.convert_to_nx(Graph.from_arcs([("a", "b")])).edges) == {("a", "b")}


# Every function of the backend, with each attribute of edges that its calls may ask for.
CALLS: list[tuple[str, dict[str, Any]]] = [
    *(("pagerank", {"tol": 1e-12, "max_iter": 10_000, "weight": name}) for name in (None, "weight", "cost")),
    ("hits", {"tol": 1e-12, "max_iter": 10_000}),
    *(
        ("eigenvector_centrality", {"tol": 1e-10, "max_iter": 20_000, "weight": name})
        for name in (None, "weight")
    ),
    *(("eigenvector_centrality_numpy", {"weight": name}) for name in (None, "weight")),
    *(("katz_centrality", {"alpha": 0.01, "tol": 1e-13, "weight": name}) for name in (None, "weight")),
    *(("katz_centrality_numpy", {"alpha": 0.01, "weight": name}) for name in (None, "cost")),
    ("closeness_centrality", {}),
    ("harmonic_centrality", {}),
    ("betweenness_centrality", {}),
    ("percolation_centrality", {}),
    ("percolation_centrality", {"attribute": "share"}),
    ("degree_centrality", {}),
    ("in_degree_centrality", {}),
    ("out_degree_centrality", {}),
]


def dispatched(call: tuple[str, dict[str, Any]], graph: Any) -> Any:
    """Call inlink through NetworkX, with its cache of conversions; return the answer or the kind of the error."""
    name, options = call
    try:
        return getattr(nx, name)(graph, backend="inlink", **options)
    except (nx.NetworkXException, NotImplementedError) as error:
        return type(error)


def fresh(graph: Any) -> Any:
    copied = graph.copy()
    copied.__networkx_cache__.clear()
    return copied


def agree(call: tuple[str, dict[str, Any]], found: Any, alone: Any) -> None:
    """Compare an answer with inlink's answer on a fresh copy."""
    if isinstance(alone, type) or isinstance(found, type):
        assert found is alone, call
    elif call[0] == "hits":
        for values, expected in zip(found, alone, strict=True):
            close(values, expected)
    else:
        close(found, alone)


def agree_with_networkx(call: tuple[str, dict[str, Any]], found: Any, graph: Any) -> None:
    """Compare an answer with NetworkX's. Tests of their own compare answers that may not be unique."""
    name, options = call
    if isinstance(found, type) or name in ("hits", "eigenvector_centrality"):
        return
    try:
        expected = original(name, graph, **options)
    except Exception:
        # inlink answers more than NetworkX, such as Katz centrality of a single node.
        return
    close(found, expected, 1e-6 if name.startswith("eigen") else 1e-9)


def change(graph: Any, data: st.DataObject) -> None:
    """Change a graph by one of the methods that clear NetworkX's cache."""
    nodes = st.sampled_from([*graph, "new"])
    source, target = data.draw(nodes), data.draw(nodes)
    kind = data.draw(st.sampled_from(["nothing"] * 5 + ["add", "remove", "reweigh"]))
    if kind == "add":
        graph.add_edge(source, target, weight=data.draw(st.sampled_from([0, 2.5])))
    elif kind == "remove" and graph.has_edge(source, target):
        graph.remove_edge(source, target)
    elif kind == "reweigh":
        nx.set_edge_attributes(graph, 3, "weight")


@pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs")
@given(graphs_of_any_weights(), st.lists(st.sampled_from(CALLS), min_size=2, max_size=4), st.data())
def test_calls_one_after_another_answer_as_on_fresh_copies(
    graph: Any, calls: list[tuple[str, dict[str, Any]]], data: st.DataObject
):
    for call in calls:
        found = dispatched(call, graph)
        agree(call, found, dispatched(call, fresh(graph)))
        agree_with_networkx(call, found, fresh(graph))
        change(graph, data)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs")
@pytest.mark.parametrize("kind", [nx.MultiDiGraph, pytest.param(nx.Graph, marks=pytest.mark.soak)])
def test_each_pair_of_functions_answers_as_on_fresh_copies(kind: Any):
    def made() -> Any:
        graph = kind()
        graph.add_weighted_edges_from(
            [("a", "b", 10.0), ("b", "c", 0.5), ("c", "a", 0), ("c", "c", 3), ("a", "c", 0), ("d", "e", 1)]
        )
        graph.add_weighted_edges_from([("a", "b", 0.25), ("c", "c", 2)])
        graph.add_edge("e", "a", cost=7)
        graph.add_edge("b", "d", weight=0, cost=0)
        graph.add_edges_from([("b", "d"), ("e", "e")])
        nx.set_node_attributes(graph, {"a": 0.5, "d": 0.25}, "percolation")
        nx.set_node_attributes(graph, {"b": 0.75}, "share")
        return graph

    alone = [dispatched(call, made()) for call in CALLS]
    for call, found in zip(CALLS, alone, strict=True):
        agree_with_networkx(call, found, made())
    for first in CALLS:
        for second, expected in zip(CALLS, alone, strict=True):
            graph = made()
            dispatched(first, graph)
            agree(second, dispatched(second, graph), expected)


DISPATCHED = """
import json, logging, sys
import networkx as nx
assert not {name for name in sys.modules if name.startswith("inlink")} - {
    "inlink", "inlink.networkx", "inlink.networkx.info"}
import inlink
G = nx.DiGraph([("a", "b"), ("b", "c"), ("a", "c"), ("c", "a")])
graph = inlink.Graph.from_arcs(list(G.edges))
said = []
logging.getLogger("networkx").addHandler(type("Kept", (logging.Handler,), {
    "emit": lambda self, record: said.append(record.getMessage())})())
logging.getLogger("networkx").setLevel(logging.DEBUG)
found = {"asked": nx.pagerank(G, backend="inlink"), "own": nx.pagerank(graph), "plain": nx.pagerank(G)}
found["methods"] = nx.in_degree_centrality(graph)
with nx.config(backend_priority=["inlink"]):
    found["configured"] = nx.pagerank(G)
    nx.degree_centrality(G)
    nx.pagerank(G, dangling={"a": 1})
try:
    nx.pagerank(G, dangling={"a": 1}, backend="inlink")
except NotImplementedError as error:
    found["refused"] = str(error)
found["doc"] = "Compiled link analysis" in nx.pagerank.__doc__
found["said"] = "\\n".join(said)
print(json.dumps(found))
"""


@pytest.mark.slow
def test_networkx_dispatches_to_inlink(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", DISPATCHED],
        env=environment(tmp_path) | {"NETWORKX_WARNINGS_TO_IGNORE": "cache"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name in ("asked", "own", "configured"):
        close(found[name], found["plain"], 1e-5)
    assert found["methods"] == {"a": 0.5, "b": 0.5, "c": 1.0}
    assert "for the given arguments" in found["refused"]
    assert found["doc"]
    assert "Using backend 'inlink' for call to 'pagerank'" in found["said"]
    assert "spreads the rank of dangling nodes" in found["said"]
    assert "takes longer than counting" in found["said"]


def test_networkx_loads_a_module_that_imports_nothing():
    code = (
        "import sys, typing, importlib; before = set(sys.modules)\n"
        "from inlink.networkx.info import info\n"
        "info(); print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ast.literal_eval(done.stdout) == ["inlink", "inlink.networkx", "inlink.networkx.info"]


def test_every_function_of_the_description_is_there():
    for name in FUNCTIONS:
        assert callable(getattr(backend, name))
        registered = nx.utils.backends._registered_algorithms[name]
        assert next(iter(inspect.signature(registered).parameters)) == "G"


@pytest.mark.slow
def test_networkxs_own_tests_pass_through_inlink(tmp_path: Path):
    """The counts of all of NetworkX's tests are in docs/tools.md; `python tests/networkxruns.py` makes them."""
    ran, said = run(QUICK, tmp_path)
    outcomes, by_function = count(ran)
    assert set(outcomes) == {"passed"}, said
    assert "failed" not in said, said
    assert sorted(by_function) == FUNCTIONS
    assert sum(outcomes.values()) >= 80
