"""The prior of a host: how good its pages are by an earlier ranking, as long as the crawl has seen few links to them.

A host at place p of n hosts has b = (1 + log₂(n ÷ p)) ÷ (1 + log₂ n), which is 1 for the best host; a host without a
place has b = 0. A page of this host has the prior q = t·b, where t is its teleport, (1 − c)·v in
:class:`inlink.frontier.ranked.PageRank`. If r is the rank that the crawl has computed for the page, its priority is ::

    r + q · q ÷ (q + r)

The first q is the prior, and q ÷ (q + r) its weight beside the crawl's own evidence. The weight falls from
b ÷ (b + 1), if no link to the page is known, to 0 as r grows. The priority grows with r and with q: a link never
lowers it. A prior is at most one teleport, since larger ones lifted all pages of large hosts above pages with links.
"""

from typing import Any

import numpy as np

from inlink.base.arrays import Float32Array, UInt32Array
from inlink.base.columns import most_pages, reserve
from inlink.factors.host import rows_of_hosts
from inlink.factors.parts import Part
from inlink.store.pages import Pages
from inlink.store.prior import HostPlaces


class HostPrior:
    """The priors of a crawl's hosts. Hosts that become known are looked up when they are first asked for."""

    def __init__(self, pages: Pages, places: HostPlaces) -> None:
        self.pages, self.places = pages, places
        self._priors: Float32Array = reserve(np.float32, most_pages())
        self._num_known = 0

    def _take_in(self) -> None:
        for hosts, rows in rows_of_hosts(self.pages, self.places, self._num_known):
            self._priors[hosts] = self.places.priors(rows)
            self._num_known = hosts.stop

    def added(self, pages: UInt32Array, ranks: Any, teleports: Any) -> Float32Array:
        """Return what the prior adds to ranks r of pages, float32[k]: q²/(q + r) with q = t·b, and 0 where q is 0.

        Parameters
        ----------
        pages : uint32[k]
        ranks : float32[k]
        teleports : float32[k] or float32
            The teleports t of the pages.
        """
        self._take_in()
        prior = teleports * self._priors[self.pages.hosts[pages]]
        added = np.zeros(len(pages), np.float32)
        np.divide(prior * prior, prior + ranks, out=added, where=prior > 0)
        return added

    def parts(self, page: int, rank: float, teleport: float) -> list[Part]:
        """Return the part of a page's priority that :meth:`added` computes; none if it is 0."""
        self._take_in()
        host = int(self.pages.hosts[page])
        prior = teleport * float(self._priors[host])
        if prior <= 0:
            return []
        row = int(self.places.find([self.pages.table.host(host)])[0])
        weight = prior / (prior + rank)
        name = (
            f"prior {prior:.4g} of {self.places.names[row]} (place {int(self.places.places[row]):,} of "
            f"{len(self.places):,}) × {weight:.3g}, its weight beside the rank above"
        )
        return [Part(name, "+", prior * weight)]
