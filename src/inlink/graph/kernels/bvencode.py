"""Write successor lists as BVGraph's records, in the codes that ``bits.py`` reads; not Golomb's, which WebGraph lacks.

The records are those of WebGraph's class BVGraph, bit for bit: of all lists in the window that may be copied from, the
one with the shortest record is chosen, and of equally short ones the nearest.

Source: Boldi & Vigna, "The WebGraph framework I: compression techniques", WWW 2004.
"""

from typing import NamedTuple

from numpy import float64, uint8, uint32, uint64

from inlink.base.arrays import Int64Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, inlined, kernel
from inlink.graph.kernels.bits import (
    BLOCK,
    COUNT,
    DELTA,
    GAMMA,
    INTERVAL,
    NIBBLE,
    OUTDEGREE,
    REFERENCE,
    RESIDUAL,
    UNARY,
)

_U2, _U3, _U7, _U8 = (uint64(k) for k in (2, 3, 7, 8))
_MANTISSA, _BIAS = uint64(52), uint64(1023)
_INFINITE = uint64(0xFFFFFFFFFFFFFFFF)

# places in Statistics.bits
OUTDEGREE_BITS, REFERENCE_BITS, BLOCK_BITS, INTERVAL_BITS, RESIDUAL_BITS = (uint64(k) for k in range(5))
# places in Statistics.arcs
COPIED, INTERVALISED, RESIDUALS = (uint64(k) for k in range(3))
# places in Statistics.references
CHAINS, DISTANCES = U0, U1


class Lists(NamedTuple):
    """The successor lists of consecutive nodes.

    Attributes
    ----------
    offsets : uint64[k + 1]
        The place in ``nodes`` where each list begins.
    nodes : uint32[…]
        The successors, increasing within a list.
    base : uint64
        The number of the first node. Lists before it are not copied from.
    """

    offsets: UInt64Array
    nodes: UInt32Array
    base: uint64


class Encoding(NamedTuple):
    """The encoding of lists.

    Attributes
    ----------
    window : uint64
        A list may be copied from one of this many nodes before it; 0: lists are not copied.
    max_references : uint64
        The largest number of lists that must be decoded to decode one list.
    min_interval : uint64
        Runs of consecutive successors of at least this length become intervals; 0: none do.
    codes : int64[6]
        The codes of :data:`OUTDEGREE`, :data:`REFERENCE`, …, :data:`INTERVAL`; none is Golomb's.
    k : uint64
        The parameter of ζ codes, from 1 to 60.
    lengths : uint8[6, 1024]
        The bits that small numbers take in each of ``codes``, by :func:`code_lengths`.
    block : uint64
        Lists are copied only from lists of the same block of this many nodes.
    """

    window: uint64
    max_references: uint64
    min_interval: uint64
    codes: Int64Array
    k: uint64
    lengths: UInt8Array
    block: uint64


class Parts(NamedTuple):
    """Room for the parts of one record.

    Attributes
    ----------
    blocks : uint32[longest list + 1]
        Lengths of runs in the referenced list that are copied and skipped, in turn.
    extras : uint32[longest list]
        The successors that are not copied; then those that are in no interval either.
    intervals : uint32[longest list + 1]
        The first node and the length of each interval.
    chains : uint64[window + 1]
        At x mod (window + 1), the number of lists that must be decoded to decode the list of node x.
    """

    blocks: UInt32Array
    extras: UInt32Array
    intervals: UInt32Array
    chains: UInt64Array


class Sizes(NamedTuple):
    """The numbers of blocks, copied nodes, intervals and residuals of a record."""

    blocks: uint64
    copied: uint64
    intervals: uint64
    residuals: uint64


class Statistics(NamedTuple):
    """Sums over all records, for a graph's properties.

    Attributes
    ----------
    bits : uint64[5]
        The bits of outdegrees, references, blocks, intervals and residuals.
    arcs : uint64[3]
        The numbers of arcs that are copied, in intervals, and residuals.
    references : uint64[2]
        The lengths of chains of references, and the distances of references.
    successor_gaps, residual_gaps : uint64[64]
        At i, the number of gaps in [2ⁱ, 2ⁱ⁺¹).
    """

    bits: UInt64Array
    arcs: UInt64Array
    references: UInt64Array
    successor_gaps: UInt64Array
    residual_gaps: UInt64Array


@kernel(allocates=False)
def _log2(value: uint64) -> uint64:
    """Return the place of the highest bit of a number from 1 to 2⁵³."""
    return (float64(value).view(uint64) >> _MANTISSA) - _BIAS


@kernel(allocates=False)
def _natural(value: uint64, base: uint64) -> uint64:
    """Return the natural number that encodes value − base: 0, −1, 1, −2, 2, … give 0, 1, 2, 3, 4, …."""
    return (value - base) << U1 if value >= base else ((base - value) << U1) - U1


@kernel(allocates=False)
def code_length(code: int, k: uint64, value: uint64) -> uint64:
    """Return the bits that a number below 2⁵³ takes in a code."""
    if code == UNARY:
        return value + U1
    if code == NIBBLE:
        return uint64(4) * (U1 + (_log2(value) // _U3 if value else U0))
    width = _log2(value + U1)
    if code == GAMMA:
        return _U2 * width + U1
    if code == DELTA:
        return _U2 * _log2(width + U1) + U1 + width
    high = width // k
    return (high + U1) * (k + U1) - (U1 if width == high * k else U0)


@kernel
def code_lengths(codes: Int64Array, k: uint64, lengths: UInt8Array) -> None:
    """Write the bits that small numbers take to uint8[codes, numbers]; 0 where they are more than 255."""
    for field in range(U0, uint64(len(codes))):
        for value in range(U0, uint64(lengths.shape[1])):
            length = code_length(codes[field], k, uint64(value))
            lengths[field, value] = uint8(length if length < uint64(256) else U0)


@inlined
def _length(how: Encoding, field: uint64, value: uint64) -> uint64:
    """Return the bits of a number in the code of a field."""
    if value < uint64(how.lengths.shape[1]):
        length = uint64(how.lengths[field, value])
        if length:
            return length
    return code_length(how.codes[field], how.k, value)


@kernel(allocates=False)
def _put_bits(data: UInt8Array, at: uint64, value: uint64, count: uint64) -> uint64:
    """Write the lowest ``count`` bits of a number where there are zeros; return the bit after them."""
    while count:
        room = _U8 - (at & _U7)
        take = min(room, count)
        count -= take
        piece = (value >> count) & ((U1 << take) - U1)
        data[at >> _U3] |= uint8(piece << (room - take))
        at += take
    return at


@kernel(allocates=False)
def put(data: UInt8Array, at: uint64, code: int, k: uint64, value: uint64) -> uint64:
    """Write a number below 2⁵³ in a code, where there are zeros; return the bit after it."""
    if code == UNARY:
        return _put_bits(data, at + value, U1, U1)
    if code == NIBBLE:
        groups = U1 + (_log2(value) // _U3 if value else U0)
        while groups:
            groups -= U1
            stop = U0 if groups else _U8
            at = _put_bits(data, at, stop | ((value >> (_U3 * groups)) & _U7), uint64(4))
        return at
    width = _log2(value + U1)
    if code == GAMMA:
        return _put_bits(data, at + width, value + U1, width + U1)
    if code == DELTA:
        log = _log2(width + U1)
        at = _put_bits(data, at + log, width + U1, log + U1)
        return _put_bits(data, at, value + U1 - (U1 << width), width)
    high = width // k
    at = _put_bits(data, at + high, U1, U1)
    left = U1 << (high * k)
    if width == high * k:
        return _put_bits(data, at, value + U1 - left, high * k + k - U1)
    return _put_bits(data, at, value + U1, high * k + k)


@kernel(allocates=False)
def put_gammas(data: UInt8Array, at: uint64, values: UInt64Array) -> uint64:
    """Write numbers below 2⁵³ in γ code, where there are zeros; return the bit after them."""
    for i in range(U0, uint64(len(values))):
        at = put(data, at, GAMMA, U1, values[i])
    return at


@inlined
def _split(
    nodes: UInt32Array, begin: uint64, end: uint64, other: uint64, other_end: uint64,
    min_interval: uint64, parts: Parts,
) -> Sizes:  # fmt: skip
    """Write the blocks of the list at ``other`` that the list at ``begin`` copies, its intervals and its residuals.

    A run of one node is never an interval, as in WebGraph, even if ``min_interval`` is 1.
    """
    blocks, extras, intervals, _ = parts
    num_blocks, num_extras, size, copying = U0, U0, U0, True
    mine, its = begin, other
    while mine < end and its < other_end:
        if nodes[mine] < nodes[its]:
            extras[num_extras] = nodes[mine]
            num_extras += U1
            mine += U1
            continue
        same = nodes[mine] == nodes[its]
        if same != copying:
            blocks[num_blocks] = uint32(size)
            num_blocks += U1
            size = U0
            copying = same
        size += U1
        its += U1
        if same:
            mine += U1
    if copying and its < other_end:
        blocks[num_blocks] = uint32(size)
        num_blocks += U1
    while mine < end:
        extras[num_extras] = nodes[mine]
        num_extras += U1
        mine += U1
    copied = end - begin - num_extras
    num_intervals, num_residuals = U0, num_extras
    if min_interval > U0:
        shortest = max(min_interval, _U2)
        first, num_residuals = U0, U0
        while first < num_extras:
            last = first + U1
            while last < num_extras and uint64(extras[last]) == uint64(extras[last - U1]) + U1:
                last += U1
            if last - first >= shortest:
                intervals[_U2 * num_intervals] = extras[first]
                intervals[_U2 * num_intervals + U1] = uint32(last - first)
                num_intervals += U1
            else:
                for j in range(first, last):
                    extras[num_residuals] = extras[j]
                    num_residuals += U1
            first = last
    return Sizes(num_blocks, copied, num_intervals, num_residuals)


@inlined
def _cost(
    how: Encoding, node: uint64, degree: uint64, reference: uint64, parts: Parts, sizes: Sizes,
    least: uint64,
) -> uint64:  # fmt: skip
    """Return the bits of a record without its outdegree, or any number from ``least`` on if they are no fewer."""
    blocks, residuals, intervals, _ = parts
    bits = U0
    if how.window > U0:
        bits += _length(how, REFERENCE, reference)
    if reference > U0:
        bits += _length(how, COUNT, sizes.blocks)
        for j in range(U0, sizes.blocks):
            bits += _length(how, BLOCK, uint64(blocks[j]) - (U1 if j > U0 else U0))
    if degree > sizes.copied and how.min_interval > U0:
        bits += _length(how, INTERVAL, sizes.intervals)
        before = U0
        for j in range(U0, sizes.intervals):
            start, size = uint64(intervals[_U2 * j]), uint64(intervals[_U2 * j + U1])
            gap = start - before - U1 if j > U0 else _natural(start, node)
            bits += _length(how, INTERVAL, gap) + _length(how, INTERVAL, size - how.min_interval)
            before = start + size
    last = U0
    for j in range(U0, sizes.residuals):
        if bits >= least:
            return bits
        value = uint64(residuals[j])
        gap = value - last - U1 if j > U0 else _natural(value, node)
        bits += _length(how, RESIDUAL, gap)
        last = value
    return bits


@inlined
def _put_field(data: UInt8Array, at: uint64, how: Encoding, field: uint64, value: uint64) -> uint64:
    return put(data, at, how.codes[field], how.k, value)


@inlined
def _write(
    data: UInt8Array, at: uint64, how: Encoding, node: uint64, degree: uint64, reference: uint64,
    parts: Parts, sizes: Sizes, bits: UInt64Array,
) -> uint64:  # fmt: skip
    """Write a record without its outdegree, and add its bits to ``bits`` by their use; return the bit after it."""
    blocks, residuals, intervals, _ = parts
    start = at
    if how.window > U0:
        at = _put_field(data, at, how, REFERENCE, reference)
    bits[REFERENCE_BITS] += at - start
    start = at
    if reference > U0:
        at = _put_field(data, at, how, COUNT, sizes.blocks)
        for j in range(U0, sizes.blocks):
            at = _put_field(data, at, how, BLOCK, uint64(blocks[j]) - (U1 if j > U0 else U0))
    bits[BLOCK_BITS] += at - start
    start = at
    if degree > sizes.copied and how.min_interval > U0:
        at = _put_field(data, at, how, INTERVAL, sizes.intervals)
        before = U0
        for j in range(U0, sizes.intervals):
            first, size = uint64(intervals[_U2 * j]), uint64(intervals[_U2 * j + U1])
            gap = first - before - U1 if j > U0 else _natural(first, node)
            at = _put_field(data, at, how, INTERVAL, gap)
            at = _put_field(data, at, how, INTERVAL, size - how.min_interval)
            before = first + size
    bits[INTERVAL_BITS] += at - start
    start = at
    last = U0
    for j in range(U0, sizes.residuals):
        value = uint64(residuals[j])
        gap = value - last - U1 if j > U0 else _natural(value, node)
        at = _put_field(data, at, how, RESIDUAL, gap)
        last = value
    bits[RESIDUAL_BITS] += at - start
    return at


@kernel(allocates=False)
def _count_gaps(nodes: UInt32Array, begin: uint64, end: uint64, node: uint64, gaps: UInt64Array) -> None:
    """Count the gaps of an increasing list by their binary logarithms, as WebGraph does."""
    if begin == end:
        return
    first = _natural(uint64(nodes[begin]), node)
    if first > U0:
        gaps[_log2(first)] += U1
    for j in range(begin + U1, end):
        gaps[_log2(uint64(nodes[j]) - uint64(nodes[j - U1]))] += U1


@inlined
def _choose(
    lists: Lists, how: Encoding, parts: Parts, node: uint64, begin: uint64, end: uint64
) -> tuple[uint64, uint64]:
    """Return how far back to copy from, 0 for not at all, and the bits of the record without its outdegree."""
    offsets, nodes, base = lists
    ring = how.window + U1
    best, least = U0, _INFINITE
    for reference in range(U0, min(min(how.window, node - base), node % how.block) + U1):
        other = other_end = end
        if reference > U0:
            other, other_end = offsets[node - base - reference], offsets[node - base - reference + U1]
            deep = parts.chains[(node - reference) % ring] >= how.max_references
            if deep or other == other_end:
                continue
        sizes = _split(nodes, begin, end, other, other_end, how.min_interval, parts)
        bits = _cost(how, node, end - begin, uint64(reference), parts, sizes, least)
        if bits < least:
            best, least = uint64(reference), bits
    return best, least


@kernel(allocates=False)
def encode(
    lists: Lists, how: Encoding, parts: Parts, statistics: Statistics, data: UInt8Array, lengths: UInt64Array,
    node: uint64, stop: uint64, at: uint64,
) -> tuple[uint64, uint64, uint64]:  # fmt: skip
    """Encode the lists of the nodes from ``node`` up to ``stop``, as far as ``data`` has room.

    Parameters
    ----------
    lists, how, parts, statistics
        See these classes. ``parts.chains`` and the sums in ``statistics`` are kept from call to call.
    data : uint8[…]
        Zeros from bit ``at`` on.
    lengths : uint64[stop - node]
        Gets the bits of each record.
    node, stop : uint64
        Numbers of nodes, from ``lists.base`` on.
    at : uint64
        The bit where the record of ``node`` begins.

    Returns
    -------
    node, at, needed
        The next node and its bit. If it is before ``stop``, its record needs ``needed`` bits from ``at`` on.
    """
    offsets, nodes, base = lists
    ring, first, room = how.window + U1, node, _U8 * uint64(len(data))
    while node < stop:
        begin, end = offsets[node - base], offsets[node - base + U1]
        degree = end - begin
        reference, bits = U0, U0
        if degree > U0:
            reference, bits = _choose(lists, how, parts, node, begin, end)
        bits += _length(how, OUTDEGREE, degree)
        if bits > room - at:
            return node, at, bits
        start = at
        at = _put_field(data, at, how, OUTDEGREE, degree)
        statistics.bits[OUTDEGREE_BITS] += at - start
        if degree > U0:
            other = other_end = end
            chain = U0
            if reference > U0:
                other, other_end = offsets[node - base - reference], offsets[node - base - reference + U1]
                chain = parts.chains[(node - reference) % ring] + U1
            parts.chains[node % ring] = chain
            sizes = _split(nodes, begin, end, other, other_end, how.min_interval, parts)
            at = _write(data, at, how, node, degree, reference, parts, sizes, statistics.bits)
            statistics.arcs[COPIED] += sizes.copied
            statistics.arcs[INTERVALISED] += degree - sizes.copied - sizes.residuals
            statistics.arcs[RESIDUALS] += sizes.residuals
            statistics.references[CHAINS] += chain
            statistics.references[DISTANCES] += reference
            _count_gaps(nodes, begin, end, node, statistics.successor_gaps)
            _count_gaps(parts.extras, U0, sizes.residuals, node, statistics.residual_gaps)
        lengths[node - first] = at - start
        node += U1
    return node, at, U0
