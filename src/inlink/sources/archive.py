"""Archives by path: the door from a file to :mod:`inlink.archives`, which reads streams.

A WACZ is a zip archive with WARC files in its folder ``archive`` (https://specs.webrecorder.net/wacz/1.1.1/). They are
read one after the other, and nothing is unpacked to disk.
"""

import io
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any

from inlink.archives.batches import ArchiveKind, archive_batches, archive_kind
from inlink.archives.streams import Readable
from inlink.base.damage import Tally
from inlink.base.opening import open_binary, size_of
from inlink.errors import DamageError, FormatError
from inlink.graph.batches import ArcBatch, Level
from inlink.graph.source import Source

_ZIP = b"PK\x03\x04"

# A larger directory of a zip archive would take gigabytes as objects.
_MAX_DIRECTORY = 1 << 26
_WARC = re.compile(r"archive/[^\x00-\x1f\x7f]+\.warc(\.gz)?", re.I)
BAD_MEMBER = "damaged file in a WACZ"


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


def archives_in(path: str | os.PathLike[str], tally: Tally) -> Iterator[tuple[str, Readable, int | None]]:
    """Yield the name, the stream and the size of an archive, or of each WARC file in a WACZ.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read.
    """
    name, file = os.fspath(path), open_binary(path)
    if file.peek(4)[:4] != _ZIP:
        with file:
            yield name, file, size_of(file)
        return
    if not file.seekable():
        raise FormatError(f"{name}: a WACZ is read from its end: save it to a file first")
    with _Bounded(file.detach()) as whole:
        archive, warcs = _warcs(whole, name)
        if not warcs:
            raise FormatError(
                f"{name}: no WACZ, because its folder archive has no WARC file: unpack it first"
            )
        for info in warcs:
            member = f"{name}/{info.filename}"
            if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise FormatError(f"{member} is encrypted, or not packed by deflate: unpack the WACZ first")
            stream = io.BufferedReader(_Member(partial(archive.open, info), member, tally), 1 << 16)
            if stream.peek(1):
                yield member, stream, info.file_size


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
    """A file in a zip archive. Damage ends it, and is counted."""

    def __init__(self, opening: Callable[[], IO[bytes]], name: str, tally: Tally) -> None:
        self._opening, self._name, self._tally = opening, name, tally
        self._file: IO[bytes] | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            self._file = self._file or self._opening()
            data = self._file.read(len(buffer))
        except (zipfile.BadZipFile, zlib.error, EOFError):
            self._tally.damage(self._name, self._file.tell() if self._file else 0, BAD_MEMBER)
            self._file, data = io.BytesIO(), b""
        buffer[: len(data)] = data
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
        before, damaged = tally.records, tally.damaged
        for name, file, size in archives_in(path, tally):
            yield from archive_batches(file, name=name, size=size, level=level, tally=tally, **options)
        if tally.records == before and tally.damaged > damaged:
            skipped = [entry for entry in tally.skipped.items() if entry[1].path.startswith(os.fspath(path))]
            place = "".join(f" ({reason}, at byte {entry.offset:,})" for reason, entry in skipped[:1])
            raise DamageError(f"{os.fspath(path)}: no record can be read{place}: fetch the file again")

    return Source(batches(), level=level)
