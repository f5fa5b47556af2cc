"""Distances from many sources at once: breadth-first searches whose sources are bits.

Each node has :data:`WORDS` · 64 bits for the sources that have reached it, and one pass over an arc carries all of
them (Then et al., "The more the merrier: efficient multi-source graph traversal", PVLDB 2014).

:func:`distances_from` is this in reverse: it keeps sums for the nodes that are reached. One population count gives the
number of sources that are d steps away. :func:`distances_around` keeps sums for the sources, with a counter for each
bit, and can stop after some steps. It serves for few sources, and for the nodes near many sources.
"""

from typing import NamedTuple

import numpy as np
from numpy import uint64

from inlink.base.arrays import UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, inlined, kernel

__all__ = [
    "SOURCES",
    "WORDS",
    "DistanceSearch",
    "DistanceSums",
    "SourceSums",
    "distances_around",
    "distances_from",
    "unit_of",
]


# a cache line; cnr-2000 takes 1.2 times as long with 16, 1.7 times with 4
WORDS = 8
SOURCES = 64 * WORDS

_WORDS = uint64(WORDS)
_PAIRS = uint64(0x5555555555555555)
_FOURS = uint64(0x3333333333333333)
_BYTES = uint64(0x0F0F0F0F0F0F0F0F)
_ADD = uint64(0x0101010101010101)
_2, _4, _6, _56, _63 = uint64(2), uint64(4), uint64(6), uint64(56), uint64(63)


class DistanceSearch(NamedTuple):
    """Work space of one thread.

    Attributes
    ----------
    bits : uint64[3, n, WORDS]
        The sources that have reached a node, those that reached it in the last step, and those that reach it in this
        step. The last two are 0 before and after a search, and all are for :func:`distances_around`.
    active, touched : uint32[n]
        Nodes that were reached in the last step and in this one.
    reached : uint32[n]
        All nodes that were reached, for :func:`distances_around`; otherwise empty.
    """

    bits: UInt64Array
    active: UInt32Array
    touched: UInt32Array
    reached: UInt32Array


class DistanceSums(NamedTuple):
    """Sums over pairs of a source and another node that it reaches, d steps away; uint64[n] each.

    Attributes
    ----------
    far, reached, inverse
        For each node, over the sources: Σ d, their number, and Σ unit/d rounded.
    pairs
        For each d, the number of pairs.
    """

    far: UInt64Array
    reached: UInt64Array
    inverse: UInt64Array
    pairs: UInt64Array


class SourceSums(NamedTuple):
    """Sums over the nodes that each source reaches within some steps; uint64[s] each, in the order of the sources.

    Attributes
    ----------
    far, reached, inverse
        Σ d, the number of nodes, and Σ unit/d rounded.
    further
        The number of arcs that leave the nodes at the last step. At most as many nodes are one step further away. It is
        0 if the search has reached all nodes.
    """

    far: UInt64Array
    reached: UInt64Array
    inverse: UInt64Array
    further: UInt64Array


def unit_of(nodes: int) -> uint64:
    """Return the fixed-point number that stands for 1 in sums of inverse distances; n − 1 of them fit in 64 bits."""
    return uint64(1 << (64 - max(nodes, 1).bit_length()))


@inlined
def population(word: uint64) -> uint64:
    """The number of bits of a word that are set. LLVM compiles this to one instruction."""
    word -= (word >> U1) & _PAIRS
    word = (word & _FOURS) + ((word >> _2) & _FOURS)
    word = (word + (word >> _4)) & _BYTES
    return (word * _ADD) >> _56


@inlined
def _step(offsets: UInt64Array, nodes: UInt32Array, search: DistanceSearch, count: uint64) -> uint64:
    """Carry the sources of the ``count`` active nodes one arc further, and return the number of nodes they touch."""
    bits, active, touched, _ = search
    seen, now, new = bits[0], bits[1], bits[2]
    num_touched = U0
    for a in range(U0, count):
        i = uint64(active[a])
        for p in range(offsets[i], offsets[i + U1]):
            j = uint64(nodes[p])
            before, fresh = U0, U0
            for k in range(U0, _WORDS):
                before |= new[j, k]
            for k in range(U0, _WORDS):
                come = now[i, k] & ~seen[j, k]
                fresh |= come
                new[j, k] |= come
            if before == U0 and fresh != U0:
                touched[num_touched] = j
                num_touched += U1
    for a in range(U0, count):
        i = uint64(active[a])
        for k in range(U0, _WORDS):
            now[i, k] = U0
    return num_touched


@kernel
def distances_from(
    offsets: UInt64Array,
    nodes: UInt32Array,
    first: uint64,
    last: uint64,
    search: DistanceSearch,
    sums: DistanceSums,
    unit: uint64,
) -> uint64:
    """Add to ``sums`` of each node v, over the sources s in [first, last) with 0 < d(s, v) < ∞: d(s, v), 1, and
    unit / d(s, v) rounded. Count the pairs too.

    There are at most :data:`SOURCES` sources. Return the greatest distance plus 1.
    """
    bits, active, touched, _ = search
    far, reached, inverse, pairs = sums
    seen, now, new = bits[0], bits[1], bits[2]
    for i in range(U0, uint64(len(offsets)) - U1):
        for k in range(U0, _WORDS):
            seen[i, k] = U0
    count = last - first
    for s in range(first, last):
        b = s - first
        seen[s, b >> _6] = now[s, b >> _6] = U1 << (b & _63)
        active[b] = s
    depth = U0
    while count > U0:
        depth += U1
        num_touched = _step(offsets, nodes, search, count)
        share = (unit + (depth >> U1)) // depth
        for a in range(U0, num_touched):
            j = uint64(touched[a])
            total = U0
            for k in range(U0, _WORDS):
                word = new[j, k]
                now[j, k] = word
                seen[j, k] |= word
                new[j, k] = U0
                total += population(word)
            far[j] += total * depth
            reached[j] += total
            inverse[j] += total * share
            pairs[depth] += total
            active[a] = j
        count = num_touched
    return depth


@kernel
def distances_around(
    offsets: UInt64Array,
    nodes: UInt32Array,
    sources: UInt32Array,
    limit: uint64,
    search: DistanceSearch,
    sums: SourceSums,
    unit: uint64,
) -> uint64:
    """Write to ``sums`` of each source s, over the nodes v with 0 < d(s, v) <= limit: Σ d(s, v), their number, and
    Σ unit / d(s, v) rounded.

    There are at most :data:`SOURCES` sources, each once. Return the number of arcs that were followed.
    """
    bits, active, touched, reached_nodes = search
    far, reached, inverse, further = sums
    seen, now, new = bits[0], bits[1], bits[2]
    num_sources = uint64(len(sources))
    level = np.empty(SOURCES, uint64)
    for b in range(U0, num_sources):
        i = uint64(sources[b])
        seen[i, b >> _6] = now[i, b >> _6] = U1 << (b & _63)
        active[b] = reached_nodes[b] = i
        far[b] = reached[b] = inverse[b] = further[b] = U0
    count = num_reached = num_sources
    depth = followed = U0
    while count > U0 and depth < limit:
        depth += U1
        for a in range(U0, count):
            i = uint64(active[a])
            followed += offsets[i + U1] - offsets[i]
        num_touched = _step(offsets, nodes, search, count)
        for b in range(U0, num_sources):
            level[b] = U0
        for a in range(U0, num_touched):
            j = uint64(touched[a])
            degree = offsets[j + U1] - offsets[j] if depth == limit else U0
            before = U0
            for k in range(U0, _WORDS):
                word = new[j, k]
                before |= seen[j, k]
                now[j, k] = word
                seen[j, k] |= word
                new[j, k] = U0
                while word != U0:
                    rest = word & (word - U1)
                    b = (k << _6) + population((word ^ rest) - U1)
                    level[b] += U1
                    further[b] += degree
                    word = rest
            if before == U0:
                reached_nodes[num_reached] = j
                num_reached += U1
            active[a] = j
        share = (unit + (depth >> U1)) // depth
        for b in range(U0, num_sources):
            far[b] += level[b] * depth
            reached[b] += level[b]
            inverse[b] += level[b] * share
        count = num_touched
    for a in range(U0, count):
        i = uint64(active[a])
        for k in range(U0, _WORDS):
            now[i, k] = U0
    for a in range(U0, num_reached):
        i = uint64(reached_nodes[a])
        for k in range(U0, _WORDS):
            seen[i, k] = U0
    return followed
