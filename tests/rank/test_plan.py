"""The plan of ``inlink rank --all``: memory as the measures ask for it, time that grows, rankings that are stored."""

import re
from pathlib import Path

import numpy as np
import pytest

import inlink
from inlink import Graph, Ranking
from inlink.errors import ParameterError
from inlink.graph import graph as graphs
from inlink.rank import hyperball, inputs, plan

SMALL = {"EXACT_NODES": 1, "EXACT_STEPS": 1}


def dice(n: int = 400, arcs: int = 4_000, seed: int = 1) -> np.ndarray:
    """Arcs from a third of the nodes, mostly to the first nodes; some of those that do not link have many inlinks."""
    random = np.random.default_rng(seed)
    sources = random.choice(n, n // 3, replace=False)[random.integers(0, n // 3, arcs)]
    return np.stack([sources, (n * random.random(arcs) ** 3).astype(np.int64)], 1)


def stored_graph(folder: Path, *, compress: bool = False, weighted: bool = False) -> Graph:
    pairs = dice()
    weights = np.linspace(1, 2, len(pairs)) if weighted else None
    plain = Graph.from_arcs(pairs, num_nodes=400, weights=weights)
    inlink.read(plain, into=folder / "g", compress=compress)
    return Graph.open(folder / "g")


@pytest.mark.parametrize("estimated", [False, True], ids=["exact", "estimated"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("compress", [False, True], ids=["plain", "compressed"])
def test_the_memory_is_what_the_measures_ask_for(tmp_path, monkeypatch, compress, weighted, estimated):
    graph = stored_graph(tmp_path, compress=compress, weighted=weighted)
    for name, value in SMALL.items() if estimated else ():
        monkeypatch.setattr(plan, name, value)
    steps = plan.plan(graph, threads=3)
    assert [step.algorithm for step in steps] == list(plan.MEASURES)
    asked: dict[str, list[int]] = {"vectors": [], "counters": [], "rows": []}
    monkeypatch.setattr(inputs, "require_memory", lambda needed, what: asked["vectors"].append(needed))
    monkeypatch.setattr(hyperball, "require_memory", lambda needed, what: asked["counters"].append(needed))
    monkeypatch.setattr(graphs, "require_memory", lambda needed, what: asked["rows"].append(needed))
    for step in steps:
        asked["vectors"].clear()
        asked["counters"].clear()
        options = step.options | ({} if step.algorithm in ("degree",) else {"threads": 3})
        options |= {"alpha": 1e-4} if step.algorithm == "katz" else {}
        plan.MEASURES[step.algorithm](graph, **options)
        # Rows stay in memory for the next measures.
        needed = max(asked["vectors"]) + sum(asked["counters"]) + sum(asked["rows"])
        assert step.memory == needed, step.kind
        assert bool(asked["counters"]) == (step.kind == "harmonic, estimated")
    # Compressed rows are decoded, and rows that are split are joined for some measures.
    assert len(asked["rows"]) == (3 if compress else 1)


def test_estimates_grow_with_the_graph(monkeypatch):
    for limits in ({}, SMALL):
        for name, value in limits.items():
            monkeypatch.setattr(plan, name, value)
        small, more_nodes, more_arcs = (
            plan.plan(Graph.from_arcs(dice(n, arcs), num_nodes=n), threads=2)
            for n, arcs in ((300, 3_000), (900, 3_000), (300, 9_000))
        )
        for less, nodes, arcs in zip(small, more_nodes, more_arcs, strict=True):
            assert less.seconds < nodes.seconds
            assert less.seconds < arcs.seconds
            assert less.memory < nodes.memory
            assert less.memory <= arcs.memory


def test_more_threads_take_less_time_and_no_less_memory():
    graph = Graph.from_arcs(dice(), num_nodes=400)
    for one_thread, four in zip(plan.plan(graph, 1), plan.plan(graph, 4), strict=True):
        assert four.seconds == one_thread.seconds / 4
        assert four.memory >= one_thread.memory


def test_an_empty_graph_and_a_graph_without_arcs_have_a_plan():
    for n in (0, 1, 5):
        graph = Graph.from_arcs(np.empty((0, 2), np.uint32), num_nodes=n)
        steps = plan.plan(graph)
        plan.check_memory(steps)
        assert [step.summary() for step in steps] == [
            f"{name}: less than 1 s, 1 MB of memory" for name in plan.MEASURES
        ]


def test_exact_up_to_the_limits_and_estimated_above(monkeypatch):
    graph = Graph.from_arcs(dice(), num_nodes=400)
    steps = 400 * (400 + graph.num_arcs)
    for nodes, most, kinds in (
        (400, steps, ("harmonic", "betweenness")),
        (399, steps - 1, ("harmonic, estimated", "betweenness, sampled")),
    ):
        monkeypatch.setattr(plan, "EXACT_NODES", nodes)
        monkeypatch.setattr(plan, "EXACT_STEPS", most)
        planned = {step.algorithm: step for step in plan.plan(graph)}
        assert (planned["harmonic"].kind, planned["betweenness"].kind) == kinds
    assert planned["harmonic"].options == {"log2m": 8}
    assert planned["betweenness"].options == {"epsilon": 0.01}


@pytest.mark.parametrize(
    ("seconds", "memory", "text"),
    [
        (0.4, 900, "less than 1 s, 1 MB"),
        (3.2, 12_345_678, "about 3 s, 12 MB"),
        (9.7, 999_000_000, "about 10 s, 999 MB"),
        (59.0, 1_000_000_000, "about 1 min, 1.0 GB"),
        (130.0, 3_140_000_000, "about 2 min, 3.1 GB"),
        (3_599.0, 1, "about 1 h, 1 MB"),
        (86_400.0, 1, "about 20 h, 1 MB"),
        (5 * 86_400.0, 1, "about 5 days, 1 MB"),
    ],
)
def test_summaries_have_no_false_precision(seconds, memory, text):
    assert plan.Step("katz", "katz", {}, memory, seconds).summary() == f"katz: {text} of memory"


def test_measures_that_do_not_fit_are_named_with_those_that_do(monkeypatch):
    steps = [plan.Step(name, name, {}, size << 30, 1.0) for name, size in (("degree", 1), ("katz", 3))]
    monkeypatch.setattr("inlink.base.memory.memory_left", lambda: 2 << 30)
    with pytest.raises(ParameterError, match=re.escape("--algorithm degree computes the others.")) as refused:
        plan.check_memory(steps)
    assert "katz: vectors and rows need 3,221 MB of memory, and 2,147 MB are left" in str(refused.value)
    assert "degree:" not in str(refused.value)
    plan.check_memory(steps[:1])
    with pytest.raises(ParameterError) as refused:
        plan.check_memory(steps[1:])
    assert "--algorithm" not in str(refused.value)


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("limits", [{}, SMALL], ids=["exact", "estimated"])
def test_a_ranking_of_the_same_call_is_stored(tmp_path, monkeypatch, limits, weighted):
    graph = stored_graph(tmp_path, weighted=weighted)
    for name, value in limits.items():
        monkeypatch.setattr(plan, name, value)
    for step in plan.plan(graph):
        if step.algorithm == "katz":
            step = step._replace(options={"alpha": 1e-4})
        assert step.stored(graph, step.algorithm) is None
        made = plan.MEASURES[step.algorithm](graph, **step.options)
        made.save(graph, step.algorithm)
        kept = step.stored(graph, step.algorithm)
        assert kept is not None
        assert (kept.values == made.values).all()
        assert step.stored(graph, "other") is None


OTHERS = [
    ("degree", {"direction": "both"}),
    ("degree", {"normalized": False}),
    ("harmonic", {"direction": "out"}),
    ("harmonic", {"top": 3}),
    ("harmonic", {"log2m": 8}),
    ("pagerank", {"damping": 0.5}),
    ("pagerank", {"method": "power"}),
    ("pagerank", {"max_iter": 50}),
    ("pagerank", {"certain": 1}),
    ("pagerank", {"weighted": False}),
    ("pagerank", {"personalization": {0: 1.0}}),
    ("katz", {"alpha": 1e-4}),
    ("eigenvector", {"tol": 1e-4}),
    ("eigenvector", {"start": {0: 1.0, 1: 0.5}}),
    ("betweenness", {"k": 5}),
    ("betweenness", {"epsilon": 0.5}),
    ("betweenness", {"endpoints": True}),
]


@pytest.mark.parametrize(("name", "options"), OTHERS)
def test_a_ranking_with_other_parameters_is_not_the_stored_one(tmp_path, name, options):
    graph = stored_graph(tmp_path, weighted=True)
    getattr(inlink, name)(graph, **options).save(graph, name)
    (step,) = (step for step in plan.plan(graph) if step.algorithm == name)
    assert step.stored(graph, name) is None


def test_estimates_and_exact_values_do_not_stand_in_for_each_other(tmp_path, monkeypatch):
    graph = stored_graph(tmp_path)
    for name in ("harmonic", "betweenness"):
        getattr(inlink, name)(graph).save(graph, name)
    for limit, value in SMALL.items():
        monkeypatch.setattr(plan, limit, value)
    for step in plan.plan(graph):
        assert step.stored(graph, step.algorithm) is None


def test_another_algorithm_a_rebuilt_graph_and_damage_are_computed_again(tmp_path):
    graph = stored_graph(tmp_path)
    step = plan.plan(graph)[0]
    inlink.pagerank(graph).save(graph, "degree")
    assert step.stored(graph, "degree") is None
    inlink.degree(graph).save(graph, "degree")
    assert step.stored(graph, "degree") is not None
    rebuilt = stored_graph(tmp_path)
    assert step.stored(rebuilt, "degree") is None
    inlink.degree(rebuilt).save(rebuilt, "degree")
    assert isinstance(step.stored(rebuilt, "degree"), Ranking)
    for file in (tmp_path / "g/rankings/degree").rglob("*"):
        if file.is_file():
            file.write_bytes(b"")
    assert step.stored(rebuilt, "degree") is None
