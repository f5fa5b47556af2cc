"""When a crawled page is due again: its visits, read from the log, given to a schedule one after the other."""

from inlink.frontier.frontier import Frontier
from inlink.frontier.revisit import History, Schedule
from inlink.store.layout import CRAWLED, VISITED
from inlink.store.pages import Pages

__all__ = ["next_visit", "plan_visit", "plan_visits"]

MOST = 1000  # visits that are looked back on


def next_visit(pages: Pages, page: int, schedule: Schedule) -> float | None:
    """When a page is due again, in seconds since 1970; None is never.

    The interval in force is what the schedule makes of all visits, so that nothing of it has to be kept.
    """
    chain: list[tuple[float, int, float, int, int]] = []
    place = pages.visit_place(page)
    while place is not None and len(chain) < MOST:
        frame = pages.frame(place)
        first, crawls, changes, before, _ = VISITED.unpack_from(frame.payload)
        chain.append((frame.time, frame.status, first, crawls, changes))
        place = before - 1 if before else None
    due, interval, changed_at, last_changes = None, 0.0, None, 0
    url = pages.url(page)
    for time, status, first, crawls, changes in reversed(chain):
        modified = None if crawls == 1 else changes > last_changes
        if modified:
            changed_at = time
        last_changes = changes
        answer = schedule.next(
            History(first, time, crawls, changes, modified, interval, status or None, changed_at, url)
        )
        interval = answer.interval
        due = None if answer.due_in is None else time + answer.due_in
    return due


def plan_visit(frontier: Frontier, page: int, schedule: Schedule) -> None:
    """Let a page that was just crawled wait again when it is due."""
    due = next_visit(frontier.pages, page, schedule)
    if due is not None:
        frontier.plan(page, due)


def plan_visits(frontier: Frontier, schedule: Schedule) -> None:
    """:func:`plan_visit` for all pages that were crawled."""
    for page in frontier.pages.crawled()[0].tolist():
        if (
            frontier.pages.states[page] == CRAWLED
            and page not in frontier.plans
            and page not in frontier.queue
        ):
            plan_visit(frontier, page, schedule)
