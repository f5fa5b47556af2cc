"""What an operator sees of a running crawl and changes. Each change is an event of the log, so it also holds later."""

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from inlink.base.arrays import Float64Array, UInt32Array
from inlink.crawl.answers import Answers
from inlink.crawl.arguments import HostLimits, host_name
from inlink.crawl.journal import Journal
from inlink.crawl.settings import changed, event_of, keep_shard, save
from inlink.errors import ParameterError, UnknownNodeError
from inlink.frontier.hosts import HostState
from inlink.frontier.settings import Settings
from inlink.frontier.visits import plan_anew
from inlink.frontier.wishes import NO_WISH, Wish
from inlink.store import format as kinds
from inlink.store.format import (
    CRAWLED,
    DISCOVERED,
    DateRecord,
    struct_of,
)
from inlink.store.life import GIVEN_UP, WAITING
from inlink.store.pages import Pages
from inlink.urls.hosts import registered_domain

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


MOST_SESSIONS = 100
"""Maximum number of sessions that :func:`activity` lists."""


class Working(msgspec.Struct, frozen=True):
    """A session that goes on.

    Parameters
    ----------
    session : int
    owner : str
    tasks : int
        Tasks that it holds.
    silent_for : float
        Seconds since its last call.
    silent_after : float or None
        Seconds of silence after which it ends; None is never.
    """

    session: int
    owner: str
    tasks: int
    silent_for: float
    silent_after: float | None


class Activity(msgspec.Struct, frozen=True):
    """Counts of a crawl since it was opened, and its sessions.

    Parameters
    ----------
    pages, errors : int
        Visits and failures since the crawl was opened. A page that is tried again fails again.
    paused : bool
    ranking : bool
        Whether a ranking is being computed or adopted.
    sessions : list of Working
        At most 100. The session with the latest call is first.
    num_sessions : int
        Number of all sessions that go on.
    """

    pages: int
    errors: int
    paused: bool
    ranking: bool
    sessions: list[Working]
    num_sessions: int


def activity(journal: Journal, ranking: bool) -> Activity:
    """The present counts. ``ranking`` is whether a ranking is being computed or adopted."""
    now, frontier = journal.tick(), journal.frontier
    sessions = sorted(frontier.sessions, key=lambda session: (-session.heard, session.number))
    rows = [
        Working(
            session.number,
            session.owner,
            frontier.leases.held(session.number),
            max(now - session.heard, 0.0),
            None if session.silent_after == math.inf else session.silent_after,
        )
        for session in sessions[:MOST_SESSIONS]
    ]
    return Activity(journal.visits, journal.errors, frontier.paused, ranking, rows, len(sessions))


def pause(journal: Journal, paused: bool) -> None:
    """Begin or end a pause: see :meth:`inlink.Crawl.pause`."""
    if journal.frontier.paused != paused:
        journal.append(kinds.PAUSE if paused else kinds.RESUME)
        journal.frontier.paused = paused


def set_host(journal: Journal, slot: int, limits: HostLimits) -> HostState:
    """Set block, delay or budget of a slot: see :meth:`inlink.Crawl.set_host`. The values are checked."""
    hosts, queue, now = journal.frontier.hosts, journal.frontier.queue, journal.now
    before = hosts.wishes.get(slot, NO_WISH)
    until, limit = before.blocked_until if before.blocks(now) else None, before.limit
    if "block" in limits:
        until = Wish.until(limits["block"], now)
    if "budget" in limits:
        limit = Wish.pages(limits["budget"], int(queue.rows[slot]["taken"]))
    wish = Wish(until, Wish.seconds(limits["delay"]) if "delay" in limits else before.delay, limit)
    if wish != before:
        page, due = hosts.first_page(slot), hosts.due(slot, now)
        journal.append(kinds.HOST_SET, page, payload=wish.packed())
        hosts.set_wish(slot, wish, now)
        # The time at which the slot is due depends on its delay.
        if hosts.due(slot, now) != due:
            journal.append(kinds.HOST, page, **hosts.frame(slot, now))
        queue.settle(slot, now)
    return hosts.state(slot, now)


def exclude_waiting(journal: Journal, slot: int | None, reason: str, older_than: float | None) -> int:
    """Exclude the waiting pages of a slot, or of all; return their number. See :meth:`inlink.Crawl.exclude_host`."""
    now, waiting = journal.now, _waiting(journal, slot)
    if older_than is not None:
        waiting = waiting[_last_seen(journal.pages, waiting) < now - older_than]
    for page in waiting.tolist():
        journal.gate.changing = True
        journal.frontier.forget_plan(page)
        journal.frontier.leave(page, now)
    journal.exclude_for_operator(waiting, reason)
    return len(waiting)


def _waiting(journal: Journal, slot: int | None) -> UInt32Array:
    """The pages of a slot, or of all slots, that wait in the queue or for a date, uint32[k], increasing."""
    frontier, states = journal.frontier, journal.pages.states
    pages = np.arange(journal.pages.num_pages, dtype=np.uint32)
    if slot is not None:
        pages = frontier.hosts.pages_of(slot)
    discovered, crawled = pages[states[pages] == DISCOVERED], pages[states[pages] == CRAWLED]
    due = [
        page in frontier.queue or page in frontier.plans or page in frontier.lost for page in crawled.tolist()
    ]
    return np.sort(np.concatenate([discovered, crawled[np.array(due, bool)]]))


def _last_seen(pages: Pages, numbers: UInt32Array) -> Float64Array:
    """Unix times at which pages were last crawled, or else discovered: float64[k]."""
    places = np.array(
        [pages.maker_place(page) if place is None else place
         for page in numbers.tolist() for place in (pages.visit_place(page),)], np.int64,
    )  # fmt: skip
    return pages.times_at(places)


def set_due(answers: Answers, page: int, seconds: float) -> bool:
    """Set when a page is due; return whether the date was set. See :meth:`inlink.Crawl.set_due`."""
    journal, frontier = answers.journal, answers.frontier
    page, now = journal.pages.survivor(page), journal.now
    state = int(journal.pages.states[page])
    if state in GIVEN_UP:
        if seconds == math.inf:
            return True
        answers.wait_again(np.array([page], np.uint32))
    elif state not in WAITING:
        return False
    journal.append(kinds.DUE, page, payload=struct_of(DateRecord).pack(now + seconds))
    frontier.hold_back(page, now + seconds, now)
    return True


def change_settings(answers: Answers, folder: Path, changes: dict[str, Any]) -> Settings:
    """Change settings of a crawl in ``folder``; return those in force. See :meth:`inlink.Crawl.change_settings`."""
    journal, frontier = answers.journal, answers.frontier
    before = frontier.settings
    for name in changes:
        if name in AT_OPENING:
            raise _needs_opening(name)
    after = changed(before, changes)
    if after.politeness.by != before.politeness.by:
        raise _needs_opening("politeness.by")
    keep_shard(before, after)
    if after == before:
        return after
    now = journal.tick()
    journal.append(kinds.SETTINGS, payload=event_of(folder, after))
    save(folder, after)
    frontier.set_settings(after, now)
    if after.rules != before.rules:
        answers.admission.rules_changed()
        answers.readmit()
    if (after.revisit, after.revisit_rules) != (before.revisit, before.revisit_rules):
        plan_anew(frontier, after.revisit, now)
    return after


def _needs_opening(name: str) -> ParameterError:
    group, dot, field = name.partition(".")
    argument = f"{group}={{'{field}': …}}" if dot else f"{name}=…"
    return ParameterError(
        f"`{name}` cannot change while a crawl is open: close the crawl, and open it with Crawl(…, {argument})"
    )


def slot_named(journal: Journal, host: str) -> int:
    """The slot of a host, or of a registered domain if politeness counts domains, by any form of its name.

    Raises
    ------
    inlink.errors.UnknownNodeError
        If the crawl knows neither.
    inlink.errors.ParameterError
        If ``host`` cannot be the name of a host.
    """
    name, hosts, queue = host_name(host), journal.frontier.hosts, journal.frontier.queue
    number = journal.pages.table.host_number(name)
    if number is not None:
        return int(queue.waiting.slot_of[number]) if queue.by_domain else number
    slot = hosts.slot_of_domain(registered_domain(name) or name)
    if slot is None:
        raise UnknownNodeError(
            f"{host!r:.200}: {journal.pages.folder} knows no host {name!r}: search with `inlink find`"
        )
    return slot
