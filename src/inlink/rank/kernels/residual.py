"""How well PageRank's equation holds, page by page: the certificate of spam mass and of OPIC's limit."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inlink.base.jit import U0, U1, kernel

__all__ = ["largest_residual"]

F8 = npt.NDArray[np.float64]
U8 = npt.NDArray[np.uint64]
U4 = npt.NDArray[np.uint32]

_ROUNDING = 16 * 2.0**-53


@kernel
def largest_residual(
    offsets: U8,
    nodes: U4,
    weights: npt.NDArray[Any],
    teleport: F8,
    jump: float,
    damping: float,
    z: F8,
    x: F8,
    low: np.uint64,
    high: np.uint64,
) -> float:
    """A bound on the largest |F(x) − x| of [low, high), rounding included.

    The arguments are those of ``power_round`` in kernels/pagerank.py. Sums are compensated (Neumaier 1974), so that the
    bound does not grow with a page's inlinks: it is told in proportion to the rank of the least page.
    """
    step = U1 if len(teleport) > 1 else U0
    largest = 0.0
    for i in range(low, high):
        total, lost = 0.0, 0.0
        for k in range(offsets[i], offsets[i + U1]):
            value = z[nodes[k]]
            if len(weights) > 0:
                value *= weights[k]
            raised = total + value
            lost += (total - raised) + value if total >= value else (value - raised) + total
            total = raised
        image = damping * (total + lost) + jump * teleport[i * step]
        largest = max(largest, abs(image - x[i]) + _ROUNDING * (image + x[i]))
    return largest
