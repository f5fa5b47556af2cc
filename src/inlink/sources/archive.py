"""Archives and their indexes by path: the door from a file to :mod:`inlink.archives`, which reads streams.

A WACZ is a zip archive with WARC files in its folder ``archive`` (https://specs.webrecorder.net/wacz/1.1.1/). They are
read one after the other, and nothing is unpacked to disk.
"""

import io
import os
import re
import zipfile
import zlib
from array import array
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import IO, Any

from inlink.archives.batches import ArchiveKind, archive_batches, archive_kind
from inlink.archives.cdxj import read_line
from inlink.archives.period import Period
from inlink.archives.revisits import Originals
from inlink.archives.streams import Readable
from inlink.base.damage import Tally
from inlink.base.opening import Stream, lines, open_binary, size_of
from inlink.errors import DamageError, FormatError, InputError
from inlink.graph.batches import ArcBatch, Level
from inlink.graph.source import Source

_ZIP = b"PK\x03\x04"

# A larger directory of a zip archive would take gigabytes as objects.
_MAX_DIRECTORY = 1 << 26
_WARC = re.compile(r"archive/[^\x00-\x1f\x7f]+\.warc(\.gz)?", re.I)
BAD_MEMBER = "damaged file in a WACZ"
BAD_LINE = "line that is not CDXJ"


def kind_of(path: str | os.PathLike[str]) -> ArchiveKind | None:
    """Return the kind of an archive; None for other files. See :func:`inlink.archives.batches.archive_kind`.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read.
    """
    with open_binary(path) as file:
        return archive_kind(file, name=os.fspath(path))


def is_wacz(path: str | os.PathLike[str]) -> bool:
    """Return whether a zip archive has WARC files as a WACZ has.

    Raises
    ------
    inlink.errors.InputError
        If the archive cannot be read.
    """
    with _Bounded(open_binary(path).detach()) as file:
        return bool(_warcs(file, os.fspath(path))[1])


def archives_in(
    path: str | os.PathLike[str], tally: Tally
) -> Iterator[tuple[str, Readable, int | None, Originals]]:
    """Yield the name, the stream, the size and the responses of an archive, or of each WARC file in a WACZ.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read.
    """
    name, file = os.fspath(path), open_binary(path)
    if file.peek(4)[:4] != _ZIP:
        with file:
            yield name, file, size_of(file), Originals.of_stream(file)
        return
    if not file.seekable():
        raise FormatError(f"{name}: a WACZ is read from its end: save it to a file first")
    with _Bounded(file.detach()) as whole:
        archive, warcs = _warcs(whole, name)
        if not warcs:
            raise FormatError(
                f"{name}: no WACZ, because its folder archive has no WARC file: unpack it first"
            )
        members = {f"{name}/{info.filename}": info for info in warcs}

        def opened(member: str) -> io.BufferedReader:
            return io.BufferedReader(_Member(archive, members[member], whole, member, tally), 1 << 16)

        originals = Originals(opened)
        for member, info in members.items():
            if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise FormatError(f"{member} is encrypted, or not packed by deflate: unpack the WACZ first")
            stream = opened(member)
            if stream.peek(1):
                yield member, stream, info.file_size, originals


class _Bounded(io.BufferedReader):
    """A file whose directory, which zipfile reads at once, has a bounded size."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _MAX_DIRECTORY:
            raise zipfile.BadZipFile("its directory is too large")
        return super().read(size)


def _warcs(file: _Bounded, name: str) -> tuple[zipfile.ZipFile, list[zipfile.ZipInfo]]:
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise DamageError(f"{name}: the zip archive is damaged ({error}): fetch the file again") from None
    return archive, [info for info in archive.infolist() if _WARC.fullmatch(info.filename)]


class _Member(io.RawIOBase):
    """A file in a zip archive. Damage ends it, and is counted. It can seek if it is stored, not packed."""

    def __init__(
        self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, whole: _Bounded, name: str, tally: Tally
    ) -> None:
        self._archive, self._info, self._whole = archive, info, whole
        self._name, self._tally = name, tally
        self._file: IO[bytes] | None = None
        # The place of the next byte, and that of the first in the zip archive once a place was sought.
        self._at, self._begin = 0, -1

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._info.compress_type == zipfile.ZIP_STORED

    def tell(self) -> int:
        return self._at

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        if not self.seekable() or whence != io.SEEK_SET:
            raise io.UnsupportedOperation("seek")
        if self._begin < 0:
            # Zipfile would read the file from its beginning to go back.
            self._whole.seek(self._info.header_offset)
            head = self._whole.read(30)
            lengths = int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
            self._begin = self._info.header_offset + 30 + lengths
        self._at = place
        return place

    def readinto(self, buffer: Any) -> int:
        try:
            if self._begin < 0:
                self._file = self._file or self._archive.open(self._info)
                data = self._file.read(len(buffer))
            else:
                self._whole.seek(self._begin + self._at)
                data = self._whole.read(max(0, min(len(buffer), self._info.file_size - self._at)))
        except (zipfile.BadZipFile, zlib.error, EOFError):
            self._tally.damage(self._name, self._file.tell() if self._file else 0, BAD_MEMBER)
            self._file, data = io.BytesIO(), b""
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def archive_source(
    path: str | os.PathLike[str],
    *,
    level: Level | None = None,
    tally: Tally | None = None,
    **options: Any,
) -> Source:
    """Return an archive as a source of a graph. The file is opened when the first batch is asked for.

    Parameters
    ----------
    path : path-like
        A WARC, ARC or WAT file, gzipped or not, or a WACZ.
    level : {"page", "host", "domain"} or None
        The kind of the nodes; None means pages.
    tally : Tally or None
        Counts the records that were read and those that were skipped.
    **options
        As in :func:`inlink.archives.batches.archive_batches`, which also says what is raised. A damaged archive in
        which no record can be read raises a DamageError.
    """
    level = level or "page"
    tally = Tally() if tally is None else tally

    def batches() -> Iterator[ArcBatch]:
        for name, file, size, originals in archives_in(path, tally):
            yield from archive_batches(
                file, name=name, size=size, level=level, tally=tally, originals=originals, **options
            )

    return Source(_some(batches(), os.fspath(path), tally), level=level)


def _some(batches: Iterator[ArcBatch], name: str, tally: Tally) -> Iterator[ArcBatch]:
    """Yield batches. Refuse an archive in which damage leaves no record."""
    before, damaged = tally.records, tally.damaged
    yield from batches
    if tally.records == before and tally.damaged > damaged:
        skipped = [entry for entry in tally.skipped.items() if entry[1].path.startswith(name)]
        place = "".join(f" ({reason}, at byte {entry.offset:,})" for reason, entry in skipped[:1])
        raise DamageError(f"{name}: no record can be read{place}: fetch the file again")


def index_source(
    path: str | os.PathLike[str],
    *,
    level: Level | None = None,
    tally: Tally | None = None,
    since: str | None = None,
    until: str | None = None,
    **options: Any,
) -> Source:
    """Return the records that a CDXJ index names as a source of a graph. Only these records are read.

    The archives are files in the folder of the index, or in folders below it. Parameters and errors are those of
    :func:`archive_source`.
    """
    path, level, tally = Path(path), level or "page", Tally() if tally is None else tally

    def opened(name: str) -> io.BufferedReader:
        # Names can be too long for the system.
        with suppress(OSError):
            if Path(name).is_file():
                return open_binary(Path(name).absolute())
        raise InputError(f"{path} names {name[:500]!r}, which is no file: put the archive there")

    def batches() -> Iterator[ArcBatch]:
        originals = Originals(opened)
        for name, places in sorted(_indexed(path, Period.of(since, until), tally, originals).items()):
            with opened(name) as file:
                yield from archive_batches(
                    file,
                    name=name,
                    level=level,
                    tally=tally,
                    since=since,
                    until=until,
                    places=sorted(places),
                    originals=originals,
                    **options,
                )

    return Source(_some(batches(), os.fspath(path), tally), level=level)


def _indexed(path: Path, period: Period, tally: Tally, originals: Originals) -> "dict[str, array[int]]":
    """Return the places of an index's records of a period, by archive. Add the places of all its responses."""
    archives: dict[str, array[int]] = {}
    at = 0
    with Stream(path, f"reading {path.name}") as stream:
        for number, line in lines(stream):
            pair = read_line(line)
            if pair is None:
                tally.damage(path, at, BAD_LINE)
            at += len(line) + 1
            if pair is None:
                continue
            time, entry = pair
            place = PurePosixPath(entry.filename)
            if place.is_absolute() or ".." in place.parts or not place.parts or "\0" in entry.filename:
                raise FormatError(
                    f"{path}, line {number:,}: the archive {entry.filename!r} is not in the folder of the index: "
                    "move the index beside its archives, and correct the name"
                )
            name = os.fspath(path.parent / place)
            if entry.mime != "warc/revisit" and entry.digest:
                originals.add(entry.digest.encode(), entry.offset, name)
            # The record's own date, which may have fractions of a second, decides.
            if period.holds(time) or period.holds(time + timedelta(seconds=1)):
                archives.setdefault(name, array("q")).append(entry.offset)
    return archives
