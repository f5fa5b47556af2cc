"""Pieces of JSON, and the texts within it that decide whether something is a link."""

import numpy as np
from numpy import uint8, uint32, uint64

from inlink.base.arrays import UInt8Array
from inlink.base.jit import U0, U1, Index, item_at, kernel

__all__ = ["absolute_url", "character", "escape", "no_follow", "scalar"]

_U2, _U3, _U4, _U7, _U8 = (uint64(k) for k in (2, 3, 4, 7, 8))
# Digits of a number at most.
_DIGITS = uint64(200)
_HTTPS = np.frombuffer(b"https", uint8)
_NOFOLLOW, _NONE = np.frombuffer(b"nofollow", uint8), np.frombuffer(b"none", uint8)


@kernel(allocates=False)
def character(text: UInt8Array, at: Index, length: Index) -> Index:
    """Length of the UTF-8 character that begins at a byte above 127; 0 if it is invalid."""
    first = uint64(text[at])
    size = _U2 if first < uint64(0xE0) else _U3 if first < uint64(0xF0) else uint64(4)
    if first < uint64(0xC2) or first > uint64(0xF4) or at + size > length:
        return U0
    second = uint64(text[at + U1])
    least, most = uint64(0x80), uint64(0xBF)
    if first == uint64(0xE0):
        least = uint64(0xA0)
    elif first == uint64(0xED):
        most = uint64(0x9F)
    elif first == uint64(0xF0):
        least = uint64(0x90)
    elif first == uint64(0xF4):
        most = uint64(0x8F)
    if second < least or second > most:
        return U0
    for k in range(_U2, size):
        if text[at + k] & 0xC0 != 0x80:
            return U0
    return size


@kernel(allocates=False)
def escape(text: UInt8Array, at: Index, length: Index) -> int:
    r"""Length of the escape that begins at a backslash; 0 if it is invalid."""
    if at + _U2 > length:
        return U0
    byte = text[at + U1]
    # The letter u.
    if byte == 117:
        if at + uint64(6) > length:
            return U0
        for k in range(_U2, uint64(6)):
            digit = uint64(text[at + k])
            if digit - uint64(48) > uint64(9) and (digit | uint64(32)) - uint64(97) > uint64(5):
                return U0
        return uint64(6)
    if byte in (34, 92, 47, 98, 102, 110, 114, 116):
        return _U2
    return U0


@kernel(allocates=False)
def scalar(text: UInt8Array, at: Index, length: Index) -> Index:
    """Place behind a number, true, false or null; 0 if there is none, or a number of many digits."""
    begin = at
    byte = text[at]
    if byte == 116 or byte == 110:
        word = uint64(0x65757274) if byte == 116 else uint64(0x6C6C756E)
        if at + uint64(4) <= length and uint64(item_at(text, at, uint32)) == word:
            return at + uint64(4)
        return U0
    if byte == 102:
        if at + uint64(5) <= length and item_at(text, at + U1, uint32) == 0x65736C61:
            return at + uint64(5)
        return U0
    if byte == 45:
        at += U1
    if at < length and text[at] == 48:
        at += U1
    else:
        digits = at
        while at < length and uint64(text[at]) - uint64(48) < uint64(10):
            at += U1
        if at == digits:
            return U0
    if at < length and text[at] == 46:
        at += U1
        digits = at
        while at < length and uint64(text[at]) - uint64(48) < uint64(10):
            at += U1
        if at == digits:
            return U0
    if at < length and (text[at] == 101 or text[at] == 69):
        at += U1
        if at < length and (text[at] == 43 or text[at] == 45):
            at += U1
        digits = at
        while at < length and uint64(text[at]) - uint64(48) < uint64(10):
            at += U1
        if at == digits:
            return U0
    return at if at - begin <= _DIGITS else U0


@kernel(allocates=False)
def absolute_url(text: UInt8Array, at: Index, end: Index, exact: bool) -> Index:
    """1 if a text begins with ``http://``, ``https://`` or ``//``; 2 if an escape hides that; else 0."""
    lower = uint64(0) if exact else uint64(32)
    state = U0
    while at < end:
        byte = uint64(text[at])
        if byte == uint64(92) and at + U1 < end:
            return _U2 if text[at + U1] == 117 or text[at + U1] == 47 else U0
        # A slash: at the start, after the colon, or the second one.
        if byte == uint64(47):
            if state == uint64(8):
                return U1
            if state != U0 and state != _U7:
                return U0
            state = uint64(8)
        elif byte == uint64(58):
            if state != uint64(4) and state != uint64(5):
                return U0
            state = _U7
        else:
            letter = byte | lower if byte - uint64(65) < uint64(26) else byte
            if state > _U4 or letter != uint64(_HTTPS[state]):
                return U0
            state += U1
        at += U1
    return U0


@kernel(allocates=False)
def no_follow(text: UInt8Array, at: Index, end: Index) -> Index:
    """1 if a ``rel`` or a directive for robots says nofollow (or just none), 2 if it is not plain ASCII, else 0."""
    words, only = U0, False
    while True:
        while at < end and (text[at] == 32 or text[at] == 44):
            at += U1
        begin, matching, none = at, True, True
        while at < end and text[at] != 32 and text[at] != 44:
            byte = uint64(text[at])
            if byte >= uint64(127) or byte < uint64(32) or byte == uint64(92):
                return _U2
            if byte - uint64(65) < uint64(26):
                byte |= uint64(32)
            place = at - begin
            matching &= place < _U8 and byte == uint64(_NOFOLLOW[place & _U7])
            none &= place < uint64(4) and byte == uint64(_NONE[place & _U3])
            at += U1
        if at == begin:
            return U1 if words == U1 and only else U0
        if matching and at - begin == _U8:
            # The rest has to be plain too.
            while at < end:
                if text[at] >= 127 or text[at] < 32 or text[at] == 92:
                    return _U2
                at += U1
            return U1
        words += U1
        only = none and at - begin == uint64(4)
