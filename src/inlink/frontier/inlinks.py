"""Find the links that add most to a page's priority, reading the log a few milliseconds at a time.

A column of linkers would cost 16 bytes a page and, at each opening, a pass over all links. So no linkers are stored.
Instead a search reads the log from the event that made the page known. It keeps the best linkers found so far and its
place in the log. The next call for the page goes on from there, so it finds new visits too. A search that once reached
the end needs only a moment to be complete again.
"""

import time
from collections import OrderedDict

import msgspec
import numpy as np

from inlink.base.arrays import UInt64Array
from inlink.frontier.explain import Inlink
from inlink.frontier.frontier import Frontier
from inlink.frontier.kernels.shares import find_linkers

KEPT_LINKERS = 8
"""Number of linkers that a search keeps for a page."""

KEPT_SEARCHES = 1000
"""Maximum number of searches in memory. The least recently used one is dropped first."""

_LINKS = np.uint64(1 << 16)
"""Number of links that are read between two looks at the clock, in about 0.2 ms."""


_BYTES = 1 << 20
"""About so many bytes of the log are read between two looks at the clock."""


class _InlinkSearch(msgspec.Struct):
    """A search for links to one page: the next byte of the log, and the places of the best visits found."""

    place: int
    best: list[int] = []


class InlinkSearch:
    """Finds the links that add most to the priorities of pages."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._searches: OrderedDict[int, _InlinkSearch] = OrderedDict()

    def best(self, page: int, seconds: float) -> tuple[list[Inlink], bool]:
        """The links that add most to a page's priority, best first, and whether all visits were searched.

        Parameters
        ----------
        page : int
        seconds : float
            CPU time after which the search pauses.
        """
        frontier, pages = self._frontier, self._frontier.pages
        if frontier.policy.gives(page, np.empty(0, np.uint64)) is None:
            return [], True
        search = self._searches.setdefault(page, _InlinkSearch(pages.maker_place(page)))
        self._searches.move_to_end(page)
        if len(self._searches) > KEPT_SEARCHES:
            self._searches.popitem(last=False)
        linkers = np.empty(4096, np.uint64)
        stop = time.thread_time() + seconds
        while search.place < pages.frames.end:
            until = pages.frame_end(min(search.place + _BYTES, pages.frames.end))
            end, count = find_linkers(
                pages.frames.between(search.place, until),
                np.uint64(search.place),
                np.uint64(until),
                np.uint64(page),
                pages.answers,
                pages.visits,
                _LINKS,
                linkers,
            )
            search.place = int(end)
            if count:
                self._keep_best(page, search, linkers[: int(count)])
            if time.thread_time() > stop:
                break
        amounts = self._keep_best(page, search, np.empty(0, np.uint64))
        inlinks = []
        for place, gives in zip(search.best, amounts, strict=True):
            linker = pages.frames.frame(place).page
            inlinks.append(
                Inlink(linker, pages.url(linker), gives, pages.frames.anchors(place).get(page, ""))
            )
        return inlinks, search.place >= pages.frames.end

    def _keep_best(self, page: int, search: _InlinkSearch, visits: UInt64Array) -> list[float]:
        """Add visits to a search and drop outdated visits; return the share that each kept visit adds."""
        pages = self._frontier.pages
        # Later visits of the same pages replace these.
        kept = [
            place
            for place in search.best
            if int(pages.visits[pages.answers[pages.frames.frame(place).page]]) == place + 1
        ]
        places = np.concatenate([np.array(kept, np.uint64), visits])
        amounts = self._frontier.policy.gives(page, places)
        assert amounts is not None
        best = np.argsort(-amounts, kind="stable")[:KEPT_LINKERS]
        best = best[amounts[best] > 0]
        search.best = places[best].tolist()
        return [float(amount) for amount in amounts[best]]
