"""Check that the values in a frame are possible, before any other kernel uses the frame.

Kernels check no bounds. A frame with correct checksums may still hold any numbers, if a faulty or hostile program wrote
them. Here each length, count, page and lease is compared with its limits at that place of the log, and floats that must
be numbers are checked for NaN.
"""

from typing import Any

import numpy as np
from numpy import float32, uint8, uint64

from inlink.base.arrays import UInt8Array
from inlink.base.jit import U0, U1, item_at, kernel
from inlink.store.format import (
    CANONICAL,
    CARRY,
    DUE,
    EXCLUDE,
    FAILED,
    GIVEN,
    HAS_ANCHORS,
    HAS_CARRIED,
    HAS_SCORES,
    HINT,
    HOST,
    HOST_SET,
    LEASE,
    LOST,
    MERGE,
    PAUSE,
    RANKING,
    RECEIVED,
    RELEASE,
    RELOAD,
    RENEWED,
    REPORTED,
    RESUME,
    SEED,
    SESSION,
    SYNCED,
    VISIT,
    CarriedRecord,
    DateRecord,
    ExcludedRecord,
    FailedRecord,
    FlowRecord,
    HostRecord,
    HostSetRecord,
    LeaseRecord,
    LostRecord,
    OutcomeRecord,
    RankingRecord,
    ReceivedRecord,
    ReleasedRecord,
    RenewedRecord,
    ReportedRecord,
    SessionRecord,
    VisitRecord,
    dtype_of,
    size_of,
)
from inlink.store.kernels.frames import HEAD_SIZE, NO_PAGE, f32_at, head_at, u32_at

__all__ = ["row_sound", "sound", "text_sound"]


_CARRIED, _CARRIED_SIZE = dtype_of(CarriedRecord), uint64(size_of(CarriedRecord))
_DATE, _DATE_SIZE = dtype_of(DateRecord), uint64(size_of(DateRecord))
_EXCLUDED, _EXCLUDED_SIZE = dtype_of(ExcludedRecord), uint64(size_of(ExcludedRecord))
_FAILED, _FAILED_SIZE = dtype_of(FailedRecord), uint64(size_of(FailedRecord))
_HOST, _HOST_SIZE = dtype_of(HostRecord), uint64(size_of(HostRecord))
_HOST_SET, _HOST_SET_SIZE = dtype_of(HostSetRecord), uint64(size_of(HostSetRecord))
_LEASED, _LEASED_SIZE = dtype_of(LeaseRecord), uint64(size_of(LeaseRecord))
_LOST, _LOST_SIZE = dtype_of(LostRecord), uint64(size_of(LostRecord))
_OUTCOME_SIZE = uint64(size_of(OutcomeRecord))
_RANKING_SIZE = uint64(size_of(RankingRecord))
_FLOW, _FLOW_SIZE = dtype_of(FlowRecord), uint64(size_of(FlowRecord))
_RECEIVED, _RECEIVED_SIZE = dtype_of(ReceivedRecord), uint64(size_of(ReceivedRecord))
_RELEASED, _RELEASED_SIZE = dtype_of(ReleasedRecord), uint64(size_of(ReleasedRecord))
_RENEWED, _RENEWED_SIZE = dtype_of(RenewedRecord), uint64(size_of(RenewedRecord))
_REPORTED_SIZE = uint64(size_of(ReportedRecord))
_SESSION, _SESSION_SIZE = dtype_of(SessionRecord), uint64(size_of(SessionRecord))
_VISITED, _VISITED_SIZE = dtype_of(VisitRecord), uint64(size_of(VisitRecord))

_U2, _U4, _U7, _U8 = (uint64(k) for k in (2, 4, 7, 8))
_MORE, _REST, _LONGEST = uint64(0x80), uint64(0x7F), uint64(35)
_LAST_KIND = 63
_LARGEST = float32(np.finfo(float32).max)
_FIRST_TIME, _LAST_TIME = -62135596800.0, 253402300800.0
"""The years 1 to 9999, which calendars support."""


@kernel
def row_sound(log: UInt8Array, place: uint64, num_pages: uint64) -> bool:
    """Return whether a sound visit or merge is at ``place``, with links only to pages below ``num_pages``."""
    if not sound(log, place, num_pages):
        return False
    kind = head_at(log, place).kind
    return kind == VISIT or kind == MERGE


@kernel
def sound(log: UInt8Array, place: uint64, num_pages: uint64) -> bool:
    """Return whether the values in the frame at ``place`` are possible if ``num_pages`` pages are known after it.

    Checksums are not compared.
    """
    size = uint64(len(log))
    if place >= size or size - place < HEAD_SIZE:
        return False
    head = head_at(log, place)
    length, kind, flags = uint64(head.length), head.kind, head.flags
    if length < HEAD_SIZE or length > size - place or kind == 0 or kind > _LAST_KIND:
        return False
    page, first, new = uint64(head.page), uint64(head.first), uint64(head.new)
    about = head.page != NO_PAGE
    # A page is made known by an older page, or by none. Otherwise a walk along makers could run in a circle.
    if (
        (about and page >= num_pages)
        or first + new > num_pages
        or (about and new > U0 and (kind == SEED or page >= first))
    ):
        return False
    # A URL and its newline are two bytes at least.
    if new * _U2 > uint64(head.text_size) or (new == U0 and head.text_size > 0):
        return False
    # Each lease that was given takes four bytes of the log.
    if (
        not (_FIRST_TIME <= head.time < _LAST_TIME and abs(head.score) <= _LARGEST)
        or head.lease > head.place // _U4
    ):
        return False
    if kind == SEED or kind == VISIT or kind == MERGE or kind == CANONICAL:
        return (about or kind == SEED) and _links_sound(log, place, num_pages)
    if (flags & HAS_CARRIED) != 0:
        return False
    if kind == FAILED or kind == HOST or kind == HOST_SET or kind == HINT or kind == DUE:
        return about and _about_page_sound(log, place)
    if kind == GIVEN or kind == CARRY:
        return about
    return _others_sound(log, place, num_pages)


@kernel
def _number(value: Any) -> bool:
    """Return whether a value is not NaN."""
    return bool(value == value)


@kernel
def _about_page_sound(log: UInt8Array, place: uint64) -> bool:
    """:func:`sound` for a frame with a record about one page or its host."""
    head = head_at(log, place)
    at, room, kind = place + HEAD_SIZE, uint64(head.length) - HEAD_SIZE, head.kind
    if kind == FAILED:
        return room >= _FAILED_SIZE and _number(item_at(log, at, _FAILED).due)
    if kind == HOST:
        if room != _HOST_SIZE:
            return False
        host = item_at(log, at, _HOST)
        # Each failure was an event.
        return (
            _number(host.due)
            and 0 <= host.delay <= _LARGEST
            and uint64(host.failures) <= head.place // HEAD_SIZE
        )
    if kind == HOST_SET:
        if room != _HOST_SET_SIZE:
            return False
        host = item_at(log, at, _HOST_SET)
        return _number(host.blocked_until) and 0 <= host.delay <= _LARGEST
    return room == _DATE_SIZE and _number(item_at(log, at, _DATE).date)


@kernel
def _others_sound(log: UInt8Array, place: uint64, num_pages: uint64) -> bool:
    """:func:`sound` for a frame that is not about one page."""
    head = head_at(log, place)
    at, room, kind = place + HEAD_SIZE, uint64(head.length) - HEAD_SIZE, head.kind
    listed, most_leases = uint64(head.listed), (head.place + uint64(head.length)) // _U4
    if kind == LEASE:
        if room != _LEASED_SIZE + listed * _U4:
            return False
        lease = item_at(log, at, _LEASED)
        return (
            _number(lease.expires)
            and U0 < lease.first_lease <= most_leases
            and lease.first_lease + listed <= most_leases + U1
            and _pages_sound(log, at + _LEASED_SIZE, listed, num_pages)
        )
    if kind == RENEWED:
        if room != _RENEWED_SIZE + listed * _U8:
            return False
        expires = item_at(log, at, _RENEWED).expires
        return _number(expires) and (listed > U0 or abs(expires) < _LAST_TIME)
    if kind == RELEASE:
        if room != listed * _RELEASED_SIZE:
            return False
        for i in range(U0, listed):
            released = item_at(log, at + i * _RELEASED_SIZE, _RELEASED)
            if uint64(released.page) >= num_pages or released.lease > most_leases:
                return False
        return True
    if kind == LOST:
        if room != listed * _LOST_SIZE:
            return False
        for i in range(U0, listed):
            lost = item_at(log, at + i * _LOST_SIZE, _LOST)
            if uint64(lost.page) >= num_pages or lost.lease > most_leases or not _number(lost.due):
                return False
        return True
    if kind == SESSION:
        if room < _SESSION_SIZE:
            return False
        session = item_at(log, at, _SESSION)
        # Each session before it began with an event as long as this at least.
        most = (head.place + uint64(head.length)) // (HEAD_SIZE + _SESSION_SIZE)
        return _number(session.silent_after) and uint64(session.session) <= most
    if kind == REPORTED:
        return room == _REPORTED_SIZE + listed * _OUTCOME_SIZE
    if kind == RELOAD:
        return room == listed * _U4 and _pages_sound(log, at, listed, num_pages)
    if kind == RECEIVED:
        return room >= _RECEIVED_SIZE and _received_sound(log, at, room, listed, num_pages)
    if kind == EXCLUDE:
        if room < _EXCLUDED_SIZE:
            return False
        reason = _EXCLUDED_SIZE + uint64(item_at(log, at, _EXCLUDED).reason_size)
        return room == reason + listed * _U4 and _pages_sound(log, at + reason, listed, num_pages)
    if kind == PAUSE or kind == RESUME or kind == SYNCED:
        return room == U0
    return kind != RANKING or room >= _RANKING_SIZE


@kernel
def _received_sound(log: UInt8Array, at: uint64, room: uint64, listed: uint64, num_pages: uint64) -> bool:
    """:func:`sound` for the payload of pages and ranks from another shard."""
    flows, flow_at = uint64(item_at(log, at, _RECEIVED).flows), at + _RECEIVED_SIZE + listed * _U4
    if room != _RECEIVED_SIZE + listed * _U4 + flows * _FLOW_SIZE:
        return False
    for i in range(U0, flows):
        flow = item_at(log, flow_at + i * _FLOW_SIZE, _FLOW)
        if uint64(flow.page) >= num_pages or not abs(flow.amount) <= _LARGEST:
            return False
    return _pages_sound(log, at + _RECEIVED_SIZE, listed, num_pages)


@kernel
def _pages_sound(log: UInt8Array, at: uint64, count: uint64, num_pages: uint64) -> bool:
    """Return whether ``count`` pages from byte ``at`` on are known."""
    for i in range(U0, count):
        if u32_at(log, at + i * _U4) >= num_pages:
            return False
    return True


@kernel
def _links_sound(log: UInt8Array, place: uint64, num_pages: uint64) -> bool:
    """:func:`sound` for a frame with a coded list: its parts must fill the payload exactly."""
    head = head_at(log, place)
    at, end = place + HEAD_SIZE, place + uint64(head.length)
    listed, flags, anchors = uint64(head.listed), head.flags, U0
    if head.kind == VISIT:
        if end - at < _VISITED_SIZE:
            return False
        visit = item_at(log, at, _VISITED)
        anchors = uint64(visit.anchor_size)
        at += _VISITED_SIZE + uint64(visit.hash_size)
        if not _FIRST_TIME <= visit.first_crawl < _LAST_TIME or visit.previous > head.place or at > end:
            return False
    if listed > end - at or (head.kind == MERGE and listed != U1) or (head.kind == CANONICAL and listed > U1):
        return False
    page = U0
    for i in range(U0, listed):
        if at >= end:
            return False
        byte = uint64(log[at])
        at += U1
        delta, shift = byte & _REST, _U7
        while byte >= _MORE:
            if at >= end or shift >= _LONGEST:
                return False
            byte = uint64(log[at])
            at += U1
            delta |= (byte & _REST) << shift
            shift += _U7
        page += delta
        if page >= num_pages or (delta == U0 and i > U0):
            return False
    if (flags & HAS_SCORES) != 0:
        if (end - at) // _U4 < listed:
            return False
        sound_scores = True
        for i in range(U0, listed):
            sound_scores &= abs(f32_at(log, at + i * _U4)) <= _LARGEST
        if not sound_scores:
            return False
        at += listed * _U4
    if anchors > end - at or ((flags & HAS_ANCHORS) != 0) != (anchors > U0):
        return False
    if anchors > U0:
        stop = at + anchors
        for _ in range(U0, listed):
            if at >= stop:
                return False
            at += U1 + uint64(log[at])
        if at != stop:
            return False
    return at == end if (flags & HAS_CARRIED) == 0 else _carried_sound(log, at, end, num_pages)


@kernel
def _carried_sound(log: UInt8Array, at: uint64, end: uint64, num_pages: uint64) -> bool:
    """Return whether the carried data of pages take exactly the bytes from ``at`` to ``end``."""
    if end - at < _U4 + _CARRIED_SIZE:
        return False
    count = u32_at(log, end - _U4)
    if count == U0 or (end - at - _U4) // _CARRIED_SIZE < count:
        return False
    begin = end - _U4 - count * _CARRIED_SIZE
    page, stop = U0, U0
    for i in range(U0, count):
        record = item_at(log, begin + i * _CARRIED_SIZE, _CARRIED)
        if uint64(record.page) >= num_pages or (i > U0 and uint64(record.page) <= page):
            return False
        if uint64(record.end) < stop:
            return False
        page, stop = uint64(record.page), uint64(record.end)
    return stop == begin - at


@kernel
def text_sound(urls: UInt8Array, begin: uint64, end: uint64, lines: uint64) -> bool:
    """Return whether urls[begin:end] is exactly ``lines`` complete lines of ASCII."""
    count, bits = U0, uint8(0)
    for at in range(begin, end):
        count += uint64(urls[at] == 10)
        bits |= urls[at]
    return count == lines and bits < 128 and urls[end - U1] == 10
