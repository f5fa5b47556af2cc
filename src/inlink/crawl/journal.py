"""The journal of a crawl. Each change is an event, appended to the log and then applied to pages, policy and queue."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from inlink.base.arrays import Float32Array, UInt32Array, slices
from inlink.crawl.arguments import LATEST, moment
from inlink.crawl.gate import Gate
from inlink.crawl.questions.source import known_page
from inlink.errors import ParameterError
from inlink.frontier.backoff import Outcome
from inlink.frontier.frontier import Frontier
from inlink.frontier.leases import Lease, Out, lease_of
from inlink.frontier.owners import OwnPages
from inlink.frontier.rules import OTHER_SHARD, Rules, host_of
from inlink.protocol import Link
from inlink.store import format as kinds
from inlink.store.carried import encode_carried
from inlink.store.format import DISCOVERED, LEASED, NO_PAGE, ExcludedRecord, LeaseRecord, struct_of
from inlink.store.kernels.frames import encode_links
from inlink.store.log import Log
from inlink.urls.canonical import canonical
from inlink.urls.shards import Shard

LONGEST_REASON = 500
"""Maximum number of bytes of an exclusion's reason. The rest is cut off."""


MOST_EXCLUDED = 1 << 18
"""Maximum number of pages that one event excludes."""


Answered = Lease | int | str
"""The target of an answer: a lease, the number of a lease, or a page's URL."""


def number_of(answered: Answered) -> int:
    """Return the number of a lease.

    Raises
    ------
    inlink.errors.ParameterError
        If ``answered`` is neither a lease nor the number of a lease.
    """
    number = answered.number if isinstance(answered, Lease) else answered
    if isinstance(number, bool) or not isinstance(number, int):
        raise ParameterError(
            f"a page is named by its lease, its lease's number or its URL; got {answered!r:.200}"
        )
    return number


def encoded_list(pages: UInt32Array, scores: Float32Array) -> tuple[int, bytes]:
    """Return the number of distinct pages, and the pages and scores in a frame's encoding; sort both in place."""
    out = np.empty(5 * len(pages) + 4 * len(scores), np.uint8)
    count, size = encode_links(pages, scores, out)
    return int(count), out[: int(size)].tobytes()


class Journal:
    """Writes a crawl's events.

    Parameters
    ----------
    log : Log
    frontier : Frontier
    gate : Gate
        Its ``changing`` is set when a change begins: by :meth:`append`, and by callers that number pages or end leases
        before they append the event.
    clock : callable
        Unix time; a value below an earlier one is ignored.

    Attributes
    ----------
    now : float
        The time of the next event.
    url_rules : UrlRules or None
    gathers : bool
        Whether new pages of other shards are gathered: see :meth:`gather`.
    visits, errors : int
        Number of visits and of failures that were written since the crawl was opened.
    """

    def __init__(self, log: Log, frontier: Frontier, gate: Gate, clock: Callable[[], float]) -> None:
        self.log, self.frontier, self.pages, self.gate = log, frontier, frontier.pages, gate
        self.clock, self.url_rules = clock, frontier.settings.url_rules
        self.now = self.pages.last_time()
        self.visits = self.errors = 0
        # In a shard, pages from this number on may be those of other shards, and are not excluded yet.
        self._judged, self.gathers = self.pages.num_pages, False
        # For each canonical page, the pages that name it and are not merged into another page.
        self._naming: dict[int, set[int]] = {}
        for page, target in self.pages.canonicals.items():
            if page not in self.pages.merged:
                self._naming.setdefault(target, set()).add(page)

    @cached_property
    def owners(self) -> OwnPages:
        """The owner of each page, in a shard of a crawl."""
        return OwnPages(self.pages, (self.rules and self.rules.part) or Shard(1, 1))

    @property
    def rules(self) -> Rules | None:
        """The rules for URLs that may be fetched."""
        return self.frontier.settings.rules

    def tick(self) -> float:
        """Read the clock; return the time of the next event, which never goes back."""
        now = self.clock()
        if type(now) is not float or not -LATEST <= now <= LATEST:
            now = moment(now)
        if now > self.now:
            self.now = now
        return self.now

    def append(
        self,
        kind: int,
        page: int = NO_PAGE,
        *,
        new: int = 0,
        urls: bytes = b"",
        is_answer: bool = False,
        **fields: Any,
    ) -> int:
        """Append an event to the log, apply it, and return its place in the log.

        The event discovers ``new`` pages, whose lines are ``urls``. These pages must have their numbers already. With
        ``is_answer`` it answers for the page: see :meth:`answer`.

        Raises
        ------
        inlink.errors.StoreError
            If the event cannot be written.
        """
        self.gate.changing = True
        front, pages = self.frontier, self.pages
        # A leased page counts as taken already.
        if is_answer and (pages.states[page] != LEASED or page in front.plans or page in front.never):
            front.count_answered(page, self.now)
        first = pages.tally.pages - new
        place, frame = self.log.append(kind, self.now, page, first=first, new=new, urls=urls, **fields)
        front.fold(place, frame)
        if kind == kinds.VISIT:
            self.visits += 1
        elif kind == kinds.FAILED and not fields.get("flags", 0) & kinds.EXCLUDED_ONE:
            self.errors += 1
        if new:
            front.discovered(first, new, urls)
        if is_answer and page in front.leases.of_page:
            front.end_lease(page, self.now)
        return place

    def answer(self, kind: int, page: int, **fields: Any) -> None:
        """Append the event of an answer for a page.

        From now on the page does not wait, has no lease, and counts as taken from its host, with a lease or without.
        """
        self.append(kind, page, is_answer=True, **fields)

    def lease(
        self,
        pages: UInt32Array,
        slots: UInt32Array,
        *,
        session: int = 0,
        request: int = 0,
        ended: int = 0,
        seconds: float | None = None,
    ) -> list[Lease]:
        """Lease pages that were taken out of the queue.

        Parameters
        ----------
        pages, slots : uint32[n]
        session, request : int
            The session that gets the leases, and the id of its request; 0 if there is none.
        ended : int
            Number of a lease that ends, and that the first new lease replaces; 0 if there is none.
        seconds : float or None
            Seconds after which the leases are lost; None is ``lease_seconds``.
        """
        front, now = self.frontier, self.now
        expires = now + (front.settings.lease_seconds if seconds is None else seconds)
        first = front.leases.next_number
        payload = struct_of(LeaseRecord).pack(first, expires, session, request) + pages.tobytes()
        place = self.append(kinds.LEASE, listed=len(pages), payload=payload, lease=ended)
        if front.policy.sharing == "turns":
            front.count_turns(slots, now)
        leases = []
        for number, (page, slot) in enumerate(zip(pages.tolist(), slots.tolist(), strict=True), first):
            out = Out(number, page, slot, expires, place, session, now)
            front.leases.add(out)
            leases.append(lease_of(self.pages, out))
        return leases

    def page_of(self, url: str) -> int:
        """Return the page of a URL.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If the URL is unknown to this crawl.
        """
        return known_page(self.pages, url, self.url_rules)

    def answered(self, answered: Answered) -> tuple[int, Out | None]:
        """Return the page of an answer, and the lease that the answer ends; NO_PAGE if the answer does not count.

        Only the number of a lease is used; the book of leases gives its page. A URL stands for its oldest open lease.
        An answer does not count if its lease was answered before, or if the page was crawled since the lease was given.

        Raises
        ------
        inlink.errors.ParameterError
            If ``answered`` is not a lease, the number of a lease, or a URL.
        """
        leases = self.frontier.leases
        if type(answered) is Lease and type(answered.number) is int:
            number = answered.number
        elif isinstance(answered, str):
            page = self.page_of(answered)
            oldest = leases.oldest(page)
            if oldest is None:
                self.gate.changing = True
                return self.pages.survivor(page), None
            number = oldest
        else:
            number = number_of(answered)
        self.gate.changing = True
        out = leases.close(number)
        if out is None:
            return NO_PAGE, None
        page = self.pages.survivor(out.page) if out.page in self.pages.merged else out.page
        last = self.pages.visit_place(page) if self.pages.answers[page] else None
        if last is not None and last > out.place:
            self.note_outcome(out, None)
            return NO_PAGE, None
        return page, out

    def note_outcome(self, out: Out | None, outcome: Outcome | None, wait: float | None = None) -> None:
        """Record that a lease has ended. If its host's state changed, append an event with the new state."""
        if out is not None and self.frontier.note_outcome(out, outcome, wait, self.now):
            self.append(kinds.HOST, out.page, **self.frontier.hosts.frame(out.slot, self.now))

    def redirect(
        self, page: int, to: str, *, status: int = 0, data: bytes | None = None, lease: int = 0
    ) -> int:
        """Merge a page into the target of its redirect; return the page that stays.

        ``status`` is that of the answer that redirects, 0 if it is not known. ``data`` is stored with the target page,
        unless the target carries data already. ``lease`` is the lease that the merge ends; 0 if there is none.
        """
        here = self.pages.url(page)
        form = canonical(to, here, self.url_rules)
        if form is None or form == here:
            return page
        pages, new, text = self.pages.table.number([form])
        target = self.pages.survivor(int(pages[0]))
        if target == page:
            return page
        # The variant of a URL is merged into its page without a redirect.
        flags = kinds.BY_REDIRECT if here.partition("#")[0] != form else 0
        self._merge(page, target, flags, status, data=data, lease=lease, new=new, urls=text)
        self.admit(self.pages.num_pages - new, new, text)
        return target

    def is_elsewhere(self, page: int, to: str | None) -> bool:
        """Return whether another shard owns the target of a page's redirect; without a redirect, the page itself."""
        part = None if self.rules is None else self.rules.part
        if part is None:
            return False
        here = self.pages.url(page)
        form = here if to is None else canonical(to, here, self.url_rules) or here
        known = int(self.pages.table.find([form])[0])
        return not part.owns(
            host_of(form if known == NO_PAGE else self.pages.url(self.pages.survivor(known)))
        )

    def _merge(
        self, page: int, target: int, flags: int, status: int, *, data: bytes | None = None, **fields: Any
    ) -> None:
        payload, more = self._listed(target, data)
        self.pages.merged[page] = target
        self.answer(kinds.MERGE, page, flags=flags | more, status=status, listed=1, payload=payload, **fields)
        self._naming.get(self.pages.canonicals.get(page, NO_PAGE), set()).discard(page)

    def _listed(self, target: int, data: bytes | None) -> tuple[bytes, int]:
        """The payload of an event that lists one page, and its flags. Data are left out if the page carries some."""
        _, payload = encoded_list(np.array([target], np.uint32), np.empty(0, np.float32))
        if data is None or self.pages.carriers[target]:
            return payload, 0
        return payload + encode_carried({target: data}), kinds.HAS_CARRIED

    def name_canonical(self, page: int, link: str | Link | None, status: int) -> None:
        """Keep the canonical page that a page names, before the event of its visit, and let it wait for its fetch.

        Only a page that was fetched with success has a canonical page, and no variant of a URL has one.
        """
        before = self.pages.canonicals.get(page)
        if link is None and before is None:
            return
        here = self.pages.url(page)
        named = link if isinstance(link, Link) else Link(link or "")
        form = canonical(named.url, here, self.url_rules) if link and 200 <= status < 300 else None
        if form is None or form == here or "#" in here:
            if before is not None:
                self.append(kinds.CANONICAL, page)
                self.pages.name_canonical(page, [])
                self._naming[before].discard(page)
            return
        pages, new, text = self.pages.table.number([form])
        target = int(pages[0])
        if target == before:
            return
        payload, flags = self._listed(target, named.data or None)
        self.append(kinds.CANONICAL, page, flags=flags, listed=1, payload=payload, new=new, urls=text)
        self.admit(self.pages.num_pages - new, new, text)
        self.frontier.prioritise(pages, self.now)
        self.pages.name_canonical(page, [target])
        if before is not None:
            self._naming[before].discard(page)
        self._naming.setdefault(target, set()).add(page)

    def merge_canonicals(self, page: int) -> None:
        """Merge pages into their canonical pages, after the visit of one of the two.

        :meth:`.pages.Pages.why_separate` has the conditions.
        """
        waiting = [page] if page in self.pages.canonicals and page not in self.pages.merged else []
        for other in (*waiting, *sorted(self._naming.get(page, ()))):
            if self.pages.why_separate(other) is None:
                visit = self.pages.visit(other)
                target = self.pages.canonicals[other]
                self._merge(other, target, kinds.BY_CANONICAL, visit.status if visit else 0)
                self.frontier.prioritise(np.array([target], np.uint32), self.now)

    def merge_last(self) -> None:
        """Call :meth:`merge_canonicals` for the page of the last visit, in case a crash prevented that call."""
        rows = self.pages.tally.rows
        if self.pages.canonicals and rows:
            row = int(np.argmax(self.pages.visits[1 : rows + 1])) + 1
            self.merge_canonicals(self.pages.survivor(int(self.pages.answered[row])))

    def admit(self, first: int, new: int, text: bytes) -> None:
        """Exclude the new pages that the rules forbid."""
        if not new or not self.rules:
            return
        if self.rules.is_shard_only:
            if not self.gathers:
                self.exclude_gathered()
            return
        depths = self.pages.depths[first : first + new].tolist()
        urls = text.decode("ascii").splitlines()
        verdicts = [self.rules.verdict(url, depth) for url, depth in zip(urls, depths, strict=True)]
        reasons = {first + k: reason for k, reason in enumerate(verdicts) if reason is not None}
        self.exclude(reasons)

    def gather(self) -> None:
        """From now on, let new pages of other shards wait for :meth:`exclude_gathered`. Meanwhile, lease nothing."""
        self.gathers = True

    def exclude_gathered(self) -> None:
        """Exclude new pages of other shards by one event, and gather no more."""
        first, end, rules = self._judged, self.pages.num_pages, self.rules
        if first < end and rules is not None and rules.part is not None and rules.is_shard_only:
            # No URL needs to be looked at.
            foreign = (self.owners.of(slice(first, end)) != rules.part.number).nonzero()[0] + first
            foreign = foreign[self.pages.states[foreign] == DISCOVERED].astype(np.uint32)
            if len(foreign):
                self._exclude(NO_PAGE, foreign, OTHER_SHARD)
                for page in foreign.tolist():
                    self.frontier.queue.remove(page, self.now)
        self._judged, self.gathers = end, False

    def exclude(self, reasons: Mapping[int, str]) -> None:
        """Exclude pages, each for a reason."""
        if reasons:
            text = "; ".join(sorted(set(reasons.values())))
            self._exclude(NO_PAGE, np.array(list(reasons), np.uint32), text)

    def exclude_for_operator(self, pages: UInt32Array, reason: str) -> None:
        """Exclude pages for one reason. The event names the first page; an event of a rule names no page."""
        for part in slices(len(pages), MOST_EXCLUDED):
            self._exclude(int(pages[part.start]), pages[part], reason)

    def _exclude(self, page: int, pages: UInt32Array, reason: str) -> None:
        text = reason.encode("utf-8", "replace")[:LONGEST_REASON]
        payload = struct_of(ExcludedRecord).pack(len(text)) + text + pages.tobytes()
        self.append(kinds.EXCLUDE, page, listed=len(pages), payload=payload)

    def admit_last(self, unchecked: int) -> None:
        """Call :meth:`admit` for the pages of the last events, in case a crash prevented that call.

        Pages below ``unchecked`` became known before the rules in force, and are checked when they are leased.
        """
        self._judged = self._first_after_exclusions()
        self.exclude_gathered()
        if self.rules and self.rules.is_shard_only:
            return
        rows = self.pages.tally.makers
        first = int(self.pages.makers[rows - 1]) if rows else 0
        if rows and self.rules and first >= unchecked:
            waiting = [page for page in range(first, self.pages.num_pages) if page in self.frontier.queue]
            if len(waiting) == self.pages.num_pages - first:
                urls = "".join(url + "\n" for url in self.pages.urls(waiting))
                self.admit(first, len(waiting), urls.encode("ascii"))
                for page in waiting:
                    if self.pages.states[page] != DISCOVERED:
                        self.frontier.queue.remove(page, self.now)

    def _first_after_exclusions(self) -> int:
        """The first page that became known after the last event that excluded pages."""
        pages, back = self.pages, 64
        rows = pages.tally.makers
        places = pages.maker_places[:rows]
        while True:
            begin = int(places[max(rows - back, 0)]) if rows else 0
            excluding = pages.frames.of_kind(kinds.EXCLUDE, begin=begin)
            if excluding or back >= rows:
                break
            back *= 2
        row = int(np.searchsorted(places, excluding[-1])) if excluding else 0
        return int(pages.makers[row]) if row < rows else pages.num_pages
