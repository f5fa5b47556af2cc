"""The loops over the log: its frames, and the lists in them.

:mod:`inlink.store.format` declares the format. A list of pages is coded as differences between increasing pages, each
difference in LEB128: seven bits a byte, the lowest first, the highest bit set on all bytes but the last.
"""

from typing import Any

import numpy as np
from numpy import float32, uint8, uint32, uint64

from inlink.base.arrays import Float32Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, item_at, kernel
from inlink.store import format as layout
from inlink.store.format import (
    EXCLUDE,
    HAS_SCORES,
    HEAD,
    LEASE,
    RENEWED,
    VISIT,
    ExcludedRecord,
    FlowRecord,
    LeaseRecord,
    ReceivedRecord,
    RenewedRecord,
    VisitRecord,
    dtype_of,
    size_of,
)

__all__ = [
    "FLOW",
    "FLOW_SIZE",
    "HEAD_SIZE",
    "NO_PAGE",
    "appended",
    "encode_links",
    "f32_at",
    "find_kinds",
    "flows_at",
    "head_at",
    "is_first_visit",
    "link_count",
    "link_scores_at",
    "links_at",
    "links_of_frames",
    "list_end",
    "list_start",
    "lists",
    "rows_with",
    "u32_at",
    "u64_at",
]


NO_PAGE = uint32(layout.NO_PAGE)
HEAD_SIZE = uint64(layout.HEAD_SIZE)
FLOW, FLOW_SIZE = dtype_of(FlowRecord), uint64(size_of(FlowRecord))
_RECEIVED, _RECEIVED_SIZE = dtype_of(ReceivedRecord), uint64(size_of(ReceivedRecord))
_VISITED, _VISITED_SIZE = dtype_of(VisitRecord), uint64(size_of(VisitRecord))
_LEASED_SIZE = uint64(size_of(LeaseRecord))
_RENEWED_SIZE = uint64(size_of(RenewedRecord))
_EXCLUDED, _EXCLUDED_SIZE = dtype_of(ExcludedRecord), uint64(size_of(ExcludedRecord))
_SEVEN = uint64(7)
_MORE = uint64(0x80)
_REST = uint64(0x7F)
_LOW = uint64(0xFFFFFFFF)
_U4 = uint64(4)
_U8 = uint64(8)
_U32 = uint64(32)


# -- records --------------------------------------------------------------------------------------------------------


@kernel
def head_at(log: UInt8Array, place: uint64) -> Any:
    """The head of the frame at ``place``, a record of :data:`inlink.store.format.HEAD`."""
    return item_at(log, place, HEAD)


@kernel
def u32_at(log: UInt8Array, at: uint64) -> uint64:
    """The uint32 that begins at byte ``at``."""
    return uint64(item_at(log, at, uint32))


@kernel
def u64_at(log: UInt8Array, at: uint64) -> uint64:
    """The uint64 that begins at byte ``at``."""
    return uint64(item_at(log, at, uint64))


@kernel
def f32_at(log: UInt8Array, at: uint64) -> float32:
    """The float32 that begins at byte ``at``."""
    return float32(item_at(log, at, float32))


@kernel
def link_count(log: UInt8Array, place: uint64) -> uint64:
    """The number of links, pages or leases that the frame at ``place`` lists."""
    return uint64(head_at(log, place).listed)


@kernel
def is_first_visit(log: UInt8Array, place: uint64) -> bool:
    """Return whether the visit at ``place`` is the first one of its page."""
    return bool(item_at(log, place + HEAD_SIZE, _VISITED).previous == 0)


@kernel
def flows_at(log: UInt8Array, place: uint64) -> tuple[uint64, uint64]:
    """The number of changes of rank in the event at ``place``, and the byte at which they begin."""
    at = place + HEAD_SIZE
    return uint64(item_at(log, at, _RECEIVED).flows), at + _RECEIVED_SIZE + link_count(log, place) * _U4


@kernel
def list_start(log: UInt8Array, place: uint64) -> uint64:
    """The byte at which the list of the frame at ``place`` begins, after the record of its kind."""
    at = place + HEAD_SIZE
    kind = head_at(log, place).kind
    if kind == VISIT:
        return at + _VISITED_SIZE + uint64(item_at(log, at, _VISITED).hash_size)
    if kind == LEASE:
        return at + _LEASED_SIZE
    if kind == RENEWED:
        return at + _RENEWED_SIZE
    if kind == EXCLUDE:
        return at + _EXCLUDED_SIZE + uint64(item_at(log, at, _EXCLUDED).reason_size)
    return at


# -- coded lists ----------------------------------------------------------------------------------------------------


@kernel
def number_at(log: UInt8Array, at: uint64) -> tuple[uint64, uint64]:
    """The LEB128 number that begins at byte ``at``, and the byte after it."""
    byte = uint64(log[at])
    at += U1
    number, shift = byte & _REST, _SEVEN
    while byte >= _MORE:
        byte = uint64(log[at])
        at += U1
        number |= (byte & _REST) << shift
        shift += _SEVEN
    return number, at


@kernel
def links_at(log: UInt8Array, place: uint64, out: UInt32Array) -> uint64:
    """Write the list of the frame at ``place`` to ``out``, increasing; return its length."""
    count = link_count(log, place)
    at = list_start(log, place)
    page = U0
    for i in range(U0, count):
        delta, at = number_at(log, at)
        page += delta
        out[i] = uint32(page)
    return count


@kernel
def list_end(log: UInt8Array, place: uint64) -> uint64:
    """The byte at which the coded list of the frame at ``place`` ends."""
    at = list_start(log, place)
    left = link_count(log, place)
    while left > U0:
        if uint64(log[at]) < _MORE:
            left -= U1
        at += U1
    return at


@kernel
def link_scores_at(log: UInt8Array, place: uint64, out: Float32Array) -> bool:
    """Write the scores of the frame's list to ``out``; return False if it has no scores."""
    if (head_at(log, place).flags & HAS_SCORES) == 0:
        return False
    at = list_end(log, place)
    for i in range(U0, link_count(log, place)):
        out[i] = f32_at(log, at + i * _U4)
    return True


@kernel
def encode_links(pages: UInt32Array, scores: Float32Array, out: UInt8Array) -> tuple[uint64, uint64]:
    """Code pages as a list, each page once with the best of its scores; ``scores`` may be empty.

    ``NO_PAGE`` is left out. Return the number of pages and of bytes, scores included. ``pages`` and ``scores`` are
    sorted in place.
    """
    n = uint64(len(pages))
    keys = np.empty(n, uint64)
    for i in range(U0, n):
        keys[i] = (uint64(pages[i]) << _U32) | i
    if n > uint64(100):
        keys.sort()
    else:
        for i in range(U1, n):
            key = keys[i]
            k = i
            while k > U0 and keys[k - U1] > key:
                keys[k] = keys[k - U1]
                k -= U1
            keys[k] = key
    best = np.empty(uint64(len(scores)), float32)
    count, last = U0, U0
    for i in range(U0, n):
        page = keys[i] >> _U32
        if page == uint64(NO_PAGE):
            break
        new = count == U0 or page != last
        if new:
            pages[count] = uint32(page)
        if len(scores) > 0:
            score = scores[keys[i] & _LOW]
            if new:
                best[count] = score
            elif score > best[count - U1]:
                best[count - U1] = score
        if new:
            count += U1
        last = page
    at, last = U0, U0
    for i in range(U0, count):
        page = uint64(pages[i])
        delta = page - last
        while delta >= _MORE:
            out[at] = uint8((delta & _REST) | _MORE)
            at += U1
            delta >>= _SEVEN
        out[at] = uint8(delta)
        at += U1
        last = page
    if len(scores) > 0:
        for i in range(U0, count):
            scores[i] = best[i]
        raw = best[:count].view(uint8)
        for k in range(U0, uint64(len(raw))):
            out[at + k] = raw[k]
        at += uint64(len(raw))
    return count, at


# -- many frames ----------------------------------------------------------------------------------------------------


@kernel
def find_kinds(log: UInt8Array, begin: uint64, stop: uint64, wanted: uint64) -> UInt64Array:
    """The places of the frames of wanted kinds in log[begin:stop], increasing. Bit k of ``wanted`` means kind k."""
    places = np.empty(uint64(64), uint64)
    count, place = U0, begin
    while place < stop:
        head = head_at(log, place)
        if (wanted >> uint64(head.kind)) & U1 != U0:
            places = appended(places, count, place)
            count += U1
        place += uint64(head.length)
    return places[:count].copy()


@kernel
def appended(values: UInt64Array, count: uint64, value: uint64) -> UInt64Array:
    """Write ``value`` after the first ``count`` values; return the array, or a longer copy if it was full."""
    if count == uint64(len(values)):
        longer = np.empty(count * uint64(2), uint64)
        longer[:count] = values
        values = longer
    values[count] = value
    return values


@kernel
def lists(log: UInt8Array, place: uint64, page: uint64) -> tuple[bool, uint64]:
    """Return whether the frame at ``place`` lists a page, and the number of pages of its list that were read."""
    at = list_start(log, place)
    count = link_count(log, place)
    listed = U0
    for i in range(U0, count):
        delta, at = number_at(log, at)
        listed += delta
        if listed >= page:
            return listed == page, i + U1
    return False, count


@kernel
def rows_with(log: UInt8Array, places: UInt64Array, page: uint64) -> UInt64Array:
    """The positions in ``places`` of the frames that list a page, increasing."""
    rows = np.empty(uint64(16), uint64)
    count = U0
    for k in range(U0, uint64(len(places))):
        listed, _ = lists(log, places[k], page)
        if listed:
            rows = appended(rows, count, uint64(k))
            count += U1
    return rows[:count].copy()


@kernel
def links_of_frames(log: UInt8Array, places: UInt64Array, offsets: UInt64Array, out: UInt32Array) -> uint64:
    """Write the lists of many frames as rows: offsets uint64[k + 1], pages in ``out``. Return the number that fit."""
    offsets[U0] = U0
    for k in range(U0, uint64(len(places))):
        count = link_count(log, places[k])
        if offsets[k] + count > uint64(len(out)):
            return uint64(k)
        links_at(log, places[k], out[offsets[k] : offsets[k] + count])
        offsets[k + U1] = offsets[k] + count
    return uint64(len(places))
