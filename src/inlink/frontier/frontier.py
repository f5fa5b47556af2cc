"""The frontier: policy, queue, hosts and leases of a crawl, folded from its events.

It writes nothing. :class:`inlink.Crawl` appends events and gives them to :meth:`Frontier.fold`; ``inlink next``
and ``inlink why`` restore one from a folder that another process is writing, and look.
"""

import heapq
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from inlink.base.columns import most_pages, reserve
from inlink.base.folder import Folder
from inlink.errors import FolderError
from inlink.frontier.backoff import LONGEST_WAIT, Outcome, delay
from inlink.frontier.hosts import Hosts
from inlink.frontier.kernels.queue import keys
from inlink.frontier.leases import LeaseBook, Out
from inlink.frontier.policies import Policy, policy_named
from inlink.frontier.queue import Politeness, Queue
from inlink.frontier.rules import Rules
from inlink.frontier.traps import FACTORS, line_codes
from inlink.store.events import Events
from inlink.store.kernels import frames as kinds
from inlink.store.layout import CRAWLED, DISCOVERED, LEASED, MAKERS, ROWS
from inlink.store.pages import Pages

__all__ = ["RANKS", "Frontier", "Settings"]

U32 = npt.NDArray[np.uint32]
RANKS = "ranks"
_PAGES = most_pages()


@dataclass
class Settings:
    """What decides a crawl's order; kept in its folder, so that other processes see the order that the crawl sees."""

    policy: str = "host-diverse"
    use_scores: bool = False
    cross_domain_only: bool = False
    damping: float = 0.85
    lease_seconds: float = 600.0
    max_retries: int = 3
    retry_seconds: float = 60.0
    rerank_share: float | None = 0.1
    rerank_seconds: float | None = None
    politeness: Politeness = field(default_factory=Politeness)
    rules: Rules | None = None
    revisit: dict[str, Any] | None = None


class Frontier:
    """What comes next.

    Parameters
    ----------
    pages : Pages
    settings : Settings
    policy : str, Policy class or instance, or None
        None is the one that the settings name.
    """

    def __init__(self, pages: Pages, settings: Settings, policy: str | type[Policy] | Policy | None = None):
        self.pages, self.settings = pages, settings
        self.policy = policy_named(
            settings.policy if policy is None else policy, pages, {**asdict(settings), "policy": None}
        )
        self.queue = Queue(
            pages.hosts, settings.politeness, newest=self.policy.newest, sharing=self.policy.sharing
        )
        self.hosts = Hosts(pages, self.queue)
        self.leases = LeaseBook()
        self.traps: npt.NDArray[np.uint8] = reserve(np.uint8, _PAGES)  # penalty codes
        self.plans: dict[int, float] = {}  # when pages that wait for themselves are due: retries, revisits
        self._later: list[tuple[float, int]] = []  # a heap of them, and of some that were planned anew since
        self.ranked_up_to = 0  # the byte of the log up to which the adopted ranking goes
        self.year = datetime.now(UTC).year

    # -- restoring --------------------------------------------------------------------------------------------------

    def restore(self, now: float) -> None:
        """Fold all that the log holds."""
        pages, queue = self.pages, self.queue
        self.hosts.take_in()
        with ThreadPoolExecutor(2) as threads:
            half = pages.num_pages >> 6 << 5  # a page whose place in the text is marked
            trapping = [threads.submit(self.find_traps, 0, half)]
            trapping.append(threads.submit(self.find_traps, half, pages.num_pages))
            if not self.adopt(now):
                self.policy.fold(self.events(0))
            for one in trapping:
                one.result()
        leased = self._restore_leases(now)
        self._count_taken(leased)
        self.hosts.restore()
        out = np.empty(pages.num_pages, np.uint32)
        waiting = out[: kinds.waiting(pages.states, pages.errors, out)]
        failed = np.flatnonzero(pages.errors[: pages.num_pages])
        for page in failed[(pages.states[failed] == DISCOVERED) | (pages.states[failed] == CRAWLED)].tolist():
            row = int(pages.failures[pages.answers[page]])
            if row:
                self.plan(page, struct.unpack_from("<d", pages.frame(row - 1).payload)[0])
        queue.fill(waiting, self.keys(waiting), now)
        for place in pages.frames_of_kind(kinds.HINT):
            hint = pages.frame(place)
            page = hint.page
            visit = pages.visit(page)
            if (
                visit is not None
                and visit.time < struct.unpack_from("<d", hint.payload)[0]
                and pages.states[page] == CRAWLED
            ):
                self.back(page, now)

    def events(self, begin: int) -> Events:
        """The events from a byte of the log on."""
        pages = self.pages
        row = int(np.searchsorted(pages.maker_places[: int(pages.tally[MAKERS])], np.uint64(begin)))
        first = int(pages.makers[row]) if row < int(pages.tally[MAKERS]) else pages.num_pages
        return Events(pages.log[begin : pages.events_end], begin, first)

    def _restore_leases(self, now: float) -> list[tuple[int, int]]:
        """Leases that are out; returns (page, slot) of each."""
        pages, found = self.pages, []
        left = int(np.count_nonzero(pages.states[: pages.num_pages] == LEASED))
        places = pages.frames_of_kind(kinds.LEASE)
        if places:
            raw = pages.frame(places[-1]).payload
            first, _ = struct.unpack_from("<Qd", raw)
            self.leases.next_number = first + (len(raw) - 16) // 4
        seen: set[int] = set()
        out = []
        for place in reversed(places):
            if left <= 0:
                break
            raw = pages.frame(place).payload
            first, expires = struct.unpack_from("<Qd", raw)
            for k, page in enumerate(np.frombuffer(raw, "<u4", offset=16).tolist()):
                if pages.states[page] == LEASED and page not in seen:
                    seen.add(page)
                    left -= 1
                    out.append((expires, first + k, page, place))
        for expires, number, page, place in sorted(out):
            slot = self.queue.slot(page)
            self.leases.add(number, page, slot, expires, place)
            self.queue.rows[slot]["flying"] += 1
            found.append((page, slot))
        return found

    def _count_taken(self, leased: list[tuple[int, int]]) -> None:
        rows = int(self.pages.tally[ROWS])
        answered = self.pages.answered[1 : rows + 1]
        answered = answered[self.pages.states[answered] != DISCOVERED]  # those wait again
        hosts = self.pages.hosts[answered]
        slots = self.queue.waiting.slot_of[hosts] if self.queue.by_domain else hosts
        again = [slot for page, slot in leased if not self.pages.answers[page]]
        self.hosts.spend(np.concatenate([slots, np.array(again, np.uint32)]).astype(np.int64))

    # -- folding ----------------------------------------------------------------------------------------------------

    def fold(self, place: int, frame: bytes, first: int) -> None:
        """Take in one event that was just appended; ``first`` is how many pages were known before it."""
        raw = np.frombuffer(frame, np.uint8)
        self.pages.fold_frame(place, raw)
        self.policy.fold(Events(raw, place, first))

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

    def keys(self, pages: U32) -> npt.NDArray[np.float32]:
        """The priorities of pages, trap penalties in them."""
        return keys(pages, self.policy.priority(pages), self.traps, FACTORS)

    def prioritise(self, pages: U32, now: float) -> None:
        """Put those of some pages that wait to be crawled where their priorities belong."""
        self._place(pages, now, False)

    def plan(self, page: int, due: float) -> None:
        """Let a page wait for itself until it is due."""
        self.plans[page] = due
        heapq.heappush(self._later, (due, page))

    def back(self, page: int, now: float) -> None:
        """A page that counted as taken waits again."""
        self.queue.give_back(self.queue.slot(page), now)
        self._place(np.array([page], np.uint32), now, True)

    def _place(self, pages: U32, now: float, all_of_them: bool) -> None:
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

    def adopt(self, now: float) -> bool:
        """Take over what the ranking process has published, if it is newer than what is in use."""
        if self.policy.algorithm is None:
            return False
        try:
            ranks = Folder(self.pages.folder / RANKS, RANKS, 1)
        except FolderError:
            return False
        meta = ranks.header.meta
        fits = (
            meta.get("algorithm") == self.policy.algorithm
            and self.ranked_up_to < meta.get("covers", 0) <= self.pages.events_end
            and bool(meta.get("use_scores", False)) == self.settings.use_scores
        )
        if not fits:
            return False
        self.ranked_up_to = meta["covers"]
        self.policy.adopt(ranks.array("rank"), meta, self.events(self.ranked_up_to))
        self.queue.begin_rekeying()
        return True

    def rekey_some(self, now: float) -> None:
        """Go on giving waiting pages their new keys: a millisecond or two of it."""
        if self.queue.rekeying:
            first, last, pages = self.queue.next_to_rekey()
            self.queue.rekey(first, last, self.keys(pages), now)

    # -- time -------------------------------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """What has become due by ``now``: leases that ran out, pages to be tried again."""
        for out in self.leases.run_out(now):
            page = out.page
            if self.pages.states[page] == LEASED:
                crawled = self.pages.visit_place(page) is not None
                self.pages.states[page] = CRAWLED if crawled else DISCOVERED
                self.queue.landed(out.slot, now)
                self.back(page, now)
        while (due := self._next_plan()) is not None and due <= now:
            _, page = heapq.heappop(self._later)
            del self.plans[page]
            if self.pages.states[page] in (DISCOVERED, CRAWLED) and page not in self.queue:
                self.back(page, now)

    def _next_plan(self) -> float | None:
        while self._later and self.plans.get(self._later[0][1]) != self._later[0][0]:
            heapq.heappop(self._later)  # planned anew since, or crawled
        return self._later[0][0] if self._later else None

    def landed(self, out: Out, outcome: Outcome | None, wait: float | None, now: float) -> bool:
        """A lease has ended, with what outcome, if any; returns whether its host is in another state now.

        ``wait`` is what the host asked for, in seconds.
        """
        slot, polite = out.slot, self.settings.politeness
        if outcome is not None and outcome.name == "ok" and not self.hosts.failures and out.current:
            self.queue.landed(slot, now)  # the common case, in one step
            return False
        row = self.queue.rows[slot]
        if out.current and row["flying"] > 0:
            row["flying"] -= 1
        changed = False
        if outcome is not None:
            other = self.leases.current(out.page)
            if (
                other is not None
            ):  # handed out again meanwhile: dealt with, though that lease may be answered too
                self.queue.landed(other[1].slot, now)
                self.leases.late(other[0])
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
                row["due"] = max(float(row["due"]), until)
        self.queue.settle(slot, now)
        return changed

    def due_in(self, now: float) -> float | None:
        """Seconds until something may be due; None if nothing waits and nothing is out."""
        times = [self.queue.due_in(now)]
        if (due := self._next_plan()) is not None:
            times.append(max(due - now, 0.0))
        end = self.leases.next_end()
        if end is not None:
            times.append(max(end - now, 0.0))
        found = [one for one in times if one is not None]
        return min(found) if found else None
