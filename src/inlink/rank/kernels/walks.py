"""Random walks of PageRank: counted as they go, or recorded, and walked anew only where a graph has changed.

A walk has random numbers of its own, by its number and a key: SplitMix64 (Steele, Lea & Flood, "Fast
splittable pseudorandom number generators", OOPSLA 2014). So it does not matter who walks it, or when. The
generator stands where it is used: a call would cost more than it does.

``sums`` is float64[m], the weights of each row added up from its beginning, or empty where each arc counts 1.
"""

import numpy as np
import numpy.typing as npt

from inlink.base.jit import U0, U1, kernel

__all__ = ["COMPLETE", "END", "STOP", "changed_rows", "count_walks", "record_walks", "row_sums"]

F8 = npt.NDArray[np.float64]
U8 = npt.NDArray[np.uint64]
U4 = npt.NDArray[np.uint32]

END, COMPLETE, STOP = 0, 1, 2  # what is counted: see inlink.rank.mcmc

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_UNIT = 2.0**-53


@kernel
def row_sums(offsets: U8, weights: npt.NDArray[np.float64], sums: F8) -> None:
    """Add up the weights of each row from its beginning."""
    for i in range(U0, np.uint64(len(offsets)) - U1):
        total = 0.0
        for p in range(offsets[i], offsets[i + U1]):
            total += weights[p]
            sums[p] = total


@kernel
def changed_rows(
    before_offsets: U8,
    before_nodes: U4,
    before_sums: F8,
    offsets: U8,
    nodes: U4,
    sums: F8,
    changed: npt.NDArray[np.bool_],
) -> None:
    """Mark the rows that are not what they were; there are at least as many as before."""
    for i in range(U0, np.uint64(len(changed))):
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
    offsets: U8,
    nodes: U4,
    sums: F8,
    damping: float,
    key: np.uint64,
    random_start: bool,
    kind: int,
    visits: U4,
) -> None:
    """Walk n times, from each node once or from random ones, and add to ``visits`` the nodes that were
    visited, or the last ones if ``kind`` is :data:`END`. At dangling nodes a walk ends if it is :data:`STOP`;
    otherwise it goes anywhere.
    """
    n = np.uint64(len(visits))
    for walk in range(U0, n):
        state = key + (walk + U1) * _MIX1
        state = (state ^ (state >> _30)) * _MIX1
        state = (state ^ (state >> _27)) * _MIX2
        state ^= state >> _31
        i = walk
        if random_start:
            state += _GAMMA
            z = (state ^ (state >> _30)) * _MIX1
            z = (z ^ (z >> _27)) * _MIX2
            i = min(np.uint64(np.float64((z ^ (z >> _31)) >> _11) * _UNIT * np.float64(n)), n - U1)
        while True:
            if kind != END:
                visits[i] += 1
            low, count = offsets[i], offsets[i + U1] - offsets[i]
            if count == U0 and kind == STOP:
                break
            state += _GAMMA
            z = (state ^ (state >> _30)) * _MIX1
            z = (z ^ (z >> _27)) * _MIX2
            if np.float64((z ^ (z >> _31)) >> _11) * _UNIT >= damping:
                break
            state += _GAMMA
            z = (state ^ (state >> _30)) * _MIX1
            z = (z ^ (z >> _27)) * _MIX2
            share = np.float64((z ^ (z >> _31)) >> _11) * _UNIT
            if count == U0:
                i = min(np.uint64(share * np.float64(n)), n - U1)
            elif len(sums) == 0:
                i = np.uint64(nodes[low + min(np.uint64(share * np.float64(count)), count - U1)])
            else:
                last = low + count - U1
                share *= sums[last]
                while low < last:
                    middle = (low + last) >> U1
                    if sums[middle] > share:
                        last = middle
                    else:
                        low = middle + U1
                i = np.uint64(nodes[low])
        if kind == END:
            visits[i] += 1


@kernel
def record_walks(
    before_offsets: U8,
    before_nodes: U4,
    before_sums: F8,
    changed: npt.NDArray[np.bool_],
    before_ends: U8,
    before_path: U4,
    offsets: U8,
    nodes: U4,
    sums: F8,
    damping: float,
    key: np.uint64,
    gains: F8,
    walk: np.uint64,
    ends: U8,
    path: U4,
) -> tuple[np.uint64, np.uint64]:
    """Write the walks walk, walk + 1, … n − 1, one from each node, that end at dangling nodes, to ``path``;
    ``ends[w + 1]`` is where walk w ends there.

    Those that ``before_path`` has are kept up to the first step that a row that is ``changed`` makes another
    one; nodes that are new have none. A step from u to x, taken with probability p before, is taken with q
    now. It stands with probability min(1, q/p); otherwise u's step is drawn in proportion to what the arcs
    have gained, max(0, q − p). So it is taken with q, and the walk is as good as one that was begun in the
    new graph. ``gains`` has room for the longest row.

    Returns
    -------
    (uint64, uint64)
        The first walk for which ``path`` had no room: n if all are done. How many of the old ones were walked
        anew.
    """
    n, room = np.uint64(len(offsets)) - U1, np.uint64(len(path))
    before_n = np.uint64(len(before_offsets)) - U1
    anew = U0
    while walk < n:
        state = key + (walk + U1) * _MIX1
        state = (state ^ (state >> _30)) * _MIX1
        state = (state ^ (state >> _27)) * _MIX2
        state ^= state >> _31
        at = ends[walk]
        going, again, i = True, False, walk
        if walk < before_n:
            going = False
            p, stop = before_ends[walk], before_ends[walk + U1]
            if at + (stop - p) > room:
                return walk, anew
            while p < stop:
                i = np.uint64(before_path[p])
                path[at] = i
                at += U1
                p += U1
                if not changed[i]:
                    continue
                low, high = before_offsets[i], before_offsets[i + U1]
                new_low, new_high = offsets[i], offsets[i + U1]
                if p == stop:
                    if low == high and new_low < new_high:  # it only stopped because nothing led on
                        again = going = True
                        at -= U1
                    break
                if new_low == new_high:
                    again = True
                    break
                # the chances of the step that was taken, before and now, and what each arc has gained
                j = before_path[p]
                all_before = np.float64(high - low) if len(before_sums) == 0 else before_sums[high - U1]
                all_now = np.float64(new_high - new_low) if len(sums) == 0 else sums[new_high - U1]
                chance, chance_now, gained = 0.0, 0.0, 0.0
                a = low
                for b in range(new_low, new_high):
                    while a < high and before_nodes[a] < nodes[b]:
                        a += U1
                    now, was = 1.0, 0.0
                    if len(sums) > 0:
                        now = sums[b] - (sums[b - U1] if b > new_low else 0.0)
                    now /= all_now
                    if a < high and before_nodes[a] == nodes[b]:
                        was = 1.0
                        if len(before_sums) > 0:
                            was = before_sums[a] - (before_sums[a - U1] if a > low else 0.0)
                        was /= all_before
                    if nodes[b] == j:
                        chance, chance_now = was, now
                    gains[b - new_low] = max(now - was, 0.0)
                    gained += gains[b - new_low]
                state += _GAMMA
                z = (state ^ (state >> _30)) * _MIX1
                z = (z ^ (z >> _27)) * _MIX2
                if np.float64((z ^ (z >> _31)) >> _11) * _UNIT * chance < chance_now:
                    continue
                state += _GAMMA
                z = (state ^ (state >> _30)) * _MIX1
                z = (z ^ (z >> _27)) * _MIX2
                share = np.float64((z ^ (z >> _31)) >> _11) * _UNIT * gained
                i = np.uint64(j)
                for b in range(new_low, new_high):
                    if gains[b - new_low] > 0.0:
                        i = np.uint64(nodes[b])
                        share -= gains[b - new_low]
                        if share < 0.0:
                            break
                again = going = True
                break
        while going:
            if at >= room:
                return walk, anew
            path[at] = i
            at += U1
            low, count = offsets[i], offsets[i + U1] - offsets[i]
            if count == U0:
                break
            state += _GAMMA
            z = (state ^ (state >> _30)) * _MIX1
            z = (z ^ (z >> _27)) * _MIX2
            if np.float64((z ^ (z >> _31)) >> _11) * _UNIT >= damping:
                break
            state += _GAMMA
            z = (state ^ (state >> _30)) * _MIX1
            z = (z ^ (z >> _27)) * _MIX2
            share = np.float64((z ^ (z >> _31)) >> _11) * _UNIT
            if len(sums) == 0:
                i = np.uint64(nodes[low + min(np.uint64(share * np.float64(count)), count - U1)])
            else:
                last = low + count - U1
                share *= sums[last]
                while low < last:
                    middle = (low + last) >> U1
                    if sums[middle] > share:
                        last = middle
                    else:
                        low = middle + U1
                i = np.uint64(nodes[low])
        if again:
            anew += U1
        walk += U1
        ends[walk] = at
    return walk, anew
