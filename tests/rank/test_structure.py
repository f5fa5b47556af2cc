"""The structure of graphs against NetworkX and igraph, against its definitions, and in closed form."""

import math
from collections.abc import Callable

import igraph
import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import inlink
from inlink import Graph
from inlink.errors import ParameterError
from inlink.graph import cores
from inlink.graph.components import bow_tie, components
from inlink.rank.structure import PARTS, Structure
from strategies import Arcs, arcs

SHAPES = [
    Arcs(0, []),
    Arcs(1, []),
    Arcs(1, [(0, 0)]),
    Arcs(3, [(2, 2), (2, 2)]),
    # two components of equal size: the one with the first node is the core, although Tarjan closes the other first
    Arcs(5, [(0, 1), (1, 0), (1, 2), (2, 3), (3, 2), (4, 3)]),
    # core 0 1; in 2; out 3; tube 4; tendrils 5, 6 and 7, which hangs from a tendril; disconnected 8
    Arcs(9, [(0, 1), (1, 0), (2, 0), (1, 3), (2, 4), (4, 3), (2, 5), (6, 3), (5, 7)]),
]


def shapes(test: Callable[..., None]) -> Callable[..., None]:
    for shape in SHAPES:
        test = example(shape)(test)
    return test


def partition(label: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(label == one).tolist()) for one in label.tolist()}


def undirected(a: Arcs) -> nx.Graph:
    graph = nx.Graph(a.digraph())
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return graph


def parts_by_definition(web: nx.DiGraph) -> list[str]:
    parts = ["disconnected"] * len(web)
    if len(web) == 0:
        return parts
    core = max(nx.strongly_connected_components(web), key=lambda nodes: (len(nodes), -min(nodes)))
    into = set().union(*(nx.ancestors(web, node) for node in core)) - core
    out = set().union(*(nx.descendants(web, node) for node in core)) - core
    for node in nx.node_connected_component(web.to_undirected(), min(core)):
        from_in, to_out = nx.ancestors(web, node) & into, nx.descendants(web, node) & out
        parts[node] = "tubes" if from_in and to_out else "tendrils"
    for name, nodes in (("in", into), ("out", out), ("core", core)):
        for node in nodes:
            parts[node] = name
    return parts


def distances(web: nx.DiGraph) -> list[int]:
    """The distances of all pairs with a path, a node and itself included."""
    return [d for _, row in nx.all_pairs_shortest_path_length(web) for d in row.values()]


@shapes
@given(arcs(max_nodes=16))
def test_components_are_those_of_networkx_and_igraph(a: Arcs):
    found, web = inlink.structure(a.graph()), a.digraph()
    other = igraph.Graph(n=a.num_nodes, edges=a.pairs, directed=True)
    strong = {frozenset(nodes) for nodes in nx.strongly_connected_components(web)}
    weak = {frozenset(nodes) for nodes in nx.weakly_connected_components(web)}
    assert partition(found.strong) == strong == set(map(frozenset, other.connected_components("strong")))
    assert partition(found.weak) == weak == set(map(frozenset, other.connected_components("weak")))
    figures = found.figures()
    assert figures["strong_components"] == len(strong)
    assert figures["largest_strong_component"] == max(map(len, strong), default=0)
    assert figures["weak_components"] == len(weak)
    assert figures["largest_weak_component"] == max(map(len, weak), default=0)


@shapes
@given(arcs(max_nodes=16))
def test_core_numbers_are_those_of_networkx_and_igraph(a: Arcs):
    found = inlink.structure(a.graph())
    wanted = nx.core_number(undirected(a))
    other = igraph.Graph(n=a.num_nodes, edges=a.pairs).simplify()
    assert found.cores.tolist() == [wanted[node] for node in range(a.num_nodes)] == other.coreness()
    figures = found.figures()
    assert figures["largest_core_number"] == max(wanted.values(), default=0)
    assert figures["largest_core_size"] == list(wanted.values()).count(figures["largest_core_number"])


@shapes
@given(arcs(max_nodes=16))
def test_the_bow_tie_is_that_of_its_definition(a: Arcs):
    found, wanted = inlink.structure(a.graph()), parts_by_definition(a.digraph())
    assert [PARTS[part] for part in found.parts] == wanted
    assert found.figures()["bow_tie"] == {part: wanted.count(part) for part in PARTS}


@given(arcs(max_nodes=16), st.data())
def test_a_core_can_be_that_with_most_counted_nodes(a: Arcs, data: st.DataObject):
    graph = a.graph()
    counted = np.array(data.draw(st.lists(st.booleans(), min_size=a.num_nodes, max_size=a.num_nodes)), bool)
    strong, weak = components(graph.out_rows, strong=True), components(graph.out_rows)
    parts = bow_tie(graph.out_rows, graph.split_in_rows, strong, weak, counted)
    groups = [sorted(nodes) for nodes in nx.strongly_connected_components(a.digraph())]
    wanted = max(groups, key=lambda nodes: (int(counted[nodes].sum()), -nodes[0]), default=[])
    assert np.flatnonzero(parts == PARTS.index("core")).tolist() == wanted


@shapes
@given(arcs(max_nodes=16))
def test_exact_distances_are_those_of_searches(a: Arcs):
    found, lengths = inlink.structure(a.graph()), distances(a.digraph())
    wanted = [sum(d <= t for d in lengths) for t in range(max(lengths, default=0) + 1)]
    assert found.pairs.tolist() == wanted
    apart = [d for d in lengths if d]
    if apart:
        assert found.average_distance == pytest.approx(sum(apart) / len(apart))
    else:
        assert math.isnan(found.average_distance)
    assert (found.pairs_error, found.average_distance_error, found.effective_diameter_error) == (0, 0, 0)
    # There, the interpolated N is 90% of its last value, unless its first value is larger.
    at = np.interp(found.effective_diameter, range(len(wanted)), wanted)
    if wanted[0] < 0.9 * wanted[-1]:
        assert at == pytest.approx(0.9 * wanted[-1])
        before = np.interp(found.effective_diameter - 1e-6, range(len(wanted)), wanted)
        assert before < 0.9 * wanted[-1]
    else:
        assert found.effective_diameter == 0


def test_closed_forms():
    n = 40
    cycle = inlink.structure([(i, (i + 1) % n) for i in range(n)])
    assert cycle.pairs.tolist() == [n * (t + 1) for t in range(n)]
    assert cycle.average_distance == n / 2
    assert cycle.effective_diameter == pytest.approx(0.9 * n - 1)
    assert set(cycle.cores.tolist()) == {2}
    assert (cycle.parts == 0).all()
    path = inlink.structure([(i, i + 1) for i in range(n)])
    assert path.pairs.tolist() == [(t + 1) * (n + 1) - t * (t + 1) // 2 for t in range(n + 1)]
    assert path.average_distance == pytest.approx((n + 2) / 3)
    assert set(path.cores.tolist()) == {1}
    # All components are equally large: the core is node 0.
    assert path.figures()["bow_tie"] == dict.fromkeys(PARTS, 0) | {"core": 1, "out": n}
    complete = inlink.structure([(i, j) for i in range(n) for j in range(n)])
    assert complete.pairs.tolist() == [n, n * n]
    assert complete.effective_diameter == pytest.approx((0.9 * n - 1) / (n - 1))
    assert set(complete.cores.tolist()) == {n - 1}
    star = inlink.structure([(0, i) for i in range(1, n)])
    assert star.figures()["bow_tie"] == dict.fromkeys(PARTS, 0) | {"core": 1, "out": n - 1}
    assert (star.average_distance, star.cores.tolist()) == (1, [1] * n)


def a_web(n: int, seed: int) -> Graph:
    rng = np.random.default_rng(seed)
    source = rng.integers(0, n, 3 * n) // 2
    target = (n * rng.random(3 * n) ** 2).astype(np.int64)
    pairs = np.stack([source, target], 1)
    chain = np.stack([np.arange(n - 60, n - 1), np.arange(n - 59, n)], 1)
    back = pairs[: n // 2, ::-1]
    return Graph.from_arcs(np.concatenate([pairs, back, chain]).astype(np.uint32), num_nodes=n)


def test_core_numbers_of_a_larger_web_in_many_parts(monkeypatch: pytest.MonkeyPatch):
    graph = a_web(3000, 1)
    wanted = graph.to_igraph().as_undirected().simplify().coreness()
    assert inlink.structure(graph, log2m=4, runs=1).cores.tolist() == wanted
    # Each part of the work now ends after a few nodes.
    monkeypatch.setattr(cores, "_ARCS", 50)
    assert cores.core_numbers(graph.out_rows, graph.split_in_rows).tolist() == wanted


def same(one: Structure, other: Structure) -> None:
    for name in ("strong", "weak", "parts", "cores", "pairs"):
        left, right = getattr(one, name), getattr(other, name)
        assert left.dtype == right.dtype
        assert left.tobytes() == right.tobytes(), name
    assert one.effective_diameter_error == other.effective_diameter_error


@pytest.mark.slow
@pytest.mark.parametrize("exact", [True, False])
def test_all_forms_of_a_graph_and_numbers_of_threads_give_the_same_bits(tmp_path, exact: bool):
    graph = a_web(900, 2)
    wanted = inlink.structure(graph, exact=exact, threads=1)
    inlink.write(graph, tmp_path / "links.tsv")
    options = {"nodes": "ids"}
    plain = inlink.read(tmp_path / "links.tsv", into=tmp_path / "plain", **options)
    packed = inlink.read(tmp_path / "links.tsv", into=tmp_path / "packed", compress=True, **options)
    for other in (plain, packed, Graph.open(tmp_path / "packed"), Graph(graph.out_rows, graph.in_rows)):
        same(inlink.structure(other, exact=exact, threads=3), wanted)
    turned = inlink.structure(graph.transpose(), exact=exact, threads=2)
    assert turned.cores.tobytes() == wanted.cores.tobytes()
    assert (np.sort(turned.parts) != np.sort(wanted.parts)).any()


@pytest.mark.slow
def test_estimates_have_the_errors_that_they_report():
    graph = a_web(500, 3)
    exact = inlink.structure(graph, exact=True)
    ends, spreads, reported = [], [], []
    for seed in range(80):
        found = inlink.structure(graph, log2m=6, runs=6, seed=seed, threads=1)
        assert (np.diff(found.pairs) >= 0).all()
        assert found.pairs[:2].tolist() == exact.pairs[:2].tolist()
        ends.append(found.pairs[-1] / exact.pairs[-1] - 1)
        spreads.append(
            [
                found.effective_diameter / exact.effective_diameter - 1,
                found.average_distance / exact.average_distance - 1,
            ]
        )
        reported.append([found.effective_diameter_error, found.average_distance_error])
    theory = 1.06 / math.sqrt(6 * 64)
    assert found.pairs_error == pytest.approx(theory)
    assert 0.1 * theory < np.std(ends) < 1.2 * theory
    roots = np.sqrt(np.square([spreads, reported]).mean(1))
    assert (0.6 * roots[1] < roots[0]).all()
    assert (roots[0] < 1.6 * roots[1]).all()


@given(arcs(), st.integers(1, 3))
def test_any_graph_can_be_estimated(a: Arcs, runs: int):
    found = inlink.structure(a.graph(), log2m=4, runs=runs)
    assert (np.diff(found.pairs) >= 0).all()
    assert found.pairs[0] == a.num_nodes
    assert 0 <= found.effective_diameter <= len(found.pairs) - 1
    assert (found.effective_diameter_error is None) == (runs == 1)
    if a.num_nodes == 0 or len({pair for pair in a.pairs if pair[0] != pair[1]}) == 0:
        assert math.isnan(found.average_distance)


def test_a_graph_of_more_than_100_000_nodes_is_estimated():
    n = 100_001
    found = inlink.structure(
        Graph.from_arcs(np.stack([np.zeros(n - 1), np.arange(1, n)], 1).astype(np.uint32))
    )
    assert found.pairs_error == pytest.approx(1.06 / math.sqrt(4 * 128))
    # HyperBall is exact where nothing is two steps away.
    assert found.pairs.tolist() == [n, 2 * n - 1]
    assert (found.average_distance, found.average_distance_error) == (1, 0)


def test_wrong_arguments_are_refused():
    graph = Graph.from_arcs([(0, 1)])
    with pytest.raises(ParameterError, match="give `exact` or `log2m`"):
        inlink.structure(graph, exact=True, log2m=8)
    for wrong in ({"log2m": 3}, {"log2m": 17}, {"runs": 0}, {"seed": -1}, {"threads": 0}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            inlink.structure(graph, **wrong)


def test_a_structure_shows_itself():
    found = inlink.structure([("<b>", "c"), ("c", "<b>")])
    assert (
        repr(found)
        == "<inlink structure: 2 nodes, 2 in the core; largest core number 1; effective diameter 0.8>"
    )
    html = found._repr_html_()
    assert "strong components" in html
    assert "effective diameter" in html
