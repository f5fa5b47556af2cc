"""Compute when a crawled page is due again: pass its visits from the log to a schedule, oldest first.

Then a rule for the page bounds the time since its last visit. The schedule's own interval stays as it is.
"""

from collections.abc import Iterator
from itertools import islice
from math import inf

import numpy as np

from inlink.errors import FolderError
from inlink.frontier.frontier import Frontier
from inlink.frontier.restoring import pages_set_outside, restore_dates
from inlink.frontier.revisit import History, Schedule, StoredSchedule
from inlink.store.format import CRAWLED, LEASED, VISIT, VisitRecord, struct_of
from inlink.store.log import EVENTS
from inlink.store.page import Frame
from inlink.store.pages import Pages

MOST = 1000
"""Maximum number of visits of a page that are passed to the schedule."""

_RECORD = struct_of(VisitRecord)


def visits_of(pages: Pages, page: int) -> Iterator[tuple[Frame, VisitRecord]]:
    """Yield the visits of a page, the latest first: each frame, and the record at the beginning of its payload.

    Raises
    ------
    inlink.errors.FolderError
        If the earlier visit that a visit names is not an earlier visit of the page.
    """
    place, end = pages.visit_place(page), pages.frames.end
    while place is not None:
        frame = pages.frames.frame(place) if place < end else None
        # Checksums do not prove that the place of an earlier visit is the place of a visit.
        if frame is None or (frame.kind, frame.page) != (VISIT, page) or len(frame.payload) < _RECORD.size:
            raise FolderError(
                f"{pages.folder / EVENTS} is damaged: no earlier visit of page {page} is at byte {place:,}. Take the "
                "crawl's folder from a backup."
            )
        visit = VisitRecord._make(_RECORD.unpack_from(frame.payload))
        yield frame, visit
        # Each place is smaller than the place before it, so the loop ends.
        end = place
        place = visit.previous - 1 if visit.previous else None


def plan_visit(frontier: Frontier, page: int, schedule: Schedule | None) -> None:
    """Plan the next visit of a page that was just crawled.

    The interval in force is computed from all visits, so it need not be stored.
    """
    pages, values = frontier.pages, frontier.values
    if values is not None:
        # After a renewal of the threshold, `replan` gives all pages their new dates.
        date = float(values.dates(np.array([page], np.uint32))[0])
        values.due[page] = date
        frontier.plan(page, date)
        return
    url = pages.url(page)
    rule = frontier.revisit_rules.of(url)
    if rule.least == rule.most:
        schedule = None
    elif isinstance(schedule, StoredSchedule):
        # Its code is not imported, so there is no interval that a rule could bound.
        return
    chain = [
        (frame.time, frame.status, visit.first_crawl, visit.crawls, visit.changes)
        for frame, visit in islice(visits_of(pages, page), 1 if schedule is None else MOST)
    ]
    wait = inf if schedule is None else _wait(schedule, chain, url)
    wait = min(max(wait, rule.least), rule.most)
    if wait < inf:
        frontier.plan(page, chain[0][0] + wait)


def _wait(schedule: Schedule, chain: list[tuple[float, int, float, int, int]], url: str) -> float:
    """The seconds after which a schedule fetches a page again; infinity for never.

    ``chain`` has the time, status, first crawl, number of crawls and of changes of each visit, the latest first.
    """
    wait, interval, changed_at, last_changes = inf, 0.0, None, 0
    for time, status, first, crawls, changes in reversed(chain):
        modified = None if crawls == 1 else changes > last_changes
        if modified:
            changed_at = time
        last_changes = changes
        answer = schedule.next(
            History(first, time, crawls, changes, modified, interval, status or None, changed_at, url)
        )
        interval = answer.interval
        wait = inf if answer.due_in is None else answer.due_in
    return wait


def plan_visits(frontier: Frontier, schedule: Schedule | None) -> None:
    """Plan the next visits of all crawled pages that do not wait yet."""
    values = frontier.values
    if values is not None:
        pages = frontier.pages
        set_outside = pages_set_outside(pages)
        for page, due in zip(*(column.tolist() for column in values.all_dates()), strict=True):
            if pages.states[page] == CRAWLED and not _waits(frontier, page):
                values.due[page] = due
                frontier.plan(page, due)
            elif pages.states[page] == LEASED and not (
                pages.errors[page] or pages.losses[page] or page in set_outside
            ):
                # It waits for this date if its lease is given back.
                values.due[page] = due
        values.outdated = False
        return
    for page in frontier.pages.crawled()[0].tolist():
        if frontier.pages.states[page] == CRAWLED and not _waits(frontier, page):
            plan_visit(frontier, page, schedule)


def _waits(frontier: Frontier, page: int) -> bool:
    """Return whether a crawled page waits in the queue or for a date, or has the date never."""
    return page in frontier.plans or page in frontier.never or page in frontier.queue or page in frontier.lost


def replan(frontier: Frontier, now: float) -> None:
    """Give all pages whose date is by value their new dates, after the threshold was renewed.

    Pages in the queue that are not due any more leave it. Dates that were set from outside, and retries, stay.
    """
    values, queue, plans = frontier.values, frontier.queue, frontier.plans
    assert values is not None
    values.outdated = False
    pages = np.flatnonzero(values.due[: frontier.pages.num_pages]).astype(np.uint32)
    before, after = values.due[pages], values.dates(pages)
    values.due[pages] = after
    early = queue.contain(pages) & (after > now)
    for page, old, due, leaves in zip(
        pages.tolist(), before.tolist(), after.tolist(), early.tolist(), strict=True
    ):
        if leaves:
            queue.withhold(page, now)
        if leaves or plans.get(page) == old:
            plans[page] = due
    frontier.sort_plans()


def plan_anew(frontier: Frontier, schedule: Schedule | None, now: float) -> None:
    """Plan all next visits again with another schedule, as if the crawl were opened with it."""
    pages, queue = frontier.pages, frontier.queue
    states, errors = pages.states[: pages.num_pages], pages.errors[: pages.num_pages]
    # A page with errors waits for a retry, which does not depend on the schedule.
    for page in np.flatnonzero((states == CRAWLED) & (errors == 0)).tolist():
        frontier.forget_plan(page)
        if page in queue:
            queue.withhold(page, now)
    restore_dates(frontier, now)
    if frontier.settings.revisits:
        plan_visits(frontier, schedule)
