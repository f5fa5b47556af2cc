"""The loops of the queue: three heaps of slots, and what happens to their pages.

A *slot* is a host, or with ``by="domain"`` a registered domain. Its best page is found by :mod:`.waiting`. Each heap of
slots is 4-ary and stored in an array. Each slot has its place in its heap, so that its key can change in place. Ready
slots are ordered by the key of their best page.

``table`` is always a table of addresses: see :func:`.slots.queue_at`.
"""

import numpy as np
from numpy import float32, float64, uint8, uint32, uint64

from inlink.base.arrays import Float32Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, kernel
from inlink.frontier.kernels.slots import (
    IN_LATER,
    IN_READY,
    IN_WARM,
    JOINED,
    SINK,
    TURNS,
    Limits,
    Slots,
    Waiting,
    cool,
    queue_at,
    spend,
)
from inlink.frontier.kernels.waiting import (
    LEAF,
    OUT,
    best_pages,
    change,
    climb,
    drop,
    give_keys,
    join,
    make_lists,
    slot_of,
)

__all__ = [
    "best",
    "fill",
    "keys",
    "land",
    "place_pages",
    "rekey",
    "remove_page",
    "settle",
    "settle_all",
    "take",
    "take_page",
    "to_rekey",
]


_U2 = uint64(2)
_LEAF = uint64(LEAF)
NOWHERE, READY, LATER, WARM = uint8(0), uint8(1), uint8(2), uint8(3)


# -- heaps of slots -------------------------------------------------------------------------------------------------


@kernel
def _slot_before(w: Waiting, s: Slots, limits: Limits, heap: UInt32Array, a: uint32, b: uint32) -> bool:
    where = s.rows[a].where
    if where == LATER and s.rows[a].due != s.rows[b].due:
        return s.rows[a].due < s.rows[b].due
    if where == WARM and s.rows[a].soft_due != s.rows[b].soft_due:
        return s.rows[a].soft_due < s.rows[b].soft_due
    if where != READY:
        return a < b
    if s.rows[a].key != s.rows[b].key:
        return s.rows[a].key > s.rows[b].key
    mine, theirs = s.rows[a].best, s.rows[b].best
    return mine > theirs if limits.newest else mine < theirs


@kernel
def _slot_up(w: Waiting, s: Slots, limits: Limits, heap: UInt32Array, place: uint64) -> uint64:
    slot = heap[place]
    while place > U0:
        parent = (place - U1) >> _U2
        theirs = heap[parent]
        if not _slot_before(w, s, limits, heap, slot, theirs):
            break
        heap[place] = theirs
        s.rows[theirs].place = uint32(place)
        place = parent
    heap[place] = slot
    s.rows[slot].place = uint32(place)
    return place


@kernel
def _slot_down(w: Waiting, s: Slots, limits: Limits, heap: UInt32Array, size: uint64, place: uint64) -> None:
    slot = heap[place]
    while True:
        child = (place << _U2) + U1
        if child >= size:
            break
        best = child
        for k in range(child + U1, min(child + uint64(4), size)):
            if _slot_before(w, s, limits, heap, heap[k], heap[best]):
                best = k
        theirs = heap[best]
        if not _slot_before(w, s, limits, heap, theirs, slot):
            break
        heap[place] = theirs
        s.rows[theirs].place = uint32(place)
        place = best
    heap[place] = slot
    s.rows[slot].place = uint32(place)


@kernel
def _heap(s: Slots, where: uint8) -> UInt32Array:
    """The heap of slots with this name."""
    if where == READY:
        return s.ready
    return s.later if where == LATER else s.warm


@kernel
def _leave(w: Waiting, s: Slots, limits: Limits, slot: uint64) -> None:
    """Remove a slot from its heap."""
    where = s.rows[slot].where
    if where == NOWHERE:
        return
    heap, number = _heap(s, where), uint64(where) - U1
    size = s.tally[number] - U1
    s.tally[number] = size
    place = uint64(s.rows[slot].place)
    s.rows[slot].where = NOWHERE
    if place != size:
        heap[place] = heap[size]
        place = _slot_up(w, s, limits, heap, place)
        _slot_down(w, s, limits, heap, size, place)


@kernel
def _settle(w: Waiting, s: Slots, limits: Limits, slot: uint64, now: float) -> None:
    """Move a slot to the right heap: ready, warm or later; or to none."""
    domain, flying = uint64(s.rows[slot].domain), uint64(s.rows[slot].flying)
    if (
        s.rows[slot].count == 0
        or flying >= uint64(s.rows[slot].most)
        or (flying >= uint64(limits.first) and _U2 * flying >= uint64(s.rows[slot].taken))
        or s.rows[slot].budget == 0
        or s.domain_budgets[domain] == 0
    ):
        _leave(w, s, limits, slot)
        return
    key = float64(w.keys[s.rows[slot].best]) * float64(s.rows[slot].factor)
    if limits.diverse == 1:
        key /= 1.0 + float64(s.rows[slot].taken)
    elif limits.diverse == 2:
        key = -float64(s.rows[slot].turn)
    goal = READY
    if s.rows[slot].due > now:
        goal = LATER
    elif s.rows[slot].soft_due > now:
        goal = WARM
    if goal == READY and s.rows[slot].where == READY:
        s.rows[slot].key = key
        place = _slot_up(w, s, limits, s.ready, uint64(s.rows[slot].place))
        _slot_down(w, s, limits, s.ready, s.tally[IN_READY], place)
        return
    # what the slot is sorted by may have changed
    _leave(w, s, limits, slot)
    s.rows[slot].key = key
    s.rows[slot].where = goal
    heap, number = _heap(s, goal), uint64(goal) - U1
    place = s.tally[number]
    heap[place] = uint32(slot)
    s.rows[slot].place = uint32(place)
    s.tally[number] = place + U1
    _slot_up(w, s, limits, heap, place)


# -- functions for the frontier --------------------------------------------------------------------------------------


@kernel
def settle(table: UInt64Array, slot: int, now: float) -> None:
    """Move a slot to the right heap after its columns were changed."""
    w, s, limits = queue_at(table)
    _settle(w, s, limits, uint64(slot), now)


@kernel
def settle_all(table: UInt64Array, slots: int, now: float) -> None:
    """Move slots 0, …, ``slots`` - 1 to the right heaps."""
    w, s, limits = queue_at(table)
    for slot in range(U0, uint64(slots)):
        if s.rows[slot].count > 0:
            _settle(w, s, limits, uint64(slot), now)


@kernel
def land(table: UInt64Array, slot: int, now: float) -> None:
    """Take in the end of a lease of a slot."""
    w, s, limits = queue_at(table)
    if s.rows[slot].flying > 0:
        s.rows[slot].flying -= uint32(1)
    _settle(w, s, limits, uint64(slot), now)


@kernel
def keys(
    pages: UInt32Array, priorities: Float32Array, traps: UInt8Array, factors: Float32Array
) -> Float32Array:
    """The keys of pages, float32[n]: priority times the factor of the page's trap code."""
    values = np.empty(uint64(len(pages)), float32)
    for i in range(U0, uint64(len(pages))):
        values[i] = priorities[i] * factors[traps[pages[i]]]
    return values


@kernel
def place_pages(
    table: UInt64Array,
    pages: UInt32Array,
    priorities: Float32Array,
    traps: UInt8Array,
    factors: Float32Array,
    states: UInt8Array,
    errors: UInt8Array,
    all_of_them: bool,
    now: float,
) -> None:
    """Put pages into the queue, or change the keys of pages in it. A key is priority times the factor of the trap code.

    Unless ``all_of_them`` is set, pages in other states than discovered are left out. So are pages that failed and are
    not in the queue.
    """
    w, s, limits = queue_at(table)
    touched, end = U0, U0
    # reading all pages' numbers first lets the processor wait for memory once instead of page by page
    for i in range(U0, uint64(len(pages))):
        page = uint64(pages[i])
        touched += uint64(w.keys[page] == OUT) + uint64(w.hosts[page]) + uint64(states[page] + traps[page])
        end = max(end, page + U1)
    s.tally[SINK] = touched
    join(w, s, limits.newest, end)
    for i in range(U0, uint64(len(pages))):
        page = uint64(pages[i])
        old = w.keys[page]
        if not all_of_them and (states[page] != 0 or (errors[page] > 0 and old == OUT)):
            continue
        key = priorities[i] * factors[traps[page]]
        if key == old:
            continue
        slot = slot_of(w, page)
        best = s.rows[slot].best
        change(w, s, limits.newest, slot, page, key)
        if best == page or s.rows[slot].best == page:
            _settle(w, s, limits, slot, now)


@kernel
def remove_page(table: UInt64Array, number: int, now: float) -> None:
    """Remove a page from the queue, if it is in the queue."""
    w, s, limits = queue_at(table)
    page = uint64(number)
    if page >= s.tally[JOINED] or w.keys[page] == OUT:
        return
    slot = slot_of(w, page)
    drop(w, s, limits.newest, slot, page)
    _settle(w, s, limits, slot, now)


@kernel
def take_page(table: UInt64Array, page: int, now: float) -> int:
    """Take a page out of turn and count it against its slot; return the slot."""
    remove_page(table, page, now)
    w, s, limits = queue_at(table)
    slot = slot_of(w, uint64(page))
    spend(s, slot, now)
    _settle(w, s, limits, slot, now)
    return int(slot)


@kernel
def take(table: UInt64Array, now: float, pages: UInt32Array, slots: UInt32Array) -> int:
    """Take pages from the queue, best first, as far as their slots allow at ``now``.

    Write the pages to ``pages`` and their slots to ``slots``, at most as many as fit, and return their number.
    """
    w, s, limits = queue_at(table)
    count = uint64(len(pages))
    while s.tally[IN_LATER] > U0 and s.rows[s.later[U0]].due <= now:
        _settle(w, s, limits, uint64(s.later[U0]), now)
    while s.tally[IN_WARM] > U0 and s.rows[s.warm[U0]].soft_due <= now:
        _settle(w, s, limits, uint64(s.warm[U0]), now)
    taken = U0
    while taken < count:
        if s.tally[IN_READY] > U0:
            slot = uint64(s.ready[U0])
        elif s.tally[IN_WARM] > U0:
            # above the soft limit, but no cooler slot is left
            slot = uint64(s.warm[U0])
        else:
            break
        domain = uint64(s.rows[slot].domain)
        if s.domain_budgets[domain] == 0:
            _leave(w, s, limits, slot)
            continue
        page = uint64(s.rows[slot].best)
        drop(w, s, limits.newest, slot, page)
        spend(s, slot, now)
        s.tally[TURNS] += U1
        s.rows[slot].turn = s.tally[TURNS]
        if limits.soft > 0 or limits.hard > 0:
            cool(s, limits, slot, now)
        _settle(w, s, limits, slot, now)
        pages[taken] = uint32(page)
        slots[taken] = uint32(slot)
        taken += U1
    return int(taken)


@kernel
def best(table: UInt64Array, slot: int, out: UInt32Array) -> int:
    """Write the best waiting pages of a slot to ``out``, the best first; return their number."""
    w, s, limits = queue_at(table)
    return int(best_pages(w, s, limits.newest, uint64(slot), out))


@kernel
def to_rekey(table: UInt64Array, end: int, cursor: UInt64Array, out: UInt32Array) -> int:
    """Write the next waiting pages of slots below ``end`` to ``out``, and move the cursor; return their number.

    At most len(out) pages are looked at, in whole blocks. ``cursor`` is uint64[3]: a slot, the number of pages at the
    beginning of its list that are left, and the last of these; all pages are left if it is 0.
    """
    w, s, _ = queue_at(table)
    slot, left, page = cursor[U0], cursor[U1], cursor[_U2]
    count = seen = U0
    while slot < uint64(end):
        if left == U0:
            left, page = uint64(s.rows[slot].pages), uint64(s.rows[slot].last)
        while left > U0:
            size = (left - U1) % _LEAF + U1
            seen += size
            if seen > uint64(len(out)):
                # The last block of a list may grow until the next call, the others are full.
                begun = left < uint64(s.rows[slot].pages)
                cursor[U0], cursor[U1], cursor[_U2] = slot, left if begun else U0, page
                return int(count)
            for _ in range(U0, size):
                if w.keys[page] != OUT:
                    out[count] = uint32(page)
                    count += U1
                page = uint64(w.previous[page])
            left -= size
        slot += U1
    cursor[U0], cursor[U1], cursor[_U2] = slot, U0, U0
    return int(count)


@kernel
def rekey(table: UInt64Array, cursor: UInt64Array, end: UInt64Array, keys: Float32Array, now: float) -> None:
    """Give the pages that :func:`to_rekey` wrote new keys, in its order. It moved the cursor from here to ``end``."""
    w, s, limits = queue_at(table)
    slot, left, page = cursor[U0], cursor[U1], cursor[_U2]
    used = U0
    while slot != end[U0] or left != end[U1]:
        if left == U0:
            left, page = uint64(s.rows[slot].pages), uint64(s.rows[slot].last)
            if left == U0:
                slot += U1
            continue
        block = last = (left - U1) // _LEAF
        while left > U0 and (slot != end[U0] or left != end[U1]):
            block = (left - U1) // _LEAF
            page, used = give_keys(w, s, slot, block, page, limits.newest, keys, used)
            left = block * _LEAF
        if s.rows[slot].room > 0:
            climb(w, s, limits.newest, slot, block, last)
        _settle(w, s, limits, slot, now)
        if left == U0:
            slot += U1


@kernel
def fill(table: UInt64Array, num_pages: int, slots: int, now: float) -> None:
    """Fill an empty queue from the keys of the first ``num_pages`` pages. Each slot is moved to its heap once."""
    w, s, limits = queue_at(table)
    make_lists(w, s, limits.newest, uint64(num_pages), uint64(slots))
    for slot in range(U0, uint64(slots)):
        if s.rows[slot].count > 0:
            _settle(w, s, limits, uint64(slot), now)
