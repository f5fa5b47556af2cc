"""Scan the JSON of a WAT record for the places of its links, without decoding it.

The scanner reads strict JSON (RFC 8259) in valid UTF-8, and knows the shape that ia-web-commons writes. If it meets
anything else, the answer is :data:`UNSURE`, and the record must be decoded: a field of another type, a repeated key,
an escape in a key, damage. So each page of the scanner is the page that decoding finds.

No byte is read without a test that it is there, and nothing is written beyond the end of an array: any bytes are safe.
"""

import numpy as np
from numpy import uint8, uint64

from inlink.archives.kernels.tokens import absolute_url, character, escape, no_follow, scalar
from inlink.base.arrays import UInt8Array, UInt64Array
from inlink.base.jit import U0, U1, Index, item_at, kernel

__all__ = ["FULL", "HEADER", "ODD", "OTHER", "PAGE", "UNSURE", "WORK", "scan_record"]

UNSURE, OTHER, PAGE, FULL = 0, 1, 2, 3
"""Answers: decode the record; it is intact and describes no response; it is a page; `links` is too short."""

HEADER, ODD = 1 << 56, 2 << 56
"""Bits of a link: it comes from the HTTP header; it holds escapes."""

WORK = 160
"""Length of the array of results and of the stack."""

_DEPTH = 64

# Kinds of JSON values. Those up to _VALUES are objects and arrays, and then come texts.
_SKIP, _ROOT, _ENVELOPE, _WARC, _PAYLOAD, _RESPONSE, _MESSAGE, _HEADERS = range(8)
_HTML, _HEAD, _LINK, _HEAD_LINK, _META, _LINKS, _HEAD_LINKS, _METAS, _VALUES = range(8, 17)
# These are no objects. Their "keys" are the texts that are looked for in a field.
_PROPERTIES, _NAMES, _TYPES, _ANCHORS, _ROBOTS_NAME = range(17, 22)
_KIND, _URL, _STATUS, _BASE, _PATH, _LINK_URL, _HREF, _REL, _NAME, _PROPERTY, _CONTENT = range(32, 43)
# Headers, which may be lists.
_LOCATION, _CONTENT_LOCATION, _LINK_HEADER, _ROBOTS = range(43, 47)

_KEYS = (
    (_ROOT, "Envelope", _ENVELOPE),
    (_ENVELOPE, "WARC-Header-Metadata", _WARC),
    (_ENVELOPE, "Payload-Metadata", _PAYLOAD),
    (_WARC, "WARC-Type", _KIND),
    (_WARC, "WARC-Target-URI", _URL),
    (_PAYLOAD, "HTTP-Response-Metadata", _RESPONSE),
    (_RESPONSE, "Response-Message", _MESSAGE),
    (_RESPONSE, "Headers", _HEADERS),
    (_RESPONSE, "HTML-Metadata", _HTML),
    (_MESSAGE, "Status", _STATUS),
    (_HTML, "Head", _HEAD),
    (_HTML, "Links", _LINKS),
    (_HEAD, "Base", _BASE),
    (_HEAD, "Link", _HEAD_LINKS),
    (_HEAD, "Scripts", _HEAD_LINKS),
    (_HEAD, "Metas", _METAS),
    *((kind, "path", _PATH) for kind in (_LINK, _HEAD_LINK)),
    *((kind, "url", _LINK_URL) for kind in (_LINK, _HEAD_LINK)),
    *((kind, "href", _HREF) for kind in (_LINK, _HEAD_LINK)),
    *((kind, "rel", _REL) for kind in (_LINK, _HEAD_LINK)),
    (_META, "name", _NAME),
    (_META, "property", _PROPERTY),
    (_META, "content", _CONTENT),
    # In lower case.
    (_HEADERS, "location", _LOCATION),
    (_HEADERS, "content-location", _CONTENT_LOCATION),
    (_HEADERS, "link", _LINK_HEADER),
    (_HEADERS, "x-robots-tag", _ROBOTS),
    *((_PROPERTIES, text, 1) for text in ("og:url", "og:image", "og:image:secure_url", "og:video")),
    *((_PROPERTIES, text, 1) for text in ("og:video:url", "og:video:secure_url")),
    *((_PROPERTIES, text, 1) for text in ("twitter:url", "twitter:image:src")),
    *((_NAMES, text, 1) for text in ("twitter:image", "thumbnail", "application-url", "vb_meta_bburl")),
    *((_NAMES, text, 1) for text in ("msapplication-starturl", "msapplication-TileImage")),
    (_TYPES, "response", 1),
    (_ROBOTS_NAME, "robots", 1),
    (_ANCHORS, "A@/href", 1),
    (_ANCHORS, "AREA@/href", 1),
)
_WIDE = 32
_TEXTS = np.frombuffer("".join(text for _, text, _ in _KEYS).encode(), uint8)
_PLACES = np.cumsum([0, *(len(text) for _, text, _ in _KEYS)]).astype(uint64)
_MEANINGS = np.array([meaning for _, _, meaning in _KEYS], uint64)


def _chains() -> tuple[UInt8Array, UInt8Array]:
    """Tables by which keys are found: the first of a kind and length, plus one, and the next after a key."""
    first, after = np.zeros((22, _WIDE), uint8), np.zeros(len(_KEYS) + 1, uint8)
    for number, (kind, text, _) in enumerate(_KEYS, 1):
        after[number], first[kind, len(text)] = first[kind, len(text)], number
    return first.ravel(), after


_FIRST, _AFTER = _chains()
# The kinds of the items of an array, by the kind of the array.
_ITEMS = np.zeros(_VALUES, uint64)
_ITEMS[[_LINKS, _HEAD_LINKS, _METAS]] = _LINK, _HEAD_LINK, _META

_ONES, _HIGH = uint64(0x0101010101010101), uint64(0x8080808080808080)
_QUOTES, _BACKSLASHES, _SPACES = _ONES * uint64(0x22), _ONES * uint64(0x5C), _ONES * uint64(0x20)
_COUNT = uint64(0x0001020304050607)
_U2, _U3, _U4, _U7, _U8, _U16 = (uint64(k) for k in (2, 3, 4, 7, 8, 16))
_U28, _U56, _U63 = (uint64(k) for k in (28, 56, 63))
_HEADER, _ODD, _LONGEST = uint64(HEADER), uint64(ODD), uint64(1 << 28)
# The beginning of the stack in the array of results, and of the marks of the keys in each object on it.
_STACK, _SEEN = uint64(16), uint64(16 + _DEPTH)

# The next token: a value; a key or the end of the object; a key; a comma or the end; a value or the end.
_A_VALUE, _FIRST_KEY, _A_KEY, _A_COMMA, _FIRST_VALUE = range(5)


@kernel(allocates=False)
def _meaning(text: UInt8Array, at: Index, size: Index, kind: Index, lower: Index) -> Index:
    """Return the meaning of a key (or text) in an object of a kind, and its number times 64; 0 if it has none."""
    if size >= uint64(_WIDE):
        return U0
    number = uint64(_FIRST[kind * uint64(_WIDE) + size])
    while number != U0:
        place = _PLACES[number - U1]
        same = U0
        while same < size:
            byte = uint64(text[at + same])
            if byte - uint64(65) < uint64(26):
                byte |= lower
            if byte != uint64(_TEXTS[place + same]):
                break
            same += U1
        if same == size:
            return _MEANINGS[number - U1] | (number << uint64(6))
        number = uint64(_AFTER[number])
    return U0


@kernel(allocates=False)
def _is_robots(text: UInt8Array, at: Index, end: Index) -> Index:
    """1 if a name is ``robots``, in any case and with spaces around it, 2 if it is not plain ASCII, else 0."""
    while at < end and text[at] == 32:
        at += U1
    while at < end and text[end - U1] == 32:
        end -= U1
    for k in range(at, end):
        if text[k] >= 127 or text[k] < 32:
            return _U2
    return U1 if _meaning(text, at, end - at, uint64(_ROBOTS_NAME), uint64(32)) != U0 else U0


@kernel(allocates=False)
def scan_record(
    text: UInt8Array, opening: Index, length: Index, rules: int, work: UInt64Array, links: UInt64Array
) -> Index:
    """Find the URL, the base and the links of a record.

    Parameters
    ----------
    text : uint8[n]
        The record's JSON is ``text[opening:length]``. `length` is at most 2**28.
    rules : int
        Sum of 1 (every tag, not only anchors), 2 (leave out nofollow), 4 (schemes of URLs in metadata are
        case-sensitive), 8 (leave out the header Location) and 16 (links of pages with any status).
    work : uint64[WORK]
        Filled: the number of entries of `links`. The rest is overwritten.
    links : uint64[m], m > 2
        Filled: the place of each link in `text`, plus its length times 2**28, plus :data:`HEADER` and :data:`ODD`. The
        first two entries are the page's URL and its base (0 if there is none).

    Returns
    -------
    int
        :data:`UNSURE`, :data:`OTHER`, :data:`PAGE` or :data:`FULL`.
    """
    rules = uint64(rules)
    every, drop = rules & U1 != U0, rules & _U2 != U0
    exact, no_location, any_status = rules & uint64(4) != U0, rules & _U8 != U0, rules & _U16 != U0
    length, room, count, of_header = uint64(length), uint64(len(links)), _U2, _U2
    at, depth, state, kind, seen, means = uint64(opening), U0, uint64(_A_VALUE), U0, U0, uint64(_ROOT)
    in_array, silent, success, is_response, has_kind = False, False, True, False, False
    url_at, url_end, base_at, base_end = U0, U0, U0, U0
    path_at, path_end, link_at, link_end, href_at, href_end, rel_at, rel_end = U0, U0, U0, U0, U0, U0, U0, U0
    link_odd, is_meta, absolute = U0, False, U0
    if length > _LONGEST:
        return UNSURE
    while True:
        while at < length and (text[at] == 32 or text[at] == 10 or text[at] == 13 or text[at] == 9):
            at += U1
        if at >= length:
            return UNSURE
        byte = text[at]
        if byte == 34:
            if state == uint64(_A_COMMA):
                return UNSURE
            at += U1
            begin, odd = at, U0
            while True:
                # The first byte that is a quote, a backslash, a control character or no ASCII.
                if at + _U8 <= length:
                    word = item_at(text, at, uint64)
                    quote, back = word ^ _QUOTES, word ^ _BACKSLASHES
                    marks = ((quote - _ONES) & ~quote) | ((back - _ONES) & ~back) | ((word - _SPACES) & ~word)
                    marks = (marks | word) & _HIGH
                    if marks == U0:
                        at += _U8
                        continue
                    at += (((marks & (~marks + U1)) >> _U7) * _COUNT) >> _U56
                elif at >= length:
                    return UNSURE
                byte = text[at]
                if byte == 34:
                    break
                if byte == 92:
                    step = escape(text, at, length)
                    odd = _ODD
                    if step == U0:
                        return UNSURE
                    at += step
                elif byte >= 128:
                    while at < length and text[at] >= 128:
                        step = character(text, at, length)
                        if step == U0:
                            return UNSURE
                        at += step
                elif byte < 32:
                    return UNSURE
                else:
                    at += U1
            end = at
            at += U1
            if state == uint64(_FIRST_KEY) or state == uint64(_A_KEY):
                while at < length and (text[at] == 32 or text[at] == 10 or text[at] == 13 or text[at] == 9):
                    at += U1
                if at >= length or text[at] != 58:
                    return UNSURE
                at += U1
                state, means = uint64(_A_VALUE), U0
                if kind != U0:
                    if odd != U0:
                        return UNSURE
                    lower = U0
                    if kind == uint64(_HEADERS):
                        lower = uint64(32)
                        for k in range(begin, end):
                            if text[k] >= 128:
                                return UNSURE
                    entry = _meaning(text, begin, end - begin, kind, lower)
                    means = entry & _U63
                    if means != U0:
                        bit = U1 << ((entry >> uint64(6)) & _U63)
                        if seen & bit != U0:
                            return UNSURE
                        seen |= bit
                continue
            state = uint64(_A_COMMA)
            if means == U0:
                continue
            if means < uint64(_KIND):
                return UNSURE
            if means == uint64(_LINK_URL):
                link_at, link_end = begin, end
                link_odd = odd
            elif means == uint64(_PATH):
                path_at, path_end = begin, end
                if odd != U0:
                    return UNSURE
            elif means == uint64(_REL):
                rel_at, rel_end = begin, end
            elif means == uint64(_HREF):
                href_at, href_end = begin, end
                if odd != U0:
                    return UNSURE
            elif means == uint64(_CONTENT):
                link_at, link_end = begin, end
                link_odd = odd
                absolute = absolute_url(text, begin, end, exact)
                if absolute == _U2:
                    return UNSURE
            elif means == uint64(_PROPERTY) or means == uint64(_NAME):
                if odd != U0:
                    return UNSURE
                which = uint64(_PROPERTIES) if means == uint64(_PROPERTY) else uint64(_NAMES)
                is_meta |= _meaning(text, begin, end - begin, which, U0) != U0
                if means == uint64(_NAME):
                    href_at, href_end = begin, end
            elif means == uint64(_LINK_HEADER):
                if every:
                    k = begin
                    while k < end:
                        if text[k] == 92 and text[k + U1] == 117:
                            return UNSURE
                        if text[k] != 60:
                            k += U1
                            continue
                        k += U1
                        first, odd = k, U0
                        while k < end and text[k] != 62:
                            if text[k] == 92:
                                odd = _ODD
                                if text[k + U1] == 117:
                                    return UNSURE
                            k += U1
                        if k < end:
                            if count >= room:
                                return FULL
                            links[count] = first | ((k - first) << _U28) | _HEADER | odd
                            count += U1
                            k += U1
            elif means == uint64(_LOCATION) or means == uint64(_CONTENT_LOCATION):
                if every and not (no_location and means == uint64(_LOCATION)):
                    if count >= room:
                        return FULL
                    links[count] = begin | ((end - begin) << _U28) | _HEADER | odd
                    count += U1
            elif odd != U0:
                return UNSURE
            elif means == uint64(_KIND):
                has_kind = True
                is_response = _meaning(text, begin, end - begin, uint64(_TYPES), uint64(32)) != U0
                for k in range(begin, end):
                    if text[k] >= 128:
                        return UNSURE
            elif means == uint64(_URL):
                url_at, url_end = begin, end
            elif means == uint64(_STATUS):
                success = end == begin or text[begin] == 50
            elif means == uint64(_BASE):
                base_at, base_end = begin, end
            elif drop:
                # Directives for robots.
                return UNSURE
        elif byte == 44:
            if state != uint64(_A_COMMA) or depth == U0:
                return UNSURE
            at += U1
            state = uint64(_A_VALUE) if in_array else uint64(_A_KEY)
        elif byte == 123 or byte == 91:
            if state != uint64(_A_VALUE) and state != uint64(_FIRST_VALUE):
                return UNSURE
            if depth >= uint64(_DEPTH) - U1:
                return UNSURE
            at += U1
            work[_STACK + depth] = kind | (uint64(in_array) << uint64(8)) | (means << uint64(16))
            work[_SEEN + depth] = seen
            depth += U1
            in_array = byte == 91
            if in_array:
                if means >= uint64(_LOCATION) and kind == uint64(_HEADERS):
                    kind = uint64(_VALUES)
                elif means == U0 or uint64(_LINKS) <= means <= uint64(_METAS):
                    kind = means
                    means = _ITEMS[kind]
                else:
                    return UNSURE
                state = uint64(_FIRST_VALUE)
            else:
                if means > uint64(_META):
                    return UNSURE
                kind, seen, state = means, U0, uint64(_FIRST_KEY)
                if kind >= uint64(_LINK) and kind <= uint64(_META):
                    path_at, path_end, link_at, href_at, rel_at = U0, U0, U0, U0, U0
                    is_meta, absolute = False, U0
        elif byte == 125 or byte == 93:
            first_end = state == uint64(_FIRST_VALUE) if in_array else state == uint64(_FIRST_KEY)
            if (state != uint64(_A_COMMA) and not first_end) or depth == U0 or in_array != (byte == 93):
                return UNSURE
            at += U1
            state = uint64(_A_COMMA)
            if kind == uint64(_LINK):
                anchor = _meaning(text, path_at, path_end - path_at, uint64(_ANCHORS), U0) != U0
                if drop and anchor and rel_at != U0:
                    verdict = no_follow(text, rel_at, rel_end)
                    if verdict == _U2:
                        return UNSURE
                    if verdict == U1:
                        link_at, href_at = U0, U0
                if link_at == U0 and href_at != U0 and every:
                    verdict = absolute_url(text, href_at, href_end, exact)
                    if verdict == U1:
                        link_at, link_end, link_odd = href_at, href_end, U0
                if link_at != U0 and (every or anchor):
                    if count >= room:
                        return FULL
                    links[count] = link_at | ((link_end - link_at) << _U28) | link_odd
                    count += U1
            elif kind == uint64(_HEAD_LINK):
                if link_at != U0 and every:
                    if count >= room:
                        return FULL
                    links[count] = link_at | ((link_end - link_at) << _U28) | link_odd
                    count += U1
            elif kind == uint64(_META):
                if link_at != U0 and every and (is_meta or absolute == U1):
                    if count >= room:
                        return FULL
                    links[count] = link_at | ((link_end - link_at) << _U28) | link_odd
                    count += U1
                if drop and link_at != U0 and href_at != U0:
                    verdict = _is_robots(text, href_at, href_end)
                    if verdict == U1:
                        verdict = _U2 if link_odd != U0 else no_follow(text, link_at, link_end)
                        silent |= verdict == U1
                    if verdict == _U2:
                        return UNSURE
            depth -= U1
            entry = work[_STACK + depth]
            seen = work[_SEEN + depth]
            kind, in_array, means = entry & uint64(255), (entry >> uint64(8)) & U1 != U0, entry >> _U16
            if depth == U0:
                break
        else:
            if state != uint64(_A_VALUE) and state != uint64(_FIRST_VALUE):
                return UNSURE
            if means != U0 or byte == 0:
                return UNSURE
            at = scalar(text, at, length)
            if at == U0:
                return UNSURE
            state = uint64(_A_COMMA)
    while at < length:
        if text[at] != 32 and text[at] != 10 and text[at] != 13 and text[at] != 9:
            return UNSURE
        at += U1
    if not has_kind or (is_response and url_end == url_at):
        return UNSURE
    if not is_response:
        return OTHER
    if not (success or any_status):
        # Only the headers have links.
        base_at, base_end, silent = U0, U0, False
        for k in range(_U2, count):
            if links[k] & _HEADER != U0:
                links[of_header] = links[k]
                of_header += U1
        count = of_header
    work[0] = _U2 if silent else count
    links[0] = url_at | ((url_end - url_at) << _U28)
    links[1] = base_at | ((base_end - base_at) << _U28)
    return PAGE
