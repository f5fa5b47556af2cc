"""Repair a damaged log: report its damage, or write a sound copy in which every page keeps its number.

The copy has the same events at the same bytes. A *repaired* event of zeros replaces damaged events, and makes the same
pages known. So numbers of pages and leases, and places in the log, stay valid. URLs with a correct checksum stay. All
other URLs are lost. Each is replaced by a unique URL under ``.invalid``, a domain that never exists (RFC 2606), with
the crawl's uuid as its host. Pages with lost URLs are excluded.
"""

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from inlink.base.folder import new_folder
from inlink.errors import FolderError
from inlink.store.backup import copy_beside_log, mapped
from inlink.store.checks import FAULTS, Stretch, frames, safe_from_the_start
from inlink.store.format import (
    CHECKED,
    EXCLUDE,
    HEAD_SIZE,
    KINDS,
    MARKER,
    MERGE,
    NO_PAGE,
    REPAIRED,
    SYNCED,
    VISIT,
    ExcludedRecord,
    Head,
    VisitRecord,
    struct_of,
)
from inlink.store.kernels import checks as kernels
from inlink.store.kernels.sound import sound, text_sound
from inlink.store.log import EVENTS, URLS
from inlink.store.reader import crawl_folder, hash_seed_of

__all__ = ["Damage", "Report", "examine", "repair"]

_HEAD, _VISIT = struct_of(Head), struct_of(VisitRecord)
_LONGEST = 1 << 30
_AT_ONCE = 1 << 20
"""Maximum number of pages that one event excludes."""
LOST_REASON = b"repair: the URL was lost"
_TEXT_CHECK = HEAD_SIZE - 8


class Damage(NamedTuple):
    """Damaged bytes of a file.

    Attributes
    ----------
    file : str
        ``events.log`` or ``urls.txt``.
    begin, end : int
        First byte, and the byte after the last.
    fault : str
        The fault of the first event in them.
    kind : str
        The kind of the event, if its head is sound; else empty.
    first, new : int
        The pages that became known there: ``first``, …, ``first + new - 1``.
    """

    file: str
    begin: int
    end: int
    fault: str
    kind: str
    first: int
    new: int


class Report(NamedTuple):
    """The state of a crawl's log.

    Attributes
    ----------
    pages, events : int
        Number of known pages, including those of damaged events; number of sound events.
    damages : list of Damage
        The damaged bytes, in the order of the log.
    tail : int
        Number of bytes of an unfinished event in both files. Opening the crawl moves them aside.
    lost_urls : int
        Number of pages whose URLs are lost.
    """

    pages: int
    events: int
    damages: list[Damage]
    tail: int
    lost_urls: int


class _Piece(NamedTuple):
    """A sound event, or damaged bytes, and the URLs for the repaired log.

    ``lines`` are the URLs of the pages from ``first`` on, with None for a lost URL. ``lines`` is None if the event's
    own text is sound.
    """

    begin: int
    end: int
    head: Head | None
    fault: str
    first: int
    new: int
    text_place: int
    text_end: int
    lines: list[bytes | None] | None


class _Log:
    """A log that is checked from front to back."""

    def __init__(self, folder: Path) -> None:
        hash_seed_of(folder)
        self.folder = folder
        self.events, self.urls = mapped(folder / EVENTS), mapped(folder / URLS)
        self.end = self.urls_end = 0

    def pieces(self) -> Iterator[_Piece]:
        """Yield its pieces up to a torn tail. Afterwards ``end`` and ``urls_end`` are the beginning of the tail."""
        safe = safe_from_the_start(self.folder, self.events)
        pages = text = 0
        run: list[Stretch] = []
        for stretch in frames(self.urls, self.events):
            head, fault = stretch.head, stretch.fault
            good = head is not None and (not fault or fault == FAULTS[kernels.BAD_URLS])
            if good and head is not None and not self._follows(head, stretch, pages, text, bool(run)):
                good, stretch = False, stretch._replace(head=None, fault=FAULTS[kernels.OUT_OF_ORDER])
            if not good or head is None:
                wild = stretch.fault in (FAULTS[kernels.WILD], FAULTS[kernels.OUT_OF_ORDER])
                if not run and not wild and stretch.begin >= safe:
                    break
                run.append(stretch)
                continue
            if run:
                piece = self._damaged(run, pages, text, head.first, head.text_place)
                yield piece
                pages, text, run = head.first, head.text_place, []
            lines: list[bytes | None] | None = [None] * head.new if fault else None
            text_end = text + head.text_size
            yield _Piece(stretch.begin, stretch.end, head, fault, pages, head.new, text, text_end, lines)
            pages, text, self.end = pages + head.new, text_end, stretch.end
        if run:
            heads = [one.head for one in run if one.head is not None and one.head.first >= pages]
            known, stop = (
                (heads[-1].first + heads[-1].new, heads[-1].text_place + heads[-1].text_size)
                if heads
                else (pages, text)
            )
            yield self._damaged(run, pages, text, known, min(stop, len(self.urls)))
            pages, text, self.end = known, stop, run[-1].end
        self.urls_end = text

    def _follows(self, head: Head, stretch: Stretch, pages: int, text: int, behind: bool) -> bool:
        """Return whether a frame is possible after ``pages`` pages and ``text`` bytes of URLs, perhaps after damage."""
        if not sound(self.events, np.uint64(stretch.begin), np.uint64(head.first + head.new)):
            return False
        new, size = head.first - pages, head.text_place - text
        if not behind:
            return new == size == 0
        # The damaged bytes are at least an event, and a URL with its newline takes two bytes.
        return 0 <= 2 * new <= size and (new > 0 or size == 0) and head.text_place <= len(self.urls)

    def _damaged(self, run: list[Stretch], pages: int, text: int, known: int, text_end: int) -> _Piece:
        new = known - pages
        lines: list[bytes | None] = [None] * new
        for one in run:
            head = one.head
            if head is not None and pages <= head.first and head.first + head.new <= known:
                self._keep(
                    lines, head.first - pages, head.new, head.text_place, head.text_size, head.text_check
                )
        if len(run) == 1 and run[0].head is None and new and run[0].end - run[0].begin >= HEAD_SIZE:
            # The checksum of the URLs is in the damaged head. It is correct if it equals the checksum of all URLs.
            at = run[0].begin + _TEXT_CHECK
            check = int.from_bytes(self.events[at : at + 4].tobytes(), "little")
            self._keep(lines, 0, new, text, text_end - text, check)
        head = run[0].head if len(run) == 1 else None
        return _Piece(run[0].begin, run[-1].end, head, run[0].fault, pages, new, text, text_end, lines)

    def _keep(self, lines: list[bytes | None], at: int, new: int, place: int, size: int, check: int) -> None:
        """Keep URLs whose checksum is correct."""
        raw = self.urls[place : place + size]
        if not new or len(raw) != size or zlib.crc32(raw.data) != check:
            return
        if text_sound(self.urls, np.uint64(place), np.uint64(place + size), np.uint64(new)):
            lines[at : at + new] = raw.tobytes().split(b"\n")[:-1]


def _report(log: _Log, pieces: Iterator[_Piece]) -> Report:
    pages = events = lost = 0
    damages = []
    for piece in pieces:
        pages, lost = pages + piece.new, lost + (piece.lines or []).count(None)
        if not piece.fault:
            assert piece.head is not None
            events += piece.head.kind != SYNCED
            continue
        kind = KINDS[piece.head.kind] if piece.head is not None and piece.head.kind < len(KINDS) else ""
        in_text = piece.fault == FAULTS[kernels.BAD_URLS]
        place = (URLS, piece.text_place, piece.text_end) if in_text else (EVENTS, piece.begin, piece.end)
        damages.append(Damage(*place, piece.fault, kind, piece.first, piece.new))
        events += in_text
    tail = len(log.events) - log.end + len(log.urls) - log.urls_end
    return Report(pages, events, damages, tail, lost)


def examine(folder: str | os.PathLike[str]) -> Report:
    """Report the damage of a crawl's log. The folder is not changed.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl, or its header or a file cannot be read.
    """
    log = _Log(Path(folder))
    return _report(log, log.pieces())


def repair(folder: str | os.PathLike[str], target: str | os.PathLike[str]) -> Report:
    """Write a copy of a crawl's folder without damaged events, in which every page keeps its number.

    Parameters
    ----------
    folder : path-like
        The crawl's folder. It is not changed.
    target : path-like
        The folder of the copy. It must not exist.

    Returns
    -------
    Report
        The report on the original.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl, or its header or a file cannot be read.
    inlink.errors.OutputError
        If ``target`` exists or cannot be written. Then no files are left.
    """
    log = _Log(Path(folder))
    ranges = [(piece.begin, piece.end) for piece in log.pieces() if piece.fault]
    with new_folder(target) as work:
        copy_beside_log(log.folder, work)
        with (work / EVENTS).open("wb") as events, (work / URLS).open("wb") as urls:
            writer = _Writer(log, events, urls, ranges)
            report = _report(log, writer.written(log.pieces()))
            writer.finish()
    return report


class _Writer:
    """Writes a repaired log."""

    def __init__(self, log: _Log, events: BinaryIO, urls: BinaryIO, ranges: list[tuple[int, int]]) -> None:
        self._log, self._events, self._urls = log, events, urls
        self._begins = np.array([begin for begin, _ in ranges], np.int64)
        self._ends = np.array([end for _, end in ranges], np.int64)
        self._place = self._text = self._pages = 0
        self._time = 0.0
        self._lost: list[int] = []
        self._merged: set[int] = set()
        self._host = f"http://{crawl_folder(log.folder).header.uuid}.invalid/"

    def written(self, pieces: Iterator[_Piece]) -> Iterator[_Piece]:
        """Write each piece, and yield it."""
        for piece in pieces:
            if piece.lines is None:
                text = self._log.urls[piece.text_place : piece.text_end].tobytes()
            else:
                text = b"".join(
                    (f"{self._host}{page}".encode() if line is None else line) + b"\n"
                    for page, line in enumerate(piece.lines, piece.first)
                )
                self._lost += [page for page, line in enumerate(piece.lines, piece.first) if line is None]
            if piece.head is not None and (not piece.fault or piece.fault == FAULTS[kernels.BAD_URLS]):
                self._copy(piece, piece.head, text)
            else:
                self._fill(piece, text)
            yield piece

    def _copy(self, piece: _Piece, head: Head, text: bytes) -> None:
        payload = self._log.events[piece.begin + HEAD_SIZE : piece.end].tobytes()
        if head.kind == VISIT:
            visit = VisitRecord._make(_VISIT.unpack_from(payload))
            row = int(np.searchsorted(self._begins, visit.previous - 1, "right")) - 1
            # The previous visit is one of the damaged events.
            if visit.previous and row >= 0 and visit.previous - 1 < self._ends[row]:
                payload = _VISIT.pack(*visit._replace(previous=0)) + payload[_VISIT.size :]
        elif head.kind == MERGE:
            self._merged.add(head.page)
        self._time = head.time
        self._append(head, payload, text)

    def _fill(self, piece: _Piece, text: bytes) -> None:
        """Replace damaged bytes by repaired events."""
        left, known = piece.end - piece.begin, piece.head
        if left < HEAD_SIZE and piece.end < len(self._log.events):
            raise FolderError(
                f"{self._log.folder / EVENTS}: {left} damaged bytes at byte {piece.begin:,} are too few for an event: "
                "take the crawl's folder from a backup"
            )
        page = known.page if known is not None and (known.page < piece.first or not piece.new) else NO_PAGE
        while left >= HEAD_SIZE:
            size = left if left <= _LONGEST else _LONGEST // 2
            self._mark(REPAIRED, bytes(size - HEAD_SIZE), page=page, text=text, new=piece.new if text else 0)
            left, text = left - size, b""

    def finish(self) -> None:
        """Exclude the pages whose URLs are lost, and record that all is synced up to here."""
        lost = np.array([page for page in self._lost if page not in self._merged], "<u4")
        reason = struct_of(ExcludedRecord).pack(len(LOST_REASON)) + LOST_REASON
        for begin in range(0, len(lost), _AT_ONCE):
            pages = lost[begin : begin + _AT_ONCE]
            self._mark(EXCLUDE, reason + pages.tobytes(), listed=len(pages))
        if self._place:
            self._mark(SYNCED, b"")

    def _mark(
        self,
        kind: int,
        payload: bytes,
        *,
        page: int = NO_PAGE,
        listed: int = 0,
        text: bytes = b"",
        new: int = 0,
    ) -> None:
        head = Head(
            MARKER, 0, 0, self._place, 0, self._time, 0, 0, new, 0, page, listed, 0.0, 0, 0, kind, 0, 0, 0
        )
        self._append(head, payload, text)

    def _append(self, head: Head, payload: bytes, text: bytes) -> None:
        """Write an event unchanged, except for its place and the place of its URLs."""
        head = head._replace(
            length=HEAD_SIZE + len(payload),
            place=self._place,
            text_place=self._text,
            first=self._pages,
            text_size=len(text),
            payload_check=zlib.crc32(payload),
            text_check=zlib.crc32(text),
        )
        checked = CHECKED.pack(*head[:-1])
        self._events.write(checked + zlib.crc32(checked).to_bytes(4, "little") + payload)
        self._urls.write(text)
        self._place, self._text, self._pages = (
            self._place + head.length,
            self._text + len(text),
            self._pages + head.new,
        )
