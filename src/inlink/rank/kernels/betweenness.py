"""The loops of betweenness: numbers of shortest paths from one source, and the dependencies on each node.

Brandes, "A faster algorithm for betweenness centrality", J. Math. Sociology 2001, without lists of
predecessors. On the way back, the nodes of one distance take their sums over *all* outlinks. ``behind`` is 0
except for the nodes one step further, so that no distances are compared (0.75 of the time on cnr-2000).
"""

from typing import NamedTuple

from numpy import float64, uint32, uint64

from inlink.base.arrays import Float64Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, kernel

__all__ = ["UNSEEN", "DependencySums", "PathSearch", "dependencies", "dependencies_of_many_paths"]


UNSEEN = uint32(0xFFFFFFFF)
# shortest paths to one node; more are counted with exponents of their own
_MANY = 2.0**900
_STEP = 2.0**-512
_LARGE = 2.0**512
_NEXT = uint32(1)


class PathSearch(NamedTuple):
    """Work space of one thread.

    Attributes
    ----------
    depths : uint32[n]
        The distance of each node from the source; :data:`UNSEEN` before and after a search.
    paths : float64[n]
        The number of shortest paths to each node.
    behind : float64[n]
        (1 + δ) / paths of the nodes one step further; 0 before and after a search.
    queue : uint32[n]
        The nodes in the order of their distances.
    ends : uint64[n + 2]
        The place in the queue where the nodes of each distance end.
    put : float64[n]
        The next values of ``behind``.
    """

    depths: UInt32Array
    paths: Float64Array
    behind: Float64Array
    queue: UInt32Array
    ends: UInt64Array
    put: Float64Array


class DependencySums(NamedTuple):
    """Σ_s share_s · δ_s(v) and Σ_s δ_s(v)² for each node; float64[n] each, the second empty if it is not needed."""

    total: Float64Array
    squares: Float64Array


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
    depths, paths, behind, queue, ends, put = search
    total, squares = sums
    ending = 1.0 if endpoints else 0.0
    for k in range(U0, uint64(len(sources))):
        source = uint64(sources[k])
        depths[source] = 0
        paths[source] = 1.0
        queue[U0] = source
        ends[U0] = U0
        head, tail, levels = U0, U1, U0
        while head < tail:
            levels += U1
            ends[levels] = tail
            depth = uint32(levels)
            while head < ends[levels]:
                i = uint64(queue[head])
                head += U1
                count = paths[i]
                if count > _MANY:
                    return False
                for p in range(offsets[i], offsets[i + U1]):
                    j = uint64(nodes[p])
                    if depths[j] == UNSEEN:
                        depths[j] = depth
                        paths[j] = count
                        queue[tail] = j
                        tail += U1
                    elif depths[j] == depth:
                        paths[j] += count
        at = levels
        while at > U0:
            low, high = ends[at - U1], ends[at]
            for a in range(low, high):
                i = uint64(queue[a])
                part = 0.0
                for p in range(offsets[i], offsets[i + U1]):
                    part += behind[nodes[p]]
                part *= paths[i]
                put[a] = (1.0 + part) / paths[i]
                part += ending
                if i == source:
                    part = float64(tail - U1) * ending
                total[i] += shares[k] * part
                if len(squares) > 0:
                    squares[i] += part * part
            if at < levels:
                for a in range(high, ends[at + U1]):
                    behind[queue[a]] = 0.0
            for a in range(low, high):
                behind[queue[a]] = put[a]
            at -= U1
        behind[source] = 0.0
        for a in range(U0, tail):
            depths[queue[a]] = UNSEEN
    return True


@kernel
def dependencies_of_many_paths(
    offsets: UInt64Array,
    nodes: UInt32Array,
    sources: UInt32Array,
    shares: Float64Array,
    endpoints: bool,
    search: PathSearch,
    powers: UInt32Array,
    sums: DependencySums,
) -> None:
    """Do the same for any number of shortest paths, which is paths · 2^(512 · powers). This is several times slower.

    If each page links to the next under two addresses, the number doubles at each step. After 1024 steps it is larger
    than a float64 can hold. ``powers`` is uint32[n].
    """
    depths, paths, behind, queue, _, _ = search
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
