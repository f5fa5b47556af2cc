"""The spam mass of a crawl's hosts: the part of a host's rank that does not come from trusted pages.

Let x be PageRank with v = 1 for each page, and x' the rank that comes from trusted pages: PageRank whose v is the
weights of trust, multiplied by γ·n ÷ Σ(weights) for n pages. γ is the estimated share of good pages. A host's mass
is ::

    m = 1 − (Σ x' over its pages) ÷ (Σ x over its pages)

The share 1 − m is kept within [0.001, 1]. Source: Gyöngyi, Berkhin, Garcia-Molina & Pedersen, "Link spam detection
based on mass estimation", VLDB 2006; :mod:`inlink.rank.spam` is the same for single nodes of a graph.
"""

import numpy as np

from inlink.base.arrays import Float32Array, Float64Array, UInt32Array

__all__ = ["GAMMA", "LEAST", "trusted_shares"]

GAMMA = 0.85
"""γ, as in the paper."""

LEAST = 1e-3
"""The least share, so that a host without trust comes last and is not excluded."""


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
