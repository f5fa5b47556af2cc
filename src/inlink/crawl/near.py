"""Search all latest visits for near-duplicates of a page, a few milliseconds at a time."""

import time
from collections import OrderedDict

import msgspec

from inlink.store.near import First, earliest, near_visits
from inlink.store.pages import Pages

__all__ = ["NearSearch"]

KEPT_SEARCHES = 1000
"""Maximum number of searches in memory. The least recently used one is dropped first."""

_VISITS = 1 << 12


class _NearSearch(msgspec.Struct):
    """A search for one visit: the next row of visits, and the earliest near-duplicate so far."""

    visit: int
    row: int = 1
    best: First | None = None


class NearSearch:
    """Finds near-duplicates of pages: see :mod:`inlink.store.near`.

    Parameters
    ----------
    pages : Pages
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._searches: OrderedDict[int, _NearSearch] = OrderedDict()

    def of(self, page: int, seconds: float) -> tuple[int | None, bool]:
        """Search the earliest near-duplicate of a page; return it, or None, and whether all visits were compared.

        Parameters
        ----------
        page : int
        seconds : float
            CPU time after which the search pauses. The next call for the page goes on.
        """
        pages = self._pages
        visit = pages.visit(page)
        if visit is None or not visit.fingerprint:
            return None, True
        search = self._searches.get(page)
        if search is None or search.visit != visit.place:
            search = self._searches[page] = _NearSearch(visit.place)
        self._searches.move_to_end(page)
        if len(self._searches) > KEPT_SEARCHES:
            self._searches.popitem(last=False)
        before, end = First(visit.first_crawl, page), pages.tally.rows + 1
        stop = time.thread_time() + seconds
        while search.row < end:
            last = min(search.row + _VISITS, end)
            _, places = pages.crawled(search.row, last)
            log = pages.log_at(places)
            found = earliest(log, near_visits(log, places, visit.fingerprint), before)
            if found is not None and (search.best is None or found < search.best):
                search.best = found
            search.row = last
            if time.thread_time() > stop:
                break
        return None if search.best is None else search.best.page, search.row >= end
