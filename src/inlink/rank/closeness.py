"""Closeness and harmonic centrality, exact.

Let d(u, v) be the number of arcs on a shortest path from u to v, R the set of nodes u ≠ v that reach v, and r = |R| ::

    closeness(v) = r / Σ_{u in R} d(u, v) · r / (n − 1)                                                    (1)
    harmonic(v)  = Σ_{u in R} 1 / d(u, v)                                                                  (2)

(1) is Freeman's closeness ("Centrality in social networks: conceptual clarification", Social Networks 1978)
within R, times R's share of the graph, which is the factor of Wasserman & Faust (*Social Network Analysis*,
1994, p. 201). Without this factor a page with a single inlink would come first; ``wf_improved=False`` omits
it. (2) needs no such factor, because nodes that cannot reach v add 0 (Boldi & Vigna, "Axioms for centrality", Internet
Mathematics 2014). As in NetworkX, both use inlinks; ``direction="out"`` uses the distances d(v,
u) instead. A node that no node reaches has 0.

A breadth-first search runs from every page, 512 searches at once (:mod:`inlink.rank.kernels.paths`). Distances and
their counts are integers, and 1/d is a fixed-point number of 64 bits. So the sums do not depend on their order.
"""

import time
from typing import TYPE_CHECKING, Literal

import numpy as np

from inlink.base.arrays import Float64Array, UInt64Array
from inlink.base.progress import track
from inlink.graph.graph import Graph
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.parameters import check_choice, check_parameters
from inlink.rank.ranking import Ranking

if TYPE_CHECKING:
    from inlink.rank.kernels.paths import DistanceSums

__all__ = ["closeness", "harmonic"]

Direction = Literal["in", "out"]
UNIT = 2.0**-53


def closeness(
    graph: GraphLike, *, direction: Direction = "in", wf_improved: bool = True, threads: int | None = None
) -> Ranking:
    """The inverse of the mean distance to a node from the nodes that reach it.

    Parameters
    ----------
    graph : Graph, SciPy sparse matrix or array, or NetworkX graph
        In a matrix A[i, j] is the arc i → j. Arc weights are no lengths: each arc is one step.
    direction : {"in", "out"}
        Whether distances are taken to the node, as NetworkX does, or from it.
    wf_improved : bool
        Whether to multiply by the share of the other nodes that reach the node.
    threads : int or None
        None uses all processors. The result has the same bits with any number of threads.

    Returns
    -------
    Ranking
        float64[n], between 0 and 1. Exact; ``error_bound`` bounds the rounding error, in L1.

    Raises
    ------
    inlink.errors.ParameterError
        If the direction is neither of these, or the number of threads is not above 0.

    Examples
    --------
    >>> from inlink.rank.closeness import closeness
    >>> from inlink import Graph
    >>> closeness(Graph.from_arcs([(0, 1), (1, 2)])).values.round(3).tolist()
    [0.0, 0.5, 0.667]
    """
    began = time.perf_counter()
    graph = as_graph(graph)
    check_parameters(wf_improved=wf_improved)
    sums, _ = _sums(graph, direction, threads, "closeness")
    values = sums.reached.astype(np.float64) / np.maximum(sums.far, 1)
    if wf_improved:
        values *= sums.reached / max(graph.num_nodes - 1, 1)
    return Ranking(
        values,
        algorithm="closeness",
        names=graph.names,
        error_bound=float(5 * UNIT * values.sum()),
        parameters={"direction": direction, "wf_improved": wf_improved},
        graph_uuid=graph.uuid,
        elapsed=time.perf_counter() - began,
    )


def harmonic(graph: GraphLike, *, direction: Direction = "in", threads: int | None = None) -> Ranking:
    """The sum of the inverse distances from all other nodes to a node.

    Parameters
    ----------
    graph : Graph, SciPy sparse matrix or array, or NetworkX graph
        In a matrix A[i, j] is the arc i → j. Arc weights are no lengths: each arc is one step.
    direction : {"in", "out"}
        Whether distances are taken to the node, as NetworkX does, or from it.
    threads : int or None
        None uses all processors. The result has the same bits with any number of threads.

    Returns
    -------
    Ranking
        float64[n], between 0 and n − 1. Exact; ``error_bound`` bounds the rounding error, in L1.

    Raises
    ------
    inlink.errors.ParameterError
        If the direction is neither of these, or the number of threads is not above 0.

    Examples
    --------
    >>> from inlink.rank.closeness import harmonic
    >>> from inlink import Graph
    >>> harmonic(Graph.from_arcs([(0, 1), (1, 2)])).values.tolist()
    [0.0, 1.0, 1.5]
    """
    began = time.perf_counter()
    graph = as_graph(graph)
    sums, unit = _sums(graph, direction, threads, "harmonic centrality")
    values: Float64Array = sums.inverse.astype(np.float64) / unit
    return Ranking(
        values,
        algorithm="harmonic",
        names=graph.names,
        error_bound=float(sums.reached.sum() / (2 * unit) + 4 * UNIT * values.sum()),
        parameters={"direction": direction},
        graph_uuid=graph.uuid,
        elapsed=time.perf_counter() - began,
    )


def _sums(graph: Graph, direction: str, threads: int | None, label: str) -> tuple["DistanceSums", float]:
    """Return the sums of distances to or from each node, and the unit of the inverse distances."""
    from inlink.base.jit import num_threads
    from inlink.rank.kernels.blocks import each_block
    from inlink.rank.kernels.paths import SOURCES, WORDS, DistanceSums, Search, distances_from

    check_choice("direction", direction, ("in", "out"))
    check_parameters(threads=threads)
    n = graph.num_nodes
    rows = graph.out_rows if direction == "in" else graph.in_rows
    # The sum of n − 1 units fits in 64 bits.
    unit = np.uint64(1 << (64 - max(n, 1).bit_length()))
    all_sums: list[UInt64Array] = []

    def scratch() -> tuple[Search, DistanceSums]:
        # Another thread may append between two statements here, so the last entry need not be this thread's.
        sums = np.zeros((3, n), np.uint64)
        all_sums.append(sums)
        bits = np.zeros((3, n, WORDS), np.uint64)
        return Search(bits, np.empty(n, np.uint32), np.empty(n, np.uint32)), DistanceSums(*sums)

    def work(own: tuple[Search, DistanceSums], block: int) -> int:
        first, last = block * SOURCES, min((block + 1) * SOURCES, n)
        distances_from(rows.offsets, rows.nodes, np.uint64(first), np.uint64(last), *own, unit)
        return last - first

    with track(label, n, "sources") as task:
        for done in each_block(-(-n // SOURCES), num_threads(threads), scratch, work):
            task.advance(done)
    total = np.zeros((3, n), np.uint64)
    for sums in all_sums:
        total += sums
    return DistanceSums(*total), float(unit)
