"""OPIC, on-line page importance: pages hand their cash to the pages they link to.

The importance of a page is the share of all cash that has passed through it.

Every page begins with the same cash, 1 in all. A visit to page i puts its cash C_i into its history H_i and hands it to
its outlinks. There is one more, virtual page. All pages link to it, and it links to all pages, so every page can be
reached from every other page. With S = H + C the estimate is ::

    X = S / Σ S,     Σ S = Σ H + 1                                                                          (1)

**What it converges to.** The total cash of a page is its first cash plus the cash handed to it: S = C₀ + LᵀH, where

    L[i, j] = d_i/(d_i + 1) · w(i→j) / Σ_k w(i→k),    L[i, virtual] = 1/(d_i + 1),    L[virtual, j] = 1/n   (2)

and d_i is the outdegree. (The paper has no weights; equal ones drop out of (2).) So LᵀX − X = (LᵀC − C₀) / Σ S, and
‖LᵀX − X‖₁ ≤ 2 / (Σ H + 1). So for any order of visits, X approaches the stationary distribution π of L while the
history grows. π is a PageRank in which each page has its own damping, d_i/(d_i + 1). A dangling page teleports.

**The error** falls as 1/ΣH, and the residual does not bound it. So π itself is computed too. With y =
n·π/π_virtual and Q for L without the virtual page, the equation is y = Qᵀy + 1. It is solved by the sweeps of
:mod:`inlink.rank.sweeps`. The bound on the relative error of each value is the bound of
:mod:`inlink.rank.spam`: |y − y*| ≤ θ·y*, with θ the largest residual. ``error_bound`` is the distance from X to π plus
the bound on π's own error. Computing π takes less time than the last digits of X. So on a complete graph, OPIC is only
useful to study an order of visits. A crawl's policy ``opic`` uses the same cash during the crawl.

Source: Abiteboul, Preda & Cobena, "Adaptive on-line page importance computation", WWW 2003, with their three orders:
greedy (the most cash next), cyclic, random.
"""

import math
from functools import partial
from typing import Annotated, Literal

import numpy as np

from inlink.base.arrays import Float64Array, slices
from inlink.base.declare import Parameter
from inlink.base.progress import track
from inlink.graph.graph import Graph
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.inputs import arc_weights, require_vectors, strengths, use_weights
from inlink.rank.parameters import MaxIter, Seed, Tolerance, Weighted, check_rounds
from inlink.rank.ranking import ROUNDOFF, Ranking, ranking_of, timed
from inlink.rank.sweeps import LastSweeps, Problem, Sweeper, finish

Order = Literal["greedy", "cyclic", "random"]

# The largest number of rounds if max_iter is None.
ROUNDS = 1000
# The target for the relative error of each value of π.
GOAL = 1e-6
# The largest number of sweeps for π; 80 on cnr-2000.
SWEEPS = 2000
# Sweeps between two computations of the bound.
CHECK = 10
# Visits between two moments at which Ctrl-C can interrupt.
STRETCH = 1 << 18


@timed
def opic(
    graph: GraphLike,
    *,
    order: Annotated[
        Order,
        Parameter("The next page to visit: the page with the most cash, each in turn, or a random page."),
    ] = "greedy",
    tol: Tolerance = 0.01,
    max_iter: MaxIter = None,
    weighted: Weighted = None,
    seed: Seed = 0,
) -> Ranking:
    """On-line page importance, on a complete graph.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        In a matrix A[i, j] is the arc i → j.
    order : {"greedy", "cyclic", "random"}
        The order of visits: the page with the most cash next, all pages in turn, or a random page next. The virtual
        page takes part.
    tol : float or None
        The error bound to reach, in the L1 norm. None makes exactly ``max_iter`` rounds.
    max_iter : int or None
        The largest number of rounds, each of n + 1 visits; None is 1,000. The error falls as 1 / rounds. If they do not
        suffice, ``converged`` is False.
    weighted : bool or None
        Whether cash is divided in proportion to the arcs' weights; None: if the graph has weights.
    seed : int
        Seed of the random order, at least 0. The same seed gives the same bits. (OPIC uses one thread, because each
        visit depends on the visits before.)

    Returns
    -------
    Ranking
        ``values`` float64[n], (1) without the virtual page, whose value is ``parameters["virtual"]``; with it the sum
        is 1. ``error_bound`` ≥ ‖values − π‖₁ always; it is ``inf`` if π could not be found. ``iterations`` is the
        number of rounds.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from inlink.rank.opic import opic
    >>> from inlink import Graph
    >>> ranking = opic(Graph.from_arcs([(0, 1), (1, 2)]), tol=1e-3)
    >>> ranking.values.round(2).tolist()  # 4, 6 and 7 of 29; the virtual page has 12
    [0.14, 0.21, 0.24]
    """
    graph = as_graph(graph)
    check_rounds(tol, max_iter)
    use = use_weights(graph, weighted)
    require_vectors(graph, node=104)
    limit = ROUNDS if max_iter is None else max_iter
    n, rounds, bound = graph.num_nodes, 0, 0.0
    x, virtual = np.empty(0), 1.0
    if n:
        exact, doubt = _stationary(graph, use, GOAL if tol is None else min(GOAL, tol / 100))
        economy = _Economy(graph, use, order, seed)
        with track("OPIC", None if tol is not None else limit, "rounds") as task:
            while True:
                x, virtual = economy.importance()
                distance = float(np.abs(x - exact).sum()) * (1 + (n + 10) * ROUNDOFF) + 8 * ROUNDOFF
                bound = distance + doubt
                if rounds >= limit or (tol is not None and bound <= tol):
                    break
                economy.round()
                rounds += 1
                task.advance(1, f"error ≤ {bound:.1e}")
    parameters = {"order": order, "tol": tol, "max_iter": max_iter, "seed": seed, "weighted": use}
    return ranking_of(
        graph,
        "opic",
        x,
        error_bound=bound,
        iterations=rounds,
        converged=tol is not None and bound <= tol,
        parameters=parameters | {"virtual": virtual},
        dangling="teleport",
    )


class _Economy:
    """The pages, the virtual page, and their cash."""

    def __init__(self, graph: Graph, weighted: bool, order: Order, seed: int) -> None:
        from inlink.rank.kernels.opic import CashLinks, Economy, Heap

        n = graph.num_nodes
        rows = graph.out_rows
        self.links = CashLinks(
            rows.offsets, rows.nodes, arc_weights(rows, weighted), strengths(graph, weighted)
        )
        self.order = order
        self.random = np.random.default_rng(seed)
        virtual = np.array([1 / (n + 1), 0.0, 0.0])
        self.state = Economy(np.full(n, 1 / (n + 1)), np.zeros(n), virtual)
        # At first all pages have the same cash, so 0, 1, 2, … is a heap.
        size = n if order == "greedy" else 0
        self.heap = Heap(np.arange(size, dtype=np.uint32), np.arange(size, dtype=np.uint32))

    def round(self) -> None:
        """Make n + 1 visits."""
        from inlink.rank.kernels.opic import visit_in_order, visit_richest

        visits = len(self.state.cash) + 1
        if self.order == "greedy":
            for part in slices(visits, STRETCH):
                visit_richest(self.links, np.uint64(part.stop - part.start), self.heap, self.state)
            return
        for part in slices(visits, STRETCH):
            pages = np.arange(part.start, part.stop, dtype=np.uint32)
            if self.order != "cyclic":
                pages = self.random.integers(0, visits, len(pages), dtype=np.uint32)
            visit_in_order(self.links, pages, self.state)

    def importance(self) -> tuple[Float64Array, float]:
        """Return X of the pages and of the virtual page."""
        from inlink.rank.kernels.gather import compensated_sum
        from inlink.rank.kernels.opic import CASH, EACH, HISTORY

        cash, history, virtual_page = self.state
        passed = history + cash
        passed += virtual_page[EACH]
        virtual = float(virtual_page[HISTORY] + virtual_page[CASH])
        total = compensated_sum(passed) + virtual
        return passed / total, virtual / total


def _stationary(graph: Graph, weighted: bool, goal: float) -> tuple[Float64Array, float]:
    """Return π of the pages and a bound on its L1 error; infinite if no bound is known."""
    from inlink.rank.kernels.gather import compensated_sum
    from inlink.rank.kernels.pagerank import Equation

    n, rows = graph.num_nodes, graph.split_in_rows
    degrees = graph.outdegrees.astype(np.float64)
    # y = Qᵀy + 1 is PageRank's x = c·Pᵀx + (1 − c)·v with c = 1/2, v = 1 and these strengths
    half = np.divide(degrees + 1, 2 * degrees, out=np.zeros(n), where=degrees > 0)
    sending = strengths(graph, weighted) * half
    sending = sending[rows.linking] if len(rows.linking) else sending
    equation = Equation(
        rows.offsets, rows.nodes, arc_weights(rows, weighted), rows.linking, sending, np.ones(1), 0.5
    )
    problem = Problem(graph, equation)
    z = np.divide(0.5, sending, out=np.zeros(problem.size), where=sending > 0)
    sweeper, history = Sweeper(problem), LastSweeps(z, problem)
    done = 0
    with track("OPIC's limit", None, "sweeps") as task:
        while True:
            sweeper.sweep(z)
            done += 1
            change, mass = history.observe(z)
            stuck = change <= 32 * ROUNDOFF * mass or done >= SWEEPS
            if stuck or done % CHECK == 0:
                y = np.empty(n)
                finish(problem, z, y)
                # The virtual page receives as much as it gives.
                y *= n / compensated_sum(y / (degrees + 1))
                theta = _largest_residual(problem, y)
                task.advance(CHECK, f"error of each value {theta:.1e}")
                if stuck or theta <= goal:
                    break
            history.accelerate(z)
    # The relative error of each y is at most s, so the error of π is at most 2s / (1 − s).
    share = theta / (1 - theta) if theta < 1 else math.inf
    y /= n + compensated_sum(y)
    return y, 2 * share / (1 - share) + 16 * ROUNDOFF if share < 1 else math.inf


def _largest_residual(problem: Problem, y: Float64Array) -> float:
    """Return θ, the largest residual of y = Qᵀy + 1."""
    from inlink.rank.kernels.pagerank import contributions
    from inlink.rank.kernels.residual import largest_residual

    z = np.empty(problem.size)
    equation = problem.equation._replace(damping=1.0)
    problem.each(partial(contributions, equation, y, 0.5, z))
    return float(max(problem.each_node(partial(largest_residual, equation, 1.0, z, y))))
