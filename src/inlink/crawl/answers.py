"""Answers to leases other than a fetched page: failure, exclusion, redirect, release. Each is an event."""

from collections.abc import Sequence

import numpy as np

from inlink.base.arrays import UInt32Array
from inlink.base.table import counted
from inlink.crawl.admission import Admission
from inlink.crawl.arguments import argument, check_flags, check_text
from inlink.crawl.intake import checked_failure, checked_status
from inlink.crawl.journal import Answered, Journal, number_of
from inlink.crawl.links import check_link
from inlink.frontier import backoff
from inlink.frontier.frontier import Frontier
from inlink.frontier.leases import Lease, Out
from inlink.protocol import Link
from inlink.store import format as kinds
from inlink.store.format import (
    CRAWLED,
    DISCOVERED,
    EXCLUDED,
    LEASED,
    NO_PAGE,
    STATES,
    FailedRecord,
    LostRecord,
    ReleasedRecord,
    dtype_of,
    struct_of,
)
from inlink.urls.canonical import canonical

LONGEST_ERROR = 500
"""Maximum number of bytes of an error's text. The rest is cut off."""


class Answers:
    """Writes the answers to leases into the journal."""

    def __init__(self, journal: Journal, admission: Admission) -> None:
        self.journal, self.admission = journal, admission
        self.frontier: Frontier = journal.frontier
        self.pages = journal.pages

    def failed(
        self,
        page: Answered,
        error: str,
        status: int | None,
        retry: bool | None,
        retry_after: str | bytes | float | None,
    ) -> bool:
        """See :meth:`inlink.Crawl.failed`."""
        journal, front = self.journal, self.frontier
        status, retry_after = checked_failure(error, status, retry, retry_after)
        number, out = journal.answered(page)
        if number == NO_PAGE:
            return False
        # The page was handed out again, and only the answer to that lease counts.
        if out is not None and not out.current and front.leases.current(number) is not None:
            return False
        outcome = backoff.OUTCOMES[backoff.classify(status, error)]
        wait = backoff.retry_after(retry_after, journal.now)
        failures = int(self.pages.errors[number]) + 1
        again = (
            outcome.retried if retry is None else retry
        ) and failures <= self.frontier.settings.max_retries
        due = journal.now + max(
            wait or 0.0, backoff.delay(failures, self.frontier.settings.retry_seconds, backoff.LONGEST_WAIT)
        )
        flags = kinds.RETRIED if again else kinds.IS_GONE if outcome.name == "gone" else 0
        self._write(number, out, flags, status, due, error)
        if again:
            front.plan(number, due)
        journal.note_outcome(out, outcome, wait)
        return True

    def excluded(self, page: Answered, reason: str) -> bool:
        """See :meth:`inlink.Crawl.exclude`."""
        check_text("reason", reason)
        number, out = self.journal.answered(page)
        if number == NO_PAGE:
            return False
        self._write(number, out, kinds.EXCLUDED_ONE, 0, self.journal.now, reason)
        self.journal.note_outcome(out, None)
        return True

    def _write(self, page: int, out: Out | None, flags: int, status: int, due: float, text: str) -> None:
        payload = struct_of(FailedRecord).pack(due) + text.encode("utf-8", "replace")[:LONGEST_ERROR]
        lease = out.number if out is not None else 0
        self.journal.answer(kinds.FAILED, page, flags=flags, status=status, payload=payload, lease=lease)

    def release(self, page: Answered) -> bool:
        """See :meth:`inlink.Crawl.release`."""
        number, out = self.journal.answered(page)
        if number == NO_PAGE or out is None or not out.current:
            return False
        self._write_release(number, out)
        self.journal.note_outcome(out, None)
        self.frontier.wait_again(number, self.journal.now)
        return True

    def _write_release(self, page: int, out: Out) -> None:
        payload = struct_of(ReleasedRecord).pack(out.number, page)
        self.journal.append(kinds.RELEASE, listed=1, payload=payload, lease=out.number)

    def release_all(self, session: int | None = None) -> int:
        """Give back all leases, or those of a session; return their number."""
        leases = self.frontier.leases
        self.journal.gate.changing = True
        outs = list(leases.all_current()) if session is None else leases.held_by(session)
        if outs:
            released = np.array([(out.number, out.page) for out in outs], dtype_of(ReleasedRecord))
            self.journal.append(kinds.RELEASE, listed=len(released), payload=released.tobytes())
        for out in outs:
            leases.close(out.number)
            self.journal.note_outcome(out, None)
            self.frontier.wait_again(out.page, self.journal.now)
        return len(outs)

    def lost(self, outs: list[Out]) -> None:
        """End leases without an answer. Their pages wait and are leased alone; after ``max_losses`` they fail."""
        journal, front, now = self.journal, self.frontier, self.journal.now
        most = self.frontier.settings.max_losses
        rows: dict[int, tuple[int, float, int, int]] = {}
        for out in outs:
            if self.pages.states[out.page] == LEASED and out.page not in rows:
                losses = int(self.pages.losses[out.page]) + 1
                due = now + backoff.delay(losses, self.frontier.settings.retry_seconds, backoff.LONGEST_WAIT)
                rows[out.page] = (out.number, due, out.page, losses >= most)
        if rows:
            payload = np.array(list(rows.values()), dtype_of(LostRecord)).tobytes()
            journal.append(kinds.LOST, listed=len(rows), payload=payload)
        for out in outs:
            front.leases.late(out.number)
            front.lost.ended(out.session, out.page)
            front.queue.end_fetch(out.slot, now)
            if out.page not in rows or rows[out.page][0] != out.number:
                continue
            _, due, page, over = rows[out.page]
            front.queue.give_back(out.slot, now)
            # A page that fails waits too. The answer below counts only waiting pages as taken.
            front.lost.wait(page, due)
            if over:
                self._write(
                    page, None, 0, 0, now, f"lost {counted(most, 'time')}: the spider ended or did not answer"
                )

    def reload(self, states: Sequence[str]) -> int:
        """See :meth:`inlink.Crawl.reload`; the states are checked."""
        journal, front, now = self.journal, self.frontier, self.journal.now
        wanted = [STATES.index(state) for state in states]
        stopped = np.flatnonzero(np.isin(self.pages.states[: self.pages.num_pages], wanted)).astype(np.uint32)
        stopped = self.admission.allowed(stopped)
        self.wait_again(stopped)
        if not front.hosts.failures:
            return len(stopped)
        for page in stopped.tolist():
            slot = front.queue.slot(page)
            # Forget the failures of these pages' hosts, and the waits that they led to.
            if slot in front.hosts.failures:
                front.hosts.let_go(slot, now)
                journal.append(kinds.HOST, page, **front.hosts.frame(slot, now))
                front.queue.settle(slot, now)
        return len(stopped)

    def readmit(self) -> int:
        """Let pages wait again whose excluding rule no longer applies; return their number."""
        returning = self.admission.returning()
        self.wait_again(returning)
        return len(returning)

    def wait_again(self, pages: UInt32Array) -> None:
        """Let pages that failed, are gone or were excluded wait again."""
        front, now = self.frontier, self.journal.now
        if not len(pages):
            return
        self.journal.append(kinds.RELOAD, listed=len(pages), payload=pages.tobytes())
        for page in pages[self.pages.answers[pages] > 0].tolist():
            # A page that was crawled before is not new: it waits for a revisit.
            if self.pages.visit_place(page) is not None:
                front.plan(page, now)
            else:
                front.queue.give_back(front.queue.slot(page), now)
        front.prioritise(pages, now)

    def redirected(
        self, page: Answered, to: str, data: bytes | None, again: bool, status: int
    ) -> tuple[bool, Lease | None]:
        """See :meth:`inlink.Crawl.redirected`; return whether the answer counted, and the lease of the target."""
        journal, front = self.journal, self.frontier
        # A target that carries too much is refused.
        check_link(Link(to, data=b"" if data is None else data))
        check_flags(again=again)
        status = checked_status(status)
        number, out = journal.answered(page)
        if number == NO_PAGE:
            return False, None
        if canonical(to, self.pages.url(number), journal.url_rules) is None:
            self._write(number, out, 0, status, journal.now, f"redirects to an invalid URL: {to[:200]}")
            journal.note_outcome(out, backoff.OUTCOMES["ok"])
            return True, None
        lease, session = (0, 0) if out is None else (out.number, out.session)
        target = journal.redirect(number, to, status=status, data=data, lease=lease)
        journal.note_outcome(out, backoff.OUTCOMES["ok"])
        state = int(self.pages.states[target])
        if target == number and state != CRAWLED:
            # The page redirects to itself, perhaps to set a cookie.
            again = True
        if state == EXCLUDED or (state != DISCOVERED and not again) or target in front.lost:
            return True, None
        if self.admission.refuses(target, None, journal.now):
            return True, None
        if front.hosts.is_closed(front.queue.slot(target), journal.now):
            # The page waits like any other page of its host.
            if target == number and out is not None:
                self._write_release(number, out)
                front.wait_again(number, journal.now)
            else:
                front.prioritise(np.array([target], np.uint32), journal.now)
            return True, None
        front.forget_wait(target)
        if front.is_taken(target):
            # It is counted again.
            front.end_lease(target, journal.now)
            front.queue.give_back(front.queue.slot(target), journal.now)
        slot = front.queue.take_one(target, journal.now)
        if self.pages.losses[target]:
            # A lost page that redirects to itself stays alone.
            front.lost.alone[session] = target
        pages, slots = np.array([target], np.uint32), np.array([slot], np.uint32)
        return True, journal.lease(pages, slots, session=session, ended=lease)[0]

    def host_delay(self, page: Answered, seconds: float) -> bool:
        """See :meth:`inlink.Crawl.host_delay`."""
        seconds = argument("seconds", seconds)
        if isinstance(page, str):
            number = self.journal.page_of(page)
        else:
            out = self.frontier.leases.get(number_of(page))
            if out is None:
                return False
            number = out.page
        hosts, queue, now = self.frontier.hosts, self.frontier.queue, self.journal.now
        slot = queue.slot(number)
        self.journal.gate.changing = True
        if not hosts.ask_for_delay(slot, seconds, now):
            return False
        queue.settle(slot, now)
        self.journal.append(kinds.HOST, number, **hosts.frame(slot, now))
        return True
