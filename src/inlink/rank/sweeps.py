"""Solve PageRank and related equations: the problem, the sweeps over it, and the bound on the result.

:mod:`inlink.rank.pagerank` has the equations, the reasons and the sources.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from inlink.base.arrays import AnyArray, Float64Array, UInt32Array
from inlink.base.threads import Threads
from inlink.graph.graph import Graph
from inlink.graph.rows import CodedRows, node_bounds
from inlink.rank.inputs import arc_weights, strengths_by_place
from inlink.rank.ranking import ROUNDOFF

if TYPE_CHECKING:
    from inlink.rank.kernels.pagerank import Equation


# The first extrapolation comes after three sweeps. Each later one waits for one more sweep, up to eight. A ranking of
# ten sweeps needs the first one early. Longer cycles help if the damping is near 1. Each sweep of a cycle takes 4 bytes
# a node.
FIRST_CYCLE, LONGEST_CYCLE = 3, 8
# If the share of new inputs is below this number, a depth-first order is faster, although its sweeps cost more.
ORDER_BELOW = 0.6
# With fewer arcs than this, threads cost more time than they save.
SMALL = 1 << 16
# A plateau is reached after this number of sweeps, and twice as many as led to the smallest value.
PLATEAU = 100


class Problem(ExitStack):
    """PageRank's equation on the inlinks of a graph, prepared for the kernels; a context manager.

    Parameters
    ----------
    graph : Graph
        The graph to rank.
    equation : Equation or CodedEquation
        Its inlinks, strengths, teleport and damping.
    threads : int
        The number of threads that sweep.
    coded : CodedRows or None
        The rows of a CodedEquation.

    Attributes
    ----------
    size : int
        The number of places that sweeps go over: that of linking nodes, or n if the rows are not split.
    kernels : module
        The loops over the arcs: :mod:`inlink.rank.kernels.pagerank`, or :mod:`inlink.rank.kernels.codedrows` with the
        same functions for compressed rows.
    each : function
        Calls ``work(low, high)`` on every chunk of places: of linking nodes only if the rows are split.
    each_node : function
        Calls ``work(low, high)`` on every chunk of nodes.
    """

    def __init__(
        self,
        graph: Graph,
        equation: Any,
        threads: int = 1,
        coded: CodedRows | None = None,
    ) -> None:
        from inlink.base.jit import chunks_by_arcs, on_threads

        super().__init__()
        self.graph = graph
        self.equation = equation
        # A chunk has at most four million arcs, so that Ctrl-C works quickly. Otherwise there are only as many chunks
        # as keep the threads busy. On cnr-2000 two threads take 19 to 22 sweeps with four chunks. With sixteen chunks,
        # whose starts interleave, they take 21 to 31 sweeps.
        chunks = max(graph.num_arcs >> 22, 1 if threads == 1 else 2 * threads)
        self.size = len(equation.strengths)
        offsets: Any
        all_offsets: Any
        if coded is not None:
            from inlink.graph.coded import CodedOffsets
            from inlink.rank.kernels import codedrows

            self.kernels: Any = codedrows
            offsets = CodedOffsets(coded, self.size + 1)
            all_offsets = CodedOffsets(coded, graph.num_nodes + 1)
        else:
            from inlink.rank.kernels import pagerank

            self.kernels = pagerank
            all_offsets = equation.offsets
            offsets = all_offsets[: self.size + 1]
        self.bounds = chunks_by_arcs(offsets, chunks)
        # A round needs 4 bytes for each node of a chunk, so these chunks are no larger than they have to be.
        self.node_bounds = node_bounds(all_offsets, equation.linking, max(chunks, graph.num_nodes >> 18))
        pool = self.enter_context(Threads(threads)) if threads > 1 else None
        self.each = partial(on_threads, bounds=self.bounds, pool=pool)
        self.each_node = partial(on_threads, bounds=self.node_bounds, pool=pool)


def linear_problem(
    graph: Graph, teleport: Float64Array, damping: float, weighted: bool, threads: int | None
) -> Problem:
    """Return the problem of ranking a graph. Small graphs get one thread."""
    from inlink.base.jit import num_threads

    count, numbers = num_threads(threads), (strengths_by_place(graph, weighted), teleport, damping)
    # A graph without arcs has no linking nodes, and then the rows of all nodes are swept.
    coded = graph.coded_in_rows if graph.num_arcs and not weighted else None
    equation: Any
    if coded is not None:
        from inlink.rank.kernels.codedrows import CodedEquation

        equation = CodedEquation(*coded, *numbers)
    else:
        from inlink.rank.kernels.pagerank import Equation

        rows = graph.split_in_rows
        equation = Equation(rows.offsets, rows.nodes, arc_weights(rows, weighted), rows.linking, *numbers)
    return Problem(graph, equation, count if graph.num_arcs >= SMALL else 1, coded)


def jacobi_sweep(problem: Problem, x: Float64Array, z: Float64Array, y: Float64Array) -> tuple[float, float]:
    """Write y = F(x), unless y is empty. Return the bound on ‖x − x*‖₁ and the part of it that is due to rounding.

    ``z``, float64[size], is overwritten. The relative error of the sums over n nodes is at most n·2⁻⁵³, which the
    factor covers.
    """
    from inlink.rank.kernels.pagerank import contributions, dangling_mass

    equation, power_round = problem.equation, problem.kernels.power_round
    c = equation.damping
    problem.each(partial(contributions, equation, x, 1.0, z))
    jump = c * dangling_mass(equation, np.uint64(problem.graph.num_nodes), x) + (1.0 - c)
    parts = problem.each_node(partial(power_round, equation, jump, z, x, y))
    return error_bound(parts, len(x), c)


def error_bound(parts: Sequence[tuple[float, float]], num_nodes: int, damping: float) -> tuple[float, float]:
    """Return the bound on ‖x − x*‖₁ and its part that is due to rounding, from the results of ``power_round``."""
    if damping == 1:
        return math.inf, math.inf
    factor = (1 + (num_nodes + 100) * 4 * ROUNDOFF) / (1 - damping)
    change, roundings = map(sum, zip(*parts, strict=True))
    rounding = roundings * ROUNDOFF * factor
    return change * factor + rounding, rounding


def finish(problem: Problem, z: Float64Array, x: Float64Array) -> float:
    """Write the ranking of contributions z to x, float64[n]: dangling rows are computed, and the sum is 1.

    Return the sum before.
    """
    from inlink.rank.kernels.gather import compensated_sum

    problem.each_node(partial(problem.kernels.finish_dangling, problem.equation, z, x))
    # Extrapolation may leave a value slightly below 0.
    np.maximum(x, 0, out=x)
    total = float(compensated_sum(x))
    x /= total
    return total


def certified(problem: Problem, z: AnyArray) -> tuple[Float64Array, float, float]:
    """Return the ranking after one more round from contributions z, the bound on its error, and its rounding part.

    Let x = z · strength for nodes with outlinks, y = c·Pᵀx + J·v for all nodes, and T = Σ y. For any J, F(y/T) − y/T
    is (c·Pᵀ(y − x) − c·d·v) / T, where y − x and its sum d are over the nodes with outlinks only. J is chosen so that
    d is about 0, which removes a common factor of x. Negative contributions, which extrapolation may leave,
    count 0.
    """
    from inlink.rank.kernels.gather import compensated_sum
    from inlink.rank.kernels.pagerank import Places, settle

    equation, y = problem.equation, np.empty(problem.graph.num_nodes)
    c, teleport, places = equation.damping, equation.teleport, Places(*equation[-4:-1])
    np.maximum(z, 0, out=z)
    parts = problem.each_node(partial(problem.kernels.power_round, equation, 1.0 - c, z, np.empty(0), y))
    drift, roundings = map(sum, zip(*parts, strict=True))
    linked = equation.strengths != 0
    if len(teleport) == 1:
        share = float(teleport[0]) * int(np.count_nonzero(linked))
    else:
        share = float((teleport[equation.linking] if len(equation.linking) else teleport[linked]).sum())
    # If nearly all jumps lead to dangling nodes, d = 0 would need a huge J. So J stays near 1 − c.
    shift = min(max(-drift / share, (c - 1.0) / 2), (1.0 - c) / 2) if share > 0 else 0.0
    total = float(compensated_sum(y)) + shift
    parts = problem.each_node(partial(settle, places, z, y, shift, total))
    change, left = map(sum, zip(*parts, strict=True))
    return y, *error_bound([(c * (change + abs(left)) / total, roundings / total)], len(y), c)


class Sweeper:
    """Sweeps over the rows, in an order in which a large share (``new``) of a row's inputs is already new."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        equation, n, kernels = problem.equation, problem.size, problem.kernels
        if len(equation.linking) and len(equation.teleport) > 1:
            equation = equation._replace(teleport=equation.teleport[equation.linking])
        self.equation = equation
        self.loops = np.empty(n, np.uint8 if len(equation.weights) == 0 else np.float64)
        smaller, larger = np.sum(
            problem.each(partial(kernels.scan_arcs, equation, self.loops)), axis=0
        ).tolist()
        self.downwards = larger > smaller
        self.new = max(smaller, larger) / max(smaller + larger, 1)
        self.order: UInt32Array | None = None
        if smaller + larger and self.new < ORDER_BELOW:
            self.downwards = False
            self.order = order = np.empty(n, np.uint32)
            seen = np.zeros(n, np.bool_)
            ends = problem.each(partial(kernels.depth_first_order, equation, seen, order))
            self.ends = dict(zip(problem.bounds[:-1].tolist(), ends, strict=True))
            # On real and generated graphs it is 0.72 to 0.83.
            self.new = 0.8

    def sweep(self, z: AnyArray) -> None:
        """Solve the rows of all nodes that have outlinks; new values of z are used at once."""
        problem, order, down = self.problem, self.order, self.downwards
        vectors = self.equation, self.loops, z

        def work(begin: np.uint64, end: np.uint64) -> None:
            low, high = min(begin, end), max(begin, end)
            if order is None:
                problem.kernels.sweep(*vectors, down, low, high)
            else:
                problem.kernels.sweep_in_order(*vectors, order, low, np.uint64(self.ends[int(low)]))

        # Downwards, the chunks and the bounds of each come in falling order.
        problem.each(work, bounds=problem.bounds[::-1] if down else problem.bounds)


class Plateau:
    """Detects that a value, such as an error or a change, has stopped falling."""

    def __init__(self) -> None:
        self._best, self._best_at = math.inf, 0

    def reached(self, value: float, done: int) -> bool:
        """Record the value after ``done`` sweeps; return whether it no longer falls."""
        if value < self._best:
            self._best, self._best_at = value, done
        return done >= 2 * self._best_at + PLATEAU


class Vectors(Protocol):
    """Vectors by place, and the equation that they belong to."""

    equation: "Equation"

    def each(self, work: Callable[[np.uint64, np.uint64], Any]) -> list[Any]:
        """Call ``work(low, high)`` on every chunk of places."""
        ...


class LastSweeps:
    """The last sweeps, from which :meth:`accelerate` extrapolates.

    With k sweeps since the last extrapolation, and f_j the change that sweep j made, the next iterate is
    Σ share_j z_j of their results z_j. The shares have sum 1, and minimise ‖Σ share_j f_j‖₂. The changes are float32,
    4 bytes a node and sweep: only their proportions matter.
    """

    def __init__(self, z: AnyArray, problem: Vectors) -> None:
        self.problem = problem
        self.before = z.copy()
        # The system provides the memory of a row when it is first written.
        self.differences = np.empty((LONGEST_CYCLE, len(z)), np.float32)
        # The number of sweeps since the last extrapolation, and the number that the next one needs.
        self.count, self.cycle = 0, FIRST_CYCLE
        self.change = math.inf

    def observe(self, z: AnyArray) -> tuple[float, float]:
        """Record a sweep. Return its L1 change and the mass of the nodes with outlinks, both in terms of x."""
        from inlink.rank.kernels.pagerank import observe

        if self.count == self.cycle:
            # The caller did not extrapolate. There is no room for more sweeps, so begin again.
            self.count = 0
        vectors, strengths = (z, self.before, self.differences), self.problem.equation.strengths
        parts = self.problem.each(partial(observe, *vectors, np.uint64(self.count), strengths))
        change, mass = map(sum, zip(*parts, strict=True))
        # The change grows only if the equation has changed. Earlier sweeps belong to the old equation.
        if self.count and change > 2 * self.change:
            self.differences[0] = self.differences[self.count]
            self.count = 0
        self.count += 1
        self.change = change
        return change, mass

    def widen(self, z: AnyArray) -> Float64Array:
        """Return z as float64, for more accurate sweeps."""
        self.before = z.astype(np.float64)
        return self.before.copy()

    def accelerate(self, z: AnyArray) -> None:
        """Replace z, the result of a sweep, by the next iterate."""
        from inlink.rank.kernels.pagerank import difference_products, extrapolate

        if self.count < self.cycle:
            return
        count = self.count

        def work(low: np.uint64, high: np.uint64) -> Float64Array:
            sums = np.zeros((count, count))
            difference_products(self.differences, np.uint64(count), sums, low, high)
            return sums

        products = np.sum(self.problem.each(work), axis=0)
        products = np.tril(products) + np.tril(products, -1).T
        # Minimise ‖f_k − Σ_j weight_j (f_{j+1} − f_j)‖₂. Then z −= Σ_j weight_j f_{j+1}.
        steps = np.diff(np.eye(count), axis=0)
        share = np.append(0.0, _least_squares(steps @ products @ steps.T, steps @ products[-1]))
        self.problem.each(partial(extrapolate, z, self.before, self.differences, share))
        self.count, self.cycle = 0, min(self.cycle + 1, LONGEST_CYCLE)


def _least_squares(gram: Float64Array, right: Float64Array) -> Float64Array:
    """Return the least-squares solution of normal equations. Nearly dependent directions are dropped."""
    size = np.sqrt(np.diag(gram))
    size[size == 0] = 1.0
    solved: Float64Array = np.linalg.lstsq(gram / np.outer(size, size), right / size, rcond=1e-10)[0] / size
    return solved
