"""The lines beside a replay's policies, against brute force; measures, against other libraries."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

import inlink
from inlink import Graph
from inlink.replaying.lines import line, sort_bound, sorted_rows
from inlink.replaying.measures import agreement, check_order, counts_at, curve_of, harvest_of
from inlink.replaying.web import NO_PAGE
from strategies import arcs

DEPTH = 3


def parts(graph: Graph, values: list[int], seen: set[int], page: int, depth: int) -> set[tuple[int, int]]:
    """Sum and size of every part of the tree of unseen pages below a page that holds the page."""
    found = {(values[page], 1)}
    for child in graph.outlinks(page).tolist() if depth else []:
        if child not in seen and child != page:
            below = parts(graph, values, seen, child, depth - 1)
            found |= {(a + c, b + d) for a, b in found for c, d in below}
    return found


def brute_look_ahead(graph: Graph, values: list[int], seeds: list[int], closed: set[int]) -> list[int]:
    seen = {*seeds, *closed}
    waiting, order = [seed for seed in seeds if seed not in closed], []
    while waiting:
        best = max(
            waiting,
            key=lambda page: (max(Fraction(*one) for one in parts(graph, values, seen, page, DEPTH)), -page),
        )
        waiting.remove(best)
        order.append(best)
        new = [child for child in graph.outlinks(best).tolist() if child not in seen]
        seen |= set(new)
        waiting += new
    return order


def brute_greedy(graph: Graph, values: list[int], seeds: list[int], closed: set[int]) -> list[int]:
    waiting, seen, order = {one for one in seeds if one not in closed}, {*seeds, *closed}, []
    while waiting:
        best = max(waiting, key=lambda page: (values[page], -page))
        waiting.remove(best)
        order.append(best)
        waiting |= {*graph.outlinks(best).tolist()} - seen
        seen |= waiting
    return order


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Graph, list[int], list[int], set[int]]:
    made = draw(arcs(min_nodes=1, max_nodes=6))
    graph = made.graph()
    # Beyond three links a page there are too many parts to try.
    pairs = [(page, child) for page in range(graph.num_nodes) for child in graph.outlinks(page).tolist()[:3]]
    graph = Graph.from_arcs(np.array(pairs, np.uint32).reshape(-1, 2), num_nodes=made.num_nodes)
    node = st.integers(0, made.num_nodes - 1)
    values = draw(st.lists(st.integers(0, 4), min_size=made.num_nodes, max_size=made.num_nodes))
    return (
        graph,
        values,
        draw(st.lists(node, min_size=1, max_size=3, unique=True)),
        draw(st.sets(node, max_size=1)),
    )


@pytest.mark.parametrize(("name", "brute"), [("greedy", brute_greedy), ("look-ahead", brute_look_ahead)])
@settings(max_examples=60, deadline=None)
@given(world=worlds())
def test_a_line_is_what_brute_force_finds(name, brute, world):
    graph, values, seeds, closed = world
    worth = np.array(values, np.float64)
    fetchable = np.array([node not in closed for node in range(graph.num_nodes)])
    found = line(
        name, sorted_rows(graph, worth), worth, fetchable, np.array(sorted(seeds), np.uint32), graph.num_nodes
    )
    assert found.tolist() == brute(graph, values, seeds, closed)


def test_look_ahead_takes_the_poor_page_that_leads_to_a_rich_one():
    graph = Graph.from_arcs([(0, 1), (0, 2), (2, 3), (3, 4), (1, 5)])
    values = np.array([0.0, 3.0, 0.0, 0.0, 90.0, 1.0])
    rows, all_of_it = sorted_rows(graph, values), np.ones(6, np.bool_)
    seeds = np.array([0], np.uint32)
    assert line("look-ahead", rows, values, all_of_it, seeds, 6).tolist() == [0, 2, 3, 4, 1, 5]
    assert line("greedy", rows, values, all_of_it, seeds, 6).tolist() == [0, 1, 5, 2, 3, 4]
    assert line("greedy", rows, values, all_of_it, seeds, 2).tolist() == [0, 1]


@settings(max_examples=50)
@given(st.lists(st.floats(0, 10), min_size=1, max_size=7), st.data())
def test_the_sort_bound_is_the_best_of_all_sets(values, data):
    worth = np.array(values)
    reached = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))))
    pages = np.flatnonzero(reached).tolist()
    bound = sort_bound(worth, reached, len(values))
    for count in range(1, len(values) + 1):
        size = min(count, len(pages))
        best = max(sum(worth[page] for page in some) for some in combinations(pages, size))
        assert bound[count - 1] == pytest.approx(best)


def test_a_curve_has_its_marks_its_area_and_its_half():
    home = np.array([2, NO_PAGE, 0], np.uint32)
    harvest = harvest_of(home, np.array([1.0, 5.0, 2.0]), 4.0, 4)
    # The crawl ended after three fetches, so the share stays.
    assert harvest.tolist() == [0.5, 0.5, 0.75, 0.75]
    curve = curve_of(harvest, [1, 4])
    assert (curve.at, curve.area, curve.half) == ([0.5, 0.75], 0.625, 1)
    assert curve.points[-1] == 0.75
    assert curve_of(harvest * 0.1, [1]).half is None


@pytest.mark.parametrize(
    ("marks", "reached", "counts"), [((0.01, 0.5, 1.0), 10, [1, 5, 10]), ((0.1,), 30, [3])]
)
def test_a_mark_is_a_number_of_fetches(marks, reached, counts):
    assert counts_at(marks, reached) == counts


def test_orders_that_cannot_be_are_refused():
    worth, reached = {"pagerank": np.array([1.0, 2.0, 3.0])}, np.array([True, True, False])
    check_order(np.array([1, NO_PAGE, 0], np.uint32), worth, reached, 3, "x")
    with pytest.raises(RuntimeError, match="twice"):
        check_order(np.array([1, 1], np.uint32), worth, reached, 3, "x")
    with pytest.raises(RuntimeError, match="do not reach"):
        check_order(np.array([2], np.uint32), worth, reached, 3, "x")


@settings(max_examples=25, deadline=None)
@given(arcs(min_nodes=3), st.randoms(use_true_random=False))
def test_agreement_is_kendalls_tau_of_the_ranks_of_a_subgraph(made, chance):
    graph = made.graph()
    pages = list(range(graph.num_nodes))
    chance.shuffle(pages)
    ranks = np.asarray(inlink.pagerank(graph, tol=1e-9, threads=1).values)
    count = max(2, len(pages) // 2)
    (found,) = agreement(graph, np.array(pages, np.uint32), [count], ranks, 0.85)
    kept = np.zeros(graph.num_nodes, np.bool_)
    kept[pages[:count]] = True
    part = np.asarray(inlink.pagerank(graph.subgraph(kept), tol=1e-9, threads=1).values)
    tau = kendalltau(part.round(12), ranks[kept].round(12)).statistic
    assert found is None if np.isnan(tau) else found == pytest.approx(tau)


def test_no_agreement_without_two_pages():
    graph = Graph.from_arcs([(0, 1)])
    assert agreement(graph, np.array([0, 1], np.uint32), [1], np.ones(2), 0.85) == [None]
