"""A part: the names and arcs of one input on disk, in order, to be merged with others.

A graph of many inputs is made of parts, so that no table holds all its names, a build that was interrupted can go on,
and several processes can share the work. ``docs/on-disk.md`` has the layout of the file.
"""

import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import msgspec
import numpy as np
from isal.isal_zlib import crc32

from inlink.base.arrays import Float64Array, UInt8Array, UInt32Array, UInt64Array, distinct, slices
from inlink.base.decoding import decoded
from inlink.base.progress import Work
from inlink.base.zstd import ZstdCompressor, ZstdDecompressor, ZstdError
from inlink.errors import InputError
from inlink.graph.kernels.parts import (
    decode_arcs,
    decode_counts,
    decode_names,
    decode_rows,
    encode_arcs,
    encode_counts,
    encode_names,
    measure_names,
)

VERSION = 1
ARCS = 1 << 18
"""The largest number of arcs in a block."""
NAMES = 1 << 12
"""The largest number of names in a block."""
TEXT = 1 << 16
"""The largest number of bytes of names in a block, unless a single name is longer."""

_MAGIC = b"inlink part\n"
# Kind of block, coding of weights, count, stored and coded size of three arrays, CRC-32 of these and of the arrays.
_HEAD = struct.Struct("<ccI6II")
_TAIL = struct.Struct("<QI12s")
_MOST_TEXT = 1 << 28
_WHOLE = float(1 << 53)
_NONE: UInt32Array = np.empty(0, np.uint32)


class NameBlock(NamedTuple):
    """A block of k names: ``text[offsets[i]:offsets[i + 1]]``, uint8[…] and uint64[k + 1]."""

    text: UInt8Array
    offsets: UInt64Array


class ArcBlock(NamedTuple):
    """A block of sorted arcs, uint64[k] with the source in the upper half, and their weights, float64[k], or None."""

    arcs: UInt64Array
    weights: Float64Array | None


class PartHeader(msgspec.Struct):
    """Description of a part, stored in its header.

    Attributes
    ----------
    version : int
        The version of the format.
    named : bool or None
        Whether nodes have names; None if there are no nodes.
    num_nodes, num_arcs : int
        The numbers of nodes, and of arcs without repeats (with repeats if `whole` is not set).
    weighted : bool
        Whether the source gave weights.
    whole : bool
        Whether all weights are whole numbers.
    total : float
        The sum of the weights, or the number of arcs in the source with repeats.
    keeps : bool
        Whether the part has the weight of each arc, or the number of times that it occurs in the source.
    marked : bool
        Whether the source says which nodes were crawled.
    meta : dict
        JSON values that the maker of the part adds.
    """

    version: int = VERSION
    named: bool | None = None
    num_nodes: int = 0
    num_arcs: int = 0
    weighted: bool = False
    whole: bool = True
    total: float = 0.0
    keeps: bool = False
    marked: bool = False
    meta: dict[str, Any] = {}


class InputPart(Protocol):
    """Names in byte order and sorted arcs between them, to be read in blocks from front to back."""

    @property
    def header(self) -> PartHeader:
        """The header of the part."""
        ...

    def names(self) -> Iterator[NameBlock]:
        """The names in byte order; at most :data:`NAMES` in a block."""
        ...

    def degrees(self) -> Iterator[tuple[UInt64Array, UInt64Array]]:
        """Sources of arcs, and the number of arcs of each; a source may come twice."""
        ...

    def arcs(self) -> Iterator[ArcBlock]:
        """The arcs in order."""
        ...

    def crawled(self) -> UInt32Array:
        """The nodes that were crawled."""
        ...


class PartWriter:
    """A sink that writes a part; see :data:`inlink.graph.sinks.Sink`.

    Parameters
    ----------
    file : binary file
        Open for writing, at its beginning.
    keep : bool
        Keep the weight of each arc, or the number of times that it occurs in the source.
    meta : dict or None
        JSON values for the header, which :meth:`close` writes.
    """

    turns = False

    def __init__(self, file: BinaryIO, keep: bool, meta: dict[str, Any] | None = None) -> None:
        self.keeps = keep
        self._meta = {} if meta is None else meta
        self._marked, self._num_arcs = False, 0
        self._file, self._place = file, 0
        self._last: UInt8Array = np.empty(0, np.uint8)
        self._codec = ZstdCompressor(level=1)
        self._write(_MAGIC)

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._place += len(data)

    def _block(self, kind: bytes, coding: bytes, count: int, arrays: list[UInt8Array]) -> None:
        stored, sizes = [], []
        for array in arrays:
            packed = self._codec.compress(array.data, ZstdCompressor.FLUSH_FRAME) if len(array) else b""
            if len(packed) >= len(array):
                packed = array.tobytes()
            stored.append(packed)
            sizes += [len(packed), len(array)]
        head = _HEAD.pack(kind, coding, count, *sizes, 0)[:-4]
        check = crc32(b"".join(stored), crc32(head))
        self._write(head + check.to_bytes(4, "little"))
        for packed in stored:
            self._write(packed)

    def names(self, text: UInt8Array, offsets: UInt64Array) -> None:
        """Add names, which follow those before in byte order: ``text[offsets[i]:offsets[i + 1]]``.

        Raises
        ------
        inlink.errors.InputError
            If a name is longer than 256 MiB.
        """
        low, count = 0, len(offsets) - 1
        while low < count:
            high = int(np.searchsorted(offsets, offsets[low] + np.uint64(TEXT), "right")) - 1
            high = min(max(high, low + 1), low + NAMES, count)
            size = int(offsets[high] - offsets[low])
            if size > _MOST_TEXT:
                raise InputError(f"a name of {size:,} bytes is too long: at most {_MOST_TEXT:,} are allowed")
            outputs = [np.empty(length, np.uint8) for length in (5 * (high - low), 5 * (high - low), size)]
            used = encode_names(text, offsets[low : high + 1], self._last, *outputs)
            self._block(
                b"N",
                b"-",
                high - low,
                [output[: int(n)] for output, n in zip(outputs, used, strict=True)],
            )
            self._last = text[int(offsets[high - 1]) : int(offsets[high])].copy()
            low = high

    def crawled(self, parts: Iterable[UInt32Array], num_nodes: int) -> None:
        """Write the nodes that were crawled, given as arrays of their numbers."""
        self._marked = True
        nodes, none = distinct(np.concatenate([_NONE, *parts])), np.empty(0, np.uint8)
        for part in slices(len(nodes), ARCS):
            block = nodes[part]
            self._block(b"C", b"-", len(block), [block.view(np.uint8), none, none])

    def begin(self, header: PartHeader, *_: object) -> None:
        """Begin the rows."""
        self._header = header
        # A sum of fractions depends on their order, so they are added only once, when all parts are merged.
        self.apart = not header.whole

    def rows(self, low: int, high: int, arcs: UInt64Array, weights: Float64Array) -> None:
        """Add the sorted arcs of the nodes in ``range(low, high)``. Weights may be empty unless they are kept."""
        for part in slices(len(arcs), ARCS):
            block = arcs[part]
            # These are long enough for arcs out of order too. Readers refuse such parts.
            rows, targets = np.empty(15 * len(block), np.uint8), np.empty(10 * len(block), np.uint8)
            used = encode_arcs(block, np.uint64(0), np.uint64(0), rows, targets)
            coding, values = pack_weights(weights[part] if self.keeps else None)
            self._block(b"A", coding, len(block), [rows[: int(used[0])], targets[: int(used[1])], values])
        self._num_arcs += len(arcs)

    def close(self, task: Work) -> None:
        """Write the header. The file stays open."""
        header = msgspec.structs.replace(
            self._header, num_arcs=self._num_arcs, keeps=self.keeps, marked=self._marked, meta=self._meta
        )
        raw = msgspec.json.encode(header)
        self._file.write(raw + _TAIL.pack(self._place, crc32(raw), _MAGIC))


class PartFile:
    """A part on disk.

    Parameters
    ----------
    path : path-like
        The file.

    Raises
    ------
    inlink.errors.InputError
        If the file is no part, damaged, or of a newer version. Blocks are checked when they are read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(size - _TAIL.size, 0))
                tail = file.read()
                if len(tail) < _TAIL.size or tail[-len(_MAGIC) :] != _MAGIC:
                    raise self.damaged("its end is missing")
                file.seek(0)
                if file.read(len(_MAGIC)) != _MAGIC:
                    raise self.damaged("its beginning is missing")
                self._end, check, _ = _TAIL.unpack(tail)
                file.seek(min(self._end, size))
                raw = file.read()[: -_TAIL.size]
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read ({error.strerror})") from None
        try:
            if crc32(raw) != check:
                raise self.damaged("wrong checksum")
            if msgspec.json.decode(raw)["version"] > VERSION:
                raise InputError(
                    f"{self.path} was made by a newer inlink: upgrade inlink, or remove the file"
                )
            self.header = decoded(raw, PartHeader)
        except (msgspec.MsgspecError, KeyError, TypeError, RecursionError):
            raise self.damaged("its header cannot be read") from None

    def damaged(self, what: str) -> InputError:
        """Make the error for a damaged file; ``what`` describes the damage."""
        return InputError(f"{self.path} is damaged ({what}): remove the file, and build again")

    def _blocks(self, kind: bytes, arrays: int = 3) -> Iterator[tuple[bytes, int, list[UInt8Array]]]:
        """Yield the blocks of a kind with the first ``arrays`` of their arrays, at most 3.

        Checksums are compared only if all three are read.
        """
        try:
            with self.path.open("rb", buffering=1 << 18 if kind == b"A" else 1 << 16) as file:
                place = file.seek(len(_MAGIC))
                while place < self._end:
                    head = file.read(_HEAD.size)
                    if len(head) < _HEAD.size:
                        raise self.damaged("a block is cut")
                    block_kind, coding, count, *sizes, check = _HEAD.unpack(head)
                    stored = sizes[::2]
                    place += _HEAD.size + sum(stored)
                    if place > self._end or max(sizes) > _MOST_TEXT + 10 * ARCS:
                        raise self.damaged("a block has a wrong size")
                    if block_kind != kind:
                        # Kinds come in this order: names, crawled, arcs.
                        if b"NCA".find(block_kind) > b"NCA".find(kind):
                            return
                        file.seek(place)
                        continue
                    data = [file.read(size) for size in stored[:arrays]]
                    if arrays < 3:
                        file.seek(place)
                    elif crc32(b"".join(data), crc32(head[:-4])) != check:
                        raise self.damaged("wrong checksum")
                    yield (
                        coding,
                        count,
                        [self._unpacked(*pair) for pair in zip(data, sizes[1::2], strict=False)],
                    )
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read ({error.strerror})") from None

    def _unpacked(self, data: bytes, size: int) -> UInt8Array:
        if len(data) != size:
            try:
                data = ZstdDecompressor().decompress(data, max_length=size)
            except ZstdError:
                data = b""
            if len(data) != size:
                raise self.damaged("a block cannot be unpacked")
        return np.frombuffer(data, np.uint8)

    def names(self) -> Iterator[NameBlock]:
        """The names in byte order; at most :data:`NAMES` in a block."""
        last: UInt8Array = np.empty(0, np.uint8)
        total = 0
        for _, count, (shared, lengths, rest) in self._blocks(b"N"):
            bounds = np.uint64(count), np.uint64(len(last)), np.uint64(_MOST_TEXT)
            size = int(measure_names(shared, lengths, rest, *bounds))
            total += count
            if size < 0 or not 0 < count <= NAMES or total > self.header.num_nodes:
                raise self.damaged("wrong names")
            block = NameBlock(np.empty(size, np.uint8), np.empty(count + 1, np.uint64))
            decode_names(shared, lengths, rest, last, *block)
            last = block.text[int(block.offsets[-2]) :]
            yield block
        if self.header.named and total != self.header.num_nodes:
            raise self.damaged("names are missing")

    def degrees(self) -> Iterator[tuple[UInt64Array, UInt64Array]]:
        """Sources of arcs, and the number of arcs of each; a source may come twice."""
        for _, count, (rows,) in self._blocks(b"A", 1):
            sources, degrees = np.empty((2, min(count, ARCS)), np.uint64)
            number = int(decode_rows(rows, np.uint64(self.header.num_nodes), sources, degrees))
            if number < 0:
                raise self.damaged("wrong arcs")
            yield sources[:number], degrees[:number]

    def arcs(self) -> Iterator[ArcBlock]:
        """The arcs in order."""
        zero, total, last = np.uint64(0), 0, np.uint64(0)
        for coding, count, (rows, targets, values) in self._blocks(b"A"):
            total += count
            if not 0 < count <= ARCS or total > self.header.num_arcs:
                raise self.damaged("wrong number of arcs")
            arcs = np.empty(count, np.uint64)
            sound = decode_arcs(rows, targets, zero, zero, np.uint64(self.header.num_nodes), arcs)
            if not sound or arcs[0] < last:
                raise self.damaged("wrong arcs")
            last = arcs[-1]
            weights = unpack_weights(coding, values, count)
            if coding != b"-" and weights is None:
                raise self.damaged("wrong weights")
            yield ArcBlock(arcs, weights)
        if total != self.header.num_arcs:
            raise self.damaged("arcs are missing")

    def crawled(self) -> UInt32Array:
        """The nodes that were crawled."""
        raw: UInt8Array = np.concatenate(
            [np.empty(0, np.uint8), *(data for _, _, (data, _, _) in self._blocks(b"C"))]
        )
        nodes = raw[: len(raw) // 4 * 4].view(np.uint32)
        if len(raw) % 4 or (nodes >= self.header.num_nodes).any():
            raise self.damaged("wrong marks")
        return nodes


def pack_weights(weights: Float64Array | None) -> tuple[bytes, UInt8Array]:
    """Encode weights as LEB128 if all are whole, else as float64. Return the name of the coding, and the bytes."""
    if weights is None or not len(weights):
        return b"-", np.empty(0, np.uint8)
    if weights.max() < _WHOLE and (weights == np.floor(weights)).all():
        out = np.empty(8 * len(weights), np.uint8)
        return b"n", out[: int(encode_counts(weights, out))]
    return b"f", np.ascontiguousarray(weights, np.float64).view(np.uint8)


def unpack_weights(coding: bytes, values: UInt8Array, count: int) -> Float64Array | None:
    """Decode ``count`` weights of :func:`pack_weights`. None if there are no weights, or if they are damaged."""
    if coding == b"n":
        weights = np.empty(count, np.float64)
        return weights if decode_counts(values, weights) else None
    if coding == b"f" and len(values) == 8 * count:
        weights = np.frombuffer(values.tobytes(), np.float64)
        return weights if bool((np.isfinite(weights) & (weights > 0)).all()) else None
    return None
