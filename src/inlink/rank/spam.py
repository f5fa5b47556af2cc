"""Spam mass and Anti-TrustRank: which pages owe their rank to spam, from lists of good or of bad pages.

**Spam mass** is the part of a page's PageRank that does not come from good pages. The PageRank of the paper is linear
in where teleports go ::

    p = c·Pᵀp + (1 − c)·v,      p' = c·Pᵀp' + (1 − c)·w                                                     (1)

with P as in :mod:`inlink.rank.pagerank`, v = 1/n for each page, and w = γ/|core| for each page of a core of good ones
and 0 elsewhere. The core stands for all good pages, so it is given what these would have: γ is about what share of
all pages is good. The estimates are ::

    absolute mass M = p − p',     relative mass m = 1 − p'/p                                                (2)

m is at most 1, and below 0 for pages that have more of the core than γ/|core| foresees: pages of the core, as a rule.

**Dangling pages** lose their mass in (1), and so they must here: it is linearity that makes p' a part of p. If a
dangling page teleported, as in :func:`inlink.pagerank`, spam that ends there would come back as good mass from the
core. A walk that teleports from dangling pages has the same ranks up to a factor (Del Corso, Gullì & Romani,
"Fast PageRank computation via a sparse linear system", 2005): if x is the ranking that sums to 1, and d what its
dangling pages have, then n/(1 − c)·p = f·x with f = n/(c·d + 1 − c). This is the paper's *scaled* PageRank, 1 for a
page without inlinks. So both are found by :func:`inlink.pagerank`.

**The bound.** For any p, in the scaled form p = c·Pᵀp + 1, let r = c·Pᵀp + 1 − p and θ the largest |r_i|. As (I −
c·Pᵀ)⁻¹ ≥ 0 and turns 1 into the exact p*, it holds for each page that |p − p*| ≤ θ·p*. The same operator serves p':
with θ' the largest |r'_i|, |p' − p'*| ≤ θ'·p*. Hence the ratio R = p'/p is within θ' + θ·R of the exact one, *for
every page*, however small its rank. The ranks are refined until θ and θ' are small enough.

**Anti-TrustRank** goes the other way: what links to spam is bad, so it is TrustRank from known spam on the reversed
graph.

Sources: Gyöngyi, Berkhin, Garcia-Molina & Pedersen, "Link spam detection based on mass estimation", VLDB 2006;
Krishnan & Raj, "Web spam detection with Anti-Trust Rank", AIRWeb 2006.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from inlink.errors import ParameterError, UnknownNodeError
from inlink.graph.graph import Graph
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.cheirank import cheirank
from inlink.rank.inputs import check_rounds, use_weights
from inlink.rank.pagerank import pagerank
from inlink.rank.ranking import Ranking
from inlink.rank.sweeps import UNIT, linear_problem

__all__ = ["anti_trustrank", "spam_mass"]

Vector = npt.NDArray[np.float64]

ROUNDING = 32 * UNIT  # what making R of the two vectors can do to it


def spam_mass(
    graph: GraphLike,
    trusted: Iterable[int | str | bytes],
    *,
    gamma: float = 0.85,
    rho: float = 0.0,
    damping: float = 0.85,
    tol: float | None = 1e-6,
    max_iter: int | None = None,
    method: Literal["gauss-seidel", "power"] = "gauss-seidel",
    weighted: bool | None = None,
    threads: int | None = None,
) -> Ranking:
    """The share of each page's PageRank that comes from elsewhere than good pages: its relative spam mass.

    A page is a candidate for spam if its relative mass is high *and* its PageRank is. The paper looks at pages whose
    scaled PageRank is at least ρ = 10, since of others too little is known, and spam does not pay there. Nearly
    all of these with a mass of 0.98 or more were spam, but for good pages that the core does not reach, such as
    those of another country: look what they have in common, and add some of it to the core. So begin with
    ``rho=10`` and the top of the ranking.

    Parameters
    ----------
    graph : Graph, SciPy sparse matrix or array, or NetworkX graph
        In a matrix A[i, j] is the arc i → j. The paper's are hosts.
    trusted : iterable of node names or numbers
        The good core, each page counted once; the more and the more diverse the better (the paper has 504,150 of
        73.3 million hosts).
    gamma : float
        γ, about what share of all pages is good: above 0 and at most 1.
    rho : float
        ρ: pages whose scaled PageRank, as it was found, is below have the value 0. 0 leaves none out.
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
        ``values`` float64[n], the relative mass, at most 1. ``error_bound`` is on their L1 distance to the exact ones;
        ``parameters["max_error"]`` on each, in proportion to max(1, 1 − m), None where nothing is known;
        ``converged`` says whether that is at most ``tol``. ``parameters["scale"]`` is f: ``pagerank(graph).values``
        times f is the scaled PageRank, and this times the relative mass the scaled absolute mass.

    Raises
    ------
    inlink.errors.ParameterError
        If no page is trusted, or a parameter is outside its meaning.
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
    began = time.perf_counter()
    check_rounds(tol, max_iter)
    gamma = _number("gamma", gamma, lambda x: 0 < x <= 1, "above 0 and at most 1")
    rho = _number("rho", rho, lambda x: 0 <= x < math.inf, "a finite number of at least 0")
    damping = _number("damping", damping, lambda x: 0 <= x < 1, "at least 0 and below 1")
    graph = as_graph(graph)
    core = _marked(graph, trusted, "trusted")
    options: dict[str, Any] = {"damping": damping, "method": method, "threads": threads}
    options["weighted"] = use_weights(graph, weighted)
    limit = 10_000 if max_iter is None else int(max_iter)
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
        bound = float(each[kept].sum()) * (1 + len(core) * UNIT)
    return Ranking(
        masses,
        algorithm="spam_mass",
        names=graph.names,
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
        graph_uuid=graph.uuid,
        elapsed=time.perf_counter() - began,
    )


def anti_trustrank(
    graph: GraphLike, bad: Iterable[int | str | bytes], *, damping: float = 0.85, **options: Any
) -> Ranking:
    """Distrust, from a set of pages that are known as spam: TrustRank of the reversed graph.

    The more of the ways from a page lead to bad pages soon, the more it has; pages that reach no bad one have 0. The
    paper takes as its seeds spam that has a high PageRank, so that distrust comes to pages that matter.

    Parameters
    ----------
    graph : Graph, SciPy sparse matrix or array, or NetworkX graph
        In a matrix A[i, j] is the arc i → j. It is not copied to be turned round.
    bad : iterable of node names or numbers
        The pages that are known as spam, each counted once.
    damping : float
        The probability of following a link backwards.
    **options
        ``tol``, ``max_iter``, ``method``, ``start``, ``weighted``, ``threads``: see :func:`inlink.pagerank`.

    Returns
    -------
    Ranking
        float64[n], sum 1, with the error bound of :func:`inlink.pagerank`. Pages without inlinks teleport to the bad
        ones, as dangling ones do in :func:`inlink.trustrank`.

    Raises
    ------
    inlink.errors.ParameterError
        If no page is bad, or a parameter is outside its meaning.
    inlink.errors.UnknownNodeError
        If a bad page is not in the graph.

    Examples
    --------
    >>> from inlink.rank.spam import anti_trustrank
    >>> from inlink import Graph
    >>> ranking = anti_trustrank(Graph.from_arcs([("good", "fine"), ("ring", "spam"), ("spam", "good")]), ["spam"])
    >>> [name for name, value in ranking.top(4) if value > 0]
    ['spam', 'ring']
    """
    graph = as_graph(graph)
    marks = _marked(graph, bad, "bad")
    ranking = cheirank(graph, damping=damping, personalization=marks, **options)
    ranking.algorithm = "anti_trustrank"
    ranking.parameters["bad"] = int(marks.sum())
    return ranking


def _number(name: str, value: Any, good: Callable[[float], bool], meaning: str) -> float:
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not real or not good(float(value)):
        raise ParameterError(f"{name} must be {meaning}, not {value!r}")
    return float(value)


def _marked(graph: Graph, nodes: Any, what: str) -> Vector:
    """1 for the nodes that are named, 0 for all others."""
    if isinstance(nodes, str | bytes | Mapping) or not isinstance(nodes, Iterable):
        raise ParameterError(f"{what}: expected several nodes, not {type(nodes).__name__}")
    marks = np.zeros(graph.num_nodes)
    for node in nodes:
        try:
            marks[graph.node(node)] = 1.0
        except UnknownNodeError as error:
            raise UnknownNodeError(f"{what}: {error}") from None
        except (TypeError, ValueError):
            raise ParameterError(f"{what}: {node!r} is no node") from None
    if not marks.any():
        raise ParameterError(f"{what}: at least one page is needed")
    return marks


class _Scaled(NamedTuple):
    """n/(1 − c) times a vector of (1); θ of its error; f; how many sweeps it took."""

    values: Vector
    theta: float
    factor: float
    rounds: int


def _scaled(
    graph: Graph, core: Vector | None, share: float, options: dict[str, Any], tol: float | None, limit: int
) -> _Scaled:
    """``share`` times the scaled linear PageRank of a core, or of all pages, with θ ≤ tol if that can be."""
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
        # θ is n times the L1 error at worst, and a few times as a rule
        goal, start = float(ranking.error_bound or 0.0) * min(0.5, 0.5 * tol / theta), x


def _certify(
    graph: Graph, core: Vector | None, share: float, options: dict[str, Any], x: Vector
) -> tuple[float, float]:
    """What makes ``share`` times the scaled linear PageRank of x, and θ of that."""
    from inlink.rank.kernels.gather import sum_where_zero
    from inlink.rank.kernels.pagerank import contributions
    from inlink.rank.kernels.residual import largest_residual

    n, c, z = graph.num_nodes, options["damping"], np.empty(graph.num_nodes)
    teleport = np.full(1, 1 / n) if core is None else core / core.sum()
    with linear_problem(graph, teleport, c, options["weighted"], options["threads"]) as problem:
        jump = c * sum_where_zero(x, problem.strengths) + (1 - c)
        problem.each(lambda low, high: contributions(x, problem.strengths, 1.0, z, low, high))
        theta = problem.each(
            lambda low, high: largest_residual(*problem.inlinks, teleport, jump, c, z, x, low, high)
        )
    factor = share * n / jump  # r of the scaled vector is f·(F(x) − x)
    return factor, float(max(theta)) * factor * (1 + 16 * UNIT) + 16 * UNIT
