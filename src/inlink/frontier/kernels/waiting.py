"""The loops over the waiting pages of a slot, which find its best page.

The pages of a slot are a list in the order of their numbers, from which nothing is ever removed. ``previous`` leads
from each page to the page before it, so this column never changes once it is written. Each :data:`LEAF` pages of the
list are a *block*. A slot of several blocks has a tree of nodes, as in a tournament: a node keeps the best page of its
block, a node above it the best page of up to :data:`FAN` nodes. So a page needs no place of its own: its block is
found from its number, because each node also keeps the number of its first page.

Pages are ordered by key, largest first, then by age. The key of a page that does not wait is :data:`OUT`.

The levels of a tree lie behind one another, the blocks' nodes first. Their lengths follow from the room of the lowest
level, so a level may be longer than it is filled. All trees lie in one array, in blocks that are used again.
"""

from typing import Any

import numpy as np
from numpy import float32, uint32, uint64

from inlink.base.arrays import Float32Array, UInt32Array
from inlink.base.jit import U0, U1, inlined, kernel, prefetch
from inlink.frontier.kernels.slots import JOINED, WAITING, Slots, Waiting, class_of, larger

__all__ = [
    "FAN",
    "LEAF",
    "OUT",
    "best_pages",
    "change",
    "climb",
    "drop",
    "give_keys",
    "join",
    "make_lists",
    "slot_of",
]

LEAF = 16
"""Number of pages in a block."""

FAN = 16
"""Number of nodes below a node."""

OUT = float32(-np.inf)
"""The key of a page that does not wait."""

_LEAF, _FAN, _BITS = uint64(LEAF), uint64(FAN), uint64(FAN.bit_length() - 1)
_U2, _U32 = uint64(2), uint64(32)
_AHEAD = uint64(32)
"""The number of pages ahead whose slots :func:`make_lists` prefetches."""
_LOW = uint64(0xFFFFFFFF)


@inlined
def slot_of(w: Waiting, page: uint64) -> uint64:
    """The slot of a page."""
    host = uint64(w.hosts[page])
    return uint64(w.slot_of[host]) if len(w.slot_of) > 0 else host


@inlined
def _before(newest: bool, key: float32, page: Any, other_key: float32, other: Any) -> bool:
    """Return whether a page comes before another page, by their keys and ages."""
    if key != other_key:
        return key > other_key
    return page > other if newest else page < other


# -- the tree ---------------------------------------------------------------------------------------------------------


@inlined
def _above(room: uint64) -> uint64:
    """The length of the level above a level."""
    return (room + _FAN - U1) >> _BITS


@inlined
def _num_blocks(s: Slots, slot: uint64) -> uint64:
    return (uint64(s.rows[slot].pages) + _LEAF - U1) // _LEAF


@inlined
def _best_page(w: Waiting, newest: bool, last: uint64, size: uint64) -> uint64:
    """Return the best of the ``size`` pages of a list that end with ``last``."""
    best, page = last, last
    for _ in range(U1, size):
        page = uint64(w.previous[page])
        if _before(newest, w.keys[page], page, w.keys[best], best):
            best = page
    return best


@inlined
def _best_node(w: Waiting, newest: bool, begin: uint64, end: uint64) -> uint64:
    """The node with the best page among nodes ``begin``, …, ``end`` - 1."""
    best = begin
    for i in range(begin + U1, end):
        if _before(newest, w.nodes[i].key, w.nodes[i].page, w.nodes[best].key, w.nodes[best].page):
            best = uint64(i)
    return best


@inlined
def _end_of_block(w: Waiting, s: Slots, slot: uint64, block: uint64) -> tuple[uint64, uint64]:
    """The last page of a block, and the number of its pages."""
    after = block + U1
    if after < _num_blocks(s, slot):
        return uint64(w.previous[w.firsts[uint64(s.rows[slot].begin) + after]]), _LEAF
    return uint64(s.rows[slot].last), uint64(s.rows[slot].pages) - block * _LEAF


@inlined
def _levels(s: Slots, slot: uint64) -> uint64:
    """The number of levels of a slot's tree."""
    room = uint64(s.rows[slot].room)
    levels = U1 if room > U0 else U0
    while room > _FAN:
        room = _above(room)
        levels += U1
    return levels


@inlined
def _level(s: Slots, slot: uint64, above: uint64) -> tuple[uint64, uint64]:
    """The beginning and the filled length of the level so many levels above the blocks' nodes."""
    start, room, count = uint64(s.rows[slot].begin), uint64(s.rows[slot].room), _num_blocks(s, slot)
    for _ in range(U0, above):
        start += room
        room, count = _above(room), _above(count)
    return start, count


@inlined
def _best_of_block(w: Waiting, s: Slots, newest: bool, slot: uint64, block: uint64) -> uint64:
    """The best page of a block."""
    last, size = _end_of_block(w, s, slot, block)
    return _best_page(w, newest, last, size)


@inlined
def _set_node(w: Waiting, node: uint64, page: uint64) -> None:
    w.nodes[node].page = uint32(page)
    w.nodes[node].key = w.keys[page]


@inlined
def _block_of(w: Waiting, s: Slots, slot: uint64, page: uint64) -> uint64:
    """The block that a page is in."""
    levels, block = _levels(s, slot), U0
    while levels > U0:
        levels -= U1
        start, count = _level(s, slot, levels)
        block <<= _BITS
        first = block
        for i in range(first + U1, min(first + _FAN, count)):
            if uint64(w.firsts[start + i]) <= page:
                block = uint64(i)
    return block


@kernel(allocates=False)
def climb(w: Waiting, s: Slots, newest: bool, slot: uint64, first: uint64, last: uint64) -> None:
    """Compute all nodes above the nodes of blocks ``first``, …, ``last``, and the slot's best page."""
    start, room, count = uint64(s.rows[slot].begin), uint64(s.rows[slot].room), _num_blocks(s, slot)
    while room > _FAN:
        above = start + room
        first, last = first >> _BITS, last >> _BITS
        for i in range(first, last + U1):
            below = i << _BITS
            best = _best_node(w, newest, start + below, start + min(below + _FAN, count))
            w.nodes[above + i].page = w.nodes[best].page
            w.nodes[above + i].key = w.nodes[best].key
        start, room, count = above, _above(room), _above(count)
    s.rows[slot].best = w.nodes[_best_node(w, newest, start, start + count)].page


@inlined
def _raise(w: Waiting, s: Slots, newest: bool, slot: uint64, page: uint64) -> None:
    """Update the tree after the key of a page became better."""
    key = w.keys[page]
    room = uint64(s.rows[slot].room)
    if room > U0:
        start, i = uint64(s.rows[slot].begin), _block_of(w, s, slot, page)
        while True:
            node = start + i
            other = uint64(w.nodes[node].page)
            if other != page and not _before(newest, key, page, w.nodes[node].key, other):
                return
            w.nodes[node].page = uint32(page)
            w.nodes[node].key = key
            if room <= _FAN:
                break
            start, room, i = start + room, _above(room), i >> _BITS
    best = uint64(s.rows[slot].best)
    if _before(newest, key, page, w.keys[best], best):
        s.rows[slot].best = uint32(page)


@inlined
def _lower(w: Waiting, s: Slots, newest: bool, slot: uint64, page: uint64) -> None:
    """Update the tree after the key of a page became worse."""
    room, count = uint64(s.rows[slot].room), _num_blocks(s, slot)
    if room == U0:
        if uint64(s.rows[slot].best) == page:
            last, size = uint64(s.rows[slot].last), uint64(s.rows[slot].pages)
            s.rows[slot].best = uint32(_best_page(w, newest, last, size))
        return
    start, i = uint64(s.rows[slot].begin), _block_of(w, s, slot, page)
    if uint64(w.nodes[start + i].page) != page:
        return
    _set_node(w, start + i, _best_of_block(w, s, newest, slot, i))
    while room > _FAN:
        above, below = start + room, i & ~(_FAN - U1)
        i >>= _BITS
        if uint64(w.nodes[above + i].page) != page:
            return
        best = _best_node(w, newest, start + below, start + min(below + _FAN, count))
        w.nodes[above + i].page = w.nodes[best].page
        w.nodes[above + i].key = w.nodes[best].key
        start, room, count = above, _above(room), _above(count)
    s.rows[slot].best = w.nodes[_best_node(w, newest, start, start + count)].page


# -- the best pages ---------------------------------------------------------------------------------------------------


@kernel
def _sink(w: Waiting, newest: bool, pages: UInt32Array, places: UInt32Array, size: uint64) -> None:
    """Repair a binary heap, with the worst page first, after its first page changed."""
    page, place, at = pages[U0], places[U0], U0
    while True:
        child = (at << U1) + U1
        if child >= size:
            break
        if child + U1 < size and _before(
            newest, w.keys[pages[child]], pages[child], w.keys[pages[child + U1]], pages[child + U1]
        ):
            child += U1
        if not _before(newest, w.keys[page], page, w.keys[pages[child]], pages[child]):
            break
        pages[at], places[at] = pages[child], places[child]
        at = child
    pages[at], places[at] = page, place


@kernel
def _keep(
    w: Waiting,
    newest: bool,
    pages: UInt32Array,
    places: UInt32Array,
    size: uint64,
    page: uint32,
    place: Any,
) -> uint64:
    """Add a waiting page to a heap with the worst page first, in place of that if it is full; return its size."""
    if w.keys[page] == OUT:
        return size
    if size == uint64(len(pages)):
        if _before(newest, w.keys[page], page, w.keys[pages[U0]], pages[U0]):
            pages[U0], places[U0] = page, uint32(place)
            _sink(w, newest, pages, places, size)
        return size
    at = size
    while at > U0:
        parent = (at - U1) >> U1
        if _before(newest, w.keys[page], page, w.keys[pages[parent]], pages[parent]):
            break
        pages[at], places[at] = pages[parent], places[parent]
        at = parent
    pages[at], places[at] = page, uint32(place)
    return size + U1


@kernel
def best_pages(w: Waiting, s: Slots, newest: bool, slot: uint64, out: UInt32Array) -> uint64:
    """Write the best waiting pages of a slot to ``out``, the best first; return their number.

    On each level of the tree, they are below the best len(out) nodes: any other node has as many better pages beside
    it.
    """
    levels = _levels(s, slot)
    chosen, num_chosen = np.zeros(U1, uint32), U1
    while levels > U0:
        levels -= U1
        start, count = _level(s, slot, levels)
        pages, places = np.empty(uint64(len(out)), uint32), np.empty(uint64(len(out)), uint32)
        size = U0
        for k in range(U0, num_chosen):
            first = uint64(chosen[k]) << _BITS
            for i in range(first, min(first + _FAN, count)):
                size = _keep(w, newest, pages, places, size, w.nodes[start + i].page, i)
        chosen, num_chosen = places, size
    places, size = np.empty(uint64(len(out)), uint32), U0
    for k in range(U0, num_chosen):
        page, left = _end_of_block(w, s, slot, uint64(chosen[k]))
        for _ in range(U0, left):
            size = _keep(w, newest, out, places, size, uint32(page), U0)
            page = uint64(w.previous[page])
    # The worst page goes to the end, until the best is left.
    for last in range(U1, size):
        at = size - last
        out[U0], out[at] = out[at], out[U0]
        _sink(w, newest, out, places, at)
    return size


# -- growing ----------------------------------------------------------------------------------------------------------


@kernel(allocates=False)
def _new_tree(w: Waiting, room: uint64) -> uint64:
    """The beginning of a tree whose lowest level has room for so many nodes."""
    number, size, level = class_of(room), room, room
    while level > _FAN:
        level = _above(level)
        size += level
    begin = w.free[number]
    if begin != U0:
        w.free[number] = uint64(w.firsts[begin]) | (uint64(w.firsts[begin + U1]) << _U32)
    else:
        begin = w.free[U0]
        w.free[U0] = begin + size
    return begin


@kernel(allocates=False)
def _raise_firsts(w: Waiting, s: Slots, slot: uint64, count: uint64) -> None:
    """Compute the first pages of all nodes above the nodes of the first ``count`` blocks."""
    start, room = uint64(s.rows[slot].begin), uint64(s.rows[slot].room)
    while room > _FAN:
        above = start + room
        for i in range(U0, _above(count)):
            w.firsts[above + i] = w.firsts[start + (i << _BITS)]
        start, room, count = above, _above(room), _above(count)


@kernel(allocates=False)
def _make_room(w: Waiting, s: Slots, newest: bool, slot: uint64, count: uint64) -> None:
    """Move a slot's tree of ``count`` blocks to a place with more room, and free the old place."""
    old, begin = uint64(s.rows[slot].room), uint64(s.rows[slot].begin)
    room = larger(old)
    fresh = _new_tree(w, room)
    for i in range(U0, count if old > U0 else U0):
        w.firsts[fresh + i] = w.firsts[begin + i]
        w.nodes[fresh + i].page = w.nodes[begin + i].page
        w.nodes[fresh + i].key = w.nodes[begin + i].key
    if old > U0:
        number = class_of(old)
        w.firsts[begin] = uint32(w.free[number] & _LOW)
        w.firsts[begin + U1] = uint32(w.free[number] >> _U32)
        w.free[number] = begin
    else:
        # There was one block. The first page of a slot is found without its number.
        w.firsts[fresh] = 0
        _set_node(w, fresh, uint64(s.rows[slot].best))
    s.rows[slot].begin, s.rows[slot].room = uint32(fresh), uint32(room)
    _raise_firsts(w, s, slot, count)
    climb(w, s, newest, slot, U0, _num_blocks(s, slot) - U1)


@kernel(allocates=False)
def _begin_block(w: Waiting, s: Slots, newest: bool, slot: uint64, page: uint64) -> None:
    """Begin a new block with a page that does not wait; all blocks of the slot are full."""
    i = uint64(s.rows[slot].pages) // _LEAF
    if i >= uint64(s.rows[slot].room):
        _make_room(w, s, newest, slot, i)
    start, room = uint64(s.rows[slot].begin), uint64(s.rows[slot].room)
    while True:
        w.firsts[start + i] = uint32(page)
        w.nodes[start + i].page = uint32(page)
        w.nodes[start + i].key = OUT
        if room <= _FAN or i & (_FAN - U1) != U0:
            return
        start, room, i = start + room, _above(room), i >> _BITS


@inlined
def join(w: Waiting, s: Slots, newest: bool, end: uint64) -> None:
    """Append all pages below ``end`` that are in no list yet to the lists of their slots. They do not wait."""
    for number in range(s.tally[JOINED], end):
        page = uint64(number)
        slot = slot_of(w, page)
        size = uint64(s.rows[slot].pages)
        w.keys[page] = OUT
        w.previous[page] = s.rows[slot].last
        if size == U0:
            s.rows[slot].best = uint32(page)
        elif size % _LEAF == U0:
            _begin_block(w, s, newest, slot, page)
        s.rows[slot].last = uint32(page)
        s.rows[slot].pages = uint32(size + U1)
    s.tally[JOINED] = max(s.tally[JOINED], end)


@kernel
def make_lists(w: Waiting, s: Slots, newest: bool, num_pages: uint64, slots: uint64) -> None:
    """Make the lists and trees of an empty queue from the keys of the first ``num_pages`` pages.

    It has the effect of :func:`join` and :func:`change` for each page. But each tree gets all its room at once.
    """
    counts = np.zeros(slots, uint32)
    for number in range(U0, num_pages):
        counts[slot_of(w, uint64(number))] += uint32(1)
    for slot in range(U0, slots):
        room = U0
        while room * _LEAF < uint64(counts[slot]) and uint64(counts[slot]) > _LEAF:
            room = larger(room)
        if room > U0:
            s.rows[slot].begin, s.rows[slot].room = uint32(_new_tree(w, room)), uint32(room)
    for number in range(U0, num_pages):
        page = uint64(number)
        if page + _AHEAD < num_pages:
            prefetch(s.rows, slot_of(w, page + _AHEAD))
        slot, key = slot_of(w, page), w.keys[page]
        size, start = uint64(s.rows[slot].pages), uint64(s.rows[slot].begin)
        w.previous[page] = s.rows[slot].last
        s.rows[slot].last = uint32(page)
        s.rows[slot].pages = uint32(size + U1)
        if key != OUT:
            s.rows[slot].count += uint32(1)
            s.tally[WAITING] += U1
        # The best page of the present block, and its key, are kept in the row.
        best, highest = uint64(s.rows[slot].best), float32(s.rows[slot].key)
        begins = size % _LEAF == U0
        if begins and size > U0:
            node = start + size // _LEAF
            w.firsts[node] = uint32(page)
            w.nodes[node - U1].page = uint32(best)
            w.nodes[node - U1].key = highest
        if begins or _before(newest, key, page, highest, best):
            s.rows[slot].best = uint32(page)
            s.rows[slot].key = key
    for slot in range(U0, slots):
        if s.rows[slot].room > 0:
            last = _num_blocks(s, uint64(slot)) - U1
            start = uint64(s.rows[slot].begin)
            # The first page of a slot is found without its number.
            w.firsts[start] = 0
            _set_node(w, start + last, uint64(s.rows[slot].best))
            _raise_firsts(w, s, uint64(slot), last + U1)
            climb(w, s, newest, uint64(slot), U0, last)
    s.tally[JOINED] = num_pages


# -- pages ------------------------------------------------------------------------------------------------------------


@inlined
def change(w: Waiting, s: Slots, newest: bool, slot: uint64, page: uint64, key: float32) -> None:
    """Give a page a key, and let it wait if it does not."""
    old = w.keys[page]
    w.keys[page] = key
    if old == OUT:
        s.rows[slot].count += uint32(1)
        s.tally[WAITING] += U1
    if key > old:
        _raise(w, s, newest, slot, page)
    else:
        _lower(w, s, newest, slot, page)


@inlined
def drop(w: Waiting, s: Slots, newest: bool, slot: uint64, page: uint64) -> None:
    """Let a page that waits wait no longer."""
    w.keys[page] = OUT
    s.rows[slot].count -= uint32(1)
    s.tally[WAITING] -= U1
    _lower(w, s, newest, slot, page)


@kernel(allocates=False)
def give_keys(
    w: Waiting,
    s: Slots,
    slot: uint64,
    block: uint64,
    page: uint64,
    newest: bool,
    keys: Float32Array,
    used: uint64,
) -> tuple[uint64, uint64]:
    """Give the waiting pages of a block, from its last page on, keys[used], keys[used + 1], …

    The nodes above the block's node are not updated. Return the page before the block, and the next place in ``keys``.
    """
    left = uint64(s.rows[slot].pages) - block * _LEAF
    best = page
    for _ in range(U0, min(left, _LEAF)):
        if w.keys[page] != OUT:
            w.keys[page] = keys[used]
            used += U1
        if _before(newest, w.keys[page], page, w.keys[best], best):
            best = page
        page = uint64(w.previous[page])
    if s.rows[slot].room > 0:
        _set_node(w, uint64(s.rows[slot].begin) + block, best)
    else:
        s.rows[slot].best = uint32(best)
    return page, used
