"""The loops of PageRank: Gauss–Seidel sweeps over the contributions z = x / strength, the round that certifies a
ranking, and the vector work of Anderson acceleration.

Sweeps go over *places*, at which the rows stand: linking nodes only, if the inlinks are split. Rounds go over nodes,
the linking nodes of each chunk first.
"""

from typing import NamedTuple

import numpy as np
from numpy import float32, float64, uint32, uint64

from inlink.base.arrays import AnyArray, BoolArray, Float32Array, Float64Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, Index, inlined, kernel, prefetch
from inlink.rank.kernels.gather import add_compensated, chunk_nodes, row_sum

__all__ = [
    "AHEAD",
    "Equation",
    "accelerate",
    "contributions",
    "dangling_mass",
    "depth_first_order",
    "finish_dangling",
    "observe",
    "power_round",
    "scan_arcs",
    "sweep",
    "sweep_in_order",
]


AHEAD = uint64(8)
"""The number of rows ahead that a sweep prefetches. Only sweeps that do not follow the order of the places prefetch."""


class Equation(NamedTuple):
    """The equation x = damping · Pᵀx + (damping · Σ_dangling x + 1 − damping) · teleport.

    Attributes
    ----------
    offsets, nodes, weights, linking
        The rows of inlinks, as in :class:`inlink.rank.kernels.gather.Inlinks`.
    strengths : uint32[l] or float64[l]
        By place, each node's outdegree, or the sum of its outlinks' weights. l is the number of linking nodes if the
        rows are split. Otherwise it is n, and 0 marks a dangling node.
    teleport : float64[n] or float64[1]
        The teleport distribution by node; one number if it is uniform. In sweeps by place, float64[l].
    damping : float
        The share of visits that follow a link.
    """

    offsets: UInt64Array
    nodes: UInt32Array
    weights: AnyArray
    linking: UInt32Array
    strengths: AnyArray
    teleport: Float64Array
    damping: float


@inlined
def solved(total: float, own: float, strength: float, loop: float, damping: float) -> float:
    """Z[i] such that x[i] = z[i] · strength satisfies its equation, the self-loop solved on the diagonal ::

        x[i] = (damping · Σ_{j→i, j≠i} w z[j] + (1 − damping) · teleport[i]) / (1 − damping · loop / strength)

    ``own`` is z[i] as it was, and ``total`` is Σ_{j→i} w z[j] + (1 − damping) / damping · teleport[i].
    """
    # The division does not wait for the sum, so that rows overlap in the processor.
    return (total - loop * own) * (damping / (strength - damping * loop))


@kernel
def scan_arcs(equation: Equation, loops: AnyArray, low: uint64, high: uint64) -> tuple[uint64, uint64]:
    """Write the weights of self-loops at the places [low, high) to ``loops``. Return the numbers of arcs
    between linking nodes that come from a node with a smaller number, and from a node with a larger number.
    """
    offsets, nodes, weights, _, strengths, _, _ = equation
    smaller, larger = U0, U0
    for i in range(low, high):
        loops[i] = 0
        if strengths[i] != 0:
            for k in range(offsets[i], offsets[i + U1]):
                j = uint64(nodes[k])
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
    equation: Equation, seen: BoolArray, order: UInt32Array, low: uint64, high: uint64
) -> uint64:
    """Write the places of [low, high) whose nodes have outlinks to ``order[low:]``, in postorder of a depth-first walk
    along inlinks. Return where the order ends.

    A node stands behind those that link to it, except on cycles.
    """
    offsets, nodes, _, _, strengths, _, _ = equation
    stack = np.empty(high - low + U1, uint32)
    place = np.empty(high - low + U1, uint64)
    end = low
    for root in range(low, high):
        if seen[root] or strengths[root] == 0:
            continue
        seen[root] = True
        stack[U0], place[U0] = root, offsets[root]
        depth = U1
        while depth > U0:
            top = depth - U1
            i = uint64(stack[top])
            if place[top] < offsets[i + U1]:
                j = uint64(nodes[place[top]])
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
    equation: Equation, loops: AnyArray, z: Float64Array, downwards: bool, low: uint64, high: uint64
) -> None:
    """One Gauss–Seidel sweep over the rows at the places [low, high), in increasing or decreasing order.

    Rows of dangling nodes are left out: nothing depends on them.
    """
    offsets, nodes, weights, _, strengths, teleport, damping = equation
    step = U1 if len(teleport) > 1 else U0
    base = (1.0 - damping) / damping
    for t in range(low, high):
        i = high - U1 - (t - low) if downwards else t
        if strengths[i] != 0:
            total = row_sum(base * teleport[i * step], offsets, nodes, weights, z, i)
            z[i] = solved(total, z[i], strengths[i], loops[i], damping)


@kernel(allocates=False)
def sweep_in_order(
    equation: Equation, loops: AnyArray, z: Float64Array, order: UInt32Array, low: uint64, high: uint64
) -> None:
    """:func:`sweep` over the rows order[low:high]."""
    offsets, nodes, weights, _, strengths, teleport, damping = equation
    step = U1 if len(teleport) > 1 else U0
    base = (1.0 - damping) / damping
    last = high - U1
    for t in range(low, high):
        # The arcs of a row can be asked for when its offset is there.
        prefetch(offsets, uint64(order[min(t + AHEAD + AHEAD, last)]))
        soon = uint64(order[min(t + AHEAD, last)])
        prefetch(nodes, offsets[soon])
        prefetch(z, soon)
        prefetch(strengths, soon)
        i = uint64(order[t])
        total = row_sum(base * teleport[i * step], offsets, nodes, weights, z, i)
        z[i] = solved(total, z[i], strengths[i], loops[i], damping)


@inlined
def links(strengths: AnyArray, place: Index) -> bool:
    """Return whether the node with this place has outlinks."""
    return place < uint64(len(strengths)) and strengths[place] != 0


@kernel
def dangling_mass(equation: Equation, num_nodes: uint64, x: Float64Array) -> float:
    """Σ x[i] over the dangling ones of all nodes, compensated. A uniform x may be one number."""
    _, _, _, linking, strengths, _, _ = equation
    step = U1 if len(x) > 1 else U0
    total, lost = 0.0, 0.0
    if len(linking) == 0:
        for place in range(U0, uint64(len(strengths))):
            if strengths[place] == 0:
                total, lost = add_compensated(total, lost, x[place * step])
        return total + lost
    i = U0
    for k in range(U0, uint64(len(linking)) + U1):
        end = uint64(linking[k]) if k < uint64(len(linking)) else num_nodes
        for j in range(i, end):
            total, lost = add_compensated(total, lost, x[j * step])
        i = end + U1
    return total + lost


@kernel
def finish_dangling(equation: Equation, z: Float64Array, x: Float64Array, low: uint64, high: uint64) -> None:
    """Write x of the nodes [low, high): z · strength if a node has outlinks, the sum of its row if it is dangling."""
    offsets, nodes, weights, linking, strengths, teleport, damping = equation
    step = U1 if len(teleport) > 1 else U0
    at, linked, first, rest = chunk_nodes(linking, low, high)
    for t in range(U0, high - low):
        i = uint64(at[t])
        place = first + t if t < linked else rest + t - linked
        if links(strengths, place):
            x[i] = z[place] * strengths[place]
        else:
            total = row_sum(0.0, offsets, nodes, weights, z, place)
            x[i] = damping * total + (1.0 - damping) * teleport[i * step]


@kernel
def contributions(
    equation: Equation, x: Float64Array, scale: float, z: Float64Array, low: uint64, high: uint64
) -> None:
    """Write z = scale · x / strength of the places [low, high); 0 for dangling nodes. A uniform x may be one number."""
    _, _, _, linking, strengths, _, _ = equation
    step = U1 if len(x) > 1 else U0
    for place in range(low, high):
        i = uint64(linking[place]) if len(linking) > 0 else place
        z[place] = scale * x[i * step] / strengths[place] if strengths[place] != 0 else 0.0


@kernel
def power_round(
    equation: Equation,
    jump: float,
    z: Float64Array,
    x: Float64Array,
    y: Float64Array,
    low: uint64,
    high: uint64,
) -> tuple[float, float]:
    """Write y = F(x), unless ``y`` is empty. Return, over the nodes [low, high), Σ|F(x) − x| and
    Σ (inlinks + 16) · (F(x) + |x|).

    ``jump`` is damping · Σ_dangling x + 1 − damping. The second sum times 2⁻⁵³ bounds what rounding can have
    done to the first: a sum of k + 1 terms above 0 is exact to k + 1 roundings, and each term to a few.
    """
    offsets, nodes, weights, linking, _, teleport, damping = equation
    step = U1 if len(teleport) > 1 else U0
    change, roundings = 0.0, 0.0
    at, linked, first, rest = chunk_nodes(linking, low, high)
    for t in range(U0, high - low):
        i = uint64(at[t])
        place = first + t if t < linked else rest + t - linked
        total = row_sum(0.0, offsets, nodes, weights, z, place)
        value = damping * total + jump * teleport[i * step]
        change += abs(value - x[i])
        roundings += float64(offsets[place + U1] - offsets[place] + uint64(16)) * (abs(value) + abs(x[i]))
        if len(y) > 0:
            y[i] = value
    return change, roundings


@kernel(allocates=False)
def observe(
    z: Float64Array,
    before: Float64Array,
    last: Float32Array,
    moves: Float32Array,
    differences: Float32Array,
    slot: uint64,
    strengths: AnyArray,
    sums: Float64Array,
    low: uint64,
    high: uint64,
) -> tuple[float, float]:
    """Let f = z − before and d = f − last. Write differences[slot] = d, moves[slot] += d and last = f.

    Write sums[0, k] = Σ differences[k]·d and sums[1, k] = Σ differences[k]·f, float64[2, 3], in float64. Return
    Σ|f|·strengths and Σ z·strengths.
    """
    change, mass = 0.0, 0.0
    a, b, c, d, e, g = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(low, high):
        f = z[i] - before[i]
        difference = float32(f - last[i])
        differences[slot, i] = difference
        moves[slot, i] += difference
        last[i] = f
        first, second = float64(differences[U0, i]), float64(differences[U1, i])
        third = float64(differences[uint64(2), i])
        a += first * difference
        b += second * difference
        c += third * difference
        rounded = float64(float32(f))
        d += first * rounded
        e += second * rounded
        g += third * rounded
        change += abs(f) * strengths[i]
        mass += z[i] * strengths[i]
    sums[U0, U0], sums[U0, U1], sums[U0, uint64(2)] = a, b, c
    sums[U1, U0], sums[U1, U1], sums[U1, uint64(2)] = d, e, g
    return change, mass


@kernel(allocates=False)
def accelerate(
    z: Float64Array,
    before: Float64Array,
    moves: Float32Array,
    share: Float64Array,
    slot: uint64,
    low: uint64,
    high: uint64,
) -> None:
    """Compute z −= Σ_k share[k] · moves[k] for three moves; then moves[slot] = z − before and before = z."""
    a, b, c = share[U0], share[U1], share[uint64(2)]
    for i in range(low, high):
        value = z[i] - (a * moves[U0, i] + b * moves[U1, i] + c * moves[uint64(2), i])
        moves[slot, i] = value - before[i]
        z[i] = value
        before[i] = value
