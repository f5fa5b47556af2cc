"""Loops over arcs: packing, relabelling, merging duplicates, placing in rows.

An arc is one uint64, the source in the upper half, so that sorting numbers sorts arcs by source and target.
"""

from typing import Any

import numpy as np
from numpy import uint32, uint64

from inlink.base.arrays import Float64Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, kernel

_U32 = uint64(32)
_LOW = uint64(0xFFFFFFFF)
# Bits of a digit that arcs are sorted by, at most. Of 8 to 11 the best for 2¹⁶ and 2²⁰ arcs, and level with 9 for 2²⁴.
_DIGIT = uint64(11)


@kernel
def pack(sources: Any, targets: Any, out: UInt64Array) -> uint64:
    """Pack arcs; return the largest node number. The packed arcs are wrong if it is above 2³² − 2."""
    largest = U0
    for k in range(U0, uint64(len(out))):
        source, target = uint64(sources[k]), uint64(targets[k])
        largest = max(largest, max(source, target))
        out[k] = (source << _U32) | (target & _LOW)
    return largest


@kernel
def pack_known(sources: Any, targets: Any, ids: UInt32Array, out: UInt64Array) -> None:
    """Pack arcs whose ends are places in ``ids``."""
    for k in range(U0, uint64(len(out))):
        out[k] = (uint64(ids[uint64(sources[k])]) << _U32) | uint64(ids[uint64(targets[k])])


@kernel
def relabel(arcs: UInt64Array, label: UInt32Array) -> None:
    """Give both ends of each arc their new numbers, in place. With no labels the arcs stay as they are."""
    if len(label) == 0:
        return
    for k in range(U0, uint64(len(arcs))):
        arc = arcs[k]
        arcs[k] = (uint64(label[arc >> _U32]) << _U32) | uint64(label[arc & _LOW])


@kernel
def count_sources(arcs: UInt64Array, counts: Any) -> None:
    """Add each arc to the count of its source."""
    for k in range(U0, uint64(len(arcs))):
        counts[arcs[k] >> _U32] += counts.dtype.type(1)


@kernel
def count_rows(arcs: UInt64Array, first: uint64, counts: UInt64Array) -> None:
    """Add each arc to ``counts[source - first + 1]``."""
    for k in range(U0, uint64(len(arcs))):
        counts[(arcs[k] >> _U32) - first + U1] += U1


@kernel
def count_targets(arcs: UInt64Array, counts: Any) -> None:
    """Add each arc to the count of its target."""
    for k in range(U0, uint64(len(arcs))):
        counts[arcs[k] & _LOW] += counts.dtype.type(1)


@kernel
def sort_digits(arcs: UInt64Array, spare: UInt64Array) -> None:
    """Sort packed arcs in place by radix sort, the lowest digit first. ``spare`` is as long, and is overwritten.

    Only the bits that differ between arcs are sorted by, in digits of at most 11 bits that do not cross the halves.
    """
    n = uint64(len(arcs))
    varying = U0
    for k in range(U0, n):
        varying |= arcs[k] ^ arcs[U0]
    places = np.empty(U1 << _DIGIT, uint64)
    read, written, swapped = arcs, spare, False
    for half in range(U0, uint64(2)):
        begin = half * _U32
        differing, bits = (varying >> begin) & _LOW, U0
        while differing >> bits != U0:
            bits += U1
        digits = max((bits + _DIGIT - U1) // _DIGIT, U1)
        width, end = (bits + digits - U1) // digits, begin + bits
        while begin < end:
            size = U1 << min(width, end - begin)
            for digit in range(U0, size):
                places[digit] = U0
            for k in range(U0, n):
                places[(read[k] >> begin) & (size - U1)] += U1
            place = U0
            for digit in range(U0, size):
                count = places[digit]
                places[digit] = place
                place += count
            for k in range(U0, n):
                arc = read[k]
                digit = (arc >> begin) & (size - U1)
                written[places[digit]] = arc
                places[digit] += U1
            read, written, swapped = written, read, not swapped
            begin += width
    if swapped:
        arcs[:] = spare


@kernel
def merge(arcs: UInt64Array, weights: Float64Array, counts: Float64Array) -> uint64:
    """Merge equal neighbours in place, and write the sum of their weights, or their number, to ``counts``.

    Return the number of arcs that are left.
    """
    weighted = len(weights) > 0
    counted = len(counts) > 0
    kept = U0
    n = uint64(len(arcs))
    k = U0
    while k < n:
        arc = arcs[k]
        total = 0.0
        while k < n and arcs[k] == arc:
            if weighted:
                total += weights[k]
            else:
                total += 1.0
            k += U1
        arcs[kept] = arc
        if counted:
            counts[kept] = total
        kept += U1
    return kept


@kernel
def low_halves(arcs: UInt64Array, out: UInt32Array) -> None:
    """The targets of packed arcs."""
    for k in range(U0, uint64(len(arcs))):
        out[k] = uint32(arcs[k] & _LOW)


@kernel
def place(
    arcs: UInt64Array,
    weights: Float64Array,
    first: uint64,
    at: UInt64Array,
    out: UInt32Array,
    out_weights: Float64Array,
) -> None:
    """Put each arc's source into its target's row; ``at[target - first]`` is the row's next free place.

    This is a counting sort. It is stable, so the targets in a row keep the order of the arcs.
    """
    weighted = len(weights) > 0
    for k in range(U0, uint64(len(arcs))):
        row = (arcs[k] & _LOW) - first
        spot = at[row]
        at[row] = spot + U1
        out[spot] = uint32(arcs[k] >> _U32)
        if weighted:
            out_weights[spot] = weights[k]


@kernel
def transpose(
    offsets: UInt64Array,
    nodes: UInt32Array,
    weights: Any,
    label: UInt32Array,
    at: UInt64Array,
    out: UInt32Array,
    out_weights: Any,
) -> None:
    """Transpose rows in memory. The new rows hold the sources' labels, or their numbers without labels. ``at`` has the
    beginning of each target's new row, and is overwritten.
    """
    weighted = len(weights) > 0
    for i in range(U0, uint64(len(offsets)) - U1):
        source = label[i] if len(label) > 0 else uint32(i)
        for k in range(offsets[i], offsets[i + U1]):
            j = uint64(nodes[k])
            spot = at[j]
            at[j] = spot + U1
            out[spot] = source
            if weighted:
                out_weights[spot] = weights[k]


@kernel
def join(
    offsets: UInt64Array,
    nodes: UInt32Array,
    weights: Any,
    linking: UInt32Array,
    places: UInt32Array,
    out_offsets: UInt64Array,
    out: UInt32Array,
    out_weights: Any,
) -> None:
    """Write split rows in the order of the nodes, their sources by number; ``out_offsets`` is where each row goes."""
    weighted = len(weights) > 0
    for i in range(U0, uint64(len(places))):
        first = offsets[uint64(places[i])]
        spot = out_offsets[i]
        for k in range(U0, out_offsets[i + U1] - spot):
            out[spot + k] = linking[uint64(nodes[first + k])]
            if weighted:
                out_weights[spot + k] = weights[first + k]


@kernel
def count_nodes(nodes: UInt32Array, counts: UInt64Array) -> None:
    """Add 1 to ``counts[node + 1]`` for each node in ``nodes``."""
    for k in range(U0, uint64(len(nodes))):
        counts[uint64(nodes[k]) + U1] += U1


@kernel
def unpack_rows(
    offsets: UInt64Array, nodes: UInt32Array, low: uint64, high: uint64, sources: UInt32Array
) -> None:
    """Write each arc's source beside its target, for the rows in ``range(low, high)``."""
    first = offsets[low]
    for i in range(low, high):
        for k in range(offsets[i], offsets[i + U1]):
            sources[k - first] = uint32(i)
