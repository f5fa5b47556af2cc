"""Read Hadoop's SequenceFiles with no, record or block compression.

A file begins with ``SEQ``, a version (4 to 6 are read), the classes of keys and values, the compression, metadata and
the sync mark, which is 16 random bytes. The sync mark is repeated before each block. Between other records it is
repeated after at least 100 KiB (Hadoop 3.4) or 2,000 bytes (Hadoop 2.8).

If Hadoop's checksum file lies beside a file, every byte is compared with it. A record that touches a chunk with a wrong
checksum is left out. The parts of a block have checksums of their own, so a block is left out only if these are wrong.

Damaged records are left out and counted, with the number of bytes that were passed over. Lengths have no checksum of
their own, and a wrong length can hide the records that follow. So each part must fit its length exactly. Damage is: a
key or value that ends before or after its length, bytes after a compressed stream, a wrong number of records in a
block, and a record that contains the sync mark. Reading continues at the next bytes that are a whole record, or after
the next sync mark if there are none before it. Without a checksum file, a changed character in uncompressed text is
not noticed.

Source: org.apache.hadoop.io.SequenceFile, Hadoop 3.4.
"""

import os
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from inlink.base.damage import Tally
from inlink.base.opening import Stream
from inlink.errors import DamageError, FormatError
from inlink.nutch.checksums import CheckedStream
from inlink.nutch.fields import Fields, Writable

# The largest size of a record in bytes, packed and unpacked.
MAX_RECORD = 1 << 26
# The largest size in bytes of each of a block's four parts.
MAX_BLOCK = 1 << 28
_CHUNK = 1 << 20
# A length of -1 instead of a record's length: a sync mark follows.
_ESCAPE = b"\xff\xff\xff\xff"
_CODECS = {
    "org.apache.hadoop.io.compress.DefaultCodec": 15,
    "org.apache.hadoop.io.compress.DeflateCodec": 15,
    "org.apache.hadoop.io.compress.GzipCodec": 31,
}

K = TypeVar("K")
V = TypeVar("V")


class _Buffer:
    """A stream with look-ahead. ``at`` is its place in the file, in bytes."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.data = bytearray()
        # The start of the unread part of data.
        self.start = 0
        self.at = 0

    def peek(self, size: int, skip: int = 0) -> bytes:
        """Return ``size`` bytes from ``skip`` bytes ahead; fewer at the end of the file."""
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
        """Move forward by bytes that were peeked at."""
        self.start += size
        self.at += size

    def find(self, mark: bytes) -> bool:
        """Move to the next mark. Return False if there is none, and move to the end of the file."""
        while True:
            self.peek(len(mark))
            place = self.data.find(mark, self.start)
            if place >= 0:
                self.go(place - self.start)
                return True
            left = len(self.data) - self.start
            if left < len(mark):
                self.go(left)
                return False
            self.go(left - len(mark) + 1)


def records(
    path: str | os.PathLike[str], key: Writable[K], value: Writable[V], tally: Tally
) -> Iterator[tuple[K, V]]:
    """Yield the keys and values of one SequenceFile.

    Parameters
    ----------
    path : path-like
        The file.
    key, value : Writable
        The classes that the file must hold.
    tally : Tally
        Counts damage.

    Raises
    ------
    inlink.errors.FormatError
        If the file is not a SequenceFile, holds other classes, or has a codec other than Default, Deflate and Gzip.
    inlink.errors.DamageError
        If the header is cut or damaged. With a strict tally, if anything is damaged.
    """

    def decode(key_data: bytes, value_data: bytes) -> tuple[K, V]:
        return key.read(key_data), value.read(value_data)

    with CheckedStream(path, tally, f"reading {os.fspath(path)}") as stream:
        buffer = _Buffer(stream)
        wbits, blocks, sync = _header(buffer, path, key.name, value.name)
        if blocks:
            yield from _compressed_blocks(buffer, path, wbits, sync, tally, decode)
        else:
            yield from _Records(buffer, path, wbits, sync, tally, decode, stream.differs).read()


def value_class(path: str | os.PathLike[str]) -> str:
    """Return the class of a SequenceFile's values.

    Raises
    ------
    inlink.errors.FormatError
        If the file is not a SequenceFile.
    inlink.errors.DamageError
        If the header is cut or damaged.
    """
    with Stream(path) as stream:
        return _classes(_Buffer(stream), path)[1][1]


def _header(
    buffer: _Buffer, path: str | os.PathLike[str], key_class: str, value_class: str
) -> tuple[int, bool, bytes]:
    """Return zlib's number for the codec (0: not packed), whether the file has blocks, and the sync mark."""
    fields, classes = _classes(buffer, path)
    version = fields.data[3]
    try:
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
            f"{path} is packed with {codec[:200]!r}, but only DefaultCodec and GzipCodec can be read: write it again"
        )
    buffer.go(fields.at)
    return (_CODECS[codec] if packed else 0), blocks and packed, sync


def _classes(buffer: _Buffer, path: str | os.PathLike[str]) -> tuple[Fields, list[str]]:
    """Read a header up to the classes of keys and values. Return the fields that follow, and the two classes."""
    head = buffer.peek(_CHUNK)
    if head[:3] != b"SEQ":
        raise FormatError(f"{path} is not a SequenceFile: it does not begin with SEQ")
    version = head[3] if len(head) > 3 else 0
    if not 4 <= version <= 6:
        raise FormatError(
            f"{path}: SequenceFile version {version}, but only 4 to 6 can be read: write it again with Hadoop"
        )
    fields = Fields(head)
    fields.at = 4
    try:
        return fields, [fields.text().decode("utf-8", "replace") for _ in range(2)]
    except ValueError:
        raise DamageError(f"{path}: the header is cut or damaged: fetch the file again") from None


_Decode = Callable[[bytes, bytes], tuple[K, V]]


@dataclass
class _Records(Generic[K, V]):
    """Reads records that are not in blocks.

    Parameters
    ----------
    wbits : int
        Zlib's number for the codec of the values; 0 if they are not packed.
    decode : callable
        Makes a record of its key and value.
    differs : callable
        Takes two places of the file. Returns whether the bytes between them differ from their checksums.
    """

    buffer: _Buffer
    path: str | os.PathLike[str]
    wbits: int
    sync: bytes
    tally: Tally
    decode: _Decode[K, V]
    differs: Callable[[int, int], bool]

    # The start of the next whole record in the searched bytes. If there is none, the place of the next sync mark.
    target: int = 0
    whole: bool = False
    # A place from which the lengths of the records are known to lead to the target.
    leading: int = -1

    def read(self) -> Iterator[tuple[K, V]]:
        """Yield the results of ``decode`` for the records."""
        buffer = self.buffer
        while head := buffer.peek(8):
            if head[:4] == _ESCAPE and buffer.peek(16, 4) == self.sync:
                buffer.go(20)
                continue
            length, key_length = struct.unpack(">ii", head) if len(head) == 8 else (-1, -1)
            possible = 0 <= key_length <= length <= MAX_RECORD
            # The next sync mark begins at least 4 bytes after the record, because its escape comes first. So this
            # record hides a mark if a mark ends within the next 19 bytes.
            ahead = buffer.peek(length + 27) if possible else b""
            if not possible or len(ahead) < length + 8 or self.sync in ahead:
                self._pass_over("a SequenceFile's record that is cut or damaged", None)
                continue
            try:
                record = self._record(ahead, 0)
            except ValueError as error:
                self._pass_over(str(error), length + 8)
                continue
            buffer.go(8 + length)
            yield record

    def _record(self, data: bytes, at: int) -> tuple[K, V]:
        """Read the record that begins ``at`` bytes ahead."""
        length, key_length = struct.unpack_from(">ii", data, at)
        middle, end = at + 8 + key_length, at + 8 + length
        if self.differs(self.buffer.at + at, self.buffer.at + end):
            raise ValueError("a SequenceFile's record that differs from its checksum (.crc)")
        value = data[middle:end]
        if self.wbits:
            try:
                value = _unpack(value, self.wbits, MAX_RECORD)
            except ValueError:
                raise ValueError("a SequenceFile's value that cannot be unpacked") from None
        return self.decode(data[at + 8 : middle], value)

    def _pass_over(self, what: str, size: int | None) -> None:
        """Move to the next record: over ``size`` bytes if this size is right. None: the size is unknown."""
        buffer, place = self.buffer, self.buffer.at
        if place >= self.target:
            region = self._before_sync()
            start = self._first_whole(region)
            self.whole = start is not None
            self.target, self.leading = place + (len(region) if start is None else start), -1
        if size is not None and (place == self.leading or self._leads_to_target(size)):
            buffer.go(size)
            self.leading = buffer.at
        else:
            buffer.go(self.target - place)
            if not self.whole and buffer.find(self.sync):
                buffer.go(16)
        self.tally.damage(self.path, place, what, size=buffer.at - place)

    def _leads_to_target(self, at: int) -> bool:
        """Return whether the lengths of the records from ``at`` bytes ahead lead to the target."""
        end = self.target - self.buffer.at
        while at < end:
            head = self.buffer.peek(8, at)
            length, key_length = struct.unpack(">ii", head) if len(head) == 8 else (-1, -1)
            if not 0 <= key_length <= length <= MAX_RECORD:
                return False
            at += 8 + length
        return at == end

    def _before_sync(self) -> bytes:
        """Return the bytes before the next sync mark, or before the end of the file; at most ``MAX_RECORD``."""
        size = _CHUNK
        while True:
            ahead = self.buffer.peek(size)
            end = ahead.find(self.sync)
            if end >= 0:
                return ahead[: max(end - 4, 0)]
            if len(ahead) < size or size >= MAX_RECORD:
                return ahead
            size *= 2

    def _first_whole(self, data: bytes) -> int | None:
        """Return the first place after the first byte at which a whole record begins."""
        for begin in range(1, len(data) - 8, _CHUNK):
            numbers = np.frombuffer(data[begin : begin + _CHUNK + 7], np.uint8).astype(np.int64)
            words = numbers[:-3] << 24 | numbers[1:-2] << 16 | numbers[2:-1] << 8 | numbers[3:]
            lengths, key_lengths = words[:-4], words[4:]
            rest = len(data) - 8 - begin - np.arange(len(lengths))
            possible = (key_lengths > 0) & (key_lengths <= lengths) & (lengths <= rest)
            for place in np.flatnonzero(possible).tolist():
                try:
                    self._record(data, begin + place)
                except ValueError:
                    continue
                return int(begin + place)
        return None


def _compressed_blocks(
    buffer: _Buffer,
    path: str | os.PathLike[str],
    wbits: int,
    sync: bytes,
    tally: Tally,
    decode: _Decode[K, V],
) -> Iterator[tuple[K, V]]:
    """Yield the results of ``decode`` for the records of a file with block compression."""
    mark = _ESCAPE + sync
    while buffer.peek(1):
        place = buffer.at
        try:
            keys, values, size = _block(buffer, mark, wbits)
        except ValueError:
            # Search for the mark of the next block, not for that of this block.
            buffer.go(1)
            buffer.find(mark)
            what = "a SequenceFile's block that is cut or damaged"
            tally.damage(path, place, what, size=buffer.at - place)
            continue
        buffer.go(size)
        for key, value in zip(keys, values, strict=True):
            try:
                record = decode(key, value)
            except ValueError as error:
                tally.damage(path, place, str(error))
                continue
            yield record


def _block(buffer: _Buffer, mark: bytes, wbits: int) -> tuple[list[bytes], list[bytes], int]:
    """Return the keys and values of the next block, and its size in the file in bytes."""
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
    """Return the number that begins ``at`` bytes ahead, and the place where it ends."""
    fields = Fields(buffer.peek(9, at))
    return fields.vint(), at + fields.at


def _cut(count: int, lengths: bytes, data: bytes) -> list[bytes]:
    """Cut ``data`` into ``count`` pieces of ``lengths``, which are vints. Both must be used up."""
    if not 0 <= count <= len(lengths):
        raise ValueError("a count that does not fit")
    sizes, pieces = Fields(lengths), Fields(data)
    cut = [pieces.take(sizes.vint()) for _ in range(count)]
    if sizes.at < len(lengths) or pieces.at < len(data):
        raise ValueError("a count that does not fit")
    return cut


def _unpack(data: bytes, wbits: int, limit: int) -> bytes:
    """Unpack one compressed stream that fills ``data`` exactly."""
    work = zlib.decompressobj(wbits)
    try:
        unpacked = work.decompress(data, limit)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not work.eof or work.unused_data:
        raise ValueError("cut short, followed by other bytes, or larger than is read")
    return unpacked
