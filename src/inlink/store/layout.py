"""What the numbers in a crawl's log mean: kinds of events, their flags, the states that they leave pages in."""

import struct

__all__ = ["HEAD", "KINDS", "NO_PAGE", "STATES"]

CHECK, BODY = struct.Struct("<II"), struct.Struct("<dIIIBBHfI")
HEAD = struct.Struct(CHECK.format + BODY.format[1:])
"""A frame's head, field by field in :mod:`inlink.store.kernels.frames`: length and checksum, and what that covers."""

VISITED = struct.Struct("<dIIQB")
"""How a visit's payload begins: first crawl, crawls, changes, place of the visit before + 1 (0 is none), and the length
of the content's hash, which comes next; then the links."""

NO_PAGE = 0xFFFFFFFF

KINDS = ("", "seed", "visit", "failed", "lease", "release", "merge", "host", "hint", "note", "exclude")
SEED, VISIT, FAILED, LEASE, RELEASE, MERGE, HOST, HINT, NOTE, EXCLUDE = range(1, 11)

HAS_SCORES, RETRIED, IS_GONE, EXCLUDED_ONE, HAS_CARRIED, NOINDEX, NOFOLLOW = 1, 2, 4, 8, 16, 32, 64
"""Flags: link scores follow; a failure after which the page is tried again, or a reload; gone; not to be fetched;
some links carry something; what the page asked of robots."""

STATES = ("discovered", "leased", "crawled", "failed", "gone", "excluded", "merged")
DISCOVERED, LEASED, CRAWLED, FAILED_PAGE, GONE, EXCLUDED, MERGED = range(7)

PAGES, HOSTS, URL_BYTES, EVENT_PAGES, ROWS, MAKERS, EVENTS, CRAWLED_ONCE = range(8)
"""Places in a crawl's tally: pages, hosts and bytes of URLs numbered; pages that folded events made known, rows of
answered pages, events that made pages known, events, pages crawled at least once."""
