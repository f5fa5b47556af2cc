"""The loops of betweenness: from one source, how many shortest paths lead where, and how many lie behind each
node.

Brandes, "A faster algorithm for betweenness centrality", J. Math. Sociology 2001, without lists of
predecessors. On the way back the nodes of one distance take their sums over *all* outlinks: ``behind`` is 0
but for the nodes one step further, so that nothing has to be compared (0.75 of the time on cnr-2000).
"""

import numpy as np
import numpy.typing as npt

from inlink.base.jit import U0, U1, kernel

__all__ = ["UNSEEN", "dependencies", "dependencies_of_many_paths"]

F8 = npt.NDArray[np.float64]
U8 = npt.NDArray[np.uint64]
U4 = npt.NDArray[np.uint32]

UNSEEN = np.uint32(0xFFFFFFFF)
_MANY = 2.0**900  # shortest paths to one node; beyond, their numbers need exponents of their own
_STEP = 2.0**-512
_LARGE = 2.0**512
_NEXT = np.uint32(1)


@kernel
def dependencies(
    offsets: U8,
    nodes: U4,
    sources: U4,
    shares: F8,
    endpoints: bool,
    depths: U4,
    paths: F8,
    behind: F8,
    queue: U4,
    ends: U8,
    put: F8,
    total: F8,
    squares: F8,
) -> bool:
    """Add shares[k] · δ_s(v) to ``total[v]`` for each source s = sources[k] and node v, and δ_s(v)² to
    ``squares[v]`` unless that is empty.

    δ_s(v) = Σ_{t ≠ v} σ_st(v) / σ_st is the part of the shortest paths from s, one for each node it reaches,
    that go through v ≠ s; with ``endpoints`` also those that end in v, and for v = s all of them.

    ``depths`` (uint32[n]) is :data:`UNSEEN` and ``behind`` (float64[n]) is 0 before and after. ``paths``,
    ``put`` (float64[n]), ``queue`` (uint32[n]) and ``ends`` (uint64[n + 2]) hold anything. Returns False, and
    leaves all of them and the sums unfinished, if there are more shortest paths to a node than a float64 can
    count.
    """
    ending = 1.0 if endpoints else 0.0
    for k in range(U0, np.uint64(len(sources))):
        source = np.uint64(sources[k])
        depths[source] = 0
        paths[source] = 1.0
        queue[U0] = source
        ends[U0] = U0
        head, tail, levels = U0, U1, U0
        while head < tail:
            levels += U1
            ends[levels] = tail
            depth = np.uint32(levels)
            while head < ends[levels]:
                i = np.uint64(queue[head])
                head += U1
                count = paths[i]
                if count > _MANY:
                    return False
                for p in range(offsets[i], offsets[i + U1]):
                    j = np.uint64(nodes[p])
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
                i = np.uint64(queue[a])
                part = 0.0
                for p in range(offsets[i], offsets[i + U1]):
                    part += behind[nodes[p]]
                part *= paths[i]
                put[a] = (1.0 + part) / paths[i]
                part += ending
                if i == source:
                    part = np.float64(tail - U1) * ending
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
    offsets: U8,
    nodes: U4,
    sources: U4,
    shares: F8,
    endpoints: bool,
    depths: U4,
    paths: F8,
    powers: U4,
    behind: F8,
    queue: U4,
    total: F8,
    squares: F8,
) -> None:
    """The same for any number of shortest paths, which is paths · 2^(512 · powers); some times slower.

    Pages that link to the next page under two addresses double the number at each step, and 1024 steps are
    enough for more than a float64 can hold.
    """
    ending = 1.0 if endpoints else 0.0
    for k in range(U0, np.uint64(len(sources))):
        source = np.uint64(sources[k])
        depths[source] = 0
        paths[source] = 1.0
        powers[source] = 0
        queue[U0] = source
        head, tail = U0, U1
        while head < tail:
            i = np.uint64(queue[head])
            head += U1
            if paths[i] >= _LARGE:
                paths[i] *= _STEP
                powers[i] += _NEXT
            for p in range(offsets[i], offsets[i + U1]):
                j = np.uint64(nodes[p])
                if depths[j] == UNSEEN:
                    depths[j] = depths[i] + _NEXT
                    paths[j] = paths[i]
                    powers[j] = powers[i]
                    queue[tail] = j
                    tail += U1
                elif depths[j] == depths[i] + _NEXT:
                    more = paths[i]
                    if powers[i] > powers[j]:  # what is 512 bits below the other cannot be seen beside it
                        paths[j] = paths[j] * _STEP if powers[i] - powers[j] == _NEXT else 0.0
                        powers[j] = powers[i]
                    elif powers[i] < powers[j]:
                        more = more * _STEP if powers[j] - powers[i] == _NEXT else 0.0
                    paths[j] += more
        while head > U0:
            head -= U1
            i = np.uint64(queue[head])
            part = 0.0
            for p in range(offsets[i], offsets[i + U1]):
                j = np.uint64(nodes[p])
                if depths[j] == depths[i] + _NEXT:
                    share = (1.0 + behind[j]) * (paths[i] / paths[j])
                    for _ in range(powers[i], powers[j]):
                        share *= _STEP
                    part += share
            behind[i] = part
            part += ending
            if i == source:
                part = np.float64(tail - U1) * ending
            total[i] += shares[k] * part
            if len(squares) > 0:
                squares[i] += part * part
        for a in range(U0, tail):
            depths[queue[a]] = UNSEEN
            behind[queue[a]] = 0.0
