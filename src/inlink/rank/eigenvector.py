"""Eigenvector centrality: the value of a page is the sum of the values of the pages that link to it, up to a factor.

    λ₁·x = Aᵀx,   x ≥ 0,   ‖x‖₂ = 1                                                                        (1)

with A the adjacency matrix and λ₁ its spectral radius, which is an eigenvalue with such a vector (Perron &
Frobenius). Sources: Landau, "Zur relativen Wertbemessung der Turnierresultate", 1895; Bonacich, "Technique
for analyzing overlapping memberships", Sociological Methodology 1972. Orientation and norm are NetworkX's;
``graph.transpose()`` ranks by outlinks.

**Power iteration with a shift**: x ← Aᵀx + s·x, divided by its length. Without the shift, x would oscillate for ever if
the lengths of all cycles have a common factor, as in a star with links in both directions. NetworkX uses s = 1, which
has little effect if λ₁ is large. Here s is an eighth of the estimate of λ₁. The slowest such oscillation shrinks by 7/9
a round. On cnr-2000 this costs a tenth more rounds.

**Uniqueness.** On a strongly connected graph the solution is unique, and every value is above 0. On other graphs only
strong components of radius λ₁, and the nodes that they reach, have values above 0. If two of these components do not
reach one another, (1) has many solutions. A second start, with a random number for each component, detects this, and
the ranking reports it. A graph without a cycle has λ₁ = 0, and all values are 0.

**Why there is a residual and no bound.** ‖Aᵀx − λx‖₂ / λ says how well (1) holds. The distance to the solution is
larger by a factor that depends on all other eigenvectors, which are not known.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from inlink.base.arrays import BoolArray, Float64Array, UInt32Array
from inlink.base.declare import Parameter
from inlink.base.progress import track
from inlink.errors import ParameterError
from inlink.graph.components import components, reachable
from inlink.graph.graph import Graph
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.inputs import VECTORS, node_values, require_vectors, use_weights
from inlink.rank.krylov import length_of, principal_vector
from inlink.rank.parameters import MaxIter, Start, ThreadCount, Tolerance, Weighted
from inlink.rank.ranking import Ranking, ranking_of, timed
from inlink.rank.rowsums import RowSums

SHIFT = 1 / 8
# Rounds before the first run of Arnoldi. The number doubles after each run that does not help.
FIRST = 20
# Vectors of Arnoldi's basis. On cnr-2000, 20 vectors need as many products and more other work.
BASIS = 10
# Two vectors that satisfy (1) are different solutions if their distance is above this number.
APART = 1e-2


@timed
def eigenvector(
    graph: GraphLike,
    *,
    tol: Annotated[Tolerance, Parameter("Residual to reach.")] = 1e-6,
    max_iter: MaxIter = 1000,
    start: Start = None,
    weighted: Weighted = None,
    threads: ThreadCount = None,
) -> Ranking:
    """The principal eigenvector of the links.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        In a matrix A[i, j] is the arc i → j.
    tol : float or None
        The residual to reach. None makes exactly ``max_iter`` rounds.
    max_iter : int or None
        The largest number of rounds; None is 1000. If they do not suffice, ``converged`` is False.
    start : float[n], mapping, Ranking, or None
        A first guess; None is the same for each node. If the answer is not unique, the start decides it. So
        ``parameters["started"]`` is True if it is given.
    weighted : bool or None
        Whether an arc counts by its weight; None: if the graph has weights.
    threads : int or None
        None uses all processors. The result has the same bits with any number of threads.

    Returns
    -------
    Ranking
        ``values`` float64[n], at least 0, of length (L2 norm) 1, or all 0. ``residual`` is ‖Aᵀx − λx‖₂ / λ;
        ``parameters["eigenvalue"]`` is λ. ``unique`` says whether a second start led to the same values, and is None
        if that did not converge. ``note`` says if all values are 0 or the answer is not unique.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is out of range; for a negative or infinite value the node is named.
    inlink.errors.UnknownNodeError
        If a mapping names a node that the graph does not have.

    Examples
    --------
    >>> from inlink.rank.eigenvector import eigenvector
    >>> from inlink import Graph
    >>> ranking = eigenvector(Graph.from_arcs([(0, 1), (1, 0), (1, 2), (2, 0)]))
    >>> ranking.values.round(3).tolist(), ranking.converged, ranking.unique
    ([0.727, 0.548, 0.414], True, True)
    """
    graph = as_graph(graph)
    max_iter = 1000 if max_iter is None else max_iter
    require_vectors(graph, **VECTORS["eigenvector"])
    n = graph.num_nodes
    use = use_weights(graph, weighted)
    first = np.ones(n) if start is None else node_values(graph, start, "start")
    if n and not first.any():
        raise ParameterError("`start` must have a value above 0; all are 0")
    label = components(graph.out_rows, strong=True)
    solution, unique, note = _Eigenpair(np.zeros(n), 0.0, 0.0, 0), None, ""
    on_cycle = _on_cycle(graph, label)
    if not on_cycle.any():
        note = "no page reaches itself, so the largest eigenvalue and all values are 0"
    elif (
        start is not None and not (reachable(graph.out_rows, np.flatnonzero(first).tolist()) & on_cycle).any()
    ):
        note = "no page of the start reaches a cycle, so all values are 0"
    else:
        with RowSums(graph.split_in_rows, use, threads) as sums, track("eigenvector", None, "rounds") as task:
            solution = _power(sums, first, tol, max_iter, task)
            if tol is not None and solution.residual <= tol:
                other = _power(sums, np.random.default_rng(0).random(n)[label], tol, max_iter, task)
                if other.residual <= tol:
                    unique = length_of(solution.x - other.x) <= APART
                    if not unique:
                        note = "the eigenvector is not unique, or nearly so: another start gives other values"
    parameters = {"tol": tol, "max_iter": max_iter, "weighted": use, "eigenvalue": solution.eigenvalue}
    if start is not None:
        parameters["started"] = True
    return ranking_of(
        graph,
        "eigenvector",
        solution.x,
        residual=solution.residual,
        iterations=solution.rounds,
        converged=not solution.x.any() or (tol is not None and solution.residual <= tol),
        unique=unique,
        note=note,
        parameters=parameters,
    )


class _Eigenpair(NamedTuple):
    """An approximate eigenvector of length 1 or 0, its eigenvalue, the residual, and the number of rounds."""

    x: Float64Array
    eigenvalue: float
    residual: float
    rounds: int


def _power(sums: RowSums, x: Float64Array, tol: float | None, limit: int, task: Any) -> _Eigenpair:
    """Iterate from x until the residual is at most tol."""
    x = x / x.max()
    x /= length_of(x)
    y = sums(x)
    rounds, wait, at = 0, FIRST, FIRST
    while True:
        eigenvalue, residual = _quotient(x, y)
        if rounds >= limit or (tol is not None and residual <= tol):
            return _Eigenpair(x, eigenvalue, residual, rounds)
        if rounds >= at and tol is not None and len(x) > BASIS:
            ahead, products = _arnoldi(sums, x, tol, (limit - rounds) // BASIS)
            rounds += products
            task.advance(products, f"residual {residual:.1e}")
            image = sums(ahead)
            if _quotient(ahead, image)[1] < residual / 2:
                x, y, wait, at = ahead, image, FIRST, rounds + FIRST
                continue
            wait *= 2
            at = rounds + wait
        x = y + SHIFT * length_of(y) * x
        x /= length_of(x)
        y = sums(x)
        rounds += 1
        task.advance(1, f"residual {residual:.1e}")


def _quotient(x: Float64Array, y: Float64Array) -> tuple[float, float]:
    """Return λ = xᵀy for y = Aᵀx, and the residual of y = λx."""
    eigenvalue = float((x * y).sum())
    return eigenvalue, length_of(y - eigenvalue * x) / eigenvalue if eigenvalue > 0 else np.inf


def _arnoldi(sums: RowSums, x: Float64Array, tol: float, restarts: int) -> tuple[Float64Array, int]:
    """Return a better x (of length 1, at least 0) or x itself, and the number of products with Aᵀ."""
    from inlink.base.jit import one_blas_thread

    if restarts < 1:
        return x, 0
    with one_blas_thread():
        vector, products = principal_vector(sums, x, basis=BASIS, cycles=restarts, tol=tol / 2)
    length = length_of(vector)
    return (np.abs(vector) / length, products) if length > 0 else (x, products)


def _on_cycle(graph: Graph, label: UInt32Array) -> BoolArray:
    """Return a mask of the nodes that lie on a cycle, bool[n]."""
    from inlink.graph.kernels.walks import self_loops

    cycle = np.zeros(len(label), np.bool_)
    self_loops(graph.out_rows.offsets, graph.out_rows.nodes, cycle)
    cycle |= np.bincount(label, minlength=1)[label] > 1
    return cycle
