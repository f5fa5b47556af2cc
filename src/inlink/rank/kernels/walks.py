"""Random walks of PageRank: counted at once, or recorded and repeated only from the places where a graph has changed.

Each walk has its own random numbers, from its number and a key, by SplitMix64 (Steele, Lea & Flood, "Fast splittable
pseudorandom number generators", OOPSLA 2014). So the result does not depend on the thread or the time of a walk.
"""

from typing import NamedTuple

from numpy import float64, uint32, uint64

from inlink.base.arrays import BoolArray, Float64Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, Index, inlined, kernel

__all__ = [
    "COMPLETE",
    "END",
    "GAMMA",
    "STOP",
    "Arcs",
    "Recorded",
    "changed_rows",
    "count_walks",
    "record_walks",
    "row_sums",
]

# what is counted: see inlink.rank.mcmc
END, COMPLETE, STOP = 0, 1, 2

GAMMA = uint64(0x9E3779B97F4A7C15)
_MIX1 = uint64(0xBF58476D1CE4E5B9)
_MIX2 = uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = uint64(30), uint64(27), uint64(31), uint64(11)
_UNIT = 2.0**-53


class Arcs(NamedTuple):
    """Rows of outlinks to draw from.

    Attributes
    ----------
    offsets : uint64[n + 1]
        The place where each node's row begins.
    nodes : uint32[m]
        The targets of the arcs.
    sums : float64[m] or float64[0]
        The weights of each row, added up from its beginning; empty if each arc counts 1.
    """

    offsets: UInt64Array
    nodes: UInt32Array
    sums: Float64Array


class Recorded(NamedTuple):
    """One walk from each node: walk w is path[ends[w]:ends[w + 1]].

    Attributes
    ----------
    ends : uint64[n + 1]
        The place where each walk ends.
    path : uint32[…]
        The nodes that the walks visit, one walk after the other.
    """

    ends: UInt64Array
    path: UInt32Array


@inlined
def mixed(state: uint64) -> uint64:
    """SplitMix64's output for a state."""
    z = (state ^ (state >> _30)) * _MIX1
    z = (z ^ (z >> _27)) * _MIX2
    return z ^ (z >> _31)


@inlined
def first_state(key: uint64, walk: Index) -> uint64:
    """The state of a walk's random numbers before the first is drawn."""
    return mixed(key + (uint64(walk) + U1) * _MIX1)


@inlined
def uniform(state: uint64) -> float:
    """A random number in [0, 1) for a state; the next state is ``state + GAMMA``."""
    return float64(mixed(state) >> _11) * _UNIT


@inlined
def any_of(share: float, count: Index) -> uint64:
    """Return the number in range(count) for a share in [0, 1)."""
    return min(uint64(share * float64(count)), count - U1)


@inlined
def arc_of(offset: uint64, count: uint64, sums: Float64Array, share: float) -> uint64:
    """Return the place of the arc, in a row that is not empty, for a share in [0, 1)."""
    low, last = offset, offset + count - U1
    if len(sums) == 0:
        low += any_of(share, count)
        last = low
    else:
        share *= sums[last]
    while low < last:
        middle = (low + last) >> U1
        if sums[middle] > share:
            last = middle
        else:
            low = middle + U1
    return low


@kernel
def row_sums(offsets: UInt64Array, weights: Float64Array, sums: Float64Array) -> None:
    """Add up the weights of each row from its beginning, to ``sums``."""
    for i in range(U0, uint64(len(offsets)) - U1):
        total = 0.0
        for p in range(offsets[i], offsets[i + U1]):
            total += weights[p]
            sums[p] = total


@kernel
def changed_rows(before: Arcs, now: Arcs, changed: BoolArray) -> None:
    """Mark the rows that differ; there are at least as many as before."""
    before_offsets, before_nodes, before_sums = before
    offsets, nodes, sums = now
    for i in range(U0, uint64(len(changed))):
        low, a = offsets[i], before_offsets[i]
        count = offsets[i + U1] - low
        changed[i] = before_offsets[i + U1] - a != count or (len(sums) > 0) != (len(before_sums) > 0)
        for k in range(U0, count):
            if changed[i]:
                break
            changed[i] = before_nodes[a + k] != nodes[low + k] or (
                len(sums) > 0 and before_sums[a + k] != sums[low + k]
            )


@kernel
def count_walks(
    arcs: Arcs, damping: float, key: uint64, random_start: bool, kind: int, visits: UInt32Array
) -> None:
    """Walk n times and add the nodes that were visited to ``visits``, or the last nodes if ``kind`` is :data:`END`.

    A walk starts at each node, or each at a random node. At dangling nodes a walk ends if ``kind`` is :data:`STOP`;
    otherwise it goes on at a random node.
    """
    offsets, nodes, sums = arcs
    n = uint64(len(visits))
    for walk in range(U0, n):
        state = first_state(key, walk)
        i = walk
        if random_start:
            state += GAMMA
            i = any_of(uniform(state), n)
        while True:
            if kind != END:
                visits[i] += 1
            low, count = offsets[i], offsets[i + U1] - offsets[i]
            if count == U0 and kind == STOP:
                break
            state += GAMMA
            if uniform(state) >= damping:
                break
            state += GAMMA
            share = uniform(state)
            i = any_of(share, n) if count == U0 else uint64(nodes[arc_of(low, count, sums, share)])
        if kind == END:
            visits[i] += 1


@inlined
def weight_at(sums: Float64Array, k: Index, first: uint64) -> float:
    """The weight of the arc at place k of a row that begins at ``first``; 1 without weights."""
    weight = 1.0
    if len(sums) > 0:
        weight = sums[k] - (sums[k - U1] if k > first else 0.0)
    return weight


@inlined
def row_weight(sums: Float64Array, low: uint64, high: uint64) -> float:
    """The sum of the weights of a nonempty row."""
    return float64(high - low) if len(sums) == 0 else sums[high - U1]


@inlined
def chances_of_step(
    before: Arcs, now: Arcs, i: uint64, j: uint32, gains: Float64Array
) -> tuple[float, float, float]:
    """The probability of the step i → j before and now, and the sum of the gains in probability of i's arcs.

    The gain of each arc of i's row is written to ``gains``; it is 0 for arcs that have lost.
    """
    before_offsets, before_nodes, before_sums = before
    offsets, nodes, sums = now
    a, high = before_offsets[i], before_offsets[i + U1]
    first, first_before = offsets[i], a
    all_before = row_weight(before_sums, a, high)
    all_now = row_weight(sums, first, offsets[i + U1])
    chance, chance_now, gained = 0.0, 0.0, 0.0
    for b in range(first, offsets[i + U1]):
        while a < high and before_nodes[a] < nodes[b]:
            a += U1
        is_, was = weight_at(sums, b, first) / all_now, 0.0
        if a < high and before_nodes[a] == nodes[b]:
            was = weight_at(before_sums, a, first_before) / all_before
        if nodes[b] == j:
            chance, chance_now = was, is_
        gains[b - first] = max(is_ - was, 0.0)
        gained += gains[b - first]
    return chance, chance_now, gained


@kernel(allocates=False)
def kept_steps(
    before: Arcs,
    changed: BoolArray,
    recorded: Recorded,
    now: Arcs,
    gains: Float64Array,
    walk: uint64,
    state: uint64,
    at: uint64,
    path: UInt32Array,
) -> tuple[uint64, uint64, bool, bool, uint64]:
    """Copy a recorded walk to ``path``, from ``at`` on, up to the first step that the new graph changes.

    Returns
    -------
    at, i, changed, going, state
        The end of the copy; the node to go on from; whether the walk has changed, and whether it goes on from node i;
        the state of its random numbers.
    """
    p, stop = recorded.ends[walk], recorded.ends[walk + U1]
    i = walk
    while p < stop:
        i = uint64(recorded.path[p])
        path[at] = i
        at += U1
        p += U1
        if not changed[i]:
            continue
        first, end = now.offsets[i], now.offsets[i + U1]
        if p == stop:
            # The walk only stopped because there was no outlink. There is one now.
            if before.offsets[i] == before.offsets[i + U1] and first < end:
                return at - U1, i, True, True, state
            break
        if first == end:
            return at, i, True, False, state
        j = recorded.path[p]
        chance, chance_now, gained = chances_of_step(before, now, i, j, gains)
        state += GAMMA
        if uniform(state) * chance < chance_now:
            continue
        state += GAMMA
        share = uniform(state) * gained
        i = uint64(j)
        for b in range(first, end):
            if gains[b - first] > 0.0:
                i = uint64(now.nodes[b])
                share -= gains[b - first]
                if share < 0.0:
                    break
        return at, i, True, True, state
    return at, i, False, False, state


@kernel(allocates=False)
def record_walks(
    before: Arcs,
    changed: BoolArray,
    recorded: Recorded,
    now: Arcs,
    damping: float,
    key: uint64,
    gains: Float64Array,
    walk: uint64,
    ends: UInt64Array,
    path: UInt32Array,
) -> tuple[uint64, uint64]:
    """Write the walks walk, walk + 1, … n − 1, one from each node, that end at dangling nodes, to ``path``;
    walk w ends at ``ends[w + 1]``.

    ``recorded`` walks are kept up to the first step from a ``changed`` row that the new graph changes. New nodes have
    no recorded walks. Consider a step from u to x that had probability p before and has q now. It is kept with
    probability min(1, q/p). Otherwise u's step is drawn in proportion to the gains of its arcs, max(0, q − p). So x is
    reached with probability q, and the walk has the same distribution as a walk that was begun in the new graph.
    ``gains`` is float64[length of the longest row].

    Returns
    -------
    (uint64, uint64)
        The first walk for which ``path`` had no room, n if all are done; and the number of recorded walks that changed.
    """
    offsets, nodes, sums = now
    old_ends = recorded.ends
    n, room = uint64(len(offsets)) - U1, uint64(len(path))
    old_n = uint64(len(before.offsets)) - U1
    anew = U0
    while walk < n:
        state = first_state(key, walk)
        at = ends[walk]
        i, going, another = walk, True, False
        if walk < old_n:
            if at + (old_ends[walk + U1] - old_ends[walk]) > room:
                return walk, anew
            at, i, another, going, state = kept_steps(
                before, changed, recorded, now, gains, walk, state, at, path
            )
        while going:
            if at >= room:
                return walk, anew
            path[at] = i
            at += U1
            low, count = offsets[i], offsets[i + U1] - offsets[i]
            if count == U0:
                break
            state += GAMMA
            if uniform(state) >= damping:
                break
            state += GAMMA
            i = uint64(nodes[arc_of(low, count, sums, uniform(state))])
        if another:
            anew += U1
        walk += U1
        ends[walk] = at
    return walk, anew
