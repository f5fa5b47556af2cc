"""Lost pages: pages whose lease ended without an answer.

A page may have killed its spider. The other pages that the spider held are then lost too, although they are harmless.
So a lost page waits until it is due and is then leased alone: to a session that holds no other lease and gets no other
lease before it has answered. If this session dies too, the page is the cause.

A session that holds no lease gets a lost page when it asks for tasks. If the session that asks holds leases and no
other session *drains*, it drains: it gets no task until it has answered all its leases. So one session drains at a
time, and the others go on.
"""

import heapq
from collections.abc import Callable

from inlink.frontier.leases import LeaseBook
from inlink.frontier.queue import Queue


class LostPages:
    """The lost pages of a crawl that wait, and those that are out alone.

    Parameters
    ----------
    queue : Queue
        Its slots give the time at which a page may be fetched. Lost pages do not wait in it.
    leases : LeaseBook
        Gives the leases that a session holds.
    """

    def __init__(self, queue: Queue, leases: LeaseBook) -> None:
        self.queue, self.leases = queue, leases
        # The Unix time at which each page may be handed out.
        self.dates: dict[int, float] = {}
        # A heap of the pages that are not due yet. It may hold stale entries.
        self._later: list[tuple[float, int]] = []
        # The pages that are due, by slot.
        self._ready: dict[int, dict[int, None]] = {}
        # The session that drains, the page reserved for it, and the page's slot.
        self._reserved: tuple[int, int, int] | None = None
        # The page that each session fetches alone.
        self.alone: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.dates)

    def __contains__(self, page: int) -> bool:
        """Return whether a page waits here."""
        return page in self.dates

    def wait(self, page: int, due: float) -> None:
        """Let a page wait."""
        self.dates[page] = due
        heapq.heappush(self._later, (due, page))

    def forget(self, page: int, now: float) -> None:
        """Remove a page, because it has an answer or must not be fetched."""
        if self.dates.pop(page, None) is None:
            return
        slot = self.queue.slot(page)
        if self._reserved is not None and self._reserved[1] == page:
            self._give_up(now)
        elif page in self._ready.get(slot, ()):
            self._leave(page, slot)

    def ended(self, session: int, page: int) -> None:
        """Note that a session's lease of a page has ended."""
        if self.alone.get(session) == page:
            del self.alone[session]

    def is_alone(self, session: int) -> bool:
        """Return whether a session drains, or fetches a page alone. It gets no task before it has answered."""
        return session in self.alone or (self._reserved is not None and self._reserved[0] == session)

    def session_over(self, session: int, now: float) -> None:
        """Note that a session has ended."""
        self.alone.pop(session, None)
        if self._reserved is not None and self._reserved[0] == session:
            self._free(now)

    def turn(self, session: int, now: float) -> tuple[int, int] | bool:
        """Choose the lost page for a session that asks for tasks.

        Returns
        -------
        (int, int) or bool
            A page and its slot, to be leased to the session alone; True if the session gets no task now; False if it
            gets ordinary tasks.
        """
        if session in self.alone:
            return True
        holds = self.leases.held(session)
        drains = None if self._reserved is None else self._reserved[0]
        # The session that drained holds no leases any more but does not ask for tasks.
        if drains is not None and drains != session and not self.leases.held(drains):
            self._free(now)
        if self._reserved is not None and self._reserved[0] == session:
            if holds:
                return True
            _, page, slot = self._reserved
            self._reserved = None
        else:
            if holds and self._reserved is not None:
                return False
            chosen = self._ready_page(now)
            if chosen is None:
                return False
            page = chosen
            self._leave(page, self.queue.slot(page))
            slot = self.queue.take_one(page, now)
            if holds:
                self._reserved = session, page, slot
                return True
        del self.dates[page]
        self.alone[session] = page
        return page, slot

    def take(self, fits: Callable[[int], bool], now: float) -> tuple[int, int] | None:
        """Take a page that is due, to be leased together with other pages.

        ``fits(slot)`` returns whether a page of the slot may be taken.

        Returns
        -------
        (int, int) or None
            The page and its slot.
        """
        self._move(now)
        for slot, pages in self._ready.items():
            if fits(slot) and self.queue.free_in(slot, now) == 0:
                page = next(iter(pages))
                self._leave(page, slot)
                del self.dates[page]
                return page, self.queue.take_one(page, now)
        return None

    def due_in(self, session: int, now: float) -> float | None:
        """Seconds until a session may fetch a lost page; None if that does not depend on time alone."""
        self._move(now)
        holds = self.leases.held(session)
        times = [due - now for due, _ in self._later[:1]]
        for slot in self._ready:
            wait = self.queue.free_in(slot, now)
            if wait is not None and (wait > 0 or not holds):
                times.append(wait)
        return min(times, default=None)

    def _move(self, now: float) -> None:
        """Move the pages that are due to the pages that are ready."""
        while self._later:
            due, page = self._later[0]
            if self.dates.get(page) == due:
                if due > now:
                    return
                self._ready.setdefault(self.queue.slot(page), {})[page] = None
            heapq.heappop(self._later)

    def _ready_page(self, now: float) -> int | None:
        """A page that is due and may be fetched now by the limits of its slot; None if there is none."""
        self._move(now)
        for slot, pages in self._ready.items():
            if self.queue.free_in(slot, now) == 0:
                return next(iter(pages))
        return None

    def _leave(self, page: int, slot: int) -> None:
        pages = self._ready[slot]
        del pages[page]
        if not pages:
            del self._ready[slot]

    def _free(self, now: float) -> None:
        """Let the reserved page wait for another session."""
        assert self._reserved is not None
        page = self._reserved[1]
        self._give_up(now)
        heapq.heappush(self._later, (self.dates[page], page))

    def _give_up(self, now: float) -> None:
        """End the reservation."""
        assert self._reserved is not None
        _, _, slot = self._reserved
        self._reserved = None
        self.queue.end_fetch(slot, now)
        self.queue.give_back(slot, now)
