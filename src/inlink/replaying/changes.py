"""Changes of pages, recorded or drawn at random, and the freshness of the copies of a replay.

**Freshness** is the share of the copies that are current: that have not changed since they were fetched (J. Cho,
H. Garcia-Molina, "Synchronizing a database to improve freshness", SIGMOD 2000). A copy is current from its fetch to the
next change of its page, and is replaced by the next fetch of the page.

**Drawn changes** are a Poisson process for each page, as that paper and its measurements have it. The rates of pages
differ: they are drawn from an exponential distribution. The times of a page depend only on the seed and the page's
number, so all policies meet the same changes.

**Fresh rank** is the share of all PageRank that belongs to pages with a current copy. A page that was not fetched yet
has no copy.

**Recorded changes** are visits that found another content hash than the visit before, in a crawl or in an archive. The
recording does not know when the page changed between these visits, so the change counts from the visit that found it.
Nothing is known of a page before its first visit with a hash, and after its last. A copy that is fetched outside this
time does not count, and a copy that is fetched inside counts up to its end.
"""

import math
from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from inlink.base.arrays import Float64Array, UInt32Array
from inlink.replaying.web import NO_PAGE, Web

_WORD = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_SLOWEST = 1e-9
"""The smallest rate of a page, as a multiple of the mean rate."""

_ROUNDING = 1e-12
"""Sums of ranks up to this value count as 0."""


class Drawn:
    """Changes that are drawn at random.

    Parameters
    ----------
    mean : float
        Seconds between two changes of a page whose rate is the mean rate.
    seed : int
        Seed of the random numbers, at least 0.
    """

    def __init__(self, mean: float, seed: int) -> None:
        self._mean, self._seed = mean, seed
        self._known: dict[int, tuple[float, int, float]] = {}

    def rate(self, page: int) -> float:
        """The mean number of changes of a page in a second."""
        return max(_exponential(self._seed, page, 0), _SLOWEST) / self._mean

    def at(self, page: int, time: float) -> tuple[int, float]:
        """Return the number of changes of a page up to a time, and the time of its next change: infinity for never.

        For each page, the times of the calls must not decrease.
        """
        if page not in self._known:
            scale = 1 / self.rate(page)
            self._known[page] = scale, 0, scale * _exponential(self._seed, page, 1)
        scale, count, following = self._known[page]
        while following <= time:
            count += 1
            following += scale * _exponential(self._seed, page, count + 1)
        self._known[page] = scale, count, following
        return count, following


def _exponential(seed: int, page: int, place: int) -> float:
    """Return a number of the exponential distribution with mean 1. The same arguments give the same number."""
    state = _mixed(_mixed(_mixed(seed) ^ page) ^ place)
    return -math.log(((state >> 11) + 1) / (1 << 53))


def _mixed(state: int) -> int:
    """Return SplitMix64's output after ``state`` (Steele, Lea & Flood, OOPSLA 2014)."""
    word = (state + _GOLDEN) & _WORD
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
    return word ^ (word >> 31)


class RecordedChanges:
    """The changes that a recording has."""

    def __init__(self, web: Web) -> None:
        self._begins, self._times = web.change_offsets.tolist(), web.changes.tolist()

    def at(self, page: int, time: float) -> tuple[int, float]:
        """See :meth:`Drawn.at`."""
        begin, end = self._begins[page], self._begins[page + 1]
        place = bisect_right(self._times, time, begin, end)
        return place - begin, self._times[place] if place < end else math.inf


Changes = Drawn | RecordedChanges
"""The changes of the pages of a web."""


def has_changes(web: Web) -> bool:
    """Return True if a recording knows the changes of at least one page."""
    return not bool(np.isnan(web.watched).all())


def changes_of(web: Web, mean: float | None, seed: int) -> Changes | None:
    """Return random changes if ``mean`` is given, else the recorded ones, or None if none are recorded."""
    if mean is not None:
        return Drawn(mean, seed)
    return RecordedChanges(web) if has_changes(web) else None


class HeldCopies(NamedTuple):
    """The copies of a replay that count.

    Attributes
    ----------
    pages : uint32[k]
        Their pages.
    begins, ends : float64[k]
        The times from which, and up to which, each copy counts, in seconds; infinity if it is never replaced.
    current : float64[k]
        The time up to which it is current, at most its end.
    left_out : int
        The number of copies at the end of the replay that do not count.
    """

    pages: UInt32Array
    begins: Float64Array
    ends: Float64Array
    current: Float64Array
    left_out: int


def counted_copies(
    copies: UInt32Array, times: Float64Array, stale: Float64Array, watched: Float64Array | None
) -> HeldCopies:
    """Return the copies of a replay whose changes are known.

    Parameters
    ----------
    copies : uint32[k]
        The page whose content each fetch returned; :data:`.web.NO_PAGE` if none.
    times : float64[k]
        The end of each fetch, in seconds, increasing.
    stale : float64[k]
        The time of the page's next change after that.
    watched : float64[n, 2] or None
        The first and the last time between which the changes of each page are known; NaN if never. None: all changes
        are known.
    """
    some = np.flatnonzero(copies != NO_PAGE)
    pages, begins = copies[some], times[some]
    ends = _replaced(pages, begins)
    held = int((ends == np.inf).sum())
    if watched is not None:
        counted = (watched[pages, 0] <= begins) & (begins <= watched[pages, 1])
        some, pages, begins = some[counted], pages[counted], begins[counted]
        ends = np.minimum(ends[counted], watched[pages, 1])
    last = times[-1] if len(times) else 0.0
    return HeldCopies(pages, begins, ends, np.minimum(ends, stale[some]), held - int((ends > last).sum()))


def freshness_of(copies: HeldCopies, times: Float64Array) -> tuple[Float64Array, float]:
    """Return the share of the copies that are current.

    Parameters
    ----------
    copies : HeldCopies
        The copies that count.
    times : float64[k]
        The end of each fetch, in seconds, increasing.

    Returns
    -------
    float64[k]
        The freshness at the end of each fetch; NaN while no copy counts.
    float
        Its mean over the time in which a copy counts; if no time passes, over the fetches. NaN if no copy counts.
    """
    alike = np.ones(len(copies.pages))
    return _share(
        times,
        _Sum(copies.begins, copies.current, alike),
        _Sum(copies.begins, copies.ends, alike),
    )


def fresh_rank_of(
    copies: HeldCopies, times: Float64Array, ranks: Float64Array, watched: Float64Array | None
) -> tuple[Float64Array, float]:
    """Return the share of all rank that belongs to pages with a current copy.

    Parameters
    ----------
    copies : HeldCopies
        The copies that count.
    times : float64[k]
        The end of each fetch, in seconds, increasing.
    ranks : float64[n]
        The ranks of the pages, at least 0; 0 for a page that the seeds do not reach.
    watched : float64[n, 2] or None
        As for :func:`counted_copies`. A page counts between these times only.

    Returns
    -------
    float64[k]
        The share at the end of each fetch; NaN while no page counts.
    float
        Its mean, as for :func:`freshness_of`.
    """
    fresh = _Sum(copies.begins, copies.current, ranks[copies.pages])
    if watched is None:
        ever = np.array([-np.inf])
        return _share(times, fresh, _Sum(ever, -ever, np.array([ranks.sum()])))
    counted = np.flatnonzero(~np.isnan(watched[:, 0]))
    return _share(times, fresh, _Sum(watched[counted, 0], watched[counted, 1], ranks[counted]))


class _Sum:
    """At each moment, the sum of the weights of the spans of time that contain it. A span does not contain its end."""

    def __init__(self, begins: Float64Array, ends: Float64Array, weights: Float64Array) -> None:
        self.corners = np.concatenate([begins, ends])
        order = np.argsort(self.corners, kind="stable")
        self._sorted = self.corners[order]
        self._sums = np.concatenate([[0.0], np.cumsum(np.concatenate([weights, -weights])[order])])

    def at(self, moments: Float64Array) -> Float64Array:
        sums: Float64Array = self._sums[np.searchsorted(self._sorted, moments, "right")]
        return sums


def _share(times: Float64Array, fresh: _Sum, whole: _Sum) -> tuple[Float64Array, float]:
    """Return ``fresh`` ÷ ``whole`` at the end of each fetch, and its mean over time. It is NaN where ``whole`` is 0."""

    def at(moments: Float64Array) -> Float64Array:
        # After additions and subtractions, a sum of no ranks may differ from 0.
        counted = whole.at(moments)
        share: Float64Array = np.where(
            counted > _ROUNDING, fresh.at(moments) / np.maximum(counted, _ROUNDING), np.nan
        )
        return np.clip(share, 0.0, 1.0)

    values, last = at(times), times[-1] if len(times) else 0.0
    corners = np.unique(np.concatenate([fresh.corners, whole.corners, [0.0, last]]))
    corners = corners[(corners >= 0.0) & (corners <= last)]
    shares, spans = at(corners[:-1]), np.diff(corners)
    counted = ~np.isnan(shares)
    if spans[counted].sum() > 0:
        return values, float((shares * spans)[counted].sum() / spans[counted].sum())
    return values, float(np.nanmean(values)) if not np.isnan(values).all() else math.nan


def _replaced(pages: UInt32Array, begins: Float64Array) -> Float64Array:
    """Return the time at which each copy is replaced by the next copy of its page, float64[k]; infinity for never."""
    order = np.lexsort((np.arange(len(pages)), pages))
    again = pages[order][1:] == pages[order][:-1]
    ends = np.full(len(pages), np.inf)
    ends[order[:-1][again]] = begins[order[1:][again]]
    return ends
