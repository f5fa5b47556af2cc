"""What the queue's loops work on."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["PAGE", "SLOT", "Limits", "Slots", "Waiting"]

U32A = npt.NDArray[np.uint32]
U64A = npt.NDArray[np.uint64]

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


class Waiting(NamedTuple):
    """Waiting pages, and where their heaps are."""

    pages: Any  # PAGE[…]
    hosts: U32A  # of each page
    slot_of: U32A  # of each host; empty where a slot is a host
    arena: U32A
    free: U64A  # [end of the arena, first free block of 2, 4, 8, … pages]


class Slots(NamedTuple):
    """Slots, and three heaps of them: ready by key, later by when they are due, warm by when they have cooled down."""

    rows: Any  # SLOT[…]
    domain_budgets: U32A
    ready: U32A
    later: U32A
    warm: U32A
    tally: U64A  # ready, later, warm, turns, waiting pages, scrap


class Limits(NamedTuple):
    """What holds for all: ``newest`` first among equals; ``diverse``: 0 by key, 1 shared among slots, 2 in turns."""

    newest: bool
    diverse: int
    soft: float  # crawls a second, 0 is none
    hard: float
    window: float  # seconds over which a crawl rate is counted
