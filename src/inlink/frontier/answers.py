"""What may come of a lease other than a page: a failure, a refusal, a redirect, nothing at all. Each is an event."""

import struct

import numpy as np
import numpy.typing as npt

from inlink.frontier import backoff
from inlink.frontier.frontier import Frontier
from inlink.frontier.intake import CarriedLink, apart, check_answer
from inlink.frontier.journal import Journal
from inlink.frontier.leases import Lease
from inlink.store import layout as kinds
from inlink.store.layout import CRAWLED, DISCOVERED, EXCLUDED, FAILED_PAGE, GONE
from inlink.store.pages import NO_PAGE
from inlink.urls.canonical import canonical

__all__ = ["Answers", "lease_pages"]

U32 = npt.NDArray[np.uint32]

LONGEST_ERROR = 500  # bytes of an error's text that are kept


class Answers:
    """Writes into the journal what came of leases.

    Parameters
    ----------
    journal : Journal
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.frontier: Frontier = journal.frontier
        self.pages, self.settings = journal.pages, journal.frontier.settings

    def failed(
        self,
        page: Lease | str,
        error: str,
        status: int | None,
        retry: bool | None,
        retry_after: str | float | None,
    ) -> bool:
        """See :meth:`inlink.Crawl.failed`."""
        journal, front = self.journal, self.frontier
        check_answer(0.0, status or 0, b"")
        number, out = journal.answered(page)
        if number == NO_PAGE:
            return False
        if out is not None and not out.current and front.leases.current(number) is not None:
            return False  # it was handed out again: that lease will tell
        outcome = backoff.OUTCOMES[backoff.classify(status, error)]
        wait = backoff.retry_after(retry_after, journal.now)
        failures = int(self.pages.errors[number]) + 1
        again = (outcome.retried if retry is None else retry) and failures <= self.settings.max_retries
        due = journal.now + max(
            wait or 0.0, backoff.delay(failures, self.settings.retry_seconds, backoff.LONGEST_WAIT)
        )
        flags = kinds.RETRIED if again else kinds.IS_GONE if outcome.name == "gone" else 0
        self._write(number, flags, status or 0, due, error)
        if again:
            front.plan(number, due)
        journal.landed(out, outcome, wait)
        return True

    def excluded(self, page: Lease | str, reason: str) -> bool:
        """See :meth:`inlink.Crawl.exclude`."""
        number, out = self.journal.answered(page)
        if number == NO_PAGE:
            return False
        self._write(number, kinds.EXCLUDED_ONE, 0, self.journal.now, reason)
        self.frontier.queue.remove(number, self.journal.now)
        self.journal.landed(out, None)
        return True

    def _write(self, page: int, flags: int, status: int, due: float, text: str) -> None:
        payload = struct.pack("<d", due) + text.encode("utf-8", "replace")[:LONGEST_ERROR]
        self.journal.append(kinds.FAILED, page, flags=flags, status=status, payload=payload)
        self.frontier.plans.pop(page, None)

    def release(self, page: Lease | str) -> bool:
        """See :meth:`inlink.Crawl.release`."""
        number, out = self.journal.answered(page)
        if number == NO_PAGE or out is None or not out.current:
            return False
        self.journal.append(kinds.RELEASE, count=1, payload=struct.pack("<I", number))
        self.journal.landed(out, None)
        self.frontier.back(number, self.journal.now)
        return True

    def release_all(self) -> int:
        """See :meth:`inlink.Crawl.release_all`."""
        outs = list(self.frontier.leases.all_current())
        if outs:
            pages = np.array(sorted(out.page for _, out in outs), np.uint32)
            self.journal.append(kinds.RELEASE, count=len(pages), payload=pages.tobytes())
        for number, out in outs:
            self.frontier.leases.close(number)
            self.journal.landed(out, None)
            self.frontier.back(out.page, self.journal.now)
        return len(outs)

    def reload(self) -> int:
        """See :meth:`inlink.Crawl.reload`."""
        journal, front, now = self.journal, self.frontier, self.journal.now
        states = self.pages.states[: self.pages.num_pages]
        found = np.flatnonzero(np.isin(states, (FAILED_PAGE, GONE, EXCLUDED))).astype(np.uint32)
        if len(found):
            journal.append(kinds.RELEASE, flags=kinds.RETRIED, count=len(found), payload=found.tobytes())
        for page in found.tolist():
            slot = front.queue.slot(page)
            if self.pages.visit_place(page) is not None:
                front.plan(page, now)  # it was crawled once, and is not new
            elif self.pages.answers[page]:
                front.queue.give_back(slot, now)
            if slot in front.hosts.failures:  # a host that was let go
                front.hosts.failed(slot, 0)
                front.queue.rows[slot]["due"] = now
                journal.append(kinds.HOST, page, payload=front.hosts.frame(slot))
        front.prioritise(found, now)
        for page in found.tolist():
            front.queue.settle(front.queue.slot(page), now)
        return len(found)

    def redirected(self, page: Lease, to: str, data: bytes | None, again: bool) -> Lease | None:
        """See :meth:`inlink.Crawl.redirected`."""
        journal, front = self.journal, self.frontier
        apart([CarriedLink(to, 0.0, data or b"")])  # refuses what is too much
        number, out = journal.answered(page)
        if number == NO_PAGE:
            return None
        if canonical(to, self.pages.url(number), journal.url_rules) is None:
            self._write(number, 0, 0, journal.now, f"redirects to what is no URL: {to[:200]}")
            journal.landed(out, backoff.OUTCOMES["ok"])
            return None
        target = journal.merge(number, to, None, data)
        journal.landed(out, backoff.OUTCOMES["ok"])
        state = int(self.pages.states[target])
        if target == number and state != CRAWLED:  # it redirects to itself, to set a cookie perhaps
            again = True
        if state != DISCOVERED and not again:
            return None
        front.plans.pop(target, None)
        slots = front.queue.take_one(target, journal.now)
        return lease_pages(journal, np.array([target], np.uint32), np.array([slots], np.uint32))[0]

    def host_delay(self, page: Lease | str, seconds: float) -> bool:
        """See :meth:`inlink.Crawl.host_delay`."""
        number = page.page if isinstance(page, Lease) else self.journal.known(page)
        queue = self.frontier.queue
        slot = queue.slot(number)
        if not seconds > queue.rows[slot]["delay"]:
            return False
        row = queue.rows[slot]
        row["due"] = float(row["due"]) + seconds - float(row["delay"])
        row["delay"] = seconds
        queue.settle(slot, self.journal.now)
        self.journal.append(kinds.HOST, number, payload=self.frontier.hosts.frame(slot))
        return True


def lease_pages(journal: Journal, pages: U32, slots: U32) -> list[Lease]:
    """Lease pages that were taken out of the queue: uint32[n] and their slots; an event first."""
    front, known = journal.frontier, journal.pages
    expires, first = journal.now + front.settings.lease_seconds, front.leases.next_number
    place = journal.append(
        kinds.LEASE, count=len(pages), payload=struct.pack("<Qd", first, expires) + pages.tobytes()
    )
    leases, depths, crawls = [], known.depths[pages].tolist(), known.answers[pages].tolist()
    for k, (page, slot, url) in enumerate(
        zip(pages.tolist(), slots.tolist(), known.urls(pages), strict=True)
    ):
        front.leases.add(first + k, page, slot, expires, place)
        visit = known.visit(page) if crawls[k] else None
        leases.append(
            Lease(
                url,
                first + k,
                page,
                expires,
                depths[k],
                known.given.get(page),
                visit.crawls if visit else 0,
                known.carried(page),
                int(known.errors[page]),
            )
        )
    return leases
