"""Find the original of a near-duplicate page, by the fingerprints in the log.

A page is a near-duplicate of an earlier page if the fingerprints of their latest visits differ in at most
:data:`MOST_BITS` of 64 bits. Earlier means: first crawled earlier, or at the same time and with a lower number. So two
pages are never near-duplicates of each other.

No index is kept. A look-up compares the page with all visits, which takes tens of nanoseconds for each visit.
"""

from typing import NamedTuple

import numpy as np

from inlink.base.arrays import UInt8Array, UInt64Array
from inlink.store.format import HEAD_SIZE, VISIT, Head, VisitRecord
from inlink.store.frames import fields_at

MOST_BITS = 3
"""The largest number of differing bits of the fingerprints of near-duplicates."""


class First(NamedTuple):
    """The first visit to a page: its time, and the number of the page. They are compared in this order."""

    time: float
    page: int


def near_visits(log: UInt8Array, places: UInt64Array, fingerprint: int) -> UInt64Array:
    """Return the places of the visits whose fingerprints are near, uint64[≤ len(places)], in the given order.

    Parameters
    ----------
    log : uint8[bytes]
        The bytes of events.log.
    places : uint64[n]
        Places of visits. Places of merges are left out.
    fingerprint : int
        The fingerprint to compare with, not 0.
    """
    places = places[fields_at(log, places, Head, "kind") == VISIT]
    payloads = places + np.uint64(HEAD_SIZE)
    fingerprints = fields_at(log, payloads, VisitRecord, "fingerprint")
    near = np.bitwise_count(fingerprints ^ np.uint64(fingerprint)) <= MOST_BITS
    kept: UInt64Array = places[near & (fingerprints != 0)]
    return kept


def earliest(log: UInt8Array, places: UInt64Array, before: First) -> First | None:
    """Return the earliest page with a visit at ``places`` that was first crawled before another page, or None."""
    times = fields_at(log, places + np.uint64(HEAD_SIZE), VisitRecord, "first_crawl").tolist()
    pages = fields_at(log, places, Head, "page").tolist()
    return min(filter(before.__gt__, map(First, times, pages)), default=None)
