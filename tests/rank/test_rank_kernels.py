"""Each loop of the rank room against its slow, obvious twin."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from inlink.graph.rows import row_places, unsplit
from inlink.rank.inputs import strengths, strengths_by_place
from inlink.rank.kernels import gather, pagerank, residual
from strategies import Arcs, arcs

C = 0.85
U = np.uint64


def setting(a: Arcs, split: bool):
    """The adjacency matrix, the equation, the nodes at its places, and random numbers."""
    graph = a.graph()
    weighted = a.weights is not None and graph.is_weighted
    A = graph.to_scipy().toarray()
    rows = graph.split_in_rows if split else unsplit(graph.in_rows)
    assert len(rows.linking) == (np.count_nonzero(A.any(1)) if split else 0)
    weights = rows.weights if weighted and rows.weights is not None else np.empty(0)
    rng = np.random.default_rng(len(a.pairs))
    strong = strengths_by_place(graph, weighted) if split else strengths(graph, weighted)
    uniform = np.full(1, 1 / len(A))
    at = rows.linking if len(rows.linking) else np.arange(len(A))
    equation = pagerank.Equation(rows.offsets, rows.nodes, weights, rows.linking, strong, uniform, C)
    return A, equation, at, rng


both = st.one_of(arcs(min_nodes=1), arcs(min_nodes=1, weighted=True))


@given(both, st.booleans())
def test_scan_arcs_and_row_sums(a: Arcs, split: bool):
    A, equation, at, rng = setting(a, split)
    n, size = len(A), len(at)
    loops = np.full(size, 9.0)
    smaller, larger = pagerank.scan_arcs(equation, loops, U(0), U(size))
    linking = A.sum(1) > 0
    np.testing.assert_allclose(loops, np.where(linking, np.diag(A), 0)[at])
    between = [(i, j) for i, j in zip(*A.nonzero(), strict=True) if linking[j] and i != j]
    assert smaller == sum(i < j for i, j in between)
    assert larger == sum(i > j for i, j in between)
    np.testing.assert_allclose(equation.strengths, A.sum(1)[at], rtol=1e-14)
    x, y = rng.random(n), np.empty(n)
    for low, high in ((0, n // 3), (n // 3, n)):
        gather.pull(gather.Inlinks(*equation[:4]), x[at], y, U(low), U(high))
    np.testing.assert_allclose(y, A.T @ x, rtol=1e-13, atol=1e-300)
    assert gather.compensated_sum(x) == pytest.approx(math.fsum(x), rel=1e-15)
    assert pagerank.dangling_mass(equation, U(n), x) == pytest.approx(math.fsum(x[~linking]), rel=1e-15)


@given(both, st.booleans())
def test_depth_first_order_puts_each_node_behind_its_inlinks(a: Arcs, split: bool):
    A, equation, at, _ = setting(a, split)
    linking = [i for i in range(len(A)) if A[i].any()]
    seen, order = set(), []

    def visit(i: int) -> None:
        seen.add(i)
        for j in A[:, i].nonzero()[0].tolist():
            if j not in seen:
                visit(j)
        order.append(i)

    for i in linking:
        if i not in seen:
            visit(i)
    size = len(at)
    found = np.zeros(size, np.uint32)
    end = pagerank.depth_first_order(equation, np.zeros(size, np.bool_), found, U(0), U(size))
    assert at[found[: int(end)]].tolist() == order
    assert sorted(order) == linking


@given(both, st.booleans(), st.booleans(), st.booleans())
def test_a_sweep_solves_one_row_after_the_other(a: Arcs, split: bool, down: bool, personal: bool):
    A, equation, at, rng = setting(a, split)
    n, size = len(A), len(at)
    loops = np.zeros(size)
    pagerank.scan_arcs(equation, loops, U(0), U(size))
    v = rng.random(n) if personal else equation.teleport
    equation = equation._replace(teleport=v[at] if personal else v)
    z = rng.random(n) * (A.sum(1) > 0)
    twin, order = z.copy(), [i for i in range(n) if A[i].any()]
    for i in reversed(order) if down else order:
        rest = sum(A[j, i] * twin[j] for j in range(n) if j != i)
        # x = c·(rest + A[i, i]·x/s) + (1 − c)·v, solved for x, and z = x/s
        s = A[i].sum()
        twin[i] = (C * rest + (1 - C) * v[i if personal else 0]) / (1 - C * A[i, i] / s) / s
    swept = z[at]
    pagerank.sweep(equation, loops, swept, down, U(0), U(size))
    np.testing.assert_allclose(swept, twin[at], rtol=1e-12)
    if not down:
        ordered = z[at]
        rows = np.searchsorted(at, order).astype(np.uint32)
        pagerank.sweep_in_order(equation, loops, ordered, rows, U(0), U(len(order)))
        np.testing.assert_allclose(ordered, twin[at], rtol=1e-12)


@given(both, st.booleans())
def test_the_certifying_round(a: Arcs, split: bool):
    A, equation, at, rng = setting(a, split)
    n, size, s = len(A), len(at), A.sum(1)
    v = rng.random(n)
    equation = equation._replace(teleport=v)
    x = rng.random(n)
    z, y, filled = np.empty(size), np.empty(n), np.empty(n)
    pagerank.contributions(equation, np.ones(1), 3.0, z, U(0), U(size))
    np.testing.assert_allclose(z, np.where(s > 0, 3 / np.where(s > 0, s, 1), 0)[at])
    pagerank.contributions(equation, x, 2.0, z, U(0), U(size))
    by_node = np.where(s > 0, 2 * x / np.where(s > 0, s, 1), 0)
    np.testing.assert_allclose(z, by_node[at])
    change, roundings = 0.0, 0.0
    for low, high in ((0, n // 2), (n // 2, n)):
        pagerank.finish_dangling(equation, z, filled, U(low), U(high))
        part = pagerank.power_round(equation, 0.3, z, x, y, U(low), U(high))
        change, roundings = change + part[0], roundings + part[1]
    np.testing.assert_allclose(filled, np.where(s > 0, by_node * s, C * (A.T @ by_node) + (1 - C) * v))
    np.testing.assert_allclose(y, C * (A.T @ by_node) + 0.3 * v)
    np.testing.assert_allclose(change, np.abs(y - x).sum())
    np.testing.assert_allclose(roundings, (((A > 0).sum(0) + 16) * (y + x)).sum())
    largest = residual.largest_residual(equation, 0.3, z, x, U(0), U(n))
    np.testing.assert_allclose(largest, np.abs(y - x).max(), rtol=1e-12, atol=1e-13)


@given(both, st.booleans())
def test_split_rows_give_the_same_bits_as_plain_rows(a: Arcs, down: bool):
    split, plain = setting(a, True), setting(a, False)
    n, at = len(split[0]), split[2]
    z, swept, rounds = plain[3].random(n), [], []
    for _, equation, places, _ in (split, plain):
        size = len(places)
        loops, own = np.empty(size), z[places]
        own[equation.strengths == 0] = 0
        counts = pagerank.scan_arcs(equation, loops, U(0), U(size))
        pagerank.sweep(equation, loops, own, down, U(0), U(size))
        x, y = np.empty(n), np.empty(n)
        pagerank.finish_dangling(equation, own, x, U(0), U(n))
        told = pagerank.power_round(equation, 0.2, own, x, y, U(0), U(n))
        swept.append(own)
        rounds.append((counts, pagerank.dangling_mass(equation, U(n), x), x.tobytes(), y.tobytes(), told))
    assert swept[0].tobytes() == swept[1][at].tobytes()
    assert rounds[0][:4] == rounds[1][:4]
    # Chunks add up their linking nodes first, so that these sums are rounded in another order.
    assert rounds[0][4] == pytest.approx(rounds[1][4], rel=1e-13, abs=1e-300)


@given(arcs(max_nodes=30), st.integers(0, 30), st.integers(0, 30))
def test_the_nodes_of_a_chunk_come_linking_ones_first(a: Arcs, one: int, other: int):
    graph = a.graph()
    linking = graph.split_in_rows.linking
    n = graph.num_nodes
    low, high = sorted((min(one, n), min(other, n)))
    chunk = list(range(low, high))
    places = row_places(linking, n) if len(linking) else np.arange(n)
    nodes, linked, first, rest = gather.chunk_nodes(linking, U(low), U(high))
    assert sorted(nodes.tolist()) == chunk
    assert nodes.tolist() == sorted(chunk, key=lambda i: places[i])
    found = [int(first) + t if t < linked else int(rest) + t - int(linked) for t in range(len(chunk))]
    assert found == [int(places[i]) for i in nodes]


@given(
    st.integers(0, 40), st.integers(1, 8), st.sampled_from([np.float32, np.float64]), st.integers(0, 2**32)
)
@example(5000, 3, np.float32, 1).via("more than two blocks of products")
def test_the_vectors_of_extrapolation(n: int, count: int, kind: type, seed: int):
    rng = np.random.default_rng(seed)
    z, before, strong = (
        rng.random(n).astype(kind),
        rng.random(n).astype(kind),
        rng.integers(0, 4, n).astype(np.uint32),
    )
    differences = rng.random((8, n)).astype(np.float32)
    slot, f, kept = count - 1, z.astype(float) - before, differences.copy()
    told = pagerank.observe(z, before, differences, U(slot), strong, U(0), U(n))
    np.testing.assert_allclose(told, [(np.abs(f) * strong).sum(), (z * strong).sum()], rtol=1e-6, atol=1e-12)
    kept[slot] = f
    np.testing.assert_array_equal(differences, kept)
    np.testing.assert_array_equal(before, z)
    sums = np.zeros((count, count))
    for low, high in ((0, n // 3), (n // 3, n)):
        pagerank.difference_products(differences, U(count), sums, U(low), U(high))
    wide = kept[:count].astype(float)
    np.testing.assert_allclose(sums, np.tril(wide @ wide.T), rtol=1e-12, atol=1e-12)
    share = rng.random(count)
    expected = (z - share @ wide).astype(kind)
    pagerank.extrapolate(z, before, differences, share, U(0), U(n))
    np.testing.assert_allclose(z, expected, rtol=1e-6 if kind is np.float32 else 1e-10, atol=1e-6)
    np.testing.assert_array_equal(before, z)
    np.testing.assert_array_equal(differences, kept)


@given(both, st.booleans(), st.booleans(), st.sampled_from([np.float32, np.float64]))
def test_the_last_round(a: Arcs, split: bool, personal: bool, kind: type):
    A, equation, at, rng = setting(a, split)
    if equation.strengths.dtype.kind == "f":
        # Weighted graphs stay in float64.
        kind = np.float64
    n, size, s = len(A), len(at), A.sum(1)
    v = rng.random(n) if personal else np.full(1, 0.5)
    equation = equation._replace(teleport=v)
    z = (rng.random(n) * (s > 0)).astype(kind)
    own, y = z.astype(float) * s, np.empty(n)
    drift, roundings = 0.0, 0.0
    chunks = [(U(0), U(n // 2)), (U(n // 2), U(n))]
    for low, high in chunks:
        part = pagerank.power_round(equation, 0.3, z[at], np.empty(0), y, low, high)
        drift, roundings = drift + part[0], roundings + part[1]
    exact = C * (A.T @ z.astype(float)) + 0.3 * v
    np.testing.assert_allclose(y, exact, rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(drift, (exact - own)[s > 0].sum(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(roundings, (((A > 0).sum(0) + 16) * 2 * exact).sum())
    places = pagerank.Places(equation.linking, equation.strengths, v)
    parts = [pagerank.settle(places, z[at], y, 0.7, 2.0, low, high) for low, high in chunks]
    exact += 0.7 * v
    np.testing.assert_allclose(y, exact / 2, rtol=1e-13)
    off = (exact - own)[s > 0]
    np.testing.assert_allclose(np.sum(parts, axis=0), [np.abs(off).sum(), off.sum()], rtol=1e-12, atol=1e-12)
    assert size == len(places.strengths)
