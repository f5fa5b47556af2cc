"""Sums over all pages of a crawl, and the best of them, computed a few milliseconds at a time.

A pass over ten million pages takes tens of milliseconds, so it is cut into blocks. Each call of :meth:`Survey.proceed`
goes on where the last call stopped. The results are those of the last complete pass. In a crawl of up to 262,144 pages
each call makes a complete pass.
"""

import time
from collections.abc import Callable

import msgspec
import numpy as np

from inlink.base.arrays import AnyArray
from inlink.store.blocks import num_links
from inlink.store.pages import Pages

__all__ = ["BEST", "LinkCount", "Survey", "Surveyed"]

BEST = 1000
"""Number of best pages that a survey keeps."""

_BLOCK = 1 << 18
_ROWS = 1 << 15
_FEW_BYTES = 1 << 12

Values = Callable[[int, int], AnyArray]


class Surveyed(msgspec.Struct, frozen=True):
    """The result of a pass: pages, sum of all values, sum of the crawled pages' values, the best pages with values."""

    pages: int
    total: float
    crawled: float
    best: list[tuple[int, float]]


class Survey:
    """Repeated passes over a value of each page.

    Parameters
    ----------
    pages : Pages
    values : callable
        ``values(first, end)`` returns the values of pages first, …, end − 1.
    count : callable
        The number of pages that have a value now.
    version : callable
        Returns a value that differs from its earlier value if a new pass is needed.

    Attributes
    ----------
    result : Surveyed or None
        The result of the last complete pass.
    position : int
        Number of pages that the present pass has seen.
    """

    def __init__(
        self, pages: Pages, values: Values, count: Callable[[], int], version: Callable[[], object]
    ) -> None:
        self._pages, self._values, self._count, self._version = pages, values, count, version
        self.result: Surveyed | None = None
        self._made_for: object = None
        self._begin()

    def _begin(self) -> None:
        self.position, self._end, self._begun_for = 0, self._count(), self._version()
        self._total = self._crawled = 0.0
        self._best_values = np.empty(0)
        self._best_pages = np.empty(0, np.int64)

    def proceed(self, seconds: float) -> bool:
        """Go on with the present pass, or begin a new pass if ``version`` changed since the last pass.

        Parameters
        ----------
        seconds : float
            CPU time after which to stop; at least one block is done.

        Returns
        -------
        bool
            True if ``result`` is up to date, or if a pass ended in this call.
        """
        if self.position == 0:
            if self.result is not None and self._made_for == self._version():
                return True
            self._begin()
        stop = time.thread_time() + seconds
        while self.position < self._end:
            self._take(self.position, min(self.position + _BLOCK, self._end))
            if time.thread_time() > stop:
                break
        if self.position < self._end:
            return False
        self.result = Surveyed(self._end, self._total, self._crawled, self._sorted())
        self._made_for, self.position = self._begun_for, 0
        return True

    def best_so_far(self) -> list[tuple[int, float]]:
        """The best pages of the present pass so far, or those of the last pass if no pass is under way."""
        if self.position == 0 and self.result is not None:
            return self.result.best
        return self._sorted()

    def _take(self, first: int, end: int) -> None:
        values = self._values(first, end)
        self._total += float(values.sum(dtype=np.float64))
        # Pages without an answer have row 0, which has no visit. Merged pages have visits too.
        crawled = self._pages.visits[self._pages.answers[first:end]] > 0
        self._crawled += float(values[crawled].sum(dtype=np.float64))
        least = self._best_values.min() if len(self._best_values) == BEST else -np.inf
        better = np.flatnonzero(values > least)
        if len(better) > BEST:
            better = better[np.argpartition(values[better], len(better) - BEST)[len(better) - BEST :]]
        pages = np.concatenate([self._best_pages, better + first])
        values = np.concatenate([self._best_values, values[better].astype(np.float64)])
        best = np.lexsort((pages, -values))[:BEST]
        self._best_pages, self._best_values = pages[best], values[best]
        self.position = end

    def _sorted(self) -> list[tuple[int, float]]:
        return list(zip(self._best_pages.tolist(), self._best_values.tolist(), strict=True))


class LinkCount:
    """Counts the links of all latest visits.

    Parameters
    ----------
    pages : Pages
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._row, self._sum = 1, 0
        self._count: int | None = None
        self._counted_to = -1
        kept = pages.checkpoint
        if kept is not None:
            self._count, self._counted_to = kept.meta["links"], kept.extent.events_end

    def proceed(self, seconds: float) -> int | None:
        """Go on counting for some CPU time; return the count of the last complete pass, None before its end."""
        pages = self._pages
        if self._row == 1 and self._counts_all():
            return self._count
        stop, end = time.thread_time() + seconds, pages.tally.rows + 1
        while self._row < end:
            last = min(self._row + _ROWS, end)
            self._sum += num_links(pages, self._row, last)
            self._row = last
            if time.thread_time() > stop:
                break
        if self._row >= end:
            self._count, self._counted_to = self._sum, pages.events_end
            self._row, self._sum = 1, 0
        return self._count

    def _counts_all(self) -> bool:
        """Return whether the last count still holds: no event came later, except for marks of syncs."""
        begin, end = self._counted_to, self._pages.events_end
        if 0 <= begin < end <= begin + _FEW_BYTES and not self._pages.changes_between(begin, end):
            self._counted_to = end
        return self._counted_to == end
