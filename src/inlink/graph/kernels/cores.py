"""The loops of cores: degrees without directions, and the peeling of nodes in the order of their degrees."""

from typing import NamedTuple

from numpy import uint32, uint64

from inlink.base.arrays import UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, Index, inlined, kernel

__all__ = ["BothRows", "Peeling", "degrees_without_directions", "peel", "sort_by_degree"]


class BothRows(NamedTuple):
    """The rows of both directions.

    Attributes
    ----------
    offsets, nodes : uint64[n + 1], uint32[m]
        The outlinks.
    in_offsets, in_nodes : uint64[n + 1], uint32[m]
        The inlinks, by place.
    linking : uint32[l] or uint32[0]
        The node at each of the first places; empty if places are nodes.
    places : uint32[n] or uint32[0]
        The place of each node; empty if places are nodes.
    """

    offsets: UInt64Array
    nodes: UInt32Array
    in_offsets: UInt64Array
    in_nodes: UInt32Array
    linking: UInt32Array
    places: UInt32Array


class Peeling(NamedTuple):
    """The state of the peeling.

    Attributes
    ----------
    degrees : uint32[n]
        The number of neighbours of each node that are not peeled. For a peeled node it is the core number.
    order : uint32[n]
        The nodes by degree. The peeled ones come first.
    position : uint32[n]
        The place of each node in ``order``.
    begins : uint32[largest degree + 1]
        The place in ``order`` of the first node with each degree.
    """

    degrees: UInt32Array
    order: UInt32Array
    position: UInt32Array
    begins: UInt32Array


@inlined
def _number(numbers: UInt32Array, i: Index) -> Index:
    """Return ``numbers[i]``, or ``i`` if there are no numbers."""
    return uint64(numbers[i]) if len(numbers) > 0 else uint64(i)


@inlined
def _smaller(
    nodes: UInt32Array,
    p: uint64,
    p_end: uint64,
    in_nodes: UInt32Array,
    q: uint64,
    q_end: uint64,
    linking: UInt32Array,
    none: uint64,
) -> tuple[uint64, uint64, uint64]:
    """Return the next node of two increasing rows, and the places after it in both. A node of both is returned once."""
    a = uint64(nodes[p]) if p < p_end else none
    b = _number(linking, uint64(in_nodes[q])) if q < q_end else none
    u = min(a, b)
    return u, p + U1 if a == u else p, q + U1 if b == u else q


@kernel(allocates=False)
def degrees_without_directions(rows: BothRows, low: uint64, high: uint64, degrees: UInt32Array) -> uint64:
    """Write the number of other nodes that each node of [low, high) links to or is linked from; return the largest."""
    offsets, nodes, in_offsets, in_nodes, linking, places = rows
    n = uint64(len(offsets)) - U1
    largest = U0
    for v in range(low, high):
        row = _number(places, v)
        p, p_end, q, q_end = offsets[v], offsets[v + U1], in_offsets[row], in_offsets[row + U1]
        count = U0
        while p < p_end or q < q_end:
            u, p, q = _smaller(nodes, p, p_end, in_nodes, q, q_end, linking, n)
            if u != v:
                count += U1
        degrees[v] = uint32(count)
        largest = max(largest, count)
    return largest


@kernel(allocates=False)
def sort_by_degree(peeling: Peeling) -> None:
    """Sort the nodes by degree. ``begins`` must be 0."""
    degrees, order, position, begins = peeling
    for v in range(U0, uint64(len(degrees))):
        begins[degrees[v]] += uint32(1)
    before = uint32(0)
    for d in range(U0, uint64(len(begins))):
        count = begins[d]
        begins[d] = before
        before += count
    for v in range(U0, uint64(len(degrees))):
        place = begins[degrees[v]]
        position[v] = place
        order[place] = uint32(v)
        begins[degrees[v]] += uint32(1)
    # Each entry is now the end of its degree, where the next degree begins.
    for k in range(U1, uint64(len(begins))):
        d = uint64(len(begins)) - k
        begins[d] = begins[d - U1]
    begins[U0] = uint32(0)


@kernel(allocates=False)
def peel(rows: BothRows, peeling: Peeling, first: uint64, budget: uint64) -> uint64:
    """Peel nodes, beginning at place ``first`` of the order, until more than ``budget`` arcs were followed.

    Neighbours of a larger degree lose a neighbour. Return the place of the next node, or n.
    """
    offsets, nodes, in_offsets, in_nodes, linking, places = rows
    degrees, order, position, begins = peeling
    n = uint64(len(order))
    done, k = U0, first
    while k < n and done <= budget:
        v = uint64(order[k])
        own = degrees[v]
        row = _number(places, v)
        p, p_end, q, q_end = offsets[v], offsets[v + U1], in_offsets[row], in_offsets[row + U1]
        done += U1 + (p_end - p) + (q_end - q)
        while p < p_end or q < q_end:
            u, p, q = _smaller(nodes, p, p_end, in_nodes, q, q_end, linking, n)
            degree = degrees[u]
            if degree > own:
                # Swap it with the first node of its degree. There it becomes the last one of the next lower degree.
                at, start = uint64(position[u]), uint64(begins[degree])
                w = uint64(order[start])
                order[start], order[at] = uint32(u), uint32(w)
                position[u], position[w] = uint32(start), uint32(at)
                begins[degree] = uint32(start + U1)
                degrees[u] = degree - uint32(1)
        k += U1
    return k
