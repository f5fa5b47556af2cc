"""The residual of PageRank's equation for each page, which certifies spam mass and OPIC's limit."""

from numpy import uint64

from inlink.base.arrays import Float64Array
from inlink.base.jit import U0, U1, kernel
from inlink.rank.kernels.gather import add_compensated, chunk_nodes
from inlink.rank.kernels.pagerank import Equation

__all__ = ["ROUNDING", "largest_residual"]

ROUNDING = 16 * 2.0**-53


@kernel
def largest_residual(
    equation: Equation, jump: float, z: Float64Array, x: Float64Array, low: uint64, high: uint64
) -> float:
    """A bound on the largest |F(x) − x| of the nodes [low, high), rounding included.

    ``jump`` is as in ``power_round`` in kernels/pagerank.py. Sums are compensated, so that the bound does not grow with
    a page's inlinks: it is compared with the rank of the least page.
    """
    offsets, nodes, weights, linking, _, teleport, damping = equation
    step = U1 if len(teleport) > 1 else U0
    largest = 0.0
    at, linked, first, rest = chunk_nodes(linking, low, high)
    for t in range(U0, high - low):
        i = uint64(at[t])
        place = first + t if t < linked else rest + t - linked
        total, lost = 0.0, 0.0
        for k in range(offsets[place], offsets[place + U1]):
            value = z[nodes[k]]
            if len(weights) > 0:
                value *= weights[k]
            total, lost = add_compensated(total, lost, value)
        image = damping * (total + lost) + jump * teleport[i * step]
        largest = max(largest, abs(image - x[i]) + ROUNDING * (image + x[i]))
    return largest
