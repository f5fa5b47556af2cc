"""Checks of a ranking before a crawl uses it. Another process wrote the file that it was read from.

PageRank as :mod:`inlink.reranking.live` keeps it is x = d·Pᵀx + (1 − d)·v. No column of Pᵀ sums to more than 1, hence
(1 − d)·Σv ≤ Σx ≤ Σv. HITS authorities have mean 1.
"""

import math
from typing import Any

import numpy as np

from inlink.base.arrays import AnyArray

__all__ = ["ranking_fault"]

SLACK = 0.01
"""Tolerated relative error of sums. Rankings are exact to 1e-4."""

_BLOCK = 1 << 18


def ranking_fault(
    ranks: AnyArray, meta: dict[str, Any], num_pages: int, teleport: float | None
) -> str | None:
    """Describe the first fault of a ranking.

    Parameters
    ----------
    ranks : array
        The published ranks. They are sound only if they are float32[n] with n in [1, num_pages].
    meta : dict
        The values that were published with them.
    num_pages : int
        Number of pages that the crawl knows.
    teleport : float or None
        Σv of the ranked pages, where v are their scores; None if all v are 1.

    Returns
    -------
    str or None
        The fault in words; None if the ranking can be used.
    """
    if ranks.ndim != 1 or ranks.dtype != np.float32 or not 1 <= len(ranks) <= num_pages:
        return f"it has shape {ranks.shape} and type {ranks.dtype} for {num_pages:,} pages"
    total, least = 0.0, math.inf
    for begin in range(0, len(ranks), _BLOCK):
        block = ranks[begin : begin + _BLOCK]
        total += float(block.sum(dtype=np.float64))
        least = min(least, float(block.min()))
        if not (least >= 0 and math.isfinite(total)):
            return f"it has a rank that is negative or not finite among pages {begin:,} to {begin + len(block):,}"
    if meta.get("algorithm") == "hits":
        low = high = float(len(ranks))
        if not _is_within(meta.get("lambda"), 0.0, math.inf):
            return f"its lambda is {meta.get('lambda')!r}"
    else:
        damping = meta.get("damping")
        if damping is None or not _is_within(damping, 0.0, 1.0):
            return f"its damping is {damping!r}"
        high = float(len(ranks)) if teleport is None else teleport
        # Scores may have grown since.
        low = (1 - damping) * high if teleport is None else 0.0
    if not low * (1 - SLACK) <= total <= high * (1 + SLACK):
        return f"its ranks sum to {total:.6g}, which should lie in [{low:.6g}, {high:.6g}]"
    return None


def _is_within(value: Any, low: float, high: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low < value < high
