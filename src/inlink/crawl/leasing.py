"""Hand out leases, and take back those that are lost: they expired, or their session has ended."""

import time
from collections.abc import Callable

import numpy as np

from inlink.base.arrays import UInt32Array
from inlink.base.clock import VirtualClock
from inlink.crawl.answers import Answers
from inlink.crawl.arguments import argument, checked_states
from inlink.crawl.intake import PageIntake
from inlink.crawl.upkeep import Upkeep
from inlink.errors import SessionError
from inlink.frontier.leases import Lease
from inlink.frontier.sessions import SpiderSession
from inlink.frontier.visits import replan
from inlink.protocol import Task
from inlink.store import format as kinds
from inlink.store import inbox
from inlink.store.format import SessionRecord, struct_of

BY_SPIDER, BY_SUCCESSOR, BY_SILENCE = 1, 2, 3
"""Reasons for the end of a session."""

Take = Callable[[int, float], tuple[UInt32Array, UInt32Array]]
"""Takes at most so many pages out of the frontier, at a time: pages and their slots."""


class Leasing:
    """Hands out leases, after all work that was due by then."""

    def __init__(self, answers: Answers, intake: PageIntake, upkeep: Upkeep) -> None:
        self.journal, self.frontier = answers.journal, answers.frontier
        self.answers, self.admission = answers, answers.admission
        self.intake, self.upkeep = intake, upkeep

    def hand_out(
        self,
        count: int,
        session: int = 0,
        request: int = 0,
        lost: bool = True,
        *,
        take: Take | None = None,
        seconds: float | None = None,
    ) -> list[Lease]:
        """Lease the next pages to a session: see :meth:`inlink.Crawl.next` and :meth:`.desk.Desk.next`.

        The caller reads the clock before. ``take`` chooses the pages, in place of the queue and the rules. They are
        lost after ``seconds``, in place of ``lease_seconds``.
        """
        journal, front, admission = self.journal, self.frontier, self.admission
        now = journal.now
        journal.gate.changing = True
        # Adopting a ranking changes dates, which `catch_up` plans again.
        self.upkeep.before_next(now)
        self.catch_up(now)
        if journal.gathers:
            # A report was interrupted.
            journal.exclude_gathered()
        journal.gate.changing = True
        if front.paused or count < 1:
            return []
        while lost and (front.lost.dates or front.lost.alone):
            turn = front.lost.turn(session, now)
            if isinstance(turn, tuple):
                page, slot = turn
                if admission.refuses(page, slot, now):
                    front.lost.ended(session, page)
                    continue
                pages, slots = np.array([page], np.uint32), np.array([slot], np.uint32)
                return journal.lease(pages, slots, session=session, request=request)
            if turn:
                return []
            break
        if take is None:
            take = admission.take if admission.unchecked else front.queue.take
        pages, slots = take(count, now)
        if not len(pages):
            return []
        return journal.lease(pages, slots, session=session, request=request, seconds=seconds)

    def due_in(self) -> float | None:
        """See :meth:`inlink.Crawl.due_in`."""
        now, front = self.journal.tick(), self.frontier
        self.catch_up(now)
        due, end = None if front.paused else front.due_in(now), front.leases.next_end()
        left = None if end is None else max(end - now, 0.0)
        return min((seconds for seconds in (due, left) if seconds is not None), default=None)

    def wait(self, clock: VirtualClock) -> float | None:
        """See :meth:`inlink.Crawl.wait`."""
        before = self.journal.tick()
        while due := self.due_in():
            clock.advance(due)
        return None if due is None else self.journal.now - before

    def catch_up(self, now: float) -> None:
        """Do all work that is due by now, and carry out the requests in the inbox."""
        gate, front = self.journal.gate, self.frontier
        gate.changing = True
        if front.leases.ends and front.leases.ends[0][0] <= now:
            self.answers.lost(front.leases.expired(now))
        if front.sessions.next_silence <= now:
            for session in front.sessions.silent(now):
                self.end_session(session, BY_SILENCE)
        if front.values is not None and front.values.outdated:
            replan(front, now)
        # In virtual time nobody waits, and a replay must not depend on steps.
        while front.later and front.later[0][0] <= now and front.advance(now) and self.upkeep.at_once:
            pass
        gate.changing = False
        if time.monotonic() >= self.upkeep.inbox_at:
            for kind, lines in self.upkeep.requests():
                if kind == inbox.SEED:
                    self.intake.seed(lines)
                elif kind == inbox.RELOAD:
                    self.answers.reload(checked_states([state for state, _ in lines]))
                gate.changing = False

    def session(self, number: int) -> SpiderSession:
        """Note a call of a session, inside the gate.

        Raises
        ------
        inlink.errors.SessionError
            If it has ended.
        """
        number = argument("session", number)
        now = self.journal.tick()
        session = self.frontier.sessions.get(number)
        if session is not None and now - session.heard >= session.silent_after:
            self.end_session(session, BY_SILENCE)
            session, self.journal.gate.changing = None, False
        if session is None:
            raise SessionError(f"session {number!r} has ended, and its tasks are lost: begin a new session")
        session.heard = now
        return session

    def end_session(self, session: SpiderSession, reason: int) -> int:
        """End a session; return the number of its tasks, which are lost."""
        front = self.frontier
        self.write_session(session, reason)
        front.sessions.remove(session.number)
        outs = front.leases.held_by(session.number)
        if outs:
            self.answers.lost(outs)
        front.lost.session_over(session.number, self.journal.now)
        return len(outs)

    def write_session(self, session: SpiderSession, ended: int = 0) -> None:
        """Write the beginning of a session, or its end with the reason."""
        payload = struct_of(SessionRecord).pack(session.number, session.silent_after, ended)
        payload += session.owner.encode("utf-8", "replace")
        self.journal.append(kinds.SESSION, payload=payload)

    def task(self, lease: Lease) -> Task:
        """The task of a lease, as its spider gets it."""
        return Task(
            lease.number,
            lease.url,
            lease.depth,
            lease.crawls,
            lease.failures,
            self.journal.pages.linked_from(lease.page),
            lease.carried,
            lease.given,
        )
