"""Spam mass and Anti-TrustRank: find pages that owe their rank to spam, from lists of good pages or of spam.

**Spam mass** is the part of a page's PageRank that does not come from good pages. The PageRank of the paper is linear
in the teleport distribution ::

    p = c·Pᵀp + (1 − c)·v,      p' = c·Pᵀp' + (1 − c)·w                                                     (1)

with P as in :mod:`inlink.rank.pagerank`, v = 1/n for each page, and w = γ/|core| for each page of a core of good pages
and 0 elsewhere. The core represents all good pages, so it gets the teleports of all good pages: γ is an estimate of the
share of good pages. The estimates are ::

    absolute mass M = p − p',     relative mass m = 1 − p'/p                                                (2)

m is at most 1. It is below 0 for pages that get more from the core than γ/|core| accounts for; usually core pages.

**Dangling pages** lose their mass in (1). This is necessary, because p' is a part of p only if (1) is linear. If a
dangling page teleported, as in :func:`inlink.pagerank`, spam that ends there would come back as good mass from the
core. A walk that teleports from dangling pages has the same ranks up to a factor (Del Corso, Gullì & Romani,
"Fast PageRank computation via a sparse linear system", 2005): if x is the ranking that sums to 1, and d what its
dangling pages have, then n/(1 − c)·p = f·x with f = n/(c·d + 1 − c). This is the paper's *scaled* PageRank, 1 for a
page without inlinks. So both are found by :func:`inlink.pagerank`.

**The bound.** For any p, in the scaled form p = c·Pᵀp + 1, let r = c·Pᵀp + 1 − p and θ the largest |r_i|. As (I −
c·Pᵀ)⁻¹ ≥ 0 and turns 1 into the exact p*, it holds for each page that |p − p*| ≤ θ·p*. The same operator serves p':
with θ' the largest |r'_i|, |p' − p'*| ≤ θ'·p*. Hence the ratio R = p'/p is within θ' + θ·R of the exact one, *for
every page*, however small its rank. The ranks are refined until θ and θ' are small enough.

**Anti-TrustRank** works in the opposite direction: pages that link to spam are bad. So it is TrustRank from known spam
on the reversed graph.

Sources: Gyöngyi, Berkhin, Garcia-Molina & Pedersen, "Link spam detection based on mass estimation", VLDB 2006;
Krishnan & Raj, "Web spam detection with Anti-Trust Rank", AIRWeb 2006.
"""

import math
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np

from inlink.base.arrays import Float64Array
from inlink.base.declare import Parameter, checked
from inlink.graph.graph import Graph
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.cheirank import cheirank
from inlink.rank.inputs import Nodes, marked, require_vectors, use_weights
from inlink.rank.pagerank import pagerank
from inlink.rank.parameters import (
    Damping,
    DampingTo1,
    MaxIter,
    Method,
    Start,
    ThreadCount,
    Tolerance,
    Trusted,
    Weighted,
    check_rounds,
)
from inlink.rank.ranking import ROUNDOFF, Ranking, ranking_of, timed
from inlink.rank.sweeps import linear_problem

# A bound on the rounding error of R when it is computed from the two vectors.
ROUNDING = 32 * ROUNDOFF


@timed
def spam_mass(
    graph: GraphLike,
    trusted: Trusted,
    *,
    gamma: Annotated[
        float, Parameter("Estimated share of good pages among all pages.", above=0, at_most=1)
    ] = 0.85,
    rho: Annotated[
        float, Parameter("Ignore nodes whose scaled PageRank (minimum 1) is below this number.", at_least=0)
    ] = 0.0,
    damping: Damping = 0.85,
    tol: Annotated[Tolerance, Parameter("Relative error of each mass to reach.")] = 1e-6,
    max_iter: MaxIter = None,
    method: Method = "gauss-seidel",
    weighted: Weighted = None,
    threads: ThreadCount = None,
) -> Ranking:
    """The share of each page's PageRank that does not come from good pages: its relative spam mass.

    A page is a candidate for spam if its relative mass is high *and* its PageRank is. The paper looks at pages whose
    scaled PageRank is at least ρ = 10, because too little is known about other pages, and spam does not pay there.
    Nearly all of these pages with a mass of 0.98 or more were spam. The exceptions were good pages that the core does
    not reach, such as pages of another country. Find out what such pages have in common, and add some of them to the
    core. So begin with ``rho=10`` and the top of the ranking.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        In a matrix A[i, j] is the arc i → j. The paper's are hosts.
    trusted : iterable of node names or numbers
        Pages that are known to be good, each counted once. More and more diverse pages give better results (the
        authors have 504,150 of 73.3 million hosts).
    gamma : float
        γ, the estimated share of good pages among all pages: above 0 and at most 1.
    rho : float
        ρ: ignore nodes whose scaled PageRank (minimum 1) is below this number; their value is 0.
    damping : float
        c, the probability of following a link: 0 ≤ c < 1.
    tol : float or None
        The error to reach of each relative mass m, in proportion to max(1, 1 − m). None does ``max_iter`` sweeps.
    max_iter : int or None
        The largest number of sweeps for each of the two PageRanks; None is 10,000.
    method, weighted, threads
        See :func:`inlink.pagerank`, also for when two runs have the same bits.

    Returns
    -------
    Ranking
        ``values`` float64[n], the relative mass, at most 1. ``error_bound`` bounds their L1 distance to the exact
        values. ``parameters["max_error"]`` bounds the error of each value, in proportion to max(1, 1 − m); None if no
        bound is known. ``converged`` says whether ``max_error`` is at most ``tol``. ``parameters["scale"]`` is f:
        ``pagerank(graph).values`` times f is the scaled PageRank. The scaled PageRank times the relative mass is the
        scaled absolute mass.

    Raises
    ------
    inlink.errors.ParameterError
        If no page is trusted, or a parameter is out of range.
    inlink.errors.UnknownNodeError
        If a trusted page is not in the graph.

    Examples
    --------
    >>> from inlink.rank.spam import spam_mass
    >>> from inlink import Graph
    >>> graph = Graph.from_arcs([("good", "fine"), ("spam", "farm"), ("farm", "spam"), ("farm", "fine")])
    >>> ranking = spam_mass(graph, ["good"], gamma=0.25)
    >>> round(ranking["spam"], 2), round(ranking["fine"], 2)
    (1.0, 0.72)
    """
    check_rounds(tol, max_iter)
    graph = as_graph(graph)
    require_vectors(graph, node=40, linking=76)
    core = marked(graph, trusted, "trusted")
    options: dict[str, Any] = {"damping": damping, "method": method, "threads": threads}
    options["weighted"] = use_weights(graph, weighted)
    limit = 10_000 if max_iter is None else max_iter
    goal = None if tol is None else 0.49 * tol
    whole = _scaled(graph, None, 1.0, options, goal, limit)
    good = _scaled(graph, core, gamma, options, goal, limit)
    ratio = np.divide(good.values, whole.values, out=np.zeros(len(core)), where=whole.values > 0)
    masses = 1 - ratio
    kept = whole.values >= rho
    masses[~kept] = 0
    error, bound = math.inf, math.inf
    if whole.theta < 1:
        error = good.theta + whole.theta + 2 * ROUNDING
        each = good.theta + ROUNDING + (whole.theta + ROUNDING) * ratio
        bound = float(each[kept].sum()) * (1 + len(core) * ROUNDOFF)
    return ranking_of(
        graph,
        "spam_mass",
        masses,
        error_bound=bound,
        iterations=whole.rounds + good.rounds,
        converged=tol is not None and error <= tol,
        note=f"no mass m is off by more than {error:.1e} · max(1, 1 − m)" if math.isfinite(error) else "",
        parameters={
            "trusted": int(core.sum()),
            "gamma": gamma,
            "rho": rho,
            "damping": damping,
            "tol": tol,
            "max_iter": max_iter,
            "method": method,
            "weighted": options["weighted"],
            "max_error": error if math.isfinite(error) else None,
            "scale": whole.factor,
        },
        dangling="lost",
    )


@checked
def anti_trustrank(
    graph: GraphLike,
    spam: Annotated[Nodes, Parameter("File of pages that are known to be spam")],
    *,
    damping: DampingTo1 = 0.85,
    tol: Tolerance = 1e-6,
    max_iter: MaxIter = None,
    method: Method = "gauss-seidel",
    start: Start = None,
    weighted: Weighted = None,
    threads: ThreadCount = None,
) -> Ranking:
    """Distrust, from a set of pages that are known to be spam: TrustRank of the reversed graph.

    A page has a high value if many short paths lead from it to spam; it has 0 if no path does. The authors choose spam
    pages with a high PageRank, so that distrust reaches pages that matter.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        In a matrix A[i, j] is the arc i → j. The graph is not copied.
    spam : iterable of node names or numbers
        Pages that are known to be spam; each counts once.
    damping : float
        The probability of following a link backwards.
    tol, max_iter, method, start, weighted, threads
        See :func:`inlink.pagerank`.

    Returns
    -------
    Ranking
        ``values`` float64[n], which sum to 1, with the error bound of :func:`inlink.pagerank`. Pages without inlinks
        teleport to the spam pages, as dangling pages do to trusted pages in :func:`inlink.trustrank`.
        ``parameters["spam"]`` is the number of spam pages.

    Raises
    ------
    inlink.errors.ParameterError
        If no page is spam, or a parameter is out of range.
    inlink.errors.UnknownNodeError
        If a spam page is not in the graph.

    Examples
    --------
    >>> from inlink.rank.spam import anti_trustrank
    >>> from inlink import Graph
    >>> ranking = anti_trustrank(Graph.from_arcs([("good", "fine"), ("ring", "spam"), ("spam", "good")]), ["spam"])
    >>> [name for name, value in ranking.top(4) if value > 0]
    ['spam', 'ring']
    """
    graph = as_graph(graph)
    marks = marked(graph, spam, "spam")
    ranking = cheirank(
        graph,
        damping=damping,
        personalization=marks,
        tol=tol,
        max_iter=max_iter,
        method=method,
        start=start,
        weighted=weighted,
        threads=threads,
    )
    ranking.algorithm = "anti_trustrank"
    ranking.parameters["spam"] = int(marks.sum())
    return ranking


class _Scaled(NamedTuple):
    """n/(1 − c) times a vector of (1), with θ for its error, f, and the number of sweeps."""

    values: Float64Array
    theta: float
    factor: float
    rounds: int


def _scaled(
    graph: Graph,
    core: Float64Array | None,
    share: float,
    options: dict[str, Any],
    tol: float | None,
    limit: int,
) -> _Scaled:
    """Return ``share`` times the scaled linear PageRank of a core, or of all pages, with θ ≤ tol if possible."""
    goal, rounds, start = tol, 0, None
    while True:
        ranking = pagerank(
            graph, personalization=core, tol=goal, max_iter=limit - rounds, start=start, **options
        )
        x = ranking.values
        rounds += ranking.iterations
        factor, theta = _certify(graph, core, share, options, x)
        if tol is None or theta <= tol or rounds >= limit or not ranking.converged:
            return _Scaled(x * factor, theta, factor, rounds)
        # θ is at most n times the L1 error, and usually a few times the L1 error.
        goal, start = float(ranking.error_bound or 0.0) * min(0.5, 0.5 * tol / theta), x


def _certify(
    graph: Graph, core: Float64Array | None, share: float, options: dict[str, Any], x: Float64Array
) -> tuple[float, float]:
    """Return the factor from x to ``share`` times the scaled linear PageRank, and the θ of the result."""
    from inlink.rank.kernels import codedrows, residual
    from inlink.rank.kernels.pagerank import contributions, dangling_mass

    n, c = graph.num_nodes, options["damping"]
    teleport = np.full(1, 1 / n) if core is None else core / core.sum()
    with linear_problem(graph, teleport, c, options["weighted"], options["threads"]) as problem:
        equation = problem.equation
        jump = c * dangling_mass(equation, np.uint64(n), x) + (1 - c)
        z = np.empty(problem.size)
        problem.each(partial(contributions, equation, x, 1.0, z))
        kernels: Any = codedrows if problem.kernels is codedrows else residual
        theta = problem.each_node(partial(kernels.largest_residual, equation, jump, z, x))
    # r of the scaled vector is f·(F(x) − x).
    factor = share * n / jump
    return factor, float(max(theta)) * factor * (1 + 16 * ROUNDOFF) + 16 * ROUNDOFF
