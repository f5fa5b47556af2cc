"""Katz centrality: the number of walks that end at a page, long walks counting less. Every value has an error bound.

    x = α·Aᵀx + β·1                                                                                        (1)

Its solution (I − αAᵀ)⁻¹·β·1 adds β·α^k for each walk of k arcs that ends at the node. With β = 1 the walk of
no arcs adds 1, as in NetworkX; Katz ("A new status index derived from sociometric analysis", Psychometrika
1953) leaves it out: ((I − αAᵀ)⁻¹ − I)·1 is ``katz(graph, alpha=…, normalized=False).values − 1``.

**Convergence.** The sum over all walks converges only if α < 1/λ₁. λ₁ is the spectral radius of A: the largest radius
of a strong component. For any x > 0 on a component, its radius lies between the smallest and the largest (Aᵀx)_i / x_i
(Collatz 1942, Wielandt 1950), with sums taken within the component. Rounds of the power method narrow this interval
until α is known to be below 1/λ₁, or not to be.

**The bound.** With r = β·1 + αAᵀx − x for *any* x, and θ the largest |r_i| / β: x* − x = (I − αAᵀ)⁻¹r and (I
− αAᵀ)⁻¹ ≥ 0, so |x_i − x*_i| ≤ θ·x*_i for each i, and so ≤ θ/(1 − θ)·x_i if θ < 1. A bound on the rounding error of r
is added to r. So the bound does not depend on how x was found. With α > 1 and long chains, values may be so large that
their rounding alone is above β. Then no bound is known, and the ranking says so.

**Method.** x ← x + r sums the walks by their length. This is slow if α is near 1/λ₁. So from time to time GMRES (Saad &
Schultz, SIAM J. Sci. Stat. Comput. 1986) proposes a correction. The correction is used if it halves the smallest θ so
far. With α > 1, the sum over walks along long chains may first grow and then end. GMRES cannot detect this end. Then
its correction is not used, and the rounds continue.
"""

import math
from typing import Annotated

import numpy as np
import numpy.typing as npt

from inlink.base.arrays import Float64Array
from inlink.base.declare import Parameter
from inlink.base.progress import track
from inlink.errors import ParameterError
from inlink.graph.components import components
from inlink.graph.graph import Graph, Rows
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.eigenvector import SHIFT
from inlink.rank.inputs import VECTORS, require_vectors, use_weights
from inlink.rank.krylov import solve
from inlink.rank.parameters import MaxIter, Normalized, ThreadCount, Tolerance, Weighted, check_rounds
from inlink.rank.ranking import ROUNDOFF, Ranking, ranking_of, timed
from inlink.rank.rowsums import RowSums

# Products in one run of GMRES, and rounds before the first run. The rounds double after each run that does not help.
DEPTH = 20
# The largest number of rounds to find λ₁.
RADIUS_ROUNDS = 2000
# Relative to λ₁: within this distance it cannot be decided whether α is below 1/λ₁.
CLOSE = 1e-6
# Relative to λ₁: this accuracy is enough for the error message.
KNOWN = 1e-3
TINY = 1e-290


@timed
def katz(
    graph: GraphLike,
    *,
    alpha: Annotated[float, Parameter("Factor for each arc of a walk, below 1/λ₁.", at_least=0)] = 0.1,
    beta: Annotated[float, Parameter("Constant that each node gets, above 0.", above=0)] = 1.0,
    tol: Annotated[Tolerance, Parameter("Relative error of each value to reach.")] = 1e-6,
    max_iter: MaxIter = None,
    normalized: Normalized = True,
    weighted: Weighted = None,
    threads: ThreadCount = None,
) -> Ranking:
    """The number of walks that end at a node; each arc of a walk multiplies its weight by α.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        In a matrix A[i, j] is the arc i → j.
    alpha : float
        α, at least 0 and below 1/λ₁.
    beta : float
        β, above 0: the value of the walk without arcs.
    tol : float or None
        The relative error of every value to reach. None makes exactly ``max_iter`` rounds.
    max_iter : int or None
        The largest number of rounds; None is 10,000. If they do not suffice, ``converged`` is False.
    normalized : bool
        Whether to divide the values by their length (L2 norm), as NetworkX does.
    weighted : bool or None
        Whether an arc counts by its weight; None: if the graph has weights.
    threads : int or None
        None uses all processors. The result has the same bits with any number of threads.

    Returns
    -------
    Ranking
        ``values`` float64[n]. ``error_bound`` ≥ ‖values − exact‖₁ always; it is ``inf`` if no bound is known.
        ``converged`` says whether the relative error of each value is at most ``tol``.

    Raises
    ------
    inlink.errors.ParameterError
        If α is not below 1/λ₁ (the message gives λ₁), or another parameter is out of range.

    Examples
    --------
    >>> from inlink.rank.katz import katz
    >>> from inlink import Graph
    >>> ranking = katz(Graph.from_arcs([(0, 1), (1, 2), (0, 2)]), alpha=0.5, normalized=False)
    >>> ranking.values.tolist(), ranking.converged
    ([1.0, 1.5, 2.25], True)
    """
    graph = as_graph(graph)
    check_rounds(tol, max_iter)
    use = use_weights(graph, weighted)
    require_vectors(graph, **VECTORS["katz"])
    limit = 10_000 if max_iter is None else max_iter
    _check_alpha(graph, alpha, use, threads)
    x, rounds, share = _solve(graph, alpha, tol, limit, use, threads)
    values, error = x * beta, share
    if normalized and len(x):
        length = float(np.linalg.norm(x))
        values, error = x / length, 2 * share + (len(x) + 4) * ROUNDOFF
    return ranking_of(
        graph,
        "katz",
        values,
        error_bound=error * float(np.abs(values).sum()) if len(x) else 0.0,
        iterations=rounds,
        converged=tol is not None and share <= tol,
        parameters={
            "alpha": alpha,
            "beta": beta,
            "tol": tol,
            "max_iter": max_iter,
            "normalized": normalized,
            "weighted": use,
        },
    )


def _solve(
    graph: Graph, alpha: float, tol: float | None, limit: int, weighted: bool, threads: int | None
) -> tuple[Float64Array, int, float]:
    """Return x of (1) with β = 1, the number of rounds, and a bound on the relative error of every value."""
    from inlink.base.jit import one_blas_thread

    n = graph.num_nodes
    if n == 0:
        return np.ones(0), 0, 0.0
    # Overflow makes θ infinite or NaN, and this is checked.
    quiet = np.errstate(over="ignore", invalid="ignore")
    with (
        quiet,
        RowSums(graph.split_in_rows, weighted, threads) as sums,
        track("Katz", None, "rounds") as task,
    ):
        roundings = (graph.indegrees.astype(np.float64) + 6) * ROUNDOFF

        most = float(roundings.max())

        def residual(x: Float64Array) -> tuple[Float64Array, float, bool]:
            """Return r of (1), a bound on its largest exact value, and whether r may be rounding only."""
            change = sums(x)
            change *= alpha
            change += 1
            change -= x
            largest = max(float(change.max()), -float(change.min()))
            # With y = αAᵀx, |y| + |x| + 1 ≤ |r| + 2|x| + 2. This bound takes fewer passes over vectors, and is usually
            # small enough.
            crude = 1.01 * most * (largest + 2 * max(float(x.max()), -float(x.min())) + 2)
            if crude <= largest / 100:
                return change, largest + crude, False
            size = np.abs(change)
            rounding = roundings * (np.abs(change + x - 1) + np.abs(x) + 1)
            return change, float((size + rounding).max()), bool((size <= rounding).all())

        x, rounds, wait, at = np.ones(n), 0, DEPTH, DEPTH
        change, theta, done = residual(x)
        best = theta
        while True:
            if not math.isfinite(theta):
                raise ParameterError(
                    f"alpha={alpha:g}: the values grow beyond what a float64 can hold: choose a smaller alpha"
                )
            share = theta / (1 - theta) * (1 + 8 * ROUNDOFF) if theta < 1 else math.inf
            if rounds >= limit or done or (tol is not None and share <= tol):
                return x, rounds, share
            if rounds >= at and rounds + DEPTH < limit:
                largest = float(np.abs(change).max())
                with one_blas_thread():
                    ahead = x + solve(lambda v: v - alpha * sums(v), change / largest, DEPTH) * largest
                proposed = residual(ahead)
                rounds += DEPTH + 1
                task.advance(DEPTH + 1)
                if proposed[1] < best / 2:
                    x, wait = ahead, DEPTH
                    change, theta, done = proposed
                    best, at = theta, rounds
                    continue
                wait *= 2
                at = rounds + wait
            x = x + change
            change, theta, done = residual(x)
            best = min(best, theta)
            rounds += 1
            task.advance(1, f"error of each value {share:.1e}")


def _check_alpha(graph: Graph, alpha: float, weighted: bool, threads: int | None) -> None:
    """Refuse an α that is not below 1/λ₁."""
    rows, heads = _within_components(graph, weighted)
    if alpha == 0 or len(heads) == 0:
        return
    low = high = 0.0
    x = np.ones(len(rows.offsets) - 1)
    rounding = (float(np.diff(rows.offsets).max()) + 4) * 2 * ROUNDOFF
    with RowSums(rows, weighted, threads) as sums, track("the largest eigenvalue", None, "rounds") as task:
        for _ in range(RADIUS_ROUNDS):
            y = sums(x)
            ratio = y / x
            low = float(np.minimum.reduceat(ratio, heads).max()) * (1 - rounding)
            high = float(ratio.max()) * (1 + rounding)
            if alpha * high < 1:
                return
            task.advance(1, f"between {low:.6g} and {high:.6g}")
            if high - low <= (KNOWN if alpha * low >= 1 else CLOSE) * high:
                break
            x = y + SHIFT * high * x
            largest = np.maximum.reduceat(x, heads)
            x /= np.repeat(largest, np.diff(np.append(heads, len(x))))
            np.maximum(x, TINY, out=x)
    raise ParameterError(
        f"alpha={alpha:g} is not below 1/λ₁, so the walks add up to no finite number: λ₁, the largest eigenvalue, is "
        f"{_between(low, high)}; choose an alpha below {_below(1 / high)}"
    )


def _between(low: float, high: float) -> str:
    return f"{high:.6g}" if f"{low:.6g}" == f"{high:.6g}" else f"between {low:.6g} and {high:.6g}"


def _below(value: float) -> str:
    """Format a value with at most six digits, rounded down."""
    digits = 5 - math.floor(math.log10(value))
    return f"{math.floor(value * 10.0**digits) / 10.0**digits:.6g}"


def _within_components(graph: Graph, weighted: bool) -> tuple[Rows, npt.NDArray[np.intp]]:
    """Return the inlinks within strong components, and where each component begins.

    Nodes are renumbered so that the nodes of a component are consecutive. Nodes that are on no cycle are left out.
    """
    label = components(graph.out_rows, strong=True)
    rows = graph.in_rows
    target = np.repeat(np.arange(graph.num_nodes, dtype=np.uint32), np.diff(rows.offsets).astype(np.intp))
    inside = label[target] == label[rows.nodes]
    target, source = target[inside], rows.nodes[inside]
    weights = None if rows.weights is None or not weighted else rows.weights[inside]
    on_cycle = np.zeros(graph.num_nodes, np.bool_)
    on_cycle[target] = True
    nodes = np.flatnonzero(on_cycle)
    nodes = nodes[np.argsort(label[nodes], kind="stable")]
    place = np.zeros(graph.num_nodes, np.uint32)
    place[nodes] = np.arange(len(nodes), dtype=np.uint32)
    order = np.argsort(place[target], kind="stable")
    offsets = np.zeros(len(nodes) + 1, np.uint64)
    np.cumsum(np.bincount(place[target], minlength=len(nodes)) if len(nodes) else [], out=offsets[1:])
    heads = np.flatnonzero(np.diff(label[nodes].astype(np.int64), prepend=-1))
    return Rows(offsets, place[source][order], None if weights is None else weights[order]), heads
