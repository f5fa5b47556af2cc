"""LinkRank: Nutch's link analysis, for a fixed number of rounds or until it has converged.

With N nodes, damping d, all nodes at once, from an initial score for each:

    s'(v) = (1 − d) + d · (1/N + Σ s(u)/outdegree(u) over the inlinks u→v that count)                        (1)

Nothing is normalised, and the scores of dangling nodes are lost. Not all inlinks count. Of the inlinks from one page (a
URL without its query, in lower case) only the first counts. Of the inlinks from one registered domain only the first
counts. Loops (:mod:`inlink.rank.loops`) do not count. Nutch does not define which inlink is the first, and this may
change from round to round. Here the first inlink has the smallest node number. In a web graph that inlink built, this
is the first URL in byte order. outdegree(u) counts all outlinks of u, including links that do not count.

**What it converges to.** s = (1 − d + d/N)·1 + d·Mᵀs, with M[u, v] = 1/outdegree(u) where u→v counts. M's rows sum to
at most 1, so a round multiplies the L1 distance of two vectors by at most d. So there is one fixed point, and
‖s' − s*‖₁ ≤ (d·‖s' − s‖₁ + r)/(1 − d), with r a bound on the round's rounding error. Scores grow with the graph and do
not sum to 1, so ``tol`` is the mean error of a node's score.

Source: org.apache.nutch.scoring.webgraph.LinkRank, Nutch 1.23, and 1.11 for loops. Nutch computes in 32 bits and adds
in no defined order. This module computes in 64 bits, so Nutch's own figures agree to about 7 digits.
"""

import math
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Annotated

import numpy as np

from inlink.base.arrays import Float64Array
from inlink.base.declare import Parameter
from inlink.base.progress import track
from inlink.base.threads import Threads
from inlink.errors import ParameterError
from inlink.graph.graph import Graph
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.inputs import require_vectors
from inlink.rank.loops import Loops
from inlink.rank.loops import loops as find_loops
from inlink.rank.nutch_sites import numbers_of
from inlink.rank.parameters import MaxIter, ThreadCount, Tolerance
from inlink.rank.ranking import ROUNDOFF, Ranking, ranking_of, timed

if TYPE_CHECKING:
    from inlink.rank.kernels.gather import WeightedRows


ITERATIONS = 10
_MOST = 10_000


@timed
def linkrank(
    graph: GraphLike,
    *,
    max_iter: MaxIter = None,
    tol: Tolerance = None,
    damping: Annotated[float, Parameter(at_least=0, at_most=1)] = 0.85,
    start: Annotated[float, Parameter()] = 1.0,
    limit_page: Annotated[bool, Parameter()] = True,
    limit_domain: Annotated[bool, Parameter()] = True,
    loops: Loops | int | None = None,
    threads: ThreadCount = None,
) -> Ranking:
    """Nutch's LinkRank of every node.

    All links of the graph are used. :func:`inlink.nutch.webgraph.webgraph` can leave out links within a host or domain.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        In a matrix A[i, j] is the arc i → j. Weights do not count.
    max_iter : int or None
        The largest number of rounds; ``link.analyze.num.iterations``. None is 10, or 10,000 if ``tol`` is given.
    tol : float or None
        The mean error of a score to reach, ‖s − s*‖₁/N. None makes exactly ``max_iter`` rounds.
    damping : float
        d, at least 0 and at most 1; ``link.analyze.damping.factor``. With 1 there is no bound, and so no ``tol``.
    start : float
        Every node's score before the first round, finite; ``link.analyze.initial.score``.
    limit_page : bool
        Of a node's inlinks from one page only the first counts; ``link.ignore.limit.page``.
    limit_domain : bool
        Of a node's inlinks from one domain only the first counts; ``link.ignore.limit.domain``.
    loops : Loops, int or None
        Links that do not count: the result of :func:`inlink.rank.loops.loops` for this graph, or a depth for it.
    threads : int or None
        None uses all processors. The result has the same bits with any number of threads.

    Returns
    -------
    Ranking
        ``values`` float64[n]. ``error_bound`` bounds the L1 distance to the fixed point, also after a fixed number of
        rounds. ``converged`` says whether ``tol`` was reached, and is False without it.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is out of range, or the loops are another graph's.

    Examples
    --------
    >>> from inlink import Graph
    >>> from inlink.rank.linkrank import linkrank
    >>> graph = Graph.from_arcs([("a", "b"), ("a", "c"), ("b", "c"), ("c", "a"), ("d", "c")])
    >>> linkrank(graph, max_iter=1).values.round(4).tolist()
    [1.2125, 0.7875, 2.4875, 0.3625]
    >>> linkrank(graph, tol=1e-9).converged
    True
    """
    if damping == 1 and tol is not None:
        raise ParameterError(
            "`damping` must be in [0, 1) if `tol` is given; got 1. Give `max_iter` without `tol`, because nothing "
            "bounds the error then"
        )
    graph = as_graph(graph)
    require_vectors(graph, node=56)
    n = graph.num_nodes
    limit = max_iter if max_iter is not None else ITERATIONS if tol is None else _MOST
    rows = _counting(graph, limit_page, limit_domain, loops)
    shares = 1 / np.maximum(graph.outdegrees, 1)
    x, rounds, bound = _solve(rows, shares, damping, np.full(n, start), tol, limit, threads)
    return ranking_of(
        graph,
        "linkrank",
        x,
        error_bound=bound,
        iterations=rounds,
        converged=tol is not None and bound <= tol * n,
        parameters={
            "max_iter": max_iter,
            "tol": tol,
            "damping": damping,
            "start": start,
            "limit_page": limit_page,
            "limit_domain": limit_domain,
            "loops": loops.depth if isinstance(loops, Loops) else loops,
        },
        dangling="lost",
        note=f"mean error of a score at most {bound / n:.1e}" if n and math.isfinite(bound) else "",
    )


def _solve(
    rows: "WeightedRows",
    shares: Float64Array,
    damping: float,
    x: Float64Array,
    tol: float | None,
    limit: int,
    threads: int | None,
) -> tuple[Float64Array, int, float]:
    """Make rounds from scores ``x``; return the last scores, the number of rounds, and the bound on the error.

    ``shares``, float64[n], are 1 ÷ outdegree.
    """
    from inlink.base.jit import chunks_by_arcs, num_threads, on_threads
    from inlink.rank.kernels.linkrank import linkrank_round

    n = len(x)
    count = num_threads(threads) if len(rows.nodes) >= 100_000 else 1
    bounds = chunks_by_arcs(rows.offsets, 4 * count)
    base = 1 - damping + damping / max(n, 1)
    y = np.empty(n)
    rounds = 0
    with ExitStack() as stack:
        pool = stack.enter_context(Threads(count)) if count > 1 else None
        task = stack.enter_context(track("LinkRank", limit if tol is None else None, "rounds"))
        while True:
            work = partial(linkrank_round, rows, x * shares, base, damping, x, y)
            sums = on_threads(work, bounds, pool)
            change, rounding = sum(part[0] for part in sums), sum(part[1] for part in sums) * ROUNDOFF
            # At the limit, this round is for the bound only: ‖s − s*‖ ≤ ‖s' − s‖/(1 − d).
            if rounds >= limit:
                return x, rounds, _bound(change + rounding, damping, n)
            x, y = y, x
            rounds += 1
            bound = _bound(damping * change + rounding, damping, n)
            task.advance(1, f"mean error ≤ {bound / max(n, 1):.1e}")
            # The second case: 64 bits cannot tell a smaller change from rounding.
            if tol is not None and (bound <= tol * n or damping * change <= rounding / 16):
                return x, rounds, bound


def _bound(distance: float, damping: float, n: int) -> float:
    """Return a bound on the L1 error. The factor covers the rounding of a sum of n numbers."""
    return math.inf if damping == 1 else distance / (1 - damping) * (1 + (n + 100) * 4 * ROUNDOFF)


def _counting(
    graph: Graph, limit_page: bool, limit_domain: bool, loops: Loops | int | None
) -> "WeightedRows":
    """Return the inlinks that count, as rows without weights."""
    from inlink.rank.kernels.gather import WeightedRows
    from inlink.rank.kernels.linkrank import NONE, Seen, Sites, counting_inlinks

    if isinstance(loops, Loops):
        if loops.marks.shape != (graph.num_arcs,) or loops.graph.uuid != graph.uuid:
            raise ParameterError(
                "`loops` must be loops of this graph; got the loops of another graph. Run `inlink.loops` on this graph"
            )
        marks = loops.marks
    else:
        marks = np.zeros(0, np.bool_) if loops is None else find_loops(graph, depth=loops).marks
    unweighted, none = np.empty(0), np.empty(0, np.uint32)
    inlinks = WeightedRows(graph.in_rows.offsets, graph.in_rows.nodes, unweighted)
    pages, domains = none, none
    if graph.names is not None:
        pages = numbers_of(graph, "page")[0] if limit_page else none
        domains = numbers_of(graph, "domain")[0] if limit_domain else none
    if not (len(pages) or len(domains) or len(marks)):
        return inlinks
    outlinks = WeightedRows(graph.out_rows.offsets, graph.out_rows.nodes, unweighted)
    sites = Sites(none, domains, pages)
    seen = Seen(np.full(len(domains), NONE), np.full(len(pages), NONE))
    require_vectors(graph, node=8, arc=4)
    offsets, nodes = np.empty(graph.num_nodes + 1, np.uint64), np.empty(graph.num_arcs, np.uint32)
    kept = counting_inlinks(outlinks, inlinks, marks, sites, seen, offsets, nodes)
    return WeightedRows(offsets, nodes[: int(kept)], unweighted)
