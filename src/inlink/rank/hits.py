"""HITS: hubs and authorities, plain and modulated by content scores.

    h_i = Σ_{i→j} r_j·a_j,      a_i = Σ_{j→i} h_j                                                           (1)

r are the content scores, 1 for the plain algorithm (Kleinberg, "Authoritative sources in a hyperlinked environment", J.
ACM 1999); with scores a page that is off the topic (r_j = 0) gives no authority back to its hubs (Aduana's
compromise, 2015). Both vectors are normalised to sum 1 (L1) after each round.

**What it converges to.** With A the adjacency matrix and R = diag(r), a is an eigenvector of AᵀA·R, which is similar to
the symmetric √R·AᵀA·√R; its eigenvalues are real and not negative. Rounds from a positive start converge to the start's
projection onto the space of the largest eigenvalue λ₁, by the factor λ₂/λ₁ a round.

**Why there is a residual and no bound.** The distance to the limit is the residual over 1 − λ₂/λ₁, and the second
eigenvalue is not known; where it equals the first (two like communities that share no page) there is no unique
answer at all, and another start gives another one. So λ₂/λ₁ is estimated by rounds on a random vector kept orthogonal
to the answer, and the ranking says so where it is 1 as far as can be seen.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from inlink.base.progress import track
from inlink.graph.graph import Graph, Rows
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.inputs import arc_weights, check_rounds, distribution, node_values, use_weights
from inlink.rank.ranking import Ranking

__all__ = ["hits"]

PROBES = (
    40  # rounds spent on the second eigenvalue: tells λ₂/λ₁ = 1 from 0.99 on any start that is not unlucky
)
TIE = 1e-3  # a ratio this near to 1 cannot be told from a tie in that many rounds

Vector = npt.NDArray[np.float64]


def hits(
    graph: GraphLike,
    *,
    scores: Any = None,
    tol: float | None = 1e-6,
    max_iter: int = 1000,
    start: Any = None,
    weighted: bool | None = None,
    threads: int | None = None,
) -> Ranking:
    """Authorities and hubs of every node.

    Parameters
    ----------
    graph : Graph, SciPy sparse matrix or NetworkX graph
        In a matrix A[i, j] is the arc i → j.
    scores : float[n], mapping of nodes to values, Ranking, or None
        Content scores r, finite and not negative; nodes that a mapping lacks have 0. None means 1 each.
    tol : float or None
        Stop once a round moves authorities and hubs by at most this together (L1). None runs ``max_iter`` rounds.
    max_iter : int
        Stop after so many rounds, converged or not; a round is two passes over the arcs.
    start : float[n], mapping, Ranking, or None
        The authorities to start from; None starts with all alike.
    weighted : bool or None
        Let an arc count as often as its weight says; None does where there are weights.
    threads : int or None
        None uses all processors; the result is the same, bit by bit.

    Returns
    -------
    Ranking
        ``values`` (also ``authorities``) and ``hubs``, float64[n], each with sum 1, or all 0 where no link leads to
        a page with a score above 0. ``residual`` is what the last round moved; ``note`` says where the answer is
        not unique.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter lies outside its meaning.

    Examples
    --------
    >>> import inlink
    >>> ranking = inlink.hits(inlink.Graph.from_arcs([("hub", "a"), ("hub", "b"), ("other", "a")]))
    >>> ranking.top(2)
    [('a', 0.618...), ('b', 0.381...)]
    """
    began = time.perf_counter()
    graph = as_graph(graph)
    check_rounds(tol, max_iter)
    n = graph.num_nodes
    weights = use_weights(graph, weighted)
    r = np.ones(n) if scores is None else node_values(graph, scores, "scores")
    if r.max(initial=0.0) > 0:
        r = r / r.max()  # the answer is the same, and nothing can overflow
    a = np.full(n, 1.0 / max(n, 1)) if start is None else distribution(graph, start, "start")
    h = np.zeros(n)
    rounds, moved = 0, 0.0
    note = ""
    with _Links(graph, weights, threads) as links, track("ranking", None, "rounds") as task:
        while rounds < max_iter:
            new_h = links.hubs(r * a)
            new_a = links.authorities(new_h)
            if not new_h.any():
                a, h, moved = np.zeros(n), new_h, 0.0
                note = "no link leads to a page with a score above 0, so all values are 0"
                break
            new_h /= new_h.sum()
            new_a /= new_a.sum()
            moved = float(np.abs(new_a - a).sum() + np.abs(new_h - h).sum())
            a, h = new_a, new_h
            rounds += 1
            task.advance(1, f"moved {moved:.1e}")
            if tol is not None and moved <= tol:
                break
        from inlink.base.jit import one_blas_thread

        with one_blas_thread():
            ratio = links.second_eigenvalue(a, r) if a.any() and not note else 0.0
    if ratio >= 1 - TIE:
        note = (
            "the principal eigenvector is not unique, or nearly so (second eigenvalue "
            f"{min(ratio, 1.0):.4f} of the first): another start may give other values"
        )
    return Ranking(
        a,
        algorithm="hits",
        names=graph.names,
        hubs=h,
        residual=moved,
        iterations=2 * rounds,
        converged=(tol is not None and moved <= tol and rounds > 0) or not h.any(),
        unique=ratio < 1 - TIE if a.any() else None,
        note=note,
        parameters={"scores": scores is not None, "tol": tol, "max_iter": max_iter, "weighted": weights},
        graph_uuid=graph.uuid,
        elapsed=time.perf_counter() - began,
    )


class _Links:
    """Both directions of the arcs, and the loops over them on a pool of threads."""

    def __init__(self, graph: Graph, weighted: bool, threads: int | None) -> None:
        from inlink.base.jit import num_threads

        self.rows = {"out": graph.out_rows, "in": graph.in_rows}
        self.weighted = weighted
        self.count = num_threads(threads) if graph.num_arcs >= 100_000 else 1
        self.pool = ThreadPoolExecutor(self.count) if self.count > 1 else None

    def __enter__(self) -> "_Links":
        return self

    def __exit__(self, *error: object) -> None:
        if self.pool is not None:
            self.pool.shutdown()

    def _pull(self, rows: Rows, z: Vector) -> Vector:
        from inlink.base.jit import chunks_by_arcs, on_threads
        from inlink.rank.kernels.gather import pull

        weights = arc_weights(rows, self.weighted)
        y = np.empty(len(z))
        work: Callable[..., Any] = lambda low, high: pull(rows.offsets, rows.nodes, weights, z, y, low, high)  # noqa: E731
        # each row is summed by one thread in its own order: the bits do not depend on how many there are
        on_threads(work, chunks_by_arcs(rows.offsets, 4 * self.count), self.pool)
        return y

    def hubs(self, z: Vector) -> Vector:
        """h_i = Σ_{i→j} z_j."""
        return self._pull(self.rows["out"], z)

    def authorities(self, h: Vector) -> Vector:
        """a_i = Σ_{j→i} h_j."""
        return self._pull(self.rows["in"], h)

    def second_eigenvalue(self, a: Vector, r: Vector) -> float:
        """λ₂/λ₁ as far as :data:`PROBES` rounds can tell; never above the truth, but for rounding."""
        root = np.sqrt(r)

        def apply(y: Vector) -> Vector:
            return root * self.authorities(self.hubs(root * y))

        first = root * a
        first /= np.linalg.norm(first)
        largest = float(first @ apply(first))
        y = np.random.default_rng(0).standard_normal(len(a)) * (root > 0)
        best = 0.0
        for _ in range(PROBES):
            y -= (first @ y) * first
            length = np.linalg.norm(y)
            if length == 0 or not np.isfinite(length):
                break
            y /= length
            image = apply(y)
            before, best = best, float(y @ image) / largest
            if best >= 1 - TIE or best - before < 1e-6 * best:
                break
            y = image
        return best
