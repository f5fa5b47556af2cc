"""What the queue's loops work on."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from inlink.base.jit import U0, U1, array_at, kernel

__all__ = ["PAGE", "SLOT", "Limits", "Slots", "Waiting", "class_of", "larger", "queue_at"]

U32A = npt.NDArray[np.uint32]
U64A = npt.NDArray[np.uint64]
_U2, _U3, _U4 = np.uint64(2), np.uint64(3), np.uint64(4)

PAGE = np.dtype([("key", np.float32), ("at", np.uint32)])
"""Of a waiting page: its priority, and its place in its slot's heap + 1; 0 where it does not wait."""

SLOT = np.dtype(
    [
        ("begin", np.uint64),  # of its heap in the arena
        ("count", np.uint32),  # waiting pages
        ("room", np.uint32),
        ("due", np.float64),  # when it may be fetched from next
        ("soft_due", np.float64),  # when its crawl rate is below the soft limit too
        ("heated", np.float64),
        ("turn", np.uint64),
        ("key", np.float64),  # of its best page, all told
        ("heat", np.float32),
        ("factor", np.float32),  # 1, less for one that fails
        ("delay", np.float32),
        ("flying", np.uint32),  # leases out
        ("most", np.uint32),  # leases at a time
        ("taken", np.uint32),  # pages handed out so far
        ("budget", np.uint32),  # pages that may still be handed out
        ("domain", np.uint32),
        ("at", np.uint32),  # its place in its heap of slots
        ("where", np.uint8),
    ],
    align=True,
)


IN_READY, IN_LATER, IN_WARM, TURNS, WAITING, SCRAP = range(6)
"""Places in the slots' tally: how many each heap holds, turns taken, waiting pages, and what nobody reads."""


class Waiting(NamedTuple):
    """Waiting pages, and where their heaps are."""

    pages: Any  # PAGE[…]
    hosts: U32A  # of each page
    slot_of: U32A  # of each host; empty where a slot is a host
    arena: U32A
    free: U64A  # [end of the arena, …, first free block of 2, 3, 4, 6, 8, … pages]


class Slots(NamedTuple):
    """Slots, and three heaps of them: ready by key, later by when they are due, warm by when they have cooled down."""

    rows: Any  # SLOT[…]
    domain_budgets: U32A
    ready: U32A
    later: U32A
    warm: U32A
    tally: U64A  # see above


class Limits(NamedTuple):
    """What holds for all: ``newest`` first among equals; ``diverse``: 0 by key, 1 shared among slots, 2 in turns."""

    newest: bool
    diverse: int
    soft: float  # crawls a second, 0 is none
    hard: float
    window: float  # seconds over which a crawl rate is counted


@kernel
def class_of(room: np.uint64) -> np.uint64:
    """Which free list a block of ``room`` pages belongs to: 2 for 2 pages, 3 for 3, 4 for 4, 5 for 6, 6 for 8, …"""
    number, left = U0, room
    while left > U1:
        left >>= U1
        number += _U2
    return number + (room & (room - U1) != U0)


@kernel
def larger(room: np.uint64) -> np.uint64:
    """The next size of a block: 2, 3, 4, 6, 8, 12, 16, …"""
    if room == U0:
        return _U2
    return room // _U2 * _U3 if room & (room - U1) == U0 else room // _U3 * _U4


@kernel
def queue_at(at: U64A) -> tuple[Waiting, Slots, Limits]:
    """What the loops work on, from a table of addresses: ``Waiting``, ``Slots``, and ``Limits`` as float64[5]."""
    waiting = Waiting(
        array_at(at, 0, PAGE),
        array_at(at, 1, np.uint32),
        array_at(at, 2, np.uint32),
        array_at(at, 3, np.uint32),
        array_at(at, 4, np.uint64),
    )
    slots = Slots(
        array_at(at, 5, SLOT),
        array_at(at, 6, np.uint32),
        array_at(at, 7, np.uint32),
        array_at(at, 8, np.uint32),
        array_at(at, 9, np.uint32),
        array_at(at, 10, np.uint64),
    )
    given = array_at(at, 11, np.float64)
    return waiting, slots, Limits(given[0] != 0, int(given[1]), given[2], given[3], given[4])
