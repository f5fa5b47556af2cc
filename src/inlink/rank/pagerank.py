"""PageRank, certified.

The ranking x of n nodes solves ::

    x = F(x),   F(x) = c·Pᵀx + (c·Σ_{j dangling} x_j + 1 − c)·v,   Σ x = 1

with P[i, j] = w(i→j) / Σ_k w(i→k) for nodes with outlinks, damping c, and teleport distribution v. A dangling
node (no outlinks) teleports: its mass is distributed by v. The paper's authors use this rule in later work, and so do
NetworkX and igraph. webgraph-rs calls it *strongly preferential*. Other rules are "weakly preferential"
(dangling mass always spread evenly) and "pseudo-rank" (dangling mass lost).

**The bound.** F shrinks L1 distances by c, so ‖x − x*‖₁ ≤ ‖F(x) − x‖₁ / (1 − c) for *any* x. It is computed in
float64 for the vector that is returned, and a bound on the rounding error is added. So the bound does not depend on
how x was found. Threads may overtake one another, and x may be extrapolated.

**Gauss–Seidel** (the default). Up to a factor, x solves y = c·Pᵀy + (1 − c)·v, without the dangling mass
(Del Corso, Gullì & Romani, "Fast PageRank computation via a sparse linear system", 2005). Nothing depends on
the rows of dangling nodes, so they are computed once, in the last round, which also gives the bound. A sweep goes
over the rows of inlinks and uses new values at once; a self-loop is solved on the diagonal. The sweep takes the
direction in which more inputs of a row are already new. If this share is below 60% in both directions, the sweep goes
in blocks, each in the postorder of a depth-first walk along inlinks. After 3 sweeps, then 4, and so on up to 8, the
next iterate is extrapolated from their changes: reduced rank extrapolation (Smith, Ford & Sidi, "Extrapolation
methods for vector sequences", SIAM Review 1987). Values are float32 while a sweep changes them by more than 2⁻²² of
their sum, because sweeps mostly wait for memory. Sums are float64.

**Power.** x ← F(x) from the uniform vector. The values equal those of many tutorials on MapReduce to the last digit.

Source: Page, Brin, Motwani & Winograd, "The PageRank citation ranking: bringing order to the web", 1999.
With content scores as personalization, it is Aduana's mix of content and links.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import numpy as np

from inlink.base.arrays import AnyArray, Float64Array
from inlink.base.declare import Parameter
from inlink.base.progress import track
from inlink.errors import ParameterError
from inlink.graph.graph import Graph
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.certain import certain_places
from inlink.rank.inputs import VECTORS, NodeValues, distribution, require_vectors, use_weights
from inlink.rank.parameters import (
    DampingTo1,
    MaxIter,
    Method,
    Start,
    Teleport,
    ThreadCount,
    Tolerance,
    Weighted,
    check_rounds,
)
from inlink.rank.ranking import ROUNDOFF, Ranking, ranking_of, timed
from inlink.rank.sweeps import LastSweeps, Plateau, Problem, Sweeper, certified, jacobi_sweep, linear_problem

# If a sweep changes the values by less than this share, the rounding errors of float32 (2⁻²⁴) matter.
NARROW = 2.0**-22

Solution = tuple[Float64Array, int, float]
"""Values float64[n], the number of sweeps, and the bound on the L1 error."""


@timed
def pagerank(
    graph: GraphLike,
    *,
    damping: DampingTo1 = 0.85,
    personalization: Teleport = None,
    tol: Tolerance = 1e-6,
    max_iter: MaxIter = None,
    method: Method = "gauss-seidel",
    start: Start = None,
    weighted: Weighted = None,
    threads: ThreadCount = None,
    certain: Annotated[
        int | None,
        Parameter(
            "Iterate until this number of first places is certain, because their values differ by more than the error "
            "bound.",
            at_least=1,
            none="no place in particular",
            option="--until-certain",
        ),
    ] = None,
) -> Ranking:
    """PageRank with a bound on its error. Dangling nodes teleport.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        In a matrix A[i, j] is the arc i → j.
    damping : float
        c, the probability of following a link: 0 ≤ c < 1. With 1 (the simplified PageRank) there is no bound. Then
        ``method="power"`` and ``max_iter`` are required, and ``tol`` has no effect.
    personalization : float[n], mapping of node to float, Ranking, or None
        The teleport distribution v: values of at least 0, divided by their sum, which is above 0. None is 1/n each.
    tol : float or None
        The error bound to reach, in the L1 norm (the values sum to 1). None makes exactly ``max_iter`` sweeps.
    max_iter : int or None
        The largest number of sweeps; None is 10,000. If they do not suffice, ``converged`` is False.
    method : {"gauss-seidel", "power"}
        The method of solution; the results agree within the bounds.
    start : float[n], mapping, Ranking, or None
        A first guess, such as an earlier ranking of a similar graph; None is 1/n each.
    weighted : bool or None
        Whether an arc is followed in proportion to its weight; None: if the graph has weights.
    threads : int or None
        None uses all processors. With 1 thread the result has the same bits each time. With more threads it varies
        within the bound, except with ``method="power"``.
    certain : int or None
        Continue below ``tol`` until the first ``certain`` places are proven: the values of neighbours there differ by
        more than the error bound. Nodes with the same exact value cannot be separated; ``note`` names their places.

    Returns
    -------
    Ranking
        ``values`` float64[n], which sum to 1. ``error_bound`` ≥ ‖values − exact‖₁ always; ``converged`` says
        whether it is ≤ ``tol``. Without ``tol``, ``converged`` is False. :meth:`Ranking.places` says which places
        are certain.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is out of range; for a negative or infinite value the node is named.
    inlink.errors.UnknownNodeError
        If a mapping names a node that the graph does not have.

    Examples
    --------
    >>> from inlink import Graph, pagerank
    >>> ranking = pagerank(Graph.from_arcs([(0, 1), (1, 2)]))
    >>> ranking.values.round(3).tolist(), ranking.converged
    ([0.184, 0.341, 0.474], True)
    """
    tol = check_solution(damping, tol, max_iter, method)
    if certain is not None and tol is None:
        raise ParameterError("`certain` needs a `tol`: without one the number of sweeps is fixed")
    graph = as_graph(graph)
    parameters = {"damping": damping, "tol": tol, "max_iter": max_iter, "method": method}
    parameters |= {"personalized": personalization is not None, "weighted": use_weights(graph, weighted)}
    if certain is not None:
        parameters["certain"] = certain
    vectors = sum(each is not None for each in (personalization, start, certain))
    memory = {"node": 20, "linking": 12} if method == "power" else dict(VECTORS["pagerank"])
    memory["node"] += 16 * vectors
    memory["linking"] += 16 * bool(parameters["weighted"])
    require_vectors(graph, **memory)
    n = graph.num_nodes
    limit = 10_000 if max_iter is None else max_iter
    x, rounds, bound = np.empty(0), 0, 0.0
    if n:
        teleport, first = first_vectors(graph, personalization, start)
        with linear_problem(graph, teleport, damping, bool(parameters["weighted"]), threads) as problem:
            solve = _power if method == "power" else _gauss_seidel
            x, rounds, bound = solve(problem, first, tol, limit)
            if certain is not None:
                x, rounds, bound = _until_certain(solve, problem, (x, rounds, bound), certain, limit)
    note = "" if certain is None else certain_places(x, bound, certain).summary()
    return ranking_of_solution(graph, (x, rounds, bound), parameters, note)


def first_vectors(
    graph: Graph, personalization: NodeValues | None, start: NodeValues | None
) -> tuple[Float64Array, Float64Array]:
    """Return the teleport and the start of a graph with nodes, each float64[n] with sum 1, or float64[1] if uniform.

    Raises
    ------
    inlink.errors.ParameterError
        If values are negative or not finite, or are all 0.
    inlink.errors.UnknownNodeError
        If a mapping names a node that the graph does not have.
    """
    uniform = np.full(1, 1 / graph.num_nodes)
    return (
        uniform if personalization is None else distribution(graph, personalization, "personalization"),
        uniform if start is None else distribution(graph, start, "start"),
    )


def ranking_of_solution(
    graph: Graph, solution: Solution, parameters: dict[str, Any], note: str = ""
) -> Ranking:
    """Return the ranking of a solution.

    Parameters
    ----------
    graph : Graph
        The ranked graph.
    solution : (float64[n], int, float)
        Values, number of sweeps, and error bound.
    parameters : dict
        The parameters of the ranking, with ``tol``.
    note : str
        A remark for the reader.
    """
    x, rounds, bound = solution
    return ranking_of(
        graph,
        "pagerank",
        x,
        error_bound=bound,
        iterations=rounds,
        converged=parameters["tol"] is not None and bound <= parameters["tol"],
        parameters=parameters,
        dangling="teleport",
        note=note,
    )


def check_solution(damping: float, tol: float | None, max_iter: int | None, method: str) -> float | None:
    """Check the parameters, and return the tolerance: None if damping is 1.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is out of range.
    """
    check_rounds(tol, max_iter)
    if damping != 1:
        return tol
    if method != "power" or max_iter is None:
        raise ParameterError(
            "`damping` must be in [0, 1); got 1. It may be 1 only with method='power' and a fixed max_iter, because "
            "nothing bounds the error then"
        )
    return None


def _until_certain(
    solve: Callable[[Problem, Float64Array, float | None, int], Solution],
    problem: Problem,
    solution: Solution,
    count: int,
    limit: int,
) -> Solution:
    """Lower the bound until the first ``count`` places are certain, or the bound cannot be lowered."""
    x, rounds, bound = solution
    while True:
        places = certain_places(x, bound, count)
        # If the gap is inf, only equal values are left, and no bound can separate them.
        if places.certain.all() or places.gap == math.inf or rounds >= limit:
            return x, rounds, bound
        # The gaps are known only within the bound, so a tiny gap may grow.
        better, more, lower = solve(problem, x.copy(), max(places.gap / 2, bound / 100), limit - rounds)
        rounds += more
        if lower >= bound:
            return x, rounds, bound
        stuck = lower > bound / 2
        x, bound = better, lower
        if stuck:
            return x, rounds, bound


def _power(problem: Problem, x: Float64Array, tol: float | None, limit: int) -> Solution:
    n = problem.graph.num_nodes
    x = np.broadcast_to(x, n).copy()
    y, z = np.empty(n), np.empty(problem.size)
    plateau = Plateau()
    with track("PageRank", None if tol is not None else limit, "rounds") as task:
        for done in range(limit):
            bound, rounding = jacobi_sweep(problem, x, z, y)
            stuck = plateau.reached(bound, done)
            if tol is not None and (bound <= tol or bound <= 2 * rounding or stuck):
                return x, done, bound
            x, y = y, x
            task.advance(1, f"error ≤ {bound:.1e}")
    bound, _ = jacobi_sweep(problem, x, z, np.empty(0))
    return x, limit, bound


# -- Gauss–Seidel with extrapolation -------------------------------------------------------------------------------


def _gauss_seidel(problem: Problem, start: Float64Array, tol: float | None, limit: int) -> Solution:
    from inlink.rank.kernels.pagerank import contributions, dangling_mass

    equation, n = problem.equation, problem.graph.num_nodes
    c = equation.damping
    # With c = 0 F is constant, and there is nothing to solve.
    if c == 0 or limit == 0:
        x = np.broadcast_to(start if c else equation.teleport, n).copy()
        return x, 0, jacobi_sweep(problem, x, np.empty(problem.size), np.empty(0))[0]
    # Values are divided by sums of weights. In float32, very large or very small sums would give 0 or inf.
    z: AnyArray = np.empty(problem.size, np.float64 if equation.strengths.dtype.kind == "f" else np.float32)
    lost = dangling_mass(equation, np.uint64(n), start)
    problem.each(partial(contributions, equation, start, (1 - c) / (c * lost + 1 - c), z))
    # Free the memory of the start.
    del start
    sweeper = Sweeper(problem)
    history = LastSweeps(z, problem)
    # After a sweep only the arcs from nodes that came later still carry a change, so the residual is at most c
    # times their share of the change. If that is within tol, it is worth computing the bound, c times as much.
    ratio = c * c * (1 - sweeper.new)
    # Relative changes of this size are rounding errors.
    floor = 32 * ROUNDOFF
    plateau, done = Plateau(), 0
    with track("PageRank", None if tol is not None else limit, "sweeps") as task:
        while True:
            sweeper.sweep(z)
            done += 1
            change, mass = history.observe(z)
            # The sum of y, with the dangling rows.
            total = 1 - c + c * mass
            estimate = ratio * change / (total * (1 - c))
            task.advance(1, f"error about {estimate:.1e}")
            narrow = z.dtype == np.float32
            stuck = plateau.reached(change / total, done) or change <= (NARROW if narrow else floor) * total
            if done >= limit or (tol is not None and (estimate <= tol or (stuck and not narrow))):
                x, bound, rounding = certified(problem, z)
                ends = done >= limit or tol is None or bound <= max(tol, 2 * rounding)
                if ends or (stuck and not narrow):
                    return x, done, bound
                del x
                ratio = (
                    max(ratio, 0.5) if change == 0 else 1.05 * (bound - rounding) * total * (1 - c) / change
                )
            if stuck and narrow:
                z, plateau = history.widen(z), Plateau()
            history.accelerate(z)
