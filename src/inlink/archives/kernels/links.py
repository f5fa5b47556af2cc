"""From the places of links in a record, as :mod:`inlink.archives.kernels.wat` finds them, to hosts and canonical URLs.

A link is resolved here only if the result is certain. The others are named as odd, and a parser resolves them.
"""

from numpy import int64, uint64

from inlink.archives.kernels.wat import HEADER, ODD
from inlink.base.arrays import Int64Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, Index, kernel
from inlink.urls.kernels import ABSOLUTE, BY_PARSER, FOREIGN, FULL, NETWORK, ROOTED, kind_of

__all__ = [
    "FULL",
    "NEW",
    "fill_slots",
    "host_codes",
    "keep_hosts",
]

NEW = 1 << 40
"""A code from here on is the number of an origin whose host must be looked up, plus this."""

_HEADER, _ODD = uint64(HEADER), uint64(ODD)
_U2, _U3, _U28, _U32 = (uint64(k) for k in (2, 3, 28, 32))
_SIZE = uint64((1 << 28) - 1)
_PRIME = uint64(0x9E3779B97F4A7C15)
# A link of so many bytes stays short enough in canonical form: a byte becomes three at most.
_SHORT, _LONG, _MOST = uint64(140), uint64(670), uint64(2048)


@kernel(allocates=False)
def host_codes(
    text: UInt8Array,
    links: UInt64Array,
    count: int,
    here: Int64Array,
    entities: bool,
    slots: UInt32Array,
    origins: UInt64Array,
    arena: UInt8Array,
    origin_codes: Int64Array,
    codes: Int64Array,
    odd: UInt32Array,
) -> Index:
    """Find the code of each link's host.

    Parameters
    ----------
    text : uint8[n]
        The record.
    links : uint64[m]
        The links of the record, of which the first `count` are valid.
    here : int64[4]
        The codes of the base's host, of the page's host, and of links that are not http, and the length of the longer
        of the two URLs.
    entities : bool
        Whether entities in links have to be decoded.
    slots : uint32[power of two]
        A hash table of the known origins: their numbers plus one.
    origins : uint64[k, 2] as uint64[2 * k]
        The hash of each origin; its place in `arena`, times 256, plus its length. The last two numbers are the number
        of origins and the bytes of `arena` that are used.
    arena : uint8[...]
        The texts of origins.
    origin_codes : int64[k]
        The code of each origin. It is below -2**40 if it is not known yet.
    codes : int64[at least count]
        Filled. For an origin whose code is not known, :data:`NEW` plus its number.
    odd : uint32[at least count]
        Filled: the links that must be parsed.

    Returns
    -------
    int
        The number of odd links; or :data:`FULL`.
    """
    odds = U0
    last = uint64(len(origins)) - _U2
    number, used = origins[last], origins[last + U1]
    mask = uint64(len(slots)) - U1
    for k in range(U0, uint64(count)):
        at, size = links[k] & _SIZE, (links[k] >> _U28) & _SIZE
        end = at + size
        kind = BY_PARSER if links[k] & _ODD != U0 else kind_of(text, at, end, entities)
        if kind == FOREIGN:
            codes[k] = here[2]
            continue
        if kind >= ROOTED and _U3 * size + uint64(here[3]) < _MOST:
            codes[k] = here[1] if links[k] & _HEADER != U0 else here[0]
            continue
        if (kind == ABSOLUTE or kind == NETWORK) and size < _LONG:
            at += _U2
            if kind == ABSOLUTE:
                at += uint64(6) if text[at + _U2] == 115 else uint64(5)
            begin, value, plain = at, _PRIME, True
            while at < end and text[at] != 47:
                byte = text[at]
                plain &= byte > 32 and (byte < 128 or size < _SHORT) and not (entities and byte == 38)
                value = (value ^ uint64(byte)) * _PRIME
                at += U1
            size = at - begin
            if plain and size > U0 and size < uint64(256):
                value ^= value >> _U32
                slot = value & mask
                origin = U0
                while slots[slot] != 0:
                    origin = uint64(slots[slot])
                    place = origins[_U2 * origin - U1]
                    if origins[_U2 * origin - _U2] == value and place & uint64(255) == size:
                        place >>= uint64(8)
                        same = U0
                        while same < size and arena[place + same] == text[begin + same]:
                            same += U1
                        if same == size:
                            break
                    slot = (slot + U1) & mask
                    origin = U0
                if origin == U0:
                    if _U2 * (number + U1) > mask or number >= uint64(len(origin_codes)):
                        return FULL
                    if used + size > uint64(len(arena)) or _U2 * number + _U3 >= last:
                        return FULL
                    for j in range(U0, size):
                        arena[used + j] = text[begin + j]
                    origins[_U2 * number], origins[_U2 * number + U1] = value, (used << uint64(8)) | size
                    origin_codes[number] = -(NEW + NEW)
                    number += U1
                    used += size
                    slots[slot] = number
                    origins[last], origins[last + U1] = number, used
                    origin = number
                code = origin_codes[origin - U1]
                codes[k] = code if code >= -NEW else int64(NEW) + int64(origin - U1)
                continue
        odd[odds] = k
        odds += U1
    return int64(odds)


@kernel(allocates=False)
def keep_hosts(
    codes: Int64Array,
    count: int,
    origin_codes: Int64Array,
    page: int,
    self_loops: bool,
    repeats: bool,
    stamps: UInt32Array,
    stamp: int,
) -> tuple[int, int]:
    """Leave only the hosts that are targets of arcs, at the beginning of `codes`; the refused ones follow them.

    Parameters
    ----------
    codes : int64[at least count]
        The codes of :func:`host_codes`, with the odd links looked up.
    origin_codes : int64[k]
        The codes of origins.
    page : int
        The code of the page's own host.
    self_loops, repeats : bool
        Keep the page's own host; keep a host as often as it is linked to.
    stamps : uint32[number of hosts]
        The last page that linked to a host.
    stamp : int
        The number of this page, above those before it.

    Returns
    -------
    kept, refused : int
        The numbers of kept and of refused codes. The refused codes are ``codes[kept:kept + refused]``.
    """
    kept, refused = U0, U0
    for k in range(U0, uint64(count)):
        code = codes[k]
        if code >= NEW:
            code = origin_codes[uint64(code - NEW)]
        if code < 0:
            # The place of the first one that is kept so far takes the last place of those that are kept.
            codes[kept + refused] = code
            refused += U1
            continue
        if code == page and not self_loops:
            continue
        if not repeats:
            if stamps[uint64(code)] == stamp:
                continue
            stamps[uint64(code)] = stamp
        codes[kept + refused] = codes[kept]
        codes[kept] = code
        kept += U1
    return int64(kept), int64(refused)


@kernel(allocates=False)
def fill_slots(slots: UInt32Array, origins: UInt64Array) -> None:
    """Enter all origins, as :func:`host_codes` keeps them, into an empty hash table with room for them."""
    mask = uint64(len(slots)) - U1
    for number in range(U0, origins[uint64(len(origins)) - _U2]):
        slot = origins[_U2 * number] & mask
        while slots[slot] != 0:
            slot = (slot + U1) & mask
        slots[slot] = number + U1
