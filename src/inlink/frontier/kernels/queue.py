"""The loops of the queue: a heap of waiting pages for each slot, and three heaps of slots.

A *slot* is a host, or with ``by="domain"`` a registered domain. Each heap is 4-ary and stored in an array. Each member
has its place in its heap, so that a priority can change in place. Pages are ordered by key, largest first, then by age.
Ready slots are ordered by the key of their best page.

``table`` is always a table of addresses: see :func:`.slots.queue_at`.
"""

import numpy as np

from inlink.base.arrays import Float32Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, kernel
from inlink.frontier.kernels.slots import (
    IN_LATER,
    IN_READY,
    IN_WARM,
    SINK,
    TURNS,
    WAITING,
    Limits,
    Slots,
    Waiting,
    class_of,
    cool,
    larger,
    queue_at,
    spend,
)

__all__ = [
    "fill",
    "heaps",
    "keys",
    "land",
    "place_pages",
    "rebuild",
    "remove_page",
    "settle",
    "settle_all",
    "take",
    "take_page",
]


_U2 = np.uint64(2)
_U3 = np.uint64(3)
_U4 = np.uint64(4)
_U32 = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
NOWHERE, READY, LATER, WARM = np.uint8(0), np.uint8(1), np.uint8(2), np.uint8(3)


# -- pages within a slot --------------------------------------------------------------------------------------------


@kernel
def _page_before(w: Waiting, newest: bool, a: np.uint32, b: np.uint32) -> bool:
    if w.pages[a].key != w.pages[b].key:
        return w.pages[a].key > w.pages[b].key
    return a > b if newest else a < b


@kernel
def _page_up(w: Waiting, newest: bool, begin: np.uint64, place: np.uint64) -> None:
    page = w.arena[begin + place]
    while place > U0:
        parent = (place - U1) >> _U2
        other = w.arena[begin + parent]
        if not _page_before(w, newest, page, other):
            break
        w.arena[begin + place] = other
        w.pages[other].place = np.uint32(place + U1)
        place = parent
    w.arena[begin + place] = page
    w.pages[page].place = np.uint32(place + U1)


@kernel
def _page_down(w: Waiting, newest: bool, begin: np.uint64, size: np.uint64, place: np.uint64) -> None:
    page = w.arena[begin + place]
    while True:
        child = (place << _U2) + U1
        if child >= size:
            break
        best = child
        for k in range(child + U1, min(child + np.uint64(4), size)):
            if _page_before(w, newest, w.arena[begin + k], w.arena[begin + best]):
                best = k
        other = w.arena[begin + best]
        if not _page_before(w, newest, other, page):
            break
        w.arena[begin + place] = other
        w.pages[other].place = np.uint32(place + U1)
        place = best
    w.arena[begin + place] = page
    w.pages[page].place = np.uint32(place + U1)


@kernel
def _make_room(w: Waiting, s: Slots, slot: np.uint64) -> None:
    """Move a slot's heap to a block of the next size, and free the old block."""
    old, begin = np.uint64(s.rows[slot].room), s.rows[slot].begin
    room = larger(old)
    number = class_of(room)
    fresh = w.free[number]
    if fresh != U0:
        w.free[number] = np.uint64(w.arena[fresh]) | (np.uint64(w.arena[fresh + U1]) << _U32)
    else:
        fresh = w.free[U0]
        w.free[U0] = fresh + room
    for k in range(U0, np.uint64(s.rows[slot].count)):
        w.arena[fresh + k] = w.arena[begin + k]
    if old > U0:
        number = class_of(old)
        w.arena[begin] = np.uint32(w.free[number] & _LOW)
        w.arena[begin + U1] = np.uint32(w.free[number] >> _U32)
        w.free[number] = begin
    s.rows[slot].begin = fresh
    s.rows[slot].room = np.uint32(room)


@kernel
def _slot_of(w: Waiting, page: np.uint64) -> np.uint64:
    host = np.uint64(w.hosts[page])
    return np.uint64(w.slot_of[host]) if len(w.slot_of) > 0 else host


# -- heaps of slots -------------------------------------------------------------------------------------------------


@kernel
def _slot_before(w: Waiting, s: Slots, limits: Limits, heap: UInt32Array, a: np.uint32, b: np.uint32) -> bool:
    where = s.rows[a].where
    if where == LATER and s.rows[a].due != s.rows[b].due:
        return s.rows[a].due < s.rows[b].due
    if where == WARM and s.rows[a].soft_due != s.rows[b].soft_due:
        return s.rows[a].soft_due < s.rows[b].soft_due
    if where != READY:
        return a < b
    if s.rows[a].key != s.rows[b].key:
        return s.rows[a].key > s.rows[b].key
    one, other = w.arena[s.rows[a].begin], w.arena[s.rows[b].begin]
    return one > other if limits.newest else one < other


@kernel
def _slot_up(w: Waiting, s: Slots, limits: Limits, heap: UInt32Array, place: np.uint64) -> np.uint64:
    slot = heap[place]
    while place > U0:
        parent = (place - U1) >> _U2
        other = heap[parent]
        if not _slot_before(w, s, limits, heap, slot, other):
            break
        heap[place] = other
        s.rows[other].place = np.uint32(place)
        place = parent
    heap[place] = slot
    s.rows[slot].place = np.uint32(place)
    return place


@kernel
def _slot_down(
    w: Waiting, s: Slots, limits: Limits, heap: UInt32Array, size: np.uint64, place: np.uint64
) -> None:
    slot = heap[place]
    while True:
        child = (place << _U2) + U1
        if child >= size:
            break
        best = child
        for k in range(child + U1, min(child + np.uint64(4), size)):
            if _slot_before(w, s, limits, heap, heap[k], heap[best]):
                best = k
        other = heap[best]
        if not _slot_before(w, s, limits, heap, other, slot):
            break
        heap[place] = other
        s.rows[other].place = np.uint32(place)
        place = best
    heap[place] = slot
    s.rows[slot].place = np.uint32(place)


@kernel
def _heap(s: Slots, where: np.uint8) -> UInt32Array:
    """The heap of slots with this name."""
    if where == READY:
        return s.ready
    return s.later if where == LATER else s.warm


@kernel
def _leave(w: Waiting, s: Slots, limits: Limits, slot: np.uint64) -> None:
    """Remove a slot from its heap."""
    where = s.rows[slot].where
    if where == NOWHERE:
        return
    heap, number = _heap(s, where), np.uint64(where) - U1
    size = s.tally[number] - U1
    s.tally[number] = size
    place = np.uint64(s.rows[slot].place)
    s.rows[slot].where = NOWHERE
    if place != size:
        heap[place] = heap[size]
        place = _slot_up(w, s, limits, heap, place)
        _slot_down(w, s, limits, heap, size, place)


@kernel
def _settle(w: Waiting, s: Slots, limits: Limits, slot: np.uint64, now: float) -> None:
    """Move a slot to the right heap: ready, warm or later; or to none."""
    domain = np.uint64(s.rows[slot].domain)
    if (
        s.rows[slot].count == 0
        or s.rows[slot].flying >= s.rows[slot].most
        or s.rows[slot].budget == 0
        or s.domain_budgets[domain] == 0
    ):
        _leave(w, s, limits, slot)
        return
    best = np.uint64(w.arena[s.rows[slot].begin])
    key = np.float64(w.pages[best].key) * np.float64(s.rows[slot].factor)
    if limits.diverse == 1:
        key /= 1.0 + np.float64(s.rows[slot].taken)
    elif limits.diverse == 2:
        key = -np.float64(s.rows[slot].turn)
    goal = READY
    if s.rows[slot].due > now:
        goal = LATER
    elif s.rows[slot].soft_due > now:
        goal = WARM
    if goal == READY and s.rows[slot].where == READY:
        s.rows[slot].key = key
        place = _slot_up(w, s, limits, s.ready, np.uint64(s.rows[slot].place))
        _slot_down(w, s, limits, s.ready, s.tally[IN_READY], place)
        return
    # what the slot is sorted by may have changed
    _leave(w, s, limits, slot)
    s.rows[slot].key = key
    s.rows[slot].where = goal
    heap, number = _heap(s, goal), np.uint64(goal) - U1
    place = s.tally[number]
    heap[place] = np.uint32(slot)
    s.rows[slot].place = np.uint32(place)
    s.tally[number] = place + U1
    _slot_up(w, s, limits, heap, place)


# -- functions for the frontier --------------------------------------------------------------------------------------


@kernel
def settle(table: UInt64Array, slot: int, now: float) -> None:
    """Move a slot to the right heap after its columns were changed."""
    w, s, limits = queue_at(table)
    _settle(w, s, limits, np.uint64(slot), now)


@kernel
def settle_all(table: UInt64Array, slots: int, now: float) -> None:
    """Move slots 0, …, ``slots`` - 1 to the right heaps."""
    w, s, limits = queue_at(table)
    for slot in range(U0, np.uint64(slots)):
        if s.rows[slot].count > 0:
            _settle(w, s, limits, np.uint64(slot), now)


@kernel
def land(table: UInt64Array, slot: int, now: float) -> None:
    """Take in the end of a lease of a slot."""
    w, s, limits = queue_at(table)
    if s.rows[slot].flying > 0:
        s.rows[slot].flying -= np.uint32(1)
    _settle(w, s, limits, np.uint64(slot), now)


@kernel
def keys(
    pages: UInt32Array, priorities: Float32Array, traps: UInt8Array, factors: Float32Array
) -> Float32Array:
    """The keys of pages, float32[n]: priority times the factor of the page's trap code."""
    found = np.empty(np.uint64(len(pages)), np.float32)
    for i in range(U0, np.uint64(len(pages))):
        found[i] = priorities[i] * factors[traps[pages[i]]]
    return found


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
    touched = U0
    # reading all pages' rows first lets the processor wait for memory once instead of page by page
    for i in range(U0, np.uint64(len(pages))):
        page = np.uint64(pages[i])
        touched += (
            np.uint64(w.pages[page].place) + np.uint64(w.hosts[page]) + np.uint64(states[page] + traps[page])
        )
    s.tally[SINK] = touched
    for i in range(U0, np.uint64(len(pages))):
        page = np.uint64(pages[i])
        inside = w.pages[page].place > 0
        if not all_of_them and (states[page] != 0 or (errors[page] > 0 and not inside)):
            continue
        key = priorities[i] * factors[traps[page]]
        slot = _slot_of(w, page)
        begin = s.rows[slot].begin
        if inside:
            old = w.pages[page].key
            if old == key:
                continue
            w.pages[page].key = key
            place = np.uint64(w.pages[page].place) - U1
            if key > old:
                _page_up(w, limits.newest, begin, place)
            else:
                _page_down(w, limits.newest, begin, np.uint64(s.rows[slot].count), place)
            if place > U0 and w.pages[page].place != 1:
                # the slot's best page is the same
                continue
        else:
            if s.rows[slot].count == s.rows[slot].room:
                _make_room(w, s, slot)
                begin = s.rows[slot].begin
            place = np.uint64(s.rows[slot].count)
            s.rows[slot].count += np.uint32(1)
            s.tally[WAITING] += U1
            w.pages[page].key = key
            w.arena[begin + place] = np.uint32(page)
            _page_up(w, limits.newest, begin, place)
            if w.pages[page].place != 1:
                continue
        _settle(w, s, limits, slot, now)


@kernel
def remove_page(table: UInt64Array, number: int, now: float) -> None:
    """Remove a page from the queue, if it is in the queue."""
    w, s, limits = queue_at(table)
    page = np.uint64(number)
    if w.pages[page].place == 0:
        return
    slot = _slot_of(w, page)
    begin, place = s.rows[slot].begin, np.uint64(w.pages[page].place) - U1
    size = np.uint64(s.rows[slot].count) - U1
    s.rows[slot].count = np.uint32(size)
    s.tally[WAITING] -= U1
    w.pages[page].place = 0
    if place != size:
        other = w.arena[begin + size]
        w.arena[begin + place] = other
        w.pages[other].place = np.uint32(place + U1)
        _page_up(w, limits.newest, begin, place)
        _page_down(w, limits.newest, begin, size, np.uint64(w.pages[other].place) - U1)
    _settle(w, s, limits, slot, now)


@kernel
def take_page(table: UInt64Array, page: int, now: float) -> int:
    """Take a page out of turn and count it against its slot; return the slot."""
    remove_page(table, page, now)
    w, s, limits = queue_at(table)
    slot = _slot_of(w, np.uint64(page))
    spend(s, slot, now)
    _settle(w, s, limits, slot, now)
    return int(slot)


@kernel
def take(table: UInt64Array, now: float, pages: UInt32Array, slots: UInt32Array) -> int:
    """Take pages from the queue, best first, as far as their slots allow at ``now``.

    Write the pages to ``pages`` and their slots to ``slots``, at most as many as fit, and return their number.
    """
    w, s, limits = queue_at(table)
    count = np.uint64(len(pages))
    while s.tally[IN_LATER] > U0 and s.rows[s.later[U0]].due <= now:
        _settle(w, s, limits, np.uint64(s.later[U0]), now)
    while s.tally[IN_WARM] > U0 and s.rows[s.warm[U0]].soft_due <= now:
        _settle(w, s, limits, np.uint64(s.warm[U0]), now)
    found = U0
    while found < count:
        if s.tally[IN_READY] > U0:
            slot = np.uint64(s.ready[U0])
        elif s.tally[IN_WARM] > U0:
            # above the soft limit, but no cooler slot is left
            slot = np.uint64(s.warm[U0])
        else:
            break
        domain = np.uint64(s.rows[slot].domain)
        if s.domain_budgets[domain] == 0:
            _leave(w, s, limits, slot)
            continue
        begin = s.rows[slot].begin
        page = np.uint64(w.arena[begin])
        size = np.uint64(s.rows[slot].count) - U1
        s.rows[slot].count = np.uint32(size)
        s.tally[WAITING] -= U1
        w.pages[page].place = 0
        if size > U0:
            w.arena[begin] = w.arena[begin + size]
            _page_down(w, limits.newest, begin, size, U0)
        spend(s, slot, now)
        s.tally[TURNS] += U1
        s.rows[slot].turn = s.tally[TURNS]
        if limits.soft > 0 or limits.hard > 0:
            cool(s, limits, slot, now)
        _settle(w, s, limits, slot, now)
        pages[found] = np.uint32(page)
        slots[found] = np.uint32(slot)
        found += U1
    return int(found)


@kernel
def heaps(table: UInt64Array, first: int, last: int, out: UInt32Array) -> tuple[np.uint64, np.uint64]:
    """Copy the waiting pages of slots first, first + 1, … to ``out`` while they fit; return the next slot and pages."""
    w, s, _ = queue_at(table)
    count = U0
    for slot in range(np.uint64(first), np.uint64(last)):
        size = np.uint64(s.rows[slot].count)
        if count + size > np.uint64(len(out)):
            return slot, count
        for k in range(U0, size):
            out[count + k] = w.arena[s.rows[slot].begin + k]
        count += size
    return np.uint64(last), count


@kernel
def rebuild(table: UInt64Array, first: int, last: int, keys: Float32Array, now: float) -> None:
    """Give the waiting pages of slots [first, last) new keys, in the order of :func:`heaps`."""
    w, s, limits = queue_at(table)
    count = U0
    for slot in range(np.uint64(first), np.uint64(last)):
        size, begin = np.uint64(s.rows[slot].count), s.rows[slot].begin
        if size == U0:
            continue
        for k in range(U0, size):
            w.pages[w.arena[begin + k]].key = keys[count + k]
        count += size
        place = (size + _U2) >> _U2
        while place > U0:
            place -= U1
            _page_down(w, limits.newest, begin, size, place)
        _settle(w, s, limits, np.uint64(slot), now)


@kernel
def fill(table: UInt64Array, pages: UInt32Array, keys: Float32Array, slots: int, now: float) -> None:
    """Put pages into an empty queue. Each slot's heap is made at once, in a block of the right size."""
    w, s, limits = queue_at(table)
    num_slots = np.uint64(slots)
    for i in range(U0, np.uint64(len(pages))):
        page = np.uint64(pages[i])
        w.pages[page].key = keys[i]
        s.rows[_slot_of(w, page)].count += np.uint32(1)
    for slot in range(U0, num_slots):
        size = np.uint64(s.rows[slot].count)
        if size > U0:
            room = _U2
            while room < size:
                room = larger(room)
            s.rows[slot].begin = w.free[U0]
            w.free[U0] += room
            s.rows[slot].room = np.uint32(room)
            s.rows[slot].count = 0
    for i in range(U0, np.uint64(len(pages))):
        page = np.uint64(pages[i])
        slot = _slot_of(w, page)
        size = np.uint64(s.rows[slot].count)
        w.arena[s.rows[slot].begin + size] = np.uint32(page)
        w.pages[page].place = np.uint32(size + U1)
        s.rows[slot].count = np.uint32(size + U1)
    s.tally[WAITING] += np.uint64(len(pages))
    for slot in range(U0, num_slots):
        size = np.uint64(s.rows[slot].count)
        if size > U0:
            place = (size + _U2) >> _U2
            while place > U0:
                place -= U1
                _page_down(w, limits.newest, s.rows[slot].begin, size, place)
            _settle(w, s, limits, np.uint64(slot), now)
