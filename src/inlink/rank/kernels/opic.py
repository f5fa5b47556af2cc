"""The loops of OPIC: pages are visited and hand their cash over.

``cash`` float64[n] is what each page has less ``shares[EACH]``, which is what the virtual page has given to
each so far: so it gives to n pages at once in one step, and their order by cash stays. ``history`` float64[n] is what
each has handed over. ``weights`` is empty where each arc counts 1; ``strengths`` are a row's sums of weights.

The visit is written out in both loops: a call would cost more than a page with few links.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from inlink.base.jit import U0, U1, kernel

__all__ = ["CASH", "EACH", "HISTORY", "visit_in_order", "visit_richest"]

F8 = npt.NDArray[np.float64]
U8 = npt.NDArray[np.uint64]
U4 = npt.NDArray[np.uint32]
Any1 = npt.NDArray[Any]

CASH, HISTORY, EACH = 0, 1, 2  # of the virtual page: what it has, has handed over, and has given to each page

_2 = np.uint64(2)


@kernel
def visit_in_order(
    offsets: U8,
    nodes: U4,
    weights: Any1,
    strengths: Any1,
    order: U4,
    cash: F8,
    history: F8,
    virtual: F8,
) -> None:
    """Visit the pages of ``order`` in turn; n is the virtual page."""
    n = np.uint64(len(cash))
    for q in range(U0, np.uint64(len(order))):
        i = np.uint64(order[q])
        if i == n:
            virtual[HISTORY] += virtual[CASH]
            virtual[EACH] += virtual[CASH] / np.float64(n)
            virtual[CASH] = 0.0
            continue
        spent = cash[i] + virtual[EACH]
        history[i] += spent
        cash[i] = -virtual[EACH]
        low, high = offsets[i], offsets[i + U1]
        part = spent / np.float64(high - low + U1)
        virtual[CASH] += part
        if len(weights) == 0:
            for k in range(low, high):
                cash[nodes[k]] += part
        elif low < high:
            part *= np.float64(high - low) / strengths[i]
            for k in range(low, high):
                cash[nodes[k]] += part * weights[k]


@kernel
def _rise(heap: U4, place: U4, cash: F8, node: np.uint64) -> None:
    """Move a node whose cash has grown up to where it belongs; of two with the same the smaller is above."""
    at = np.uint64(place[node])
    while at > U0:
        up = (at - U1) >> U1
        other = np.uint64(heap[up])
        if cash[other] > cash[node] or (cash[other] == cash[node] and other < node):
            break
        heap[at] = np.uint32(other)
        place[other] = np.uint32(at)
        at = up
    heap[at] = np.uint32(node)
    place[node] = np.uint32(at)


@kernel
def _sink(heap: U4, place: U4, cash: F8) -> None:
    """Move the top node, whose cash has shrunk, down to where it belongs."""
    n = np.uint64(len(heap))
    node, at = np.uint64(heap[0]), U0
    while True:
        down = _2 * at + U1
        if down >= n:
            break
        below = np.uint64(heap[down])
        if down + U1 < n:
            other = np.uint64(heap[down + U1])
            if cash[other] > cash[below] or (cash[other] == cash[below] and other < below):
                down, below = down + U1, other
        if cash[node] > cash[below] or (cash[node] == cash[below] and node < below):
            break
        heap[at] = np.uint32(below)
        place[below] = np.uint32(at)
        at = down
    heap[at] = np.uint32(node)
    place[node] = np.uint32(at)


@kernel
def visit_richest(
    offsets: U8,
    nodes: U4,
    weights: Any1,
    strengths: Any1,
    visits: np.uint64,
    heap: U4,
    place: U4,
    cash: F8,
    history: F8,
    virtual: F8,
) -> None:
    """Visit the page with the most cash, so many times; of several the smallest, the virtual page last.

    ``heap`` uint32[n] is a heap of the pages by cash and ``place`` uint32[n] where each is in it: 0, 1, 2, … at first,
    as all have the same.
    """
    for _ in range(U0, visits):
        i = np.uint64(heap[0])
        spent = cash[i] + virtual[EACH]
        if virtual[CASH] > spent:
            virtual[HISTORY] += virtual[CASH]
            virtual[EACH] += virtual[CASH] / np.float64(len(cash))
            virtual[CASH] = 0.0
            continue
        history[i] += spent
        cash[i] = -virtual[EACH]
        _sink(heap, place, cash)
        low, high = offsets[i], offsets[i + U1]
        part = spent / np.float64(high - low + U1)
        virtual[CASH] += part
        if len(weights) > 0 and low < high:
            part *= np.float64(high - low) / strengths[i]
        for k in range(low, high):
            j = np.uint64(nodes[k])
            cash[j] += part if len(weights) == 0 else part * weights[k]
            _rise(heap, place, cash, j)
