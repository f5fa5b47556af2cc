"""The pages of a crawl's folder: its table of URLs, the frames of its log, and the columns folded from them."""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from inlink.base.arrays import UInt8Array, UInt32Array
from inlink.base.memory import require_memory
from inlink.base.table import counted
from inlink.errors import FolderError, StoreError
from inlink.store.carried import carried_in
from inlink.store.checkpoint import Checkpoint, StatePart
from inlink.store.checks import last_whole, refuse_damage
from inlink.store.columns import PageColumns
from inlink.store.deferred import Deferred
from inlink.store.format import CARRY, CRAWLED, EXCLUDED, NO_PAGE, NOINDEX, STATES, salt_of
from inlink.store.frames import Frames, changes_in
from inlink.store.kernels.columns import CrawlCounters, Reached
from inlink.store.kernels.fold import fold
from inlink.store.log import INDEX, URLS
from inlink.store.page import Frame, LatestVisit, Page, describe
from inlink.store.spill import Finished
from inlink.store.urls import CHUNK, UrlTable
from inlink.urls.hosts import same_domain

__all__ = ["NO_PAGE", "STATES", "Page", "Pages"]


class Pages(Deferred):
    """All pages of a crawl's folder.

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
        The table of URLs. Its methods for URLs and hosts are attributes of this object too.
    columns : PageColumns
        Its arrays, and its methods for one page, are attributes of this object too.
    frames : Frames
        The frames of the log. Its methods that read events are attributes of this object too.
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
        self.table = table = UrlTable(folder, hash_seed, self.tally)
        self.columns = columns = PageColumns(self.tally, table.hosts)
        self.hosts, self.marks = table.hosts, table.marks
        self.state_counts, self.states, self.errors = columns.state_counts, columns.states, columns.errors
        self.losses, self.depths, self.scores = columns.losses, columns.depths, columns.scores
        self.answers, self.answered = columns.answers, columns.answered
        self.visits, self.failures = columns.visits, columns.failures
        self.makers, self.maker_places = columns.makers, columns.maker_places
        self.carriers, self.merged, self.given = columns.carriers, columns.merged, columns.given
        self.canonicals = columns.canonicals
        self.survivor, self.crawled = columns.survivor, columns.crawled
        self.maker_place, self.visit_place = columns.maker_place, columns.visit_place
        self.number, self.find, self.page_of = table.number, table.find, table.page_of
        self.url, self.urls, self.url_begin, self.text = table.url, table.urls, table.url_begin, table.text
        self.host, self.host_number = table.host, table.host_number
        frames = self.frames
        self.frame, self.frames_of_kind, self.list_at = frames.frame, frames.of_kind, frames.list_at
        self.log_at, self.log_between = frames.at, frames.between
        self.open_leases, self.leases_since = frames.open_leases, frames.leases_since

    # -- sizes ----------------------------------------------------------------------------------------------------

    @property
    def num_pages(self) -> int:
        """Number of known URLs: pages are 0 … num_pages - 1."""
        return self.tally.pages

    @property
    def num_hosts(self) -> int:
        """Number of known hosts."""
        return self.tally.hosts

    @property
    def num_events(self) -> int:
        """Number of folded events."""
        return self.tally.events

    @property
    def num_crawled(self) -> int:
        """Number of pages that were crawled at least once."""
        return self.tally.crawled

    @property
    def urls_end(self) -> int:
        """Number of bytes of urls.txt that are taken in."""
        return self.tally.url_bytes

    @property
    def events_end(self) -> int:
        """Number of bytes of events.log that are folded."""
        return self.frames.end

    @property
    def log(self) -> UInt8Array:
        """The mapped log, uint8[events_end or more]."""
        return self.frames.log

    # -- opening --------------------------------------------------------------------------------------------------

    def parts(self) -> Iterator[StatePart]:
        """All arrays of a checkpoint's part on pages, by name."""
        return chain(self.table.parts(), self.columns.parts(), self.columns.rare_parts(), self.frames.parts())

    def small_parts(self) -> dict[str, Any]:
        """The numbers of a checkpoint's part on pages."""
        tally = {field[0]: getattr(self.tally, field[0]) for field in self.tally._fields_}
        sizes = {"tally": tally | {"by_host": 0}, "host_slots": len(self.table.host_slots)}
        return sizes | self.frames.small_parts()

    def finished(self) -> Iterator[Finished]:
        """Yield the columns that rarely change once they are written, each with its number of written elements."""
        return chain(self.table.finished(), self.columns.finished())

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
        self.synced, self.checkpoint = self.events_end, checkpoint
        if lazily:
            self.table.restore(checkpoint, lazily=True)
            self.columns.restore(checkpoint, lazily=True)
            table = self.table
            self.columns.defer("hosts", lambda: table.hosts)
            for owner in (self.table, self.columns):
                for name in vars(owner)["_empty"].keys() & vars(self).keys():
                    self.defer(name, partial(getattr, owner, name))
            return
        with Threads(2) as threads:
            restoring = (self.table.restore, self.columns.restore)
            tasks = [threads.submit(restore, checkpoint, lazily=False) for restore in restoring]
            for task in tasks:
                task.result()
        # The frontier reads the other files after later events are folded. It is then too late to refuse them.
        checkpoint.check_rest()
        self.table.note_index()

    def release(self) -> None:
        """Close the files of the checkpoint, unless columns are still to be read from it."""
        parts: tuple[Deferred, ...] = (self.table, self.columns)
        if self.checkpoint is not None and not any(part.deferred for part in parts):
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
        events_known = self.events_end
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
        known = self.urls_end, self.events_end, self.num_pages, self.tally.frames
        return last_whole(urls, events, self.salt, *known, text_from)

    def _take_in(self, reached: Reached, covered: int) -> None:
        """Fold both files up to their ends. If there are many URLs, they are taken in on a second thread."""
        if reached.pages >= len(self.table.checks):
            raise StoreError(f"{self.folder}: no address space for {reached.pages:,} pages")
        new = reached.pages - self.num_pages
        require_memory(42 * new, f"{self.folder}: {counted(new, 'page')} behind the checkpoint")
        begin, urls_end = self.events_end, reached.text_place
        self.synced, self.tally.by_host = max(self.synced, reached.synced), 0
        frames = self.frames.all()[begin : reached.place]
        if not self.with_urls:
            self._fold(frames)
            self.tally.pages, self.tally.url_bytes = self.tally.event_pages, urls_end
        elif urls_end - self.urls_end < CHUNK:
            self.table.take_in(urls_end, covered)
            self._fold(frames)
        else:
            from inlink.base.threads import Threads

            with Threads(1) as thread:
                folding = thread.submit(self._fold, frames)
                self.table.take_in(urls_end, covered)
                folding.result()
        self.frames.end = reached.place
        self.columns.take_in_rare(self.frames, begin)

    def _fold(self, frames: UInt8Array) -> None:
        """Fold a sequence of frames, unless columns are still to be read and the frames change nothing."""
        # A closed crawl ends with a mark of its last sync.
        if not self.columns.deferred or changes_in(frames):
            fold(self.columns.addresses, frames)

    # -- events ---------------------------------------------------------------------------------------------------

    def frame_end(self, place: int) -> int:
        """The end of an event, at byte ``place`` of the log or later: before the next event that made pages known."""
        makers = self.maker_places[: self.tally.makers]
        row = int(np.searchsorted(makers, np.uint64(place)))
        return int(makers[row]) if row < len(makers) else self.events_end

    def last_time(self) -> float:
        """Unix time of the last event that made pages known. Later events are not earlier than this time."""
        rows = self.tally.makers
        return self.frame(int(self.maker_places[rows - 1])).time if rows else self.started

    # -- data of a page ----------------------------------------------------------------------------------------------

    def maker(self, page: int) -> int:
        """The page whose links made a page known; NO_PAGE for a seed."""
        return self.frame(self.maker_place(page)).page

    def carried(self, page: int) -> bytes | None:
        """A page's carried data: those of the first link that had any, unless they were replaced later."""
        place = int(self.carriers[page])
        if not place:
            return None
        frame = self.frame(place - 1)
        if frame.kind == CARRY:
            return frame.payload
        return carried_in(np.frombuffer(frame.payload, np.uint8), page)

    def linked_from(self, page: int) -> str | None:
        """The URL of the page whose links made a page known; None for a seed."""
        maker = self.maker(page)
        return None if maker == NO_PAGE else self.url(maker)

    def visit(self, page: int) -> LatestVisit | None:
        """A page's latest visit."""
        place = self.columns.visit_place(page)
        return None if place is None else self.frames.visit(place)

    def page(self, page: int) -> Page:
        """All stored data of a page."""
        row = int(self.answers[page])
        failure = int(self.failures[row]) if row and self.errors[page] else 0
        return describe(
            page,
            self.url(page),
            int(self.states[page]),
            float(self.scores[page]),
            int(self.depths[page]),
            self.linked_from(page),
            self.visit(page),
            int(self.errors[page]),
            self.frame(failure - 1) if failure else None,
            self.url(self.survivor(page)) if page in self.merged else None,
            self.merge_of(page),
            self.url(self.canonicals[page]) if page in self.canonicals else None,
            self.exclusion_of(page),
            self.frames.anchors(self.maker_place(page)).get(page, ""),
        )

    def merge_of(self, page: int) -> Frame | None:
        """The event by which a page was merged into another; None if it was not merged."""
        return self.frame(int(self.visits[self.answers[page]]) - 1) if page in self.merged else None

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
        return np.empty(0, np.uint32) if place is None else self.list_at(place)

    def close(self) -> None:
        """Close the files."""
        self.table.close()
        self.frames.close()
        if self.checkpoint is not None:
            self.checkpoint.release()
