"""The loops that join links with the URL of their page, and write them in canonical form.

A link is resolved here only if the result is certain. The others are named as odd, and a parser resolves them.
"""

import numpy as np
from numpy import int64, uint8, uint32, uint64

from inlink.base.arrays import UInt8Array, UInt32Array
from inlink.base.jit import U0, U1, Index, item_at, kernel

__all__ = [
    "ABSOLUTE",
    "AS_THEY_ARE",
    "BY_PARSER",
    "ENCODE",
    "FOREIGN",
    "FULL",
    "HOST",
    "KEEP_PLACES",
    "MANY_LINES",
    "NEEDS_BASE",
    "NETWORK",
    "PATH",
    "PLACE",
    "QUERY",
    "QUERY_ENCODE",
    "READY",
    "RELATIVE",
    "ROOTED",
    "SEARCH",
    "join_lines",
    "join_link",
    "kind_of",
    "parts_of",
]

HOST, PATH, ENCODE, QUERY, QUERY_ENCODE = 1, 2, 4, 8, 16
"""Classes of bytes: plain in a host; kept in a path, percent-encoded there; and the same for queries."""

# Kinds of links: by a parser; absolute; //host/; /path; ?query; #fragment or empty; path; another scheme.
BY_PARSER, ABSOLUTE, NETWORK, ROOTED, SEARCH, PLACE, RELATIVE, FOREIGN = range(8)

FULL, NEEDS_BASE, MANY_LINES = -1, -2, -3
"""Answers of :func:`join_lines`: `lines` is too short; a link needs the base; a link has a newline."""

KEEP_PLACES, AS_THEY_ARE, READY = 1, 2, 4
"""Options: keep links to a place on the page itself; links that are not canonical are odd; all links are canonical."""

_U2, _U3, _U4 = (uint64(k) for k in (2, 3, 4))
_MOST = uint64(2048)
_HTTP = uint64(0x70747468)
_SPECIAL = np.frombuffer(b"http\0https\0ftp\0ws\0wss\0file\0", uint8)
# A form ends here, and not at a fragment.
_END = uint64(1 << 63)


@kernel(allocates=False)
def _is_special(text: UInt8Array, at: Index, end: Index) -> bool:
    """Return whether a scheme is one of those whose URLs have a host: http, https, ftp, ws, wss and file."""
    place, same = at, True
    for k in range(U0, uint64(len(_SPECIAL))):
        byte = uint64(_SPECIAL[k])
        if byte == U0:
            if same and place == end:
                return True
            place, same = at, True
        elif place < end:
            same &= (uint64(text[place]) | uint64(32)) == byte
            place += U1
        else:
            same = False
    return False


@kernel(allocates=False)
def kind_of(text: UInt8Array, at: Index, end: Index, entities: bool) -> Index:
    """The kind of a link. It is certain, but for the host of an absolute one."""
    if at == end:
        return PLACE
    first = text[at]
    if first <= 32:
        return BY_PARSER
    if first == 35:
        return PLACE
    if first == 63:
        return SEARCH
    if first == 47:
        if at + U1 == end:
            return ROOTED
        if text[at + U1] == 47:
            return NETWORK
        return BY_PARSER if entities and text[at + U1] == 38 else ROOTED
    if end - at >= uint64(7) and uint64(item_at(text, at, uint32)) == _HTTP:
        k = at + _U4
        if text[k] == 115:
            k += U1
        if end - k >= _U3 and text[k] == 58 and text[k + U1] == 47 and text[k + _U2] == 47:
            return ABSOLUTE
    scheme = (uint64(first) | uint64(32)) - uint64(97) < uint64(26)
    for k in range(at, end):
        byte = uint64(text[k])
        if byte == uint64(47) or byte == uint64(63) or byte == uint64(35):
            break
        if byte == uint64(58):
            # Before a slash, the parser drops tabs.
            slash = k + U1 < end and (text[k + U1] == 47 or text[k + U1] <= 32)
            if not scheme or _is_special(text, at, k) or slash:
                return BY_PARSER
            return FOREIGN
        if entities and byte == uint64(38):
            return BY_PARSER
        scheme &= (
            (byte | uint64(32)) - uint64(97) < uint64(26)
            or byte - uint64(48) < uint64(10)
            or byte == uint64(43)
            or byte == uint64(45)
            or byte == uint64(46)
        )
    return RELATIVE


@kernel(allocates=False)
def _dotted(text: UInt8Array, at: Index, end: Index) -> bool:
    """Return whether a segment of a path may be ``.`` or ``..``, percent-encoded or not."""
    if at >= end:
        return False
    if text[at] == 46:
        after = text[at + U1] if at + U1 < end else uint8(47)
        return after == 47 or after == 63 or after == 35 or after == 46 or after == 37
    return text[at] == 37 and at + U1 < end and text[at + U1] == 50


@kernel(allocates=False)
def _digit(value: Index) -> Index:
    return value + (uint64(48) if value < uint64(10) else uint64(55))


@kernel(allocates=False)
def _host(text: UInt8Array, at: Index, end: Index, classes: UInt8Array, out: UInt8Array, to: Index) -> Index:
    """Copy a host that is plain, and return its length; 0 if it is not plain."""
    begin, label = at, at
    while at < end and classes[text[at]] & HOST:
        byte = text[at]
        if byte == 46:
            if at == label:
                return U0
            label = at + U1
        elif byte == 120 and at == label and at + _U2 < end and text[at + U1] == 110 and text[at + _U2] == 45:
            return U0
        out[to + (at - begin)] = byte
        at += U1
    if at == label or at - begin > uint64(253) or text[label] < 97 or text[label] > 122:
        return U0
    if at < end and text[at] != 47 and text[at] != 63 and text[at] != 35:
        return U0
    return at - begin


@kernel(allocates=False)
def _rest(
    text: UInt8Array,
    at: Index,
    end: Index,
    query: bool,
    classes: UInt8Array,
    out: UInt8Array,
    to: Index,
    most: Index,
) -> Index:
    """Copy a path and a query, encoded; return the place behind them, 0 if they are not plain or too long.

    A place below 2**63 means that a fragment follows.
    """
    keep, encode = uint8(QUERY if query else PATH), uint8(QUERY_ENCODE if query else ENCODE)
    while at < end:
        byte = text[at]
        if to + _U3 > most:
            return U0
        kind = classes[byte]
        if kind & keep:
            out[to] = byte
            to += U1
            if byte == 47 and not query and _dotted(text, at + U1, end):
                return U0
        elif kind & encode:
            out[to] = 37
            out[to + U1] = _digit(uint64(byte) >> _U4)
            out[to + _U2] = _digit(uint64(byte) & uint64(15))
            to += _U3
        elif byte == 63:
            out[to] = byte
            to += U1
            query = True
            keep, encode = uint8(QUERY), uint8(QUERY_ENCODE)
        elif byte == 35:
            return to
        else:
            return U0
        at += U1
    return to | _END


@kernel(allocates=False)
def _relative(
    text: UInt8Array, at: Index, end: Index, base: UInt8Array, root: Index, folder: Index
) -> tuple[Index, Index, bool]:
    """Resolve ``./`` and ``../`` at the beginning of a relative path.

    Return the place of the rest, the number of bytes of the base that stay, and whether the rest must be parsed.
    """
    while at < end and text[at] == 46:
        parent = at + U1 < end and text[at + U1] == 46
        after = at + U1 + uint64(parent)
        if after < end and text[after] != 47 and text[after] != 63 and text[after] != 35:
            break
        if parent and folder > root + U1:
            folder -= U1
            while base[folder - U1] != 47:
                folder -= U1
        at = after
        if at < end and text[at] == 47:
            at += U1
        else:
            return at, folder, False
    return at, folder, _dotted(text, at, end)


@kernel(allocates=False)
def join_link(
    text: UInt8Array,
    at: Index,
    end: Index,
    kind: Index,
    source: UInt8Array,
    root: Index,
    folder: Index,
    stop: Index,
    classes: UInt8Array,
    out: UInt8Array,
    used: Index,
) -> Index:
    """Write the canonical form of a link.

    Parameters
    ----------
    text, at, end
        The link is ``text[at:end]``. It does not end with white space.
    kind : int
        See :func:`kind_of`. :data:`BY_PARSER` and :data:`FOREIGN` are never certain.
    source : uint8[...]
        The canonical URL that a relative link is joined with. It may be empty for an absolute link.
    root, folder, stop : int
        See :func:`parts_of`.
    classes : uint8[256]
        The class of each byte: see :func:`inlink.urls.classes.byte_classes`.
    out, used
        The form is written from ``out[used]`` on. There must be room for 4,096 bytes.

    Returns
    -------
    int
        The place behind the form; 0 if it is not certain. Without a fragment in the link, 2**63 is added.
    """
    to = used
    if kind == ABSOLUTE or kind == NETWORK:
        if kind == NETWORK:
            scheme = uint64(6) if source[4] == 115 else uint64(5)
            for j in range(U0, scheme):
                out[to + j] = source[j]
        else:
            scheme = uint64(6) if text[at + _U4] == 115 else uint64(5)
            for j in range(U0, scheme):
                out[to + j] = text[at + j]
            at += scheme
        out[to + scheme], out[to + scheme + U1] = 47, 47
        at += _U2
        to += scheme + _U2
        size = _host(text, at, end, classes, out, to)
        if size == U0:
            return U0
        at += size
        to += size
        if at == end or text[at] != 47:
            out[to] = 47
            to += U1
        return _rest(text, at, end, False, classes, out, to, used + _MOST)
    if kind == BY_PARSER or kind == FOREIGN:
        return U0
    dotted, stays = False, root
    if kind == SEARCH:
        stays = stop
    elif kind == PLACE:
        stays = uint64(len(source))
    elif kind == RELATIVE:
        at, stays, dotted = _relative(text, at, end, source, root, folder)
    if dotted or stays > _MOST:
        return U0
    for j in range(U0, stays):
        out[to + j] = source[j]
    return _rest(text, at, end, kind == SEARCH, classes, out, to + stays, used + _MOST)


@kernel(allocates=False)
def _same(left: UInt8Array, at: Index, size: Index, right: UInt8Array, place: Index, length: Index) -> bool:
    """Return whether two stretches of bytes are equal."""
    k = U0
    if size == length:
        while k < size and left[at + k] == right[place + k]:
            k += U1
    return size == length and k == size


@kernel(allocates=False)
def parts_of(source: UInt8Array) -> tuple[Index, Index, Index]:
    """The numbers of bytes of a canonical URL up to its path, up to its last slash, and up to its query."""
    root = uint64(8) if len(source) > 4 and source[4] == 115 else uint64(7)
    while root < uint64(len(source)) and source[root] != 47:
        root += U1
    folder, stop = root + U1, root
    while stop < uint64(len(source)) and source[stop] != 63:
        stop += U1
        if source[stop - U1] == 47:
            folder = stop
    return root, folder, stop


@kernel(allocates=False)
def join_lines(
    text: UInt8Array,
    base: UInt8Array,
    options: int,
    classes: UInt8Array,
    lines: UInt8Array,
    odd: UInt32Array,
    count: Index,
) -> tuple[Index, Index, Index]:
    """Write the canonical form of each of a page's links as a line, which is empty for a link that is left out.

    Parameters
    ----------
    text : uint8[n]
        The links, with a newline between each two.
    base : uint8[...]
        The page's canonical URL; empty if it is not known yet.
    options : int
        Sum of :data:`KEEP_PLACES` and :data:`AS_THEY_ARE`.
    classes : uint8[256]
        The class of each byte: see :func:`inlink.urls.classes.byte_classes`.
    lines : uint8[...]
        Filled: the lines, each with a newline.
    odd : uint32[count]
        Filled: the links that must be parsed. Their lines are empty.
    count : int
        Number of links.

    Returns
    -------
    odds : int
        The number of odd links; or :data:`FULL`, :data:`NEEDS_BASE` or :data:`MANY_LINES`.
    used : int
        Number of bytes of ``lines``.
    foreign : int
        Number of links that were left out because they are not http.
    """
    options, length, at, used = uint64(options), uint64(len(text)), U0, U0
    odds, foreign = U0, U0
    all_places, as_they_are = options & uint64(KEEP_PLACES) != U0, options & uint64(AS_THEY_ARE) != U0
    # A page's own fragment names its variant. No link leads to a place on such a page, which is a request of its own.
    size = U0
    while size < uint64(len(base)) and base[size] != 35:
        size += U1
    all_places |= size < uint64(len(base))
    base = base[:size]
    root, folder, stop = parts_of(base)
    for k in range(U0, count):
        if at > length:
            return int64(MANY_LINES), used, foreign
        if used + _U2 * _MOST + U1 > uint64(len(lines)):
            return int64(FULL), used, foreign
        end = at
        while end < length and text[end] != 10:
            end += U1
        kind, after = kind_of(text, at, end, False), U0
        if kind == FOREIGN and not as_they_are:
            foreign += U1
        else:
            if at == end or text[end - U1] > 32:
                if kind == ABSOLUTE or len(base) > 0:
                    after = join_link(text, at, end, kind, base, root, folder, stop, classes, lines, used)
                elif kind != BY_PARSER and not as_they_are:
                    return int64(NEEDS_BASE), used, foreign
            certain, size = after != U0, (after & ~_END) - used
            if certain and as_they_are:
                certain = _same(lines, used, size, text, at, end - at)
            elif certain and after & _END == U0 and not all_places:
                if len(base) == 0:
                    return int64(NEEDS_BASE), used, foreign
                # A place on the page itself is left out.
                if _same(lines, used, size, base, U0, uint64(len(base))):
                    size = U0
            if certain:
                used += size
            else:
                odd[odds] = uint32(k)
                odds += U1
        lines[used] = 10
        used += U1
        at = end + U1
    return int64(odds if at == length + U1 else MANY_LINES), used, foreign
