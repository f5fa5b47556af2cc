"""Apply the rules for URLs to pages that are known already, and let excluded pages return when the rules change.

New pages are checked when they become known (:meth:`.journal.Journal.admit`). Rules may change when a crawl is opened.
Pages that were known by then were checked by other rules, so they are checked again just before they are leased. A page
that the rules refuse is excluded by an event of the log, which holds the reason. This costs time only for pages that
come to the top of the queue.
"""

from typing import Any

import msgspec
import numpy as np

from inlink.base.arrays import UInt32Array, slices
from inlink.crawl.journal import Journal
from inlink.frontier.rules import Rules
from inlink.store.format import EXCLUDE, EXCLUDED, LEASED, NO_PAGE, SETTINGS, ExcludedRecord, struct_of
from inlink.store.pages import Pages
from inlink.store.repair import LOST_REASON

_AT_A_TIME = 1 << 14
"""Number of pages whose URLs are read at a time."""

_SWEPT = 256
"""Number of waiting pages of a slot that are checked after a page of the slot was refused."""


class Admission:
    """Checks pages by the rules when they are leased, and lets excluded pages return.

    Attributes
    ----------
    unchecked : int
        Pages below this number became known before the rules in force. 0 if there are no rules.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal, self.frontier, self.pages = journal, journal.frontier, journal.pages
        self.unchecked = _known_before(self.pages, journal.rules) if journal.rules else 0

    def rules_changed(self) -> None:
        """Mark all pages that are known now: they are checked when they are leased."""
        self.unchecked = self.pages.num_pages if self.journal.rules else 0

    def verdicts(self, pages: UInt32Array) -> list[str | None]:
        """The reason why each page must not be fetched; None if it may be fetched."""
        if not self.unchecked or int(pages.min(initial=self.unchecked)) >= self.unchecked:
            return [None] * len(pages)
        assert self.journal.rules is not None
        return refused_by(self.journal.rules, self.pages, pages)

    def take(self, count: int, now: float) -> tuple[UInt32Array, UInt32Array]:
        """Take the best pages that may be fetched now out of the queue, and exclude those that the rules refuse.

        Returns
        -------
        pages, slots : uint32[≤ count]
        """
        queue = self.frontier.queue
        pages, slots = queue.take(count, now)
        verdicts = self.verdicts(pages)
        if not any(verdicts):
            return pages, slots
        kept: list[tuple[int, int]] = []
        reasons: dict[int, str] = {}
        while len(pages):
            for page, slot, reason in zip(pages.tolist(), slots.tolist(), verdicts, strict=True):
                if reason is None:
                    kept.append((page, slot))
                else:
                    reasons[page] = reason
                    self._put_back(page, slot, now)
                    reasons |= self._sweep(slot, now)
            pages, slots = queue.take(count - len(kept), now)
            verdicts = self.verdicts(pages)
        self.journal.exclude(reasons)
        taken = np.array(kept, np.uint32).reshape(-1, 2)
        return taken[:, 0].copy(), taken[:, 1].copy()

    def _sweep(self, slot: int, now: float) -> dict[int, str]:
        """Remove refused pages from the best few hundred of a slot: refused pages often share a host."""
        some = self.frontier.queue.best(slot, _SWEPT)
        found = {
            page: reason
            for page, reason in zip(some.tolist(), self.verdicts(some), strict=True)
            if reason is not None
        }
        for page in found:
            self.frontier.leave(page, now)
        return found

    def refuses(self, page: int, slot: int | None, now: float) -> bool:
        """Exclude a page if the rules refuse it; return whether they do. ``slot`` is the slot it was taken from."""
        (reason,) = self.verdicts(np.array([page], np.uint32))
        if reason is None:
            return False
        if slot is None:
            self.frontier.forget_plan(page)
            if self.pages.states[page] == LEASED:
                self.frontier.end_lease(page, now)
                if not self.pages.answers[page]:
                    self.frontier.queue.give_back(self.frontier.queue.slot(page), now)
            self.frontier.leave(page, now)
        else:
            self._put_back(page, slot, now, by_turn=False)
        self.journal.exclude({page: reason})
        return True

    def _put_back(self, page: int, slot: int, now: float, *, by_turn: bool = True) -> None:
        """Restore a slot's state from before a page was taken. A page with an answer still counts as taken."""
        self.frontier.queue.not_fetched(slot, now, by_turn=by_turn)
        if not self.pages.answers[page]:
            self.frontier.queue.give_back(slot, now)

    def returning(self) -> UInt32Array:
        """The pages that were excluded by a rule and that the rules in force allow, uint32[k], increasing."""
        pages = self.pages
        by_rule = np.zeros(pages.num_pages, np.uint64)
        record = struct_of(ExcludedRecord)
        for place in pages.frames.of_kind(EXCLUDE):
            frame = pages.frames.frame(place)
            payload = frame.payload
            end = record.size + record.unpack_from(payload)[0]
            # An operator's exclusion is not a rule's, so a change of rules does not end it.
            by_a_rule = frame.page == NO_PAGE and payload[record.size : end] != LOST_REASON
            by_rule[np.frombuffer(payload, np.uint32, offset=end)] = place + 1 if by_a_rule else 0
        excluded = np.flatnonzero((pages.states[: pages.num_pages] == EXCLUDED) & (by_rule > 0)).astype(
            np.uint32
        )
        # A page may have been excluded later by its spider, for example because of robots.txt.
        excluded = excluded[by_rule[excluded] > pages.failures[pages.answers[excluded]]]
        return self.allowed(excluded)

    def allowed(self, candidates: UInt32Array) -> UInt32Array:
        """The pages among ``candidates`` that the rules in force allow."""
        rules = self.journal.rules
        if not rules or not len(candidates):
            return candidates
        blocks = [candidates[part] for part in slices(len(candidates), _AT_A_TIME)]
        free = [[reason is None for reason in refused_by(rules, self.pages, block)] for block in blocks]
        kept: UInt32Array = candidates[np.concatenate(free).astype(bool)]
        return kept


def refused_by(rules: Rules, pages: Pages, numbers: UInt32Array) -> list[str | None]:
    """The reasons why rules refuse the pages with these numbers; None for a page that they allow."""
    return [
        rules.verdict(url, depth)
        for url, depth in zip(pages.urls(numbers), pages.depths[numbers].tolist(), strict=True)
    ]


def _known_before(pages: Pages, rules: Rules | None) -> int:
    """Read from the log how many pages were known when the rules came into force."""
    wanted = msgspec.json.decode(msgspec.json.encode(rules))
    since: int | None = None
    for place in pages.frames.of_kind(SETTINGS):
        if _rules_in(pages.frames.frame(place).payload) != wanted:
            since = None
        elif since is None:
            since = place
    if since is None:
        return pages.num_pages
    makers = pages.maker_places[: pages.tally.makers]
    row = int(np.searchsorted(makers, since))
    return int(pages.makers[row]) if row < len(makers) else pages.num_pages


def _rules_in(payload: bytes) -> Any:
    """Return the rules in an event of settings. None: the event has no rules, or cannot be decoded."""
    try:
        return msgspec.json.decode(payload, type=dict[str, Any]).get("rules")
    except (msgspec.MsgspecError, ValueError, RecursionError):
        # The log may come from anybody. Pages are then checked once more than needed.
        return None
