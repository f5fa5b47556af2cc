"""The work of a crawl behind its gate: :class:`inlink.Crawl` and its desk check arguments and call :class:`Core`."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from inlink.base.arrays import UInt32Array
from inlink.base.clock import VirtualClock
from inlink.crawl.answers import Answers, lease_pages
from inlink.crawl.arguments import LATEST, checked_states, moment
from inlink.crawl.journal import Journal
from inlink.crawl.seeding import hint, seed
from inlink.crawl.upkeep import Upkeep
from inlink.frontier.leases import Lease
from inlink.protocol import AnyLink
from inlink.store import format as kinds
from inlink.store import inbox

if TYPE_CHECKING:
    from inlink.crawl.desk import Desk

__all__ = ["Core"]

Take = Callable[[int, float], tuple[UInt32Array, UInt32Array]]
"""Takes at most so many pages out of the frontier, at a time: pages and their slots."""


class Core:
    """The parts of a crawl, and the work that needs more than one part.

    Parameters
    ----------
    journal : Journal
    answers : Answers
    upkeep : Upkeep
    clock : callable
        Unix time; a value below an earlier one is ignored.
    refused : Counter
        URLs that were refused, by reason.
    """

    desk: "Desk"

    def __init__(
        self,
        journal: Journal,
        answers: Answers,
        upkeep: Upkeep,
        clock: Callable[[], float],
        refused: Counter[str],
    ) -> None:
        self.journal, self.answers, self.upkeep = journal, answers, upkeep
        self.admission = answers.admission
        self.frontier, self.gate = journal.frontier, journal.gate
        self.clock = clock
        self.refused = refused

    def tick(self) -> float:
        """Unix time, which never goes back."""
        journal, now = self.journal, self.clock()
        if type(now) is not float or not -LATEST <= now <= LATEST:
            now = moment(now)
        if now > journal.now:
            journal.now = now
        return journal.now

    def seed(self, urls: Iterable[AnyLink]) -> int:
        """See :meth:`inlink.Crawl.seed`."""
        self.tick()
        return seed(self.journal, urls, self.refused)

    def sitemap(self, rows: list[tuple[str, float | None, float]]) -> int:
        """See :meth:`inlink.Crawl.sitemap`; the rows are checked."""
        new = self.seed([(url, priority) for url, _, priority in rows])
        hint(self.journal, rows)
        return new

    def pause(self, paused: bool) -> None:
        """See :meth:`inlink.Crawl.pause`."""
        self.tick()
        if self.frontier.paused != paused:
            self.journal.append(kinds.PAUSE if paused else kinds.RESUME)
            self.frontier.paused = paused

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

        ``take`` chooses them, in place of the admission. They are lost after ``seconds``, in place of
        ``lease_seconds``.
        """
        now, front, journal = self.tick(), self.frontier, self.journal
        self._let_pass(now)
        self.gate.changing = True
        self.upkeep.before_next(now)
        if front.paused or count < 1:
            return []
        while lost and front.lost:
            turn = front.lost.turn(session, now)
            if isinstance(turn, tuple):
                page, slot = turn
                if self.admission.refuses(page, slot, now):
                    front.lost.ended(session, page)
                    continue
                pages, slots = np.array([page], np.uint32), np.array([slot], np.uint32)
                return lease_pages(journal, pages, slots, session=session, request=request)
            if turn:
                return []
            break
        pages, slots = (take or self.admission.take)(count, now)
        if not len(pages):
            return []
        return lease_pages(journal, pages, slots, session=session, request=request, seconds=seconds)

    def due_in(self) -> float | None:
        """See :meth:`inlink.Crawl.due_in`."""
        now, front = self.tick(), self.frontier
        self._let_pass(now)
        due, end = None if front.paused else front.due_in(now), front.leases.next_end()
        left = None if end is None else max(end - now, 0.0)
        return min((seconds for seconds in (due, left) if seconds is not None), default=None)

    def rerank(self, wait: bool) -> None:
        """See :meth:`inlink.Crawl.rerank`."""
        now = self.tick()
        if wait:
            self.gate.changing = True
            self.upkeep.rerank_at_once(now)
        else:
            self.upkeep.rerank(now)

    def wait(self, clock: VirtualClock) -> float | None:
        """See :meth:`inlink.Crawl.wait`."""
        before = self.tick()
        while due := self.due_in():
            clock.advance(due)
        return None if due is None else self.journal.now - before

    def _let_pass(self, now: float) -> None:
        """Do all work that is due by now, and carry out the requests in the inbox."""
        self.gate.changing = True
        self.desk.advance(now)
        # In virtual time nobody waits, and a replay must not depend on steps.
        while self.frontier.advance(now) and self.upkeep.at_once:
            pass
        self.gate.changing = False
        for kind, lines in self.upkeep.requests():
            if kind == inbox.SEED:
                self.seed(lines)
            elif kind == inbox.RELOAD:
                self.answers.reload(checked_states([state for state, _ in lines]))
            self.gate.changing = False
