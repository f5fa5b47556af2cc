"""Find the canonical URLs of the links of WAT records, a block of records in a call.

A link is resolved only if the result is certain. The others are named as odd, and a parser resolves them.
"""

from numpy import int64, uint64

from inlink.archives.kernels import wat
from inlink.archives.kernels.wat import HEADER, ODD, scan_record
from inlink.base.arrays import Int64Array, UInt8Array, UInt64Array
from inlink.base.jit import U0, U1, Index, item_at, kernel
from inlink.urls.kernels import ABSOLUTE, BY_PARSER, FOREIGN, join_link, kind_of, parts_of

__all__ = ["DONE", "FULL", "FULL_FORMS", "FULL_URLS", "UNSURE", "page_forms"]

DONE, UNSURE, FULL, FULL_URLS, FULL_FORMS = 1, 2, 3, 4, 5
"""Answers of :func:`page_forms`."""

_SCAN_UNSURE, _PAGE, _SCAN_FULL = wat.UNSURE, wat.PAGE, wat.FULL
_HEADER, _ODD = uint64(HEADER), uint64(ODD)
_U2, _U3, _U4, _U28, _U32 = (uint64(k) for k in (2, 3, 4, 28, 32))
_SIZE, _MOST = uint64((1 << 28) - 1), uint64(2048)
_PRIME = uint64(0x9E3779B97F4A7C15)
# A crafted page may have many links with one hash. After this number of comparisons, a link counts as new.
_PROBES = uint64(64)
# A form ends here, and not at a fragment.
_END = uint64(1 << 63)
_LOW = uint64((1 << 32) - 1)


@kernel(allocates=False)
def _forms(
    text: UInt8Array,
    links: UInt64Array,
    count: Index,
    options: Index,
    classes: UInt8Array,
    slots: UInt64Array,
    stamp: Index,
    base: UInt8Array,
    own: UInt8Array,
    arena: UInt8Array,
    ends: Int64Array,
    forms: Index,
    odd: UInt64Array,
    odds: Index,
    page: Index,
) -> tuple[bool, Index, Index, Index, Index]:
    """Write the forms of a page's links; see :func:`page_forms`.

    Return whether there was room for them, and the numbers of forms, odd links, kept links and links that are not http.
    """
    all_places, repeats, entities = options & U1 != U0, options & _U2 != U0, options & _U4 != U0
    kept, foreign = U0, U0
    used, mask, stamp = uint64(ends[forms]), uint64(len(slots)) - U1, stamp << _U32
    root, folder, stop = parts_of(base)
    own_root, own_folder, own_stop = parts_of(own)
    for k in range(_U2, count):
        if used + _U2 * _MOST > uint64(len(arena)) or forms + U1 >= uint64(len(ends)):
            return False, forms, odds, kept, foreign
        at = links[k] & _SIZE
        end = at + ((links[k] >> _U28) & _SIZE)
        kind = BY_PARSER if links[k] & _ODD != U0 else kind_of(text, at, end, entities)
        if kind == FOREIGN:
            foreign += U1
            continue
        sure = kind != BY_PARSER and (at == end or text[end - U1] > 32)
        if entities:
            for j in range(at, end):
                sure &= text[j] != 38
        after = U0
        if sure and links[k] & _HEADER != U0:
            after = join_link(text, at, end, kind, own, own_root, own_folder, own_stop, classes, arena, used)
        elif sure:
            after = join_link(text, at, end, kind, base, root, folder, stop, classes, arena, used)
        if after == U0:
            odd[_U2 * odds], odd[_U2 * odds + U1] = links[k], page
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
            # All bytes must influence the slot, including the last ones of a long word.
            value = (value ^ (value >> _U32)) * _PRIME
            slot, again, probes = (value >> _U32) & mask, False, U0
            while slots[slot] & ~_LOW == stamp and probes < _PROBES:
                probes += U1
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
            if probes < _PROBES:
                slots[slot] = stamp | (forms + U1)
        forms += U1
        used = after
        ends[forms] = int64(used)
    return True, forms, odds, kept, foreign


@kernel(allocates=False)
def _own_form(text: UInt8Array, entry: Index, classes: UInt8Array, out: UInt8Array, used: Index) -> Index:
    """Write the canonical form of a page's URL, and return the place after it; 0 if it is not certain."""
    at = entry & _SIZE
    end = at + ((entry >> _U28) & _SIZE)
    if end == at or text[end - U1] <= 32 or kind_of(text, at, end, False) != ABSOLUTE:
        return U0
    return join_link(text, at, end, ABSOLUTE, text, U0, U0, U0, classes, out, used) & ~_END


@kernel(allocates=False)
def _base_form(
    text: UInt8Array, entry: Index, own: UInt8Array, entities: bool, classes: UInt8Array, out: UInt8Array
) -> Index:
    """Write the canonical form of a page's base, and return its length; 0 if it is not certain."""
    at = entry & _SIZE
    end = at + ((entry >> _U28) & _SIZE)
    for k in range(at, end):
        if entities and text[k] == 38:
            return U0
    kind = kind_of(text, at, end, False)
    if kind == FOREIGN:
        # A base of another scheme is ignored.
        for k in range(U0, uint64(len(own))):
            out[k] = own[k]
        return uint64(len(own))
    if end > at and text[end - U1] <= 32:
        return U0
    root, folder, stop = parts_of(own)
    return join_link(text, at, end, kind, own, root, folder, stop, classes, out, U0) & ~_END


@kernel(allocates=False)
def page_forms(
    text: UInt8Array,
    frames: UInt64Array,
    rules: int,
    options: int,
    classes: UInt8Array,
    work: UInt64Array,
    links: UInt64Array,
    slots: UInt64Array,
    base: UInt8Array,
    urls: UInt8Array,
    url_ends: Int64Array,
    arena: UInt8Array,
    ends: Int64Array,
    odd: UInt64Array,
    pages: UInt64Array,
    state: Int64Array,
) -> Index:
    """Find the pages of a block of records, and write their canonical URLs and those of their links.

    Parameters
    ----------
    text : uint8[n]
        The block; at most 2**28 bytes.
    frames : uint64[records, 3] as uint64[3 * records]
        Begin and end of the JSON of each record, and whether entities in its links must be decoded.
    rules, work, links
        See :func:`inlink.archives.kernels.wat.scan_record`. `links` is overwritten for each record.
    options : int
        Sum of 1 (keep links to a place on the page itself) and 2 (keep repeated links).
    classes : uint8[256]
        The class of each byte.
    slots : uint64[power of two]
        A hash table of a page's links: the page's number times 2**32, plus the number of the form, plus one.
    base : uint8[4096]
        Overwritten.
    urls : uint8[...]
        Filled: the URLs of pages, one after another.
    url_ends : int64[more than all pages]
        Filled: the end of each page's URL in `urls`. The first number is 0.
    arena, ends
        The same for the links of all pages.
    odd : uint64[number of odd links, 2] as uint64[...]
        Filled: the links that must be parsed, as in `links`, and the numbers of their pages in this block.
    pages : uint64[records, 5] as uint64[5 * records]
        Filled for each page: the record; the number of forms of its links; the number of links that are not http; its
        URL and its base, as in `links`.
    state : int64[8]
        The next record; the numbers of pages in this block, of URLs, of forms, of odd links, of kept links (repeated
        ones too), and of all pages that have used `slots`, below 2**32. They go on from here.

    Returns
    -------
    int
        :data:`DONE` after the last record. Otherwise why the next record was not read: :data:`UNSURE` (it must be
        decoded), :data:`FULL` (longer `links`, `slots` and `odd` are needed), :data:`FULL_URLS` or :data:`FULL_FORMS`.
    """
    record, count, number, forms = uint64(state[0]), uint64(state[1]), uint64(state[2]), uint64(state[3])
    odds, kept, stamp = uint64(state[4]), uint64(state[5]), uint64(state[6])
    answer = uint64(DONE)
    while _U3 * record < uint64(len(frames)):
        scanned = scan_record(text, frames[_U3 * record], frames[_U3 * record + U1], rules, work, links)
        if scanned == _SCAN_FULL:
            answer = uint64(FULL)
            break
        if scanned == _SCAN_UNSURE:
            answer = uint64(UNSURE)
            break
        if scanned != _PAGE:
            record += U1
            continue
        if _U2 * work[0] >= uint64(len(slots)) or _U2 * (odds + work[0]) > uint64(len(odd)):
            answer = uint64(FULL)
            break
        begin = uint64(url_ends[number])
        if begin + _U2 * _MOST > uint64(len(urls)) or number + U1 >= uint64(len(url_ends)):
            answer = uint64(FULL_URLS)
            break
        stop = _own_form(text, links[0], classes, urls, begin)
        if stop == U0:
            answer = uint64(UNSURE)
            break
        own = urls[begin:stop]
        root = own
        entities = frames[_U3 * record + _U2] != U0
        if links[1] != U0:
            size = _base_form(text, links[1], own, entities, classes, base)
            if size == U0:
                answer = uint64(UNSURE)
                break
            root = base[:size]
        stamp += U1
        fits, forms_after, odds_after, more, foreign = _forms(
            text,
            links,
            work[0],
            uint64(options) | (_U4 if entities else U0),
            classes,
            slots,
            stamp,
            root,
            own,
            arena,
            ends,
            forms,
            odd,
            odds,
            count,
        )
        if not fits:
            answer = uint64(FULL_FORMS)
            break
        row = uint64(5) * count
        pages[row], pages[row + U1], pages[row + _U2] = record, forms_after - forms, foreign
        pages[row + _U3], pages[row + _U4] = links[0], links[1]
        forms, odds = forms_after, odds_after
        kept += more
        number += U1
        url_ends[number] = int64(stop)
        count += U1
        record += U1
    state[0], state[1], state[2], state[3] = int64(record), int64(count), int64(number), int64(forms)
    state[4], state[5], state[6] = int64(odds), int64(kept), int64(stamp)
    return int64(answer)
