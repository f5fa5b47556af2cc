"""Sums along rows, from which every algorithm of this room is made."""

from typing import NamedTuple

import numpy as np
from numpy import float64, uint32, uint64

from inlink.base.arrays import AnyArray, Float64Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, Index, inlined, kernel, prefetch

__all__ = [
    "ARCS_AHEAD",
    "Inlinks",
    "WeightedRows",
    "add_compensated",
    "chunk_nodes",
    "compensated_sum",
    "num_linking",
    "pull",
    "row_strengths",
    "row_sum",
    "row_sum_ahead",
]

ARCS_AHEAD = uint64(128)
"""A pass over consecutive rows prefetches the values of sources this number of arcs before it reads them."""

_U2 = uint64(2)


class WeightedRows(NamedTuple):
    """Compressed sparse rows in the form for kernels.

    Attributes
    ----------
    offsets : uint64[n + 1]
        The place where each node's row begins.
    nodes : uint32[m]
        The other ends of the arcs.
    weights : uint32[m], float64[m] or float64[0]
        The arcs' weights; empty if each arc counts 1.
    """

    offsets: UInt64Array
    nodes: UInt32Array
    weights: AnyArray


class Inlinks(NamedTuple):
    """The rows of :class:`inlink.graph.rows.SplitRows` in the form for kernels.

    Attributes
    ----------
    offsets : uint64[n + 1]
        The beginning of the row at each place.
    nodes : uint32[m]
        The places of the sources.
    weights : uint32[m], float64[m] or float64[0]
        The arcs' weights; empty if each arc counts 1.
    linking : uint32[l] or uint32[0]
        The linking nodes, increasing. If it is empty, places are node numbers.
    """

    offsets: UInt64Array
    nodes: UInt32Array
    weights: AnyArray
    linking: UInt32Array


@kernel(allocates=False)
def num_linking(linking: UInt32Array, node: uint64) -> uint64:
    """The number of linking nodes below a node; the node itself if ``linking`` is empty."""
    if len(linking) == 0:
        return node
    low, high = U0, uint64(len(linking))
    while low < high:
        middle = (low + high) // uint64(2)
        if linking[middle] < node:
            low = middle + U1
        else:
            high = middle
    return low


@kernel
def chunk_nodes(
    linking: UInt32Array, low: uint64, high: uint64
) -> tuple[UInt32Array, uint64, uint64, uint64]:
    """The nodes of [low, high), uint32[high − low], linking nodes first, with the number of linking nodes.

    The places of the linking nodes begin at the third result, those of the others at the fourth. Rows are read in this
    order: where linking and dangling nodes took turns, the processor would guess a branch wrong at each change.
    """
    nodes = np.empty(high - low, uint32)
    first, last = num_linking(linking, low), num_linking(linking, high)
    if len(linking) == 0:
        for i in range(low, high):
            nodes[i - low] = i
    else:
        for k in range(first, last):
            nodes[k - first] = linking[k]
        at, i = last - first, low
        for k in range(first, last):
            for j in range(i, uint64(linking[k])):
                nodes[at] = j
                at += U1
            i = uint64(linking[k]) + U1
        for j in range(i, high):
            nodes[at] = j
            at += U1
    return nodes, last - first, first, uint64(len(linking)) + low - first


@inlined
def row_sum(
    total: float, offsets: UInt64Array, nodes: UInt32Array, weights: AnyArray, x: AnyArray, i: Index
) -> float:
    """Return ``total`` + Σ_k weights[k] · x[nodes[k]] over the arcs k of row i.

    Even and odd arcs have a sum each, because an addition waits for the one before in its sum. Long rows take half as
    long.
    """
    other = 0.0
    k, end = offsets[i], offsets[i + U1]
    while k + U1 < end:
        total += x[nodes[k]] if len(weights) == 0 else weights[k] * x[nodes[k]]
        other += x[nodes[k + U1]] if len(weights) == 0 else weights[k + U1] * x[nodes[k + U1]]
        k += _U2
    if k < end:
        total += x[nodes[k]] if len(weights) == 0 else weights[k] * x[nodes[k]]
    return total + other


@inlined
def row_sum_ahead(
    total: float,
    offsets: UInt64Array,
    nodes: UInt32Array,
    weights: AnyArray,
    x: AnyArray,
    i: Index,
    ahead: uint64,
) -> float:
    """Return :func:`row_sum`, and prefetch the value that is read ``ahead`` arcs later.

    For passes in falling order, ``ahead`` is 2⁶⁴ − k: k arcs back. Only kernels that do not allocate may call this.
    """
    other, last = 0.0, uint64(len(nodes)) - U1
    k, end = offsets[i], offsets[i + U1]
    while k + U1 < end:
        soon = k + ahead if k + ahead < last else k
        prefetch(x, uint64(nodes[soon]))
        prefetch(x, uint64(nodes[soon + U1]))
        total += x[nodes[k]] if len(weights) == 0 else weights[k] * x[nodes[k]]
        other += x[nodes[k + U1]] if len(weights) == 0 else weights[k + U1] * x[nodes[k + U1]]
        k += _U2
    if k < end:
        prefetch(x, uint64(nodes[k + ahead if k + ahead < last else k]))
        total += x[nodes[k]] if len(weights) == 0 else weights[k] * x[nodes[k]]
    return total + other


@inlined
def add_compensated(total: float, lost: float, value: float) -> tuple[float, float]:
    """``total`` + ``value``, and the sum of all rounding errors so far (Neumaier 1974).

    For any number of values, the sum of the two results is exact to two roundings.
    """
    raised = total + value
    lost += (total - raised) + value if abs(total) >= abs(value) else (value - raised) + total
    return raised, lost


@kernel(allocates=False)
def _pull(
    rows: Inlinks,
    x: Float64Array,
    y: Float64Array,
    at: UInt32Array,
    linked: uint64,
    first: uint64,
    rest: uint64,
) -> None:
    # A kernel of its own, because Numba counts references at each prefetch in kernels that allocate, as `pull` does.
    offsets, nodes, weights, _ = rows
    for t in range(U0, uint64(len(at))):
        place = first + t if t < linked else rest + t - linked
        y[uint64(at[t])] = row_sum_ahead(0.0, offsets, nodes, weights, x, place, ARCS_AHEAD)


@kernel
def pull(rows: Inlinks, x: Float64Array, y: Float64Array, low: uint64, high: uint64) -> None:
    """Write y[i] = Σ_k weights[k] · x[nodes[k]] over the row of each node i in [low, high); x is by place."""
    at, linked, first, rest = chunk_nodes(rows.linking, low, high)
    _pull(rows, x, y, at, linked, first, rest)


@kernel
def row_strengths(
    offsets: UInt64Array, weights: AnyArray, strengths: Float64Array, low: uint64, high: uint64
) -> None:
    """Write the sum of each row's weights, compensated."""
    for i in range(low, high):
        total, lost = 0.0, 0.0
        for k in range(offsets[i], offsets[i + U1]):
            total, lost = add_compensated(total, lost, float64(weights[k]))
        strengths[i] = total + lost


@kernel
def compensated_sum(x: Float64Array) -> float:
    """Σ x[i], compensated."""
    total, lost = 0.0, 0.0
    for i in range(U0, uint64(len(x))):
        total, lost = add_compensated(total, lost, x[i])
    return total + lost
