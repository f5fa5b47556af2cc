"""The loops that fold frames into the pages' columns, and those that find leases and scores."""

from typing import Any, NamedTuple

import numpy as np
from numpy import float32, float64, uint8, uint16, uint32, uint64

from inlink.base.arrays import Float64Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, item_at, kernel
from inlink.store.format import (
    CANONICAL,
    CARRY,
    CRAWLED,
    DISCOVERED,
    EXCLUDE,
    EXCLUDED,
    EXCLUDED_ONE,
    FAILED,
    FAILED_PAGE,
    GONE,
    HAS_CARRIED,
    HAS_SCORES,
    IS_GONE,
    LEASE,
    LEASED,
    LOST,
    MERGE,
    MERGED,
    RELEASE,
    RELOAD,
    RENEWED,
    RETRIED,
    SEED,
    SYNCED,
    TRUSTED,
    VISIT,
    CarriedRecord,
    LeaseRecord,
    LostRecord,
    ReleasedRecord,
    RenewedRecord,
    dtype_of,
    size_of,
)
from inlink.store.kernels.columns import Columns, columns_at
from inlink.store.kernels.frames import (
    HEAD_SIZE,
    NO_PAGE,
    appended,
    f32_at,
    head_at,
    link_count,
    links_at,
    list_end,
    list_start,
    u32_at,
    u64_at,
)

__all__ = [
    "OpenLeases",
    "count_hosts",
    "does_to_listed",
    "entry",
    "fold",
    "open_leases",
    "step",
    "waiting",
]


_CARRIED, _CARRIED_SIZE = dtype_of(CarriedRecord), uint64(size_of(CarriedRecord))
_LEASED = dtype_of(LeaseRecord)
_RENEWED = dtype_of(RenewedRecord)
_RELEASED, _RELEASED_SIZE = dtype_of(ReleasedRecord), uint64(size_of(ReleasedRecord))
_LOST, _LOST_SIZE = dtype_of(LostRecord), uint64(size_of(LostRecord))
_U4 = uint64(4)
_U8 = uint64(8)


@kernel
def _row_of(c: Columns, page: uint64) -> uint64:
    """The page's row in ``answered``, ``visits`` and ``failures``; a new row if it has none."""
    row = uint64(c.answers[page])
    if row == U0:
        row = c.tally[U0].rows + U1
        c.tally[U0].rows = row
        c.answers[page] = uint32(row)
        c.answered[row] = uint32(page)
    return row


@kernel
def _waits_again(c: Columns, page: uint64) -> int:
    """The state of a page that waits again."""
    row = uint64(c.answers[page])
    return CRAWLED if row > U0 and c.visits[row] > U0 else DISCOVERED


@kernel
def _recount(c: Columns, host: uint64, before: int, after: int) -> None:
    """Update a host's counts for a page whose state has changed."""
    if before == DISCOVERED:
        c.host_waiting[host] -= uint32(1)
    elif before == CRAWLED:
        c.host_crawled[host] -= uint32(1)
    if after == DISCOVERED:
        c.host_waiting[host] += uint32(1)
    elif after == CRAWLED:
        c.host_crawled[host] += uint32(1)


@kernel
def count_hosts(at: UInt64Array) -> None:
    """Count the pages of each host by state, now and with each event that is folded from now on."""
    c = columns_at(at)
    c.tally[U0].by_host = U1
    for host in range(U0, c.tally[U0].hosts):
        c.host_pages[host] = c.host_waiting[host] = c.host_crawled[host] = 0
    for page in range(U0, c.tally[U0].event_pages):
        host = uint64(c.hosts[page])
        c.host_pages[host] += uint32(1)
        if c.states[page] == DISCOVERED:
            c.host_waiting[host] += uint32(1)
        elif c.states[page] == CRAWLED:
            c.host_crawled[host] += uint32(1)


@kernel
def step(c: Columns, page: uint64, place: uint64, kind: int, flags: int, score: float32, over: bool) -> None:
    """Apply the frame at ``place`` to ``page``. Only this function defines the meaning of events.

    ``page`` is the frame's own page, or a page that it lists. A column is written only if a number changes, because a
    part that was never written takes no memory. ``over`` belongs to a loss.
    """
    before = c.states[page]
    state = int(before)
    if kind == LEASE:
        state = LEASED
    elif kind == VISIT:
        row = _row_of(c, page)
        if c.visits[row] == U0 or state == MERGED:
            c.tally[U0].crawled += U1
        c.visits[row] = place + U1
        if c.scores[page] != score:
            c.scores[page] = score
        state = CRAWLED
        if c.errors[page] > 0:
            c.errors[page] = 0
        if c.losses[page] > 0:
            c.losses[page] = 0
    elif kind == FAILED:
        row = _row_of(c, page)
        c.failures[row] = place + U1
        if c.errors[page] < 255:
            c.errors[page] += uint8(1)
        if c.losses[page] > 0:
            c.losses[page] = 0
        if (flags & IS_GONE) != 0:
            state = GONE
        elif (flags & EXCLUDED_ONE) != 0:
            state = EXCLUDED
        elif (flags & RETRIED) != 0:
            state = _waits_again(c, page)
        else:
            state = FAILED_PAGE
    elif kind == RELEASE:
        state = _waits_again(c, page)
    elif kind == LOST:
        if c.losses[page] < 255:
            c.losses[page] += uint8(1)
        state = FAILED_PAGE if over else _waits_again(c, page)
    elif kind == RELOAD:
        state = _waits_again(c, page)
        if state == DISCOVERED and c.errors[page] > 0:
            c.errors[page] = 0
        if c.losses[page] > 0:
            c.losses[page] = 0
    elif kind == MERGE:
        state = MERGED
        # In the graph it has one link, to the page that it was merged into.
        c.visits[_row_of(c, page)] = place + U1
    elif kind == EXCLUDE:
        state = EXCLUDED
    if state != before:
        c.states[page] = uint8(state)
        c.state_counts[before] -= U1
        c.state_counts[state] += U1
        if c.tally[U0].by_host != U0:
            _recount(c, uint64(c.hosts[page]), before, state)


@kernel
def entry(log: UInt8Array, kind: int, at: uint64, i: Any) -> tuple[uint64, bool]:
    """Page ``i`` of the list at byte ``at`` of a frame that changes all its pages, and whether the page has failed."""
    if kind == RELEASE:
        begin = at + i * _RELEASED_SIZE
        return uint64(item_at(log, begin, _RELEASED).page), False
    if kind == LOST:
        begin = at + i * _LOST_SIZE
        lost = item_at(log, begin, _LOST)
        return uint64(lost.page), lost.over != 0
    return u32_at(log, at + i * _U4), False


@kernel
def does_to_listed(kind: int) -> bool:
    """Return whether events of a kind change all pages that they list."""
    return kind == LEASE or kind == RELEASE or kind == LOST or kind == RELOAD or kind == EXCLUDE


@kernel
def _make_known(c: Columns, first: uint64, new: uint64, place: uint64) -> None:
    """Count the pages that a frame made known, and keep its place."""
    row = c.tally[U0].makers
    c.makers[row], c.maker_places[row] = uint32(first), place
    c.tally[U0].makers = row + U1
    c.tally[U0].event_pages = first + new
    c.state_counts[DISCOVERED] += new
    if c.tally[U0].by_host != U0:
        for page in range(first, first + new):
            c.host_pages[c.hosts[page]] += uint32(1)
            c.host_waiting[c.hosts[page]] += uint32(1)


@kernel
def fold(at: UInt64Array, log: UInt8Array) -> None:
    """Fold the frames in ``log`` into the pages' columns.

    ``at`` is a table of addresses, see :func:`.columns.columns_at`. The depth of a page is the number of clicks by
    which it was first found: 0 for a seed, and 1 + the depth of the page whose links made it known. The target of a
    redirect and a canonical page have the depth of the page that made them known. Pages of another shard have the depth
    that the shard gave them.
    """
    c, end = columns_at(at), uint64(len(log))
    here = U0
    while here < end:
        head = head_at(log, here)
        kind, flags, place, page = head.kind, head.flags, head.place, uint64(head.page)
        if head.new > 0:
            first, new = uint64(head.first), uint64(head.new)
            if kind == SEED:
                if head.status > 0:
                    for i in range(first, first + new):
                        c.depths[i] = head.status
            elif page != uint64(NO_PAGE):
                clicks = U0 if kind == MERGE or kind == CANONICAL else U1
                depth = uint16(min(uint64(c.depths[page]) + clicks, uint64(0xFFFF)))
                for i in range(first, first + new):
                    c.depths[i] = depth
            _make_known(c, first, new, place)
        if kind == VISIT or kind == FAILED or kind == MERGE:
            if kind == MERGE and c.states[page] != MERGED and c.visits[c.answers[page]] > U0:
                # It and its target count as one crawled page.
                c.tally[U0].crawled -= U1
            step(c, page, place, kind, flags, head.score, False)
        elif does_to_listed(kind):
            begin = list_start(log, here)
            for i in range(U0, uint64(head.listed)):
                listed, over = entry(log, kind, begin, i)
                step(c, listed, place, kind, flags, head.score, over)
        elif kind == CARRY:
            c.carriers[page] = place + U1
        if (kind == VISIT or kind == SEED) and (flags & (HAS_SCORES | TRUSTED)) == HAS_SCORES:
            _best_scores(log, here, c)
            c.tally[U0].scored += U1
        if (flags & HAS_CARRIED) != 0:
            _carry(log, here, place, c)
        c.tally[U0].frames += U1
        if kind != SYNCED:
            c.tally[U0].events += U1
        here += uint64(head.length)


@kernel
def _best_scores(log: UInt8Array, here: uint64, c: Columns) -> None:
    """Keep the best link score of each listed page that was never crawled. A crawled page has its content's score.

    A page that the frame makes known has no score yet, so its score may be below 0.
    """
    pages = np.empty(link_count(log, here), uint32)
    count, at = links_at(log, here, pages), list_end(log, here)
    head = head_at(log, here)
    fresh = uint64(head.first) if head.new > 0 else uint64(NO_PAGE)
    for i in range(U0, count):
        page = uint64(pages[i])
        score = f32_at(log, at + i * _U4)
        if score > c.scores[page] or (page >= fresh and score < 0):
            row = uint64(c.answers[page])
            if row == U0 or c.visits[row] == U0:
                c.scores[page] = score


@kernel
def _carry(log: UInt8Array, here: uint64, place: uint64, c: Columns) -> None:
    """Note the place of the carried data of each page in the frame's last table. A page keeps its first frame."""
    end = here + uint64(head_at(log, here).length) - _U4
    count = u32_at(log, end)
    begin = end - count * _CARRIED_SIZE
    for i in range(U0, count):
        at = begin + i * _CARRIED_SIZE
        page = item_at(log, at, _CARRIED).page
        if c.carriers[page] == U0:
            c.carriers[page] = place + U1


class OpenLeases(NamedTuple):
    """Leases that no event has ended, in the order of their numbers.

    Attributes
    ----------
    numbers, pages, sessions : uint64[k], uint32[k], uint32[k]
        Of each lease: its number, its page, and its session.
    places : uint64[k]
        The places of the lease events.
    given, expires : float64[k]
        Unix times.
    following : uint64
        The number of the next lease.
    last_time : float64
        The time of the last event; 0 if there is none.
    """

    numbers: UInt64Array
    pages: UInt32Array
    sessions: UInt32Array
    places: UInt64Array
    given: Float64Array
    expires: Float64Array
    following: uint64
    last_time: float64


@kernel
def open_leases(log: UInt8Array, end: uint64) -> OpenLeases:
    """The leases that no event in log[:end] has ended."""
    ended = np.zeros(uint64(1024), uint8)
    gave, count = np.empty(uint64(64), uint64), U0
    place, following, last_time = U0, U1, float64(0)
    while place < end:
        head = head_at(log, place)
        last_time = head.time
        if head.lease > U0:
            ended = _mark(ended, head.lease)
            # In a repaired log the event that gave it may be missing.
            following = max(following, head.lease + U1)
        if head.kind == LEASE:
            first = item_at(log, place + HEAD_SIZE, _LEASED).first_lease
            following = max(following, first + uint64(head.listed))
            gave = appended(gave, count, place)
            count += U1
        elif head.kind == RENEWED:
            gave = appended(gave, count, place)
            count += U1
        elif head.kind == RELEASE:
            for i in range(U0, uint64(head.listed)):
                at = place + HEAD_SIZE + i * _RELEASED_SIZE
                ended = _mark(ended, item_at(log, at, _RELEASED).lease)
        elif head.kind == LOST:
            for i in range(U0, uint64(head.listed)):
                at = place + HEAD_SIZE + i * _LOST_SIZE
                ended = _mark(ended, item_at(log, at, _LOST).lease)
        place += uint64(head.length)
    ended = _mark(ended, following)
    left = U0
    for k in range(U0, count):
        if head_at(log, gave[k]).kind == LEASE:
            first = item_at(log, gave[k] + HEAD_SIZE, _LEASED).first_lease
            for number in range(first, first + link_count(log, gave[k])):
                left += U1 if ended[number] == 0 else U0
    numbers, pages = np.empty(left, uint64), np.empty(left, uint32)
    sessions, places = np.empty(left, uint32), np.empty(left, uint64)
    given, expires = np.empty(left, float64), np.empty(left, float64)
    row = U0
    for k in range(U0, count):
        at = gave[k] + HEAD_SIZE
        listed, begin = link_count(log, gave[k]), list_start(log, gave[k])
        if head_at(log, gave[k]).kind == LEASE:
            lease = item_at(log, at, _LEASED)
            for i in range(U0, listed):
                if ended[lease.first_lease + i] == 0:
                    numbers[row], places[row], expires[row] = lease.first_lease + i, gave[k], lease.expires
                    sessions[row], given[row] = lease.session, head_at(log, gave[k]).time
                    pages[row] = uint32(u32_at(log, begin + i * _U4))
                    row += U1
        else:
            renewed = item_at(log, at, _RENEWED).expires
            # Without a list, all open leases are prolonged by this many seconds: the crawl was down.
            if listed == U0:
                for i in range(U0, row):
                    given[i] += renewed
                    expires[i] += renewed
            for i in range(U0, listed):
                number = u64_at(log, begin + i * _U8)
                renewed_row = uint64(np.searchsorted(numbers[:row], number))
                if renewed_row < row and numbers[renewed_row] == number:
                    expires[renewed_row] = renewed
    return OpenLeases(numbers, pages, sessions, places, given, expires, following, last_time)


@kernel
def _mark(marks: UInt8Array, number: uint64) -> UInt8Array:
    """Set ``marks`` to 1 at ``number``; return it, or a longer copy if it was too short."""
    if number >= uint64(len(marks)):
        longer = np.zeros(max(number + U1, uint64(len(marks)) * uint64(2)), uint8)
        longer[: uint64(len(marks))] = marks
        marks = longer
    marks[number] = 1
    return marks


@kernel
def waiting(states: UInt8Array, errors: UInt8Array, out: UInt32Array) -> int:
    """Write the DISCOVERED pages without failures among the first len(out) to ``out``; return their number."""
    count = U0
    for page in range(U0, uint64(len(out))):
        if states[page] == DISCOVERED and errors[page] == 0:
            out[count] = uint32(page)
            count += U1
    return int(count)
