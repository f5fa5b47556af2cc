"""The loops of live re-ranking over the rows of links in a crawl's log.

A row is decoded from the log (:mod:`inlink.store.kernels.frames`) into a small buffer that stays in the processor's
cache. Decoding is a chain of dependent steps; the sums are not. Because they are separate loops, the processor overlaps
the cache misses of the sums.
"""

import numpy as np
from numpy import float64, int64, uint64

from inlink.base.arrays import Float32Array, Float64Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, kernel
from inlink.store.format import MERGE
from inlink.store.kernels.frames import head_at, link_count, links_at
from inlink.store.kernels.sound import row_sound

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
    "worth",
]


PILES = 1 << 13
FINE, ALL = uint64(50), uint64(PILES - 1)  # an exponent and the two highest bits behind it; no sign
LEAST_SCORE = 1e-6
"""The worth of a score of 0, so that pages without a score are ranked by their links."""


@kernel
def links(log: UInt8Array, place: uint64, page: uint64, hosts: UInt32Array, row: UInt32Array) -> uint64:
    """Decode the links of the visit at ``place`` into ``row``; return their number.

    If ``hosts`` (uint32[pages]) is given, links within the page's host are left out. The link of a merged page to the
    page that it was merged into always counts.
    """
    listed = links_at(log, place, row)
    if len(hosts) == 0 or head_at(log, place).kind == MERGE:
        return listed
    count = U0
    for j in range(U0, listed):
        if hosts[row[j]] != hosts[page]:
            row[count] = row[j]
            count += U1
    return count


@kernel
def check(
    log: UInt8Array, pages: UInt32Array, places: UInt64Array, visits: UInt64Array, count: uint64
) -> tuple[uint64, uint64]:
    """Check the visits that are not ``visits`` yet (an empty array: all); return the longest list and the first fault.

    The second number is the index of the first unsound visit, or ``len(pages)`` if all are sound. After this check, the
    visits cannot lead a kernel out of its arrays.
    """
    longest = U0
    for k in range(U0, uint64(len(pages))):
        if pages[k] >= count:
            return longest, k
        if len(visits) == 0 or visits[pages[k]] != places[k] + U1:
            if not row_sound(log, places[k], count):
                return longest, k
            longest = max(longest, link_count(log, places[k]))
    return longest, uint64(len(pages))


@kernel
def increasing(places: UInt64Array) -> bool:
    """Return whether each place is after the place before it."""
    for k in range(U1, uint64(len(places))):
        if places[k] <= places[k - U1]:
            return False
    return True


@kernel
def give(
    log: UInt8Array,
    place: uint64,
    page: uint64,
    hosts: UInt32Array,
    row: UInt32Array,
    amount: float,
    r: Float64Array,
) -> int64:
    """Divide an amount among the residuals of all pages that the visit at ``place`` links to; return their number."""
    count = links(log, place, page, hosts, row)
    share = amount / count
    for j in range(U0, count):
        r[row[j]] += share
    return int64(count)


@kernel
def take_in(
    log: UInt8Array,
    pages: UInt32Array,
    places: UInt64Array,
    hosts: UInt32Array,
    row: UInt32Array,
    visits: UInt64Array,
    x: Float64Array,
    r: Float64Array,
    damping: float,
) -> int64:
    """Replace the ``visits`` visit of each page by its new visit, and correct the residuals.

    ``visits`` holds a visit's place in the log plus 1, and 0 for a page without a visit. Return the number of links by
    which the crawl grew; it is negative if there are fewer links than before.
    """
    grown = int64(0)
    for k in range(U0, uint64(len(pages))):
        page, before = uint64(pages[k]), visits[pages[k]]
        if before != places[k] + U1:
            if before != U0:
                grown -= give(log, before - U1, page, hosts, row, -damping * x[page], r)
            grown += give(log, places[k], page, hosts, row, damping * x[page], r)
            visits[page] = places[k] + U1
    return grown


@kernel
def take_out(
    log: UInt8Array,
    pages: UInt32Array,
    hosts: UInt32Array,
    row: UInt32Array,
    visits: UInt64Array,
    x: Float64Array,
    r: Float64Array,
    damping: float,
) -> int64:
    """Forget the visits of pages that no longer have a visit; return the same as :func:`take_in`."""
    grown = int64(0)
    for k in range(U0, uint64(len(pages))):
        page = uint64(pages[k])
        grown -= give(log, visits[page] - U1, page, hosts, row, -damping * x[page], r)
        visits[page] = U0
    return grown


@kernel
def worth(scores: Float32Array, i: uint64, least: float) -> float:
    """v[i]: 1 without scores; else score + ``least``, or ``least`` ÷ (1 − score) for a score below 0.

    So v grows with the score, and is never below 0. A score that is not finite counts as 0.
    """
    if len(scores) == 0:
        return 1.0
    score = float64(scores[i])
    if 0.0 < score < np.inf:
        return score + least
    return least / (1.0 - score) if -np.inf < score < 0.0 else least


@kernel
def revalue(
    before: Float32Array,
    after: Float32Array,
    old: uint64,
    new: uint64,
    r: Float64Array,
    rest: float,
    least: float,
) -> float:
    """Change the teleport from the scores ``before`` of ``old`` pages to ``after`` of ``new`` pages; return Σ v."""
    total = 0.0
    for i in range(U0, new):
        page = uint64(i)
        value = worth(after, page, least)
        total += value
        r[page] += rest * (value - (worth(before, page, least) if page < old else 0.0))
    return total


@kernel
def settle(
    visits: UInt64Array, x: Float64Array, r: Float64Array, bits: UInt64Array, piles: Float64Array
) -> float:
    """Add the residuals of pages without a visit to x, because they have no links to pass them on; return Σ|x|.

    ``bits`` is ``r`` read as whole numbers. |r| is added up in ``piles``, float64[:data:`PILES`], by size. Residuals in
    pile b are at least the number whose bits are b << 50, and below that of the next pile, at most a quarter above.
    """
    piles[:] = 0.0
    mass = 0.0
    for i in range(U0, uint64(len(x))):
        if visits[i] == U0:
            x[i] += r[i]
            r[i] = 0.0
        piles[(bits[i] >> FINE) & ALL] += abs(r[i])
        mass += abs(x[i])
    return mass


@kernel
def push(
    log: UInt8Array,
    pages: UInt32Array,
    places: UInt64Array,
    hosts: UInt32Array,
    row: UInt32Array,
    x: Float64Array,
    r: Float64Array,
    damping: float,
    least: float,
) -> uint64:
    """Add each residual of at least ``least`` to x, and pass it on along the page's links; return their number."""
    arcs = U0
    for k in range(U0, uint64(len(pages))):
        page = uint64(pages[k])
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
def authorities(
    log: UInt8Array,
    pages: UInt32Array,
    places: UInt64Array,
    hosts: UInt32Array,
    row: UInt32Array,
    scores: Float32Array,
    a: Float64Array,
    new: Float64Array,
) -> None:
    """Add the sums of the hubs ``pages`` to ``new``: h = Σ scores·a over a hub's links, for each page it links to."""
    for k in range(U0, uint64(len(pages))):
        count = links(log, places[k], uint64(pages[k]), hosts, row)
        h = 0.0
        if len(scores) == 0:
            for j in range(U0, count):
                h += a[row[j]]
        else:
            for j in range(U0, count):
                h += float64(scores[row[j]]) * a[row[j]]
        for j in range(U0, count):
            new[row[j]] += h
