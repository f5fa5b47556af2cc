"""The spam mass of a crawl's hosts: the part of a host's rank that does not come from trusted pages.

Let x be PageRank with v = 1 for each page, and x' the rank that comes from trusted pages: PageRank whose v is the
weights of trust, multiplied by γ·n ÷ Σ(weights) for n pages. γ is the estimated share of good pages. A host's mass
is ::

    m = 1 − (Σ x' over its pages) ÷ (Σ x over its pages)

The share 1 − m is kept within [0.001, 1]. The priorities of a host's pages are multiplied by it. A host that became
known after the ranking has the median of the others. Before the first ranking, all hosts have 1.

Source: Gyöngyi, Berkhin, Garcia-Molina & Pedersen, "Link spam detection based on mass estimation", VLDB 2006;
:mod:`inlink.rank.spam` is the same for single nodes of a graph.
"""

from typing import Any, Self

import numpy as np

from inlink.base.arrays import Float32Array, Float64Array, UInt32Array
from inlink.errors import ParameterError
from inlink.factors.host import HostFactor, RankedCrawl
from inlink.factors.trust import Trusted
from inlink.store.pages import Pages

GAMMA = 0.85
"""γ, as in the paper."""

LEAST = 1e-3
"""The least share, so that a host without trust comes last and is not excluded."""


class HostMass(HostFactor):
    """The factor by spam mass. Its shares are 1 − m."""

    setting = "spam_mass"
    applies = "takes_trust"
    name = "trusted_share"

    def __init__(self, pages: Pages, trusted: Trusted) -> None:
        super().__init__(pages, 1)
        self._weight = float(trusted.weights.sum(dtype=np.float64))
        # The share of hosts that are not in the ranking, and the number of those that are.
        self._usual, self._num_ranked = np.float32(1), 0

    @classmethod
    def check(cls, settings: Any) -> None:
        """Raise ParameterError if there is no setting ``trust``."""
        if settings.spam_mass and settings.trust is None:
            raise ParameterError(
                "`spam_mass` needs `trust`, because it compares ranks with those that come from trusted pages: "
                "give trust=FILE, or spam_mass=False"
            )

    @classmethod
    def from_crawl(cls, pages: Pages, trusted: Trusted | None) -> Self | None:
        """Return the factor for a crawl. None without trusted pages."""
        return None if trusted is None else cls(pages, trusted)

    def compute(self, ranked: RankedCrawl) -> Float32Array:
        """Return 1 − m of all hosts, float32[num_hosts]."""
        hosts = self.pages.hosts[: len(ranked.ranks)]
        return trusted_shares(
            ranked.uniform_ranks(), ranked.ranks, self._weight, hosts, self.pages.tally.hosts
        )

    def _take_in(self) -> None:
        if self._num_known < self.pages.tally.hosts:
            self._shares[self._num_known : self.pages.tally.hosts] = self._usual
            self._num_known = self.pages.tally.hosts

    def adopt(self, shares: Float32Array | None) -> None:
        """Use the shares of a ranking; None gives each host the share 1."""
        self._usual, self._num_ranked = np.float32(1), 0
        if shares is not None and len(shares):
            self._usual, self._num_ranked = np.float32(np.median(shares)), len(shares)
        super().adopt(shares)
        if shares is not None:
            self._shares[: len(shares)] = shares

    def _reason(self, host: int) -> str:
        name = self.pages.table.host(host)
        if host < self._num_ranked:
            return f"1 − spam mass of {name}: the share of its rank that comes from trusted pages"
        return f"median of 1 − spam mass, because {name} is newer than the ranking"


def trusted_shares(
    whole: Float64Array, trusted: Float64Array, weight: float, hosts: UInt32Array, num_hosts: int
) -> Float32Array:
    """Return 1 − m of each host, float32[num_hosts].

    Parameters
    ----------
    whole, trusted : float64[n]
        x, and the PageRank whose v is the weights of trust.
    weight : float
        The sum of the weights, above 0.
    hosts : uint32[n]
        The host of each page.
    num_hosts : int
    """
    rank = np.bincount(hosts, whole, num_hosts)
    good = np.bincount(hosts, trusted, num_hosts) * (GAMMA * len(whole) / weight)
    return np.clip(good / np.maximum(rank, 1e-300), LEAST, 1.0).astype(np.float32)
