"""The loops of the queue: a heap of waiting pages for each slot, a heap of slots that may be fetched from, and one
of those that must wait.

A *slot* is what politeness counts: a host, or a registered domain. Each heap is 4-ary, stands in an array, and
knows where each member is, so that a priority can change in place. Pages come by (key down, age), slots by their
best page's.
"""

import numpy as np
import numpy.typing as npt

from inlink.base.jit import U0, U1, kernel
from inlink.frontier.kernels.slots import (
    IN_LATER,
    IN_READY,
    IN_WARM,
    SCRAP,
    TURNS,
    WAITING,
    Limits,
    Slots,
    Waiting,
    class_of,
    larger,
    queue_at,
)

__all__ = ["fill", "heaps", "keys", "land", "place_pages", "rebuild", "remove_page", "settle", "take"]

U8A = npt.NDArray[np.uint8]
U32A = npt.NDArray[np.uint32]
U64A = npt.NDArray[np.uint64]
F32A = npt.NDArray[np.float32]
F64A = npt.NDArray[np.float64]

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
        w.pages[other].at = np.uint32(place + U1)
        place = parent
    w.arena[begin + place] = page
    w.pages[page].at = np.uint32(place + U1)


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
        w.pages[other].at = np.uint32(place + U1)
        place = best
    w.arena[begin + place] = page
    w.pages[page].at = np.uint32(place + U1)


@kernel
def _make_room(w: Waiting, s: Slots, slot: np.uint64) -> None:
    """Move a slot's heap to a block of the next size; the old one becomes free."""
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


# -- slots among one another --------------------------------------------------------------------------------------


@kernel
def _slot_before(w: Waiting, s: Slots, limits: Limits, heap: U32A, a: np.uint32, b: np.uint32) -> bool:
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
def _slot_up(w: Waiting, s: Slots, limits: Limits, heap: U32A, place: np.uint64) -> np.uint64:
    slot = heap[place]
    while place > U0:
        parent = (place - U1) >> _U2
        other = heap[parent]
        if not _slot_before(w, s, limits, heap, slot, other):
            break
        heap[place] = other
        s.rows[other].at = np.uint32(place)
        place = parent
    heap[place] = slot
    s.rows[slot].at = np.uint32(place)
    return place


@kernel
def _slot_down(w: Waiting, s: Slots, limits: Limits, heap: U32A, size: np.uint64, place: np.uint64) -> None:
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
        s.rows[other].at = np.uint32(place)
        place = best
    heap[place] = slot
    s.rows[slot].at = np.uint32(place)


@kernel
def _heap(s: Slots, where: np.uint8) -> U32A:
    """The heap of slots of that name."""
    if where == READY:
        return s.ready
    return s.later if where == LATER else s.warm


@kernel
def _leave(w: Waiting, s: Slots, limits: Limits, slot: np.uint64) -> None:
    """Take a slot out of the heap it is in."""
    where = s.rows[slot].where
    if where == NOWHERE:
        return
    heap, number = _heap(s, where), np.uint64(where) - U1
    size = s.tally[number] - U1
    s.tally[number] = size
    place = np.uint64(s.rows[slot].at)
    s.rows[slot].where = NOWHERE
    if place != size:
        heap[place] = heap[size]
        place = _slot_up(w, s, limits, heap, place)
        _slot_down(w, s, limits, heap, size, place)


@kernel
def _settle(w: Waiting, s: Slots, limits: Limits, slot: np.uint64, now: float) -> None:
    """Put a slot where it belongs: among the ready, the warm, those that wait, or nowhere."""
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
        place = _slot_up(w, s, limits, s.ready, np.uint64(s.rows[slot].at))
        _slot_down(w, s, limits, s.ready, s.tally[IN_READY], place)
        return
    _leave(w, s, limits, slot)  # what it is sorted by may have changed
    s.rows[slot].key = key
    s.rows[slot].where = goal
    heap, number = _heap(s, goal), np.uint64(goal) - U1
    place = s.tally[number]
    heap[place] = np.uint32(slot)
    s.rows[slot].at = np.uint32(place)
    s.tally[number] = place + U1
    _slot_up(w, s, limits, heap, place)


# -- what the frontier calls; ``at`` is a table of addresses, see :func:`.slots.queue_at` -----------------------------


@kernel
def settle(at: U64A, slot: int, now: float) -> None:
    """:func:`_settle` after a slot's columns were changed."""
    w, s, limits = queue_at(at)
    _settle(w, s, limits, np.uint64(slot), now)


@kernel
def land(at: U64A, slot: int, now: float) -> None:
    """A lease of a slot has ended."""
    w, s, limits = queue_at(at)
    if s.rows[slot].flying > 0:
        s.rows[slot].flying -= np.uint32(1)
    _settle(w, s, limits, np.uint64(slot), now)


@kernel
def keys(pages: U32A, priorities: F32A, traps: U8A, factors: F32A) -> F32A:
    """What pages are sorted by, float32[n]: priority times the factor of their trap code."""
    found = np.empty(np.uint64(len(pages)), np.float32)
    for i in range(U0, np.uint64(len(pages))):
        found[i] = priorities[i] * factors[traps[pages[i]]]
    return found


@kernel
def place_pages(
    at: U64A,
    pages: U32A,
    priorities: F32A,
    traps: U8A,
    factors: F32A,
    states: U8A,
    errors: U8A,
    all_of_them: bool,
    now: float,
) -> None:
    """Put pages into the queue, or change the keys of those that are in it: priority times the factor of their
    trap code.

    Unless ``all_of_them``, only pages that were discovered and not taken, and of those that failed only such as
    are in it already.
    """
    w, s, limits = queue_at(at)
    touched = U0
    for i in range(
        U0, np.uint64(len(pages))
    ):  # so that the processor waits for memory once and not page by page
        page = np.uint64(pages[i])
        touched += (
            np.uint64(w.pages[page].at) + np.uint64(w.hosts[page]) + np.uint64(states[page] + traps[page])
        )
    s.tally[SCRAP] = touched  # or the touching would be optimised away
    for i in range(U0, np.uint64(len(pages))):
        page = np.uint64(pages[i])
        inside = w.pages[page].at > 0
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
            place = np.uint64(w.pages[page].at) - U1
            if key > old:
                _page_up(w, limits.newest, begin, place)
            else:
                _page_down(w, limits.newest, begin, np.uint64(s.rows[slot].count), place)
            if place > U0 and w.pages[page].at != 1:
                continue  # the slot's best page is as it was
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
            if w.pages[page].at != 1:
                continue
        _settle(w, s, limits, slot, now)


@kernel
def remove_page(at: U64A, number: int, now: float) -> None:
    """Take a page out of the queue, if it is in it."""
    w, s, limits = queue_at(at)
    page = np.uint64(number)
    if w.pages[page].at == 0:
        return
    slot = _slot_of(w, page)
    begin, place = s.rows[slot].begin, np.uint64(w.pages[page].at) - U1
    size = np.uint64(s.rows[slot].count) - U1
    s.rows[slot].count = np.uint32(size)
    s.tally[WAITING] -= U1
    w.pages[page].at = 0
    if place != size:
        other = w.arena[begin + size]
        w.arena[begin + place] = other
        w.pages[other].at = np.uint32(place + U1)
        _page_up(w, limits.newest, begin, place)
        _page_down(w, limits.newest, begin, size, np.uint64(w.pages[other].at) - U1)
    _settle(w, s, limits, slot, now)


@kernel
def _wait_under(heat: float, limit: float, window: float) -> float:
    """Seconds until the rate of a temperature falls to a limit: ``backoff.due_under``."""
    gap = 1.0 / (limit * window)
    return max(window * (np.log(heat) + gap + np.log(-np.expm1(-gap))), 0.0)


@kernel
def _cool(s: Slots, limits: Limits, slot: np.uint64, now: float) -> None:
    """Count a crawl in the slot's temperature; find when its rate is below the limits again."""
    heat = np.float64(s.rows[slot].heat) * np.exp(-max(now - s.rows[slot].heated, 0.0) / limits.window) + 1.0
    s.rows[slot].heat = np.float32(heat)
    s.rows[slot].heated = now
    if limits.hard > 0:
        s.rows[slot].due = max(s.rows[slot].due, now + _wait_under(heat, limits.hard, limits.window))
    s.rows[slot].soft_due = s.rows[slot].due
    if limits.soft > 0:
        s.rows[slot].soft_due = max(s.rows[slot].due, now + _wait_under(heat, limits.soft, limits.window))


@kernel
def take(at: U64A, now: float, pages: U32A, slots: U32A) -> int:
    """Take pages out of the queue, best first, as their slots allow at ``now``; returns how many.

    ``pages`` gets them and ``slots`` theirs; their length is how many are wanted.
    """
    w, s, limits = queue_at(at)
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
            slot = np.uint64(s.warm[U0])  # above the soft limit, but nothing cooler is left
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
        w.pages[page].at = 0
        if size > U0:
            w.arena[begin] = w.arena[begin + size]
            _page_down(w, limits.newest, begin, size, U0)
        s.rows[slot].flying += np.uint32(1)
        s.rows[slot].taken += np.uint32(1)
        if s.rows[slot].budget != np.uint32(0xFFFFFFFF):
            s.rows[slot].budget -= np.uint32(1)
        if s.domain_budgets[domain] != np.uint32(0xFFFFFFFF):
            s.domain_budgets[domain] -= np.uint32(1)
        s.tally[TURNS] += U1
        s.rows[slot].turn = s.tally[TURNS]
        s.rows[slot].due = max(s.rows[slot].due, now + np.float64(s.rows[slot].delay))
        if limits.soft > 0 or limits.hard > 0:
            _cool(s, limits, slot, now)
        _settle(w, s, limits, slot, now)
        pages[found] = np.uint32(page)
        slots[found] = np.uint32(slot)
        found += U1
    return int(found)


@kernel
def heaps(at: U64A, first: int, last: int, out: U32A) -> tuple[np.uint64, np.uint64]:
    """Copy the waiting pages of slots first, first + 1, … to ``out`` as far as they fit; returns (next slot, pages)."""
    w, s, _ = queue_at(at)
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
def rebuild(at: U64A, first: int, last: int, keys: F32A, now: float) -> None:
    """Give the waiting pages of slots [first, last) new keys, in the order in which :func:`heaps` told them."""
    w, s, limits = queue_at(at)
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
def fill(at: U64A, pages: U32A, keys: F32A, slots: int, now: float) -> None:
    """Put pages into an empty queue: each slot's heap is made in one go, in a block of the size that it needs."""
    w, s, limits = queue_at(at)
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
        w.pages[page].at = np.uint32(size + U1)
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
