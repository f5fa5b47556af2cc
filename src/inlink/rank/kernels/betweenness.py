"""The loops of betweenness: numbers of shortest paths from eight sources at once, and the dependencies on each node.

Brandes, "A faster algorithm for betweenness centrality", J. Math. Sociology 2001, without lists of predecessors. Eight
searches advance together, as in Then et al., "The more the merrier: efficient multi-source graph traversal", PVLDB
2014. A row is read once for all searches that are at its node: about three times instead of eight. The numbers of a
node are one cache line. On the way back, each node sums over its outlinks that lead one step further. Each search does
the same additions in the same order as it would alone.
"""

from typing import NamedTuple

from numpy import float64, uint32, uint64

from inlink.base.arrays import Float64Array, UInt8Array, UInt16Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, add_lanes, inlined, kernel, prefetch

__all__ = [
    "LANES",
    "PIECE",
    "UNSEEN",
    "DependencySums",
    "ManyPathSearch",
    "PathSearch",
    "dependencies",
    "dependencies_of_many_paths",
]


UNSEEN = uint32(0xFFFFFFFF)
# shortest paths to one node; more are counted with exponents of their own
_MANY = 2.0**900
_STEP = 2.0**-512
_LARGE = 2.0**512
_NEXT = uint32(1)
# The number of sources that are searched at once. Their numbers of paths fill a cache line.
LANES = uint64(8)
# The number of arcs of a row that are collected at once.
PIECE = uint64(64)
_8, _16, _255, _256 = uint64(8), uint64(16), uint64(255), uint64(256)
_AHEAD = uint64(16)


class PathSearch(NamedTuple):
    """Work space of one thread. A *lane* is one of :data:`LANES` sources that are searched at once.

    Attributes
    ----------
    marks : uint16[n]
        Low byte: the lanes that have reached each node. High byte: the lanes that reach it in this step; on the way
        back, the lanes that reached it one step further. 0 before and after a search.
    paths : float64[n · LANES]
        The number of shortest paths to each node in each lane. On the way back it becomes δ.
    behind : float64[n · LANES]
        (1 + δ) / paths.
    queue, lanes : uint32[n · LANES + 1], uint8[n · LANES + 1]
        Nodes and lanes in the order of their distances.
    ends : uint64[n + 2]
        The place in the queue where the nodes of each distance end.
    part : float64[LANES]
        The sums of one node.
    near : uint32[PIECE]
        Nodes of a piece of a row.
    """

    marks: UInt16Array
    paths: Float64Array
    behind: Float64Array
    queue: UInt32Array
    lanes: UInt8Array
    ends: UInt64Array
    part: Float64Array
    near: UInt32Array


class ManyPathSearch(NamedTuple):
    """Work space for any number of shortest paths.

    Attributes
    ----------
    depths : uint32[n]
        The distance of each node from the source; :data:`UNSEEN` before and after a search.
    paths, powers : float64[n], uint32[n]
        The number of shortest paths to each node is paths · 2^(512 · powers).
    behind : float64[n]
        δ; 0 before and after a search.
    queue : uint32[n]
        The nodes in the order of their distances.
    """

    depths: UInt32Array
    paths: Float64Array
    powers: UInt32Array
    behind: Float64Array
    queue: UInt32Array


class DependencySums(NamedTuple):
    """Σ_s share_s · δ_s(v) and Σ_s δ_s(v)² for each node; float64[n] each, the second empty if it is not needed."""

    total: Float64Array
    squares: Float64Array


@inlined
def _collect(
    nodes: UInt32Array,
    start: uint64,
    stop: uint64,
    marks: UInt16Array,
    shift: uint64,
    flip: uint64,
    own: uint64,
    near: UInt32Array,
) -> uint64:
    """Write to ``near`` the nodes of the arcs [start, stop) that have a lane of ``own``. Return their number.

    The lanes of a node are ``(mark >> shift) ^ flip``. There is no branch, because the processor would mispredict it at
    every third arc.
    """
    last, count = uint64(len(nodes)) - U1, U0
    for p in range(start, stop):
        prefetch(marks, uint64(nodes[min(p + _AHEAD, last)]))
        j = uint64(nodes[p])
        near[count] = j
        count += U1 if own & ((uint64(marks[j]) >> shift) ^ flip) != U0 else U0
    return count


@kernel
def dependencies(
    offsets: UInt64Array,
    nodes: UInt32Array,
    sources: UInt32Array,
    shares: Float64Array,
    endpoints: bool,
    search: PathSearch,
    sums: DependencySums,
) -> bool:
    """Add shares[k] · δ_s(v) to ``sums.total[v]`` for each source s = sources[k] and node v, and δ_s(v)² to
    ``sums.squares[v]`` unless that is empty.

    δ_s(v) = Σ_{t ≠ v} σ_st(v) / σ_st is the part of the shortest paths from s, one for each node it reaches,
    that go through v ≠ s. With ``endpoints``, paths that end in v also count, and for v = s all paths.

    Returns False, and leaves all work space and the sums unfinished, if there are more shortest paths to a node than a
    float64 can count.
    """
    marks, paths, behind, queue, lanes, ends, part, near = search
    total, squares = sums
    ending = 1.0 if endpoints else 0.0
    n = uint64(len(marks))
    for first in range(U0, uint64(len(sources)), LANES):
        num_lanes = min(LANES, uint64(len(sources)) - first)
        tail, levels = U0, U0
        ends[U0] = U0
        for k in range(U0, num_lanes):
            source = uint64(sources[first + k])
            if marks[source] == 0:
                for q in range(source * LANES, (source + U1) * LANES):
                    paths[q] = 0.0
                queue[tail] = source
                tail += U1
            marks[source] |= U1 << (_8 + k)
            paths[source * LANES + k] = 1.0
        while tail > ends[levels]:
            low = ends[levels]
            levels += U1
            # If there are many nodes, sort them by number, because their rows and neighbours lie close together then.
            if (tail - low) * _16 > n:
                tail = low
                for j in range(U0, n):
                    queue[tail] = j
                    tail += U1 if marks[j] >= _256 else U0
            for a in range(low, tail):
                j = uint64(queue[a])
                mark = uint64(marks[j])
                lanes[a] = mark >> _8
                marks[j] = (mark & _255) | (mark >> _8)
            ends[levels] = tail
            for a in range(low, ends[levels]):
                i = uint64(queue[a])
                own = uint64(lanes[a])
                most = 0.0
                for q in range(i * LANES, (i + U1) * LANES):
                    most = max(most, paths[q])
                if most > _MANY:
                    return False
                start, stop = offsets[i], offsets[i + U1]
                while start < stop:
                    step = min(start + PIECE, stop)
                    count = _collect(nodes, start, step, marks, U0, _255, own, near)
                    for h in range(U0, count):
                        prefetch(paths, uint64(near[h]) * LANES)
                    for h in range(U0, count):
                        j = uint64(near[h])
                        mark = uint64(marks[j])
                        if mark == U0:
                            for q in range(j * LANES, (j + U1) * LANES):
                                paths[q] = 0.0
                        queue[tail] = j
                        tail += U1 if mark < _256 else U0
                        come = own & ~mark
                        marks[j] = mark | (come << _8)
                        add_lanes(paths, j * LANES, paths, i * LANES, come)
                    start = step
        at = levels
        while at > U0:
            low, high = ends[at - U1], ends[at]
            for a in range(low, high):
                i = uint64(queue[a])
                own = uint64(lanes[a])
                for k in range(U0, LANES):
                    part[k] = 0.0
                start, stop = offsets[i], offsets[i + U1]
                while start < stop:
                    step = min(start + PIECE, stop)
                    count = _collect(nodes, start, step, marks, _8, U0, own, near)
                    for h in range(U0, count):
                        prefetch(behind, uint64(near[h]) * LANES)
                    for h in range(U0, count):
                        j = uint64(near[h])
                        add_lanes(part, U0, behind, j * LANES, own & (uint64(marks[j]) >> _8))
                    start = step
                for k in range(U0, LANES):
                    if (own >> k) & U1 != U0:
                        q = i * LANES + k
                        value = part[k] * paths[q]
                        behind[q] = (1.0 + value) / paths[q]
                        paths[q] = value
            if at < levels:
                for a in range(high, ends[at + U1]):
                    marks[queue[a]] &= _255
            for a in range(low, high):
                marks[queue[a]] |= uint64(lanes[a]) << _8
            at -= U1
        for k in range(U0, LANES):
            part[k] = 0.0
        for i in range(U0, n):
            mark = uint64(marks[i])
            if mark == U0:
                continue
            marks[i] = 0
            for k in range(U0, num_lanes):
                if (mark >> k) & U1 != U0 and i != sources[first + k]:
                    part[k] += 1.0
                    value = paths[i * LANES + k] + ending
                    total[i] += shares[first + k] * value
                    if len(squares) > 0:
                        squares[i] += value * value
        for k in range(U0, num_lanes):
            value = part[k] * ending
            total[sources[first + k]] += shares[first + k] * value
            if len(squares) > 0:
                squares[sources[first + k]] += value * value
    return True


@kernel
def dependencies_of_many_paths(
    offsets: UInt64Array,
    nodes: UInt32Array,
    sources: UInt32Array,
    shares: Float64Array,
    endpoints: bool,
    search: ManyPathSearch,
    sums: DependencySums,
) -> None:
    """Do the same for any number of shortest paths, which is paths · 2^(512 · powers). This is several times slower.

    If each page links to the next under two addresses, the number doubles at each step. After 1024 steps it is larger
    than a float64 can hold.
    """
    depths, paths, powers, behind, queue = search
    total, squares = sums
    ending = 1.0 if endpoints else 0.0
    for k in range(U0, uint64(len(sources))):
        source = uint64(sources[k])
        depths[source] = 0
        paths[source] = 1.0
        powers[source] = 0
        queue[U0] = source
        head, tail = U0, U1
        while head < tail:
            i = uint64(queue[head])
            head += U1
            if paths[i] >= _LARGE:
                paths[i] *= _STEP
                powers[i] += _NEXT
            for p in range(offsets[i], offsets[i + U1]):
                j = uint64(nodes[p])
                if depths[j] == UNSEEN:
                    depths[j] = depths[i] + _NEXT
                    paths[j] = paths[i]
                    powers[j] = powers[i]
                    queue[tail] = j
                    tail += U1
                elif depths[j] == depths[i] + _NEXT:
                    more = paths[i]
                    # A number that is 512 bits below the other one does not change it.
                    if powers[i] > powers[j]:
                        paths[j] = paths[j] * _STEP if powers[i] - powers[j] == _NEXT else 0.0
                        powers[j] = powers[i]
                    elif powers[i] < powers[j]:
                        more = more * _STEP if powers[j] - powers[i] == _NEXT else 0.0
                    paths[j] += more
        while head > U0:
            head -= U1
            i = uint64(queue[head])
            part = 0.0
            for p in range(offsets[i], offsets[i + U1]):
                j = uint64(nodes[p])
                if depths[j] == depths[i] + _NEXT:
                    share = (1.0 + behind[j]) * (paths[i] / paths[j])
                    for _ in range(powers[i], powers[j]):
                        share *= _STEP
                    part += share
            behind[i] = part
            part += ending
            if i == source:
                part = float64(tail - U1) * ending
            total[i] += shares[k] * part
            if len(squares) > 0:
                squares[i] += part * part
        for a in range(U0, tail):
            depths[queue[a]] = UNSEEN
            behind[queue[a]] = 0.0
