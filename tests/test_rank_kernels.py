"""Each loop of the rank room against its slow, obvious twin."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from inlink.rank.inputs import strengths
from inlink.rank.kernels import gather, pagerank
from strategies import Arcs, arcs

C = 0.85
U = np.uint64


def setting(a: Arcs):
    graph = a.graph()
    weighted = a.weights is not None
    A = graph.to_scipy().toarray()
    rows = graph.in_rows
    weights = rows.weights if weighted and rows.weights is not None else np.empty(0)
    rng = np.random.default_rng(len(a.pairs))
    strong = strengths(graph, weighted and graph.is_weighted)
    uniform = np.full(1, 1 / len(A))
    return A, pagerank.Equation(rows.offsets, rows.nodes, weights, strong, uniform, C), rng


both = st.one_of(arcs(min_nodes=1), arcs(min_nodes=1, weighted=True))


@given(both)
def test_scan_arcs_and_row_sums(a: Arcs):
    A, equation, rng = setting(a)
    n = len(A)
    loops = np.full(n, 9.0)
    smaller, larger = pagerank.scan_arcs(equation, loops, U(0), U(n))
    linking = A.sum(1) > 0
    np.testing.assert_allclose(loops, np.where(linking, np.diag(A), 0))
    between = [(i, j) for i, j in zip(*A.nonzero(), strict=True) if linking[j] and i != j]
    assert smaller == sum(i < j for i, j in between)
    assert larger == sum(i > j for i, j in between)
    np.testing.assert_allclose(equation.strengths, A.sum(1), rtol=1e-14)
    x, y = rng.random(n), np.empty(n)
    gather.pull(gather.WeightedRows(*equation[:3]), x, y, U(0), U(n))
    np.testing.assert_allclose(y, A.T @ x, rtol=1e-13, atol=1e-300)
    assert gather.sum_where_zero(x, equation.strengths) == math.fsum(x[~linking])


@given(both)
def test_depth_first_order_puts_each_node_behind_its_inlinks(a: Arcs):
    A, equation, _ = setting(a)
    n = len(A)
    linking = [i for i in range(n) if A[i].any()]
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
    found = np.zeros(n, np.uint32)
    end = pagerank.depth_first_order(equation, np.zeros(n, np.bool_), found, U(0), U(n))
    assert found[: int(end)].tolist() == order
    assert sorted(order) == linking


@given(both, st.booleans(), st.booleans())
def test_a_sweep_solves_one_row_after_the_other(a: Arcs, down: bool, personal: bool):
    A, equation, rng = setting(a)
    n = len(A)
    loops = np.zeros(n)
    pagerank.scan_arcs(equation, loops, U(0), U(n))
    v = rng.random(n) if personal else equation.teleport
    equation = equation._replace(teleport=v)
    z = rng.random(n) * (A.sum(1) > 0)
    twin, order = z.copy(), [i for i in range(n) if A[i].any()]
    for i in reversed(order) if down else order:
        rest = sum(A[j, i] * twin[j] for j in range(n) if j != i)
        # x = c·(rest + A[i, i]·x/s) + (1 − c)·v, solved for x, and z = x/s
        s = A[i].sum()
        twin[i] = (C * rest + (1 - C) * v[i if personal else 0]) / (1 - C * A[i, i] / s) / s
    swept = z.copy()
    pagerank.sweep(equation, loops, swept, down, U(0), U(n))
    np.testing.assert_allclose(swept, twin, rtol=1e-12)
    if not down:
        ordered = z.copy()
        rows = np.array(order, np.uint32)
        pagerank.sweep_in_order(equation, loops, ordered, rows, U(0), U(len(order)))
        np.testing.assert_allclose(ordered, twin, rtol=1e-12)


@given(both)
def test_the_certifying_round(a: Arcs):
    A, equation, rng = setting(a)
    n, s = len(A), A.sum(1)
    v = rng.random(n)
    equation = equation._replace(teleport=v)
    x = rng.random(n)
    z, y = np.empty(n), np.empty(n)
    pagerank.contributions(x, equation.strengths, 2.0, z, U(0), U(n))
    np.testing.assert_allclose(z, np.where(s > 0, 2 * x / np.where(s > 0, s, 1), 0))
    filled = np.empty(n)
    pagerank.finish_dangling(equation, z, filled, U(0), U(n))
    np.testing.assert_allclose(filled, np.where(s > 0, z * s, C * (A.T @ z) + (1 - C) * v))
    change, roundings = pagerank.power_round(equation, 0.3, z, x, y, U(0), U(n))
    np.testing.assert_allclose(y, C * (A.T @ z) + 0.3 * v)
    np.testing.assert_allclose(change, np.abs(y - x).sum())
    np.testing.assert_allclose(roundings, (((A > 0).sum(0) + 16) * (y + x)).sum())


@given(st.integers(0, 40), st.integers(1, 4), st.integers(0, 2**32))
def test_the_vectors_of_anderson(n: int, depth: int, seed: int):
    rng = np.random.default_rng(seed)
    z, before, strong = rng.random(n), rng.random(n), rng.integers(0, 4, n).astype(np.uint32)
    last = rng.random(n).astype(np.float32)
    f, old, difference = z - before, last.copy(), np.empty(n, np.float32)
    change, mass = pagerank.new_difference(z, before, last, difference, strong, U(0), U(n))
    np.testing.assert_allclose([change, mass], [(np.abs(f) * strong).sum(), (z * strong).sum()], atol=1e-12)
    np.testing.assert_allclose(difference, f - old, atol=1e-6)
    np.testing.assert_allclose(last, f, atol=1e-6)
    vectors, found = rng.random((depth, n)).astype(np.float32), np.empty(depth)
    pagerank.dots(vectors, last, found, U(0), U(n))
    np.testing.assert_allclose(found, vectors.astype(float) @ last.astype(float), rtol=1e-12, atol=1e-12)
    moves, share, start = rng.random((depth, n)).astype(np.float32), rng.random(depth), z.copy()
    expected = z - share @ (moves.astype(float) + vectors.astype(float))
    pagerank.accelerate(z, before, moves, vectors, share, U(depth - 1), U(0), U(n))
    np.testing.assert_allclose(z, expected, rtol=1e-10, atol=1e-10)
    assert (before == z).all()
    assert start.shape == z.shape
