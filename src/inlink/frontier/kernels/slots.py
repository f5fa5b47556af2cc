"""The data of the queue's loops."""

from typing import Any, NamedTuple

import numpy as np
from numpy import float32, float64, uint8, uint32, uint64

from inlink.base.arrays import Float32Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, array_at, kernel
from inlink.store.format import NO_LIMIT

__all__ = ["NODE", "SLOT", "Limits", "Slots", "Waiting", "class_of", "cool", "larger", "queue_at", "spend"]

_U2, _U3, _U4 = uint64(2), uint64(3), uint64(4)

_NO_LIMIT = uint32(NO_LIMIT)

NODE = np.dtype([("page", uint32), ("key", float32)])
"""The record of a node in the tree of a slot: the best page below it, and the page's key."""

SLOT = np.dtype(
    [
        ("begin", uint32),
        ("room", uint32),
        ("pages", uint32),
        ("count", uint32),
        ("last", uint32),
        ("best", uint32),
        ("key", float64),
        ("due", float64),
        ("soft_due", float64),
        ("heated", float64),
        ("turn", uint64),
        ("heat", float32),
        ("factor", float32),
        ("delay", float32),
        ("flying", uint32),
        ("most", uint32),
        ("taken", uint32),
        ("budget", uint32),
        ("domain", uint32),
        ("place", uint32),
        ("where", uint8),
    ],
    align=True,
)
"""The record of a slot. Times are Unix times. The fields that many pages in a row need come first.

- ``begin``, ``room``: the beginning of its tree of nodes, and the number of blocks that fit; 0 for one block
- ``pages``, ``count``: number of pages in its list, and number of those that wait
- ``last``, ``best``: the last page of its list, and the best page
- ``due``, ``soft_due``: time of the next fetch, and time at which its crawl rate is also below the soft limit
- ``heated``, ``heat``: time at which its temperature was computed, and the temperature
- ``turn``: its last turn, counted in turns of all slots
- ``key``: the key of its best page in the comparison of slots
- ``factor``: 1, less for a slot that fails
- ``delay``: seconds between two fetches
- ``flying``, ``most``: number of open leases, and its maximum
- ``taken``, ``budget``: number of pages handed out so far, and number that may still be handed out
- ``domain``: the number of its registered domain
- ``place``, ``where``: its place in its heap of slots, and the number of that heap
"""


IN_READY, IN_LATER, IN_WARM, TURNS, WAITING, JOINED, SINK = range(7)
"""Places in the slots' tally: slots in each heap, turns taken, waiting pages, pages in the lists of slots, and a sink.

The sink keeps the prefetch loop from being optimised away. It is never read.
"""


class Waiting(NamedTuple):
    """Waiting pages, and the trees that find the best of them: see :mod:`.waiting`."""

    keys: Float32Array  # of each page
    hosts: UInt32Array  # of each page
    slot_of: UInt32Array  # of each host; empty where a slot is a host
    previous: UInt32Array  # the page before each page in the list of its slot
    firsts: UInt32Array  # of each node, a number that its first page has at least
    nodes: Any  # NODE[…]
    free: UInt64Array  # [end of the nodes, …, first free tree with room for 2, 3, 4, 6, 8, … blocks]


class Slots(NamedTuple):
    """Slots in three heaps: ready by key, later by due time, warm by the time at which they have cooled down."""

    rows: Any  # SLOT[…]
    domain_budgets: UInt32Array
    ready: UInt32Array
    later: UInt32Array
    warm: UInt32Array
    tally: UInt64Array  # see above


class Limits(NamedTuple):
    """Limits of all slots; ``newest``: newest first among equals; ``diverse``: 0 by key, 1 shared, 2 in turns."""

    newest: bool
    diverse: int
    soft: float  # crawls a second, 0 is none
    hard: float
    window: float  # seconds over which a crawl rate is counted
    first: int  # open leases of a slot above which it has at most as many as leases that ended


@kernel
def class_of(room: uint64) -> uint64:
    """The free list of a tree with this room: 2 for 2 blocks, 3 for 3, 4 for 4, 5 for 6, 6 for 8, …"""
    number, left = U0, room
    while left > U1:
        left >>= U1
        number += _U2
    return number + (room & (room - U1) != U0)


@kernel
def larger(room: uint64) -> uint64:
    """The next room of a tree: 2, 3, 4, 6, 8, 12, 16, …"""
    if room == U0:
        return _U2
    return room // _U2 * _U3 if room & (room - U1) == U0 else room // _U3 * _U4


@kernel
def queue_at(table: UInt64Array) -> tuple[Waiting, Slots, Limits]:
    """``Waiting``, ``Slots`` and ``Limits``, from a table of the addresses of their arrays; limits are float64[6]."""
    waiting = Waiting(
        array_at(table, 0, float32),
        array_at(table, 1, uint32),
        array_at(table, 2, uint32),
        array_at(table, 3, uint32),
        array_at(table, 4, uint32),
        array_at(table, 5, NODE),
        array_at(table, 6, uint64),
    )
    slots = Slots(
        array_at(table, 7, SLOT),
        array_at(table, 8, uint32),
        array_at(table, 9, uint32),
        array_at(table, 10, uint32),
        array_at(table, 11, uint32),
        array_at(table, 12, uint64),
    )
    n = array_at(table, 13, float64)
    return waiting, slots, Limits(n[0] != 0, int(n[1]), n[2], n[3], n[4], int(n[5]))


@kernel
def spend(s: Slots, slot: uint64, now: float) -> None:
    """Count a page that is taken from a slot: leases, budgets, and the delay until the next fetch."""
    s.rows[slot].flying += uint32(1)
    s.rows[slot].taken += uint32(1)
    if s.rows[slot].budget != _NO_LIMIT and s.rows[slot].budget > 0:
        s.rows[slot].budget -= uint32(1)
    domain = uint64(s.rows[slot].domain)
    if s.domain_budgets[domain] != _NO_LIMIT and s.domain_budgets[domain] > 0:
        s.domain_budgets[domain] -= uint32(1)
    s.rows[slot].due = max(s.rows[slot].due, now + float64(s.rows[slot].delay))


@kernel
def _wait_under(heat: float, limit: float, window: float) -> float:
    """Seconds until the rate of a temperature falls to a limit: formula (2) of :mod:`inlink.frontier.backoff`."""
    gap = 1.0 / (limit * window)
    return max(window * (np.log(heat) + gap + np.log(-np.expm1(-gap))), 0.0)


@kernel
def cool(s: Slots, limits: Limits, slot: uint64, now: float) -> None:
    """Count a crawl in the slot's temperature, and set the times at which its rate is below the limits again."""
    heat = float64(s.rows[slot].heat) * np.exp(-max(now - s.rows[slot].heated, 0.0) / limits.window) + 1.0
    s.rows[slot].heat = float32(heat)
    s.rows[slot].heated = now
    if limits.hard > 0:
        s.rows[slot].due = max(s.rows[slot].due, now + _wait_under(heat, limits.hard, limits.window))
    s.rows[slot].soft_due = s.rows[slot].due
    if limits.soft > 0:
        s.rows[slot].soft_due = max(s.rows[slot].due, now + _wait_under(heat, limits.soft, limits.window))
