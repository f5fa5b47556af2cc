"""Loops of PageRank: sweeps of Gauss–Seidel over blocks of rows, Anderson's mixing, the certificate.

``x`` is the un-normalised PageRank, x = c·Pᵀx + t with t = (1 − c)·v, in which dangling nodes pass nothing on; so
only rows of nodes with outlinks are swept. ``z[j] = x[j] / degree[j]`` is what a node gives to each outlink: one
number to gather an arc.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from inlink.base.jit import U0, U1, kernel

U64 = npt.NDArray[np.uint64]
U32 = npt.NDArray[np.uint32]
F64 = npt.NDArray[np.float64]
F32 = npt.NDArray[np.float32]


@kernel
def strengths(offsets: U64, weights: Any, out: F64) -> None:
    """The sum of each row's weights."""
    for i in range(U0, np.uint64(len(out))):
        total = 0.0
        for k in range(offsets[i], offsets[i + U1]):
            total += weights[k]
        out[i] = total


@kernel
def find_loops(low: np.uint64, high: np.uint64, offsets: U64, nodes: U32, weights: Any, loops: Any) -> None:
    """The weight of each node's self-loop, 0 where there is none."""
    for i in range(low, high):
        a, b = offsets[i], offsets[i + U1]
        while a < b:  # rows are increasing
            middle = (a + b) >> U1
            if np.uint64(nodes[middle]) < i:
                a = middle + U1
            else:
                b = middle
        if a < offsets[i + U1] and np.uint64(nodes[a]) == i:
            loops[i] = weights[a] if len(weights) > 0 else 1


@kernel
def _gather(nodes: U32, weights: Any, z: Any, k: np.uint64, stop: np.uint64) -> float:
    total = 0.0
    if len(weights) > 0:
        for a in range(k, stop):
            total += z[np.uint64(nodes[a])] * np.float64(weights[a])
    else:
        for a in range(k, stop):
            total += z[np.uint64(nodes[a])]
    return total


@kernel
def _first_from(nodes: U32, k: np.uint64, stop: np.uint64, node: np.uint64) -> np.uint64:
    """The first place in an increasing row that holds ``node`` or a later one."""
    while k < stop:
        middle = (k + stop) >> U1
        if np.uint64(nodes[middle]) < node:
            k = middle + U1
        else:
            stop = middle
    return k


@kernel
def sweep(
    low: np.uint64,
    high: np.uint64,
    block: np.uint64,
    offsets: U64,
    nodes: U32,
    weights: Any,
    degrees: Any,
    loops: Any,
    teleport: F64,
    damping: float,
    x: F64,
    z: Any,
    step: F32,
) -> float:
    """Sweep rows ``low`` to ``high`` in place, a block at a time, twice each; returns Σ|step|.

    The second time only the arcs within the block are gathered, whose values and numbers are still in cache: on
    graphs with locality a block's own links are most of its links, and two thirds of the passes over memory do.
    Self-loops are solved on the diagonal.
    """
    outside = np.empty(block, np.float64)
    before = np.empty(block, np.float64)
    begin = np.empty(block, np.uint64)
    end = np.empty(block, np.uint64)
    spread = np.uint64(1 if len(teleport) > 1 else 0)
    total = 0.0
    first = low
    while first < high:
        last = min(first + block, high)
        for i in range(first, last):
            if degrees[i] == 0:
                continue
            r = i - first
            begin[r] = _first_from(nodes, offsets[i], offsets[i + U1], first)
            end[r] = _first_from(nodes, begin[r], offsets[i + U1], last)
            rest = _gather(nodes, weights, z, offsets[i], begin[r])
            rest += _gather(nodes, weights, z, end[r], offsets[i + U1])
            loop = np.float64(loops[i])
            inside = _gather(nodes, weights, z, begin[r], end[r]) - loop * z[i]
            outside[r], before[r] = rest, x[i]
            value = damping * (rest + inside) + (1.0 - damping) * teleport[i * spread]
            x[i] = value / (1.0 - damping * loop / degrees[i])
            z[i] = x[i] / degrees[i]
        for i in range(first, last):
            if degrees[i] == 0:
                continue
            r = i - first
            if end[r] > begin[r]:
                loop = np.float64(loops[i])
                inside = _gather(nodes, weights, z, begin[r], end[r]) - loop * z[i]
                value = damping * (outside[r] + inside) + (1.0 - damping) * teleport[i * spread]
                x[i] = value / (1.0 - damping * loop / degrees[i])
                z[i] = x[i] / degrees[i]
            change = x[i] - before[r]
            step[i] = change
            total += abs(change)
        first = last
    return total


@kernel
def close_history(
    low: np.uint64, high: np.uint64, slot: np.uint64, used: np.uint64, step: F32, steps: Any, moves: Any
) -> F64:
    """Complete the newest differences, and return the products that Anderson's least squares need.

    ``steps[s]`` are differences of successive steps, ``moves[s]`` those of successive swept vectors. Returns
    float64[2·used]: steps[slot]·steps[s] and steps[s]·step.
    """
    products = np.zeros(np.uint64(2) * used, np.float64)
    for i in range(low, high):
        f = step[i]
        steps[slot, i] += f
        moves[slot, i] += f
        newest = np.float64(steps[slot, i])
        for s in range(U0, used):
            d = np.float64(steps[s, i])
            products[s] += newest * d
            products[used + s] += d * f
    return products


@kernel
def mix(
    low: np.uint64,
    high: np.uint64,
    slot: np.uint64,
    used: np.uint64,
    theta: F64,
    degrees: Any,
    step: F32,
    steps: Any,
    moves: Any,
    x: F64,
    z: Any,
) -> None:
    """x ← x − Σ θ_s·moves[s], and begin the next differences in ``slot``."""
    for i in range(low, high):
        if degrees[i] == 0:
            continue
        correction = 0.0
        for s in range(U0, used):
            correction -= theta[s] * moves[s, i]
        x[i] += correction
        z[i] = x[i] / degrees[i]
        moves[slot, i] = correction
        steps[slot, i] = -step[i]


@kernel
def spread_out(low: np.uint64, high: np.uint64, scale: float, degrees: Any, x: F64, z: Any) -> None:
    """Scale x, take dangling nodes out of it, and make z of it."""
    for i in range(low, high):
        if degrees[i] == 0:
            x[i] = 0.0
            z[i] = 0.0
        else:
            x[i] = x[i] * scale
            z[i] = x[i] / degrees[i]


@kernel
def pull(low: np.uint64, high: np.uint64, offsets: U64, nodes: U32, weights: Any, z: F64, y: F64) -> None:
    """y = Pᵀx for the rows ``low`` to ``high``."""
    for i in range(low, high):
        y[i] = _gather(nodes, weights, z, offsets[i], offsets[i + U1])


@kernel
def fill_dangling(
    low: np.uint64, high: np.uint64, degrees: Any, teleport: F64, damping: float, y: F64, x: F64
) -> tuple[float, float]:
    """Give dangling nodes of the un-normalised x their values; returns Σx and Σx over dangling nodes."""
    spread = np.uint64(1 if len(teleport) > 1 else 0)
    total, dangling = 0.0, 0.0
    for i in range(low, high):
        if degrees[i] == 0:
            x[i] = damping * y[i] + (1.0 - damping) * teleport[i * spread]
            dangling += x[i]
        total += x[i]
    return total, dangling


@kernel
def sums(low: np.uint64, high: np.uint64, degrees: Any, x: F64) -> tuple[float, float]:
    """Σx and Σx over dangling nodes."""
    total, dangling = 0.0, 0.0
    for i in range(low, high):
        total += x[i]
        if degrees[i] == 0:
            dangling += x[i]
    return total, dangling


@kernel
def compare(
    low: np.uint64,
    high: np.uint64,
    offsets: U64,
    teleport: F64,
    damping: float,
    dangling: float,
    scale: float,
    y: F64,
    x: F64,
) -> tuple[float, float]:
    """y ← F(x) and x ← scale·x; returns Σ|F(x) − x| and Σ (k_i + 10)·F(x)_i, k_i being the row's length.

    ``y`` is Pᵀx of the x before scaling, ``dangling`` the dangling mass of the x after it. The second sum times
    2⁻⁵³ bounds what rounding can have hidden: a sum of k terms is off by at most k roundings of its value.
    """
    spread = np.uint64(1 if len(teleport) > 1 else 0)
    back = damping * dangling + 1.0 - damping
    residual, rounding = 0.0, 0.0
    for i in range(low, high):
        x[i] = x[i] * scale
        value = damping * y[i] * scale + back * teleport[i * spread]
        y[i] = value
        residual += abs(value - x[i])
        rounding += (offsets[i + U1] - offsets[i] + np.uint64(10)) * max(value, x[i])
    return residual, rounding
