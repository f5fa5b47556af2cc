"""Loops that follow arcs: components and reachable nodes."""

import numpy as np
from numpy import uint8, uint32, uint64

from inlink.base.arrays import BoolArray, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, Index, inlined, kernel

_NONE = uint32(0xFFFFFFFF)


@inlined
def begin_union(root: UInt32Array) -> None:
    """Put each node into a component of its own: the start of a union-find with path halving."""
    for i in range(U0, uint64(len(root))):
        root[i] = uint32(i)


@inlined
def join(root: UInt32Array, a: Index, b: Index) -> None:
    """Join the components of two nodes. The smaller root becomes the root of both."""
    while uint64(root[a]) != a:
        root[a] = root[uint64(root[a])]
        a = uint64(root[a])
    while uint64(root[b]) != b:
        root[b] = root[uint64(root[b])]
        b = uint64(root[b])
    if a < b:
        root[b] = uint32(a)
    elif b < a:
        root[a] = uint32(b)


@inlined
def finish_union(root: UInt32Array) -> None:
    """Give each node its root, which is the least node of its component."""
    # A root is less than its nodes, so the roots of the nodes before i are final.
    for i in range(U0, uint64(len(root))):
        root[i] = root[uint64(root[i])]


@inlined
def first_at_least(nodes: UInt32Array, low: uint64, high: uint64, wanted: Index) -> uint64:
    """The first place in the increasing nodes[low:high] whose node is at least ``wanted``, or ``high`` if none is."""
    while low < high:
        middle = (low + high) >> U1
        if uint64(nodes[middle]) < wanted:
            low = middle + U1
        else:
            high = middle
    return low


@kernel
def weak_components(offsets: UInt64Array, nodes: UInt32Array, root: UInt32Array) -> None:
    """Write the least node of each node's component to ``root``. Directions are ignored."""
    begin_union(root)
    for i in range(U0, uint64(len(root))):
        for k in range(offsets[i], offsets[i + U1]):
            join(root, i, uint64(nodes[k]))
    finish_union(root)


@kernel
def strong_components(
    offsets: UInt64Array, nodes: UInt32Array, label: UInt32Array, order: UInt32Array
) -> None:
    """Label each node with a node of its strongly connected component, the same for the whole component.

    ``order`` gets the nodes by components, each after all components that it reaches.

    Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1972, without recursion; ``label``
    holds the low links until a component is closed.
    """
    n = uint64(len(offsets)) - U1
    index = np.full(n, _NONE, uint32)
    closed = np.zeros(n, uint8)
    at = np.empty(n, uint64)
    path = np.empty(n, uint32)
    open_ = np.empty(n, uint32)
    count = uint32(0)
    ordered = U0
    for seed in range(U0, n):
        if index[seed] != _NONE:
            continue
        depth, held = U0, U0
        path[depth] = uint32(seed)
        depth += U1
        while depth > U0:
            v = uint64(path[depth - U1])
            if index[v] == _NONE:
                index[v] = label[v] = count
                count += uint32(1)
                at[v] = offsets[v]
                open_[held] = uint32(v)
                held += U1
            down = False
            while at[v] < offsets[v + U1]:
                w = uint64(nodes[at[v]])
                if index[w] == _NONE:
                    path[depth] = uint32(w)
                    depth += U1
                    down = True
                    break
                if closed[w] == 0:
                    label[v] = min(label[v], label[w])
                at[v] += U1
            if down:
                continue
            depth -= U1
            if label[v] == index[v]:
                while True:
                    held -= U1
                    w = uint64(open_[held])
                    closed[w] = 1
                    label[w] = uint32(v)
                    order[ordered] = uint32(w)
                    ordered += U1
                    if w == v:
                        break
            if depth > U0:
                u = uint64(path[depth - U1])
                if closed[v] == 0:
                    label[u] = min(label[u], label[v])


@kernel
def reach_bounds(
    offsets: UInt64Array,
    nodes: UInt32Array,
    label: UInt32Array,
    order: UInt32Array,
    common: BoolArray,
    bounds: UInt64Array,
) -> None:
    """Write to ``bounds`` how many nodes each node reaches at most, itself included.

    ``label`` and ``order`` come from :func:`strong_components`, and ``common`` are all nodes that one component
    reaches. The bounds of the components that a component links to are added up, for the common nodes and for the
    others, and neither sum exceeds the number of such nodes.
    """
    n = uint64(len(label))
    all_common = U0
    for i in range(U0, n):
        all_common += uint64(common[i])
    all_others = n - all_common
    inside, outside = np.zeros(n, uint64), np.zeros(n, uint64)
    counted_for = np.full(n, _NONE, uint32)
    begin = U0
    while begin < n:
        component = label[order[begin]]
        end, shared, own = begin, U0, U0
        while end < n and label[order[end]] == component:
            i = uint64(order[end])
            end += U1
            if common[i]:
                shared += U1
            else:
                own += U1
            for k in range(offsets[i], offsets[i + U1]):
                other = label[nodes[k]]
                if other != component and counted_for[other] != component:
                    counted_for[other] = component
                    shared = min(shared + inside[other], all_common)
                    own = min(own + outside[other], all_others)
        shared, own = min(shared, all_common), min(own, all_others)
        inside[component], outside[component] = shared, own
        for k in range(begin, end):
            bounds[order[k]] = shared + own
        begin = end


@kernel
def reach(
    offsets: UInt64Array, nodes: UInt32Array, queue: UInt32Array, waiting: uint64, seen: BoolArray
) -> uint64:
    """Breadth-first search from the first ``waiting`` nodes of ``queue``; return the number of ``seen`` nodes."""
    done = U0
    while done < waiting:
        i = uint64(queue[done])
        done += U1
        for k in range(offsets[i], offsets[i + U1]):
            j = uint64(nodes[k])
            if not seen[j]:
                seen[j] = True
                queue[waiting] = uint32(j)
                waiting += U1
    return waiting


@kernel
def self_loops(offsets: UInt64Array, nodes: UInt32Array, has: BoolArray) -> uint64:
    """Mark the nodes that link to themselves; return their number."""
    count = U0
    for i in range(U0, uint64(len(offsets)) - U1):
        place = first_at_least(nodes, offsets[i], offsets[i + U1], i)
        if place < offsets[i + U1] and uint64(nodes[place]) == i:
            has[i] = True
            count += U1
    return count
