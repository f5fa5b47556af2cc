"""Measures of a URL that show spider traps, in one pass over its bytes; see :mod:`inlink.frontier.traps`."""

import numpy as np
from numpy import int64, uint8, uint64

from inlink.base.arrays import UInt8Array, UInt64Array
from inlink.base.jit import U0, U1, item_at, kernel
from inlink.store.kernels.table import first_byte, newline_in

# the measures, in the order of the table of rules
MEASURES = 10
DEPTH, REPEATED, LOOP, CALENDAR, FUTURE, PAST, LENGTH, PARAMETERS, SAME, SESSION = (
    uint64(i) for i in range(MEASURES)
)
KEPT = 32
"""Maximum number of segments and of parameters that are compared. A URL with more has points for their number alone."""

# The loops share one work array. Passing several arrays between functions would cost more in reference counting than
# the work itself: 175 ns a URL instead of 84. After the measures come, for each path segment, where it begins,
STARTS = uint64(MEASURES)
# its length, the first equal segment, and the number of equal ones so far; then the hash of each parameter's name; then
# the names with a meaning, each as a hash and a meaning.
LENGTHS, ROOTS, TIMES, HASHES, NAMES = (STARTS + uint64(KEPT * i) for i in range(1, 6))

# meanings of the names of query parameters
YEAR, PART, SESSION_ID, SESSION_START = (uint64(i) for i in range(1, 5))

NO_DATE = -1
_KEPT = uint64(KEPT)
_U2, _U3, _U4, _U7, _U8, _U10, _U11 = (uint64(i) for i in (2, 3, 4, 7, 8, 10, 11))
_LAST_POINT = uint64(31)
_ZERO, _NINE, _DASH = uint8(48), uint8(57), uint8(45)
_SLASH, _SEMICOLON, _QUESTION = uint8(47), uint8(59), uint8(63)
_AND, _EQUALS, _PERCENT = uint8(38), uint8(61), uint8(37)
_LARGE_A, _LARGE_Z, _CASE = uint8(65), uint8(90), uint8(32)
_JSESSIONID = np.frombuffer(b";jsessionid", uint8)
_ONES = uint64(0x0101010101010101)
_HIGHS, _SEVENS = uint64(0x80) * _ONES, uint64(0x7F) * _ONES
_SLASHES, _SEMICOLONS, _QUESTIONS = (uint64(byte) * _ONES for byte in b"/;?")
# A byte below 128 has its highest bit after the first is added if it is at least "0", after the second if above "9".
_FROM_ZERO, _ABOVE_NINE = uint64(0x80 - 0x30) * _ONES, uint64(0x80 - 0x3A) * _ONES
_U56 = uint64(56)
# bytes of "aspsessionid"
_PREFIX = uint64(12)
_START, _PRIME = uint64(0xCBF29CE484222325), uint64(0x100000001B3)


@kernel
def number_at(text: UInt8Array, start: uint64, stop: uint64) -> int:
    """The number in at most 8 bytes, −1 if they are not all digits."""
    value = 0
    for k in range(start, stop):
        byte = text[k]
        if byte < _ZERO or byte > _NINE:
            return NO_DATE
        value = value * 10 + int64(byte - _ZERO)
    return value


@kernel
def date_at(text: UInt8Array, start: uint64, stop: uint64) -> int:
    """The year of a date such as ``2024-05``, ``2024-05-12`` or ``20240512``; −1 if it is no date."""
    length = stop - start
    if length == _U8:
        date = number_at(text, start, stop)
        year, month, day = date // 10_000, date // 100 % 100, date % 100
        # eight digits are more often a number than a date
        if year < 1900 or year > 2199:
            return NO_DATE
    elif length in (_U7, _U10):
        if text[start + _U4] != _DASH:
            return NO_DATE
        year, month, day = number_at(text, start, start + _U4), 0, 1
        month = number_at(text, start + uint64(5), start + _U7)
        if length == _U10:
            if text[start + _U7] != _DASH:
                return NO_DATE
            day = number_at(text, start + _U8, stop)
    else:
        return NO_DATE
    if year < 0 or month < 1 or month > 12 or day < 1 or day > 31:
        return NO_DATE
    return year


@kernel
def same_bytes(text: UInt8Array, a: uint64, b: uint64, length: uint64) -> bool:
    """Return whether two parts of a text are equal."""
    for k in range(length):
        if text[a + k] != text[b + k]:
            return False
    return True


@kernel
def note_year(work: UInt64Array, year: int, now: int) -> None:
    """Keep the distance of the farthest date, in the future and in the past."""
    if year > now:
        work[FUTURE] = max(work[FUTURE], uint64(year - now))
    else:
        work[PAST] = max(work[PAST], uint64(now - year))


@kernel
def repetitions(text: UInt8Array, kept: uint64, work: UInt64Array) -> None:
    """Count how often one path segment occurs, and how many segments repeat those just before them."""
    most = U1
    for i in range(kept):
        work[ROOTS + i], work[TIMES + i] = i, U1
        start, length = work[STARTS + i], work[LENGTHS + i]
        for back in range(U1, i + U1):
            # the nearest equal segment knows how many there were
            j = i - back
            if work[LENGTHS + j] == length and same_bytes(text, start, work[STARTS + j], length):
                work[ROOTS + i], work[TIMES + i] = work[ROOTS + j], work[TIMES + j] + U1
                most = max(most, work[TIMES + i])
                break
    work[REPEATED] = most
    if most == U1:
        return
    for period in range(U1, kept // _U2 + U1):
        run = U0
        for i in range(period, kept):
            if work[ROOTS + i] == work[ROOTS + i - period]:
                run += U1
                if run >= period:
                    work[LOOP] = max(work[LOOP], run)
            else:
                run = U0


@kernel
def dates(text: UInt8Array, count: uint64, now: int, work: UInt64Array) -> None:
    """Find dates in a path, such as ``/2024-05-12``, ``/2024/05``, ``/2024/05/12`` and ``/2024/5/12``."""
    kept = min(count, _KEPT)
    i = U0
    while i < kept:
        start, length = work[STARTS + i], work[LENGTHS + i]
        i += U1
        if text[start] < _ZERO or text[start] > _NINE:
            continue
        if length != _U4:
            year = date_at(text, start, start + length)
        else:
            year = number_at(text, start, start + length)
            if year < 0 or i == kept or work[LENGTHS + i] > _U2:
                continue
            start, length = work[STARTS + i], work[LENGTHS + i]
            month, day = number_at(text, start, start + length), 0
            if month < 1 or month > 12:
                continue
            if i + U1 < kept and work[LENGTHS + i + U1] <= _U2:
                after = work[STARTS + i + U1]
                day = number_at(text, after, after + work[LENGTHS + i + U1])
            if day >= 1 and day <= 31:
                i += _U2
            elif length == U1 or (text[start] != _ZERO and (year < 1900 or year > 2199)):
                # /t/2345/7 and /t/2345/12 are the numbers of a thread and a post
                continue
            else:
                i += U1
        if year >= 0:
            note_year(work, year, now)
            # An article has a name after its date. A calendar's page ends with the date.
            if i == count:
                work[CALENDAR] += U1


@kernel
def meaning(work: UInt64Array, name: uint64, prefix: uint64) -> uint64:
    """The meaning of a parameter's name, by its hash and the hash of its beginning; 0 if it has none."""
    for i in range(NAMES, uint64(len(work)), _U2):
        if work[i] == name or (work[i] == prefix and work[i + U1] == SESSION_START):
            return work[i + U1]
    return U0


@kernel
def query(text: UInt8Array, start: uint64, stop: uint64, now: int, work: UInt64Array) -> None:
    """Count a query's parameters, repeated names, dates and session ids."""
    k = start
    while k < stop:
        begin = k
        name, prefix = _START, U0
        while k < stop and text[k] != _EQUALS and text[k] != _AND:
            byte = text[k]
            if byte >= _LARGE_A and byte <= _LARGE_Z:
                byte |= _CASE
            name = (name ^ uint64(byte)) * _PRIME
            k += U1
            if k - begin == _PREFIX:
                prefix = name
        bare = k == begin
        value = min(k + U1, stop) if k < stop and text[k] == _EQUALS else k
        while k < stop and text[k] != _AND:
            k += U1
        length = k - value
        k += U1
        if bare:
            continue
        means = meaning(work, name, prefix)
        if means >= SESSION_ID:
            work[SESSION] += U1
        elif length > U0 and length <= _U10 and text[value] >= _ZERO and text[value] <= _NINE:
            if means == YEAR and length == _U4:
                year = number_at(text, value, value + length)
            else:
                year = date_at(text, value, value + length)
            if year >= 0:
                note_year(work, year, now)
                work[CALENDAR] += U1
            elif means == PART and length <= _U2:
                work[CALENDAR] += U1
        count = work[PARAMETERS]
        for i in range(min(count, _KEPT)):
            if work[HASHES + i] == name:
                work[SAME] += U1
                break
        if count < _KEPT:
            work[HASHES + count] = name
        work[PARAMETERS] += U1


@kernel
def measure(text: UInt8Array, start: uint64, stop: uint64, now: int, work: UInt64Array) -> None:
    """Write the measures of the URL ``text[start:stop]`` to ``work``. It begins with ``http://`` or ``https://``."""
    for i in range(STARTS):
        work[i] = U0
    # after "http://" and one byte of the host, or after "https://"
    k = start + _U8
    while k < stop and text[k] != _SLASH:
        k += U1
    k += U1
    begin, count = k, U0
    while k < stop:
        byte = text[k]
        # letters are above
        if byte <= _QUESTION:
            if byte == _SLASH:
                if k > begin:
                    if count < _KEPT:
                        work[STARTS + count], work[LENGTHS + count] = begin, k - begin
                    count += U1
                begin = k + U1
            elif byte == _QUESTION:
                break
            elif byte == _SEMICOLON and k + _U11 <= stop:
                i = U1
                while i < _U11 and (text[k + i] | _CASE) == _JSESSIONID[i]:
                    i += U1
                if i == _U11:
                    work[SESSION] += U1
        k += U1
    if k > begin:
        if count < _KEPT:
            work[STARTS + count], work[LENGTHS + count] = begin, k - begin
        count += U1
    work[DEPTH] = count
    if count > U0:
        repetitions(text, min(count, _KEPT), work)
        dates(text, count, now, work)
    if k < stop:
        query(text, k + U1, stop, now, work)
    length = max(stop, start) - start
    if length > uint64(255):
        for i in range(start, stop):
            # the three bytes of %E3 are one byte of a name, which is long in other scripts
            if text[i] == _PERCENT:
                length -= _U2
    work[LENGTH] = length


@kernel
def measures(text: UInt8Array, offsets: UInt64Array, now: int, names: UInt64Array) -> UInt64Array:
    """The measures of n URLs, uint64[n, MEASURES]; arguments as for :func:`codes`."""
    n = uint64(len(offsets) - 1)
    result = np.empty((n, STARTS), uint64)
    work = np.empty(NAMES + uint64(len(names)), uint64)
    work[NAMES:] = names
    for i in range(n):
        measure(text, offsets[i], offsets[i + U1], now, work)
        result[i] = work[:STARTS]
    return result


@kernel
def _is_simple(text: UInt8Array, start: uint64, stop: uint64) -> bool:
    """Return whether a URL is so simple that no rule can give it points.

    It has at most 255 bytes and two segments, no segment begins with a digit, and there is neither query nor semicolon.
    Most URLs are like that. A loop over bytes without branches is compiled to instructions for many bytes at a time.
    """
    if stop - start > uint64(255):
        return False
    slashes, odd = uint8(0), uint8(0)
    for k in range(start + _U8, stop):
        byte = text[k]
        slashes = uint8(slashes + uint8(byte == _SLASH))
        odd |= uint8(
            (byte == _QUESTION)
            | (byte == _SEMICOLON)
            | ((text[k - U1] == _SLASH) & (byte >= _ZERO) & (byte <= _NINE))
        )
    return odd == 0 and slashes <= uint8(2)


@kernel
def _code(
    text: UInt8Array, start: uint64, stop: uint64, now: int, work: UInt64Array, rules: UInt64Array
) -> uint8:
    """The penalty code of a URL: the points of all its measures, at most 31."""
    if _is_simple(text, start, stop):
        return uint8(0)
    measure(text, start, stop, now, work)
    total = U0
    for rule in range(STARTS):
        free, step, points, most = rules[rule]
        if work[rule] > free:
            steps = (work[rule] - free + step - U1) // step
            total += min(most, steps * points)
    return uint8(min(total, _LAST_POINT))


@kernel
def codes(
    text: UInt8Array, offsets: UInt64Array, now: int, names: UInt64Array, rules: UInt64Array
) -> UInt8Array:
    """The penalty codes of URLs, uint8[n]: the points of all measures of each, at most 31.

    Parameters
    ----------
    text : uint8[bytes]
        The URLs, one after the other.
    offsets : uint64[n + 1]
        The place where each URL begins, and the place where the last URL ends.
    now : int
        The present year.
    names : uint64[2 · k]
        Parameter names with a meaning: the FNV-1a hash of the lower-case name, and the meaning, in turn.
    rules : uint64[MEASURES, 4]
        The numbers free, step, points and most of each rule.
    """
    n = uint64(len(offsets) - 1)
    result = np.empty(n, uint8)
    work = np.empty(NAMES + uint64(len(names)), uint64)
    work[NAMES:] = names
    for i in range(n):
        result[i] = _code(text, offsets[i], offsets[i + U1], now, work, rules)
    return result


@kernel
def _equal_bytes(word: uint64, pattern: uint64) -> uint64:
    """The highest bit of each byte of a word that equals the pattern's. All bytes of both must be below 128."""
    return (((word ^ pattern) + _SEVENS) & _HIGHS) ^ _HIGHS


@kernel
def _line(text: UInt8Array, start: uint64) -> tuple[uint64, bool]:
    """The end of the URL at ``start``, and whether it is simple as in :func:`_is_simple`, eight bytes at a time.

    The last URLs of a text are not called simple.
    """
    at, size = start, uint64(len(text))
    odd, slashes, before = U0, U0, U0
    while at + _U8 <= size:
        word = uint64(item_at(text, at, uint64))
        marks = newline_in(word)
        if marks != U0:
            # Clear the newline and the bytes after it. A byte 0 is neither odd nor a slash.
            word &= ((marks & (U0 - marks)) >> _U7) - U1
        odd |= word & _HIGHS
        slash = _equal_bytes(word, _SLASHES)
        if at != start:
            # Sums do not carry into the next byte, unless a byte is above 127, which is odd.
            digits = (word + _FROM_ZERO) & ~(word + _ABOVE_NINE) & _HIGHS
            odd |= _equal_bytes(word, _QUESTIONS) | _equal_bytes(word, _SEMICOLONS)
            odd |= digits & ((slash << _U8) | before)
            slashes += slash >> _U7
        before = slash >> _U56
        if marks != U0:
            at += first_byte(marks)
            few = (slashes * _ONES) >> _U56 <= _U2
            return at, odd == U0 and few and at - start <= uint64(255)
        at += _U8
    while text[at] != uint8(10):
        at += U1
    return at, False


@kernel
def line_codes(text: UInt8Array, out: UInt8Array, now: int, names: UInt64Array, rules: UInt64Array) -> None:
    """Write the :func:`codes` of the first len(out) lines of a text to ``out``."""
    work = np.empty(NAMES + uint64(len(names)), uint64)
    work[NAMES:] = names
    at = U0
    for i in range(U0, uint64(len(out))):
        start = at
        at, simple = _line(text, start)
        out[i] = uint8(0) if simple else _code(text, start, at, now, work, rules)
        at += U1
