"""Checks of a ranking before a crawl uses it. Another process wrote the file that it was read from.

PageRank as :mod:`inlink.reranking.live` keeps it is x = d·Pᵀx + (1 − d)·v. No column of Pᵀ sums to more than 1, hence
(1 − d)·Σv ≤ Σx ≤ Σv. In a shard of a crawl, the upper bound grows by ``inflow``, Σb / (1 − d). HITS
authorities have mean 1.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from inlink.base.arrays import AnyArray
from inlink.reranking.sections import TURN
from inlink.store.reader import crawl_folder

ROUNDED = 2.0**-22
"""A bound on the change of the residual when ranks are rounded to float32, relative to their sum."""

SLACK = 0.01
"""Tolerated relative error of sums. Rankings are exact to 1e-4."""


def is_foreign(meta: dict[str, Any], folder: Path) -> bool:
    """Return whether a ranking is one of another crawl. Those of earlier versions do not name their crawl."""
    return "crawl" in meta and meta["crawl"] != crawl_folder(folder).header.uuid


class RankingCheck:
    """Checks a ranking, a block of pages at a time.

    Parameters
    ----------
    ranks : array
        The published ranks. They are sound only if they are float32[n] with n in [1, num_pages], or n = 0 in an empty
        crawl.
    meta : dict
        The values that were published with them.
    num_pages : int
        Number of pages that the crawl knows.

    Attributes
    ----------
    length : int
        Number of ranks to check; 0 if a fault is already known.
    """

    def __init__(self, ranks: AnyArray, meta: dict[str, Any], num_pages: int) -> None:
        self._ranks, self._meta = ranks, meta
        self._total, self._fault = 0.0, self._of_form(num_pages)
        self.length = len(ranks) if self._fault is None else 0

    def _of_form(self, num_pages: int) -> str | None:
        ranks, meta = self._ranks, self._meta
        least = min(num_pages, 1)
        if ranks.ndim != 1 or ranks.dtype != np.float32 or not least <= len(ranks) <= num_pages:
            return f"it has shape {ranks.shape} and type {ranks.dtype} for {num_pages:,} pages"
        if meta.get("algorithm") == "hits":
            if not _is_above_0(meta.get("lambda"), math.inf):
                return f"its lambda is {meta.get('lambda')!r}"
        elif not _is_above_0(meta.get("damping"), 1.0):
            return f"its damping is {meta.get('damping')!r}"
        return None

    def take_in(self, pages: slice) -> None:
        """Check the ranks of a block of pages."""
        block = self._ranks[pages]
        self._total += float(block.sum(dtype=np.float64))
        if self._fault is None and not (block.min(initial=0.0) >= 0 and math.isfinite(self._total)):
            self._fault = (
                f"it has a rank that is negative or not finite among pages {pages.start:,} to {pages.stop:,}"
            )

    def take_in_beside(self, name: str, values: AnyArray, pages: slice) -> None:
        """Check a block of an array that was published beside the ranks.

        It must have the type and the shape of the ranks, and finite values of at least 0. Values of ``sections`` may
        also be :data:`.sections.TURN`, and ``scores`` may be below 0.
        """
        if self._fault is not None:
            return
        if values.dtype != np.float32 or values.shape != self._ranks.shape:
            self._fault = f"its values {name!r} have shape {values.shape} and type {values.dtype}"
            return
        block = values[pages]
        if name == "sections":
            block = block[block != TURN]
        elif name == "scores":
            block = np.abs(block)
        if not (block.min(initial=0.0) >= 0 and math.isfinite(float(block.max(initial=0.0)))):
            self._fault = (
                f"a value {name!r} among pages {pages.start:,} to {pages.stop:,} is negative or not finite"
            )

    def fault(self, teleport: float | None) -> str | None:
        """Describe the first fault; None if the ranking can be used.

        Parameters
        ----------
        teleport : float or None
            Σv of the ranked pages, where v are their scores; None if all v are 1.
        """
        if self._fault is not None:
            return self._fault
        low = high = float(self.length)
        if self._meta.get("algorithm") != "hits":
            high = high if teleport is None else teleport
            # Earlier versions did not keep scores with the ranking, and scores may have grown since.
            low = (1 - self._meta["damping"]) * high if teleport is None else 0.0
            inflow = self._meta.get("inflow", 0.0)
            high += inflow if _is_above_0(inflow, math.inf) else 0.0
        if not low * (1 - SLACK) <= self._total <= high * (1 + SLACK):
            return f"its ranks sum to {self._total:.6g}, which should lie in [{low:.6g}, {high:.6g}]"
        return None


def _is_above_0(value: Any, high: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < high
