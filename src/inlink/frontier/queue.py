"""The queue: which waiting page comes next, as far as politeness allows.

Python's side of :mod:`inlink.frontier.kernels.queue`. Every column's address space is reserved once; nothing here
knows what a key means, nor where pages come from.
"""

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inlink.base.columns import most_pages, reserve
from inlink.base.jit import addresses
from inlink.frontier.kernels import queue as kernels
from inlink.frontier.kernels.slots import (
    IN_LATER,
    IN_READY,
    IN_WARM,
    PAGE,
    SLOT,
    TURNS,
    WAITING,
    Limits,
    Slots,
    Waiting,
)
from inlink.frontier.traps import FACTORS

__all__ = ["NO_LIMIT", "Queue"]

U32 = npt.NDArray[np.uint32]
F32 = npt.NDArray[np.float32]

NO_LIMIT = 0xFFFFFFFF
_PAGES = most_pages()
_SLOTS = _PAGES // 8
_AT_A_TIME = 1 << 14  # pages re-keyed in one go: a millisecond or two


@dataclass
class Politeness:
    """How often a host may be asked; seconds, crawls a second. Defaults are gentle to hosts.

    Parameters
    ----------
    by : {"host", "domain"}
        What these hold for: a host or a registered domain.
    delay : float
        Seconds between two fetches.
    in_flight : int
        Leases out at a time.
    soft_rate, hard_rate : float
        Crawls a second above which a host comes after all others, and above which it is not asked; 0 is none.
        Counted as Aduana does, by a temperature that rises by one each crawl and cools down exponentially.
    rate_window : float
        Seconds over which a rate is counted: the time in which the temperature falls to 1/e.
    host_budget, domain_budget : int or None
        Pages that a crawl may take from a host, from a domain.
    park_after : int
        Failures in a row, of the kind that tell of a dead host, after which it is parked.
    park_seconds : float
        How long; then one page is tried.
    """

    by: str = "host"
    delay: float = 1.0
    in_flight: int = 1
    soft_rate: float = 0.0
    hard_rate: float = 0.0
    rate_window: float = 60.0
    host_budget: int | None = None
    domain_budget: int | None = None
    park_after: int = 8
    park_seconds: float = 86_400.0


class Queue:
    """Waiting pages, by slot; a slot is a host, or with ``by="domain"`` a registered domain.

    Parameters
    ----------
    hosts : uint32[…]
        The host of each page.
    politeness : Politeness
    newest : bool
        Among pages with equal keys the one discovered last comes first.
    sharing : {"none", "shared", "turns"}
        How slots compete: by their best page's key; by that divided by 1 + pages taken; or in turns.
    """

    def __init__(
        self, hosts: U32, politeness: Politeness, *, newest: bool = False, sharing: str = "none"
    ) -> None:
        self.politeness = politeness
        self.by_domain = politeness.by == "domain"
        self.waiting = Waiting(
            reserve(PAGE, _PAGES),
            hosts,
            reserve(np.uint32, _SLOTS) if self.by_domain else np.empty(0, np.uint32),
            reserve(np.uint32, 2 * _PAGES),
            np.zeros(64, np.uint64),
        )
        self.waiting.free[0] = 2  # block 0 would look like none
        self.slots = Slots(
            reserve(SLOT, _SLOTS),
            reserve(np.uint32, _SLOTS),
            reserve(np.uint32, _SLOTS),
            reserve(np.uint32, _SLOTS),
            reserve(np.uint32, _SLOTS),
            np.zeros(6, np.uint64),
        )
        self.rows = self.slots.rows
        self.limits = Limits(
            newest,
            ("none", "shared", "turns").index(sharing),
            politeness.soft_rate,
            politeness.hard_rate,
            politeness.rate_window,
        )
        self._numbers = np.array(self.limits, np.float64)
        self._at = addresses([*self.waiting, *self.slots, self._numbers])
        self.num_slots = 0
        self._rekeyed = self._rekey_to = 0

    def __len__(self) -> int:
        return int(self.slots.tally[WAITING])

    def slot(self, page: int) -> int:
        """The slot of a page."""
        host = int(self.waiting.hosts[page])
        return int(self.waiting.slot_of[host]) if self.by_domain else host

    def add_slots(self, count: int) -> None:
        """Make room for slots up to ``count``; new ones get the defaults."""
        old, polite = self.num_slots, self.politeness
        if count <= old:
            return
        fresh = self.rows[old:count]
        fresh["factor"], fresh["delay"], fresh["most"] = 1, polite.delay, polite.in_flight
        fresh["budget"] = NO_LIMIT if polite.host_budget is None else polite.host_budget
        self.num_slots = count

    def add_domains(self, first: int, count: int) -> None:
        """Give domains first … count − 1 their budget."""
        budget = self.politeness.domain_budget
        self.slots.domain_budgets[first:count] = NO_LIMIT if budget is None else budget

    # -- pages ------------------------------------------------------------------------------------------------------

    def place(
        self,
        pages: U32,
        priorities: F32,
        traps: npt.NDArray[np.uint8],
        states: npt.NDArray[np.uint8],
        errors: npt.NDArray[np.uint8],
        now: float,
        *,
        all_of_them: bool = False,
    ) -> None:
        """Put pages into the queue, or change the keys of those in it: see :func:`.kernels.queue.place_pages`."""
        kernels.place_pages(self._at, pages, priorities, traps, FACTORS, states, errors, all_of_them, now)

    def fill(self, pages: U32, keys: F32, now: float) -> None:
        """Put many pages into an empty queue at once."""
        kernels.fill(self._at, pages, keys, self.num_slots, now)

    def remove(self, page: int, now: float) -> None:
        """Take a page out, if it is in."""
        kernels.remove_page(self._at, page, now)

    def __contains__(self, page: int) -> bool:
        return bool(self.waiting.pages[page]["at"] > 0)

    def key(self, page: int) -> float:
        """The key of a waiting page."""
        return float(self.waiting.pages[page]["key"])

    def take(self, count: int, now: float) -> tuple[U32, U32]:
        """The best pages that may be fetched at ``now``, taken out: pages and their slots, each uint32[≤ count]."""
        pages, slots = np.empty(count, np.uint32), np.empty(count, np.uint32)
        found = kernels.take(self._at, now, pages, slots)
        return pages[:found], slots[:found]

    def take_one(self, page: int, now: float) -> int:
        """Take a page out, whether it is its turn or not, and count that against its slot, which it returns."""
        self.remove(page, now)
        slot = self.slot(page)
        row = self.rows[slot]
        row["flying"] += 1
        row["taken"] += 1
        if row["budget"] not in (0, NO_LIMIT):
            row["budget"] -= 1
        left = self.slots.domain_budgets
        if left[row["domain"]] not in (0, NO_LIMIT):
            left[row["domain"]] -= np.uint32(1)
        row["due"] = max(float(row["due"]), now + float(row["delay"]))
        self.settle(slot, now)
        return slot

    def due_in(self, now: float) -> float | None:
        """Seconds until a slot with waiting pages may be fetched from; None if none ever will by time alone."""
        s = self.slots
        if s.tally[IN_READY] > 0 or s.tally[IN_WARM] > 0:
            return 0.0
        if s.tally[IN_LATER] == 0:
            return None
        return max(float(self.rows[s.later[0]]["due"]) - now, 0.0)

    # -- slots ------------------------------------------------------------------------------------------------------

    def landed(self, slot: int, now: float) -> None:
        """A lease of a slot has ended."""
        kernels.land(self._at, slot, now)

    def wait(self, slot: int, until: float, now: float) -> None:
        """Do not fetch from a slot before ``until``."""
        if until > self.rows[slot]["due"]:
            self.rows[slot]["due"] = until
            self.settle(slot, now)

    def give_back(self, slot: int, now: float) -> None:
        """A page that counted as taken waits again: it costs nothing of its host's and domain's budgets."""
        row = self.rows[slot]
        if row["taken"] > 0:
            row["taken"] -= 1
        if row["budget"] != NO_LIMIT:
            row["budget"] += 1
        domain = int(row["domain"])
        if self.slots.domain_budgets[domain] != NO_LIMIT:
            self.slots.domain_budgets[domain] += np.uint32(1)
        self.settle(slot, now)

    def settle(self, slot: int, now: float) -> None:
        """Put a slot where it belongs after its columns were changed."""
        kernels.settle(self._at, slot, now)

    # -- re-keying ----------------------------------------------------------------------------------------------------

    def begin_rekeying(self) -> None:
        """Keys have changed: :meth:`rekey` will go through all slots anew."""
        self._rekeyed, self._rekey_to = 0, self.num_slots  # slots that come later have new keys already

    @property
    def rekeying(self) -> bool:
        """Whether slots still have old keys."""
        return self._rekeyed < self._rekey_to

    def next_to_rekey(self) -> tuple[int, int, U32]:
        """The next slots to re-key, from and to, and their waiting pages: some 16,384, or one slot's, however many."""
        first, out = self._rekeyed, np.empty(_AT_A_TIME, np.uint32)
        last, count = kernels.heaps(self._at, first, self._rekey_to, out)
        if last == first and first < self._rekey_to:
            out = np.empty(int(self.rows[first]["count"]), np.uint32)
            last, count = kernels.heaps(self._at, first, first + 1, out)
        return first, int(last), out[: int(count)]

    def rekey(self, first: int, last: int, keys: F32, now: float) -> None:
        """Give the pages that :meth:`next_to_rekey` told their new keys."""
        kernels.rebuild(self._at, first, last, keys, now)
        self._rekeyed = last

    # -- looking ------------------------------------------------------------------------------------------------------

    def order(self, count: int, now: float) -> list[tuple[int, float, float]]:
        """The next pages as far as keys and slots tell, nothing taken: (page, key all told, due in seconds).

        Slots that must wait come behind those that need not, by when they are due. More than ``count`` slots need
        not be looked at.
        """
        rows = self.rows[: self.num_slots]
        filled = np.flatnonzero((rows["count"] > 0) & (rows["budget"] > 0))
        some = rows[filled]
        best = self.waiting.arena[some["begin"]]
        keys = self._shared(self.waiting.pages[best]["key"] * some["factor"].astype(np.float64), some, 0)
        waits = np.maximum(some["due"] - now, 0.0)
        age = -best.astype(np.int64) if self.limits.newest else best.astype(np.int64)
        chosen = np.lexsort((age, -keys, waits))[:count]
        heads = [(float(waits[k]), -float(keys[k]), int(age[k]), int(filled[k]), 0) for k in chosen.tolist()]
        heapq.heapify(heads)
        orders: dict[int, U32] = {}
        found: list[tuple[int, float, float]] = []
        while heads and len(found) < count:
            wait, key, age_of, slot, place = heapq.heappop(heads)
            found.append((abs(age_of), -key, wait))
            if slot not in orders:
                orders[slot] = self._sorted(slot, count)
            if place + 1 < len(orders[slot]):
                row, page = self.rows[slot], int(orders[slot][place + 1])
                key = float(self.waiting.pages[page]["key"]) * float(row["factor"])
                heads_key = float(self._shared(np.float64(key), row, place + 1))
                if self.limits.diverse == 2:
                    heads_key = -float(self.slots.tally[TURNS]) - len(found)  # its turn is over now
                later = max(float(row["due"]) - now, 0.0) + (place + 1) * float(row["delay"])
                age_of = -page if self.limits.newest else page
                heapq.heappush(heads, (later, -heads_key, age_of, slot, place + 1))
        return found

    def _shared(self, keys: Any, rows: Any, place: int) -> Any:
        """The keys of pages that have ``place`` others of their slot before them, as slots compete by them."""
        if self.limits.diverse == 1:
            return keys / (1.0 + rows["taken"] + place)
        if self.limits.diverse == 2:
            return -rows["turn"].astype(np.float64)
        return keys

    def _sorted(self, slot: int, count: int) -> U32:
        """The first waiting pages of a slot, in order."""
        begin, size = int(self.rows[slot]["begin"]), int(self.rows[slot]["count"])
        members = self.waiting.arena[begin : begin + size]
        keys = self.waiting.pages[members]["key"]
        if count + 1 < size:
            least = np.partition(keys, size - count - 1)[size - count - 1]
            members = members[keys >= least]
            keys = self.waiting.pages[members]["key"]
        age = -members.astype(np.int64) if self.limits.newest else members.astype(np.int64)
        return members[np.lexsort((age, -keys))[: count + 1]]
