"""Changes of PageRank if links are added and removed: rank before and after, and an interval for the change.

Let x be the PageRank of a graph of n nodes, as :mod:`inlink.rank.pagerank` defines it. Its nodes teleport the mass b =
c·Σ_dangling x + 1 − c. Edits turn the rows P of some sources into P′. The solution of the edited equation with the
same mass b is x + d, where ::

    d = c·P′ᵀd + ρ,     ρ = c·Σ_s x_s·(P′_s − P_s) + b·Σ_new v_new·e_new                                    (1)

Here the rows of dangling nodes are 0, and a new node has the teleport v of the others if that is uniform, else none. So
ρ is 0 but at the ends of edited rows. With σ = Σd, the PageRank of node t changes by ::

    (d_t − x_t·σ) / (1 + σ)                                                                                 (2)

Nothing here is a difference of two rankings, so the precision is relative to the change.

**Backwards, for named nodes.** With N = (I − c·P′)⁻¹, whose entry N[j, t] counts the discounted visits to t of a walk
from j, d_t = Σ_j ρ_j·N[j, t]. *Reverse push* (Jeh & Widom, "Scaling personalized web search", WWW 2003; Andersen et
al., "Local computation of PageRank contributions", WAW 2007) finds the column N[·, t] along the inlinks of t. It keeps
p and q ≥ 0 with N[·, t] = p + N·q. Each row of N sums to at most 1 / (1 − c), so p ≤ N[·, t] ≤ p + max(q) / (1 − c).
Few nodes are touched if few walks lead to t. The sum σ is 0 if no node of the edited graph is dangling or new.
Otherwise each row of N sums to 1 … 1 / (1 − c), which bounds σ.

**Forwards, for all nodes.** The sweeps of :mod:`inlink.rank.sweeps` solve (1) on the graph's rows without the sources,
and what the sources pass on is added to ρ before each sweep. Both parts of P′ are at least 0, so this converges. If r
is the residual of (1), ‖error of d‖₁ ≤ ‖r‖₁ / (1 − c). This finds places, and what the first way leaves open.

**The ranking before** has an L1 error ε. It is certified by one round on the values that are given. It changes d_t by
at most ε·max_s c·|((P′_s − P_s)·N)_t|, and by at most that maximum over all t. It is ranked on until this is small.

Every interval contains the exact change, with rounding. A change is *decided* if its interval is at most 1% of it.

**One link.** For a new link s → t of a node with k outlinks, and N of the graph before, (1) has the closed form ::

    d_t = c·x_s/(k + 1) · [N[t, t] − (N[s, t] − [s = t])/c] / (1 + (N[s, s] − 1 − c·N[t, s])/(k + 1))       (3)

because P′ differs from P in one row (Sherman & Morrison 1950). :mod:`inlink.rank.suggest` uses its numerator.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Annotated, Any, NamedTuple

import numpy as np

from inlink.base.arrays import Float64Array, Int64Array
from inlink.base.declare import Parameter, checked
from inlink.base.table import counted, html_table
from inlink.errors import ParameterError
from inlink.graph.edits import Edits, Links
from inlink.graph.graph import Graph
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.certain import best_nodes
from inlink.rank.inputs import (
    Nodes,
    NodeValues,
    arc_weights,
    distribution,
    node_values,
    require_vectors,
    strengths,
    strengths_by_place,
    use_weights,
)
from inlink.rank.pagerank import pagerank
from inlink.rank.parameters import Damping, Start, Teleport, ThreadCount, Weighted
from inlink.rank.ranking import ROUNDOFF
from inlink.rank.sweeps import (
    SMALL,
    LastSweeps,
    Plateau,
    Problem,
    Sweeper,
    error_bound,
    jacobi_sweep,
    linear_problem,
)

__all__ = ["Before", "Interval", "NodeChange", "RankChanges", "Visits", "changes_of", "whatif"]

PRECISION = 0.01
"""The largest width of a decided interval, as a share of the change."""

FLOOR = 1e-15
"""The smallest error bound that a ranking is asked for; rounding ends it earlier."""

SWEEPS = 2000


class Interval(NamedTuple):
    """An interval that contains an exact value: ``low`` ≤ value ≤ ``high``."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """The middle of the interval."""
        return (self.low + self.high) / 2

    def is_within(self, precision: float) -> bool:
        """Return whether the width is at most this share of the value, for each value in the interval."""
        return self.high - self.low <= precision * max(self.low, -self.high, 0.0)


class NodeChange(NamedTuple):
    """The change of a node's PageRank by edits. Each interval contains the exact value.

    Attributes
    ----------
    node : str or int
        The name, or the number if there are no names.
    before, after : Interval
        The PageRank; 0 before the edits for a new node.
    change : Interval
        The difference of the two, which is more precise than ``before`` and ``after``.
    place_before, place_after : (int, int) or None
        The first and the last place that the node can have, from 1. Nodes with the same exact value share places. None
        if places were not asked for, and before the edits for a new node.
    reason : str
        Reason why the change is not decided; empty if it is.
    """

    node: str | int
    before: Interval
    after: Interval
    change: Interval
    place_before: tuple[int, int] | None
    place_after: tuple[int, int] | None
    reason: str

    @property
    def decided(self) -> bool:
        """Whether the interval of the change is as narrow as was asked for."""
        return not self.reason


class RankChanges(Sequence[NodeChange]):
    """The answer of :func:`whatif`: a sequence of :class:`NodeChange`.

    Attributes
    ----------
    nodes : list of NodeChange
        The nodes that were named, in their order, or the best nodes after the edits.
    added, removed : int
        The number of links that the graph gets and loses.
    new : list of str, or list of int
        The nodes that the graph gets.
    precision : float
        The width of a decided interval, as a share of the change.
    """

    def __init__(self, nodes: list[NodeChange], edits: Edits, precision: float) -> None:
        self.nodes = nodes
        self.added, self.removed, self.new = len(edits.added), len(edits.removed), edits.new
        self.precision = precision

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[NodeChange]:
        return iter(self.nodes)

    def __getitem__(self, place: Any) -> Any:
        return self.nodes[place]

    @property
    def decided(self) -> bool:
        """Whether all changes are decided."""
        return all(node.decided for node in self.nodes)

    def __repr__(self) -> str:
        decided = sum(node.decided for node in self.nodes)
        edits = f"{counted(self.added, 'link')} added, {self.removed:,} removed"
        return f"<inlink change: {edits}; {decided} of {counted(len(self), 'node')} decided>"

    def _repr_html_(self) -> str:
        rows = [
            (str(row.node), row.before.middle, row.after.middle, row.change.low, row.change.high, row.reason)
            for row in self.nodes
        ]
        heads = ["node", "before", "after", "change from", "to", "not decided"]
        return html_table(repr(self)[1:-1], heads, rows)


@checked
def whatif(
    graph: GraphLike,
    add: Links = (),
    remove: Links = (),
    *,
    nodes: Nodes | None = None,
    top: Annotated[int, Parameter(at_least=0)] = 10,
    places: bool = True,
    damping: Damping = 0.85,
    personalization: Teleport = None,
    weighted: Weighted = None,
    start: Start = None,
    precision: Annotated[float, Parameter(above=0, at_most=1)] = PRECISION,
    threads: ThreadCount = None,
) -> RankChanges:
    """Return how PageRank would change if links were added and removed, as intervals that contain the exact change.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        The graph before. It is not changed, nor copied.
    add, remove : iterable of (source, target)
        The links to add and to remove. Nodes that the graph lacks are new. A link that is added twice counts once, and
        so does a link that the graph has.
    nodes : iterable of nodes, or None
        The nodes to answer for; None: the best nodes after the edits.
    top : int
        The number of nodes if ``nodes`` is None.
    places : bool
        Whether to find the nodes' places, which needs the changes of all nodes. Without places, a change of a few named
        nodes costs a twentieth of a ranking or less.
    damping, personalization, weighted, threads
        As in :func:`inlink.pagerank`. With a personalization, no surfer teleports to new nodes.
    start : float[n], mapping, Ranking, or None
        An earlier ranking of the graph with these parameters. It saves time; any values are correct.
    precision : float
        The interval of a change is narrowed until its width is at most this share of the change.

    Returns
    -------
    RankChanges
        A :class:`NodeChange` for each node.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is out of range, the graph has no nodes, or a link is both added and removed.
    inlink.errors.UnknownNodeError
        If a node of ``nodes`` is in neither graph, or a link to remove is not in the graph.

    Examples
    --------
    >>> import inlink
    >>> graph = inlink.Graph([("home", "news"), ("news", "home"), ("news", "story"), ("story", "home")])
    >>> [change] = inlink.whatif(graph, add=[("home", "story")], nodes=["story"])
    >>> round(change.before.middle, 3), round(change.after.middle, 3), change.decided
    (0.215, 0.333, True)
    >>> change.place_before, change.place_after
    ((3, 3), (2, 2))
    """
    graph = as_graph(graph)
    before = Before(graph, damping, personalization, weighted, start, threads)
    edits = Edits(graph, add, remove, weighted=before.weighted)
    if isinstance(nodes, str | bytes):
        raise ParameterError(f"`nodes` must be a list of nodes, such as [node]; got {nodes!r:.200}")
    numbers = None if nodes is None else [edits.node(node) for node in nodes]
    solved = None
    if numbers is None or places:
        solved = _Differences(before, edits)
        with solved.problem:
            if numbers is None:
                solved.solve(precision * float(np.abs(solved.source).sum()))
                numbers = best_nodes(before.values_of(edits) + solved.d, top).tolist()
            intervals = solved.changes([np.array([number]) for number in numbers], precision)
        spots = _Places(before, edits, solved)
    else:
        intervals = changes_of(before, edits, [np.array([number]) for number in numbers], precision)
    rows = []
    for number, change in zip(numbers, intervals, strict=True):
        old = number < graph.num_nodes
        rank, error = (float(before.x[number]), before.bound) if old else (0.0, 0.0)
        rows.append(
            NodeChange(
                edits.name(number),
                Interval(max(rank - error, 0.0), rank + error),
                Interval(max(rank - error + change.low, 0.0), rank + error + change.high),
                change,
                spots.before(number) if solved is not None and old else None,
                spots.after(number) if solved is not None else None,
                "" if change == (0, 0) or change.is_within(precision) else _reason(change, precision),
            )
        )
    return RankChanges(rows, edits, precision)


def _reason(change: Interval, precision: float) -> str:
    width = change.high - change.low
    if change.low <= 0 <= change.high:
        return f"the change may be 0: rounding errors leave an interval of {width:.1e}"
    return (
        f"rounding errors leave an interval of {width:.1e}, which is more than {precision:.0%} of the change"
    )


class Before:
    """The ranking before the edits, with a bound on its L1 error that can be lowered.

    Parameters
    ----------
    graph : Graph
        The graph.
    damping, personalization, weighted, start, threads
        As in :func:`whatif`.

    Attributes
    ----------
    x : float64[n]
        The values, whose sum is 1.
    bound : float
        ε ≥ ‖x − exact‖₁.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is out of range, or the graph has no nodes.
    """

    def __init__(
        self,
        graph: Graph,
        damping: float,
        personalization: NodeValues | None = None,
        weighted: bool | None = None,
        start: NodeValues | None = None,
        threads: int | None = None,
    ) -> None:
        if not graph.num_nodes:
            raise ParameterError("the graph has no nodes: build it with the links to add, and rank it")
        self.graph, self.damping, self.threads = graph, damping, threads
        self.weighted = use_weights(graph, weighted)
        require_vectors(graph, node=80, linking=64)
        self.teleport = (
            None if personalization is None else distribution(graph, personalization, "personalization")
        )
        self.x = np.empty(0)
        self.bound = np.inf
        if start is not None:
            self.x = node_values(graph, start, "start")
            total = float(self.x.sum())
            if total > 0:
                self.x /= total
                v = np.full(1, 1 / graph.num_nodes) if self.teleport is None else self.teleport
                with linear_problem(graph, v, damping, self.weighted, threads) as problem:
                    self.bound, _ = jacobi_sweep(problem, self.x, np.empty(problem.size), np.empty(0))
        if self.bound > 1e-6:
            self.sharpen(1e-9)

    def sharpen(self, bound: float) -> bool:
        """Lower the bound; return whether it is lower now, and at most half of what it was."""
        was = self.bound
        ranking = pagerank(
            self.graph,
            damping=self.damping,
            personalization=self.teleport,
            tol=max(bound, FLOOR),
            start=self.x if len(self.x) and np.isfinite(was) else None,
            weighted=self.weighted,
            threads=self.threads,
        )
        assert ranking.error_bound is not None
        if ranking.error_bound < was:
            self.x, self.bound = ranking.values, ranking.error_bound
        return self.bound <= was / 2

    @cached_property
    def strengths(self) -> Any:
        """The sum of the weights of each node's outlinks, number[n]."""
        return strengths(self.graph, self.weighted)

    def values_of(self, edits: Edits, nodes: Int64Array | None = None) -> Float64Array:
        """The values of some nodes of the edited graph, or of all; 0 for new nodes."""
        if nodes is None:
            return np.concatenate([self.x, np.zeros(len(edits.new))])
        old = nodes < len(self.x)
        return np.where(old, self.x[np.where(old, nodes, 0)], 0.0)

    def teleported(self, edits: Edits) -> float:
        """The mass b·v that is teleported to each new node."""
        if self.teleport is not None or not edits.new:
            return 0.0
        dangling = float(self.x[self.strengths == 0].sum())
        return (self.damping * dangling + 1 - self.damping) / len(self.x)


def changes_of(
    before: Before, edits: Edits, sets: Sequence[Int64Array], precision: float = PRECISION
) -> list[Interval]:
    """Return the change of the PageRank of each set of nodes, as an interval.

    Parameters
    ----------
    before : Before
        The ranking before, which is sharpened if need be.
    edits : Edits
        The edits of the same graph.
    sets : sequence of int64[k]
        The sets; a node may be in several, but in none twice.
    precision : float
        The interval is narrowed until its width is at most this share of the change, or rounding ends it.
    """
    intervals = [_backwards(before, edits, nodes, precision) for nodes in sets]
    left = [k for k, change in enumerate(intervals) if change != (0, 0) and not change.is_within(precision)]
    if left:
        solved = _Differences(before, edits)
        with solved.problem:
            for k, change in zip(left, solved.changes([sets[k] for k in left], precision), strict=True):
                low, high = max(change.low, intervals[k].low), min(change.high, intervals[k].high)
                intervals[k] = Interval(low, high)
    return intervals


# -- backwards ---------------------------------------------------------------------------------------------------


class Visits:
    """Lower bounds p on the discounted visits N[·, T] to a set of nodes, by reverse push on the edited graph.

    Parameters
    ----------
    before : Before
        The graph, its damping and strengths.
    edits : Edits
        The edits.
    nodes : int64[k]
        The set T.

    Attributes
    ----------
    p : float64[n']
        p ≤ N[·, T] ≤ p + :meth:`error`.
    q : float64[n']
        The rest: N[·, T] = p + N·q.
    arcs : int
        The number of inlinks that were followed.
    """

    def __init__(self, before: Before, edits: Edits, nodes: Int64Array) -> None:
        self._before, self._edits = before, edits
        self.p, self.q = np.zeros(edits.num_nodes), np.zeros(edits.num_nodes)
        self._pushed = np.zeros(edits.num_nodes)
        self.q[nodes] = 1.0
        self._nodes = nodes
        self.arcs = len(nodes)

    def push(self, least: float, most_arcs: float = np.inf) -> None:
        """Push all nodes whose q exceeds ``least``, until there are none, or ``most_arcs`` inlinks were followed."""
        before, edits, p, q, c = self._before, self._edits, self.p, self.q, self._before.damping
        nodes = np.flatnonzero(q > least) if self.arcs > len(self._nodes) else self._nodes
        while len(nodes) and self.arcs <= most_arcs:
            value = c * q[nodes]
            p[nodes] += q[nodes]
            q[nodes] = 0.0
            sources, back, weights = self._inlinks(nodes)
            np.add.at(q, sources, value[back] * weights / before.strengths[sources])
            touched = sources
            if len(edits.row):
                # The rows of the edits' sources are not those of the graph.
                self._pushed[nodes] = value
                changed = edits.sources[edits.row]
                np.add.at(q, changed, edits.shares * self._pushed[edits.targets])
                self._pushed[nodes] = 0.0
                touched = np.concatenate([sources, edits.sources])
            self.arcs += len(sources) + len(edits.row)
            nodes = np.unique(touched[q[touched] > least])

    def error(self) -> float:
        """A bound on N[·, T] − p. Each number added to q has a rounding error, relative to its bound 1 / (1 − c)."""
        rest = 1 - self._before.damping
        return (max(float(self.q.max()), 0.0) + 16 * ROUNDOFF * (self.arcs + 1) / rest) / rest

    def _inlinks(self, nodes: Int64Array) -> tuple[Int64Array, Int64Array, Any]:
        """The sources of the inlinks of some nodes, the place of each target in ``nodes``, and the weights."""
        rows = self._before.graph.split_in_rows
        old = np.flatnonzero(nodes < self._before.graph.num_nodes)
        places = rows.places(nodes[old].astype(np.uint32))
        begins = rows.offsets[places].astype(np.int64)
        counts = rows.offsets[places + 1].astype(np.int64) - begins
        arcs = np.arange(int(counts.sum())) + np.repeat(begins - np.cumsum(counts) + counts, counts)
        weights = rows.weights[arcs] if self._before.weighted and rows.weights is not None else 1.0
        return rows.named(rows.nodes[arcs]).astype(np.int64), np.repeat(old, counts), weights


def _backwards(before: Before, edits: Edits, nodes: Int64Array, precision: float) -> Interval:
    """The change of the PageRank of a set of nodes, as narrow as reverse push makes it at a moderate cost."""
    c = before.damping
    if not edits.new and not np.any(edits.shares):
        return Interval(0.0, 0.0)
    visits, least = Visits(before, edits, nodes), precision * (1 - c) / 4
    most_arcs = before.graph.num_arcs // 2 + 10_000
    while True:
        visits.push(least, most_arcs)
        error = visits.error()
        change, by_push, by_error = _change(before, edits, nodes, visits.p, error)
        allowed = precision * max(change.low, -change.high, abs(change.middle) / 8, 0.0)
        if change.high - change.low <= precision * max(change.low, -change.high, 0.0) or allowed == 0:
            return change
        if by_error > allowed / 4 and not before.sharpen(before.bound * allowed / by_error / 8):
            return change
        if visits.arcs > most_arcs or least < 1e-9 or (by_push <= allowed / 2 and by_error <= allowed / 4):
            return change
        if by_push > allowed / 2:
            least *= max(min(allowed / by_push / 4, 0.5), 1e-3)


def _change(
    before: Before, edits: Edits, nodes: Int64Array, p: Float64Array, error: float
) -> tuple[Interval, float, float]:
    """The change (2) of a set of nodes, with p ≤ N ≤ p + error. Also the widths that ``error`` and ε cause."""
    c = before.damping
    rank = float(before.x[nodes[nodes < before.graph.num_nodes]].sum())
    difference, by_push, by_error = _difference(before, edits, p, error)
    if edits.new or edits.is_dangling:
        total, _, _ = _difference(before, edits, np.ones(edits.num_nodes), c / (1 - c))
    else:
        # All rows of N have the same sum, and those of P′ − P have the sum 0, but for rounding.
        total, _, _ = _difference(before, edits, np.full(edits.num_nodes, 1 / (1 - c)), 0.0)
    shifts = [max(rank + side * before.bound, 0.0) * value for side in (-1, 1) for value in total]
    # No node is teleported to less than before, so the sum of x + d is at least 1 − c.
    sums = [max(1 + value, 1 - c) for value in total]
    low = min((difference.low - max(shifts)) / each for each in sums)
    high = max((difference.high - min(shifts)) / each for each in sums)
    return Interval(low, high), by_push, by_error


def _difference(before: Before, edits: Edits, p: Float64Array, error: float) -> tuple[Interval, float, float]:
    """Σ_j ρ_j·N_j of a column of N with p ≤ N ≤ p + error. Also the widths that ``error`` and ε cause."""
    c, first, count = before.damping, before.graph.num_nodes, len(edits.sources)
    x = before.values_of(edits, edits.sources)
    at, new = p[edits.targets], p[first:]
    gain = c * np.bincount(edits.row, np.maximum(edits.shares, 0), count)
    loss = c * np.bincount(edits.row, np.minimum(edits.shares, 0), count)
    each = c * np.bincount(edits.row, edits.shares * at, count)
    teleported = before.teleported(edits)
    largest = float(np.maximum(np.abs(each + error * loss), np.abs(each + error * gain)).max(initial=0.0))
    by_push = error * (float(x @ (gain - loss)) + teleported * len(new))
    by_error = before.bound * (largest + float((new + error).sum()) / len(before.x))
    # A share is the difference of two numbers of at most 1 that are rounded, and so are the sums.
    rounding = ROUNDOFF * (len(edits.row) + len(new) + 64) * (2 * float(x.sum()) + teleported * len(new))
    rounding *= float(max(at.max(initial=0.0), new.max(initial=0.0))) + error
    middle = float(x @ each) + teleported * float(new.sum())
    low = middle + error * float(x @ loss) - by_error - rounding
    high = middle + error * (float(x @ gain) + teleported * len(new)) + by_error + rounding
    return Interval(low, high), by_push, 2 * by_error


# -- forwards ----------------------------------------------------------------------------------------------------


class _Differences:
    """The solution d of (1) for all nodes, with a bound on its L1 error.

    Parameters
    ----------
    before : Before
        The ranking before.
    edits : Edits
        The edits.

    Attributes
    ----------
    d : float64[n']
        The differences.
    bound : float
        A bound on the L1 error of d, without the part that is due to the error ε of the ranking before.
    problem : Problem
        The graph's rows, prepared for sweeps; a context manager that ends its threads.
    """

    def __init__(self, before: Before, edits: Edits) -> None:
        self._before, self._edits = before, edits
        graph, n, rows = before.graph, before.graph.num_nodes, before.graph.split_in_rows
        self.d, self.bound = np.zeros(edits.num_nodes), np.inf
        # Without strength, the kernels take the sources for dangling nodes: no row of the graph has a share of them.
        strengths = strengths_by_place(graph, before.weighted).copy()
        places = rows.places(edits.sources[edits.sources < n].astype(np.uint32))
        strengths[places[places < len(strengths)]] = 0
        weights = arc_weights(rows, before.weighted)
        from inlink.base.jit import num_threads
        from inlink.rank.kernels.pagerank import Equation

        equation = Equation(
            rows.offsets, rows.nodes, weights, rows.linking, strengths, np.zeros(n), before.damping
        )
        count = num_threads(before.threads) if graph.num_arcs >= SMALL else 1
        self.problem = Problem(graph, equation, count)
        self._sweeper, self._z = Sweeper(self.problem), np.zeros(self.problem.size)
        if (order := self._sweeper.order) is not None:
            for low, end in self._sweeper.ends.items():
                swept = order[low:end][strengths[order[low:end]] != 0]
                order[low : low + len(swept)] = swept
                self._sweeper.ends[low] = low + len(swept)
        self._history = LastSweeps(self._z, self.problem)
        self._right, self._least, self._done = np.zeros(edits.num_nodes), 0.0, 0
        self._ends = np.union1d(edits.targets, np.arange(n, edits.num_nodes))
        self._ratio = before.damping * (1 - self._sweeper.new)
        self._old = self._ends[self._ends < n]
        places = rows.places(self._old.astype(np.uint32))
        # If the rows are split, sweeps go over the places of linking nodes, and have a teleport by place.
        self._is_swept = places < self.problem.size
        self._swept = places[self._is_swept]
        self._inlinks = [self._row(source) for source in edits.sources.tolist()]
        self._begin()

    def _begin(self) -> None:
        """Compute ρ of the ranking before."""
        before, edits = self._before, self._edits
        self.source = np.zeros(edits.num_nodes)
        x = before.values_of(edits, edits.sources)
        np.add.at(self.source, edits.targets, before.damping * edits.shares * x[edits.row])
        self.source[before.graph.num_nodes :] += before.teleported(edits)

    def _row(self, source: int) -> tuple[Int64Array, Any]:
        """The places of the inlinks that a source has in the graph, and their weights times c."""
        before = self._before
        rows, c = before.graph.split_in_rows, before.damping
        if source >= before.graph.num_nodes:
            return np.empty(0, np.int64), c
        place = int(rows.places([source])[0])
        arcs = slice(int(rows.offsets[place]), int(rows.offsets[place + 1]))
        weights = rows.weights[arcs] if before.weighted and rows.weights is not None else 1.0
        return rows.nodes[arcs].astype(np.int64), c * weights

    def _of_sources(self) -> Float64Array:
        """The differences of the sources, by the present sweep."""
        values = self._right[self._edits.sources]
        for k, (places, factor) in enumerate(self._inlinks):
            values[k] += float(np.sum(self._z[places] * factor))
        return values

    def _set_right(self, of_sources: Float64Array) -> None:
        """Set the right side of (1) on the other rows: ρ, and what the sources pass on."""
        c, edits, right = self._before.damping, self._edits, self._right
        right[self._ends] = self.source[self._ends]
        np.add.at(right, edits.targets, c * edits.after * of_sources[edits.row])
        scaled = right[self._old] / (1 - c)
        self.problem.equation.teleport[self._old] = scaled
        self._sweeper.equation.teleport[self._swept] = scaled[self._is_swept]

    def solve(self, goal: float) -> None:
        """Sweep until :attr:`bound` is at most ``goal``, or rounding ends it."""
        c, plateau, begun = self._before.damping, Plateau(), self._done
        while c and self._done < SWEEPS:
            self._set_right(self._of_sources())
            self._sweeper.sweep(self._z)
            self._done += 1
            change, _ = self._history.observe(self._z)
            stuck = plateau.reached(change, self._done - begun)
            if self._ratio * change / (1 - c) <= max(goal, self._least) or stuck:
                residual = self._finish()
                if self.bound <= max(goal, 2 * self._least) or stuck:
                    return
                self._ratio = 1.05 * residual / change if change else max(self._ratio, 0.5)
            self._history.accelerate(self._z)
        self._finish()

    def _finish(self) -> float:
        """Write d and its bound; return the L1 norm of the residual."""
        equation, n, c = self.problem.equation, self._before.graph.num_nodes, self._before.damping
        kernels, d, z = self.problem.kernels, self.d, self._z
        self._set_right(self._of_sources())
        self.problem.each_node(partial(kernels.finish_dangling, equation, z, d[:n]))
        d[n:] = self._right[n:]
        self._set_right(d[self._edits.sources])
        parts = self.problem.each_node(partial(kernels.power_round, equation, 1 - c, z, d[:n], np.empty(0)))
        # The terms have both signs. Their absolute values bound what rounding does to the sums.
        size = equation._replace(teleport=np.abs(equation.teleport))
        sizes = self.problem.each_node(
            partial(kernels.power_round, size, 1 - c, np.abs(z), np.abs(d[:n]), np.empty(0))
        )
        residual = float(sum(change for change, _ in parts) + np.abs(self._right[n:] - d[n:]).sum())
        mass = 2 * float(
            (self._before.values_of(self._edits, self._edits.sources) + np.abs(d[self._edits.sources])).sum()
        )
        rounding = sum(roundings for _, roundings in sizes) + (len(self._edits.row) + 64) * mass
        self.bound, self._least = error_bound([(residual, rounding)], len(d), c)
        return residual

    def by_error(self) -> float:
        """A bound on the L1 error of d that is due to the error ε of the ranking before."""
        before, edits, c = self._before, self._edits, self._before.damping
        moved = np.bincount(edits.row, np.abs(edits.shares), len(edits.sources)).max(initial=0.0)
        new = len(edits.new) / len(before.x) if before.teleport is None else 0.0
        return before.bound * c * (float(moved) + new) / (1 - c)

    def changes(self, sets: Sequence[Int64Array], precision: float) -> list[Interval]:
        """Return the change (2) of each set, solved until it is decided or rounding ends it."""
        while True:
            was = self.bound, self._before.bound
            intervals = [self._change(nodes) for nodes in sets]
            left = [change for change in intervals if change != (0, 0) and not change.is_within(precision)]
            if not left:
                return intervals
            allowed = precision * min(abs(change.middle) for change in left) / 8
            if self.by_error() > allowed and self._before.sharpen(
                self._before.bound * allowed / self.by_error()
            ):
                self._begin()
                self.bound = np.inf
            if self.bound > allowed:
                self.solve(allowed)
            if self.bound > was[0] / 2 and self._before.bound > was[1] / 2:
                return intervals

    def _change(self, nodes: Int64Array) -> Interval:
        if not np.any(self.source):
            return Interval(0.0, 0.0)
        if self.bound == np.inf:
            self.solve(PRECISION * float(np.abs(self.source).sum()))
        before, d = self._before, self.d
        error = self.bound + self.by_error()
        rank = float(before.x[nodes[nodes < len(before.x)]].sum())
        total, own = float(d.sum()), float(d[nodes].sum())
        wide = error + before.bound * abs(total) + ROUNDOFF * (len(d) + 64) * float(np.abs(d).sum())
        sums = [max(1 + total + side * wide, 1 - before.damping) for side in (-1, 1)]
        middle = own - rank * total
        low, high = min((middle - wide) / each for each in sums), max((middle + wide) / each for each in sums)
        return Interval(low, high)


class _Places:
    """The places of nodes before and after the edits.

    Errors of two nodes add up to at most the L1 error, so nodes that are further apart are in the right order.
    """

    def __init__(self, before: Before, edits: Edits, solved: _Differences) -> None:
        self._was, self._before = before.x, before.bound
        self._is = before.values_of(edits) + solved.d
        self._after = before.bound + solved.bound + solved.by_error()

    def before(self, node: int) -> tuple[int, int]:
        """The first and the last place of a node before the edits."""
        return _place(self._was, node, self._before)

    def after(self, node: int) -> tuple[int, int]:
        """The first and the last place of a node after the edits. The sum of the values does not matter."""
        return _place(self._is, node, self._after)


def _place(values: Float64Array, node: int, error: float) -> tuple[int, int]:
    value = values[node]
    return int((values > value + error).sum()) + 1, int((values >= value - error).sum())
