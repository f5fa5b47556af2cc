"""Searches through a crawl that take long: each call works for a few milliseconds, and the next call goes on."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from itertools import islice

import msgspec
import numpy as np

from inlink.base.arrays import AnyArray
from inlink.base.strings import Strings
from inlink.crawl.arguments import position_of
from inlink.crawl.questions.answers import ErrorCause, ErrorExample, Errors, MatchedPages, PageList, PageRow
from inlink.frontier.causes import cause_of
from inlink.store.blocks import url_blocks
from inlink.store.format import EXCLUDED_ONE, FAILED, KINDS, Head
from inlink.store.frames import fields_at
from inlink.store.kernels.frames import find_kinds, rows_with
from inlink.store.near import First, earliest, near_visits
from inlink.store.page import error_of
from inlink.store.pages import Pages

MOST_CAUSES = 100
"""Maximum number of causes that are counted separately. Further causes are counted together."""

EXAMPLES = 3

OTHERS = "others"

KEPT_SEARCHES = 1000
"""Maximum number of searches for near-duplicates in memory. The least recently used one is dropped first."""

_LOG_BYTES = 1 << 20
"""Number of bytes of the log that are read between two looks at the clock. Each failure in them adds a look."""

_URL_BYTES = 1 << 16
_VISITS = 1 << 12
_ALL = np.uint64((1 << len(KINDS)) - 1)


def matched_pages(
    pages: Pages, matches: Callable[[Strings], AnyArray], count: int, cursor: str | None, seconds: float
) -> MatchedPages:
    """Search on for pages whose URLs match, until there are ``count`` or ``seconds`` of CPU time have passed.

    ``matches`` returns the positions of the URLs that match: see :func:`inlink.urls.matching.matcher`.

    Raises
    ------
    inlink.errors.ParameterError
        If the cursor is of another call.
    """
    known = pages.num_pages
    position = position_of(cursor, known)
    rows: list[PageRow] = []
    stop = time.thread_time() + seconds

    def part(end: int) -> MatchedPages:
        return MatchedPages(rows, end, known, str(end) if end < known else None)

    # Some expressions take RE2 14 µs a byte, so the first slices are short.
    at_once = 8
    for first, text, offsets in url_blocks(pages, _URL_BYTES, position):
        urls = Strings(text, offsets)
        done = 0
        while done < len(urls):
            some = urls[done : done + at_once]
            began = time.thread_time()
            for row in matches(some).tolist():
                rows.append(PageRow(first + done + row, (some[row] or b"").decode("ascii")))
                if len(rows) == count:
                    return part(first + done + row + 1)
            done += len(some)
            now = time.thread_time()
            if now > stop:
                return part(first + done)
            at_once = at_once * 2 if now - began < seconds / 4 else max(at_once // 2, 1)
    return part(known)


class LinkSearch:
    """Finds the pages that link to a page. A link to a merged page counts as a link to the page it was merged into."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._merged: dict[int, list[int]] = {}
        self._merges_seen = 0

    def part(self, number: int, count: int, cursor: str | None, seconds: float) -> PageList:
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
        rows: list[PageRow] = []
        stop = time.thread_time() + seconds
        while position < len(targets) * last_row and len(rows) < count:
            target, row = divmod(position, last_row)
            end = min(row + _VISITS, last_row)
            linkers, places = pages.crawled(row + 1, end + 1)
            # No event before the one that made a page known lists the page.
            later = places >= np.uint64(pages.maker_place(targets[target]))
            linkers, places = linkers[later], places[later]
            hits = rows_with(pages.frames.at(places), places, np.uint64(targets[target]))[: count - len(rows)]
            linking = linkers[hits].tolist()
            rows += [PageRow(page, pages.url(page)) for page in linking if page not in pages.merged]
            if linking and len(rows) == count:
                end = int(pages.answers[linking[-1]])
            position = target * last_row + end
            if time.thread_time() > stop:
                break
        return PageList(rows, str(position) if position < len(targets) * last_row else None)

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


class _NearSearch(msgspec.Struct):
    """A search for one visit: the next row of visits, and the earliest near-duplicate so far."""

    visit: int
    row: int = 1
    best: First | None = None


class NearSearch:
    """Finds near-duplicates of pages: see :mod:`inlink.store.near`."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._searches: OrderedDict[int, _NearSearch] = OrderedDict()

    def original(self, page: int, seconds: float) -> tuple[int | None, bool]:
        """Search the earliest near-duplicate of a page for ``seconds`` of CPU time.

        Returns
        -------
        (int or None, bool)
            The earliest near-duplicate so far, and whether all visits were compared. If not, the next call goes on.
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
            log = pages.frames.at(places)
            first = earliest(log, near_visits(log, places, visit.fingerprint), before)
            if first is not None and (search.best is None or first < search.best):
                search.best = first
            search.row = last
            if time.thread_time() > stop:
                break
        return None if search.best is None else search.best.page, search.row >= end


class _Cause(msgspec.Struct):
    """The number of failures with a cause, and the last of them: page, error, status and time of each."""

    count: int = 0
    last: "deque[tuple[int, str, int, float]]" = msgspec.field(default_factory=lambda: deque(maxlen=EXAMPLES))


class ErrorSurvey:
    """Counts the failures of a crawl by cause."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._causes: dict[str, _Cause] = {}
        self._place = 0
        self._left: list[int] = []

    def proceed(self, now: float, seconds: float) -> Errors:
        """Read on in the log for ``seconds`` of CPU time; return the counts so far. ``now`` is Unix time."""
        end, stop = self._pages.frames.end, time.thread_time() + seconds
        while self._left or self._place < end:
            if not self._left:
                self._left = self._failures(end)
            while self._left:
                self._take(self._left.pop())
                if time.thread_time() > stop:
                    break
            if time.thread_time() > stop:
                break
        rows = sorted(self._causes.items(), key=lambda row: (-row[1].count, row[0]))
        causes = [
            ErrorCause(
                name,
                cause.count,
                [
                    ErrorExample(page, self._pages.url(page), error, status, max(now - then, 0.0))
                    for page, error, status, then in reversed(cause.last)
                ],
            )
            for name, cause in rows
        ]
        total = sum(cause.count for cause in causes)
        whole = not self._left and self._place >= end
        return Errors(causes, total, min(self._place, end), end, None if whole else str(self._place))

    def _failures(self, end: int) -> list[int]:
        """Places of the failures in the next part of the log, in reverse order."""
        until = self._pages.frame_end(min(self._place + _LOG_BYTES, end))
        log = self._pages.frames.between(self._place, until)
        places = find_kinds(log, np.uint64(self._place), np.uint64(until), _ALL)
        self._place = int(places[-1]) + int(fields_at(log, places[-1:], Head, "length")[0])
        failed: list[int] = places[fields_at(log, places, Head, "kind") == FAILED].tolist()
        return failed[::-1]

    def _take(self, place: int) -> None:
        frame = self._pages.frames.frame(place)
        error = error_of(frame)
        name = cause_of(frame.status, error, bool(frame.flags & EXCLUDED_ONE))
        if name not in self._causes and len(self._causes) >= MOST_CAUSES:
            name = OTHERS
        cause = self._causes.setdefault(name, _Cause())
        cause.count += 1
        for example in cause.last:
            if example[0] == frame.page:
                cause.last.remove(example)
                break
        cause.last.append((frame.page, error, frame.status, frame.time))
