"""The journal of a crawl. Each change is an event, appended to the log and then applied to pages, policy and queue."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from inlink.base.arrays import UInt32Array
from inlink.crawl.gate import Gate
from inlink.crawl.intake import Carried, coded
from inlink.crawl.known import known_page
from inlink.errors import ParameterError
from inlink.frontier.backoff import Outcome
from inlink.frontier.frontier import Frontier
from inlink.frontier.leases import Lease, Out
from inlink.frontier.rules import Rules
from inlink.protocol import Link
from inlink.store import format as kinds
from inlink.store.carried import encode_carried
from inlink.store.format import DISCOVERED, ExcludedRecord, struct_of
from inlink.store.log import Log
from inlink.store.pages import NO_PAGE
from inlink.urls.canonical import UrlRules, canonical

__all__ = ["Answered", "Journal", "number_of"]

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


class Journal:
    """Writes a crawl's events.

    Parameters
    ----------
    log : Log
    frontier : Frontier
    gate : Gate
        Its ``changing`` is set when a change begins: by :meth:`append`, and by callers that number pages or end leases
        before they append the event.
    url_rules : UrlRules or None
    rules : Rules or None

    Attributes
    ----------
    now : float
        The time of the next event.
    visits, errors : int
        Number of visits and of failures that were written since the crawl was opened.
    """

    def __init__(
        self, log: Log, frontier: Frontier, gate: Gate, url_rules: UrlRules | None, rules: Rules | None
    ) -> None:
        self.log, self.frontier, self.pages, self.gate = log, frontier, frontier.pages, gate
        self.url_rules, self.rules = url_rules, rules
        self.now = self.pages.last_time()
        self.visits = self.errors = 0
        # For each canonical page, the pages that name it and are not merged into another page.
        self._naming: dict[int, set[int]] = {}
        for page, target in self.pages.canonicals.items():
            if page not in self.pages.merged:
                self._naming.setdefault(target, set()).add(page)

    def append(self, kind: int, page: int = NO_PAGE, *, new: int = 0, urls: bytes = b"", **given: Any) -> int:
        """Append an event to the log, apply it, and return its place in the log.

        The event discovers ``new`` pages, whose lines are ``urls``. These pages must have their numbers already.

        Raises
        ------
        inlink.errors.StoreError
            If the event cannot be written.
        """
        self.gate.changing = True
        first = self.pages.num_pages - new
        place, frame = self.log.append(kind, self.now, page, first=first, new=new, urls=urls, **given)
        self.frontier.fold(place, frame)
        if kind == kinds.VISIT:
            self.visits += 1
        elif kind == kinds.FAILED and not given.get("flags", 0) & kinds.EXCLUDED_ONE:
            self.errors += 1
        if new:
            self.frontier.discovered(first, new, urls)
        return place

    def answer(self, kind: int, page: int, **given: Any) -> int:
        """Append the event of an answer for a page, and return its place in the log.

        From now on the page does not wait, has no lease, and counts as taken from its host, with a lease or without.
        """
        self.gate.changing = True
        self.frontier.count_answered(page, self.now)
        place = self.append(kind, page, **given)
        self.frontier.end_lease(page, self.now)
        return place

    def known(self, url: str) -> int:
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
        if isinstance(answered, Lease) and type(answered.number) is int:
            number = answered.number
        elif isinstance(answered, str):
            page = self.known(answered)
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
        page = self.pages.survivor(out.page)
        last = self.pages.visit_place(page)
        if last is not None and last > out.place:
            self.landed(out, None)
            return NO_PAGE, None
        return page, out

    def landed(self, out: Out | None, outcome: Outcome | None, wait: float | None = None) -> None:
        """Record that a lease has ended. If its host's state changed, append an event with the new state."""
        if out is not None and self.frontier.landed(out, outcome, wait, self.now):
            self.append(kinds.HOST, out.page, payload=self.frontier.hosts.frame(out.slot, self.now))

    def base(self, page: int, redirected_to: str | None) -> str:
        """Return the URL that answered, against which the page's relative links are resolved."""
        url = self.pages.url(page)
        return (canonical(redirected_to, url) or url) if redirected_to else url

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
        pages, new, text = self.pages.number([form])
        target = self.pages.survivor(int(pages[0]))
        if target == page:
            return page
        # The variant of a URL is merged into its page without a redirect.
        flags = kinds.BY_REDIRECT if here.partition("#")[0] != form else 0
        self._merge(page, target, flags, status, data=data, lease=lease, new=new, urls=text)
        self.admit(self.pages.num_pages - new, new, text)
        return target

    def _merge(
        self, page: int, target: int, flags: int, status: int, *, data: bytes | None = None, **given: Any
    ) -> None:
        payload, more = self._one(target, data)
        self.pages.merged[page] = target
        self.answer(kinds.MERGE, page, flags=flags | more, status=status, listed=1, payload=payload, **given)
        self._naming.get(self.pages.canonicals.get(page, NO_PAGE), set()).discard(page)

    def _one(self, target: int, data: bytes | None) -> tuple[bytes, int]:
        """The payload of an event that lists one page, and its flags. Data are left out if the page carries some."""
        _, payload = coded(np.array([target], np.uint32), np.empty(0, np.float32))
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
        given = link if isinstance(link, Link) else Link(link or "")
        form = canonical(given.url, here, self.url_rules) if link and 200 <= status < 300 else None
        if form is None or form == here or "#" in here:
            if before is not None:
                self.append(kinds.CANONICAL, page)
                self.pages.columns.name_canonical(page, [])
                self._naming[before].discard(page)
            return
        pages, new, text = self.pages.number([form])
        target = int(pages[0])
        if target == before:
            return
        payload, flags = self._one(target, given.data or None)
        self.append(kinds.CANONICAL, page, flags=flags, listed=1, payload=payload, new=new, urls=text)
        self.admit(self.pages.num_pages - new, new, text)
        self.frontier.prioritise(pages, self.now)
        self.pages.columns.name_canonical(page, [target])
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

    def carrying(self, pages: UInt32Array, more: dict[str, Carried]) -> tuple[int, bytes]:
        """Return the flag and the end of a frame whose last pages carry data. Omit pages that carry data already."""
        data = {
            page: one.data
            for page, one in zip(pages[len(pages) - len(more) :].tolist(), more.values(), strict=True)
            if not self.pages.carriers[page]
        }
        return (kinds.HAS_CARRIED, encode_carried(data)) if data else (0, b"")

    def admit(self, first: int, new: int, text: bytes) -> None:
        """Exclude the new pages that the rules forbid."""
        if not new or not self.rules:
            return
        depths = self.pages.depths[first : first + new].tolist()
        urls = text.decode("ascii").splitlines()
        verdicts = [self.rules.verdict(url, depth) for url, depth in zip(urls, depths, strict=True)]
        reasons = {first + k: reason for k, reason in enumerate(verdicts) if reason is not None}
        self.exclude(reasons)

    def exclude(self, reasons: Mapping[int, str]) -> None:
        """Exclude pages, each for a reason."""
        if reasons:
            said = "; ".join(sorted(set(reasons.values()))).encode("utf-8", "replace")[:LONGEST_REASON]
            payload = struct_of(ExcludedRecord).pack(len(said)) + said
            payload += np.array(list(reasons), np.uint32).tobytes()
            self.append(kinds.EXCLUDE, listed=len(reasons), payload=payload)

    def exclude_for_operator(self, pages: UInt32Array, reason: str) -> None:
        """Exclude pages for one reason. The event names the first page; an event of a rule names no page."""
        said = reason.encode("utf-8", "replace")[:LONGEST_REASON]
        for begin in range(0, len(pages), MOST_EXCLUDED):
            part = pages[begin : begin + MOST_EXCLUDED]
            payload = struct_of(ExcludedRecord).pack(len(said)) + said + part.tobytes()
            self.append(kinds.EXCLUDE, int(part[0]), listed=len(part), payload=payload)

    def admit_last(self, unchecked: int) -> None:
        """Call :meth:`admit` for the pages of the log's last event, in case a crash prevented that call.

        Pages below ``unchecked`` became known before the rules in force, and are checked when they are leased.
        """
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
