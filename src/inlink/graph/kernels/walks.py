"""Loops that follow arcs: components and what can be reached."""

import numpy as np
import numpy.typing as npt

from inlink.base.jit import U0, U1, kernel

U64 = npt.NDArray[np.uint64]
U32 = npt.NDArray[np.uint32]

_NONE = np.uint32(0xFFFFFFFF)


@kernel
def weak_components(offsets: U64, nodes: U32, root: U32) -> None:
    """Give each node the least node that it is connected with, directions ignored: union-find with path halving."""
    n = np.uint64(len(offsets)) - U1
    for i in range(U0, n):
        root[i] = np.uint32(i)
    for i in range(U0, n):
        for k in range(offsets[i], offsets[i + U1]):
            a, b = i, np.uint64(nodes[k])
            while np.uint64(root[a]) != a:
                root[a] = root[np.uint64(root[a])]
                a = np.uint64(root[a])
            while np.uint64(root[b]) != b:
                root[b] = root[np.uint64(root[b])]
                b = np.uint64(root[b])
            if a < b:
                root[b] = np.uint32(a)
            elif b < a:
                root[a] = np.uint32(b)
    for i in range(U0, n):  # a root is the least of its component, so the ones before i are final
        root[i] = root[np.uint64(root[i])]


@kernel
def strong_components(offsets: U64, nodes: U32, label: U32) -> None:
    """Give each node a node of its strongly connected component, the same for all of it.

    Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1972, without recursion; ``label``
    holds the low links until a component is closed.
    """
    n = np.uint64(len(offsets)) - U1
    index = np.full(n, _NONE, np.uint32)
    closed = np.zeros(n, np.uint8)
    at = np.empty(n, np.uint64)
    path = np.empty(n, np.uint32)
    open_ = np.empty(n, np.uint32)
    count = np.uint32(0)
    for seed in range(U0, n):
        if index[seed] != _NONE:
            continue
        depth, held = U0, U0
        path[depth] = np.uint32(seed)
        depth += U1
        while depth > U0:
            v = np.uint64(path[depth - U1])
            if index[v] == _NONE:
                index[v] = label[v] = count
                count += np.uint32(1)
                at[v] = offsets[v]
                open_[held] = np.uint32(v)
                held += U1
            down = False
            while at[v] < offsets[v + U1]:
                w = np.uint64(nodes[at[v]])
                if index[w] == _NONE:
                    path[depth] = np.uint32(w)
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
                    w = np.uint64(open_[held])
                    closed[w] = 1
                    label[w] = np.uint32(v)
                    if w == v:
                        break
            if depth > U0:
                u = np.uint64(path[depth - U1])
                if closed[v] == 0:
                    label[u] = min(label[u], label[v])


@kernel
def reach(offsets: U64, nodes: U32, queue: U32, waiting: np.uint64, seen: npt.NDArray[np.bool_]) -> np.uint64:
    """Breadth-first search from the first ``waiting`` nodes of ``queue``, which are ``seen``; returns how many are."""
    done = U0
    while done < waiting:
        i = np.uint64(queue[done])
        done += U1
        for k in range(offsets[i], offsets[i + U1]):
            j = np.uint64(nodes[k])
            if not seen[j]:
                seen[j] = True
                queue[waiting] = np.uint32(j)
                waiting += U1
    return waiting


@kernel
def self_loops(offsets: U64, nodes: U32, has: npt.NDArray[np.bool_]) -> np.uint64:
    """Mark the nodes that link to themselves, and count them."""
    found = U0
    for i in range(U0, np.uint64(len(offsets)) - U1):
        low, high = offsets[i], offsets[i + U1]
        while low < high:  # rows are increasing
            middle = (low + high) >> U1
            if np.uint64(nodes[middle]) < i:
                low = middle + U1
            else:
                high = middle
        if low < offsets[i + U1] and np.uint64(nodes[low]) == i:
            has[i] = True
            found += U1
    return found
