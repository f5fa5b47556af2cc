"""The distrust of a crawl's hosts: how soon a reader of a host's pages arrives at spam.

As in Anti-TrustRank, distrust goes from known spam backwards along links. The spam is a list of hosts. The distrust of
a page is the probability that a reader arrives there: 1 on a listed host, and elsewhere ::

    d_i = c · (Σ d_j over the page's links j) ÷ (number of its links)

where c is the damping, and d is 0 for a page that is not fetched. A host's distrust D is the mean of its fetched pages'
d, and 1 if the host is listed.

Anti-TrustRank proper is PageRank on the reversed graph: it divides the distrust of a page among its linkers. So its
values depend on the number of linkers, and give no factor. Source: Krishnan & Raj, "Web spam detection with Anti-Trust
Rank", AIRWeb 2006.
"""

from collections.abc import Callable

import numpy as np

from inlink.base.arrays import BoolArray, Float32Array
from inlink.reranking.bounds import LinkRows
from inlink.store.pages import Pages
from inlink.store.prior import HostPlaces

__all__ = ["LARGEST", "HostFinder", "distrust_of_hosts"]

LARGEST = np.float32(0.999)
"""The largest distrust of a host that is not listed."""

_STILL = 1e-3
_SWEEPS = 50
"""The sweeps end when no page's distrust moves by more than ``_STILL``, or after this number."""

_AT_A_TIME = 1 << 14


class HostFinder:
    """Finds a crawl's hosts in a list. Each host is looked up once.

    Parameters
    ----------
    pages : Pages
    listed : HostPlaces
        Hosts and domains. Their places do not matter.
    """

    def __init__(self, pages: Pages, listed: HostPlaces) -> None:
        self._pages, self._listed = pages, listed
        self._found: BoolArray = np.zeros(0, np.bool_)

    def listed(self) -> BoolArray:
        """Return whether each known host is listed, bool[num_hosts]."""
        while len(self._found) < self._pages.num_hosts:
            begin = len(self._found)
            end = min(begin + _AT_A_TIME, self._pages.num_hosts)
            rows = self._listed.find([self._pages.host(host) for host in range(begin, end)])
            self._found = np.concatenate([self._found, rows >= 0])
        return self._found


def distrust_of_hosts(
    pages: Pages,
    is_listed: BoolArray,
    damping: float,
    cross_only: bool,
    between: Callable[[], None] | None = None,
) -> Float32Array:
    """Return the distrust of all hosts by the present links, float32[num_hosts]. Only a listed host has 1.

    The links are read some dozens of times.

    Parameters
    ----------
    pages : Pages
    is_listed : bool[num_hosts]
    damping : float
        c.
    cross_only : bool
        Only links between hosts count.
    between : callable or None
        Called without arguments every few milliseconds of work.
    """
    hosts = np.asarray(pages.hosts[: pages.num_pages])
    visited, places = pages.crawled()
    rows = LinkRows(pages.log, visited, places, hosts if cross_only else None, between)
    chance = is_listed[hosts].astype(np.float64)
    for _ in range(_SWEEPS):
        before = chance.copy()
        for sources, means in rows.means(chance):
            chance[sources] = np.maximum(chance[sources], damping * means)
        if float((chance - before).max(initial=0.0)) <= _STILL:
            break
    fetched = np.bincount(hosts[visited], minlength=len(is_listed))
    sums = np.bincount(hosts[visited], chance[visited], minlength=len(is_listed))
    means = (sums / np.maximum(fetched, 1)).astype(np.float32)
    return np.where(is_listed, np.float32(1), np.minimum(means, LARGEST))
