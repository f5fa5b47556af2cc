"""The pages that link to a page, found among the latest visits, a few milliseconds at a time."""

import time
from collections.abc import Iterator
from itertools import islice

import numpy as np

from inlink.crawl import shown
from inlink.crawl.arguments import position_of
from inlink.store.kernels.frames import rows_with
from inlink.store.pages import Pages

__all__ = ["Linkers"]

_VISITS = 1 << 12


class Linkers:
    """Finds the pages that link to a page. A link to a merged page counts as a link to the page it was merged into.

    Parameters
    ----------
    pages : Pages
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._merged: dict[int, list[int]] = {}
        self._merges_seen = 0

    def part(self, number: int, count: int, cursor: str | None, seconds: float) -> shown.PageList:
        """The next pages that link to a page, at most ``count``, found in about ``seconds`` of CPU time.

        Raises
        ------
        inlink.errors.ParameterError
            If the cursor is of another call.
        """
        pages = self._pages
        targets = [number, *self._merged_into(number)]
        last_row = pages.tally.rows
        position = position_of(cursor, len(targets) * (last_row + 1))
        rows: list[shown.PageRow] = []
        stop = time.thread_time() + seconds
        while position < len(targets) * last_row and len(rows) < count:
            target, row = divmod(position, last_row)
            end = min(row + _VISITS, last_row)
            linkers, places = pages.crawled(row + 1, end + 1)
            # No event before the one that made a page known lists the page.
            later = places >= np.uint64(pages.maker_place(targets[target]))
            linkers, places = linkers[later], places[later]
            hits = rows_with(pages.log_at(places), places, np.uint64(targets[target]))[: count - len(rows)]
            found = linkers[hits].tolist()
            rows += [shown.PageRow(page, pages.url(page)) for page in found if page not in pages.merged]
            if len(hits) and len(rows) == count:
                end = int(pages.answers[found[-1]])
            position = target * last_row + end
            if time.thread_time() > stop:
                break
        return shown.PageList(rows, str(position) if position < len(targets) * last_row else None)

    def _merged_into(self, number: int) -> Iterator[int]:
        """The pages that were merged into a page, directly or through other pages."""
        merged = self._pages.merged
        for page, target in islice(merged.items(), self._merges_seen, None):
            self._merged.setdefault(target, []).append(page)
        self._merges_seen = len(merged)
        ends = list(self._merged.get(number, ()))
        while ends:
            end = ends.pop()
            if merged[end] == number or self._pages.survivor(end) == number:
                yield end
                ends += self._merged.get(end, ())
