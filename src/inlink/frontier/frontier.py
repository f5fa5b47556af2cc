"""The frontier: policy, queue, hosts and leases of a crawl, folded from its events.

It writes no files. :class:`inlink.Crawl` appends events and passes them to :meth:`Frontier.fold`. At the opening of a
crawl, :mod:`inlink.frontier.restoring` restores the frontier from the log. ``inlink next`` and ``inlink why`` do the
same in a folder that another process may be writing, and read it.
"""

import heapq
import math
from datetime import UTC, datetime
from itertools import islice

import numpy as np

from inlink.base.arrays import Float32Array, UInt8Array, UInt32Array
from inlink.base.columns import most_pages, reserve
from inlink.base.folder import Folder, Header
from inlink.errors import FolderError
from inlink.factors.copies import Copies
from inlink.factors.host import HostFactor
from inlink.factors.table import HOST_FACTORS, factors_given, host_factors
from inlink.factors.trust import trusted_pages
from inlink.frontier.backoff import LONGEST_WAIT, Outcome, delay
from inlink.frontier.byvalue import PageValues
from inlink.frontier.hosts import CrawlHosts
from inlink.frontier.kernels.queue import keys
from inlink.frontier.leases import LeaseBook, Out
from inlink.frontier.lost import LostPages
from inlink.frontier.policies import Policy, policy_found
from inlink.frontier.policy import checked_priorities
from inlink.frontier.queue import Queue
from inlink.frontier.revisit import ByValue, revisit_rules
from inlink.frontier.sessions import SpiderSessions
from inlink.frontier.settings import Settings
from inlink.frontier.traps import FACTORS, line_codes
from inlink.store.events import Events
from inlink.store.format import CRAWLED, LEASED
from inlink.store.kernels.fold import fold
from inlink.store.life import WAITING
from inlink.store.log import RANKS
from inlink.store.pages import Pages
from inlink.store.prior import kept_places

_PAGES = most_pages()
_MOST_REFUSED = 1000
"""Approximate maximum number of refused pages that :meth:`Frontier.order` skips."""
_ENTERING = 512
"""Maximum number of plans that come due in one call of :meth:`Frontier.advance`."""
_CHANGED = 4096
"""Maximum number of changed plans that are left out of the heap at a time."""
_MOST_BUSY = 1000
"""Maximum number of leases whose hosts :meth:`Frontier.order` includes, besides the hosts in its heaps."""


class Frontier:
    """The order in which pages are fetched.

    Parameters
    ----------
    pages : Pages
    settings : Settings
    policy : Policy class or instance, or None
        None is the policy that the settings name.
    """

    def __init__(self, pages: Pages, settings: Settings, policy: type[Policy] | Policy | None = None):
        self.pages, self.settings = pages, settings
        chosen = policy_found(settings.policy) if policy is None else policy
        # A policy reads them when it needs them.
        self._values = dict(vars(settings))
        self.copies = Copies(pages) if settings.sink_duplicates else None
        self.revisit_rules = revisit_rules(tuple(settings.revisit_rules))
        self.values = _values_of(pages, settings)
        self.policy = chosen(pages, self._values) if isinstance(chosen, type) else chosen
        # Whether the policy is inlink's. The priorities of a user's own policy are checked.
        self.is_ours = type(self.policy).__module__.startswith("inlink.")
        self.queue = Queue(
            pages.hosts,
            settings.politeness,
            newest=self.policy.newest,
            sharing=self.policy.sharing,
            first_leases=self.policy.first_leases,
        )
        self.hosts = CrawlHosts(pages, self.queue)
        self.leases = LeaseBook()
        self.lost = LostPages(self.queue, self.leases)
        self.sessions = SpiderSessions()
        self.paused = False
        # The time of the last restored event; 0 if there was none.
        self.last_event = 0.0
        # The penalty code of each page.
        self.traps: UInt8Array = reserve(np.uint8, _PAGES)
        # Due times of the pages that wait for a retry or a revisit.
        self.plans: dict[int, float] = {}
        # Pages that are never due again, until another event changes that.
        self.never: set[int] = set()
        # Pages that wait for a date that was set from outside. A link to them does not end that.
        self._held: set[int] = set()
        # Whether a crawled page ever waited in the queue.
        self._revisits = False
        # A heap of the plans: due times and pages. Entries of pages that were planned again later are skipped.
        self.later: list[tuple[float, int]] = []
        # The fault of the last ranking that was checked; None if it was sound.
        self.ranking_fault: str | None = None
        # The adopted ranking covers the log up to this byte.
        self.ranked_up_to = 0
        # The header of the adopted ranking's folder; None if no ranking was adopted.
        self.adopted: Header | None = None
        # The place of the event that names the trusted pages, plus 1; 0 if there are none.
        self.trusted_at = 0
        # Factors whose shares each ranking brings.
        self.host_factors: tuple[HostFactor, ...] = ()
        self.year = datetime.now(UTC).year
        self._take_lists()

    def _take_lists(self) -> None:
        """Give the policy the trusted pages, the hosts known as spam, and the places of hosts in an earlier ranking."""
        if self.settings.prior is not None and self.policy.takes_prior:
            self.policy.prior_in(kept_places(self.pages.folder))
        trusted = None
        if self.settings.trust is not None and self.policy.takes_trust:
            trusted = trusted_pages(self.pages)
            if trusted is not None:
                self.trusted_at = trusted.place + 1
                self.policy.trust_in(trusted.pages, trusted.weights)
        taken = {kind.setting for kind in HOST_FACTORS if getattr(self.policy, kind.applies)}
        self.host_factors = host_factors(
            self.pages, taken.intersection(factors_given(self.settings)), trusted
        )
        for factor in self.host_factors:
            self.policy.factor_in(factor)

    def events(self, begin: int, end: int | None = None) -> Events:
        """The events from byte ``begin`` of the log up to byte ``end``, or to the last event."""
        stop = self.pages.frames.end if end is None else end
        return Events(self.pages.frames.between(begin, stop)[begin:stop])

    def set_settings(self, settings: Settings, now: float) -> None:
        """Apply new settings. ``politeness.by`` must not change. The caller must plan revisits again."""
        before, self.settings = self.settings, settings
        self._values.update(vars(settings))
        if (settings.revisit, settings.revisit_rules) != (before.revisit, before.revisit_rules):
            self.revisit_rules = revisit_rules(tuple(settings.revisit_rules))
            ranks = None if self.values is None else self.values.ranks
            self.values = _values_of(self.pages, settings)
            if self.values is not None:
                self.values.restore(None, self.published_ranks() if ranks is None else ranks)
        if settings.politeness != before.politeness:
            self.hosts.set_politeness(settings.politeness, now)

    # -- folding ----------------------------------------------------------------------------------------------------

    def fold(self, place: int, frame: bytes) -> None:
        """Take in an event that was just appended."""
        raw = np.frombuffer(frame, np.uint8)
        fold(self.pages.addresses, raw)
        self.pages.frames.end = place + raw.nbytes
        self.policy.fold(Events(raw))
        if self.copies is not None and self.copies.take_in(frame):
            self.queue.begin_rekeying()
        if self.values is not None:
            self.values.fold(raw)

    def discovered(self, first: int, new: int, text: bytes) -> None:
        """Pages from ``first`` on are new; ``text`` has their URLs, a newline behind each."""
        if self.pages.tally.hosts > self.hosts.known:
            self.hosts.take_in()
        line_codes(np.frombuffer(text, np.uint8), self.year, self.traps[first : first + new])

    def keys(self, pages: UInt32Array) -> Float32Array:
        """The keys of pages: their priorities times their trap penalties."""
        return keys(pages, self._priorities(pages), self.traps, FACTORS)

    def _priorities(self, pages: UInt32Array) -> Float32Array:
        """The priorities of pages by the policy, lowered beside near-duplicates."""
        policy = self.policy
        priorities = policy.priority(pages) if self.is_ours else checked_priorities(policy, pages)
        return priorities if self.copies is None else priorities * self.copies.factors(pages)

    def prioritise(self, pages: UInt32Array, now: float) -> None:
        """Give the waiting pages among ``pages`` their present priorities."""
        if self.lost.dates:
            pages = pages[self.pages.losses[pages] == 0]
        if self._held:
            pages = np.array([page for page in pages.tolist() if page not in self._held], np.uint32)
        if self._revisits:
            crawled = pages[self.pages.states[pages] == CRAWLED]
            crawled = crawled[self.queue.contain(crawled)]
            if len(crawled):
                self._place(crawled, now)
        of = self.pages
        policy = self.policy
        usual = self.is_ours and self.copies is None
        # As in `_place`. Most work of a crawl passes here, and a call takes longer.
        priorities = policy.priority(pages) if usual else self._priorities(pages)
        self.queue.place(pages, priorities, self.traps, of.states, of.errors, now)

    def plan(self, page: int, due: float) -> None:
        """Let a page wait until it is due."""
        self.plans[page] = due
        self.never.discard(page)
        heapq.heappush(self.later, (due, page))

    def forget_plan(self, page: int) -> None:
        """Forget when a page is due, if it has a date."""
        if self.values is not None:
            self.values.due[page] = 0
        self.forget_wait(page)

    def forget_wait(self, page: int) -> None:
        """Forget when a page is due, but keep its date by value. A lease that is given back makes it wait for that."""
        self.plans.pop(page, None)
        self.never.discard(page)
        self._held.discard(page)

    def sort_plans(self) -> None:
        """Make the heap of the plans again, after many of them were changed."""
        self.later = [(due, page) for page, due in self.plans.items()]
        heapq.heapify(self.later)

    def hold_back(self, page: int, due: float, now: float) -> None:
        """Let a page wait until ``due``, even if its turn would come sooner. Infinity is never."""
        self.forget_plan(page)
        self.leave(page, now)
        self._held.add(page)
        if due < math.inf:
            self.plan(page, due)
        else:
            self.never.add(page)

    def leave(self, page: int, now: float) -> None:
        """Remove a page from the queue and from the lost pages, if it waits there."""
        if page not in self.queue and page not in self.lost:
            return
        self.lost.forget(page, now)
        if self.pages.answers[page]:
            # A page with an answer counts as taken, unless it is in the queue.
            self.queue.withhold(page, now)
        else:
            self.queue.remove(page, now)

    def is_taken(self, page: int) -> bool:
        """Return whether a page counts as taken from its host.

        It does if it is leased, or if it was answered and does not wait, or waits for a date.
        """
        if self.pages.states[page] == LEASED:
            return True
        return bool(self.pages.answers[page]) and page not in self.queue and page not in self.lost

    def count_answered(self, page: int, now: float) -> None:
        """Count a page as taken, because an answer for it came. It does not wait any more."""
        if not self.is_taken(page):
            self.lost.forget(page, now)
            self.queue.withhold(page, now)
        self.forget_plan(page)

    def end_lease(self, page: int, now: float) -> None:
        """End the current lease of a page that was answered without it, or is leased again. It may be answered late."""
        out = self.leases.current(page)
        if out is not None:
            self.queue.end_fetch(out.slot, now)
            self.leases.late(out.number)
            self.lost.ended(out.session, page)

    def count_turns(self, slots: UInt32Array, now: float) -> None:
        """Count a turn of each slot whose page is leased, in the order of the leases."""
        self.queue.count_turns(slots)
        for slot in set(slots.tolist()):
            self.queue.settle(slot, now)

    def wait_again(self, page: int, now: float) -> None:
        """Let a page that counted as taken wait again: until its date by value, if the threshold was renewed."""
        if self.values is not None and self.values.due[page] > now and not self.pages.losses[page]:
            self.plan(page, float(self.values.due[page]))
            return
        self.queue.give_back(self.queue.slot(page), now)
        if self.pages.losses[page]:
            self.lost.wait(page, now)
        else:
            self._enter(np.array([page], np.uint32), now)

    def _enter(self, pages: UInt32Array, now: float) -> None:
        """Put pages into the queue."""
        self._revisits = self._revisits or bool((self.pages.states[pages] == CRAWLED).any())
        self._place(pages, now)

    def _place(self, pages: UInt32Array, now: float, *, again: bool = True) -> None:
        """Put pages into the queue, or change their keys there; without ``again``, only pages without an answer."""
        pages_of = self.pages
        self.queue.place(
            pages,
            self._priorities(pages),
            self.traps,
            pages_of.states,
            pages_of.errors,
            now,
            all_of_them=again,
        )

    # -- rankings ---------------------------------------------------------------------------------------------------

    def published_ranks(self) -> Float32Array | None:
        """The values of the adopted ranking, mapped from its file; None if no ranking was adopted."""
        ranks = self.published()
        try:
            return None if ranks is None else ranks.array("rank")
        except (FolderError, KeyError):
            return None

    def published(self) -> Folder | None:
        """The folder of the adopted ranking; None if no ranking was adopted, or it was replaced since."""
        if self.adopted is None:
            return None
        try:
            ranks = Folder(self.pages.folder / RANKS, RANKS, 1)
        except FolderError:
            return None
        return ranks if ranks.header.uuid == self.adopted.uuid else None

    def renew(self) -> None:
        """Let the policy load a newer state from outside the log. If it did, all waiting pages get new keys."""
        if self.policy.renew(self.events):
            self.queue.begin_rekeying()

    def rekey_some(self, now: float) -> None:
        """Give some of the waiting pages their new keys, which changed. This takes a few milliseconds."""
        self.queue.rekey(self.keys(self.queue.next_to_rekey()), now)

    def order(self, count: int, now: float) -> list[tuple[int, float, float]]:
        """The next pages, without taking them: see :meth:`inlink.frontier.queue.Queue.order`.

        Pages that the rules refuse are left out. If thousands of them come first, fewer pages than asked for are
        returned.
        """
        busy = {lease.slot for lease in islice(self.leases.all_current(), _MOST_BUSY)}
        wanted = count
        while True:
            rows = self.queue.order(wanted, now, busy)
            kept = [row for row in rows if self.refused(row[0]) is None]
            if len(kept) >= count or len(rows) < wanted or wanted >= _MOST_REFUSED:
                return kept[:count]
            wanted *= 4

    def refused(self, page: int) -> str | None:
        """The reason why the rules refuse a page; None if they allow it."""
        rules = self.settings.rules
        return rules.verdict(self.pages.url(page), int(self.pages.depths[page])) if rules else None

    # -- time -------------------------------------------------------------------------------------------------------

    def advance(self, now: float) -> bool:
        """Put pages into the queue whose waiting time has ended by ``now``; return whether there are more of them.

        A call takes some milliseconds at most: it puts in :data:`_ENTERING` pages, those that were due first.
        """
        pages, entering, left = self.pages, list[int](), _ENTERING
        while left and self.later and self.later[0][0] <= now:
            left -= 1
            due, page = heapq.heappop(self.later)
            # The page was planned again, or crawled.
            if self.plans.get(page) != due:
                continue
            del self.plans[page]
            self._held.discard(page)
            if pages.states[page] in WAITING and page not in self.queue:
                # A page without an answer was never taken, so it gives no budget back.
                if pages.answers[page]:
                    self.queue.give_back(self.queue.slot(page), now)
                if pages.losses[page]:
                    self.lost.wait(page, now)
                else:
                    entering.append(page)
        if entering:
            self._enter(np.array(entering, np.uint32), now)
        return not left

    def note_outcome(self, out: Out, outcome: Outcome | None, wait: float | None, now: float) -> bool:
        """Take in the end of a lease and its outcome, if any; return whether the state of its host has changed.

        ``wait`` is the wait in seconds that the host asked for.
        """
        slot, polite = out.slot, self.settings.politeness
        if self.lost.alone:
            self.lost.ended(out.session, out.page)
        # The common case takes one step.
        hosts = self.hosts
        if (
            outcome is not None
            and outcome.name == "ok"
            and not (hosts.failures or hosts.busy)
            and out.current
        ):
            self.queue.end_fetch(slot, now)
            return False
        row = self.queue.rows[slot]
        if out.current and row["flying"] > 0:
            row["flying"] -= 1
        changed = False
        if outcome is not None:
            before, was_busy = hosts.failures.get(slot, 0), slot in hosts.busy
            # Requests that were under way when the host became busy tell nothing more.
            still_busy = outcome.throttles and was_busy and out.given >= hosts.busy[slot]
            # Any outcome that does not count against the host shows that it answers.
            failures = before + 1 if outcome.against_host else 0
            until = 0.0
            if wait is not None or outcome.host_waits or still_busy:
                pause = delay(max(failures, 1), self.settings.retry_seconds, LONGEST_WAIT)
                until = now + (pause if wait is None else wait)
                if failures >= polite.park_after:
                    until = max(until, now + polite.park_seconds)
            changed = failures != before or until > 0 or outcome.throttles != was_busy
            if changed:
                hosts.failed(slot, failures, now if outcome.throttles else None)
                if until > 0:
                    hosts.wait(slot, until, now)
        self.queue.settle(slot, now)
        return changed

    def due_in(self, now: float, session: int = 0) -> float | None:
        """Seconds until a session may get more tasks even without any answer; None if only answers lead to more."""
        if self.lost.is_alone(session):
            return None if self.leases.held(session) else 0.0
        times = [self.queue.due_in(now)]
        # After thousands of changed plans, the time may be too early.
        for _ in range(_CHANGED):
            if not self.later or self.plans.get(self.later[0][1]) == self.later[0][0]:
                break
            heapq.heappop(self.later)
        if self.later:
            times.append(max(self.later[0][0] - now, 0.0))
        if self.lost.dates:
            times.append(self.lost.due_in(session, now))
        return min((seconds for seconds in times if seconds is not None), default=None)


def _values_of(pages: Pages, settings: Settings) -> PageValues | None:
    """The values of pages, if revisits are by value."""
    if not isinstance(settings.revisit, ByValue):
        return None
    return PageValues(pages, settings.revisit, tuple(settings.revisit_rules))
