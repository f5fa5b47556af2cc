"""What a crawl knows of hosts: domains, when each may be asked again, how often it failed, what is left of its budget.

Waits that matter beyond a moment (a Retry-After, a host that is parked, a delay that robots.txt asks for) are
events of the log, so that they hold after a restart too.
"""

import struct

import numpy as np
import numpy.typing as npt

from inlink.frontier.queue import NO_LIMIT, Queue
from inlink.store.kernels.frames import HOST
from inlink.store.pages import Pages
from inlink.urls.hosts import registered_domain

__all__ = ["Hosts"]

FRAME = struct.Struct("<dfI")  # due, delay, failures in a row


class Hosts:
    """The hosts of a crawl and their slots in the queue."""

    def __init__(self, pages: Pages, queue: Queue) -> None:
        self.pages, self.queue = pages, queue
        self.failures: dict[int, int] = {}  # in a row, by slot
        self._domains: dict[str, int] = {}
        self._known = 0
        polite = queue.politeness
        self._need_domains = queue.by_domain or polite.domain_budget is not None

    def take_in(self) -> None:
        """Give hosts that were discovered since the last call their slots."""
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
                if queue.by_domain:
                    queue.waiting.slot_of[host] = number
                    queue.rows[number]["domain"] = number
                else:
                    queue.rows[host]["domain"] = number
            queue.add_domains(before, len(self._domains))
            queue.add_slots(len(self._domains) if queue.by_domain else count)
        else:
            if self._known == 0:
                queue.add_domains(0, 1)  # one for all, without a limit
            queue.add_slots(count)
        self._known = count

    def name(self, slot: int) -> str:
        """What a slot is called."""
        if self.queue.by_domain:
            return next(name for name, number in self._domains.items() if number == slot)
        return self.pages.host(slot)

    def spend(self, slots: npt.NDArray[np.int64]) -> None:
        """Count pages that were taken from slots before this process began."""
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
        """What an event has to say of a slot."""
        row = self.queue.rows[slot]
        return FRAME.pack(float(row["due"]), float(row["delay"]), self.failures.get(slot, 0))

    def restore(self) -> None:
        """Take in what the log says of hosts."""
        for place in self.pages.frames_of_kind(HOST):
            _, page, _, _, _, raw = self.pages.frame(place)
            due, delay, failures = FRAME.unpack_from(raw)
            slot = self.queue.slot(page)
            self.queue.rows[slot]["due"], self.queue.rows[slot]["delay"] = due, delay
            self.failed(slot, failures)

    def failed(self, slot: int, failures: int) -> None:
        """Set how often a slot has failed in a row; its pages come later by as much."""
        if failures:
            self.failures[slot] = failures
        else:
            self.failures.pop(slot, None)
        self.queue.rows[slot]["factor"] = 1 / (1 + failures)
