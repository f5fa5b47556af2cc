"""The distrust of a crawl's hosts: how soon a reader of a host's pages arrives at spam.

As in Anti-TrustRank, distrust goes from known spam backwards along links. The spam is a list of hosts. The distrust of
a page is the probability that a reader arrives there: 1 on a listed host, and elsewhere ::

    d_i = c · (Σ d_j over the page's links j) ÷ (number of its links)

where c is the damping, and d is 0 for a page that is not fetched. A host's distrust D is the mean of its fetched pages'
d, and 1 if the host is listed. Before a ranking with this list, D is 1 for listed hosts, and else 0. The priorities of
a host's pages are multiplied by ::

    1 ÷ (1 + (D ÷ 0.02)²)

So a link to spam on few pages of a host costs little. A host comes last if most of its pages lead to spam.

Anti-TrustRank proper is PageRank on the reversed graph: it divides the distrust of a page among its linkers. So its
values depend on the number of linkers, and give no factor. Source: Krishnan & Raj, "Web spam detection with Anti-Trust
Rank", AIRWeb 2006.
"""

from collections.abc import Callable
from typing import Self

import numpy as np

from inlink.base.arrays import BoolArray, Float32Array
from inlink.base.columns import most_pages, reserve
from inlink.factors.host import HostFactor, RankedCrawl, rows_of_hosts
from inlink.factors.trust import Trusted
from inlink.store.blocks import LinkRows
from inlink.store.pages import Pages
from inlink.store.prior import DISTRUST, HostPlaces, kept_places

EVEN = 0.02
"""The distrust that halves a priority."""

LARGEST = np.float32(0.999)
"""The largest distrust of a host that is not listed."""

_STILL = 1e-3
_SWEEPS = 50
"""The sweeps end when no page's distrust moves by more than ``_STILL``, or after this number."""


class HostDistrust(HostFactor):
    """The factor by distrust. Hosts that become known are looked up in the list when they are first asked for.

    Parameters
    ----------
    pages : Pages
    listed : HostPlaces
        Hosts and domains that are known as spam. Their places do not matter.
    """

    setting = DISTRUST
    applies = "takes_distrust"
    name = "distrust"

    def __init__(self, pages: Pages, listed: HostPlaces) -> None:
        super().__init__(pages, listed.checksum)
        self._list = listed
        self._is_listed: BoolArray = reserve(np.bool_, most_pages())
        self._num_looked_up = 0

    @classmethod
    def from_crawl(cls, pages: Pages, trusted: Trusted | None) -> Self:
        """Return the factor for a crawl. The list is the one that the crawl's folder keeps."""
        return cls(pages, kept_places(pages.folder, DISTRUST))

    def compute(self, ranked: RankedCrawl) -> Float32Array:
        """Return the distrust of all hosts, float32[num_hosts]."""
        return _distrust(self.pages, self._listed(), ranked.damping, ranked.cross_only, ranked.between)

    def _listed(self) -> BoolArray:
        """Return whether each known host is listed, bool[num_hosts]."""
        for hosts, rows in rows_of_hosts(self.pages, self._list, self._num_looked_up):
            self._is_listed[hosts] = rows >= 0
            self._num_looked_up = hosts.stop
        return self._is_listed[: self._num_looked_up]

    def _take_in(self) -> None:
        if self._num_known < self.pages.tally.hosts:
            listed = self._listed()
            self._shares[self._num_known : len(listed)] = listed[self._num_known :]
            self._num_known = len(listed)

    def adopt(self, shares: Float32Array | None) -> None:
        """Use the shares of a ranking; None leaves the listed hosts only."""
        super().adopt(shares)
        if shares is not None:
            # A host that was listed meanwhile stays listed.
            before = self._shares[: len(shares)]
            np.maximum(before, shares, out=before)

    def _factors(self, shares: Float32Array) -> Float32Array:
        ratio = shares / np.float32(EVEN)
        factors: Float32Array = np.float32(1) / (np.float32(1) + ratio * ratio)
        return factors

    def _reason(self, host: int) -> str:
        name, share = self.pages.table.host(host), float(self._shares[host])
        if share == 1:
            return f"{name} is listed in `distrust`"
        return f"distrust {share:.3g} of {name}, whose pages lead to listed hosts"


def _distrust(
    pages: Pages, is_listed: BoolArray, damping: float, cross_only: bool, between: Callable[[], None]
) -> Float32Array:
    """Return the distrust of all hosts, float32[num_hosts]. Only a listed host has 1."""
    hosts = np.asarray(pages.hosts[: pages.num_pages])
    visited, places = pages.crawled()
    rows = LinkRows(pages.frames.log, visited, places, hosts if cross_only else None, between)
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
