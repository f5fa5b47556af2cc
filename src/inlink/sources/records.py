"""Records of web archives, WARC and ARC, gzipped or not, damaged or not.

Formats: WARC 1.1 (ISO 28500:2017, https://iipc.github.io/warc-specifications/) and ARC (Internet Archive 1996).
An archive that is gzipped should have each record in a gzip member of its own, and nearly all do; one with all
records in one member, or with members that end where they like, is read as well.

This reader is ours because damage must be seen and told: the readers at hand give a short last record where a
file was cut, and stop where it is damaged in the middle. Here a record counts only when all its bytes are there,
what follows it is the next record or the end, and the checksum of its gzip member is right. After damage,
reading goes on with the next record that can be found.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from isal import igzip_lib

from inlink.base.progress import Task, track
from inlink.errors import FormatError, InputError
from inlink.sources.damage import Tally

__all__ = ["MAX_RECORD", "Record", "archive_start", "records"]

_BadGzipError = cast(type[Exception], igzip_lib.IsalError)  # its stub calls the class an instance

MAX_RECORD = 1 << 28
"""Bytes of a record that are read at most; of a longer one, the beginning."""

MAX_FAULTS = 1000
"""Damaged places after which the rest of a file is left alone."""

_MAX_HEADER = 1 << 16
_BLOCK = 1 << 15  # packed bytes read at once: what follows a member in its block is copied once a member
_PIECE = 1 << 20  # unpacked bytes at once
_PLAIN = 1 << 18
_GZIP = b"\x1f\x8b\x08"
_SEARCH = 1 << 20

_FIELDS = re.compile(
    rb"^(warc-type|warc-target-uri|content-length|content-type|warc-date)[ \t]*:[ \t]*([^\r\n]*)", re.I | re.M
)
_HEADER_END = re.compile(rb"\r?\n\r?\n")
_LINE_END = re.compile(rb"\n")
_WARC = re.compile(rb"WARC/\d")
_ARC = re.compile(rb"[a-zA-Z][a-zA-Z0-9+.-]{1,20}:[^\n]{1,8000} \d{1,15}\r?\n")
_NEXT_WARC = re.compile(rb"\nWARC/\d\.\d{1,2}\r?\n")
_NEXT_ARC = re.compile(
    rb"\n(?=(?:https?|ftp)://[^ \n]{1,4000} [0-9a-fA-F.:]{1,45} [^ \n]{0,40} [^\n]{0,400}\d\r?\n)"
)

CUT = "the file ends inside a record"
CUT_MEMBER = "the file ends inside a gzip member"
BAD_MEMBER = "damaged gzip member"
NO_MEMBER = "bytes between gzip members that are no gzip member"
BAD_LENGTH = "record whose Content-Length is wrong"
BAD_HEADER = "malformed record header"
TOO_MANY = f"more than {MAX_FAULTS:,} damaged places: the rest of the file"
LONG_RECORD = f"rest of a record beyond {MAX_RECORD:,} bytes"


@dataclass(slots=True)
class Record:
    """One whole record.

    Attributes
    ----------
    kind : str
        Its WARC-Type in lower case; for ARC, ``"response"`` where it is an answer by HTTP, else ``"resource"``,
        and ``"warcinfo"`` for the file's own description.
    url : bytes
        Its target, as it stands there.
    content_type : bytes
        Of the record, in lower case: ``application/http; msgtype=response`` and so on.
    date : bytes
        As it stands there.
    body : bytes
        What the record holds, HTTP header included.
    offset : int
        The byte of the file at which the record, or the gzip member that holds it, begins.
    """

    kind: str
    url: bytes
    content_type: bytes
    date: bytes
    body: bytes
    offset: int


class _FaultError(Exception):
    """A damaged place; caught in :func:`records`."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what)
        self.what, self.offset = what, offset


class _Unpacked:
    """The unpacked bytes of a file, piece by piece; knows where gzip members begin and end."""

    def __init__(self, path: Path, task: Task) -> None:
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from None
        self._task = task
        self._block = self._read(_BLOCK)  # read from the file, not yet unpacked
        self._block_at = 0  # where in the file it begins
        self.gzipped = self._block.startswith(_GZIP)
        self._member: igzip_lib.IgzipDecompressor | None = None
        self._member_over = False
        self.offset = 0  # where the gzip member, or a plain file's piece, began

    def close(self) -> None:
        self._file.close()

    def _read(self, size: int) -> bytes:
        data = self._file.read(size)
        self._task.advance(len(data))
        return data

    def _refill(self, size: int = _BLOCK) -> bool:
        self._block_at += len(self._block)
        self._block = self._read(size)
        return bool(self._block)

    def piece(self) -> bytes | None:
        """The next bytes; none of them at the end of a gzip member, and None at the end of the file."""
        if not self.gzipped:
            if not self._block and not self._refill(_PLAIN):
                return None
            data, self.offset = self._block, self._block_at
            self._block, self._block_at = b"", self._block_at + len(data)
            return data
        if self._member_over:
            self._member_over = False
            return b""
        if self._member is None and not self._begin_member():
            return None
        member = self._member
        assert member is not None
        while True:
            data = b""
            if member.needs_input:
                if not self._block and not self._refill():
                    raise _FaultError(CUT_MEMBER, self.offset)
                data, self._block, self._block_at = self._block, b"", self._block_at + len(self._block)
            try:
                data = member.decompress(data, _PIECE)
            except _BadGzipError:
                raise _FaultError(BAD_MEMBER, self.offset) from None
            if member.eof:  # the checksum was right
                self._block = member.unused_data
                self._block_at -= len(self._block)
                self._member, self._member_over = None, bool(data)
                return data
            if data:
                return data

    def _begin_member(self) -> bool:
        while True:
            rest = self._block.lstrip(b"\0")  # some writers pad
            self._block_at += len(self._block) - len(rest)
            self._block = rest
            if rest:
                break
            if not self._refill():
                return False
        if len(self._block) < len(_GZIP):
            self._block += self._read(_BLOCK)
        self.offset = self._block_at
        if not self._block.startswith(_GZIP):
            raise _FaultError(CUT_MEMBER if _GZIP.startswith(self._block) else NO_MEMBER, self.offset)
        self._member = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
        return True

    def resync(self, limit: int | None = None) -> bool:
        """After a fault, go on with the next gzip member that begins with a record; False if there is none."""
        at = self.offset + 1  # where in the file the window begins
        end = None if limit is None else at + limit
        self._file.seek(at)
        self._block, self._member, self._member_over = b"", None, False
        window = self._file.read(_SEARCH + _BLOCK)
        while window and (end is None or at < end):
            found = window.find(_GZIP)
            while 0 <= found < _SEARCH:
                member = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
                try:
                    start = member.decompress(window[found : found + _BLOCK], 1 << 14)
                except _BadGzipError:
                    start = b""
                if _begins_record(start.lstrip(b"\r\n")):
                    self._file.seek(at + found)
                    self._block_at, self.gzipped = at + found, True
                    return True
                found = window.find(_GZIP, found + 1)
            at += _SEARCH
            window = window[_SEARCH:] + self._file.read(_SEARCH)
        return False


def _begins_record(data: bytes) -> bool:
    return bool(_WARC.match(data) or _ARC.match(data))


class _Reader:
    """Cuts unpacked bytes into records."""

    def __init__(self, source: _Unpacked) -> None:
        self.source = source
        self.buffer, self.at = b"", 0  # what is unpacked, and how much of it is used up
        self.unpacked = 0  # how many bytes were unpacked in all
        self.at_end = False
        self.at_next = False  # a record begins where another one was not yet over
        self.arc = False

    def offset(self) -> int:
        """Where in the file the next byte is, or the gzip member that holds it."""
        return self.source.offset if self.source.gzipped else self.unpacked - len(self.buffer) + self.at

    def pull(self) -> bytes:
        """The next piece of the same gzip member; none at its end."""
        piece = self.source.piece()
        if piece is None:
            self.at_end = True
            return b""
        self.unpacked += len(piece)
        return piece

    def fill(self) -> bool:
        """Unpack some more; False at the end of a gzip member or of the file."""
        piece = self.pull()
        self.buffer = self.buffer[self.at :] + piece
        self.at = 0
        return bool(piece)

    def pull_across(self) -> bytes:
        """The next piece, of the next gzip member if need be; none where that begins another record."""
        piece = self.pull()
        if not piece and not self.at_end:
            piece = self.pull()
            if _begins_record(piece):
                self.buffer, self.at, self.at_next = piece, 0, True
                return b""
        return piece

    def begin(self) -> bool:
        """Go to the first byte of the next record; False if there is none."""
        while True:
            while self.at < len(self.buffer) and self.buffer[self.at] in b"\r\n":
                self.at += 1
            if self.at < len(self.buffer):
                return True
            if not self.fill() and self.at_end:
                return False

    def record(self) -> tuple[Record, bool]:
        """The record that begins here, and whether it was too long to be read whole."""
        offset = self.offset()
        end = _LINE_END if self.arc else _HEADER_END
        while True:
            found = end.search(self.buffer, self.at, self.at + _MAX_HEADER)
            if found:
                break
            if len(self.buffer) - self.at >= _MAX_HEADER:
                raise _FaultError(BAD_HEADER, offset)
            piece = self.pull_across()
            if not piece:
                raise _FaultError(CUT if self.at_end else BAD_HEADER, offset)
            self.buffer, self.at = self.buffer[self.at :] + piece, 0
        header = self.buffer[self.at : found.end()]
        record, length = (_arc_header if self.arc else _warc_header)(header, offset)
        self.at = found.end()
        kept = min(length, MAX_RECORD)
        record.body = self.take(kept, offset)
        self.leave(length - kept, offset)
        self.check_end(record, offset)
        return record, kept < length

    def take(self, length: int, offset: int) -> bytes:
        """So many bytes of a record."""
        have = len(self.buffer) - self.at
        if have < length:
            parts = [self.buffer[self.at :]]
            self.buffer, self.at = b"", 0
            while have < length:
                piece = self.pull_across()
                if not piece:
                    if self.at_end:
                        self.buffer = b"".join(parts)  # another record may be in there
                    raise _FaultError(CUT if self.at_end else BAD_LENGTH, offset)
                parts.append(piece)
                have += len(piece)
            self.buffer = b"".join(parts)
        data = self.buffer[self.at : self.at + length]
        self.at += length
        return data

    def leave(self, length: int, offset: int) -> None:
        """Pass over so many bytes of a record."""
        while length > 0:
            here = min(length, len(self.buffer) - self.at)
            self.at += here
            length -= here
            if length:
                piece = self.pull_across()
                if not piece:
                    raise _FaultError(CUT if self.at_end else BAD_LENGTH, offset)
                self.buffer, self.at = piece, 0

    def check_end(self, record: Record, offset: int) -> None:
        """See that another record follows, or the end of the gzip member with its checksum right, or of the file."""
        while True:
            while self.at < len(self.buffer) and self.buffer[self.at] in b"\r\n":
                self.at += 1
            rest = self.buffer[self.at : self.at + 10000]
            if len(rest) == 10000 or (b"\n" in rest if self.arc else len(rest) > 6):
                break
            if (
                not self.fill()
            ):  # a gzip member may end a few bytes into the next record, which is then looked at
                if not rest or (b"\n" not in rest if self.arc else b"WARC/".startswith(rest[:5])):
                    return
                break
        if (_ARC if self.arc else _WARC).match(rest):
            return
        self.buffer, self.at = record.body + self.buffer[self.at :], 0
        raise _FaultError(BAD_LENGTH, offset)

    def recover(self) -> bool:
        """After a fault, go to the next record that can be found; False if there is none before the end."""
        pattern = _NEXT_ARC if self.arc else _NEXT_WARC
        while True:
            if self.at_next:
                self.at_next = False
                return True
            found = pattern.search(self.buffer, self.at)
            if found:
                self.at = found.start() + 1
                return True
            self.at = max(self.at, len(self.buffer) - 10000)
            if not self.fill():
                if self.at_end:
                    return False
                self.buffer, self.at = b"", 0
                return True  # the next gzip member begins with a record


def _warc_header(header: bytes, offset: int) -> tuple[Record, int]:
    if not _WARC.match(header):
        raise _FaultError(BAD_HEADER, offset)
    fields: dict[bytes, bytes] = {}
    for name, value in _FIELDS.findall(header):
        fields.setdefault(name.lower(), value.strip())
    length = fields.get(b"content-length", b"")
    if not length.isdigit() or len(length) > 18 or b"warc-type" not in fields:
        raise _FaultError(BAD_HEADER, offset)
    url = fields.get(b"warc-target-uri", b"")
    if url.startswith(b"<") and url.endswith(b">"):  # as WARC 1.0 had it by mistake, and Wget wrote it
        url = url[1:-1]
    kind = fields[b"warc-type"].lower().decode("ascii", "replace")
    content_type = fields.get(b"content-type", b"").lower()
    return Record(kind, url, content_type, fields.get(b"warc-date", b""), b"", offset), int(length)


def _arc_header(line: bytes, offset: int) -> tuple[Record, int]:
    """``URL IP-address date type length``; version 2 has five fields more before the length."""
    words = line.split()
    if len(words) < 5 or not words[-1].isdigit() or len(words[-1]) > 18 or not _ARC.match(line):
        raise _FaultError(BAD_HEADER, offset)
    url = words[0] if len(words) == 10 else b" ".join(words[:-4])  # old URLs have spaces in them
    kind = "warcinfo" if url.startswith(b"filedesc:") else "resource"
    if url[:5].lower().startswith(b"http"):
        kind = "response"
    return Record(kind, url, b"application/http; msgtype=response", b"", b"", offset), int(words[-1])


def records(path: str | os.PathLike[str], tally: Tally) -> Iterator[Record]:
    """The whole records of an archive, in order; damaged ones are counted and left out.

    Parameters
    ----------
    path : path-like
        A WARC or ARC file, gzipped or not; what is in it counts, not its name.
    tally : Tally
        Counts records and damage; where it is strict, damage is an error.

    Yields
    ------
    Record

    Raises
    ------
    inlink.errors.FormatError
        If the file is no archive.
    inlink.errors.DamageError
        If something is damaged and the tally is strict.
    inlink.errors.InputError
        If the file cannot be read.
    """
    file = Path(path)
    try:
        size = file.stat().st_size
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    with track(f"reading {file.name}", size, "B") as task:
        source = _Unpacked(file, task)
        try:
            yield from _records(file, source, tally)
        except OSError as error:
            raise InputError(f"{file}: cannot be read ({error.strerror})") from None
        finally:
            source.close()


def archive_start(path: str | os.PathLike[str]) -> Literal["warc", "arc"] | None:
    """Which kind of record a file begins with, unpacked if need be; None if with none.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read.
    """
    source = _Unpacked(Path(path), Task(""))
    try:
        start = (source.piece() or b"").lstrip(b"\r\n")
    except _FaultError:
        return None
    finally:
        source.close()
    return "warc" if _WARC.match(start) else "arc" if _ARC.match(start) else None


def _recognise(path: Path, reader: _Reader) -> None:
    """See whether the first record is one of WARC or of ARC."""
    while len(reader.buffer) < 10000 and b"\n" not in reader.buffer[reader.at :] and not reader.at_end:
        reader.fill()
    start = reader.buffer[reader.at : reader.at + 10000]
    if _WARC.match(start):
        return
    if _ARC.match(start):
        reader.arc = True
    elif _NEXT_WARC.search(reader.buffer):
        raise _FaultError(BAD_HEADER, reader.offset())
    elif not reader.source.gzipped and reader.source.resync(_SEARCH):
        raise _FaultError(NO_MEMBER, 0)
    else:
        raise FormatError(f"{path} is no web archive: it begins with no record of WARC or ARC")


def _records(path: Path, source: _Unpacked, tally: Tally) -> Iterator[Record]:
    reader = _Reader(source)
    faults = 0
    first = True
    while True:
        try:
            if not reader.begin():
                break
            if first:
                _recognise(path, reader)
                first = False
            record, too_long = reader.record()
        except _FaultError as fault:
            faults += 1
            what = fault.what
            if what in (CUT_MEMBER, BAD_MEMBER, NO_MEMBER):
                reader.buffer, reader.at = b"", 0
                more = source.resync()
                if more and what == CUT_MEMBER:
                    what = BAD_MEMBER
            else:
                try:
                    more = reader.recover()
                except _FaultError:
                    reader.buffer, reader.at = b"", 0
                    more = source.resync()
                if more and what == CUT:
                    what = BAD_LENGTH
            reader.at_end = False
            tally.damage(path, fault.offset, what)
            if not more:
                break
            if faults >= MAX_FAULTS:
                tally.damage(path, fault.offset, TOO_MANY)
                break
            continue
        tally.records += 1
        if too_long:
            tally.skip(path, record.offset, LONG_RECORD)
        yield record
    if first and not faults:
        raise FormatError(f"{path} is no web archive: it is empty")
