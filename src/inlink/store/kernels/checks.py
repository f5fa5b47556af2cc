"""The loops that check frames: CRC-32 as zlib computes it, whole frames, and the next frame behind damage."""

import numpy as np
from numpy import uint8, uint32, uint64

from inlink.base.arrays import AnyArray, UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, kernel
from inlink.store import format as layout
from inlink.store.kernels.frames import HEAD_SIZE, head_at, u64_at
from inlink.store.kernels.sound import sound, text_sound

__all__ = [
    "BAD_HEAD",
    "BAD_PAYLOAD",
    "BAD_URLS",
    "CUT",
    "OUT_OF_ORDER",
    "SOUND",
    "WILD",
    "crc32",
    "fault_at",
    "head_places",
    "next_head",
    "payload_sound",
    "whole_frames",
    "whole_head",
]


SOUND, CUT, BAD_HEAD, BAD_PAYLOAD, BAD_URLS, OUT_OF_ORDER, WILD = range(7)
"""The faults of a frame: none; the file ends within it; the checksum of its head, its payload or its URLs differs; it
does not follow the frame before it; it has impossible values although its checksums are correct."""

_CHECKED = uint64(layout.CHECKED.size)
_U8, _U16 = uint64(8), uint64(16)
_U32 = uint64(32)
_BYTE = uint64(0xFF)
_ALL = uint64(0xFFFFFFFF)
_MOST_UNSYNCED = uint64(layout.MOST_UNSYNCED)


def _crc_tables() -> UInt32Array:
    """16 tables of 256: the effect of a byte on the checksum if 0 to 15 bytes follow it (Kounavis & Berry, 2005)."""
    tables = np.empty((16, 256), uint32)
    tables[0] = np.arange(256)
    for _ in range(8):
        tables[0] = (tables[0] >> 1) ^ np.where(tables[0] & 1, uint32(0xEDB88320), uint32(0))
    for k in range(1, 16):
        tables[k] = tables[0][tables[k - 1] & 0xFF] ^ (tables[k - 1] >> 8)
    return tables.ravel()


_TABLES = _crc_tables()


@kernel
def _folded(word: uint64, first: uint64) -> uint64:
    """The effect of eight bytes on the checksum. The first byte uses the table that begins at ``first``."""
    step = uint64(256)
    crc = _TABLES[first + (word & _BYTE)]
    for k in range(U1, _U8):
        crc ^= _TABLES[first - k * step + ((word >> (k * _U8)) & _BYTE)]
    return uint64(crc)


@kernel
def crc32(data: UInt8Array, begin: uint64, end: uint64, start: uint64) -> uint64:
    """The CRC-32 of data[begin:end] from ``start`` on, as in zlib, computed sixteen bytes at a time."""
    crc, at = _ALL ^ start, begin
    while at + _U16 <= end:
        crc = _folded(u64_at(data, at) ^ crc, uint64(15 * 256)) ^ _folded(
            u64_at(data, at + _U8), uint64(7 * 256)
        )
        at += _U16
    if at + _U8 <= end:
        crc = _folded(u64_at(data, at) ^ crc, uint64(7 * 256))
        at += _U8
    while at < end:
        crc = uint64(_TABLES[(crc ^ uint64(data[at])) & _BYTE]) ^ (crc >> _U8)
        at += U1
    return crc ^ _ALL


@kernel
def _head_sound(log: UInt8Array, at: uint64, salt: uint64) -> bool:
    """Return whether a sound head of this crawl begins at byte ``at``, whatever its place."""
    size = uint64(len(log))
    if at >= size or size - at < HEAD_SIZE:
        return False
    head = head_at(log, at)
    return (
        uint64(head.marker) == salt & _ALL
        and head.length >= HEAD_SIZE
        and crc32(log, at, at + _CHECKED, salt >> _U32) == uint64(head.head_check)
    )


@kernel
def whole_head(log: UInt8Array, place: uint64, salt: uint64) -> bool:
    """Return whether a sound head is at its ``place``. The frame may still end after the end of the log."""
    return _head_sound(log, place, salt) and head_at(log, place).place == place


@kernel
def payload_sound(log: UInt8Array, place: uint64) -> bool:
    """Return whether the payload of the frame at ``place``, whose head is sound, has a correct checksum."""
    head = head_at(log, place)
    stop = place + uint64(head.length)
    return stop <= uint64(len(log)) and crc32(log, place + HEAD_SIZE, stop, U0) == uint64(head.payload_check)


@kernel
def fault_at(log: UInt8Array, urls: UInt8Array, place: uint64, text_from: uint64, salt: uint64) -> int:
    """The fault of the frame that begins at byte ``place`` of the log, apart from its own ``place``.

    URLs before byte ``text_from`` of urls.txt are not checked.
    """
    size = uint64(len(log))
    if size - place < HEAD_SIZE:
        return CUT
    if not _head_sound(log, place, salt):
        return BAD_HEAD
    head = head_at(log, place)
    if place + uint64(head.length) > size:
        return CUT
    if not payload_sound(log, place):
        return BAD_PAYLOAD
    if head.text_size > 0 and head.text_place >= text_from:
        stop = head.text_place + uint64(head.text_size)
        if (
            stop < head.text_place
            or stop > uint64(len(urls))
            or crc32(urls, head.text_place, stop, U0) != uint64(head.text_check)
        ):
            return BAD_URLS
        if not text_sound(urls, head.text_place, stop, uint64(head.new)):
            return WILD
    if not sound(log, place, uint64(head.first) + uint64(head.new)):
        return WILD
    return SOUND


@kernel
def whole_frames(log: UInt8Array, urls: UInt8Array, text_from: uint64, reached: AnyArray) -> None:
    """Check the frames of ``log`` up to the first that is not sound, or does not follow the frame before it.

    ``reached`` is a :class:`.columns.Reached`: the beginning at first, and then the end of the sound frames. URLs
    before byte ``text_from`` of urls.txt are not checked.
    """
    r = reached[U0]
    while r.place < uint64(len(log)):
        r.fault = fault_at(log, urls, r.place, text_from, r.salt)
        if r.fault != SOUND:
            break
        head = head_at(log, r.place)
        if (
            head.place != r.place
            or uint64(head.number) != r.frames & _ALL
            or head.text_place != r.text_place
            or uint64(head.first) != r.pages
        ):
            r.fault = OUT_OF_ORDER
            break
        unsynced = uint64(head.unsynced)
        if unsynced < _MOST_UNSYNCED and unsynced < r.place:
            r.synced = max(r.synced, r.place - unsynced)
        r.place += uint64(head.length)
        r.text_place += uint64(head.text_size)
        r.pages += uint64(head.new)
        r.frames += U1


@kernel
def next_head(log: UInt8Array, begin: uint64, salt: uint64) -> uint64:
    """The first byte of the first sound head at or after ``begin``, whatever its place; the log's size if none."""
    at, size = begin, uint64(len(log))
    first = uint8(salt & _BYTE)
    while at + HEAD_SIZE <= size:
        if log[at] == first and _head_sound(log, at, salt):
            return at
        at += U1
    return size


@kernel
def head_places(log: UInt8Array, begin: uint64, salt: uint64, out: UInt64Array) -> tuple[uint64, uint64]:
    """Write the first bytes of sound heads from ``begin`` on to ``out``, whatever the places in the heads.

    A head within the payload of a frame is left out if the payload is sound. Return the number of heads, and the byte
    at which to go on.
    """
    count, at, size = U0, begin, uint64(len(log))
    while count < uint64(len(out)):
        at = next_head(log, at, salt)
        if at == size:
            break
        out[count] = at
        count += U1
        at += uint64(head_at(log, at).length) if payload_sound(log, at) else U1
    return count, at
