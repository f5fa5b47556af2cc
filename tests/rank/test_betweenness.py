from fractions import Fraction

import igraph
import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inlink
from inlink import Graph
from inlink.errors import ParameterError
from inlink.rank.betweenness import betweenness, dependency_sums
from inlink.rank.kernels import betweenness as kernels
from strategies import Arcs, arcs


def exact_dependencies(graph: Graph, source: int) -> list[Fraction]:
    """δ_s(v) by Brandes' recurrence, in whole numbers and fractions; δ_s(s) is the number of nodes reached."""
    links = [graph.outlinks(i).tolist() for i in range(graph.num_nodes)]
    depth, paths, order = {source: 0}, {source: 1}, [source]
    for i in order:
        for j in links[i]:
            if j not in depth:
                depth[j], paths[j] = depth[i] + 1, 0
                order.append(j)
            if depth[j] == depth[i] + 1:
                paths[j] += paths[i]
    behind = [Fraction()] * graph.num_nodes
    for i in reversed(order):
        for j in links[i]:
            if depth[j] == depth[i] + 1:
                behind[i] += Fraction(paths[i], paths[j]) * (1 + behind[j])
    return behind


@given(arcs(), st.booleans(), st.booleans(), st.sampled_from([1, 2]))
def test_it_is_networkx(a: Arcs, normalized: bool, endpoints: bool, threads: int):
    ours = betweenness(a.graph(), normalized=normalized, endpoints=endpoints, threads=threads)
    theirs = nx.betweenness_centrality(a.digraph(), normalized=normalized, endpoints=endpoints)
    np.testing.assert_allclose(ours.values, [theirs[i] for i in range(a.num_nodes)], rtol=1e-12, atol=1e-15)
    assert ours.converged
    assert ours.verdict() == "exact"


@given(arcs(min_nodes=1, max_nodes=15))
def test_the_bound_holds_against_fractions(a: Arcs):
    graph = a.graph()
    exact = [Fraction()] * a.num_nodes
    for s in range(a.num_nodes):
        found = exact_dependencies(graph, s)
        exact = [x + (found[v] if v != s else 0) for v, x in enumerate(exact)]
    ours = betweenness(graph, normalized=False)
    error = sum(abs(Fraction(float(x)) - y) for x, y in zip(ours.values, exact, strict=True))
    assert error <= ours.error_bound <= 1e-11


@pytest.mark.parametrize("name", ["gr0.Harbour", "graphs/gr0.California"])
def test_igraph_agrees(data, name):
    graph = inlink.read(data(name))
    pairs = np.stack(graph.to_scipy().nonzero(), axis=1)
    g = igraph.Graph(n=graph.num_nodes, edges=pairs.tolist(), directed=True)
    ours = betweenness(graph, normalized=False)
    np.testing.assert_allclose(ours.values, g.betweenness(), rtol=1e-10, atol=1e-9)


both = st.one_of(arcs(min_nodes=1), arcs(min_nodes=1, max_nodes=40))


def check_lanes_against_single_searches(a: Arcs, endpoints: bool):
    rows, n = a.graph().out_rows, a.num_nodes
    sources = np.arange(n, dtype=np.uint32)
    shares = np.random.default_rng(n).random(n)
    lanes = int(kernels.LANES)
    # Nothing may depend on what the work space held before.
    paths, behind = np.full(n * lanes, np.nan), np.full(n * lanes, np.nan)
    queue, reached = np.empty(n * lanes + 1, np.uint32), np.empty(n * lanes + 1, np.uint8)
    ends, part = np.empty(n + 2, np.uint64), np.empty(lanes)
    near = np.empty(int(kernels.PIECE), np.uint32)
    search = kernels.PathSearch(np.zeros(n, np.uint16), paths, behind, queue, reached, ends, part, near)
    depths, powers = np.full(n, kernels.UNSEEN, np.uint32), np.empty(n, np.uint32)
    single = kernels.ManyPathSearch(depths, np.empty(n), powers, np.zeros(n), np.empty(n, np.uint32))
    by_lanes, by_one = (kernels.DependencySums(np.zeros(n), np.zeros(n)) for _ in range(2))
    given = rows.offsets, rows.nodes, sources, shares, endpoints
    assert kernels.dependencies(*given, search, by_lanes)
    kernels.dependencies_of_many_paths(*given, single, by_one)
    assert not search.marks.any()
    assert (depths == kernels.UNSEEN).all()
    assert not single.behind.any()
    np.testing.assert_allclose(by_lanes.total, by_one.total, rtol=1e-12)
    np.testing.assert_allclose(by_lanes.squares, by_one.squares, rtol=1e-12)


@given(both, st.booleans())
def test_eight_searches_at_once_equal_single_ones(a: Arcs, endpoints: bool):
    check_lanes_against_single_searches(a, endpoints)


@pytest.mark.parametrize("endpoints", [False, True])
def test_rows_of_several_pieces_and_steps_with_few_nodes(endpoints: bool):
    """Hubs have rows longer than a piece. A chain has one node at each distance, so few that they are not sorted."""
    rng = np.random.default_rng(2)
    n, hubs = 400, 3
    pairs = [(hub, int(v)) for hub in range(hubs) for v in rng.integers(0, n, 150 + 50 * hub)]
    pairs += [(int(u), int(v)) for u, v in rng.integers(0, n, (2 * n, 2))]
    pairs += [(n + k, n + k + 1) for k in range(99)] + [(n + 99, 0), (5, n)]
    check_lanes_against_single_searches(Arcs(n + 100, pairs), endpoints)


def test_more_shortest_paths_than_a_float_can_count():
    layers = 1200  # two pages each, which both link to the next two
    pairs = [(2 * k + a, 2 * k + 2 + b) for k in range(layers - 1) for a in (0, 1) for b in (0, 1)]
    ours = betweenness(Graph.from_arcs(pairs), normalized=False, threads=2)
    before = 2 * (np.arange(2 * layers) // 2)
    after = 2 * (layers - 1) - before
    np.testing.assert_allclose(ours.values, before * after / 2, rtol=1e-11)
    # beside them a chain of single pages, as long, with a fork in it; all meet in one page, and there is one more
    n, fork, last = 2 * layers, 3 * layers - 1, 3 * layers
    chain = [(0, n), *((n + k, n + k + 1) for k in range(layers - 2)), (n + 99, fork), (fork, n + 101)]
    meet = [(n - 2, last), (n - 1, last), (n + layers - 2, last), (last, last + 1)]
    graph = Graph.from_arcs([*pairs, *chain, *meet])
    sources = np.array([0], np.uint32)
    sums = dependency_sums(graph, sources, None, False, True, 1, "test")
    exact = exact_dependencies(graph, 0)
    exact[0] = Fraction()
    assert exact[fork] == exact[n + 100] == exact[n + 101] / 2 + Fraction(1, 2)
    np.testing.assert_allclose(sums.total, [float(x) for x in exact], rtol=1e-11, atol=1e-300)
    np.testing.assert_allclose(sums.squares, [float(x) ** 2 for x in exact], rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("turned", [False, True])
def test_path_counts_on_both_sides_of_an_exponent(turned: bool):
    """One way doubles its paths 510 times and the other 513 times; they are equally long and meet in one page, behind
    which they double 500 times more.
    """
    last, n = 1, 2 + 2 * 500
    pairs = [(last, 2), (last, 3)]
    pairs += [(2 + 2 * k + i, 4 + 2 * k + j) for k in range(499) for i in (0, 1) for j in (0, 1)]
    for doublings in (513, 510) if turned else (510, 513):
        layer = [0]
        for k in range(513):
            size = 2 if k < doublings else 1
            following = list(range(n, n + size))
            n += size
            pairs += [(i, j) for i in layer for j in following]
            layer = following
        pairs += [(i, last) for i in layer]
    graph = Graph.from_arcs(pairs)
    found = dependency_sums(graph, np.array([0], np.uint32), None, False, False, 1, "test").total
    exact = [float(x) for x in exact_dependencies(graph, 0)]
    np.testing.assert_allclose(found[1:], exact[1:], rtol=1e-11)


def web(n: int, seed: int = 0) -> Graph:
    rng = np.random.default_rng(seed)
    pairs = np.stack([rng.integers(0, n, 3 * n), (n * rng.random(3 * n) ** 2).astype(int)], axis=1)
    return Graph.from_arcs(pairs[pairs[:, 0] % 4 > 0].astype(np.uint32), num_nodes=n)


def test_a_sample_is_right_on_average_and_within_its_bound():
    graph = web(300)
    for endpoints in (False, True):
        exact = betweenness(graph, endpoints=endpoints).values
        samples = [betweenness(graph, k=60, endpoints=endpoints, seed=s) for s in range(100)]
        values = np.array([sample.values for sample in samples])
        spread = np.maximum(values.std(0) / 10, 1e-15)
        assert (np.abs(values.mean(0) - exact) <= 5 * spread + 1e-12).all()
        off = np.abs(values - exact).max(1)
        assert (off <= [sample.parameters["max_error"] for sample in samples]).all()
        more = betweenness(graph, k=200, endpoints=endpoints)
        assert more.parameters["max_error"] < samples[0].parameters["max_error"] / 2
        assert not more.converged
        assert more.error_bound is None
        assert more.iterations == 200
        assert "from 200 of" in more.verdict()
        assert "with confidence 0.95 no value is off by more than 0." in more.note
    again = betweenness(graph, k=60, endpoints=True, seed=7)
    assert (again.values == samples[7].values).all()
    assert (again.values != samples[8].values).any()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "few", "k", "factor"), [(400, 200, 100, 4), (400, 200, 300, 4), (4000, 4, 2000, 25)]
)
def test_the_bound_of_a_sample_is_neither_too_small_nor_idle(size: int, few: int, k: int, factor: float):
    """The first few sources reach all through one hub, the others nothing: errors are hypergeometric."""
    hub, ends = size, size + 1
    pairs = [(i, hub) if i < few else (i, ends + size + i) for i in range(size)]
    graph = Graph.from_arcs([*pairs, *((hub, ends + j) for j in range(size))])
    exact = betweenness(graph, normalized=False)[hub]
    assert exact == few * size
    share = few / size
    deviation = size**2 * np.sqrt(share * (1 - share) / k * (size - k) / (size - 1))
    samples = [betweenness(graph, k=k, normalized=False, confidence=0.5, seed=seed) for seed in range(60)]
    bounds = np.array([sample.parameters["max_error"] for sample in samples])
    assert (np.abs(np.array([sample[hub] for sample in samples]) - exact) > bounds).sum() <= 30
    assert (bounds > deviation).all()
    assert (bounds < factor * deviation).all()
    # what the paper says, for the one node that paths go through; the hub links as well, and may be drawn
    drawn, most = size + 1, few + 1 + size - 2
    p = np.array([s[hub] for s in samples]) / drawn / size
    left, right = 1 - (k - 1) / drawn, (1 - k / drawn) * (1 + 1 / k)
    hoeffding = most * np.sqrt(min(left, right) * np.log(2 / 0.25) / (2 * k))
    rho = left if 2 * k <= drawn else right
    bernstein = size * np.sqrt(2 * p * (1 - p) * rho * np.log(10 / 0.25) / k)
    bernstein += most * (7 / 3 + 3 / 2**0.5) * np.log(10 / 0.25) / k
    bounds /= drawn
    np.testing.assert_allclose(bounds, np.minimum(hoeffding, bernstein), rtol=1e-9)


def test_all_sources_are_no_sample():
    graph = web(100)
    linking = int((graph.outdegrees > 0).sum())
    exact = betweenness(graph)
    for k in (linking, 100):
        assert (betweenness(graph, k=k).values == exact.values).all()
        assert betweenness(graph, k=k).converged
    assert betweenness(graph, k=linking - 1).iterations == linking - 1
    with pytest.raises(ParameterError, match=r"`k` must be a whole number in .1, 100."):
        betweenness(graph, k=101)


def test_nodes_through_which_nothing_goes_need_no_sample():
    bipartite = Graph.from_arcs([(i, 10 + j) for i in range(10) for j in range(5)])
    sample = betweenness(bipartite, k=2)
    assert sample.parameters["max_error"] == 0
    assert not sample.values.any()
