"""A desk for protocols that think in queues: one queue for each host, with limits of its own.

A queue holds the pages of a host, or with ``by="domain"`` of a registered domain. URLFrontier is such a protocol.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from inlink.base.arrays import UInt32Array
from inlink.crawl.arguments import argument
from inlink.crawl.journal import encoded_list
from inlink.crawl.leasing import Leasing
from inlink.crawl.links import MOST_CARRIED
from inlink.crawl.operator import exclude_waiting, slot_named
from inlink.errors import ParameterError, UnknownNodeError
from inlink.frontier.hosts import HostState
from inlink.protocol import Task
from inlink.store import format as kinds
from inlink.store.carried import encode_carried
from inlink.store.format import CRAWLED, LEASED
from inlink.store.life import OPEN
from inlink.urls.canonical import canonical, refusal
from inlink.urls.hosts import registered_domain

MOST_QUEUES = 1 << 32
"""Larger than any number of queues, and than any number of pages in a queue."""

DiscoveredUrl = tuple[str, str, float, bytes]
"""A discovered URL: the URL, the key of its queue or "", its score, and the data that its task gives back."""


class QueuedPage(NamedTuple):
    """A page.

    ``key`` names its queue. ``discovered`` is the Unix time at which the page became known. ``due`` is the Unix time at
    which it may be fetched; None if it will not be fetched. Its next task gives ``data`` back.
    """

    url: str
    key: str
    discovered: float
    due: float | None
    data: bytes


class QueueState(NamedTuple):
    """A queue: its host, the number of pages in it that wait for a date or a retry, and whether it holds any page."""

    host: HostState
    later: int
    holds: bool


class QueueDesk:
    """The queues of a crawl: what waits in them, and tasks from them."""

    def __init__(self, leasing: Leasing) -> None:
        self._leasing, self._refused = leasing, leasing.intake.refused
        self._journal, self._frontier = leasing.journal, leasing.frontier
        self._pages, self._gate = leasing.journal.pages, leasing.journal.gate

    def discover(self, urls: Sequence[DiscoveredUrl]) -> list[bool | None]:
        """Make URLs known, in one event.

        Parameters
        ----------
        urls : sequence of (str, str, float, bytes)
            Absolute URL; key, which is "" or the URL's host or registered domain; score; at most 65,536 bytes of data.

        Returns
        -------
        list of bool or None
            For each URL, in the order given: True if it was unknown, False if it was known, None if it is refused. A
            URL is refused if it is not valid, its key is of another host, or it has too much data.
        """
        journal, pages_of = self._journal, self._pages
        with self._gate:
            journal.tick()
            forms, places, rules = [], [], journal.url_rules
            outcomes: list[bool | None] = [None] * len(urls)
            for place, (url, key, _, data) in enumerate(urls):
                form = canonical(url, None, rules)
                if form is None or len(data) > MOST_CARRIED:
                    reason = (
                        (refusal(url) or "link is no valid URL") if form is None else "link carries too much"
                    )
                    self._refused[reason] = self._refused.get(reason, 0) + 1
                elif key and not is_key(key, form):
                    reason = "key is neither the URL's host nor its registered domain"
                    self._refused[reason] = self._refused.get(reason, 0) + 1
                else:
                    forms.append(form)
                    places.append(place)
            if not forms:
                return outcomes
            self._gate.changing = True
            pages, new, text = pages_of.table.number(forms)
            first = pages_of.num_pages - new
            fresh, where = np.unique(pages, return_index=True)
            where = where[fresh >= first]
            for place in places:
                outcomes[place] = False
            for k in where.tolist():
                outcomes[places[k]] = True
            if not new:
                self._gate.changing = False
                return outcomes
            pages, rows = pages[where], [urls[places[k]] for k in where.tolist()]
            scores = np.array([score for _, _, score, _ in rows], np.float32)
            carried = {page: row[3] for page, row in zip(pages.tolist(), rows, strict=True) if row[3]}
            count, payload = encoded_list(pages.copy(), scores)
            flags = kinds.HAS_SCORES | (kinds.HAS_CARRIED if carried else 0)
            payload += encode_carried(carried)
            journal.append(kinds.SEED, flags=flags, listed=count, payload=payload, new=new, urls=text)
            journal.admit(first, new, text)
            self._frontier.prioritise(pages, journal.now)
            return outcomes

    def replace_data(self, url: str, data: bytes) -> None:
        """Replace the data that the next task of a page gives back.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If the crawl does not know the URL.
        inlink.errors.ParameterError
            If ``data`` has more than 65,536 bytes.
        """
        if len(data) > MOST_CARRIED:
            raise ParameterError(f"`data` must have at most {MOST_CARRIED:,} bytes; got {len(data):,}")
        with self._gate:
            self._journal.tick()
            page = self._pages.survivor(self._journal.page_of(url))
            if (self._pages.carried(page) or b"") != data:
                self._journal.append(kinds.CARRY, page, payload=data)

    def next_in_queues(
        self,
        session: int,
        count: int,
        *,
        per_queue: int | None = None,
        queues: int | None = None,
        key: str | None = None,
        seconds: float | None = None,
        before: dict[int, int] | None = None,
    ) -> list[Task]:
        """Hand out at most ``count`` tasks, within limits on queues and on tasks from each queue.

        A lost page is handed out like any other page, and not alone, because many spiders may share the session.

        Parameters
        ----------
        session, count : int
        per_queue, queues : int or None
            Maximum number of tasks from one queue, and of queues; None is no limit.
        key : str or None
            Take tasks only from the queue of this host or domain. There is no task if the crawl does not know it.
        seconds : float or None
            Seconds after which the tasks are lost; None is the crawl's ``lease_seconds``.
        before : dict of int to int or None
            Number of tasks that earlier calls took, by queue. They count towards the limits. The call updates the dict.

        Raises
        ------
        inlink.errors.SessionError
            If the session has ended.
        inlink.errors.ParameterError
            If an argument is outside its range.
        """
        count = argument("count", count)
        if seconds is not None:
            seconds = argument("ahead", seconds)
        with self._gate:
            self._leasing.session(session)
            try:
                slot = None if key is None else slot_named(self._journal, key)
            except UnknownNodeError:
                return []
            portion = _Portion(self._leasing, per_queue or MOST_QUEUES, queues or MOST_QUEUES, slot, before)
            leases = self._leasing.hand_out(count, session, 0, False, take=portion.take, seconds=seconds)
            return [self._leasing.task(lease) for lease in leases]

    def queue(self, key: str) -> QueueState:
        """The state of the queue of a host or domain.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If the crawl does not know it.
        """
        with self._gate:
            slot, now = slot_named(self._journal, key), self._journal.tick()
            later = np.bincount(self._later(), minlength=slot + 1)[slot]
            state = self._frontier.hosts.state(slot, now)
            return QueueState(state, int(later), bool(later or state.waiting or state.taken))

    def queue_names(self, begin: int, count: int, *, empty: bool) -> tuple[list[str], int]:
        """Keys of up to ``count`` queues from ``begin`` on, in the order of discovery, and their total number.

        Parameters
        ----------
        begin, count : int
        empty : bool
            Include queues whose pages were all handed out or wait for a date, also in the total. A queue whose pages
            are all excluded does not count.
        """
        with self._gate:
            frontier = self._frontier
            rows = frontier.queue.rows[: frontier.queue.num_slots]
            holds = rows["count"] > 0
            if empty:
                holds |= rows["taken"] > 0
                holds[self._later()] = True
            slots = np.flatnonzero(holds)
            return [frontier.hosts.name(slot) for slot in slots[begin : begin + count].tolist()], len(slots)

    def _later(self) -> UInt32Array:
        """The slots of the pages that wait for a date or a retry, a slot for each page."""
        pages = [*self._frontier.plans, *self._frontier.lost.dates]
        return self._frontier.queue.slots_of(np.array(pages, np.uint32))

    def waits(self, url: str) -> bool:
        """Return whether a page waits in its queue, or for a date or a retry.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If the crawl does not know the URL.
        """
        with self._gate:
            frontier, page = self._frontier, self._pages.survivor(self._journal.page_of(url))
            return page in frontier.queue or page in frontier.plans or page in frontier.lost

    def leases_in(self, session: int, key: str) -> list[int]:
        """The leases of a session on pages of a queue.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If the crawl does not know the queue.
        """
        with self._gate:
            slot = slot_named(self._journal, key)
            return [out.number for out in self._frontier.leases.held_by(session) if out.slot == slot]

    def exclude(self, reason: str, older_than: float) -> int:
        """Exclude the waiting pages of all queues, as :meth:`inlink.Crawl.exclude_host` does for a host."""
        with self._gate:
            self._journal.tick()
            return exclude_waiting(self._journal, None, reason, older_than)

    def pages_of_queue(self, key: str) -> UInt32Array:
        """The pages of a queue, uint32[k], increasing.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If the crawl does not know it.
        """
        with self._gate:
            return self._frontier.hosts.pages_of(slot_named(self._journal, key))

    def key_of(self, url: str) -> str:
        """The key of a canonical URL's queue: its host, or with ``by="domain"`` its registered domain."""
        host = _host(url)
        return registered_domain(host) or host if self._frontier.queue.by_domain else host

    def urls_of(self, pages: UInt32Array) -> list[str]:
        """The canonical URLs of the pages with these numbers."""
        with self._gate:
            return self._pages.urls(pages)

    def rows_of(self, pages: Sequence[int]) -> list[QueuedPage]:
        """A :class:`QueuedPage` for each of the pages with these numbers."""
        with self._gate:
            now = self._journal.tick()
            return [self._row(page, now) for page in pages]

    def _row(self, page: int, now: float) -> QueuedPage:
        frontier, pages = self._frontier, self._pages
        discovered = float(pages.discovered(np.array([page], np.uint32))[0])
        if page in frontier.plans or page in frontier.lost:
            due = frontier.plans.get(page, frontier.lost.dates.get(page))
        elif page in frontier.never or int(pages.states[page]) not in (*OPEN, CRAWLED):
            due = None
        elif not pages.answers[page]:
            due = discovered
        else:
            due = now if page in frontier.queue or int(pages.states[page]) == LEASED else None
        url = pages.url(page)
        return QueuedPage(url, self.key_of(url), discovered, due, pages.carried(page) or b"")


class _Portion:
    """Takes pages out of the frontier for one call. If ``slot`` is given, only its pages are taken."""

    def __init__(
        self, leasing: Leasing, per_queue: int, queues: int, slot: int | None, before: dict[int, int] | None
    ) -> None:
        self._admission, self._frontier = leasing.admission, leasing.frontier
        self._per_queue, self._queues, self._slot = per_queue, queues, slot
        self._taken: dict[int, int] = {} if before is None else before
        self._kept: list[tuple[int, int]] = []

    def take(self, count: int, now: float) -> tuple[UInt32Array, UInt32Array]:
        """Take pages; return their numbers and slots, each uint32[≤ count]."""
        self._take_lost(count, now)
        if self._slot is not None:
            self._take_of(self._slot, count, now)
        else:
            self._take_of_all(count, now)
        taken = np.array(self._kept, np.uint32).reshape(-1, 2)
        return taken[:, 0].copy(), taken[:, 1].copy()

    def _fits(self, slot: int) -> bool:
        held = self._taken.get(slot)
        if held is None:
            return len(self._taken) < self._queues and self._slot in (None, slot)
        return held < self._per_queue

    def _keep(self, page: int, slot: int) -> None:
        self._kept.append((page, slot))
        self._taken[slot] = self._taken.get(slot, 0) + 1

    def _take_lost(self, count: int, now: float) -> None:
        lost, admission = self._frontier.lost, self._admission
        while len(self._kept) < count and (chosen := lost.take(self._fits, now)) is not None:
            if not admission.refuses(*chosen, now):
                self._keep(*chosen)

    def _take_of(self, slot: int, count: int, now: float) -> None:
        queue, admission = self._frontier.queue, self._admission
        while len(self._kept) < count and self._fits(slot) and queue.free_in(slot, now) == 0:
            best = queue.best(slot, 1).tolist()
            if not best:
                return
            queue.take_one(best[0], now)
            if not admission.refuses(best[0], slot, now):
                self._keep(best[0], slot)

    def _take_of_all(self, count: int, now: float) -> None:
        queue, surplus = self._frontier.queue, dict[int, int]()
        # A slot that has reached its limit rests until the call ends. So each take returns pages of other slots.
        resting = {
            slot: self._rest(slot, now) for slot, held in self._taken.items() if held >= self._per_queue
        }
        while len(self._kept) < count and len(self._taken) < self._queues:
            pages, slots = self._admission.take(count - len(self._kept), now)
            if not len(pages):
                break
            for page, slot in zip(pages.tolist(), slots.tolist(), strict=True):
                if self._fits(slot):
                    self._keep(page, slot)
                else:
                    surplus[page] = slot
                if slot not in resting and self._taken.get(slot) == self._per_queue:
                    resting[slot] = self._rest(slot, now)
        for slot, due in resting.items():
            queue.rows[slot]["due"] = due
            queue.settle(slot, now)
        for page, slot in surplus.items():
            queue.not_fetched(slot, now)
            self._frontier.wait_again(page, now)
        if len(self._taken) >= self._queues:
            for slot in list(self._taken):
                self._take_of(slot, count, now)

    def _rest(self, slot: int, now: float) -> float:
        """Stop taking pages from a slot; return the time at which the slot was due."""
        due = float(self._frontier.queue.rows[slot]["due"])
        self._frontier.queue.wait(slot, math.inf, now)
        return due


def is_key(key: str, form: str) -> bool:
    """Return whether a key names the host or the registered domain of a canonical URL."""
    host = _host(form)
    return key == host or key.lower() in (host, registered_domain(host))


def _host(form: str) -> str:
    """The host of a canonical URL."""
    place = form.split("/", 3)[2]
    return place.partition(":")[0] if place[0] != "[" else place.partition("]")[0] + "]"
