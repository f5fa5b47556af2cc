"""Build a graph's folder from batches of arcs, with memory for the nodes only.

1. Names get provisional numbers from a hash table as they come; arcs are packed into 64 bits and spilled to disk.
2. Names are put in byte order, and a node's number is its name's place: so the order of the batches never shows.
3. Arcs are cut into ranges of sources that fit in memory; each range is sorted, its duplicates merged, and written
   as rows. Their reverse is cut into ranges of targets, which only need counting to become the inlinks. Inlinks are
   split, as :mod:`inlink.graph.rows` says.

Memory: a node takes its name, 8 bytes for where it lies, 12 to 23 in the hash table and 12 while names are sorted; arcs
take :data:`BUCKET` at a time, whatever their number.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from inlink.base.arrays import Float64Array, UInt32Array, UInt64Array
from inlink.base.folder import FolderWriter, building
from inlink.base.progress import track
from inlink.errors import InputError, ParameterError
from inlink.graph.batches import ArcBatch
from inlink.graph.checks import check_weights
from inlink.graph.graph import FORMAT, KIND, Graph, Level, temporary_graph
from inlink.graph.names import MAX_NODES, Names, NameTable, buffers
from inlink.graph.rows import row_places
from inlink.graph.source import Source

__all__ = ["BUCKET", "build_graph", "build_sources"]

# arcs sorted at a time: 128 MB; of 2²², 2²⁴ and 2²⁶ the fastest on 70 M arcs
BUCKET = 1 << 24
# arcs moved at a time
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

    def build(folder: Path) -> None:
        with building(folder, KIND, FORMAT, sync=into is not None) as writer:
            builder = _Builder(writer, count, self_loops)
            try:
                num_nodes = _add_sources(builder, sources, failed)
                builder.finish(sources[0].names if len(sources) == 1 else None, num_nodes)
            finally:
                builder.close()
            if from_parent is not None:
                writer.write("from_parent", from_parent)
            writer.header.meta.update((meta() if callable(meta) else meta) or {})
            if level:
                writer.header.meta["level"] = level

    if into is None:
        return temporary_graph(build)
    build(Path(into))
    return Graph._built(Path(into))


def _add_sources(
    builder: "_Builder", sources: Sequence[Source], failed: Callable[[int, InputError], None] | None
) -> int | None:
    """Add the arcs of all sources. Return the largest number of nodes that a source states, None if none does."""
    num_nodes: int | None = None
    for place, source in enumerate(sources):
        before = builder.mark()
        try:
            ids = None
            if len(sources) > 1 and source.names is not None:
                ids = builder.learn(source.names)
            builder.whole = builder.whole and not source.fractional
            for batch in source.batches:
                builder.add(batch, ids)
        except InputError as error:
            if failed is None:
                raise
            builder.forget(before)
            failed(place, error)
        else:
            if source.num_nodes is not None:
                num_nodes = max(source.num_nodes, num_nodes or 0)
    return num_nodes


class _Mark(NamedTuple):
    """The state of a builder, to which it can return."""

    known: int | None
    largest: int
    num_arcs: int
    weighted: bool
    whole: bool
    total: float
    crawled: int | None


class _Builder:
    def __init__(self, writer: FolderWriter, count: bool, self_loops: bool) -> None:
        self.writer = writer
        self.count, self.self_loops = count, self_loops
        self.table: NameTable | None = None
        self.largest = -1
        self.num_arcs = 0
        self.weighted = False
        self.whole, self.total = True, 0.0
        self.crawled: list[UInt32Array] | None = None
        self.spill = writer.scratch
        self._arcs = (self.spill / "arcs").open("wb")
        self._weights = (self.spill / "weights").open("wb")

    def close(self) -> None:
        for file in (self._arcs, self._weights):
            with contextlib.suppress(OSError):
                file.close()

    def mark(self) -> _Mark:
        """Return the state that :meth:`forget` goes back to."""
        return _Mark(
            None if self.table is None else self.table.known,
            self.largest,
            self.num_arcs,
            self.weighted,
            self.whole,
            self.total,
            None if self.crawled is None else len(self.crawled),
        )

    def forget(self, mark: _Mark) -> None:
        """Forget all that was added since a mark was made."""
        if self.table is not None and mark.known is not None:
            self.table.forget(mark.known)
        else:
            self.table = None
        self.crawled = None if self.crawled is None or mark.crawled is None else self.crawled[: mark.crawled]
        self.largest, self.num_arcs = mark.largest, mark.num_arcs
        self.weighted, self.whole, self.total = mark.weighted, mark.whole, mark.total
        for file, size in ((self._arcs, mark.num_arcs), (self._weights, mark.num_arcs * mark.weighted)):
            file.truncate(8 * size)
            file.seek(8 * size)

    def learn(self, names: Names) -> UInt32Array:
        """Return the provisional number of each node of a source, uint32[len(names)]."""
        self._refuse_mixture(True)
        self.table = self.table or NameTable()
        ids = np.empty(len(names), np.uint32)
        for start in range(0, len(names), _BLOCK):
            stop = min(start + _BLOCK, len(names))
            ids[start:stop] = self.table.number(names.arrow(start, stop))
        return ids

    def _refuse_mixture(self, named: bool) -> None:
        if named == (self.table is None) and (self.table is not None or self.largest >= 0):
            raise ParameterError(
                "names and node numbers cannot be mixed in one graph. If numbers are names, use --nodes names"
            )

    def add(self, batch: ArcBatch, ids: UInt32Array | None = None) -> None:
        """Add arcs. `ids` is the provisional number of each node of the source, if it has names by number."""
        from inlink.graph.kernels.arcs import pack, pack_known

        count = len(batch.sources)
        if len(batch.targets) != count or (batch.weights is not None and len(batch.weights) != count):
            raise ParameterError("a batch's sources, targets and weights must have the same length")
        self._refuse_mixture(batch.names is not None or ids is not None)
        packed = np.empty(count, np.uint64)
        if batch.names is None and ids is None:
            largest = int(pack(batch.sources, batch.targets, packed)) if count else self.largest
            if largest >= MAX_NODES:
                raise InputError(
                    f"node {largest:,} is out of range (below {MAX_NODES:,}): read them as names instead"
                )
            self.largest = max(self.largest, largest)
            crawled = batch.crawled
        else:
            if batch.names is not None:
                self.table = self.table or NameTable()
                ids = self.table.number(batch.names)
            assert ids is not None
            if count and max(int(batch.sources.max()), int(batch.targets.max())) >= len(ids):
                raise ParameterError("a batch's arcs end outside its names")
            pack_known(batch.sources, batch.targets, ids, packed)
            crawled = None if batch.crawled is None else ids[batch.crawled]
        if crawled is not None:
            self.crawled = self.crawled or []
            self.crawled.append(np.asarray(crawled, np.uint32))
        weights = batch.weights
        if not self.self_loops:
            proper = packed >> np.uint64(32) != packed & np.uint64(2**32 - 1)
            packed, weights = packed[proper], None if weights is None else weights[proper]
        if weights is not None:
            self._take_weights(weights)
        elif self.weighted:
            self._take_weights(np.ones(len(packed)))
        self._arcs.write(packed.data)
        self.num_arcs += len(packed)

    def _take_weights(self, weights: Float64Array) -> None:
        check_weights(weights, "arc batch")
        if not self.weighted:
            self.weighted = True
            for start in range(0, self.num_arcs, _BLOCK):  # those that came without one
                self._weights.write(np.ones(min(_BLOCK, self.num_arcs - start)).data)
            self.total += self.num_arcs
        weights = np.ascontiguousarray(weights, np.float64)
        self.whole = self.whole and bool((weights == np.floor(weights)).all())
        with np.errstate(over="ignore"):  # beyond float64 it is above 2³² all the same
            self.total += float(weights.sum())
        self._weights.write(weights.data)

    def finish(self, names: Names | None, num_nodes: int | None) -> None:
        self.close()
        label = np.empty(0, np.uint32)
        if self.table is not None:
            nodes = self.table.known
            with track("sorting names"):
                found, order = self.table.sorted()
                _write_names(self.writer, found, order)
                label = np.empty_like(order)
                label[order] = np.arange(nodes, dtype=np.uint32)
            del self.table, found, order
        else:
            nodes = self.largest + 1 if num_nodes is None else num_nodes
            nodes = max(nodes, len(names)) if names is not None and num_nodes is None else nodes
            if self.largest >= nodes or nodes > MAX_NODES:
                raise InputError(
                    f"an arc ends at node {self.largest:,} and there are {nodes:,} nodes, numbered from 0"
                )
            if names is not None:
                if len(names) != nodes:
                    raise InputError(f"there are {nodes:,} nodes and {len(names):,} names")
                _write_names(self.writer, names)
        if self.crawled is not None:
            mask = np.zeros(nodes, np.bool_)
            for part in self.crawled:
                mask[part if len(label) == 0 else label[part]] = True
            self.writer.write("crawled", mask)
        if not self.weighted:
            self.total = float(self.num_arcs)
        self._write_rows(nodes, label)

    def _write_rows(self, nodes: int, label: UInt32Array) -> None:
        from inlink.graph.kernels.arcs import (
            count_sources,
            count_targets,
            low_halves,
            merge,
            place,
            relabel,
            turn,
        )

        keep = self.weighted or self.count
        dtype = np.dtype(np.uint32 if self.whole and self.total < 2**32 else np.float64)
        with track("sorting arcs", 4 * self.num_arcs, "arcs") as task:
            from_, to = np.zeros(nodes, np.uint64), np.zeros(nodes, np.uint64)
            for arcs, _ in self._spilled():
                count_sources(arcs, from_)
                count_targets(arcs, to)
                task.advance(len(arcs))
            if len(label):  # counted by provisional numbers
                from_[label], to[label] = from_.copy(), to.copy()
            forward = _Ranges(self.spill / "out", from_, self.weighted)
            # Inlinks are split: their rows and sources are counted by place.
            linking = np.flatnonzero(from_).astype(np.uint32)
            self.writer.write("in.linking", linking)
            places = row_places(linking, nodes)
            to[places] = to.copy()
            backward = _Ranges(self.spill / "in", to, keep)
            del from_, to, linking
            for arcs, weights in self._spilled():
                relabel(arcs, label)
                forward.add(arcs, weights)
                task.advance(len(arcs))
            (self.spill / "arcs").unlink()
            (self.spill / "weights").unlink()

            outdegrees, indegrees = np.zeros(nodes, np.uint32), np.zeros(nodes, np.uint32)
            with _RowFile(self.writer, "out", dtype, keep) as rows:
                for _, _, arcs, weights in forward.each():
                    task.advance(len(arcs))
                    if len(weights):
                        order = np.lexsort(
                            (weights, arcs)
                        )  # sums of floats must not depend on the order either
                        arcs, weights = arcs[order], weights[order]
                    else:
                        arcs.sort()
                    sums = np.empty(len(arcs) if keep else 0, np.float64)
                    kept = int(merge(arcs, weights, sums))
                    arcs, sums = arcs[:kept], sums[:kept]
                    count_sources(arcs, outdegrees)
                    ends = np.empty(kept, np.uint32)
                    low_halves(arcs, ends)
                    rows.append(ends, sums)
                    relabel(arcs, places)
                    turn(arcs)
                    count_sources(arcs, indegrees)
                    for start in range(0, kept, _BLOCK):
                        backward.add(arcs[start : start + _BLOCK], sums[start : start + _BLOCK])
            del places
            self.writer.write("out.offsets", _offsets(outdegrees))
            offsets = _offsets(indegrees)
            self.writer.write("in.offsets", offsets)
            with _RowFile(self.writer, "in", dtype, keep) as rows:
                for low, high, arcs, weights in backward.each():
                    task.advance(len(arcs))
                    ends = np.empty(len(arcs), np.uint32)
                    sums = np.empty(len(weights), np.float64)
                    place(arcs, weights, np.uint64(low), offsets[low:high] - offsets[low], ends, sums)
                    rows.append(ends, sums)

    def _spilled(self) -> Iterator[tuple[UInt64Array, Float64Array]]:
        with (self.spill / "arcs").open("rb") as arcs, (self.spill / "weights").open("rb") as weights:
            while len(block := np.fromfile(arcs, np.uint64, _BLOCK)):
                yield block, np.fromfile(weights, np.float64, _BLOCK)


class _Ranges:
    """Arcs on disk, cut by source into ranges of nodes that fit in memory."""

    def __init__(self, stem: Path, counts: UInt64Array, weighted: bool) -> None:
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        parts = min(-(-total // BUCKET), 400) or 1  # 400: the usual limit of open files is 1,024
        goals = np.array([total * (part + 1) // parts for part in range(parts - 1)], np.uint64)
        inner = np.unique(np.searchsorted(ends, goals, "left") + 1)
        inner = inner[inner < len(counts)]
        self.bounds = [0, *inner.tolist(), len(counts)]
        self.part_of = np.zeros(len(counts), np.uint16)
        for part, low in enumerate(self.bounds[:-1]):
            self.part_of[low:] = part
        self.weighted = weighted
        self._paths = [stem.with_name(f"{stem.name}.{part}") for part in range(len(self.bounds) - 1)]
        self._files = [
            (path.open("wb"), path.with_suffix(f"{path.suffix}w").open("wb")) for path in self._paths
        ]

    def add(self, arcs: UInt64Array, weights: Float64Array) -> None:
        from inlink.graph.kernels.arcs import split

        if len(self._files) > 1:
            out = np.empty_like(arcs)
            out_weights = np.empty_like(weights)
            ends = np.empty(len(self._files) + 1, np.uint64)
            split(arcs, weights, self.part_of, out, out_weights, ends)
        else:
            out, out_weights, ends = arcs, weights, np.array([0, len(arcs)], np.uint64)
        for part, (file, weight_file) in enumerate(self._files):
            low, high = int(ends[part]), int(ends[part + 1])
            if high > low:
                file.write(out[low:high].data)
                if self.weighted:
                    weight_file.write(out_weights[low:high].data)

    def each(self) -> Iterator[tuple[int, int, UInt64Array, Float64Array]]:
        """For each range the first node, the node after the last, the arcs and their weights. Its file is removed."""
        for file, weight_file in self._files:
            file.close()
            weight_file.close()
        for part, path in enumerate(self._paths):
            weight_path = path.with_suffix(f"{path.suffix}w")
            arcs, weights = np.fromfile(path, np.uint64), np.fromfile(weight_path, np.float64)
            path.unlink()
            weight_path.unlink()
            yield self.bounds[part], self.bounds[part + 1], arcs, weights


class _RowFile:
    """Writes the other ends of arcs and their weights."""

    def __init__(self, writer: FolderWriter, side: str, dtype: np.dtype[Any], keep: bool) -> None:
        self._nodes = writer.create(f"{side}.nodes", np.uint32)
        self._weights = writer.create(f"{side}.weights", dtype) if keep else None

    def append(self, nodes: UInt32Array, weights: Float64Array) -> None:
        self._nodes.append(nodes)
        if self._weights is not None:
            self._weights.append(weights.astype(self._weights.dtype))

    def __enter__(self) -> "_RowFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._nodes.close()
        if self._weights is not None:
            self._weights.close()


def _write_names(writer: FolderWriter, names: Names, order: UInt32Array | None = None) -> None:
    """Write names in their order, or in the given order of nodes."""
    written = 0
    with (
        writer.create("names.text", np.uint8) as text_file,
        writer.create("names.offsets", np.uint64) as offset_file,
    ):
        offset_file.append(np.zeros(1, np.uint64))
        for start in range(0, len(names), _BLOCK):
            stop = min(start + _BLOCK, len(names))
            part = names.arrow(start, stop) if order is None else names.take(order[start:stop])
            text, offsets = buffers(part)
            text_file.append(text[int(offsets[0]) : int(offsets[-1])])
            offset_file.append(offsets[1:] - offsets[0] + np.uint64(written))
            written += int(offsets[-1] - offsets[0])
    if order is None and names.order is not None:
        writer.write("names.order", names.order)


def _offsets(degrees: UInt32Array) -> UInt64Array:
    offsets = np.zeros(len(degrees) + 1, np.uint64)
    np.cumsum(degrees, dtype=np.uint64, out=offsets[1:])
    return offsets
