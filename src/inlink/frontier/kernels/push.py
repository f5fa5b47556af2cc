"""The loops of live re-ranking: over the rows of links that lie in a crawl's log, one after the other.

A row is decoded where it lies (layout: :mod:`inlink.store.kernels.frames`) into a small buffer that stays in the
processor's cache, and used from there: the decoding is a chain of dependent steps, the sums that follow are not,
and apart the processor overlaps their cache misses.
"""

import numpy as np
import numpy.typing as npt

from inlink.base.jit import U0, U1, kernel
from inlink.store.kernels.frames import MERGE, VISIT, link_count, links_at, list_start, u32_at

__all__ = [
    "PILES",
    "authorities",
    "check",
    "increasing",
    "links",
    "push",
    "revalue",
    "settle",
    "take_in",
    "take_out",
]

F8 = npt.NDArray[np.float64]
F4 = npt.NDArray[np.float32]
U8 = npt.NDArray[np.uint64]
U4 = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]

U7, U28 = np.uint64(7), np.uint64(28)
MORE, REST = np.uint64(0x80), np.uint64(0x7F)
KIND, HEAD, HASH = np.uint64(28), np.uint64(40), np.uint64(64)  # where things stand in a frame
PILES = 1 << 13
FINE, ALL = np.uint64(50), np.uint64(PILES - 1)  # an exponent and the two highest bits behind it; no sign
FLOOR = (
    1e-6  # what a page with score 0 weighs beside one with score 1, so that no page is lost from the ranking
)


@kernel
def links(log: Bytes, place: np.uint64, page: np.uint64, hosts: U4, row: U4) -> np.uint64:
    """Decode the links of the visit at ``place`` into ``row``; returns how many.

    Where ``hosts`` (uint32[pages]) is given, links within the page's host are left out.
    """
    listed = links_at(log, place, row)
    if len(hosts) == 0:
        return listed
    count = U0
    for j in range(U0, listed):
        if hosts[row[j]] != hosts[page]:
            row[count] = row[j]
            count += U1
    return count


@kernel
def sound(log: Bytes, place: np.uint64, count: np.uint64) -> bool:
    """Whether a whole visit or merge stands at ``place``, with links to pages below ``count`` only."""
    size = np.uint64(len(log))
    if place >= size or size - place < HEAD:
        return False
    length, kind = u32_at(log, place), log[place + KIND]
    if length > size - place or not (kind == MERGE or (kind == VISIT and length > HASH)):
        return False
    at, end = list_start(log, place), place + length
    target = U0
    for _ in range(U0, link_count(log, place)):
        shift = U0
        byte = MORE
        while byte >= MORE:
            if at >= end or shift > U28:
                return False
            byte = np.uint64(log[at])
            at += U1
            target += (byte & REST) << shift
            shift += U7
        if target >= count:
            return False
    return True


@kernel
def check(log: Bytes, pages: U4, places: U8, known: U8, count: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Look over the visits that are not ``known`` yet (an empty array: all): the longest list, the first unsound one.

    The second number is that visit's index, or ``len(pages)`` where all are sound. After this no kernel can be led out
    of its arrays.
    """
    longest = U0
    for k in range(U0, np.uint64(len(pages))):
        if pages[k] >= count:
            return longest, k
        if len(known) == 0 or known[pages[k]] != places[k] + U1:
            if not sound(log, places[k], count):
                return longest, k
            longest = max(longest, link_count(log, places[k]))
    return longest, np.uint64(len(pages))


@kernel
def increasing(places: U8) -> bool:
    """Whether each place lies behind the one before."""
    for k in range(U1, np.uint64(len(places))):
        if places[k] <= places[k - U1]:
            return False
    return True


@kernel
def give(log: Bytes, place: np.uint64, page: np.uint64, hosts: U4, row: U4, amount: float, r: F8) -> np.int64:
    """Share an amount out to the residuals of all that the visit at ``place`` links to; returns how many."""
    count = links(log, place, page, hosts, row)
    share = amount / count
    for j in range(U0, count):
        r[row[j]] += share
    return np.int64(count)


@kernel
def take_in(
    log: Bytes, pages: U4, places: U8, hosts: U4, row: U4, known: U8, x: F8, r: F8, damping: float
) -> np.int64:
    """Put each new visit in the place of the one that was ``known``, and correct the residuals for it.

    ``known`` holds a visit's place in the log plus 1, and 0 for a page without one. Returns by how many links the crawl
    grew (less than 0 where more went than came).
    """
    grown = np.int64(0)
    for k in range(U0, np.uint64(len(pages))):
        page, before = np.uint64(pages[k]), known[pages[k]]
        if before != places[k] + U1:
            if before != U0:
                grown -= give(log, before - U1, page, hosts, row, -damping * x[page], r)
            grown += give(log, places[k], page, hosts, row, damping * x[page], r)
            known[page] = places[k] + U1
    return grown


@kernel
def take_out(log: Bytes, pages: U4, hosts: U4, row: U4, known: U8, x: F8, r: F8, damping: float) -> np.int64:
    """Forget the visits of pages that have none any more; returns as :func:`take_in` does."""
    grown = np.int64(0)
    for k in range(U0, np.uint64(len(pages))):
        page = np.uint64(pages[k])
        grown -= give(log, known[page] - U1, page, hosts, row, -damping * x[page], r)
        known[page] = U0
    return grown


@kernel
def worth(scores: F4, i: np.uint64) -> float:
    """v[i]: 1 where there are no scores; a score that is negative or not finite counts as 0."""
    if len(scores) == 0:
        return 1.0
    score = np.float64(scores[i])
    return score + FLOOR if 0.0 < score < np.inf else FLOOR


@kernel
def revalue(before: F4, after: F4, old: np.uint64, new: np.uint64, r: F8, rest: float) -> float:
    """Take the teleport from the scores ``before``, of ``old`` pages, to those ``after``, of ``new``; returns Σ v."""
    total = 0.0
    for i in range(U0, new):
        page = np.uint64(i)
        value = worth(after, page)
        total += value
        r[page] += rest * (value - (worth(before, page) if page < old else 0.0))
    return total


@kernel
def settle(known: U8, x: F8, r: F8, bits: U8, piles: F8) -> float:
    """Give pages without a visit their residuals, for they have no link to pass it on by; returns Σ|x|.

    ``bits`` is ``r`` seen as whole numbers. |r| is added up in ``piles``, float64[:data:`PILES`], by size: those in
    pile b are at least the number whose bits are b << 50, and below that of the next, at most a quarter above.
    """
    piles[:] = 0.0
    mass = 0.0
    for i in range(U0, np.uint64(len(x))):
        if known[i] == U0:
            x[i] += r[i]
            r[i] = 0.0
        piles[(bits[i] >> FINE) & ALL] += abs(r[i])
        mass += abs(x[i])
    return mass


@kernel
def push(
    log: Bytes, pages: U4, places: U8, hosts: U4, row: U4, x: F8, r: F8, damping: float, least: float
) -> np.uint64:
    """Take in each page's residual of ``least`` or more, and pass it on along its links; returns how many links."""
    arcs = U0
    for k in range(U0, np.uint64(len(pages))):
        page = np.uint64(pages[k])
        value = r[page]
        if abs(value) < least:
            continue
        count = links(log, places[k], page, hosts, row)
        share = damping * value / count
        r[page] = 0.0
        for j in range(U0, count):
            r[row[j]] += share
        back = r[page]
        if back != 0.0:  # it links to itself: what comes back again and again is summed at once
            every = 1.0 / (1.0 - back / value)
            for j in range(U0, count):
                r[row[j]] += share * (every - 1.0)
            r[page] = 0.0
            value *= every
        x[page] += value
        arcs += count
    return arcs


@kernel
def authorities(log: Bytes, pages: U4, places: U8, hosts: U4, row: U4, scores: F4, a: F8, new: F8) -> None:
    """Add to ``new`` what the hubs ``pages`` give: to each page that a hub links to, h = Σ scores·a over its links."""
    for k in range(U0, np.uint64(len(pages))):
        count = links(log, places[k], np.uint64(pages[k]), hosts, row)
        h = 0.0
        if len(scores) == 0:
            for j in range(U0, count):
                h += a[row[j]]
        else:
            for j in range(U0, count):
                h += np.float64(scores[row[j]]) * a[row[j]]
        for j in range(U0, count):
            new[row[j]] += h
