"""The frontier: policy, queue, hosts and leases of a crawl, folded from its events.

It writes nothing. :class:`inlink.Crawl` appends events and gives them to :meth:`Frontier.fold`; ``inlink next``
and ``inlink why`` restore one from a folder that another process is writing, and look.
"""

import heapq
import logging
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import numpy as np

from inlink.base.arrays import Float32Array, UInt8Array, UInt32Array
from inlink.base.columns import most_pages, reserve
from inlink.base.folder import Folder
from inlink.errors import FolderError
from inlink.frontier.backoff import LONGEST_WAIT, Outcome, delay
from inlink.frontier.dates import due_dates, reloaded
from inlink.frontier.hosts import Hosts
from inlink.frontier.kernels.queue import keys
from inlink.frontier.leases import LeaseBook, Out
from inlink.frontier.lost import LostPages
from inlink.frontier.policies import Policy, policy_found
from inlink.frontier.queue import Queue
from inlink.frontier.sessions import SpiderSessions
from inlink.frontier.settings import Settings
from inlink.frontier.traps import FACTORS, line_codes
from inlink.reranking.kernels.push import LEAST_SCORE
from inlink.reranking.soundness import ranking_fault
from inlink.store.events import Events
from inlink.store.format import (
    CRAWLED,
    DISCOVERED,
    HINT,
    LEASED,
    LOST,
    PAUSE,
    RELEASE,
    RESUME,
    DateRecord,
    FailedRecord,
    LostRecord,
    ReleasedRecord,
    dtype_of,
    struct_of,
)
from inlink.store.kernels.fold import waiting as discovered_pages
from inlink.store.log import RANKS
from inlink.store.pages import Pages
from inlink.store.trust import trusted_pages

__all__ = ["Frontier"]

_log = logging.getLogger("inlink.crawl")
_PAGES = most_pages()
_MOST_REFUSED = 1000
"""Refused pages that :meth:`Frontier.order` reads past, about."""
_MOST_BUSY = 1000
"""Leases whose hosts :meth:`Frontier.order` looks at, beside the hosts that may be asked now or later."""


class Frontier:
    """The order in which pages are fetched.

    Parameters
    ----------
    pages : Pages
    settings : Settings
    policy : Policy class or instance, or None
        None is the one that the settings name.
    """

    def __init__(self, pages: Pages, settings: Settings, policy: type[Policy] | Policy | None = None):
        self.pages, self.settings = pages, settings
        found = policy_found(settings.policy) if policy is None else policy
        self._values = _values(settings)
        self.policy = found(pages, self._values) if isinstance(found, type) else found
        self.queue = Queue(
            pages.hosts, settings.politeness, newest=self.policy.newest, sharing=self.policy.sharing
        )
        self.hosts = Hosts(pages, self.queue)
        self.leases = LeaseBook()
        self.lost = LostPages(self.queue, self.leases)
        self.sessions = SpiderSessions()
        self.paused = False
        # the time of the last event that was restored; 0 if there was none
        self.last_event = 0.0
        # penalty codes
        self.traps: UInt8Array = reserve(np.uint8, _PAGES)
        # when pages are due that wait for a retry or a revisit
        self.plans: dict[int, float] = {}
        # pages that are never due again, unless something else happens to them
        self.never: set[int] = set()
        # a heap of the plans; entries of pages that were planned again since are skipped
        self._later: list[tuple[float, int]] = []
        # what was wrong with the ranking that was looked at last
        self.ranking_fault: str | None = None
        # the byte of the log up to which the adopted ranking goes
        self.ranked_up_to = 0
        # the place of the event that names the trusted pages, plus 1; 0 if there are none
        self.trusted_at = 0
        self.year = datetime.now(UTC).year
        self._take_trust()

    # -- restoring --------------------------------------------------------------------------------------------------

    def restore(self, now: float) -> None:
        """Fold all events of the log."""
        pages, queue = self.pages, self.queue
        self.hosts.take_in()
        with ThreadPoolExecutor(2) as threads:
            # the place in urls.txt is known of every 32nd page
            half = pages.num_pages >> 6 << 5
            trapping = [threads.submit(self.find_traps, 0, half)]
            trapping.append(threads.submit(self.find_traps, half, pages.num_pages))
            if not self.adopt(now, verify=True):
                self.policy.fold(self.events(0))
            for task in trapping:
                task.result()
        leased = self._restore_leases(now)
        self._count_taken(leased)
        self.hosts.restore(now)
        out = np.empty(pages.num_pages, np.uint32)
        waiting = out[: discovered_pages(pages.states, pages.errors, out)]
        failed = np.flatnonzero(pages.errors[: pages.num_pages])
        for page in failed[(pages.states[failed] == DISCOVERED) | (pages.states[failed] == CRAWLED)].tolist():
            row = int(pages.failures[pages.answers[page]])
            if row:
                (due,) = struct_of(FailedRecord).unpack_from(pages.frame(row - 1).payload)
                self.plan(page, due)
        queue.fill(waiting, self.keys(waiting), now)
        self._restore_lost(now)
        self.sessions.restore(pages, now)
        for place in pages.frames_of_kind(PAUSE, RESUME):
            self.paused = pages.frame(place).kind == PAUSE
        self.restore_dates(now)

    def restore_dates(self, now: float) -> None:
        """Let the pages wait that changed after their last visit, and hold those back that have a date from outside."""
        pages = self.pages
        for place in pages.frames_of_kind(HINT):
            hint = pages.frame(place)
            page = hint.page
            visit = pages.visit(page)
            (changed,) = struct_of(DateRecord).unpack(hint.payload)
            if visit is not None and visit.time < changed and pages.states[page] == CRAWLED:
                self.back(page, now)
        for page, since in reloaded(pages):
            if page not in self.lost:
                self.plan(page, since)
        for page, due in due_dates(pages):
            # A date that has passed did what it does.
            waits = page in self.queue or page in self.lost
            if due > now or not waits:
                self.hold_back(page, due, now)

    def _take_trust(self) -> None:
        """Give the policy the trusted pages."""
        if self.settings.trust is not None and self.policy.takes_trust:
            found = trusted_pages(self.pages)
            if found is not None:
                self.trusted_at = found.place + 1
                self.policy.trust_in(found.pages, found.weights)

    def events(self, begin: int) -> Events:
        """The events from a byte of the log on."""
        return Events(self.pages.log[begin : self.pages.events_end])

    def _restore_leases(self, now: float) -> list[tuple[int, int]]:
        """Put the leases that nothing has ended on the book; return the page and the slot of each current one.

        A lease ran out if its page does not count as leased, or was leased again since.
        """
        leases, found = self.pages.open_leases(), []
        self.leases.next_number, self.last_event = int(leases.following), float(leases.last_time)
        current = dict(zip(leases.pages.tolist(), leases.numbers.tolist(), strict=True))
        for row in np.lexsort((leases.numbers, leases.expires)).tolist():
            number, page, session = (
                int(column[row]) for column in (leases.numbers, leases.pages, leases.sessions)
            )
            slot = self.queue.slot(page)
            expires, given = float(leases.expires[row]), float(leases.given[row])
            self.leases.add(Out(number, page, slot, expires, int(leases.places[row]), session, given))
            if self.pages.states[page] == LEASED and current[page] == number:
                self.queue.rows[slot]["flying"] += 1
                found.append((page, slot))
                if self.pages.losses[page]:
                    self.lost.out_alone(session, page)
            else:
                self.leases.late(number)
        return found

    def _restore_lost(self, now: float) -> None:
        """Let the pages whose leases were lost wait apart from the others."""
        pages = self.pages
        again = np.flatnonzero(pages.losses[: pages.num_pages])
        states = pages.states[again]
        waiting = set(again[(states == DISCOVERED) | (states == CRAWLED)].tolist())
        if not waiting:
            return
        for page in waiting:
            self.queue.remove(page, now)
            self.forget_plan(page)
        due: dict[int, float] = {}
        for place in pages.frames_of_kind(LOST, RELEASE):
            frame = pages.frame(place)
            if frame.kind == LOST:
                for lost in np.frombuffer(frame.payload, dtype_of(LostRecord)):
                    due[int(lost["page"])] = float(lost["due"])
            else:
                for released in np.frombuffer(frame.payload, dtype_of(ReleasedRecord)):
                    due[int(released["page"])] = frame.time
        for page in waiting:
            self.lost.wait(page, due[page])

    def _count_taken(self, leased: list[tuple[int, int]]) -> None:
        answered = self.pages.answered[1 : self.pages.tally.rows + 1]
        # The others wait again. Those that wait for a retry count as taken until it is due.
        retried = (self.pages.errors[answered] > 0) & (self.pages.losses[answered] == 0)
        answered = answered[(self.pages.states[answered] != DISCOVERED) | retried]
        hosts = self.pages.hosts[answered]
        slots = self.queue.waiting.slot_of[hosts] if self.queue.by_domain else hosts
        again = [slot for page, slot in leased if not self.pages.answers[page]]
        self.hosts.spend(np.concatenate([slots, np.array(again, np.uint32)]).astype(np.int64))

    def set_settings(self, settings: Settings, now: float) -> None:
        """Let other settings hold; of politeness, all but ``by``. Plans of visits are the caller's to make."""
        before, self.settings = self.settings, settings
        self._values.update(_values(settings))
        if settings.politeness != before.politeness:
            self.hosts.set_politeness(settings.politeness, now)

    # -- folding ----------------------------------------------------------------------------------------------------

    def fold(self, place: int, frame: bytes) -> None:
        """Take in one event that was just appended."""
        raw = np.frombuffer(frame, np.uint8)
        self.pages.fold_frame(place, raw)
        self.policy.fold(Events(raw))

    def discovered(self, first: int, new: int, text: bytes) -> None:
        """Pages from ``first`` on are new; ``text`` has their URLs, a newline behind each."""
        self.hosts.take_in()
        line_codes(np.frombuffer(text, np.uint8), self.year, self.traps[first : first + new])

    def find_traps(self, first: int, end: int) -> None:
        """Penalty codes of the pages from ``first``, a multiple of 32, up to ``end``."""
        pages = self.pages
        while first < end:
            last = min(first + (1 << 17), end)
            begin = int(pages.marks[first >> 5])
            stop = pages.urls_end if last == pages.num_pages else int(pages.marks[last >> 5])
            line_codes(pages.text(begin, stop), self.year, self.traps[first:last])
            first = last

    def keys(self, pages: UInt32Array) -> Float32Array:
        """The keys of pages: their priorities times their trap penalties."""
        return keys(pages, self.policy.priority(pages), self.traps, FACTORS)

    def prioritise(self, pages: UInt32Array, now: float) -> None:
        """Give the waiting ones among some pages their present priorities."""
        self._place(pages, now, False)

    def plan(self, page: int, due: float) -> None:
        """Let a page wait until it is due."""
        self.plans[page] = due
        self.never.discard(page)
        heapq.heappush(self._later, (due, page))

    def forget_plan(self, page: int) -> None:
        """Forget when a page is due, if it has a date."""
        self.plans.pop(page, None)
        self.never.discard(page)

    def hold_back(self, page: int, due: float, now: float) -> None:
        """Let a page wait until it is due, though it may have been its turn before; infinity is never."""
        self.forget_plan(page)
        self.leave(page, now)
        if due < math.inf:
            self.plan(page, due)
        else:
            self.never.add(page)

    def leave(self, page: int, now: float) -> None:
        """Take a page out of the queue, and out of the pages that wait to be leased alone, if it is there."""
        if page not in self.queue and page not in self.lost:
            return
        self.lost.forget(page, now)
        if self.pages.answers[page]:
            # A page that was answered for counts as taken, unless it is in the queue.
            self.queue.withhold(page, now)
        else:
            self.queue.remove(page, now)

    def next_plans(self, count: int) -> list[tuple[float, int]]:
        """Dates and pages of about ``count`` plans, the next among them."""
        return [(due, page) for due, page in self._later[:count] if self.plans.get(page) == due]

    def back(self, page: int, now: float) -> None:
        """Let a page that counted as taken wait again."""
        self.queue.give_back(self.queue.slot(page), now)
        self._let_wait(page, now)

    def _let_wait(self, page: int, now: float) -> None:
        if self.pages.losses[page]:
            self.lost.wait(page, now)
            return
        self._place(np.array([page], np.uint32), now, True)

    def _place(self, pages: UInt32Array, now: float, all_of_them: bool) -> None:
        if self.lost:
            pages = pages[self.pages.losses[pages] == 0]
        self.queue.place(
            pages,
            self.policy.priority(pages),
            self.traps,
            self.pages.states,
            self.pages.errors,
            now,
            all_of_them=all_of_them,
        )

    # -- rankings ---------------------------------------------------------------------------------------------------

    def adopt(self, now: float, *, verify: bool = False) -> bool:
        """Adopt the published ranking if it is newer than the one in use and sound; return whether it was adopted.

        ``ranking_fault`` says what is wrong with one that is not sound; priorities stay as they are then. With
        ``verify``, its checksum is looked at too.
        """
        self.ranking_fault = None
        if self.policy.algorithm is None:
            return False
        try:
            ranks = Folder(self.pages.folder / RANKS, RANKS, 1)
        except FolderError:
            return False
        meta = ranks.header.meta
        covers = meta.get("covers")
        if (
            meta.get("algorithm") != self.policy.algorithm
            or bool(meta.get("use_scores", False)) != self.settings.use_scores
            or meta.get("trust", 0) != self.trusted_at
            or not isinstance(covers, int)
            or not self.ranked_up_to < covers <= self.pages.events_end
        ):
            return False
        try:
            values = ranks.array("rank")
            if verify:
                ranks.verify()
            self.ranking_fault = ranking_fault(
                values, meta, self.pages.num_pages, self._teleport(len(values))
            )
        except (FolderError, KeyError) as error:
            self.ranking_fault = str(error)
        if self.ranking_fault is not None:
            _log.warning(
                "%s: the ranking in %s/ is not used (%s); pages keep their present priorities until the next one",
                self.pages.folder,
                RANKS,
                self.ranking_fault,
            )
            return False
        self.ranked_up_to = covers
        self.policy.adopt(values, meta, self.events(self.ranked_up_to))
        self.queue.begin_rekeying()
        return True

    def renew(self) -> None:
        """Take over what the policy reads outside the log, if that is newer than what is in use."""
        if self.policy.renew(self.events):
            self.queue.begin_rekeying()

    def _teleport(self, count: int) -> float | None:
        """The sum of what the first pages teleport by; None if all pages count alike."""
        if self.trusted_at:
            found = trusted_pages(self.pages)
            return 0.0 if found is None else float(found.weights[found.pages < count].sum(dtype=np.float64))
        if not self.settings.use_scores:
            return None
        scores = self.pages.scores[:count]
        return float(scores[scores > 0].sum(dtype=np.float64)) + LEAST_SCORE * count

    def rekey_some(self, now: float) -> None:
        """Give the next waiting pages their new keys, for a millisecond or two."""
        if self.queue.rekeying:
            first, last, pages = self.queue.next_to_rekey()
            self.queue.rekey(first, last, self.keys(pages), now)

    def order(self, count: int, now: float) -> list[tuple[int, float, float]]:
        """The next pages, nothing taken: see :meth:`inlink.frontier.queue.Queue.order`.

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
        """Why the rules refuse a page; None if they allow it."""
        rules = self.settings.rules
        return rules.verdict(self.pages.url(page), int(self.pages.depths[page])) if rules else None

    # -- time -------------------------------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Put the pages into the queue that were to wait until ``now``."""
        while (due := self._next_plan()) is not None and due <= now:
            _, page = heapq.heappop(self._later)
            del self.plans[page]
            if self.pages.states[page] in (DISCOVERED, CRAWLED) and page not in self.queue:
                if self.pages.answers[page]:
                    self.back(page, now)
                else:
                    # It was never taken.
                    self._let_wait(page, now)

    def _next_plan(self) -> float | None:
        while self._later and self.plans.get(self._later[0][1]) != self._later[0][0]:
            # planned again since, or crawled
            heapq.heappop(self._later)
        return self._later[0][0] if self._later else None

    def landed(self, out: Out, outcome: Outcome | None, wait: float | None, now: float) -> bool:
        """A lease has ended, with what outcome, if any; returns whether its host is in another state now.

        ``wait`` is what the host asked for, in seconds.
        """
        slot, polite = out.slot, self.settings.politeness
        if self.lost:
            self.lost.ended(out.session, out.page)
        if outcome is not None and outcome.name == "ok" and not self.hosts.failures and out.current:
            self.queue.landed(slot, now)  # the common case, in one step
            return False
        row = self.queue.rows[slot]
        if out.current and row["flying"] > 0:
            row["flying"] -= 1
        changed = False
        if outcome is not None:
            other = self.leases.current(out.page)
            if other is not None:
                # Handed out again meanwhile: it is dealt with, though that lease may be answered for too.
                self.queue.landed(other.slot, now)
                self.leases.late(other.number)
                self.lost.ended(other.session, other.page)
            before = self.hosts.failures.get(slot, 0)
            failures = before + 1 if outcome.against_host else 0  # any other shows that it answers
            until = 0.0
            if outcome.host_waits:
                pause = delay(max(failures, 1), self.settings.retry_seconds, LONGEST_WAIT)
                until = now + (pause if wait is None else wait)
                if failures >= polite.park_after:
                    until = max(until, now + polite.park_seconds)
            changed = failures != before or until > 0
            if changed:
                self.hosts.failed(slot, failures)
                if until > 0:
                    self.hosts.wait(slot, until, now)
        self.queue.settle(slot, now)
        return changed

    def due_in(self, now: float, session: int = 0) -> float | None:
        """Seconds until a session may get more even if nobody answers; None if only answers can lead to more."""
        if self.lost.is_alone(session):
            return None if self.leases.held(session) else 0.0
        times = [self.queue.due_in(now)]
        if (due := self._next_plan()) is not None:
            times.append(max(due - now, 0.0))
        if self.lost:
            times.append(self.lost.due_in(session, now))
        return min((seconds for seconds in times if seconds is not None), default=None)


def _values(settings: Settings) -> dict[str, Any]:
    """The settings by name, as a policy gets them."""
    return {one.name: getattr(settings, one.name) for one in fields(settings)}
