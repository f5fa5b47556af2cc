"""The progress of a crawl: counts, its fullest hosts, and the harvest."""

import math
from collections.abc import Callable, Iterator

import msgspec
import numpy as np

from inlink.base.arrays import BoolArray
from inlink.frontier.frontier import Frontier
from inlink.frontier.owners import Owners, OwnPages, go_on
from inlink.frontier.survey import Shown, Survey, fetchable
from inlink.protocol import HostStanding, Standing
from inlink.store.format import (
    CANONICAL,
    EXCLUDE,
    FAILED,
    MERGE,
    RELOAD,
    REPAIRED,
    SEED,
    SETTINGS,
    STATES,
    VISIT,
)
from inlink.store.pages import Pages
from inlink.store.received import received

POINTS = 256
"""Maximum number of points of a harvest curve."""

_HOSTS = 1 << 19
"""Maximum number of hosts that are searched for the fullest, in about 3 ms."""

_NEXT = 256
"""Maximum number of planned pages that are looked at."""

_ROWS = 1 << 16
"""Number of answered pages that are added up between two looks at the clock."""

_MOST_NEWS = 1 << 24
"""Maximum number of bytes of the log that are searched for changes since the last ranking, in about 10 ms."""

_CHANGING = (SEED, VISIT, FAILED, MERGE, EXCLUDE, RELOAD, CANONICAL, SETTINGS, REPAIRED)
"""Kinds of events that may change pages, links or teleports."""


class HarvestPoint(msgspec.Struct, frozen=True):
    """One point of a harvest curve.

    Parameters
    ----------
    fetched : int
        Number of pages fetched.
    share : float
        Share of the present rank of all known pages that those pages hold, without pages that are excluded or gone.
    by_discovery : float
        Estimate of the same share, had the pages been fetched in the order of their discovery.
    """

    fetched: int
    share: float
    by_discovery: float


class Harvest(msgspec.Struct, frozen=True):
    """Share of the rank of the pages that may be fetched, against pages fetched.

    Parameters
    ----------
    points : list of HarvestPoint
        At most 256, with increasing ``fetched``. Empty if the policy ranks nothing or nothing was crawled.
    known : int
        Number of pages that were known when the curve was computed.
    cursor : str or None
        None if the curve is ready. Otherwise ``points`` is old or empty, and the next call goes on computing it.
    rank : float
        Sum of the ranks of the pages that may be fetched. ``share`` is the fetched part of it.
    """

    points: list[HarvestPoint]
    known: int
    cursor: str | None = None
    rank: float = 0.0


def state_counts(pages: Pages) -> dict[str, int]:
    """The number of pages in each state that occurs."""
    counts = zip(STATES, pages.state_counts.tolist(), strict=True)
    return {name: count for name, count in counts if count}


class Progress:
    """Computes the progress of a crawl. Each call spends a few milliseconds on the values that take long.

    Parameters
    ----------
    frontier : Frontier
    own : OwnPages or None
        In a shard of a crawl, the pages that it owns. Only they count.
    stale : callable
        See :meth:`inlink.crawl.exchange.Exchange.stale`.

    Attributes
    ----------
    ranks : Survey
        The sums of the present ranks.
    slots : Owners or None
        In a shard of a crawl, which slots it owns.
    """

    def __init__(self, frontier: Frontier, own: OwnPages | None, stale: Callable[[], float | None]) -> None:
        self._frontier, self._own = frontier, own
        self._error = _RankError(frontier, stale)
        queue, name = frontier.queue, frontier.hosts.name
        self.slots = None if own is None else Owners(own.shard, lambda: queue.num_slots, name)
        self.ranks = self.survey()
        self._curve = _Curve(frontier, own)

    def survey(self, shown: Shown | None = None) -> Survey:
        """A survey of the present ranks."""
        frontier, pages, policy = self._frontier, self._frontier.pages, self._frontier.policy

        def ranks(first: int, end: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
            return policy.ranks(np.arange(first, end, dtype=np.uint32))

        def version() -> object:
            return pages.frames.end, frontier.ranked_up_to

        return Survey(pages, ranks, lambda: pages.num_pages, version, shown, self._own)

    def standing(self, now: float, hosts: int, seconds: float) -> Standing:
        """See :meth:`inlink.crawl.view.CrawlView.standing`."""
        frontier, own = self._frontier, self._own
        states = state_counts(frontier.pages) if own is None else own.states(seconds)
        slots = self.own_slots(seconds)
        count = len(frontier.queue)
        if slots is not None:
            count = int(frontier.queue.rows["count"][: len(slots)][slots].sum())
        share = self._share(seconds)
        return Standing(
            sum(states.values()),
            frontier.pages.tally.crawled,
            count,
            len(frontier.leases),
            states,
            share,
            [
                HostStanding(host.name, host.waiting, host.taken, host.due_in)
                for host in (frontier.hosts.state(slot, now) for slot in fullest(frontier, hosts, slots))
            ],
            len(frontier.plans) + len(frontier.lost),
            self._later(now, hosts),
            rank=None if self.ranks.result is None else self.ranks.result.total,
            rank_error=self._error.bound(),
        )

    def own_slots(self, seconds: float) -> BoolArray | None:
        """In a shard of a crawl, whether it owns each slot, bool[slots]; else None."""
        if self.slots is None:
            return None
        go_on(self.slots.learn(), seconds)
        return self.slots.own()

    def _later(self, now: float, count: int) -> list[HostStanding]:
        """The hosts of the planned pages that are due next, at most ``count``, the earliest first."""
        frontier = self._frontier
        dates: dict[int, dict[int, float]] = {}
        for due, page in frontier.later[:_NEXT]:
            # The other entries were planned again.
            if frontier.plans.get(page) == due:
                dates.setdefault(frontier.queue.slot(page), {})[page] = due
        first = {slot: min(planned.values()) for slot, planned in dates.items()}
        order = sorted(first, key=lambda slot: (first[slot], slot))[:count]
        return [
            HostStanding(state.name, len(dates[slot]), state.taken, max(first[slot] - now, 0.0))
            for slot in order
            for state in (frontier.hosts.state(slot, now),)
        ]

    def _share(self, seconds: float) -> float | None:
        if self._frontier.policy.algorithm is None:
            return None
        self.ranks.proceed(seconds)
        result = self.ranks.result
        if result is None or result.total <= 0 or not self._frontier.pages.tally.crawled:
            return None
        return result.crawled / result.total

    def harvest(self, seconds: float) -> Harvest:
        """See :meth:`inlink.crawl.view.CrawlView.harvest`."""
        if self._share(seconds) is None and self.ranks.result is None:
            ranked = self._frontier.policy.algorithm is not None and self._frontier.pages.tally.crawled > 0
            return Harvest([], self._frontier.pages.num_pages, "ranks" if ranked else None)
        assert self.ranks.result is not None
        whole = self._curve.proceed(seconds)
        total = self.ranks.result.total
        # With HITS, all ranks are 0 until the crawl has a link between two pages.
        points = [
            HarvestPoint(fetched, share / total, other / total)
            for fetched, share, other in (self._curve.points if total > 0 else ())
        ]
        known = self.ranks.result.pages if self._own is None else sum(self._own.states(seconds).values())
        return Harvest(points, known, None if whole else "curve", total)


class _RankError:
    """Bounds the sum of the differences between the ranks and exact PageRank (:mod:`inlink.reranking.live`).

    Ranks that came from other shards after the last ranking count for their pages, but not yet for the pages that these
    link to.
    """

    def __init__(self, frontier: Frontier, stale: Callable[[], float | None]) -> None:
        self._frontier, self._stale = frontier, stale
        self._ranked = self._end = 0
        self._moved: float | None = None

    def bound(self) -> float | None:
        """Return the bound, or None if it is not known."""
        frontier, adopted = self._frontier, self._frontier.adopted
        if adopted is None or frontier.policy.algorithm != "pagerank":
            return None
        own = adopted.meta.get("rank_error")
        # The header may hold anything.
        if not isinstance(own, float) or not 0 <= own < math.inf:
            return None
        if adopted.files["rank"].length != frontier.pages.num_pages:
            return None
        self._look(frontier.ranked_up_to)
        stale = None if self._moved is None else self._stale()
        if self._moved is None or stale is None:
            return None
        return own + (self._moved + stale) / (1 - frontier.settings.damping)

    def _look(self, ranked: int) -> None:
        """Add up the ranks that other shards sent after byte ``ranked`` of the log. A new page or link ends the sum."""
        frames = self._frontier.pages.frames
        if ranked != self._ranked:
            self._ranked = self._end = ranked
            self._moved = 0.0
        begin, self._end = self._end, frames.end
        if self._moved is None:
            return
        if self._end - begin > _MOST_NEWS or frames.of_kind(*_CHANGING, begin=begin):
            self._moved = None
            return
        for event in received(frames, begin):
            self._moved += float(np.abs(event.flows["amount"]).sum(dtype=np.float64))


class _Curve:
    """Sums of the ranks of the pages in the order of their first answers, and in the order of their discovery."""

    def __init__(self, frontier: Frontier, own: OwnPages | None) -> None:
        self._frontier, self._own = frontier, own
        self.points: list[tuple[int, float, float]] = []
        self._steps: Iterator[None] | None = None

    def proceed(self, seconds: float) -> bool:
        """Go on for some CPU time; return whether ``points`` is complete."""
        if self._steps is None:
            self._steps = self._pass()
        if not go_on(self._steps, seconds):
            return False
        self._steps = None
        return True

    def _pass(self) -> Iterator[None]:
        pages, policy = self._frontier.pages, self._frontier.policy
        rows, expected, fetched = pages.tally.rows, max(pages.tally.crawled, 1), 0
        sums, searched, in_order = np.zeros((3, POINTS)), 0, np.empty(0, np.int64)
        for first in range(0, rows, _ROWS):
            if first:
                yield
            crawled = np.flatnonzero(pages.visits[first + 1 : min(first + _ROWS, rows) + 1]) + first + 1
            # The crawled pages are among those that may be fetched, so these suffice.
            while len(in_order) < len(crawled) and searched < pages.num_pages:
                end = min(searched + _ROWS, pages.num_pages)
                _, may = fetchable(pages, searched, end)
                if self._own is not None:
                    may &= self._own.mask(searched, end)
                in_order, searched = np.concatenate([in_order, np.flatnonzero(may) + searched]), end
                yield
            first_known, in_order = in_order[: len(crawled)], in_order[len(crawled) :]
            order = np.arange(fetched, fetched + len(crawled))
            bins = np.minimum(order * POINTS // expected, POINTS - 1)
            sums[0] += np.bincount(bins, minlength=POINTS)
            sums[1] += np.bincount(bins, policy.ranks(pages.answered[crawled]), POINTS)
            sums[2] += np.bincount(
                bins[: len(first_known)], policy.ranks(first_known.astype(np.uint32)), POINTS
            )
            fetched += len(crawled)
        kept = sums.cumsum(axis=1)[:, np.flatnonzero(sums[0])]
        self.points = [(int(count), share, other) for count, share, other in kept.T.tolist()]


def fullest(frontier: Frontier, count: int, own: BoolArray | None = None) -> list[int]:
    """The slots with the most waiting pages, at most ``count``, fullest first.

    Only the first 524,288 slots in the order of discovery are searched, and only those that are ``own`` if it is given.
    """
    waiting = frontier.queue.rows["count"][: min(frontier.queue.num_slots, _HOSTS)].astype(np.int64)
    if own is not None:
        waiting[~own[: len(waiting)]] = 0
    if len(waiting) > count > 0:
        candidates = np.argpartition(waiting, len(waiting) - count)[len(waiting) - count :]
    else:
        candidates = np.arange(len(waiting))
    candidates = candidates[np.lexsort((candidates, -waiting[candidates]))][:count]
    return [slot for slot in candidates.tolist() if waiting[slot]]
