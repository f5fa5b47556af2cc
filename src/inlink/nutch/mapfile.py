"""Write Hadoop's MapFiles: a folder with ``data``, the records in the order of their keys, and ``index``.

Both files are SequenceFiles of version 6 without compression, each with its checksum file. The index holds the place of
every 128th record in ``data``.

Source: org.apache.hadoop.io.MapFile and SequenceFile, Hadoop 3.4.
"""

import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from inlink.errors import InputError
from inlink.nutch.checksums import write_checksums
from inlink.nutch.fields import TEXT

_LONG = "org.apache.hadoop.io.LongWritable"
_INTERVAL = 128
# Bytes between two sync marks, as in Hadoop 2. Fewer bytes are lost by damage than with the 100 KiB of Hadoop 3.
_SYNC_INTERVAL = 2_000


def text(value: bytes) -> bytes:
    """Return a serialised Text: its length as a vint, then UTF-8."""
    size = len(value)
    if size <= 127:
        return bytes([size]) + value
    raw = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return struct.pack("b", -112 - len(raw)) + raw + value


class _SequenceWriter:
    """Writes a SequenceFile of Texts and other values."""

    def __init__(self, file: BinaryIO, value_class: str) -> None:
        self.file, self.mark = file, os.urandom(16)
        header = b"SEQ\x06" + text(TEXT.name.encode()) + text(value_class.encode())
        self.at = 0
        # Neither compression nor metadata.
        self._write(header + bytes(6) + self.mark)
        self.last_mark = self.at

    def _write(self, data: bytes) -> None:
        self.file.write(data)
        self.at += len(data)

    def append(self, key: bytes, value: bytes) -> None:
        """Write a record of serialised objects."""
        if self.at >= self.last_mark + _SYNC_INTERVAL:
            self._write(b"\xff\xff\xff\xff" + self.mark)
            self.last_mark = self.at
        self._write(struct.pack(">ii", len(key) + len(value), len(key)) + key + value)


@contextmanager
def _written(path: Path, value_class: str) -> Iterator[_SequenceWriter]:
    with path.open("wb") as file:
        yield _SequenceWriter(file, value_class)
    write_checksums(path)


def write_mapfile(folder: Path, value_class: str, entries: Iterable[tuple[bytes, bytes]]) -> int:
    """Write a MapFile with Texts as keys, and return the number of entries.

    Parameters
    ----------
    folder : Path
        The folder to make.
    value_class : str
        The Java class of the values.
    entries : iterable of (bytes, bytes)
        The keys' text and the serialised values, in byte order of the keys.

    Raises
    ------
    inlink.errors.InputError
        If the keys are not in order.
    """
    folder.mkdir(parents=True)
    count, last = 0, b""
    with _written(folder / "data", value_class) as data, _written(folder / "index", _LONG) as index:
        for key, value in entries:
            if key < last:
                raise InputError(
                    f"{folder.name}: the URLs are not in byte order, {key[:200]!r} comes after {last[:200]!r}. "
                    "Name a crawl database that Nutch wrote."
                )
            if count % _INTERVAL == 0:
                index.append(text(key), struct.pack(">q", data.at))
            data.append(text(key), value)
            count, last = count + 1, key
    return count
