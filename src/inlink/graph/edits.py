"""Links that are added to a graph and removed from it, laid over its rows without a copy of them.

With P[i, j] = w(i→j) / Σ_k w(i→k) in the graph and P′ in the edited graph, only the rows of the edits' sources differ.
:class:`Edits` holds the entries of these rows, and new nodes behind those of the graph.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from inlink.base.arrays import AnyArray, Float64Array, Int64Array
from inlink.base.table import counted
from inlink.errors import ParameterError, UnknownNodeError
from inlink.graph.graph import Graph
from inlink.graph.names import encode
from inlink.graph.rows import Rows

__all__ = ["Edits", "Links"]

Links = Iterable[tuple[Any, Any]]
"""Pairs of source and target, each by name or by number."""


class Edits:
    """A graph with links added and removed.

    A link that is added although the graph has it changes nothing. In a graph with weights, an added link has weight 1.

    Parameters
    ----------
    graph : Graph
        The graph, which is not changed.
    add, remove : iterable of (source, target)
        Nodes by name or by number. Nodes that the graph lacks are new; in a graph without names, new nodes have the
        next numbers.
    weighted : bool
        Whether an arc is followed in proportion to its weight.

    Attributes
    ----------
    num_nodes : int
        The number of nodes with the new ones.
    new : list of str, or list of int
        The new nodes, in the order of their numbers, which follow those of the graph.
    added, removed : set of (int, int)
        The links that the graph gets and loses.
    sources : int64[k]
        The nodes whose rows change, increasing.
    row, targets, shares, after : int64[e], int64[e], float64[e], float64[e]
        The entries of the sources' rows: the place of the source in ``sources``, the target, and the values of P′ − P
        and of P′.

    Raises
    ------
    inlink.errors.ParameterError
        If an element is not a pair, a link is both added and removed, or a new number leaves a gap.
    inlink.errors.UnknownNodeError
        If a link to remove is not in the graph.
    """

    def __init__(self, graph: Graph, add: Links = (), remove: Links = (), *, weighted: bool = False) -> None:
        self.graph, self.weighted = graph, weighted
        self.new: list[Any] = []
        self._numbers: dict[bytes, int] = {}
        self.removed = {(self._known(source), self._known(target)) for source, target in _pairs(remove)}
        for source, target in sorted(self.removed):
            if not self._linked(source, target):
                nodes = graph.nodes
                raise UnknownNodeError(
                    f"there is no link from {nodes[source]!r} to {nodes[target]!r} to remove: leave it out"
                )
        pairs = _pairs(add)
        if graph.names is None:
            self._take_numbers(pairs)
        wanted = {(self.node(source), self.node(target)) for source, target in pairs}
        if both := wanted & self.removed:
            ends = [self.name(node) for node in min(both)]
            raise ParameterError(
                f"the link from {ends[0]!r} to {ends[1]!r} is both added and removed: leave out one"
            )
        self.num_nodes = graph.num_nodes + len(self.new)
        self.added = {(source, target) for source, target in wanted if not self._linked(source, target)}
        self._lay_over()

    def node(self, node: int | str | bytes) -> int:
        """The number of a node of the edited graph; while the edits are read, a name that is unknown becomes new."""
        try:
            return self._known(node)
        except UnknownNodeError:
            if self.graph.names is None or not isinstance(node, str | bytes) or hasattr(self, "added"):
                raise
        number = self._numbers[encode(node)] = self.graph.num_nodes + len(self.new)
        self.new.append(node if isinstance(node, str) else node.decode("utf-8", "surrogateescape"))
        return number

    def name(self, node: int) -> str | int:
        """The name of a node of the edited graph, or its number if there are no names."""
        old = self.graph.num_nodes
        return self.graph.nodes[node] if node < old else self.new[node - old]

    def edited(self) -> Graph:
        """The edited graph, in memory: 4 bytes an arc and 8 a node.

        Raises
        ------
        inlink.errors.ParameterError
            If there are new nodes.
        """
        if self.new:
            raise ParameterError(f"a graph with {counted(len(self.new), 'new node')} must be built anew")
        rows = self.graph.out_rows
        offsets, nodes, weights = rows.offsets.copy(), rows.nodes, rows.weights
        gone = np.array([self._place(*link) for link in sorted(self.removed)], np.int64)
        added = sorted(self.added)
        places = np.array([self._place(*link) for link in added], np.int64)
        places -= np.searchsorted(gone, places)
        targets = np.array([target for _, target in added], np.uint32)
        nodes = np.insert(np.delete(nodes, gone), places, targets)
        if weights is not None:
            weights = np.insert(np.delete(weights, gone), places, 1)
        growth = np.zeros(len(offsets), np.int64)
        np.add.at(growth, [source + 1 for source, _ in added], 1)
        np.subtract.at(growth, [source + 1 for source, _ in self.removed], 1)
        offsets += np.cumsum(growth).astype(np.uint64)
        rows = Rows(offsets, nodes, weights)
        return Graph(rows, names=self.graph.names, level=self.graph.level, checked=True)

    @cached_property
    def is_dangling(self) -> bool:
        """Whether a node of the edited graph has no outlinks."""
        degrees = np.concatenate([self.graph.outdegrees, np.zeros(len(self.new), np.uint32)]).astype(np.int64)
        for links, step in ((self.added, 1), (self.removed, -1)):
            np.add.at(degrees, [source for source, _ in links], step)
        return bool((degrees == 0).any())

    # -- inside ------------------------------------------------------------------------------------------------

    def _known(self, node: int | str | bytes) -> int:
        """The number of a node of the graph, or of a new node that was met before."""
        if isinstance(node, str | bytes):
            number = self._numbers.get(encode(node))
            return self.graph.node(node) if number is None else number
        first = self.graph.num_nodes
        is_new = isinstance(node, int | np.integer) and first <= node < first + len(self.new)
        return int(node) if is_new else self.graph.node(node)

    def _take_numbers(self, pairs: list[tuple[Any, Any]]) -> None:
        """Note the new nodes of a graph without names."""
        first = self.graph.num_nodes
        ends = {end for pair in pairs for end in pair if isinstance(end, int | np.integer) and end >= first}
        numbers = sorted(map(int, ends))
        for place, number in enumerate(numbers):
            if number != first + place:
                raise ParameterError(
                    f"node {number} leaves a gap: new nodes have the numbers from {first:,} on, each used by a link"
                )
        self.new = list(numbers)

    def _row(self, source: int) -> tuple[Int64Array, Float64Array]:
        """The targets and the weights of a node's outlinks in the graph."""
        rows = self.graph.out_rows
        if source >= self.graph.num_nodes:
            return np.empty(0, np.int64), np.empty(0)
        arcs = slice(int(rows.offsets[source]), int(rows.offsets[source + 1]))
        weights: AnyArray | None = rows.weights if self.weighted else None
        targets = rows.nodes[arcs].astype(np.int64)
        return targets, np.ones(len(targets)) if weights is None else weights[arcs].astype(np.float64)

    def _place(self, source: int, target: int) -> int:
        """The place of a link among all arcs of the graph, or the place to put it."""
        first = int(self.graph.out_rows.offsets[source])
        return first + int(np.searchsorted(self._row(source)[0], target))

    def _linked(self, source: int, target: int) -> bool:
        """Return whether the graph has a link."""
        row, _ = self._row(source)
        place = int(np.searchsorted(row, target))
        return place < len(row) and int(row[place]) == target

    def _lay_over(self) -> None:
        """Compute the entries of the sources' rows."""
        changed: dict[int, tuple[list[int], list[int]]] = {}
        for side, links in enumerate((self.added, self.removed)):
            for source, target in sorted(links):
                changed.setdefault(source, ([], []))[side].append(target)
        self.sources = np.array(sorted(changed), np.int64)
        rows, targets, shares, after = [], [], [], []
        for place, source in enumerate(self.sources.tolist()):
            added, removed = changed[source]
            before, weights = self._row(source)
            stays = ~np.isin(before, removed)
            old, new = float(weights.sum()), float(weights[stays].sum()) + len(added)
            follows = np.concatenate([np.where(stays, weights, 0.0), np.ones(len(added))])
            follows /= new if new else 1.0
            left = np.concatenate([weights / old if old else weights, np.zeros(len(added))])
            targets += [before, np.array(added, np.int64)]
            after.append(follows)
            shares.append(follows - left)
            rows.append(np.full(len(follows), place))
        self.row, self.targets = _joined(rows, np.int64), _joined(targets, np.int64)
        self.shares, self.after = _joined(shares, np.float64), _joined(after, np.float64)


def _pairs(links: Links) -> list[tuple[Any, Any]]:
    pairs = list(links)
    for place, pair in enumerate(pairs):
        if isinstance(pair, str | bytes) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise ParameterError(f"each link must be a pair of source and target; number {place} is {pair!r}")
    return pairs


def _joined(parts: list[Any], kind: Any) -> Any:
    return np.concatenate([np.empty(0, kind), *parts])
