"""Drift: each step against a direct solve, planted causes, intervals, reasons, and refusals."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import inlink
from inlink import Graph
from inlink.errors import ParameterError, UnknownNodeError
from inlink.graph.graph import Rows
from inlink.graph.names import Names
from inlink.rank import drift as module
from inlink.rank.drift import LARGE, STEPS

C = 0.85


@dataclass
class Release:
    """Nodes by name, and weights of arcs."""

    nodes: list[str]
    arcs: dict[tuple[str, str], float] = field(default_factory=dict)

    def graph(self, weighted: bool = False) -> Graph:
        numbers = {name: number for number, name in enumerate(self.nodes)}
        pairs = np.array([[numbers[s], numbers[t]] for s, t in self.arcs], np.int64).reshape(-1, 2)
        weights = list(self.arcs.values()) if weighted else None
        plain = Graph.from_arcs(pairs, num_nodes=len(self.nodes), weights=weights)
        return Graph(plain.out_rows, names=Names.of(self.nodes))


def solve(nodes: set[str], arcs: dict[tuple[str, str], float]) -> dict[str, float]:
    """y = c·Pᵀy + 1."""
    order = sorted(nodes)
    rows = np.array([[arcs.get((s, t), 0.0) for t in order] for s in order]).reshape(len(order), len(order))
    sums = rows.sum(axis=1, keepdims=True)
    y = np.linalg.solve(np.eye(len(order)) - C * (rows / np.where(sums, sums, 1)).T, np.ones(len(order)))
    return dict(zip(order, y.tolist(), strict=True))


def twin(name: str) -> str:
    return name.removesuffix(".www") if name.endswith(".www") else name + ".www"


def folded(a: Release, b: Release) -> tuple[set[str], dict[tuple[str, str], float], dict[str, str]]:
    """A with B's names: nodes, arcs, and the class of each folded name."""
    in_a, in_b = set(a.nodes), set(b.nodes)
    single = {x for x in in_a ^ in_b if twin(x) in (in_b if x in in_a else in_a)}

    def pair(arc, names):
        return tuple(min(end, twin(end)) if end in names else end for end in arc)

    names = single | {twin(x) for x in single}
    proven = set()
    for release, other in ((a, b), (b, a)):
        counts = Counter(pair(arc, names) for arc in release.arcs)
        there = {pair(arc, names) for arc in other.arcs}
        for arc in release.arcs:
            if counts[pair(arc, names)] == 1 and pair(arc, names) in there:
                proven |= {end for end in arc if end not in other.nodes and end in single}
    beside = {x for x in single if twin(x) in in_a & in_b}
    if 2 * len(beside & proven) <= len(beside):
        single -= beside - proven
    names = single | {twin(x) for x in single}
    of_b: dict = {}
    for arc in b.arcs:
        of_b.setdefault(pair(arc, names), []).append(arc)
    arcs: Counter = Counter()
    for arc, weight in a.arcs.items():
        whole = of_b.get(pair(arc, names), [])
        if names & set(arc) and whole:
            for other in whole:
                arcs[other] += weight * b.arcs[other] / sum(b.arcs[each] for each in whole)
            continue
        new = tuple(twin(end) if end in names and end not in in_b else end for end in arc)
        if new[0] != new[1] or arc[0] == arc[1]:
            arcs[new] += weight
    for (s, t), weight in b.arcs.items():
        if s in names and t == twin(s) and pair((s, t), names) not in {pair(arc, names) for arc in a.arcs}:
            arcs[s, t] += weight
    nodes = {x for x in in_a if x not in names} | {x for x in in_b if x in names}
    return nodes, dict(arcs), {x: min(x, twin(x)) for x in names}


def exactly(a: Release, b: Release, linkers: int, weighted: bool) -> tuple[list[dict[str, float]], list]:
    """The scaled PageRank of the graph of each step; and the graphs."""
    if not weighted:
        a, b = (Release(release.nodes, dict.fromkeys(release.arcs, 1.0)) for release in (a, b))
    nodes, arcs, _ = folded(a, b)
    if not weighted:
        arcs = dict.fromkeys(arcs, 1.0)
    in_b = set(b.nodes)
    kept = {arc: w for arc, w in arcs.items() if set(arc) <= in_b}
    grown = kept | {arc: w for arc, w in b.arcs.items() if not set(arc) <= nodes}
    changes = Counter(s for s, _ in set(grown) ^ set(b.arcs))
    order = sorted(changes, key=lambda name: (-changes[name], b.nodes.index(name)))
    large = {name for name in order[:linkers] if changes[name] >= LARGE}
    linked = {arc: w for arc, w in grown.items() if arc[0] not in large}
    linked |= {arc: w for arc, w in b.arcs.items() if arc[0] in large}
    graphs = [
        (set(a.nodes), a.arcs), (nodes, arcs), (nodes & in_b, kept), (in_b, grown), (in_b, linked), (in_b, b.arcs),
    ]  # fmt: skip
    return [solve(*graph) for graph in graphs], graphs


NAMES = [f"{base}{end}" for base in ("com.a", "com.b", "org.c", "org.d") for end in ("", ".www")]


@st.composite
def releases(draw: st.DrawFn) -> tuple[Release, Release, bool]:
    weighted = draw(st.booleans())
    pool = NAMES[: draw(st.integers(1, 8))] + ["net.x", "net.y"]
    weights = st.sampled_from([1.0, 2.0, 0.3]) if weighted else st.just(1.0)
    both = []
    for most in (20, draw(st.sampled_from([0, 3, 20]))):
        nodes = draw(st.lists(st.sampled_from(pool), unique=True))
        ends = st.sampled_from(nodes) if nodes else st.nothing()
        arcs = draw(st.lists(st.tuples(ends, ends), max_size=most)) if nodes else []
        both.append(Release(nodes, {arc: draw(weights) for arc in arcs}))
    if draw(st.booleans()):
        # The arcs of the first release, and some of the second, with weights and forms of names of the second.
        forms = {name: [x for x in (name, twin(name)) if x in both[1].nodes] for name in both[0].nodes}
        for s, t in both[0].arcs:
            for arc in draw(
                st.lists(st.sampled_from([(x, y) for x in forms[s] for y in forms[t]] or [()]), max_size=2)
            ):
                if arc:
                    both[1].arcs.setdefault(arc, draw(weights))
    return both[0], both[1], weighted


RING = Release(["com.a", "com.b.www"], {("com.a", "com.b.www"): 1.0, ("com.b.www", "com.a"): 1.0})


OTHER = Release(
    RING.nodes, {("com.a", "com.b.www"): 2.0, ("com.b.www", "com.a"): 2.0, ("com.a", "com.a"): 1.0}
)
HEAVY = Release(
    RING.nodes, {("com.a", "com.b.www"): 2.0, ("com.b.www", "com.a"): 2.0, ("com.a", "com.a"): 3.0}
)
# A link to two names in one release proves nothing. A link from the second name does.
NAME = Release(["a", "b", "c"], {("a", "b"): 6.0, ("a", "c"): 1.0, ("b", "c"): 1.0})
BESIDE = Release(
    ["a", "b", "b.www", "c"], {("a", "b"): 1.0, ("a", "b.www"): 2.0, ("a", "c"): 1.0, ("b", "c"): 1.0}
)
TWO_NAMES = Release(
    BESIDE.nodes, {arc: w for arc, w in BESIDE.arcs.items() if arc[0] == "a"} | {("b.www", "c"): 1.0}
)


@pytest.mark.slow
@settings(max_examples=90)
@given(releases(), st.sampled_from([1e-13, 1e-3, 0.3]), st.integers(0, 2), st.sampled_from([1, 10]))
@example((RING, RING, False), 1e-3, 1, 1)
@example((RING, Release(["com.a", "com.b"], {("com.a", "com.b"): 1.0}), False), 1e-13, 1, 1)
@example((RING, Release([]), False), 1e-13, 1, 1)
@example((OTHER, HEAVY, True), 1e-13, 1, 1)
@example((NAME, BESIDE, False), 1e-13, 1, 1)
@example((NAME, TWO_NAMES, True), 1e-13, 1, 1)
@example((TWO_NAMES, NAME, True), 1e-13, 1, 1)
@example((Release([]), RING, False), 1e-13, 1, 1)
@example((Release([]), Release([]), False), 1e-13, 1, 1)
def test_each_step_is_that_of_a_direct_solve(case, tol, linkers, large):
    a, b, weighted = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LARGE", large)
        patch.setattr(f"{__name__}.LARGE", large)
        ys, graphs = exactly(a, b, linkers, weighted)
        nodes = sorted(set(a.nodes) | set(b.nodes))
        drift = inlink.drift(
            a.graph(weighted), b.graph(weighted), nodes=nodes, tol=tol, linkers=linkers, threads=1
        )
        moved = inlink.drift(a.graph(weighted), b.graph(weighted), tol=tol, linkers=linkers, threads=1)
    assert [step.name for step in drift.steps] == list(STEPS)
    assert drift.names[: len(b.nodes)] == b.nodes
    if tol < 1e-12:
        for y, values in zip(ys, drift.values, strict=True):
            assert values == pytest.approx([y.get(name, 0.0) for name in drift.names], rel=1e-9)
    assert drift.shares.sum(axis=0) == pytest.approx(drift.values[-1] - drift.values[0], abs=1e-9)

    def inside(interval, value):
        return interval.low - 1e-9 <= value <= interval.high + 1e-9

    norms = np.abs(np.diff([[y.get(name, 0.0) for name in nodes] for y in ys], axis=0)).sum(axis=1)
    for step, norm in zip(drift.steps, norms, strict=True):
        assert inside(step.move, norm)
        assert (step.share is None) == (step.move.low == 0)
        assert step.share is None or inside(step.share, norm / norms.sum())

    for row in drift:
        values = [y.get(row.node, 0.0) for y in ys]
        assert all(map(inside, row.shares, np.diff(values)))
        assert inside(row.move, values[-1] - values[0])
        assert (row.before is not None, row.after is not None) == (row.node in a.nodes, row.node in b.nodes)
        for end, value in ((row.before, values[0]), (row.after, values[-1])):
            assert end is None or inside(end, value)
        ranked = [
            abs(reason.change.middle) for reason in row.reasons if reason.text != "all other links to it"
        ]
        assert ranked == sorted(ranked, reverse=True)
        for reason in row.reasons:
            assert reason.change.low > 0 or reason.change.high < 0
            if reason.linker is not None:
                flows = []
                for k in (1, 5):
                    arcs = graphs[k][1]
                    sums = sum(w for (s, _), w in arcs.items() if s == reason.linker)
                    weight = arcs.get((reason.linker, row.node), 0.0)
                    flows.append(weight and C * weight / sums * ys[k][reason.linker])
                assert inside(reason.change, flows[1] - flows[0])
    # The nodes that are listed are the moved ones among those that can move.
    of_both = set(b.nodes) & {*a.nodes, *folded(a, b)[2]}
    proven = {row.node for row in drift if (row.move.low > 0 or row.move.high < 0) and row.node in of_both}
    assert {row.node for row in moved} == proven
    assert moved.moved == len(proven)


def test_one_lost_link_by_hand():
    # y is 1 at a, and 1 + c/2 at b and at c. Without a → c it is 1 + c at b, and 1 at c.
    drift = inlink.drift([("a", "b"), ("a", "c")], Release(["a", "b", "c"], {("a", "b"): 1}).graph())
    assert drift.values[0].tolist() == pytest.approx([1, 1 + C / 2, 1 + C / 2])
    assert drift.values[-1].tolist() == pytest.approx([1, 1 + C, 1])
    assert [step.share for step in drift.steps] == [None, None, None, None, (1, 1)]
    assert drift.steps[-1].move.middle == pytest.approx(C)
    reasons = {row.node: [reason.text for reason in row.reasons] for row in drift}
    assert reasons == {"b": ["link from a: 1 of its links, before 0.5"], "c": ["lost link from a"]}
    [change] = [row.reasons[0].change for row in drift if row.node == "c"]
    assert change.low <= -C / 2 <= change.high
    assert change.high - change.low < 1e-8
    assert "other links 100.0%" in repr(drift)
    assert "lost link from a (-0.425)" in drift._repr_html_()


def test_reasons_in_words():
    a = [("x", "t"), ("t", "x"), ("y", "t"), ("old", "t"), ("z", "x")]
    b = [("x", "t"), ("t", "x"), ("new", "t"), ("y", "x"), ("z", "x")]
    [row, gone, new] = inlink.drift(a, b, nodes=["t", "old", "new"])
    assert {reason.text for reason in row.reasons} == {
        "lost link from y",
        "lost link from old, which is gone",
        "link from new, which is new",
        "link from x, whose own rank rose by 3.1%",
    }
    assert [reason.text for reason in gone.reasons] == ["it is gone"]
    assert [reason.text for reason in new.reasons] == ["it is new"]
    many = [(f"s{k}", "t") for k in range(9)]
    [row] = inlink.drift(
        [*many, ("t", "t")], [("t", "u"), *((s, "u") for s, _ in many), ("u", "t")], nodes=["t"]
    )
    assert [reason.text for reason in row.reasons][-1] == "all other links to it"
    assert "lost link from itself" in [reason.text for reason in row.reasons]


def test_a_new_host_beside_an_old_one_is_no_folded_name():
    pairs = [("com.a", "com.b"), ("com.b", "com.a"), ("com.c", "com.b")]
    apart = inlink.drift(pairs, [*pairs, ("com.d", "com.b.www"), ("com.b.www", "com.c")])
    assert [step.nodes for step in apart.steps] == [0, 0, 2, 0, 0]
    # Here one of the links to com.b is one to com.b.www now.
    split = inlink.drift(pairs, [*pairs[:2], ("com.c", "com.b.www"), ("com.b.www", "com.b")])
    assert [step.nodes for step in split.steps] == [1, 0, 0, 0, 0]
    texts = {row.node: row.reasons[0].text for row in split}
    assert texts["com.b.www"] == "its name was com.b before"
    assert texts["com.b"] == "com.b.www was split from it"
    back = inlink.drift([*pairs[:2], ("com.c", "com.b.www")], pairs)
    texts = {row.node: row.reasons[0].text for row in back}
    assert texts["com.b"] == "com.b.www was merged into it"
    [old] = inlink.drift([*pairs[:2], ("com.c", "com.b.www")], pairs, nodes=["com.b.www"])
    assert [reason.text for reason in old.reasons] == ["its name is com.b now"]


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("https://www.example.org/www.html", "https://example.org/www.html"),
        ("www.example.org", "example.org"),
        ("org.example.www", "org.example"),
        ("org.example.www.b", "org.example.www.b.www"),
    ],
)
def test_forms_of_names(name: str, other: str):
    for before, after in ((name, other), (other, name)):
        drift = inlink.drift([("a", before), (before, "a")], [("a", after), (after, "a")])
        assert [step.nodes for step in drift.steps] == [1, 0, 0, 0, 0]
        assert drift.steps[0].share == (1, 1)
        assert after in {row.node for row in drift} <= {"a", after}
    # A host has one other name at most.
    drift = inlink.drift([("a", "b.www"), ("www.b", "a")], [("a", "b"), ("b", "a")])
    assert [step.nodes for step in drift.steps] == [1, 1, 0, 0, 0]


# -- planted causes ------------------------------------------------------------------------------------------------

N = 20_000


def web(rng: np.random.Generator) -> np.ndarray:
    """Arcs of a web whose degrees have heavy tails; a third of the nodes are dangling."""
    degrees = np.minimum(rng.pareto(1.3, N) * 3, 2000).astype(int)
    degrees[rng.random(N) < 0.3] = 0
    sources = np.repeat(np.arange(N), degrees)
    targets = rng.permutation(N)[(N * rng.random(len(sources)) ** 3).astype(int)]
    return np.unique(np.column_stack([sources, targets])[sources != targets], axis=0)


def named(pairs: np.ndarray, names: list[str]) -> Graph:
    """A graph with a name for each node; nodes of one name are one."""
    order = sorted(set(names))
    numbers = {name: number for number, name in enumerate(order)}
    pairs = np.unique(np.array([numbers[name] for name in names])[pairs], axis=0)
    offsets = np.searchsorted(pairs[:, 0], np.arange(len(order) + 1)).astype(np.uint64)
    return Graph(Rows(offsets, pairs[:, 1].astype(np.uint32)), names=Names.of(order), level="host")


def planted(cause: str) -> tuple[Graph, Graph]:
    """Two releases that differ for one cause."""
    rng = np.random.default_rng(len(cause))
    pairs = web(rng)
    names = [f"com.site{k}" if k % 2 else f"org.host{k}.www" for k in range(N)]
    whole, changed = named(pairs, names), pairs.copy()
    some = rng.random(N) < 0.05
    plain = [name.removesuffix(".www") if fold else name for name, fold in zip(names, some, strict=True)]
    if cause in ("new", "lost"):
        kept = whole.subgraph(~some)
        kept = Graph(kept.out_rows, names=kept.names, level="host")
        return (kept, whole) if cause == "new" else (whole, kept)
    if cause == "linker":
        return whole, named(pairs[pairs[:, 0] != np.bincount(pairs[:, 0]).argmax()], names)
    if cause == "others":
        picked = rng.random(len(pairs)) < 0.02
        changed[picked, 1] = rng.integers(0, N, picked.sum())
        return whole, named(changed, names)
    if cause == "renamed":
        return whole, named(pairs, [twin(x) if fold else x for x, fold in zip(names, some, strict=True)])
    # Some hosts have two names. Their links go to either, and one name links to the other.
    two = [*plain, *(twin(name) if fold else name for name, fold in zip(plain, some, strict=True))]
    split = pairs + N * (some[pairs] & (rng.random(pairs.shape) < 0.5))
    inner = np.flatnonzero(some)
    double = named(np.concatenate([split, np.column_stack([inner + N, inner])]), two)
    return (double, named(pairs, plain)) if cause == "merged" else (named(pairs, plain), double)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cause", "step"),
    [("renamed", 0), ("merged", 0), ("split", 0), ("lost", 1), ("new", 2), ("linker", 3), ("others", 4)],
)
def test_a_planted_cause_has_its_share(cause: str, step: int):
    a, b = planted(cause)
    drift = inlink.drift(a, b, tol=1e-8)
    norms = np.abs(drift.shares).sum(axis=1)
    assert norms[step] >= 0.95 * norms.sum()
    assert drift.steps[step].share.low >= 0.95
    assert drift.shares.sum(axis=0) == pytest.approx(drift.values[-1] - drift.values[0], abs=1e-9)
    assert len(drift) == 10
    assert all(row.reasons for row in drift)
    if cause == "linker":
        assert drift.steps[3].linkers == [a.nodes[int(a.outdegrees.argmax())]]
        assert drift.steps[3].lost == a.outdegrees.max()


@pytest.mark.slow
def test_moves_within_the_bounds_are_not_told():
    a, b = planted("others")
    exact, loose = inlink.drift(a, b, tol=1e-12, top=0), inlink.drift(a, b, tol=1e-4, top=N, threads=1)
    assert 0 < len(loose) == loose.moved < exact.moved / 20
    for row in loose:
        move = float(np.diff(exact.values[[0, -1], exact.names.find(row.node)])[0])
        assert row.move.low <= move <= row.move.high
        assert row.move.low * move > 0
    same = inlink.drift(a, a, tol=0.1)
    assert (same.moved, list(same), [step.share for step in same.steps]) == (0, [], [None] * 5)


# -- refusals ------------------------------------------------------------------------------------------------------


def test_bad_input_is_refused():
    pairs = [("a", "b")]
    with pytest.raises(ParameterError, match="the nodes of B have no names"):
        inlink.drift(pairs, [(0, 1)])
    host = Graph(Graph(pairs).out_rows, names=Names.of(["a", "b"]), level="host")
    page = Graph(Graph(pairs).out_rows, names=Names.of(["a", "b"]), level="page")
    with pytest.raises(ParameterError, match="A is a graph of pages and B a graph of hosts: fold both"):
        inlink.drift(page, host)
    with pytest.raises(ParameterError, match="`nodes` must be a list of names"):
        inlink.drift(pairs, pairs, nodes="a")
    with pytest.raises(ParameterError, match="`nodes` must have names of nodes; got 3"):
        inlink.drift(pairs, pairs, nodes=[3])
    with pytest.raises(UnknownNodeError, match="no node is named 'c', neither in A nor in B"):
        inlink.drift(pairs, pairs, nodes=["c"])
    with pytest.raises(ParameterError, match="the arcs have no weights"):
        inlink.drift(pairs, pairs, weighted=True)
    for option, value in (("damping", 1), ("tol", 0), ("top", -1), ("linkers", 0.5), ("threads", 0)):
        with pytest.raises(ParameterError, match=f"`{option}` must be"):
            inlink.drift(pairs, pairs, **{option: value})


def test_memory_that_does_not_suffice_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "ARC_BYTES", 1 << 60)
    with pytest.raises(ParameterError, match="memory"):
        inlink.drift([("a", "b")], [("a", "b")])
