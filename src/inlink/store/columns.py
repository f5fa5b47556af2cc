"""The columns of pages that are folded from the log: arrays with one number for each page."""

import weakref
from collections.abc import Iterator

import numpy as np

from inlink.base.arrays import AnyArray, UInt8Array, UInt32Array, UInt64Array
from inlink.base.columns import most_pages, reserve
from inlink.base.jit import addresses
from inlink.store.checkpoint import Checkpoint, StatePart
from inlink.store.deferred import Deferred
from inlink.store.format import CANONICAL, GIVEN, MERGE, STATES
from inlink.store.frames import Frames
from inlink.store.kernels import fold as kernels
from inlink.store.kernels.columns import Columns, CrawlCounters
from inlink.store.spill import Finished

__all__ = ["PageColumns"]


_PAGES = most_pages()
_HOSTS = _PAGES // 8
_OF_ROWS = ("answered", "visits", "failures")
_OF_MAKERS = ("makers", "maker_places")
_LARGE = ("states", "depths", "errors", "losses", "answers", "scores", "carriers", *_OF_ROWS, *_OF_MAKERS)


class PageColumns(Deferred):
    """The columns of all pages of a crawl. They never move, because their address space is reserved once.

    Parameters
    ----------
    tally : CrawlCounters
        Counts pages and events.
    hosts : uint32[…]
        The number of each page's host.

    Attributes
    ----------
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
    """

    def __init__(self, tally: CrawlCounters, hosts: UInt32Array) -> None:
        self.tally, self.hosts = tally, hosts
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
        self.addresses = addresses([tally.array(), *(getattr(self, name) for name in Columns._fields[1:])])

    # -- the checkpoint ---------------------------------------------------------------------------------------------

    def parts(self) -> Iterator[StatePart]:
        """The filled parts of the columns, by name."""
        yield "state_counts", [self.state_counts]
        for name in _LARGE:
            yield name, self._stretches(name, getattr(self, name))

    def _stretches(self, name: str, column: AnyArray) -> list[AnyArray]:
        """The filled stretch of a column."""
        if name in _OF_ROWS:
            return [column[: self.tally.rows + 1]]
        return [column[: self.tally.makers if name in _OF_MAKERS else self.tally.pages]]

    def restore(self, checkpoint: Checkpoint, *, lazily: bool) -> None:
        """Take in a checkpoint; with ``lazily``, read each column before its first use.

        Raises
        ------
        inlink.errors.FolderError
            If a file of it is damaged.
        """
        if not lazily:
            checkpoint.fill(self.parts())
        else:
            checkpoint.fill([("state_counts", [self.state_counts])])
            checkpoint.fill_later(self, _LARGE, self._stretches)
            owner = weakref.proxy(self)
            self.defer("addresses", lambda: [owner.hosts, *(getattr(owner, name) for name in _LARGE)])
        self._restore_rare(checkpoint)

    def finished(self) -> Iterator[Finished]:
        """Yield the columns that rarely change once they are written, each with its number of written elements."""
        known, rows, makers = self.tally.event_pages, self.tally.rows + 1, self.tally.makers
        yield from ((self.depths, known), (self.carriers, known))
        yield from ((self.answered, rows), (self.visits, rows), (self.failures, rows))
        yield from ((self.makers, makers), (self.maker_places, makers))

    def rare_parts(self) -> Iterator[StatePart]:
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

    # -- folding ----------------------------------------------------------------------------------------------------

    def take_in_rare(self, frames: Frames, begin: int) -> None:
        """Take in the data that few pages have, and that dictionaries hold, of frames from byte ``begin`` on."""
        for place in frames.of_kind(MERGE, GIVEN, CANONICAL, begin=begin):
            frame = frames.frame(place)
            if frame.kind == MERGE:
                self.merged[frame.page] = int(frames.list_at(place)[0])
            elif frame.kind == CANONICAL:
                self.name_canonical(frame.page, frames.list_at(place).tolist())
            else:
                self.given[frame.page] = frame.payload.decode("utf-8", "surrogateescape")

    def name_canonical(self, page: int, named: list[int]) -> None:
        """Note the canonical page that a page names; an empty list if it names none."""
        self.canonicals.pop(page, None)
        self.canonicals.update((page, target) for target in named)

    def count_hosts(self) -> None:
        """Count the pages of each host by state, now and with each event that is folded from now on."""
        kernels.count_hosts(self.addresses)

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

    def visit_place(self, page: int) -> int | None:
        """The place of a page's latest visit in the log."""
        row = int(self.answers[page])
        place = int(self.visits[row]) if row else 0
        return place - 1 if place and page not in self.merged else None

    def crawled(self, first_row: int = 1, end_row: int | None = None) -> tuple[UInt32Array, UInt64Array]:
        """Pages that were crawled or merged, and the places of their latest visits or merges: uint32[k], uint64[k].

        Only rows ``first_row``, …, ``end_row`` - 1 of ``answered`` are returned; by default all.
        """
        end = self.tally.rows + 1 if end_row is None else end_row
        rows = np.flatnonzero(self.visits[first_row:end]) + first_row
        return self.answered[rows], self.visits[rows] - np.uint64(1)
