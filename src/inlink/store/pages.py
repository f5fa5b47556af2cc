"""The pages of a crawl's folder: its table of URLs, the frames of its log, and the columns folded from them."""

import weakref
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from inlink.base.arrays import AnyArray, Float64Array, Int64Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.columns import most_pages, reserve
from inlink.base.jit import addresses
from inlink.base.memory import require_memory
from inlink.base.table import counted
from inlink.errors import FolderError, StoreError
from inlink.store.carried import carried_in
from inlink.store.checkpoint import Checkpoint, Deferred, StatePart
from inlink.store.checks import last_whole, refuse_damage
from inlink.store.format import (
    CANONICAL,
    CARRY,
    CRAWLED,
    EXCLUDED,
    GIVEN,
    HEAD,
    HEAD_SIZE,
    MERGE,
    NO_PAGE,
    NOFOLLOW,
    NOINDEX,
    STATES,
    salt_of,
)
from inlink.store.frames import Frames, changes_in
from inlink.store.kernels import fold
from inlink.store.kernels.columns import Columns, CrawlCounters, Reached
from inlink.store.log import INDEX, URLS
from inlink.store.page import Frame, LatestVisit, Page, error_of, merge_reason
from inlink.store.spill import Finished
from inlink.store.urls import CHUNK, UrlTable
from inlink.urls.hosts import same_domain

_PAGES = most_pages()
_HOSTS = _PAGES // 8
_OF_ROWS = ("answered", "visits", "failures")
_OF_MAKERS = ("makers", "maker_places")
_LARGE = ("states", "depths", "errors", "losses", "answers", "scores", "carriers", *_OF_ROWS, *_OF_MAKERS)


class Pages(Deferred):
    """All pages of a crawl's folder. Their columns never move, because address space for them is reserved once.

    Parameters
    ----------
    folder : Path
        The crawl's folder.
    hash_seed : int
        Seed of the URL table. It is secret, so that nobody can make URLs collide.
    started : float
        Unix time at which the crawl began.
    with_urls : bool
        If False, events are folded but URLs are not read: pages are known only by their ids.

    Attributes
    ----------
    table : UrlTable
        The table of URLs and hosts. Its methods ``url`` and ``urls`` are attributes of this object too, for policies.
    frames : Frames
        The frames of the log.
    tally : CrawlCounters
        Counts pages, hosts, events and bytes.
    hosts : uint32[…]
        The number of each page's host.
    states, errors, losses : uint8[…]
        For page i at [i]: its state, a place in :data:`~inlink.store.format.STATES`; its failures since it was last
        crawled; its lost leases since its last answer.
    depths : uint16[…]
        Number of clicks from a seed to the page on the way by which it was discovered. Redirects and canonical links
        are no clicks.
    scores : float32[…]
        The score of the page's content if it was crawled, else the best score of a link to it.
    answers : uint32[…]
        The page's row in ``answered``, ``visits`` and ``failures``; 0 if there is none.
    answered : uint32[…]
        The page of each row.
    visits, failures : uint64[…]
        For each row: the place of its last visit or merge, and of its last failure, plus 1; 0 if there is none.
    makers, maker_places : uint32[…], uint64[…]
        For each event that made pages known: the first of these pages, and the event's place.
    carriers : uint64[…]
        The place plus 1 of the frame that holds a page's carried data; 0 if it carries no data.
    state_counts : uint64[len(STATES)]
        The number of pages in each state.
    host_pages, host_waiting, host_crawled : uint32[…]
        For each host, once :meth:`count_hosts` was called: the numbers of its pages, of its pages in the state
        discovered, and of its crawled pages.
    merged : dict of int to int
        The page that a page was merged into.
    canonicals : dict of int to int
        The page that a page names as its canonical page at its latest visit, if it names another page.
    given : dict of int to str
        The URL as it was given, if it differs from the canonical form.
    addresses : uint64[…]
        The addresses of the columns, for :func:`.kernels.fold.fold`.
    salt : int
        The salt of the log's frames.
    synced : int
        The byte of events.log up to which the log was safe on disk, according to its own records.
    checkpoint : Checkpoint or None
        The checkpoint that these pages were restored from.
    """

    def __init__(self, folder: Path, hash_seed: int, started: float = 0.0, *, with_urls: bool = True) -> None:
        self.folder, self.hash_seed, self.started = folder, hash_seed, started
        self.salt = salt_of(hash_seed)
        self.with_urls, self.synced = with_urls, 0
        self.checkpoint: Checkpoint | None = None
        self.tally = CrawlCounters()
        self.frames = Frames(folder)
        self.table = UrlTable(folder, hash_seed, self.tally)
        self.hosts, self.url, self.urls = self.table.hosts, self.table.url, self.table.urls
        self.state_counts: UInt64Array = np.zeros(len(STATES), np.uint64)
        self.states: UInt8Array = reserve(np.uint8, _PAGES)
        self.depths: AnyArray = reserve(np.uint16, _PAGES)
        self.errors: UInt8Array = reserve(np.uint8, _PAGES)
        self.losses: UInt8Array = reserve(np.uint8, _PAGES)
        self.answers: UInt32Array = reserve(np.uint32, _PAGES)
        self.answered: UInt32Array = reserve(np.uint32, _PAGES)
        self.visits: UInt64Array = reserve(np.uint64, _PAGES)
        self.failures: UInt64Array = reserve(np.uint64, _PAGES)
        self.scores: AnyArray = reserve(np.float32, _PAGES)
        self.makers: UInt32Array = reserve(np.uint32, _PAGES)
        self.maker_places: UInt64Array = reserve(np.uint64, _PAGES)
        self.carriers: UInt64Array = reserve(np.uint64, _PAGES)
        self.host_pages: UInt32Array = reserve(np.uint32, _HOSTS)
        self.host_waiting: UInt32Array = reserve(np.uint32, _HOSTS)
        self.host_crawled: UInt32Array = reserve(np.uint32, _HOSTS)
        self.merged: dict[int, int] = {}
        self.canonicals: dict[int, int] = {}
        self.given: dict[int, str] = {}
        self.addresses = addresses(
            [self.tally.array(), *(getattr(self, name) for name in Columns._fields[1:])]
        )

    @property
    def num_pages(self) -> int:
        """Number of known URLs: pages are 0 … num_pages - 1."""
        return self.tally.pages

    # -- the checkpoint ---------------------------------------------------------------------------------------------

    def parts(self) -> Iterator[StatePart]:
        """All arrays of a checkpoint's part on pages, by name."""
        return chain(self.table.parts(), self._columns(), self._rare_parts(), self.frames.parts())

    def small_parts(self) -> dict[str, Any]:
        """The numbers of a checkpoint's part on pages."""
        tally = {field[0]: getattr(self.tally, field[0]) for field in self.tally._fields_}
        sizes = {"tally": tally | {"by_host": 0}, "host_slots": len(self.table.host_slots)}
        return sizes | self.frames.small_parts()

    def finished(self) -> Iterator[Finished]:
        """Yield the columns that rarely change once they are written, each with its number of written elements."""
        yield from self.table.finished()
        known, rows, makers = self.tally.event_pages, self.tally.rows + 1, self.tally.makers
        yield from ((self.depths, known), (self.carriers, known))
        yield from ((self.answered, rows), (self.visits, rows), (self.failures, rows))
        yield from ((self.makers, makers), (self.maker_places, makers))

    def _columns(self) -> Iterator[StatePart]:
        """The filled parts of the columns, by name."""
        yield "state_counts", [self.state_counts]
        for name in _LARGE:
            yield name, self._stretches(name, getattr(self, name))

    def _stretches(self, name: str, column: AnyArray) -> list[AnyArray]:
        """The filled stretch of a column."""
        if name in _OF_ROWS:
            return [column[: self.tally.rows + 1]]
        return [column[: self.tally.makers if name in _OF_MAKERS else self.tally.pages]]

    def _rare_parts(self) -> Iterator[StatePart]:
        """The dictionaries as arrays, by name."""
        texts = [given.encode("utf-8", "surrogateescape") for given in self.given.values()]
        for name, pages in (("merged", self.merged), ("canonical", self.canonicals)):
            yield f"{name}_pages", [np.array(list(pages), np.uint32)]
            yield f"{name}_into", [np.array(list(pages.values()), np.uint32)]
        yield "given_pages", [np.array(list(self.given), np.uint32)]
        yield "given_ends", [np.cumsum([len(text) for text in texts], dtype=np.uint64)]
        yield "given_text", [np.frombuffer(b"".join(texts), np.uint8)]

    def _restore_rare(self, checkpoint: Checkpoint) -> None:
        """Read the dictionaries of a checkpoint."""
        for name, column in (("merged", self.merged), ("canonical", self.canonicals)):
            pages, into = checkpoint.array(f"{name}_pages"), checkpoint.array(f"{name}_into")
            column.update(zip(pages.tolist(), into.tolist(), strict=True))
        text, begin = checkpoint.array("given_text").tobytes(), 0
        ends = checkpoint.array("given_ends").tolist()
        for page, end in zip(checkpoint.array("given_pages").tolist(), ends, strict=True):
            self.given[page] = text[begin:end].decode("utf-8", "surrogateescape")
            begin = end

    # -- opening --------------------------------------------------------------------------------------------------

    def restore(self, checkpoint: Checkpoint, *, lazily: bool = False) -> None:
        """Take in a checkpoint, in place of the events before its extent.

        Parameters
        ----------
        checkpoint : Checkpoint
        lazily : bool
            Compare each file of the checkpoint before its first use. By default all files are compared now.

        Raises
        ------
        inlink.errors.FolderError
            If the checkpoint or the log is damaged. Then these pages cannot be used.
        """
        from inlink.base.threads import Threads

        for name, value in checkpoint.meta["tally"].items():
            setattr(self.tally, name, value)
        self.frames.restore(checkpoint)
        self.synced, self.checkpoint = self.frames.end, checkpoint
        if lazily:
            self.table.restore(checkpoint, lazily=True)
            checkpoint.fill([("state_counts", [self.state_counts])])
            checkpoint.fill_later(self, _LARGE, self._stretches)
            table, owner = self.table, weakref.proxy(self)
            self.defer("hosts", lambda: table.hosts)
            self.defer("addresses", lambda: [getattr(owner, name) for name in ("hosts", *_LARGE)])
            self._restore_rare(checkpoint)
            return
        with Threads(2) as threads:
            tasks = [
                threads.submit(self.table.restore, checkpoint, lazily=False),
                threads.submit(checkpoint.fill, self._columns()),
            ]
            for task in tasks:
                task.result()
        self._restore_rare(checkpoint)
        # The frontier reads the other files after later events are folded. It is then too late to refuse them.
        checkpoint.check_rest()
        self.table.note_index()

    def release(self) -> None:
        """Close the files of the checkpoint, unless columns are still to be read from it."""
        if self.checkpoint is not None and not (self.table.deferred or self.deferred):
            self.checkpoint.release()

    def recover(self) -> tuple[int, int]:
        """Read the log, behind a checkpoint if there is one; return the ends of its sound part: (urls, events).

        Raises
        ------
        inlink.errors.FolderError
            If the log is damaged where it was safe on disk.
        """
        events, urls = self.frames.all(), self.table.all()
        covered = urls_known = 0
        events_known = self.frames.end
        if self.with_urls and self.checkpoint is None:
            covered, urls_known, events_known = self.table.load_index(len(events))
        # The index was written when all before it was safe, and holds the hashes of these URLs.
        reached = self._last_whole(urls, events, urls_known)
        refuse_damage(self.folder, events, reached, events_known)
        self._take_in(reached, covered)
        if not self.table.as_indexed(covered):
            refuse_damage(self.folder, events, last_whole(urls, events, self.salt), events_known)
            raise FolderError(
                f"{self.folder / INDEX} does not belong to the URLs in {URLS}: remove the folder {INDEX}; it is then "
                "made again"
            )
        return reached.text_place, reached.place

    def refresh(self) -> None:
        """Take in the complete frames that another process has written since.

        Raises
        ------
        inlink.errors.FolderError
            If the log is damaged where it was safe on disk.
        """
        events, urls = self.frames.all(), self.table.all()
        reached = self._last_whole(urls, events)
        refuse_damage(self.folder, events, reached)
        self._take_in(reached, 0)

    def _last_whole(self, urls: UInt8Array, events: UInt8Array, text_from: int = 0) -> Reached:
        """The end of the last sound frame, from the folded frames on."""
        known = self.tally.url_bytes, self.frames.end, self.num_pages, self.tally.frames
        return last_whole(urls, events, self.salt, *known, text_from)

    def _take_in(self, reached: Reached, covered: int) -> None:
        """Fold both files up to their ends. If there are many URLs, they are taken in on a second thread."""
        if reached.pages >= len(self.table.checks):
            raise StoreError(f"{self.folder}: no address space for {reached.pages:,} pages")
        new = reached.pages - self.num_pages
        require_memory(42 * new, f"{self.folder}: {counted(new, 'page')} behind the checkpoint")
        begin, urls_end = self.frames.end, reached.text_place
        self.synced, self.tally.by_host = max(self.synced, reached.synced), 0
        frames = self.frames.all()[begin : reached.place]
        if not self.with_urls:
            self._fold(frames)
            self.tally.pages, self.tally.url_bytes = self.tally.event_pages, urls_end
        elif urls_end - self.tally.url_bytes < CHUNK:
            self.table.take_in(urls_end, covered)
            self._fold(frames)
        else:
            from inlink.base.threads import Threads

            with Threads(1) as thread:
                folding = thread.submit(self._fold, frames)
                self.table.take_in(urls_end, covered)
                folding.result()
        self.frames.end = reached.place
        self._take_in_rare(begin)

    def _fold(self, frames: UInt8Array) -> None:
        """Fold a sequence of frames, unless columns are still to be read and the frames change nothing."""
        # A closed crawl ends with a mark of its last sync.
        if not self.deferred or changes_in(frames):
            fold.fold(self.addresses, frames)

    def _take_in_rare(self, begin: int) -> None:
        """Take in the data that few pages have, and that dictionaries hold, of the frames from byte ``begin`` on."""
        for place in self.frames.of_kind(MERGE, GIVEN, CANONICAL, begin=begin):
            frame = self.frames.frame(place)
            if frame.kind == MERGE:
                self.merged[frame.page] = int(self.frames.list_at(place)[0])
            elif frame.kind == CANONICAL:
                self.name_canonical(frame.page, self.frames.list_at(place).tolist())
            else:
                self.given[frame.page] = frame.payload.decode("utf-8", "surrogateescape")

    def count_hosts(self) -> None:
        """Count the pages of each host by state, now and with each event that is folded from now on."""
        fold.count_hosts(self.addresses)

    # -- events ---------------------------------------------------------------------------------------------------

    def frame_end(self, place: int) -> int:
        """The end of an event, at byte ``place`` of the log or later: before the next event that made pages known."""
        makers = self.maker_places[: self.tally.makers]
        row = int(np.searchsorted(makers, np.uint64(place)))
        return int(makers[row]) if row < len(makers) else self.frames.end

    def last_time(self) -> float:
        """Unix time of the last event that made pages known. Later events are not earlier than this time."""
        rows = self.tally.makers
        return self.frames.frame(int(self.maker_places[rows - 1])).time if rows else self.started

    def crawled(self, first_row: int = 1, end_row: int | None = None) -> tuple[UInt32Array, UInt64Array]:
        """Pages that were crawled or merged, and the places of their latest visits or merges: uint32[k], uint64[k].

        Only rows ``first_row``, …, ``end_row`` - 1 of ``answered`` are returned; by default all.
        """
        end = self.tally.rows + 1 if end_row is None else end_row
        rows = np.flatnonzero(self.visits[first_row:end]) + first_row
        return self.answered[rows], self.visits[rows] - np.uint64(1)

    # -- data of a page ----------------------------------------------------------------------------------------------

    def survivor(self, page: int) -> int:
        """The page that a page was merged into; the page itself if it was not merged."""
        for _ in range(64):
            if page not in self.merged:
                break
            page = self.merged[page]
        return page

    def maker_place(self, page: int) -> int:
        """The place of the event that made a page known."""
        row = int(np.searchsorted(self.makers[: self.tally.makers], np.uint32(page), "right")) - 1
        return int(self.maker_places[row])

    def discovered(self, numbers: UInt32Array) -> Float64Array:
        """Unix times of the events that made pages known, float64[k]."""
        rows = np.searchsorted(self.makers[: self.tally.makers], numbers, "right") - 1
        return self.times_at(self.maker_places[rows].astype(np.int64))

    def times_at(self, places: Int64Array) -> Float64Array:
        """Unix times of the events at places of the log, float64[k]."""
        if not len(places):
            return np.empty(0)
        heads: AnyArray = self.frames.at(places)[places[:, None] + np.arange(HEAD_SIZE)].view(HEAD)[:, 0]
        times: Float64Array = heads["time"]
        return times

    def visit_place(self, page: int) -> int | None:
        """The place of a page's latest visit in the log."""
        row = int(self.answers[page])
        place = int(self.visits[row]) if row else 0
        return place - 1 if place and page not in self.merged else None

    def name_canonical(self, page: int, named: list[int]) -> None:
        """Note the canonical page that a page names; an empty list if it names none."""
        self.canonicals.pop(page, None)
        self.canonicals.update((page, target) for target in named)

    def maker(self, page: int) -> int:
        """The page whose links made a page known; NO_PAGE for a seed."""
        return self.frames.frame(self.maker_place(page)).page

    def carried(self, page: int) -> bytes | None:
        """A page's carried data: those of the first link that had any, unless they were replaced later."""
        place = int(self.carriers[page])
        if not place:
            return None
        frame = self.frames.frame(place - 1)
        if frame.kind == CARRY:
            return frame.payload
        return carried_in(np.frombuffer(frame.payload, np.uint8), page)

    def linked_from(self, page: int) -> str | None:
        """The URL of the page whose links made a page known; None for a seed."""
        maker = self.maker(page)
        return None if maker == NO_PAGE else self.url(maker)

    def visit(self, page: int) -> LatestVisit | None:
        """A page's latest visit."""
        place = self.visit_place(page)
        return None if place is None else self.frames.visit(place)

    def page(self, page: int) -> Page:
        """All stored data of a page."""
        row, visit, merge = int(self.answers[page]), self.visit(page), self.merge_of(page)
        place = int(self.failures[row]) if row and self.errors[page] else 0
        # The page's last failure, if it came after the last visit.
        failure = self.frames.frame(place - 1) if place else None
        error = self.exclusion_of(page)
        if error is None and failure is not None:
            error = error_of(failure)
        last = failure or visit
        return Page(
            self.url(page),
            page,
            STATES[self.states[page]],
            float(self.scores[page]),
            int(self.depths[page]),
            self.linked_from(page),
            visit.first_crawl if visit else None,
            visit.time if visit else None,
            visit.crawls if visit else 0,
            visit.changes if visit else 0,
            visit.content_hash if visit else b"",
            merge.status if merge and merge.status else last.status if last else 0,
            int(self.errors[page]),
            error,
            self.url(self.survivor(page)) if page in self.merged else None,
            bool(visit and visit.flags & NOINDEX),
            bool(visit and visit.flags & NOFOLLOW),
            visit.fingerprint if visit else 0,
            linked_text=self.frames.anchors(self.maker_place(page)).get(page) or None,
            merge_reason=None if merge is None else merge_reason(merge),
            canonical=self.url(self.canonicals[page]) if page in self.canonicals else None,
            facts=self.frames.page_facts(visit),
        )

    def merge_of(self, page: int) -> Frame | None:
        """The event by which a page was merged into another; None if it was not merged."""
        return self.frames.frame(int(self.visits[self.answers[page]]) - 1) if page in self.merged else None

    def why_separate(self, page: int) -> str | None:
        """The reason why a page is not merged into the canonical page that it names; None if nothing prevents it."""
        target = self.canonicals[page]
        if not same_domain(self.url(page), self.url(target)):
            return "it is in another domain"
        if target in self.merged:
            return f"it was merged into {self.url(self.survivor(target))}"
        for number, name in ((target, "it"), (page, "this page")):
            if self.states[number] != CRAWLED or self.errors[number]:
                return f"{name} is {STATES[self.states[number]]}" + ", with errors" * bool(
                    self.errors[number]
                )
        visit = self.visit(target)
        if visit is None or not 200 <= visit.status < 300:
            return f"its status is {visit.status if visit else 0}"
        if visit.flags & NOINDEX:
            return "it asks not to be indexed"
        return "it names another canonical page" if target in self.canonicals else None

    def exclusion_of(self, page: int) -> str | None:
        """The reason for which an operator excluded a page; None if no operator did."""
        row = int(self.answers[page])
        failure = int(self.failures[row]) if row else 0
        return self.frames.exclusion_of(page, failure) if self.states[page] == EXCLUDED else None

    def links(self, page: int) -> UInt32Array:
        """The pages that a page's latest visit links to, uint32[k], increasing."""
        place = self.visit_place(page)
        return np.empty(0, np.uint32) if place is None else self.frames.list_at(place)

    def close(self) -> None:
        """Close the files."""
        self.table.close()
        self.frames.close()
        if self.checkpoint is not None:
            self.checkpoint.release()
