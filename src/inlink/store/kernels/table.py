"""The tables of known URLs and hosts: they find the page of a URL and the number of a host.

A URL is known by 72 bits of a seeded hash: 8 choose one of 256 shards, 32 are its *tag*, 32 its *check*. A shard is a
run of slots, each ``tag << 32 | page + 1`` or 0, in the order of the tags (linear probing, ordered as in Amble &
Knuth, "Ordered hash tables", 1974: a search ends at the first larger tag at the latest). The tag alone gives a
slot its home, so a shard grows in place, in milliseconds, without reading other data. ``checks[page]`` is read only
if the tags are equal. With 10⁸ URLs, the probability that two of them are confused is 10⁻⁶ (n²/2⁷³). Nobody can
construct such URLs without the seed.

URLs are passed as text, with a newline after each URL.
"""

import numpy as np
from numpy import uint8, uint32, uint64

from inlink.base.arrays import UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, kernel, prefetch
from inlink.store.kernels.columns import Table, table_at

__all__ = [
    "PADDING",
    "SHARDS",
    "find_url",
    "find_urls",
    "first_byte",
    "insert_known",
    "newline_in",
    "number_urls",
    "refill_hosts",
    "spread",
]

Text = UInt8Array | bytes

SHARDS = 256
# The place in the text is kept for every URL_MARK-th URL.
URL_MARK = 32
NEWLINE = uint8(10)
# Every text that is hashed must end with this padding.
PADDING = b"\0" * 8
LINE_END = b"\n" + PADDING
NONE = uint32(0xFFFFFFFF)
FIRST_SIZE = uint64(64)
# The number of slots after a shard's last home.
SLACK = uint64(64)

_K1 = uint64(0x9E3779B97F4A7C15)
_K2 = uint64(0xD6E8FEB86659FD93)
_K3 = uint64(0xA0761D6478BD642F)
_U2, _U3, _U4, _U5, _U6, _U7, _U8 = (uint64(k) for k in range(2, 9))
_U16, _U24, _U29, _U32, _U40, _U48, _U56 = (uint64(k) for k in (16, 24, 29, 32, 40, 48, 56))
_ONES, _HIGHS = uint64(0x0101010101010101), uint64(0x8080808080808080)
_NEWLINES = uint64(0x0A0A0A0A0A0A0A0A)
_SLASHES, _COLONS, _QUESTIONS = (uint64(k * 0x0101010101010101) for k in b"/:?")
_LOW = uint64(0xFFFFFFFF)
_MARK = uint64(URL_MARK)


@kernel
def _word(text: Text, at: uint64) -> uint64:
    """Read eight bytes, little-endian. The expression is written out so that the compiler makes one load of it."""
    return (
        uint64(text[at])
        | (uint64(text[at + U1]) << _U8)
        | (uint64(text[at + _U2]) << _U16)
        | (uint64(text[at + _U3]) << _U24)
        | (uint64(text[at + _U4]) << _U32)
        | (uint64(text[at + _U5]) << _U40)
        | (uint64(text[at + _U6]) << _U48)
        | (uint64(text[at + _U7]) << _U56)
    )


@kernel
def _zero_in(word: uint64) -> uint64:
    """Return 0 if no byte is 0; otherwise the lowest set bit is the highest bit of the first such byte."""
    return (word - _ONES) & ~word & _HIGHS


@kernel
def newline_in(word: uint64) -> uint64:
    """Return 0 if no byte is a newline; otherwise the lowest set bit is the highest bit of the first newline."""
    return _zero_in(word ^ _NEWLINES)


@kernel
def first_byte(marks: uint64) -> uint64:
    """The number of the byte with the lowest set bit of :func:`newline_in`, from 0 to 7."""
    below = ((marks & (U0 - marks)) >> _U7) - U1
    # Below the byte, each byte adds 1 to the highest byte of the product.
    return ((below & _ONES) * _ONES) >> _U56


@kernel
def _hash_line(text: Text, start: uint64, seed: uint64) -> tuple[uint64, uint64, uint64]:
    """Return a 128-bit hash of the line at ``start`` and the place of its newline. Two lanes multiply and fold.

    The newline is searched eight bytes at a time (Mycroft's test for a zero byte), so up to seven bytes after it are
    read. For this reason texts end with :data:`PADDING`. A line of 70 bytes takes 12 ns; byte by byte it takes 34 ns.
    """
    a, b, at = seed ^ _K1, seed * _K2, start
    word = _word(text, at)
    marks = newline_in(word)
    while marks == U0:
        a = (a ^ word) * _K2
        a ^= a >> _U32
        b = (b + word) * _K3
        b ^= b >> _U29
        at += _U8
        word = _word(text, at)
        marks = newline_in(word)
    # Clear the newline and the bytes after it.
    word &= ((marks & (U0 - marks)) >> _U7) - U1
    at += first_byte(marks)
    a = (a ^ word) * _K2
    a ^= a >> _U32
    b = (b + word) * _K3
    b ^= b >> _U29
    a ^= (at - start) * _K1
    a = (a ^ (b >> _U7)) * _K1
    a ^= a >> _U32
    b = (b ^ (a >> _U3)) * _K2
    b ^= b >> _U32
    return a * _K3, b, at


@kernel
def _hash(text: Text, start: uint64, stop: uint64, seed: uint64) -> uint64:
    """Return a 64-bit hash of a host's name. Up to seven bytes after the name are read and ignored; they must exist."""
    a, at = seed ^ ((stop - start) * _K1), start
    while at + _U8 <= stop:
        a = (a ^ _word(text, at)) * _K2
        a ^= a >> _U32
        at += _U8
    if at < stop:
        a = (a ^ (_word(text, at) & ((U1 << ((stop - at) * _U8)) - U1))) * _K2
        a ^= a >> _U32
    return a * _K3


@kernel
def _shard(second: uint64) -> uint64:
    return second >> _U56


@kernel
def _grow(slots: UInt64Array, base: uint64, size: uint64, shard: uint64, sizes: UInt64Array) -> bool:
    """Enlarge a shard in place by an eighth. Return False if its address space is full."""
    room = uint64(len(slots)) // uint64(SHARDS)
    larger = size
    used = size + SLACK if size > U0 else U0
    old = slots[base : base + used].copy()
    while True:
        larger += larger // _U8 + FIRST_SIZE
        if larger + SLACK > room:
            slots[base : base + used] = old
            return False
        slots[base : base + larger + SLACK] = U0
        place, fits = base, True
        # In order: each entry goes to its home, or after the previous entry.
        for k in range(U0, used):
            slot = old[k]
            if slot != U0:
                place = max(place, base + (((slot >> _U32) * larger) >> _U32))
                if place + U1 >= base + larger + SLACK:
                    # The run is longer than the slack. With an even hash this is very rare.
                    fits = False
                    break
                slots[place] = slot
                place += U1
        if fits:
            sizes[shard] = larger
            return True


@kernel
def _search(t: Table, first: uint64, second: uint64) -> tuple[uint32, uint64]:
    """Return the page of a hash, NONE if it is unknown, and the slot where the search ended."""
    shard = _shard(second)
    size = t.sizes[shard]
    room = uint64(len(t.slots)) // uint64(SHARDS)
    base = shard * room
    tag, check = first >> _U32, uint32(first & _LOW)
    place = base + ((tag * size) >> _U32)
    while True:
        slot = t.slots[place]
        if slot == U0:
            return NONE, place
        other = slot >> _U32
        if other > tag:
            return NONE, place
        if other == tag:
            page = (slot & _LOW) - U1
            if t.checks[page] == check:
                return uint32(page), place
        place += U1


@kernel
def _insert(t: Table, first: uint64, second: uint64, page: uint64) -> bool:
    """Insert a page that is not in the table. Return False if the address space is full."""
    shard = _shard(second)
    room = uint64(len(t.slots)) // uint64(SHARDS)
    base = shard * room
    tag = first >> _U32
    while True:
        size = t.sizes[shard]
        if (t.counts[shard] + U1) * uint64(10) <= size * uint64(9):
            place = base + ((tag * size) >> _U32)
            while t.slots[place] != U0 and (t.slots[place] >> _U32) <= tag:
                place += U1
            end = place
            while t.slots[end] != U0:
                end += U1
            # The last slot stays 0: it ends every search.
            if end + U1 < base + size + SLACK:
                while end > place:
                    t.slots[end] = t.slots[end - U1]
                    end -= U1
                t.slots[place] = (tag << _U32) | (page + U1)
                t.counts[shard] += U1
                return True
        if not _grow(t.slots, base, size, shard, t.sizes):
            return False


@kernel
def _host_span(text: Text, start: uint64, stop: uint64) -> tuple[uint64, uint64]:
    """Return where the host of a canonical URL begins and ends: after ``://``, before the port or the path."""
    at = min(start + (uint64(7) if text[start + _U4] == 58 else _U8), stop)
    begin = at
    # An IPv6 address in brackets contains colons.
    bracket = at < stop and text[at] == 91
    while not bracket and at + _U8 <= stop:
        word = _word(text, at)
        marks = _zero_in(word ^ _SLASHES) | _zero_in(word ^ _COLONS) | _zero_in(word ^ _QUESTIONS)
        if marks != U0:
            return begin, at + first_byte(marks)
        at += _U8
    while at < stop and text[at] != 47 and text[at] != 63 and (bracket or text[at] != 58):
        if text[at] == 93:
            bracket = False
        at += U1
    return begin, at


@kernel
def _equal(text: Text, at: uint64, right: Text, place: uint64, length: uint64) -> bool:
    """Return whether ``length`` bytes of two texts are equal, from these places on."""
    k = U0
    if length < _U8:
        while k < length and text[at + k] == right[place + k]:
            k += U1
        return k == length
    while k + _U8 <= length:
        if _word(text, at + k) != _word(right, place + k):
            return False
        k += _U8
    k = length - _U8
    return _word(text, at + k) == _word(right, place + k)


@kernel
def _begin_alike(text: Text, first: uint64, second: uint64, length: uint64) -> bool:
    """Return whether two lines begin with the same ``length`` bytes; False if ``length`` is below 8."""
    return length >= _U8 and _equal(text, first, text, second, length)


@kernel
def _host(t: Table, text: Text, begin: uint64, end: uint64, first: uint64) -> uint32:
    """Return the number of the host ``text[begin:end]`` with hash ``first``; add an unknown host.

    Names are compared, not only hashes.
    """
    mask = uint64(len(t.host_slots)) - U1
    slot = first & mask
    while t.host_slots[slot] != 0:
        host = uint64(t.host_slots[slot]) - U1
        other = t.host_ends[host - U1] if host > U0 else U0
        if t.host_ends[host] - other == end - begin and _equal(text, begin, t.host_text, other, end - begin):
            return uint32(host)
        slot = (slot + U1) & mask
    host = t.tally[U0].hosts
    other = t.host_ends[host - U1] if host > U0 else U0
    for k in range(U0, end - begin):
        t.host_text[other + k] = text[begin + k]
    t.host_ends[host] = other + (end - begin)
    t.host_slots[slot] = uint32(host + U1)
    t.tally[U0].hosts = host + U1
    return uint32(host)


@kernel
def number_urls(
    at: UInt64Array, text: Text, seed: uint64, pages: UInt32Array, new_text: UInt8Array
) -> tuple[uint64, uint64]:
    """Write the page of each line's URL to ``pages``, for ``len(pages)`` lines. An unknown URL becomes the next page.

    An empty line has no page: it gets ``NO_PAGE``. ``at`` is a table of addresses, see :func:`.columns.table_at`. New
    URLs are copied to ``new_text``, with a newline after each URL. Returns the number of bytes copied and the number of
    lines done. Not all lines are done if the address space is full.

    All lines are hashed first, and their slots are read. So the processor waits for memory once, not once per line.
    """
    t, count = table_at(at), uint64(len(pages))
    firsts = np.empty(count, uint64)
    seconds = np.empty(count, uint64)
    ends = np.empty(count, uint64)
    room = uint64(len(t.slots)) // uint64(SHARDS)
    end, touched = U0, U0
    for i in range(U0, count):
        firsts[i], seconds[i], end = _hash_line(text, end, seed)
        ends[i] = end
        shard = _shard(seconds[i])
        touched += t.slots[shard * room + (((firsts[i] >> _U32) * t.sizes[shard]) >> _U32)]
        end += U1
    for i in range(U0, count):
        shard = _shard(seconds[i])
        slot = t.slots[shard * room + (((firsts[i] >> _U32) * t.sizes[shard]) >> _U32)]
        touched += uint64(t.checks[slot & _LOW])
    written, start = U0, U0
    # The previous new URL and its host: the next URL often has the same host.
    before, length, host = U0, U0, uint32(0)
    for i in range(U0, count):
        if ends[i] == start:
            pages[i] = NONE
            start += U1
            continue
        first, second = firsts[i], seconds[i]
        page, _ = _search(t, first, second)
        if page == NONE:
            number = t.tally[U0].pages
            if number + U1 >= uint64(len(t.checks)) or not _insert(t, first, second, number):
                return written, i
            page = uint32(number)
            t.checks[number] = uint32(first & _LOW)
            if not _begin_alike(text, before, start, length):
                begin, end = _host_span(text, start, ends[i])
                host, length = _host(t, text, begin, end, _hash(text, begin, end, seed)), end + U1 - start
            t.hosts[number], before = host, start
            if number % _MARK == U0:
                t.marks[number // _MARK] = t.tally[U0].url_bytes
            for k in range(start, ends[i] + U1):
                new_text[written + k - start] = text[k]
            written += ends[i] + U1 - start
            t.tally[U0].url_bytes += ends[i] + U1 - start
            t.tally[U0].pages = number + U1
        pages[i] = page
        start = ends[i] + U1
    # Without this use the compiler would remove the reads above.
    firsts[U0] = touched
    return written, count


@kernel
def insert_known(
    at: UInt64Array, text: UInt8Array, begin: int, seed: uint64, most: int, covered: int
) -> None:
    """Insert at most ``most`` lines as the next pages. All lines must differ; the text's padding is not a line.

    ``at`` is a table of addresses, see :func:`.columns.table_at`. text[0] is byte ``begin`` of urls.txt. Pages below
    ``covered`` are in the slots already.
    """
    t, base, place = table_at(at), uint64(begin), U0
    stop = uint64(len(text) - len(PADDING))
    group = uint64(64)
    firsts, seconds = np.empty(group, uint64), np.empty(group, uint64)
    # The name of each line's host, and its hash. The end is 0 if the line before has the same host.
    begins, ends, hashes = (
        np.empty(group, uint64),
        np.empty(group, uint64),
        np.empty(group, uint64),
    )
    room = uint64(len(t.slots)) // uint64(SHARDS)
    mask = uint64(len(t.host_slots)) - U1
    left = uint64(most)
    # The previous line and its host: the next line often has the same host.
    before, length, host = U0, U0, uint32(0)
    while place < stop and left > U0:
        first_page = t.tally[U0].pages
        inside = U0
        while inside < group and place < stop and left > U0:
            start, page = place, first_page + inside
            first, second, place = _hash_line(text, start, seed)
            firsts[inside], seconds[inside] = first, second
            t.checks[page] = uint32(first & _LOW)
            if page % _MARK == U0:
                t.marks[page // _MARK] = base + start
            ends[inside] = U0
            if not _begin_alike(text, before, start, length):
                host_begin, end = _host_span(text, start, place)
                begins[inside], ends[inside], length = host_begin, end, end + U1 - start
                hashes[inside] = _hash(text, host_begin, end, seed)
                prefetch(t.host_slots, hashes[inside] & mask)
            if page >= uint64(covered):
                shard = _shard(second)
                prefetch(t.slots, shard * room + (((first >> _U32) * t.sizes[shard]) >> _U32))
            before = start
            place += U1
            inside += U1
            left -= U1
        # The tables are larger than the caches. So their numbers are asked for before they are needed.
        for i in range(U0, inside):
            slot = uint64(t.host_slots[hashes[i] & mask]) if ends[i] > U0 else U0
            if slot > U1:
                prefetch(t.host_ends, slot - _U2)
        for i in range(U0, inside):
            slot = uint64(t.host_slots[hashes[i] & mask]) if ends[i] > U0 else U0
            if slot > U1:
                prefetch(t.host_text, t.host_ends[slot - _U2])
        for i in range(U0, inside):
            if ends[i] > U0:
                host = _host(t, text, begins[i], ends[i], hashes[i])
            t.hosts[first_page + i] = host
            if first_page + i >= uint64(covered):
                _insert(t, firsts[i], seconds[i], first_page + i)
        t.tally[U0].pages = first_page + inside
    t.tally[U0].url_bytes = base + place


@kernel
def find_urls(at: UInt64Array, text: Text, seed: uint64, pages: UInt32Array) -> None:
    """Write the page of each line to ``pages``, NONE if the URL is unknown. ``at`` is as for :func:`number_urls`."""
    t, start = table_at(at), U0
    for i in range(U0, uint64(len(pages))):
        first, second, end = _hash_line(text, start, seed)
        pages[i], _ = _search(t, first, second)
        start = end + U1


@kernel
def find_url(at: UInt64Array, line: Text, seed: uint64) -> int:
    """Return the page of one line, as :func:`find_urls` does."""
    first, second, _ = _hash_line(line, U0, seed)
    page, _ = _search(table_at(at), first, second)
    return int(page)


@kernel
def refill_hosts(
    host_text: UInt8Array,
    host_ends: UInt64Array,
    first: uint64,
    end: uint64,
    seed: uint64,
    slots: UInt32Array,
) -> None:
    """Insert the hosts ``first`` … ``end`` - 1 into a larger table of hosts, which has those before."""
    mask = uint64(len(slots)) - U1
    begin = host_ends[first - U1] if first > U0 else U0
    for host in range(first, end):
        hash_ = _hash(host_text, begin, host_ends[host], seed)
        slot = hash_ & mask
        while slots[slot] != 0:
            slot = (slot + U1) & mask
        slots[slot] = uint32(host + U1)
        begin = host_ends[host]


@kernel
def spread(entries: UInt64Array, slots: UInt64Array, size: uint64) -> bool:
    """Insert a shard's entries, in order, into its empty slots. Return False if the last run is too long."""
    place = U0
    for k in range(U0, uint64(len(entries))):
        place = max(place, ((entries[k] >> _U32) * size) >> _U32)
        if place + U1 >= uint64(len(slots)):
            slots[:] = U0
            return False
        slots[place] = entries[k]
        place += U1
    return True


@kernel
def hash_of(line: UInt8Array, seed: uint64) -> tuple[uint64, uint64]:
    """Return the shard and the tag of one line."""
    first, second, _ = _hash_line(line, U0, seed)
    return _shard(second), first >> _U32
