"""Turn the folders of a stopped crawl into those of the same crawl with another number of shards.

All events of the old shards are replayed into new logs, in the order of their times. An event about a page goes to the
shard that now owns the page. Its links go with it, so a shard knows all pages that its events name. The owner of a page
gets it from the shard that discovered it by a SEED event, as in :mod:`inlink.crawl.exchange`, at the time of the
discovery. At the end each shard has received all pages of the other shards.

An old shard may have events about pages that it does not own. Their discovery and visits (a redirect led there) count.
Everything else about a page is what its owner's log says.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from inlink.base.arrays import AnyArray, Float32Array, UInt8Array, UInt32Array, UInt64Array, slices
from inlink.base.folder import new_folder
from inlink.base.progress import track
from inlink.base.table import counted
from inlink.crawl.folder import create
from inlink.crawl.journal import LONGEST_REASON, encoded_list
from inlink.crawl.settings import differences, stored
from inlink.errors import FolderError, ParameterError
from inlink.frontier.rules import OTHER_SHARD, Rules, host_of
from inlink.store import format as kinds
from inlink.store.backup import copy_lists
from inlink.store.carried import all_carried, encode_carried
from inlink.store.facts import decode_facts, encode_facts
from inlink.store.format import (
    HEAD_SIZE,
    NO_PAGE,
    ExcludedRecord,
    Head,
    LeaseRecord,
    LostRecord,
    ReleasedRecord,
    RenewedRecord,
    SessionRecord,
    VisitRecord,
    dtype_of,
    salt_of,
    struct_of,
)
from inlink.store.inbox import pending
from inlink.store.kernels.columns import CrawlCounters
from inlink.store.kernels.frames import links_at, list_end
from inlink.store.log import URLS, lock
from inlink.store.newlog import EMPTY, NewLog
from inlink.store.pages import Pages
from inlink.store.reader import crawl_folder, hash_seed_of, known_pages
from inlink.store.received import FLOW, Received
from inlink.store.urls import UrlTable
from inlink.urls.shards import BUCKETS, owner_of

_HEAD, _VISIT, _LEASE = struct_of(Head), struct_of(VisitRecord), struct_of(LeaseRecord)
_EXCLUDED, _SESSION = struct_of(ExcludedRecord), struct_of(SessionRecord)
_AT_ONCE = 1 << 18
"""Number of pages that one event lists at most, if it is about the pages of a whole shard."""

_PROGRESS = 1 << 22
"""Number of bytes of the logs between two reports of progress."""

_ABOUT_PAGE = (kinds.FAILED, kinds.HOST, kinds.HOST_SET, kinds.HINT, kinds.DUE, kinds.CARRY)
_RECORDS = {kinds.RELEASE: dtype_of(ReleasedRecord), kinds.LOST: dtype_of(LostRecord)}
_LEFT_OUT = (
    *(kinds.RENEWED, kinds.REPORTED, kinds.RANKING, kinds.SYNCED, kinds.REPAIRED),
    *(kinds.FACTS, kinds.ITEMS, kinds.RECEIVED),
)
"""Events that say nothing more in the new logs, and those that are written together with a visit."""

_NO_SCORES: Float32Array = np.empty(0, np.float32)


class Resharded(NamedTuple):
    """A new folder, its number of known pages, and the bytes of events.log."""

    folder: Path
    pages: int
    size: int


def reshard(
    sources: Sequence[str | os.PathLike[str]], shards: int, target: str | os.PathLike[str]
) -> list[Resharded]:
    """Write a stopped crawl as a crawl of ``shards`` shards.

    Parameters
    ----------
    sources : sequence of path-like
        The folders of all shards of the crawl, or that of a crawl without shards. They are not changed.
    shards : int
        The number of new shards. 1 is a crawl without shards.
    target : path-like
        The folder of the new crawl, or of the new shards' folders ``1``, ``2``, … It must not exist.

    Raises
    ------
    inlink.errors.InUseError
        If a crawl runs.
    inlink.errors.FolderError
        If a folder holds no crawl, or a damaged crawl, or requests that the crawl has not taken in.
    inlink.errors.ParameterError
        If ``sources`` are not all shards of one crawl, or have different settings.
    inlink.errors.OutputError
        If ``target`` exists or cannot be written. Then no files are left.
    """
    if not 1 <= shards <= BUCKETS:
        raise ParameterError(f"`shards` must be from 1 to {BUCKETS:,}; got {shards}")
    with ExitStack() as stack:
        folders = [Path(folder) for folder in sources]
        for folder in dict.fromkeys(folders):
            crawl_folder(folder)
            stack.callback(lock(folder).close)
            if waiting := pending(folder):
                raise FolderError(
                    f"{folder} has {counted(len(waiting), 'request')} that the crawl has not taken in, such as "
                    f"{waiting[0][0].name}: open the crawl once, or remove the request"
                )
        folders = _in_order(folders)
        work = stack.enter_context(new_folder(target))
        old = [_OldShard(row, folder, len(folders), shards) for row, folder in enumerate(folders)]
        for source in old:
            stack.callback(source.pages.close)
        new = [_NewShard(_made(work, k, shards, old), k, old) for k in range(1, shards + 1)]
        for made in new:
            stack.callback(made.table.close)
            stack.enter_context(made.log)
        _Replay(old, new).run()
        place = Path(target)
        return [
            Resharded(place / made.folder.relative_to(work), made.log.pages, made.log.place) for made in new
        ]


def _in_order(folders: list[Path]) -> list[Path]:
    """The folders of the shards by number. They must be all shards of one crawl, each once, with the same settings."""
    settings = {folder: stored(folder) for folder in folders}
    parts = {folder: None if kept.rules is None else kept.rules.part for folder, kept in settings.items()}
    if len(folders) == 1 and parts[folders[0]] is None:
        return folders
    by_number: dict[int, Path] = {}
    first = folders[0]
    for folder in folders:
        part, whole = parts[folder], parts[first]
        if part is None or whole is None:
            raise ParameterError(
                f"{folder if part is None else first} is not a shard: give the folders of all shards of one crawl, or "
                "one crawl without shards"
            )
        if part.count != whole.count:
            raise ParameterError(
                f"{folder} is a shard of {part.count}, and {first} is a shard of {whole.count}: give the folders of "
                "all shards of one crawl"
            )
        if part.number in by_number:
            raise ParameterError(
                f"{by_number[part.number]} and {folder} are both shard {part.number}/{part.count}: give each shard once"
            )
        by_number[part.number] = folder
        both = [replace(settings[one], rules=_rules(settings[one].rules, None)) for one in (first, folder)]
        if both[0] != both[1]:
            raise ParameterError(
                f"{first} and {folder} have different settings ({'; '.join(differences(*both))}): give all shards the "
                "same settings"
            )
        count = part.count
    missing = [number for number in range(1, count + 1) if number not in by_number]
    if missing:
        raise ParameterError(
            f"shard {missing[0]}/{count} is missing: give the folders of all shards of the crawl"
        )
    return [by_number[number] for number in range(1, count + 1)]


def _rules(rules: Rules | None, shard: str | None) -> Rules | None:
    """Return rules with another shard; None if they then forbid nothing."""
    return replace(rules or Rules(), shard=shard) or None


def _shard(number: int, count: int) -> str | None:
    return f"{number}/{count}" if count > 1 else None


def _made(work: Path, number: int, count: int, old: "Sequence[_OldShard]") -> Path:
    """Make the folder of a new shard without its log; return it."""
    folder, source = work / (str(number) if count > 1 else "new"), old[0].folder
    started, settings = min(each.pages.started for each in old), stored(source)
    create(folder, started, replace(settings, rules=_rules(settings.rules, _shard(number, count))))
    if count == 1:
        for part in folder.iterdir():
            part.rename(work / part.name)
        folder.rmdir()
        folder = work
    copy_lists(source, folder)
    if (source / "addresses.json").exists():
        (folder / "addresses.json").write_bytes((source / "addresses.json").read_bytes())
    return folder


def _owners(table: UrlTable, tally: CrawlCounters, count: int) -> AnyArray:
    """The number of the shard that owns each page, uint16[pages], if there are ``count`` shards."""
    by_host = np.array([owner_of(table.host(host), count) for host in range(tally.hosts)], np.uint16)
    return by_host[table.hosts[: tally.pages]]


class _OldEvent(NamedTuple):
    """An event of an old log. Events are ordered by time.

    ``by_shard`` is whether another shard has discovered the pages. Such an event follows other events of the same time.
    ``before`` is the place of the previous event; -1 for the first event.
    """

    time: float
    by_shard: bool
    row: int
    place: int
    head: Head
    before: int


class _OldShard:
    """An old shard.

    Attributes
    ----------
    owners : uint16[pages]
        The new shard that owns each page.
    owns : bool[pages]
        Whether this shard owns each page.
    leases : uint64[…]
        For each lease its new number << 16 | its new shard; 0 if it was left out.
    """

    def __init__(self, row: int, folder: Path, count: int, shards: int) -> None:
        self.row, self.folder = row, folder
        self.pages: Pages = known_pages(folder)
        self.rules = _rules(stored(folder).rules, None)
        pages = self.pages
        self.owners = _owners(pages.table, pages.tally, shards)
        self.owns = _owners(pages.table, pages.tally, count) == row + 1
        self.open_leases = pages.frames.open_leases()
        self.leases: UInt64Array = np.zeros(int(self.open_leases.following) + 1, np.uint64)
        self.log: UInt8Array = pages.frames.log
        # The URLs of the pages that the present event made known.
        self._first, self._lines = 0, list[str]()

    def events(self) -> Iterator[_OldEvent]:
        """Yield all events."""
        place, before, data = 0, -1, self.log.data
        while place < self.pages.frames.end:
            head = Head._make(_HEAD.unpack_from(data, place))
            by_shard = head.kind == kinds.SEED and head.flags & kinds.BY_SHARD > 0
            yield _OldEvent(head.time, by_shard, self.row, place, head, before)
            place, before = place + head.length, place

    def begin(self, head: Head) -> None:
        """Keep the URLs that an event made known, because they are asked for while it is replayed."""
        text = self.pages.table.text(head.text_place, head.text_place + head.text_size)
        self._first, self._lines = head.first, text.tobytes().decode("ascii").split("\n")[:-1]

    def event(self, place: int) -> tuple[Head, bytes]:
        """Return the head and the payload of the event at a place. Without an event there, the head is empty."""
        if not 0 <= place < self.pages.frames.end:
            return EMPTY, b""
        head = Head._make(_HEAD.unpack_from(self.log.data, place))
        return head, self.log[place + HEAD_SIZE : place + head.length].tobytes()

    def urls(self, pages: UInt32Array) -> list[str]:
        """The URLs of pages."""
        first, lines, url = self._first, self._lines, self.pages.url
        return [
            lines[page - first] if 0 <= page - first < len(lines) else url(page) for page in pages.tolist()
        ]


class _Listed(NamedTuple):
    """The parts of a payload with a coded list.

    ``record`` has the bytes before the list. ``scores`` and ``anchors`` are in the order of ``pages``, or empty.
    """

    record: bytes
    pages: UInt32Array
    scores: Float32Array
    anchors: list[bytes]
    data: Mapping[int, bytes]

    @classmethod
    def of(cls, source: _OldShard, place: int, head: Head, payload: bytes) -> "_Listed":
        """Decode the payload of the event at a place."""
        pages = np.empty(head.listed, np.uint32)
        links_at(source.log, np.uint64(place), pages)
        begin, anchor_size = 0, 0
        if head.kind == kinds.VISIT:
            visit = VisitRecord._make(_VISIT.unpack_from(payload))
            begin, anchor_size = _VISIT.size + visit.hash_size, visit.anchor_size
        at = int(list_end(source.log, np.uint64(place))) - place - HEAD_SIZE
        scores = _NO_SCORES
        if head.flags & kinds.HAS_SCORES:
            scores = np.frombuffer(payload, "<f4", len(pages), at)
            at += scores.nbytes
        anchors, stop = list[bytes](), at + anchor_size
        while at < stop:
            anchors.append(payload[at : at + 1 + payload[at]])
            at += len(anchors[-1])
        data: dict[int, bytes] = {}
        if head.flags & kinds.HAS_CARRIED:
            data = all_carried(np.frombuffer(payload, np.uint8))
        return cls(payload[:begin], pages, scores, anchors, data)

    def some(self, rows: AnyArray) -> "_Listed":
        """Only the pages in some rows."""
        pages = self.pages[rows]
        kept = set(pages.tolist()) & self.data.keys()
        scores = self.scores[rows] if len(self.scores) else _NO_SCORES
        return _Listed(self.record, pages, scores, [], {page: self.data[page] for page in kept})


_NOTHING = _Listed(b"", np.empty(0, np.uint32), _NO_SCORES, [], {})


class _NewShard:
    """A new shard.

    Attributes
    ----------
    number : int
    leases : int
        Number of leases so far.
    merged : set of int
        The pages that were merged into others.
    """

    def __init__(self, folder: Path, number: int, sources: Sequence[_OldShard]) -> None:
        self.folder, self.number, self._sources = folder, number, sources
        seed = hash_seed_of(folder)
        self.log, self.tally = NewLog(folder, salt_of(seed)), CrawlCounters()
        self.table = UrlTable(folder, seed, self.tally)
        # For each old shard, the numbers of its pages here, plus 1; 0 if they are not known.
        self._maps = [np.zeros(source.pages.num_pages, np.uint32) for source in sources]
        # The place of each page's last visit, plus 1.
        most = sum(source.pages.num_pages for source in sources)
        self._visits = np.zeros(most, np.uint64)
        # The best score of a link to each page so far; 0 if no score is above 0.
        self.best = np.zeros(most, np.float32)
        self.merged: set[int] = set()
        self.leases = 0
        # The new pages that must not be fetched.
        self._reasons: dict[int, str] = {}

    def unknown(self, source: _OldShard, pages: UInt32Array) -> UInt32Array:
        """The pages of an old shard that are not known here."""
        pages = pages[self._maps[source.row][pages] == 0]
        unknown: UInt32Array = pages[self.table.find(source.urls(pages)) == NO_PAGE]
        return unknown

    def numbers(self, source: _OldShard, pages: UInt32Array) -> tuple[UInt32Array, int, bytes]:
        """The pages of an old shard as pages of this one, the number of new pages, and their URLs."""
        numbers = self._maps[source.row][pages]
        fresh = np.flatnonzero(numbers == 0)
        if not len(fresh):
            return numbers - np.uint32(1), 0, b""
        unmapped = pages[fresh]
        urls, first = source.urls(unmapped), self.tally.pages
        found, new, text = self.table.number(urls)
        numbers[fresh] = self._maps[source.row][unmapped] = found + np.uint32(1)
        if new:
            rows = zip(unmapped.tolist(), found.tolist(), urls, strict=True)
            self._judge(source, [row for row in rows if row[1] >= first])
        return numbers - np.uint32(1), new, text

    def _judge(self, source: _OldShard, new: list[tuple[int, int, str]]) -> None:
        """Note which new pages must not be fetched: those of other shards, and those that no rule has judged so far."""
        for page, number, url in new:
            if source.owners[page] != self.number:
                self._reasons[number] = OTHER_SHARD
            elif source.rules and not source.owns[page]:
                owner = self._sources[owner_of(host_of(url), len(self._sources)) - 1]
                reason = source.rules.verdict(url, int(source.pages.depths[page]))
                if reason is not None and owner.pages.table.page_of(url) == NO_PAGE:
                    self._reasons[number] = reason

    def page_of(self, source: _OldShard, page: int) -> int:
        """A page that this shard owns, by its number in an old shard."""
        return int(self.numbers(source, np.array([page], np.uint32))[0][0])

    def write(self, head: Head, payload: bytes, text: bytes = b"", **fields: Any) -> int:
        """Write an event with other fields in its head; return its place."""
        return self.log.append(head._replace(**{"new": 0, "lease": 0} | fields), payload, text)

    def exclude_new(self, head: Head) -> None:
        """Exclude the new pages that must not be fetched, at the time of an event."""
        if self._reasons:
            reason = "; ".join(sorted(set(self._reasons.values()))).encode()[:LONGEST_REASON]
            pages = np.array(list(self._reasons), np.uint32)
            payload = _EXCLUDED.pack(len(reason)) + reason + pages.tobytes()
            self.write(EMPTY._replace(kind=kinds.EXCLUDE, time=head.time), payload, listed=len(pages))
            self._reasons.clear()

    def end_lease(self, time: float, lease: int) -> None:
        """End a lease whose answer was about a page of another shard."""
        self.write(EMPTY._replace(kind=kinds.RELEASE, time=time), b"", lease=lease)

    def list_event(
        self, source: _OldShard, head: Head, listed: _Listed, *, page: int = NO_PAGE, lease: int = 0
    ) -> AnyArray:
        """Write an event with a coded list; return the new order of the listed pages."""
        others = np.array(sorted(listed.data.keys() - set(listed.pages.tolist())), np.uint32)
        both, k = np.append(listed.pages, others), len(listed.pages)
        numbers, new, text = self.numbers(source, both)
        known = dict(zip(both.tolist(), numbers.tolist(), strict=True))
        order: AnyArray = np.argsort(numbers[:k])
        record = listed.record
        if head.kind == kinds.VISIT:
            visit = VisitRecord._make(_VISIT.unpack_from(record))
            previous = int(self._visits[page])
            record = _VISIT.pack(*visit._replace(previous=previous)) + record[_VISIT.size :]
        size, coded = encoded_list(numbers[:k].copy(), listed.scores.astype(np.float32))
        payload = record + coded + b"".join(listed.anchors[row] for row in order.tolist() if listed.anchors)
        payload += encode_carried({known[other]: data for other, data in listed.data.items()})
        flags = head.flags & ~kinds.HAS_CARRIED | kinds.HAS_CARRIED * bool(listed.data)
        place = self.write(head, payload, text, page=page, listed=size, new=new, flags=flags, lease=lease)
        if head.kind == kinds.VISIT:
            self._visits[page] = place + 1
        if len(listed.scores):
            self.best[numbers[:k]] = np.maximum(self.best[numbers[:k]], listed.scores)
        return order


class _Replay:
    """Replays the events of the old shards into the new shards."""

    def __init__(self, old: Sequence[_OldShard], new: Sequence[_NewShard]) -> None:
        self._old, self._new = old, new
        self._sessions = 0

    def run(self) -> None:
        """Write the new logs."""
        total, replayed = sum(source.pages.frames.end for source in self._old), 0
        with track("reshard", total, "B") as task:
            for event in merge(*(source.events() for source in self._old)):
                self._take(event)
                replayed += event.head.length
                if replayed >= _PROGRESS:
                    task.advance(replayed)
                    replayed = 0
        for source in self._old:
            self._renew(source)
            if len(self._new) > 1:
                self._score(source)
        if len(self._new) > 1:
            for target in self._new:
                self._receive(target)
        for target in self._new:
            target.log.finish()

    def _take(self, event: _OldEvent) -> None:
        """Replay one event."""
        source, head, kind = self._old[event.row], event.head, event.head.kind
        if head.new:
            source.begin(head)
        payload = source.event(event.place)[1]
        held = int(source.leases[head.lease])
        book, lease = self._new[(held & 0xFFFF) - 1] if held else None, held >> 16
        written: _NewShard | None = None
        if kind in (kinds.SEED, kinds.VISIT, kinds.MERGE, kinds.CANONICAL):
            listed = _Listed.of(source, event.place, head, payload)
            written = self._take_list(source, event, listed, book, lease)
            self._discover(source, head, listed, written)
        elif kind == kinds.GIVEN or kind in _ABOUT_PAGE:
            about = self._new[int(source.owners[head.page]) - 1]
            if source.owns[head.page] or kind == kinds.GIVEN:
                written = about
                page = about.page_of(source, head.page)
                about.write(head, payload, page=page, lease=lease if about is book else 0)
        elif kind in (kinds.LEASE, kinds.RELEASE, kinds.LOST, kinds.RELOAD, kinds.EXCLUDE):
            written = self._take_pages(source, head, payload, book, lease)
        elif kind in (kinds.PAUSE, kinds.RESUME, kinds.SETTINGS, kinds.SESSION):
            self._take_for_all(source, head, payload)
        elif kind == kinds.REPAIRED:
            self._discover(source, head, _NOTHING, None)
        elif kind not in _LEFT_OUT:
            raise FolderError(
                f"{source.folder} has an event of a later version at byte {event.place:,}: upgrade inlink"
            )
        if book is not None and written is not book:
            book.end_lease(head.time, lease)

    def _take_list(
        self, source: _OldShard, event: _OldEvent, listed: _Listed, book: _NewShard | None, lease: int
    ) -> _NewShard | None:
        """Replay an event with a coded list; return the new shard of its page, None if it is not written there."""
        head = event.head
        if head.kind == kinds.SEED:
            if not head.flags & kinds.BY_SHARD:
                for target, rows in self._split(source, listed.pages):
                    target.list_event(source, head, listed.some(rows))
                    target.exclude_new(head)
            return None
        target = self._new[int(source.owners[head.page]) - 1]
        page, mine = target.page_of(source, head.page), source.owns[head.page]
        if not mine and (head.kind != kinds.VISIT or page in target.merged):
            return None
        if head.flags & kinds.HAS_ITEMS:
            items, payload = source.event(event.before)
            if items.kind == kinds.ITEMS:
                target.write(items, payload, page=page)
            else:
                head = head._replace(flags=head.flags & ~kinds.HAS_ITEMS)
        if head.kind == kinds.MERGE:
            target.merged.add(page)
        order = target.list_event(source, head, listed, page=page, lease=lease if target is book else 0)
        facts, payload = source.event(event.place + head.length)
        if (head.kind, facts.kind, facts.page) == (kinds.VISIT, kinds.FACTS, head.page):
            kept = decode_facts(payload)
            if kept is not None and len(kept.places) == len(order):
                payload = encode_facts(kept.facts, bytes(kept.places[row] for row in order.tolist()))
            target.write(facts, payload, page=page)
        target.exclude_new(head)
        return target

    def _discover(self, source: _OldShard, head: Head, listed: _Listed, written: _NewShard | None) -> None:
        """Give pages that an event made known, and their data, to their owners.

        ``written`` is the new shard that has the event itself, and knows them by it.
        """
        fresh = np.arange(head.first, head.first + head.new, dtype=np.uint32)
        pages = np.union1d(fresh, np.array(list(listed.data), np.uint32)).astype(np.uint32)
        depth = int(source.pages.depths[head.first]) if head.new else 0
        for target, rows in self._split(source, pages):
            some = pages[rows]
            if target is written or head.kind in (kinds.SEED, kinds.REPAIRED):
                # Usually it knows all these pages, from the seed or from another shard's event.
                some = target.unknown(source, some)
            if not len(some):
                continue
            scores = _NO_SCORES
            if len(listed.scores):
                at = np.flatnonzero(np.isin(listed.pages, some))
                scores = np.zeros(len(some), np.float32)
                scores[np.searchsorted(some, listed.pages[at])] = listed.scores[at]
            flags = kinds.BY_SHARD | kinds.HAS_SCORES * (len(scores) > 0)
            seed = EMPTY._replace(kind=kinds.SEED, time=head.time, flags=flags, status=depth)
            data = {page: listed.data[page] for page in some.tolist() if page in listed.data}
            target.list_event(source, seed, _Listed(b"", some, scores, [], data))
            target.exclude_new(head)

    def _split(self, source: _OldShard, pages: UInt32Array) -> Iterator[tuple[_NewShard, AnyArray]]:
        """Yield the new shards that own pages of an old shard, and the rows of their pages."""
        owners = source.owners[pages]
        for number in np.unique(owners).tolist():
            yield self._new[number - 1], np.flatnonzero(owners == number)

    def _take_pages(
        self, source: _OldShard, head: Head, payload: bytes, book: _NewShard | None, lease: int
    ) -> _NewShard | None:
        """Replay an event that changes all pages that it lists; return ``book`` if this event ends its lease there."""
        kind, begin = head.kind, 0
        written: _NewShard | None = None
        if kind == kinds.LEASE:
            begin = _LEASE.size
        elif kind == kinds.EXCLUDE:
            begin = _EXCLUDED.size + _EXCLUDED.unpack_from(payload)[0]
        record = payload[:begin]
        if kind == kinds.EXCLUDE and head.page == NO_PAGE:
            reasons = record[_EXCLUDED.size :].split(b"; ")
            text = b"; ".join(reason for reason in reasons if reason != OTHER_SHARD.encode())
            record = _EXCLUDED.pack(len(text)) + text
        rows = np.frombuffer(payload, _RECORDS.get(kind, np.dtype("<u4")), offset=begin)
        pages = rows["page"] if kind in _RECORDS else rows
        mine = np.flatnonzero(source.owns[pages])
        for target, at in self._split(source, pages[mine]):
            own = mine[at]
            numbers = target.numbers(source, pages[own])[0]
            body = numbers.tobytes()
            if kind in _RECORDS:
                ended = rows[own].copy()
                held = source.leases[np.minimum(ended["lease"], len(source.leases) - 1)]
                ended["page"] = numbers
                ended["lease"] = np.where(held & 0xFFFF == target.number, held >> 16, 0)
                body = ended.tobytes()
            elif kind == kinds.LEASE:
                given = LeaseRecord._make(_LEASE.unpack_from(payload))
                first = target.leases + 1
                target.leases += len(own)
                new = np.arange(first, first + len(own), dtype=np.uint64)
                source.leases[given.first_lease + own] = new << 16 | target.number
                record = _LEASE.pack(first, given.expires, 0, 0)
            page = NO_PAGE if head.page == NO_PAGE else int(numbers[0])
            written = target if target is book else written
            target.write(
                head, record + body, page=page, listed=len(own), lease=lease if target is book else 0
            )
        return written

    def _take_for_all(self, source: _OldShard, head: Head, payload: bytes) -> None:
        """Replay an event about the whole crawl."""
        if head.kind == kinds.SESSION:
            _, silent_after, ended = _SESSION.unpack_from(payload)
            if ended:
                return
            # No session goes on. Its number is used up, so a spider that still has it is refused.
            self._sessions += 1
            payload = _SESSION.pack(self._sessions, silent_after, 1) + payload[_SESSION.size :]
        for target in self._new:
            if head.kind != kinds.SETTINGS:
                target.write(head, payload)
            elif source.row == 0:
                target.write(head, _settings(payload, _shard(target.number, len(self._new))))

    def _renew(self, source: _OldShard) -> None:
        """Write the time at which each open lease expires."""
        leases = source.open_leases
        numbers: dict[tuple[int, float], list[int]] = {}
        for lease, expires in zip(leases.numbers.tolist(), leases.expires.tolist(), strict=True):
            held = int(source.leases[lease])
            if held:
                numbers.setdefault((held & 0xFFFF, expires), []).append(held >> 16)
        for (number, expires), listed in numbers.items():
            log = self._new[number - 1].log
            payload = struct_of(RenewedRecord).pack(expires, 0) + np.array(listed, "<u8").tobytes()
            log.append(EMPTY._replace(kind=kinds.RENEWED, time=log.time, listed=len(listed)), payload)

    def _score(self, source: _OldShard) -> None:
        """Give the scores of better links, which pages of other shards have, to the owners of uncrawled pages."""
        columns = source.pages
        unvisited = columns.visits[columns.answers[: columns.num_pages]] == 0
        pages = np.flatnonzero(unvisited & (columns.scores[: columns.num_pages] > 0)).astype(np.uint32)
        for part in slices(len(pages), _AT_ONCE):
            some = pages[part]
            for target, rows in self._split(source, some):
                scores = columns.scores[some[rows]]
                better = scores > target.best[target.numbers(source, some[rows])[0]]
                if better.any():
                    flags = kinds.BY_SHARD | kinds.HAS_SCORES
                    seed = EMPTY._replace(kind=kinds.SEED, time=target.log.time, flags=flags)
                    listed = _Listed(b"", some[rows][better], scores[better], [], {})
                    target.list_event(source, seed, listed)

    def _receive(self, discoverer: _NewShard) -> None:
        """Record in the other new shards that they have received their pages of a shard, in its order."""
        owners = _owners(discoverer.table, discoverer.tally, len(self._new))
        discoverer.log.flush()
        with (discoverer.folder / URLS).open("rb") as lines:
            for begin in range(0, len(owners), _AT_ONCE):
                urls = [line[:-1].decode("ascii") for line in islice(lines, _AT_ONCE)]
                for target in self._new:
                    if target is discoverer:
                        continue
                    own = np.flatnonzero(owners[begin : begin + len(urls)] == target.number)
                    pages = target.table.find([urls[row] for row in own.tolist()])
                    received = EMPTY._replace(kind=kinds.RECEIVED, time=target.log.time, listed=len(pages))
                    # Ranks are not among them: the other shard sends them after its next ranking.
                    event = Received(discoverer.number, begin + len(urls), pages, np.empty(0, FLOW))
                    target.log.append(received, event.encoded())


def _settings(payload: bytes, shard: str | None) -> bytes:
    """Return the payload of an event of settings with another shard."""
    try:
        data = msgspec.json.decode(payload, type=dict[str, Any])
        rules = _rules(Rules(**(data.get("rules") or {})), shard)
    except (msgspec.MsgspecError, ParameterError, TypeError, ValueError, RecursionError):
        # The log may come from anybody. Its last settings are those in settings.json, which were read.
        return payload
    return msgspec.json.encode(data | {"rules": rules})
