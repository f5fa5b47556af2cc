"""What the numbers in a crawl's log mean: kinds of events, their flags, the states that they leave pages in."""

import struct

__all__ = ["HEAD", "KINDS", "NO_PAGE", "STATES"]

HEAD = struct.Struct("<IIdIIIBBHfI")
"""A frame's head, field by field in :mod:`inlink.store.kernels.frames`."""

NO_PAGE = 0xFFFFFFFF

KINDS = ("", "seed", "visit", "failed", "lease", "release", "merge", "host", "hint", "note", "exclude")
SEED, VISIT, FAILED, LEASE, RELEASE, MERGE, HOST, HINT, NOTE, EXCLUDE = range(1, 11)

HAS_SCORES, RETRIED, IS_GONE, EXCLUDED_ONE, HAS_CARRIED, NOINDEX, NOFOLLOW = 1, 2, 4, 8, 16, 32, 64
"""Flags: link scores follow; a failure after which the page is tried again, or a reload; gone; not to be fetched;
some links carry something; what the page asked of robots."""

STATES = ("discovered", "leased", "crawled", "failed", "gone", "excluded", "merged")
DISCOVERED, LEASED, CRAWLED, FAILED_PAGE, GONE, EXCLUDED, MERGED = range(7)
