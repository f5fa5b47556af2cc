"""The loops of :mod:`inlink.rank.kernels.pagerank` that read arcs, over coded rows of inlinks.

Sources are added to the same two sums in the same order, so that all results have the same bits.
"""

from typing import NamedTuple

import numpy as np
from numpy import float64, uint8, uint32, uint64

from inlink.base.arrays import AnyArray, BoolArray, Float64Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, Index, inlined, kernel, prefetch
from inlink.graph.kernels.streamvbyte import number_at, opened, quad_at, row_at, size_at, skipped_in, start_of
from inlink.graph.rows import START, CodedRows
from inlink.rank.kernels.gather import add_compensated, num_linking
from inlink.rank.kernels.pagerank import AHEAD, solved
from inlink.rank.kernels.residual import ROUNDING

__all__ = [
    "CodedEquation",
    "depth_first_order",
    "finish_dangling",
    "largest_residual",
    "power_round",
    "scan_arcs",
    "sweep",
    "sweep_in_order",
]

# 3 is also a mask of two bits.
_U2, _U3, _U4 = (uint64(k) for k in (2, 3, 4))
_START = uint64(START)


class CodedEquation(NamedTuple):
    """The equation of :class:`inlink.rank.kernels.pagerank.Equation` on coded rows without weights.

    Attributes
    ----------
    starts, rows, blocks, linking
        The rows, as in :class:`inlink.graph.rows.CodedRows`.
    strengths : uint32[l]
        The outdegree of each linking node.
    teleport, damping
        As in Equation.
    """

    starts: UInt8Array
    rows: UInt8Array
    blocks: UInt64Array
    linking: UInt32Array
    strengths: UInt32Array
    teleport: Float64Array
    damping: float

    @property
    def weights(self) -> Float64Array:
        """The weights of the arcs: none."""
        return np.empty(0)


@inlined
def coded_sum(
    total: float, rows: UInt8Array, at: Index, pivot: Index, z: AnyArray
) -> tuple[float, Index, Index]:
    """``total`` + Σ z[source] over the sources of the row that begins at a byte; the byte after it, and its degree.

    The sum is made of the same two as in :func:`inlink.rank.kernels.gather.row_sum`.
    """
    other = 0.0
    degree, source, slot, at = opened(rows, at, pivot)
    if degree > U0:
        total += z[source]
        control = slot >> _U2
        left = degree - U1
        whole = control + (left >> _U2)
        for q in range(control, whole):
            sizes = uint64(rows[q])
            first, second, third, fourth = quad_at(rows, sizes, at)
            one = source + first + U1
            two = one + second + U1
            three = two + third + U1
            source = three + fourth + U1
            other = (other + z[one]) + z[three]
            total = (total + z[two]) + z[source]
            at += skipped_in(sizes, _U4)
        # The last sources, at most three. Everything is read before it is chosen from, so that the choices become no
        # branches, which the processor would often guess wrong. Numbers that do not belong to the row are not used.
        rest = left & _U3
        sizes = uint64(rows[whole])
        first, second, third, _ = quad_at(rows, sizes, at)
        one = source + (first + U1 if rest > U0 else U0)
        two = one + (second + U1 if rest > U1 else U0)
        three = two + (third + U1 if rest > _U2 else U0)
        first_value, second_value, third_value = z[one], z[two], z[three]
        other += first_value if rest > U0 else 0.0
        total += second_value if rest > U1 else 0.0
        other += third_value if rest > _U2 else 0.0
        at += skipped_in(sizes, rest)
    return total + other, at, degree


@kernel(allocates=False)
def scan_arcs(equation: CodedEquation, loops: AnyArray, low: uint64, high: uint64) -> tuple[uint64, uint64]:
    """See :func:`inlink.rank.kernels.pagerank.scan_arcs`."""
    starts, rows, _, _, _, _, _ = equation
    smaller, larger = U0, U0
    for i in range(low, high):
        degree, source, slot, at = opened(rows, start_of(starts, i), uint64(i))
        loop = uint8(0)
        for k in range(slot, slot + degree):
            if source < i:
                smaller += U1
            elif source > i:
                larger += U1
            else:
                loop = uint8(1)
            if k + U1 < slot + degree:
                size = size_at(rows, k)
                source += number_at(rows, at, size) + U1
                at += size + U1
        loops[i] = loop
    return smaller, larger


@kernel
def depth_first_order(
    equation: CodedEquation, seen: BoolArray, order: UInt32Array, low: uint64, high: uint64
) -> uint64:
    """See :func:`inlink.rank.kernels.pagerank.depth_first_order`."""
    starts, rows, _, _, _, _, _ = equation
    # For each row on the stack: its place, the number of sources left, the next source, and where its gap stands.
    stack = np.empty(high - low + U1, uint32)
    left = np.empty(high - low + U1, uint32)
    nearest = np.empty(high - low + U1, uint32)
    slots = np.empty(high - low + U1, uint64)
    bytes_ = np.empty(high - low + U1, uint64)
    end = low
    for root in range(low, high):
        if seen[root]:
            continue
        depth, pushed = U0, uint64(root)
        seen[root] = True
        pushing = True
        while pushing or depth > U0:
            if pushing:
                degree, source, slot, at = opened(rows, start_of(starts, pushed), pushed)
                stack[depth], left[depth], nearest[depth] = pushed, degree, source
                slots[depth], bytes_[depth] = slot, at
                depth += U1
                pushing = False
            top = depth - U1
            if left[top] > 0:
                j = uint64(nearest[top])
                left[top] -= uint32(1)
                if left[top] > 0:
                    size = size_at(rows, slots[top])
                    nearest[top] = j + number_at(rows, bytes_[top], size) + U1
                    bytes_[top] += size + U1
                    slots[top] += U1
                if low <= j < high and not seen[j]:
                    seen[j] = True
                    pushed, pushing = j, True
            else:
                order[end] = stack[top]
                end += U1
                depth = top
    return end


@kernel(allocates=False)
def sweep(
    equation: CodedEquation,
    loops: AnyArray,
    z: AnyArray,
    downwards: bool,
    low: uint64,
    high: uint64,
) -> None:
    """See :func:`inlink.rank.kernels.pagerank.sweep`."""
    starts, rows, _, _, strengths, teleport, damping = equation
    step = U1 if len(teleport) > 1 else U0
    base = (1.0 - damping) / damping
    for t in range(low, high):
        i = high - U1 - (t - low) if downwards else uint64(t)
        total, _, _ = coded_sum(base * teleport[i * step], rows, start_of(starts, i), i, z)
        z[i] = solved(total, float64(z[i]), strengths[i], loops[i], damping)


@kernel(allocates=False)
def sweep_in_order(
    equation: CodedEquation,
    loops: AnyArray,
    z: AnyArray,
    order: UInt32Array,
    low: uint64,
    high: uint64,
) -> None:
    """See :func:`inlink.rank.kernels.pagerank.sweep_in_order`."""
    starts, rows, _, _, strengths, teleport, damping = equation
    step = U1 if len(teleport) > 1 else U0
    base = (1.0 - damping) / damping
    last = high - U1
    for t in range(low, high):
        prefetch(starts, uint64(order[min(t + AHEAD + AHEAD, last)]) * _START)
        soon = uint64(order[min(t + AHEAD, last)])
        prefetch(rows, start_of(starts, soon))
        prefetch(z, soon)
        prefetch(strengths, soon)
        i = uint64(order[t])
        total, _, _ = coded_sum(base * teleport[i * step], rows, start_of(starts, i), i, z)
        z[i] = solved(total, float64(z[i]), strengths[i], loops[i], damping)


@kernel(allocates=False)
def finish_dangling(
    equation: CodedEquation, z: Float64Array, x: Float64Array, low: uint64, high: uint64
) -> None:
    """See :func:`inlink.rank.kernels.pagerank.finish_dangling`."""
    starts, rows, blocks, linking, strengths, teleport, damping = equation
    step = U1 if len(teleport) > 1 else U0
    first, last = num_linking(linking, low), num_linking(linking, high)
    for place in range(first, last):
        x[uint64(linking[place])] = z[place] * strengths[place]
    if last - first == high - low:
        return
    at = row_at(CodedRows(starts, rows, blocks, linking), uint64(len(linking)) + low - first)
    pivot = first
    for i in range(low, high):
        if pivot < last and uint64(linking[pivot]) == i:
            pivot += U1
            continue
        total, at, _ = coded_sum(0.0, rows, at, pivot, z)
        x[i] = damping * total + (1.0 - damping) * teleport[i * step]


@inlined
def _rounded(count: Index, value: float, own: float) -> float:
    return float64(count + uint64(16)) * (abs(value) + abs(own))


@kernel(allocates=False)
def power_round(
    equation: CodedEquation,
    jump: float,
    z: AnyArray,
    x: Float64Array,
    y: Float64Array,
    low: uint64,
    high: uint64,
) -> tuple[float, float]:
    """See :func:`inlink.rank.kernels.pagerank.power_round`."""
    starts, rows, blocks, linking, strengths, teleport, damping = equation
    step = U1 if len(teleport) > 1 else U0
    change, roundings = 0.0, 0.0
    first, last = num_linking(linking, low), num_linking(linking, high)
    for place in range(first, last):
        i = uint64(linking[place])
        total, _, count = coded_sum(0.0, rows, start_of(starts, place), uint64(place), z)
        value = damping * total + jump * teleport[i * step]
        own = x[i] if len(x) > 0 else float64(z[place]) * strengths[place]
        change += abs(value - own) if len(x) > 0 else value - own
        roundings += _rounded(count, value, own if len(x) > 0 else value)
        if len(y) > 0:
            y[i] = value
    if last - first == high - low:
        return change, roundings
    at = row_at(CodedRows(starts, rows, blocks, linking), uint64(len(linking)) + low - first)
    pivot = first
    for i in range(low, high):
        if pivot < last and uint64(linking[pivot]) == i:
            pivot += U1
            continue
        total, at, count = coded_sum(0.0, rows, at, pivot, z)
        value = damping * total + jump * teleport[i * step]
        own = x[i] if len(x) > 0 else value
        change += abs(value - own)
        roundings += _rounded(count, value, own)
        if len(y) > 0:
            y[i] = value
    return change, roundings


@kernel(allocates=False)
def largest_residual(
    equation: CodedEquation, jump: float, z: Float64Array, x: Float64Array, low: uint64, high: uint64
) -> float:
    """See :func:`inlink.rank.kernels.residual.largest_residual`."""
    starts, rows, blocks, linking, _, teleport, damping = equation
    step = U1 if len(teleport) > 1 else U0
    largest = 0.0
    first, last = num_linking(linking, low), num_linking(linking, high)
    at, rest = U0, U0
    if last - first < high - low:
        rest = row_at(CodedRows(starts, rows, blocks, linking), uint64(len(linking)) + low - first)
    pivot = first
    for i in range(low, high):
        links = pivot < last and uint64(linking[pivot]) == i
        at = start_of(starts, pivot) if links else rest
        degree, source, slot, at = opened(rows, at, pivot)
        total, lost = 0.0, 0.0
        for k in range(slot, slot + degree):
            total, lost = add_compensated(total, lost, z[source])
            if k + U1 < slot + degree:
                size = size_at(rows, k)
                source += number_at(rows, at, size) + U1
                at += size + U1
        if links:
            pivot += U1
        else:
            rest = at
        image = damping * (total + lost) + jump * teleport[i * step]
        largest = max(largest, abs(image - x[i]) + ROUNDING * (image + x[i]))
    return largest
