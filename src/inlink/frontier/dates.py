"""Due dates of pages that were set from outside, read from the log's events."""

import numpy as np

from inlink.base.arrays import Int64Array, UInt32Array
from inlink.store.format import (
    CRAWLED,
    DUE,
    HEAD,
    HINT,
    RELOAD,
    DateRecord,
    dtype_of,
)
from inlink.store.life import WAITING
from inlink.store.pages import Pages

__all__ = ["due_dates", "last_answers", "reloaded"]

_DATED = np.dtype([("head", HEAD), ("record", dtype_of(DateRecord))])


def due_dates(pages: Pages) -> list[tuple[int, float]]:
    """Pages whose due date was set from outside and still holds, and the dates; infinity is never.

    A date holds until the next answer for the page. A reload or a hint ends it too.
    """
    places = np.array(pages.frames_of_kind(DUE), np.int64)
    if not len(places):
        return []
    frames = pages.log_at(places)[places[:, None] + np.arange(_DATED.itemsize)].view(_DATED)[:, 0]
    numbers = frames["head"]["page"]
    # The last date of each page.
    _, last = np.unique(numbers[::-1], return_index=True)
    last = len(numbers) - 1 - last
    numbers, places, dates = numbers[last], places[last], frames["record"]["date"][last]
    states = pages.states[numbers]
    holds = (places >= last_answers(pages, numbers)) & np.isin(states, WAITING)
    overruled = _overruled(pages, int(places.min()))
    return [
        (page, date)
        for page, date, place in zip(
            numbers[holds].tolist(), dates[holds].tolist(), places[holds].tolist(), strict=True
        )
        if place > overruled.get(page, -1)
    ]


def reloaded(pages: Pages) -> list[tuple[int, float]]:
    """Crawled pages that were reloaded after their last answer, and the Unix time of the last reload."""
    found: dict[int, float] = {}
    for place in pages.frames_of_kind(RELOAD):
        frame = pages.frame(place)
        listed = np.frombuffer(frame.payload, np.uint32)
        crawled = listed[pages.states[listed] == CRAWLED]
        waits = crawled[last_answers(pages, crawled) <= place]
        found |= dict.fromkeys(waits.tolist(), frame.time)
    return list(found.items())


def last_answers(pages: Pages, some: UInt32Array) -> Int64Array:
    """The places of the last answers for pages, plus 1; 0 for a page without an answer: int64[k]."""
    rows = pages.answers[some]
    places: Int64Array = np.maximum(pages.visits[rows], pages.failures[rows]).astype(np.int64) * (rows > 0)
    return places


def _overruled(pages: Pages, begin: int) -> dict[int, int]:
    """Pages with a reload or a hint from byte ``begin`` of the log on, and the place of the last of these events."""
    found: dict[int, int] = {}
    for place in pages.frames_of_kind(RELOAD, HINT, begin=begin):
        frame = pages.frame(place)
        if frame.kind == HINT:
            found[frame.page] = place
        else:
            found |= dict.fromkeys(np.frombuffer(frame.payload, np.uint32).tolist(), place)
    return found
