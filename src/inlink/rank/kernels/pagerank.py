"""The loops of PageRank: Gauss–Seidel sweeps in the contributions z = x / strength, the certifying round,
and the vector work of Anderson acceleration.

``strengths`` is uint32[n] (outdegrees) or float64[n] (sums of weights); 0 marks a dangling node. ``teleport``
is float64[n], or float64[1] for the uniform one. ``weights`` is empty where each arc counts 1.

The sum of a row is written out wherever it is needed: as a kernel of its own it is not inlined, and a call takes
30 ns a row, 11.2 ms a sweep of cnr-2000 instead of 3.3.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from inlink.base.jit import U0, U1, kernel

__all__ = [
    "accelerate",
    "contributions",
    "depth_first_order",
    "dots",
    "finish_dangling",
    "new_difference",
    "power_round",
    "scan_arcs",
    "sweep",
    "sweep_in_order",
]

F8 = npt.NDArray[np.float64]
F4 = npt.NDArray[np.float32]
U8 = npt.NDArray[np.uint64]
U4 = npt.NDArray[np.uint32]
Any1 = npt.NDArray[Any]


@kernel
def scan_arcs(
    offsets: U8, nodes: U4, weights: Any1, strengths: Any1, loops: Any1, low: np.uint64, high: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """Fill ``loops`` with the weights of self-loops; count the arcs between linking nodes that come from a
    smaller and from a larger number.
    """
    smaller, larger = U0, U0
    for i in range(low, high):
        loops[i] = 0
        if strengths[i] != 0:
            for k in range(offsets[i], offsets[i + U1]):
                j = np.uint64(nodes[k])
                if j < i:
                    smaller += U1
                elif j > i:
                    larger += U1
                elif len(weights) == 0:
                    loops[i] = 1
                else:
                    loops[i] = weights[k]
    return smaller, larger


@kernel
def depth_first_order(
    offsets: U8,
    nodes: U4,
    strengths: Any1,
    seen: npt.NDArray[np.bool_],
    order: U4,
    low: np.uint64,
    high: np.uint64,
) -> np.uint64:
    """The linking nodes of [low, high) in postorder of a depth-first walk along inlinks, written to order[low:…].

    A node stands behind those that link to it, cycles apart. Returns where the order ends.
    """
    stack = np.empty(high - low + U1, np.uint32)
    place = np.empty(high - low + U1, np.uint64)
    end = low
    for root in range(low, high):
        if seen[root] or strengths[root] == 0:
            continue
        seen[root] = True
        stack[U0], place[U0] = root, offsets[root]
        depth = U1
        while depth > U0:
            top = depth - U1
            i = np.uint64(stack[top])
            if place[top] < offsets[i + U1]:
                j = np.uint64(nodes[place[top]])
                place[top] += U1
                if low <= j < high and not seen[j]:
                    seen[j] = True
                    stack[depth], place[depth] = j, offsets[j]
                    depth += U1
            else:
                order[end] = i
                end += U1
                depth = top
    return end


@kernel
def sweep(
    offsets: U8,
    nodes: U4,
    weights: Any1,
    strengths: Any1,
    loops: Any1,
    teleport: F8,
    damping: float,
    z: F8,
    downwards: bool,
    low: np.uint64,
    high: np.uint64,
) -> None:
    """Gauss–Seidel over the rows of [low, high), each node's self-loop solved: z[i] = x[i] / strengths[i] with
    x[i] = (damping · Σ_{j→i, j≠i} w z[j] + (1 − damping) · teleport[i]) / (1 − damping · loops[i] / strengths[i]).

    Rows of dangling nodes are left out: nothing depends on them.
    """
    step = U1 if len(teleport) > 1 else U0
    base = (1.0 - damping) / damping
    for t in range(low, high):
        i = high - U1 - (t - low) if downwards else t
        if strengths[i] != 0:
            total = base * teleport[i * step]
            if len(weights) == 0:
                for k in range(offsets[i], offsets[i + U1]):
                    total += z[nodes[k]]
            else:
                for k in range(offsets[i], offsets[i + U1]):
                    total += weights[k] * z[nodes[k]]
            # the division does not wait for the sum, so that rows overlap in the processor
            z[i] = (total - loops[i] * z[i]) * (damping / (strengths[i] - damping * loops[i]))


@kernel
def sweep_in_order(
    offsets: U8,
    nodes: U4,
    weights: Any1,
    strengths: Any1,
    loops: Any1,
    teleport: F8,
    damping: float,
    z: F8,
    order: U4,
    low: np.uint64,
    high: np.uint64,
) -> None:
    """:func:`sweep` over the rows order[low:high]."""
    step = U1 if len(teleport) > 1 else U0
    base = (1.0 - damping) / damping
    for t in range(low, high):
        i = np.uint64(order[t])
        total = base * teleport[i * step]
        if len(weights) == 0:
            for k in range(offsets[i], offsets[i + U1]):
                total += z[nodes[k]]
        else:
            for k in range(offsets[i], offsets[i + U1]):
                total += weights[k] * z[nodes[k]]
        z[i] = (total - loops[i] * z[i]) * (damping / (strengths[i] - damping * loops[i]))


@kernel
def finish_dangling(
    offsets: U8,
    nodes: U4,
    weights: Any1,
    strengths: Any1,
    teleport: F8,
    damping: float,
    z: F8,
    x: F8,
    low: np.uint64,
    high: np.uint64,
) -> None:
    """Make x from z: a linking node's is z · strength, a dangling node's the sum of its row."""
    step = U1 if len(teleport) > 1 else U0
    for i in range(low, high):
        if strengths[i] != 0:
            x[i] = z[i] * strengths[i]
        else:
            total = 0.0
            if len(weights) == 0:
                for k in range(offsets[i], offsets[i + U1]):
                    total += z[nodes[k]]
            else:
                for k in range(offsets[i], offsets[i + U1]):
                    total += weights[k] * z[nodes[k]]
            x[i] = damping * total + (1.0 - damping) * teleport[i * step]


@kernel
def contributions(x: F8, strengths: Any1, scale: float, z: F8, low: np.uint64, high: np.uint64) -> None:
    """Make z = scale · x / strengths, 0 for dangling nodes."""
    for i in range(low, high):
        z[i] = scale * x[i] / strengths[i] if strengths[i] != 0 else 0.0


@kernel
def power_round(
    offsets: U8,
    nodes: U4,
    weights: Any1,
    teleport: F8,
    jump: float,
    damping: float,
    z: F8,
    x: F8,
    y: F8,
    low: np.uint64,
    high: np.uint64,
) -> tuple[float, float]:
    """Make y = F(x), unless ``y`` is empty; returns, over [low, high), Σ|F(x) − x| and
    Σ (inlinks + 16) · (F(x) + |x|).

    ``jump`` is damping · Σ_dangling x + 1 − damping. The second sum times 2⁻⁵³ bounds what rounding can have
    done to the first: a sum of k + 1 terms above 0 is exact to k + 1 roundings, and each term to a few.
    """
    step = U1 if len(teleport) > 1 else U0
    change, roundings = 0.0, 0.0
    for i in range(low, high):
        total = 0.0
        if len(weights) == 0:
            for k in range(offsets[i], offsets[i + U1]):
                total += z[nodes[k]]
        else:
            for k in range(offsets[i], offsets[i + U1]):
                total += weights[k] * z[nodes[k]]
        value = damping * total + jump * teleport[i * step]
        change += abs(value - x[i])
        roundings += np.float64(offsets[i + U1] - offsets[i] + np.uint64(16)) * (abs(value) + abs(x[i]))
        if len(y) > 0:
            y[i] = value
    return change, roundings


@kernel
def new_difference(
    z: F8, before: F8, last: F4, difference: F4, strengths: Any1, low: np.uint64, high: np.uint64
) -> tuple[float, float]:
    """With f = z − before: difference = f − last, then last = f. Returns Σ|f|·strengths and Σ z·strengths."""
    change, mass = 0.0, 0.0
    for i in range(low, high):
        f = z[i] - before[i]
        difference[i] = f - last[i]
        last[i] = f
        change += abs(f) * strengths[i]
        mass += z[i] * strengths[i]
    return change, mass


@kernel
def dots(vectors: npt.NDArray[np.float32], with_: F4, found: F8, low: np.uint64, high: np.uint64) -> None:
    """found[k] = Σ vectors[k, i] · with_[i] over [low, high), in float64."""
    for k in range(U0, np.uint64(len(vectors))):
        a, b, c, d = 0.0, 0.0, 0.0, 0.0  # four sums, or each addition would wait for the one before
        whole = low + ((high - low) & ~np.uint64(3))
        for i in range(low, whole, np.uint64(4)):
            a += np.float64(vectors[k, i]) * with_[i]
            b += np.float64(vectors[k, i + U1]) * with_[i + U1]
            c += np.float64(vectors[k, i + np.uint64(2)]) * with_[i + np.uint64(2)]
            d += np.float64(vectors[k, i + np.uint64(3)]) * with_[i + np.uint64(3)]
        for i in range(whole, high):
            a += np.float64(vectors[k, i]) * with_[i]
        found[k] = (a + b) + (c + d)


@kernel
def accelerate(
    z: F8,
    before: F8,
    moves: npt.NDArray[np.float32],
    differences: npt.NDArray[np.float32],
    share: F8,
    slot: np.uint64,
    low: np.uint64,
    high: np.uint64,
) -> None:
    """Do z −= Σ_k share[k] · (moves[k] + differences[k]); then moves[slot] = z − before, and before = z."""
    for i in range(low, high):
        value = z[i]
        for k in range(U0, np.uint64(len(share))):
            value -= share[k] * (np.float64(moves[k, i]) + np.float64(differences[k, i]))
        moves[slot, i] = value - before[i]
        z[i] = value
        before[i] = value
