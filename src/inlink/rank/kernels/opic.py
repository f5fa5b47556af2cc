"""The loops of OPIC: visits of pages, which pass on their cash.

The virtual page gives the same amount to all n pages, in one step. Each page's cash is ``cash[i] + virtual[EACH]``,
where ``virtual[EACH]`` is the amount that the virtual page has given to each page so far. This does not change the
order of the pages by cash.
"""

from typing import NamedTuple

from numpy import float64, uint32, uint64

from inlink.base.arrays import AnyArray, Float64Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, Index, inlined, kernel

__all__ = ["CASH", "EACH", "HISTORY", "CashLinks", "Economy", "Heap", "visit_in_order", "visit_richest"]

# of the virtual page: what it has, what it has handed over, and what it has given to each page
CASH, HISTORY, EACH = 0, 1, 2

_2 = uint64(2)


class CashLinks(NamedTuple):
    """The links along which pages pass on their cash.

    Attributes
    ----------
    offsets : uint64[n + 1]
        The place where each page's outlinks begin.
    nodes : uint32[m]
        The pages that are linked to.
    weights : uint32[m], float64[m] or float64[0]
        The weights of the links; empty if each counts 1.
    strengths : uint32[n] or float64[n]
        The sum of each page's weights.
    """

    offsets: UInt64Array
    nodes: UInt32Array
    weights: AnyArray
    strengths: AnyArray


class Economy(NamedTuple):
    """The cash of the pages and of the virtual page.

    Attributes
    ----------
    cash : float64[n]
        The cash of each page, less ``virtual[EACH]``.
    history : float64[n]
        The cash that each page has passed on.
    virtual : float64[3]
        The virtual page: see :data:`CASH`, :data:`HISTORY`, :data:`EACH`.
    """

    cash: Float64Array
    history: Float64Array
    virtual: Float64Array


class Heap(NamedTuple):
    """The pages in a heap, with the most cash on top. Of pages with the same cash, the smaller number is above.

    Attributes
    ----------
    pages : uint32[n]
        The heap.
    place : uint32[n]
        The place of each page in the heap.
    """

    pages: UInt32Array
    place: UInt32Array


@inlined
def visit_virtual(virtual: Float64Array, n: Index) -> None:
    """Visit the virtual page: each of the n pages gets the same amount."""
    virtual[HISTORY] += virtual[CASH]
    virtual[EACH] += virtual[CASH] / float64(n)
    virtual[CASH] = 0.0


@inlined
def spend(
    cash: Float64Array, history: Float64Array, virtual: Float64Array, i: Index, degree: uint64
) -> float:
    """Take page i's cash and give the virtual page its part. Return the part of each outlink if they weigh the same."""
    spent = cash[i] + virtual[EACH]
    history[i] += spent
    cash[i] = -virtual[EACH]
    part = spent / float64(degree + U1)
    virtual[CASH] += part
    return part


@kernel(allocates=False)
def visit_in_order(links: CashLinks, order: UInt32Array, economy: Economy) -> None:
    """Visit the pages of ``order``, uint32[…], in turn; n is the virtual page."""
    offsets, nodes, weights, strengths = links
    cash, history, virtual = economy
    n = uint64(len(cash))
    for q in range(U0, uint64(len(order))):
        i = uint64(order[q])
        if i == n:
            visit_virtual(virtual, n)
            continue
        low, high = offsets[i], offsets[i + U1]
        part = spend(cash, history, virtual, i, high - low)
        if len(weights) == 0:
            for k in range(low, high):
                cash[nodes[k]] += part
        elif low < high:
            part *= float64(high - low) / strengths[i]
            for k in range(low, high):
                cash[nodes[k]] += part * weights[k]


@kernel(allocates=False)
def _rise(heap: UInt32Array, place: UInt32Array, cash: Float64Array, node: uint64) -> None:
    """Move a node whose cash has grown up to its place in the heap."""
    at = uint64(place[node])
    while at > U0:
        up = (at - U1) >> U1
        other = uint64(heap[up])
        if cash[other] > cash[node] or (cash[other] == cash[node] and other < node):
            break
        heap[at] = uint32(other)
        place[other] = uint32(at)
        at = up
    heap[at] = uint32(node)
    place[node] = uint32(at)


@kernel(allocates=False)
def _sink(heap: UInt32Array, place: UInt32Array, cash: Float64Array) -> None:
    """Move the top node, whose cash has shrunk, down to its place in the heap."""
    n = uint64(len(heap))
    node, at = uint64(heap[0]), U0
    while True:
        down = _2 * at + U1
        if down >= n:
            break
        below = uint64(heap[down])
        if down + U1 < n:
            other = uint64(heap[down + U1])
            if cash[other] > cash[below] or (cash[other] == cash[below] and other < below):
                down, below = down + U1, other
        if cash[node] > cash[below] or (cash[node] == cash[below] and node < below):
            break
        heap[at] = uint32(below)
        place[below] = uint32(at)
        at = down
    heap[at] = uint32(node)
    place[node] = uint32(at)


@kernel(allocates=False)
def visit_richest(links: CashLinks, visits: uint64, heap: Heap, economy: Economy) -> None:
    """Visit the page with the most cash, ``visits`` times; of several the smallest, the virtual page last."""
    offsets, nodes, weights, strengths = links
    pages, place = heap
    cash, history, virtual = economy
    for _ in range(U0, visits):
        i = uint64(pages[0])
        if virtual[CASH] > cash[i] + virtual[EACH]:
            visit_virtual(virtual, len(cash))
            continue
        low, high = offsets[i], offsets[i + U1]
        part = spend(cash, history, virtual, i, high - low)
        _sink(pages, place, cash)
        if len(weights) > 0 and low < high:
            part *= float64(high - low) / strengths[i]
        for k in range(low, high):
            j = uint64(nodes[k])
            cash[j] += part if len(weights) == 0 else part * weights[k]
            _rise(pages, place, cash, j)
