"""The loops of Loops: find the arcs on short closed walks."""

from numpy import uint32, uint64

from inlink.base.arrays import AnyArray, BoolArray, UInt32Array
from inlink.base.jit import U0, U1, kernel
from inlink.rank.kernels.gather import WeightedRows

__all__ = ["find_loops"]


@kernel
def find_loops(
    outlinks: WeightedRows,
    inlinks: WeightedRows,
    component: UInt32Array,
    depth: uint64,
    marks: BoolArray,
    stamps: AnyArray,
    queue: UInt32Array,
    low: uint64,
    high: uint64,
) -> None:
    """Set ``marks`` for each arc u→o, u in [low, high), where a walk of 1 … depth arcs leads from o back to u.

    One search along inlinks a node u, within its strong component (no closed walk leaves it), which ends as soon as all
    of u's arcs are marked. ``stamps`` uint32[n], 0 before the first call, and ``queue`` uint32[n] belong to one thread.
    """
    out_offsets, out_nodes, _ = outlinks
    in_offsets, in_nodes, _ = inlinks
    for u in range(low, high):
        first, end = out_offsets[u], out_offsets[u + U1]
        left, outward = U0, U0
        for k in range(first, end):
            o = uint64(out_nodes[k])
            if component[o] == component[u]:
                left += U1
                outward += out_offsets[o + U1] - out_offsets[o]
        if left == U0 or depth == U0:
            continue
        stamp = uint32(u + U1)
        # The part of the queue that the last level added.
        begin, stop = U0, U0
        level = U0
        while left > U0 and level < depth:
            level += U1
            inward = U0
            if level == U1:
                inward = in_offsets[u + U1] - in_offsets[u]
            else:
                for q in range(begin, stop):
                    w = uint64(queue[q])
                    inward += in_offsets[w + U1] - in_offsets[w]
            if level > U1 and level == depth and outward < inward:
                # the last arc backwards is the first one forwards, and here there are fewer to look at
                for k in range(first, end):
                    o = uint64(out_nodes[k])
                    if not marks[k] and component[o] == component[u]:
                        for j in range(out_offsets[o], out_offsets[o + U1]):
                            if stamps[out_nodes[j]] == stamp:
                                marks[k] = True
                                break
                break
            added = stop
            for q in range(begin, max(stop, begin + U1)):
                w = u if level == U1 else uint64(queue[q])
                for j in range(in_offsets[w], in_offsets[w + U1]):
                    v = uint64(in_nodes[j])
                    if stamps[v] != stamp and component[v] == component[u]:
                        stamps[v] = stamp
                        queue[added] = v
                        added += U1
            begin, stop = stop, added
            if begin == stop:
                break
            for k in range(first, end):
                o = uint64(out_nodes[k])
                if not marks[k] and component[o] == component[u] and stamps[o] == stamp:
                    marks[k] = True
                    left -= U1
                    outward -= out_offsets[o + U1] - out_offsets[o]
