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
twice the memory of :data:`inlink.graph.ranges.BUCKET` of them, whatever their number.
"""

import contextlib
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from inlink.base.arrays import BoolArray, Float64Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.folder import FolderWriter, building
from inlink.base.progress import Work
from inlink.base.unfinished import unfinished_folder
from inlink.errors import InputError
from inlink.graph.batches import ArcBatch
from inlink.graph.coded import InlinkWriter, OutlinkWriter
from inlink.graph.collect import Collector, write_part
from inlink.graph.graph import COMPRESSED, FORMAT, KIND, Graph, Level
from inlink.graph.merging import merge_parts
from inlink.graph.names import Names
from inlink.graph.part import InputPart, PartHeader
from inlink.graph.ranges import Bins, Ranges
from inlink.graph.source import Source

__all__ = ["build_graph", "build_parts", "build_sources"]

# Number of nodes or arcs that are moved at a time.
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
    compress: bool = False,
) -> Graph:
    """Build a graph from a stream of arc batches.

    Parameters
    ----------
    batches : iterable of ArcBatch
        All with names, or all with numbers.
    names : Names or None
        The nodes' names, where batches hold numbers.
    num_nodes : int or None
        The number of nodes, if batches hold numbers. None means one more than the largest number.
    level : {"page", "host", "domain"} or None
        The kind of the names; None if it is unknown.
    count : bool
        Keep the number of duplicates of an arc as its weight. Given weights are always kept, and add up.
    into : path-like or None
        The folder to build. None makes a temporary folder, which is removed with the graph.
    meta : dict, function that returns a dict, or None
        Fields of the header that describe the origin: JSON values. A function is called after the last batch.
    from_parent : uint32[number of the parent's nodes] or None
        For a graph derived from another: the new number of each of the parent's nodes, :data:`NO_NODE` if it was left
        out.
    compress : bool
        Compress the rows.

    Returns
    -------
    Graph
        The graph. Its weights are uint32 if all are whole and their total is below 2³², otherwise float64.

    Raises
    ------
    InputError
        If a node's number is out of range, or a name occurs twice in ``names``.
    ParameterError
        If a weight is not a finite number above 0.
    inlink.errors.OutputError
        If the folder cannot be written.
    """
    source = Source(iter(batches), names, num_nodes)
    return build_sources(
        [source], level=level, count=count, into=into, meta=meta, from_parent=from_parent, compress=compress
    )


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
    compress: bool = False,
) -> Graph:
    """Build one graph from several sources.

    Parameters
    ----------
    sources : sequence of Source
        All with names, or all with numbers. Nodes of a single source keep its numbers. If several sources have names,
        nodes are numbered in byte order of their names.
    failed : function of (int, InputError), or None
        Is called with the place of a source that cannot be read to its end, and with the error. Unless it raises, the
        source is left out, with the arcs that it gave so far. None raises the error.
    self_loops : bool
        Keep the arcs from a node to itself. Their nodes are kept in any case.
    level, count, into, meta, from_parent, compress
        As in :func:`build_graph`, which also says what is returned and raised.
    """

    def write(writer: FolderWriter) -> None:
        if len(sources) == 1:
            collector = Collector(writer.scratch, self_loops)
            try:
                collector.take(sources[0])
                collector.finish(FolderSink(writer, count, compress))
            except InputError as error:
                if failed is not None:
                    failed(0, error)
                raise
            finally:
                collector.close()
        else:
            parts = _parts(sources, writer.scratch, failed, self_loops)
            merge_parts(parts, FolderSink(writer, count, compress), writer.scratch)
        if from_parent is not None:
            writer.write("from_parent", from_parent)

    return _built(write, level, into, meta, compress)


def _parts(
    sources: Sequence[Source],
    scratch: Path,
    failed: Callable[[int, InputError], None] | None,
    self_loops: bool,
) -> list[InputPart]:
    """Make a part of each source that can be read to its end."""
    parts: list[InputPart] = []
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
    parts: Sequence[InputPart],
    *,
    level: Level | None = None,
    count: bool = False,
    into: str | os.PathLike[str] | None = None,
    meta: dict[str, Any] | Callable[[], dict[str, Any]] | None = None,
    compress: bool = False,
) -> Graph:
    """Build one graph from parts.

    Parameters
    ----------
    parts : sequence of InputPart
        All with names, or all with numbers.
    level, count, into, meta, compress
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
        merge_parts(parts, FolderSink(writer, count, compress), writer.scratch)

    return _built(write, level, into, meta, compress)


def _built(
    write: Callable[[FolderWriter], None],
    level: Level | None,
    into: str | os.PathLike[str] | None,
    meta: dict[str, Any] | Callable[[], dict[str, Any]] | None,
    compress: bool,
) -> Graph:
    version = COMPRESSED if compress else FORMAT

    def build(folder: Path) -> None:
        with building(folder, KIND, version, sync=into is not None) as writer:
            write(writer)
            writer.header.meta.update((meta() if callable(meta) else meta) or {})
            if level:
                writer.header.meta["level"] = level

    if into is None:
        return _temporary_graph(build)
    build(Path(into))
    return Graph._built(Path(into))


def _temporary_graph(build: Callable[[Path], None]) -> Graph:
    """A graph in a temporary folder, which is removed when the graph is no longer used."""
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(unfinished_folder(Path(tempfile.gettempdir(), "inlink")))
        build(place / "graph")
        graph = Graph._built(place / "graph")
        # From here on the folder goes when the graph does.
        weakref.finalize(graph, stack.pop_all().close)
    return graph


class FolderSink:
    """A sink that writes a graph's folder; see :class:`inlink.graph.ranges.Sink`.

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
    in_order = False
    turns = True

    def __init__(self, writer: FolderWriter, count: bool, compress: bool = False) -> None:
        self._writer, self._count, self._compress = writer, count, compress
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
        """Write the nodes in the byte order of their names, uint32[n]. Called only if names are not sorted."""
        self._writer.write("names.order", order)

    def crawled(self, nodes: Iterable[UInt32Array], num_nodes: int) -> None:
        """Write the mask of the nodes that were crawled, given as arrays of their numbers."""
        mask = np.zeros(num_nodes, np.bool_)
        for part in nodes:
            mask[part] = True
        self._writer.write("crawled", mask)

    def begin(self, header: PartHeader, linking: BoolArray, places: UInt32Array, targets: Bins) -> None:
        """Begin the rows, after all names and marks; see :class:`inlink.graph.ranges.Sink`."""
        self.keeps = header.weighted or self._count
        if header.named and self._text is None:
            self.names(np.empty(0, np.uint8), np.zeros(1, np.uint64))
        for file in (self._text, self._offsets) if header.named else ():
            file.close()
        self._places = places
        self._indegrees = np.zeros(header.num_nodes, np.uint32)
        self._inward = Ranges(self._writer.scratch / "in", targets, by_target=True)
        self._num_arcs = 0
        linking_nodes = np.flatnonzero(linking).astype(np.uint32)
        if self._compress:
            self._writer.write("linking", np.packbits(linking, bitorder="little"))
            self._out: OutlinkWriter | _RowFile = OutlinkWriter(self._writer)
            self._in: InlinkWriter | _RowFile = InlinkWriter(self._writer, linking_nodes)
        else:
            self._writer.write("in.linking", linking_nodes)
            self._out, self._in = _RowFile(self._writer, "out"), _RowFile(self._writer, "in")
        dtype = np.uint32 if header.whole and header.total < 2**32 else np.float64
        self._weights = {
            side: self._writer.create(f"{side}.weights", dtype) for side in ("out", "in") if self.keeps
        }

    def _append(self, side: str, offsets: UInt64Array, nodes: UInt32Array, weights: Float64Array) -> None:
        (self._out if side == "out" else self._in).append(offsets, nodes)
        if self.keeps:
            self._weights[side].append(weights)

    def rows(self, low: int, high: int, arcs: UInt64Array, sums: Float64Array) -> None:
        """Add the sorted arcs of the nodes in ``range(low, high)``, each once, and their weights if they are kept."""
        from inlink.graph.kernels.arcs import count_rows, count_targets, low_halves, relabel

        ends = np.zeros(high - low + 1, np.uint64)
        count_rows(arcs, np.uint64(low), ends)
        np.cumsum(ends, out=ends)
        self._num_arcs += len(arcs)
        nodes = np.empty(len(arcs), np.uint32)
        low_halves(arcs, nodes)
        self._append("out", ends, nodes, sums)
        del nodes
        # Inlinks are split: rows and sources are counted by place.
        relabel(arcs, self._places)
        count_targets(arcs, self._indegrees)
        for start in range(0, len(arcs), 4 * _BLOCK):
            self._inward.add(arcs[start : start + 4 * _BLOCK], sums[start : start + 4 * _BLOCK])

    def close(self, task: Work) -> None:
        """Write the inlinks."""
        from inlink.graph.kernels.arcs import place

        self._out.close()
        del self._places
        for low, high, arcs, weights in self._inward.each():
            starts = np.zeros(high - low + 1, np.uint64)
            np.cumsum(self._indegrees[low:high], out=starts[1:])
            ends, sums = np.empty(len(arcs), np.uint32), np.empty(len(weights), np.float64)
            place(arcs, weights, np.uint64(low), starts[:-1].copy(), ends, sums)
            self._append("in", starts, ends, sums)
            task.advance(len(arcs))
        self._in.close()
        for file in self._weights.values():
            file.close()
        if self._compress:
            self._writer.write("shape", np.array([len(self._indegrees), self._num_arcs], np.uint64))


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
