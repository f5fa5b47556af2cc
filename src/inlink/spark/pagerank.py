"""PageRank of a graph whose rows are spread over a Spark cluster.

The driver holds the vectors, and blocks of rows lie in the executors' memory or on their disks. In a round the driver
broadcasts a vector, each task runs the kernels of :func:`inlink.pagerank` on a block, and returns the new values of its
nodes. A sweep is Gauss–Seidel within a block, up and down, and Jacobi between blocks. The driver accelerates sweeps as
:func:`inlink.pagerank` does, by extrapolation. The error bound comes from a separate round on the vector that is
returned.
"""

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from pyspark import Broadcast, StorageLevel
from pyspark.sql import DataFrame, SparkSession

from inlink.base.arrays import Float64Array
from inlink.base.declare import Parameter
from inlink.base.jit import U0
from inlink.base.progress import track
from inlink.errors import OutputError, ParameterError
from inlink.graph.graph import Graph
from inlink.graph.names import MAX_NODES
from inlink.rank.kernels.gather import compensated_sum
from inlink.rank.kernels.pagerank import (
    Equation,
    contributions,
    dangling_mass,
    finish_dangling,
    power_round,
    scan_arcs,
    sweep,
)
from inlink.rank.pagerank import Solution, check_solution, first_vectors, pagerank, ranking_of_solution
from inlink.rank.parameters import Damping, MaxIter, Method, Start, Teleport, Tolerance, Weighted
from inlink.rank.ranking import ROUNDOFF, Ranking, timed
from inlink.rank.sweeps import LastSweeps, Plateau, error_bound
from inlink.spark.blocks import Block, Rest, unpack
from inlink.spark.rows import FolderRows, TableRows
from inlink.spark.start import collected, spark_errors
from inlink.spark.start import session as started

# Arcs of a block, about.
_ARCS = 1 << 22


Count = Annotated[int | None, Parameter(at_least=1, at_most=MAX_NODES, none="the default")]


@timed
@spark_errors()
def rank(
    graph: "Graph | str | os.PathLike[str] | DataFrame",
    *,
    session: SparkSession | None = None,
    num_nodes: Annotated[Count, Parameter("For a table of arcs: the number of nodes.")] = None,
    blocks: Annotated[Count, Parameter("Number of blocks of rows. Default: by arcs and processors.")] = None,
    damping: Damping = 0.85,
    personalization: Teleport = None,
    tol: Tolerance = 1e-6,
    max_iter: MaxIter = None,
    method: Method = "gauss-seidel",
    start: Start = None,
    weighted: Weighted = None,
) -> Ranking:
    """PageRank with a bound on its error, computed on a Spark cluster.

    Parameters
    ----------
    graph : Graph, path-like or DataFrame
        A graph's folder, which driver and executors share; or a table of arcs. Its columns ``source`` and ``target``
        are node numbers from 0, integers, and ``weight`` is a number above 0. Equal arcs count once, and their weights
        are added up.
    session : SparkSession or None
        None takes the active session, or starts one: see :func:`inlink.spark.session`.
    num_nodes : int or None
        The number of nodes n of a table. None is one more than the largest number in it.
    blocks : int or None
        The number of blocks, which is that of tasks in a round. None is twice the number of processors, or more if a
        block had more than four million arcs.
    damping, personalization, tol, max_iter, method, start, weighted
        As in :func:`inlink.pagerank`. `damping` is below 1.

    Returns
    -------
    Ranking
        As of :func:`inlink.pagerank`; ``iterations`` is the number of sweeps. ``method="power"`` has the same bits as
        there. The driver needs 64 bytes for each linking node and 32 for each node, and each process of an executor 8
        bytes for each node while the bound is computed.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is out of range, or the table has other columns, or numbers that are no nodes.
    inlink.errors.FolderError
        If the folder is no graph, or an executor does not see it.
    inlink.errors.InlinkError
        If tasks failed as often as Spark tries them.

    Examples
    --------
    >>> import inlink.spark
    >>> inlink.spark.rank("release", tol=1e-9).save("release")  # doctest: +SKIP
    """
    tol = check_solution(damping, tol, max_iter, method)
    spark = session or started()
    rows: FolderRows | TableRows
    if isinstance(graph, DataFrame):
        rows = TableRows(spark, graph, num_nodes, weighted)
    elif num_nodes is not None:
        raise ParameterError("`num_nodes` applies only to a table of arcs")
    else:
        rows = FolderRows(spark, graph if isinstance(graph, Graph) else Graph.open(graph), weighted)
    whole, n = rows.graph, rows.graph.num_nodes
    if not rows.num_arcs:
        return pagerank(
            whole, damping=damping, personalization=personalization, tol=tol, max_iter=max_iter, method=method,
            start=start,
        )  # fmt: skip
    teleport, first = first_vectors(whole, personalization, start)
    count = blocks or max(2 * spark.sparkContext.defaultParallelism, rows.num_arcs // _ARCS)
    rest = Rest(*rows.strengths(), teleport, float(damping))
    limit = 10_000 if max_iter is None else int(max_iter)
    with Rounds(spark, rows, rest, min(count, n)) as rounds:
        solution = (power if method == "power" else gauss_seidel)(rounds, first, tol, limit)
    parameters = {"damping": float(damping), "tol": tol, "max_iter": max_iter, "method": method}
    parameters |= {"personalized": personalization is not None, "weighted": rows.weighted}
    return ranking_of_solution(whole, solution, parameters)


# -- the rounds ---------------------------------------------------------------------------------------------


class Rounds:
    """Blocks that are kept in the cluster, and rounds over them; a context manager.

    Parameters
    ----------
    spark : SparkSession
        The cluster.
    rows : FolderRows or TableRows
        The graph.
    rest : Rest
        The parameters that all blocks share.
    count : int
        The number of blocks, about.

    Attributes
    ----------
    equation : Equation
        The equation without rows.
    num_nodes, size : int
        The number of nodes, and of linking nodes.
    """

    def __init__(self, spark: SparkSession, rows: FolderRows | TableRows, rest: Rest, count: int) -> None:
        self._context = spark.sparkContext
        self.num_nodes, self.size = rows.graph.num_nodes, len(rest.linking)
        # Only the length of the offsets is used.
        offsets = np.empty(self.num_nodes + 1, np.uint64)
        self.equation = Equation(offsets, np.empty(0, np.uint32), np.empty(0), *rest)
        self._rest = self._context.broadcast(rest)
        self._blocks = rows.blocks(self._rest, count)

    def __enter__(self) -> "Rounds":
        self._blocks.persist(StorageLevel.MEMORY_AND_DISK)
        return self

    def __exit__(self, *_: object) -> None:
        self._blocks.unpersist()
        self._rest.destroy()

    def each(self, work: Callable[[np.uint64, np.uint64], Any]) -> list[Any]:
        """Call ``work(low, high)`` for the whole vector, on the driver."""
        return [work(U0, np.uint64(self.size))]

    def _round(
        self, step: Callable[..., "_Result"], length: int, *arguments: Any
    ) -> tuple[Float64Array, list[Any]]:
        """Do a step on each block. Return the vector of `length` that its results make, and its sums."""
        values = self._context.broadcast(arguments)
        try:
            rows = collected(self._blocks.mapInArrow(partial(_in_task, step, values), _RESULT))
        finally:
            values.destroy()
        vector = np.empty(length)
        sums = []
        count = 0
        for row in rows:
            part = np.frombuffer(bytes(row.part), np.float64)
            vector[row.low : row.low + len(part)] = part
            count += len(part)
            sums.append((row.change, row.roundings))
        if count != length or sum(row.nodes for row in rows) != self.num_nodes:
            raise OutputError(
                f"a round returned {count:,} of {length:,} values: blocks are missing. Rank again"
            )
        return vector, sums

    def sweep(self, z: Float64Array) -> Float64Array:
        """Two Gauss–Seidel sweeps in each block. Return the new contributions, float64[l]."""
        return self._round(_sweep, self.size, z)[0]

    def finish(self, z: Float64Array) -> Float64Array:
        """The ranking of contributions, float64[n], whose sum is 1."""
        x = self._round(_finish, self.num_nodes, z)[0]
        # Extrapolation may leave a value slightly below 0.
        np.maximum(x, 0, out=x)
        x /= compensated_sum(x)
        return x

    def apply(self, x: Float64Array, want: bool) -> tuple[Float64Array, float, float]:
        """F(x), float64[n], empty unless it is wanted; the bound on ‖x − x*‖₁; and the part of it due to rounding."""
        equation = self.equation
        z = np.empty(self.size)
        contributions(equation, x, 1.0, z, U0, np.uint64(self.size))
        jump = equation.damping * dangling_mass(equation, np.uint64(self.num_nodes), x) + (
            1.0 - equation.damping
        )
        y, sums = self._round(_apply, self.num_nodes if want else 0, z, x, jump, want)
        return y, *error_bound(sums, len(x), equation.damping)


_RESULT = "low long, part binary, change double, roundings double, nodes long"
_Result = tuple[int, Float64Array, float, float]


def _in_task(
    step: Callable[..., _Result], values: "Broadcast[tuple[Any, ...]]", batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Do a step on each block that comes."""
    for batch in batches:
        for row in range(batch.num_rows):
            block = unpack(batch, row)
            low, part, change, roundings = step(block, *values.value)
            columns = {"low": [low], "part": [part.tobytes()], "change": [change], "roundings": [roundings]}
            yield pa.RecordBatch.from_pydict(columns | {"nodes": [block.size]})


def _sweep(block: Block, z: Float64Array) -> _Result:
    equation, linked = block.equation, np.uint64(len(block.equation.strengths))
    if len(equation.teleport) > 1:
        equation = equation._replace(teleport=equation.teleport[equation.linking])
    local = block.local(z)
    loops = np.empty(len(equation.strengths), np.uint8 if len(equation.weights) == 0 else np.float64)
    scan_arcs(equation, loops, U0, linked)
    for down in (False, True):
        sweep(equation, loops, local, down, U0, linked)
    return block.first, local[: int(linked)], 0.0, 0.0


def _finish(block: Block, z: Float64Array) -> _Result:
    x = np.empty(block.size)
    finish_dangling(block.equation, block.local(z), x, U0, np.uint64(block.size))
    return block.low, x, 0.0, 0.0


def _apply(block: Block, z: Float64Array, x: Float64Array, jump: float, want: bool) -> _Result:
    own = x[block.low : block.low + block.size].copy()
    y = np.empty(block.size if want else 0)
    sums = power_round(block.equation, jump, block.local(z), own, y, U0, np.uint64(block.size))
    return block.low if want else 0, y, *sums


def power(rounds: Rounds, start: Float64Array, tol: float | None, limit: int) -> Solution:
    """Solve the equation by power iteration. ``start`` is a vector by node, or one number for all nodes."""
    x = np.broadcast_to(start, rounds.num_nodes).copy()
    plateau = Plateau()
    with track("PageRank", None if tol is not None else limit, "rounds") as task:
        for done in range(limit):
            y, bound, rounding = rounds.apply(x, True)
            stuck = plateau.reached(bound, done)
            if tol is not None and (bound <= tol or bound <= 2 * rounding or stuck):
                return x, done, bound
            x = y
            task.advance(1, f"error ≤ {bound:.1e}")
    return x, limit, rounds.apply(x, False)[1]


def gauss_seidel(rounds: Rounds, start: Float64Array, tol: float | None, limit: int) -> Solution:
    """Solve the equation by accelerated sweeps. ``start`` is a vector by node, or one number for all nodes."""
    equation, c = rounds.equation, rounds.equation.damping
    if c == 0 or limit == 0:
        x = np.broadcast_to(start if c else equation.teleport, rounds.num_nodes).copy()
        return x, 0, rounds.apply(x, False)[1]
    z = np.empty(rounds.size)
    lost = dangling_mass(equation, np.uint64(rounds.num_nodes), start)
    contributions(equation, start, (1 - c) / (c * lost + 1 - c), z, U0, np.uint64(rounds.size))
    history = LastSweeps(z, rounds)
    # The error after a change of 1, about. The first bound that is computed corrects it.
    ratio, plateau, done = c, Plateau(), 0
    with track("PageRank", None if tol is not None else limit, "sweeps") as task:
        while True:
            z = rounds.sweep(z)
            done += 1
            change, mass = history.observe(z)
            total = 1 - c + c * mass
            stuck = plateau.reached(change / total, done) or change <= 32 * ROUNDOFF * total
            estimate = ratio * change / (total * (1 - c))
            task.advance(1, f"error about {estimate:.1e}")
            last = done >= limit or stuck
            if (last and (tol is not None or done >= limit)) or (tol is not None and estimate <= tol):
                x = rounds.finish(z)
                _, bound, rounding = rounds.apply(x, False)
                if last or tol is None or bound <= max(tol, 2 * rounding):
                    return x, done, bound
                ratio = 1.05 * (bound - rounding) * total * (1 - c) / change if change else 0.5
            history.accelerate(z)
