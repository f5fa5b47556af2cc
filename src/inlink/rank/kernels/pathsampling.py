"""The loops of sampled betweenness: random shortest paths between random pairs, and a bound on the length of any path.

A pair is searched from both ends, level by level, always on the side whose next level has fewer arcs. The nodes of the
two sides stay disjoint. The first level that meets the other side is the last: each shortest path has exactly one arc
between the newest levels of the two sides. Arcs are drawn in proportion to the number of paths through them, first such
an arc, then an arc a level on the way back to each end. So all shortest paths are equally likely. Borassi & Natale,
"KADABRA is an ADaptive Algorithm for Betweenness via Random Approximation", ESA 2016, section 4.

Each path has random numbers of its own, from its number and a key (:mod:`inlink.rank.kernels.walks`).
"""

from typing import NamedTuple

import numpy as np
from numpy import exp, log1p, uint32, uint64

from inlink.base.arrays import Float64Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, inlined, kernel
from inlink.rank.kernels.walks import GAMMA, any_of, first_state, uniform

__all__ = ["PairSearch", "farthest_within", "longest_chain", "sample_paths"]

# If a number of paths exceeds this one, the search is repeated with logarithms. The sum of 2^40 products of two smaller
# numbers is finite.
_MANY = 2.0**480
_UNSEEN = uint32(0xFFFFFFFF)
_NEXT = uint32(1)
# The marks of one side differ by 2 from level to level; the lowest bit is the side.
_LEVEL = uint32(2)
_SIDE = uint32(1)
_FROM_SOURCE, _FROM_TARGET = uint32(2), uint32(3)


class PairSearch(NamedTuple):
    """Work space of one thread.

    Attributes
    ----------
    marks : uint32[n]
        2 · (level + 1) + side for the nodes that are reached, with side 0 from the source and 1 from the target. 0
        before and after a search.
    paths : float64[n]
        The number of shortest paths between each node that is reached and its end of the pair, or the logarithm of this
        number if there are too many.
    queue : uint32[n]
        The nodes reached from the source in the order of their levels, and from the end backwards those reached from
        the target.
    counts : uint32[n]
        The number of sampled paths on which each node lies. The caller sets it to 0.
    """

    marks: UInt32Array
    paths: Float64Array
    queue: UInt32Array
    counts: UInt32Array


@inlined
def _sum(many: bool, a: float, b: float) -> float:
    """Add two numbers of paths, which are logarithms if there are many."""
    if many:
        return max(a, b) + log1p(exp(min(a, b) - max(a, b)))
    return a + b


@inlined
def _product(many: bool, a: float, b: float) -> float:
    return a + b if many else a * b


@inlined
def _share(many: bool, part: float, total: float) -> float:
    """Return ``part`` as a share of ``total``, the sum of all parts up to this one."""
    return exp(part - total) if many else part / total


@inlined
def _advance(
    offsets: UInt64Array,
    nodes: UInt32Array,
    search: PairSearch,
    low: uint64,
    high: uint64,
    mark: uint32,
    many: bool,
    state: uint64,
) -> tuple[uint64, uint64, bool, uint64, uint64, float, uint64]:
    """Search the next level on one side, from the places [low, high) of its queue.

    Returns the new end of the queue, the arcs of the new level, whether the other side is met, the two ends of a random
    arc where it is met, the largest number of paths, and the state of the random numbers.
    """
    marks, paths, queue, _ = search
    last, side, following = uint64(len(queue)) - U1, mark & _SIDE, uint32(mark + _LEVEL)
    tail, work, near, far, met, most, total = high, U0, U0, U0, False, 0.0, 0.0
    for k in range(low, high):
        i = uint64(queue[last - k if side else k])
        own = paths[i]
        for p in range(offsets[i], offsets[i + U1]):
            j = uint64(nodes[p])
            other = marks[j]
            if other == 0:
                # Once the other side is met, no new node can be on a shortest path.
                if not met:
                    marks[j] = following
                    paths[j] = own
                    queue[last - tail if side else tail] = uint32(j)
                    tail += U1
                    work += offsets[j + U1] - offsets[j]
            elif other == following:
                if not met:
                    paths[j] = _sum(many, paths[j], own)
                    most = max(most, paths[j])
            elif other & _SIDE != side:
                part = _product(many, own, paths[j])
                total = _sum(many, total, part) if met else part
                met = True
                state += GAMMA
                if uniform(state) < _share(many, part, total):
                    near, far = i, j
    return tail, work, met, near, far, most, state


@inlined
def _step_back(
    offsets: UInt64Array, nodes: UInt32Array, search: PairSearch, at: uint64, many: bool, state: uint64
) -> tuple[uint64, uint64]:
    """Return the node before ``at`` on a random shortest path from its end of the pair, and the state."""
    marks, paths = search.marks, search.paths
    wanted, total, before, any_yet = uint32(marks[at] - _LEVEL), 0.0, at, False
    for p in range(offsets[at], offsets[at + U1]):
        j = uint64(nodes[p])
        if marks[j] == wanted:
            total = _sum(many, total, paths[j]) if any_yet else paths[j]
            any_yet = True
            state += GAMMA
            if uniform(state) < _share(many, paths[j], total):
                before = j
    return before, state


@kernel(allocates=False)
def sample_paths(
    out_offsets: UInt64Array,
    out_nodes: UInt32Array,
    in_offsets: UInt64Array,
    in_nodes: UInt32Array,
    sources: UInt32Array,
    targets: UInt32Array,
    key: uint64,
    first: uint64,
    last: uint64,
    endpoints: bool,
    search: PairSearch,
) -> None:
    """Draw the paths ``first`` to ``last - 1``, and add 1 to ``search.counts`` of each inner node of each path.

    The ends of a path are a random source and a random target, which differ; at least one such pair must exist. If no
    path leads from one to the other, nothing is counted. With ``endpoints``, the ends of a path are counted too.
    """
    marks, paths, queue, counts = search
    end = uint64(len(queue)) - U1
    for number in range(first, last):
        pair_state = first_state(key, number)
        s, t = U0, U0
        while s == t:
            pair_state += GAMMA
            s = uint64(sources[any_of(uniform(pair_state), uint64(len(sources)))])
            pair_state += GAMMA
            t = uint64(targets[any_of(uniform(pair_state), uint64(len(targets)))])
        many, again = False, True
        while again:
            again = False
            state = pair_state
            marks[s], marks[t] = _FROM_SOURCE, _FROM_TARGET
            paths[s] = paths[t] = 0.0 if many else 1.0
            queue[U0], queue[end] = uint32(s), uint32(t)
            # Each side has a newest level, and the number of its arcs.
            low, high, work = U0, U1, out_offsets[s + U1] - out_offsets[s]
            back_low, back_high, back_work = U0, U1, in_offsets[t + U1] - in_offsets[t]
            mark, back_mark = _FROM_SOURCE, _FROM_TARGET
            met, u, w = False, s, t
            while not met and low < high and back_low < back_high:
                if work <= back_work:
                    tail, work, met, u, w, most, state = _advance(
                        out_offsets, out_nodes, search, low, high, mark, many, state
                    )
                    low, high, mark = high, tail, uint32(mark + _LEVEL)
                else:
                    tail, back_work, met, w, u, most, state = _advance(
                        in_offsets, in_nodes, search, back_low, back_high, back_mark, many, state
                    )
                    back_low, back_high, back_mark = back_high, tail, uint32(back_mark + _LEVEL)
                if not many and most > _MANY:
                    many, again, met = True, True, False
                    break
            if met:
                if endpoints:
                    counts[s] += _NEXT
                    counts[t] += _NEXT
                while u != s:
                    counts[u] += _NEXT
                    u, state = _step_back(in_offsets, in_nodes, search, u, many, state)
                while w != t:
                    counts[w] += _NEXT
                    w, state = _step_back(out_offsets, out_nodes, search, w, many, state)
            for k in range(U0, high):
                marks[queue[k]] = 0
            for k in range(U0, back_high):
                marks[queue[end - k]] = 0


@kernel
def farthest_within(
    offsets: UInt64Array, nodes: UInt32Array, label: UInt32Array, farthest: UInt32Array
) -> None:
    """Add the distance of the farthest node from the representative of its component to ``farthest``, uint32[n].

    ``label`` is the representative of each node's component. Only arcs within components count. The distance is added
    at the representative.
    """
    n = uint64(len(label))
    depths, queue = np.full(n, _UNSEEN, uint32), np.empty(n, uint32)
    head, tail = U0, U0
    for i in range(U0, n):
        if label[i] == i:
            depths[i] = 0
            queue[tail] = uint32(i)
            tail += U1
    last = np.zeros(n, uint32)
    while head < tail:
        i = uint64(queue[head])
        head += U1
        # Depths never decrease along the queue.
        last[label[i]] = depths[i]
        for p in range(offsets[i], offsets[i + U1]):
            j = uint64(nodes[p])
            if label[j] == label[i] and depths[j] == _UNSEEN:
                depths[j] = depths[i] + _NEXT
                queue[tail] = uint32(j)
                tail += U1
    for i in range(U0, n):
        farthest[i] += last[i]


@kernel
def longest_chain(
    offsets: UInt64Array, nodes: UInt32Array, label: UInt32Array, order: UInt32Array, inside: UInt32Array
) -> uint64:
    """Return the largest sum of ``inside`` and arcs along a path from component to component.

    ``label`` is the representative of each node's strongly connected component, and ``inside[label]`` bounds the
    arcs of a path within it. ``order`` has the nodes by components, each after all that it reaches.
    """
    n = uint64(len(label))
    # This is the largest sum of a path that begins in a component.
    sums = np.zeros(n, uint64)
    begin, longest = U0, U0
    while begin < n:
        own = uint64(label[order[begin]])
        end, further = begin, U0
        while end < n and label[order[end]] == own:
            i = uint64(order[end])
            end += U1
            for p in range(offsets[i], offsets[i + U1]):
                other = uint64(label[nodes[p]])
                if other != own:
                    further = max(further, sums[other] + U1)
        sums[own] = further + uint64(inside[own])
        longest = max(longest, sums[own])
        begin = end
    return longest
