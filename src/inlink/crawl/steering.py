"""What an operator may change on a running crawl. Each change is an event of the log and holds after reopening."""

import re

from inlink.crawl.arguments import argument, checked_ahead
from inlink.crawl.core import Core
from inlink.crawl.gate import Gate
from inlink.crawl.journal import Journal
from inlink.crawl.settings import NOT_GIVEN, NotGiven
from inlink.errors import ParameterError, UnknownNodeError
from inlink.frontier.hosts import HostState
from inlink.frontier.wishes import NO_WISH, Wish
from inlink.store import format as kinds
from inlink.urls.canonical import canonical
from inlink.urls.hosts import registered_domain

__all__ = ["Steering"]

_PORT = re.compile(r":[0-9]+\Z")


class Steering:
    """The methods of :class:`inlink.Crawl` for its operator."""

    _gate: Gate
    _core: Core

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
