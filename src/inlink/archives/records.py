"""Records of web archives, WARC and ARC, gzipped or not, damaged or not.

Formats: WARC 1.1 (ISO 28500:2017, https://iipc.github.io/warc-specifications/) and ARC (Internet Archive 1996).
A gzipped archive should have each record in its own gzip member, and nearly all do. Archives with all records in one
member, or with members that end anywhere, are read as well.

Other readers return a short last record where a file is truncated, and stop at damage in the middle. Here a record
counts only if all its bytes are there, another record or the end follows, and the checksum of its gzip member is right.
After damage, reading continues with the next record that can be found.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal, cast, overload

from isal import igzip_lib

from inlink.archives.streams import KEPT, Readable, Rewindable, name_of
from inlink.base.damage import Tally
from inlink.base.progress import track
from inlink.errors import FormatError

# The stub of isal calls the class an instance.
_BadGzipError = cast(type[Exception], igzip_lib.IsalError)

MAX_RECORD = 1 << 28
"""The largest number of bytes of a record that are read. Of a longer record, only the beginning is read."""

MAX_FAULTS = 1000
"""Number of damaged places after which the rest of a file is not read."""

_MAX_HEADER = 1 << 16
# Number of compressed bytes that are read at a time. The bytes behind a member in its block are copied once per member.
_BLOCK = 1 << 15
# Number of uncompressed bytes of a piece.
_PIECE = 1 << 20
_PLAIN = 1 << 18
# Stop unpacking ahead after this number of members, or when they have this number of uncompressed bytes.
_AHEAD, _AHEAD_BYTES = 1 << 12, 1 << 19
_GZIP = b"\x1f\x8b\x08"
_SEARCH = 1 << 20

_HEADER_END = re.compile(rb"\r?\n\r?\n")
_LINE_END = re.compile(rb"\n")
_NEXT_WARC = re.compile(rb"\nWARC/\d\.\d{1,2}\r?\n")
_NEXT_ARC = re.compile(
    rb"\n(?=(?:https?|ftp)://[^ \n]{1,4000} [0-9a-fA-F.:]{1,45} [^ \n]{0,40} [^\n]{0,400}\d\r?\n)"
)

CUT = "file ends inside a record"
CUT_MEMBER = "file ends inside a gzip member"
BAD_MEMBER = "damaged gzip member"
NO_MEMBER = "bytes between gzip members that are not gzip"
BAD_LENGTH = "record with a wrong Content-Length"
NO_RECORD = "place without a whole record"
TOO_MANY = f"rest of a file after {MAX_FAULTS:,} damaged places"
LONG_RECORD = f"rest of a record beyond {MAX_RECORD:,} bytes"


WARC = re.compile(rb"WARC/\d")
ARC = re.compile(rb"[a-zA-Z][a-zA-Z0-9+.-]{1,20}:[^\n]{1,8000} \d{1,15}\r?\n")
_FIELDS = re.compile(
    rb"^(warc-type|warc-target-uri|content-length|content-type|warc-date|warc-payload-digest)[ \t]*:[ \t]*([^\r\n]*)",
    re.I | re.M,
)
BAD_HEADER = "malformed record header"


@dataclass(slots=True)
class Record:
    """A complete record.

    Attributes
    ----------
    kind : str
        The WARC-Type in lower case. For ARC: ``"response"`` for an HTTP response, ``"warcinfo"`` for the description
        of the file, else ``"resource"``.
    url : bytes
        The target URI, as written.
    content_type : bytes
        Content type of the record in lower case, such as ``application/http; msgtype=response``.
    date : bytes
        The WARC-Date, or ARC's 14 digits, as written.
    body : bytes
        The content of the record, including the HTTP header.
    offset : int
        Byte offset of the record, or of the gzip member that holds it.
    digest : bytes
        The WARC-Payload-Digest, as written; empty if there is none.
    """

    kind: str
    url: bytes
    content_type: bytes
    date: bytes
    body: bytes
    offset: int
    digest: bytes = b""

    @property
    def is_json(self) -> bool:
        """Whether the record holds JSON, as those of WAT archives do."""
        return self.kind == "metadata" and self.content_type.startswith(b"application/json")


@dataclass(slots=True)
class Members:
    """Consecutive intact gzip members, unpacked.

    Attributes
    ----------
    data : bytes
        The unpacked bytes of all members.
    ends : list of int
        The end of each member in `data`.
    offsets : list of int
        The byte offset of each member in the archive.
    used : int
        The number of members that were read, which the consumer sets. The next member is then read as a single record.
    """

    data: bytes
    ends: list[int]
    offsets: list[int]
    used: int = 0


class FaultError(Exception):
    """A damaged place. Caught in :func:`_records`."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what)
        self.what, self.offset = what, offset


def warc_header(header: bytes, offset: int) -> tuple[Record, int]:
    """Read the header of a WARC record: the record without its body, and the length of the body."""
    if not WARC.match(header):
        raise FaultError(BAD_HEADER, offset)
    fields: dict[bytes, bytes] = {}
    for name, value in _FIELDS.findall(header):
        fields.setdefault(name.lower(), value.strip())
    length = fields.get(b"content-length", b"")
    if not length.isdigit() or len(length) > 18 or b"warc-type" not in fields:
        raise FaultError(BAD_HEADER, offset)
    url = fields.get(b"warc-target-uri", b"")
    # WARC 1.0 prescribed the brackets by mistake, and Wget writes them.
    if url.startswith(b"<") and url.endswith(b">"):
        url = url[1:-1]
    kind = fields[b"warc-type"].lower().decode("ascii", "replace")
    content_type = fields.get(b"content-type", b"").lower()
    date, digest = fields.get(b"warc-date", b""), fields.get(b"warc-payload-digest", b"")
    return Record(kind, url, content_type, date, b"", offset, digest), int(length)


def arc_header(line: bytes, offset: int) -> tuple[Record, int]:
    """Read ``URL IP-address date type length``. Version 2 has five more fields before the length."""
    words = line.split()
    if len(words) < 5 or not words[-1].isdigit() or len(words[-1]) > 18 or not ARC.match(line):
        raise FaultError(BAD_HEADER, offset)
    # Old URLs may contain spaces.
    url, date = (words[0], words[2]) if len(words) == 10 else (b" ".join(words[:-4]), words[-3])
    kind = "warcinfo" if url.startswith(b"filedesc:") else "resource"
    if url[:5].lower().startswith(b"http"):
        kind = "response"
    return Record(kind, url, b"application/http; msgtype=response", date, b"", offset), int(words[-1])


class _Unpacked:
    """The unpacked bytes of a stream, piece by piece, with the places where gzip members begin and end."""

    def __init__(self, source: Rewindable) -> None:
        self._source = source
        # Bytes that were read from the stream and are not unpacked yet.
        self._block = source.read(_BLOCK)
        # The place of the block in the stream.
        self._block_at = 0
        self.gzipped = self._block.startswith(_GZIP)
        self._member: igzip_lib.IgzipDecompressor | None = None
        self.member_over = False
        # The place where the gzip member, or the piece of a plain stream, begins.
        self.offset = 0

    def _refill(self, size: int = _BLOCK) -> bool:
        """Read the next block, and return whether it has any bytes. The present block must be empty."""
        self._block = self._source.read(size)
        return bool(self._block)

    def piece(self) -> bytes | None:
        """Return the next bytes; empty at the end of a gzip member, None at the end of the stream."""
        if not self.gzipped:
            if not self._block and not self._refill(_PLAIN):
                return None
            data, self.offset = self._block, self._block_at
            self._source.forget(self.offset)
            self._block, self._block_at = b"", self._block_at + len(data)
            return data
        if self.member_over:
            self.member_over = False
            return b""
        if self._member is None and not self._begin_member():
            return None
        member = self._member
        assert member is not None
        while True:
            data = b""
            if member.needs_input:
                if not self._block and not self._refill():
                    raise FaultError(CUT_MEMBER, self.offset)
                data, self._block, self._block_at = self._block, b"", self._block_at + len(self._block)
            try:
                data = member.decompress(data, _PIECE)
            except _BadGzipError:
                raise FaultError(BAD_MEMBER, self.offset) from None
            # At the end of a member, its checksum was right.
            if member.eof:
                self._block = member.unused_data
                self._block_at -= len(self._block)
                self._member, self.member_over = None, bool(data)
                return data
            if data:
                return data

    def members(self, most: int) -> Members | None:
        """Return up to `most` of the next gzip members. None if the next one is damaged, or longer than a piece."""
        source, block, at = self._source, self._block, self._block_at
        parts: list[bytes] = []
        ends: list[int] = []
        offsets: list[int] = []
        size = 0
        source.forget(at)
        # The consumer may return to the first member, and the source keeps only the last `KEPT` packed bytes.
        while len(parts) < most and size < _AHEAD_BYTES and at - self._block_at < KEPT // 4:
            if len(block) < len(_GZIP):
                block += source.read(_BLOCK)
            if not block.startswith(_GZIP):
                break
            offset, member = at, igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
            try:
                data = member.decompress(block, _PIECE)
                while not member.eof and len(data) < _PIECE:
                    part = b""
                    if member.needs_input:
                        at += len(block)
                        part = block = source.read(_BLOCK)
                        if not part or at - offset > KEPT // 4:
                            break
                    data += member.decompress(part, _PIECE)
                whole = member.eof
            except _BadGzipError:
                whole = False
            if not whole:
                at, block = source.rewind(offset), b""
                break
            rest = member.unused_data
            at, block = at + len(block) - len(rest), rest
            size += len(data)
            parts.append(data)
            ends.append(size)
            offsets.append(offset)
        self._block, self._block_at = block, at
        return Members(b"".join(parts), ends, offsets) if parts else None

    def between_members(self) -> bool:
        """Return whether a gzip member was read to its end, and nothing of the next one."""
        return self.gzipped and self._member is None and not self.member_over

    def go_back(self, place: int) -> None:
        """Go back to the beginning of a gzip member that :meth:`members` returned last."""
        self._block, self._block_at = b"", self._source.rewind(place)

    def _begin_member(self) -> bool:
        while True:
            # Some writers pad with null bytes.
            rest = self._block.lstrip(b"\0")
            self._block_at += len(self._block) - len(rest)
            self._block = rest
            if rest:
                break
            if not self._refill():
                return False
        if len(self._block) < len(_GZIP):
            self._block += self._source.read(_BLOCK)
        self.offset = self._block_at
        self._source.forget(self.offset)
        if not self._block.startswith(_GZIP):
            raise FaultError(CUT_MEMBER if _GZIP.startswith(self._block) else NO_MEMBER, self.offset)
        self._member = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
        return True

    def resync(self, limit: int | None = None) -> bool:
        """After a fault, go to the next gzip member that begins with a record. Return False if there is none."""
        # The window begins here.
        at = self._source.rewind(self.offset + 1)
        end = None if limit is None else at + limit
        self._block, self._member, self.member_over = b"", None, False
        window = self._source.read(_SEARCH + _BLOCK)
        while window and (end is None or at < end):
            place = window.find(_GZIP)
            while 0 <= place < _SEARCH:
                member = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
                try:
                    start = member.decompress(window[place : place + _BLOCK], 1 << 14)
                except _BadGzipError:
                    start = b""
                if _begins_record(start.lstrip(b"\r\n")):
                    self._block_at, self.gzipped = self._source.rewind(at + place), True
                    return True
                place = window.find(_GZIP, place + 1)
            at += _SEARCH
            self._source.forget(at)
            window = window[_SEARCH:] + self._source.read(_SEARCH)
        return False


def _begins_record(data: bytes) -> bool:
    return bool(WARC.match(data) or ARC.match(data))


class _Reader:
    """Cuts uncompressed bytes into records."""

    def __init__(self, source: _Unpacked) -> None:
        self.source = source
        # Uncompressed bytes, and the number of them that are used.
        self.buffer, self.at = b"", 0
        # Number of bytes that were uncompressed so far.
        self.unpacked = 0
        self.at_end = False
        # Whether a record begins before the end of the one before.
        self.at_next = False
        self.arc = False

    def offset(self) -> int:
        """Return the byte offset of the next byte, or of the gzip member that holds it."""
        return self.source.offset if self.source.gzipped else self.unpacked - len(self.buffer) + self.at

    def pull(self) -> bytes:
        """Return the next piece of the same gzip member; empty at its end."""
        piece = self.source.piece()
        if piece is None:
            self.at_end = True
            return b""
        self.unpacked += len(piece)
        return piece

    def fill(self) -> bool:
        """Add a piece to the buffer. Return False at the end of a gzip member or of the stream."""
        piece = self.pull()
        self.buffer = self.buffer[self.at :] + piece
        self.at = 0
        return bool(piece)

    def pull_across(self) -> bytes:
        """Return the next piece, from the next gzip member if need be; empty if that begins another record."""
        piece = self.pull()
        if not piece and not self.at_end:
            piece = self.pull()
            if _begins_record(piece):
                self.buffer, self.at, self.at_next = piece, 0, True
                return b""
        return piece

    def resync(self) -> bool:
        """Discard the buffered bytes and find the next gzip member. Return whether there is one."""
        self.buffer, self.at = b"", 0
        return self.source.resync()

    def begin(self) -> bool:
        """Go to the first byte of the next record. Return False if there is none."""
        while True:
            while self.at < len(self.buffer) and self.buffer[self.at] in b"\r\n":
                self.at += 1
            if self.at < len(self.buffer):
                return True
            if not self.fill() and self.at_end:
                return False

    def record(self) -> tuple[Record, bool]:
        """Return the record that begins here, and whether it was too long to be read completely."""
        offset = self.offset()
        end = _LINE_END if self.arc else _HEADER_END
        while True:
            match = end.search(self.buffer, self.at, self.at + _MAX_HEADER)
            if match:
                break
            if len(self.buffer) - self.at >= _MAX_HEADER:
                raise FaultError(BAD_HEADER, offset)
            piece = self.pull_across()
            if not piece:
                raise FaultError(CUT if self.at_end else BAD_HEADER, offset)
            self.buffer, self.at = self.buffer[self.at :] + piece, 0
        header = self.buffer[self.at : match.end()]
        record, length = (arc_header if self.arc else warc_header)(header, offset)
        self.at = match.end()
        kept = min(length, MAX_RECORD)
        record.body = self.take(kept, offset)
        self.leave(length - kept, offset)
        self.check_end(record, offset)
        return record, kept < length

    def member(self) -> Record | None:
        """Return the next gzip member as a record, if it is exactly one; else leave its bytes to :meth:`record`."""
        source = self.source
        if self.at < len(self.buffer) or not source.gzipped or self.arc or self.at_next:
            return None
        self.fill()
        end = self.buffer.find(b"\r\n\r\n", 0, _MAX_HEADER) + 4
        try:
            record, length = warc_header(self.buffer[:end], source.offset)
        except FaultError:
            return None
        if length > MAX_RECORD:
            return None
        while not source.member_over and len(self.buffer) < end + length:
            self.buffer += self.pull()
        if not source.member_over or len(self.buffer) != end + length + 4 or self.buffer[-4:] != b"\r\n\r\n":
            return None
        source.member_over = False
        record.body = self.buffer[end:-4]
        self.at = len(self.buffer)
        return record

    def members(self, most: int) -> Members | None:
        """Return up to `most` of the next gzip members; None if none of them can be read ahead."""
        if self.at < len(self.buffer) or self.arc or self.at_next or not self.source.between_members():
            return None
        return self.source.members(most)

    def take(self, length: int, offset: int) -> bytes:
        """Return the next `length` bytes of a record."""
        have = len(self.buffer) - self.at
        if have < length:
            parts = [self.buffer[self.at :]]
            self.buffer, self.at = b"", 0
            while have < length:
                piece = self.pull_across()
                if not piece:
                    if self.at_end:
                        # Another record may begin in these bytes.
                        self.buffer = b"".join(parts)
                    raise FaultError(CUT if self.at_end else BAD_LENGTH, offset)
                parts.append(piece)
                have += len(piece)
            self.buffer = b"".join(parts)
        data = self.buffer[self.at : self.at + length]
        self.at += length
        return data

    def leave(self, length: int, offset: int) -> None:
        """Skip the next `length` bytes of a record."""
        while length > 0:
            here = min(length, len(self.buffer) - self.at)
            self.at += here
            length -= here
            if length:
                piece = self.pull_across()
                if not piece:
                    raise FaultError(CUT if self.at_end else BAD_LENGTH, offset)
                self.buffer, self.at = piece, 0

    def check_end(self, record: Record, offset: int) -> None:
        """Check that another record follows, or the end of the gzip member (checksum right), or of the stream."""
        while True:
            while self.at < len(self.buffer) and self.buffer[self.at] in b"\r\n":
                self.at += 1
            rest = self.buffer[self.at : self.at + 10000]
            if len(rest) == 10000 or (b"\n" in rest if self.arc else len(rest) > 6):
                break
            # A gzip member may end a few bytes into the next record. These bytes are checked then.
            if not self.fill():
                if not rest or (b"\n" not in rest if self.arc else b"WARC/".startswith(rest[:5])):
                    return
                break
        if (ARC if self.arc else WARC).match(rest):
            return
        self.buffer, self.at = record.body + self.buffer[self.at :], 0
        raise FaultError(BAD_LENGTH, offset)

    def recover(self) -> bool:
        """After a fault, go to the next record that can be found. Return False if there is none."""
        pattern = _NEXT_ARC if self.arc else _NEXT_WARC
        while True:
            if self.at_next:
                self.at_next = False
                return True
            match = pattern.search(self.buffer, self.at)
            if match:
                self.at = match.start() + 1
                return True
            self.at = max(self.at, len(self.buffer) - 10000)
            if not self.fill():
                if self.at_end:
                    return False
                self.buffer, self.at = b"", 0
                # The next gzip member begins with a record.
                return True


@overload
def records(
    stream: Readable, tally: Tally, *, name: str | None = None, size: int | None = None
) -> Iterator[Record]: ...
@overload
def records(
    stream: Readable, tally: Tally, *, name: str | None = None, size: int | None = None, ahead: bool
) -> Iterator[Record | Members]: ...
def records(
    stream: Readable,
    tally: Tally,
    *,
    name: str | None = None,
    size: int | None = None,
    ahead: bool = False,
) -> Iterator[Record | Members]:
    """Read the whole records of an archive, in order. Damaged records are counted and left out.

    Parameters
    ----------
    stream : Readable
        A WARC or ARC archive, gzipped or not: any object with `read`. It need not seek, and it is not closed.
    tally : Tally
        Counts records and damage. If it is strict, damage is an error.
    name : str or None
        The name of the stream in messages. None: the stream's own name.
    size : int or None
        The length of the stream in bytes, for the progress display. None: unknown.
    ahead : bool
        After a record of JSON in a gzip member of its own, yield the next gzip members together, as :class:`Members`.
        The caller sets ``used``.

    Yields
    ------
    Record
        A record whose bytes are all there, or the beginning of a record longer than :data:`MAX_RECORD`.
    Members
        Only with `ahead`.

    Raises
    ------
    inlink.errors.FormatError
        If the stream is no archive.
    inlink.errors.DamageError
        If a record is damaged and the tally is strict.
    inlink.errors.InputError
        If the stream cannot be read.
    inlink.errors.ParameterError
        If the stream gives something else than bytes.
    """
    name = name_of(stream, name)
    with track(f"reading {name.rpartition('/')[2]}", size, "B") as task:
        yield from _records(name, _Reader(_Unpacked(Rewindable(stream, name, task))), tally, ahead)


def records_at(stream: BinaryIO, places: Iterable[int], tally: Tally, name: str) -> Iterator[Record]:
    """Read single records of an archive. Places at which no whole record begins count as damage.

    Parameters
    ----------
    stream : binary file
        A WARC or ARC archive that can seek. Only the records are read, each with up to 32 KiB behind it.
    places : iterable of int
        The byte offset of each record, or of the gzip member that begins with it.
    tally, name
        As in :func:`records`.

    Raises
    ------
    inlink.errors.DamageError
        If no record is at a place and the tally is strict.
    inlink.errors.InputError
        If the stream cannot be read.
    """
    for place in places:
        stream.seek(place)
        try:
            reader = _Reader(_Unpacked(Rewindable(stream, name)))
            reader.begin()
            _recognise(name, reader)
            record, too_long = reader.record()
        except (FaultError, FormatError):
            tally.damage(name, place, NO_RECORD)
            continue
        record.offset = place
        tally.records += 1
        if too_long:
            tally.skip(name, place, LONG_RECORD)
        yield record


def archive_start(source: Rewindable) -> Literal["warc", "arc"] | None:
    """Return the kind of record that a stream, unpacked, begins with; None if it begins with no record.

    The source is at its beginning again afterwards.

    Raises
    ------
    inlink.errors.InputError
        If the stream cannot be read.
    """
    try:
        start = (_Unpacked(source).piece() or b"").lstrip(b"\r\n")
    except FaultError:
        return None
    finally:
        source.rewind(0)
    return "warc" if WARC.match(start) else "arc" if ARC.match(start) else None


def _recognise(name: str, reader: _Reader) -> None:
    """Recognise by the first record whether the archive is WARC or ARC."""
    while len(reader.buffer) < 10000 and b"\n" not in reader.buffer[reader.at :] and not reader.at_end:
        reader.fill()
    start = reader.buffer[reader.at : reader.at + 10000]
    if WARC.match(start):
        return
    if ARC.match(start):
        reader.arc = True
    elif _NEXT_WARC.search(reader.buffer):
        raise FaultError(BAD_HEADER, reader.offset())
    elif not reader.source.gzipped and reader.source.resync(_SEARCH):
        raise FaultError(NO_MEMBER, 0)
    else:
        raise FormatError(f"{name} is not a web archive: it does not begin with a WARC or ARC record")


def _records(name: str, reader: _Reader, tally: Tally, ahead: bool) -> Iterator[Record | Members]:
    source, faults, first = reader.source, 0, True
    # The number of members to unpack ahead. It doubles as long as all of them can be used.
    most = 0
    while True:
        members = reader.members(most) if most else None
        if members is not None:
            yield members
            tally.records += members.used
            most = min(2 * most, _AHEAD)
            if members.used == len(members.ends):
                continue
            source.go_back(members.offsets[members.used])
        most = 0
        try:
            member = None if first else reader.member()
            if member is not None:
                most = int(ahead and member.is_json)
                tally.records += 1
                yield member
                continue
            if not reader.begin():
                break
            if first:
                _recognise(name, reader)
                first = False
            record, too_long = reader.record()
        except FaultError as fault:
            faults += 1
            what = fault.what
            if what in (CUT_MEMBER, BAD_MEMBER, NO_MEMBER):
                more = reader.resync()
                if more and what == CUT_MEMBER:
                    what = BAD_MEMBER
            else:
                try:
                    more = reader.recover()
                except FaultError:
                    more = reader.resync()
                if more and what == CUT:
                    what = BAD_LENGTH
            reader.at_end = False
            tally.damage(name, fault.offset, what)
            if not more:
                break
            if faults >= MAX_FAULTS:
                tally.damage(name, fault.offset, TOO_MANY)
                break
            continue
        tally.records += 1
        if too_long:
            tally.skip(name, record.offset, LONG_RECORD)
        yield record
    if first and not faults:
        raise FormatError(f"{name} is not a web archive: it is empty")
