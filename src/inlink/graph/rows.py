"""Compressed sparse rows: outlinks, and inlinks that are split so that rankings read only what links.

In most link graphs of hosts three quarters of the nodes are dangling: they have no outlinks. The rank of a node depends
on the ranks of linking nodes only. So the rows of linking nodes come first, and sources are numbered among linking
nodes: an iteration reads the first rows and vectors of one number for each linking node.
"""

from typing import NamedTuple

import numpy as np

from inlink.base.arrays import AnyArray, Int64Array, UInt8Array, UInt32Array, UInt64Array

__all__ = [
    "BLOCK",
    "COMPRESSED",
    "PAD",
    "START",
    "CodedRows",
    "Rows",
    "SplitRows",
    "join_rows",
    "node_bounds",
    "nodes_at_places",
    "places_of",
    "row_places",
    "split_transpose",
    "unsplit",
]


COMPRESSED = 3
"""The format version of a graph's folder with compressed rows."""
BLOCK = 64
"""Rows of a block of compressed rows. The beginning of each block is stored."""
PAD = 16
"""Bytes of zeros after the last coded row of inlinks."""
START = 5
"""Bytes of the beginning of a linking node's coded row."""


class Rows(NamedTuple):
    """Compressed sparse rows: for each node, the nodes at the other ends of its arcs.

    Attributes
    ----------
    offsets : uint64[n + 1]
        The place where each node's row begins.
    nodes : uint32[m]
        The other ends, increasing within a row, each once.
    weights : uint32[m] or float64[m], or None
        The arcs' weights (counts, or weights of the input); None means 1 each.
    """

    offsets: UInt64Array
    nodes: UInt32Array
    weights: AnyArray | None = None


class SplitRows(NamedTuple):
    """Rows of inlinks by *place*. Linking nodes have the places from 0 on, in increasing order; dangling nodes follow.

    Attributes
    ----------
    offsets : uint64[n + 1]
        The beginning of the row at each place.
    nodes : uint32[m]
        The places of the sources, increasing within a row, each once. All sources link, so places are below l.
    weights : uint32[m] or float64[m], or None
        The arcs' weights; None means 1 each.
    linking : uint32[l] or uint32[0]
        The linking nodes, increasing. If it is empty, the rows are not split: a node's place is its number.
    """

    offsets: UInt64Array
    nodes: UInt32Array
    weights: AnyArray | None
    linking: UInt32Array

    def places(self, nodes: UInt32Array | list[int]) -> Int64Array:
        """Return the place of each of some nodes, int64[k]."""
        return places_of(self.linking, nodes)

    def named(self, sources: UInt32Array) -> UInt32Array:
        """Return the nodes at some places below l, uint32[k]."""
        return self.linking[sources] if len(self.linking) else sources


class CodedRows(NamedTuple):
    """The rows of split inlinks, coded as in `graph/kernels/streamvbyte.py`.

    Attributes
    ----------
    starts : uint8[5 · l + 3]
        The first byte of each linking node's row, as five bytes each, and three bytes of zeros.
    rows : uint8[…]
        The rows by place, and :data:`PAD` zeros.
    blocks : uint64[2 · (⌈n / 64⌉ + 1)]
        For each block of 64 places, and for the end: the first byte in ``rows``, and the number of arcs before it.
    linking : uint32[l]
        The linking nodes, increasing.
    """

    starts: UInt8Array
    rows: UInt8Array
    blocks: UInt64Array
    linking: UInt32Array


def unsplit(rows: Rows) -> SplitRows:
    """Return plain rows of inlinks as split rows in which a node's place is its number. Nothing is copied."""
    return SplitRows(*rows, np.empty(0, np.uint32))


def places_of(linking: UInt32Array, nodes: UInt32Array | list[int]) -> Int64Array:
    """Return the place of each of some nodes, int64[k]: its number if ``linking`` is empty."""
    numbers = np.asarray(nodes, np.int64)
    if not len(linking):
        return numbers
    before = np.searchsorted(linking, np.asarray(nodes, np.uint32))
    linked = linking[np.minimum(before, len(linking) - 1)] == numbers
    return np.where(linked, before, len(linking) + numbers - before)


def row_places(linking: UInt32Array, num_nodes: int) -> UInt32Array:
    """Return the place of each node's row, uint32[n]."""
    dangling = np.ones(num_nodes, np.bool_)
    dangling[linking] = False
    places = np.cumsum(dangling, dtype=np.uint32)
    places += np.uint32(len(linking))
    places -= np.uint32(1)
    places[linking] = np.arange(len(linking), dtype=np.uint32)
    return places


def nodes_at_places(linking: UInt32Array, num_nodes: int) -> UInt32Array:
    """Return the node whose row is at each place, uint32[n]."""
    dangling = np.ones(num_nodes, np.bool_)
    dangling[linking] = False
    return np.concatenate([linking, np.flatnonzero(dangling).astype(np.uint32)])


def split_transpose(rows: Rows) -> SplitRows:
    """The inlinks of rows of outlinks, made in memory: 4 bytes an arc and 8 a node, for a moment three times that."""
    from inlink.graph.kernels.arcs import count_nodes, transpose

    nodes = len(rows.offsets) - 1
    linking = np.flatnonzero(rows.offsets[1:] != rows.offsets[:-1]).astype(np.uint32)
    places = row_places(linking, nodes)
    counts = np.zeros(nodes + 1, np.uint64)
    count_nodes(rows.nodes, counts)
    offsets = np.zeros(nodes + 1, np.uint64)
    offsets[1:][places] = counts[1:]
    np.cumsum(offsets, out=offsets)
    ends = np.empty(len(rows.nodes), np.uint32)
    given = np.empty(0) if rows.weights is None else rows.weights
    weights = np.empty(len(given), given.dtype)
    transpose(rows.offsets, rows.nodes, given, places, offsets[:-1][places], ends, weights)
    return SplitRows(offsets, ends, None if rows.weights is None else weights, linking)


def join_rows(rows: SplitRows) -> Rows:
    """Split rows as plain rows, made in memory: 4 bytes an arc and 8 a node. Rows that are not split are not copied."""
    from inlink.graph.kernels.arcs import join

    if not len(rows.linking):
        return Rows(*rows[:3])
    places = row_places(rows.linking, len(rows.offsets) - 1)
    offsets = np.zeros_like(rows.offsets)
    offsets[1:] = np.diff(rows.offsets)[places]
    np.cumsum(offsets, out=offsets)
    nodes = np.empty(len(rows.nodes), np.uint32)
    given = np.empty(0) if rows.weights is None else rows.weights
    weights = np.empty(len(given), given.dtype)
    join(rows.offsets, rows.nodes, given, rows.linking, places, offsets, nodes, weights)
    return Rows(offsets, nodes, None if rows.weights is None else weights)


def node_bounds(offsets: UInt64Array, linking: UInt32Array, count: int) -> UInt64Array:
    """Boundaries uint64[count + 1] that cut the nodes, in their order, into parts of about equal work.

    The work of a row is its arcs + 1, as in :func:`inlink.base.jit.chunks_by_arcs`.

    Parameters
    ----------
    offsets : uint64[n + 1], or CodedOffsets
        The beginning of the row at each place.
    linking : uint32[l] or uint32[0]
        The linking nodes, increasing. If it is empty, a node's place is its number.
    count : int
        The number of parts.
    """
    nodes, first = len(offsets) - 1, len(linking)
    arcs_of_all, arcs_of_linking = int(offsets[nodes]), int(offsets[first])
    bounds = np.zeros(count + 1, np.uint64)
    for part in range(1, count):
        goal = (arcs_of_all + nodes) * part // count
        low, high = int(bounds[part - 1]), nodes
        while low < high:
            node = (low + high) // 2
            linked = int(np.searchsorted(linking, np.uint32(node)))
            arcs = int(offsets[linked]) + int(offsets[first + node - linked]) - arcs_of_linking
            low, high = (node + 1, high) if arcs + node < goal else (low, node)
        bounds[part] = low
    bounds[count] = nodes
    return bounds
