"""The best nodes by closeness and harmonic centrality, against a search from every node."""

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawlcommand import inlink
from inlink import Graph, Ranking
from inlink.errors import ParameterError
from inlink.graph.components import reach_bounds
from inlink.rank import closest
from inlink.rank.closeness import closeness, harmonic
from strategies import Arcs, arcs

MEASURES = {
    "harmonic": (harmonic, {}),
    "closeness": (closeness, {}),
    "closeness within": (closeness, {"wf_improved": False}),
}
measures = pytest.mark.parametrize("measure", MEASURES)


def wide_web(nodes: int, seed: int) -> Graph:
    """Pages with few links, most of them to pages that many link to: searches from most pages end by their bounds."""
    rng = np.random.default_rng(seed)
    targets = (nodes * rng.random((nodes, 3)) ** 3).astype(np.uint32)
    sources = np.repeat(np.arange(nodes, dtype=np.uint32), 3)
    return Graph.from_arcs(np.stack([sources, targets.ravel()], 1), num_nodes=nodes)


def check(graph: Graph, measure: str, top: int, direction: str, threads: int | None = None) -> int:
    """Compare the best nodes with those of all values. Return how many nodes have no exact value."""
    rank, options = MEASURES[measure]
    every = rank(graph, direction=direction, exact=True, **options)
    best = rank(graph, direction=direction, top=top, threads=threads, **options)
    assert best.top(top) == every.top(top)
    assert (best.values >= every.values).all()
    least = min((value for _, value in every.top(top)), default=0)
    assert (best.values[every.values < least] < least).all()
    assert best.error_bound is None
    assert not best.is_exact()
    places, all_places = best.places(top + 2), every.places(top)
    assert places is not None
    assert all_places is not None
    # A single node that is left over has the last place.
    assert not places.certain[top : graph.num_nodes - 1].any()
    assert places.certain[:top].tolist() == all_places.certain.tolist()
    return int((best.values != every.values).sum())


@given(arcs(), st.integers(1, 14), st.sampled_from(["in", "out"]), st.sampled_from(list(MEASURES)))
@example(Arcs(3, []), 1, "in", "harmonic")
@example(Arcs(0, []), 1, "in", "closeness")
@example(Arcs(2, [(0, 0), (1, 1), (0, 0)]), 2, "out", "closeness")
def test_the_best_are_those_of_all(a: Arcs, top: int, direction: str, measure: str):
    check(a.graph(), measure, top, direction)


@measures
@pytest.mark.parametrize("direction", ["in", "out"])
def test_most_searches_end_early(measure: str, direction: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(closest, "_FEW", 0)
    graph = wide_web(3000, seed=4)
    if direction == "out":
        graph = graph.transpose()
    assert check(graph, measure, 5, direction) > 1000
    rank, options = MEASURES[measure]
    one, three = (rank(graph, direction=direction, top=5, threads=t, **options) for t in (1, 3))
    assert (one.values == three.values).all()


@measures
def test_more_than_a_block_of_best_nodes(measure: str):
    check(wide_web(1500, seed=5), measure, 700, "in")


@measures
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_long_paths_are_followed_to_their_ends(measure: str, share: float, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(closest, "_FEW", 0)
    monkeypatch.setattr(closest, "_SHARE", share)
    n = 600
    ring = Graph.from_arcs([(i, (i + 1) % n) for i in range(n)] + [(0, n // 2)])
    check(ring, measure, 3, "in")
    check(ring, measure, 3, "out")


def test_closed_forms():
    star = Graph.from_arcs([(i, 0) for i in range(1, 9)])
    assert harmonic(star, top=1).top(1) == [(0, 8.0)]
    assert closeness(star, top=1).top(1) == [(0, 1.0)]
    # Node i of the path 0 → 1 → 2 → … is reached from i nodes, at the distances 1 to i.
    path = Graph.from_arcs([(i, i + 1) for i in range(99)])
    assert harmonic(path, top=2).top(1) == [(99, pytest.approx(sum(1 / d for d in range(1, 100))))]


def test_ties_at_the_last_place_are_exact_and_not_certain():
    twins = Graph.from_arcs([(2, 0), (3, 0), (2, 1), (3, 1), (4, 2)])
    best = harmonic(twins, top=1)
    assert best.values[:2].tolist() == [2.5, 2.5]
    assert best.places(3).summary() == (
        "0 of the first 3 places are certain; no proven order at places 1 to 3"
    )


@pytest.mark.slow
def test_the_command_says_what_is_exact(tmp_path: Path):
    rng = np.random.default_rng(6)
    (tmp_path / "web").write_text("".join(f"{i} {j}\n" for i, j in rng.integers(0, 400, (900, 2))))
    inlink("build", "web", "-o", "g", cwd=tmp_path)
    ranked = inlink("rank", "g", "--algorithm", "harmonic", "--top", "7", cwd=tmp_path)
    assert (
        "harmonic: the values of the first 7 places are exact, the others are upper bounds" in ranked.stdout
    )
    listed = json.loads(inlink("top", "g", "--by", "harmonic", "-n", "9", "--json", cwd=tmp_path).stdout)
    every = harmonic(Graph.open(tmp_path / "g"), exact=True)
    assert [(row["node"], row["value"]) for row in listed[:7]] == every.top(7)
    assert [row["certain"] for row in listed] == [True] * 7 + [False] * 2


def test_intervals_hold_the_exact_values_and_come_back_from_the_folder(tmp_path: Path):
    (tmp_path / "web").write_text("".join(f"{i} {j}\n" for i, j in [(0, 1), (2, 1), (1, 3), (3, 4), (4, 0)]))
    inlink("build", "web", "-o", "g", cwd=tmp_path)
    graph = Graph.open(tmp_path / "g")
    best, exact = harmonic(graph, top=2), harmonic(graph).values
    low, high = best.intervals()
    assert ((low <= exact) & (exact <= high)).all()
    assert low[np.argsort(-exact)[:2]].min() > 0
    best.save(graph)
    assert (Ranking.load(graph, "harmonic").intervals()[0] == low).all()
    for wrong in ("small", None, -1.0, [1]):
        best.parameters["top_error"] = wrong
        best.save(graph)
        assert Ranking.load(graph, "harmonic").places(2) is None


@pytest.mark.parametrize("options", [{"log2m": 6}, {"exact": False}])
def test_an_estimate_has_no_exact_places(options: dict[str, object]):
    with pytest.raises(ParameterError, match="`top` asks for exact values"):
        harmonic(Graph.from_arcs([(0, 1)]), top=1, **options)


@pytest.mark.parametrize("top", [0, -1, 1.5, "3", True])
def test_the_number_is_checked(top: object):
    with pytest.raises(ParameterError, match="top"):
        closeness(Graph.from_arcs([(0, 1)]), top=top)


@given(arcs(max_nodes=14))
def test_no_node_reaches_more_than_its_bound(a: Arcs):
    bounds = reach_bounds(a.graph().out_rows)
    graph = a.digraph()
    reached = [len(nx.descendants(graph, i) - {i}) for i in graph]
    assert (bounds >= reached).all()
    assert (bounds < max(a.num_nodes, 1)).all()
    strong = max(nx.strongly_connected_components(graph), key=len, default=set())
    for i in strong if len(strong) > 1 else ():
        assert bounds[i] == reached[i]


def test_what_several_paths_lead_to_is_counted_once_if_the_largest_component_reaches_it():
    # A ring of three leads to two chains that meet, and node 6 leads to one node of the ring.
    graph = Graph.from_arcs([(0, 1), (1, 2), (2, 0), (0, 3), (1, 4), (3, 5), (4, 5), (6, 0)])
    assert reach_bounds(graph.out_rows).tolist() == [5, 5, 5, 1, 1, 0, 6]
