"""Opening files: gzip and Zstandard looked through, progress told, damage named."""

import io
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

import numpy as np
import numpy.typing as npt

from inlink.base.progress import Task, track
from inlink.errors import DamageError, FormatError, InputError

__all__ = ["MAX_LINE", "Stream", "head", "lines", "text_blocks"]

BLOCK = 1 << 22  # of 1, 4 and 16 MB the fastest to scan: text and what is made of it stay in the cache
MAX_LINE = 1 << 24

_PACKED = {b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"PK\x03\x04": "zip", b"\x1f\x9d": "compress"}


class Stream:
    """A file's bytes, unpacked if they are gzip or Zstandard; a context manager.

    Parameters
    ----------
    path : path-like
        The file.
    label : str or None
        What to show as progress, counted in bytes of the file; None shows none.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], label: str | None = None) -> None:
        self.path = Path(path)
        if (
            self.path.exists() and not self.path.is_file()
        ):  # opened more than once: a pipe would lose what was looked at
            raise InputError(f"{self.path} is no regular file: name one")
        try:
            self._raw = self.path.open("rb")
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read ({error.strerror})") from None
        self.size = os.fstat(self._raw.fileno()).st_size
        self._file = self._unpacked()
        self._task: Task = track(label, self.size, "B") if label else Task("")
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
            import pyarrow as pa

            return cast(BinaryIO, pa.CompressedInputStream(pa.PythonFile(self._raw, "r"), "zstd"))
        self.packed = False
        return self._raw

    def read(self, size: int) -> bytes:
        """The next bytes: ``size`` of them unless the file ends before.

        Raises
        ------
        inlink.errors.DamageError
            If packed data are cut or damaged.
        """
        parts = bytearray()
        while len(parts) < size:
            try:
                part = self._file.read(size - len(parts))
            except self._errors as error:
                if not self.packed:
                    raise InputError(f"{self.path}: cannot be read ({error})") from None
                place = self._raw.tell()
                raise DamageError(
                    f"{self.path}: compressed data cut or damaged before byte {place:,}: fetch or pack it again"
                ) from None
            if not part:
                break
            parts += part
        if not self._raw.closed:
            place = self._raw.tell() if self._raw.seekable() else self._told + len(parts)
            self._task.advance(place - self._told)
            self._told = place
        return bytes(parts)

    def __enter__(self) -> Self:
        self._task.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._task.__exit__(*error)
        if self._file is not self._raw:
            self._file.close()
        self._raw.close()


def head(path: str | os.PathLike[str], size: int = 1 << 16) -> bytes:
    """The first bytes of a file, unpacked.

    Raises
    ------
    inlink.errors.InputError
        If it cannot be read, or is packed in a way that is not looked through.
    """
    with Stream(path) as stream:
        start = stream.read(size)
    check_text(start, path)
    return start


def check_text(start: bytes, path: str | os.PathLike[str]) -> None:
    """Refuse what is packed otherwise than by gzip and Zstandard, and UTF-16.

    Raises
    ------
    inlink.errors.FormatError
        Naming what it is.
    """
    for magic, name in _PACKED.items():
        if start.startswith(magic) and name != "zip":  # SciPy's .npz are zip files
            raise FormatError(
                f"{path} is packed with {name}: unpack it first (gzip and zstd are read as they are)"
            )
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise FormatError(f"{path} is in UTF-16: convert it to UTF-8 first")


def text_blocks(stream: Stream) -> Iterator[tuple[npt.NDArray[np.uint8], bool, "Carry"]]:
    """A file in blocks of whole lines, each ending with a newline, in memory bounded by the longest line.

    The consumer says by ``carry.at`` from where it wants the rest again, before the next block (a quoted field may
    hold newlines, so the last newline need not end a record); ``len(block)`` means that all is used.

    Yields
    ------
    uint8[…], bool, Carry
        The block, whether it is the last, and what to give back.

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
    """How far the consumer of :func:`text_blocks` has come: byte of the block, line of the file (from 1)."""

    def __init__(self) -> None:
        self.at, self.line, self.fresh = 0, 1, True


def lines(stream: Stream) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers from 1, without line ends.

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
