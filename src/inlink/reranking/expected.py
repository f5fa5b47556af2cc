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

from inlink.base.arrays import Float64Array, UInt8Array, UInt32Array, UInt64Array
from inlink.store.blocks import LinkRows

TRUE_SHARE = 2 / 3
"""The share of the links to come that is counted; docs/decisions/default-order.md has the measurements."""


def expected_ranks(
    num_pages: int,
    log: UInt8Array,
    pages: UInt32Array,
    places: UInt64Array,
    ranks: Float64Array,
    hosts: UInt32Array | None = None,
    *,
    damping: float,
    between: Callable[[], None] | None = None,
) -> Float64Array:
    """Return the rank that each page can expect, e of (1), float64[num_pages]; 0 for crawled pages.

    Parameters
    ----------
    num_pages : int
        The number of known pages, crawled or not.
    log, pages, places, hosts, between
        As in :class:`inlink.store.blocks.LinkRows`. The visits must be sound.
    ranks : float64[k]
        The ranks of these pages, x of :mod:`inlink.reranking.live`, at least 0.
    damping : float
        d in (1).

    Notes
    -----
    Memory: 9 bytes a page, and 20 more for each crawled page.
    """
    crawled = np.zeros(num_pages, np.bool_)
    crawled[pages] = True
    # The same sums in the same order, however the visits were read.
    order = np.argsort(places, kind="stable")
    pages, places, ranks = pages[order], places[order], ranks[order]
    expected, at = np.zeros(num_pages), 0
    for _, counts, links in LinkRows(log, pages, places, hosts, between):
        waiting = ~crawled[links]
        row, links = np.repeat(np.arange(len(counts)), counts)[waiting], links[waiting]
        left = np.bincount(row, minlength=len(counts))
        ahead = np.maximum(left - 1, 0) / (1.0 + counts - left)
        share = ranks[at : at + len(counts)] / np.maximum(counts, 1) * ahead
        np.add.at(expected, links, share[row])
        at += len(counts)
    expected *= TRUE_SHARE * damping
    return expected
