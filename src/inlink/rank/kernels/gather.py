"""Sums along rows: what every algorithm of the room is made of."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inlink.base.jit import U0, U1, kernel

__all__ = ["pull", "row_strengths", "sum_where_zero"]

F8 = npt.NDArray[np.float64]
U8 = npt.NDArray[np.uint64]
U4 = npt.NDArray[np.uint32]


@kernel
def pull(
    offsets: U8, nodes: U4, weights: npt.NDArray[Any], x: F8, y: F8, low: np.uint64, high: np.uint64
) -> None:
    """y[i] = Σ_k weights[k] · x[nodes[k]] for each row i in [low, high); no weights (an empty array) count as 1."""
    for i in range(low, high):
        total = 0.0
        if len(weights) == 0:
            for k in range(offsets[i], offsets[i + U1]):
                total += x[nodes[k]]
        else:
            for k in range(offsets[i], offsets[i + U1]):
                total += weights[k] * x[nodes[k]]
        y[i] = total


@kernel
def row_strengths(
    offsets: U8, weights: npt.NDArray[Any], strengths: F8, low: np.uint64, high: np.uint64
) -> None:
    """The sum of each row's weights, compensated (Neumaier 1974): exact to two roundings, however long the row."""
    for i in range(low, high):
        total, lost = 0.0, 0.0
        for k in range(offsets[i], offsets[i + U1]):
            value = np.float64(weights[k])
            raised = total + value
            lost += (total - raised) + value if total >= value else (value - raised) + total
            total = raised
        strengths[i] = total + lost


@kernel
def sum_where_zero(x: F8, marks: npt.NDArray[Any]) -> float:
    """Σ x[i] over the i with marks[i] = 0 (the dangling nodes), compensated; of all i if ``marks`` is empty."""
    total, lost = 0.0, 0.0
    for i in range(U0, np.uint64(len(x))):
        if len(marks) == 0 or marks[i] == 0:
            value = x[i]
            raised = total + value
            lost += (total - raised) + value if abs(total) >= abs(value) else (value - raised) + total
            total = raised
    return total + lost
