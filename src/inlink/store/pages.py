"""The pages of a crawl, as columns folded from its log.

A column is an array with one number a page; its address space is reserved once, so it never moves. All columns can be
made anew from the log; only the slots of the URL table are kept on disk as well (``index/``), so that a crawl
opens quickly and other processes can look up one URL without reading all.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inlink.base.columns import most_pages, reserve
from inlink.base.folder import Folder
from inlink.base.jit import addresses
from inlink.errors import FolderError, StoreError, UnknownNodeError
from inlink.store import log as logs
from inlink.store.carried import carried_in
from inlink.store.kernels import frames as kernels
from inlink.store.kernels import table
from inlink.store.kernels.columns import Columns, Table
from inlink.store.layout import (
    CRAWLED_ONCE,
    EVENT_PAGES,
    EVENTS,
    HAS_CARRIED,
    HEAD,
    HOSTS,
    MAKERS,
    MERGE,
    NO_PAGE,
    NOTE,
    PAGES,
    ROWS,
    STATES,
    URL_BYTES,
    VISITED,
)
from inlink.store.mapped import Mapped
from inlink.store.page import Frame, Page, Visit, describe

__all__ = ["NO_PAGE", "STATES", "Page", "Pages"]

U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]

INDEX = "index"
SHARDS, SLACK = 256, 64  # of the table: parts, and slots behind the last home of each
_PAGES = most_pages()
_HOSTS = _PAGES // 8
_CHUNK = 4 << 20  # bytes of URLs that are taken in at a time: more than one can have
_FEW = 1 << 20  # pages below which an index costs more than it saves


class Pages:
    """All pages of a crawl's folder.

    Parameters
    ----------
    folder : Path
        The crawl's.
    hash_seed : int
        Of the URL table: secret, so that nobody can make URLs collide.
    started : float
        When the crawl began, in seconds since 1970.
    with_urls : bool
        Without, events are folded and URLs are not looked at: pages are known by their ids only.

    Attributes
    ----------
    num_pages, num_hosts : int
    events_end, urls_end : int
        The bytes of both files that are folded in.
    states, depths, errors : uint8[…], uint16[…], uint8[…]
        Of page i at [i]; the codes of ``states`` are places in :data:`STATES`.
    hosts : uint32[…]
        The number of each page's host, in the order of discovery.
    scores : float32[…]
        See :class:`Page`.
    """

    def __init__(self, folder: Path, hash_seed: int, started: float = 0.0, *, with_urls: bool = True) -> None:
        self.folder, self.hash_seed, self.started = folder, np.uint64(hash_seed), started
        self.with_urls = with_urls
        self.slots = reserve(np.uint64, 2 * _PAGES)
        self.sizes, self.counts = np.zeros(256, np.uint64), np.zeros(256, np.uint64)
        self.checks: U32 = reserve(np.uint32, _PAGES)
        self.hosts: U32 = reserve(np.uint32, _PAGES)
        self.marks: U64 = reserve(np.uint64, _PAGES // 32 + 1)
        self.host_slots = np.zeros(1 << 10, np.uint32)
        self.host_text = reserve(np.uint8, _HOSTS * 32)
        self.host_ends: U64 = reserve(np.uint64, _HOSTS)
        self.states = reserve(np.uint8, _PAGES)
        self.depths = reserve(np.uint16, _PAGES)
        self.errors = reserve(np.uint8, _PAGES)
        self.answers: U32 = reserve(np.uint32, _PAGES)
        self.answered: U32 = reserve(np.uint32, _PAGES)
        self.visits: U64 = reserve(np.uint64, _PAGES)
        self.failures: U64 = reserve(np.uint64, _PAGES)
        self.scores = reserve(np.float32, _PAGES)
        self.makers: U32 = reserve(np.uint32, _PAGES)
        self.maker_places: U64 = reserve(np.uint64, _PAGES)
        self.carriers: U64 = reserve(np.uint64, _PAGES)  # place + 1 of the frame that has what a page carries
        self.tally = np.zeros(8, np.uint64)  # its places are named in inlink.store.layout
        self.indexed = 0  # pages in the index on disk
        self.merged: dict[int, int] = {}
        self.given: dict[int, str] = {}
        self.events_end = 0
        self._table = addresses([getattr(self, name) for name in Table._fields])
        self._columns = addresses([getattr(self, name) for name in Columns._fields])
        self._urls = Mapped(folder / logs.URLS)
        self._events = Mapped(folder / logs.EVENTS)

    # -- sizes ----------------------------------------------------------------------------------------------------

    @property
    def num_pages(self) -> int:
        """URLs known: pages are 0 … num_pages − 1."""
        return int(self.tally[PAGES])

    @property
    def num_hosts(self) -> int:
        """Hosts known."""
        return int(self.tally[HOSTS])

    @property
    def num_events(self) -> int:
        """Events folded in."""
        return int(self.tally[EVENTS])

    @property
    def num_crawled(self) -> int:
        """Pages crawled at least once."""
        return int(self.tally[CRAWLED_ONCE])

    @property
    def urls_end(self) -> int:
        """Bytes of urls.txt that are taken in."""
        return int(self.tally[URL_BYTES])

    @property
    def log(self) -> npt.NDArray[np.uint8]:
        """The mapped log, uint8[events_end or more]."""
        return self._events.map(self.events_end)

    def map_urls(self) -> npt.NDArray[np.uint8]:
        """All of urls.txt as it is now, mapped: uint8[bytes]."""
        size = os.fstat(self._urls.file).st_size  # a writer may have cut it
        return self._urls.map(size)[:size]

    def map_events(self) -> npt.NDArray[np.uint8]:
        """All of events.log as it is now, mapped: uint8[bytes]."""
        size = os.fstat(self._events.file).st_size  # a writer may have cut it
        return self._events.map(size)[:size]

    # -- opening --------------------------------------------------------------------------------------------------

    def recover(self) -> tuple[int, int]:
        """Read the log from the start; returns where its whole part ends in both files: (urls, events)."""
        covered, urls_known, events_known = self._load_index()
        events = self.map_events()
        urls = self.map_urls()
        urls_end, events_end, _ = logs.last_whole(urls, events, urls_known, events_known)
        self._take_in(urls_end, events_end, covered)
        return urls_end, events_end

    def refresh(self) -> None:
        """Take in what another process has written since; only whole frames."""
        events = self.map_events()
        urls = self.map_urls()
        urls_end, events_end, _ = logs.last_whole(urls, events, self.urls_end, self.events_end)
        self._take_in(urls_end, events_end, 0)

    def _take_in(self, urls_end: int, events_end: int, covered: int) -> None:
        """Fold in both files up to their ends; the URLs on another thread than the events, where there are many."""
        begin = self.events_end
        frames = self._events.bytes[begin:events_end]
        if not self.with_urls:
            self._fold(frames, begin)
            self.tally[PAGES], self.tally[URL_BYTES] = self.tally[EVENT_PAGES], urls_end
        elif urls_end - self.urls_end < _CHUNK:
            self._take_in_urls(urls_end, covered)
            self._fold(frames, begin)
        else:
            with ThreadPoolExecutor(1) as thread:
                folding = thread.submit(self._fold, frames, begin)
                self._take_in_urls(urls_end, covered)
                folding.result()
        self._rare(begin)

    def _take_in_urls(self, urls_end: int, covered: int) -> None:
        most = 1 << 16
        while self.urls_end < urls_end:
            begin = self.urls_end
            end = min(begin + _CHUNK, urls_end)
            if end + len(table.PADDING) <= len(self._urls.bytes):
                text = self._urls.bytes[begin : end + len(table.PADDING)]
            else:  # the last lines, behind which nothing is mapped
                text = np.frombuffer(self._urls.bytes[begin:end].tobytes() + table.PADDING, np.uint8)
            self._room_for_hosts(most)
            table.insert_known(self._table, text, begin, self.hash_seed, most, covered)

    def _fold(self, frames: npt.NDArray[np.uint8], begin: int) -> None:
        kernels.fold(self._columns, frames, begin)
        self.events_end = begin + len(frames)

    def fold_frame(self, place: int, frame: npt.NDArray[np.uint8]) -> None:
        """Fold one frame that was just appended."""
        self._fold(frame, place)
        if frame[29] & HAS_CARRIED:
            self._carry(frame, place)

    def _carry(self, frames: npt.NDArray[np.uint8], base: int) -> None:
        kernels.fold_carried(frames, np.uint64(base), self.carriers)

    def _rare(self, begin: int) -> None:
        """What few pages have: merged pages and given forms, in dictionaries, and what links carry."""
        for place in self.frames_of_kind(MERGE, begin):
            into = np.empty(1, np.uint32)
            kernels.links_at(self.log, np.uint64(place), into)
            self.merged[self.frame(place).page] = int(into[0])
        for place in self.frames_of_kind(NOTE, begin):
            note = self.frame(place)
            self.given[note.page] = note.payload.decode("utf-8", "surrogateescape")
        self._carry(self.log[begin : self.events_end], begin)

    def frames_of_kind(self, kind: int, begin: int = 0) -> list[int]:
        """The places of all frames of a kind, from ``begin`` on."""
        found: list[int] = kernels.find_kind(
            self.log, np.uint64(begin), np.uint64(self.events_end), np.uint8(kind)
        ).tolist()
        return found

    def frame(self, place: int) -> Frame:
        """The frame at ``place``."""
        head = self._events.read(place, HEAD.size)
        length, _, time, page, _, _, _, flags, status, score, _ = HEAD.unpack(head)
        raw = self._events.read(place + HEAD.size, length - HEAD.size)
        return Frame(time, page, flags, status, score, raw)

    # -- URLs -----------------------------------------------------------------------------------------------------

    def number(self, urls: Sequence[str]) -> tuple[U32, int, bytes]:
        """The pages of canonical URLs, numbered on the spot where they are new.

        Returns
        -------
        pages : uint32[n]
        new : int
            How many were not known.
        text : bytes
            Their lines for urls.txt.

        Raises
        ------
        StoreError
            If there is no address space for more.
        """
        return self.number_lines(("\n".join(urls) + "\n").encode("ascii") if urls else b"", len(urls))

    def number_lines(self, lines: bytes, n: int) -> tuple[U32, int, bytes]:
        """:meth:`number` for ``n`` canonical URLs that stand one a line, a newline behind each."""
        pages = np.empty(n, np.uint32)
        if n == 0:
            return pages, 0, b""
        new_text = np.empty(len(lines), np.uint8)
        before = self.num_pages
        self._room_for_hosts(n)
        written, done = table.number_urls(self._table, lines + table.PADDING, self.hash_seed, pages, new_text)
        if done < n:
            raise StoreError(f"{self.folder}: no address space for more than {self.num_pages:,} pages")
        return pages, self.num_pages - before, new_text[:written].tobytes()

    def find(self, urls: Sequence[str]) -> U32:
        """The pages of canonical URLs, :data:`NO_PAGE` where one is not known."""
        pages = np.empty(len(urls), np.uint32)
        if urls:
            text = ("\n".join(urls) + "\n").encode("ascii", "replace") + table.PADDING
            table.find_urls(self._table, text, self.hash_seed, pages)
        return pages

    def page_of(self, url: str) -> int:
        """The page of one URL, :data:`NO_PAGE` if it is not known, or not in canonical form."""
        if not url.isascii() or "\n" in url:
            return NO_PAGE
        found: int = table.find_url(self._table, url.encode("ascii") + table.LINE_END, self.hash_seed)
        return found

    def url(self, page: int) -> str:
        """The canonical URL of a page.

        Raises
        ------
        UnknownNodeError
            If there is no such page.
        """
        begin = int(self.marks[page >> 5])
        left = page & 31
        size = 4096
        while True:
            text = self._urls.read(begin, min(size, self.urls_end - begin))
            lines = text.split(b"\n", left + 1)
            if len(lines) == left + 2:
                return lines[left].decode("ascii")
            if begin + size >= self.urls_end:
                raise UnknownNodeError(f"{self.folder} has no page {page}: it has {self.num_pages:,}")
            size *= 4

    def text(self, begin: int, end: int) -> npt.NDArray[np.uint8]:
        """Bytes of urls.txt, uint8[end − begin]."""
        return self._urls.map(self.urls_end)[begin:end]

    def urls(self, pages: npt.NDArray[np.uint32] | Sequence[int]) -> list[str]:
        """The canonical URLs of some pages."""
        return [self.url(page) for page in map(int, pages)]

    def host(self, host: int) -> str:
        """The name of a host."""
        begin = int(self.host_ends[host - 1]) if host else 0
        return self.host_text[begin : int(self.host_ends[host])].tobytes().decode("ascii")

    def _room_for_hosts(self, more: int) -> None:
        wanted = (self.num_hosts + more) * 2
        if wanted > len(self.host_slots):
            slots = np.zeros(1 << (wanted - 1).bit_length(), np.uint32)
            table.refill_hosts(
                self.host_text, self.host_ends, np.uint64(self.num_hosts), self.hash_seed, slots
            )
            self.host_slots = slots
            self._table = addresses([getattr(self, name) for name in Table._fields])

    # -- what is known of a page ------------------------------------------------------------------------------------

    def last_time(self) -> float:
        """When pages were made known last, in seconds since 1970: time has not gone back since."""
        rows = int(self.tally[MAKERS])
        return self.frame(int(self.maker_places[rows - 1])).time if rows else self.started

    def survivor(self, page: int) -> int:
        """The page that a page was merged into, itself if it was not."""
        for _ in range(64):
            if page not in self.merged:
                break
            page = self.merged[page]
        return page

    def maker(self, page: int) -> int:
        """The page whose links made a page known; NO_PAGE for a seed."""
        row = int(np.searchsorted(self.makers[: int(self.tally[MAKERS])], np.uint32(page), "right")) - 1
        return self.frame(int(self.maker_places[row])).page

    def carried(self, page: int) -> bytes | None:
        """What the first link to a page that carried something gave it to carry."""
        place = int(self.carriers[page])
        if not place:
            return None
        length = HEAD.unpack(self._events.read(place - 1, HEAD.size))[0]
        return carried_in(np.frombuffer(self._events.read(place - 1, length), np.uint8), page)

    def linked_from(self, page: int) -> str | None:
        """The URL of the page whose links made a page known; None for a seed."""
        maker = self.maker(page)
        return None if maker == NO_PAGE else self.url(maker)

    def visit_place(self, page: int) -> int | None:
        """The place of a page's latest visit in the log."""
        row = int(self.answers[page])
        place = int(self.visits[row]) if row else 0
        return place - 1 if place and page not in self.merged else None

    def visit(self, page: int) -> Visit | None:
        """A page's latest visit."""
        place = self.visit_place(page)
        if place is None:
            return None
        time, _, flags, status, _, raw = self.frame(place)
        first, crawls, changes, _, length = VISITED.unpack_from(raw)
        content_hash = raw[VISITED.size : VISITED.size + length]
        return Visit(time, status, first, crawls, changes, place, content_hash, flags)

    def page(self, page: int) -> Page:
        """All that is known of a page."""
        return describe(self, page)

    def links(self, page: int) -> U32:
        """The pages that a page's latest visit links to, uint32[k], increasing."""
        place = self.visit_place(page)
        return np.empty(0, np.uint32) if place is None else self.list_at(place)

    def list_at(self, place: int) -> U32:
        """The links of the frame at ``place``."""
        out = np.empty(int(kernels.link_count(self.log, np.uint64(place))), np.uint32)
        kernels.links_at(self.log, np.uint64(place), out)
        return out

    def inlinks(self, page: int) -> U32:
        """The pages whose latest visits link to a page, uint32[k], increasing; reads all rows."""
        pages, places = self.crawled()
        return np.sort(pages[kernels.rows_with(self.log, places, np.uint64(page))])

    def crawled(self) -> tuple[U32, U64]:
        """Every page that was crawled, and the place of its latest visit: uint32[k], uint64[k]."""
        rows = int(self.tally[ROWS]) + 1
        places = self.visits[:rows]
        found = np.flatnonzero(places)
        return self.answered[found], places[found] - np.uint64(1)

    # -- the index --------------------------------------------------------------------------------------------------

    def index_due(self) -> bool:
        """Whether a new index is worth its while: there are an eighth more pages, and not few."""
        return self.with_urls and self.num_pages >= max(_FEW, self.indexed + self.indexed // 8)

    def _load_index(self) -> tuple[int, int, int]:
        """Fill the table from the index; how many pages, bytes of URLs and of events it covers."""
        try:
            index = Folder(self.folder / INDEX, INDEX, 1)
            index.verify()
        except FolderError:
            return 0, 0, 0
        meta: dict[str, Any] = index.header.meta
        short = (
            meta["urls_end"] > os.fstat(self._urls.file).st_size
            or meta["events_end"] > os.fstat(self._events.file).st_size
        )
        if short or meta["seed"] != str(int(self.hash_seed)):
            return 0, 0, 0  # of a log that a power cut has shortened, or of another crawl
        slots, counts = index.array("slots"), index.array("counts")
        room, at = len(self.slots) // SHARDS, 0
        for k, count in enumerate(counts.tolist()):
            size = count * 6 // 5 + SLACK
            entries = slots[at : at + count]
            while not table.spread(entries, self.slots[k * room : k * room + size + SLACK], np.uint64(size)):
                size += size // 8
            self.sizes[k], self.counts[k] = size, count
            at += count
        self.indexed = meta["pages"]
        return meta["pages"], meta["urls_end"], meta["events_end"]

    def close(self) -> None:
        """Let go of the files."""
        self._urls.close()
        self._events.close()
