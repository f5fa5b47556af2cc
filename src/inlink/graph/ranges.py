"""Arcs on disk, cut into ranges of nodes that fit in memory, so that each range can be sorted there."""

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from inlink.base.arrays import Float64Array, UInt32Array, UInt64Array, distinct
from inlink.graph.kernels.arcs import sort_digits
from inlink.graph.kernels.parts import count_bins, decode_arcs, encode_arcs, split_targets
from inlink.graph.part import pack_weights, unpack_weights

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
        if self._by_target and len(self._pieces) > 1:
            out, out_weights = np.empty_like(arcs), np.empty_like(weights)
            counted = np.empty(len(self._pieces) + 1, np.uint64)
            split_targets(arcs, weights, self._shift, self._range_of, out, out_weights, counted)
            arcs, weights, ends = out, out_weights, counted.astype(np.int64)
        else:
            ends = np.array([0, *np.searchsorted(arcs, self._firsts), len(arcs)])
        for place in np.flatnonzero(np.diff(ends)).tolist():
            piece = slice(int(ends[place]), int(ends[place + 1]))
            pair = arcs[piece], weights[piece]
            self._keep(place, *(sort_arcs(*pair) if self._by_target else pair))
        if self._held > _KEPT:
            self._flush()

    def _keep(self, place: int, arcs: UInt64Array, weights: Float64Array) -> None:
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
            weights = [np.empty(0)]
            low = 0
            for piece in self._stored(place):
                number, coding, *sizes = _PIECE.unpack_from(piece)
                data = np.frombuffer(piece, np.uint8)[_PIECE.size :]
                rows, targets, values = np.split(data, np.cumsum(sizes[:2]))
                out = arcs[low : low + number]
                sound = decode_arcs(rows, targets, *self._origin(place), np.uint64(self._nodes), out)
                low += number
                part = np.empty(0) if coding == b"-" else unpack_weights(coding, values, number)
                assert sound, f"{self._path(place)} was changed while it was in use"
                assert part is not None
                weights.append(part)
            self._pieces[place] = []
            yield self.bounds[place], self.bounds[place + 1], arcs, np.concatenate(weights)

    def _stored(self, place: int) -> Iterator[bytes]:
        yield from self._pieces[place]
        if self._written[place]:
            with self._path(place).open("rb") as file:
                while head := file.read(_PIECE.size):
                    yield head + file.read(sum(_PIECE.unpack(head)[2:]))
            self._path(place).unlink()


def sort_arcs(
    arcs: UInt64Array, weights: Float64Array, *, by_weight: bool = False
) -> tuple[UInt64Array, Float64Array]:
    """Sort packed arcs, and return them with their weights: equal arcs in any order, or by weight.

    Arcs without weights are sorted in place. A copy of the arcs is in memory until they are sorted.
    """
    if len(weights):
        order = np.lexsort((weights, arcs)) if by_weight else np.argsort(arcs)
        return arcs[order], weights[order]
    if len(arcs) < _FEW:
        arcs.sort()
    else:
        sort_digits(arcs, np.empty_like(arcs))
    return arcs, weights
