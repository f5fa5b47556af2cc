"""Drift: why PageRank moved between two releases of a link graph, by rankings of graphs between the two.

**The scale.** With x the PageRank of n nodes, c the damping, and D the mass of dangling nodes, y = x·n / (c·D + 1 − c)
solves ::

    y = c·Pᵀy + 1                                                                                           (1)

where the rows P of dangling nodes are 0. The least possible value is 1. So y_t is 1 and the sum of the *flows*
c·P[s, t]·y_s of the nodes that link to t. It depends only on the nodes that lead to t. In the scale with sum 1, every
value falls as soon as the graph has more nodes, so each node would have moved, and for no reason of its own.

**The steps.** From A to B, each graph differs from the one before it in one respect:

1. *folded names*: A with the names of B, where a node has one name in A and in B the same name with or without
   ``www.``, or where one release has both names and an arc proves them to be folded, as :func:`_fold` says. An arc
   between folded names becomes the arcs of B between these names, or else one arc;
2. *lost nodes*: without the nodes that B does not have, and their arcs;
3. *new nodes*: with the nodes that only B has, and all their arcs;
4. *large linkers*: with the arcs of B between old nodes, for the linkers that have most lost and new arcs, if each has
   at least :data:`LARGE`;
5. *other links*: B.

All graphs have the nodes of A and B. Nodes that a step does not have are without arcs and teleport, so their PageRank
is 0. The *share* of a step is the difference of two consecutive y. The shares of a node add up to its whole move.

**The bounds.** Let ε bound the L1 error of x. Both vectors have sum 1, so neither x_t nor D is off by more than ε / 2,
and s = (c·D + 1 − c) / n not by more than d = c·ε / (2·n). With y = x / s ::

    |error of y_t| ≤ (ε / 2 + d·y_t) / (s − d),     ‖error of y‖₁ ≤ (ε + d·Σy) / (s − d)                    (2)

The interval of a share is due to both errors, and a share is only reported if 0 is outside. If a step changes nothing,
its shares are exactly 0. The *reasons* of a node are by (1): the flow from each linker in B, minus that in A with
folded names.

(1) is "pseudo-rank" (Del Corso, Gullì & Romani 2005), as in :mod:`inlink.rank.spam`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from inlink.base.arrays import AnyArray, BoolArray, Float64Array, Int64Array, UInt32Array, UInt64Array, slices
from inlink.base.declare import Parameter, checked
from inlink.base.memory import require_memory
from inlink.base.strings import Strings
from inlink.base.table import counted, html_table
from inlink.errors import ParameterError, UnknownNodeError
from inlink.graph.graph import Graph
from inlink.graph.interop import GraphLike, as_graph
from inlink.graph.names import Names
from inlink.graph.rows import Rows
from inlink.graph.views import arc_blocks
from inlink.rank.certain import best_nodes
from inlink.rank.inputs import use_weights
from inlink.rank.pagerank import pagerank
from inlink.rank.parameters import Damping, ThreadCount, Weighted
from inlink.rank.ranking import ROUNDOFF
from inlink.rank.whatif import Interval

__all__ = ["STEPS", "Drift", "DriftStep", "MoveReason", "NodeMove", "drift"]

STEPS = ("folded names", "lost nodes", "new nodes", "large linkers", "other links")
LARGE = 10
"""The least number of lost and new arcs of a large linker."""
REASONS = 4
"""Linkers that are reasons of one node."""
ARC_BYTES, WEIGHT_BYTES, NODE_BYTES = 64, 60, 150
"""Measured bytes of memory for each arc of the larger graph, for its weight, and for each node of both graphs."""

_SHIFT = np.uint64(32)
_BLOCK = 1 << 16


class MoveReason(NamedTuple):
    """A reason why a node moved: in words; the linker, or None; and the change, an interval that does not contain 0."""

    text: str
    linker: str | None
    change: Interval


class NodeMove(NamedTuple):
    """The move of a node between two releases. Each interval contains the exact value.

    Attributes
    ----------
    node : str
        The name.
    before, after : Interval or None
        The scaled PageRank in A and in B; None where the release does not have this name.
    move : Interval
        The difference.
    shares : list of Interval
        The share of each step in the move, in the order of :data:`STEPS`.
    reasons : list of MoveReason
        The proven reasons, the largest first.
    """

    node: str
    before: Interval | None
    after: Interval | None
    move: Interval
    shares: list[Interval]
    reasons: list[MoveReason]


class DriftStep(NamedTuple):
    """A step from A to B.

    Attributes
    ----------
    name : str
        An element of :data:`STEPS`.
    nodes : int
        The number of folded names, lost nodes, new nodes, or large linkers; 0 for other links.
    lost, new : int
        The number of arcs that the step removes and adds.
    move : Interval
        The L1 norm of the shares of all nodes.
    share : Interval or None
        The norm as a share of the sum over all steps; None if the step is not proven to move anything.
    linkers : list of str
        The large linkers, the largest first.
    """

    name: str
    nodes: int
    lost: int
    new: int
    move: Interval
    share: Interval | None
    linkers: list[str]

    @property
    def percent(self) -> str:
        """The share as text: with both ends if they differ, ``not proven``, or ``-`` if the step changes nothing."""
        if self.share is None:
            return "not proven" if self.move.high else "-"
        low, high = (f"{end:.1%}" for end in self.share)
        return low if low == high else f"{low} to {high}"


class Drift(Sequence[NodeMove]):
    """The answer of :func:`drift`: a sequence of :class:`NodeMove`.

    Attributes
    ----------
    steps : list of DriftStep
        What each step moves, in the order of :data:`STEPS`.
    nodes : list of NodeMove
        The nodes that were named, in their order, or the nodes that moved most.
    common, moved : int
        The number of names that both releases have; and how many of these, and of folded names of B, moved for sure.
    names : Names
        The names of B, and then those that only A has.
    values : float64[6, number of names]
        The scaled PageRank in A and after each step; 0 for a name that a graph does not have.
    """

    def __init__(
        self,
        steps: list[DriftStep],
        nodes: list[NodeMove],
        common: int,
        moved: int,
        names: Names,
        values: Float64Array,
    ) -> None:
        self.steps, self.nodes, self.common, self.moved = steps, nodes, common, moved
        self.names, self.values = names, values

    @property
    def shares(self) -> Float64Array:
        """The share of each step in the move of each name, float64[5, number of names]."""
        return np.diff(self.values, axis=0)

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[NodeMove]:
        return iter(self.nodes)

    def __getitem__(self, place: Any) -> Any:
        return self.nodes[place]

    def __repr__(self) -> str:
        parts = [f"{step.name} {step.percent}" for step in self.steps if step.share is not None]
        return f"<inlink drift: {counted(self.moved, 'node')} moved; {', '.join(parts) or 'nothing proven'}>"

    def _repr_html_(self) -> str:
        rows: list[tuple[object, ...]] = []
        for step in self.steps:
            what = f"nodes: {step.nodes:,}, new links: {step.new:,}, lost: {step.lost:,}"
            rows.append((step.name, "", "", step.move.middle, f"{step.percent}; {what}"))
        for row in self.nodes:
            ends = ["" if end is None else end.middle for end in (row.before, row.after)]
            reasons = "; ".join(f"{reason.text} ({reason.change.middle:+.3g})" for reason in row.reasons)
            rows.append((row.node, *ends, row.move.middle, reasons))
        return html_table(repr(self)[1:-1], ["step or node", "before", "after", "move", "reasons"], rows)


@checked
def drift(
    a: GraphLike,
    b: GraphLike,
    *,
    nodes: Iterable[str | bytes] | None = None,
    top: Annotated[int, Parameter(at_least=0)] = 10,
    linkers: Annotated[int, Parameter(at_least=0)] = 10,
    damping: Damping = 0.85,
    tol: Annotated[float, Parameter(above=0)] = 1e-9,
    weighted: Weighted = None,
    threads: ThreadCount = None,
) -> Drift:
    """Return why PageRank moved between two releases A and B of a graph: the share of each cause, and reasons of nodes.

    PageRank is scaled so that the smallest possible value is 1. Memory: 64 bytes for each arc of the larger graph
    (124 with weights), and 150 for each node of both.

    Parameters
    ----------
    a, b : Graph, pairs of names, or graph of NetworkX or igraph
        The releases. Nodes are matched by name.
    nodes : iterable of names, or None
        The nodes to answer for, moved or not; None: the nodes of B that moved most, among those that A has by the same
        name or by one that was folded.
    top : int
        The largest number of nodes if ``nodes`` is None.
    linkers : int
        The largest number of large linkers.
    damping, threads
        As in :func:`inlink.pagerank`.
    tol : float
        The bound on the L1 error of each ranking. A smaller bound proves smaller moves.
    weighted : bool or None
        Whether an arc is followed in proportion to its weight; None: if both graphs have weights.

    Raises
    ------
    inlink.errors.ParameterError
        If a graph has no names, the graphs are of different levels, a parameter is out of range, or memory does not
        suffice.
    inlink.errors.UnknownNodeError
        If neither graph has a node of ``nodes``.

    Examples
    --------
    >>> import inlink
    >>> a = [("home", "news"), ("news", "home"), ("blog", "news")]
    >>> b = [("home", "news"), ("news", "home"), ("blog", "home")]
    >>> moves = inlink.drift(a, b, nodes=["news"])
    >>> [(step.name, step.new, step.lost) for step in moves.steps if step.share]
    [('other links', 1, 1)]
    >>> [reason.text for reason in moves[0].reasons]
    ['lost link from blog', 'link from home, whose own rank rose by 5.0%']
    """
    a, b = as_graph(a), as_graph(b)
    if isinstance(nodes, str | bytes):
        raise ParameterError(f"`nodes` must be a list of names, such as [name]; got {nodes!r:.200}")
    for side, graph in (("A", a), ("B", b)):
        if graph.names is None and graph.num_nodes:
            raise ParameterError(
                f"the nodes of {side} have no names, so they cannot be matched: build both graphs from names or URLs"
            )
    if a.level and b.level and a.level != b.level:
        raise ParameterError(
            f"A is a graph of {a.level}s and B a graph of {b.level}s: fold both to the same level"
        )
    weighted = a.is_weighted and b.is_weighted if weighted is None else weighted
    for graph in (a, b):
        use_weights(graph, weighted)
    return _Comparison(a, b, linkers, damping, tol, weighted, threads).answer(nodes, top)


class _ArcSet(NamedTuple):
    """Arcs, increasing and each once: the source's number times 2³² plus the target's; and weights, or None for 1."""

    keys: UInt64Array
    weights: Float64Array | None

    @property
    def sources(self) -> UInt32Array:
        return (self.keys >> _SHIFT).astype(np.uint32)

    @property
    def targets(self) -> UInt32Array:
        return self.keys.astype(np.uint32)

    def where(self, chosen: AnyArray) -> "_ArcSet":
        return _ArcSet(self.keys[chosen], None if self.weights is None else self.weights[chosen])

    def missing_in(self, other: "_ArcSet") -> BoolArray:
        """Which arcs the other set does not have."""
        if not len(other.keys):
            return np.ones(len(self.keys), np.bool_)
        places = np.searchsorted(other.keys, self.keys)
        places[places == len(other.keys)] = 0
        return np.asarray(other.keys[places] != self.keys)

    def graph(self, num_nodes: int) -> Graph:
        offsets = np.searchsorted(self.keys, np.arange(num_nodes + 1, dtype=np.uint64) << _SHIFT)
        return Graph(Rows(offsets.astype(np.uint64), self.targets, self.weights), checked=True)


def _keys(sources: AnyArray, targets: AnyArray) -> UInt64Array:
    return np.asarray((sources.astype(np.uint64) << _SHIFT) | targets.astype(np.uint64))


def _union(*parts: _ArcSet) -> _ArcSet:
    """The arcs of all parts. The weights of equal arcs are added up."""
    keys, weights = np.concatenate([part.keys for part in parts]), None
    # A stable sort merges sorted runs, which takes less time than a sort.
    if parts[0].weights is None:
        keys.sort(kind="stable")
    else:
        order = np.argsort(keys, kind="stable")
        keys, weights = keys[order], np.concatenate([part.weights for part in parts])[order]
    first = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    if weights is not None and len(keys):
        weights = np.add.reduceat(weights, np.flatnonzero(first))
    return _ArcSet(keys[first], weights)


def _arcs_of(graph: Graph, numbers: Int64Array, weighted: bool) -> _ArcSet:
    """The arcs of a graph whose nodes get new numbers."""
    keys, values, done = np.empty(graph.num_arcs, np.uint64), np.empty(graph.num_arcs * weighted), 0
    for sources, targets, weights in arc_blocks(graph):
        part = slice(done, done + len(sources))
        keys[part] = _keys(numbers[sources], numbers[targets])
        if weighted:
            values[part] = weights
        done = part.stop
    return _union(_ArcSet(keys, values if weighted else None))


# -- folded names ----------------------------------------------------------------------------------------------------


def _other_forms(name: bytes) -> tuple[bytes, bytes]:
    """The name of a host or page with or without ``www.``; two forms if the name may be reversed or not."""
    if b"://" in name:
        old, new = (b"://www.", b"://") if b"://www." in name else (b"://", b"://www.")
        return (name.replace(old, new, 1),) * 2
    if name.startswith(b"www."):
        return (name[4:],) * 2
    return (name[:-4],) * 2 if name.endswith(b".www") else (name + b".www", b"www." + name)


def _twins(names: Names, in_a: BoolArray, in_b: BoolArray) -> Int64Array:
    """The other form of each name, int64[n], or -1. A release that has both forms is compared with one that has one."""
    twin, single = np.full(len(names), -1), np.flatnonzero(in_a != in_b)
    for part in slices(len(single), _BLOCK):
        nodes = single[part]
        forms = [_other_forms(name) for name in names.take(nodes).to_pylist()]
        for side in (0, 1):
            others = names.find_all(Strings.of([form[side] for form in forms]))
            fits = (others >= 0) & np.where(in_a[nodes], in_b[others], in_a[others])
            twin[nodes[fits]] = others[fits]
    paired = np.flatnonzero(twin >= 0)
    twin[twin[paired]] = paired
    paired = np.flatnonzero(twin >= 0)
    twin[paired[twin[twin[paired]] != paired]] = -1
    return twin


def _fold(a: _ArcSet, b: _ArcSet, in_a: BoolArray, in_b: BoolArray, twin: Int64Array) -> _ArcSet:
    """The arcs of A with the names of B. Pairs of names that are not proven to be folded are removed from ``twin``.

    If one release has both names, a pair is proven by an arc of the name that only this release has, if the other
    release has this arc with the other name, and this one does not. So a new host ``www.example.com`` beside an old
    host ``example.com`` is no folded name. If most of these pairs are proven, the release folds names, and all are.
    """
    every = np.arange(len(twin))

    def classes(arcs: _ArcSet) -> tuple[_ArcSet, BoolArray, UInt64Array]:
        """The arcs with an end in a pair, which arcs these are, and the arcs between pairs, in their order."""
        ends = np.where(twin < 0, every, np.minimum(every, twin))
        mask = (twin[arcs.sources] >= 0) | (twin[arcs.targets] >= 0)
        inside = arcs.where(mask)
        return inside, mask, _keys(ends[inside.sources], ends[inside.targets])

    proven = np.zeros(len(twin), np.bool_)
    sides = classes(a), classes(b)
    for (arcs, _, pairs), (_, _, others) in zip(sides, sides[::-1], strict=True):
        _, place, count = np.unique(pairs, return_inverse=True, return_counts=True)
        proof = arcs.where((count[place] == 1) & np.isin(pairs, others))
        proven[proof.sources] = proven[proof.targets] = True
    both = np.flatnonzero((twin >= 0) & (in_a == in_b))
    missing = both[~proven[twin[both]]]
    if 2 * len(missing) >= len(both):
        twin[twin[missing]] = twin[missing] = -1

    (arcs_a, mask, pairs_a), (arcs_b, _, pairs_b) = classes(a), classes(b)
    names = np.where(in_b | (twin < 0), every, twin)
    sources, targets = names[arcs_a.sources], names[arcs_a.targets]
    # A link between two forms of a name is no link where both are one node, as in graphs without self-loops.
    kept = ~np.isin(pairs_a, pairs_b) & ((sources != targets) | (arcs_a.sources == arcs_a.targets))
    split = np.isin(pairs_b, pairs_a)
    split |= (pairs_b >> _SHIFT == pairs_b.astype(np.uint32)) & (arcs_b.sources != arcs_b.targets)
    if arcs_b.weights is not None:
        # The weight in A is split in the proportion of the weights in B.
        _, place = np.unique(np.concatenate([pairs_a, pairs_b]), return_inverse=True)
        before, after = np.split(place, [len(pairs_a)])
        old = np.bincount(before, arcs_a.weights, len(place))
        new = np.bincount(after, arcs_b.weights, len(place))
        scale = np.divide(old, new, out=np.ones(len(place)), where=(old > 0) & (new > 0))
        arcs_b = arcs_b._replace(weights=arcs_b.weights * scale[after])
    renamed = arcs_a._replace(keys=_keys(sources, targets)).where(kept)
    return _union(a.where(~mask), renamed, arcs_b.where(split))


# -- rankings --------------------------------------------------------------------------------------------------------


class _Solved(NamedTuple):
    """The scaled PageRank y, float64[n], with (2): its error is ``absolute + relative·y_t``, and 0 where y_t is 0."""

    y: Float64Array
    absolute: float
    relative: float
    norm: float

    def errors(self, nodes: Any = slice(None)) -> Any:
        y = self.y[nodes]
        return np.where(y > 0, self.absolute + self.relative * y, 0.0)


def _around(middle: Any, error: Any) -> Interval:
    return Interval(float(middle - error), float(middle + error))


def _excludes_0(interval: Interval) -> bool:
    return interval.low > 0 or interval.high < 0


class _Comparison:
    """Two releases whose nodes have common numbers: those of B, and then the nodes that only A has."""

    def __init__(
        self, a: Graph, b: Graph, count: int, damping: float, tol: float, weighted: bool, threads: int | None
    ) -> None:
        arcs, nodes = max(a.num_arcs, b.num_arcs), a.num_nodes + b.num_nodes
        require_memory(
            (ARC_BYTES + WEIGHT_BYTES * weighted) * arcs + NODE_BYTES * nodes, f"the drift of {arcs:,} arcs"
        )
        from inlink.graph.kernels.names import order_of

        self.b, self.damping = b, damping
        self.options: Any = {"damping": damping, "tol": tol, "weighted": weighted, "threads": threads}
        names_a, names_b = a.names or Names.of([]), b.names or Names.of([])
        numbers = names_b.find_all(names_a.column())
        lost = np.flatnonzero(numbers < 0)
        numbers[lost] = b.num_nodes + np.arange(len(lost))
        column = Strings.concat([names_b.column(), names_a.take(lost)])
        self.names = Names(column.text, column.offsets, order_of(column.text, column.offsets))
        self.size = len(self.names)
        self.in_a, self.in_b = np.zeros(self.size, np.bool_), np.arange(self.size) < b.num_nodes
        self.in_a[numbers] = True
        self.solved = [self._rank(a, self.in_a, numbers)]
        self.steps: list[DriftStep] = []
        self._walk(_arcs_of(a, numbers, weighted), _arcs_of(b, np.arange(b.num_nodes), weighted), count)

    def _walk(self, a: _ArcSet, b: _ArcSet, count: int) -> None:
        """Rank the graph of each step."""
        in_b, self.twin = self.in_b, _twins(self.names, self.in_a, self.in_b)
        self.arcs_1, self.arcs_b = a, b
        if (self.twin >= 0).any():
            self.arcs_1 = _fold(a, b, self.in_a, in_b, self.twin)
        folded = self.twin >= 0
        self.in_1 = np.where(folded, in_b, self.in_a)
        self._step((self.in_a, a), (self.in_1, self.arcs_1), int(folded.sum()) // 2)
        kept = self.arcs_1.where(in_b[self.arcs_1.sources] & in_b[self.arcs_1.targets])
        self._step((self.in_1, self.arcs_1), (self.in_1 & in_b, kept), int((self.in_1 & ~in_b).sum()))
        new = in_b & ~self.in_1
        grown = _union(kept, b.where(new[b.sources] | new[b.targets]))
        self._step((self.in_1 & in_b, kept), (in_b, grown), int(new.sum()))
        changed = np.zeros(self.size)
        for arcs, other in ((grown, b), (b, grown)):
            changed += np.bincount(arcs.sources[arcs.missing_in(other)], minlength=self.size)
        largest = best_nodes(changed, count)
        largest = largest[changed[largest] >= LARGE]
        large = np.zeros(self.size, np.bool_)
        large[largest] = True
        linked = _union(grown.where(~large[grown.sources]), b.where(large[b.sources]))
        linkers = [self.names[int(node)] for node in largest]
        self._step((in_b, grown), (in_b, linked), len(linkers), linkers)
        self._step((in_b, linked), (in_b, b))
        lows, highs = np.array([step.move for step in self.steps]).T.tolist()
        for place, (step, low, high) in enumerate(zip(self.steps, lows, highs, strict=True)):
            if low > 0:
                # A share is least if the step moved as little and the others as much as the bounds allow.
                others = [sum(ends[:place] + ends[place + 1 :]) for ends in (lows, highs)]
                share = Interval(low / (low + others[1]), high / (high + others[0]))
                self.steps[place] = step._replace(share=share)

    def _step(
        self,
        was: tuple[BoolArray, _ArcSet],
        now: tuple[BoolArray, _ArcSet],
        nodes: int = 0,
        linkers: Sequence[str] = (),
    ) -> None:
        """Rank a graph, given by its nodes and arcs, unless it equals the one before."""
        (there, arcs), (present, after), solved = was, now, self.solved[-1]
        lost, new = int(arcs.missing_in(after).sum()), int(after.missing_in(arcs).sum())
        same = not lost and not new and np.array_equal(there, present)
        if same and after.weights is not None and arcs.weights is not None:
            same = np.array_equal(after.weights, arcs.weights)
        if not same:
            # B itself may be compressed, and its rows need not be made.
            graph = self.b if after is self.arcs_b else after.graph(self.size)
            self.solved.append(self._rank(graph, present, np.arange(graph.num_nodes), solved.y))
        else:
            self.solved.append(solved)
        norm = float(np.abs(self.solved[-1].y - solved.y).sum())
        error = 0.0 if same else solved.norm + self.solved[-1].norm
        move = Interval(max(norm - error, 0.0), norm + error)
        self.steps.append(DriftStep(STEPS[len(self.steps)], nodes, lost, new, move, None, list(linkers)))

    def _rank(
        self, graph: Graph, present: BoolArray, numbers: Int64Array, start: Float64Array | None = None
    ) -> _Solved:
        """The scaled PageRank of a graph whose nodes have these numbers. Nodes that are not present get 0."""
        y, count, c = np.zeros(self.size), int(present.sum()), self.damping
        if not count:
            return _Solved(y, 0.0, 0.0, 0.0)
        teleport = None if count == graph.num_nodes else present[numbers].astype(np.float64)
        first = None if start is None or not start[numbers].any() else start[numbers]
        ranking = pagerank(graph, personalization=teleport, start=first, **self.options)
        assert ranking.error_bound is not None
        error = ranking.error_bound + 8 * ROUNDOFF
        scale = (c * float(ranking.values[graph.outdegrees == 0].sum()) + 1 - c) / count
        off = c * error / 2 / count
        least = max(scale - off, (1 - c) / count)
        y[numbers] = ranking.values / scale
        relative = off / least + 128 * ROUNDOFF
        return _Solved(y, error / 2 / least, relative, error / least + relative * float(y.sum()))

    # -- answers -------------------------------------------------------------------------------------------------

    def answer(self, wanted: Iterable[Any] | None, top: int) -> Drift:
        """The answer for some names, or for the nodes that moved most."""
        first, last, common = self.solved[0], self.solved[-1], self.in_a & self.in_b
        size = np.abs(last.y - first.y)
        moved = self.in_b & (self.in_a | (self.twin >= 0)) & (size > first.errors() + last.errors())
        if wanted is None:
            nodes = best_nodes(np.where(moved, size, 0.0), min(top, int(moved.sum())))
        else:
            nodes = np.array([self._number(name) for name in wanted], np.int64)
        values = np.array([solved.y for solved in self.solved])
        return Drift(self.steps, self._rows(nodes), int(common.sum()), int(moved.sum()), self.names, values)

    def _number(self, name: Any) -> int:
        if not isinstance(name, str | bytes):
            raise ParameterError(f"`nodes` must have names of nodes; got {name!r:.200}")
        if name not in self.names:
            raise UnknownNodeError(f"no node is named {name!r:.200}, neither in A nor in B")
        return self.names.find(name)

    def _rows(self, nodes: Int64Array) -> list[NodeMove]:
        """The moves of some nodes, with reasons."""
        asked = np.zeros(self.size, np.bool_)
        asked[nodes] = True
        sides = []
        for solved, arcs in ((self.solved[1], self.arcs_1), (self.solved[-1], self.arcs_b)):
            links = arcs.where(asked[arcs.targets])
            links = links.where(np.argsort(links.targets, kind="stable"))
            strengths = np.bincount(arcs.sources, arcs.weights, self.size)
            share = (1.0 if links.weights is None else links.weights) / strengths[links.sources]
            sides.append((solved, links.targets, links.sources.astype(np.int64), share))

        def between(before: _Solved, after: _Solved, node: int) -> Interval:
            if before is after:
                return Interval(0.0, 0.0)
            return _around(after.y[node] - before.y[node], before.errors(node) + after.errors(node))

        rows = []
        for node in nodes.tolist():
            ends = [
                _around(solved.y[node], solved.errors(node)) if there[node] else None
                for solved, there in ((self.solved[0], self.in_a), (self.solved[-1], self.in_b))
            ]
            shares = [between(*pair, node) for pair in zip(self.solved, self.solved[1:], strict=False)]
            move = between(self.solved[0], self.solved[-1], node)
            reasons = self._reasons(node, shares[0], move, sides)
            rows.append(NodeMove(self.names[node], ends[0], ends[1], move, shares, reasons))
        return rows

    def _reasons(self, node: int, folded: Interval, move: Interval, sides: list[Any]) -> list[MoveReason]:
        reasons = [MoveReason(self._folding(node), None, folded)] if _excludes_0(folded) else []
        if self.in_1[node] != self.in_b[node]:
            text, own = ("it is new", 1.0) if self.in_b[node] else ("it is gone", -1.0)
            reasons.append(MoveReason(text, None, Interval(own, own)))
        parts = [slice(*np.searchsorted(targets, [node, node + 1])) for _, targets, _, _ in sides]
        linkers = np.union1d(sides[0][2][parts[0]], sides[1][2][parts[1]])
        # Shares of the linkers' links, the flows, and their errors, before and after.
        shares, flows, errors = np.zeros((3, 2, len(linkers)))
        for side, (part, (solved, _, sources, share)) in enumerate(zip(parts, sides, strict=True)):
            places = np.searchsorted(linkers, sources[part])
            shares[side, places] = share[part]
            flows[side, places] = self.damping * share[part] * solved.y[sources[part]]
            errors[side, places] = self.damping * share[part] * solved.errors(sources[part])
        change, error = flows[1] - flows[0], errors.sum(axis=0)
        size = np.where(np.abs(change) > error, np.abs(change), 0.0)
        for place in best_nodes(size, min(REASONS, int((size > 0).sum()))).tolist():
            linker = int(linkers[place])
            text = self._linking(linker, linker == node, *shares[:, place].tolist())
            reasons.append(MoveReason(text, self.names[linker], _around(change[place], error[place])))
        reasons.sort(key=lambda reason: -abs(reason.change.middle))
        rest = Interval(
            move.low - sum(reason.change.high for reason in reasons),
            move.high - sum(reason.change.low for reason in reasons),
        )
        return reasons + ([MoveReason("all other links to it", None, rest)] if _excludes_0(rest) else [])

    def _folding(self, node: int) -> str:
        """How folded names concern a node."""
        other = int(self.twin[node])
        if other < 0:
            return "names of nodes that lead to it were folded"
        name = self.names[other]
        if self.in_a[node] != self.in_b[node]:
            return f"its name is {name} now" if self.in_a[node] else f"its name was {name} before"
        return f"{name} was merged into it" if self.in_a[other] else f"{name} was split from it"

    def _linking(self, linker: int, own: bool, before: float, after: float) -> str:
        """What changed at a linker. ``before`` and ``after`` are the shares of its links that lead to the node."""
        name = "itself" if own else self.names[linker]
        if not before:
            return f"new link from {name}" if self.in_1[linker] else f"link from {name}, which is new"
        if not after:
            return f"lost link from {name}" if self.in_b[linker] else f"lost link from {name}, which is gone"
        ratio = float(self.solved[-1].y[linker] / self.solved[1].y[linker])
        if abs(np.log(ratio)) > abs(np.log(after / before)):
            return (
                f"link from {name}, whose own rank {'rose' if ratio > 1 else 'fell'} by {abs(ratio - 1):.1%}"
            )
        return f"link from {name}: {after:.3g} of its links, before {before:.3g}"
