"""Sinks take a graph in order, names, marks and then rows, and write it: as a graph's folder or as a part."""

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from inlink.base.arrays import BoolArray, Float64Array, UInt8Array, UInt32Array, UInt64Array, slices
from inlink.base.folder import ArrayWriter, FolderWriter
from inlink.base.progress import Work
from inlink.graph.coded import InlinkWriter, OutlinkWriter
from inlink.graph.kernels.arcs import count_rows, count_targets, low_halves, merge, place, relabel
from inlink.graph.part import PartHeader, PartWriter
from inlink.graph.ranges import Bins, Block, Ranges, sort_arcs

# Number of arcs that are moved at a time.
_BLOCK = 1 << 22


class FolderSink:
    """A sink that writes a graph's folder.

    Parameters
    ----------
    writer : FolderWriter
        The folder.
    count : bool
        Keep the number of duplicates of an arc as its weight, also if none was given.
    compress : bool
        Write compressed rows.
    """

    # Rows of a folder hold each arc once.
    apart = False
    turns = True

    def __init__(self, writer: FolderWriter, count: bool, compress: bool) -> None:
        self.writer, self.keeps, self._compress = writer, count, compress
        self._text: ArrayWriter | None = None

    def names(self, text: UInt8Array, offsets: UInt64Array) -> None:
        """Add names: ``text[offsets[i]:offsets[i + 1]]``."""
        if self._text is None:
            self._text = self.writer.create("names.text", np.uint8)
            self._offsets = self.writer.create("names.offsets", np.uint64)
            self._offsets.append(np.zeros(1, np.uint64))
        self._offsets.append(offsets[1:] - offsets[0] + np.uint64(self._text.length))
        self._text.append(text[int(offsets[0]) : int(offsets[-1])])

    def order(self, order: UInt32Array) -> None:
        """Write the nodes in the byte order of their names, uint32[n]. Called only if names are not sorted."""
        self.writer.write("names.order", order)

    def crawled(self, parts: Iterable[UInt32Array], num_nodes: int) -> None:
        """Write the mask of the nodes that were crawled, given as arrays of their numbers."""
        mask = np.zeros(num_nodes, np.bool_)
        for nodes in parts:
            mask[nodes] = True
        self.writer.write("crawled", mask)

    def begin(self, header: PartHeader, linking: BoolArray, places: UInt32Array, targets: Bins) -> None:
        """Begin the rows, after all names and marks.

        Parameters
        ----------
        header : PartHeader
            The counts of the graph.
        linking : bool[n]
            True for nodes with outlinks.
        places : uint32[n]
            The place of each node's row of inlinks.
        targets : Bins
            Upper limits on the numbers of arcs, by the place of their targets.
        """
        self.keeps = header.weighted or self.keeps
        if self._text is not None:
            self._text.close()
            self._offsets.close()
        self._places = places
        self._indegrees = np.zeros(header.num_nodes, np.uint32)
        self._inward = Ranges(self.writer.scratch / "in", targets, by_target=True)
        self._num_arcs = 0
        linking_nodes = np.flatnonzero(linking).astype(np.uint32)
        if self._compress:
            self.writer.write("linking", np.packbits(linking, bitorder="little"))
            self._out: OutlinkWriter | _RowFile = OutlinkWriter(self.writer)
            self._in: InlinkWriter | _RowFile = InlinkWriter(self.writer, linking_nodes)
        else:
            self.writer.write("in.linking", linking_nodes)
            self._out, self._in = _RowFile(self.writer, "out"), _RowFile(self.writer, "in")
        dtype = np.uint32 if header.whole and header.total < 2**32 else np.float64
        sides = ("out", "in") if self.keeps else ()
        self._weights = [self.writer.create(f"{side}.weights", dtype) for side in sides]

    def rows(self, low: int, high: int, arcs: UInt64Array, sums: Float64Array) -> None:
        """Add the sorted arcs of the nodes in ``range(low, high)``, each once, and their weights if they are kept."""
        ends = np.zeros(high - low + 1, np.uint64)
        count_rows(arcs, np.uint64(low), ends)
        np.cumsum(ends, out=ends)
        self._num_arcs += len(arcs)
        nodes = np.empty(len(arcs), np.uint32)
        low_halves(arcs, nodes)
        self._out.append(ends, nodes)
        for file in self._weights[:1]:
            file.append(sums)
        del nodes
        # Inlinks are split: rows and sources are counted by place.
        relabel(arcs, self._places)
        count_targets(arcs, self._indegrees)
        for part in slices(len(arcs), _BLOCK):
            self._inward.add(arcs[part], sums[part])

    def close(self, task: Work) -> None:
        """Write the inlinks."""
        self._out.close()
        del self._places
        for low, high, arcs, weights in self._inward.each():
            starts = np.zeros(high - low + 1, np.uint64)
            np.cumsum(self._indegrees[low:high], out=starts[1:])
            ends, sums = np.empty(len(arcs), np.uint32), np.empty(len(weights), np.float64)
            place(arcs, weights, np.uint64(low), starts[:-1].copy(), ends, sums)
            self._in.append(starts, ends)
            for file in self._weights[1:]:
                file.append(sums)
            task.advance(len(arcs))
        self._in.close()
        for file in self._weights:
            file.close()
        if self._compress:
            self.writer.write("shape", np.array([len(self._indegrees), self._num_arcs], np.uint64))


class _RowFile:
    """Writes plain rows."""

    def __init__(self, writer: FolderWriter, side: str) -> None:
        self._offsets = writer.create(f"{side}.offsets", np.uint64)
        self._offsets.append(np.zeros(1, np.uint64))
        self._nodes = writer.create(f"{side}.nodes", np.uint32)

    def append(self, offsets: UInt64Array, nodes: UInt32Array) -> None:
        """Add rows: their offsets, uint64[k + 1] from 0 on, and the other ends of their arcs."""
        self._offsets.append(offsets[1:] + np.uint64(self._nodes.length))
        self._nodes.append(nodes)

    def close(self) -> None:
        self._offsets.close()
        self._nodes.close()


Sink: TypeAlias = FolderSink | PartWriter
"""Takes all names, ``text[offsets[i]:offsets[i + 1]]``, then the nodes that were crawled, then the rows.

A sink `turns` if it makes inlinks; a part does not, and needs names in byte order. `keeps` tells whether weights are
wanted. It is known after ``begin``, as is `apart`: whether equal arcs stay apart, because their weights cannot be
added up yet.
"""


def write_rows(ranges: Iterable[Block], sink: Sink, task: Work) -> None:
    """Sort each range of arcs, merge equal arcs, and give the rows to a sink."""
    for low, high, arcs, weights in ranges:
        task.advance(len(arcs))
        # Sums of floats must not depend on the order of the input.
        arcs, weights = sort_arcs(arcs, weights, by_weight=True)
        if not sink.apart:
            sums = np.empty(len(arcs) if sink.keeps else 0, np.float64)
            kept = int(merge(arcs, weights, sums))
            arcs, weights = arcs[:kept], sums[:kept]
        sink.rows(low, high, arcs, weights)
