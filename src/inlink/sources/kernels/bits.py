"""Reading instantaneous codes, and the successor lists that BVGraph makes of them."""

import numpy as np
import numpy.typing as npt

from inlink.base.jit import U0, U1, kernel

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]

_U2, _U3, _U6, _U7, _U8, _U16 = (np.uint64(k) for k in (2, 3, 6, 7, 8, 16))
_U32, _U48, _U63, _U64 = (np.uint64(k) for k in (32, 48, 63, 64))

# codes
UNARY, GAMMA, DELTA, ZETA, NIBBLE, GOLOMB = range(6)

# how a decoding ended; from NO_BITS on the node's record is at fault
DONE, FULL, NO_BITS, BAD_DEGREE, BAD_REFERENCE, BAD_BLOCKS, BAD_INTERVAL, BAD_RESIDUAL = range(8)

TOO_LONG = np.uint64(0xFFFFFFFFFFFFFFFF)  # no value: the code runs past the end, or has more than 63 bits
_FAR = np.uint64(1) << np.uint64(62)


@kernel
def _peek(data: U8, at: np.uint64) -> np.uint64:
    """57 bits or more from bit ``at`` on, at the top of the word."""
    k = at >> _U3
    word = (
        (np.uint64(data[k]) << np.uint64(56))
        | (np.uint64(data[k + U1]) << _U48)
        | (np.uint64(data[k + _U2]) << np.uint64(40))
        | (np.uint64(data[k + _U3]) << _U32)
        | (np.uint64(data[k + np.uint64(4)]) << np.uint64(24))
        | (np.uint64(data[k + np.uint64(5)]) << _U16)
        | (np.uint64(data[k + _U6]) << _U8)
        | np.uint64(data[k + _U7])
    )
    return word << (at & _U7)


@kernel
def _bits(data: U8, at: np.uint64, count: np.uint64) -> np.uint64:
    """The next ``count`` bits, 0 to 63, as a number."""
    if count == U0:
        return U0
    if count <= _U32:
        return _peek(data, at) >> (_U64 - count)
    high = _peek(data, at) >> _U32
    low = count - _U32
    return (high << low) | (_peek(data, at + _U32) >> (_U64 - low))


@kernel
def _unary(data: U8, at: np.uint64, end: np.uint64) -> np.uint64:
    """How many zeros come before the next one."""
    here = at
    while here < end:
        word = _peek(data, here) >> _U32
        if word == U0:
            here += _U32
            continue
        width = _U16
        zeros = U0
        while width:  # halves: where is the highest one of 32 bits?
            if (word >> (_U32 - width)) == U0:
                zeros += width
                word = (word << width) & np.uint64(0xFFFFFFFF)
            width >>= U1
        if here + zeros >= end:
            return TOO_LONG
        return here + zeros - at
    return TOO_LONG


@kernel
def read_slowly(
    data: U8, at: np.uint64, end: np.uint64, code: int, k: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """A natural number in any code, and the bit after it; :data:`TOO_LONG` for the number if there is none.

    ``data`` must have 40 bytes of zeros behind bit ``end``.
    """
    if code == NIBBLE:
        value = U0
        here = at
        while here < end and value < _FAR:
            group = _bits(data, here, np.uint64(4))
            here += np.uint64(4)
            value = (value << _U3) | (group & _U7)
            if group >= _U8:
                return (value, here) if here <= end else (TOO_LONG, at)
        return TOO_LONG, at
    if code == GOLOMB and k == U0:
        return U0, at
    high = _unary(data, at, end)
    if high == TOO_LONG:
        return TOO_LONG, at
    here = at + high + U1
    value = high
    if code in (GAMMA, DELTA):
        if high > _U63 - U1:
            return TOO_LONG, at
        value = ((U1 << high) | _bits(data, here, high)) - U1
        here += high
        if code == DELTA:
            width = value
            if width > _U63 - U1 or here > end:
                return TOO_LONG, at
            value = ((U1 << width) | _bits(data, here, width)) - U1
            here += width
    elif code == ZETA:
        if high > _U64 or high * k + k > _U63:
            return TOO_LONG, at
        width = high * k + k - U1
        left = U1 << (high * k)
        value = _bits(data, here, width)
        here += width
        if value < left:
            value = value + left - U1
        else:
            value = ((value << U1) | _bits(data, here, U1)) - U1
            here += U1
    elif code == GOLOMB:
        if high > _FAR // k:
            return TOO_LONG, at
        log = U0
        while (k >> (log + U1)) > U0:
            log += U1
        short = (U1 << (log + U1)) - k
        rest = _bits(data, here, log)
        here += log
        if rest >= short:
            rest = ((rest << U1) | _bits(data, here, U1)) - short
            here += U1
        value = high * k + rest
    return (value, here) if here <= end else (TOO_LONG, at)


@kernel
def code_table(code: int, k: np.uint64, table: U32) -> None:
    """For each 16 bits the number that they begin with and its length, ``number << 8 | length``; 0 if it is longer.

    ``table`` is uint32[65536].
    """
    data = np.zeros(64, np.uint8)
    for bits in range(U0, np.uint64(65536)):
        data[U0] = np.uint8(bits >> _U8)
        data[U1] = np.uint8(bits & np.uint64(255))
        value, stop = read_slowly(data, U0, _U16, code, k)
        table[bits] = np.uint32(0)
        if value != TOO_LONG and stop > U0:
            table[bits] = np.uint32((value << _U8) | stop)


@kernel
def _read(
    data: U8, at: np.uint64, end: np.uint64, code: int, k: np.uint64, table: U32
) -> tuple[np.uint64, np.uint64]:
    entry = np.uint64(table[_peek(data, at) >> _U48])
    if entry:
        stop = at + (entry & np.uint64(255))
        return (entry >> _U8, stop) if stop <= end else (TOO_LONG, at)
    return read_slowly(data, at, end, code, k)


@kernel
def _signed(base: np.uint64, natural: np.uint64) -> np.uint64:
    """``base`` plus the integer that a natural number stands for: 0, −1, 1, −2, 2, …; wraps below 0."""
    if natural & U1:
        return base - ((natural + U1) >> U1)
    return base + (natural >> U1)


@kernel
def decode(
    data: U8,
    at: np.uint64,
    end: np.uint64,
    node: np.uint64,
    num_nodes: np.uint64,
    window: np.uint64,
    min_interval: np.uint64,
    codes: npt.NDArray[np.int64],
    k: np.uint64,
    tables: npt.NDArray[np.uint32],
    lists: U64,
    successors: U32,
    filled: np.uint64,
    sources: U32,
    scratch: U64,
) -> tuple[int, np.uint64, np.uint64, np.uint64, np.uint64]:
    """Decode the successor lists of nodes from ``node`` on, until all are done or something runs out.

    Parameters
    ----------
    data : uint8[…]
        The bit stream, with 40 bytes of zeros behind bit ``end``.
    at, end : uint64
        The bit where the node's record begins, and the one after the last.
    codes : int64[5]
        Of outdegrees, references, block counts, blocks, residuals.
    tables : uint32[6, 65536]
        :func:`code_table` for each of ``codes``, and for γ.
    lists : uint64[window + 1, 2]
        For node x, at place x mod (window + 1), where its list begins in ``successors`` and how long it is.
    successors : uint32[…]
        Filled up to ``filled``; the lists of the last ``window`` nodes are in it.
    sources : uint32[…]
        As long as ``successors``.
    scratch : uint64[…]
        Where intervals begin and end.

    Returns
    -------
    status, node, at, filled, degree
        Of the record that is to be decoded next; the degree only with :data:`FULL`.
    """
    ring = window + U1
    gamma = tables[np.uint64(5)]
    room = np.uint64(len(successors))
    while node < num_nodes:
        here = at
        degree, here = _read(data, here, end, codes[0], k, tables[np.uint64(0)])
        if degree == TOO_LONG:
            return NO_BITS, node, at, filled, U0
        if degree > num_nodes:
            return BAD_DEGREE, node, at, filled, U0
        most = U0 if min_interval == U0 else degree // min_interval
        if filled + degree > room or _U2 * most > np.uint64(len(scratch)):
            return FULL, node, at, filled, degree
        slot = node % ring
        lists[slot, U0] = filled
        lists[slot, U1] = degree
        if degree == U0:
            node += U1
            at = here
            continue
        reference = U0
        if window > U0:
            reference, here = _read(data, here, end, codes[1], k, tables[np.uint64(1)])
            if reference == TOO_LONG:
                return NO_BITS, node, at, filled, U0
            if reference > window or reference > node:
                return BAD_REFERENCE, node, at, filled, U0
        # what is copied from the reference goes to the list's place, right-aligned there, and is merged in place
        left = degree
        num_copied = U0
        if reference > U0:
            other = (node - reference) % ring
            from_, length = lists[other, U0], lists[other, U1]
            count, here = _read(data, here, end, codes[2], k, tables[np.uint64(2)])
            if count == TOO_LONG:
                return NO_BITS, node, at, filled, U0
            if count > length + U1:
                return BAD_BLOCKS, node, at, filled, U0
            place = U0
            copying = True
            for block in range(U0, count + U1):
                size = length - place
                if block < count:
                    size, here = _read(data, here, end, codes[3], k, tables[np.uint64(3)])
                    if size == TOO_LONG:
                        return NO_BITS, node, at, filled, U0
                    if block > U0:
                        size += U1
                    if size > length - place:
                        return BAD_BLOCKS, node, at, filled, U0
                if copying:
                    if size > degree - num_copied:
                        return BAD_BLOCKS, node, at, filled, U0
                    for j in range(U0, size):
                        successors[filled + num_copied + j] = successors[from_ + place + j]
                    num_copied += size
                copying = not copying
                place += size
            left = degree - num_copied
        num_intervals = U0
        num_residuals = left
        if left > U0 and min_interval > U0:
            num_intervals, here = _read(data, here, end, GAMMA, k, gamma)
            if num_intervals == TOO_LONG:
                return NO_BITS, node, at, filled, U0
            if num_intervals > left // min_interval:
                return BAD_INTERVAL, node, at, filled, U0
            before = U0
            for j in range(U0, num_intervals):
                gap, here = _read(data, here, end, GAMMA, k, gamma)
                size, after = _read(data, here, end, GAMMA, k, gamma)
                if gap == TOO_LONG or size == TOO_LONG:
                    return NO_BITS, node, at, filled, U0
                here = after
                size += min_interval
                start = _signed(node, gap) if j == U0 else before + gap + U1
                if size > num_residuals or start >= num_nodes or size > num_nodes - start:
                    return BAD_INTERVAL, node, at, filled, U0
                scratch[_U2 * j] = start
                scratch[_U2 * j + U1] = start + size
                num_residuals -= size
                before = start + size
        if (
            num_copied == U0 and num_intervals == U0
        ):  # the usual case of the rest of the graph: nothing to merge
            last = U0
            for j in range(U0, num_residuals):
                gap, here = _read(data, here, end, codes[4], k, tables[np.uint64(4)])
                if gap == TOO_LONG:
                    return NO_BITS, node, at, filled, U0
                last = _signed(node, gap) if j == U0 else last + gap + U1
                if last >= num_nodes:
                    return BAD_RESIDUAL, node, at, filled, U0
                successors[filled + j] = np.uint32(last)
        else:
            # move the copied ones to the end: what is written before them never overtakes what is still to be read
            shift = degree - num_copied
            if shift > U0:
                for j in range(U0, num_copied):
                    m = num_copied - U1 - j
                    successors[filled + shift + m] = successors[filled + m]
                put, copied, stop = filled, filled + shift, filled + degree
                interval = U0
                inside, inside_end = _FAR, _FAR
                if num_intervals > U0:
                    inside, inside_end = scratch[U0], scratch[U1]
                residual, waiting = _FAR, num_residuals
                if waiting > U0:
                    gap, here = _read(data, here, end, codes[4], k, tables[np.uint64(4)])
                    if gap == TOO_LONG:
                        return NO_BITS, node, at, filled, U0
                    residual = _signed(node, gap)
                    if residual >= num_nodes:
                        return BAD_RESIDUAL, node, at, filled, U0
                last = _FAR
                while put < stop:
                    value = np.uint64(successors[copied]) if copied < stop else _FAR
                    if residual < value and residual < inside:
                        value = residual
                        waiting -= U1
                        residual = _FAR
                        if waiting > U0:
                            gap, here = _read(data, here, end, codes[4], k, tables[np.uint64(4)])
                            if gap == TOO_LONG:
                                return NO_BITS, node, at, filled, U0
                            residual = value + gap + U1
                            if residual >= num_nodes:
                                return BAD_RESIDUAL, node, at, filled, U0
                    elif inside < value:
                        value = inside
                        inside += U1
                        if inside == inside_end:
                            interval += U1
                            inside, inside_end = _FAR, _FAR
                            if interval < num_intervals:
                                inside, inside_end = scratch[_U2 * interval], scratch[_U2 * interval + U1]
                    else:
                        copied += U1
                    if last != _FAR and value <= last:
                        return BAD_RESIDUAL, node, at, filled, U0
                    last = value
                    successors[put] = np.uint32(value)
                    put += U1
        for j in range(U0, degree):
            sources[filled + j] = np.uint32(node)
        filled += degree
        at = here
        node += U1
    return DONE, node, at, filled, U0
