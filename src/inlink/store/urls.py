"""The URLs of a crawl: urls.txt, and the table that finds the page of a URL.

The table can be made again from urls.txt. Its slots are kept on disk too (``index/``), so that a crawl without a
checkpoint opens quickly.
"""

import os
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from inlink.base.arrays import AnyArray, Float32Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.columns import most_pages, reserve
from inlink.base.decoding import converted
from inlink.base.folder import Folder
from inlink.base.jit import addresses
from inlink.errors import FolderError, StoreError, UnknownNodeError
from inlink.store.checkpoint import Checkpoint, Deferred, StatePart
from inlink.store.format import NO_PAGE
from inlink.store.kernels import linking, table
from inlink.store.kernels.columns import CrawlCounters, Table
from inlink.store.kernels.linking import NO_ROOM
from inlink.store.log import INDEX, INDEX_VERSION, URLS
from inlink.store.mapped import Mapped
from inlink.store.spill import Finished
from inlink.urls.classes import byte_classes
from inlink.urls.kernels import FULL, NEEDS_BASE

SHARDS, SLACK = 256, 64
"""Number of parts of the table, and of slots after the last home of each part."""

CHUNK = 4 << 20
"""Number of bytes of URLs that are taken in at a time. It is larger than the longest URL."""

_PAGES = most_pages()
_HOSTS = _PAGES // 8
_HOST_BYTES = _HOSTS * 32
_HOSTS_AT_A_TIME = 4096
"""Number of hosts that move to a larger table in one call, in less than a millisecond."""

_MOST_READ = 1 << 12
"""Maximum number of URLs that are kept after they were read."""

_FEW_LINKS, _LINE_BYTES = 1 << 10, 1 << 17
"""Number of links, and of bytes of their lines, of which a page may have more only with a room of its own."""

_NO_TEXT = np.empty(0, np.uint8)
_LARGE = ("slots", "checks", "hosts", "marks", "host_ends", "host_text", "host_slots")

_FEW = 1 << 20
"""Number of pages below which an index costs more than it saves."""


class Indexed(msgspec.Struct):
    """The extent of an index: pages, bytes of both files, and a checksum of a part of the URLs' hashes."""

    pages: int
    urls_end: int
    events_end: int
    seed: str
    urls_check: int


class TakenLinks:
    """Links of a page that :meth:`UrlTable.take_links` took in, or could not take in.

    Parameters
    ----------
    num_links : int
        Number of links.
    size : int
        Room for the lines of the links, in bytes.

    Attributes
    ----------
    status : int
        0 if the links were taken in, above 0 if some must be parsed: see :func:`.kernels.linking.take_links`.
    foreign : int
        Number of links that are not http.
    linked : uint32[num_links or more]
        The page of each link; NO_PAGE for a link that is left out.
    pages : uint32[count]
        The distinct pages, increasing.
    new : int
        Number of pages that were unknown before.
    coded : bytes
        The list of a frame.
    urls : bytes
        The lines of the new pages for urls.txt.
    """

    def __init__(self, num_links: int, size: int) -> None:
        self.status = self.foreign = self.used = self.new = 0
        self.lines, self.new_text = np.empty(size, np.uint8), np.empty(size, np.uint8)
        self.marks, self.linked = np.empty(num_links, np.uint32), np.empty(num_links, np.uint32)
        self.list_room = np.empty(9 * num_links, np.uint8)
        self.count, self.pages = 0, self.linked[:0]
        self.coded = self.urls = b""

    def rows(self) -> list[bytes]:
        """The line of each link, and an empty text. The lines of links that must be parsed are empty."""
        return self.lines[: self.used].tobytes().split(b"\n")

    def odd(self) -> list[int]:
        """The links that must be parsed."""
        places: list[int] = self.marks[: self.status].tolist()
        return places


def index_of(folder: Path, hash_seed: int, urls_size: int) -> tuple[Folder, Indexed] | None:
    """The index of a crawl's URLs and its extent; None if there is no usable index.

    The lengths of its files are checked. Their checksums are not compared.

    Parameters
    ----------
    folder : Path
        The crawl's folder.
    hash_seed : int
        The crawl's seed of hashes.
    urls_size : int
        Number of bytes of urls.txt. An index of more bytes belongs to a log that a power cut has shortened.
    """
    try:
        index = Folder(folder / INDEX, INDEX, INDEX_VERSION)
        covered = converted(index.header.meta, Indexed)
    except (FolderError, msgspec.ValidationError):
        return None
    lengths = {name: (entry.dtype, entry.length) for name, entry in index.header.files.items()}
    if lengths.get("counts") != ("<u8", SHARDS):
        return None
    counts = index.array("counts")
    pages = covered.pages
    fits = (
        index.header.version == INDEX_VERSION
        and covered.seed == str(hash_seed)
        and covered.urls_end <= urls_size
        and 0 <= pages < most_pages()
        and lengths
        == {
            "slots": ("<u8", int(counts.sum())),
            "marks": ("<u8", (pages + 31) // 32),
            "counts": lengths["counts"],
            "checks": ("<u4", SHARDS),
        }
    )
    return (index, covered) if fits else None


class UrlTable(Deferred):
    """The URLs of a crawl's folder.

    Parameters
    ----------
    folder : Path
        The crawl's folder.
    hash_seed : int
        Seed of the table. It is secret, so that nobody can make URLs collide.
    tally : CrawlCounters
        Counts pages, hosts and bytes.

    Attributes
    ----------
    hosts : uint32[…]
        The number of each page's host, in the order of discovery.
    marks : uint64[…]
        The byte of urls.txt at which every 32nd URL begins.
    indexed : int
        Number of pages in the index on disk.
    index_at : int
        Number of pages at which a new index is worth its cost: a minimum, and an eighth more pages.
    """

    def __init__(self, folder: Path, hash_seed: int, tally: CrawlCounters) -> None:
        self.folder, self.hash_seed, self.tally = folder, np.uint64(hash_seed), tally
        self.slots: UInt64Array = reserve(np.uint64, 2 * _PAGES)
        self.sizes, self.counts = np.zeros(SHARDS, np.uint64), np.zeros(SHARDS, np.uint64)
        self.checks: UInt32Array = reserve(np.uint32, _PAGES)
        self.hosts: UInt32Array = reserve(np.uint32, _PAGES)
        self.marks: UInt64Array = reserve(np.uint64, _PAGES // 32 + 1)
        self.host_slots = np.zeros(1 << 10, np.uint32)
        # The larger table of hosts that is being filled, and the number of hosts in it.
        self._larger: UInt32Array | None = None
        self._moved = 0
        self.host_text: UInt8Array = reserve(np.uint8, _HOST_BYTES)
        self.host_ends: UInt64Array = reserve(np.uint64, _HOSTS)
        # URLs that were read, by page.
        self._read: dict[int, str] = {}
        self._links = TakenLinks(_FEW_LINKS, _LINE_BYTES)
        self._urls_check = 0
        self.note_indexed(0)
        self._address()
        # The checkpoint from which the slots are still to be read.
        self._checkpoint: Checkpoint | None = None
        self._mapped = Mapped(folder / URLS)

    def _address(self) -> None:
        """Note the addresses of the arrays, for kernels. Those that search for URLs use only slots and checks."""
        arrays = [self.tally.array(), *(getattr(self, name) for name in Table._fields[1:])]
        self._table: UInt64Array = addresses(arrays)
        # With more hosts, :meth:`_room_for_hosts` has work to do.
        self._most_hosts = len(self.host_slots) // 2
        self._slots_table = self._table

    def all(self) -> UInt8Array:
        """All of urls.txt as it is now, mapped: uint8[bytes]."""
        # A writer may have cut the file.
        size = os.fstat(self._mapped.file).st_size
        return self._mapped.map(size)[:size]

    def take_in(self, end: int, covered: int) -> None:
        """Take in the lines up to byte ``end`` of urls.txt. Pages below ``covered`` are in the slots already."""
        most = 1 << 16
        while self.tally.url_bytes < end:
            begin = self.tally.url_bytes
            stop = end if end - begin <= CHUNK + len(table.PADDING) else begin + CHUNK
            text = self._mapped.bytes[begin : stop + len(table.PADDING)]
            if len(text) < stop - begin + len(table.PADDING):
                # The mapping ends after the last lines.
                text = np.frombuffer(self._mapped.bytes[begin:stop].tobytes() + table.PADDING, np.uint8)
            self._room_for_hosts(most, len(text))
            table.insert_known(self._table, text, begin, self.hash_seed, most, covered)

    def number(self, urls: Sequence[str]) -> tuple[UInt32Array, int, bytes]:
        """The pages of canonical URLs. New URLs get page numbers.

        Returns
        -------
        pages : uint32[n]
            The pages.
        new : int
            Number of new URLs.
        text : bytes
            Their lines for urls.txt.

        Raises
        ------
        StoreError
            If there is no address space for more URLs.
        """
        lines, n = ("\n".join(urls) + "\n").encode("ascii") if urls else b"", len(urls)
        pages = np.empty(n, np.uint32)
        if n == 0:
            return pages, 0, b""
        new_text = np.empty(len(lines), np.uint8)
        before = self.tally.pages
        self._room_for_hosts(n, len(lines))
        written, done = table.number_urls(self._table, lines + table.PADDING, self.hash_seed, pages, new_text)
        if done < n:
            raise StoreError(f"{self.folder}: no address space for more than {self.tally.pages:,} pages")
        return pages, self.tally.pages - before, new_text[:written].tobytes()

    def take_links(
        self, text: bytes, num_links: int, options: int, scores: Float32Array, page_url: Callable[[], str]
    ) -> TakenLinks:
        """Join the links of a page with its URL, and number their pages; new URLs get page numbers.

        Parameters
        ----------
        text, options
            See :func:`inlink.urls.kernels.join_lines`.
        num_links : int
            Number of links, at least 1.
        scores : float32[num_links] or float32[0]
            Replaced by the best score of each distinct page.
        page_url : callable
            Returns the page's canonical URL. It is called only if a link has to be joined with it.

        Returns
        -------
        TakenLinks
            Valid until the next call. If its status is not 0, nothing was changed.

        Raises
        ------
        StoreError
            If there is no address space for more URLs.
        """
        room, tally = self._links, self.tally
        raw, source = np.frombuffer(text, np.uint8), _NO_TEXT
        size = raw.size
        if num_links > _FEW_LINKS:
            room = TakenLinks(num_links, _LINE_BYTES + 2 * size)
        # The names of hosts are shorter than the links that name them.
        more = tally.hosts + num_links > self._most_hosts or tally.url_bytes + size > _HOST_BYTES
        if more or self._larger is not None:
            self._room_for_hosts(num_links, size)
        before = tally.pages
        while True:
            status, used, foreign, room.pages, coded, written = linking.take_links(
                self._table,
                raw,
                source,
                options,
                byte_classes(),
                self.hash_seed,
                room.lines,
                room.marks,
                room.linked,
                num_links,
                scores,
                room.list_room,
                room.new_text,
            )
            if status == NEEDS_BASE:
                source = np.frombuffer(page_url().encode("ascii"), np.uint8)
                continue
            if status != FULL:
                break
            room = TakenLinks(num_links, 2 * len(room.lines))
        room.status, room.foreign, room.used = status, foreign, used
        if not status:
            room.new, room.count = tally.pages - before, room.pages.size
            room.coded, room.urls = room.list_room[:coded].tobytes(), room.new_text[:written].tobytes()
        elif status == NO_ROOM:
            raise StoreError(f"{self.folder}: no address space for more than {tally.pages:,} pages")
        return room

    def find(self, urls: Sequence[str]) -> UInt32Array:
        """The pages of canonical URLs; :data:`NO_PAGE` for an unknown URL."""
        pages = np.empty(len(urls), np.uint32)
        if urls:
            text = ("\n".join(urls) + "\n").encode("ascii", "replace") + table.PADDING
            table.find_urls(self._slots_table, text, self.hash_seed, pages)
        return pages

    def page_of(self, url: str) -> int:
        """The page of a URL; :data:`NO_PAGE` if it is unknown, or not in canonical form."""
        if not url.isascii() or "\n" in url:
            return NO_PAGE
        if self._checkpoint is not None and "slots" not in vars(self):
            return self._page_in(self._checkpoint, url)
        found: int = table.find_url(self._slots_table, url.encode("ascii") + table.LINE_END, self.hash_seed)
        return found

    def _page_in(self, checkpoint: Checkpoint, url: str) -> int:
        """The page of a URL, read from one shard of the slots of a checkpoint; :data:`NO_PAGE` if it is unknown."""
        line = np.frombuffer(url.encode("ascii") + b"\n" + table.PADDING, np.uint8)
        shard, tag = table.hash_of(line, self.hash_seed)
        lengths = [len(one) for one in self._stretches("slots", vars(self)["_empty"]["slots"][0])]
        slots = checkpoint.stretch("slots", lengths, int(shard))
        for slot in slots[slots >> np.uint64(32) == np.uint64(tag)].tolist():
            page = int(slot & 0xFFFFFFFF) - 1
            if page >= 0 and self.url(page) == url:
                return page
        return NO_PAGE

    def url(self, page: int) -> str:
        """The canonical URL of a page.

        Raises
        ------
        UnknownNodeError
            If there is no such page.
        """
        # The page of an answer was leased, so its URL was read not long ago.
        url = self._read.get(page)
        if url is None:
            if len(self._read) >= _MOST_READ:
                self._read.clear()
            url = self._read[page] = self._lines(page)[page & 31].decode("ascii")
        return url

    def url_begin(self, page: int) -> int:
        """The byte of urls.txt at which the URL of a page begins."""
        before = self._lines(page)[: page & 31]
        return int(self.marks[page >> 5]) + sum(map(len, before)) + len(before)

    def _lines(self, page: int) -> list[bytes]:
        """The lines of urls.txt from the last marked line up to the page's, without newlines, and the rest read."""
        begin = int(self.marks[page >> 5])
        left = page & 31
        size = 4096
        while True:
            text = self._mapped.read(begin, min(size, self.tally.url_bytes - begin))
            lines = text.split(b"\n", left + 1)
            if len(lines) == left + 2:
                return lines
            if begin + size >= self.tally.url_bytes:
                raise UnknownNodeError(f"{self.folder} has no page {page}: it has {self.tally.pages:,}")
            size *= 4

    def text(self, begin: int, end: int) -> UInt8Array:
        """Bytes of urls.txt, uint8[end − begin]."""
        self._mapped.map(self.tally.url_bytes)
        return self._mapped.between(begin, end)[begin:end]

    def urls(self, pages: UInt32Array | Sequence[int]) -> list[str]:
        """The canonical URLs of the given pages. They cost less if pages whose numbers are close follow each other."""
        urls, at, lines = [], -1, list[bytes]()
        for page in map(int, pages):
            if page >> 5 != at or page & 31 >= len(lines):
                at, lines = page >> 5, self._lines(max(page, min(page | 31, self.tally.pages - 1)))[:-1]
            urls.append(lines[page & 31].decode("ascii"))
        return urls

    def host(self, host: int) -> str:
        """The name of a host."""
        begin = int(self.host_ends[host - 1]) if host else 0
        return self.host_text[begin : int(self.host_ends[host])].tobytes().decode("ascii")

    def host_number(self, name: str) -> int | None:
        """The number of the host with a name in canonical form; None if it is unknown."""
        sought = np.frombuffer(name.encode("ascii", "replace"), np.uint8)
        ends = self.host_ends[: self.tally.hosts].astype(np.int64)
        begins = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        hosts = np.flatnonzero(ends - begins == len(sought))
        texts = self.host_text[begins[hosts, None] + np.arange(len(sought))]
        found = hosts[(texts == sought).all(axis=1)]
        return int(found[0]) if len(found) else None

    @property
    def _host_bytes(self) -> int:
        """Number of bytes of the names of hosts."""
        return int(self.host_ends[self.tally.hosts - 1]) if self.tally.hosts else 0

    def _room_for_hosts(self, more: int, size: int) -> None:
        """Make room for ``more`` hosts, whose names have at most ``size`` bytes."""
        hosts = self.tally.hosts
        used = int(self.host_ends[hosts - 1]) if hosts else 0
        if hosts + more > len(self.host_ends) or used + size > len(self.host_text):
            raise StoreError(f"{self.folder}: no address space for more than {hosts:,} hosts")
        slots = 1 << ((hosts + more) * 2 - 1).bit_length()
        if slots > len(self.host_slots if self._larger is None else self._larger):
            self._larger, self._moved = np.zeros(slots, np.uint32), 0
        if self._larger is not None:
            # The search for a host ends at an empty slot, so the smaller table must not become full.
            full = hosts + more > len(self.host_slots) // 8 * 7
            self._move_hosts(hosts if full else max(_HOSTS_AT_A_TIME, 4 * more))

    def _move_hosts(self, most: int) -> None:
        """Move up to ``most`` hosts to the larger table. New hosts go to the smaller one until the larger has all."""
        assert self._larger is not None
        hosts, begin = self.tally.hosts, np.uint64(self._moved)
        self._moved = min(self._moved + most, hosts)
        end = np.uint64(self._moved)
        table.refill_hosts(self.host_text, self.host_ends, begin, end, self.hash_seed, self._larger)
        if self._moved == hosts:
            self.host_slots, self._larger = self._larger, None
            self._address()

    # -- the checkpoint ---------------------------------------------------------------------------------------------

    def parts(self) -> Iterator[StatePart]:
        """The filled parts of the table's arrays, by name. Those of the slots depend on the sizes before them."""
        for name in ("sizes", "counts", *_LARGE):
            yield name, self._stretches(name, getattr(self, name))

    def _stretches(self, name: str, array: AnyArray) -> list[AnyArray]:
        """The filled stretches of an array of the table."""
        if name == "slots":
            room = len(array) // SHARDS
            ends = [k * room + size + SLACK * (size > 0) for k, size in enumerate(self.sizes.tolist())]
            return [array[k * room : end] for k, end in enumerate(ends)]
        known = self.tally.pages
        filled = {"checks": known, "hosts": known, "marks": (known + 31) // 32, "host_ends": self.tally.hosts}
        if name == "host_text":
            return [array[: self._host_bytes]]
        return [array[: filled.get(name)]]

    def finished(self) -> Iterator[Finished]:
        """Yield the arrays that only grow at their ends, each with its number of final elements."""
        known, hosts = self.tally.pages, self.tally.hosts
        yield from ((self.checks, known), (self.hosts, known), (self.marks, known // 32))
        yield from ((self.host_ends, hosts), (self.host_text, self._host_bytes))

    def restore(self, checkpoint: Checkpoint, *, lazily: bool) -> None:
        """Take in a checkpoint; with ``lazily``, read each large array before its first use.

        Raises
        ------
        inlink.errors.FolderError
            If the checkpoint is damaged, or belongs to another log.
        """
        checkpoint.guard(self._mapped)
        self.host_slots, self._larger = np.zeros(checkpoint.meta["host_slots"], np.uint32), None
        self._address()
        if not lazily:
            checkpoint.fill(self.parts())
            return
        self._checkpoint = checkpoint
        checkpoint.fill([("sizes", [self.sizes]), ("counts", [self.counts])])
        checkpoint.fill_later(self, _LARGE, self._stretches)
        owner = weakref.proxy(self)
        self.defer("_slots_table", lambda: (owner.slots, owner.checks))
        self.defer("_table", lambda: [getattr(owner, name) for name in _LARGE])

    # -- the index --------------------------------------------------------------------------------------------------

    def note_indexed(self, pages: int) -> None:
        """Note how many pages are in the index on disk."""
        self.indexed, self.index_at = pages, max(_FEW, pages + pages // 8)

    def note_index(self) -> None:
        """Note how many pages are in the index on disk, without reading it."""
        there = index_of(self.folder, int(self.hash_seed), os.fstat(self._mapped.file).st_size)
        self.note_indexed(0 if there is None else there[1].pages)

    def load_index(self, events_size: int) -> tuple[int, int, int]:
        """Fill the slots from the index; return the pages, bytes of URLs and bytes of events that it covers."""
        found = index_of(self.folder, int(self.hash_seed), os.fstat(self._mapped.file).st_size)
        # A power cut may have shortened the log.
        if found is None or found[1].events_end > events_size:
            return 0, 0, 0
        index, covered = found
        try:
            index.verify()
        except FolderError:
            return 0, 0, 0
        slots, counts = index.array("slots"), index.array("counts")
        # A folder of another user may hold anything with right checksums. The lower half of a slot is its page plus 1.
        pages = slots.view("<u4")[::2]
        if len(slots) and not (
            counts.max() <= len(slots) and pages.min() > 0 and pages.max() <= most_pages()
        ):
            return 0, 0, 0
        at = 0
        for shard, count in enumerate(counts.tolist()):
            if not self._fill_shard(shard, slots[at : at + count]):
                self._empty_shards(shard)
                return 0, 0, 0
            at += count
        self._urls_check = covered.urls_check
        self.note_indexed(covered.pages)
        return covered.pages, covered.urls_end, covered.events_end

    def _fill_shard(self, shard: int, entries: UInt64Array) -> bool:
        """Fill a shard with slots of the index. Return False if their tags are not those of a hash in order."""
        begin, size = shard * (len(self.slots) // SHARDS), len(entries) * 6 // 5 + SLACK
        largest = 4 * size
        while not table.spread(entries, self.slots[begin : begin + size + SLACK], np.uint64(size)):
            size += size // 8
            if size > largest:
                return False
        self.sizes[shard], self.counts[shard] = size, len(entries)
        return True

    def _empty_shards(self, count: int) -> None:
        """Make the first shards empty again."""
        room = len(self.slots) // SHARDS
        for shard in range(count):
            begin = shard * room
            self.slots[begin : begin + int(self.sizes[shard]) + SLACK] = 0
        self.sizes[:] = self.counts[:] = 0

    def as_indexed(self, pages: int) -> bool:
        """Return whether the first ``pages`` URLs that were taken in are the URLs of the index.

        A part of each URL's hash is kept for searching. The index has the checksum of these parts.
        """
        return not pages or zlib.crc32(self.checks[:pages].data) == self._urls_check

    def close(self) -> None:
        """Close the file."""
        self._mapped.close()
