"""Hadoop's SequenceFiles: keys and values as bytes, with no, record or block compression.

A file begins with ``SEQ``, a version (4 to 6 are read), the classes of keys and values, how it is compressed, metadata
and 16 random bytes, the sync mark, which stands again every few records. Damage is left out and counted: reading goes
on behind the next sync mark.

Source: org.apache.hadoop.io.SequenceFile and WritableUtils, Hadoop 3.4.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from inlink.errors import DamageError, FormatError
from inlink.sources.damage import Tally
from inlink.sources.opening import Stream

__all__ = ["MAX_BLOCK", "MAX_RECORD", "Fields", "Record", "records"]

MAX_RECORD = 1 << 26  # bytes of a record, packed and unpacked
MAX_BLOCK = 1 << 28  # of each of a block's four parts
_CHUNK = 1 << 20
_ESCAPE = b"\xff\xff\xff\xff"  # -1 where a record's length stands: a sync mark follows
_CODECS = {
    "org.apache.hadoop.io.compress.DefaultCodec": 15,
    "org.apache.hadoop.io.compress.DeflateCodec": 15,
    "org.apache.hadoop.io.compress.GzipCodec": 31,
}
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_FLOAT = struct.Struct(">f")
_SHORT = struct.Struct(">H")


class Record(NamedTuple):
    """A key and its value as they were serialised, and the byte of the file at which the record or its block begins."""

    key: bytes
    value: bytes
    offset: int


class Fields:
    """What Hadoop's DataInput reads, one field after the other; ValueError where the bytes end before.

    Parameters
    ----------
    data : bytes
        What was serialised.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        """The next bytes."""
        end = self.at + size
        if size < 0 or end > len(self.data):
            raise ValueError("cut short")
        found = self.data[self.at : end]
        self.at = end
        return found

    def byte(self) -> int:
        """A signed byte."""
        value = self.take(1)[0]
        return value - 256 if value > 127 else value

    def int32(self) -> int:
        """Four bytes, signed."""
        value: int = _INT.unpack(self.take(4))[0]
        return value

    def int64(self) -> int:
        """Eight bytes, signed."""
        value: int = _LONG.unpack(self.take(8))[0]
        return value

    def float32(self) -> float:
        """Four bytes."""
        value: float = _FLOAT.unpack(self.take(4))[0]
        return value

    def vint(self) -> int:
        """A number of 1 to 9 bytes: itself from -112 to 127, else length and sign first."""
        first = self.byte()
        if first >= -112:
            return first
        size = -112 - first if first >= -120 else -120 - first
        value = int.from_bytes(self.take(size), "big")
        return value if first >= -120 else ~value

    def text(self) -> bytes:
        """A Text: its length as a vint, then UTF-8."""
        return self.take(self.vint())

    def utf(self) -> bytes:
        """Java's writeUTF: its length in two bytes, then nearly UTF-8."""
        return self.take(int(_SHORT.unpack(self.take(2))[0]))

    def string(self) -> bytes | None:
        """WritableUtils.writeString: its length in four bytes, -1 for null."""
        size = self.int32()
        return None if size == -1 else self.take(size)

    def strings(self) -> list[bytes | None] | None:
        """WritableUtils.writeStringArray: how many in four bytes, -1 for null."""
        count = self.int32()
        return None if count == -1 else [self.string() for _ in range(count)]


class _Buffer:
    """A stream that can be looked into without going on; ``at`` is the byte of the file where it stands."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.data = bytearray()
        self.start = 0  # of what is left of data
        self.at = 0

    def peek(self, size: int, skip: int = 0) -> bytes:
        """``size`` bytes from ``skip`` bytes ahead, fewer at the end of the file."""
        while len(self.data) - self.start < skip + size:
            fresh = self.stream.read(max(_CHUNK, skip + size - len(self.data) + self.start))
            if not fresh:
                break
            del self.data[: self.start]
            self.start = 0
            self.data += fresh
        begin = self.start + skip
        return bytes(self.data[begin : begin + size])

    def go(self, size: int) -> None:
        """Go on by bytes that were looked at."""
        self.start += size
        self.at += size

    def find(self, mark: bytes) -> bool:
        """Go on to behind the next mark; False if there is none."""
        while True:
            self.peek(len(mark))
            found = self.data.find(mark, self.start)
            if found >= 0:
                self.go(found + len(mark) - self.start)
                return True
            left = len(self.data) - self.start
            if left < len(mark):
                return False
            self.go(left - len(mark) + 1)


def records(path: str | os.PathLike[str], key_class: str, value_class: str, tally: Tally) -> Iterator[Record]:
    """The records of one SequenceFile.

    Parameters
    ----------
    path : path-like
    key_class, value_class : str
        What it has to hold, such as ``org.apache.hadoop.io.Text``.
    tally : Tally
        Told of damage.

    Raises
    ------
    inlink.errors.FormatError
        If it is no SequenceFile, of other classes, or packed with a codec other than Default and Gzip.
    inlink.errors.DamageError
        If its header is cut or damaged, or, with a strict tally, anything.
    """
    with Stream(path, f"reading {os.fspath(path)}") as stream:
        buffer = _Buffer(stream)
        wbits, blocks, sync = _header(buffer, path, key_class, value_class)
        read = _blocks if blocks else _plain
        yield from read(buffer, path, wbits, sync, tally)


def _header(
    buffer: _Buffer, path: str | os.PathLike[str], key_class: str, value_class: str
) -> tuple[int, bool, bytes]:
    """Zlib's number for the codec (0: not packed), whether in blocks, and the sync mark."""
    head = buffer.peek(_CHUNK)
    if head[:3] != b"SEQ":
        raise FormatError(f"{path} is no SequenceFile: it does not begin with SEQ")
    version = head[3] if len(head) > 3 else 0
    if not 4 <= version <= 6:
        raise FormatError(
            f"{path}: SequenceFile version {version}, and 4 to 6 are read: write it again with Hadoop"
        )
    fields = Fields(head)
    fields.at = 4
    try:
        classes = [fields.text().decode("utf-8", "replace") for _ in range(2)]
        packed, blocks = fields.byte() != 0, fields.byte() != 0
        codec = "org.apache.hadoop.io.compress.DefaultCodec"
        if packed and version >= 5:
            codec = fields.text().decode("utf-8", "replace")
        if version >= 6:
            for _ in range(2 * fields.int32()):
                fields.text()
        sync = fields.take(16)
    except ValueError:
        raise DamageError(f"{path}: the header is cut or damaged: fetch the file again") from None
    if classes != [key_class, value_class]:
        raise FormatError(
            f"{path} holds {classes[0][:200]!r} and {classes[1][:200]!r}, not {key_class} and {value_class}"
        )
    if packed and codec not in _CODECS:
        raise FormatError(
            f"{path} is packed with {codec[:200]!r}, and only DefaultCodec and GzipCodec are read: write it anew"
        )
    buffer.go(fields.at)
    return (_CODECS[codec] if packed else 0), blocks and packed, sync


def _plain(
    buffer: _Buffer, path: str | os.PathLike[str], wbits: int, sync: bytes, tally: Tally
) -> Iterator[Record]:
    while head := buffer.peek(8):
        place = buffer.at
        if head[:4] == _ESCAPE and buffer.peek(16, 4) == sync:
            buffer.go(20)
            continue
        length, key_length = struct.unpack(">ii", head) if len(head) == 8 else (-1, -1)
        body = b""
        if 0 <= key_length <= length <= MAX_RECORD:
            body = buffer.peek(length, 8)
        if len(head) < 8 or not 0 <= key_length <= length <= MAX_RECORD or len(body) < length:
            tally.damage(path, place, "a SequenceFile's record that is cut or damaged")
            if not buffer.find(sync):
                return
            continue
        buffer.go(8 + length)
        value = body[key_length:]
        if wbits:
            try:
                value = _unpack(value, wbits, MAX_RECORD)
            except (zlib.error, ValueError):
                tally.damage(path, place, "a SequenceFile's value that cannot be unpacked")
                continue
        yield Record(body[:key_length], value, place)


def _blocks(
    buffer: _Buffer, path: str | os.PathLike[str], wbits: int, sync: bytes, tally: Tally
) -> Iterator[Record]:
    while head := buffer.peek(20):
        place = buffer.at
        try:
            if head != _ESCAPE + sync:
                raise ValueError("no sync mark")
            buffer.go(20)
            count = _vint(buffer)
            parts = []
            for _ in range(4):
                size = _vint(buffer)
                data = buffer.peek(size) if 0 <= size <= MAX_BLOCK else b""
                if len(data) != size:
                    raise ValueError("cut short")
                buffer.go(size)
                parts.append(_unpack(data, wbits, MAX_BLOCK))
            keys = _cut(count, parts[0], parts[1])
            values = _cut(count, parts[2], parts[3])
        except (zlib.error, ValueError):
            tally.damage(path, place, "a SequenceFile's block that is cut or damaged")
            if not buffer.find(_ESCAPE + sync):
                return
            buffer.start -= 20  # the next block begins with the mark; find() keeps it in the buffer
            buffer.at -= 20
            continue
        for key, value in zip(keys, values, strict=True):
            yield Record(key, value, place)


def _vint(buffer: _Buffer) -> int:
    fields = Fields(buffer.peek(9))
    value = fields.vint()
    buffer.go(fields.at)
    return value


def _cut(count: int, lengths: bytes, data: bytes) -> list[bytes]:
    """``data`` in pieces of ``lengths``, which are vints."""
    if not 0 <= count <= len(lengths):
        raise ValueError("a count that does not fit")
    sizes, pieces = Fields(lengths), Fields(data)
    return [pieces.take(sizes.vint()) for _ in range(count)]


def _unpack(data: bytes, wbits: int, limit: int) -> bytes:
    work = zlib.decompressobj(wbits)
    found = work.decompress(data, limit)
    if not work.eof:
        raise ValueError("cut short, or larger than is read")
    return found
