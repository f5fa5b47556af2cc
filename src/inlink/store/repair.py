"""Repair a damaged log: report its damage, or write a sound copy in which every page keeps its number.

Each head names its own place in the log. So every sound event is found, wherever its bytes are now, and the copy has it
at its place again. A *repaired* event of zeros fills each gap, and makes the same pages known. So numbers of pages and
leases, and places in the log, stay valid. URLs with a correct checksum stay, wherever they are in urls.txt. All other
URLs are lost. Each is replaced by a unique URL under ``.invalid``, a domain that never exists (RFC 2606), with
the crawl's uuid as its host. Pages with lost URLs are excluded.
"""

import logging
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from inlink.base.arrays import slices
from inlink.base.folder import new_folder
from inlink.errors import FolderError
from inlink.store.backup import copy_beside_log
from inlink.store.checks import FAULTS, no_end, safe_from_the_start
from inlink.store.format import (
    EXCLUDE,
    HEAD_SIZE,
    KINDS,
    MERGE,
    NO_PAGE,
    REPAIRED,
    SYNCED,
    VISIT,
    ExcludedRecord,
    Head,
    VisitRecord,
    salt_of,
    struct_of,
)
from inlink.store.frames import fields_at
from inlink.store.kernels import checks as kernels
from inlink.store.kernels.sound import sound, text_sound
from inlink.store.log import EVENTS, URLS, ends_in
from inlink.store.mapped import mapped
from inlink.store.newlog import EMPTY, NewLog
from inlink.store.reader import crawl_folder, hash_seed_of

_HEAD, _VISIT = struct_of(Head), struct_of(VisitRecord)
_log = logging.getLogger("inlink.crawl")
_LONGEST = 1 << 30
_LARGEST_GAP = 1 << 36
"""Maximum number of missing bytes that are filled with zeros."""
_AT_ONCE = 1 << 20
"""Maximum number of pages that one event excludes."""
_SEARCHES, _CANDIDATES = 100, 10_000
"""How often lost URLs are searched for in all of urls.txt without success, and how many places are tried each time."""
LOST_REASON = b"repair: the URL was lost"
_TEXT_CHECK = HEAD_SIZE - 8
_BAD_URLS = FAULTS[kernels.BAD_URLS]
_KNOWN = (FAULTS[kernels.BAD_PAYLOAD], FAULTS[kernels.CUT], _BAD_URLS)
"""Faults of frames whose heads are sound and have possible values."""
_ELSEWHERE, _MISSING = "events are not at their places", "events are missing here"
_URLS_ELSEWHERE = "the URLs are not at their places"


class Damage(NamedTuple):
    """Damaged bytes of a file.

    Attributes
    ----------
    file : str
        ``events.log`` or ``urls.txt``.
    begin, end : int
        First byte, and the byte after the last. They are equal where bytes are missing.
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


class LogReport(NamedTuple):
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
    """A sound event, or damage, and the URLs for the repaired log.

    ``begin`` and ``end`` are places in the repaired log, ``at`` and ``at_end`` bytes of the file. The pages from
    ``first`` on became known there. Their URLs are now in bytes ``text_place`` … ``text_end`` - 1 of urls.txt. If
    ``lines`` is not None, it has these URLs instead, with None for a lost one. ``kept`` is True for a sound event.
    """

    begin: int
    end: int
    at: int
    at_end: int
    head: Head | None
    fault: str
    first: int
    new: int
    text_place: int
    text_end: int
    lines: list[bytes | None] | None
    kept: bool


class _Log:
    """A log that is checked from front to back."""

    def __init__(self, folder: Path) -> None:
        self.salt = salt_of(hash_seed_of(folder))
        self.folder = folder
        ends = ends_in(folder)
        if not ends:
            _log.warning("%s", no_end(folder))
        self.events, self.urls = mapped(folder / EVENTS), mapped(folder / URLS)
        self._safe = safe_from_the_start(folder, self.events, self.salt)
        # What end.bin says of the end that is missing.
        self._known = ends[0] if ends and ends[0].events_end == self._safe else None
        self.tail = 0
        # The first bytes of the lines of urls.txt, once they are needed, and by how many bytes URLs are moved.
        self._line_begins: npt.NDArray[np.int64] | None = None
        self._shift, self._searches = 0, _SEARCHES

    def _frames(self) -> Iterator[tuple[int, Head, str]]:
        """Yield the first byte, the head and the fault of each frame with a sound head, by the place in its head."""
        salt, parts, begin = np.uint64(self.salt), [np.empty(0, np.uint64)], np.uint64(0)
        while begin < len(self.events):
            out = np.empty(_AT_ONCE, np.uint64)
            count, begin = kernels.head_places(self.events, begin, salt, out)
            parts.append(out[: int(count)])
        begins = np.concatenate(parts)
        places = fields_at(self.events, begins, Head, "place")
        for at in begins[np.argsort(places, kind="stable")].tolist():
            fault = int(kernels.fault_at(self.events, self.urls, np.uint64(at), np.uint64(0), salt))
            yield at, Head._make(_HEAD.unpack_from(self.events.data, at)), FAULTS[fault]

    def pieces(self) -> Iterator[_Piece]:
        """Yield its pieces up to a torn tail, whose number of bytes is then ``tail``."""
        end = at_end = pages = text = 0
        run: list[tuple[int, Head, str]] = []
        self._shift = 0
        for at, head, fault in self._frames():
            if fault not in ("", _BAD_URLS) or not self._follows(head, at, end, pages, text):
                run.append((at, head, fault or FAULTS[kernels.OUT_OF_ORDER]))
                continue
            if head.place != end or at != at_end:
                if end >= self._safe and not _wild(run):
                    run = []
                    break
                yield self._damaged(
                    run, (end, head.place), (at_end, at), (pages, head.first), (text, head.text_place)
                )
            run = []
            shift, text_at = self._shift, head.text_place
            lines: list[bytes | None] | None = None
            if fault:
                found = self._text_at(head.text_place, head.text_size, head.new, head.text_check)
                if found is None:
                    lines = [None] * head.new
                else:
                    text_at = found
                fault = _BAD_URLS if found is None else "" if self._shift == shift else _URLS_ELSEWHERE
            end, at_end = head.place + head.length, at + head.length
            pages, text = head.first + head.new, head.text_place + head.text_size
            yield _Piece(
                head.place, end, at, at_end, head, fault, head.first, head.new, text_at, text_at + head.text_size,
                lines, True,
            )  # fmt: skip
        stop = len(self.events)
        if end < self._safe or _wild(run):
            known, text_end = pages, text
            for _, head, fault in run:
                if fault in _KNOWN and head.first >= pages:
                    known, text_end = head.first + head.new, head.text_place + head.text_size
            if self._known is not None and self._known.pages >= known and self._known.urls_end >= text_end:
                known, text_end = self._known.pages, self._known.urls_end
            # A URL and its newline are two bytes at least.
            if not 0 <= 2 * (known - pages) <= min(text_end, len(self.urls)) - text:
                known, text_end = pages, text
            places = end, max(self._safe, end + (stop - at_end if _wild(run) else 0))
            yield self._damaged(run, places, (at_end, stop), (pages, known), (text, text_end))
            at_end, text = stop, text_end
        self.tail = max(stop - at_end, 0) + max(len(self.urls) - text - self._shift, 0)

    def _follows(self, head: Head, at: int, end: int, pages: int, text: int) -> bool:
        """Return whether a frame is possible after byte ``end``, ``pages`` pages and ``text`` bytes of URLs."""
        new, size, gap = head.first - pages, head.text_place - text, head.place - end
        if not sound(self.events, np.uint64(at), np.uint64(head.first + head.new)):
            return False
        if gap == 0:
            return new == size == 0
        # The gap was an event at least. Each new page took a byte there, and two bytes with the newline of its URL.
        return (
            HEAD_SIZE <= gap <= _LARGEST_GAP
            and 0 <= 2 * new <= size
            and (new > 0 or size == 0)
            and new <= gap
        )

    def _damaged(
        self,
        run: list[tuple[int, Head, str]],
        places: tuple[int, int],
        bytes_: tuple[int, int],
        pages: tuple[int, int],
        text: tuple[int, int],
    ) -> _Piece:
        """Make the piece for a gap, from the frames in it whose heads are sound."""
        (begin, end), (at, at_end), (first, known) = places, bytes_, pages
        lines: list[bytes | None] = [None] * (known - first)
        for _, head, fault in run:
            if fault in _KNOWN and first <= head.first and head.first + head.new <= known:
                self._keep(
                    lines, head.first - first, head.text_place, head.text_size, head.new, head.text_check
                )
        if None in lines and not run and at_end - at >= HEAD_SIZE:
            # The checksum of the URLs is in the damaged head. It is correct if it equals the checksum of all URLs.
            check = int.from_bytes(self.events[at + _TEXT_CHECK : at + _TEXT_CHECK + 4].tobytes(), "little")
            self._keep(lines, 0, text[0], text[1] - text[0], known - first, check)
        if self._known is not None and end == self._safe and None in lines:
            # The end of the log is missing, and end.bin says how many URLs it made known.
            here, stop = (min(byte + self._shift, len(self.urls)) for byte in text)
            if text_sound(self.urls, np.uint64(here), np.uint64(stop), np.uint64(len(lines))):
                there = self.urls[here:stop].tobytes().split(b"\n")[:-1]
                lines = [other if line is None else line for line, other in zip(lines, there, strict=True)]
        heads = [head for _, head, fault in run if fault in _KNOWN]
        only = heads[0] if len(heads) == len(run) == 1 and heads[0].length == end - begin else None
        if run:
            fault = run[0][2]
        elif at_end > at:
            fault = FAULTS[
                kernels.CUT if at_end - at < HEAD_SIZE and at_end == len(self.events) else kernels.BAD_HEAD
            ]
        else:
            fault = _ELSEWHERE if at_end < at else _MISSING
        return _Piece(begin, end, at, max(at, at_end), only, fault, first, known - first, *text, lines, False)

    def _keep(self, lines: list[bytes | None], row: int, place: int, size: int, new: int, check: int) -> None:
        """Keep URLs whose checksum is correct."""
        at = self._text_at(place, size, new, check) if new else None
        if at is not None:
            lines[row : row + new] = self.urls[at : at + size].tobytes().split(b"\n")[:-1]

    def _text_at(self, place: int, size: int, new: int, check: int) -> int | None:
        """Return the byte of urls.txt at which the URLs of an event are now; None if they are lost."""
        for at in (place, place + self._shift):
            if self._is_text(at, size, new, check):
                self._shift = at - place
                return at
        if not self._searches:
            return None
        if self._line_begins is None:
            self._line_begins = np.append(0, np.flatnonzero(self.urls == 10) + 1)
        begins = self._line_begins
        # The text ends after a line, and begins within the line whose number is smaller by the number of URLs.
        places = begins[new:] - size
        places = places[(begins[: len(places)] <= places) & (places < begins[1 : len(places) + 1])]
        for at in places[np.argsort(abs(places - place - self._shift))][:_CANDIDATES].tolist():
            if self._is_text(at, size, new, check):
                self._shift = at - place
                return int(at)
        self._searches -= 1
        return None

    def _is_text(self, at: int, size: int, new: int, check: int) -> bool:
        return (
            0 <= at <= at + size <= len(self.urls)
            and zlib.crc32(self.urls[at : at + size].data) == check
            and text_sound(self.urls, np.uint64(at), np.uint64(at + size), np.uint64(new))
        )


def _wild(run: list[tuple[int, Head, str]]) -> bool:
    """Return whether a frame has impossible values. A power cut cannot leave them."""
    return any(fault == FAULTS[kernels.WILD] for _, _, fault in run)


def _report(log: _Log, pieces: Iterator[_Piece]) -> LogReport:
    pages = events = lost = 0
    damages = []
    for piece in pieces:
        pages, lost = pages + piece.new, lost + (piece.lines or []).count(None)
        events += piece.kept and piece.head is not None and piece.head.kind != SYNCED
        if not piece.fault:
            continue
        kind = KINDS[piece.head.kind] if piece.head is not None and piece.head.kind < len(KINDS) else ""
        place = (URLS, piece.text_place, piece.text_end) if piece.kept else (EVENTS, piece.at, piece.at_end)
        damages.append(Damage(*place, piece.fault, kind, piece.first, piece.new))
    return LogReport(pages, events, damages, log.tail, lost)


def examine(folder: str | os.PathLike[str]) -> LogReport:
    """Report the damage of a crawl's log. The folder is not changed.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl, or its header or a file cannot be read.
    """
    log = _Log(Path(folder))
    return _report(log, log.pieces())


def repair(folder: str | os.PathLike[str], target: str | os.PathLike[str]) -> LogReport:
    """Write a copy of a crawl's folder without damaged events, in which every page keeps its number.

    Parameters
    ----------
    folder : path-like
        The crawl's folder. It is not changed.
    target : path-like
        The folder of the copy. It must not exist.

    Returns
    -------
    LogReport
        The report on the original.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl, or its header or a file cannot be read.
    inlink.errors.OutputError
        If ``target`` exists or cannot be written. Then no files are left.
    """
    log = _Log(Path(folder))
    ranges = [(piece.begin, piece.end) for piece in log.pieces() if not piece.kept]
    with new_folder(target) as work:
        copy_beside_log(log.folder, work)
        with NewLog(work, log.salt) as out:
            writer = _Writer(log, out, ranges)
            report = _report(log, writer.written(log.pieces()))
            writer.finish()
    return report


class _Writer:
    """Writes a repaired log."""

    def __init__(self, log: _Log, out: NewLog, ranges: list[tuple[int, int]]) -> None:
        self._log, self._out = log, out
        self._begins = np.array([begin for begin, _ in ranges], np.int64)
        self._ends = np.array([end for _, end in ranges], np.int64)
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
            if piece.kept and piece.head is not None:
                self._copy(piece, piece.head, text)
            else:
                self._fill(piece, text)
            yield piece

    def _copy(self, piece: _Piece, head: Head, text: bytes) -> None:
        payload = self._log.events[piece.at + HEAD_SIZE : piece.at_end].tobytes()
        if head.kind == VISIT:
            visit = VisitRecord._make(_VISIT.unpack_from(payload))
            row = int(np.searchsorted(self._begins, visit.previous - 1, "right")) - 1
            # The previous visit is one of the damaged events.
            if visit.previous and row >= 0 and visit.previous - 1 < self._ends[row]:
                payload = _VISIT.pack(*visit._replace(previous=0)) + payload[_VISIT.size :]
        elif head.kind == MERGE:
            self._merged.add(head.page)
        self._out.append(head, payload, text)

    def _fill(self, piece: _Piece, text: bytes) -> None:
        """Fill a gap with repaired events."""
        left, known = piece.end - piece.begin, piece.head
        if left > _LARGEST_GAP:
            raise FolderError(
                f"{self._log.folder / EVENTS}: {left:,} bytes are missing: take the crawl's folder from a backup"
            )
        if text:
            left = max(left, HEAD_SIZE)
        page = known.page if known is not None and (known.page < piece.first or not piece.new) else NO_PAGE
        while left >= HEAD_SIZE:
            size = left if left <= _LONGEST else _LONGEST // 2
            self._mark(REPAIRED, bytes(size - HEAD_SIZE), page=page, text=text, new=piece.new if text else 0)
            left, text = left - size, b""

    def finish(self) -> None:
        """Exclude the pages whose URLs are lost, and record that all is synced up to here."""
        lost = np.array([page for page in self._lost if page not in self._merged], "<u4")
        reason = struct_of(ExcludedRecord).pack(len(LOST_REASON)) + LOST_REASON
        for part in slices(len(lost), _AT_ONCE):
            pages = lost[part]
            self._mark(EXCLUDE, reason + pages.tobytes(), listed=len(pages))
        self._out.finish()

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
        head = EMPTY._replace(kind=kind, time=self._out.time, page=page, listed=listed, new=new)
        self._out.append(head, payload, text)
