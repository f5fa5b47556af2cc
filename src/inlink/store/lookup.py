"""Look up one page of a crawl without folding all pages.

The index gives the pages that may have the URL, and their lines in urls.txt show which page has it. The text after the
part that the index covers is searched. Then one pass over the heads of the log finds the events of the page. It costs
a few nanoseconds a frame and, after the part in the index, less than a nanosecond a byte of URLs. Opening the crawl
costs tenths of a microsecond a URL.
"""

import math
import os
import zlib
from pathlib import Path

import numpy as np

from inlink.base.arrays import UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import addresses
from inlink.errors import FolderError, UnknownNodeError
from inlink.store.checks import FAULTS, last_whole, refuse_damage
from inlink.store.format import (
    CANONICAL,
    EXCLUDED,
    HEAD_SIZE,
    MERGE,
    NO_PAGE,
    STATES,
    VISIT,
    Head,
    salt_of,
    struct_of,
)
from inlink.store.frames import Frames, fields_at
from inlink.store.kernels import checks, fold, frames
from inlink.store.kernels.columns import Columns, CrawlCounters, Reached
from inlink.store.kernels.table import PADDING, hash_of
from inlink.store.near import First, earliest, near_visits
from inlink.store.page import Page, describe
from inlink.store.reader import hash_seed_of
from inlink.store.urls import UrlTable, index_of

_HEAD = struct_of(Head)
_CHUNK = 16 << 20
_ANSWERED = np.uint64(1 << VISIT | 1 << MERGE)
_OF_ONE: dict[type, tuple[str, ...]] = {
    np.uint8: ("states", "errors", "losses"),
    np.uint16: ("depths",),
    np.uint32: ("answers", "answered", "hosts", "host_pages", "host_waiting", "host_crawled"),
    np.uint64: ("visits", "failures", "carriers"),
    np.float32: ("scores",),
}
"""The columns that :class:`Lookup` folds one page into, by type."""


class Lookup:
    """Looks up single pages in a crawl's folder.

    Parameters
    ----------
    folder : path-like
        The crawl's folder. Another process may be writing it; later events are not seen.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        seed = hash_seed_of(folder)
        self.folder, self._salt = Path(folder), salt_of(seed)
        self._frames = Frames(self.folder)
        self._events_end = len(self._frames.all())
        self._table = UrlTable(self.folder, seed, CrawlCounters())
        self._table.tally.url_bytes = len(self._table.all())
        self._slots = self._counts = np.empty(0, np.uint64)
        self._checks = np.empty(0, np.uint32)
        self._indexed, self._indexed_end = 0, 0
        most = self._events_end // HEAD_SIZE + 1
        self._makers, self._maker_places = np.empty(most, np.uint32), np.empty(most, np.uint64)
        self._tally = CrawlCounters()
        self._traced: tuple[int, Columns] | None = None
        self._load_index()

    @property
    def _events(self) -> UInt8Array:
        """All of events.log as it was at the opening. A file that was cut since is refused at each use."""
        return self._frames.between(0, self._events_end)[: self._events_end]

    @property
    def _urls(self) -> UInt8Array:
        """All of urls.txt as it was at the opening."""
        return self._table.text(0, self._table.tally.url_bytes)

    def _load_index(self) -> None:
        """Read the index, if this crawl has one. Only one shard of its slots is checked and read at a time."""
        found = index_of(self.folder, int(self._table.hash_seed), len(self._urls))
        if found is None:
            return
        index, covered = found
        try:
            index.verify(["counts", "checks", "marks"])
            marks = index.array("marks")
            self._slots, self._counts, self._checks = (
                index.array(name) for name in ("slots", "counts", "checks")
            )
        except FolderError:
            return
        self._table.marks[: len(marks)] = marks
        self._indexed, self._indexed_end = covered.pages, covered.urls_end

    def _drop_index(self) -> None:
        """Go on without an index that is damaged."""
        self._slots = self._counts = np.empty(0, np.uint64)
        self._indexed, self._indexed_end = 0, 0

    # -- URLs -------------------------------------------------------------------------------------------------------

    def number(self, given: str | int) -> int | None:
        """The number of the page with a canonical URL or a number; None if no page has that URL.

        Raises
        ------
        inlink.errors.FolderError
            If the log is damaged, and no page has the URL or another page has its place.
        """
        if not isinstance(given, str):
            return given
        page = self._in_index(given)
        if page is not None:
            return page
        page = self._behind_index(given)
        if page is not None and self.knows(page) and self.url(page) == given:
            return page
        # The line may be missing, or have another number, only because the text is damaged.
        reached = last_whole(self._urls, self._events, self._salt, text_from=self._indexed_end)
        refuse_damage(self.folder, self._events, reached)
        return None

    def _in_index(self, url: str) -> int | None:
        if not len(self._counts):
            return None
        line = np.frombuffer(url.encode("ascii") + b"\n" + PADDING, np.uint8)
        shard, tag = hash_of(line, self._table.hash_seed)
        ends = np.cumsum(self._counts.astype(np.int64))
        row = self._slots[int(ends[shard] - self._counts[shard]) : int(ends[shard])]
        if zlib.crc32(row.data) != self._checks[shard]:
            self._drop_index()
            return None
        at = int(np.searchsorted(row, np.uint64(int(tag) << 32)))
        while at < len(row) and int(row[at]) >> 32 == int(tag):
            page = (int(row[at]) & 0xFFFFFFFF) - 1
            if self._is_url_of(page, url):
                return page
            at += 1
        return None

    def _behind_index(self, url: str) -> int | None:
        """The page of a URL among the lines that the index does not cover."""
        wanted = b"\n" + url.encode("ascii") + b"\n"
        # The end of the line before the chunk, and the lines before the chunk.
        before, lines = b"\n", self._indexed
        for at in range(self._indexed_end, len(self._urls), _CHUNK):
            chunk = before + self._urls[at : at + _CHUNK].tobytes()
            found = chunk.find(wanted)
            if found >= 0:
                return lines + chunk.count(b"\n", 0, found)
            keep = chunk.rfind(b"\n")
            lines += chunk.count(b"\n", 0, keep)
            before = chunk[keep:]
        return None

    def url(self, page: int) -> str:
        """The canonical URL of a known page, read from the text of the event that made it known.

        Raises
        ------
        inlink.errors.FolderError
            If that text is damaged.
        """
        if self._traced is None:
            self._trace(NO_PAGE)
        place = self._maker_place(page)
        salt = np.uint64(self._salt)
        fault = int(checks.fault_at(self._events, self._urls, np.uint64(place), np.uint64(0), salt))
        if fault != checks.SOUND:
            raise self._damaged(place, FAULTS[fault])
        head = Head._make(_HEAD.unpack_from(self._events.data, place))
        text = self._urls[head.text_place : head.text_place + head.text_size].tobytes()
        return text.split(b"\n")[page - head.first].decode("ascii")

    def _is_url_of(self, page: int, url: str) -> bool:
        """Return whether a page in the index has this URL."""
        try:
            if self._table.url(page) == url:
                return True
        except (UnicodeDecodeError, UnknownNodeError):
            pass
        # The URLs may differ only because the text is damaged.
        return page < self.num_pages and self.url(page) == url

    # -- events -----------------------------------------------------------------------------------------------------

    def page(self, page: int) -> Page | None:
        """All data of a page in the log; None if no event made it known.

        Raises
        ------
        inlink.errors.FolderError
            If a head of the log, or an event of this page, is damaged.
        """
        one = self._trace(page)
        if page >= self.num_pages:
            return None
        row, tally = int(one.answers[0]), self._tally
        last, failure, errors = int(one.visits[row]), int(one.failures[row]), int(one.errors[0])
        end, target, visit = self._frames.end, None, None
        merge = self._frames.frame(last - 1) if last else None
        if merge is not None and merge.kind == MERGE:
            target, end = int(self._frames.list_at(last - 1)[0]), last - 1
        elif last:
            visit, merge = self._frames.visit(last - 1), None
        named = self._canonical(page)
        score = (
            float(one.scores[0]) if tally.crawled else self._link_score(page, end) if tally.scored else 0.0
        )
        depth, maker, known = 0, self.maker(page), page
        first_maker = maker
        # The page that made another known is always older, so this loop ends.
        while maker != NO_PAGE:
            depth += self._frames.frame(self._maker_place(known)).kind not in (MERGE, CANONICAL)
            known, maker = maker, self.maker(maker)
        return describe(
            page,
            self.url(page),
            int(one.states[0]),
            score,
            min(depth, 0xFFFF),
            None if first_maker == NO_PAGE else self.url(first_maker),
            visit,
            errors,
            self._frames.frame(failure - 1) if failure and errors else None,
            None if target is None else self.url(self._survivor(target)),
            merge,
            None if named is None else self.url(named),
            self._frames.exclusion_of(page, failure) if one.states[0] == EXCLUDED else None,
            self._frames.anchors(self._maker_place(page)).get(page, ""),
            self._frames.page_facts(visit),
        )

    def _canonical(self, page: int) -> int | None:
        """The canonical page that a page names at its latest visit; None if it names no other page."""
        places = np.array(self._frames.of_kind(CANONICAL), np.uint64)
        own = places[fields_at(self._frames.log, places, Head, "page") == page]
        return next(iter(self._frames.list_at(int(own[-1])).tolist()), None) if len(own) else None

    def near_duplicate(self, page: int) -> int | None:
        """Return the page that this page duplicates, or None. See :mod:`inlink.store.near`.

        Raises
        ------
        inlink.errors.FolderError
            If the log is damaged.
        """
        one = self._trace(page)
        latest = int(one.visits[int(one.answers[0])])
        if not latest or self._frames.frame(latest - 1).kind == MERGE:
            return None
        visit, log = self._frames.visit(latest - 1), self._frames.log
        if not visit.fingerprint:
            return None
        places = frames.find_kinds(log, np.uint64(0), np.uint64(self._frames.end), _ANSWERED)
        near = near_visits(log, places, visit.fingerprint)
        # Only the last answer of each page counts.
        pages = fields_at(log, places, Head, "page")
        candidates = np.isin(pages, fields_at(log, near, Head, "page"))
        _, last = np.unique(pages[candidates][::-1], return_index=True)
        near = np.intersect1d(near, places[candidates][::-1][last])
        found = earliest(log, near, First(visit.first_crawl, page))
        return None if found is None else found.page

    @property
    def num_pages(self) -> int:
        """Number of pages that events made known, up to the last sound event."""
        if self._traced is None:
            self._trace(NO_PAGE)
        return self._tally.event_pages

    def knows(self, page: int) -> bool:
        """Return whether an event made a page known."""
        self._trace(page)
        return page < self.num_pages

    def maker(self, page: int) -> int:
        """The page whose links made a page known; NO_PAGE for a seed."""
        place = self._maker_place(page)
        maker = self._frames.frame(place).page
        if maker != NO_PAGE and maker >= page:
            raise self._damaged(place, FAULTS[checks.WILD])
        return maker

    def _maker_place(self, page: int) -> int:
        row = int(np.searchsorted(self._makers[: self._tally.makers], np.uint32(page), "right")) - 1
        return int(self._maker_places[row])

    def _trace(self, page: int) -> Columns:
        """Fold the events of one page, as page 0 of separate columns."""
        if self._traced is not None and self._traced[0] == page:
            return self._traced[1]
        self._tally = tally = CrawlCounters()
        one = _columns_of_one(tally, self._makers, self._maker_places)
        end = int(fold.trace(addresses(one), self._events, np.uint64(page), np.uint64(self._salt)))
        reached = Reached(place=end)
        if end < len(self._events) or not end:
            reached = last_whole(self._urls, self._events, self._salt, text_from=len(self._urls))
        refuse_damage(self.folder, self._events, reached)
        self._frames.end = end
        self._traced = page, one
        return one

    def _damaged(self, place: int, fault: str) -> FolderError:
        return FolderError(
            f"{self.folder}: the event at byte {place:,} of events.log is damaged ({fault}): take the crawl's folder "
            "from a backup"
        )

    def _link_score(self, page: int, end: int) -> float:
        """The best score of a link to a page, up to byte ``end`` of the log."""
        best = float(fold.best_link_score(self._events, np.uint64(end), np.uint64(page)))
        if math.isnan(best):
            raise self._damaged(end, "a checksum before it differs")
        return best

    def _survivor(self, page: int) -> int:
        """The page that a page was finally merged into; the page itself if it was not merged."""
        for _ in range(64):
            one = self._trace(page)
            last = int(one.visits[int(one.answers[0])])
            if not last or self._frames.frame(last - 1).kind != MERGE:
                break
            page = int(self._frames.list_at(last - 1)[0])
        return page

    def close(self) -> None:
        """Close the files."""
        self._table.close()
        self._frames.close()


def _columns_of_one(tally: CrawlCounters, makers: UInt32Array, maker_places: UInt64Array) -> Columns:
    """Columns of a single page, with the given room for events that made pages known."""
    return Columns(
        tally=tally.array(),
        state_counts=np.zeros(len(STATES), np.uint64),
        makers=makers,
        maker_places=maker_places,
        # The page may have a row, and rows begin at 1.
        **{name: np.zeros(2, dtype) for dtype, names in _OF_ONE.items() for name in names},
    )
