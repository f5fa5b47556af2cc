"""The rank that a page can expect of links which the crawl does not know yet.

Pages that one page links to often link to each other: the chapters of a manual, the articles of a section. While few of
them are crawled, their present ranks are too low. Let page i have k_i links, c_i of them to crawled pages, and let it
link to a waiting page j. Besides j, k_i − c_i − 1 of these pages wait, and 1 + c_i visits were made, of i and of the
crawled ones. If the visits to come link to j as often as those that were made, each known link to j stands for
(k_i − c_i − 1) / (1 + c_i) links to come. :data:`TRUE_SHARE` of them are counted, so page j can expect

    e_j = TRUE_SHARE · Σ_{i→j} d·x_i / k_i · (k_i − c_i − 1) / (1 + c_i).                                      (1)

As more of the pages are crawled, the expectation falls to 0, and known links take its place in x.
"""

from collections.abc import Callable

import numpy as np

from inlink.base.arrays import Float32Array, Float64Array, UInt8Array, UInt32Array, UInt64Array
from inlink.store.blocks import rows_at
from inlink.store.format import MERGE

__all__ = ["TRUE_SHARE", "expected_ranks"]

TRUE_SHARE = 2 / 3
"""The share of the links to come that is counted; docs/policies.md has the measurements."""


def expected_ranks(
    ranks: Float64Array,
    log: UInt8Array,
    pages: UInt32Array,
    places: UInt64Array,
    hosts: UInt32Array | None = None,
    *,
    damping: float,
    between: Callable[[], None] | None = None,
) -> Float32Array:
    """Return the rank that each page can expect, e of (1), float32[n]; 0 for crawled pages.

    Parameters
    ----------
    ranks : float64[n]
        x of :mod:`inlink.reranking.live`, at least 0.
    log : uint8[bytes]
        The crawl's log.
    pages, places : uint32[k], uint64[k]
        Each crawled page once, and the place of its latest visit in the log. The visits must be sound:
        :meth:`.live.GrowingPageRank.update` checks them.
    hosts : uint32[n] or None
        The pages' hosts. If given, links within a host do not count.
    damping : float
        d in (1).
    between : callable or None
        Called without arguments every few milliseconds of work.
    """
    crawled = np.zeros(len(ranks), np.bool_)
    crawled[pages] = True
    # The same sums in the same order, however the visits were read.
    order = np.argsort(places, kind="stable")
    pages, places = pages[order], places[order]
    expected, at = np.zeros(len(ranks)), 0
    for counts, links, kinds in rows_at(log, places):
        block = pages[at : at + len(counts)]
        at += len(counts)
        row = np.repeat(np.arange(len(counts)), counts)
        if hosts is not None:
            counted = (hosts[links] != hosts[block[row]]) | (kinds[row] == MERGE)
            row, links = row[counted], links[counted]
            counts = np.bincount(row, minlength=len(counts))
        waiting = ~crawled[links]
        row, links = row[waiting], links[waiting]
        left = np.bincount(row, minlength=len(counts))
        ahead = np.maximum(left - 1, 0) / (1.0 + counts - left)
        share = ranks[block] / np.maximum(counts, 1) * ahead
        np.add.at(expected, links, share[row])
        if between is not None:
            between()
    return (TRUE_SHARE * damping * expected).astype(np.float32)
