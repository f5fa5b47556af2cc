"""PageRank by random walks (Monte Carlo): a quick estimate with its confidence, which can be updated when links are
added.

A walk begins at a node. With probability c, the damping, it follows an outlink; otherwise it ends. If all nodes are
equally likely starts, the walk ends at j with probability x_j, the PageRank, and visits j x_j/(1 − c) times on
average. Avrachenkov, Litvak, Nemirovsky & Osipova, "Monte Carlo methods in PageRank computation: when one
iteration is sufficient", SIAM J. Numer. Anal. 2007, derive five algorithms from this:

1. ``end-point``, ``order="random"``: the share of walks that end at j. From dangling nodes, walks go to a random node.
2. ``end-point``, ``order="cyclic"``: the same number of walks from each node, which varies less.
3. ``complete-path``: the share of visits to j among all visits. From dangling nodes, walks go to a random node. (The
   paper divides by the expected number of visits instead, so that the values sum to 1 only on average.)
4. ``stop-at-dangling``: the same share, but walks end at dangling nodes. This changes PageRank only by a factor.
5. The same as 4 with ``order="random"``.

The fourth is the best algorithm of the paper, and the default here. With one walk from each node, the first places are
already right.

**Confidence.** n walks form a round, and rounds are independent. So the error is estimated from the spread between
rounds, with Student's t, as for any ratio of means (Cochran, *Sampling techniques*, 1977, 6.4). The estimate is
accurate for nodes with many visits, so for the pages at the top.

**A certain bound** is ``error_bound``, as in :mod:`inlink.rank.pagerank`. It holds for any vector and takes one sweep
over the arcs. It is at most (1 + c)/(1 − c) times the error.

**Updates.** :class:`Walks` records the walks. When the graph has changed, a walk is kept up to the first step whose
probabilities have changed, and only the rest is drawn again (Bahmani, Chowdhury & Goel, "Fast incremental and
personalized PageRank", VLDB 2010). Here arcs may be added or removed, or change their weights; see
:func:`inlink.rank.kernels.walks.record_walks`. So updated walks are as good as new ones.
"""

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from inlink.base.arrays import AnyArray, BoolArray, Float64Array, UInt32Array
from inlink.base.declare import Parameter, checked
from inlink.base.progress import track
from inlink.base.table import counted
from inlink.errors import ParameterError
from inlink.graph.graph import Graph, Rows
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.inputs import require_vectors, use_weights
from inlink.rank.parameters import Confidence, Damping, Seed, ThreadCount, Weighted
from inlink.rank.ranking import Ranking, ranking_of, timed
from inlink.rank.sweeps import jacobi_sweep, linear_problem

if TYPE_CHECKING:
    from inlink.rank.kernels.walks import Arcs, Recorded


Walking = Annotated[int, Parameter("Number of walks from each node.", at_least=2)]
Method = Literal["end-point", "complete-path", "stop-at-dangling"]
# The numbers of the methods in kernels/walks.py.
_KINDS = {"end-point": 0, "complete-path": 1, "stop-at-dangling": 2}


@timed
def mcmc(
    graph: GraphLike,
    *,
    walks: Walking = 10,
    damping: Damping = 0.85,
    method: Annotated[Method, Parameter("Visits of walks that are counted.")] = "stop-at-dangling",
    order: Annotated[
        Literal["cyclic", "random"],
        Parameter("Start of the walks: each node in turn, or random nodes."),
    ] = "cyclic",
    confidence: Confidence = 0.95,
    weighted: Weighted = None,
    seed: Seed = 0,
    threads: ThreadCount = None,
) -> Ranking:
    """PageRank estimated by random walks.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        In a matrix A[i, j] is the arc i → j.
    walks : int
        The number of walks from each node; at least 2, because their spread gives the error.
    damping : float
        c, the probability of following a link: 0 ≤ c < 1.
    method : {"end-point", "complete-path", "stop-at-dangling"}
        The visits that count, and the behaviour of walks at dangling nodes: see the module. All methods estimate the
        PageRank with teleporting dangling nodes.
    order : {"cyclic", "random"}
        Whether ``walks`` walks start at each node, one node after the other, or each walk at a random node.
    confidence : float
        Probability that the error of a value is below ``half_width``: above 0 and below 1.
    weighted : bool or None
        Whether an arc is followed in proportion to its weight; None: if the graph has weights.
    seed : int
        Seed of the random numbers, at least 0. The same seed gives the same bits, with any number of threads.
    threads : int or None
        None uses all processors.

    Returns
    -------
    Ranking
        ``values`` float64[n], which sum to 1. ``error_bound`` ≥ ‖values − exact‖₁ always.
        ``parameters["half_width"]`` bounds the error of the least certain value with this confidence, and
        ``parameters["l1_estimate"]`` estimates the L1 error; ``note`` has both. ``iterations`` is ``walks``, and
        ``converged`` is False.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from inlink.rank.mcmc import mcmc
    >>> from inlink import Graph
    >>> ranking = mcmc(Graph.from_arcs([(0, 1), (1, 2)]), walks=10_000)
    >>> ranking.values.round(2).tolist()
    [0.18, 0.34, 0.47]
    """
    from inlink.base.jit import num_threads
    from inlink.rank.kernels.blocks import each_block
    from inlink.rank.kernels.walks import count_walks

    graph = as_graph(graph)
    require_vectors(graph, node=100)
    arcs = _arcs(graph, use_weights(graph, weighted))

    def work(_: None, number: int) -> UInt32Array:
        visits = np.zeros(graph.num_nodes, np.uint32)
        count_walks(arcs, damping, _key(seed, 0, number), order == "random", _KINDS[method], visits)
        return visits

    spread = _Spread(graph.num_nodes)
    with track("walks", walks, "rounds") as task:
        for visits in each_block(walks, num_threads(threads), lambda: None, work):
            spread.add(visits)
            task.advance(1)
    parameters = {"method": method, "order": order, "seed": seed}
    return _ranking(graph, spread, confidence, damping, weighted, threads, parameters)


class Walks:
    """Recorded walks and the PageRank that they estimate; they can be updated when the graph changes.

    They are those of ``mcmc(…, method="stop-at-dangling")``: about 4 bytes a visit, at most 4 · ``walks`` /
    (1 − c) bytes a node.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        In a matrix A[i, j] is the arc i → j. It is kept until the next :meth:`update`.
    walks, damping, weighted, seed, threads
        As in :func:`mcmc`.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from inlink.rank.mcmc import Walks
    >>> from inlink import Graph
    >>> walks = Walks(Graph.from_arcs([(0, 1), (1, 2)]), walks=10_000)
    >>> walks.update(Graph.from_arcs([(0, 1), (1, 2), (0, 2)])) < 10_000  # a third of all walks see page 0
    True
    >>> walks.ranking().values.round(2).tolist()
    [0.2, 0.28, 0.52]
    """

    @checked
    def __init__(
        self,
        graph: GraphLike,
        *,
        walks: Walking = 10,
        damping: Damping = 0.85,
        weighted: Weighted = None,
        seed: Seed = 0,
        threads: ThreadCount = None,
    ) -> None:
        from inlink.rank.kernels.walks import Recorded

        self._graph = Graph(Rows(np.zeros(1, np.uint64), np.empty(0, np.uint32)))
        self._walks, self._damping, self._weighted = walks, damping, weighted
        self._seed, self._threads, self._generation = seed, threads, 0
        self._arcs = _arcs(self._graph, False)
        self._recorded = [Recorded(np.zeros(1, np.uint64), np.empty(0, np.uint32))] * walks
        self.update(graph)

    def update(self, graph: GraphLike) -> int:
        """Update the walks for a graph that begins with the nodes of the last graph, in the same order.

        Returns
        -------
        int
            The number of earlier walks that have changed.

        Raises
        ------
        inlink.errors.ParameterError
            If the graph has fewer nodes than the last one, or ``weighted`` does not fit it.
        """
        from inlink.base.jit import num_threads
        from inlink.rank.kernels.blocks import each_block
        from inlink.rank.kernels.walks import Recorded, changed_rows

        graph = as_graph(graph)
        before = self._graph.num_nodes
        if graph.num_nodes < before:
            raise ParameterError(
                f"the graph has {counted(graph.num_nodes, 'node')}, but the graph before had {before:,}: "
                "keep all nodes with their numbers"
            )
        arcs = _arcs(graph, use_weights(graph, self._weighted))
        changed = np.zeros(before, np.bool_)
        changed_rows(self._arcs, arcs, changed)

        def work(_: None, number: int) -> tuple[Recorded, int]:
            return _record(
                self._recorded[number],
                self._arcs,
                changed,
                arcs,
                self._damping,
                _key(self._seed, self._generation, number),
            )

        with track("walks", self._walks, "rounds") as task:
            rounds = []
            for result in each_block(self._walks, num_threads(self._threads), lambda: None, work):
                rounds.append(result)
                task.advance(1)
        self._graph, self._arcs = graph, arcs
        self._recorded = [recorded for recorded, _ in rounds]
        self._generation += 1
        return sum(anew for _, anew in rounds)

    @timed
    def ranking(self, *, confidence: Confidence = 0.95) -> Ranking:
        """The PageRank that the walks estimate, float64[n]; see :func:`mcmc` for its error.

        Raises
        ------
        inlink.errors.ParameterError
            If the confidence is not between 0 and 1.
        """
        spread = _Spread(self._graph.num_nodes)
        for _, path in self._recorded:
            spread.add(np.bincount(path, minlength=self._graph.num_nodes))
        parameters = {"method": "stop-at-dangling", "order": "cyclic", "seed": self._seed}
        parameters["updates"] = self._generation - 1
        return _ranking(
            self._graph, spread, confidence, self._damping, self._weighted, self._threads, parameters
        )


def _record(
    old: "Recorded", old_arcs: "Arcs", changed: BoolArray, arcs: "Arcs", damping: float, key: np.uint64
) -> tuple["Recorded", int]:
    """Record walks from each node of ``arcs``, reusing old walks. Return them and the number of changed old walks."""
    from inlink.rank.kernels.walks import Recorded, record_walks

    n = len(arcs.offsets) - 1
    ends = np.zeros(n + 1, np.uint64)
    gains = np.empty(int(np.diff(arcs.offsets).max(initial=0)))
    path = np.empty(len(old.path) + 4 * (n - len(old.ends) + 1) + 1024, np.uint32)
    walk, anew = np.uint64(0), 0
    while True:
        walk, more = record_walks(
            old_arcs, changed, old, arcs, damping, key, gains, np.uint64(walk), ends, path
        )
        anew += int(more)
        if walk == n:
            return Recorded(ends, path[: int(ends[-1])].copy()), anew
        path = np.concatenate([path, np.empty(len(path) // 2, np.uint32)])


def _arcs(graph: Graph, weighted: bool) -> "Arcs":
    from inlink.rank.kernels.walks import Arcs, row_sums

    rows = graph.out_rows
    sums = np.empty(0)
    if weighted and rows.weights is not None:
        sums = np.empty(len(rows.nodes))
        row_sums(rows.offsets, rows.weights, sums)
    return Arcs(rows.offsets, rows.nodes, sums)


def _key(seed: int, generation: int, number: int) -> np.uint64:
    """Return the key of the random numbers of a round of walks."""
    return np.uint64(np.random.SeedSequence([seed, generation, number]).generate_state(1, np.uint64)[0])


class _Spread:
    """Sums and spread of the visits, or of the ends, of rounds of walks."""

    def __init__(self, n: int) -> None:
        self.sums, self.squares, self.products = np.zeros(n), np.zeros(n), np.zeros(n)
        self.all: list[float] = []

    def add(self, visits: AnyArray) -> None:
        """Add a round."""
        count = visits.astype(np.float64)
        size = float(count.sum())
        self.sums += count
        self.squares += count * count
        self.products += count * size
        self.all.append(size)

    def result(self, confidence: float) -> tuple[Float64Array, Float64Array, float]:
        """Return the share of each node, half the width of its confidence interval, and an estimate of the L1 error."""
        rounds, total = len(self.all), math.fsum(self.all)
        x = self.sums / total
        apart = self.squares - 2 * x * self.products + x * x * math.fsum(size * size for size in self.all)
        deviation = np.sqrt(np.maximum(apart, 0) * (rounds / (rounds - 1))) / total
        half_width = deviation * t_quantile(rounds - 1, confidence)
        # The mean absolute value of a normal variable is √(2/π) times its deviation. A few rounds underestimate the
        # deviation.
        shown = math.sqrt(2 / (rounds - 1)) * math.exp(
            math.lgamma(rounds / 2) - math.lgamma((rounds - 1) / 2)
        )
        return x, half_width, float(math.sqrt(2 / math.pi) / shown * deviation.sum())


def t_quantile(freedom: int, confidence: float) -> float:
    """Return the t for which Student's variable is within ±t with this probability.

    The probability is a finite sum for whole degrees of freedom: Abramowitz & Stegun, "Handbook of Mathematical
    Functions", 26.7.3 and 26.7.4. It increases with the angle arctan(t/√ν), so bisection finds t.
    """
    odd = freedom % 2
    k = np.arange(1, (freedom - odd) // 2)
    factors = np.cumprod(np.concatenate([np.ones(1), (2 * k - 1 + odd) / (2 * k + odd)]))
    powers = 2 * np.arange(len(factors)) + odd

    def within(angle: float) -> float:
        share = math.sin(angle) * float((factors * math.cos(angle) ** powers).sum()) if freedom > 1 else 0.0
        return 2 / math.pi * (angle + share) if odd else share

    low, high = 0.0, math.pi / 2
    for _ in range(64):
        middle = (low + high) / 2
        if within(middle) < confidence:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan(high)


def _ranking(
    graph: Graph,
    spread: _Spread,
    confidence: float,
    damping: float,
    weighted: bool | None,
    threads: int | None,
    parameters: dict[str, Any],
) -> Ranking:
    n, bound, note = graph.num_nodes, 0.0, ""
    use = use_weights(graph, weighted)
    x = np.empty(0)
    if n:
        x, half_width, distance = spread.result(confidence)
        with linear_problem(graph, np.full(1, 1 / n), damping, use, threads) as problem:
            bound = jacobi_sweep(problem, x, np.empty(problem.size), np.empty(0))[0]
        parameters |= {"half_width": float(half_width.max()), "l1_estimate": distance}
        note = (
            f"about {distance:.1e} by the spread of {len(spread.all):,} rounds, and no value likely to be more than "
            f"{half_width.max():.1e} off (confidence {confidence:g} each)"
        )
    parameters |= {
        "walks": len(spread.all),
        "damping": damping,
        "confidence": confidence,
        "weighted": use,
    }
    return ranking_of(
        graph,
        "mcmc",
        x,
        error_bound=bound,
        iterations=len(spread.all),
        converged=False,
        note=note,
        parameters=parameters,
        dangling="teleport",
    )
