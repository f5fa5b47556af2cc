"""What an operator may change on a running crawl. Each change is an event of the log and holds after reopening."""

import logging
import re
from pathlib import Path
from typing import Any

import msgspec

from inlink.crawl.arguments import argument, checked_ahead
from inlink.crawl.core import Core
from inlink.crawl.gate import Gate
from inlink.crawl.journal import Journal
from inlink.crawl.settings import NOT_GIVEN, NotGiven, as_data, changed, differences, save
from inlink.errors import ParameterError, UnknownNodeError
from inlink.frontier.hosts import HostState
from inlink.frontier.settings import Settings
from inlink.frontier.visits import plan_anew
from inlink.frontier.wishes import NO_WISH, Wish
from inlink.store import format as kinds
from inlink.urls.canonical import canonical
from inlink.urls.hosts import registered_domain

__all__ = ["AT_OPENING", "Steering"]

_log = logging.getLogger("inlink.crawl")
AT_OPENING = ("policy", "use_scores", "cross_domain_only", "damping", "url_rules", "sync")
"""The settings that can change only when a crawl is opened; so can ``politeness.by``."""
_PORT = re.compile(r":[0-9]+\Z")


class Steering:
    """The methods of :class:`inlink.Crawl` for its operator."""

    folder: Path
    _gate: Gate
    _core: Core
    _settings: Settings

    def set_host(
        self,
        host: str,
        *,
        block: float | NotGiven = NOT_GIVEN,
        delay: float | NotGiven | None = NOT_GIVEN,
        budget: int | NotGiven | None = NOT_GIVEN,
    ) -> HostState:
        """Set what holds for a host, or with ``by="domain"`` for its registered domain; return its state.

        What is not given stays as it is. All of it holds after reopening.

        Parameters
        ----------
        host : str
            Its name, or any URL of it.
        block : float
            Seconds from now in which nothing is fetched from it; ``math.inf`` is for ever, 0 ends a block. Tasks that
            are out are not called back.
        delay : float or None
            Seconds between two fetches, whatever the settings and robots.txt say. None: what they say holds again. A
            ``Retry-After`` of the host is kept in any case.
        budget : int or None
            Pages that may still be fetched from it. None is no limit. A task that is out and comes back (released,
            lost, or to be tried again) is no further page.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If this crawl knows no such host.
        inlink.errors.ParameterError
            If an argument is outside its range.
        """
        name = _host_name(host)
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

    def change_settings(self, **given: Any) -> Settings:
        """Change settings of the running crawl, as if it were closed and opened with them; return those in force.

        All of them are changed or none.

        Parameters
        ----------
        **given
            Settings as :class:`inlink.Crawl` takes them: ``politeness``, ``rules``, ``revisit``, ``lease_seconds``,
            ``max_retries``, ``retry_seconds``, ``max_losses``, ``rerank_share``, ``rerank_seconds``. A dict for
            ``politeness`` or ``rules`` changes the fields that it names. Leases that are out keep their end.

        Raises
        ------
        inlink.errors.ParameterError
            If a value is outside its range, or a setting can change only when the crawl is opened: ``policy``,
            ``use_scores``, ``cross_domain_only``, ``damping``, ``url_rules``, ``sync`` and ``politeness.by``.
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
    """Write other settings and let them hold."""
    journal, frontier = core.journal, core.frontier
    before, now = frontier.settings, journal.now
    journal.append(kinds.SETTINGS, payload=msgspec.json.encode(as_data(settings)))
    save(folder, settings)
    frontier.set_settings(settings, now)
    if settings.rules != before.rules:
        journal.rules = settings.rules
        core.admission.rules_changed()
        core.answers.readmit()
    if settings.revisit != before.revisit:
        plan_anew(frontier, settings.revisit, now)


def _wish(journal: Journal, slot: int, wish: Wish) -> None:
    """Write an operator's wish and take it in; then write when the slot is due, which depends on its delay."""
    hosts, now = journal.frontier.hosts, journal.now
    if wish == hosts.wishes.get(slot, NO_WISH):
        return
    page, due = hosts.first_page(slot), hosts.due(slot, now)
    journal.append(kinds.HOST_SET, page, payload=wish.packed())
    hosts.set_wish(slot, wish, now)
    if hosts.due(slot, now) != due:
        journal.append(kinds.HOST, page, payload=hosts.frame(slot, now))
    journal.frontier.queue.settle(slot, now)


def _host_name(host: str) -> str:
    """The name of a host in canonical form, from any form of it or from a URL."""
    form = None
    if isinstance(host, str) and (text := host.strip()):
        form = canonical(text if "://" in text else f"http://{text}/")
    if form is None:
        raise ParameterError(f"`host` must be a host's name or a URL; got {host!r:.200}")
    return _PORT.sub("", form.split("/", 3)[2])


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
            f"{given!r:.200}: {journal.pages.folder} knows no host {name!r}: look with inlink find"
        )
    return slot
