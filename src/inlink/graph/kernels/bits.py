"""Read instantaneous codes, and the successor lists of BVGraph that are written in these codes."""

from typing import NamedTuple

import numpy as np
from numpy import uint8, uint32, uint64

from inlink.base.arrays import Int64Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, inlined, kernel

_U2, _U3, _U6, _U7, _U8, _U16 = (uint64(k) for k in (2, 3, 6, 7, 8, 16))
_U32, _U48, _U63, _U64 = (uint64(k) for k in (32, 48, 63, 64))

# codes
UNARY, GAMMA, DELTA, ZETA, NIBBLE, GOLOMB = range(6)

# fields of a record; intervals are always in γ code
OUTDEGREE, REFERENCE, COUNT, BLOCK, RESIDUAL, INTERVAL = (uint64(field) for field in range(6))

# The status of a decoding. From NO_BITS on, the record of the node is damaged.
DONE, FULL, NO_BITS, BAD_DEGREE, BAD_REFERENCE, BAD_BLOCKS, BAD_INTERVAL, BAD_RESIDUAL = range(8)

# Returned in place of a value if the code runs past the end or has more than 63 bits.
TOO_LONG = uint64(0xFFFFFFFFFFFFFFFF)
_FAR = uint64(1) << uint64(62)


@kernel(allocates=False)
def _peek(data: UInt8Array, at: uint64) -> uint64:
    """Return at least 57 bits from bit ``at`` on, in the highest bits of the word."""
    k = at >> _U3
    word = (
        (uint64(data[k]) << uint64(56))
        | (uint64(data[k + U1]) << _U48)
        | (uint64(data[k + _U2]) << uint64(40))
        | (uint64(data[k + _U3]) << _U32)
        | (uint64(data[k + uint64(4)]) << uint64(24))
        | (uint64(data[k + uint64(5)]) << _U16)
        | (uint64(data[k + _U6]) << _U8)
        | uint64(data[k + _U7])
    )
    return word << (at & _U7)


@kernel(allocates=False)
def _bits(data: UInt8Array, at: uint64, count: uint64) -> uint64:
    """Return the next ``count`` bits (0 to 63) as a number."""
    if count == U0:
        return U0
    if count <= _U32:
        return _peek(data, at) >> (_U64 - count)
    high = _peek(data, at) >> _U32
    low = count - _U32
    return (high << low) | (_peek(data, at + _U32) >> (_U64 - low))


@kernel(allocates=False)
def _unary(data: UInt8Array, at: uint64, end: uint64) -> uint64:
    """Return the number of 0 bits before the next 1 bit."""
    here = at
    while here < end:
        word = _peek(data, here) >> _U32
        if word == U0:
            here += _U32
            continue
        width = _U16
        zeros = U0
        # Find the highest 1 bit of 32 bits by bisection.
        while width:
            if (word >> (_U32 - width)) == U0:
                zeros += width
                word = (word << width) & uint64(0xFFFFFFFF)
            width >>= U1
        if here + zeros >= end:
            return TOO_LONG
        return here + zeros - at
    return TOO_LONG


@kernel(allocates=False)
def read_slowly(data: UInt8Array, at: uint64, end: uint64, code: int, k: uint64) -> tuple[uint64, uint64]:
    """Return a natural number in any code, :data:`TOO_LONG` if it cannot be read, and the bit after it.

    ``data`` must have 40 bytes of zeros after bit ``end``.
    """
    if code == NIBBLE:
        value = U0
        here = at
        while here < end and value < _FAR:
            group = _bits(data, here, uint64(4))
            here += uint64(4)
            value = (value << _U3) | (group & _U7)
            if group >= _U8:
                return (value, here) if here <= end else (TOO_LONG, at)
        return TOO_LONG, at
    if code == GOLOMB and k == U0:
        return U0, at
    high = _unary(data, at, end)
    if high == TOO_LONG:
        return TOO_LONG, at
    here = at + high + U1
    value = high
    if code in (GAMMA, DELTA):
        if high > _U63 - U1:
            return TOO_LONG, at
        value = ((U1 << high) | _bits(data, here, high)) - U1
        here += high
        if code == DELTA:
            width = value
            if width > _U63 - U1 or here > end:
                return TOO_LONG, at
            value = ((U1 << width) | _bits(data, here, width)) - U1
            here += width
    elif code == ZETA:
        if high > _U64 or high * k + k > _U63:
            return TOO_LONG, at
        width = high * k + k - U1
        left = U1 << (high * k)
        value = _bits(data, here, width)
        here += width
        if value < left:
            value = value + left - U1
        else:
            value = ((value << U1) | _bits(data, here, U1)) - U1
            here += U1
    elif code == GOLOMB:
        if high > _FAR // k:
            return TOO_LONG, at
        log = U0
        while (k >> (log + U1)) > U0:
            log += U1
        short = (U1 << (log + U1)) - k
        rest = _bits(data, here, log)
        here += log
        if rest >= short:
            rest = ((rest << U1) | _bits(data, here, U1)) - short
            here += U1
        value = high * k + rest
    return (value, here) if here <= end else (TOO_LONG, at)


@kernel
def code_table(code: int, k: uint64, table: UInt32Array) -> None:
    """Write, for each 16 bits, the number at their beginning: ``number << 8 | length``; 0 if the code is longer.

    ``table`` is uint32[65536].
    """
    data = np.zeros(64, uint8)
    for bits in range(U0, uint64(65536)):
        data[U0] = uint8(bits >> _U8)
        data[U1] = uint8(bits & uint64(255))
        value, stop = read_slowly(data, U0, _U16, code, k)
        table[bits] = uint32(0)
        if value != TOO_LONG and stop > U0:
            table[bits] = uint32((value << _U8) | stop)


class BitStream(NamedTuple):
    """The bit stream and the codes of its fields.

    Attributes
    ----------
    data : uint8[…]
        The bits, with 40 bytes of zeros after bit ``end``.
    end : uint64
        The bit after the last bit of the stream.
    codes : int64[6]
        The codes of :data:`OUTDEGREE`, :data:`REFERENCE`, …, :data:`INTERVAL`.
    k : uint64
        The parameter of ζ and Golomb codes.
    tables : uint32[6, 65536]
        :func:`code_table` for each of ``codes``.
    """

    data: UInt8Array
    end: uint64
    codes: Int64Array
    k: uint64
    tables: UInt32Array


class Shape(NamedTuple):
    """Values from the graph's properties, and the nodes to decode.

    Attributes
    ----------
    num_nodes, window, min_interval : uint64
        Number of nodes, reach of references, length of the shortest interval.
    first, stop : uint64
        The records from ``first`` on are decoded, up to that of ``stop``. References to lists before ``first`` are
        damage.
    """

    num_nodes: uint64
    window: uint64
    min_interval: uint64
    first: uint64
    stop: uint64


class ListArrays(NamedTuple):
    """Arrays to which successor lists are written.

    Attributes
    ----------
    lists : uint64[window + 1, 2]
        Row x mod (window + 1) has the start of node x's list in ``successors``, and the length of the list.
    successors, sources : uint32[…], uint32[…] or uint32[0]
        The targets and the source of each arc. If ``sources`` is empty, sources are not written.
    scratch : uint64[…]
        The starts and ends of a list's intervals.
    """

    lists: UInt64Array
    successors: UInt32Array
    sources: UInt32Array
    scratch: UInt64Array


@kernel(allocates=False)
def _read(
    data: UInt8Array, at: uint64, end: uint64, code: int, k: uint64, table: UInt32Array
) -> tuple[uint64, uint64]:
    entry = uint64(table[_peek(data, at) >> _U48])
    if entry:
        stop = at + (entry & uint64(255))
        return (entry >> _U8, stop) if stop <= end else (TOO_LONG, at)
    return read_slowly(data, at, end, code, k)


@inlined
def _field(stream: BitStream, at: uint64, field: uint64) -> tuple[uint64, uint64]:
    """Return the value of the field that begins at bit ``at``, and the bit after the field."""
    return _read(stream.data, at, stream.end, stream.codes[field], stream.k, stream.tables[field])


@kernel(allocates=False)
def _signed(base: uint64, natural: uint64) -> uint64:
    """Return ``base`` plus the integer that a natural number encodes: 0, −1, 1, −2, 2, …. Sums below 0 wrap."""
    if natural & U1:
        return base - ((natural + U1) >> U1)
    return base + (natural >> U1)


@inlined
def _copy_blocks(
    stream: BitStream, at: uint64, successors: UInt32Array, begin: uint64, length: uint64, put: uint64,
    degree: uint64,
) -> tuple[int, uint64, uint64]:  # fmt: skip
    """Copy the nodes that blocks select from successors[begin:begin + length] to ``put``; at most ``degree`` nodes.

    Returns
    -------
    status, at, copied
    """
    copied, place, copying = U0, U0, True
    count, at = _field(stream, at, COUNT)
    if count == TOO_LONG:
        return NO_BITS, at, copied
    if count > length + U1:
        return BAD_BLOCKS, at, copied
    for block in range(U0, count + U1):
        size = length - place
        if block < count:
            size, at = _field(stream, at, BLOCK)
            if size == TOO_LONG:
                return NO_BITS, at, copied
            if block > U0:
                size += U1
            if size > length - place:
                return BAD_BLOCKS, at, copied
        if copying:
            if size > degree - copied:
                return BAD_BLOCKS, at, copied
            for j in range(U0, size):
                successors[put + copied + j] = successors[begin + place + j]
            copied += size
        copying = not copying
        place += size
    return DONE, at, copied


@inlined
def _read_intervals(
    stream: BitStream, at: uint64, shape: Shape, node: uint64, left: uint64, scratch: UInt64Array
) -> tuple[int, uint64, uint64, uint64]:
    """Write the starts and ends of intervals to ``scratch``. In total, intervals have at most ``left`` nodes.

    Returns
    -------
    status, at, number of intervals, number of remaining nodes
    """
    most, before = left // shape.min_interval, U0
    count, at = _field(stream, at, INTERVAL)
    if count == TOO_LONG:
        return NO_BITS, at, count, left
    if count > most:
        return BAD_INTERVAL, at, count, left
    for j in range(U0, count):
        gap, at = _field(stream, at, INTERVAL)
        size, after = _field(stream, at, INTERVAL)
        if gap == TOO_LONG or size == TOO_LONG:
            return NO_BITS, at, count, left
        at = after
        size += shape.min_interval
        start = _signed(node, gap) if j == U0 else before + gap + U1
        if size > left or start >= shape.num_nodes or size > shape.num_nodes - start:
            return BAD_INTERVAL, at, count, left
        scratch[_U2 * j] = start
        scratch[_U2 * j + U1] = start + size
        left -= size
        before = start + size
    return DONE, at, count, left


@inlined
def _read_residuals(
    stream: BitStream, at: uint64, num_nodes: uint64, node: uint64, successors: UInt32Array, put: uint64,
    count: uint64,
) -> tuple[int, uint64]:  # fmt: skip
    """Write ``count`` residuals (nodes neither copied nor in intervals) to ``put``. Return the status and the bit."""
    last = U0
    for j in range(U0, count):
        gap, at = _field(stream, at, RESIDUAL)
        if gap == TOO_LONG:
            return NO_BITS, at
        last = _signed(node, gap) if j == U0 else last + gap + U1
        if last >= num_nodes:
            return BAD_RESIDUAL, at
        successors[put + j] = uint32(last)
    return DONE, at


@inlined
def _merge(
    stream: BitStream, at: uint64, num_nodes: uint64, node: uint64, room: ListArrays, put: uint64,
    degree: uint64, copied: uint64, num_intervals: uint64, waiting: uint64,
) -> tuple[int, uint64]:  # fmt: skip
    """Merge the ``copied`` nodes at ``put``, the intervals in ``room.scratch`` and ``waiting`` residuals, in place.

    Return the status and the bit.
    """
    successors, scratch = room.successors, room.scratch
    # The copied nodes move to the end. The writes before them never overtake the nodes still to be read.
    shift, stop = degree - copied, put + degree
    for j in range(U0, copied):
        m = copied - U1 - j
        successors[put + shift + m] = successors[put + m]
    source, interval = put + shift, U0
    inside, inside_end = _FAR, _FAR
    if num_intervals > U0:
        inside, inside_end = scratch[U0], scratch[U1]
    residual, last = _FAR, _FAR
    if waiting > U0:
        gap, at = _field(stream, at, RESIDUAL)
        if gap == TOO_LONG:
            return NO_BITS, at
        residual = _signed(node, gap)
        if residual >= num_nodes:
            return BAD_RESIDUAL, at
    while put < stop:
        value = uint64(successors[source]) if source < stop else _FAR
        if residual < value and residual < inside:
            value = residual
            waiting -= U1
            residual = _FAR
            if waiting > U0:
                gap, at = _field(stream, at, RESIDUAL)
                if gap == TOO_LONG:
                    return NO_BITS, at
                residual = value + gap + U1
                if residual >= num_nodes:
                    return BAD_RESIDUAL, at
        elif inside < value:
            value = inside
            inside += U1
            if inside == inside_end:
                interval += U1
                inside, inside_end = _FAR, _FAR
                if interval < num_intervals:
                    inside, inside_end = scratch[_U2 * interval], scratch[_U2 * interval + U1]
        else:
            source += U1
        if last != _FAR and value <= last:
            return BAD_RESIDUAL, at
        last = value
        successors[put] = uint32(value)
        put += U1
    return DONE, at


@kernel(allocates=False)
def decode(
    stream: BitStream, shape: Shape, room: ListArrays, at: uint64, node: uint64, filled: uint64
) -> tuple[int, uint64, uint64, uint64, uint64]:
    """Decode the successor lists from ``node`` up to ``shape.stop``, until an array is full or a record is damaged.

    Parameters
    ----------
    stream, shape, room
        See these classes. ``room.successors`` is filled up to ``filled``; it has the last ``window`` nodes' lists.
    at : uint64
        The bit where the node's record begins.

    Returns
    -------
    status, node, at, filled, degree
        These values belong to the next record to decode. The degree is set only with :data:`FULL`.
    """
    lists, successors, sources, scratch = room
    num_nodes, window, min_interval, first, stop = shape
    ring = window + U1
    while node < stop:
        degree, here = _field(stream, at, OUTDEGREE)
        if degree == TOO_LONG:
            return NO_BITS, node, at, filled, U0
        if degree > num_nodes:
            return BAD_DEGREE, node, at, filled, U0
        most = U0 if min_interval == U0 else degree // min_interval
        if filled + degree > uint64(len(successors)) or _U2 * most > uint64(len(scratch)):
            return FULL, node, at, filled, degree
        slot = node % ring
        lists[slot, U0] = filled
        lists[slot, U1] = degree
        if degree == U0:
            node += U1
            at = here
            continue
        reference = U0
        if window > U0:
            reference, here = _field(stream, here, REFERENCE)
            if reference == TOO_LONG:
                return NO_BITS, node, at, filled, U0
            if reference > window or reference > node - first:
                return BAD_REFERENCE, node, at, filled, U0
        status, copied = DONE, U0
        if reference > U0:
            other = (node - reference) % ring
            status, here, copied = _copy_blocks(
                stream, here, successors, lists[other, U0], lists[other, U1], filled, degree
            )
            if status != DONE:
                return status, node, at, filled, U0
        num_intervals, left = U0, degree - copied
        if left > U0 and min_interval > U0:
            status, here, num_intervals, left = _read_intervals(stream, here, shape, node, left, scratch)
            if status != DONE:
                return status, node, at, filled, U0
        if copied == U0 and num_intervals == U0:
            status, here = _read_residuals(stream, here, num_nodes, node, successors, filled, left)
        elif copied < degree:
            status, here = _merge(
                stream, here, num_nodes, node, room, filled, degree, copied, num_intervals, left
            )
        if status != DONE:
            return status, node, at, filled, U0
        if len(sources) > 0:
            for j in range(U0, degree):
                sources[filled + j] = uint32(node)
        filled += degree
        at = here
        node += U1
    return DONE, node, at, filled, U0
