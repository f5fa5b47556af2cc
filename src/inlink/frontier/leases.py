"""Leases: URLs handed out and not yet answered for.

A lease ends by an answer, by its release, or by time. One that ran out stays on the book until it is answered, so
that a late answer is known for what it is: it counts if the page was not crawled since the lease was given, and it
counts once.
"""

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Lease", "LeaseBook", "Out"]

KEPT = 1_000_000  # leases that ran out and were never answered for, the oldest of which are forgotten beyond that


@dataclass(frozen=True, slots=True)
class Lease:
    """A URL handed out to be fetched.

    ``number`` names the lease, ``page`` the page; ``expires`` is when it runs out, in seconds since 1970.
    ``given`` is the URL as it was given where the canonical form differs, else None. ``crawls`` is how often the
    page was crawled before.
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


@dataclass(slots=True)
class Out:
    """A lease on the book: ``place`` is its event's in the log; ``current`` until it runs out."""

    page: int
    slot: int
    expires: float
    place: int
    current: bool = True


class LeaseBook:
    """All leases that are not answered for."""

    def __init__(self) -> None:
        self.next_number = 0
        self._out: dict[int, Out] = {}
        self._of_page: dict[int, list[int]] = {}
        self._ends: list[tuple[float, int]] = []  # a heap
        self._late: deque[int] = deque()
        self._current = 0

    def __len__(self) -> int:
        """How many are out and have not run out."""
        return self._current

    def add(self, number: int, page: int, slot: int, expires: float, place: int) -> None:
        """Put a lease on the book."""
        self._out[number] = Out(page, slot, expires, place)
        self._current += 1
        self._of_page.setdefault(page, []).append(number)
        heapq.heappush(self._ends, (expires, number))
        self.next_number = max(self.next_number, number + 1)

    def oldest(self, page: int) -> int | None:
        """The oldest lease of a page that is not answered for."""
        numbers = self._of_page.get(page)
        return numbers[0] if numbers else None

    def current(self, page: int) -> tuple[int, Out] | None:
        """The lease of a page that has not run out."""
        for number in self._of_page.get(page, ()):
            if self._out[number].current:
                return number, self._out[number]
        return None

    def all_current(self) -> Iterator[tuple[int, Out]]:
        """All leases that have not run out."""
        return ((number, out) for number, out in self._out.items() if out.current)

    def close(self, number: int) -> Out | None:
        """Strike a lease off; None if it is not on the book, because it was answered for."""
        out = self._out.pop(number, None)
        if out is not None:
            self._current -= out.current
            numbers = self._of_page[out.page]
            numbers.remove(number)
            if not numbers:
                del self._of_page[out.page]
        return out

    def late(self, number: int) -> None:
        """Take a lease for one that ran out: it is not waited for any more."""
        out = self._out.get(number)
        if out is not None and out.current:
            out.current = False
            self._current -= 1
            self._late.append(number)
            if len(self._late) > KEPT:
                self.close(self._late.popleft())

    def run_out(self, now: float) -> Iterator[Out]:
        """The leases whose time is over, once each."""
        while self._ends and self._ends[0][0] <= now:
            _, number = heapq.heappop(self._ends)
            out = self._out.get(number)
            if out is not None and out.current:
                self.late(number)
                yield out

    def next_end(self) -> float | None:
        """When the next lease runs out."""
        while self._ends and self._ends[0][1] not in self._out:
            heapq.heappop(self._ends)
        return self._ends[0][0] if self._ends else None
