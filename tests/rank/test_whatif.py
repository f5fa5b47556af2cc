"""What single links would do: intervals against a direct solve, the closed form, suggestions against all links."""

import numpy as np
import pytest
from bench.whatif import best_links, edits, exact, outside, small_web, suggested
from hypothesis import given, settings
from hypothesis import strategies as st

import inlink
from inlink.errors import ParameterError, UnknownNodeError
from inlink.graph.edits import Edits
from inlink.rank.suggest import left_out, suggest
from inlink.rank.whatif import Before, Interval, Visits, changes_of
from strategies import Arcs, arcs


@st.composite
def edited(draw: st.DrawFn) -> tuple[Arcs, set[tuple[int, int]], set[tuple[int, int]]]:
    """A graph, links to add, some to new nodes, and links to remove."""
    graph = draw(arcs(min_nodes=1))
    remove = set(draw(st.lists(st.sampled_from(graph.pairs), max_size=4))) if graph.pairs else set()
    new = draw(st.integers(0, 2))
    node = st.integers(0, graph.num_nodes + new - 1)
    add = set(draw(st.lists(st.tuples(node, node), max_size=5)))
    add |= {(draw(st.integers(0, graph.num_nodes - 1)), graph.num_nodes + k) for k in range(new)}
    return graph, add - remove, remove


@given(edited(), st.booleans(), st.booleans())
def test_no_exact_value_is_outside_its_interval(case, places, personalized):
    graph, add, remove = case
    n = graph.num_nodes
    scores = np.arange(n) % 3 + (n == 1) + 0.0 if personalized and n > 1 else None
    nodes = range(max([n, *(end + 1 for link in add for end in link)]))
    _, _, wrong = outside(set(graph.pairs), n, add, remove, scores, nodes=nodes, places=places)
    assert wrong == 0


@pytest.mark.parametrize("seed", range(4))
def test_random_edits_of_larger_graphs(seed: int):
    rng = np.random.default_rng(seed)
    pairs = {(int(i), int(j)) for i, j in (rng.pareto(1.2, (900, 2)) * 20).astype(int) % 300 if i % 5}
    add, remove = edits(rng, 300, pairs)
    nodes = sorted({end for link in add | remove for end in link} | {0, 299})
    for places in (True, False):
        total, _, wrong = outside(pairs, 300, add, remove, nodes=nodes, places=places)
        assert total == len(nodes)
        assert wrong == 0


@given(arcs(min_nodes=2, weighted=True), st.integers(0, 11), st.integers(0, 11))
def test_weighted_links(graph, source, target):
    link = source % graph.num_nodes, target % graph.num_nodes
    whole = graph.graph()
    dense = graph.dense()
    after = dense.copy()
    after[link] = after[link] or 1.0
    values = []
    for rows in (dense, after):
        sums = rows.sum(axis=1, keepdims=True)
        value = np.linalg.solve(
            np.eye(len(rows)) - 0.85 * (rows / np.where(sums, sums, 1)).T, np.ones(len(rows))
        )
        values.append(value / value.sum())
    for places in (True, False):
        for row in inlink.whatif(whole, [link], nodes=range(graph.num_nodes), places=places):
            exactly = values[1][row.node] - values[0][row.node]
            assert row.change.low - 1e-13 <= exactly <= row.change.high + 1e-13


def test_the_answer_is_that_of_two_rankings():
    rng = np.random.default_rng(3)
    graph = small_web(rng, 400)
    add, remove = [(5, 300), (7, 9)], [graph.edges.numbers.__iter__().__next__()]
    change = inlink.whatif(graph, add, remove, top=5)
    was = inlink.pagerank(graph, tol=1e-13)
    now = inlink.pagerank(Edits(graph, add, remove).edited(), tol=1e-13)
    assert [row.node for row in change] == [node for node, _ in now.top(5)]
    assert change.decided
    for row in change:
        assert row.change.is_within(0.01)
        assert row.change.middle == pytest.approx(now[row.node] - was[row.node], rel=0.01)
        assert row.place_after[0] <= 1 + int((now.values > now[row.node]).sum()) <= row.place_after[1]


@pytest.mark.slow
def test_one_link_has_its_closed_form():
    rng = np.random.default_rng(8)
    n, c = 40, 0.85
    graph = small_web(rng, n)
    x, _ = exact(n, set(graph.edges.numbers), np.ones(n))
    before, none = Before(graph, c), Edits(graph)
    columns = []
    for target in range(n):
        visits = Visits(before, none, np.array([target]))
        visits.push(1e-12)
        columns.append(visits.p)
    N = np.array(columns).T
    for source, target in rng.integers(0, n, (60, 2)):
        row = graph.outlinks(int(source))
        if target in row or not len(row):
            continue
        k = len(row)
        numerator = N[target, target] - (N[source, target] - (source == target)) / c
        divisor = 1 + (N[source, source] - 1 - c * N[target, source]) / (k + 1)
        # The closed form is of the values before they are divided by their sum.
        gain = c * x[source] / (k + 1) * numerator / divisor
        scale = sum(
            c * x[source] / (k + 1)
            * (N[target, t] - (N[source, t] - (source == t)) / c) / divisor
            for t in range(n)
        )  # fmt: skip
        [change] = inlink.whatif(graph, [(source, target)], nodes=[target], places=False)
        assert float((gain - x[target] * scale) / (1 + scale)) == pytest.approx(
            change.change.middle, rel=0.01
        )


def test_sharpening_reaches_one_percent():
    graph = small_web(np.random.default_rng(5), 500)
    rough = inlink.pagerank(graph, tol=1e-2)
    before = Before(graph, 0.85, start=rough)
    edits = Edits(graph, [(490, 400)])
    [change] = changes_of(before, edits, [np.array([400])])
    assert change.is_within(0.01)
    [closer] = changes_of(before, edits, [np.array([400])], precision=1e-6)
    assert change.low <= closer.low <= closer.high <= change.high
    assert closer.is_within(1e-6)


def test_a_start_of_zeros_is_no_start():
    graph, links = small_web(np.random.default_rng(7), 60), [(5, 40)]
    expected = inlink.whatif(graph, links, threads=1).nodes
    assert inlink.whatif(graph, links, start=np.zeros(60), threads=1).nodes == expected


def test_a_change_that_rounding_hides_is_not_decided():
    # The walks from 0 and from 2 are mirror images, so the rank of 4 stays.
    graph = inlink.Graph.from_arcs([(0, 1), (2, 3), (1, 4), (3, 4), (4, 0), (4, 2)])
    [row] = inlink.whatif(graph, add=[(0, 3)], nodes=[4])
    assert not row.decided
    assert "rounding errors leave an interval" in row.reason
    assert row.change.low <= 0 <= row.change.high
    assert row.change.high < 1e-12


def test_links_that_are_there_change_nothing():
    graph = inlink.Graph([("a", "b"), ("b", "a")])
    for places in (True, False):
        change = inlink.whatif(graph, add=[("a", "b")], nodes=["a"], places=places)
        assert change[0].change == Interval(0, 0)
        assert (change.added, change.decided) == (0, True)


def test_new_pages_have_a_place_only_afterwards():
    change = inlink.whatif(inlink.Graph([("a", "b"), ("b", "a")]), add=[("a", "c"), ("c", "b")], nodes=["c"])
    [row] = change
    assert (row.before, row.place_before, row.place_after, change.new) == (
        Interval(0, 0),
        None,
        (3, 3),
        ["c"],
    )


@pytest.mark.parametrize(
    ("given_edits", "error", "says"),
    [
        ({"add": ["ab"]}, ParameterError, "must be a pair"),
        ({"remove": [("b", "b")]}, UnknownNodeError, "no link from 'b' to 'b'"),
        ({"remove": [("x", "b")]}, UnknownNodeError, "x"),
        ({"add": [("a", "b")], "remove": [("a", "b")]}, ParameterError, "both added and removed"),
        ({"nodes": ["x"]}, UnknownNodeError, "x"),
        ({"precision": 0}, ParameterError, "precision"),
        ({"damping": 1}, ParameterError, "damping"),
    ],
)
def test_bad_edits_are_refused(given_edits, error, says):
    with pytest.raises(error, match=says):
        inlink.whatif(inlink.Graph([("a", "b"), ("b", "a")]), **given_edits)


def test_new_numbers_leave_no_gap_and_graphs_have_nodes():
    with pytest.raises(ParameterError, match="leaves a gap"):
        inlink.whatif(inlink.Graph.from_arcs([(0, 1)]), add=[(0, 5)])
    with pytest.raises(ParameterError, match="no nodes"):
        inlink.whatif(inlink.Graph.from_arcs([], num_nodes=0), add=[(0, 1)])


def test_nodes_are_a_list_and_names_can_be_encoded():
    graph = inlink.Graph([("a", "b"), ("b", "a")])
    with pytest.raises(ParameterError, match="must be a list of nodes"):
        inlink.whatif(graph, nodes="ab")
    with pytest.raises(ParameterError, match="UTF-8"):
        inlink.whatif(graph, add=[("a\ud800", "b")])
    # No node can have such a name.
    assert "a\ud800" not in graph
    with pytest.raises(UnknownNodeError):
        graph.node("a\ud800")


@given(edited())
def test_edited_graphs_have_the_links(case):
    graph, add, remove = case
    add = {link for link in add if max(link) < graph.num_nodes}
    laid_over = Edits(graph.graph(), add, remove)
    after = laid_over.edited()
    assert set(after.edges.numbers) == (set(graph.pairs) - remove) | add
    assert laid_over.is_dangling == bool((after.outdegrees == 0).any())
    with pytest.raises(ParameterError, match="built anew"):
        Edits(graph.graph(), [(0, graph.num_nodes)]).edited()


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_the_best_link_is_suggested(seed):
    rng = np.random.default_rng(seed)
    graph, target = small_web(rng, 25), int(rng.integers(25))
    assert suggested(graph, target, 1) >= 0.99 * best_links(graph, target, 1)


def test_three_links_are_nearly_the_best_three():
    rng = np.random.default_rng(11)
    graph = small_web(rng, 16)
    assert suggested(graph, 12, 3) >= 0.95 * best_links(graph, 12, 3)


@pytest.mark.slow
def test_each_gain_is_proven():
    graph = small_web(np.random.default_rng(2), 60)
    targets, done = [50, 51], []
    for link in suggest(graph, targets, 4):
        was = inlink.pagerank(Edits(graph, done).edited(), tol=1e-13).values[targets].sum()
        done.append((link.source, link.target))
        now = inlink.pagerank(Edits(graph, done).edited(), tol=1e-13).values[targets].sum()
        assert link.gain.low - 1e-12 <= now - was <= link.gain.high + 1e-12
        assert link.gain.low > 0
        assert link.before == pytest.approx(was)
    assert len(done) == 4


def test_sources_are_plausible():
    pages = [f"https://example.org/{name}" for name in ("docs/a", "docs/b", "blog/c", "d")]
    links = [(a, b) for a in pages for b in pages if a != b and not (b == pages[0] and a != pages[3])]
    graph = inlink.Graph(links)
    graph.level = "page"
    assert [link.source for link in suggest(graph, [pages[0]], 5)] == [pages[1]]
    assert [link.source for link in suggest(graph, [pages[0]], 5, sources=[pages[2]])] == [pages[2]]
    assert not list(suggest(graph, [pages[0]], 5, most_links=2))


@pytest.mark.parametrize("mask", [[0, 1, 0], [True, False], True, [0.0, 1.0, 0.0]])
def test_a_filter_of_suggestions_returns_a_mask_of_all_nodes(mask):
    graph = inlink.Graph([("a", "b"), ("b", "c"), ("c", "a")])
    filters = {"wrong": lambda _: mask}
    with pytest.raises(ParameterError, match=r"a filter must return bool\[3\]; got an array of"):
        list(suggest(graph, ["a"], 1, filters=filters))
    with pytest.raises(ParameterError, match=r"a filter must return bool\[3\]; got an array of"):
        left_out(graph, ["a"], filters)


def test_each_page_is_left_out_once_also_if_none_is_left():
    graph = inlink.Graph([("a", "b"), ("b", "c"), ("c", "a")])
    filters = {"linking to it": lambda target: np.isin(np.arange(3), graph.inlinks(target))}
    assert left_out(graph, ["a"], filters) == {"linking to it": 1, "with 100 links or more": 0, "": 2}
    assert left_out(graph, ["a"], filters, 1) == {"linking to it": 1, "with 1 link or more": 2, "": 0}
    assert left_out(graph, ["a", "b"], filters, 1) == {"linking to it": 0, "with 1 link or more": 3, "": 0}


@pytest.mark.parametrize("compress", [False, True])
def test_graphs_on_disk(tmp_path, compress):
    links = [("home", "news"), ("home", "about"), ("news", "home"), ("about", "home"), ("news", "story")]
    graph = inlink.Graph(links)
    folder = graph.subgraph(np.arange(4), into=tmp_path / "graph", compress=compress)
    expected = inlink.whatif(graph, [("home", "story")], threads=1).nodes
    assert inlink.whatif(folder, [("home", "story")], threads=1).nodes == expected
