"""Open files: decompress gzip and Zstandard, show progress, report damage."""

import io
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

import numpy as np

from inlink.base.arrays import UInt8Array
from inlink.base.progress import Work, track
from inlink.base.remote import Stamp, is_remote
from inlink.errors import DamageError, FormatError, InputError

STDIN = "-"
"""The path that stands for standard input."""

# Scanning is fastest with 4 MB (of 1, 4 and 16 MB): the text and its arcs stay in the cache.
BLOCK = 1 << 22
MAX_LINE = 1 << 24
# Bytes of standard input that are kept.
_KEPT = 1 << 26

_PACKED = {b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"PK\x03\x04": "zip", b"\x1f\x9d": "compress"}


def open_binary(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a file for reading, without decompression. The path ``-`` is standard input; a URL is read from its server.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be opened.
    """
    if is_remote(path):
        from inlink.base.urlfiles import open_remote

        return open_remote(str(path))
    if os.fspath(path) == STDIN:
        return io.BufferedReader(_StandardInput())
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise InputError(f"{os.fspath(path)}: cannot be read ({error.strerror})") from None


def read_span(path: str | os.PathLike[str], span: range) -> tuple[bytes, Stamp]:
    """Return bytes of a file or of a file behind a URL, and the stamp of the file.

    Parameters
    ----------
    path : path-like
        The file, or its URL, whose server must support range requests.
    span : range
        The places of the bytes, in steps of 1. There are fewer bytes if the file ends before them.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read, or the server sends no ranges.
    """
    if is_remote(path):
        from inlink.base.urlfiles import remote_span

        return remote_span(str(path), span)
    try:
        with Path(path).open("rb") as file:
            facts = os.fstat(file.fileno())
            file.seek(span.start)
            return file.read(len(span)), Stamp(facts.st_size, str(facts.st_mtime_ns))
    except OSError as error:
        raise InputError(f"{os.fspath(path)}: cannot be read ({error.strerror})") from None


def place_of(path: str | os.PathLike[str]) -> Path | str:
    """Return a URL as it is, and a file's name as a path. A path made of a URL would lose a slash."""
    return os.fspath(path) if is_remote(path) else Path(path)


def size_of(file: io.BufferedReader) -> int | None:
    """Return the number of bytes of an open file; None for standard input and for files behind URLs."""
    try:
        return os.fstat(file.fileno()).st_size
    except (OSError, ValueError, AttributeError):
        return None


class _StandardInput(io.RawIOBase):
    """Standard input that can be opened several times, as long as its first bytes are kept.

    Recognising a format, or the columns of an edge list, reads the first bytes. They are kept for the reader of the
    whole input. Once :data:`_KEPT` bytes were read, no bytes are kept any more.
    """

    # The stream, and the bytes that were read from it; None if there were too many to keep.
    _source: BinaryIO | None = None
    _kept: bytearray | None = None

    def __init__(self) -> None:
        shared = _StandardInput
        if sys.stdin is None:
            raise InputError("-: there is no standard input")
        if shared._source is not sys.stdin.buffer:
            shared._source, shared._kept = sys.stdin.buffer, bytearray()
        if shared._kept is None:
            raise InputError("-: standard input cannot be read again. Name the format, or save it to a file.")
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        shared = _StandardInput
        assert shared._source is not None
        kept = shared._kept
        if kept is not None and self._at < len(kept):
            data = bytes(kept[self._at : self._at + len(buffer)])
        else:
            data = shared._source.read(len(buffer))
            if kept is not None:
                shared._kept = None if len(kept) + len(data) > _KEPT else kept
                kept += data
        self._at += len(data)
        buffer[: len(data)] = data
        return len(data)


class Stream:
    """The bytes of a file, decompressed if they are gzip or Zstandard; a context manager.

    Parameters
    ----------
    path : path-like
        The file.
    label : str or None
        Label of the progress display, which counts bytes of the file. None shows no progress.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], label: str | None = None) -> None:
        self.path = place_of(path)
        # The format is recognised from the first bytes of the file. A pipe would lose these bytes.
        if (
            isinstance(self.path, Path)
            and os.fspath(path) != STDIN
            and self.path.exists()
            and not self.path.is_file()
        ):
            raise InputError(f"{self.path} is not a regular file: name a file")
        self._raw = open_binary(self.path)
        self.size = size_of(self._raw)
        self._file = self._unpacked()
        self._task: Work = track(label, self.size, "B") if label else Work("")
        self._told = 0

    def _unpacked(self) -> BinaryIO:
        self.packed = True
        self._errors: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error, ValueError)
        start = self._raw.peek(4)[:4]
        if start[:2] == b"\x1f\x8b":
            from isal import igzip, igzip_lib

            self._errors += (igzip_lib.IsalError,)  # type: ignore[assignment]
            return cast(BinaryIO, igzip.IGzipFile(fileobj=self._raw))  # type: ignore[no-untyped-call]
        if start == b"\x28\xb5\x2f\xfd":
            from inlink.base.zstd import ZstdError, ZstdFile

            self._errors += (ZstdError,)
            return cast(BinaryIO, ZstdFile(self._raw, "r"))
        self.packed = False
        return self._raw

    def read(self, size: int) -> bytes:
        """Return the next ``size`` bytes, or fewer at the end of the file.

        Raises
        ------
        inlink.errors.DamageError
            If compressed data are truncated or damaged.
        inlink.errors.InputError
            If the file cannot be read.
        """
        parts = bytearray()
        while len(parts) < size:
            try:
                part = self._file.read(size - len(parts))
            except self._errors as error:
                # Decompressors raise OSError for damage too, but without a number.
                if not self.packed or getattr(error, "errno", None):
                    raise InputError(f"{self.path}: cannot be read ({error})") from None
                where = f" before byte {self._raw.tell():,}" if self._raw.seekable() else ""
                raise DamageError(
                    f"{self.path}: compressed data cut or damaged{where}: fetch or pack it again"
                ) from None
            if not part:
                break
            parts += part
        if not self._raw.closed:
            place = self._raw.tell() if self._raw.seekable() else self._told + len(parts)
            self._task.advance(place - self._told)
            self._told = place
        return bytes(parts)

    def text(self) -> io.TextIOWrapper:
        """Return the rest of the file as UTF-8 text with its own line ends. Other bytes become lone surrogates."""
        return io.TextIOWrapper(io.BufferedReader(_Raw(self)), "utf-8-sig", "surrogateescape", newline="")

    def __enter__(self) -> Self:
        self._task.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._task.__exit__(*error)
        if self._file is not self._raw:
            self._file.close()
        self._raw.close()


class _Raw(io.RawIOBase):
    """A stream as Python's own classes read it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def head(path: str | os.PathLike[str], size: int = 1 << 16) -> bytes:
    """Return the first ``size`` bytes of a file, decompressed.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read, or its compression is not supported.
    """
    with Stream(path) as stream:
        start = stream.read(size)
    check_text(start, path)
    return start


def check_text(start: bytes, path: str | os.PathLike[str]) -> None:
    """Refuse UTF-16, and compression other than gzip and Zstandard.

    Raises
    ------
    inlink.errors.FormatError
        If the text begins with the signature of such an encoding or compression. The message names it.
    """
    for magic, name in _PACKED.items():
        # SciPy's .npz files are zip files.
        if start.startswith(magic) and name != "zip":
            raise FormatError(
                f"{path} is packed with {name}: unpack it first (gzip and zstd are read as they are)"
            )
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise FormatError(f"{path} is in UTF-16: convert it to UTF-8 first")


def text_blocks(stream: Stream) -> Iterator[tuple[UInt8Array, bool, "Carry"]]:
    """Yield blocks of whole lines of a file, each ending with a newline. The longest line bounds the memory.

    The consumer sets ``carry.at`` to the number of bytes that it used. The next block begins with the unused bytes.
    (A quoted field may contain newlines, so the last newline of a block may not end a record.)

    Yields
    ------
    uint8[…], bool, Carry
        The block, whether it is the last block, and the object in which the consumer records its progress.

    Raises
    ------
    inlink.errors.InputError
        If a line is longer than :data:`MAX_LINE`.
    """
    carry = Carry()
    rest = b""
    while True:
        fresh = stream.read(BLOCK)
        last = len(fresh) < BLOCK
        data = rest + fresh
        if carry.line == 1 and carry.fresh:
            check_text(data[:8], stream.path)
            data = data.removeprefix(b"\xef\xbb\xbf")
            carry.fresh = False
        if last and data and not data.endswith(b"\n"):
            data += b"\n"
        stop = data.rfind(b"\n") + 1
        carry.at = 0
        if stop:
            yield np.frombuffer(data, np.uint8, stop), last, carry
        if last:
            return
        rest = data[carry.at :]
        if len(rest) > MAX_LINE:
            raise InputError(
                f"{stream.path}, line {carry.line:,}: longer than {MAX_LINE >> 20} MB (an open quote, or no text?)"
            )


class Carry:
    """The progress of a consumer of :func:`text_blocks`: the byte in the block and the line in the file (from 1)."""

    def __init__(self) -> None:
        self.at, self.line, self.fresh = 0, 1, True


def lines(stream: Stream) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file without line ends, each with its number (from 1).

    Raises
    ------
    inlink.errors.InputError
        If a line is longer than :data:`MAX_LINE`.
    """
    for block, _, carry in text_blocks(stream):
        carry.at = len(block)
        for line in io.BytesIO(block.tobytes()):
            yield carry.line, line.rstrip(b"\r\n")
            carry.line += 1
