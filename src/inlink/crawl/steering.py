"""Changes by an operator to a running crawl. Each change is an event of the log and holds after reopening."""

import logging
import math
from pathlib import Path
from typing import Any

import numpy as np

from inlink.base.arrays import AnyArray, UInt32Array
from inlink.crawl.activity import Activity, activity
from inlink.crawl.arguments import argument, check_text, checked_ahead, checked_states, host_name
from inlink.crawl.core import Core
from inlink.crawl.gate import Gate
from inlink.crawl.journal import Journal
from inlink.crawl.settings import NOT_GIVEN, NotGiven, changed, differences, event_of, save
from inlink.errors import ParameterError, UnknownNodeError
from inlink.frontier.hosts import HostState
from inlink.frontier.settings import Settings
from inlink.frontier.visits import plan_anew
from inlink.frontier.wishes import NO_WISH, Wish
from inlink.store import format as kinds
from inlink.store.format import (
    CRAWLED,
    DISCOVERED,
    HEAD,
    HEAD_SIZE,
    DateRecord,
    struct_of,
)
from inlink.store.life import GIVEN_UP, WAITING
from inlink.store.pages import Pages
from inlink.urls.hosts import registered_domain

__all__ = ["AT_OPENING", "Steering", "slot_named"]

_log = logging.getLogger("inlink.crawl")
AT_OPENING = (
    "policy",
    "use_scores",
    "cross_domain_only",
    "damping",
    "trust",
    "spam_mass",
    "distrust",
    "prior",
    "url_rules",
    "sync",
    "sink_duplicates",
)
"""The settings that can change only when a crawl is opened. ``politeness.by`` is another."""


class Steering:
    """The methods of :class:`inlink.Crawl` for its operator."""

    folder: Path
    _gate: Gate
    _core: Core
    _settings: Settings

    def activity(self) -> Activity:
        """Counts of the crawl since it was opened, and the sessions that work on it now."""
        with self._gate:
            return activity(self._core)

    def pause(self) -> None:
        """Hand out no leases until :meth:`resume`, also after the crawl is opened again. Answers are still taken in."""
        with self._gate:
            self._core.pause(True)

    def resume(self) -> None:
        """End a pause."""
        with self._gate:
            self._core.pause(False)

    @property
    def paused(self) -> bool:
        """True while the crawl is paused."""
        return self._core.frontier.paused

    def release_all(self) -> int:
        """Give back all leases, whoever holds them; return their number."""
        with self._gate:
            self._core.tick()
            return self._core.answers.release_all()

    def reload(self, *states: str) -> int:
        """Let all pages of some states wait again if the rules allow them; return their number.

        Parameters
        ----------
        *states : {"failed", "gone", "excluded"}
            Without states: ``"failed"``.

        Raises
        ------
        inlink.errors.ParameterError
            If there is another state.
        """
        wanted = checked_states(states)
        with self._gate:
            self._core.tick()
            return self._core.answers.reload(wanted)

    def set_host(
        self,
        host: str,
        *,
        block: float | NotGiven = NOT_GIVEN,
        delay: float | NotGiven | None = NOT_GIVEN,
        budget: int | NotGiven | None = NOT_GIVEN,
    ) -> HostState:
        """Set block, delay or budget of a host, or with ``by="domain"`` of its registered domain; return its state.

        A value that is not given stays as it is. The values also hold after the crawl is opened again.

        Parameters
        ----------
        host : str
            The host's name, or any URL of the host.
        block : float
            Seconds from now in which no page of the host is handed out; ``math.inf`` is for ever, 0 ends a block. Tasks
            that are out are not called back.
        delay : float or None
            Seconds between two fetches, regardless of the settings and robots.txt. None: settings and robots.txt apply
            again. A ``Retry-After`` of the host is kept in any case.
        budget : int or None
            Number of pages that may still be fetched from the host; None is no limit. A task that comes back (released,
            lost, or to be retried) is not counted again.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If this crawl knows no such host.
        inlink.errors.ParameterError
            If an argument is outside its range.
        """
        name = host_name(host)
        if not isinstance(block, NotGiven):
            block = checked_ahead("block", block)
        if not isinstance(delay, NotGiven):
            delay = argument("delay", delay)
        if not isinstance(budget, NotGiven):
            budget = argument("budget", budget)
        with self._gate:
            now, journal = self._core.tick(), self._core.journal
            hosts = journal.frontier.hosts
            slot = _slot_of(journal, name, host)
            before = hosts.wishes.get(slot, NO_WISH)
            until, limit = before.blocked_until if before.blocks(now) else None, before.limit
            if not isinstance(block, NotGiven):
                until = Wish.until(block, now)
            if not isinstance(budget, NotGiven):
                limit = Wish.pages(budget, int(journal.frontier.queue.rows[slot]["taken"]))
            seconds = before.delay if isinstance(delay, NotGiven) else Wish.seconds(delay)
            _wish(journal, slot, Wish(until, seconds, limit))
            return hosts.state(slot, now)

    def exclude_host(self, host: str, reason: str = "", *, older_than: float | None = None) -> int:
        """Exclude all waiting pages of a host, or with ``by="domain"`` of its registered domain; return their number.

        These are the pages that wait in the queue, for a retry, or for their next visit. Tasks that are out go on.
        Pages that become known later wait as usual. ``reload("excluded")`` lets them wait again. A change of
        rules does not.

        Parameters
        ----------
        host : str
            The host's name, or any URL of the host.
        reason : str
            ``crawl.page(url).error`` shows it, up to 500 bytes.
        older_than : float or None
            Exclude only pages whose last crawl was more than this many seconds ago. For a page that was never crawled,
            its discovery counts. None: all pages.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If this crawl knows no such host.
        inlink.errors.ParameterError
            If an argument is outside its range.
        """
        name = host_name(host)
        check_text("reason", reason)
        older_than = argument("older_than", older_than)
        with self._gate:
            now, journal = self._core.tick(), self._core.journal
            found = _waiting(journal, _slot_of(journal, name, host))
            if older_than is not None:
                found = found[_last_seen(journal.pages, found) < now - older_than]
            for page in found.tolist():
                journal.gate.changing = True
                journal.frontier.forget_plan(page)
                journal.frontier.leave(page, now)
            journal.exclude_for_operator(found, reason)
            return len(found)

    def set_due(self, url: str, seconds: float) -> bool:
        """Set when a page is due, instead of its retry or the revisit schedule; return whether the date was set.

        The date holds once: after the next answer for the page, retries and schedule apply again. A page that failed or
        is gone waits again. No date is set for a page that is leased or excluded, or was merged into such a page.

        Parameters
        ----------
        url : str
        seconds : float
            Seconds from now; ``math.inf`` is never.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If the URL is unknown to this crawl.
        inlink.errors.ParameterError
            If ``seconds`` is outside its range.
        """
        check_text("url", url)
        seconds = checked_ahead("ahead", seconds)
        with self._gate:
            self._core.tick()
            return _set_due(self._core, self._core.journal.known(url), seconds)

    def change_settings(self, **given: Any) -> Settings:
        """Change settings of the running crawl, as if it were closed and opened with them; return those in force.

        Either all of them are changed, or none is.

        Parameters
        ----------
        **given
            Settings as :class:`inlink.Crawl` takes them: ``politeness``, ``rules``, ``revisit``, ``lease_seconds``,
            ``max_retries``, ``retry_seconds``, ``max_losses``, ``rerank_share``, ``rerank_seconds``. A dict for
            ``politeness`` or ``rules`` changes the fields that it names. Open leases keep their time of expiry.

        Raises
        ------
        inlink.errors.ParameterError
            If a value is outside its range, or a setting can change only when the crawl is opened: ``policy``,
            ``use_scores``, ``cross_domain_only``, ``damping``, ``trust``, ``spam_mass``, ``distrust``, ``prior``,
            ``sink_duplicates``, ``url_rules``, ``sync`` and ``politeness.by``.
        """
        for name in given:
            if name in AT_OPENING:
                raise _needs_opening(name)
        with self._gate:
            before, after = self._settings, changed(self._settings, given)
            if after.politeness.by != before.politeness.by:
                raise _needs_opening("politeness.by")
            if after != before:
                self._core.tick()
                _set_settings(self._core, self.folder, after)
                self._settings = after
                _log.info("%s: changed: %s", self.folder, ", ".join(differences(before, after)))
            return after


def _needs_opening(name: str) -> ParameterError:
    group, dot, field = name.partition(".")
    given = f"{group}={{'{field}': …}}" if dot else f"{name}=…"
    return ParameterError(
        f"`{name}` cannot change while a crawl is open: close the crawl, and open it with Crawl(…, {given})"
    )


def _set_settings(core: Core, folder: Path, settings: Settings) -> None:
    """Write new settings and apply them."""
    journal, frontier = core.journal, core.frontier
    before, now = frontier.settings, journal.now
    journal.append(kinds.SETTINGS, payload=event_of(folder, settings))
    save(folder, settings)
    frontier.set_settings(settings, now)
    if settings.rules != before.rules:
        journal.rules = settings.rules
        core.admission.rules_changed()
        core.answers.readmit()
    if settings.revisit != before.revisit:
        plan_anew(frontier, settings.revisit, now)


def _waiting(journal: Journal, slot: int) -> UInt32Array:
    """The pages of a slot that wait in the queue or for a date, uint32[k], increasing."""
    frontier, states = journal.frontier, journal.pages.states
    found = frontier.hosts.pages_of(slot)
    known, again = found[states[found] == DISCOVERED], found[states[found] == CRAWLED]
    due = [
        page in frontier.queue or page in frontier.plans or page in frontier.lost for page in again.tolist()
    ]
    return np.sort(np.concatenate([known, again[np.array(due, bool)]]))


def _last_seen(pages: Pages, some: UInt32Array) -> AnyArray:
    """Unix times at which pages were last crawled, or else discovered: float64[k]."""
    places = np.array(
        [pages.maker_place(page) if place is None else place
         for page in some.tolist() for place in (pages.visit_place(page),)], np.int64,
    )  # fmt: skip
    if not len(places):
        return np.empty(0)
    heads: AnyArray = pages.log_at(places)[places[:, None] + np.arange(HEAD_SIZE)].view(HEAD)[:, 0]
    times: AnyArray = heads["time"]
    return times


def _set_due(core: Core, page: int, seconds: float) -> bool:
    """Write the time at which a page is due, and let the page wait until then."""
    journal, frontier = core.journal, core.frontier
    page, now = journal.pages.survivor(page), journal.now
    state = int(journal.pages.states[page])
    if state in GIVEN_UP:
        if seconds == math.inf:
            return True
        core.answers.wait_again(np.array([page], np.uint32))
    elif state not in WAITING:
        return False
    journal.append(kinds.DUE, page, payload=struct_of(DateRecord).pack(now + seconds))
    frontier.hold_back(page, now + seconds, now)
    return True


def _wish(journal: Journal, slot: int, wish: Wish) -> None:
    """Write an operator's wish and apply it. Then write when the slot is due, because that depends on its delay."""
    hosts, now = journal.frontier.hosts, journal.now
    if wish == hosts.wishes.get(slot, NO_WISH):
        return
    page, due = hosts.first_page(slot), hosts.due(slot, now)
    journal.append(kinds.HOST_SET, page, payload=wish.packed())
    hosts.set_wish(slot, wish, now)
    if hosts.due(slot, now) != due:
        journal.append(kinds.HOST, page, payload=hosts.frame(slot, now))
    journal.frontier.queue.settle(slot, now)


def slot_named(journal: Journal, host: str) -> int:
    """The slot of a host, or of a registered domain if politeness counts domains, by any form of its name.

    Raises
    ------
    inlink.errors.UnknownNodeError
        If the crawl knows neither.
    inlink.errors.ParameterError
        If ``host`` cannot be the name of a host.
    """
    return _slot_of(journal, host_name(host), host)


def _slot_of(journal: Journal, name: str, given: str) -> int:
    """The slot of a host, or of a registered domain if politeness counts domains.

    Raises
    ------
    inlink.errors.UnknownNodeError
        If the crawl knows neither.
    """
    queue, hosts = journal.frontier.queue, journal.frontier.hosts
    host = journal.pages.host_number(name)
    if host is not None:
        return int(queue.waiting.slot_of[host]) if queue.by_domain else host
    slot = hosts.slot_of_domain(registered_domain(name) or name)
    if slot is None:
        raise UnknownNodeError(
            f"{given!r:.200}: {journal.pages.folder} knows no host {name!r}: search with `inlink find`"
        )
    return slot
