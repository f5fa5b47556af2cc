"""The hosts of a crawl: their domains, waits, failures and budgets.

Longer waits (a Retry-After, a parked host, a delay from robots.txt) and an operator's wishes are events of the log.
They also hold after a restart.

**Delays.** The delay of a slot is the operator's delay if one is set; else its Crawl-delay or the delay of the
settings, whichever is longer. A new delay counts from the last fetch. Waits that the host asked for and limits on crawl
rates still apply.

**Blocks.** The queue keeps one date for each slot, at which it is due. While a slot is blocked, that date is the end of
the block or later. :attr:`Hosts.hidden` holds the date that would apply without the block.
"""

from typing import Any

import msgspec
import numpy as np

from inlink.base.arrays import Int64Array, UInt32Array
from inlink.base.settings import NO_LIMIT
from inlink.frontier.backoff import wait_under
from inlink.frontier.queue import Queue
from inlink.frontier.settings import Politeness
from inlink.frontier.wishes import NO_WISH, Wish
from inlink.store.format import HOST, HOST_SET, HostRecord, struct_of
from inlink.store.pages import Pages
from inlink.urls.hosts import registered_domain

_RECORD = struct_of(HostRecord)
_BUSY = 1 << 11
"""Flag of an event about a host: its last answer asked for fewer requests. :mod:`.format` has the other flags."""


class HostState(msgspec.Struct, frozen=True):
    """A host, or with ``by="domain"`` a registered domain, at one moment.

    Parameters
    ----------
    name : str
    waiting, taken : int
        Number of pages that wait, and of pages that were handed out so far.
    in_flight, in_flight_limit : int
        Number of pages that are being fetched, and its maximum at present.
    due_in : float or None
        Seconds until the next fetch is allowed; None if the host is blocked for ever.
    delay : float
        Seconds between two fetches.
    failures : int
        Number of failures in a row that count against the host.
    budget_left, domain_budget_left : int or None
        Number of pages that may still be fetched from the host, and from its registered domain; None without a limit.
    blocked_for : float or None
        Seconds until the end of an operator's block; 0 if there is none, None if it is for ever.
    set_by_operator : tuple of str
        The values that an operator has set: ``"block"``, ``"delay"``, ``"budget"``; see :meth:`inlink.Crawl.set_host`.
    """

    name: str
    waiting: int
    taken: int
    in_flight: int
    in_flight_limit: int
    due_in: float | None
    delay: float
    failures: int
    budget_left: int | None
    domain_budget_left: int | None
    blocked_for: float | None = 0.0
    set_by_operator: tuple[str, ...] = ()


class CrawlHosts:
    """The hosts of a crawl and their slots in the queue.

    Attributes
    ----------
    failures : dict of int to int
        Number of failures in a row, by slot.
    busy : dict of int to float
        For slots whose last answer asked for fewer requests, the Unix time since when they are known to be busy.
    crawl_delays, waits : dict of int to float
        By slot, the delay that robots.txt asks for, and the Unix time before which the host asks for no request.
    wishes : dict of int to Wish
        An operator's settings, by slot.
    hidden : dict of int to float
        For slots that are or were blocked, the Unix time at which they would be due without the block.
    known : int
        Number of hosts that have a slot.
    """

    def __init__(self, pages: Pages, queue: Queue) -> None:
        self.pages, self.queue = pages, queue
        self.failures: dict[int, int] = {}
        self.busy: dict[int, float] = {}
        self.crawl_delays: dict[int, float] = {}
        self.waits: dict[int, float] = {}
        self.wishes: dict[int, Wish] = {}
        self.hidden: dict[int, float] = {}
        self._domains: dict[str, int] = {}
        self._domain_names: list[str] = []
        self.known = 0

    @property
    def _need_domains(self) -> bool:
        return self.queue.by_domain or self.queue.politeness.domain_budget is not None

    def take_in(self) -> None:
        """Give slots to the hosts that were discovered since the last call."""
        count = self.pages.tally.hosts
        if count <= self.known:
            return
        queue = self.queue
        if queue.by_domain or queue.politeness.domain_budget is not None:
            before = len(self._domains)
            for host in range(self.known, count):
                name = self.pages.table.host(host)
                domain = registered_domain(name) or name
                number = self._domains.setdefault(domain, len(self._domains))
                if number == len(self._domain_names):
                    self._domain_names.append(domain)
                if queue.by_domain:
                    queue.waiting.slot_of[host] = number
                    queue.rows[number]["domain"] = number
                else:
                    queue.rows[host]["domain"] = number
            queue.add_domains(before, len(self._domains))
            queue.add_slots(len(self._domains) if queue.by_domain else count)
        else:
            if self.known == 0:
                # All hosts share one domain, which has no limit.
                queue.add_domains(0, 1)
            queue.add_slots(count)
        self.known = count

    def name(self, slot: int) -> str:
        """The host or domain that a slot stands for."""
        return self._domain_names[slot] if self.queue.by_domain else self.pages.table.host(slot)

    def slot_of_domain(self, name: str) -> int | None:
        """The slot of a registered domain if slots are domains; None if there is none of that name."""
        return self._domains.get(name) if self.queue.by_domain else None

    def first_page(self, slot: int) -> int:
        """The page of a slot that was discovered first."""
        return int(self.pages_of(slot)[0])

    def pages_of(self, slot: int) -> UInt32Array:
        """The pages of a slot, uint32[k], increasing."""
        slots = self.queue.slots_of(slice(self.pages.num_pages))
        return np.flatnonzero(slots == slot).astype(np.uint32)

    def state(self, slot: int, now: float) -> HostState:
        """Describe a slot at ``now``."""
        row, wish = self.queue.rows[slot], self.wishes.get(slot, NO_WISH)
        budget, domain_budget = (
            int(row["budget"]),
            int(self.queue.slots.domain_budgets[int(row["domain"])]),
        )
        return HostState(
            self.name(slot),
            int(row["count"]),
            int(row["taken"]),
            int(row["flying"]),
            int(self.queue.most_leases(row)),
            _seconds(float(row["due"]), now),
            float(row["delay"]),
            self.failures.get(slot, 0),
            None if budget == NO_LIMIT else budget,
            None if domain_budget == NO_LIMIT else domain_budget,
            _seconds(wish.blocked_until or 0.0, now),
            wish.names(now),
        )

    def spend(self, slots: Int64Array) -> None:
        """Count the pages that were taken before this process began. ``slots`` holds the slot of each page."""
        count = self.queue.num_slots
        taken = np.bincount(slots, minlength=count).astype(np.uint32)
        rows = self.queue.rows[:count]
        rows["taken"] += taken
        limited = rows["budget"] != NO_LIMIT
        rows["budget"][limited] -= np.minimum(taken, rows["budget"])[limited]
        self._count_domains()

    def _count_domains(self) -> None:
        """Set the number of pages that may still be taken from each domain."""
        budget, rows = self.queue.politeness.domain_budget, self.queue.rows[: self.queue.num_slots]
        self.queue.overdrawn.clear()
        if budget is None or not self._domains:
            self.queue.slots.domain_budgets[: max(len(self._domains), 1)] = NO_LIMIT
            return
        taken = np.bincount(rows["domain"], weights=rows["taken"], minlength=len(self._domains))
        self.queue.slots.domain_budgets[: len(self._domains)] = np.maximum(budget - taken, 0)
        over = np.flatnonzero(taken > budget)
        self.queue.overdrawn.update(
            zip(over.tolist(), (taken[over] - budget).astype(int).tolist(), strict=True)
        )

    # -- waits, delays and wishes -----------------------------------------------------------------------------------

    def due(self, slot: int, now: float) -> float:
        """Unix time at which a slot is due, without regard to a block."""
        if self.is_blocked(slot, now):
            return self.hidden[slot]
        return float(self.queue.rows[slot]["due"])

    def is_blocked(self, slot: int, now: float) -> bool:
        """Return whether an operator has blocked a slot at ``now``."""
        return slot in self.wishes and self.wishes[slot].blocks(now)

    def is_closed(self, slot: int, now: float) -> bool:
        """Return whether a slot is blocked at ``now``, or its budget is spent."""
        row = self.queue.rows[slot]
        spent = row["budget"] == 0 or self.queue.slots.domain_budgets[row["domain"]] == 0
        return bool(spent) or self.is_blocked(slot, now)

    def wait(self, slot: int, until: float, now: float) -> None:
        """Send no request to a slot before ``until``, because its host asks for that or is parked."""
        self.waits[slot] = max(self.waits.get(slot, 0.0), until)
        self._set_due(slot, max(self.due(slot, now), until), now)

    def let_go(self, slot: int, now: float) -> None:
        """Forget the failures of a slot, and the wait that they led to."""
        self.failed(slot, 0)
        self.waits.pop(slot, None)
        self._set_due(slot, now, now)

    def ask_for_delay(self, slot: int, seconds: float, now: float) -> bool:
        """Take in the Crawl-delay of a slot; return whether it is longer than its previous Crawl-delays."""
        seconds = float(np.float32(seconds))
        if seconds <= self.crawl_delays.get(slot, 0.0):
            return False
        self.crawl_delays[slot] = seconds
        self._set_delay(slot, now)
        return True

    def set_wish(self, slot: int, wish: Wish, now: float) -> None:
        """Apply an operator's settings for a slot."""
        due = self.due(slot, now)
        if wish == NO_WISH:
            self.wishes.pop(slot, None)
        else:
            self.wishes[slot] = wish
        self._set_due(slot, due, now)
        self._set_delay(slot, now)
        if wish.limit is None:
            self.queue.limit_of.pop(slot, None)
        else:
            self.queue.limit_of[slot] = wish.limit
        self.queue.count_budget(slot)

    def _set_due(self, slot: int, due: float, now: float) -> None:
        """Set the time at which a slot is due without regard to a block."""
        if self.is_blocked(slot, now):
            self.hidden[slot] = due
            due = max(due, self.wishes[slot].blocked_until or 0.0)
        else:
            self.hidden.pop(slot, None)
        self.queue.rows[slot]["due"] = due

    def _delay(self, slot: int) -> float:
        wish = self.wishes.get(slot, NO_WISH)
        usual = float(np.float32(self.queue.politeness.delay))
        return max(usual, self.crawl_delays.get(slot, 0.0)) if wish.delay is None else wish.delay

    def _set_delay(self, slot: int, now: float) -> None:
        """Update the delay of a slot, and count it from the last fetch."""
        row, new = self.queue.rows[slot], self._delay(slot)
        old = float(row["delay"])
        if new != old:
            row["delay"] = new
            self._set_dates(slot, old, now)

    def _set_dates(self, slot: int, before: float, now: float) -> None:
        """Update when a slot is due: by its delay, which was ``before``, by its host's waits and by crawl rates."""
        row, limits = self.queue.rows[slot], self.queue.limits
        due = self.due(slot, now)
        if due > 0:
            # The time of the last fetch, or a later time if the slot had to wait for another reason.
            last = min(due - before, now)
            others = max(self.waits.get(slot, 0.0), self._cooled(slot, limits.hard))
            self._set_due(slot, max(last + float(row["delay"]), others), now)
        if row["soft_due"] > 0:
            row["soft_due"] = max(float(row["due"]), self._cooled(slot, limits.soft))

    def set_politeness(self, politeness: Politeness, now: float) -> None:
        """Apply new limits to all hosts. ``politeness.by`` must not change."""
        queue, needed = self.queue, self._need_domains
        rows, were_open = queue.rows[: queue.num_slots], queue.are_open()
        before = rows["delay"].astype(np.float64)
        queue.set_politeness(politeness)
        if self._need_domains and not needed:
            self._domains, self._domain_names, self.known = {}, [], 0
            self.take_in()
        self._count_domains()
        rows["delay"] = politeness.delay
        for slot in self.crawl_delays.keys() | self.wishes.keys():
            rows[slot]["delay"] = self._delay(slot)
        waits = (rows["due"] > now) | (rows["soft_due"] > now)
        # A longer delay may not have passed since the last fetch.
        waits |= (rows["due"] > 0) & (rows["due"] - before + rows["delay"] > now)
        for slot in np.flatnonzero(waits).tolist():
            self._set_dates(slot, float(before[slot]), now)
            # A heap can repair the order of only one slot at a time.
            queue.settle(slot, now)
        for slot in np.flatnonzero(were_open != queue.are_open()).tolist():
            queue.settle(slot, now)

    def _cooled(self, slot: int, limit: float) -> float:
        """Unix time at which the crawl rate of a slot has fallen to a limit; 0 for a limit of 0, which is no limit."""
        row = self.queue.rows[slot]
        wait = wait_under(float(row["heat"]), limit, self.queue.limits.window)
        return float(row["heated"]) + wait if wait > 0 else 0.0

    # -- events -----------------------------------------------------------------------------------------------------

    def frame(self, slot: int, now: float) -> dict[str, Any]:
        """The flags and the payload of an event about a slot."""
        delay = self.crawl_delays.get(slot, 0.0)
        payload = _RECORD.pack(self.due(slot, now), delay, self.failures.get(slot, 0))
        if slot in self.busy:
            # As it is restored.
            self.busy[slot] = now
        return {"flags": _BUSY * (slot in self.busy), "payload": payload}

    def restore(self, now: float) -> None:
        """Take in the log's events about hosts."""
        wishes: dict[int, Wish] = {}
        for place in self.pages.frames.of_kind(HOST, HOST_SET):
            frame = self.pages.frames.frame(place)
            slot = self.queue.slot(frame.page)
            if frame.kind == HOST_SET:
                wishes[slot] = Wish.of(frame.payload)
                continue
            host = HostRecord._make(_RECORD.unpack(frame.payload))
            self.failed(slot, host.failures, frame.time if frame.flags & _BUSY else None)
            self.ask_for_delay(slot, host.delay, now)
            self._set_due(slot, host.due, now)
            # The usual delay until the next fetch is not a wait that the host asked for. An operator may shorten it.
            if host.due > frame.time + float(self.queue.rows[slot]["delay"]):
                self.waits[slot] = host.due
            else:
                self.waits.pop(slot, None)
        for slot, wish in wishes.items():
            due = self.due(slot, now)
            self.set_wish(slot, wish, now)
            # The last event about the host holds the date that belongs to this delay.
            self._set_due(slot, due, now)

    def fetched(self, slot: int, dated: float, last: float, heat: float, now: float) -> None:
        """Count fetches of a slot from before this process began.

        Parameters
        ----------
        slot : int
        dated : float
            Unix time of the last fetch that no event about the host counts; 0 if there is none.
        last : float
            Unix time of the last fetch.
        heat : float
            Temperature at ``last``: see :mod:`.backoff`. 0 without limits on crawl rates.
        now : float
            Unix time.
        """
        row, limits = self.queue.rows[slot], self.queue.limits
        row["heat"], row["heated"] = heat, last
        due = max(self.due(slot, now), self._cooled(slot, limits.hard))
        if dated > 0:
            due = max(due, dated + float(row["delay"]))
        self._set_due(slot, due, now)
        if heat > 0:
            row["soft_due"] = max(float(row["due"]), self._cooled(slot, limits.soft))

    def failed(self, slot: int, failures: int, busy: float | None = None) -> None:
        """Set a slot's number of failures in a row, by which its keys are divided plus 1, and since when it is busy."""
        if busy is not None:
            self.busy[slot] = busy
        else:
            self.busy.pop(slot, None)
        if failures:
            self.failures[slot] = failures
        else:
            self.failures.pop(slot, None)
        self.queue.rows[slot]["factor"] = 1 / (1 + failures)


def _seconds(due: float, now: float) -> float | None:
    """Seconds until ``due``, 0 if it has passed; None if it is infinite."""
    return None if due == np.inf else max(due - now, 0.0)
