"""HITS: hubs and authorities, plain and modulated by content scores.

    h_i = Σ_{i→j} r_j·a_j,      a_i = Σ_{j→i} h_j                                                           (1)

r are the content scores, 1 for the plain algorithm (Kleinberg, "Authoritative sources in a hyperlinked environment", J.
ACM 1999); with scores, a page that is off the topic (r_j = 0) adds nothing to its hubs (as in Aduana, 2015). Both
vectors are normalised to sum 1 (L1) after each round.

**What it converges to.** With A the adjacency matrix and R = diag(r), a is an eigenvector of AᵀA·R, which is similar to
the symmetric √R·AᵀA·√R; its eigenvalues are real and not negative. Rounds from a positive start converge to the start's
projection onto the space of the largest eigenvalue λ₁, by the factor λ₂/λ₁ a round.

**Why there is a residual and no bound.** The distance to the limit is the residual over 1 − λ₂/λ₁, and the second
eigenvalue is not known. If it equals the first (two equal communities that share no page), the answer is not unique:
another start gives another answer. So λ₂/λ₁ is estimated by Lanczos's method from a random vector that is kept
orthogonal to the answer (Golub & Van Loan, "Matrix computations", 10.1). If the estimate is 1, the ranking's ``note``
says so.
"""

from collections.abc import Callable
from typing import Annotated

import numpy as np

from inlink.base.arrays import Float64Array
from inlink.base.declare import Parameter
from inlink.base.progress import track
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.inputs import NodeValues, distribution, node_values, require_vectors, use_weights
from inlink.rank.parameters import MaxIter, Start, ThreadCount, Tolerance, Weighted
from inlink.rank.ranking import Ranking, ranking_of, timed
from inlink.rank.rowsums import RowSums

# Steps for the second eigenvalue. They distinguish λ₂/λ₁ = 1 from 0.99, except with an unlucky start.
PROBES = 16
# A ratio this near to 1 cannot be distinguished from 1 in that number of rounds.
TIE = 1e-3


@timed
def hits(
    graph: GraphLike,
    *,
    scores: Annotated[NodeValues | None, Parameter("the content scores")] = None,
    tol: Annotated[Tolerance, Parameter("Residual to reach.")] = 1e-6,
    max_iter: MaxIter = 1000,
    start: Start = None,
    weighted: Weighted = None,
    threads: ThreadCount = None,
) -> Ranking:
    """Authorities and hubs of every node.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        In a matrix A[i, j] is the arc i → j.
    scores : float[n], mapping of nodes to values, Ranking, or None
        Content scores r, finite and at least 0; nodes that a mapping lacks have 0. None is 1 each.
    tol : float or None
        Stop when a round changes authorities and hubs by at most this, together, in L1. None makes ``max_iter`` rounds.
    max_iter : int
        The largest number of rounds; a round is two passes over the arcs.
    start : float[n], mapping, Ranking, or None
        The first authorities; None is the same for each node.
    weighted : bool or None
        Use arc weights. None: if the graph has them.
    threads : int or None
        None uses all processors. The result has the same bits with any number of threads.

    Returns
    -------
    Ranking
        ``values`` (also ``authorities``) and ``hubs``, float64[n], each with sum 1, or all 0 if no link leads to
        a page with a score above 0. ``residual`` is the change in the last round. ``note`` says if the answer is
        not unique.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> import inlink
    >>> ranking = inlink.hits(inlink.Graph.from_arcs([("hub", "a"), ("hub", "b"), ("other", "a")]))
    >>> ranking.top(2)
    [('a', 0.618...), ('b', 0.381...)]
    """
    graph = as_graph(graph)
    max_iter = 1000 if max_iter is None else max_iter
    require_vectors(graph, node=88)
    n = graph.num_nodes
    weights = use_weights(graph, weighted)
    r = np.ones(n) if scores is None else node_values(graph, scores, "scores")
    if r.max(initial=0.0) > 0:
        # This does not change the result, and prevents overflow.
        r = r / r.max()
    first = np.full(n, 1.0 / max(n, 1)) if start is None else distribution(graph, start, "start")
    with (
        RowSums(graph.out_rows, weights, threads) as hubs,
        RowSums(graph.split_in_rows, weights, threads) as authorities,
    ):
        a, h, rounds, moved = _iterate(authorities, hubs, first, r, tol, max_iter)
        from inlink.base.jit import one_blas_thread

        with one_blas_thread():
            ratio = _second_eigenvalue(authorities, hubs, a, r) if a.any() else 0.0
    note = ""
    if max_iter and not h.any():
        note = "no link leads to a page with a score above 0, so all values are 0"
    if ratio >= 1 - TIE:
        note = (
            "the principal eigenvector is not unique, or nearly so (second eigenvalue "
            f"{min(ratio, 1.0):.4f} of the first): another start may give other values"
        )
    return ranking_of(
        graph,
        "hits",
        a,
        hubs=h,
        residual=moved,
        iterations=2 * rounds,
        converged=(tol is not None and moved <= tol and rounds > 0) or not h.any(),
        unique=ratio < 1 - TIE if a.any() else None,
        note=note,
        parameters={"scores": scores is not None, "tol": tol, "max_iter": max_iter, "weighted": weights},
    )


def _iterate(
    authorities: Callable[[Float64Array], Float64Array],
    hubs: Callable[[Float64Array], Float64Array],
    a: Float64Array,
    r: Float64Array,
    tol: float | None,
    max_iter: int,
) -> tuple[Float64Array, Float64Array, int, float]:
    """Make rounds from authorities ``a``; return authorities, hubs, the number of rounds, and the last change."""
    h = np.zeros(len(a))
    rounds, moved = 0, 0.0
    with track("HITS", None, "rounds") as task:
        while rounds < max_iter:
            new_h = hubs(r * a)
            new_a = authorities(new_h)
            if not new_h.any():
                return np.zeros(len(a)), new_h, rounds, 0.0
            new_h /= new_h.sum()
            new_a /= new_a.sum()
            moved = float(np.abs(new_a - a).sum() + np.abs(new_h - h).sum())
            a, h = new_a, new_h
            rounds += 1
            task.advance(1, f"moved {moved:.1e}")
            if tol is not None and moved <= tol:
                break
    return a, h, rounds, moved


def _second_eigenvalue(
    authorities: Callable[[Float64Array], Float64Array],
    hubs: Callable[[Float64Array], Float64Array],
    a: Float64Array,
    r: Float64Array,
) -> float:
    """λ₂/λ₁ as far as :data:`PROBES` rounds can tell; never above the exact ratio, except by rounding."""
    root = None if (r == 1).all() else np.sqrt(r)

    def apply(y: Float64Array) -> Float64Array:
        return authorities(hubs(y)) if root is None else root * authorities(hubs(root * y))

    first = a.copy() if root is None else root * a
    first /= np.linalg.norm(first)
    largest = float(first @ apply(first))
    y = np.random.default_rng(0).standard_normal(len(a))
    if root is not None:
        y *= root > 0
    before, best, diagonal, beside = np.zeros(len(a)), 0.0, np.zeros(0), np.zeros(0)
    while len(diagonal) < PROBES:
        whole = np.linalg.norm(y)
        # Twice, since rounding in the first subtraction leaves a part along `first` (Kahan and Parlett).
        y -= (first @ y) * first
        y -= (first @ y) * first
        length = np.linalg.norm(y)
        if not np.isfinite(length) or length <= 1e-8 * (largest if len(diagonal) else whole):
            break
        y /= length
        if len(diagonal):
            beside = np.append(beside, length)
        image = apply(y)
        if len(diagonal):
            image -= length * before
        diagonal = np.append(diagonal, y @ image)
        # No eigenvalue of this matrix is larger than the largest exact one.
        within = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
        last, best = best, float(np.linalg.eigvalsh(within)[-1]) / largest
        if best >= 1 - TIE or best - last < 1e-6 * best:
            break
        image -= diagonal[-1] * y
        before, y = y, image
    return best
