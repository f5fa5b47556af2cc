"""Loops that check rows and names before any other kernel reads them."""

from numpy import uint64

from inlink.base.arrays import AnyArray, UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, item_at, kernel

_U8 = uint64(8)
_U29 = uint64(29)
_U32 = uint64(32)
_K1 = uint64(0x9E3779B97F4A7C15)
_K2 = uint64(0xD6E8FEB86659FD93)
_K3 = uint64(0xC2B2AE3D27D4EB4F)


@kernel(allocates=False)
def wrong_arc(
    offsets: UInt64Array,
    nodes: UInt32Array,
    weights: AnyArray,
    most: uint64,
    turned: bool,
    limit: uint64,
    nodes_at: UInt32Array,
    base: uint64,
    first: uint64,
    row: uint64,
    least: uint64,
) -> tuple[uint64, uint64, uint64, uint64]:
    """Check a block of arcs: each node exists, rows increase, and weights are above 0 and finite.

    Parameters
    ----------
    offsets : uint64[n + 1] or uint64[k + 1]
        The offsets of all rows, or of those from ``base`` on, checked before.
    nodes : uint32[k]
        The nodes of the arcs from ``first`` on.
    weights : uint32[k] or uint64[k], or [0] without weights
        The weights as they are, or their bits if they are floats.
    most : uint64
        The largest allowed weight. Floats above 0 have the same order as their bits.
    turned : bool
        True if the rows are inlinks.
    limit : uint64
        The limit of the numbers in the rows: the number of nodes, or that of linking nodes if the rows are split.
    nodes_at : uint32[n] or uint32[0]
        The node at each place if the rows are split, else empty.
    base : uint64
        The number of the first row in ``offsets``.
    first, row, least : uint64
        The number of the first arc, a row that does not begin after it, and the least node that the arc may have if its
        row began before this block.

    Returns
    -------
    uint64, uint64, uint64, uint64
        The place of the first wrong arc, k if there is none; its row; ``least`` for the next block; and a sum of hashes
        of all arcs, which is the same for outlinks and inlinks that hold the same arcs.
    """
    split = len(nodes_at) > 0
    count = uint64(len(nodes))
    weighted = len(weights) > 0
    row_shift = U0 if turned else _U32
    node_shift = _U32 if turned else U0
    total = U0
    at = U0
    while at < count:
        while offsets[row + U1] <= first + at:
            row += U1
        stop = min(offsets[row + U1] - first, count)
        if offsets[row] == first + at:
            least = U0
        near = (uint64(nodes_at[base + row]) if split else base + row) << row_shift
        for k in range(at, stop):
            node = uint64(nodes[k])
            if node < least or node >= limit:
                return k, row, least, total
            far = uint64(nodes_at[node]) if split else node
            code = (near | (far << node_shift)) * _K1
            code ^= code >> _U29
            if weighted:
                weight = uint64(weights[k])
                if weight == U0 or weight > most:
                    return k, row, least, total
                code += weight * _K3
            least = node + U1
            code *= _K2
            total += code ^ (code >> _U32)
        at = stop
    return count, row, least, total


@kernel(allocates=False)
def wrong_name(
    text: UInt8Array, offsets: UInt64Array, order: UInt32Array, low: uint64, high: uint64
) -> uint64:
    """Return the first place of the order in ``range(low, high)`` whose name is not above the name before.

    Return ``high`` if there is none.

    Parameters
    ----------
    text : uint8[number of bytes]
        The names, one after another, as UTF-8.
    offsets : uint64[n + 1]
        The place where each name begins, checked before.
    order : uint32[n], or [0] if it is 0, 1, 2, …
        A place whose node is not below n is wrong too. If no place is wrong, the order holds each node once.
    low, high : uint64
        The places to check, ``high`` excluded.
    """
    n = uint64(len(offsets)) - U1
    ordered = len(order) > 0
    for place in range(low, high):
        node = uint64(order[place]) if ordered else uint64(place)
        if node >= n:
            return uint64(place)
        if place == U0:
            continue
        before = uint64(order[place - U1]) if ordered else place - U1
        if before >= n:
            return uint64(place)
        a, b = offsets[before], offsets[node]
        a_size, b_size = offsets[before + U1] - a, offsets[node + U1] - b
        both = min(a_size, b_size)
        k = U0
        while k + _U8 <= both and item_at(text, a + k, uint64) == item_at(text, b + k, uint64):
            k += _U8
        while k < both and text[a + k] == text[b + k]:
            k += U1
        if k == both:
            if a_size >= b_size:
                return uint64(place)
        elif text[a + k] > text[b + k]:
            return uint64(place)
    return high
