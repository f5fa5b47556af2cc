"""Sums along rows, from which every algorithm of this room is made."""

from typing import NamedTuple

import numpy as np

from inlink.base.arrays import AnyArray, Float64Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, Index, inlined, kernel

__all__ = ["WeightedRows", "add_compensated", "pull", "row_strengths", "row_sum", "sum_where_zero"]


class WeightedRows(NamedTuple):
    """Compressed sparse rows as kernels take them.

    Attributes
    ----------
    offsets : uint64[n + 1]
        Where each node's row begins.
    nodes : uint32[m]
        The other ends of the arcs.
    weights : uint32[m], float64[m] or float64[0]
        The arcs' weights; empty if each arc counts 1.
    """

    offsets: UInt64Array
    nodes: UInt32Array
    weights: AnyArray


@inlined
def row_sum(
    total: float, offsets: UInt64Array, nodes: UInt32Array, weights: AnyArray, x: Float64Array, i: Index
) -> float:
    """``total`` + Σ_k weights[k] · x[nodes[k]] over the arcs k of row i."""
    if len(weights) == 0:
        for k in range(offsets[i], offsets[i + U1]):
            total += x[nodes[k]]
    else:
        for k in range(offsets[i], offsets[i + U1]):
            total += weights[k] * x[nodes[k]]
    return total


@inlined
def add_compensated(total: float, lost: float, value: float) -> tuple[float, float]:
    """``total`` + ``value``, and what all such additions have lost by rounding (Neumaier 1974).

    The two together are exact to two roundings, however many values are added.
    """
    raised = total + value
    lost += (total - raised) + value if abs(total) >= abs(value) else (value - raised) + total
    return raised, lost


@kernel
def pull(rows: WeightedRows, x: Float64Array, y: Float64Array, low: np.uint64, high: np.uint64) -> None:
    """Write y[i] = Σ_k weights[k] · x[nodes[k]] for each row i in [low, high)."""
    offsets, nodes, weights = rows
    for i in range(low, high):
        y[i] = row_sum(0.0, offsets, nodes, weights, x, i)


@kernel
def row_strengths(
    offsets: UInt64Array, weights: AnyArray, strengths: Float64Array, low: np.uint64, high: np.uint64
) -> None:
    """Write the sum of each row's weights, compensated."""
    for i in range(low, high):
        total, lost = 0.0, 0.0
        for k in range(offsets[i], offsets[i + U1]):
            total, lost = add_compensated(total, lost, np.float64(weights[k]))
        strengths[i] = total + lost


@kernel
def sum_where_zero(x: Float64Array, marks: AnyArray) -> float:
    """Σ x[i] over the i with marks[i] = 0 (the dangling nodes), compensated; of all i if ``marks`` is empty."""
    total, lost = 0.0, 0.0
    for i in range(U0, np.uint64(len(x))):
        if len(marks) == 0 or marks[i] == 0:
            total, lost = add_compensated(total, lost, x[i])
    return total + lost
