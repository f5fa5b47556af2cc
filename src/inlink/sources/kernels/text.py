"""Split lines of text into arcs."""

from typing import NamedTuple

import numpy as np
from numpy import int64, uint8, uint32, uint64

from inlink.base.arrays import Float64Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, inlined, kernel

NEWLINE, RETURN, SPACE, TAB = uint8(10), uint8(13), uint8(32), uint8(9)
QUOTE, HASH, PERCENT = uint8(34), uint8(35), uint8(37)
_ZERO, _NINE, _DOT, _PLUS, _MINUS = uint8(48), uint8(57), uint8(46), uint8(43), uint8(45)
_LARGE_E, _SMALL_E = uint8(69), uint8(101)
_U10 = uint64(10)

# the status of a scan
ALL, OPEN_QUOTE, FEW_FIELDS, NOT_A_NUMBER, OUT_OF_RANGE, BAD_QUOTE, BAD_WEIGHT = range(7)


@kernel
def number_in(text: UInt8Array, start: uint64, stop: uint64, limit: uint64) -> uint64:
    """Return a decimal number; ``limit`` (below 2⁶³) if it is not below; 2⁶⁴ − 1 if it is not a number."""
    if start == stop:
        return uint64(0xFFFFFFFFFFFFFFFF)
    value = U0
    for k in range(start, stop):
        byte = text[k]
        if byte < _ZERO or byte > _NINE:
            return uint64(0xFFFFFFFFFFFFFFFF)
        if value < limit:
            value = value * _U10 + uint64(byte - _ZERO)
    return min(value, limit)


@kernel
def weight_in(text: UInt8Array, start: uint64, stop: uint64, powers: Float64Array) -> float:
    """Return a decimal fraction if one rounding reads it exactly. Return NaN for all other text, even for numbers.

    The value is exact if the digits form a number below 2⁵³ and the power of ten is at most 22 (Clinger 1990).
    """
    digits, exponent = U0, 0
    seen, point = False, False
    k = start
    while k < stop:
        byte = text[k]
        if byte >= _ZERO and byte <= _NINE:
            digits = digits * _U10 + uint64(byte - _ZERO)
            if digits >= uint64(9007199254740992):
                return np.nan
            seen = True
            if point:
                exponent -= 1
        elif byte == _DOT and not point:
            point = True
        elif byte in (_SMALL_E, _LARGE_E) and seen:
            k += U1
            negative = False
            if k < stop and (text[k] == _PLUS or text[k] == _MINUS):
                negative = text[k] == _MINUS
                k += U1
            if k == stop:
                return np.nan
            power = 0
            while k < stop:
                byte = text[k]
                if byte < _ZERO or byte > _NINE or power > 400:
                    return np.nan
                power = power * 10 + int64(byte - _ZERO)
                k += U1
            exponent += -power if negative else power
            break
        else:
            return np.nan
        k += U1
    if not seen or exponent < -22 or exponent > 22:
        return np.nan
    if exponent < 0:
        return float(digits) / powers[-exponent]
    return float(digits) * powers[exponent]


@kernel
def _end_of_field(text: UInt8Array, at: uint64, separator: uint8, other: uint8) -> uint64:
    while True:
        byte = text[at]
        if byte in (separator, NEWLINE, other):
            return at
        at += U1


@kernel
def _is_comment(text: UInt8Array, at: uint64, first: bool) -> bool:
    """Return whether a comment begins here.

    ``#`` always begins a comment. ``%`` does only before the first arc, followed by a blank, a ``%`` or the line's end.
    """
    if text[at] == HASH:
        return True
    if text[at] != PERCENT or not first:
        return False
    after = text[at + U1]
    return after in (SPACE, PERCENT, TAB, NEWLINE, RETURN)


@inlined
def _after_line(text: UInt8Array, at: uint64) -> uint64:
    """Return the place after the next newline."""
    while text[at] != NEWLINE:
        at += U1
    return at + U1


@inlined
def _after_blanks(text: UInt8Array, at: uint64) -> uint64:
    """Return the next place that is neither a space nor a tab."""
    while text[at] == SPACE or text[at] == TAB:
        at += U1
    return at


@inlined
def _unquoted(
    text: UInt8Array, at: uint64, names: UInt8Array, put: uint64
) -> tuple[int, uint64, uint64, uint64]:
    """Write the field that begins with the quote at ``at`` to ``names``, without its quotes (RFC 4180).

    Returns
    -------
    status, place after the closing quote, end of the name, number of newlines in the field
    """
    end, newlines = uint64(len(text)), U0
    at += U1
    while at < end:
        byte = text[at]
        at += U1
        if byte == QUOTE:
            if at == end:
                return OPEN_QUOTE, end, put, newlines
            if text[at] != QUOTE:
                return ALL, at, put, newlines
            at += U1
        elif byte == NEWLINE:
            newlines += U1
        names[put] = byte
        put += U1
    return OPEN_QUOTE, end, put, newlines


@inlined
def _equal(text: UInt8Array, start: uint64, stop: uint64, other: uint64) -> bool:
    """Return whether the same bytes as text[start:stop] also begin at ``other``."""
    for k in range(U0, stop - start):
        if text[start + k] != text[other + k]:
            return False
    return True


@inlined
def _appended(text: UInt8Array, start: uint64, stop: uint64, names: UInt8Array, put: uint64) -> uint64:
    """Copy text[start:stop] to ``put`` in ``names``. Return the end of the copy."""
    for k in range(U0, stop - start):
        names[put + k] = text[start + k]
    return put + (stop - start)


@inlined
def _trimmed(text: UInt8Array, start: uint64, stop: uint64, quoted: bool) -> tuple[uint64, uint64]:
    """Return the start and end of a field without its quotes and without spaces around it."""
    if quoted:
        start += U1
        stop -= U1
    while stop > start and text[start] == SPACE:
        start += U1
    while stop > start and text[stop - U1] == SPACE:
        stop -= U1
    return start, stop


class Layout(NamedTuple):
    """The layout of a line.

    Attributes
    ----------
    separator : uint8
        The byte between fields; a space means any run of spaces and tabs.
    quotes : bool
        Whether a field may be in double quotes, with quotes doubled within (RFC 4180).
    columns : uint64[3]
        Places of source, target and weight in a line.
    limit : uint64
        Node numbers must be below this number. 0 if nodes are names.
    powers : float64[23]
        10⁰ … 10²².
    """

    separator: uint8
    quotes: bool
    columns: UInt64Array
    limit: uint64
    powers: Float64Array


class ArcArrays(NamedTuple):
    """Arrays to which arcs are written.

    Attributes
    ----------
    names, offsets : uint8[≥ length of the text], uint64[≥ 2 × lines + 1]
        The names, one after the other. A source equal to the source of the line before is not repeated.
    sources, targets : uint32[≥ lines]
        Numbers of nodes, or places among the names.
    weights : float64[≥ lines] or float64[0]
        The weights, if they are wanted. Weights that cannot be read exactly here become NaN.
    hard : uint64[≥ 3 × lines]
        For each weight that became NaN: its arc, and its start and stop in the text.
    """

    names: UInt8Array
    offsets: UInt64Array
    sources: UInt32Array
    targets: UInt32Array
    weights: Float64Array
    hard: UInt64Array


@kernel
def scan(
    text: UInt8Array, layout: Layout, first: bool, out: ArcArrays
) -> tuple[int, uint64, uint64, uint64, uint64, uint64, uint64, uint64]:
    """Split whole lines into arcs.

    Parameters
    ----------
    text : uint8[k]
        The lines. The text ends with a newline.
    layout : Layout
        The layout of a line.
    first : bool
        Whether no arc was read before this text.
    out : ArcArrays
        The arrays to which arcs are written.

    Returns
    -------
    status, consumed, lines, arcs, names, hard weights, field's start, field's stop
        After an error, ``lines`` is the number of lines before the error.
    """
    separator, quotes, columns, limit, powers = layout
    names, offsets, sources, targets, weights, hard = out
    end = uint64(len(text))
    by_name = limit == U0
    weighted = len(weights) > 0
    blank = separator == SPACE
    other = TAB if blank else separator
    column_s, column_t, column_w = columns[0], columns[1], columns[2]
    at, lines, arcs, num_names, room, num_hard = U0, U0, U0, U0, U0, U0
    last_start, last_stop, last_place = U0, U0, uint32(0)
    fresh = True
    offsets[0] = U0
    while at < end:
        line = at
        if blank:
            at = _after_blanks(text, at)
        if text[at] == NEWLINE:
            at += U1
            lines += U1
            continue
        if (text[at] == RETURN and text[at + U1] == NEWLINE) or _is_comment(text, at, first and arcs == U0):
            at = _after_line(text, at)
            lines += U1
            continue
        column, newlines = U0, U1
        has_s, has_t, has_w = False, False, not weighted
        while True:
            if blank:
                at = _after_blanks(text, at)
                if text[at] == NEWLINE or (text[at] == RETURN and text[at + U1] == NEWLINE):
                    at = _after_line(text, at)
                    break
            start, put = at, room
            quoted = quotes and text[at] == QUOTE
            if quoted:
                status, at, put, more = _unquoted(text, at, names, put)
                if status != ALL:
                    return status, line, lines, arcs, num_names, num_hard, start, at
                newlines += more
                stop = at
                if text[at] == RETURN and text[at + U1] == NEWLINE:
                    at += U1
                if text[at] != separator and text[at] != NEWLINE:
                    return BAD_QUOTE, line, lines, arcs, num_names, num_hard, start, at
            else:
                at = _end_of_field(text, at, separator, other)
                stop = at
                if text[at] == NEWLINE and stop > start and text[stop - U1] == RETURN:
                    stop -= U1
            if column in (column_s, column_t):
                place = uint32(num_names)
                if not by_name:
                    value = number_in(text, start, stop, limit)
                    if value > limit:
                        return NOT_A_NUMBER, line, lines, arcs, num_names, num_hard, start, stop
                    if value == limit:
                        return OUT_OF_RANGE, line, lines, arcs, num_names, num_hard, start, stop
                    place = uint32(value)
                elif quoted:
                    room = put
                    num_names += U1
                    offsets[num_names] = room
                    if column == column_s:
                        fresh = True
                else:
                    same = column == column_s and not fresh and stop - start == last_stop - last_start
                    if same and _equal(text, start, stop, last_start):
                        place = last_place
                    else:
                        room = _appended(text, start, stop, names, room)
                        num_names += U1
                        offsets[num_names] = room
                    if column == column_s:
                        last_start, last_stop, last_place, fresh = start, stop, place, False
                if column == column_s:
                    sources[arcs] = place
                    has_s = True
                else:
                    targets[arcs] = place
                    has_t = True
            elif weighted and column == column_w:
                start, stop = _trimmed(text, start, stop, quoted)
                weight = weight_in(text, start, stop, powers)
                if not (weight > 0):
                    hard[uint64(3) * num_hard] = arcs
                    hard[uint64(3) * num_hard + U1] = start
                    hard[uint64(3) * num_hard + uint64(2)] = stop
                    num_hard += U1
                weights[arcs] = weight
                has_w = True
            column += U1
            if text[at] == NEWLINE:
                at += U1
                break
            at += U1
        if not (has_s and has_t):
            return FEW_FIELDS, line, lines, arcs, num_names, num_hard, line, at - U1
        if not has_w:
            return BAD_WEIGHT, line, lines, arcs, num_names, num_hard, line, at - U1
        lines += newlines
        arcs += U1
    return ALL, end, lines, arcs, num_names, num_hard, end, end


@kernel
def scan_vertices(
    text: UInt8Array, first: uint64, limit: uint64, names: UInt8Array, offsets: UInt64Array
) -> tuple[int, uint64, bool, uint64, uint64]:
    """Read the names from lines ``id TAB name [TAB anything]``. The ids are ``first``, ``first + 1`` and so on.

    ``names`` is uint8[≥ len(text)], ``offsets`` uint64[≥ lines + 1]. Return the status, the number of names,
    whether the names are in ascending byte order, and, after an error, the line's start and stop.
    """
    end = uint64(len(text))
    at, count, room = U0, U0, U0
    ordered = True
    offsets[0] = U0
    while at < end:
        line = at
        at = _end_of_field(text, at, TAB, TAB)
        value = number_in(text, line, at, limit)
        if text[at] == NEWLINE:
            return FEW_FIELDS, count, ordered, line, at
        if value > limit or value != first + count:
            return NOT_A_NUMBER, count, ordered, line, at
        if value == limit:
            return OUT_OF_RANGE, count, ordered, line, at
        at += U1
        start = at
        at = _end_of_field(text, at, TAB, TAB)
        stop = at
        while text[at] != NEWLINE:
            at += U1
        if stop == at and stop > start and text[stop - U1] == RETURN:
            stop -= U1
        at += U1
        room = _appended(text, start, stop, names, room)
        count += U1
        offsets[count] = room
        if count > U1:
            a, a_end, b = offsets[count - uint64(2)], offsets[count - U1], offsets[count - U1]
            while a < a_end and b < room and names[a] == names[b]:
                a += U1
                b += U1
            if b == room or (a < a_end and names[a] > names[b]):
                ordered = False
    return ALL, count, ordered, end, end
