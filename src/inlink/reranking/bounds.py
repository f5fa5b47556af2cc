"""Bounds on the ranks that the pages of a crawl will have once the crawl is finished.

The rank is PageRank with teleports to the seeds: r = c·P̃ᵀr + (1 − c)·v, Σr = 1, where v are the shares of the seeds and
c is the damping. A row of P̃ is 1 / (number of the page's links) for each of its links. The row of a page without links
is v.

The *open* pages U are the pages that wait for their first fetch. Their rows are unknown, and they may lead to pages
that no fetched page links to. All other known rows are assumed to stay as they are: fetched pages F keep their links,
and pages that failed for good or were excluded have none.

**Lower bound.** A walk begins at a seed, goes on with probability c, and counts its visits. Let L be (1 − c) times the
visits of the walks that end as soon as they reach an open page: L = c·P̃_Fᵀ·L + (1 − c)·v. The finished crawl has all
these walks and more, so L ≤ r.

**The mass that gets out.** All other visits of r come after the first visit of an open page. Let R = Σ_U L. Each such
walk goes on for c/(1 − c) visits, so Σr − ΣL = c/(1 − c)·R: this bounds the rank of any page that is not known yet.
The pages of F hold at least 1 − R/(1 − c) of the rank, so at most R/(1 − c) is outside. This is RankMass (Cho &
Schonfeld, "RankMass crawler: a crawler with high PageRank coverage guarantee", VLDB 2007).

**Upper bound.** Let N(x, p) be the discounted visits of p, Σ_k c^k·P̃^k[x, p], of a walk that begins at x. After the
first open page, a walk needs at least one step to p, and N(x, p) ≤ N(p, p) for each x. Hence ::

    L(p) ≤ r(p) ≤ L(p) + c·R·N(p, p)                                                                        (1)

Let N_F be N of the walks that end at open pages. Let A(x) be the probability, discounted in the same way, that a walk
from x reaches an open page: A = 1 on U, and A = c·P̃·A elsewhere. A walk that returns to p after it reached an open page
needs at least one step more, so N(p, p) ≤ N_F(p, p) + c·A(p)·N(p, p), that is ::

    N(p, p) ≤ N_F(p, p) / (1 − c·A(p)),      and on U: N(p, p) ≤ 1 / (1 − c)                                 (2)

With equality in (2), (1) is the least upper bound: r(p) has this value if each open page links to p alone.

N_F(p, p) has a bound too. Let s be P̃[p, p], and m the largest P̃[y, p] over all pages y of F. A walk is at p after
k ≥ 2 steps with probability at most m, so N_F ≤ 1 + c·s + c²·m/(1 − c). The first return takes one step with
probability s, and two steps or more otherwise, so N ≤ 1 / (1 − c·s − c²·(1 − s)). The smaller bound counts.

**Uniform teleports have no bound.** Unknown pages then are teleport targets too, and could hold any share of the rank.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from inlink.base.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int64Array,
    UInt8Array,
    UInt32Array,
    UInt64Array,
)
from inlink.errors import ParameterError
from inlink.rank.certain import best_nodes
from inlink.reranking.live import LEAST_TOL, GrowingPageRank
from inlink.store.blocks import LinkRows

_LARGEST_TOL = 1e-6

_STILL = 1e-3
"""The sweeps over A end when no value moves by more than this. A is an upper bound after each sweep."""

_SWEEPS = 50


class Bounds(NamedTuple):
    """Bounds on the ranks of the finished crawl, each as a share of all rank.

    Attributes
    ----------
    lower, upper : float64[pages]
    outside : float
        Upper bound on the rank of all pages that are not fetched, known or not.
    unseen : float
        Upper bound on the rank of any page that is not known.
    """

    lower: Float64Array
    upper: Float64Array
    outside: float
    unseen: float


class GrowingBounds:
    """Bounds that are kept up to date while a crawl grows.

    Parameters
    ----------
    damping : float
        c, above 0 and below 1.
    tol : float
        Rounding and stopping early may widen the bounds by about this much. Values outside [1e-9, 1e-6] count as the
        nearest of both.
    between : callable or None
        Called without arguments every few milliseconds of work, so that the work can sleep, or end by an exception.

    Raises
    ------
    inlink.errors.ParameterError
        If ``damping`` is outside its range.
    """

    def __init__(
        self, damping: float = 0.85, tol: float = _LARGEST_TOL, between: Callable[[], None] | None = None
    ) -> None:
        tol = min(max(tol, LEAST_TOL), _LARGEST_TOL)
        self.damping, self._between = damping, between
        self._ranking = GrowingPageRank(damping, tol, least=0.0, between=between)

    def update(
        self,
        log: UInt8Array,
        pages: UInt32Array,
        places: UInt64Array,
        is_open: BoolArray,
        teleport: Float32Array,
        hosts: UInt32Array | None = None,
    ) -> Bounds:
        """Return the bounds for the crawl's present state.

        Parameters
        ----------
        log, pages, places, hosts
            See :meth:`.live.GrowingPageRank.update`.
        is_open : bool[num_pages]
            The open pages U. They must not be among ``pages``.
        teleport : float32[num_pages]
            v before it is divided by its sum, at least 0; above 0 for at least one page. It may change between two
            updates.

        Raises
        ------
        inlink.errors.ParameterError
            If no teleport is above 0.
        inlink.errors.DamageError
            If there is no valid visit at one of the places.
        """
        total = float(teleport.sum(dtype=np.float64))
        if not 0 < total < np.inf:
            raise ParameterError("no page is a teleport target: seed the crawl with at least one URL")
        update = self._ranking.update(len(is_open), log, pages, places, teleport, hosts)
        rows = LinkRows(log, pages, places, hosts, self._between)
        matrix = _KnownRows(rows, teleport.astype(np.float64) / total, is_open, self.damping)
        return _bounds(self._ranking.values / total, float(update.error), matrix)


def _bounds(values: Float64Array, error: float, matrix: "_KnownRows") -> Bounds:
    """Return the bounds.

    ``values`` sum to at most 1. Their walks also end at pages without links, whose mass D then returns to the seeds:
    L = f · values with f = (1 − c) / (1 − c − c·D). ``error`` bounds the L1 distance of ``values`` to the exact ones.
    """
    c, rest = matrix.damping, 1 - matrix.damping
    dangling = float(values[matrix.is_dangling].sum())
    low = rest / (rest - c * max(dangling - error, 0.0))
    # 1 - c - c·D is at least (1 - c) times the sum of the exact values, which is at least 1 - c.
    high = rest / max(rest - c * (dangling + error), rest * rest)
    lower = low * np.maximum(values - error, 0.0)
    highest = high * (values + error)
    reached = high * (float(values[matrix.is_open].sum()) + error) if matrix.is_open.any() else 0.0
    upper = np.minimum(highest + c * reached * matrix.returns(), 1.0)
    return Bounds(lower, upper, min(reached / rest, 1.0), min(c * reached / rest, 1.0))


class _KnownRows:
    """The known rows of P̃, and the bounds on returns that follow from them.

    Parameters
    ----------
    rows : LinkRows
    share : float64[num_pages]
        v.
    is_open : bool[num_pages]
    damping : float
    """

    def __init__(self, rows: LinkRows, share: Float64Array, is_open: BoolArray, damping: float) -> None:
        self._rows, self._share, self.is_open, self.damping = rows, share, is_open, damping
        size = len(is_open)
        self.is_dangling = ~is_open
        self._own, self._largest = np.zeros(size), np.zeros(size)
        for pages, counts, targets in rows:
            self.is_dangling[pages[counts > 0]] = False
            sources, each = np.repeat(pages, counts), np.repeat(1 / np.maximum(counts, 1), counts)
            np.maximum.at(self._largest, targets, each)
            to_self = sources == targets
            self._own[sources[to_self]] = each[to_self]
        if self.is_dangling.any():
            np.maximum(self._largest, share, out=self._largest)
            self._own[self.is_dangling] = share[self.is_dangling]

    def returns(self) -> Float64Array:
        """Return upper bounds on N(p, p) of all pages, float64[num_pages]."""
        c = self.damping
        slow = 1 / (1 - c * self._own - c * c * (1 - self._own))
        inside = np.minimum(slow, 1 + c * self._own + c * c * self._largest / (1 - c))
        bounds = np.minimum(slow, inside / (1 - c * self._reach()))
        bounds[self.is_open] = 1 / (1 - c)
        return bounds

    def _reach(self) -> Float64Array:
        """Return upper bounds on A, float64[num_pages]. They fall from sweep to sweep, and each sweep's are valid."""
        c = self.damping
        reach = np.where(self.is_open, 1.0, c)
        if not self.is_open.any():
            return np.zeros_like(reach)
        for _ in range(_SWEEPS):
            before = reach.copy()
            reach[self.is_dangling] = np.minimum(reach[self.is_dangling], c * float(self._share @ reach))
            for pages, means in self._rows.means(reach):
                reach[pages] = np.minimum(reach[pages], c * means)
            if float((before - reach).max()) <= _STILL:
                break
        return np.minimum(reach * (1 + 1e-12), 1.0)


def best_places(bounds: Bounds, count: int) -> tuple[Int64Array, float]:
    """Return the best pages by their lower bounds, and an upper bound on the rank of any other page, known or not.

    Parameters
    ----------
    bounds : Bounds
    count : int
        Number of pages, at least 1.

    Returns
    -------
    nodes : int64[k]
        The pages, best first; pages with the same bound in the order of their numbers.
    beyond : float
    """
    nodes = best_nodes(bounds.lower, count)
    others = bounds.upper.copy()
    others[nodes] = 0.0
    return nodes, max(float(others.max(initial=0.0)), bounds.unseen)


def certain_within(lower: Float64Array, upper: Float64Array, beyond: float, within: float) -> BoolArray:
    """Return which places are certain within ε, bool[k].

    Parameters
    ----------
    lower, upper : float64[k]
        Bounds on the ranks of the best pages, best first by their lower bounds.
    beyond : float
        Upper bound on the rank of any other page.
    within : float
        ε, a share of all rank. A place is certain within ε if, however the crawl ends, no page after it has more than
        ε above the rank of the page at this place, and no page before it has more than ε below that rank.
    """
    # The largest upper bound of all pages after each place.
    after = np.maximum.accumulate(np.append(upper[1:], beyond)[::-1])[::-1]
    before = np.append(np.inf, lower[:-1])
    certain: BoolArray = (after <= lower + within) & (upper <= before + within)
    return certain
