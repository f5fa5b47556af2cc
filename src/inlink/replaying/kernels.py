"""The loops of the lines that a replay draws beside its policies: orders that know the whole graph."""

import heapq

import numpy as np

from inlink.base.arrays import BoolArray, Float64Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, kernel

__all__ = ["greedy", "look_ahead", "promise"]


@kernel
def greedy(
    values: Float64Array,
    offsets: UInt64Array,
    nodes: UInt32Array,
    seen: BoolArray,
    seeds: UInt32Array,
    order: UInt32Array,
) -> np.uint64:
    """Write the order that fetches the known page of the largest value into ``order``; return its length.

    ``seen`` are the pages that are never fetched. It is changed.
    """
    heap = [(0.0, np.uint32(0))]
    heap.clear()
    for seed in seeds:
        if not seen[seed]:
            seen[seed] = True
            heapq.heappush(heap, (-values[seed], seed))
    done = U0
    while done < np.uint64(len(order)) and len(heap) > 0:
        _, page = heapq.heappop(heap)
        order[done] = page
        done += U1
        for k in range(offsets[page], offsets[page + U1]):
            child = nodes[k]
            if not seen[child]:
                seen[child] = True
                heapq.heappush(heap, (-values[child], child))
    return done


@kernel
def _one_level(
    page: np.uint32,
    least: float,
    values: Float64Array,
    offsets: UInt64Array,
    nodes: UInt32Array,
    seen: BoolArray,
) -> tuple[float, float]:
    """Sum and number of a page and its unseen links of a value above ``least``; links are sorted by value."""
    total, count = values[page], 1.0
    for k in range(offsets[page], offsets[page + U1]):
        child = nodes[k]
        if values[child] <= least:
            break
        if not seen[child] and child != page:
            total += values[child]
            count += 1.0
    return total, count


@kernel
def _two_levels(
    page: np.uint32,
    least: float,
    values: Float64Array,
    offsets: UInt64Array,
    nodes: UInt32Array,
    seen: BoolArray,
    most_one: Float64Array,
) -> tuple[float, float]:
    """Do the same as :func:`_one_level`, with the best part of each link whose mean is above ``least``."""
    total, count = values[page], 1.0
    for k in range(offsets[page], offsets[page + U1]):
        child = nodes[k]
        if seen[child] or child == page or most_one[child] <= least:
            continue
        part, size = _one_level(child, least, values, offsets, nodes, seen)
        if part > least * size:
            total += part
            count += size
        else:
            most_one[child] = least
    return total, count


@kernel
def _three_levels(
    page: np.uint32,
    least: float,
    values: Float64Array,
    offsets: UInt64Array,
    nodes: UInt32Array,
    seen: BoolArray,
    most_one: Float64Array,
    most_two: Float64Array,
) -> tuple[float, float]:
    """Do the same as :func:`_two_levels`, one level deeper."""
    total, count = values[page], 1.0
    for k in range(offsets[page], offsets[page + U1]):
        child = nodes[k]
        if seen[child] or child == page or most_two[child] <= least:
            continue
        part, size = _two_levels(child, least, values, offsets, nodes, seen, most_one)
        if part > least * size:
            total += part
            count += size
        else:
            most_two[child] = least
    return total, count


@kernel
def promise(
    page: np.uint32,
    values: Float64Array,
    offsets: UInt64Array,
    nodes: UInt32Array,
    seen: BoolArray,
    most_one: Float64Array,
    most_two: Float64Array,
) -> float:
    """The largest mean value of a page with unseen descendants of three levels: see :mod:`.lines`.

    Dinkelbach's method: for a mean m, the best part holds the links whose own best parts have a mean above m; its mean
    is the next m, until it grows no more. Each level begins with the answer of the level above it.
    """
    mean = values[page]
    while True:
        total, count = _one_level(page, mean, values, offsets, nodes, seen)
        if total / count <= mean:
            break
        mean = total / count
    while True:
        total, count = _two_levels(page, mean, values, offsets, nodes, seen, most_one)
        if total / count <= mean:
            break
        mean = total / count
    while True:
        total, count = _three_levels(page, mean, values, offsets, nodes, seen, most_one, most_two)
        if total / count <= mean:
            return mean
        mean = total / count


@kernel
def look_ahead(
    values: Float64Array,
    offsets: UInt64Array,
    nodes: UInt32Array,
    seen: BoolArray,
    seeds: UInt32Array,
    order: UInt32Array,
) -> np.uint64:
    """Write the order that fetches the known page of the largest promise into ``order``; return its length.

    The links of each page are sorted by value, the largest first. ``seen`` are the pages that are never fetched. It is
    changed.

    Promises never grow, since pages only become seen. So a promise in the heap is an upper bound, and a page whose
    new promise is still the largest is the best. ``most_one`` and ``most_two`` are upper bounds of the best means of
    each page with one and two levels.
    """
    most_one, most_two = np.full(len(values), np.inf), np.full(len(values), np.inf)
    heap = [(0.0, np.uint32(0))]
    heap.clear()
    for seed in seeds:
        if not seen[seed]:
            seen[seed] = True
            heapq.heappush(heap, (-np.inf, seed))
    done = U0
    while done < np.uint64(len(order)) and len(heap) > 0:
        key, page = heap[0]
        now = -promise(page, values, offsets, nodes, seen, most_one, most_two)
        if now > key:
            heapq.heapreplace(heap, (now, page))
            if heap[0][1] != page:
                continue
        heapq.heappop(heap)
        order[done] = page
        done += U1
        for k in range(offsets[page], offsets[page + U1]):
            child = nodes[k]
            if not seen[child]:
                seen[child] = True
                heapq.heappush(heap, (-np.inf, child))
    return done
