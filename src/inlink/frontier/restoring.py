"""Restore a frontier from the events of its crawl's log, or from a checkpoint and the events after it."""

import numpy as np

from inlink.base.arrays import Int64Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.threads import Threads
from inlink.frontier.adoption import adopt
from inlink.frontier.frontier import Frontier
from inlink.frontier.leases import Out
from inlink.frontier.saved import restore_policy, restore_queue, restore_traps, restore_values
from inlink.frontier.traps import line_codes
from inlink.store.checkpoint import Checkpoint
from inlink.store.format import (
    CRAWLED,
    DISCOVERED,
    DUE,
    HEAD,
    HEAD_SIZE,
    HINT,
    HOST,
    LEASE,
    LEASED,
    LOST,
    PAUSE,
    RELEASE,
    RELOAD,
    RESUME,
    SETTINGS,
    DateRecord,
    FailedRecord,
    Head,
    LeaseRecord,
    LostRecord,
    ReleasedRecord,
    dtype_of,
    size_of,
    struct_of,
)
from inlink.store.frames import fields_at
from inlink.store.life import WAITING
from inlink.store.pages import Pages

_AT_A_TIME = 1 << 14
"""Number of events of leases that are read at a time."""

_RECENT = 600.0
"""Leases of this many seconds are read in any case, because a longer delay may be set after the opening."""

_DATED = np.dtype([("head", HEAD), ("record", dtype_of(DateRecord))])

_COOLED = 40.0
"""After this many windows, a crawl adds e⁻⁴⁰ to the temperature of a host, which float32 cannot show."""


def restore(frontier: Frontier, now: float) -> None:
    """Fold all events of the log into a new frontier."""
    pages = frontier.pages
    kept = restore_columns(frontier)
    if frontier.copies is not None:
        frontier.copies.restore()
    _count_taken(frontier, _restore_leases(frontier))
    if frontier.policy.sharing == "turns":
        _restore_turns(frontier)
    frontier.hosts.restore(now)
    _restore_fetches(frontier, now)
    _restore_retries(frontier)
    restore_queue(frontier, kept, now)
    pages.release()
    _restore_lost(frontier, now)
    frontier.sessions.restore(pages, now)
    for place in pages.frames.of_kind(PAUSE, RESUME):
        frontier.paused = pages.frames.frame(place).kind == PAUSE
    restore_dates(frontier, now)


def restore_columns(frontier: Frontier) -> Checkpoint | None:
    """Restore hosts, trap codes and the policy; return the checkpoint if it holds the policy and the queue."""
    pages = frontier.pages
    frontier.hosts.take_in()
    with Threads(2) as threads:
        # The place in urls.txt is known of every 32nd page.
        first = restore_traps(frontier)
        half = (first + pages.num_pages) >> 6 << 5
        trapping = [
            threads.submit(_find_traps, frontier, first, half),
            threads.submit(_find_traps, frontier, half, pages.num_pages),
        ]
        kept = restore_policy(frontier)
        if kept is None and not adopt(frontier, verify=True):
            frontier.policy.fold(frontier.events(0))
        for task in trapping:
            task.result()
    if frontier.values is not None:
        restore_values(frontier)
    return kept


def restore_dates(frontier: Frontier, now: float) -> None:
    """Let pages that changed after their last visit wait again, and apply due dates that were set from outside."""
    pages = frontier.pages
    # With ByValue, hints change the dates.
    for place in () if frontier.values is not None else pages.frames.of_kind(HINT):
        hint = pages.frames.frame(place)
        page = hint.page
        if pages.states[page] != CRAWLED or page in frontier.queue or page in frontier.lost:
            continue
        # The hint holds until the next answer.
        if _last_answers(pages, np.array([page], np.uint32))[0] <= place:
            # The page does not wait for a retry any more.
            frontier.forget_plan(page)
            frontier.wait_again(page, now)
    for page, since in _reloaded(pages).items():
        if page not in frontier.lost:
            frontier.plan(page, since)
    for page, due in _due_dates(frontier):
        # A date that has passed has no further effect on a page that waits.
        waits = page in frontier.queue or page in frontier.lost
        if due > now or not waits:
            frontier.hold_back(page, due, now)


def pages_set_outside(pages: Pages) -> set[int]:
    """Pages with a reload or a due date that is later than their last answer and their last hint."""
    last = _overruled(pages, 0, RELOAD)
    for place in pages.frames.of_kind(DUE):
        page = pages.frames.frame(place).page
        last[page] = max(place, last.get(page, 0))
    numbers = np.array(list(last), np.uint32)
    later = _last_answers(pages, numbers) <= np.array(list(last.values()), np.int64)
    hints, outside = _overruled(pages, 0, HINT), numbers[later].tolist()
    return {page for page in outside if last[page] > hints.get(page, -1)}


def _find_traps(frontier: Frontier, first: int, end: int) -> None:
    """Write the penalty codes of the pages from ``first``, a multiple of 32, up to ``end``."""
    pages = frontier.pages
    while first < end:
        last = min(first + (1 << 17), end)
        begin = int(pages.table.marks[first >> 5])
        stop = pages.tally.url_bytes if last == pages.num_pages else int(pages.table.marks[last >> 5])
        line_codes(pages.table.text(begin, stop), frontier.year, frontier.traps[first:last])
        first = last


def _restore_leases(frontier: Frontier) -> list[tuple[int, int]]:
    """Put all open leases on the book; return the page and the slot of each current lease."""
    book, queue, pages = frontier.leases, frontier.queue, frontier.pages
    leases, found = pages.frames.open_leases(), []
    book.next_number, frontier.last_event = int(leases.following), float(leases.last_time)
    current = dict(zip(leases.pages.tolist(), leases.numbers.tolist(), strict=True))
    for row in np.lexsort((leases.numbers, leases.expires)).tolist():
        number, page, session = (
            int(column[row]) for column in (leases.numbers, leases.pages, leases.sessions)
        )
        slot = queue.slot(page)
        expires, given = float(leases.expires[row]), float(leases.given[row])
        book.add(Out(number, page, slot, expires, int(leases.places[row]), session, given))
        if pages.states[page] == LEASED and current[page] == number:
            queue.rows[slot]["flying"] += 1
            found.append((page, slot))
            if pages.losses[page]:
                frontier.lost.alone[session] = page
        else:
            book.late(number)
    return found


def _count_taken(frontier: Frontier, leased: list[tuple[int, int]]) -> None:
    """Subtract answered and leased pages from the budgets of their hosts."""
    pages = frontier.pages
    answered = pages.answered[1 : pages.tally.rows + 1]
    # An answered page whose lease was lost does not count as taken while it waits, nor does one that waits again after
    # a reload. One that waits for a retry counts. So does a crawled page until it is due again.
    states = pages.states[answered]
    lost = np.isin(states, WAITING) & (pages.losses[answered] > 0)
    answered = answered[~lost & ((states != DISCOVERED) | (pages.errors[answered] > 0))]
    again = [slot for page, slot in leased if not pages.answers[page]]
    slots = np.concatenate([frontier.queue.slots_of(answered), np.array(again, np.uint32)])
    frontier.hosts.spend(slots.astype(np.int64))


def _restore_turns(frontier: Frontier) -> None:
    """Count the turns of slots, in the order of all leases."""
    places = np.array(frontier.pages.frames.of_kind(LEASE), np.uint64)
    for some in np.array_split(places, len(places) // _AT_A_TIME + 1):
        frontier.queue.count_turns(_leased_slots(frontier, some)[0])


def _leased_slots(frontier: Frontier, places: UInt64Array) -> tuple[UInt32Array, Int64Array]:
    """Return the slot of each lease of some events, uint32[k], and the number of leases of each event."""
    log = frontier.pages.frames.at(places)
    listed = fields_at(log, places, Head, "listed").astype(np.int64)
    ends = np.cumsum(listed)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - listed, listed)
    at = np.repeat(places.astype(np.int64) + (HEAD_SIZE + size_of(LeaseRecord)), listed) + 4 * within
    return frontier.queue.slots_of(log[at[:, None] + np.arange(4)].view(np.uint32)[:, 0]), listed


def _restore_fetches(frontier: Frontier, now: float) -> None:
    """Restore the delays since the last fetches, and the temperatures of crawl rates, from the recent leases.

    The last event about a host holds its date, in which earlier leases count, but not a later change of settings.
    """
    pages, queue = frontier.pages, frontier.queue
    count, limits = queue.num_slots, queue.limits
    if not count:
        return
    recent = max(_RECENT, float(queue.rows["delay"][:count].max()))
    rates = [rate for rate in (limits.soft, limits.hard) if rate > 0]
    if rates:
        recent = max(recent, _COOLED * limits.window + 1 / min(rates))
    places = pages.frames.leases_since(now - recent)
    if not len(places):
        return
    about = np.zeros(count, np.uint64)
    changed = max(pages.frames.of_kind(SETTINGS), default=0)
    events = np.array(pages.frames.of_kind(HOST, begin=changed), np.uint64)
    about[queue.slots_of(fields_at(pages.frames.at(events), events, Head, "page"))] = events
    last, fetched, heats = np.zeros(count), np.zeros(count), np.zeros(count)
    for some in np.array_split(places, len(places) // _AT_A_TIME + 1):
        slots, listed = _leased_slots(frontier, some)
        times = np.repeat(fields_at(pages.frames.at(some), some, Head, "time"), listed)
        before = last.copy()
        np.maximum.at(last, slots, times)
        heats *= np.exp((before - last) / limits.window)
        heats += np.bincount(slots, np.exp((times - last[slots]) / limits.window), count)
        dated = np.repeat(some, listed) > about[slots]
        np.maximum.at(fetched, slots[dated], times[dated])
    for slot in np.flatnonzero(last).tolist():
        heat = float(heats[slot]) if rates else 0.0
        frontier.hosts.fetched(slot, float(fetched[slot]), float(last[slot]), heat, now)


def _restore_retries(frontier: Frontier) -> None:
    """Let the pages whose last fetch failed wait for their retries."""
    pages = frontier.pages
    for page in _waiting(pages, pages.errors):
        row = int(pages.failures[pages.answers[page]])
        if row:
            (due,) = struct_of(FailedRecord).unpack_from(pages.frames.frame(row - 1).payload)
            frontier.plan(page, due)


def _restore_lost(frontier: Frontier, now: float) -> None:
    """Let the pages whose leases were lost wait outside the queue."""
    lost = _waiting(frontier.pages, frontier.pages.losses)
    due = _lost_dates(frontier.pages) if lost else {}
    for page in lost:
        frontier.queue.remove(page, now)
        frontier.forget_plan(page)
        frontier.lost.wait(page, due[page])


def _waiting(pages: Pages, counts: UInt8Array) -> list[int]:
    """The pages that were not given up and whose count is not 0."""
    numbers = np.flatnonzero(counts[: pages.num_pages])
    waiting: list[int] = numbers[np.isin(pages.states[numbers], WAITING)].tolist()
    return waiting


def _lost_dates(pages: Pages) -> dict[int, float]:
    """The Unix time at which each page whose lease was lost waits again, by the last event about it."""
    due: dict[int, float] = {}
    for place in pages.frames.of_kind(LOST, RELEASE):
        frame = pages.frames.frame(place)
        if frame.kind == LOST:
            for lost in np.frombuffer(frame.payload, dtype_of(LostRecord)):
                due[int(lost["page"])] = float(lost["due"])
        else:
            for released in np.frombuffer(frame.payload, dtype_of(ReleasedRecord)):
                due[int(released["page"])] = frame.time
    return due


def _due_dates(frontier: Frontier) -> list[tuple[int, float]]:
    """Pages with a due date that a caller has set, and the dates. An answer, a reload or a hint ends the date.

    With ByValue, a hint changes nothing while a page waits for a retry.
    """
    pages = frontier.pages
    places = np.array(pages.frames.of_kind(DUE), np.int64)
    if not len(places):
        return []
    frames = pages.frames.at(places)[places[:, None] + np.arange(_DATED.itemsize)].view(_DATED)[:, 0]
    numbers = frames["head"]["page"]
    # The last date of each page.
    _, last = np.unique(numbers[::-1], return_index=True)
    last = len(numbers) - 1 - last
    numbers, places, dates = numbers[last], places[last], frames["record"]["date"][last]
    states = pages.states[numbers]
    holds = (places >= _last_answers(pages, numbers)) & np.isin(states, WAITING)
    begin = int(places.min())
    hints = _overruled(pages, begin, HINT)
    if frontier.values is not None:
        hints = {page: place for page, place in hints.items() if not pages.errors[page]}
    reloads = _overruled(pages, begin, RELOAD)
    return [
        (page, date)
        for page, date, place in zip(
            numbers[holds].tolist(), dates[holds].tolist(), places[holds].tolist(), strict=True
        )
        if place > max(hints.get(page, -1), reloads.get(page, -1))
    ]


def _reloaded(pages: Pages) -> dict[int, float]:
    """Crawled pages that were reloaded after their last answer, and the Unix time of the last reload."""
    due: dict[int, float] = {}
    for place in pages.frames.of_kind(RELOAD):
        frame = pages.frames.frame(place)
        listed = np.frombuffer(frame.payload, np.uint32)
        crawled = listed[pages.states[listed] == CRAWLED]
        waits = crawled[_last_answers(pages, crawled) <= place]
        due |= dict.fromkeys(waits.tolist(), frame.time)
    return due


def _last_answers(pages: Pages, some: UInt32Array) -> Int64Array:
    """The places of the last answers for pages, plus 1; 0 for a page without an answer: int64[k]."""
    rows = pages.answers[some]
    places: Int64Array = np.maximum(pages.visits[rows], pages.failures[rows]).astype(np.int64) * (rows > 0)
    return places


def _overruled(pages: Pages, begin: int, *kinds: int) -> dict[int, int]:
    """Pages with reloads or hints (``kinds``) from byte ``begin`` of the log on, and the place of the last of them."""
    last: dict[int, int] = {}
    for place in pages.frames.of_kind(*kinds, begin=begin):
        frame = pages.frames.frame(place)
        if frame.kind == HINT:
            last[frame.page] = place
        else:
            last |= dict.fromkeys(np.frombuffer(frame.payload, np.uint32).tolist(), place)
    return last
