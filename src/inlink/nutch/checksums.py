"""Read and write Hadoop's checksum files: ``.data.crc`` beside ``data``.

A checksum file is ``crc`` and a zero byte, the number of bytes in a chunk (int32, big-endian), and the CRC-32 of each
chunk (uint32, big-endian). The last chunk may be shorter.

Source: org.apache.hadoop.fs.ChecksumFileSystem, Hadoop 3.4.
"""

import os
import struct
import zlib
from bisect import bisect_right
from operator import itemgetter
from pathlib import Path

import numpy as np

from inlink.base.arrays import AnyArray
from inlink.base.damage import Tally
from inlink.base.opening import BLOCK, Stream, open_binary

_MAGIC = b"crc\0"
_CHUNK = 512
_LARGEST_CHUNK = 1 << 24
_WRONG = "chunk that differs from its checksum (.crc)"
_USELESS = "checksum file (.crc) that is damaged or belongs to another file"


def checksum_file(path: str | os.PathLike[str]) -> Path:
    """Return the path of Hadoop's checksums of a file."""
    path = Path(path)
    return path.with_name(f".{path.name}.crc")


class _Sums:
    """The checksums of a file; no chunk differs if there are none."""

    def __init__(self, path: Path, size: int, tally: Tally) -> None:
        self.path, self.tally = path, tally
        self.chunk, self.at = 0, 0
        self.sums: AnyArray = np.empty(0, np.uint32)
        place = checksum_file(path)
        if not place.is_file():
            return
        with open_binary(place) as file:
            raw = file.read()
        chunk = int.from_bytes(raw[4:8], "big") if len(raw) >= 8 and raw[:4] == _MAGIC else 0
        if 0 < chunk <= _LARGEST_CHUNK and len(raw) == 8 + 4 * -(-size // chunk):
            self.chunk, self.sums = chunk, np.frombuffer(raw, ">u4", offset=8)
        else:
            tally.damage(place, 0, _USELESS)

    def whole(self, size: int) -> int:
        """Return ``size`` or the next larger multiple of a chunk."""
        return -(-size // self.chunk) * self.chunk if self.chunk else size

    def compare(self, data: bytes) -> list[tuple[int, int]]:
        """Return the begin and end of each chunk of the next bytes of the file that differs from its checksum."""
        wrong = []
        view, at, chunk = memoryview(data), self.at, self.chunk
        self.at += len(data)
        for begin in range(0, len(data) if chunk else 0, chunk or 1):
            part = view[begin : begin + chunk]
            if zlib.crc32(part) != self.sums[(at + begin) // chunk]:
                self.tally.damage(self.path, at + begin, _WRONG, size=len(part))
                wrong.append((at + begin, at + begin + len(part)))
        return wrong


class CheckedStream(Stream):
    """A :class:`Stream` that compares what it reads with the file's checksums, if a checksum file lies beside it.

    Parameters
    ----------
    path : path-like
        The file.
    tally : Tally
        Counts damage.
    label : str or None
        Label of the progress display.

    Raises
    ------
    inlink.errors.InputError
        If the file or its checksum file cannot be opened.
    inlink.errors.DamageError
        With a strict tally, if the checksum file does not belong to the file.
    """

    def __init__(self, path: str | os.PathLike[str], tally: Tally, label: str | None = None) -> None:
        super().__init__(path, label)
        self._wrong: list[tuple[int, int]] = []
        try:
            if self.packed:
                # The checksums cover the packed bytes of the file.
                check_file(path, tally)
            self._sums = None if self.packed else _Sums(Path(self.path), self.size or 0, tally)
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def read(self, size: int) -> bytes:
        """Return the next ``size`` bytes, and more up to the end of a chunk; fewer at the end of the file.

        Raises
        ------
        inlink.errors.DamageError
            With a strict tally, if the bytes differ from their checksums. If compressed data are damaged.
        inlink.errors.InputError
            If the file cannot be read.
        """
        if self._sums is None:
            return super().read(size)
        data = super().read(self._sums.whole(size))
        self._wrong += self._sums.compare(data)
        return data

    def differs(self, begin: int, end: int) -> bool:
        """Return whether bytes that were read touch a chunk that differs from its checksum."""
        place = bisect_right(self._wrong, begin, key=itemgetter(1))
        return place < len(self._wrong) and self._wrong[place][0] < end


def check_file(path: str | os.PathLike[str], tally: Tally) -> None:
    """Compare a whole file with its checksums, if a checksum file lies beside it.

    Parameters
    ----------
    path : path-like
        The file.
    tally : Tally
        Counts damage.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read.
    inlink.errors.DamageError
        With a strict tally, if the file differs from its checksums.
    """
    with open_binary(path) as file:
        sums = _Sums(Path(path), os.fstat(file.fileno()).st_size, tally)
        while sums.chunk and (data := file.read(sums.whole(BLOCK))):
            sums.compare(data)


def write_checksums(path: Path) -> None:
    """Write the checksum file of a file that is complete."""
    with path.open("rb") as file, checksum_file(path).open("wb") as sums:
        sums.write(_MAGIC + struct.pack(">i", _CHUNK))
        while data := file.read(BLOCK):
            view = memoryview(data)
            parts = [zlib.crc32(view[begin : begin + _CHUNK]) for begin in range(0, len(data), _CHUNK)]
            sums.write(struct.pack(f">{len(parts)}I", *parts))
