"""The loop that codes the texts and the places of a page's links: see :mod:`inlink.store.anchors`."""

import numpy as np
from numpy import uint8, uint64

from inlink.base.arrays import UInt8Array, UInt32Array
from inlink.base.jit import U0, U1, Index, kernel
from inlink.store.kernels.frames import NO_PAGE

__all__ = ["LONGEST_ANCHOR", "MOST_ANCHOR_BYTES", "encode_labels"]

LONGEST_ANCHOR = 80
"""Maximum number of characters of a text that are kept."""

MOST_ANCHOR_BYTES = 8192
"""Maximum number of bytes of all texts of a visit. Links after them are kept without a text."""

_LONGEST_BYTES = uint64(255)
_LOOKED_AT, _LONGEST = uint64(8 * LONGEST_ANCHOR), uint64(LONGEST_ANCHOR)
_U2, _U3, _U4 = (uint64(k) for k in (2, 3, 4))


@kernel(allocates=False)
def _is_space(text: UInt8Array, at: Index, size: Index) -> bool:
    """Return whether a character is white space in Unicode, as ``str.isspace`` has it."""
    first = uint64(text[at])
    if size == U1:
        return first - uint64(9) < uint64(5) or first - uint64(28) < uint64(5)
    if size == _U2:
        return first == uint64(0xC2) and (text[at + U1] == 0x85 or text[at + U1] == 0xA0)
    if size != _U3:
        return False
    rest = (uint64(text[at + U1]) << uint64(8)) | uint64(text[at + _U2])
    if first == uint64(0xE1):
        return rest == uint64(0x9A80)
    if first == uint64(0xE2):
        # U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F
        return (
            rest - uint64(0x8080) < uint64(11)
            or rest - uint64(0x80A8) < _U2
            or rest == uint64(0x80AF)
            or rest == uint64(0x819F)
        )
    return first == uint64(0xE3) and rest == uint64(0x8080)


@kernel(allocates=False)
def _write_text(text: UInt8Array, at: Index, end: Index, out: UInt8Array, to: Index) -> Index:
    """Write the part of a text that is kept; return its number of bytes.

    White space is collapsed. A lone surrogate becomes a question mark.
    """
    begin, seen, kept, space = to, U0, U0, False
    while at < end and seen < _LOOKED_AT and kept < _LONGEST:
        first = text[at]
        size = U1 if first < 0x80 else _U2 if first < 0xE0 else _U3 if first < 0xF0 else _U4
        if _is_space(text, at, size):
            space = kept > U0
        else:
            if space:
                out[to] = 32
                to += U1
                kept += U1
                space = False
                if kept == _LONGEST or to - begin == _LONGEST_BYTES:
                    break
            lone = size == _U3 and first == 0xED and text[at + U1] >= 0xA0
            length = U1 if lone else size
            if to - begin + length > _LONGEST_BYTES:
                break
            if lone:
                out[to] = 63
            else:
                for k in range(U0, size):
                    out[to + k] = text[at + k]
            to += length
            kept += U1
        seen += U1
        at += size
    return to - begin


@kernel
def encode_labels(
    linked: UInt32Array,
    pages: UInt32Array,
    text: UInt8Array,
    sizes_and_codes: UInt32Array,
) -> UInt8Array:
    """Code the texts of links, and their places in the page.

    Parameters
    ----------
    linked : uint32[n]
        The page of each link; ``NO_PAGE`` for a link without a page.
    pages : uint32[k]
        The distinct pages, increasing.
    text : uint8[...]
        The texts of all links, in UTF-8, in which lone surrogates are coded like other characters.
    sizes_and_codes : uint32[2 * n]
        Number of bytes of each text; then the place of each link: 0 if it is not known, else 1 + its number.

    Returns
    -------
    uint8[...]
        Whether a place is known; the code of each page's place; the texts, unless no page has one.
    """
    count, n = uint64(len(pages)), uint64(len(sizes_and_codes)) >> U1
    sizes, codes = sizes_and_codes[:n], sizes_and_codes[n:]
    begins, ends = np.zeros(count, uint64), np.zeros(count, uint64)
    out = np.zeros(U1 + _U2 * count + uint64(MOST_ANCHOR_BYTES) + _LONGEST_BYTES, uint8)
    places = out[U1 : U1 + count]
    end = U0
    for i in range(U0, n):
        begin, end = end, end + uint64(sizes[i])
        page = linked[i]
        if page == NO_PAGE:
            continue
        low, high = U0, count
        while high - low > U1:
            middle = (low + high) >> U1
            if pages[middle] <= page:
                low = middle
            else:
                high = middle
        if end > begin and (ends[low] == U0 or codes[i] > places[low]):
            begins[low], ends[low] = begin, end
        if codes[i] > places[low]:
            places[low] = uint8(codes[i])
            out[U0] = 1
    to, left, some = U1 + count, uint64(MOST_ANCHOR_BYTES), False
    for k in range(U0, count):
        size = _write_text(text, begins[k], ends[k], out, to + U1)
        if size > left:
            size = U0
        left -= size
        some |= size > U0
        out[to] = uint8(size)
        to += U1 + size
    return out[: to if some else U1 + count].copy()
