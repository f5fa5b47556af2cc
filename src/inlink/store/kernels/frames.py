"""The loops over the log: its frames, the links in them, and what they make of the pages' columns.

A frame is little-endian::

     0  u32 length of the whole frame      4  u32 CRC-32 of all behind, and of its URLs in urls.txt
     8  f64 time, seconds since 1970      16  u32 page, NO_PAGE if none
    20  u32 number of URLs it made known  24  u32 their bytes in urls.txt
    28  u8 kind   29  u8 flags   30  u16 HTTP status   32  f32 score   36  u32 count   40  the rest, by kind
"""

import numpy as np
import numpy.typing as npt

from inlink.base.jit import U0, U1, kernel
from inlink.store import layout
from inlink.store.kernels.columns import Columns, columns_at
from inlink.store.layout import (
    CRAWLED,
    CRAWLED_ONCE,
    DISCOVERED,
    EVENT_PAGES,
    EVENTS,
    EXCLUDE,
    EXCLUDED,
    EXCLUDED_ONE,
    FAILED,
    FAILED_PAGE,
    GONE,
    HAS_CARRIED,
    HAS_SCORES,
    HINT,
    HOST,
    IS_GONE,
    LEASE,
    LEASED,
    MAKERS,
    MERGE,
    MERGED,
    NOTE,
    RELEASE,
    RETRIED,
    ROWS,
    SEED,
    VISIT,
)

__all__ = [
    "EXCLUDE",
    "FAILED",
    "HINT",
    "HOST",
    "LEASE",
    "MERGE",
    "NOTE",
    "RELEASE",
    "SEED",
    "VISIT",
    "encode_links",
    "fold",
    "link_count",
    "link_scores_at",
    "links_at",
    "links_of_frames",
]

U8A = npt.NDArray[np.uint8]
U32A = npt.NDArray[np.uint32]
U64A = npt.NDArray[np.uint64]
F32A = npt.NDArray[np.float32]

NO_PAGE = np.uint32(layout.NO_PAGE)
HEAD = np.uint64(layout.HEAD.size)
_VISITED = np.uint64(layout.VISITED.size)
_SEVEN = np.uint64(7)
_MORE = np.uint64(0x80)
_REST = np.uint64(0x7F)
_LOW = np.uint64(0xFFFFFFFF)
_U32 = np.uint64(32)


@kernel
def u32_at(log: U8A, at: np.uint64) -> np.uint64:
    """The uint32 that begins at byte ``at``."""
    return np.uint64(log[at : at + np.uint64(4)].view(np.uint32)[0])


@kernel
def f32_at(log: U8A, at: np.uint64) -> np.float32:
    """The float32 that begins at byte ``at``, wherever it stands."""
    return log[at : at + np.uint64(4)].view(np.float32)[0]


@kernel
def link_count(log: U8A, place: np.uint64) -> np.uint64:
    """How many links or pages the frame at ``place`` lists."""
    return u32_at(log, place + np.uint64(36))


@kernel
def list_start(log: U8A, place: np.uint64) -> np.uint64:
    """Where the list of a frame begins: behind what its kind holds first."""
    at = place + HEAD
    if log[place + np.uint64(28)] == VISIT:
        return at + _VISITED + np.uint64(log[at + _VISITED - U1])  # the length of the hash is the last byte
    return at


@kernel
def links_at(log: U8A, place: np.uint64, out: U32A) -> np.uint64:
    """Write the list of the frame at ``place`` to ``out``, increasing; returns how many."""
    count = link_count(log, place)
    at = list_start(log, place)
    page = U0
    for i in range(U0, count):
        shift, delta = U0, U0
        while True:
            byte = np.uint64(log[at])
            at += U1
            delta |= (byte & _REST) << shift
            if byte < _MORE:
                break
            shift += _SEVEN
        page += delta
        out[i] = np.uint32(page)
    return count


@kernel
def list_end(log: U8A, place: np.uint64) -> np.uint64:
    """Where the coded list of a frame ends."""
    at = list_start(log, place)
    left = link_count(log, place)
    while left > U0:
        if np.uint64(log[at]) < _MORE:
            left -= U1
        at += U1
    return at


@kernel
def link_scores_at(log: U8A, place: np.uint64, out: F32A) -> bool:
    """Write the scores of the frame's list to ``out``; False where it has none."""
    if (log[place + np.uint64(29)] & HAS_SCORES) == 0:
        return False
    at = list_end(log, place)
    for i in range(U0, link_count(log, place)):
        out[i] = f32_at(log, at + i * np.uint64(4))
    return True


@kernel
def encode_links(pages: U32A, scores: F32A, out: U8A) -> tuple[np.uint64, np.uint64]:
    """Code pages as increasing LEB128 deltas, each once with the best of its scores; ``scores`` may be empty.

    Returns how many pages and how many bytes, scores included. Sorts ``pages`` and ``scores`` on the way.
    """
    n = np.uint64(len(pages))
    keys = np.empty(n, np.uint64)
    for i in range(U0, n):
        keys[i] = (np.uint64(pages[i]) << _U32) | i
    if n > np.uint64(100):
        keys.sort()
    else:
        for i in range(U1, n):
            key = keys[i]
            k = i
            while k > U0 and keys[k - U1] > key:
                keys[k] = keys[k - U1]
                k -= U1
            keys[k] = key
    best = np.empty(np.uint64(len(scores)), np.float32)
    count, last = U0, U0
    for i in range(U0, n):
        page = keys[i] >> _U32
        new = count == U0 or page != last
        if new:
            pages[count] = np.uint32(page)
        if len(scores) > 0:
            score = scores[keys[i] & _LOW]
            if new:
                best[count] = score
            elif score > best[count - U1]:
                best[count - U1] = score
        if new:
            count += U1
        last = page
    at, last = U0, U0
    for i in range(U0, count):
        page = np.uint64(pages[i])
        delta = page - last
        while delta >= _MORE:
            out[at] = np.uint8((delta & _REST) | _MORE)
            at += U1
            delta >>= _SEVEN
        out[at] = np.uint8(delta)
        at += U1
        last = page
    if len(scores) > 0:
        for i in range(U0, count):
            scores[i] = best[i]
        raw = best[:count].view(np.uint8)
        for k in range(U0, np.uint64(len(raw))):
            out[at + k] = raw[k]
        at += np.uint64(len(raw))
    return count, at


@kernel
def fold(at: U64A, log: U8A, begin: int) -> None:
    """Fold the frames of ``log`` into the pages' columns; log[0] stands at byte ``begin`` of the file.

    ``at`` is a table of addresses, see :func:`.columns.columns_at`. A depth is one more than its maker's, a seed's 0.
    """
    c, base, end = columns_at(at), np.uint64(begin), np.uint64(len(log))
    place = U0
    while place < end:
        length = u32_at(log, place)
        page = u32_at(log, place + np.uint64(16))
        new = u32_at(log, place + np.uint64(20))
        kind = log[place + np.uint64(28)]
        flags = log[place + np.uint64(29)]
        first = c.tally[EVENT_PAGES]
        if new > U0:
            depth = U0
            if kind != SEED and page != np.uint64(NO_PAGE):
                depth = min(np.uint64(c.depths[page]) + U1, np.uint64(0xFFFF))
            if depth > U0:
                for i in range(first, first + new):
                    c.depths[i] = np.uint16(depth)
            c.makers[c.tally[MAKERS]] = np.uint32(first)
            c.maker_places[c.tally[MAKERS]] = base + place
            c.tally[MAKERS] += U1
            c.tally[EVENT_PAGES] = first + new
        if kind == VISIT or kind == FAILED:
            row = np.uint64(c.answers[page])
            if row == U0:
                row = c.tally[ROWS] + U1
                c.tally[ROWS] = row
                c.answers[page] = np.uint32(row)
                c.answered[row] = np.uint32(page)
            if kind == VISIT:
                if c.visits[row] == U0 or c.states[page] == MERGED:
                    c.tally[CRAWLED_ONCE] += U1
                c.visits[row] = base + place + U1
                score = f32_at(log, place + np.uint64(32))
                if c.scores[page] != score:  # a column takes no memory where nothing was ever written
                    c.scores[page] = score
                c.states[page] = CRAWLED
                if c.errors[page] > 0:
                    c.errors[page] = 0
            else:
                c.failures[row] = base + place + U1
                if c.errors[page] < 255:
                    c.errors[page] += np.uint8(1)
                if (flags & IS_GONE) != 0:
                    c.states[page] = GONE
                elif (flags & EXCLUDED_ONE) != 0:
                    c.states[page] = EXCLUDED
                elif (flags & RETRIED) != 0:
                    c.states[page] = CRAWLED if c.visits[row] > U0 else DISCOVERED
                else:
                    c.states[page] = FAILED_PAGE
        if kind == VISIT or kind == SEED:
            if (flags & HAS_SCORES) != 0:
                _best_scores(log, place, list_end(log, place), c)
        elif kind == LEASE or kind == RELEASE:
            begins = place + HEAD + (np.uint64(16) if kind == LEASE else U0)
            for i in range(U0, link_count(log, place)):
                one = u32_at(log, begins + i * np.uint64(4))
                if kind == LEASE:
                    c.states[one] = LEASED
                elif c.answers[one] > 0 and c.visits[np.uint64(c.answers[one])] > U0:
                    c.states[one] = CRAWLED
                else:
                    c.states[one] = DISCOVERED
                    if (flags & RETRIED) != 0:  # a reload: its failures are forgotten
                        c.errors[one] = 0
        elif kind == MERGE:
            c.states[page] = MERGED
            row = np.uint64(c.answers[page])
            if row == U0:
                row = c.tally[ROWS] + U1
                c.tally[ROWS] = row
                c.answers[page] = np.uint32(row)
                c.answered[row] = np.uint32(page)
            c.visits[row] = base + place + U1  # in the graph it has one link, to what it was merged into
        elif kind == EXCLUDE:
            begins = place + HEAD
            for i in range(U0, link_count(log, place)):
                c.states[u32_at(log, begins + i * np.uint64(4))] = EXCLUDED
        c.tally[EVENTS] += U1
        place += length


@kernel
def _best_scores(log: U8A, place: np.uint64, at: np.uint64, c: Columns) -> None:
    """Keep the best link score of each listed page that was not crawled yet (a crawled one has its content's)."""
    pages = np.empty(link_count(log, place), np.uint32)
    for i in range(U0, links_at(log, place, pages)):
        score = f32_at(log, at + i * np.uint64(4))
        if c.states[pages[i]] != CRAWLED and score > c.scores[pages[i]]:
            c.scores[pages[i]] = score


@kernel
def find_kind(log: U8A, begin: np.uint64, stop: np.uint64, kind: np.uint8) -> U64A:
    """The places of the frames of a kind within log[begin:stop], increasing."""
    found = np.empty(np.uint64(64), np.uint64)
    count, place = U0, begin
    while place < stop:
        if log[place + np.uint64(28)] == kind:
            if count == np.uint64(len(found)):
                larger = np.empty(count * np.uint64(2), np.uint64)
                larger[:count] = found
                found = larger
            found[count] = place
            count += U1
        place += u32_at(log, place)
    return found[:count].copy()


@kernel
def fold_carried(log: U8A, base: np.uint64, carriers: U64A) -> None:
    """Note for each page where stands what it carries: the place + 1 of the first frame that says it.

    log[0] stands at byte ``base`` of the file.
    """
    place = U0
    while place < np.uint64(len(log)):
        length = u32_at(log, place)
        if (log[place + np.uint64(29)] & HAS_CARRIED) != 0:
            count = u32_at(log, place + length - np.uint64(4))
            at = place + length - np.uint64(4) - np.uint64(8) * count
            for i in range(U0, count):
                page = u32_at(log, at + i * np.uint64(8))
                if carriers[page] == U0:
                    carriers[page] = base + place + U1
        place += length


@kernel
def waiting(states: U8A, errors: U8A, out: U32A) -> int:
    """Those of the first len(out) pages that were discovered and not yet taken, never in vain: written to ``out``;
    returns how many.
    """
    found = U0
    for page in range(U0, np.uint64(len(out))):
        if states[page] == DISCOVERED and errors[page] == 0:
            out[found] = np.uint32(page)
            found += U1
    return int(found)


@kernel
def rows_with(log: U8A, places: U64A, page: np.uint64) -> U64A:
    """Which of the frames at ``places`` list a page: their positions in ``places``, increasing."""
    found = np.empty(np.uint64(16), np.uint64)
    count = U0
    for k in range(U0, np.uint64(len(places))):
        at = list_start(log, places[k])
        left = link_count(log, places[k])
        one, hit = U0, False
        while left > U0:
            shift, delta = U0, U0
            while True:
                byte = np.uint64(log[at])
                at += U1
                delta |= (byte & _REST) << shift
                if byte < _MORE:
                    break
                shift += _SEVEN
            one += delta
            if one >= page:
                hit = one == page
                break
            left -= U1
        if hit:
            if count == np.uint64(len(found)):
                larger = np.empty(count * np.uint64(2), np.uint64)
                larger[:count] = found
                found = larger
            found[count] = k
            count += U1
    return found[:count].copy()


@kernel
def trace(log: U8A, page: np.uint64, firsts: U32A, places: U64A, found: U64A) -> None:
    """What the log has on one page, without folding the others.

    ``found`` becomes [events that made pages known, pages known, place of its last visit + 1, of its last failure + 1,
    failures since the last success, state, place of its merge + 1, end]. ``firsts`` and ``places`` get the first
    page that each such event made known, and its place. The last of ``found`` is how many frames have link scores.
    """
    place, end = U0, np.uint64(len(log))
    makers, known, state, errors = U0, U0, np.uint64(DISCOVERED), U0
    while place + HEAD <= end:
        length = u32_at(log, place)
        if length < HEAD or place + length > end:
            break  # being written, or never finished
        new = u32_at(log, place + np.uint64(20))
        kind = log[place + np.uint64(28)]
        flags = log[place + np.uint64(29)]
        if (kind == VISIT or kind == SEED) and (flags & HAS_SCORES) != 0:
            found[8] += U1
        if new > U0:
            firsts[makers], places[makers] = np.uint32(known), place
            makers += U1
            known += new
        if kind == LEASE or kind == RELEASE or kind == EXCLUDE:
            at = place + HEAD + (np.uint64(16) if kind == LEASE else U0)
            for i in range(U0, link_count(log, place)):
                if u32_at(log, at + i * np.uint64(4)) == page:
                    if kind == LEASE:
                        state = np.uint64(LEASED)
                    elif kind == EXCLUDE:
                        state = np.uint64(EXCLUDED)
                    elif found[2] > U0:
                        state = np.uint64(CRAWLED)
                    else:
                        state = np.uint64(DISCOVERED)
                        if (flags & RETRIED) != 0:
                            errors = U0
        elif u32_at(log, place + np.uint64(16)) == page:
            if kind == VISIT:
                found[2] = place + U1
                state = np.uint64(CRAWLED)
                errors = U0
            elif kind == MERGE:
                found[6] = place + U1
                state = np.uint64(MERGED)
            elif kind == FAILED:
                found[3] = place + U1
                errors = min(errors + U1, np.uint64(255))
                if (flags & IS_GONE) != 0:
                    state = np.uint64(GONE)
                elif (flags & EXCLUDED_ONE) != 0:
                    state = np.uint64(EXCLUDED)
                elif (flags & RETRIED) == 0:
                    state = np.uint64(FAILED_PAGE)
                elif found[2] > U0:
                    state = np.uint64(CRAWLED)
                else:
                    state = np.uint64(DISCOVERED)
        place += length
    found[0], found[1], found[4], found[5], found[7] = makers, known, errors, state, place


@kernel
def best_link_score(log: U8A, end: np.uint64, page: np.uint64) -> np.float32:
    """The best score that a seed or a link to a page was given, 0 where none was."""
    best, place = np.float32(0), U0
    while place < end:
        kind = log[place + np.uint64(28)]
        if (kind == VISIT or kind == SEED) and (log[place + np.uint64(29)] & HAS_SCORES) != 0:
            pages = np.empty(link_count(log, place), np.uint32)
            at = list_end(log, place)
            for i in range(U0, links_at(log, place, pages)):
                if pages[i] == page:
                    best = max(best, f32_at(log, at + i * np.uint64(4)))
        place += u32_at(log, place)
    return best


@kernel
def links_of_frames(log: U8A, places: U64A, offsets: U64A, out: U32A) -> np.uint64:
    """The lists of many frames as rows: offsets uint64[k + 1], pages in ``out``. Returns how many frames fitted."""
    offsets[U0] = U0
    for k in range(U0, np.uint64(len(places))):
        count = link_count(log, places[k])
        if offsets[k] + count > np.uint64(len(out)):
            return np.uint64(k)
        links_at(log, places[k], out[offsets[k] : offsets[k] + count])
        offsets[k + U1] = offsets[k] + count
    return np.uint64(len(places))
