"""The loops of PageRank: Gauss–Seidel sweeps over the contributions z = x / strength, the round that certifies a
ranking, and the vector work of extrapolation.

Sweeps go over *places*, at which the rows stand: linking nodes only, if the inlinks are split. Rounds go over nodes,
the linking nodes of each chunk first.
"""

from typing import NamedTuple

import numpy as np
from numpy import float64, uint32, uint64

from inlink.base.arrays import AnyArray, BoolArray, Float32Array, Float64Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, Index, inlined, kernel, prefetch
from inlink.rank.kernels.gather import (
    ARCS_AHEAD,
    add_compensated,
    chunk_nodes,
    num_linking,
    row_sum,
    row_sum_ahead,
)

__all__ = [
    "AHEAD",
    "Equation",
    "Places",
    "contributions",
    "dangling_mass",
    "depth_first_order",
    "difference_products",
    "extrapolate",
    "finish_dangling",
    "observe",
    "power_round",
    "scan_arcs",
    "settle",
    "sweep",
    "sweep_in_order",
]


AHEAD = uint64(8)
"""A sweep that does not follow the order of the places prefetches the arcs of a row this number of rows before."""

_BLOCK = uint64(2048)
_U2, _U3, _U4 = (uint64(k) for k in (2, 3, 4))


class Places(NamedTuple):
    """The parts of :class:`Equation` that do not depend on how arcs are stored; see there."""

    linking: UInt32Array
    strengths: AnyArray
    teleport: Float64Array


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
            begin, end = offsets[i], offsets[i + U1]
            below, above = U0, U0
            # There are no branches, because the processor would often mispredict them.
            for k in range(begin, end):
                below += uint64(nodes[k] < i)
                above += uint64(nodes[k] > i)
            smaller += below
            larger += above
            if below + above < end - begin:
                if len(weights) == 0:
                    loops[i] = 1
                else:
                    for k in range(begin, end):
                        if nodes[k] == i:
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


@kernel(allocates=False)
def sweep(
    equation: Equation, loops: AnyArray, z: AnyArray, downwards: bool, low: uint64, high: uint64
) -> None:
    """One Gauss–Seidel sweep over the rows at the places [low, high), in increasing or decreasing order.

    Rows of dangling nodes are left out: nothing depends on them. ``z`` may be float32; sums are float64.
    """
    offsets, nodes, weights, _, strengths, teleport, damping = equation
    step = U1 if len(teleport) > 1 else U0
    base = (1.0 - damping) / damping
    ahead = U0 - ARCS_AHEAD if downwards else ARCS_AHEAD
    for t in range(low, high):
        i = high - U1 - (t - low) if downwards else t
        if strengths[i] != 0:
            total = row_sum_ahead(base * teleport[i * step], offsets, nodes, weights, z, i, ahead)
            z[i] = solved(total, float64(z[i]), strengths[i], loops[i], damping)


@kernel(allocates=False)
def sweep_in_order(
    equation: Equation, loops: AnyArray, z: AnyArray, order: UInt32Array, low: uint64, high: uint64
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
        z[i] = solved(total, float64(z[i]), strengths[i], loops[i], damping)


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


@kernel(allocates=False)
def _finish_rows(
    equation: Equation,
    z: Float64Array,
    x: Float64Array,
    at: UInt32Array,
    linked: uint64,
    first: uint64,
    rest: uint64,
) -> None:
    offsets, nodes, weights, _, strengths, teleport, damping = equation
    step = U1 if len(teleport) > 1 else U0
    for t in range(U0, uint64(len(at))):
        i = uint64(at[t])
        place = first + t if t < linked else rest + t - linked
        if links(strengths, place):
            x[i] = z[place] * strengths[place]
        else:
            total = row_sum_ahead(0.0, offsets, nodes, weights, z, place, ARCS_AHEAD)
            x[i] = damping * total + (1.0 - damping) * teleport[i * step]


@kernel
def finish_dangling(equation: Equation, z: Float64Array, x: Float64Array, low: uint64, high: uint64) -> None:
    """Write x of the nodes [low, high): z · strength if a node has outlinks, the sum of its row if it is dangling."""
    at, linked, first, rest = chunk_nodes(equation.linking, low, high)
    _finish_rows(equation, z, x, at, linked, first, rest)


@kernel
def contributions(
    equation: Equation, x: Float64Array, scale: float, z: AnyArray, low: uint64, high: uint64
) -> None:
    """Write z = scale · x / strength of the places [low, high); 0 for dangling nodes. A uniform x may be one number."""
    _, _, _, linking, strengths, _, _ = equation
    step = U1 if len(x) > 1 else U0
    for place in range(low, high):
        i = uint64(linking[place]) if len(linking) > 0 else place
        z[place] = scale * x[i * step] / strengths[place] if strengths[place] != 0 else 0.0


@kernel(allocates=False)
def _power_rows(
    equation: Equation,
    jump: float,
    z: AnyArray,
    x: Float64Array,
    y: Float64Array,
    at: UInt32Array,
    linked: uint64,
    first: uint64,
    rest: uint64,
) -> tuple[float, float]:
    offsets, nodes, weights, _, strengths, teleport, damping = equation
    step = U1 if len(teleport) > 1 else U0
    change, roundings = 0.0, 0.0
    for t in range(U0, uint64(len(at))):
        i = uint64(at[t])
        place = first + t if t < linked else rest + t - linked
        total = row_sum_ahead(0.0, offsets, nodes, weights, z, place, ARCS_AHEAD)
        value = damping * total + jump * teleport[i * step]
        own = value
        if len(x) > 0:
            own = x[i]
        size = abs(value) + abs(own)
        if len(x) == 0 and links(strengths, place):
            own = float64(z[place]) * strengths[place]
        change += abs(value - own) if len(x) > 0 else value - own
        roundings += float64(offsets[place + U1] - offsets[place] + uint64(16)) * size
        if len(y) > 0:
            y[i] = value
    return change, roundings


@kernel
def power_round(
    equation: Equation,
    jump: float,
    z: AnyArray,
    x: Float64Array,
    y: Float64Array,
    low: uint64,
    high: uint64,
) -> tuple[float, float]:
    """Write y = F(x), unless ``y`` is empty. Return, over the nodes [low, high), Σ|F(x) − x| and
    Σ (inlinks + 16) · (F(x) + |x|).

    ``jump`` is damping · Σ_dangling x + 1 − damping. The second sum times 2⁻⁵³ bounds what rounding can have
    done to the first: a sum of k + 1 terms above 0 is exact to k + 1 roundings, and each term to a few.

    If ``x`` is empty, it is z · strength for nodes with outlinks and F(x) for the others. The first result is then
    Σ (F(x) − x), and the second one has F(x) in place of x.
    """
    at, linked, first, rest = chunk_nodes(equation.linking, low, high)
    return _power_rows(equation, jump, z, x, y, at, linked, first, rest)


@kernel(allocates=False)
def settle(
    equation: Places, z: AnyArray, y: Float64Array, shift: float, total: float, low: uint64, high: uint64
) -> tuple[float, float]:
    """Compute y = (y + shift · teleport) / total for the nodes [low, high).

    Return Σ|y − x| and Σ (y − x) over those with outlinks, where x is z · strength and y is not yet divided.
    """
    linking, strengths, teleport = equation
    step = U1 if len(teleport) > 1 else U0
    change, drift = 0.0, 0.0
    place = num_linking(linking, low)
    for i in range(low, high):
        value = y[i] + shift * teleport[i * step]
        y[i] = value / total
        if len(linking) == 0 or (place < uint64(len(linking)) and linking[place] == i):
            if strengths[place] != 0:
                off = value - float64(z[place]) * strengths[place]
                change += abs(off)
                drift += off
            place += U1
    return change, drift


@kernel(allocates=False)
def observe(
    z: AnyArray,
    before: AnyArray,
    differences: Float32Array,
    slot: uint64,
    strengths: AnyArray,
    low: uint64,
    high: uint64,
) -> tuple[float, float]:
    """Write differences[slot] = z − before and before = z. Return Σ|z − before|·strengths and Σ z·strengths."""
    change, mass = 0.0, 0.0
    for i in range(low, high):
        value = float64(z[i])
        difference = value - before[i]
        differences[slot, i] = difference
        before[i] = value
        change += abs(difference) * strengths[i]
        mass += value * strengths[i]
    return change, mass


@kernel(allocates=False)
def difference_products(
    differences: Float32Array, count: uint64, sums: Float64Array, low: uint64, high: uint64
) -> None:
    """Add the products of the first ``count`` differences with one another, over [low, high), to ``sums``.

    ``sums`` is float64[k, k]. Only its lower triangle is written.
    """
    for begin in range(low, high, _BLOCK):
        # A block of all differences fits in the first cache. A product has four sums, because additions to one sum wait
        # for each other.
        end = min(begin + _BLOCK, high)
        whole = begin + ((end - begin) & ~_U3)
        for a in range(U0, count):
            for b in range(U0, a + U1):
                first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
                for i in range(begin, whole, _U4):
                    first += float64(differences[a, i]) * differences[b, i]
                    second += float64(differences[a, i + U1]) * differences[b, i + U1]
                    third += float64(differences[a, i + _U2]) * differences[b, i + _U2]
                    fourth += float64(differences[a, i + _U3]) * differences[b, i + _U3]
                for i in range(whole, end):
                    first += float64(differences[a, i]) * differences[b, i]
                sums[a, b] += (first + second) + (third + fourth)


@kernel(allocates=False)
def extrapolate(
    z: AnyArray,
    before: AnyArray,
    differences: Float32Array,
    share: Float64Array,
    low: uint64,
    high: uint64,
) -> None:
    """Compute z −= Σ_k share[k] · differences[k]; then before = z."""
    for i in range(low, high):
        value = float64(z[i])
        for k in range(U0, uint64(len(share))):
            value -= share[k] * differences[k, i]
        z[i] = value
        before[i] = value
