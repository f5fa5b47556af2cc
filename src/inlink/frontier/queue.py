"""The queue of waiting pages: it gives the next page that politeness allows.

This is the Python side of :mod:`inlink.frontier.kernels.queue`. The address space of each column is reserved once. The
queue does not know the meaning of keys, nor the source of pages.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from inlink.base.arrays import AnyArray, Float32Array, UInt8Array, UInt32Array
from inlink.base.columns import most_pages, reserve
from inlink.base.jit import addresses
from inlink.base.settings import NO_LIMIT
from inlink.frontier.backoff import wait_under
from inlink.frontier.kernels import queue as kernels
from inlink.frontier.kernels.slots import (
    IN_LATER,
    IN_READY,
    IN_WARM,
    JOINED,
    NODE,
    SLOT,
    TURNS,
    WAITING,
    Limits,
    Slots,
    Waiting,
)
from inlink.frontier.kernels.waiting import OUT
from inlink.frontier.settings import Politeness
from inlink.frontier.traps import FACTORS
from inlink.store.checkpoint import Checkpoint, StatePart
from inlink.store.spill import Finished

_PAGES = most_pages()
_SLOTS = _PAGES // 8
_NODES = _PAGES // 2
"""Room for all trees, which take at most a third of a node for each known page."""
_AT_A_TIME = 1 << 14
"""Number of pages that are looked at for new keys at a time, in one to four milliseconds."""
_LIST = ("begin", "room", "pages", "count", "last", "best")
"""The columns of a slot that describe its list of pages."""
_Head = tuple[float, float, float, int, int]
_TIES = 4096
"""Maximum number of slots due at the same moment that :meth:`Queue.order` sorts by key."""


class Queue:
    """Waiting pages, by slot; a slot is a host, or with ``by="domain"`` a registered domain.

    Parameters
    ----------
    hosts : uint32[…]
        The host of each page.
    politeness : Politeness
    newest : bool
        Among pages with equal keys, the page discovered last comes first.
    sharing : {"none", "shared", "turns"}
        How slots compete: by the key of their best page; by that key divided by 1 + pages taken; or in turns.
    first_leases : int
        A slot may have more open leases than this only up to the number of its pages that were taken and have no open
        lease.
    """

    def __init__(
        self,
        hosts: UInt32Array,
        politeness: Politeness,
        *,
        newest: bool = False,
        sharing: str = "none",
        first_leases: int = NO_LIMIT,
    ) -> None:
        self.politeness = politeness
        self.by_domain = politeness.by == "domain"
        self.waiting = Waiting(
            reserve(np.float32, _PAGES),
            hosts,
            reserve(np.uint32, _SLOTS) if self.by_domain else np.empty(0, np.uint32),
            reserve(np.uint32, _PAGES),
            reserve(np.uint32, _NODES),
            reserve(NODE, _NODES),
            np.zeros(64, np.uint64),
        )
        # A tree at 0 would look like no tree.
        self.waiting.free[0] = 2
        self.slots = Slots(
            reserve(SLOT, _SLOTS),
            reserve(np.uint32, _SLOTS),
            reserve(np.uint32, _SLOTS),
            reserve(np.uint32, _SLOTS),
            reserve(np.uint32, _SLOTS),
            np.zeros(7, np.uint64),
        )
        self.rows = self.slots.rows
        self._numbers = np.zeros(len(Limits._fields))
        self._set_limits(newest, ("none", "shared", "turns").index(sharing), first_leases)
        self._table = addresses([*self.waiting, *self.slots, self._numbers])
        self.num_slots = 0
        # The turn of each slot at its last lease, if slots take turns.
        self._turns = reserve(np.uint64, _SLOTS) if self.limits.diverse == 2 else None
        self._leases = 0
        # For slots with a limit of their own: the total number of pages that may be taken from them.
        self.limit_of: dict[int, int] = {}
        # Numbers of pages taken beyond the budgets of domains, by redirects and by answers without a lease.
        self.overdrawn: dict[int, int] = {}
        # Where re-keying stands, where its present step ends, and the number of slots to go through.
        self._rekeyed, self._rekeying = np.zeros(3, np.uint64), np.zeros(3, np.uint64)
        self._rekey_to = 0
        # True while slots have old keys.
        self.rekeying = False

    def _set_limits(self, newest: bool, diverse: int, first: int) -> None:
        polite = self.politeness
        self.limits = Limits(newest, diverse, polite.soft_rate, polite.hard_rate, polite.rate_window, first)
        # Kernels read these numbers where they are.
        self._numbers[:] = self.limits

    def set_politeness(self, politeness: Politeness) -> None:
        """Apply new limits to all slots. The caller must set delays, dates and domains.

        The caller must also call :meth:`settle` for each slot whose value in :meth:`are_open` changes.
        """
        self.politeness = politeness
        self._set_limits(self.limits.newest, self.limits.diverse, self.limits.first)
        rows = self.rows[: self.num_slots]
        rows["most"] = politeness.in_flight
        limit = self._usual_limit
        left = np.maximum(limit - rows["taken"].astype(np.int64), 0)
        rows["budget"] = NO_LIMIT if limit == NO_LIMIT else left
        for slot in self.limit_of:
            self.count_budget(slot)

    def are_open(self) -> AnyArray:
        """Return whether leases and budgets allow further pages to be taken from each slot, bool[slots]."""
        rows = self.rows[: self.num_slots]
        left = self.slots.domain_budgets[rows["domain"]]
        found: AnyArray = (rows["flying"] < self.most_leases(rows)) & (rows["budget"] > 0) & (left > 0)
        return found

    def most_leases(self, rows: AnyArray) -> AnyArray:
        """The maximum number of open leases of slots at present, int64[n]."""
        ended = rows["taken"].astype(np.int64) - rows["flying"]
        most: AnyArray = np.minimum(rows["most"], np.maximum(ended, self.limits.first))
        return most

    def __len__(self) -> int:
        return int(self.slots.tally[WAITING])

    def slot(self, page: int) -> int:
        """The slot of a page."""
        host = int(self.waiting.hosts[page])
        return int(self.waiting.slot_of[host]) if self.by_domain else host

    def slots_of(self, pages: AnyArray | slice) -> UInt32Array:
        """The slots of pages, uint32[k]."""
        hosts = self.waiting.hosts[pages]
        return self.waiting.slot_of[hosts] if self.by_domain else hosts

    def add_slots(self, count: int) -> None:
        """Make room for slots up to ``count``, and give new ones the defaults."""
        old, polite = self.num_slots, self.politeness
        if count <= old:
            return
        fresh = self.rows[old:count]
        fresh["factor"], fresh["delay"], fresh["most"] = 1, polite.delay, polite.in_flight
        fresh["budget"] = NO_LIMIT if polite.host_budget is None else polite.host_budget
        self.num_slots = count

    @property
    def _usual_limit(self) -> int:
        budget = self.politeness.host_budget
        return NO_LIMIT if budget is None else budget

    def count_budget(self, slot: int) -> None:
        """Update the budget of a slot after its limit or the number of taken pages changed."""
        row, limit = self.rows[slot], self.limit_of.get(slot, self._usual_limit)
        row["budget"] = NO_LIMIT if limit == NO_LIMIT else max(limit - int(row["taken"]), 0)

    def add_domains(self, first: int, count: int) -> None:
        """Give domains first … count − 1 their budget."""
        budget = self.politeness.domain_budget
        self.slots.domain_budgets[first:count] = NO_LIMIT if budget is None else budget

    # -- pages ------------------------------------------------------------------------------------------------------

    def place(
        self,
        pages: UInt32Array,
        priorities: Float32Array,
        traps: UInt8Array,
        states: UInt8Array,
        errors: UInt8Array,
        now: float,
        *,
        all_of_them: bool = False,
    ) -> None:
        """Put pages into the queue, or change their keys if they are in it: see :func:`.kernels.queue.place_pages`."""
        kernels.place_pages(self._table, pages, priorities, traps, FACTORS, states, errors, all_of_them, now)

    def fill(self, known: int, waiting: Iterable[tuple[UInt32Array, Float32Array]], now: float) -> None:
        """Fill an empty queue with those of ``known`` pages that wait: some pages at a time, with their keys."""
        keys = self.waiting.keys
        keys[:known] = OUT
        for pages, fresh in waiting:
            keys[pages] = fresh
        kernels.fill(self._table, known, self.num_slots, now)
        # All keys were computed just now, so no key of an earlier ranking is left.
        self.rekeying = False

    def parts(self, known: int) -> Iterator[StatePart]:
        """The lists of pages and their trees among the first ``known`` pages, by name, without dates and budgets."""
        waiting, rows = self.waiting, self.rows[: self.num_slots]
        yield "queue_free", [waiting.free]
        end = int(waiting.free[0])
        yield "queue_keys", [waiting.keys[:known]]
        yield "queue_previous", [waiting.previous[:known]]
        yield "queue_firsts", [waiting.firsts[:end]]
        yield "queue_nodes", [waiting.nodes[:end].view(np.uint64)]
        for column in _LIST:
            yield f"queue_{column}", [np.ascontiguousarray(rows[column])]

    def restore(self, checkpoint: Checkpoint, known: int, slots: int) -> None:
        """Take in the lists of a checkpoint of ``known`` pages and ``slots`` slots. The caller must settle all slots.

        Raises
        ------
        inlink.errors.FolderError
            If a file of it is damaged.
        """
        for column in _LIST:
            self.rows[column][:slots] = checkpoint.array(f"queue_{column}")
        checkpoint.fill(islice(self.parts(known), 5))
        self.slots.tally[WAITING] = self.rows["count"][:slots].sum(dtype=np.uint64)
        self.slots.tally[JOINED] = self.rows["pages"][:slots].sum(dtype=np.uint64)

    def finished(self) -> Iterator[Finished]:
        """Yield the column that never changes once it is written, with its number of written elements."""
        yield self.waiting.previous, int(self.slots.tally[JOINED])

    def settle_all(self, now: float) -> None:
        """Move all slots to the right heaps."""
        kernels.settle_all(self._table, self.num_slots, now)

    def remove(self, page: int, now: float) -> None:
        """Remove a page, if it is in the queue."""
        kernels.remove_page(self._table, page, now)

    def __contains__(self, page: int) -> bool:
        return bool(page < self.slots.tally[JOINED] and self.waiting.keys[page] != OUT)

    def contain(self, pages: UInt32Array) -> AnyArray:
        """Return whether each page is in the queue, bool[n]."""
        found: AnyArray = (pages < self.slots.tally[JOINED]) & (self.waiting.keys[pages] != OUT)
        return found

    def key(self, page: int) -> float:
        """The key of a waiting page."""
        return float(self.waiting.keys[page])

    def best(self, slot: int, most: int) -> UInt32Array:
        """The best waiting pages of a slot, uint32[≤ most], the best first."""
        out = np.empty(min(most, int(self.rows[slot]["count"])), np.uint32)
        return out[: kernels.best(self._table, slot, out)] if len(out) else out

    def take(self, count: int, now: float) -> tuple[UInt32Array, UInt32Array]:
        """Take the best pages that may be fetched at ``now``; return pages and slots, each uint32[≤ count]."""
        pages, slots = np.empty(count, np.uint32), np.empty(count, np.uint32)
        found = kernels.take(self._table, now, pages, slots)
        return pages[:found], slots[:found]

    def take_one(self, page: int, now: float) -> int:
        """Take a page out of turn and count it against its slot; return the slot."""
        self._overdraw(self.slot(page))
        return int(kernels.take_page(self._table, page, now))

    def _overdraw(self, slot: int) -> None:
        """Note that a page is taken although the budget of its domain is spent, if it is."""
        domain = int(self.rows[slot]["domain"])
        if self.slots.domain_budgets[domain] == 0:
            self.overdrawn[domain] = self.overdrawn.get(domain, 0) + 1

    def count_turns(self, slots: UInt32Array) -> None:
        """Count a turn of each slot, in the order of the leases of its pages, if slots take turns."""
        if self._turns is not None:
            turns = np.arange(self._leases + 1, self._leases + len(slots) + 1, dtype=np.uint64)
            self._leases += len(slots)
            # Pages that were taken and not leased do not count.
            self.slots.tally[TURNS] = self._leases
            # If a slot has several leases, the last one counts.
            self._turns[slots] = self.rows["turn"][slots] = turns

    def free_in(self, slot: int, now: float) -> float | None:
        """Seconds until a page of a slot may be fetched; None if that does not depend on time alone."""
        row = self.rows[slot]
        spent = row["budget"] == 0 or self.slots.domain_budgets[row["domain"]] == 0
        if spent or row["flying"] >= self.most_leases(row) or row["due"] == np.inf:
            return None
        return max(float(row["due"]) - now, 0.0)

    def due_in(self, now: float) -> float | None:
        """Seconds until a page of any slot may be fetched; None if no slot becomes due by time alone."""
        s = self.slots
        for heap, size in ((s.ready, IN_READY), (s.warm, IN_WARM), (s.later, IN_LATER)):
            # A slot whose domain has spent its budget may still be in a heap.
            while s.tally[size] > 0 and s.domain_budgets[self.rows[heap[0]]["domain"]] == 0:
                self.settle(int(heap[0]), now)
        if s.tally[IN_READY] > 0 or s.tally[IN_WARM] > 0:
            return 0.0
        due = self.rows[s.later[0]]["due"] if s.tally[IN_LATER] > 0 else np.inf
        return None if due == np.inf else max(float(due) - now, 0.0)

    # -- slots ------------------------------------------------------------------------------------------------------

    def end_fetch(self, slot: int, now: float) -> None:
        """Take in the end of a lease of a slot."""
        kernels.land(self._table, slot, now)

    def wait(self, slot: int, until: float, now: float) -> None:
        """Fetch no page of a slot before ``until``."""
        if until > self.rows[slot]["due"]:
            self.rows[slot]["due"] = until
            self.settle(slot, now)

    def give_back(self, slot: int, now: float) -> None:
        """Let a page that counted as taken wait again, and give its host and domain their budgets back."""
        row = self.rows[slot]
        if row["taken"] > 0:
            row["taken"] -= 1
        self.count_budget(slot)
        domain = int(row["domain"])
        if domain in self.overdrawn:
            self.overdrawn[domain] -= 1
            if not self.overdrawn[domain]:
                del self.overdrawn[domain]
        elif self.slots.domain_budgets[domain] != NO_LIMIT:
            self.slots.domain_budgets[domain] += np.uint32(1)
            if self.slots.domain_budgets[domain] == 1:
                # The other hosts of the domain may have left their heaps when the budget was spent.
                for other in np.flatnonzero(self.rows["domain"][: self.num_slots] == domain).tolist():
                    self.settle(other, now)
        self.settle(slot, now)

    def withhold(self, page: int, now: float) -> None:
        """Remove a page that was answered, or waits for a date from now on. It counts as taken."""
        self.remove(page, now)
        slot = self.slot(page)
        row = self.rows[slot]
        row["taken"] += 1
        self.count_budget(slot)
        self._overdraw(slot)
        left = self.slots.domain_budgets
        if 0 < left[row["domain"]] < NO_LIMIT:
            left[row["domain"]] -= np.uint32(1)
        self.settle(slot, now)

    def not_fetched(self, slot: int, now: float, *, by_turn: bool = True) -> None:
        """Undo the delay, the crawl rate and the turn of a page that was just taken but is not leased.

        ``by_turn`` is True if :meth:`take` took the page, False if :meth:`take_one` did.
        """
        row, limits = self.rows[slot], self.limits
        row["due"] = row["soft_due"] = now
        if by_turn and self._turns is not None:
            row["turn"] = self._turns[slot]
        if by_turn and (limits.soft > 0 or limits.hard > 0):
            row["heat"] = heat = max(float(row["heat"]) - 1.0, 0.0)
            row["soft_due"] = now + wait_under(heat, limits.soft, limits.window)
        self.end_fetch(slot, now)

    def settle(self, slot: int, now: float) -> None:
        """Move a slot to the right heap after its columns were changed."""
        kernels.settle(self._table, slot, now)

    # -- re-keying ----------------------------------------------------------------------------------------------------

    def begin_rekeying(self) -> None:
        """Note that keys have changed: :meth:`rekey` must go through all present slots."""
        # Slots that are added later get new keys at once.
        self._rekeyed[:], self._rekey_to = 0, self.num_slots
        self.rekeying = self.num_slots > 0

    def next_to_rekey(self) -> UInt32Array:
        """The next waiting pages to re-key, uint32[≤ 16,384]. The caller must pass their keys to :meth:`rekey`."""
        out = np.empty(_AT_A_TIME, np.uint32)
        self._rekeying[:] = self._rekeyed
        return out[: kernels.to_rekey(self._table, self._rekey_to, self._rekeying, out)]

    def rekey(self, keys: Float32Array, now: float) -> None:
        """Give the pages from :meth:`next_to_rekey` their new keys."""
        kernels.rekey(self._table, self._rekeyed, self._rekeying, keys, now)
        self._rekeyed[:] = self._rekeying
        self.rekeying = bool(self._rekeyed[0] < self._rekey_to)

    # -- looking ------------------------------------------------------------------------------------------------------

    def order(self, count: int, now: float, busy: Iterable[int] = ()) -> list[tuple[int, float, float]]:
        """The next pages, without taking them.

        Slots that must wait come after the slots that are ready, in the order in which they become due. Slots that are
        blocked for ever are left out. The heaps are read from their tops, so the cost depends on ``count`` and not on
        the number of slots or pages.

        Parameters
        ----------
        count : int
        now : float
            Unix time.
        busy : iterable of int
            Slots with leases out, which may be in no heap.

        Returns
        -------
        list of (int, float, float)
            Page, its key in the comparison of slots, and the seconds until it may be taken.
        """
        # Move the slots that have become due to their heaps.
        self.take(0, now)
        s = self.slots
        firsts = heapq.merge(
            self._first_slots(s.ready, int(s.tally[IN_READY]), now, "key"),
            self._first_slots(s.warm, int(s.tally[IN_WARM]), now, "soft_due"),
            self._first_slots(s.later, int(s.tally[IN_LATER]), now, "due"),
            sorted(self._head(slot, now) for slot in busy if self._is_idle_but_filled(slot)),
        )
        first = next(firsts, None)
        # The next heads of slots whose first page is in the order.
        heads: list[_Head] = []
        rest: dict[int, Iterator[int]] = {}
        taken, of_domains = Counter[int](), Counter[int]()
        order: list[tuple[int, float, float]] = []
        while (first or heads) and len(order) < count:
            if first and not (heads and heads[0] < first):
                wait, soft, key, age, slot = first
                rest[slot] = islice(self._pages_of(slot), 1, None)
                first = next(firsts, None)
            else:
                wait, soft, key, age, slot = heapq.heappop(heads)
            row = self.rows[slot]
            # A slot whose domain has spent its budget may still be in a heap.
            if of_domains[row["domain"]] == s.domain_budgets[row["domain"]]:
                continue
            order.append((abs(age), -key, wait))
            of_domains[row["domain"]] += 1
            taken[slot] = before = taken[slot] + 1
            page = next(rest[slot], None) if before < int(row["budget"]) else None
            if page is not None:
                key = float(self._shared(self.key(page) * float(row["factor"]), row, before))
                if self.limits.diverse == 2:
                    # The turn of the slot is over.
                    key = -float(s.tally[TURNS]) - len(order)
                wait = max(float(row["due"]) - now, 0.0) + before * float(row["delay"])
                heapq.heappush(heads, (wait, soft, -key, -page if self.limits.newest else page, slot))
        return order

    def _shared(self, key: float, row: Any, before: int) -> float:
        """A page's key in the comparison of slots, if ``before`` pages of its slot come before it."""
        if self.limits.diverse == 1:
            return key / (1.0 + float(row["taken"]) + before)
        if self.limits.diverse == 2:
            return -float(row["turn"])
        return key

    def _head(self, slot: int, now: float) -> _Head:
        """The sort key of a slot: seconds to wait, seconds to cool down, and of its first page -key and age; slot."""
        row = self.rows[slot]
        page = int(row["best"])
        key = self._shared(self.key(page) * float(row["factor"]), row, 0)
        wait = max(float(row["due"]) - now, 0.0)
        soft = max(float(row["soft_due"]) - now, 0.0) if row["where"] == kernels.WARM else 0.0
        return wait, soft, -key, -page if self.limits.newest else page, slot

    def _is_idle_but_filled(self, slot: int) -> bool:
        """Return whether a slot has pages and is in no heap, but only because of its open leases."""
        row = self.rows[slot]
        return bool(
            row["where"] == kernels.NOWHERE and row["count"] > 0 and row["budget"] > 0 and row["due"] < np.inf
        )

    def _first_slots(self, heap: UInt32Array, size: int, now: float, column: str) -> Iterator[_Head]:
        """The heads of a heap's slots in order, read from its top.

        Slots that become due at the same moment are ordered by their keys, up to :data:`_TIES` of them.
        """
        timed = column != "key"
        times = self.rows[column]

        def entry(place: int) -> tuple[float, _Head, int]:
            slot = int(heap[place])
            return float(times[slot]) if timed else 0.0, self._head(slot, now), place

        nearest = [entry(0)] if size else []
        while nearest and nearest[0][0] < np.inf:
            ties: list[_Head] = []
            time = nearest[0][0]
            while nearest and nearest[0][0] == time and len(ties) < (_TIES if timed else 1):
                _, head, place = heapq.heappop(nearest)
                ties.append(head)
                for child in range(4 * place + 1, min(4 * place + 5, size)):
                    heapq.heappush(nearest, entry(child))
            yield from sorted(ties)

    def _pages_of(self, slot: int) -> Iterator[int]:
        """The waiting pages of a slot in order."""
        most, done = 2, 0
        while done < int(self.rows[slot]["count"]):
            yield from self.best(slot, most)[done:].tolist()
            most, done = 8 * most, most
