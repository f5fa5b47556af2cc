"""Canonical URLs of links, from their places in a record.

A link is resolved only if the result is certain. The others are named as odd, and a parser resolves them.
"""

from numpy import int64, uint8, uint64

from inlink.archives.kernels.links import (
    ABSOLUTE,
    BY_PARSER,
    FOREIGN,
    FULL,
    NETWORK,
    PLACE,
    RELATIVE,
    SEARCH,
    kind_of,
)
from inlink.archives.kernels.wat import HEADER, ODD
from inlink.base.arrays import Int64Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, Index, item_at, kernel

__all__ = ["ENCODE", "FULL", "HOST", "PATH", "QUERY", "QUERY_ENCODE", "page_forms"]

HOST, PATH, ENCODE, QUERY, QUERY_ENCODE = 1, 2, 4, 8, 16
"""Classes of bytes: plain in a host; kept in a path, percent-encoded there; and the same for queries."""

_HEADER, _ODD = uint64(HEADER), uint64(ODD)
_U2, _U3, _U4, _U28, _U32 = (uint64(k) for k in (2, 3, 4, 28, 32))
_SIZE, _MOST = uint64((1 << 28) - 1), uint64(2048)
_PRIME = uint64(0x9E3779B97F4A7C15)
# A form ends here, and not at a fragment.
_END = uint64(1 << 63)
_LOW = uint64((1 << 32) - 1)


@kernel(allocates=False)
def _dotted(text: UInt8Array, at: Index, end: Index) -> bool:
    """Return whether a segment of a path may be ``.`` or ``..``, percent-encoded or not."""
    if at >= end:
        return False
    if text[at] == 46:
        after = text[at + U1] if at + U1 < end else uint8(47)
        return after == 47 or after == 63 or after == 35 or after == 46 or after == 37
    return text[at] == 37 and at + U1 < end and text[at + U1] == 50


@kernel(allocates=False)
def _digit(value: Index) -> Index:
    return value + (uint64(48) if value < uint64(10) else uint64(55))


@kernel(allocates=False)
def _host(text: UInt8Array, at: Index, end: Index, classes: UInt8Array, out: UInt8Array, to: Index) -> Index:
    """Copy a host that is plain as in :mod:`inlink.urls.kernels`, and return its length; 0 if it is not plain."""
    begin, label = at, at
    while at < end and classes[text[at]] & HOST:
        byte = text[at]
        if byte == 46:
            if at == label:
                return U0
            label = at + U1
        elif byte == 120 and at == label and at + _U2 < end and text[at + U1] == 110 and text[at + _U2] == 45:
            return U0
        out[to + (at - begin)] = byte
        at += U1
    if at == label or at - begin > uint64(253) or text[label] < 97 or text[label] > 122:
        return U0
    if at < end and text[at] != 47 and text[at] != 63 and text[at] != 35:
        return U0
    return at - begin


@kernel(allocates=False)
def _rest(
    text: UInt8Array,
    at: Index,
    end: Index,
    query: bool,
    classes: UInt8Array,
    out: UInt8Array,
    to: Index,
    most: Index,
) -> Index:
    """Copy a path and a query, encoded; return the place behind them, 0 if they are not plain or too long.

    A place below 2**63 means that a fragment follows.
    """
    keep, encode = uint8(QUERY if query else PATH), uint8(QUERY_ENCODE if query else ENCODE)
    while at < end:
        byte = text[at]
        if to + _U3 > most:
            return U0
        kind = classes[byte]
        if kind & keep:
            out[to] = byte
            to += U1
            if byte == 47 and not query and _dotted(text, at + U1, end):
                return U0
        elif kind & encode:
            out[to] = 37
            out[to + U1] = _digit(uint64(byte) >> _U4)
            out[to + _U2] = _digit(uint64(byte) & uint64(15))
            to += _U3
        elif byte == 63:
            out[to] = byte
            to += U1
            query = True
            keep, encode = uint8(QUERY), uint8(QUERY_ENCODE)
        elif byte == 35:
            return to
        else:
            return U0
        at += U1
    return to | _END


@kernel(allocates=False)
def _relative(
    text: UInt8Array, at: Index, end: Index, base: UInt8Array, root: Index, folder: Index
) -> tuple[Index, Index, bool]:
    """Resolve ``./`` and ``../`` at the beginning of a relative path.

    Return the place of the rest, the number of bytes of the base that stay, and whether the rest must be parsed.
    """
    while at < end and text[at] == 46:
        parent = at + U1 < end and text[at + U1] == 46
        after = at + U1 + uint64(parent)
        if after < end and text[after] != 47 and text[after] != 63 and text[after] != 35:
            break
        if parent and folder > root + U1:
            folder -= U1
            while base[folder - U1] != 47:
                folder -= U1
        at = after
        if at < end and text[at] == 47:
            at += U1
        else:
            return at, folder, False
    return at, folder, _dotted(text, at, end)


@kernel(allocates=False)
def page_forms(
    text: UInt8Array,
    links: UInt64Array,
    count: int,
    base: UInt8Array,
    own: UInt8Array,
    options: int,
    classes: UInt8Array,
    slots: UInt64Array,
    stamp: int,
    arena: UInt8Array,
    ends: Int64Array,
    counts: Int64Array,
    odd: UInt32Array,
) -> Index:
    """Write the canonical forms of a page's links.

    Parameters
    ----------
    text : uint8[n]
        The record.
    links : uint64[m]
        The links of the record, of which the first `count` are valid.
    base, own : uint8[...]
        The canonical base and the page's canonical URL.
    options : int
        Sum of 1 (keep links to a place on the page itself), 2 (keep repeated links) and 4 (entities in links must be
        decoded).
    classes : uint8[256]
        The class of each byte.
    slots : uint64[power of two, more than 2 * count]
        A hash table of this page's links: the page's number times 2**32, plus the number of the form, plus one.
    stamp : int
        The number of the page, above those before it and below 2**32.
    arena : uint8[...]
        Filled: the forms, one after another.
    ends : int64[more than all forms]
        Filled: the end of each form in `arena`. The first number is 0.
    counts : int64[3]
        The number of forms before this page, which is set to the number after it. Filled: the number of kept links,
        with repeated ones, and the number of links that are not http.
    odd : uint32[at least count]
        Filled: the links that must be parsed.

    Returns
    -------
    int
        The number of odd links; or :data:`FULL`.
    """
    options = uint64(options)
    all_places, repeats, entities = options & U1 != U0, options & _U2 != U0, options & _U4 != U0
    odds, forms, kept, foreign = U0, uint64(counts[0]), U0, U0
    used, mask, stamp = uint64(ends[forms]), uint64(len(slots)) - U1, uint64(stamp) << _U32
    for k in range(U0, uint64(count)):
        if used + _U2 * _MOST > uint64(len(arena)) or forms + U1 >= uint64(len(ends)):
            return FULL
        at = links[k] & _SIZE
        end = at + ((links[k] >> _U28) & _SIZE)
        source = own if links[k] & _HEADER != U0 else base
        kind = BY_PARSER if links[k] & _ODD != U0 else kind_of(text, at, end, entities)
        if kind == FOREIGN:
            foreign += U1
            continue
        sure = kind != BY_PARSER and (at == end or text[end - U1] > 32)
        if entities:
            for j in range(at, end):
                sure &= text[j] != 38
        # The numbers of bytes of the source that stay: up to the path, up to its last slash, and up to the query.
        root = uint64(8) if source[4] == 115 else uint64(7)
        while root < uint64(len(source)) and source[root] != 47:
            root += U1
        folder, stop = root + U1, root
        while stop < uint64(len(source)) and source[stop] != 63:
            stop += U1
            if source[stop - U1] == 47:
                folder = stop
        to, after = used, U0
        if sure and (kind == ABSOLUTE or kind == NETWORK):
            if kind == NETWORK:
                scheme = uint64(6) if source[4] == 115 else uint64(5)
                for j in range(U0, scheme):
                    arena[to + j] = source[j]
            else:
                scheme = uint64(6) if text[at + _U4] == 115 else uint64(5)
                for j in range(U0, scheme):
                    arena[to + j] = text[at + j]
                at += scheme
            arena[to + scheme], arena[to + scheme + U1] = 47, 47
            at += _U2
            to += scheme + _U2
            size = _host(text, at, end, classes, arena, to)
            at += size
            to += size
            if size != U0:
                if at == end or text[at] != 47:
                    arena[to] = 47
                    to += U1
                after = _rest(text, at, end, False, classes, arena, to, used + _MOST)
        elif sure:
            dotted, stays = False, root
            if kind == SEARCH:
                stays = stop
            elif kind == PLACE:
                stays = uint64(len(source))
            elif kind == RELATIVE:
                at, stays, dotted = _relative(text, at, end, source, root, folder)
            if not dotted and stays <= _MOST:
                for j in range(U0, stays):
                    arena[to + j] = source[j]
                to += stays
                after = _rest(text, at, end, kind == SEARCH, classes, arena, to, used + _MOST)
        if after == U0:
            odd[odds] = k
            odds += U1
            continue
        fragment = after & _END == U0
        after &= ~_END
        size = after - used
        if fragment and not all_places and size == uint64(len(own)):
            same = U0
            while same < size and arena[used + same] == own[same]:
                same += U1
            if same == size:
                continue
        kept += U1
        if not repeats:
            value = _PRIME
            for j in range(U0, size & ~uint64(7), uint64(8)):
                value = (value ^ item_at(arena, used + j, uint64)) * _PRIME
                value ^= value >> _U32
            for j in range(size & ~uint64(7), size):
                value = (value ^ uint64(arena[used + j])) * _PRIME
            value ^= value >> _U32
            slot, again = value & mask, False
            while slots[slot] & ~_LOW == stamp:
                other = (slots[slot] & _LOW) - U1
                begin = uint64(ends[other])
                if uint64(ends[other + U1]) - begin == size:
                    same = U0
                    while same < size and arena[begin + same] == arena[used + same]:
                        same += U1
                    if same == size:
                        again = True
                        break
                slot = (slot + U1) & mask
            if again:
                continue
            slots[slot] = stamp | (forms + U1)
        forms += U1
        used = after
        ends[forms] = int64(used)
    counts[0], counts[1], counts[2] = int64(forms), int64(kept), int64(foreign)
    return int64(odds)
