"""The distrust of a host: how soon a reader of its pages arrives at spam. It lowers the priorities of the host's pages.

As in Anti-TrustRank, distrust goes from known spam backwards along links. The spam is a list of hosts. The distrust of
a page is the probability that a reader arrives there: 1 on a listed host, and elsewhere ::

    d_i = c · (Σ d_j over the page's links j) ÷ (number of its links)

where c is the damping, and d is 0 for a page that is not fetched. A host's distrust D is the mean of its fetched pages'
d, and 1 if the host is listed. A priority is multiplied by ::

    1 ÷ (1 + (D ÷ 0.02)²)

So a link to spam on few pages of a host costs little. A host most of whose pages lead to spam comes last. A waiting
page has no links yet, so its host is all that tells about it.

Anti-TrustRank proper is PageRank on the reversed graph: it divides the distrust of a page among its linkers. So its
values depend on the number of linkers, and give no factor. Source: Krishnan & Raj, "Web spam detection with Anti-Trust
Rank", AIRWeb 2006.
"""

import numpy as np

from inlink.base.arrays import BoolArray, Float32Array, UInt32Array
from inlink.base.columns import reserve
from inlink.frontier.parts import Part
from inlink.frontier.policy import MOST_PAGES
from inlink.reranking.bounds import LinkRows
from inlink.store.pages import Pages
from inlink.store.prior import HostPlaces

__all__ = ["HostDistrust"]

EVEN = 0.02
"""The distrust that halves a priority."""

_STILL = 1e-3
_SWEEPS = 50
"""The sweeps end when no page's distrust moves by more than ``_STILL``, or after this number."""

_AT_A_TIME = 1 << 14


class HostDistrust:
    """The distrust of a crawl's hosts. Hosts that become known are looked up in the list when they are first asked for.

    Parameters
    ----------
    pages : Pages
    listed : HostPlaces
        Hosts and domains that are known as spam. Their places do not matter.
    damping : float
        c.
    cross_only : bool
        Only links between hosts count.
    """

    def __init__(self, pages: Pages, listed: HostPlaces, damping: float, cross_only: bool) -> None:
        self.pages, self.listed = pages, listed
        self._damping, self._cross_only = damping, cross_only
        self._distrust: Float32Array = reserve(np.float32, MOST_PAGES)
        self._known = 0

    def _take_in(self) -> None:
        count = self.pages.num_hosts
        while self._known < count:
            end = min(self._known + _AT_A_TIME, count)
            found = self.listed.find([self.pages.host(host) for host in range(self._known, end)])
            self._distrust[self._known : end] = found >= 0
            self._known = end

    def update(self) -> None:
        """Compute the distrust of all hosts from the present links. This reads all links some dozens of times."""
        self._take_in()
        pages = self.pages
        hosts = np.asarray(pages.hosts[: pages.num_pages])
        is_listed: BoolArray = self._distrust[: self._known] == 1
        visited, places = pages.crawled()
        across = hosts if self._cross_only else None
        rows = LinkRows(pages.log, visited, places, across)
        chance = is_listed[hosts].astype(np.float64)
        for _ in range(_SWEEPS):
            before = chance.copy()
            for sources, means in rows.means(chance):
                chance[sources] = np.maximum(chance[sources], self._damping * means)
            if float((chance - before).max(initial=0.0)) <= _STILL:
                break
        fetched = np.bincount(hosts[visited], minlength=self._known)
        sums = np.bincount(hosts[visited], chance[visited], minlength=self._known)
        means = np.where(is_listed, 1.0, sums / np.maximum(fetched, 1))
        # Only a listed host has 1.
        self._distrust[: self._known] = np.where(is_listed, 1.0, np.minimum(means, 0.999))

    def factor(self, pages: UInt32Array) -> Float32Array:
        """Return the factors of the pages' priorities, float32[k], above 0 and at most 1."""
        self._take_in()
        share = self._distrust[self.pages.hosts[pages]] / np.float32(EVEN)
        found: Float32Array = np.float32(1) / (np.float32(1) + share * share)
        return found

    def parts(self, page: int) -> list[Part]:
        """Return the part of a page's priority that :meth:`factor` computes; none if it is 1."""
        factor = float(self.factor(np.array([page], np.uint32))[0])
        if factor == 1:
            return []
        host = int(self.pages.hosts[page])
        name, distrust = self.pages.host(host), float(self._distrust[host])
        if distrust == 1:
            return [Part(f"{name} is listed in `distrust`", "×", factor)]
        return [Part(f"distrust {distrust:.3g} of {name}, whose pages lead to listed hosts", "×", factor)]
