"""Build a graph's folder from batches of arcs, with memory for the nodes only.

1. A collector (:mod:`inlink.graph.collect`) takes the arcs of one source. Names get provisional numbers from a hash
   table as they come. Then they are put in byte order, and a node's number is its name's place: so the order of the
   batches never shows.
2. Several sources become one part each (:mod:`inlink.graph.part`), and parts are merged by name
   (:mod:`inlink.graph.merging`). No table holds the names of all.
3. Arcs are cut into ranges of sources that fit in memory (:mod:`inlink.graph.ranges`). Each range is sorted, its
   duplicates merged, and written as rows. Their reverse is cut into ranges of targets, which only need counting to
   become the inlinks, which are split, as :mod:`inlink.graph.rows` says.

Memory: of one source, a node takes its name, 8 bytes for where it lies, 12 to 23 in the hash table and 12 while names
are sorted. Of several, it takes these for the nodes of the largest source, and then 13 for each node of all. Arcs take
:data:`inlink.graph.ranges.BUCKET` at a time, whatever their number.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from inlink.base.arrays import BoolArray, Float64Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.folder import FolderWriter, building
from inlink.base.progress import Task
from inlink.errors import InputError
from inlink.graph.batches import ArcBatch
from inlink.graph.collect import Collector, write_part
from inlink.graph.graph import FORMAT, KIND, Graph, Level, temporary_graph
from inlink.graph.merging import merge_parts
from inlink.graph.names import Names
from inlink.graph.part import Part, PartHeader
from inlink.graph.ranges import Bins, Ranges
from inlink.graph.source import Source

__all__ = ["build_graph", "build_parts", "build_sources"]

# nodes or arcs moved at a time
_BLOCK = 1 << 20


def build_graph(
    batches: Iterable[ArcBatch],
    *,
    names: Names | None = None,
    num_nodes: int | None = None,
    level: Level | None = None,
    count: bool = False,
    into: str | os.PathLike[str] | None = None,
    meta: dict[str, Any] | Callable[[], dict[str, Any]] | None = None,
    from_parent: UInt32Array | None = None,
) -> Graph:
    """Build a graph from a stream of arc batches.

    Parameters
    ----------
    batches : iterable of ArcBatch
        All with names, or all with numbers.
    names : Names or None
        The nodes' names, where batches hold numbers.
    num_nodes : int or None
        How many nodes there are, where batches hold numbers; None means one more than the largest.
    level : {"page", "host", "domain"} or None
        What the names are.
    count : bool
        Keep the number of duplicates of an arc as its weight. Given weights are always kept, and add up.
    into : path-like or None
        The folder to build; None makes a temporary one that goes when the graph does.
    meta : dict, function that gives one, or None
        What to say of the origin in the header, JSON values only; the function is called after the last batch.
    from_parent : uint32[number of the parent's nodes] or None
        For a graph derived from another: the node that each of the parent's nodes became, :data:`NO_NODE` for none.

    Returns
    -------
    Graph
        With weights uint32 where all are whole and their total is below 2³², otherwise float64.

    Raises
    ------
    InputError
        If a node's number is out of range, or a name stands twice in ``names``.
    ParameterError
        If a weight is not a finite number above 0.
    inlink.errors.OutputError
        If the folder cannot be written.
    """
    source = Source(iter(batches), names, num_nodes)
    return build_sources([source], level=level, count=count, into=into, meta=meta, from_parent=from_parent)


def build_sources(
    sources: Sequence[Source],
    *,
    failed: Callable[[int, InputError], None] | None = None,
    level: Level | None = None,
    count: bool = False,
    self_loops: bool = True,
    into: str | os.PathLike[str] | None = None,
    meta: dict[str, Any] | Callable[[], dict[str, Any]] | None = None,
    from_parent: UInt32Array | None = None,
) -> Graph:
    """Build one graph from several sources.

    Parameters
    ----------
    sources : sequence of Source
        All with names, or all with numbers. Nodes of a single source keep its numbers. If several sources have names,
        nodes are numbered in byte order of their names.
    failed : function of (int, InputError), or None
        Is called with the place of a source that cannot be read to its end, and with the error. Unless it raises, the
        source is left out: nothing of what it gave so far is in the graph. None raises the error.
    self_loops : bool
        Keep the arcs from a node to itself. Their nodes are kept in any case.
    level, count, into, meta, from_parent
        As in :func:`build_graph`, which also says what is returned and raised.
    """

    def write(writer: FolderWriter) -> None:
        if len(sources) == 1:
            collector = Collector(writer.scratch, self_loops)
            try:
                collector.take(sources[0])
                collector.finish(FolderSink(writer, count))
            except InputError as error:
                if failed is not None:
                    failed(0, error)
                raise
            finally:
                collector.close()
        else:
            parts = _parts(sources, writer.scratch, failed, self_loops)
            merge_parts(parts, FolderSink(writer, count), writer.scratch)
        if from_parent is not None:
            writer.write("from_parent", from_parent)

    return _built(write, level, into, meta)


def _parts(
    sources: Sequence[Source],
    scratch: Path,
    failed: Callable[[int, InputError], None] | None,
    self_loops: bool,
) -> list[Part]:
    """Make a part of each source that can be read to its end."""
    parts: list[Part] = []
    for place, source in enumerate(sources):
        if source.part is not None and self_loops:
            parts.append(source.part)
            continue
        path = scratch / f"part.{place}"
        try:
            # Weights may only come with a later source, and then repeats of these arcs count.
            part = write_part(path, source, scratch, keep=True, self_loops=self_loops, sync=False)
            parts.append(part)
        except InputError as error:
            if failed is None:
                raise
            failed(place, error)
    return parts


def build_parts(
    parts: Sequence[Part],
    *,
    level: Level | None = None,
    count: bool = False,
    into: str | os.PathLike[str] | None = None,
    meta: dict[str, Any] | Callable[[], dict[str, Any]] | None = None,
) -> Graph:
    """Build one graph from parts.

    Parameters
    ----------
    parts : sequence of Part
        All with names, or all with numbers.
    level, count, into, meta
        As in :func:`build_graph`. `count` needs parts that keep weights.

    Raises
    ------
    inlink.errors.InputError
        If a part is damaged.
    inlink.errors.ParameterError
        If some parts have names and others numbers.
    inlink.errors.OutputError
        If the folder cannot be written.
    """

    def write(writer: FolderWriter) -> None:
        merge_parts(parts, FolderSink(writer, count), writer.scratch)

    return _built(write, level, into, meta)


def _built(
    write: Callable[[FolderWriter], None],
    level: Level | None,
    into: str | os.PathLike[str] | None,
    meta: dict[str, Any] | Callable[[], dict[str, Any]] | None,
) -> Graph:
    def build(folder: Path) -> None:
        with building(folder, KIND, FORMAT, sync=into is not None) as writer:
            write(writer)
            writer.header.meta.update((meta() if callable(meta) else meta) or {})
            if level:
                writer.header.meta["level"] = level

    if into is None:
        return temporary_graph(build)
    build(Path(into))
    return Graph._built(Path(into))


class FolderSink:
    """Takes the names, marks and rows of a graph in order, and writes its folder.

    Parameters
    ----------
    writer : FolderWriter
        The folder.
    count : bool
        Keep the number of duplicates of an arc as its weight, also if none was given.
    """

    # Rows of a folder hold each arc once.
    apart = False
    in_order = False
    turns = True

    def __init__(self, writer: FolderWriter, count: bool) -> None:
        self._writer, self._count = writer, count
        self.keeps = count
        self._text: Any = None
        self._bytes = 0

    def names(self, text: UInt8Array, offsets: UInt64Array) -> None:
        """Add names: ``text[offsets[i]:offsets[i + 1]]``."""
        if self._text is None:
            self._text = self._writer.create("names.text", np.uint8)
            self._offsets = self._writer.create("names.offsets", np.uint64)
            self._offsets.append(np.zeros(1, np.uint64))
        self._text.append(text[int(offsets[0]) : int(offsets[-1])])
        self._offsets.append(offsets[1:] - offsets[0] + np.uint64(self._bytes))
        self._bytes += int(offsets[-1] - offsets[0])

    def order(self, order: UInt32Array) -> None:
        """Say that names are not in byte order: the nodes in that order."""
        self._writer.write("names.order", order)

    def crawled(self, nodes: Iterable[UInt32Array], num_nodes: int) -> None:
        """Say which nodes were crawled."""
        mask = np.zeros(num_nodes, np.bool_)
        for part in nodes:
            mask[part] = True
        self._writer.write("crawled", mask)

    def begin(self, header: PartHeader, linking: BoolArray, places: UInt32Array, targets: Bins) -> None:
        """Begin the rows, after all names and marks; see :class:`inlink.graph.ranges.Sink`."""
        self.keeps = header.weighted or self._count
        dtype = np.dtype(np.uint32 if header.whole and header.total < 2**32 else np.float64)
        self._dtype = dtype if self.keeps else None
        if header.named and self._text is None:
            self.names(np.empty(0, np.uint8), np.zeros(1, np.uint64))
        for file in (self._text, self._offsets) if header.named else ():
            file.close()
        self._writer.write("in.linking", np.flatnonzero(linking).astype(np.uint32))
        self._places = places
        self._indegrees = np.zeros(header.num_nodes, np.uint32)
        self._inward = Ranges(self._writer.scratch / "in", targets, by_target=True)
        self._out_offsets = self._writer.create("out.offsets", np.uint64)
        self._out_offsets.append(np.zeros(1, np.uint64))
        self._out = _RowFile(self._writer, "out", self._dtype)
        self._num_arcs = 0

    def rows(self, low: int, high: int, arcs: UInt64Array, sums: Float64Array) -> None:
        """Add the sorted arcs of the nodes in ``range(low, high)``, each once, and their weights if they are kept."""
        from inlink.graph.kernels.arcs import count_rows, count_targets, low_halves, relabel

        ends = np.zeros(high - low + 1, np.uint64)
        count_rows(arcs, np.uint64(low), ends)
        np.cumsum(ends, out=ends)
        self._out_offsets.append(ends[1:] + np.uint64(self._num_arcs))
        self._num_arcs += len(arcs)
        for start in range(0, len(arcs), _BLOCK):
            block, values = arcs[start : start + _BLOCK], sums[start : start + _BLOCK]
            nodes = np.empty(len(block), np.uint32)
            low_halves(block, nodes)
            self._out.append(nodes, values)
        # Inlinks are split: rows and sources are counted by place.
        relabel(arcs, self._places)
        count_targets(arcs, self._indegrees)
        for start in range(0, len(arcs), 4 * _BLOCK):
            self._inward.add(arcs[start : start + 4 * _BLOCK], sums[start : start + 4 * _BLOCK])

    def close(self, task: Task) -> None:
        """Write the inlinks."""
        from inlink.graph.kernels.arcs import place

        self._out_offsets.close()
        self._out.close()
        del self._places
        rows = _RowFile(self._writer, "in", self._dtype)
        base = 0
        with self._writer.create("in.offsets", np.uint64) as offsets:
            offsets.append(np.zeros(1, np.uint64))
            for low, high, arcs, weights in self._inward.each():
                starts = np.zeros(high - low + 1, np.uint64)
                np.cumsum(self._indegrees[low:high], out=starts[1:])
                offsets.append(starts[1:] + np.uint64(base))
                base += len(arcs)
                ends, sums = np.empty(len(arcs), np.uint32), np.empty(len(weights), np.float64)
                place(arcs, weights, np.uint64(low), starts, ends, sums)
                rows.append(ends, sums)
                task.advance(len(arcs))
        rows.close()


class _RowFile:
    """Writes the other ends of arcs and their weights."""

    def __init__(self, writer: FolderWriter, side: str, dtype: np.dtype[Any] | None) -> None:
        self._nodes = writer.create(f"{side}.nodes", np.uint32)
        self._weights = writer.create(f"{side}.weights", dtype) if dtype is not None else None

    def append(self, nodes: UInt32Array, weights: Float64Array) -> None:
        self._nodes.append(nodes)
        if self._weights is not None:
            self._weights.append(weights.astype(self._weights.dtype))

    def close(self) -> None:
        self._nodes.close()
        if self._weights is not None:
            self._weights.close()
