"""Certain places: what is proven is true, and what is not proven is named."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import assume, given
from hypothesis import strategies as st

import inlink
from inlink.cli import commands
from inlink.errors import ParameterError
from inlink.rank.certain import best_nodes, certain_places
from strategies import arcs
from test_pagerank import exact

VALUES = st.lists(st.sampled_from([0.0, 0.1, 0.1001, 0.2, 0.5]), min_size=1, max_size=12)


@given(VALUES, st.sampled_from([0.0, 1e-5, 0.05, 0.15, 1.0]), st.integers(0, 14), st.integers(0, 2**32))
def test_nothing_within_the_bound_changes_a_certain_place(values, bound, count, seed):
    """The definition, against random vectors that are as far away as the bound allows."""
    x = np.array(values)
    places = certain_places(x, bound, count)
    assert len(places.nodes) == len(places.certain) == min(count, len(x))
    assert x[places.nodes].tolist() == sorted(x.tolist(), reverse=True)[:count]
    random = np.random.default_rng(seed)
    for _ in range(20):
        error = random.dirichlet(np.full(len(x), 0.3)) * random.choice([-1.0, 1.0], len(x)) * bound
        order = np.argsort(-(x + 0.999 * error), kind="stable")
        for place in np.flatnonzero(places.certain):
            assert order[place] == places.nodes[place]


@given(VALUES, st.sampled_from([1e-5, 0.05, 0.15]))
def test_an_open_place_can_be_changed(values, bound):
    """No certain place is missed: moving half the bound each way makes two neighbours equal, or swaps them."""
    x = np.array(values)
    assume(len(x) > 1)
    places = certain_places(x, bound, len(x))
    sorted_values = x[places.nodes]
    for k, certain in enumerate(places.certain):
        near = [j for j in (k - 1, k + 1) if 0 <= j < len(x)]
        assert certain == all(abs(sorted_values[k] - sorted_values[j]) > bound for j in near)


@given(arcs(min_nodes=1, max_nodes=12), st.integers(1, 12), st.sampled_from(["gauss-seidel", "power"]))
def test_pagerank_goes_on_until_the_first_places_are_certain(a, count, method):
    ranking = inlink.pagerank(a.graph(), tol=0.3, certain=count, method=method, threads=1)
    places = ranking.places(count)
    assert places is not None
    x = exact(a.dense(), 0.85)
    assert abs(ranking.values - x).sum() <= ranking.error_bound
    order = sorted(range(len(x)), key=lambda node: -x[node])
    for place in np.flatnonzero(places.certain):
        assert order[place] == places.nodes[place]
    # What is open is a tie of the exact values, too.
    ranks = np.sort(x)[::-1]
    for place in np.flatnonzero(~places.certain):
        near = [abs(ranks[place] - ranks[j]) for j in (place - 1, place + 1) if 0 <= j < len(x)]
        assert min(near) < 1e-12


def test_ties_are_named():
    # b and c have the same inlinks, so that they have the same PageRank; so have d and e.
    graph = inlink.Graph.from_arcs([("a", "b"), ("a", "c"), ("b", "a"), ("c", "a"), ("a", "d"), ("a", "e")])
    ranking = inlink.pagerank(graph, certain=5)
    assert ranking.note == "1 of the first 5 places are certain; no proven order at places 2 to 5"
    assert inlink.pagerank(graph, certain=1).note == "the first place is certain"
    assert ranking.places(5).ties() == [(2, 5)]
    chain = inlink.pagerank(inlink.Graph.from_arcs([(0, 1), (1, 2), (2, 3)]), certain=4)
    assert chain.note == "the first 4 places are certain"


def test_a_ranking_without_a_bound_has_no_certain_places():
    graph = inlink.Graph.from_arcs([("a", "b"), ("b", "c")])
    assert inlink.hits(graph).places(2) is None
    assert inlink.degree(graph).places(3).certain.tolist() == [False, False, True]


def test_arguments_are_checked():
    with pytest.raises(ParameterError, match="`certain`"):
        inlink.pagerank(inlink.Graph.from_arcs([(0, 1)]), certain=3, tol=None, max_iter=9)
    with pytest.raises(ParameterError, match="`k` must be"):
        inlink.pagerank(inlink.Graph.from_arcs([(0, 1)])).places(-1)


def test_the_commands(tmp_path):
    def run(*arguments: object) -> str:
        result = CliRunner().invoke(commands, ["-q", *map(str, arguments)], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    inlink.Graph.from_arcs([("a", "b"), ("a", "c"), ("b", "a"), ("c", "a")], into=tmp_path / "g")
    told = run("rank", tmp_path / "g", "--until-certain", 2)
    assert "1 of the first 2 places are certain; no proven order at places 2" in told
    assert [line.split("\t")[2:] for line in run("top", tmp_path / "g").splitlines()] == [
        ["a", "certain"],
        ["b", "open"],
        ["c", "open"],
    ]
    assert [row["certain"] for row in json.loads(run("top", tmp_path / "g", "--json"))] == [
        True,
        False,
        False,
    ]
    run("rank", tmp_path / "g", "--algorithm", "hits")
    assert "certain" not in run("top", tmp_path / "g", "--by", "hits", "--json")


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 50])
def test_the_best_nodes_of_many_blocks_are_those_of_a_sort(monkeypatch, count):
    monkeypatch.setattr("inlink.rank.certain._BLOCK", 4)
    random = np.random.default_rng(count)
    for length in (0, 1, 4, 5, 41):
        values = random.integers(0, 6, length).astype(np.float64)
        best = np.lexsort((np.arange(length), -values))[:count]
        assert best_nodes(values, count).tolist() == best.tolist()
