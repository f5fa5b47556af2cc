"""Arcs on disk, cut into ranges of nodes that fit in memory, so that each range can be sorted there."""

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

import numpy as np

from inlink.base.arrays import BoolArray, Float64Array, UInt8Array, UInt32Array, UInt64Array, distinct
from inlink.base.progress import Work
from inlink.graph.part import PartHeader, pack_weights, unpack_weights

__all__ = ["BUCKET", "Bins", "Block", "Ranges", "Sink", "sort_arcs", "write_rows"]

Block = tuple[int, int, UInt64Array, Float64Array]
"""First node, node after the last, the arcs that begin there, and their weights or none."""

BUCKET = 1 << 24
"""The number of arcs that are sorted at a time, in twice 128 MB. Of 2²², 2²⁴ and 2²⁶ the fastest on 70 M arcs."""
# Number of bytes of all ranges that are kept in memory before they are written.
_KEPT = 1 << 25
# The largest number of bins of nodes. Ranges end where a bin ends.
_BINS = 1 << 18
# The largest number of ranges.
_MOST = 4000
# NumPy sorts fewer arcs than this as fast.
_FEW = 1 << 10

# Number of arcs, coding of weights, sizes of the three arrays of a piece.
_PIECE = struct.Struct("<Qc3Q")


class Bins:
    """Counts of arcs, by bins of ``2**shift`` consecutive nodes.

    Parameters
    ----------
    nodes : int
        The number of nodes.

    Attributes
    ----------
    counts : uint64[number of bins]
        The number of arcs of each bin.
    """

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.shift = np.uint64(max((max(nodes, 1) - 1).bit_length() - _BINS.bit_length() + 1, 0))
        self.counts: UInt64Array = np.zeros((max(nodes, 1) - 1 >> int(self.shift)) + 1, np.uint64)

    def add(self, nodes: UInt32Array | UInt64Array, counts: UInt64Array) -> None:
        """Add numbers of arcs, by node."""
        places = (nodes >> nodes.dtype.type(self.shift)).astype(np.int64)
        added = np.bincount(places, counts, minlength=len(self.counts))
        self.counts += added.astype(np.uint64)

    def add_targets(self, arcs: UInt64Array, places: UInt32Array) -> None:
        """Count arcs by the place of their target."""
        from inlink.graph.kernels.parts import count_bins

        count_bins(arcs, places, self.shift, self.counts)


class Ranges:
    """Arcs on disk, cut into ranges by source or by target.

    Arcs come in blocks, and are coded. Each range has its own file. A file is open only while it is written, so there
    may be thousands of ranges. Few arcs stay in memory.

    Parameters
    ----------
    stem : Path
        The path of a file is this path, a dot and the number of the range.
    bins : Bins
        Upper limits on the numbers of arcs that will come, by source or target.
    by_target : bool
        Cut by target; False cuts by source.
    """

    def __init__(self, stem: Path, bins: Bins, *, by_target: bool = False) -> None:
        self._stem, self._by_target = stem, by_target
        self._nodes, self._shift = bins.nodes, bins.shift
        ends = np.cumsum(bins.counts)
        total = int(ends[-1])
        wanted = min(-(-total // BUCKET), _MOST) or 1
        goals = np.array([total * (k + 1) // wanted for k in range(wanted - 1)], np.uint64)
        inner = distinct(np.searchsorted(ends, goals, "left") + 1)
        inner = inner[inner < len(ends)]
        edges = [0, *inner.tolist(), len(ends)]
        self.bounds = [min(edge << int(bins.shift), bins.nodes) for edge in edges]
        self._range_of: UInt32Array = np.repeat(np.arange(len(edges) - 1, dtype=np.uint32), np.diff(edges))
        self._firsts = np.array(self.bounds[1:-1], np.uint64) << np.uint64(32)
        self._pieces: list[list[bytes]] = [[] for _ in self.bounds[1:]]
        self._counts = [0] * len(self._pieces)
        self._written = [False] * len(self._pieces)
        self._held = 0
        self._rows, self._targets = np.empty(0, np.uint8), np.empty(0, np.uint8)

    def add(self, arcs: UInt64Array, weights: Float64Array) -> None:
        """Add packed arcs and their weights; ``weights`` is empty if arcs have none.

        Arcs must be sorted if they are cut by source. If they are cut by target, they may be in any order.
        """
        if len(self._pieces) == 1:
            ends = np.array([0, len(arcs)])
        elif self._by_target:
            from inlink.graph.kernels.parts import split_targets

            out, out_weights = np.empty_like(arcs), np.empty_like(weights)
            counted = np.empty(len(self._pieces) + 1, np.uint64)
            split_targets(arcs, weights, self._shift, self._range_of, out, out_weights, counted)
            arcs, weights, ends = out, out_weights, counted.astype(np.int64)
        else:
            ends = np.concatenate([[0], np.searchsorted(arcs, self._firsts), [len(arcs)]])
        for place in np.flatnonzero(np.diff(ends)).tolist():
            piece = slice(int(ends[place]), int(ends[place + 1]))
            if self._by_target and len(weights):
                order = np.argsort(arcs[piece])
                self._keep(place, arcs[piece][order], weights[piece][order])
                continue
            if self._by_target:
                sort_arcs(arcs[piece])
            self._keep(place, arcs[piece], weights[piece])
        if self._held > _KEPT:
            self._flush()

    def _keep(self, place: int, arcs: UInt64Array, weights: Float64Array) -> None:
        from inlink.graph.kernels.parts import encode_arcs

        count = len(arcs)
        if len(self._targets) < 5 * count:
            self._rows, self._targets = np.empty(10 * count, np.uint8), np.empty(5 * count, np.uint8)
        rows, targets = encode_arcs(arcs, *self._origin(place), self._rows, self._targets)
        coding, values = pack_weights(weights if len(weights) else None)
        head = _PIECE.pack(count, coding, int(rows), int(targets), len(values))
        piece = b"".join(
            (head, self._rows[: int(rows)].data, self._targets[: int(targets)].data, values.data)
        )
        self._pieces[place].append(piece)
        self._counts[place] += count
        self._held += len(piece)

    def _origin(self, place: int) -> tuple[np.uint64, np.uint64]:
        """Return the bases of a range: the first source and the first target of each row are coded as differences."""
        low, zero = np.uint64(self.bounds[place]), np.uint64(0)
        return (zero, low) if self._by_target else (low, zero)

    def _path(self, place: int) -> Path:
        return self._stem.with_name(f"{self._stem.name}.{place}")

    def _flush(self) -> None:
        for place, pieces in enumerate(self._pieces):
            if pieces:
                with self._path(place).open("ab") as file:
                    file.writelines(pieces)
                pieces.clear()
                self._written[place] = True
        self._held = 0

    def each(self) -> Iterator[Block]:
        """Yield the ranges in order, with their arcs in order of arrival. Remove the files."""
        if any(self._written):
            self._flush()
        for place, count in enumerate(self._counts):
            arcs = np.empty(count, np.uint64)
            weights: list[Float64Array] = []
            low = 0
            for piece in self._stored(place):
                number, coding, *sizes = _PIECE.unpack_from(piece)
                self._decode(place, piece, sizes, arcs[low : low + number])
                low += number
                if coding != b"-":
                    values = np.frombuffer(piece, np.uint8)[_PIECE.size + sizes[0] + sizes[1] :]
                    part = unpack_weights(coding, values, number)
                    assert part is not None
                    weights.append(part)
            self._pieces[place] = []
            yield (
                self.bounds[place],
                self.bounds[place + 1],
                arcs,
                np.concatenate(weights) if weights else np.empty(0),
            )

    def _stored(self, place: int) -> Iterator[bytes]:
        yield from self._pieces[place]
        if self._written[place]:
            with self._path(place).open("rb") as file:
                while head := file.read(_PIECE.size):
                    yield head + file.read(sum(_PIECE.unpack(head)[2:]))
            self._path(place).unlink()

    def _decode(self, place: int, piece: bytes, sizes: list[int], out: UInt64Array) -> None:
        from inlink.graph.kernels.parts import decode_arcs

        data = np.frombuffer(piece, np.uint8)[_PIECE.size :]
        rows, targets = data[: sizes[0]], data[sizes[0] : sizes[0] + sizes[1]]
        sound = decode_arcs(rows, targets, *self._origin(place), np.uint64(self._nodes), out)
        assert sound, f"{self._path(place)} was changed while it was in use"


def sort_arcs(arcs: UInt64Array) -> None:
    """Sort packed arcs in place. A copy of the arcs is in memory until they are sorted."""
    from inlink.graph.kernels.arcs import sort_digits

    if len(arcs) < _FEW:
        arcs.sort()
    else:
        sort_digits(arcs, np.empty_like(arcs))


class Sink(Protocol):
    """Takes a graph in order: names, marks, and then rows.

    Attributes
    ----------
    in_order : bool
        Whether names have to be in byte order.
    keeps : bool
        Whether weights are wanted; known after :meth:`begin`.
    turns : bool
        Whether inlinks are made.
    apart : bool
        Whether equal arcs stay apart, because their weights cannot be added up yet; known after :meth:`begin`.
    """

    in_order: bool
    turns: bool
    keeps: bool
    apart: bool

    def names(self, text: UInt8Array, offsets: UInt64Array) -> None:
        """Add names: ``text[offsets[i]:offsets[i + 1]]``."""
        ...

    def order(self, order: UInt32Array) -> None:
        """Take the nodes in the byte order of their names, uint32[n]. Called only if names are not sorted."""
        ...

    def crawled(self, nodes: Iterable[UInt32Array], num_nodes: int) -> None:
        """Take the nodes that were crawled, as arrays of their numbers."""
        ...

    def begin(self, header: PartHeader, linking: BoolArray, places: UInt32Array, targets: Bins) -> None:
        """Begin the rows.

        `linking` is True for nodes with outlinks. For inlinks, `places` has the place of each node's row, and `targets`
        has upper limits on the numbers of arcs by the place of their targets.
        """
        ...

    def rows(self, low: int, high: int, arcs: UInt64Array, sums: Float64Array) -> None:
        """Add the sorted arcs of the nodes in ``range(low, high)``."""
        ...

    def close(self, task: Work) -> None:
        """Complete the graph after the last rows."""
        ...


def write_rows(ranges: Iterable[Block], sink: Sink, task: Work) -> None:
    """Sort each range of arcs, merge equal arcs, and give the rows to a sink."""
    from inlink.graph.kernels.arcs import merge

    for low, high, arcs, weights in ranges:
        task.advance(len(arcs))
        if len(weights):
            # Sums of floats must not depend on the order of the input.
            order = np.lexsort((weights, arcs))
            arcs, weights = arcs[order], weights[order]
        else:
            sort_arcs(arcs)
        if not sink.apart:
            sums = np.empty(len(arcs) if sink.keeps else 0, np.float64)
            kept = int(merge(arcs, weights, sums))
            arcs, weights = arcs[:kept], sums[:kept]
        sink.rows(low, high, arcs, weights)
