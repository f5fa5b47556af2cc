"""Read Hadoop's SequenceFiles with no, record or block compression.

A file begins with ``SEQ``, a version (4 to 6 are read), the classes of keys and values, the compression, metadata and
16 random bytes, the sync mark. The sync mark is repeated before each block. Between other records it is repeated after
at least 100 KiB (Hadoop 3.4) or 2,000 bytes (Hadoop 2.8).

Damaged records are left out and counted. Lengths have no checksum, and a wrong length can hide the records that follow.
So each part must fit its length exactly. These are damage: a key or value that ends before or behind its length, bytes
behind a compressed stream, a wrong number of records in a block, and a record that contains the sync mark. If the next
record cannot be found, reading continues behind the next sync mark. A changed character in uncompressed text is not
noticed, because text has no checksum.

Source: org.apache.hadoop.io.SequenceFile and WritableUtils, Hadoop 3.4.
"""

import os
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from inlink.base.damage import Tally
from inlink.base.opening import Stream
from inlink.errors import DamageError, FormatError

__all__ = ["MAX_BLOCK", "MAX_RECORD", "TEXT", "Fields", "Writable", "records"]

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

K = TypeVar("K")
V = TypeVar("V")


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


@dataclass(frozen=True)
class Writable(Generic[V]):
    """A Java class of keys or values.

    Parameters
    ----------
    name : str
        The name of the class, with its package.
    decode : callable
        Reads an object field by field. Raises ValueError if the bytes are not an object of this class.
    """

    name: str
    decode: Callable[[Fields], V]

    def read(self, data: bytes) -> V:
        """Read the object that fills ``data`` exactly.

        Raises
        ------
        ValueError
            If the bytes are not an object of this class, or the object does not end with ``data``.
        """
        fields = Fields(data)
        try:
            value = self.decode(fields)
            if fields.at < len(data):
                raise ValueError("shorter than its record says")
        except ValueError as error:
            raise ValueError(f"a {self.name.split('.')[-1]} that cannot be read ({error})") from None
        return value


TEXT = Writable("org.apache.hadoop.io.Text", Fields.text)


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
        """Go on to the next mark; False if there is none."""
        while True:
            self.peek(len(mark))
            found = self.data.find(mark, self.start)
            if found >= 0:
                self.go(found - self.start)
                return True
            left = len(self.data) - self.start
            if left < len(mark):
                return False
            self.go(left - len(mark) + 1)


def records(
    path: str | os.PathLike[str], key: Writable[K], value: Writable[V], tally: Tally
) -> Iterator[tuple[K, V]]:
    """Yield the keys and values of one SequenceFile.

    Parameters
    ----------
    path : path-like
    key, value : Writable
        The classes that the file must hold.
    tally : Tally
        Counts damage.

    Raises
    ------
    inlink.errors.FormatError
        If the file is no SequenceFile, holds other classes, or has a codec other than Default, Deflate and Gzip.
    inlink.errors.DamageError
        If the header is cut or damaged. With a strict tally, if anything is damaged.
    """
    with Stream(path, f"reading {os.fspath(path)}") as stream:
        buffer = _Buffer(stream)
        wbits, blocks, sync = _header(buffer, path, key.name, value.name)
        read = _blocks if blocks else _plain
        for place, key_data, value_data in read(buffer, path, wbits, sync, tally):
            try:
                record = key.read(key_data), value.read(value_data)
            except ValueError as error:
                tally.damage(path, place, str(error))
                continue
            yield record


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
                fields.text().decode()
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
) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the place of each record, its key and its unpacked value."""
    while head := buffer.peek(8):
        place = buffer.at
        if head[:4] == _ESCAPE and buffer.peek(16, 4) == sync:
            buffer.go(20)
            continue
        length, key_length = struct.unpack(">ii", head) if len(head) == 8 else (-1, -1)
        possible = 0 <= key_length <= length <= MAX_RECORD
        # The next sync mark begins at least 4 bytes behind the record, after its escape. So this record hides a mark if
        # one ends within the next 19 bytes.
        ahead = buffer.peek(length + 19, 8) if possible else b""
        if not possible or len(ahead) < length or sync in ahead:
            tally.damage(path, place, "a SequenceFile's record that is cut or damaged")
            if not buffer.find(sync):
                return
            buffer.go(16)
            continue
        buffer.go(8 + length)
        value = ahead[key_length:length]
        if wbits:
            try:
                value = _unpack(value, wbits, MAX_RECORD)
            except ValueError:
                tally.damage(path, place, "a SequenceFile's value that cannot be unpacked")
                continue
        yield place, ahead[:key_length], value


def _blocks(
    buffer: _Buffer, path: str | os.PathLike[str], wbits: int, sync: bytes, tally: Tally
) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield for each record the place of its block, its key and its value, both unpacked."""
    mark = _ESCAPE + sync
    while buffer.peek(1):
        place = buffer.at
        try:
            keys, values, size = _block(buffer, mark, wbits)
        except ValueError:
            tally.damage(path, place, "a SequenceFile's block that is cut or damaged")
            # Search for the mark of the next block, not for that of this block.
            buffer.go(1)
            if not buffer.find(mark):
                return
            continue
        buffer.go(size)
        for key, value in zip(keys, values, strict=True):
            yield place, key, value


def _block(buffer: _Buffer, mark: bytes, wbits: int) -> tuple[list[bytes], list[bytes], int]:
    """The keys and values of the next block, and the block's bytes in the file."""
    if buffer.peek(len(mark)) != mark:
        raise ValueError("no sync mark")
    count, at = _vint(buffer, len(mark))
    parts = []
    for _ in range(4):
        size, at = _vint(buffer, at)
        data = buffer.peek(size, at) if 0 <= size <= MAX_BLOCK else b""
        if len(data) != size:
            raise ValueError("cut short")
        at += size
        parts.append(_unpack(data, wbits, MAX_BLOCK))
    return _cut(count, parts[0], parts[1]), _cut(count, parts[2], parts[3]), at


def _vint(buffer: _Buffer, at: int) -> tuple[int, int]:
    """The number that stands ``at`` bytes ahead, and where it ends."""
    fields = Fields(buffer.peek(9, at))
    return fields.vint(), at + fields.at


def _cut(count: int, lengths: bytes, data: bytes) -> list[bytes]:
    """Cut ``data`` into ``count`` pieces of ``lengths``, which are vints; nothing may be left of either."""
    if not 0 <= count <= len(lengths):
        raise ValueError("a count that does not fit")
    sizes, pieces = Fields(lengths), Fields(data)
    found = [pieces.take(sizes.vint()) for _ in range(count)]
    if sizes.at < len(lengths) or pieces.at < len(data):
        raise ValueError("a count that does not fit")
    return found


def _unpack(data: bytes, wbits: int, limit: int) -> bytes:
    """Unpack one compressed stream that fills ``data`` exactly."""
    work = zlib.decompressobj(wbits)
    try:
        found = work.decompress(data, limit)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not work.eof or work.unused_data:
        raise ValueError("cut short, followed by other bytes, or larger than is read")
    return found
