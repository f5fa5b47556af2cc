"""Read the headers of records that have a gzip member each, as in all WAT files of Common Crawl."""

import numpy as np
from numpy import int64, uint8, uint64

from inlink.base.arrays import UInt8Array, UInt64Array
from inlink.base.jit import U0, U1, Index, kernel

__all__ = ["ALWAYS", "frame_members"]

ALWAYS = 1 << 30
"""A number above that of every day."""

_U2, _U3, _U4 = (uint64(k) for k in (2, 3, 4))
_TYPE, _LENGTH, _CONTENT, _DATE, _METADATA, _JSON = (
    np.frombuffer(text, uint8)
    for text in (
        b"warc-type",
        b"content-length",
        b"content-type",
        b"warc-date",
        b"metadata",
        b"application/json",
    )
)
_LONGEST = uint64(1 << 15)


@kernel(allocates=False)
def _begins_with(text: UInt8Array, at: Index, end: Index, word: UInt8Array) -> bool:
    """Return whether ``text[at:end]`` begins with a word, in any case."""
    if end - at < uint64(len(word)):
        return False
    for k in range(U0, uint64(len(word))):
        byte = uint64(text[at + k])
        if byte - uint64(65) < uint64(26):
            byte |= uint64(32)
        if byte != uint64(word[k]):
            return False
    return True


@kernel(allocates=False)
def _day(text: UInt8Array, at: Index, end: Index) -> Index:
    """Return a date ``2019-07-08`` as the number 20190708; 0 if it has another form."""
    if end - at < uint64(10):
        return U0
    day = U0
    for k in range(U0, uint64(10)):
        byte = uint64(text[at + k])
        if k == _U4 or k == uint64(7):
            if byte != uint64(45):
                return U0
        elif byte - uint64(48) > uint64(9):
            return U0
        else:
            day = day * uint64(10) + (byte - uint64(48))
    return day


@kernel(allocates=False)
def _frame(text: UInt8Array, at: Index, end: Index, until: Index, frames: UInt64Array, row: Index) -> bool:
    """Frame one member; see :func:`frame_members`. Return whether it is a plain record of JSON."""
    if end - at < uint64(6) or not (text[at] == 87 and text[at + U1] == 65 and text[at + _U2] == 82):
        return False
    if text[at + _U3] != 67 or text[at + _U4] != 47 or uint64(text[at + uint64(5)]) - uint64(48) > uint64(9):
        return False
    last = min(end, at + _LONGEST)
    size, seen, day = U0, U0, U0
    while True:
        line = at
        while at < last and text[at] >= 32:
            at += U1
        # The reader of records handles tabs, lone carriage returns and other control characters.
        if at + U1 >= last or text[at] != 13 or text[at + U1] != 10:
            return False
        stop = at
        at += _U2
        if stop == line:
            break
        colon = line
        while colon < stop and text[colon] != 58:
            colon += U1
        value = colon + U1
        while colon > line and text[colon - U1] == 32:
            colon -= U1
        while value < stop and text[value] == 32:
            value += U1
        while stop > value and text[stop - U1] == 32:
            stop -= U1
        long, field = colon - line, U0
        if long == uint64(len(_TYPE)) and value <= stop:
            if _begins_with(text, line, colon, _TYPE):
                field = U1
                if stop - value != uint64(len(_METADATA)) or not _begins_with(text, value, stop, _METADATA):
                    return False
            elif _begins_with(text, line, colon, _DATE):
                field = _U2
                day = _day(text, value, stop)
        elif long == uint64(len(_CONTENT)) and _begins_with(text, line, colon, _CONTENT) and value <= stop:
            field = _U4
            if not _begins_with(text, value, stop, _JSON):
                return False
        elif long == uint64(len(_LENGTH)) and _begins_with(text, line, colon, _LENGTH) and value <= stop:
            field = uint64(8)
            if stop == value or stop - value > uint64(9):
                return False
            for k in range(value, stop):
                byte = uint64(text[k])
                if byte - uint64(48) > uint64(9):
                    return False
                size = size * uint64(10) + (byte - uint64(48))
        if seen & field != U0:
            return False
        seen |= field
    # All four fields are required, except for a date on which nothing depends. It may also have another form.
    if seen | _U2 != uint64(15) or at + size + _U4 != end:
        return False
    if day == U0 and until != U0 and until != uint64(ALWAYS):
        return False
    for k in range(U0, _U4):
        if text[end - _U4 + k] != (13 if k & U1 == U0 else 10):
            return False
    frames[row], frames[row + U1], frames[row + _U2] = at, at + size, uint64(day < until)
    return True


@kernel(allocates=False)
def frame_members(text: UInt8Array, ends: UInt64Array, until: int, frames: UInt64Array) -> Index:
    """Find the JSON of gzip members. Stop at the first that is not exactly one plain metadata record with JSON.

    Parameters
    ----------
    text : uint8[n]
        The unpacked members, one after the other.
    ends : uint64[m]
        The end of each member in `text`, increasing and at most n.
    until : int
        Entities in links have to be decoded in records before this day, such as 20190708: 0 for none of them,
        :data:`ALWAYS` for all.
    frames : uint64[m, 3] as uint64[3 * m]
        Filled for each member: begin and end of its JSON, and whether entities in its links have to be decoded.

    Returns
    -------
    int
        The number of members that were framed. The reader of records has to read the next one.
    """
    at = U0
    for k in range(U0, uint64(len(ends))):
        if not _frame(text, at, ends[k], uint64(until), frames, _U3 * k):
            return int64(k)
        at = ends[k]
    return int64(len(ends))
