"""Canonical URLs of links, from their places in a record.

A link is resolved only if the result is certain. The others are named as odd, and a parser resolves them.
"""

from numpy import int64, uint64

from inlink.archives.kernels.wat import HEADER, ODD
from inlink.base.arrays import Int64Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, Index, item_at, kernel
from inlink.urls.kernels import BY_PARSER, FOREIGN, FULL, join_link, kind_of, parts_of

__all__ = ["FULL", "page_forms"]

_HEADER, _ODD = uint64(HEADER), uint64(ODD)
_U2, _U28, _U32 = (uint64(k) for k in (2, 28, 32))
_SIZE, _MOST = uint64((1 << 28) - 1), uint64(2048)
_PRIME = uint64(0x9E3779B97F4A7C15)
# A form ends here, and not at a fragment.
_END = uint64(1 << 63)
_LOW = uint64((1 << 32) - 1)


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
    all_places, repeats, entities = options & U1 != U0, options & _U2 != U0, options & uint64(4) != U0
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
        root, folder, stop = parts_of(source)
        after = U0
        if sure:
            after = join_link(text, at, end, kind, source, root, folder, stop, classes, arena, used)
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
