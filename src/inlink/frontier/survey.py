"""Sums over all pages of a crawl, and the best of them, computed a few milliseconds at a time.

A pass over ten million pages takes tens of milliseconds, so it is cut into blocks. Each call of :meth:`Survey.proceed`
goes on where the last call stopped. The results are those of the last complete pass. In a crawl of up to 262,144 pages
each call makes a complete pass.
"""

from collections.abc import Callable, Iterator

import msgspec
import numpy as np

from inlink.base.arrays import AnyArray, BoolArray, slices
from inlink.frontier.owners import OwnPages, go_on
from inlink.store.blocks import num_links
from inlink.store.format import EXCLUDED, GONE, MERGED
from inlink.store.frames import changes_in
from inlink.store.pages import Pages

BEST = 1000
"""Number of best pages that a survey keeps."""

_BLOCK = 1 << 18
_ROWS = 1 << 15
_FEW_BYTES = 1 << 12

Values = Callable[[int, int], AnyArray]


def fetchable(pages: Pages, first: int, end: int) -> tuple[BoolArray, BoolArray]:
    """For pages first, …, end − 1: whether they were crawled, and whether they were or may be: not excluded or gone."""
    # Pages without an answer have row 0, which has no visit. Merged pages have visits too.
    crawled = pages.visits[pages.answers[first:end]] > 0
    states = pages.states[first:end]
    return crawled, crawled | ((states != EXCLUDED) & (states != GONE))


class Shown:
    """The pages among which a survey finds the best: crawled pages, and others if they are wanted too.

    Parameters
    ----------
    pages : Pages
    foreign : bool
        Also pages of hosts without crawled pages.
    uncrawled : bool
        Also the other pages of hosts with crawled pages.
    """

    def __init__(self, pages: Pages, foreign: bool, uncrawled: bool) -> None:
        self._pages, self._foreign, self._uncrawled = pages, foreign, uncrawled
        self._own: BoolArray = np.empty(0, bool)

    def find_hosts(self) -> Iterator[None]:
        """Find the hosts with crawled pages, in steps, if :meth:`mask` needs them."""
        pages = self._pages
        self._own = np.zeros(pages.tally.hosts, bool)
        if self._foreign != self._uncrawled:
            for rows in slices(pages.tally.rows + 1, _BLOCK, 1):
                self._own[pages.hosts[pages.crawled(rows.start, rows.stop)[0]]] = True
                yield

    def mask(self, first: int, end: int) -> BoolArray:
        """Whether pages first, …, end − 1 are shown."""
        if self._foreign and self._uncrawled:
            return np.ones(end - first, bool)
        crawled, _ = fetchable(self._pages, first, end)
        crawled &= self._pages.states[first:end] != MERGED
        if not (self._foreign or self._uncrawled):
            return crawled
        crawled |= self._own[self._pages.hosts[first:end]] == self._uncrawled
        return crawled


class Surveyed(msgspec.Struct, frozen=True):
    """The result of a pass: number of pages, sum of the values of pages that may be fetched, and of crawled pages."""

    pages: int
    total: float
    crawled: float


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
    shown : Shown or None
        The pages among which the best are found; None for all.
    own : OwnPages or None
        In a shard of a crawl, the pages that it owns. Other pages are neither summed nor among the best.

    Attributes
    ----------
    result : Surveyed or None
        The result of the last complete pass.
    position : int
        Number of pages that the present pass has seen.
    """

    def __init__(
        self,
        pages: Pages,
        values: Values,
        count: Callable[[], int],
        version: Callable[[], object],
        shown: Shown | None = None,
        own: OwnPages | None = None,
    ) -> None:
        self._shown, self._own = shown, own
        self._pages, self._values, self._count, self._version = pages, values, count, version
        self.result: Surveyed | None = None
        self.position = 0
        self._made_for: object = None
        self._steps: Iterator[None] | None = None
        self._best: tuple[AnyArray, AnyArray] = np.empty(0, np.int64), np.empty(0)

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
        if self._steps is None:
            if self.result is not None and self._made_for == self._version():
                return True
            self._steps = self._pass()
        if not go_on(self._steps, seconds):
            return False
        self._steps = None
        return True

    def best_so_far(self) -> list[tuple[int, float]]:
        """The best pages of the present pass so far, or those of the last pass if no pass is under way."""
        pages, values = self._best
        return list(zip(pages.tolist(), values.tolist(), strict=True))

    def _pass(self) -> Iterator[None]:
        end, made_for = self._count(), self._version()
        total = crawled = 0.0
        self.position, self._best = 0, (np.empty(0, np.int64), np.empty(0))
        if self._shown is not None:
            yield from self._shown.find_hosts()
        if self._own is not None:
            yield from self._own.hosts.learn()
        while True:
            first, self.position = self.position, min(self.position + _BLOCK, end)
            values, (pages, best) = self._values(first, self.position), self._best
            seen, may = fetchable(self._pages, first, self.position)
            if self._own is not None:
                own = self._own.mask(first, self.position)
                seen &= own
                may &= own
                values = np.where(own, values, -np.inf)
            total += float(values[may].sum(dtype=np.float64))
            crawled += float(values[seen].sum(dtype=np.float64))
            if self._shown is not None:
                values = np.where(self._shown.mask(first, self.position), values, -np.inf)
            better = np.flatnonzero(values > (best.min() if len(best) == BEST else -np.inf))
            if len(better) > BEST:
                better = better[np.argpartition(values[better], len(better) - BEST)[len(better) - BEST :]]
            pages = np.concatenate([pages, better + first])
            best = np.concatenate([best, values[better].astype(np.float64)])
            order = np.lexsort((pages, -best))[:BEST]
            self._best = pages[order], best[order]
            if self.position >= end:
                break
            yield
        self.result = Surveyed(end, total, crawled)
        self._made_for, self.position = made_for, 0


class LinkCount:
    """Counts the links of all latest visits."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._steps: Iterator[None] | None = None
        self._count: int | None = None
        self._counted_to = -1
        kept = pages.checkpoint
        if kept is not None:
            self._count, self._counted_to = kept.meta["links"], kept.extent.events_end

    def proceed(self, seconds: float) -> int | None:
        """Go on counting for some CPU time; return the count of the last complete pass, None before its end."""
        if self._steps is None and not self._counts_all():
            self._steps = self._pass()
        if self._steps is not None and go_on(self._steps, seconds):
            self._steps = None
        return self._count

    def _pass(self) -> Iterator[None]:
        pages, count = self._pages, 0
        first = 1
        # Rows that are added meanwhile count too.
        while (last := min(first + _ROWS, pages.tally.rows + 1)) > first:
            if first > 1:
                yield
            count += num_links(pages, first, last)
            first = last
        self._count, self._counted_to = count, pages.frames.end

    def _counts_all(self) -> bool:
        """Return whether the last count still holds: no event came later, except for marks of syncs."""
        begin, end = self._counted_to, self._pages.frames.end
        if 0 <= begin < end <= begin + _FEW_BYTES and not changes_in(
            self._pages.frames.between(begin, end)[begin:end]
        ):
            self._counted_to = end
        return self._counted_to == end
