"""Which pages and hosts of a crawl a shard owns.

A shard also knows pages of other shards. They count at their owner, so that sums over all shards count nothing twice.
Owners are looked up a few milliseconds at a time.
"""

import time
from collections.abc import Callable, Iterator

import numpy as np

from inlink.base.arrays import AnyArray, BoolArray, Int64Array, UInt16Array, slices
from inlink.store.format import STATES
from inlink.store.pages import Pages
from inlink.urls.shards import Shard, owner_of

_BLOCK = 1 << 18
"""Number of pages that are counted between two looks at the clock."""

_NAMES = 1 << 10
"""Number of hosts that are looked up between two looks at the clock, in about 5 ms."""


def go_on(steps: Iterator[None], seconds: float) -> bool:
    """Take steps until ``seconds`` of CPU time have passed, at least one; return whether there are no more."""
    stop = time.thread_time() + seconds
    return not any(time.thread_time() > stop for _ in steps)


class Owners:
    """The shards that own the names of a growing list of hosts or domains.

    Parameters
    ----------
    shard : Shard
    count : callable
        The present length of the list.
    name : callable
        ``name(k)`` returns name k.
    """

    def __init__(self, shard: Shard, count: Callable[[], int], name: Callable[[int], str]) -> None:
        self._shard, self._count, self._name = shard, count, name
        # The number of each name's owner, 0 if it is not looked up yet. It has room for later names.
        self._room: UInt16Array = np.zeros(0, np.uint16)
        self._learnt = 0

    def _owners(self) -> UInt16Array:
        """The number of each name's owner, 0 if it is not looked up yet."""
        count, room = self._count(), len(self._room)
        if count > room:
            self._room = np.append(self._room, np.zeros(max(count, 2 * room) - room, np.uint16))
        return self._room[:count]

    def of(self, places: AnyArray) -> UInt16Array:
        """The numbers of the shards that own some names. Names that are not known yet are looked up."""
        owners = self._owners()
        # Nearly always, all owners are known.
        if not (own := owners[places]).all():
            for place in np.unique(places[own == 0]).tolist():
                owners[place] = owner_of(self._name(place), self._shard.count)
            own = owners[places]
        return own

    def learn(self) -> Iterator[None]:
        """Look up the names that are new since the last call, in steps."""
        while (begin := self._learnt) < (count := self._count()):
            self._learnt = min(begin + _NAMES, count)
            self.of(np.arange(begin, self._learnt))
            yield

    def own(self, places: AnyArray | slice = slice(None)) -> BoolArray:
        """Whether the shard owns each name. Names that are not looked up yet count as not owned."""
        own: BoolArray = self._owners()[places] == self._shard.number
        return own


class OwnPages:
    """Which pages of a crawl its shard owns, and their number by state.

    Attributes
    ----------
    shard : Shard
    hosts : Owners
        The hosts in the order of discovery.
    """

    def __init__(self, pages: Pages, shard: Shard) -> None:
        self._pages, self.shard = pages, shard
        self.hosts = Owners(shard, lambda: pages.tally.hosts, pages.table.host)
        self._steps: Iterator[None] | None = None
        self._counts: Int64Array = np.zeros(len(STATES), np.int64)
        self._counted_to = -1

    def mask(self, first: int, end: int) -> BoolArray:
        """Whether the shard owns pages first, …, end − 1. Pages of hosts that are not looked up yet do not count."""
        return self.hosts.own(self._pages.hosts[first:end])

    def of(self, pages: slice) -> UInt16Array:
        """The numbers of the shards that own some pages."""
        return self.hosts.of(self._pages.hosts[pages])

    def states(self, seconds: float) -> dict[str, int]:
        """The number of own pages in each state that occurs.

        The call counts for about ``seconds`` of CPU time. Until it has counted all pages, the last counts stay.
        """
        if self._steps is None and self._counted_to != self._pages.frames.end:
            self._steps = self._pass()
        if self._steps is not None and go_on(self._steps, seconds):
            self._steps = None
        return {name: count for name, count in zip(STATES, self._counts.tolist(), strict=True) if count}

    def _pass(self) -> Iterator[None]:
        pages, counts = self._pages, np.zeros(len(STATES), np.int64)
        end, counted_to = pages.num_pages, pages.frames.end
        yield from self.hosts.learn()
        for part in slices(end, _BLOCK):
            own = self.mask(part.start, part.stop)
            counts += np.bincount(pages.states[part][own], minlength=len(STATES))
            yield
        self._counts, self._counted_to = counts, counted_to
