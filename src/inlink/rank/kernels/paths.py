"""Distances from many sources at once: breadth-first searches whose sources are bits.

Each node has :data:`WORDS` · 64 bits for the sources that have reached it; one pass over an arc carries all
of them. This is Then et al., "The more the merrier: efficient multi-source graph traversal", PVLDB 2014,
turned round: what is counted is added up at the nodes that are reached, where one population count tells how
many sources are d steps away, instead of at the sources, where each bit would be a counter of its own.
"""

import numpy as np
import numpy.typing as npt

from inlink.base.jit import U0, U1, kernel

__all__ = ["SOURCES", "WORDS", "distances_from"]

U8 = npt.NDArray[np.uint64]
U4 = npt.NDArray[np.uint32]

WORDS = 8  # a cache line; cnr-2000 takes 1.2 times as long with 16, 1.7 times with 4
SOURCES = 64 * WORDS

_WORDS = np.uint64(WORDS)
_PAIRS = np.uint64(0x5555555555555555)
_FOURS = np.uint64(0x3333333333333333)
_BYTES = np.uint64(0x0F0F0F0F0F0F0F0F)
_ADD = np.uint64(0x0101010101010101)
_2, _4, _6, _56, _63 = np.uint64(2), np.uint64(4), np.uint64(6), np.uint64(56), np.uint64(63)


@kernel
def distances_from(
    offsets: U8,
    nodes: U4,
    first: np.uint64,
    last: np.uint64,
    bits: npt.NDArray[np.uint64],
    active: U4,
    touched: U4,
    far: U8,
    reached: U8,
    inverse: U8,
    unit: np.uint64,
) -> np.uint64:
    """Add, for each node v and over the sources s in [first, last), at most :data:`SOURCES`, with 0 < d(s, v)
    < ∞: d(s, v) to ``far[v]``, 1 to ``reached[v]``, and unit / d(s, v), rounded, to ``inverse[v]``.

    ``bits`` is uint64[3, n, WORDS]: which sources have reached a node, which did so in the last step, which
    do in this one; the last two are 0 before and after. ``active`` and ``touched`` are uint32[n]. Returns the
    greatest distance plus 1.
    """
    seen, now, new = bits[0], bits[1], bits[2]
    for i in range(U0, np.uint64(len(offsets)) - U1):
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
        found = U0
        for a in range(U0, count):
            i = np.uint64(active[a])
            for p in range(offsets[i], offsets[i + U1]):
                j = np.uint64(nodes[p])
                before, fresh = U0, U0
                for k in range(U0, _WORDS):
                    before |= new[j, k]
                for k in range(U0, _WORDS):
                    come = now[i, k] & ~seen[j, k]
                    fresh |= come
                    new[j, k] |= come
                if before == U0 and fresh != U0:
                    touched[found] = j
                    found += U1
        for a in range(U0, count):
            i = np.uint64(active[a])
            for k in range(U0, _WORDS):
                now[i, k] = U0
        share = (unit + (depth >> U1)) // depth
        for a in range(U0, found):
            j = np.uint64(touched[a])
            total = U0
            for k in range(U0, _WORDS):
                word = new[j, k]
                now[j, k] = word
                seen[j, k] |= word
                new[j, k] = U0
                word -= (word >> U1) & _PAIRS  # the population count; LLVM makes one instruction of it
                word = (word & _FOURS) + ((word >> _2) & _FOURS)
                word = (word + (word >> _4)) & _BYTES
                total += (word * _ADD) >> _56
            far[j] += total * depth
            reached[j] += total
            inverse[j] += total * share
            active[a] = j
        count = found
    return depth
