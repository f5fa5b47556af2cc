"""Loops over names: number them in the order in which they come, sort them in byte order, find them.

Strings are compared as unsigned bytes, in the order of ``sorted()`` on bytes.
"""

import numpy as np
from numpy import int64, uint8, uint32, uint64

from inlink.base.arrays import Int64Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, kernel
from inlink.errors import InputError

EMPTY = uint32(0xFFFFFFFF)
_K1 = uint64(0x9E3779B97F4A7C15)
_K2 = uint64(0xD6E8FEB86659FD93)
_U2 = uint64(2)
_U8 = uint64(8)
_U32 = uint64(32)
_GROUP = uint64(32)


@kernel
def _word(text: UInt8Array, start: uint64, stop: uint64) -> uint64:
    """Up to eight bytes as a big-endian number, filled with zeros. Its order is the order of the bytes."""
    word = U0
    if stop - start >= _U8 and stop > start:
        for k in range(U0, _U8):
            word = (word << _U8) | uint64(text[start + k])
        return word
    for k in range(U0, _U8):
        byte = U0
        if start + k < stop:
            byte = uint64(text[start + k])
        word = (word << _U8) | byte
    return word


@kernel
def _hash(text: UInt8Array, start: uint64, stop: uint64, seed: uint64) -> uint64:
    state = seed ^ ((stop - start) * _K1)
    at = start
    while at < stop:
        state = (state ^ _word(text, at, stop)) * _K2
        state ^= state >> _U32
        at += _U8
    state = state * _K1
    return state ^ (state >> _U32)


@kernel
def _same(a: UInt8Array, a0: uint64, a1: uint64, b: UInt8Array, b0: uint64, b1: uint64) -> bool:
    if a1 - a0 != b1 - b0:
        return False
    for k in range(U0, a1 - a0):
        if a[a0 + k] != b[b0 + k]:
            return False
    return True


@kernel
def number(
    text: UInt8Array,
    offsets: UInt64Array,
    seed: uint64,
    slots: UInt32Array,
    prints: UInt32Array,
    known_text: UInt8Array,
    known_offsets: UInt64Array,
    num_names: uint64,
    first: uint64,
    ids: UInt32Array,
) -> tuple[uint64, uint64]:
    """Give each name its number. A new name gets the next number.

    ``slots`` is an open-addressed hash table of numbers, and ``prints`` holds 32 more bits of each hash. If both agree,
    the bytes are compared, so equal hashes never merge names. The loop stops when the table is 70% full or there is no
    more room for names. Return the number of names of the batch that are done, and the number of known names.

    Names are processed in groups. A whole group is hashed first, so that the processor waits for all its table slots at
    once, and then for the bytes of all its names.
    """
    mask = uint64(len(slots)) - U1
    limit = uint64(len(slots)) * uint64(7) // uint64(10)
    count = uint64(len(offsets)) - U1
    codes = np.empty(_GROUP, uint64)
    touched = U0
    for low in range(first, count, _GROUP):
        high = min(low + _GROUP, count)
        for i in range(low, high):
            codes[i - low] = _hash(text, offsets[i], offsets[i + U1], seed)
        for i in range(low, high):
            slot = codes[i - low] & mask
            touched += uint64(prints[slot])
            node = slots[slot]
            if node != EMPTY:
                touched += uint64(known_text[min(known_offsets[uint64(node)], uint64(len(known_text)) - U1)])
        for i in range(low, high):
            start, stop = offsets[i], offsets[i + U1]
            code = codes[i - low]
            mark = uint32(code >> _U32)
            slot = code & mask
            while True:
                node = slots[slot]
                if node == EMPTY:
                    room = known_offsets[num_names] + (stop - start) <= uint64(len(known_text))
                    if num_names >= limit or not room or num_names + U1 >= uint64(len(known_offsets)):
                        return i, num_names
                    at = known_offsets[num_names]
                    for k in range(U0, stop - start):
                        known_text[at + k] = text[start + k]
                    known_offsets[num_names + U1] = at + (stop - start)
                    slots[slot] = uint32(num_names)
                    prints[slot] = mark
                    ids[i] = uint32(num_names)
                    num_names += U1
                    break
                if prints[slot] == mark:
                    n = uint64(node)
                    if _same(text, start, stop, known_text, known_offsets[n], known_offsets[n + U1]):
                        ids[i] = node
                        break
                slot = (slot + U1) & mask
    # A result that is used: otherwise the compiler would remove the reads above.
    codes[0] = touched
    return count, num_names


@kernel
def refill(
    slots: UInt32Array,
    prints: UInt32Array,
    seed: uint64,
    text: UInt8Array,
    offsets: UInt64Array,
    num_names: uint64,
) -> None:
    """Put all known names into a new, empty table."""
    mask = uint64(len(slots)) - U1
    for i in range(U0, num_names):
        code = _hash(text, offsets[i], offsets[i + U1], seed)
        slot = code & mask
        while slots[slot] != EMPTY:
            slot = (slot + U1) & mask
        slots[slot] = uint32(i)
        prints[slot] = uint32(code >> _U32)


@kernel
def less(text: UInt8Array, offsets: UInt64Array, a: uint64, b: uint64, depth: uint64) -> bool:
    """Return whether name ``a`` comes before name ``b``, given that they agree on the first ``depth`` bytes."""
    a0, a1, b0, b1 = offsets[a] + depth, offsets[a + U1], offsets[b] + depth, offsets[b + U1]
    while a0 < a1 and b0 < b1:
        x, y = _word(text, a0, a1), _word(text, b0, b1)
        if x != y:
            return x < y
        a0 += _U8
        b0 += _U8
    return offsets[a + U1] - offsets[a] < offsets[b + U1] - offsets[b]


@kernel
def sort_names(text: UInt8Array, offsets: UInt64Array, order: UInt32Array, words: UInt64Array) -> None:
    """Sort the nodes in ``order`` by the byte order of their names: multikey quicksort on words of eight bytes.

    ``words`` is scratch space of the same length. Pivots are chosen by a pseudo-random sequence, because names are
    untrusted and could make a fixed choice quadratic. Bentley & Sedgewick, "Fast algorithms for sorting and searching
    strings", SODA 1997.
    """
    stack = np.empty((64, 3), uint64)
    top = U0
    low, high, depth = U0, uint64(len(order)), U0
    loaded = False
    dice = _K2
    while True:
        if high - low < uint64(12):
            for i in range(low + U1, high):
                node = order[i]
                k = i
                while k > low and less(text, offsets, uint64(node), uint64(order[k - U1]), depth):
                    order[k] = order[k - U1]
                    k -= U1
                order[k] = node
            if top == U0:
                return
            top -= U1
            low, high, depth = stack[top, 0], stack[top, 1], stack[top, 2] >> U1
            loaded = (stack[top, 2] & U1) == U1
            continue
        if not loaded:
            for k in range(low, high):
                node = order[k]
                stop = offsets[uint64(node) + U1]
                words[k] = _word(text, min(offsets[uint64(node)] + depth, stop), stop)
        size = high - low
        dice = dice * _K1 + U1
        x, y, z = (
            words[low + (dice >> _U32) % size],
            words[low + (dice >> _U8) % size],
            words[low + size // _U2],
        )
        pivot = max(min(x, y), min(max(x, y), z))
        lt, i, gt = low, low, high
        while i < gt:
            word = words[i]
            if word < pivot:
                words[i], words[lt] = words[lt], word
                order[i], order[lt] = order[lt], order[i]
                lt += U1
                i += U1
            elif word > pivot:
                gt -= U1
                words[i], words[gt] = words[gt], word
                order[i], order[gt] = order[gt], order[i]
            else:
                i += U1
        # [low, lt) is below the pivot, [lt, gt) equal to it, [gt, high) above. Of the equal ones those that end
        # within this word come first, by length: they can differ in zero bytes only.
        begin = lt
        for k in range(lt, gt):
            node = order[k]
            length = offsets[uint64(node) + U1] - offsets[uint64(node)]
            if length <= depth + _U8:
                order[k] = order[begin]
                spot = begin
                while spot > lt:
                    other = uint64(order[spot - U1])
                    if offsets[other + U1] - offsets[other] <= length:
                        break
                    order[spot] = order[spot - U1]
                    spot -= U1
                order[spot] = node
                begin += U1
        if top + _U2 > uint64(len(stack)):
            larger = np.empty((len(stack) * 2, 3), uint64)
            larger[: len(stack)] = stack
            stack = larger
        # the lowest bit says whether the words of the part are loaded already
        stack[top, 0], stack[top, 1], stack[top, 2] = low, lt, (depth << U1) | U1
        top += U1
        stack[top, 0], stack[top, 1], stack[top, 2] = gt, high, (depth << U1) | U1
        top += U1
        low, high, depth, loaded = begin, gt, depth + _U8, False


@kernel
def find_many(
    text: UInt8Array, offsets: UInt64Array, order: UInt32Array, wanted: UInt8Array, places: UInt64Array
) -> Int64Array:
    """The node of each wanted name; -1 if there is none."""
    n = uint64(len(offsets)) - U1
    count = uint64(len(places)) - U1
    nodes = np.full(count, -1, int64)
    for i in range(U0, count):
        low, high = U0, n
        w0, w1 = places[i], places[i + U1]
        while low < high:
            middle = (low + high) >> U1
            node = uint64(order[middle]) if len(order) > 0 else middle
            n0, n1 = offsets[node], offsets[node + U1]
            k = U0
            while n0 + k < n1 and w0 + k < w1 and text[n0 + k] == wanted[w0 + k]:
                k += U1
            if n0 + k == n1 and w0 + k == w1:
                nodes[i] = int64(node)
                break
            if w0 + k < w1 and (n0 + k == n1 or text[n0 + k] < wanted[w0 + k]):
                low = middle + U1
            else:
                high = middle
    return nodes


@kernel
def gather(text: UInt8Array, offsets: UInt64Array, nodes: UInt32Array) -> tuple[UInt8Array, UInt64Array]:
    """The names of the given nodes, one after the other."""
    count = uint64(len(nodes))
    places = np.empty(count + U1, uint64)
    total = U0
    for i in range(U0, count):
        places[i] = total
        node = uint64(nodes[i])
        total += offsets[node + U1] - offsets[node]
    places[count] = total
    out = np.empty(total, uint8)
    for i in range(U0, count):
        start = offsets[uint64(nodes[i])]
        for k in range(U0, places[i + U1] - places[i]):
            out[places[i] + k] = text[start + k]
    return out, places


@kernel
def first_twin(text: UInt8Array, offsets: UInt64Array, order: UInt32Array) -> int64:
    """The first place in ``order`` with the same name as the place before; -1 if there is none."""
    for k in range(U1, uint64(len(order))):
        a, b = uint64(order[k - U1]), uint64(order[k])
        if _same(text, offsets[a], offsets[a + U1], text, offsets[b], offsets[b + U1]):
            return int64(k)
    return int64(-1)


def order_of(text: UInt8Array, offsets: UInt64Array) -> UInt32Array | None:
    """The nodes in the byte order of their names, uint32[n]; None if that is 0, 1, 2, …

    Raises
    ------
    inlink.errors.InputError
        If two names are the same.
    """
    count = len(offsets) - 1
    order = np.arange(count, dtype=uint32)
    sort_names(text, offsets, order, np.empty(count, uint64))
    twin = int(first_twin(text, offsets, order))
    if twin >= 0:
        a, b = int(order[twin - 1]), int(order[twin])
        name = bytes(text[int(offsets[a]) : int(offsets[a + 1])]).decode("utf-8", "backslashreplace")
        raise InputError(f"nodes {min(a, b)} and {max(a, b)} have the same name {name!r}: names must differ")
    return None if is_count(order) else order


@kernel
def is_count(order: UInt32Array) -> bool:
    """Return whether ``order`` is 0, 1, 2, …"""
    for k in range(U0, uint64(len(order))):
        if uint64(order[k]) != k:
            return False
    return True
