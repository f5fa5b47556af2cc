"""Closeness and harmonic centrality, exact or estimated.

Let d(u, v) be the number of arcs on a shortest path from u to v, R the set of nodes u ≠ v that reach v, and r = |R| ::

    closeness(v) = r / Σ_{u in R} d(u, v) · r / (n − 1)                                                    (1)
    harmonic(v)  = Σ_{u in R} 1 / d(u, v)                                                                  (2)

(1) is Freeman's closeness ("Centrality in social networks: conceptual clarification", Social Networks 1978)
within R, times R's share of the graph, which is the factor of Wasserman & Faust (*Social Network Analysis*,
1994, p. 201). Without this factor a page with a single inlink would come first; ``wf_improved=False`` omits
it. (2) needs no such factor, because nodes that cannot reach v add 0 (Boldi & Vigna, "Axioms for centrality", Internet
Mathematics 2014). As in NetworkX, both use inlinks; ``direction="out"`` uses the distances d(v,
u) instead. A node that no node reaches has 0.

**Exact**: A breadth-first search runs from every page, 512 searches at once (:mod:`inlink.rank.kernels.paths`).
Distances and their counts are integers, and 1/d is a fixed-point number of 64 bits. So the sums do not depend on their
order.

**The best k, exact**: see :mod:`inlink.rank.closest`.

**Estimated**: HyperBall counts with random hashes how many nodes are within t steps of each node
(:mod:`inlink.rank.hyperball`). A step is a pass over the arcs. There are as many steps as the longest shortest path has
arcs, and the last ones touch only the nodes that still change.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from inlink.base.arrays import Float64Array, UInt64Array
from inlink.base.declare import Parameter
from inlink.base.progress import track
from inlink.base.table import counted
from inlink.errors import ParameterError
from inlink.graph.graph import Graph
from inlink.graph.interop import GraphLike, as_graph
from inlink.graph.rows import Rows, SplitRows
from inlink.rank.inputs import VECTORS, require_vectors
from inlink.rank.parameters import Seed, ThreadCount
from inlink.rank.ranking import ROUNDOFF, Ranking, ranking_of, timed

if TYPE_CHECKING:
    from inlink.rank.kernels.paths import DistanceSums


Direction = Literal["in", "out"]
Distances = Annotated[Direction, Parameter("Measure distances to the node (in) or from it (out).")]
Exact = Annotated[
    bool | None,
    Parameter(
        "Search from every node, or estimate by HyperBall.",
        none="exact up to 100,000 nodes",
        option="--exact/--estimate",
    ),
]
Log2m = Annotated[
    int | None,
    Parameter(
        "Estimate with 2^LOG2M registers a counter, from 4 to 16; 8 if not given.",
        at_least=4,
        at_most=16,
        none="the default",
    ),
]
Runs = Annotated[
    int, Parameter("Return the mean of this number of estimates, and report their spread.", at_least=1)
]

Top = Annotated[
    int | None,
    Parameter(
        "Compute the exact values of this number of best nodes, and upper bounds of the others.",
        at_least=1,
        none="all nodes",
    ),
]

EXACT_NODES = 100_000
"""The largest graph that is searched from every node if neither ``exact`` nor ``log2m`` says otherwise."""

LOG2M = 8
"""Log₂ of the number of registers of an estimate's counters, if not given."""


@timed
def closeness(
    graph: GraphLike,
    *,
    direction: Distances = "in",
    wf_improved: Annotated[bool, Parameter()] = True,
    exact: Exact = None,
    top: Top = None,
    log2m: Log2m = None,
    runs: Runs = 1,
    seed: Seed = 0,
    threads: ThreadCount = None,
) -> Ranking:
    """The inverse of the mean distance to a node from the nodes that reach it.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        In a matrix A[i, j] is the arc i → j. Arc weights are no lengths: each arc is one step.
    direction : {"in", "out"}
        "in": distances to the node, as in NetworkX. "out": distances from the node.
    wf_improved : bool
        Whether to multiply by the share of the other nodes that reach the node.
    exact, top, log2m, runs, seed, threads
        As in :func:`harmonic`.

    Returns
    -------
    Ranking
        float64[n], at least 0, and at most 1 if exact. Errors are reported as by :func:`harmonic`.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is out of range, ``exact`` is given together with ``log2m``, or ``top`` is given for an estimate.

    Examples
    --------
    >>> from inlink.rank.closeness import closeness
    >>> from inlink import Graph
    >>> closeness(Graph.from_arcs([(0, 1), (1, 2)])).values.round(3).tolist()
    [0.0, 0.5, 0.667]
    """

    def values_of(far: Float64Array, reached: Float64Array) -> Float64Array:
        # Each distance is at least 1, but an estimate of their sum may be smaller.
        values = reached / np.maximum(np.maximum(far, reached), 1)
        return values * (reached / max(len(reached) - 1, 1)) if wf_improved else values

    parameters = {"direction": direction, "wf_improved": wf_improved}
    return _ranking(graph, "closeness", parameters, values_of, exact, top, log2m, runs, seed, threads)


@timed
def harmonic(
    graph: GraphLike,
    *,
    direction: Distances = "in",
    exact: Exact = None,
    top: Top = None,
    log2m: Log2m = None,
    runs: Runs = 1,
    seed: Seed = 0,
    threads: ThreadCount = None,
) -> Ranking:
    """The sum of the inverse distances from all other nodes to a node.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        In a matrix A[i, j] is the arc i → j. Arc weights are no lengths: each arc is one step.
    direction : {"in", "out"}
        "in": distances to the node, as in NetworkX. "out": distances from the node.
    exact : bool or None
        Whether to search from every node, in about n · m steps, or to estimate by HyperBall, in about 50 passes over
        the arcs. None searches if ``log2m`` is None and n is at most 100,000.
    top : int or None
        The number of best nodes whose values are exact: the first places of the ranking. The values of the other nodes
        are upper bounds, all below those of the best. This takes a small part of the time of all values where
        most nodes are a few steps apart, and about the same time where paths are long. None: all values.
    log2m : int or None
        Log₂ of the number of registers of HyperBall's counters, from 4 to 16. The relative standard error is 1.06/√m;
        2m bytes are needed for each node with inlinks and outlinks. None is 8 for an estimate: an error of 6.6%.
    runs : int
        The number of estimates with different hashes, whose mean is returned.
    seed : int
        Seed of the hashes, at least 0.
    threads : int or None
        None uses all processors. The result has the same bits with any number of threads.

    Returns
    -------
    Ranking
        float64[n], at least 0, and at most n − 1 if exact. If exact, ``error_bound`` bounds the rounding error, in L1.
        With ``top``, ``error_bound`` is None, ``parameters["top_error"]`` bounds the rounding error of an exact value,
        and :meth:`~inlink.rank.ranking.Ranking.places` says which of the first places are certain.
        An estimate has no bound: ``parameters["relative_error"]`` is the standard error of a value by theory,
        and ``parameters["spread"]`` is that by the spread of the runs (None with one run). ``note`` reports both,
        ``iterations`` is the largest number of steps of a run, and ``converged`` is False.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is out of range, ``exact`` is given together with ``log2m``, or ``top`` is given for an estimate.

    Examples
    --------
    >>> from inlink.rank.closeness import harmonic
    >>> from inlink import Graph
    >>> harmonic(Graph.from_arcs([(0, 1), (1, 2)])).values.tolist()
    [0.0, 1.0, 1.5]
    """
    parameters = {"direction": direction}
    return _ranking(
        graph, "harmonic", parameters, lambda sums, _: sums, exact, top, log2m, runs, seed, threads
    )


def _ranking(
    given_graph: GraphLike,
    algorithm: str,
    parameters: dict[str, Any],
    values_of: Callable[[Float64Array, Float64Array], Float64Array],
    exact: bool | None,
    top: int | None,
    log2m: int | None,
    runs: int,
    seed: int,
    threads: int | None,
) -> Ranking:
    """Return a ranking by the sums of distances, or of inverse distances for harmonic centrality."""
    graph = as_graph(given_graph)
    if exact and log2m is not None:
        raise ParameterError("`log2m` applies only to estimates: give `exact` or `log2m`, not both")
    if top is not None and (exact is False or log2m is not None):
        raise ParameterError("`top` asks for exact values: leave out `log2m`, and `exact=False`")
    inwards, inverse = parameters["direction"] == "in", algorithm == "harmonic"
    if top is not None:
        from inlink.rank.closest import best_values

        label = f"the {top:,} best by {'harmonic centrality' if inverse else algorithm}"
        values, error = best_values(
            graph, label, top, values_of, inwards=inwards, inverse=inverse, threads=threads
        )
        return ranking_of(
            graph,
            algorithm,
            values,
            parameters=parameters | {"top": top, "top_error": error},
            note=f"the values of the first {counted(top, 'place')} are exact, the others are upper bounds",
        )
    if exact or (exact is None and log2m is None and graph.num_nodes <= EXACT_NODES):
        label = "harmonic centrality" if inverse else algorithm
        all_sums, unit = distance_sums(graph, label, inwards=inwards, threads=threads)
        sums = all_sums.inverse / unit if inverse else all_sums.far.astype(np.float64)
        values = values_of(sums, all_sums.reached.astype(np.float64))
        bound = all_sums.reached.sum() / (2 * unit) + 4 * ROUNDOFF * values.sum()
        if not inverse:
            bound = 5 * ROUNDOFF * values.sum()
        return ranking_of(graph, algorithm, values, error_bound=float(bound), parameters=parameters)
    from inlink.rank.hyperball import STANDARD_ERROR, mean_of_runs

    require_vectors(graph, node=VECTORS["harmonic, estimated"]["node"] + (28 if runs > 1 else 0))
    log2m = LOG2M if log2m is None else log2m
    rows: tuple[Rows | SplitRows, Rows | SplitRows] = (graph.split_in_rows, graph.out_rows)
    values, spread, steps = mean_of_runs(
        *(rows if inwards else rows[::-1]), log2m, runs, seed, threads, values_of, inverse=inverse
    )
    error = STANDARD_ERROR / math.sqrt((1 << log2m) * runs)
    by = f"HyperBall with {1 << log2m:,} registers" + (f", mean of {runs:,} runs" if runs > 1 else "")
    seen = "" if spread is None else f" by theory, {spread:.2g} by the spread of the runs"
    parameters |= {"log2m": log2m, "runs": runs, "seed": seed, "relative_error": error, "spread": spread}
    return ranking_of(
        graph,
        algorithm,
        values,
        iterations=steps,
        converged=False,
        note=f"{by}: relative standard error {error:.2g}{seen}; this is not a bound",
        parameters=parameters,
    )


def distance_sums(
    graph: Graph, label: str, *, inwards: bool, threads: int | None
) -> tuple["DistanceSums", float]:
    """Return the sums of distances to or from each node, and the unit of the inverse distances.

    Parameters
    ----------
    graph : Graph
        The graph. A breadth-first search runs from each of its nodes.
    label : str
        Label of the progress display.
    inwards : bool
        True: distances to each node, for which outlinks are read. False: distances from each node, by inlinks.
    threads : int or None
        None uses all processors.
    """
    from inlink.base.jit import num_threads
    from inlink.rank.kernels.blocks import each_block
    from inlink.rank.kernels.paths import (
        SOURCES,
        WORDS,
        DistanceSearch,
        DistanceSums,
        distances_from,
        unit_of,
    )

    n = graph.num_nodes
    require_vectors(graph, **VECTORS["harmonic"], threads=threads)
    rows = graph.out_rows if inwards else graph.in_rows
    unit = unit_of(n)
    all_sums: list[UInt64Array] = []

    def scratch() -> tuple[DistanceSearch, DistanceSums]:
        # Another thread may append between two statements here, so the last entry need not be this thread's.
        sums = np.zeros((4, n), np.uint64)
        all_sums.append(sums)
        bits = np.zeros((3, n, WORDS), np.uint64)
        nodes = np.empty((2, n), np.uint32)
        return DistanceSearch(bits, nodes[0], nodes[1], np.empty(0, np.uint32)), DistanceSums(*sums)

    def work(own: tuple[DistanceSearch, DistanceSums], block: int) -> int:
        first, last = block * SOURCES, min((block + 1) * SOURCES, n)
        distances_from(rows.offsets, rows.nodes, np.uint64(first), np.uint64(last), *own, unit)
        return last - first

    with track(label, n, "sources") as task:
        for done in each_block(-(-n // SOURCES), num_threads(threads), scratch, work):
            task.advance(done)
    total = np.zeros((4, n), np.uint64)
    for sums in all_sums:
        total += sums
    return DistanceSums(*total), float(unit)
