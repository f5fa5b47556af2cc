"""Compressed rows: inlinks after StreamVByte, outlinks in BVGraph's codes; written in order, and decoded in blocks.

A block is the rows of 64 places or nodes. It can be decoded alone. `graph/kernels/streamvbyte.py` has the coding of
inlinks, and `graph/kernels/bits.py` that of outlinks, with WebGraph's default codes.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from inlink.base.arrays import UInt8Array, UInt32Array, UInt64Array
from inlink.base.folder import Folder, FolderWriter
from inlink.graph.encoder import CODES, FIELDS, Coding, Encoder
from inlink.graph.rows import BLOCK, PAD, START, CodedRows, Rows

CODING = Coding()
"""The parameters of outlinks."""
BIT_PAD = 40
"""Bytes of zeros after the last record of the outlinks."""

# Arcs decoded at a time, unless a block has more.
_ARCS = 1 << 20
# Rows encoded at a time.
_ROWS = 1 << 16


class CodedOutlinks(NamedTuple):
    """The rows of outlinks, coded.

    Attributes
    ----------
    records : uint8[…]
        The bit stream, and :data:`BIT_PAD` zeros.
    blocks : uint64[2 · (⌈n / 64⌉ + 1)]
        For each block of 64 nodes, and for the end: the first bit in ``records``, and the number of arcs before it.
    """

    records: UInt8Array
    blocks: UInt64Array


class _Blocks:
    """Writes where each block begins."""

    def __init__(self, writer: FolderWriter, name: str) -> None:
        self._file = writer.create(name, np.uint64)
        self._rows = self._at = self._arcs = 0

    def append(self, ends: UInt64Array, sizes: UInt64Array) -> None:
        """Add rows: where each ends among the arcs of this call, and its size in bytes or bits, uint64[k] each."""
        first = -self._rows % BLOCK
        begins = np.zeros(len(sizes), np.uint64)
        np.cumsum(sizes[:-1], out=begins[1:])
        arcs = np.zeros(len(sizes), np.uint64)
        arcs[1:] = ends[:-1]
        pairs = np.stack(
            [begins[first::BLOCK] + np.uint64(self._at), arcs[first::BLOCK] + np.uint64(self._arcs)], 1
        )
        self._file.append(pairs.ravel())
        self._rows += len(sizes)
        self._at += int(sizes.sum())
        self._arcs += int(ends[-1])

    def close(self) -> None:
        self._file.append(np.array([self._at, self._arcs], np.uint64))
        self._file.close()


class InlinkWriter:
    """Writes the inlinks of a compressed graph: rows and sources by place.

    Parameters
    ----------
    writer : FolderWriter
        The folder.
    linking : uint32[l]
        The nodes with outlinks, increasing.
    """

    def __init__(self, writer: FolderWriter, linking: UInt32Array) -> None:
        self._linking = linking
        self._rows = writer.create("in.rows", np.uint8)
        self._starts = writer.create("in.starts", np.uint8)
        self._blocks = _Blocks(writer, "in.blocks")
        self._place = self._at = 0

    def append(self, offsets: UInt64Array, nodes: UInt32Array) -> None:
        """Add rows: the places ``nodes[offsets[i]:offsets[i + 1]]``, increasing."""
        for low in range(0, len(offsets) - 1, _ROWS):
            part = offsets[low : low + _ROWS + 1]
            first, last = int(part[0]), int(part[-1])
            self._append(part - part[0], nodes[first:last])

    def _append(self, offsets: UInt64Array, nodes: UInt32Array) -> None:
        from inlink.graph.kernels.streamvbyte import MOST, encode_rows

        count = len(offsets) - 1
        out = np.empty(MOST * count + 5 * len(nodes), np.uint8)
        ends = np.empty(count, np.uint64)
        encode_rows(offsets, nodes, self._linking, np.uint64(self._place), out, ends)
        self._rows.append(out[: int(ends[-1])])
        sizes = np.diff(ends, prepend=np.uint64(0))
        self._blocks.append(offsets[1:], sizes)
        linked = max(min(len(self._linking) - self._place, count), 0)
        starts = np.empty(linked, "<u8")
        starts[:] = (ends - sizes)[:linked] + np.uint64(self._at)
        self._starts.append(starts.view(np.uint8).reshape(-1, 8)[:, :START].ravel())
        self._place += count
        self._at += int(ends[-1])

    def close(self) -> None:
        """Write the ends."""
        self._rows.append(np.zeros(PAD, np.uint8))
        self._rows.close()
        self._starts.append(np.zeros(8 - START, np.uint8))
        self._starts.close()
        self._blocks.close()


class OutlinkWriter:
    """Writes the outlinks of a compressed graph.

    Parameters
    ----------
    writer : FolderWriter
        The folder.
    """

    def __init__(self, writer: FolderWriter) -> None:
        self._records = writer.create("out.records", np.uint8)
        self._blocks = _Blocks(writer, "out.blocks")
        self._longest = 1 << 10
        self._encoder = Encoder(CODING, self._longest, BLOCK)
        self._node = 0

    def append(self, offsets: UInt64Array, nodes: UInt32Array) -> None:
        """Add rows: the nodes ``nodes[offsets[i]:offsets[i + 1]]``, increasing."""
        longest = int(np.diff(offsets).max(initial=0))
        if longest > self._longest:
            self._longest = 2 * longest
            self._encoder.reserve(self._longest)
        done = 0
        for raw, lengths in self._encoder.encode(Rows(offsets, nodes), self._node):
            self._records.append(np.frombuffer(raw, np.uint8))
            if len(lengths):
                ends = offsets[done + 1 : done + len(lengths) + 1]
                self._blocks.append(ends - offsets[done], lengths)
                done += len(lengths)
        self._node += len(offsets) - 1

    def close(self) -> None:
        """Write the ends."""
        self._records.append(np.frombuffer(self._encoder.rest(), np.uint8))
        self._records.append(np.zeros(BIT_PAD, np.uint8))
        self._records.close()
        self._blocks.close()


def decoded_blocks(
    coded: CodedRows | CodedOutlinks, num_nodes: int
) -> Iterator[tuple[int, int, UInt64Array, UInt32Array, int]]:
    """Decode all rows in parts of about a million arcs, of at least one block each.

    Yields
    ------
    int, int, uint64[k + 1], uint32[…], int
        The first row of a part, the first wrong row or −1, the offsets and nodes of its rows, and the number of the
        first arc.
    """
    arcs, low = coded.blocks[1::2], 0
    end = len(arcs) - 1
    while low < end:
        goal = arcs[low] + np.uint64(_ARCS)
        high = max(min(int(np.searchsorted(arcs, goal, "right")) - 1, low + _ROWS // BLOCK, end), low + 1)
        yield low * BLOCK, *decoded(coded, num_nodes, low, high), int(arcs[low])
        low = high


def decoded_row(coded: CodedRows | CodedOutlinks, num_nodes: int, row: int) -> UInt32Array:
    """Decode the block of a row, and return the nodes, or the places, in the row."""
    _, offsets, nodes = decoded(coded, num_nodes, row // BLOCK, row // BLOCK + 1)
    begin = row % BLOCK
    return nodes[int(offsets[begin]) : int(offsets[begin + 1])]


def decoded(
    coded: CodedRows | CodedOutlinks, num_nodes: int, low: int, high: int
) -> tuple[int, UInt64Array, UInt32Array]:
    """Decode blocks of rows.

    Parameters
    ----------
    coded : CodedRows or CodedOutlinks
        The rows. Their arrays have the right lengths; nothing else has to be checked.
    num_nodes : int
        The number of nodes.
    low, high : int
        Blocks.

    Returns
    -------
    int, uint64[k + 1], uint32[…]
        The first wrong row, −1 if all are sound; where each row begins; and the nodes, or the places of the sources.
    """
    from inlink.graph.kernels import bits as kernels
    from inlink.graph.kernels.bvblocks import decode_blocks
    from inlink.graph.kernels.streamvbyte import decode_rows

    first, stop = np.uint64(low * BLOCK), np.uint64(min(high * BLOCK, num_nodes))
    nodes = np.empty(int(coded.blocks[2 * high + 1] - coded.blocks[2 * low + 1]), np.uint32)
    offsets = np.zeros(int(stop - first) + 1, np.uint64)
    if isinstance(coded, CodedRows):
        wrong = int(decode_rows(coded, first, stop, offsets, nodes))
    else:
        codes, tables = _tables()
        end = np.uint64(8 * (len(coded.records) - BIT_PAD))
        stream = kernels.BitStream(coded.records, end, codes, np.uint64(CODING.k), tables)
        lists = np.zeros((CODING.window + 1, 2), np.uint64)
        # An interval has at least two nodes, and two numbers here.
        room = kernels.ListArrays(lists, nodes, np.empty(0, np.uint32), np.empty(len(nodes) + 1, np.uint64))
        numbers = (num_nodes, CODING.window, CODING.min_interval, int(first), int(stop))
        shape = kernels.Shape(*map(np.uint64, numbers))
        wrong = int(decode_blocks(stream, shape, room, coded.blocks, np.uint64(BLOCK), offsets))
    return wrong if wrong < stop else -1, offsets, nodes


def coded_inlinks(folder: Folder, num_nodes: int) -> CodedRows:
    """Return the coded inlinks of a folder. The numbers of the linking nodes are made in memory."""
    linking = np.flatnonzero(np.unpackbits(folder.array("linking"), count=num_nodes, bitorder="little"))
    starts, rows, blocks = (folder.array(f"in.{part}") for part in ("starts", "rows", "blocks"))
    return CodedRows(starts, rows, blocks, linking.astype(np.uint32))


class CodedOffsets:
    """The offsets of coded rows: the number of arcs before each place, counted when it is asked for.

    Parameters
    ----------
    coded : CodedRows
        The rows.
    length : int
        The number of places, and one.
    """

    def __init__(self, coded: CodedRows, length: int) -> None:
        self._coded, self._length = coded, length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, place: int) -> int:
        from inlink.graph.kernels.streamvbyte import row_lengths

        place = place % self._length
        block, inside = divmod(place, BLOCK)
        degrees = np.empty(inside, np.uint32)
        row_lengths(self._coded, np.uint64(block * BLOCK), np.uint64(place), degrees)
        return int(self._coded.blocks[2 * block + 1]) + int(degrees.sum(dtype=np.uint64))


def linking_outdegrees(coded: CodedRows, num_nodes: int) -> UInt32Array:
    """Count the outlinks of each linking node, uint32[l], in the coded inlinks."""
    from inlink.graph.kernels.streamvbyte import count_sources

    counts = np.zeros(len(coded.linking), np.uint32)
    count_sources(coded, np.uint64(0), np.uint64(num_nodes), counts)
    return counts


@cache
def _tables() -> tuple[np.ndarray, np.ndarray]:
    """Return the codes of the fields, and the tables that decode them."""
    from inlink.graph.kernels import bits as kernels

    codes = np.array([*(CODES[default] for default, _ in FIELDS.values()), kernels.GAMMA], np.int64)
    tables = np.empty((len(codes), 1 << 16), np.uint32)
    for code, table in zip(codes.tolist(), tables, strict=True):
        kernels.code_table(code, np.uint64(CODING.k), table)
    return codes, tables
