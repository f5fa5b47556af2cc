"""Leases: URLs that were handed out and have no answer yet.

A lease ends by an answer, by its release, or by loss. It is lost if it expires or its session ends. A lost lease stays
on the book, because an answer may still come. A late answer counts once, if the page was not crawled after the lease
was given.
"""

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from inlink.store.pages import Pages

KEPT = 1_000_000
"""Maximum number of lost leases on the book. Beyond it, the oldest are forgotten."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A URL that was handed out to be fetched.

    ``number``, from 1 on, names the lease, and ``page`` the page. ``expires`` is the Unix time at which the lease is
    lost without an answer. ``given`` is the URL as it was first given, if that differs from the canonical URL, else
    None. ``crawls`` is the number of earlier fetches, ``failures`` the number of failures since the last fetch.
    """

    url: str
    number: int
    page: int
    expires: float
    depth: int
    given: str | None = None
    crawls: int = 0
    carried: bytes | None = None
    failures: int = 0


class Out(msgspec.Struct):
    """A lease on the book.

    ``place`` is the place of its event in the log. ``session`` holds the lease (0 for a caller without a session).
    ``given`` is the Unix time at which it began. It is ``current`` until it is lost.
    """

    number: int
    page: int
    slot: int
    expires: float
    place: int
    session: int = 0
    given: float = 0.0
    current: bool = True


def lease_of(pages: Pages, out: Out) -> Lease:
    """The lease of an entry of the lease book, as it was handed out."""
    page = out.page
    visit = pages.visit(page) if pages.answers[page] else None
    return Lease(
        pages.table.url(page),
        out.number,
        page,
        out.expires,
        int(pages.depths[page]),
        pages.given.get(page),
        visit.crawls if visit else 0,
        pages.carried(page) if pages.carriers[page] else None,
        int(pages.errors[page]),
    )


class LeaseBook:
    """All leases that have no answer yet."""

    def __init__(self) -> None:
        self.next_number = 1
        self._out: dict[int, Out] = {}
        # Numbers of the leases of each page, in tuples: the garbage collector does not go through tuples of numbers.
        self.of_page: dict[int, tuple[int, ...]] = {}
        # The current leases of each session.
        self._held: dict[int, dict[int, Out]] = {}
        # A heap of times of expiry and numbers of leases. Entries of leases that have ended or were renewed are stale.
        self.ends: list[tuple[float, int]] = []
        self._late: deque[int] = deque()
        self._current = 0

    def __len__(self) -> int:
        """Number of current leases."""
        return self._current

    def add(self, out: Out) -> None:
        """Put a lease on the book."""
        number = out.number
        self._out[number] = out
        self.of_page[out.page] = (*self.of_page.get(out.page, ()), number)
        held = self._held.get(out.session)
        if held is None:
            held = self._held[out.session] = {}
        held[number] = out
        self._current += 1
        heapq.heappush(self.ends, (out.expires, number))
        self.next_number = max(self.next_number, number + 1)

    def get(self, number: int) -> Out | None:
        """The lease with a number; None if it is not on the book."""
        return self._out.get(number)

    def oldest(self, page: int) -> int | None:
        """Number of the oldest lease of a page that has no answer; None if there is none."""
        numbers = self.of_page.get(page)
        return numbers[0] if numbers else None

    def current(self, page: int) -> Out | None:
        """The current lease of a page; None if it has none."""
        for number in self.of_page.get(page, ()):
            if self._out[number].current:
                return self._out[number]
        return None

    def all_current(self) -> Iterator[Out]:
        """All current leases."""
        return (out for held in self._held.values() for out in held.values())

    def held(self, session: int) -> int:
        """Number of current leases of a session."""
        return len(self._held.get(session, ()))

    def held_by(self, session: int) -> list[Out]:
        """The current leases of a session."""
        return list(self._held.get(session, {}).values())

    def close(self, number: int) -> Out | None:
        """Remove a lease from the book and return it; None if it is not on the book, because it has an answer."""
        out = self._out.pop(number, None)
        if out is not None:
            if out.current:
                # As in `_release`. A call takes longer.
                self._current -= 1
                held = self._held[out.session]
                del held[number]
                if not held:
                    del self._held[out.session]
            numbers = self.of_page[out.page]
            del self.of_page[out.page]
            if len(numbers) > 1:
                self.of_page[out.page] = tuple(other for other in numbers if other != number)
        return out

    def late(self, number: int) -> None:
        """Note that a lease was lost. It stays on the book, because an answer may still come."""
        out = self._out.get(number)
        if out is not None and out.current:
            out.current = False
            self._release(out)
            self._late.append(number)
            if len(self._late) > KEPT:
                self.close(self._late.popleft())

    def _release(self, out: Out) -> None:
        self._current -= 1
        held = self._held[out.session]
        del held[out.number]
        if not held:
            del self._held[out.session]

    def expired(self, now: float) -> list[Out]:
        """The current leases that have expired by ``now``. They stay current."""
        expired = []
        while self.ends and self.ends[0][0] <= now:
            expires, number = heapq.heappop(self.ends)
            out = self._out.get(number)
            if out is not None and out.current and out.expires == expires:
                expired.append(out)
        return expired

    def renew(self, outs: list[Out], expires: float) -> None:
        """Set the time of expiry of leases to ``expires``."""
        for out in outs:
            out.expires = expires
            heapq.heappush(self.ends, (expires, out.number))

    def move_on(self, seconds: float) -> None:
        """Extend all leases by the seconds for which the crawl was closed."""
        for out in self._out.values():
            out.expires += seconds
            out.given += seconds
        self.ends = [(out.expires, out.number) for out in self.all_current()]
        heapq.heapify(self.ends)

    def next_end(self) -> float | None:
        """Unix time at which the next lease expires; None if there is none."""
        while self.ends:
            expires, number = self.ends[0]
            out = self._out.get(number)
            if out is not None and out.current and out.expires == expires:
                return expires
            heapq.heappop(self.ends)
        return None
