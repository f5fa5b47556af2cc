"""Rankings that are kept up to date while a crawl grows: PageRank by residuals, HITS by warm starts.

Both read the links from the crawl's log and keep no copy of the graph. Each update gets the whole state of the crawl:
the number of pages, and the place of the latest visit of each crawled page. The rankings find the changes themselves.

**PageRank, un-normalised:**

    x = d·Pᵀx + (1 − d)·v,       v_i = 1, or v_i = r_i + 1e-6 with content scores r ≥ 0                    (1)

P[i, j] is 1 / (number of i's links) for each link i → j. The row of a page without links, or not crawled, is 0: such
pages only teleport. Normalising x gives the PageRank whose dangling pages link to v, so the order is the same. Without
normalising, x_i does not change when pages are found elsewhere.

The residual of x, r = (1 − d)·v + d·Pᵀx − x, is kept too. A new page adds (1 − d)·v_i to r_i. A new row adds d·x_i / k
to the residuals of its k targets, and a row that goes subtracts what it added. The error of x then follows from r.
*Pushing* page i (x_i += r_i, add d·r_i / k to r of its targets, r_i = 0; Jeh & Widom, WWW 2003; Berkhin, Internet
Mathematics 2006) repairs the error at a cost of k links. Residuals may be negative. A pass goes over the pages in the
order of the log and pushes the largest residuals, as many as are needed. Pushing more than r_i (over-relaxation) saves
another quarter of the work on some graphs and diverges on others.

In a shard of a crawl, links from other shards add b ≥ 0 to (1): x = d·Pᵀx + (1 − d)·v + b. A change of b is a change of
r.

**The bound.** x* − x = (I − d·Pᵀ)⁻¹·r = Σ_k (d·Pᵀ)ᵏ·r, and no column of Pᵀ sums to more than 1, so
‖x* − x‖₁ ≤ E := ‖r‖₁ / (1 − d) for all signs of r. Further ‖x*‖₁ ≥ ‖x‖₁ − E, and x* ≥ (1 − d)·v + b. Hence

    ‖x − x*‖₁ / ‖x*‖₁  ≤  E / max(‖x‖₁ − E, (1 − d)·Σv + Σb),                                                    (2)

and pushing goes on until the right side is at most ``tol``. Rounding is added to ‖r‖₁: for each pass, in this update
or an earlier one, 2⁻⁴⁷ of ‖x‖₁ + ‖r‖₁. These 64 units in the last place are an estimate, because the worst case is far
from what happens. If the sum of rounding exceeds half of what ``tol`` allows, r is computed again from x.

**HITS** (Aduana's, with content scores r; see :mod:`inlink.rank.hits`):

    h_i = Σ_{i→j} r_j·a_j,      a_j = (1/λ)·Σ_{i→j} h_i                                                      (3)

A round is one pass over the log: a hub passes on its sum as soon as the sum is known. Residuals cannot be used here,
because every a depends on every link at once. The rounds start from the last authorities, mixed with a hundredth of the
mean. So pages that had authority 0, or were unknown, can still gain authority.
"""

from collections.abc import Callable, Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from inlink.base.arrays import (
    AnyArray,
    Float32Array,
    Float64Array,
    UInt8Array,
    UInt32Array,
    UInt64Array,
    slices,
)
from inlink.errors import DamageError, ParameterError
from inlink.reranking.kernels.push import (
    PILES,
    authorities,
    check,
    increasing,
    push,
    revalue,
    settle,
    take_in,
    take_out,
)

MOST, AIM, SLACK = 0.85, 1.5, 0.95
"""Figures of :func:`_threshold`."""

ROUNDING = 2.0**-47
"""Estimated rounding error of a pass, relative to ‖x‖₁ + ‖r‖₁."""

REPAIRS = 5
"""Maximum number of repairs in an update. Five always suffice: each reduces rounding by a factor of 1e-14."""

MIX = 0.01
"""Share of the mean in each authority that HITS starts from."""

SLICE = 1 << 16
"""Number of rows between two calls of `between`: about 20 ms of work."""

LARGEST = 1e100
"""The largest starting value; sums of larger ones might not be finite."""

LEAST_TOL = 1e-9
"""The smallest `tol`: below it, rounding would be the larger part of the bound."""

NO_HOSTS = np.empty(0, np.uint32)
NO_SCORES = np.empty(0, np.float32)
UNKNOWN = np.empty(0, np.uint64)


class Update(msgspec.Struct, frozen=True):
    """The result of an update.

    Attributes
    ----------
    sweeps : float
        Links that were followed, divided by the number of the crawl's links.
    error : float
        PageRank: a bound on ‖x − x*‖₁ / ‖x*‖₁. HITS: the L1 change in the last round of authorities that sum to 1. This
        is not a bound.
    eigenvalue : float
        HITS: λ of (3), or 1 if there are no links. PageRank: 1.
    converged : bool
        Whether ``error`` is at most ``tol``. PageRank always converges, unless damping is so near to 1 that rounding
        decides.
    scored : bool
        HITS: whether scores are used. They are not used if there are no scores, or if they make all authorities 0.
    """

    sweeps: float
    error: float
    eigenvalue: float
    converged: bool
    scored: bool = True


class GrowingPageRank:
    """PageRank of a crawl, kept up to date.

    Parameters
    ----------
    damping : float
        d in (1), above 0 and below 1.
    tol : float
        Target for the relative L1 error bound (2); at least 1e-9.
    least : float
        The worth of a score of 0; 0 if ``scores`` are weights of trust.
    start : float[m] or None
        Ranks of the first pages to start from, such as those of an earlier process. Any values are correct; good ones
        save work. Values that are not finite, or above 1e100, count as 0.
    between : callable or None
        Called without arguments every few milliseconds of work, so that the work can sleep, or end by an exception.
        After an exception this object cannot be used any more.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is outside its range.

    Notes
    -----
    Memory: 24 bytes a page, 4 more with scores. An update takes 12 more for each crawled page if pages are not in the
    order of the log.
    """

    def __init__(
        self,
        damping: float = 0.85,
        tol: float = 1e-4,
        *,
        least: float = 1e-6,
        start: npt.ArrayLike | None = None,
        between: Callable[[], None] | None = None,
    ) -> None:
        if not 0 < damping < 1:
            raise ParameterError(f"damping must be in (0, 1); got {damping!r}")
        self.damping, self.tol = damping, _tolerance(tol)
        self._between, self._least = between, least
        self._start = _starting(start)
        self._x = np.zeros(0)
        self._r = np.zeros(0)
        self._taken_in = np.zeros(0, np.uint64)
        self._scores: Float32Array = NO_SCORES
        self._inflow = np.zeros(0)
        self._across: bool | None = None
        self._longest = 0
        self._rounding = 0.0
        self.num_links = 0

    @property
    def values(self) -> Float64Array:
        """x, float64[pages], not normalised; at least 0, like x*."""
        return np.maximum(self._x, 0.0)

    def update(
        self,
        num_pages: int,
        log: UInt8Array,
        pages: UInt32Array,
        places: UInt64Array,
        scores: npt.ArrayLike | None = None,
        hosts: npt.ArrayLike | None = None,
        inflow: Float64Array | None = None,
    ) -> Update:
        """Update the ranking to the crawl's present state.

        Parameters
        ----------
        num_pages : int
            The number of known pages, crawled or not; never less than before.
        log : uint8[bytes]
            The crawl's log.
        pages, places : uint32[k], uint64[k]
            Each crawled page once, and the place of its latest visit in the log. For a merged page it is the place of
            the merge, which counts as the page's only link. Pages may lose their visits.
        scores : float32[num_pages] or None
            Content scores r, or weights of trust. A negative score is worth ``least`` ÷ (1 − score); one that is not
            finite counts as 0. None: v_i = 1.
        hosts : uint32[num_pages] or None
            The pages' hosts. If given, links within a host do not count. Give them for every update or for none.
        inflow : float64[num_pages] or None
            b, at least 0 and finite; None is 0.

        Returns
        -------
        Update

        Raises
        ------
        inlink.errors.DamageError
            If there is no valid visit at one of the places.
        inlink.errors.ParameterError
            If there are fewer pages than before, an array has the wrong length, or ``hosts`` are given only for some of
            the updates.
        """
        if num_pages < len(self._x):
            raise ParameterError(f"a crawl of {len(self._x):,} pages cannot shrink to {num_pages:,}")
        if self._across not in (None, hosts is not None):
            raise ParameterError("give hosts for every update, or for none")
        self._across = hosts is not None
        after = _column(scores, num_pages, "scores", NO_SCORES)
        across = _column(hosts, num_pages, "hosts", NO_HOSTS)
        old = self._grow(num_pages)
        crawl = _Crawl(num_pages, log, pages, places, across, self._taken_in, self._longest)
        self._longest = len(crawl.row)
        before, self._inflow = self._inflow, np.zeros(0) if inflow is None else inflow
        self._r[: len(before)] -= before
        teleport = self._take_in(crawl, self._scores, after, old)
        self._scores = NO_SCORES if scores is None else _frozen(after.copy())
        arcs, error = self._push(crawl, teleport)
        return Update(arcs / max(self.num_links, 1), error, 1.0, error <= self.tol)

    def _take_in(self, crawl: "_Crawl", before: Float32Array, after: Float32Array, old: int) -> float:
        """Correct the residuals r for the crawl's present state, and add b; return Σv + Σb / (1 − d)."""
        log, hosts, row, taken_in = crawl.log, crawl.hosts, crawl.row, self._taken_in
        state = self._x, self._r, self.damping
        teleport = revalue(
            before, after, np.uint64(old), np.uint64(len(self._x)), self._r, 1.0 - self.damping, self._least
        )
        for ids, at in crawl.slices(self._between):
            self.num_links += int(take_in(log, ids, at, hosts, row, taken_in, *state))
        # Some pages have lost their visits.
        if np.count_nonzero(taken_in) > len(crawl.pages):
            left_out = taken_in > 0
            left_out[crawl.pages] = False
            gone = _frozen(np.flatnonzero(left_out).astype(np.uint32))
            self.num_links += int(take_out(log, gone, hosts, row, taken_in, *state))
        self._r[: len(self._inflow)] += self._inflow
        return float(teleport) + float(self._inflow.sum()) / (1.0 - self.damping)

    def _push(self, crawl: "_Crawl", teleport: float) -> tuple[int, float]:
        """Push until (2) is at most ``tol``; return the number of links followed, and (2)."""
        rest = 1.0 - self.damping
        piles, arcs, repairs = np.empty(PILES), 0, REPAIRS
        while True:
            mass = settle(self._taken_in, self._x, self._r, self._r.view(np.uint64), piles)
            left = float(piles.sum())
            self._rounding += ROUNDING * (mass + left)
            size = max(mass - (left + self._rounding) / rest, rest * teleport)
            goal = self.tol * rest * size
            if left + self._rounding <= goal or (left <= goal / 2 and repairs == 0):
                break
            if left <= goal / 2:
                repairs -= 1
                self._begin_anew(crawl, teleport)
                arcs += self.num_links
                continue
            least = _threshold(piles, left, max(goal - self._rounding, goal / 2))
            for ids, at in crawl.slices(self._between):
                arcs += int(
                    push(crawl.log, ids, at, crawl.hosts, crawl.row, self._x, self._r, self.damping, least)
                )
        return arcs, (left + self._rounding) / rest / size if size > 0 else 0.0

    def _begin_anew(self, crawl: "_Crawl", teleport: float) -> None:
        """Compute r again from x, which removes the rounding errors in r."""
        # x* is in this interval too.
        np.clip(self._x, 0.0, teleport, out=self._x)
        np.negative(self._x, out=self._r)
        self._taken_in[:] = 0
        self.num_links = 0
        self._rounding = 0.0
        self._take_in(crawl, NO_SCORES, self._scores, 0)

    def _grow(self, num_pages: int) -> int:
        """Make room for new pages; return the number of pages whose teleport is in r already."""
        old = len(self._x)
        self._x = _lengthened(self._x, num_pages)
        self._r = _lengthened(self._r, num_pages)
        self._taken_in = _lengthened(self._taken_in, num_pages)
        started = len(self._start)
        # New pages begin with their old ranks. The residual corrects the difference.
        if started > old:
            count = min(started, num_pages)
            self._x[old:count] = self._start[old:count]
            self._r[old:count] = -self._start[old:count]
            if count == started:
                self._start = np.zeros(0)
        return old


class GrowingHits:
    """HITS authorities of a crawl. Each update starts from the last authorities.

    Parameters
    ----------
    tol : float
        Stop once a round moves the authorities, of sum 1, by at most this (L1); 1e-9 or more.
    max_iter : int
        Stop after this many rounds, converged or not.
    start, between
        As in :class:`GrowingPageRank`. Negative values of ``start`` count as 0 too.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is outside its range.

    Notes
    -----
    Memory: 8 bytes a page. An update takes 8 more for each page, and 12 more for each crawled page if pages are not in
    the order of the log.
    """

    def __init__(
        self,
        tol: float = 1e-4,
        max_iter: int = 100,
        *,
        start: npt.ArrayLike | None = None,
        between: Callable[[], None] | None = None,
    ) -> None:
        if max_iter < 1:
            raise ParameterError(f"max_iter must be a whole number of at least 1; got {max_iter!r}")
        self.tol, self.max_iter = _tolerance(tol), max_iter
        self._between = between
        self._a = np.maximum(_starting(start), 0.0)
        self._count = 0

    @property
    def values(self) -> Float64Array:
        """The authorities, float64[pages], with mean 1; all 1 if there is no link."""
        return self._a[: self._count].copy()

    def update(
        self,
        num_pages: int,
        log: UInt8Array,
        pages: UInt32Array,
        places: UInt64Array,
        scores: npt.ArrayLike | None = None,
        hosts: npt.ArrayLike | None = None,
    ) -> Update:
        """Update the authorities to the crawl's present state. Parameters and errors: :meth:`GrowingPageRank.update`.

        Scores r that make all authorities 0 (because they are 0 for all pages with inlinks) are all counted as 1.
        """
        if num_pages < self._count:
            raise ParameterError(f"a crawl of {self._count:,} pages cannot shrink to {num_pages:,}")
        r = _column(scores, num_pages, "scores", NO_SCORES)
        if scores is not None and not (np.isfinite(r).all() and (r >= 0).all()):
            r = _frozen(np.where(np.isfinite(r) & (r > 0), r, np.float32(0)).astype(np.float32))
        across = _column(hosts, num_pages, "hosts", NO_HOSTS)
        crawl = _Crawl(num_pages, log, pages, places, across)
        a, rounds = self._first(num_pages), 0
        moved, eigenvalue = 0.0, 1.0
        while rounds < self.max_iter:
            new = self._round(crawl, r, a)
            total = float(new.sum())
            if total <= 0.0:
                if len(r) == 0:
                    # The crawl has no links.
                    a, moved, eigenvalue = np.full(num_pages, 1.0 / max(num_pages, 1)), 0.0, 1.0
                    break
                r = NO_SCORES
                continue
            rounds += 1
            new /= total
            a -= new
            moved, eigenvalue = float(np.abs(a, out=a).sum()), total
            a = new
            if moved <= self.tol:
                break
        a *= num_pages
        self._a, self._count = a, num_pages
        return Update(float(rounds), moved, eigenvalue, moved <= self.tol, len(r) > 0)

    def _first(self, num_pages: int) -> Float64Array:
        """The first vector of the rounds, sum 1: last authorities, the mean for new pages, and a little everywhere."""
        before = self._a[:num_pages]
        mean = float(before.mean()) if len(before) else 1.0
        if not 0.0 < mean < np.inf:
            return np.full(num_pages, 1.0 / max(num_pages, 1))
        a = np.full(num_pages, mean)
        a[: len(before)] = before * (1 - MIX) + mean * MIX
        a /= a.sum()
        return a

    def _round(self, crawl: "_Crawl", r: Float32Array, a: Float64Array) -> Float64Array:
        new = np.zeros(len(a))
        for ids, at in crawl.slices(self._between):
            authorities(crawl.log, ids, at, crawl.hosts, crawl.row, r, a, new)
        return new


class _Crawl:
    """The checked rows of a crawl, in the order of its log, so that a log on a disk is read from front to back."""

    def __init__(
        self,
        num_pages: int,
        log: UInt8Array,
        pages: UInt32Array,
        places: UInt64Array,
        hosts: UInt32Array,
        taken_in: UInt64Array = UNKNOWN,
        longest: int = 0,
    ) -> None:
        if len(pages) != len(places):
            raise ParameterError(
                f"`places` must have a place for each of {len(pages):,} pages; got {len(places):,}"
            )
        log, pages, places = _frozen(log), _frozen(pages), _frozen(places)
        longer, sound = check(log, pages, places, taken_in, np.uint64(num_pages))
        if sound < len(pages):
            raise DamageError(
                f"byte {int(places[int(sound)]):,} of the crawl's log has no valid visit of page "
                f"{pages[int(sound)]}: the log is damaged there; restore the crawl's folder from a copy"
            )
        if not increasing(places):
            order = np.argsort(places, kind="stable")
            pages, places = _frozen(pages[order]), _frozen(places[order])
        self.log, self.pages, self.places, self.hosts = log, pages, places, hosts
        # Every row fits, also rows of earlier visits.
        self.row = np.empty(max(longest, int(longer)), np.uint32)

    def slices(self, between: Callable[[], None] | None) -> Iterator[tuple[UInt32Array, UInt64Array]]:
        """Yield slices of pages and places. Each slice is a few milliseconds of work."""
        for part in slices(len(self.pages), SLICE):
            yield self.pages[part], self.places[part]
            if between is not None:
                between()


def _threshold(piles: Float64Array, left: float, goal: float) -> float:
    """The smallest residual to push. The largest residuals are pushed, as many as the goal needs.

    Pushing all would push small residuals that grow in the same pass. Pushing few would take many passes. These
    figures followed the fewest links on four crawls (``bench/rerank.py``).
    """
    wanted = min(MOST * left, AIM * (left - SLACK * goal))
    pile = len(piles) - 1 - int(np.searchsorted(np.cumsum(piles[::-1]), wanted))
    return float(np.array([max(pile, 0) << 50], np.uint64).view(np.float64)[0])


def _tolerance(tol: float) -> float:
    if not LEAST_TOL <= tol < 1:
        raise ParameterError(f"tol must be in [{LEAST_TOL:g}, 1); got {tol!r}")
    return tol


def _starting(values: npt.ArrayLike | None) -> Float64Array:
    start = np.array([] if values is None else values, np.float64)
    start[~(np.abs(start) <= LARGEST)] = 0.0
    return start


def _lengthened(values: AnyArray, length: int) -> AnyArray:
    if len(values) == length:
        return values
    longer = np.zeros(length, values.dtype)
    longer[: len(values)] = values
    return longer


def _frozen(values: AnyArray) -> AnyArray:
    """A read-only view, so that kernels are compiled once for mapped arrays and for arrays in memory."""
    view = np.ascontiguousarray(values).view()
    view.flags.writeable = False
    return view


def _column(values: npt.ArrayLike | None, num_pages: int, name: str, none: AnyArray) -> AnyArray:
    if values is None:
        return _frozen(none)
    column = np.asarray(values, none.dtype)
    if column.shape != (num_pages,):
        raise ParameterError(
            f"{name} must have one number for each of {num_pages:,} pages; got shape {column.shape}"
        )
    return _frozen(column)
