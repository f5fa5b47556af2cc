"""Collect the arcs of one source, and write them in order: to a graph's folder, or to a part."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from inlink.base.arrays import AnyArray, BoolArray, Float64Array, UInt32Array, UInt64Array, slices
from inlink.base.folder import atomic_file
from inlink.base.memory import BYTES_A_NODE, FREE_NODES, check_nodes, require_memory
from inlink.base.progress import Work, track
from inlink.base.table import counted
from inlink.errors import InputError, ParameterError
from inlink.graph.batches import ArcBatch
from inlink.graph.checks import check_weights
from inlink.graph.kernels.arcs import count_sources, count_targets, pack, pack_known, relabel
from inlink.graph.names import MAX_NODES, Names, NameTable
from inlink.graph.part import PartFile, PartHeader, PartWriter
from inlink.graph.ranges import BUCKET, Bins, Block, Ranges, sort_arcs
from inlink.graph.rows import row_places
from inlink.graph.sinks import FolderSink, Sink, write_rows
from inlink.graph.source import Source

MIXED = "names and node numbers cannot be mixed in one graph. If numbers are names, use --nodes names"
# Number of nodes or arcs that are moved at a time.
_BLOCK = 1 << 20
_NONE: UInt32Array = np.empty(0, np.uint32)
# Number of arcs that are kept in memory before they are written.
_KEPT = 1 << 22


def collect(source: Source, sink: Sink, scratch: Path, self_loops: bool) -> None:
    """Read a source to its end, and give its nodes and arcs to a sink, in order.

    Parameters
    ----------
    source : Source
        The source.
    sink : Sink
        Takes the names, marks and arcs.
    scratch : Path
        A folder for temporary files.
    self_loops : bool
        Keep the arcs from a node to itself.

    Raises
    ------
    inlink.errors.InputError
        If the source cannot be read, a node's number is out of range, or the number of names is not that of the nodes.
    inlink.errors.ParameterError
        If its batches do not fit together.
    """
    collector = _ArcCollector(source, scratch, self_loops)
    try:
        for batch in source.batches:
            collector.add(batch)
        collector.finish(sink)
    finally:
        collector.close()


class _ArcCollector:
    """The nodes and arcs of one source."""

    def __init__(self, source: Source, scratch: Path, self_loops: bool) -> None:
        self._source, self._scratch, self._self_loops = source, scratch, self_loops
        self._table: NameTable | None = None
        self._largest = -1
        self._num_arcs = 0
        self._weighted, self._whole, self._total = False, not source.fractional, 0.0
        self._crawled: list[UInt32Array] | None = None
        self._bytes = 0
        # Names the place of an arc of the batch with the largest number, and the arc.
        self._where: tuple[Callable[[int], str], int] | None = None
        self._arcs = _Spool(scratch / "arcs", np.dtype(np.uint64))
        self._weights = _Spool(scratch / "weights", np.dtype(np.float64))

    def add(self, batch: ArcBatch) -> None:
        """Take a batch of arcs."""
        count = len(batch.sources)
        if len(batch.targets) != count or (batch.weights is not None and len(batch.weights) != count):
            raise ParameterError("a batch's sources, targets and weights must have the same length")
        packed = np.empty(count, np.uint64)
        crawled = batch.crawled
        if batch.names is None:
            if self._table is not None:
                raise ParameterError(MIXED)
            largest = int(pack(batch.sources, batch.targets, packed)) if count else self._largest
            if crawled is not None:
                largest = max(largest, int(crawled.max(initial=0)) if len(crawled) else -1)
            if largest >= MAX_NODES:
                raise InputError(
                    f"node {largest:,} is out of range (below {MAX_NODES:,}): read the nodes as names instead"
                )
            if largest > max(self._largest, FREE_NODES) and batch.place is not None:
                self._where = batch.place, int(np.maximum(batch.sources, batch.targets).argmax())
            self._largest = max(self._largest, largest)
            self._bytes += batch.size or 16 * count
        else:
            if self._largest >= 0:
                raise ParameterError(MIXED)
            self._table = self._table or NameTable()
            ids = self._table.number(batch.names)
            for ends in (batch.sources, batch.targets, _NONE if crawled is None else crawled):
                if len(ends) and int(ends.max()) >= len(ids):
                    raise ParameterError(
                        f"a batch's number {int(ends.max()):,} is outside its names (there are {len(ids):,})"
                    )
            pack_known(batch.sources, batch.targets, ids, packed)
            crawled = None if crawled is None else ids[crawled]
        if crawled is not None:
            self._crawled = self._crawled or []
            self._crawled.append(np.asarray(crawled, np.uint32))
        weights = batch.weights
        if not self._self_loops:
            proper = packed >> np.uint64(32) != packed & np.uint64(2**32 - 1)
            packed, weights = packed[proper], None if weights is None else weights[proper]
        if weights is not None:
            self._take_weights(weights)
        elif self._weighted:
            self._take_weights(np.ones(len(packed)))
        self._arcs.append(packed)
        self._num_arcs += len(packed)

    def _take_weights(self, weights: Float64Array) -> None:
        check_weights(weights, "arc batch")
        if not self._weighted:
            self._weighted = True
            # Arcs that came without a weight count once.
            for part in slices(self._num_arcs, _BLOCK):
                self._weights.append(np.ones(part.stop - part.start))
            self._total += self._num_arcs
        weights = np.ascontiguousarray(weights, np.float64)
        self._whole = self._whole and bool((weights == np.floor(weights)).all())
        # A sum beyond float64 is above 2³² all the same.
        with np.errstate(over="ignore"):
            self._total += float(weights.sum())
        self._weights.append(weights)

    def finish(self, sink: Sink) -> None:
        """Give the names, marks and arcs to a sink, in order."""
        nodes, label = self._write_names(sink)
        if self._crawled is not None:
            sink.crawled([relabelled(part, label) for part in self._crawled], nodes)
        header = PartHeader(
            named=(self._table is not None or self._source.names is not None) if nodes else None,
            num_nodes=nodes,
            weighted=self._weighted,
            whole=self._whole,
            total=self._total if self._weighted else float(self._num_arcs),
        )
        with track("sorting arcs", 3 * self._num_arcs, "arcs") as task:
            sources, linking, ends = self._counts(nodes, label, task)
            places = row_places(np.flatnonzero(linking).astype(np.uint32), nodes) if sink.turns else _NONE
            targets = Bins(nodes)
            if sink.turns and len(ends):
                targets.add(places, ends)
            del ends
            sink.begin(header, linking, places, targets)
            del linking, places
            write_rows(self._ranges(nodes, label, sources, task), sink, task)
            sink.close(task)

    def close(self) -> None:
        """Remove the temporary files."""
        self._arcs.remove()
        self._weights.remove()

    def _write_names(self, sink: Sink) -> tuple[int, UInt32Array]:
        """Write the names. Return the number of nodes, and their new numbers: uint32[n], empty if none changes."""
        if self._table is not None:
            require_memory(self._table.known * BYTES_A_NODE, f"{self._table.known:,} nodes")
            with track("sorting names"):
                return _give_sorted(sink, *self._table.sorted())
        names, largest, stated = self._source.names, self._largest, self._source.num_nodes
        nodes = largest + 1 if stated is None else stated
        if names is not None and stated is None:
            nodes = max(nodes, len(names))
        if nodes > MAX_NODES:
            raise InputError(f"a graph has at most {MAX_NODES:,} nodes; got {nodes:,}")
        if largest >= nodes:
            raise InputError(f"there is no node {largest:,}: the {nodes:,} nodes are numbered from 0")
        if names is None:
            self._check_nodes(nodes)
            return nodes, _NONE
        if len(names) != nodes:
            raise InputError(f"there are {counted(nodes, 'node')} and {counted(len(names), 'name')}")
        require_memory(nodes * BYTES_A_NODE, f"{nodes:,} nodes")
        if names.order is not None and isinstance(sink, PartWriter):
            return _give_sorted(sink, names, names.order)
        # A folder without nodes has files of names too.
        for part in slices(max(nodes, 1), _BLOCK):
            column = names.column(part.start, part.stop)
            sink.names(column.text, column.offsets)
        if names.order is not None and isinstance(sink, FolderSink):
            sink.order(names.order)
        return nodes, _NONE

    def _check_nodes(self, nodes: int) -> None:
        """Refuse more numbered nodes than the input justifies, before anything is allocated for them."""
        source = self._source
        backed = source.num_nodes is not None and not source.stated
        place = source.stated or "the input"
        if self._where is not None and not source.stated:
            name, arc = self._where
            place = name(arc)
        size = self._bytes if source.bounded and not backed else None
        check_nodes(nodes, size, place, source.max_node)

    def _counts(self, nodes: int, label: UInt32Array, task: Work) -> tuple[Bins, BoolArray, UInt64Array]:
        """Return the counts of arcs by source, the nodes that link, bool[n], and the number of inlinks of each node.

        The last is uint64[n] if there are more arcs than are sorted in memory, else empty.
        """
        many = self._num_arcs > BUCKET
        from_, to = np.zeros(nodes, np.uint64), np.zeros(nodes if many else 0, np.uint64)
        for arcs in self._arcs.blocks():
            count_sources(arcs, from_)
            if many:
                count_targets(arcs, to)
            task.advance(len(arcs))
        # They were counted by provisional numbers.
        if len(label):
            from_[label] = from_.copy()
            if many:
                to[label] = to.copy()
        sources = Bins(nodes)
        sources.add(np.arange(nodes, dtype=np.uint32), from_)
        return sources, from_ > 0, to

    def _ranges(self, nodes: int, label: UInt32Array, sources: Bins, task: Work) -> Iterator[Block]:
        if self._num_arcs <= BUCKET:
            arcs, weights = self._arcs.whole(), self._weights.whole()
            relabel(arcs, label)
            yield 0, nodes, arcs, weights
            return
        ranges = Ranges(self._scratch / "out", sources)
        values = self._weights.blocks()
        for arcs in self._arcs.blocks():
            relabel(arcs, label)
            ranges.add(*sort_arcs(arcs, next(values) if self._weighted else np.empty(0)))
        self._arcs.remove()
        self._weights.remove()
        yield from ranges.each()


class _Spool:
    """Numbers in their order of arrival. Large collections are kept on disk."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self._path, self._dtype = path, dtype
        self._held: list[Any] = []
        self._length, self._written = 0, 0

    def append(self, values: Any) -> None:
        self._held.append(values)
        self._length += len(values)
        if self._length - self._written > _KEPT:
            with self._path.open("ab" if self._written else "wb") as file:
                for part in self._held:
                    file.write(part.data)
            self._held.clear()
            self._written = self._length

    def whole(self) -> Any:
        """All numbers, in memory."""
        written = [np.fromfile(self._path, self._dtype)] if self._written else []
        values = np.concatenate([*written, *self._held, np.empty(0, self._dtype)])
        self.remove()
        return values

    def blocks(self) -> Iterator[Any]:
        """Blocks of :data:`_BLOCK` numbers; the last may be shorter. The spool stays."""
        rest = np.concatenate([*self._held, np.empty(0, self._dtype)])
        if self._written:
            with self._path.open("rb") as file:
                while len(block := np.fromfile(file, self._dtype, _BLOCK)) == _BLOCK:
                    yield block
            rest = np.concatenate([block, rest])
        for part in slices(len(rest), _BLOCK):
            yield rest[part].copy()

    def remove(self) -> None:
        self._held.clear()
        self._path.unlink(missing_ok=True)


def _give_sorted(sink: Sink, names: Names, order: UInt32Array) -> tuple[int, UInt32Array]:
    """Give names to a sink in the given order of nodes. Return the number of nodes, and their new numbers."""
    for start in range(0, max(len(order), 1), _BLOCK):
        column = names.take(order[start : start + _BLOCK])
        sink.names(column.text, column.offsets)
    label = np.empty_like(order)
    label[order] = np.arange(len(order), dtype=np.uint32)
    return len(order), label


def relabelled(nodes: AnyArray, label: UInt32Array) -> AnyArray:
    """Return the new numbers of nodes; the same if ``label`` is empty."""
    return label[nodes] if len(label) else nodes


def write_part(
    path: str | os.PathLike[str],
    source: Source,
    scratch: Path,
    *,
    keep: bool,
    self_loops: bool = True,
    meta: dict[str, Any] | None = None,
    sync: bool = True,
) -> PartFile:
    """Write the arcs of a source as a part, which appears when it is complete.

    Parameters
    ----------
    path : path-like
        The file.
    source : Source
        The arcs. Its batches are read to their end.
    scratch : Path
        A folder for temporary files. Nobody else may use it until this returns.
    keep : bool
        Keep the weight of each arc, or the number of times that it occurs in the source.
    self_loops : bool
        Keep the arcs from a node to itself.
    meta : dict or None
        JSON values for the header of the part. They are written after the source was read to its end.
    sync : bool
        Return when the part is safe from a power cut.

    Raises
    ------
    inlink.errors.InputError
        If the source cannot be read. Nothing is written then.
    inlink.errors.OutputError
        If the part cannot be written, or the disk is full.
    """
    with atomic_file(path, sync=sync) as work, work.open("wb") as file:
        collect(source, PartWriter(file, keep, meta), scratch, self_loops)
    return PartFile(path)
