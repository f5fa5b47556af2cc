"""Rows of split inlinks as bytes, after StreamVByte: the lengths of several numbers are in one byte before them.

A row of d sources, which are places s₀ < s₁ < …:

====================  ================================================================================================
1 byte                4 · min(d, 63) + number of bytes of the first source − 1; 0 if d = 0, and then nothing follows
4 bytes               d, only if it is at least 63
1 to 4 bytes          the first source: (s₀ − pivot) modulo 2³², as an integer of 32 bits in the order 0, −1, 1, −2, …
⌈(d − 1) / 4⌉ bytes   for each of the other sources 2 bits, the lowest first: the number of its bytes − 1
1 to 4 bytes each     s₁ − s₀ − 1, s₂ − s₁ − 1, …
====================  ================================================================================================

All numbers are little-endian. The pivot of a row is the number of linking nodes before its node. So sources that are
close to the node in the order of names take one or two bytes. Sixteen bytes of zeros follow the last row, because a
number is read as four bytes, and a sum along a row reads up to four numbers after it.

Source: Lemire, Kurz & Rupp, "Stream VByte: faster byte-oriented integer compression", Inf. Process. Lett. 2018.
"""

import numpy as np
from numpy import uint8, uint32, uint64

from inlink.base.arrays import UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, Index, inlined, item_at, kernel
from inlink.graph.rows import BLOCK, PAD, START, CodedRows

__all__ = [
    "MOST",
    "count_sources",
    "decode_rows",
    "encode_rows",
    "number_at",
    "opened",
    "quad_at",
    "row_at",
    "row_lengths",
    "size_at",
    "skipped_in",
    "start_of",
]

MOST = 10
"""A row of d sources has at most 10 + 5 · d bytes."""

_U2, _U3, _U4, _U8, _U24 = (uint64(k) for k in (2, 3, 4, 8, 24))
_TWO_BITS = uint64(3)
# A degree from this number on takes four bytes more.
_LONG = uint64(63)
_START, _PAD, _BLOCK = uint64(START), uint64(PAD), uint64(BLOCK)
_LOW32 = uint64(0xFFFFFFFF)
_LOW40 = uint64(0xFFFFFFFFFF)
_U16, _U32, _U40, _U48, _U56, _BYTE = (uint64(k) for k in (16, 32, 40, 48, 56, 255))


def _quads() -> UInt64Array:
    """For each byte of sizes, eight bytes: where the first 1, 2, 3 and 4 numbers end, and the bits of each number."""
    sizes = np.arange(256)[:, None] >> np.arange(0, 8, 2) & 3
    ends = np.cumsum(sizes + 1, 1)
    return np.concatenate([ends, 8 * sizes + 8], 1).astype(uint8).view("<u8").ravel().astype(uint64)


_QUADS = _quads()


@inlined
def start_of(starts: UInt8Array, place: Index) -> Index:
    """The first byte of the row of a linking node."""
    return uint64(item_at(starts, place * _START, uint64)) & _LOW40


@inlined
def number_at(rows: UInt8Array, at: Index, size: Index) -> Index:
    """The number of ``size`` + 1 bytes that begins at a byte."""
    # Processors have an instruction for this mask.
    return uint64(item_at(rows, at, uint32)) & ((U1 << ((size << _U3) + _U8)) - U1)


@inlined
def size_at(rows: UInt8Array, slot: Index) -> Index:
    """Return the number of bytes − 1 of a number, whose two bits are at 2 · ``slot``."""
    return (uint64(rows[slot >> _U2]) >> ((slot & _TWO_BITS) << U1)) & _TWO_BITS


@inlined
def skipped_in(sizes: Index, count: Index) -> Index:
    """The number of bytes of the first ``count`` of four numbers with these sizes."""
    return ((_QUADS[sizes] << _U8) >> (count << _U3)) & _BYTE


@inlined
def quad_at(rows: UInt8Array, sizes: Index, at: Index) -> tuple[Index, Index, Index, Index]:
    """The four numbers that begin at a byte. Their sizes are the four pairs of bits in ``sizes``, the lowest first."""
    quad = _QUADS[sizes]
    first = uint64(item_at(rows, at, uint32))
    second = uint64(item_at(rows, at + (quad & _BYTE), uint32))
    third = uint64(item_at(rows, at + ((quad >> _U8) & _BYTE), uint32))
    fourth = uint64(item_at(rows, at + ((quad >> _U16) & _BYTE), uint32))
    return (
        first & ((U1 << ((quad >> _U32) & _BYTE)) - U1),
        second & ((U1 << ((quad >> _U40) & _BYTE)) - U1),
        third & ((U1 << ((quad >> _U48) & _BYTE)) - U1),
        fourth & ((U1 << (quad >> _U56)) - U1),
    )


@inlined
def opened(rows: UInt8Array, at: Index, pivot: Index) -> tuple[Index, Index, Index, Index]:
    """Read the beginning of a row: its degree, first source, the slot of the next source and the byte after the slots.

    Without sources the byte is the one after the row.
    """
    head = uint64(rows[at])
    degree, size = head >> _U2, head & _TWO_BITS
    at += U1
    if degree == _LONG:
        degree = uint64(item_at(rows, at, uint32))
        at += _U4
    if degree == U0:
        return degree, U0, U0, at
    code = number_at(rows, at, size)
    at += size + U1
    source = (pivot + ((code >> U1) ^ (U0 - (code & U1)))) & _LOW32
    return degree, source, at << _U2, at + ((degree + _U2) >> _U2)


@kernel(allocates=False)
def pivot_of(linking: UInt32Array, place: uint64) -> uint64:
    """The number of linking nodes before the node at a place."""
    linked = uint64(len(linking))
    if place < linked:
        return place
    low, high = U0, linked
    while low < high:
        middle = (low + high) >> U1
        if uint64(linking[middle]) - middle <= place - linked:
            low = middle + U1
        else:
            high = middle
    return low


@inlined
def next_pivot(linking: UInt32Array, place: Index, pivot: Index) -> Index:
    """The pivot of a dangling node's place, from that of the dangling node before."""
    linked = uint64(len(linking))
    while pivot < linked and uint64(linking[pivot]) - pivot <= place - linked:
        pivot += U1
    return pivot


@inlined
def _size(number: Index) -> Index:
    """The number of bytes − 1 that a number of 32 bits needs."""
    return (
        (U1 if number >> _U8 else U0) + (U1 if number >> uint64(16) else U0) + (U1 if number >> _U24 else U0)
    )


@inlined
def _put(out: UInt8Array, at: Index, number: Index, size: Index) -> None:
    for k in range(U0, size + U1):
        out[at + k] = uint8((number >> (k << _U3)) & uint64(255))


@kernel(allocates=False)
def encode_rows(
    offsets: UInt64Array,
    nodes: UInt32Array,
    linking: UInt32Array,
    place: uint64,
    out: UInt8Array,
    ends: UInt64Array,
) -> None:
    """Encode consecutive rows.

    Parameters
    ----------
    offsets : uint64[k + 1]
        The beginning of each row in ``nodes``.
    nodes : uint32[…]
        The sources by place, increasing within a row.
    linking : uint32[l]
        The linking nodes.
    place : uint64
        The place of the first row.
    out : uint8[at least 10 · k + 5 · sources]
        Gets the rows.
    ends : uint64[k]
        Gets the byte after each row.
    """
    at, linked = U0, uint64(len(linking))
    pivot = pivot_of(linking, place)
    for i in range(U0, uint64(len(ends))):
        pivot = (
            place + i
            if place + i < linked
            else next_pivot(linking, place + i, U0 if place + i == linked else pivot)
        )
        begin, end = offsets[i], offsets[i + U1]
        degree = end - begin
        if degree == U0:
            out[at] = 0
            ends[i] = at = at + U1
            continue
        away = (uint64(nodes[begin]) - pivot) & _LOW32
        code = ((away << U1) & _LOW32) ^ (U0 - (away >> uint64(31)) & _LOW32)
        size = _size(code)
        out[at] = uint8((min(degree, _LONG) << _U2) | size)
        at += U1
        if degree >= _LONG:
            _put(out, at, degree, _U3)
            at += _U4
        _put(out, at, code, size)
        at += size + U1
        control = at
        at += (degree + _U2) >> _U2
        for q in range(control, at):
            out[q] = 0
        for k in range(begin + U1, end):
            gap = uint64(nodes[k]) - uint64(nodes[k - U1]) - U1
            size = _size(gap)
            slot = k - begin - U1
            out[control + (slot >> _U2)] |= uint8(size << ((slot & _TWO_BITS) << U1))
            _put(out, at, gap, size)
            at += size + U1
        ends[i] = at


@kernel(allocates=False)
def decode_rows(
    coded: CodedRows,
    low: uint64,
    high: uint64,
    offsets: UInt64Array,
    nodes: UInt32Array,
) -> uint64:
    """Decode the rows at the places [low, high), and check them; nothing beyond the arrays is read or written.

    Parameters
    ----------
    coded : CodedRows
        The rows. Their arrays have the right lengths, and the linking nodes are checked.
    low, high : uint64
        Places. ``low`` begins a block. ``high`` begins a block too, or is the number of nodes.
    offsets : uint64[high − low + 1]
        Gets the beginning of each row in ``nodes``.
    nodes : uint32[…]
        Gets the places of the sources: as many as ``coded.blocks`` says.

    Returns
    -------
    uint64
        The place of the first wrong row; ``high`` if all are sound.
    """
    starts, rows, blocks, linking = coded
    linked, end = uint64(len(linking)), uint64(len(rows)) - _PAD
    block = _U2 * (low // _BLOCK)
    at, before = blocks[block], blocks[block + U1]
    filled, room = U0, uint64(len(nodes))
    pivot = pivot_of(linking, low)
    offsets[U0] = U0
    for place in range(low, high):
        if place % _BLOCK == U0:
            block = _U2 * (place // _BLOCK)
            if blocks[block] != at or blocks[block + U1] != before + filled:
                return place
        if place < linked:
            pivot = uint64(place)
            if start_of(starts, place) != at:
                return place
        else:
            pivot = next_pivot(linking, place, U0 if place == linked else pivot)
        if at >= end:
            return place
        head = uint64(rows[at])
        # The pad has room for the reads of a row's beginning.
        if head >> _U2 == _LONG and at + _U4 >= end:
            return place
        degree, source, slot, data = opened(rows, at, pivot)
        if degree > room - filled or data > end:
            return place
        if degree > U0:
            if source >= linked:
                return place
            nodes[filled] = source
            for k in range(U1, degree):
                size = size_at(rows, slot)
                slot += U1
                if size >= end - data:
                    return place
                source += number_at(rows, data, size) + U1
                data += size + U1
                if source >= linked:
                    return place
                nodes[filled + k] = source
        filled += degree
        offsets[place - low + U1] = filled
        at = data
    block = _U2 * ((high + _BLOCK - U1) // _BLOCK)
    if blocks[block] != at or blocks[block + U1] != before + filled:
        return high - U1
    return high


@inlined
def skipped(rows: UInt8Array, at: Index) -> Index:
    """The byte after the row that begins at a byte."""
    degree, _, slot, data = opened(rows, at, U0)
    for k in range(slot, slot + max(degree, U1) - U1):
        data += size_at(rows, k) + U1
    return data


@kernel(allocates=False)
def row_at(coded: CodedRows, place: uint64) -> uint64:
    """The first byte of the row at a place."""
    starts, rows, blocks, linking = coded
    if place < uint64(len(linking)):
        return start_of(starts, place)
    at = blocks[_U2 * (place // _BLOCK)]
    for _ in range(U0, place % _BLOCK):
        at = skipped(rows, at)
    return at


@kernel(allocates=False)
def row_lengths(coded: CodedRows, low: uint64, high: uint64, degrees: UInt32Array) -> None:
    """Write the number of sources of the rows at the places [low, high) to ``degrees``."""
    _, rows, _, _ = coded
    at = row_at(coded, low)
    for place in range(low, high):
        degree, _, _, _ = opened(rows, at, U0)
        degrees[place - low] = uint32(degree)
        at = skipped(rows, at)


@kernel(allocates=False)
def count_sources(coded: CodedRows, low: uint64, high: uint64, counts: UInt32Array) -> None:
    """Add 1 to ``counts[source]`` for each source in the rows at the places [low, high)."""
    _, rows, _, linking = coded
    linked = uint64(len(linking))
    at, pivot = row_at(coded, low), pivot_of(linking, low)
    for place in range(low, high):
        pivot = (
            uint64(place) if place < linked else next_pivot(linking, place, U0 if place == linked else pivot)
        )
        degree, source, slot, at = opened(rows, at, pivot)
        if degree > U0:
            counts[source] += uint32(1)
        for k in range(slot, slot + max(degree, U1) - U1):
            size = size_at(rows, k)
            source += number_at(rows, at, size) + U1
            at += size + U1
            counts[source] += uint32(1)
