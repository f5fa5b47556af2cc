"""Find the hosts of the links of WAT records, a block of records in a call.

A link is resolved here only if the result is certain. The others are named as odd, and a parser resolves them.
"""

from numpy import int64, uint32, uint64

from inlink.archives.kernels import wat
from inlink.archives.kernels.wat import HEADER, ODD, scan_record
from inlink.base.arrays import Int64Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, Index, kernel
from inlink.urls.kernels import ABSOLUTE, BY_PARSER, FOREIGN, NETWORK, ROOTED, kind_of

__all__ = [
    "DONE",
    "FULL",
    "FULL_ORIGINS",
    "NEW",
    "NEW_BASE",
    "UNSURE",
    "fill_slots",
    "host_links",
    "keep_hosts",
]

DONE, UNSURE, FULL, FULL_ORIGINS, NEW_BASE = 1, 2, 3, 4, 5
"""Answers of :func:`host_links`."""

NEW = 1 << 40
"""A code from here on is the number of an origin whose host must be looked up, plus this."""

_HEADER, _ODD = uint64(HEADER), uint64(ODD)
_SCAN_UNSURE, _PAGE, _SCAN_FULL = wat.UNSURE, wat.PAGE, wat.FULL
_U2, _U3, _U4, _U28, _U32 = (uint64(k) for k in (2, 3, 4, 28, 32))
_SIZE = uint64((1 << 28) - 1)
_PRIME = uint64(0x9E3779B97F4A7C15)
# A link of so many bytes stays short enough in canonical form: a byte becomes three at most.
_SHORT, _LONG, _MOST = uint64(140), uint64(670), uint64(2048)


@kernel(allocates=False)
def _codes(
    text: UInt8Array,
    links: UInt64Array,
    count: Index,
    entities: bool,
    foreign: int,
    slots: UInt32Array,
    origins: UInt64Array,
    arena: UInt8Array,
    origin_codes: Int64Array,
    codes: Int64Array,
    first: Index,
    odd: UInt64Array,
    odds: Index,
) -> tuple[Index, Index, int]:
    """Find the codes of a page's URL, its base and its links; see :func:`host_links`.

    Return 0 or the reason to stop, the number of odd links of all pages, and the code of the page's host.
    """
    last = uint64(len(origins)) - _U2
    number, used = origins[last], origins[last + U1]
    mask = uint64(len(slots)) - U1
    own, here, reach = int64(0), int64(0), U0
    for k in range(U0, count):
        if links[k] == U0:
            continue
        at, size = links[k] & _SIZE, (links[k] >> _U28) & _SIZE
        end = at + size
        kind = BY_PARSER if links[k] & _ODD != U0 else kind_of(text, at, end, entities)
        code, certain = foreign, kind == FOREIGN
        if kind >= ROOTED and not certain and _U3 * size + reach < _MOST:
            code, certain = own if links[k] & _HEADER != U0 else here, True
        elif (kind == ABSOLUTE or kind == NETWORK) and size < _LONG:
            at += _U2
            if kind == ABSOLUTE:
                at += uint64(6) if text[at + _U2] == 115 else uint64(5)
            begin, value, plain = at, _PRIME, True
            while at < end and text[at] != 47:
                byte = text[at]
                plain &= byte > 32 and (byte < 128 or size < _SHORT) and not (entities and byte == 38)
                value = (value ^ uint64(byte)) * _PRIME
                at += U1
            long = at - begin
            if plain and long > U0 and long < uint64(256):
                value ^= value >> _U32
                slot = value & mask
                origin = U0
                while slots[slot] != 0:
                    origin = uint64(slots[slot])
                    place = origins[_U2 * origin - U1]
                    if origins[_U2 * origin - _U2] == value and place & uint64(255) == long:
                        place >>= uint64(8)
                        same = U0
                        while same < long and arena[place + same] == text[begin + same]:
                            same += U1
                        if same == long:
                            break
                    slot = (slot + U1) & mask
                    origin = U0
                if origin == U0:
                    if _U2 * (number + U1) > mask or number >= uint64(len(origin_codes)):
                        return uint64(FULL_ORIGINS), odds, own
                    if used + long > uint64(len(arena)) or _U2 * number + _U3 >= last:
                        return uint64(FULL_ORIGINS), odds, own
                    for j in range(U0, long):
                        arena[used + j] = text[begin + j]
                    origins[_U2 * number], origins[_U2 * number + U1] = value, (used << uint64(8)) | long
                    origin_codes[number] = -(NEW + NEW)
                    number += U1
                    used += long
                    slots[slot] = number
                    origins[last], origins[last + U1] = number, used
                    origin = number
                code, certain = origin_codes[origin - U1], True
                if code < -NEW:
                    code = int64(NEW) + int64(origin - U1)
        if k >= _U2:
            codes[first + k - _U2] = code
            if not certain:
                odd[_U2 * odds], odd[_U2 * odds + U1] = links[k], first + k - _U2
                odds += U1
        elif k == U0:
            # The page's own URL. It is as long as a URL in canonical form can be, with a slash at its end.
            if kind != ABSOLUTE or not certain or code < 0:
                return uint64(UNSURE), odds, own
            own = here = code
            reach = _U3 * size + U1
        else:
            if code >= NEW and kind != FOREIGN and code != own:
                return uint64(NEW_BASE), odds, own
            if not certain or (code < 0 and kind != FOREIGN):
                return uint64(UNSURE), odds, own
            # A base of another scheme is ignored.
            if kind != FOREIGN:
                here = code
                reach += _U3 * size + U1
    return U0, odds, own


@kernel(allocates=False)
def host_links(
    text: UInt8Array,
    frames: UInt64Array,
    rules: int,
    foreign: int,
    work: UInt64Array,
    links: UInt64Array,
    slots: UInt32Array,
    origins: UInt64Array,
    arena: UInt8Array,
    origin_codes: Int64Array,
    codes: Int64Array,
    odd: UInt64Array,
    pages: UInt64Array,
    state: Int64Array,
) -> Index:
    """Find the pages of a block of records, and the code of the host of each link.

    Parameters
    ----------
    text : uint8[n]
        The block; at most 2**28 bytes.
    frames : uint64[records, 3] as uint64[3 * records]
        Begin and end of the JSON of each record, and whether entities in its links must be decoded.
    rules, work, links
        See :func:`inlink.archives.kernels.wat.scan_record`. `links` is overwritten for each record.
    foreign : int
        The code of links that are not http.
    slots : uint32[power of two]
        A hash table of the known origins: their numbers plus one.
    origins : uint64[k, 2] as uint64[2 * k]
        The hash of each origin; its place in `arena`, times 256, plus its length. The last two numbers are the number
        of origins and the bytes of `arena` that are used.
    arena : uint8[...]
        The texts of origins.
    origin_codes : int64[k]
        The code of each origin. It is below -2**40 if it is not known yet.
    codes : int64[...]
        Filled: the codes of the links of all pages. For an origin whose code is not known, :data:`NEW` plus its number.
    odd : uint64[at least len(codes), 2] as uint64[...]
        Filled: the links that must be parsed, as in `links`, and their places in `codes`.
    pages : uint64[records, 5] as uint64[5 * records]
        Filled for each page: the record; the code of its host; where its links begin in `codes`; its URL and its base,
        as in `links`.
    state : int64[4]
        The next record; the number of pages; the numbers of codes and of odd links. They go on from here.

    Returns
    -------
    int
        :data:`DONE` after the last record. Otherwise why the next record was not read: :data:`UNSURE` (it must be
        decoded), :data:`NEW_BASE` (new origins must be looked up), :data:`FULL` or :data:`FULL_ORIGINS` (longer arrays
        are needed).
    """
    record, count, used, odds = uint64(state[0]), uint64(state[1]), uint64(state[2]), uint64(state[3])
    answer = uint64(DONE)
    while _U3 * record < uint64(len(frames)):
        entities = frames[_U3 * record + _U2] != U0
        scanned = scan_record(text, frames[_U3 * record], frames[_U3 * record + U1], rules, work, links)
        if scanned == _SCAN_FULL:
            answer = uint64(FULL)
            break
        if scanned == _SCAN_UNSURE:
            answer = uint64(UNSURE)
            break
        if scanned == _PAGE:
            if used + work[0] > uint64(len(codes)):
                answer = uint64(FULL)
                break
            # The links of a record that is not done yet are written again.
            trouble, more, own = _codes(
                text,
                links,
                work[0],
                entities,
                foreign,
                slots,
                origins,
                arena,
                origin_codes,
                codes,
                used,
                odd,
                odds,
            )
            if trouble != U0:
                answer = trouble
                break
            odds = more
            row = uint64(5) * count
            pages[row], pages[row + U1], pages[row + _U2] = record, uint64(own), used
            pages[row + _U3], pages[row + _U4] = links[0], links[1]
            count += U1
            used += work[0] - _U2
        record += U1
    state[0], state[1], state[2], state[3] = int64(record), int64(count), int64(used), int64(odds)
    return int64(answer)


@kernel(allocates=False)
def keep_hosts(
    codes: Int64Array,
    count: int,
    pages: UInt64Array,
    number: int,
    origin_codes: Int64Array,
    self_loops: bool,
    repeats: bool,
    stamps: UInt32Array,
    stamp: int,
    sources: Int64Array,
    lengths: Int64Array,
    refused: Int64Array,
) -> Index:
    """Leave only the hosts that are targets of arcs, at the beginning of `codes`.

    Parameters
    ----------
    codes : int64[at least count]
        The codes of :func:`host_links`, with the odd links looked up.
    count : int
        The number of codes of all pages.
    pages : uint64[number, 5] as uint64[...]
        The pages of :func:`host_links`.
    number : int
        The number of pages.
    origin_codes : int64[k]
        The codes of origins.
    self_loops, repeats : bool
        Keep links to the page's own host; keep repeated links.
    stamps : uint32[number of hosts]
        The last page that linked to a host.
    stamp : int
        The number of the first page, above all in ``stamps``.
    sources, lengths : int64[at least number]
        Filled for each page: the code of its host, and the number of its targets. Where the page has no host, the code
        is negative, and its links are not counted.
    refused : int64[number of reasons, 2] as int64[...]
        The number of links that were refused for each reason, and the first page with such a link. They go on from
        here.

    Returns
    -------
    int
        The number of targets.
    """
    to = U0
    for p in range(U0, uint64(number)):
        row = uint64(5) * p
        at = pages[row + _U2]
        end = pages[row + uint64(7)] if p + U1 < uint64(number) else uint64(count)
        page, begin = int64(pages[row + U1]), to
        if page >= NEW:
            page = origin_codes[uint64(page - NEW)]
        sources[p], lengths[p] = page, 0
        if page < 0:
            continue
        for k in range(at, end):
            code = codes[k]
            if code >= NEW:
                code = origin_codes[uint64(code - NEW)]
            if code < 0:
                reason = _U2 * uint64(-1 - code)
                if refused[reason] == 0:
                    refused[reason + U1] = int64(p)
                refused[reason] += 1
                continue
            if code == page and not self_loops:
                continue
            if not repeats:
                if stamps[uint64(code)] == uint32(uint64(stamp) + p):
                    continue
                stamps[uint64(code)] = uint32(uint64(stamp) + p)
            codes[to] = code
            to += U1
        lengths[p] = int64(to - begin)
    return int64(to)


@kernel(allocates=False)
def fill_slots(slots: UInt32Array, origins: UInt64Array) -> None:
    """Enter all origins, as :func:`host_codes` keeps them, into an empty hash table with room for them."""
    mask = uint64(len(slots)) - U1
    for number in range(U0, origins[uint64(len(origins)) - _U2]):
        slot = origins[_U2 * number] & mask
        while slots[slot] != 0:
            slot = (slot + U1) & mask
        slots[slot] = number + U1
