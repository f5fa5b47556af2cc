"""The table of known URLs: which page has this URL? And the same for hosts.

A URL is known by 72 bits of a seeded hash: 8 choose one of 256 shards, 32 are its *tag*, 32 its *check*. A shard is a
run of slots, each ``tag << 32 | page + 1`` or 0, in the order of the tags (linear probing, ordered as in Amble &
Knuth, "Ordered hash tables", 1974: a search ends at the first larger tag, found or not). The tag alone gives a
slot its home, so a shard grows in place, in milliseconds, without looking at anything else. ``checks[page]`` is
looked at only where tags agree. Two of 10⁸ URLs are taken for one with a chance of 10⁻⁶ (n²/2⁷³), and who does not
know the seed cannot look for such.

URLs come as text with a newline behind each.
"""

import numpy as np
import numpy.typing as npt

from inlink.base.jit import U0, U1, kernel

__all__ = ["PADDING", "SHARDS", "find_urls", "insert_known", "number_urls", "refill_hosts", "spread"]

U8A = npt.NDArray[np.uint8]
U32A = npt.NDArray[np.uint32]
U64A = npt.NDArray[np.uint64]

SHARDS = 256
URL_MARK = 32  # every how many URLs their place in the text is kept
NEWLINE = np.uint8(10)
PADDING = b"\0" * 8  # behind every text that is hashed
NONE = np.uint32(0xFFFFFFFF)
FIRST_SIZE = np.uint64(64)
SLACK = np.uint64(64)  # slots behind a shard's last home

_K1 = np.uint64(0x9E3779B97F4A7C15)
_K2 = np.uint64(0xD6E8FEB86659FD93)
_K3 = np.uint64(0xA0761D6478BD642F)
_U2, _U3, _U4, _U5, _U6, _U7, _U8 = (np.uint64(k) for k in range(2, 9))
_U16, _U24, _U29, _U32, _U40, _U48, _U56 = (np.uint64(k) for k in (16, 24, 29, 32, 40, 48, 56))
_ONES, _HIGHS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_NEWLINES = np.uint64(0x0A0A0A0A0A0A0A0A)
_LOW = np.uint64(0xFFFFFFFF)
_MARK = np.uint64(URL_MARK)


@kernel
def _word(text: U8A, at: np.uint64) -> np.uint64:
    """Eight bytes, little-endian: written out, so that it becomes one load."""
    return (
        np.uint64(text[at])
        | (np.uint64(text[at + U1]) << _U8)
        | (np.uint64(text[at + _U2]) << _U16)
        | (np.uint64(text[at + _U3]) << _U24)
        | (np.uint64(text[at + _U4]) << _U32)
        | (np.uint64(text[at + _U5]) << _U40)
        | (np.uint64(text[at + _U6]) << _U48)
        | (np.uint64(text[at + _U7]) << _U56)
    )


@kernel
def _newline_in(word: np.uint64) -> np.uint64:
    """0 if no byte is a newline; else the lowest bit that is set lies in the first that is one."""
    x = word ^ _NEWLINES
    return (x - _ONES) & ~x & _HIGHS


@kernel
def _hash_line(text: U8A, start: np.uint64, seed: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64]:
    """128 bits of hash of the line at ``start``, and where its newline is: two lanes of multiply and fold.

    Looks for the newline eight bytes at a time (Mycroft's test for a zero byte), and so may read seven bytes
    behind it: texts have :data:`PADDING` behind their last line. 12 ns for 70 bytes, byte by byte 34.
    """
    a, b, at = seed ^ _K1, seed * _K2, start
    word = _word(text, at)
    found = _newline_in(word)
    while found == U0:
        a = (a ^ word) * _K2
        a ^= a >> _U32
        b = (b + word) * _K3
        b ^= b >> _U29
        at += _U8
        word = _word(text, at)
        found = _newline_in(word)
    below = ((found & (U0 - found)) >> _U7) - U1  # the bits below the newline
    word &= below
    while below != U0:
        below >>= _U8
        at += U1
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
def _hash(text: U8A, start: np.uint64, stop: np.uint64, seed: np.uint64) -> np.uint64:
    """64 bits of hash of a host's name. Reads up to seven bytes behind it, which are there, and leaves them out."""
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
def _shard(second: np.uint64) -> np.uint64:
    return second >> _U56


@kernel
def _grow(slots: U64A, base: np.uint64, size: np.uint64, shard: np.uint64, sizes: U64A) -> bool:
    """Enlarge a shard in place by a fifth; False where its address space ends."""
    room = np.uint64(len(slots)) // np.uint64(SHARDS)
    larger = size
    used = size + SLACK if size > U0 else U0
    old = slots[base : base + used].copy()
    while True:
        larger += larger // np.uint64(5) + FIRST_SIZE
        if larger + SLACK > room:
            slots[base : base + used] = old
            return False
        slots[base : base + larger + SLACK] = U0
        place, fits = base, True
        for k in range(U0, used):  # in order: each goes to its home, or behind the one before
            slot = old[k]
            if slot != U0:
                place = max(place, base + (((slot >> _U32) * larger) >> _U32))
                if place + U1 >= base + larger + SLACK:
                    fits = False  # a run longer than the slack, which an even hash hardly ever makes
                    break
                slots[place] = slot
                place += U1
        if fits:
            sizes[shard] = larger
            return True


@kernel
def _search(
    slots: U64A,
    sizes: U64A,
    checks: U32A,
    first: np.uint64,
    second: np.uint64,
) -> tuple[np.uint32, np.uint64]:
    """The page of a hash and the slot where its search ended; NONE if it is not there."""
    shard = _shard(second)
    size = sizes[shard]
    room = np.uint64(len(slots)) // np.uint64(SHARDS)
    base = shard * room
    tag, check = first >> _U32, np.uint32(first & _LOW)
    place = base + ((tag * size) >> _U32)
    while True:
        slot = slots[place]
        if slot == U0:
            return NONE, place
        other = slot >> _U32
        if other > tag:
            return NONE, place
        if other == tag:
            page = (slot & _LOW) - U1
            if checks[page] == check:
                return np.uint32(page), place
        place += U1


@kernel
def _insert(
    slots: U64A, sizes: U64A, counts: U64A, first: np.uint64, second: np.uint64, page: np.uint64
) -> bool:
    """Put a page in that is not there; False where the address space is full."""
    shard = _shard(second)
    room = np.uint64(len(slots)) // np.uint64(SHARDS)
    base = shard * room
    tag = first >> _U32
    while True:
        size = sizes[shard]
        if (counts[shard] + U1) * np.uint64(100) <= size * np.uint64(85):
            place = base + ((tag * size) >> _U32)
            while slots[place] != U0 and (slots[place] >> _U32) <= tag:
                place += U1
            end = place
            while slots[end] != U0:
                end += U1
            if end + U1 < base + size + SLACK:  # the last slot stays 0: it ends every search
                while end > place:
                    slots[end] = slots[end - U1]
                    end -= U1
                slots[place] = (tag << _U32) | (page + U1)
                counts[shard] += U1
                return True
        if not _grow(slots, base, size, shard, sizes):
            return False


@kernel
def _host_span(text: U8A, start: np.uint64, stop: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Where the host of a canonical URL stands: behind ``://``, to the port or the path."""
    at = min(start + (np.uint64(7) if text[start + _U4] == 58 else _U8), stop)
    begin = at
    bracket = at < stop and text[at] == 91  # an IPv6 address holds colons
    while at < stop and text[at] != 47 and text[at] != 63 and (bracket or text[at] != 58):
        if text[at] == 93:
            bracket = False
        at += U1
    return begin, at


@kernel
def _host(
    text: U8A,
    start: np.uint64,
    stop: np.uint64,
    seed: np.uint64,
    host_slots: U32A,
    host_text: U8A,
    host_ends: U64A,
    tally: U64A,
) -> np.uint32:
    """The number of a URL's host, given on the spot to a new one. Host names are compared byte by byte."""
    begin, end = _host_span(text, start, stop)
    first = _hash(text, begin, end, seed)
    mask = np.uint64(len(host_slots)) - U1
    slot = first & mask
    while host_slots[slot] != 0:
        host = np.uint64(host_slots[slot]) - U1
        other = host_ends[host - U1] if host > U0 else U0
        if host_ends[host] - other == end - begin:
            k = U0
            while k < end - begin and host_text[other + k] == text[begin + k]:
                k += U1
            if k == end - begin:
                return np.uint32(host)
        slot = (slot + U1) & mask
    host = tally[1]
    other = host_ends[host - U1] if host > U0 else U0
    for k in range(U0, end - begin):
        host_text[other + k] = text[begin + k]
    host_ends[host] = other + (end - begin)
    host_slots[slot] = np.uint32(host + U1)
    tally[1] = host + U1
    return np.uint32(host)


@kernel
def number_urls(
    text: U8A,
    count: np.uint64,
    seed: np.uint64,
    slots: U64A,
    sizes: U64A,
    counts: U64A,
    checks: U32A,
    hosts: U32A,
    marks: U64A,
    host_slots: U32A,
    host_text: U8A,
    host_ends: U64A,
    tally: U64A,
    pages: U32A,
    new_text: U8A,
) -> tuple[np.uint64, np.uint64]:
    """Give ``count`` lines of URLs their pages: the one that is known, or the next.

    ``tally`` is [pages known, hosts known, bytes of URLs known]. New URLs are copied to ``new_text``, newline
    behind each. Returns how many bytes that took, and how many lines are done: fewer than count only where address
    space is full.

    Hashing all lines first, and touching their slots, lets the processor wait for memory once and not line by line.
    """
    firsts = np.empty(count, np.uint64)
    seconds = np.empty(count, np.uint64)
    ends = np.empty(count, np.uint64)
    room = np.uint64(len(slots)) // np.uint64(SHARDS)
    at, touched = U0, U0
    for i in range(U0, count):
        firsts[i], seconds[i], at = _hash_line(text, at, seed)
        ends[i] = at
        shard = _shard(seconds[i])
        touched += slots[shard * room + (((firsts[i] >> _U32) * sizes[shard]) >> _U32)]
        at += U1
    for i in range(U0, count):
        shard = _shard(seconds[i])
        slot = slots[shard * room + (((firsts[i] >> _U32) * sizes[shard]) >> _U32)]
        touched += np.uint64(checks[slot & _LOW])
    written, start = U0, U0
    for i in range(U0, count):
        first, second = firsts[i], seconds[i]
        page, _ = _search(slots, sizes, checks, first, second)
        if page == NONE:
            number = tally[0]
            if number + U1 >= np.uint64(len(checks)) or not _insert(
                slots, sizes, counts, first, second, number
            ):
                return written, i
            page = np.uint32(number)
            checks[number] = np.uint32(first & _LOW)
            hosts[number] = _host(text, start, ends[i], seed, host_slots, host_text, host_ends, tally)
            if number % _MARK == U0:
                marks[number // _MARK] = tally[2]
            for k in range(start, ends[i] + U1):
                new_text[written + k - start] = text[k]
            written += ends[i] + U1 - start
            tally[2] += ends[i] + U1 - start
            tally[0] = number + U1
        pages[i] = page
        start = ends[i] + U1
    firsts[U0] = touched  # or the touching would be optimised away
    return written, count


@kernel
def insert_known(
    text: U8A,
    stop: np.uint64,
    base: np.uint64,
    most: np.uint64,
    seed: np.uint64,
    slots: U64A,
    sizes: U64A,
    counts: U64A,
    checks: U32A,
    hosts: U32A,
    marks: U64A,
    host_slots: U32A,
    host_text: U8A,
    host_ends: U64A,
    tally: U64A,
    covered: np.uint64,
) -> np.uint64:
    """Take in the lines of text[:stop], all different, as the next pages, at most ``most`` of them.

    text[0] stands at byte ``base`` of urls.txt. Pages below ``covered`` are in the slots already. Returns where it
    stopped.
    """
    at = U0
    group = np.uint64(64)
    firsts, seconds = np.empty(group, np.uint64), np.empty(group, np.uint64)
    room = np.uint64(len(slots)) // np.uint64(SHARDS)
    done, touched = U0, U0
    while at < stop and done < most:
        first_page = tally[0]
        inside = U0
        while inside < group and at < stop and done < most:
            start = at
            first, second, at = _hash_line(text, at, seed)
            firsts[inside], seconds[inside] = first, second
            page = tally[0]
            checks[page] = np.uint32(first & _LOW)
            hosts[page] = _host(text, start, at, seed, host_slots, host_text, host_ends, tally)
            if page % _MARK == U0:
                marks[page // _MARK] = base + start
            tally[0] = page + U1
            at += U1
            inside += U1
            done += U1
            if page >= covered:
                shard = _shard(second)
                touched += slots[shard * room + (((first >> _U32) * sizes[shard]) >> _U32)]
        for i in range(U0, inside):
            if first_page + i >= covered:
                _insert(slots, sizes, counts, firsts[i], seconds[i], first_page + i)
    tally[2] = base + at
    firsts[U0] = touched
    return at


@kernel
def find_urls(
    text: U8A, count: np.uint64, seed: np.uint64, slots: U64A, sizes: U64A, checks: U32A, pages: U32A
) -> None:
    """The page of each line, NONE where it is not known; nothing is changed."""
    at = U0
    for i in range(U0, count):
        first, second, end = _hash_line(text, at, seed)
        pages[i], _ = _search(slots, sizes, checks, first, second)
        at = end + U1


@kernel
def refill_hosts(host_text: U8A, host_ends: U64A, hosts: np.uint64, seed: np.uint64, slots: U32A) -> None:
    """Put all hosts into a new, empty table of theirs."""
    mask = np.uint64(len(slots)) - U1
    begin = U0
    for host in range(U0, hosts):
        first = _hash(host_text, begin, host_ends[host], seed)
        slot = first & mask
        while slots[slot] != 0:
            slot = (slot + U1) & mask
        slots[slot] = np.uint32(host + U1)
        begin = host_ends[host]


@kernel
def spread(entries: U64A, slots: U64A, size: np.uint64) -> bool:
    """Put a shard's entries, in order, where they belong among its empty slots; False if the last run is too long."""
    place = U0
    for k in range(U0, np.uint64(len(entries))):
        place = max(place, ((entries[k] >> _U32) * size) >> _U32)
        if place + U1 >= np.uint64(len(slots)):
            slots[:] = U0
            return False
        slots[place] = entries[k]
        place += U1
    return True


@kernel
def hash_of(line: U8A, seed: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The shard and the tag of one line."""
    first, second, _ = _hash_line(line, U0, seed)
    return _shard(second), first >> _U32
