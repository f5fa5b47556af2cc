"""Revisits by value: when each page is due so that a budget of fetches keeps most rank current.

A page of rank w that changes λ times a second, in a Poisson process, was fetched τ seconds ago. The value of its fetch
is (w/λ)·(1 − e^(−λτ)·(1 + λτ)). The schedule that maximises the sum of rank × freshness under a budget fetches each
page when this value reaches a threshold μ that is the same for all pages, and never fetches pages with w/λ < μ (J. Cho,
H. Garcia-Molina, "Effective page refresh policies for Web crawlers", TODS 2003; Y. Azar et al., "Tractable near-optimal
policies for crawling", PNAS 2018).

Here λ is not known but learned. Its distribution is a gamma distribution of shape a and mean λ, so the value is the
mean over that distribution: with z = λτ and u = z/a,

    V = (w/λ)·a²·((1 − (1 + u)^(1−a))/(a − 1) − (1 − (1 + u)^(−a))/a)                                              (1)

For a → ∞ this is the value above. For a page without evidence, a = ½, it grows without bound, so that each page is
fetched again at some time: rarely if its rank is low.

**Rates** are learned from answers that found a change or none. A page has evidence (k, T): k changes in T seconds. With
a prior of mean m and shape ½, its rate is λ = (½ + k)/(½/m + T), and a = ½ + k. An answer after I seconds without a
change adds (0, I). After a change, the number of changes is at least 1 but unknown. Its mean under the present λ is
added: λI/(1 − e^(−λI)), and I.
Before this, evidence is forgotten to the extent that the answer contradicts it: it is multiplied by

    1 − r,      r = ρ·p₀/(ρ·p₀ + (1 − ρ)·p)                                                                        (2)

where p and p₀ are the probabilities of the answer with the evidence and without it. ρ is the share of answers before
which a page's rate has changed.

**Hints.** A sitemap may report a change after the last visit (``lastmod``). The report is right with probability θ, so
the value of a fetch is

    θ·S + (1 − θ)·V,      S = (w/λ)·a/(a − 1), the limit of V, but at most 2w/λ                                     (3)

θ measures how much more often than by chance reports of the host's sitemap are right. It is learned from the answers
of reported pages: (Σ(x − p) − 2·(Σp(1 − p))^½)/(4 + Σ(1 − p)), where x is 1 for a change and
p its probability without the report. θ is 0 for a host without evidence, and for a ``lastmod`` that is always the
present time. Later reports count more. Fetches because of reports come on top of the budget.

**Priors.** m is the mean rate of the host's pages of the same depth with evidence and of 4 further pages, which have
the mean rate of the host; likewise for the host with that of all pages, and for all pages with the rate of the setting
`initial`. Depths from 7 on are alike.

**Rules** of the setting ``revisit_rules`` bound the interval of a page in place of the schedule's own bounds. The
fetches that they demand count against the budget, and go beyond it if it does not suffice.

**The threshold** and the priors are renewed after visits of a sixteenth of the pages, and at each ranking and change of
settings. Between two renewals, the date of a page is a function of its own answers. So all of this is a fold over
events: a crawl that is opened again, and one of an earlier event, have the same dates.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from inlink.base.arrays import Float32Array, Float64Array, Int64Array, UInt8Array, UInt32Array
from inlink.base.columns import most_pages, reserve
from inlink.frontier.revisit import DAY, ByValue, RevisitRules, revisit_rules
from inlink.store.events import Events
from inlink.store.format import (
    EXCLUDE,
    FAILED,
    HEAD_SIZE,
    HINT,
    MERGE,
    RANKING,
    RETRIED,
    SETTINGS,
    VISIT,
    Head,
    VisitRecord,
    struct_of,
)
from inlink.store.pages import Pages

if TYPE_CHECKING:
    from inlink.store.checkpoint import Checkpoint, StatePart

_HEAD, _VISIT = struct_of(Head), struct_of(VisitRecord)
_KINDS = (VISIT, FAILED, MERGE, EXCLUDE, HINT, RANKING, SETTINGS)

_COLUMNS = ("last", "changes", "kept", "observed", "seconds", "places", "hinted")
_DEPTHS = 8
"""Number of depths that have a prior of their own on each host."""

_HOST_COLUMNS = ("host_rates", "excess", "room", "spread", "trust")
"""The columns of a checkpoint, by page and by host."""

_ERRORS = 2.0
"""A sitemap is trusted if its reports are right more often than by chance, by this number of standard errors."""

_REMEMBERED = 0.98
"""Each report of a sitemap multiplies the weight of the earlier reports by this factor."""

_SURPRISE = 0.02
"""ρ of formula (2)."""

_PRIOR_PAGES = 4
"""Number of pages that a prior counts besides those with evidence."""

_RENEWED = 16
"""The threshold is renewed after visits of one page in so many, and at least so many visits."""

_BINS = 1024
_STEPS = 50
"""Bins of w/λ on a logarithmic scale in which pages are counted, and halvings of the interval of the threshold."""

_PRIOR = 0.5
"""The shape of the prior. Rates of pages differ more than in an exponential distribution, whose shape is 1."""

_RATIO = math.log(512.0) / 49
_SHAPES: Float64Array = _PRIOR * np.exp(_RATIO * np.arange(50))
"""The shapes a for which formula (1) is tabulated. Each page has the nearest of them. None of them is 1."""

_LOWEST, _STEP, _STEPS_OF_V = -24.0, 1 / 128, 27 * 128
"""The logarithms of V with w/λ = 1 for which the inverse of formula (1) is tabulated."""


class PageValue(msgspec.Struct, frozen=True):
    """The reasons for the date of a page's revisit.

    Parameters
    ----------
    rank : float
        The page's value in the last ranking.
    rate : float
        Learned changes a second.
    usual : float
        The prior of that rate, from other pages.
    value : float
        The value of a fetch now.
    threshold : float
        The value at which the page is due.
    trust : float or None
        The probability that a sitemap's report of a change is the reason of a change; None without such a report after
        the last visit.
    """

    rank: float
    rate: float
    usual: float
    value: float
    threshold: float
    trust: float | None = None

    def __str__(self) -> str:
        hint = (
            ""
            if self.trust is None
            else f"; its sitemap reports a change, which is trusted by {self.trust:.0%}"
        )
        return (
            f"changes every {_duration(1 / self.rate)} (others: {_duration(1 / self.usual)}), rank {self.rank:.4g}: a "
            f"fetch is worth {self.value:.4g} now, and due at {self.threshold:.4g}{hint}"
        )


def _duration(seconds: float) -> str:
    return f"{seconds / DAY:.3g} days" if seconds >= DAY else f"{seconds:.3g} s"


def value_of(shapes: Float64Array, ages: Float64Array) -> Float64Array:
    """Formula (1) with w/λ = 1, for shapes above 0 except 1, and z: float64[n]."""
    u = np.log1p(ages / shapes)
    value: Float64Array = shapes**2 * (
        -np.expm1((1 - shapes) * u) / (shapes - 1) + np.expm1(-shapes * u) / shapes
    )
    return value


@cache
def _table() -> tuple[Float64Array, Float64Array]:
    """Logarithms of z by shape and ln V, float64[50, 3457], and the least upper bound of ln V by shape, float64[50]."""
    ages = np.geomspace(1e-6, 1e5, 1 << 13)
    logs = np.log(value_of(_SHAPES[:, None], ages[None, :]))
    places = _LOWEST + _STEP * np.arange(_STEPS_OF_V + 1)
    return np.array([np.interp(places, row, np.log(ages)) for row in logs]), logs[:, -1].copy()


def kinds_of(shapes: Float64Array) -> Int64Array:
    """The place in the table of the nearest shape, int64[n]."""
    nearest = np.rint(np.log(np.maximum(shapes, _PRIOR) / _PRIOR) / _RATIO)
    return np.minimum(nearest, len(_SHAPES) - 1).astype(np.int64)


def ages_of(kinds: Int64Array, logs: Float64Array) -> Float64Array:
    """The z at which pages of these kinds reach values of V, float64[n]; infinity for never.

    ``logs`` has the logarithms of the values for w/λ = 1.
    """
    table, highest = _table()
    places = np.clip((logs - _LOWEST) / _STEP, 0.0, _STEPS_OF_V - 1e-6)
    at = places.astype(np.int64)
    begin, end = table[kinds, at], table[kinds, at + 1]
    return np.where(logs < highest[kinds], np.exp(begin + (end - begin) * (places - at)), np.inf)


def intervals(
    rates: Float64Array, shapes: Float64Array, ranks: Float64Array, threshold: float | Float64Array
) -> Float64Array:
    """Seconds after which the values of pages reach a threshold, or one each, float64[n]; infinity for never."""
    return ages_of(kinds_of(shapes), np.log(threshold * rates / ranks)) / rates


def threshold_of(
    rates: Float64Array,
    shapes: Float64Array,
    ranks: Float64Array,
    budget: float,
    shortest: Float64Array,
    longest: Float64Array,
    places: UInt32Array,
) -> float:
    """The threshold at which the fetches of all pages use a budget. Pages are counted in bins, which costs about 0.5%.

    Parameters
    ----------
    rates, shapes, ranks : float64[n]
        Changes a second, shapes of their distributions, and ranks; above 0.
    budget : float
        Fetches a second.
    shortest, longest : float64[k]
        Bounds of intervals in seconds.
    places : uint32[n]
        The place in ``shortest`` and ``longest`` of each page's bounds.
    """
    worth = np.log(ranks / rates)
    low, high = float(worth.min()), float(worth.max())
    width = max((high - low) / (_BINS - 1), 1e-9)
    kinds = places.astype(np.int64) * len(_SHAPES) + kinds_of(shapes)
    bins = kinds * _BINS + ((worth - low) / width).astype(np.int64)
    filled, bins, counts = np.unique(bins, return_inverse=True, return_counts=True)
    sums = np.bincount(bins, rates)
    bounds, kinds = np.divmod(filled // _BINS, len(_SHAPES))
    fewest, most = counts / longest[bounds], counts / shortest[bounds]
    worth = (low + (filled % _BINS + 0.5) * width).astype(np.float64)
    begin, end = low - 60.0, high + 60.0
    for _ in range(_STEPS):
        middle = (begin + end) / 2
        fetches = sums / ages_of(kinds, middle - worth)
        if np.clip(fetches, fewest, most).sum() > budget:
            begin = middle
        else:
            end = middle
    return math.exp(end)


def _stale(shapes: Float64Array) -> Float64Array:
    """S of formula (3) with w/λ = 1, float64[n]."""
    stale: Float64Array = np.maximum(shapes, 2.0) / (np.maximum(shapes, 2.0) - 1)
    return stale


def _bounds(schedule: ByValue, rules: RevisitRules) -> tuple[Float64Array, Float64Array]:
    """The shortest and the longest interval of the pages of each rule: float64[k], float64[k]."""
    least, most = np.array([rule[1:] for rule in rules.rules]).T
    shortest = np.where(least > 0, least, np.minimum(schedule.shortest, most))
    longest = np.where(most < np.inf, most, np.maximum(schedule.longest, least))
    return shortest, longest


class PageValues:
    """The learned rates of a crawl's pages, and the dates of their revisits.

    Columns have an element for each answered page, at its row in :attr:`.pages.Pages.answered`, unless said otherwise.

    Parameters
    ----------
    pages : Pages
    schedule : ByValue
    rules : tuple of str
        The setting ``revisit_rules``.

    Attributes
    ----------
    ranks : float32[k] or None
        The adopted ranking. None: all pages count alike.
    due : float64[…]
        By page: the date that was planned by value, 0 if there is none. The planner keeps it.
    outdated : bool
        Whether the threshold was renewed since all pages were planned.
    """

    def __init__(self, pages: Pages, schedule: ByValue, rules: tuple[str, ...] = ()) -> None:
        self.pages, self.schedule, self.rules = pages, schedule, rules
        self.ranks: Float32Array | None = None
        size = most_pages()
        self.due: Float64Array = reserve(np.float64, size)
        self.outdated = False
        # The time of the last visit, its number of changes, and whether the page may be fetched again.
        self._last: Float64Array = reserve(np.float64, size)
        self._changes: UInt32Array = reserve(np.uint32, size)
        self._kept: UInt8Array = reserve(np.uint8, size)
        # The evidence: changes, and seconds.
        self._observed: Float64Array = reserve(np.float64, size)
        self._seconds: Float64Array = reserve(np.float64, size)
        # The index of each page's rule, and the bounds of each rule's interval.
        self._places: UInt32Array = reserve(np.uint32, size)
        self._revisit_rules = revisit_rules(rules)
        self._shortest, self._longest = _bounds(schedule, self._revisit_rules)
        # Whether a sitemap has reported a change since the last visit.
        self._hinted: UInt8Array = reserve(np.uint8, size)
        # By host: the mean rate of its pages; 0 for a host without evidence.
        self._host_rates: Float64Array = reserve(np.float64, size // 8)
        # The mean rates by host and depth.
        self._depth_rates: Float64Array = reserve(np.float64, size)
        # For each host, the sums in the formula of θ, and θ as of the last renewal.
        self._excess: Float64Array = reserve(np.float64, size // 8)
        self._room: Float64Array = reserve(np.float64, size // 8)
        self._spread: Float64Array = reserve(np.float64, size // 8)
        self._trust: Float64Array = reserve(np.float64, size // 8)
        self._hosts = 0
        self._rate, self._threshold, self._rank, self._left = 1 / schedule.initial, 0.0, 1.0, 1

    # -- events -----------------------------------------------------------------------------------------------------

    def fold(self, raw: UInt8Array) -> None:
        """Take in an event."""
        head = Head._make(_HEAD.unpack_from(raw.data))
        if head.kind == VISIT:
            visit = VisitRecord._make(_VISIT.unpack_from(raw.data, HEAD_SIZE))
            self._answered(int(self.pages.answers[head.page]), head.time, visit)
        elif head.kind == FAILED or head.kind == MERGE:
            if head.kind == MERGE or not head.flags & RETRIED:
                self._kept[self.pages.answers[head.page]] = 0
            self.due[head.page] = 0
        elif head.kind == EXCLUDE:
            for event in Events(raw):
                self._kept[self.pages.answers[event.pages]] = 0
                self.due[event.pages] = 0
        elif head.kind == HINT:
            self._hinted[self.pages.answers[head.page]] = 1
        elif head.kind == RANKING or head.kind == SETTINGS:
            self._renew()

    def _answered(self, row: int, time: float, visit: VisitRecord) -> None:
        before, changes = float(self._last[row]), int(self._changes[row])
        if self.rules and not before:
            self._places[row] = self._revisit_rules.place(self.pages.url(int(self.pages.answered[row])))
        self._last[row], self._changes[row], self._kept[row] = time, visit.changes, 1
        # Without a hash, the crawl cannot know whether the page has changed.
        if visit.crawls > 1 and visit.hash_size and time > before:
            self._learn(row, time - before, changed=visit.changes > changes)
        self._hinted[row] = 0
        self._left -= 1
        if self._left <= 0:
            self._renew()

    def _learn(self, row: int, seconds: float, *, changed: bool) -> None:
        """Take in an answer of a page whose last visit was so many seconds before."""
        host = int(self.pages.hosts[self.pages.answered[row]])
        usual = self._usual(int(self.pages.answered[row]))
        observed, watched = float(self._observed[row]), float(self._seconds[row])
        same = (_PRIOR + observed) * math.log1p(seconds / (_PRIOR / usual + watched))
        if self._hinted[row]:
            unlikely = math.exp(-same)
            self._excess[host] = _REMEMBERED * self._excess[host] + changed - (1 - unlikely)
            self._room[host] = _REMEMBERED * self._room[host] + unlikely
            self._spread[host] = _REMEMBERED**2 * self._spread[host] + unlikely * (1 - unlikely)
            self._hosts = max(self._hosts, host + 1)
        same_before = _PRIOR * math.log1p(seconds * usual / _PRIOR)
        likely, alone = math.exp(-same), math.exp(-same_before)
        if changed:
            likely, alone = -math.expm1(-same), -math.expm1(-same_before)
        kept = (1 - _SURPRISE) * likely / (_SURPRISE * alone + (1 - _SURPRISE) * likely + 1e-300)
        observed, watched = observed * kept, watched * kept
        if changed:
            expected = (_PRIOR + observed) / (_PRIOR / usual + watched) * seconds
            observed += expected / -math.expm1(-expected) if expected > 1e-9 else 1.0
        self._observed[row], self._seconds[row] = observed, watched + seconds

    def _renew(self) -> None:
        """Compute priors and the threshold again."""
        rows = np.flatnonzero(self._kept[: self.pages.tally.rows + 1])
        # The first visit of all brings the first threshold.
        self._left = max(len(rows) // _RENEWED, _RENEWED) if len(rows) else 1
        self.outdated = True
        if not len(rows):
            return
        pages, evident = self.pages.answered[rows], self._seconds[rows] > 0
        hosts, rates = self.pages.hosts[pages[evident]], self._rates(rows[evident])
        total, count = 1 / self.schedule.initial, _PRIOR_PAGES + len(rates)
        self._rate = (_PRIOR_PAGES * total + float(rates.sum())) / count
        if len(hosts):
            counts, sums = np.bincount(hosts), np.bincount(hosts, rates)
            there = np.flatnonzero(counts)
            self._host_rates[there] = (_PRIOR_PAGES * self._rate + sums[there]) / (
                _PRIOR_PAGES + counts[there]
            )
            self._hosts = max(self._hosts, len(counts))
            groups, inverse, counts = np.unique(
                self._groups(pages[evident]), return_inverse=True, return_counts=True
            )
            means = self._host_rates[groups // _DEPTHS]
            self._depth_rates[groups] = (_PRIOR_PAGES * means + np.bincount(inverse, rates)) / (
                _PRIOR_PAGES + counts
            )
        known = self._hosts
        sure = self._excess[:known] - _ERRORS * np.sqrt(self._spread[:known])
        self._trust[:known] = np.clip(sure / (_PRIOR_PAGES + self._room[:known]), 0.0, 0.95)
        if self.ranks is not None:
            ranked = pages[pages < len(self.ranks)]
            some = self.ranks[ranked].astype(np.float64)
            some = some[(some > 0) & (some < 1e30)]
            self._rank = float(np.median(some)) if len(some) else 1.0
        self._threshold = threshold_of(
            self._rates(rows),
            _PRIOR + self._observed[rows],
            self._ranks(pages),
            self.schedule.budget / DAY,
            self._shortest,
            self._longest,
            self._places[rows],
        )

    # -- values -----------------------------------------------------------------------------------------------------

    def _groups(self, pages: UInt32Array) -> Int64Array:
        """The places of pages in the rates by host and depth, int64[n]."""
        depths = np.minimum(self.pages.depths[pages], _DEPTHS - 1)
        groups: Int64Array = self.pages.hosts[pages].astype(np.int64) * _DEPTHS + depths
        return groups

    def _usual(self, page: int) -> float:
        """The mean rate of the pages of the same host and depth."""
        host, depth = int(self.pages.hosts[page]), min(int(self.pages.depths[page]), _DEPTHS - 1)
        return float(self._depth_rates[host * _DEPTHS + depth]) or float(self._host_rates[host]) or self._rate

    def _rates(self, rows: Int64Array) -> Float64Array:
        """The learned rates of pages, in changes a second: float64[n]."""
        pages = self.pages.answered[rows]
        usual, of_host = self._depth_rates[self._groups(pages)], self._host_rates[self.pages.hosts[pages]]
        usual = np.where(usual > 0, usual, np.where(of_host > 0, of_host, self._rate))
        rates: Float64Array = (_PRIOR + self._observed[rows]) / (_PRIOR / usual + self._seconds[rows])
        return np.clip(rates, 1e-15, 1e6)

    def _ranks(self, pages: UInt32Array) -> Float64Array:
        """The ranks of pages, above 0: float64[n]. A page that the ranking lacks has the median rank."""
        ranks = np.full(len(pages), self._rank)
        if self.ranks is not None:
            covered = np.flatnonzero(pages < len(self.ranks))
            adopted = self.ranks[pages[covered]].astype(np.float64)
            ranks[covered] = np.where((adopted > 0) & (adopted < 1e30), adopted, self._rank)
        return ranks

    def dates(self, pages: UInt32Array) -> Float64Array:
        """The Unix times at which crawled pages are due, float64[n]."""
        rows = self.pages.answers[pages].astype(np.int64)
        places, rates, ranks = self._places[rows], self._rates(rows), self._ranks(pages)
        shapes = _PRIOR + self._observed[rows]
        trust = self._trust[self.pages.hosts[pages]] * self._hinted[rows]
        # The value of V at which formula (3) equals the threshold. A report never makes the date later.
        left = (self._threshold - trust * _stale(shapes) * ranks / rates) / (1 - trust)
        wait = intervals(rates, shapes, ranks, np.clip(left, 1e-300, self._threshold))
        dates: Float64Array = self._last[rows] + np.clip(wait, self._shortest[places], self._longest[places])
        return dates

    def all_dates(self) -> tuple[UInt32Array, Float64Array]:
        """The pages that may be fetched again, and the Unix times at which they are due."""
        pages = self.pages.answered[np.flatnonzero(self._kept[: self.pages.tally.rows + 1])]
        return pages, self.dates(pages)

    def explain(self, page: int, now: float) -> PageValue | None:
        """The reasons for the date of a page; None if it has none."""
        row = int(self.pages.answers[page])
        if not row or not self._kept[row]:
            return None
        (rate,), (rank,) = self._rates(np.array([row])), self._ranks(np.array([page], np.uint32))
        age = max(now - float(self._last[row]), 0.0) * rate
        shape = _SHAPES[kinds_of(_PRIOR + self._observed[row : row + 1])]
        value = rank / rate * value_of(shape, np.array([age]))[0]
        host = int(self.pages.hosts[page])
        trust = float(self._trust[host]) if self._hinted[row] else None
        if trust is not None:
            stale = float(_stale(_PRIOR + self._observed[row : row + 1])[0])
            value = max(value, trust * stale * rank / rate + (1 - trust) * value)
        return PageValue(float(rank), float(rate), self._usual(page), float(value), self._threshold, trust)

    # -- the checkpoint ---------------------------------------------------------------------------------------------

    def parts(self) -> "Iterator[StatePart]":
        """The arrays of a checkpoint, by name."""
        rows = self.pages.tally.rows + 1
        for name in _COLUMNS:
            yield f"value_{name}", [getattr(self, f"_{name}")[:rows]]
        for name in _HOST_COLUMNS:
            yield f"value_{name}", [getattr(self, f"_{name}")[: self._hosts]]
        yield "value_depth_rates", [self._depth_rates[: self._hosts * _DEPTHS]]

    def numbers(self) -> dict[str, Any]:
        """The numbers of a checkpoint."""
        state = [self._rate, self._threshold, self._rank, self._left, self._hosts]
        return {"plan": self.plan(), "state": state, "rows": self.pages.tally.rows + 1}

    def plan(self) -> list[Any]:
        """What the arrays depend on besides the events: their names, and settings."""
        return [[*_COLUMNS, *_HOST_COLUMNS, "depth_rates"], asdict(self.schedule), list(self.rules)]

    def restore(self, checkpoint: "Checkpoint | None", ranks: Float32Array | None) -> None:
        """Take in a checkpoint, if there is one, and all later events."""
        self.ranks, begin, frames = ranks, 0, self.pages.frames
        if checkpoint is not None:
            kept, begin = checkpoint.meta["values"], checkpoint.extent.events_end
            self._rate, self._threshold, self._rank, self._left, self._hosts = kept["state"]
            sizes = dict.fromkeys(_COLUMNS, kept["rows"]) | dict.fromkeys(_HOST_COLUMNS, self._hosts)
            sizes["depth_rates"] = self._hosts * _DEPTHS
            checkpoint.fill(
                [(f"value_{name}", [getattr(self, f"_{name}")[:size]]) for name, size in sizes.items()]
            )
        for place in frames.of_kind(*_KINDS, begin=begin):
            head = Head._make(_HEAD.unpack_from(frames.log.data, place))
            self.fold(frames.between(place, place + head.length)[place : place + head.length])
