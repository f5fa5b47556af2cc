"""The hosts of a crawl: their domains, waits, failures and budgets.

Longer waits (a Retry-After, a parked host, a delay from robots.txt) are events of the log, so that they hold after a
restart too.
"""

import msgspec
import numpy as np

from inlink.base.arrays import Int64Array
from inlink.frontier.queue import Queue
from inlink.frontier.settings import NO_LIMIT
from inlink.store.format import HOST, HostRecord, struct_of
from inlink.store.pages import Pages
from inlink.urls.hosts import registered_domain

__all__ = ["HostState", "Hosts"]

_RECORD = struct_of(HostRecord)


class HostState(msgspec.Struct, frozen=True):
    """A host, or with ``by="domain"`` a registered domain, at one moment.

    Parameters
    ----------
    name : str
    waiting, taken : int
        Pages that wait; pages that were handed out so far.
    in_flight, in_flight_limit : int
        Pages that are being fetched, now and at most.
    due_in : float
        Seconds until the next fetch is allowed.
    delay : float
        Seconds between two fetches.
    failures : int
        Failures in a row that count against the host.
    budget_left, domain_budget_left : int or None
        Pages that may still be fetched from the host, and from its registered domain; None without a limit.
    """

    name: str
    waiting: int
    taken: int
    in_flight: int
    in_flight_limit: int
    due_in: float
    delay: float
    failures: int
    budget_left: int | None
    domain_budget_left: int | None


class Hosts:
    """The hosts of a crawl and their slots in the queue."""

    def __init__(self, pages: Pages, queue: Queue) -> None:
        self.pages, self.queue = pages, queue
        # failures in a row, by slot
        self.failures: dict[int, int] = {}
        self._domains: dict[str, int] = {}
        self._domain_names: list[str] = []
        self._known = 0
        polite = queue.politeness
        self._need_domains = queue.by_domain or polite.domain_budget is not None

    def take_in(self) -> None:
        """Give slots to the hosts that were discovered since the last call."""
        count = self.pages.num_hosts
        if count <= self._known:
            return
        queue = self.queue
        if self._need_domains:
            before = len(self._domains)
            for host in range(self._known, count):
                name = self.pages.host(host)
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
            if self._known == 0:
                # one domain for all hosts, without a limit
                queue.add_domains(0, 1)
            queue.add_slots(count)
        self._known = count

    def name(self, slot: int) -> str:
        """The host or domain that a slot stands for."""
        return self._domain_names[slot] if self.queue.by_domain else self.pages.host(slot)

    def state(self, slot: int, now: float) -> HostState:
        """Describe a slot at ``now``."""
        row = self.queue.rows[slot]
        budget, domain_budget = (
            int(row["budget"]),
            int(self.queue.slots.domain_budgets[int(row["domain"])]),
        )
        return HostState(
            self.name(slot),
            int(row["count"]),
            int(row["taken"]),
            int(row["flying"]),
            int(row["most"]),
            max(float(row["due"]) - now, 0.0),
            float(row["delay"]),
            self.failures.get(slot, 0),
            None if budget == NO_LIMIT else budget,
            None if domain_budget == NO_LIMIT else domain_budget,
        )

    def spend(self, slots: Int64Array) -> None:
        """Count the pages that were taken before this process began; ``slots`` has the slot of each."""
        count = self.queue.num_slots
        taken = np.bincount(slots, minlength=count).astype(np.uint32)
        rows = self.queue.rows[:count]
        rows["taken"] += taken
        limited = rows["budget"] != NO_LIMIT
        rows["budget"][limited] -= np.minimum(taken, rows["budget"])[limited]
        if self._domains:
            by_domain = np.bincount(rows["domain"], weights=taken, minlength=len(self._domains)).astype(
                np.uint32
            )
            left = self.queue.slots.domain_budgets[: len(self._domains)]
            limited = left != NO_LIMIT
            left[limited] -= np.minimum(by_domain, left)[limited]

    def frame(self, slot: int) -> bytes:
        """The payload of an event about a slot."""
        row = self.queue.rows[slot]
        return _RECORD.pack(float(row["due"]), float(row["delay"]), self.failures.get(slot, 0))

    def restore(self) -> None:
        """Take in the log's events about hosts."""
        for place in self.pages.frames_of_kind(HOST):
            frame = self.pages.frame(place)
            host, slot = HostRecord._make(_RECORD.unpack(frame.payload)), self.queue.slot(frame.page)
            self.queue.rows[slot]["due"], self.queue.rows[slot]["delay"] = host.due, host.delay
            self.failed(slot, host.failures)

    def failed(self, slot: int, failures: int) -> None:
        """Set how often a slot has failed in a row; its keys are divided by one more than that."""
        if failures:
            self.failures[slot] = failures
        else:
            self.failures.pop(slot, None)
        self.queue.rows[slot]["factor"] = 1 / (1 + failures)
