"""Lines to compare policies with: orders that know the whole graph, and an upper bound for all orders.

**Clairvoyant greedy** fetches the known page of the largest final value. It is no bound: it never fetches a poor page
that leads to rich ones.

**Look-ahead** knows the graph too. A page's *promise* is the largest mean value that a part of the tree of its links
can have. The tree has the page as its root and goes three levels down, through pages that are not known yet. A part
holds the root, and with a page all pages on the way to it. The known page of the largest promise is next. Fetching
parts of a tree by their means is optimal for a tree (W. A. Horn, "Single-machine job sequencing with treelike
precedence ordering and linear delay penalties", SIAM J. Appl. Math. 23 (1972)). A web is no tree, so this is no bound
either. The largest mean is found by W. Dinkelbach, "On nonlinear fractional programming", Management Science 13 (1967).

**The sort bound** is the sum of the k largest values among the pages that can be reached. No order collects more.

**The optimum of revisits** is the greatest expected share of fresh rank with a number of fetches a second, if all rates
of changes are known. Page i of rank w changes λ times a second and is fetched f times a second, at equal intervals. It
is current for (f/λ)(1 − e^(−λ/f)) of the time. With z = λ/f, the optimum has (w/λ)(1 − (1 + z)e^(−z)) = μ, or f = 0 if
w/λ ≤ μ (J. Cho, H. Garcia-Molina, "Effective page refresh policies for Web crawlers", TODS 2003). Both equations are
solved by bisection.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from inlink.base.arrays import BoolArray, Float64Array, UInt32Array
from inlink.graph.graph import Graph, Rows

LINES = ("greedy", "look-ahead")
"""The orders that know the whole graph."""


def sorted_rows(graph: Graph, values: Float64Array) -> Rows:
    """Return the rows of a graph with the links of each page sorted by value, the largest first, then by number."""
    offsets, nodes = graph.out_rows.offsets, np.asarray(graph.out_rows.nodes)
    sources = np.repeat(np.arange(graph.num_nodes, dtype=np.uint32), np.diff(offsets).astype(np.int64))
    return Rows(
        np.asarray(offsets), np.ascontiguousarray(nodes[np.lexsort((nodes, -values[nodes], sources))])
    )


def line(
    name: str, rows: Rows, values: Float64Array, fetchable: BoolArray, seeds: UInt32Array, budget: int
) -> UInt32Array:
    """Return the pages that a line fetches, in its order: uint32[k], k at most ``budget``.

    Parameters
    ----------
    name : str
        One of :data:`LINES`.
    rows : Rows
        As :func:`sorted_rows` makes them of the same values.
    values : float64[n]
        The value of each page, at least 0.
    fetchable : bool[n]
        Pages that can be fetched at all.
    seeds : uint32[k]
        The seeds.
    budget : int
        The number of fetches.
    """
    from inlink.replaying import kernels

    run: Callable[..., Any] = kernels.greedy if name == "greedy" else kernels.look_ahead
    order = np.empty(budget, np.uint32)
    done = run(
        np.ascontiguousarray(values),
        rows.offsets,
        rows.nodes,
        ~np.asarray(fetchable),
        np.asarray(seeds, np.uint32),
        order,
    )
    return order[: int(done)]


def sort_bound(values: Float64Array, reached: BoolArray, budget: int) -> Float64Array:
    """Return the largest sums of the values of 1, 2, …, ``budget`` reached pages, float64[budget]."""
    best = np.sort(values[reached])[::-1][:budget]
    sums = np.cumsum(best)
    short = budget - len(sums)
    return np.concatenate([sums, np.full(short, sums[-1] if len(sums) else 0.0)]) if short > 0 else sums


def best_fresh_rank(ranks: Float64Array, rates: Float64Array, budget: float) -> float:
    """Return the optimum of revisits, a share of the sum of all ranks.

    Parameters
    ----------
    ranks : float64[n]
        The ranks of the pages; at least one is above 0.
    rates : float64[n]
        Their changes a second, above 0.
    budget : float
        Fetches a second, above 0.
    """
    some = ranks > 0
    ranks, rates = ranks[some], rates[some]

    def fetches(threshold: float) -> Float64Array:
        wanted, low, high = threshold * rates / ranks, np.zeros(len(rates)), np.full(len(rates), 700.0)
        for _ in range(60):
            middle = (low + high) / 2
            above = -np.expm1(-middle) - middle * np.exp(-middle) > wanted
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        often: Float64Array = np.where(wanted < 1, rates / np.maximum(high, 1e-12), 0.0)
        return often

    low, high = 0.0, float((ranks / rates).max())
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if fetches(middle).sum() > budget else (low, middle)
    often = np.maximum(fetches(high), 1e-300)
    return float((ranks * -np.expm1(-rates / often) * often / rates).sum() / ranks.sum())
