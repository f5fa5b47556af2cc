"""What PageRank and its kin are solved by: the equation made ready, sweeps over it, and the bound on what comes out.

:mod:`inlink.rank.pagerank` has the equations, the reasons and the sources.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inlink.graph.graph import Graph
from inlink.rank.inputs import arc_weights, strengths

__all__ = ["UNIT", "History", "Problem", "Sweeper", "finish", "jacobi_sweep", "linear_problem"]

Vector = npt.NDArray[np.float64]

DEPTH = 3  # of the Anderson acceleration: 5 saves one sweep in 25 at most, and costs 16 bytes a node
ORDER_BELOW = 0.6  # the share of new inputs below which a depth-first order pays for its dearer sweeps
SMALL = 1 << 16  # arcs below which threads cost more than they bring
UNIT = 2.0**-53


@dataclass
class Problem:
    """A graph and its equation, made ready for the kernels."""

    graph: Graph
    teleport: Vector
    damping: float
    weights: npt.NDArray[Any]
    strengths: npt.NDArray[Any]
    bounds: npt.NDArray[np.uint64]
    pool: ThreadPoolExecutor | None

    @property
    def inlinks(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32], npt.NDArray[Any]]:
        """Rows of inlinks: offsets, sources, weights."""
        rows = self.graph.in_rows
        return rows.offsets, rows.nodes, self.weights

    def each(self, work: Callable[[np.uint64, np.uint64], Any]) -> list[Any]:
        """Call ``work(low, high)`` on every chunk of rows."""
        from inlink.base.jit import on_threads

        return on_threads(work, self.bounds, self.pool)

    def __enter__(self) -> "Problem":
        return self

    def __exit__(self, *_: object) -> None:
        if self.pool is not None:
            self.pool.shutdown()


def linear_problem(
    graph: Graph, teleport: Vector, damping: float, weighted: bool, threads: int | None
) -> Problem:
    """What a sweep needs, and the threads that it runs on; a context manager."""
    from inlink.base.jit import chunks_by_arcs, num_threads

    count = num_threads(threads)
    if graph.num_arcs < SMALL:
        count = 1
    # At most four million arcs each, so that Ctrl-C is heard soon. Otherwise as few as keep the threads busy: on
    # cnr-2000 two threads take 19 to 22 sweeps with four chunks, 21 to 31 with sixteen, whose starts interleave.
    chunks = max(graph.num_arcs >> 22, 1 if count == 1 else 2 * count)
    return Problem(
        graph,
        teleport,
        damping,
        arc_weights(graph.in_rows, weighted),
        strengths(graph, weighted),
        chunks_by_arcs(graph.in_rows.offsets, chunks),
        ThreadPoolExecutor(count) if count > 1 else None,
    )


def jacobi_sweep(problem: Problem, x: Vector, z: Vector, y: Vector) -> tuple[float, float]:
    """Make y = F(x), unless y is empty; returns the bound on ‖x − x*‖₁ and the part of it that is due to rounding.

    ``z`` is overwritten. The sums over n nodes are exact to n·2⁻⁵³ in proportion, which the factor covers.
    """
    from inlink.rank.kernels.gather import sum_where_zero
    from inlink.rank.kernels.pagerank import contributions, power_round

    c = problem.damping
    problem.each(lambda low, high: contributions(x, problem.strengths, 1.0, z, low, high))
    jump = c * sum_where_zero(x, problem.strengths) + (1.0 - c)
    parts = problem.each(
        lambda low, high: power_round(*problem.inlinks, problem.teleport, jump, c, z, x, y, low, high)
    )
    if c == 1:
        return math.inf, math.inf
    factor = (1 + (len(x) + 100) * 4 * UNIT) / (1 - c)
    rounding = sum(part[1] for part in parts) * UNIT * factor
    return sum(part[0] for part in parts) * factor + rounding, rounding


def finish(problem: Problem, z: Vector, x: Vector) -> Vector:
    """The ranking that belongs to contributions z: dangling rows worked out, sum 1."""
    from inlink.rank.kernels.gather import sum_where_zero
    from inlink.rank.kernels.pagerank import finish_dangling

    c, degrees = problem.damping, problem.strengths
    problem.each(
        lambda low, high: finish_dangling(*problem.inlinks, degrees, problem.teleport, c, z, x, low, high)
    )
    np.maximum(x, 0, out=x)  # extrapolation may leave a value a rounding below 0
    x /= sum_where_zero(x, np.empty(0))
    return x


class Sweeper:
    """Knows in which order rows are swept, and how much of their input is new by then (``new``)."""

    def __init__(self, problem: Problem) -> None:
        from inlink.rank.kernels.pagerank import depth_first_order, scan_arcs

        self.problem = problem
        degrees, (offsets, nodes, weights) = problem.strengths, problem.inlinks
        self.loops = np.empty(len(degrees), np.uint8 if len(weights) == 0 else np.float64)
        counts = problem.each(
            lambda low, high: scan_arcs(offsets, nodes, weights, degrees, self.loops, low, high)
        )
        smaller, larger = sum(int(c[0]) for c in counts), sum(int(c[1]) for c in counts)
        self.downwards = larger > smaller
        self.new = max(smaller, larger) / max(smaller + larger, 1)
        self.order: npt.NDArray[np.uint32] | None = None
        if smaller + larger and self.new < ORDER_BELOW:
            self.downwards = False
            self.order = np.empty(len(degrees), np.uint32)
            seen = np.zeros(len(degrees), np.bool_)
            order = self.order
            ends = problem.each(
                lambda low, high: depth_first_order(offsets, nodes, degrees, seen, order, low, high)
            )
            self.ends = dict(zip(problem.bounds[:-1].tolist(), ends, strict=True))
            self.new = 0.8  # 0.72 to 0.83 on real and generated graphs

    def sweep(self, z: Vector) -> None:
        """Go over all rows of nodes that link, new values of z used at once."""
        from inlink.base.jit import on_threads
        from inlink.rank.kernels import pagerank as kernels

        sweep: Callable[..., None] = kernels.sweep
        sweep_in_order: Callable[..., None] = kernels.sweep_in_order
        p, order = self.problem, self.order
        fixed: Any = [*p.inlinks, p.strengths, self.loops, p.teleport, p.damping, z]
        if order is not None:
            p.each(lambda low, high: sweep_in_order(*fixed, order, low, np.uint64(self.ends[int(low)])))
            return
        bounds = p.bounds[::-1] if self.downwards else p.bounds
        down = self.downwards

        def work(one: np.uint64, other: np.uint64) -> None:
            sweep(*fixed, down, min(one, other), max(one, other))

        on_threads(work, bounds, p.pool)


class History:
    """The last sweeps, and what Anderson acceleration makes of them.

    With g = the sweep of x and f = g − x, the next x is g − Σ_k share_k (Δx_k + Δf_k), with the shares that
    make ‖f − Σ_k share_k Δf_k‖₂ least. The differences are float32, 8 bytes a node and sweep: they need only
    be right in proportion.
    """

    def __init__(self, z: Vector, problem: Problem) -> None:
        n = len(z)
        self.problem = problem
        self.before = z.copy()
        self.last = np.zeros(n, np.float32)
        self.moves = np.zeros((DEPTH, n), np.float32)
        self.differences = np.zeros((DEPTH, n), np.float32)
        self.gram = np.zeros((DEPTH, DEPTH))
        self.count = 0  # of sweeps observed
        self.change = math.inf

    def observe(self, z: Vector) -> tuple[float, float]:
        """Take note of a sweep; returns its L1 change and the mass of the nodes that link, both in terms of x."""
        from inlink.rank.kernels.pagerank import new_difference

        slot = (self.count - 1) % DEPTH
        p, row = self.problem, self.differences[slot]
        parts = p.each(
            lambda low, high: new_difference(z, self.before, self.last, row, p.strengths, low, high)
        )
        change = sum(part[0] for part in parts)
        if self.count > 0:
            self.gram[slot] = self.gram[:, slot] = self._dots(row)
        self.count += 1
        if change > 2 * self.change:  # it went astray: begin anew from here
            self.count = 1
        self.change = change
        return change, sum(part[1] for part in parts)

    def accelerate(self, z: Vector) -> None:
        """Turn z, just swept, into the next iterate."""
        from inlink.rank.kernels.pagerank import accelerate

        known = min(self.count - 1, DEPTH)
        share = np.zeros(DEPTH)
        if known:
            slots = [(self.count - 2 - k) % DEPTH for k in range(known)]
            share[slots] = _least_squares(self.gram[np.ix_(slots, slots)], self._dots(self.last)[slots])
        slot = np.uint64((self.count - 1) % DEPTH)
        self.problem.each(
            lambda low, high: accelerate(z, self.before, self.moves, self.differences, share, slot, low, high)
        )

    def _dots(self, vector: npt.NDArray[np.float32]) -> Vector:
        from inlink.rank.kernels.pagerank import dots

        def work(low: np.uint64, high: np.uint64) -> Vector:
            found = np.empty(DEPTH)
            dots(self.differences, vector, found, low, high)
            return found

        total: Vector = np.sum(self.problem.each(work), axis=0)
        return total


def _least_squares(gram: Vector, right: Vector) -> Vector:
    """The least-squares solution from normal equations, near-dependent directions dropped."""
    size = np.sqrt(np.diag(gram))
    size[size == 0] = 1.0
    solved: Vector = np.linalg.lstsq(gram / np.outer(size, size), right / size, rcond=1e-10)[0] / size
    return solved
