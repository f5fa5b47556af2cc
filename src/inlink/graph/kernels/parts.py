"""Loops of parts: coding of sorted arcs and sorted names, and the merge of many sorted lists of names.

Numbers are coded as LEB128: seven bits a byte, the lowest first, and the highest bit says that another byte follows.
"""

import numpy as np
from numpy import float64, int64, uint8, uint32, uint64

from inlink.base.arrays import BoolArray, Float64Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, inlined, kernel

_U7 = uint64(7)
_U32 = uint64(32)
_U63 = uint64(63)
_LOW = uint64(0xFFFFFFFF)
_BYTE = uint64(127)
_MORE = uint64(128)


@inlined
def _put(out: UInt8Array, at: uint64, value: uint64) -> uint64:
    """Write a number; return the place behind it. At most five bytes below 2³², at most ten at all."""
    while value >= _MORE:
        out[at] = uint8((value & _BYTE) | _MORE)
        value >>= _U7
        at += U1
    out[at] = uint8(value)
    return at + U1


@inlined
def _get(data: UInt8Array, at: uint64, stop: uint64) -> tuple[uint64, uint64]:
    """Read a number; return it and the place behind it, which is never behind `stop`."""
    value, shift, more = U0, U0, _MORE
    while more >= _MORE and at < stop:
        more = uint64(data[at])
        value |= (more & _BYTE) << shift
        shift = (shift + _U7) & _U63
        at += U1
    return value, at


# -- arcs ------------------------------------------------------------------------------------------------------------


@kernel
def encode_arcs(
    arcs: UInt64Array, first: uint64, base: uint64, rows: UInt8Array, targets: UInt8Array
) -> tuple[uint64, uint64]:
    """Code sorted arcs. Return the numbers of bytes used in `rows` and in `targets`.

    `rows` has for each source its difference to the source before (at the beginning: to `first`) and the number of its
    arcs; `targets` has for each arc the difference to the target before in the row (at its beginning: to `base`).
    """
    r, t, k, n = U0, U0, U0, uint64(len(arcs))
    before = first
    while k < n:
        source = arcs[k] >> _U32
        start, last = k, base
        while k < n and arcs[k] >> _U32 == source:
            target = arcs[k] & _LOW
            t = _put(targets, t, target - last)
            last = target
            k += U1
        r = _put(rows, r, source - before)
        r = _put(rows, r, k - start)
        before = source
    return r, t


@kernel
def decode_arcs(
    rows: UInt8Array,
    targets: UInt8Array,
    first: uint64,
    base: uint64,
    nodes: uint64,
    out: UInt64Array,
) -> bool:
    """Reverse :func:`encode_arcs`. Return False unless `out` is filled with sorted arcs between nodes below `nodes`."""
    r, t, k, n = U0, U0, U0, uint64(len(out))
    source, begun = first, False
    r_stop, t_stop = uint64(len(rows)), uint64(len(targets))
    while k < n:
        step, r = _get(rows, r, r_stop)
        degree, r = _get(rows, r, r_stop)
        source += step
        if degree == U0 or degree > n - k or step > _LOW or source >= nodes or (begun and step == U0):
            return False
        begun = True
        target = base
        for j in range(k, k + degree):
            step, t = _get(targets, t, t_stop)
            target += step
            if step > _LOW or target >= nodes:
                return False
            out[j] = (source << _U32) | target
        k += degree
    return bool(r == r_stop and t == t_stop)


@kernel
def decode_rows(rows: UInt8Array, nodes: uint64, sources: UInt64Array, degrees: UInt64Array) -> int64:
    """Read only the sources of coded arcs and the number of arcs of each. Return the number of rows, -1 for damage."""
    at, stop, count, source = U0, uint64(len(rows)), U0, U0
    while at < stop:
        step, at = _get(rows, at, stop)
        degree, at = _get(rows, at, stop)
        source += step
        if step > _LOW or source >= nodes or count == uint64(len(sources)):
            return int64(-1)
        sources[count], degrees[count] = source, degree
        count += U1
    return int64(count)


@kernel
def encode_counts(values: Float64Array, out: UInt8Array) -> uint64:
    """Code whole numbers below 2⁵³. Return the number of used bytes, at most eight for each number."""
    at = U0
    for k in range(U0, uint64(len(values))):
        at = _put(out, at, uint64(values[k]))
    return at


@kernel
def decode_counts(data: UInt8Array, out: Float64Array) -> bool:
    """Reverse :func:`encode_counts`. Return False unless the data are that many numbers above 0."""
    at, stop = U0, uint64(len(data))
    for k in range(U0, uint64(len(out))):
        value, at = _get(data, at, stop)
        if value == U0:
            return False
        out[k] = float64(value)
    return bool(at == stop)


@kernel
def count_bins(arcs: UInt64Array, places: UInt32Array, shift: uint64, bins: UInt64Array) -> None:
    """Count the arcs of each bin of ``2**shift`` places of targets."""
    for k in range(U0, uint64(len(arcs))):
        bins[uint64(places[arcs[k] & _LOW]) >> shift] += U1


@kernel
def split_targets(
    arcs: UInt64Array,
    weights: Float64Array,
    shift: uint64,
    range_of: UInt32Array,
    out: UInt64Array,
    out_weights: Float64Array,
    ends: UInt64Array,
) -> None:
    """Cut arcs into ranges by target, keeping their order within a range.

    ``range_of`` gives the range of each bin of ``2**shift`` targets; range *p* then is ``out[ends[p]:ends[p + 1]]``.
    """
    ends[:] = U0
    for k in range(U0, uint64(len(arcs))):
        ends[uint64(range_of[(arcs[k] & _LOW) >> shift]) + U1] += U1
    for p in range(U1, uint64(len(ends))):
        ends[p] += ends[p - U1]
    weighted = len(weights) > 0
    at = ends.copy()
    for k in range(U0, uint64(len(arcs))):
        p = uint64(range_of[(arcs[k] & _LOW) >> shift])
        out[at[p]] = arcs[k]
        if weighted:
            out_weights[at[p]] = weights[k]
        at[p] += U1


# -- names -----------------------------------------------------------------------------------------------------------


@kernel
def encode_names(
    text: UInt8Array,
    offsets: UInt64Array,
    last: UInt8Array,
    shared: UInt8Array,
    lengths: UInt8Array,
    rest: UInt8Array,
) -> tuple[uint64, uint64, uint64]:
    """Code sorted names: the number of bytes each shares with the name before, the number that follow, and these bytes.

    `last` is the name before the first. Returns the number of used bytes of each of the three outputs.
    """
    a, b, c = U0, U0, U0
    for i in range(U0, uint64(len(offsets)) - U1):
        start, stop = offsets[i], offsets[i + U1]
        size, k = stop - start, U0
        if i == U0:
            before = uint64(len(last))
            while k < size and k < before and text[start + k] == last[k]:
                k += U1
        else:
            begin = offsets[i - U1]
            before = start - begin
            while k < size and k < before and text[start + k] == text[begin + k]:
                k += U1
        a = _put(shared, a, k)
        b = _put(lengths, b, size - k)
        for j in range(start + k, stop):
            rest[c] = text[j]
            c += U1
    return a, b, c


@kernel
def measure_names(
    shared: UInt8Array,
    lengths: UInt8Array,
    rest: UInt8Array,
    count: uint64,
    last: uint64,
    most: uint64,
) -> int64:
    """Return the number of bytes of coded names, the name before the first having `last`; -1 for damage."""
    a, b, used, total = U0, U0, U0, U0
    a_stop, b_stop = uint64(len(shared)), uint64(len(lengths))
    for _ in range(U0, count):
        same, a = _get(shared, a, a_stop)
        more, b = _get(lengths, b, b_stop)
        if same > last or more > uint64(len(rest)) - used:
            return int64(-1)
        last = same + more
        used += more
        total += last
        if total > most:
            return int64(-1)
    if a != a_stop or b != b_stop or used != uint64(len(rest)):
        return int64(-1)
    return int64(total)


@kernel
def decode_names(
    shared: UInt8Array,
    lengths: UInt8Array,
    rest: UInt8Array,
    last: UInt8Array,
    text: UInt8Array,
    offsets: UInt64Array,
) -> None:
    """Reverse :func:`encode_names`, for names that :func:`measure_names` found sound."""
    a, b, used, at = U0, U0, U0, U0
    a_stop, b_stop = uint64(len(shared)), uint64(len(lengths))
    offsets[0] = U0
    begin = U0
    for i in range(U0, uint64(len(offsets)) - U1):
        same, a = _get(shared, a, a_stop)
        more, b = _get(lengths, b, b_stop)
        start = at
        for k in range(U0, same):
            if i == U0:
                text[at] = last[k]
            else:
                text[at] = text[begin + k]
            at += U1
        for _ in range(U0, more):
            text[at] = rest[used]
            at += U1
            used += U1
        begin = start
        offsets[i + U1] = at


@kernel
def load_names(
    text: UInt8Array,
    offsets: UInt64Array,
    last: UInt8Array,
    first: bool,
    lane: uint64,
    texts: UInt8Array,
    ends: UInt32Array,
    shared: UInt32Array,
) -> bool:
    """Copy a block of names to a lane of the merge. Return False unless they follow `last` in byte order.

    Write to `shared` the number of bytes that each name shares with the name before. `first` is True if there is no
    name before.
    """
    ends[lane, 0] = uint32(0)
    before = uint64(len(last))
    at, begin = U0, U0
    for i in range(U0, uint64(len(offsets)) - U1):
        start, size, k = at, offsets[i + U1] - offsets[i], U0
        for j in range(offsets[i], offsets[i + U1]):
            texts[lane, at] = text[j]
            at += U1
        if i == U0:
            while k < size and k < before and texts[lane, start + k] == last[k]:
                k += U1
            if not first and (k == size or (k < before and texts[lane, start + k] < last[k])):
                return False
        else:
            while k < size and k < before and texts[lane, start + k] == texts[lane, begin + k]:
                k += U1
            if k == size or (k < before and texts[lane, start + k] < texts[lane, begin + k]):
                return False
        shared[lane, i] = uint32(k)
        ends[lane, i + U1] = uint32(at)
        begin, before = start, size
    return True


@inlined
def _play(
    a: uint64,
    b: uint64,
    texts: UInt8Array,
    ends: UInt32Array,
    place: UInt64Array,
    same: UInt64Array,
    over: BoolArray,
) -> bool:
    """Return whether lane `a` wins against lane `b`: its name comes first.

    `same` has the number of bytes that each lane's name shares with the last winner of all. The lane that shares more
    comes first; if both share equally many, the bytes after these decide. Then `same` is set for the loser to the
    number of bytes that it shares with the winner.
    """
    if over[b]:
        return True
    if over[a]:
        return False
    if same[a] != same[b]:
        return bool(same[a] > same[b])
    k = same[a]
    a0, a1 = uint64(ends[a, place[a]]), uint64(ends[a, place[a] + U1])
    b0, b1 = uint64(ends[b, place[b]]), uint64(ends[b, place[b] + U1])
    while a0 + k < a1 and b0 + k < b1 and texts[a, a0 + k] == texts[b, b0 + k]:
        k += U1
    wins = a0 + k == a1 or (b0 + k < b1 and texts[a, a0 + k] < texts[b, b0 + k])
    if wins:
        same[b] = k
    else:
        same[a] = k
    return bool(wins)


@kernel
def first_round(
    losers: UInt64Array,
    texts: UInt8Array,
    ends: UInt32Array,
    place: UInt64Array,
    same: UInt64Array,
    over: BoolArray,
) -> uint64:
    """Play the first round between all lanes, a power of two of them, and return the winner."""
    lanes = uint64(len(losers))
    winners = np.empty(lanes + lanes, uint64)
    for lane in range(U0, lanes):
        winners[lanes + lane] = lane
    for node in range(U1, lanes):
        at = lanes - node
        a, b = winners[at + at], winners[at + at + U1]
        if _play(a, b, texts, ends, place, same, over):
            winners[at], losers[at] = a, b
        else:
            winners[at], losers[at] = b, a
    return winners[U1]


@kernel
def merge_names(
    winner: uint64,
    moved: bool,
    losers: UInt64Array,
    texts: UInt8Array,
    ends: UInt32Array,
    shared: UInt32Array,
    counts: UInt64Array,
    place: UInt64Array,
    same: UInt64Array,
    over: BoolArray,
    maps: UInt32Array,
    state: UInt64Array,
    text: UInt8Array,
    offsets: UInt64Array,
) -> uint64:
    """Take names in byte order from all lanes, equal names once, until a lane is empty or the output is full.

    A tournament of losers that compares only bytes after a common beginning: Bingmann, Eberle and Sanders,
    "Engineering parallel string sorting", Algorithmica 77 (2017), section 5. `moved` is True if the winner has another
    name since the last call, which must play first.

    `state` has the number of different names so far, the length of the last one, and the numbers of names and bytes in
    the output. The number of each name is written to `maps`. Returns the lane to fill. If that lane is over or has
    names left, the output is full: it is the winner for the next call, after the output was emptied.
    """
    lanes = uint64(len(losers))
    num_names, length, filled, used = state[0], state[1], state[2], state[3]
    while True:
        if moved:
            node = (lanes + winner) >> U1
            while node >= U1:
                other = losers[node]
                if not _play(winner, other, texts, ends, place, same, over):
                    losers[node] = winner
                    winner = other
                node >>= U1
        if over[winner]:
            break
        at = place[winner]
        start, stop = uint64(ends[winner, at]), uint64(ends[winner, at + U1])
        if num_names == U0 or same[winner] < length or stop - start != length:
            if filled + U1 == uint64(len(offsets)) or used + (stop - start) > uint64(len(text)):
                break
            for k in range(start, stop):
                text[used] = texts[winner, k]
                used += U1
            filled += U1
            offsets[filled] = used
            length = stop - start
            num_names += U1
        maps[winner, at] = uint32(num_names - U1)
        at += U1
        place[winner] = at
        if at == counts[winner]:
            break
        same[winner] = uint64(shared[winner, at])
        moved = True
    state[0], state[1], state[2], state[3] = num_names, length, filled, used
    return winner
