"""Counts of a crawl since it was opened, and its sessions, for dashboards."""

import math

import msgspec

from inlink.crawl.journal import Journal

__all__ = ["Activity", "Working", "activity"]


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


MOST_SESSIONS = 100


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
