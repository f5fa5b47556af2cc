"""What is known of one page."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from inlink.store.layout import NOFOLLOW, NOINDEX, STATES

if TYPE_CHECKING:
    from inlink.store.pages import Pages

__all__ = ["Frame", "Page", "Visit", "describe"]


class Frame(NamedTuple):
    """One frame of the log; ``time`` in seconds since 1970."""

    time: float
    page: int
    flags: int
    status: int
    score: float
    payload: bytes


class Visit(NamedTuple):
    """A page's latest visit; times in seconds since 1970, ``place`` its frame's in the log."""

    time: float
    status: int
    first_crawl: float
    crawls: int
    changes: int
    place: int
    content_hash: bytes
    flags: int


@dataclass(frozen=True, slots=True)
class Page:
    """What a crawl knows of one page. Times are seconds since 1970; None is not yet.

    ``score`` is its content's where it was crawled, else the best of the scores that links to it were given.
    ``linked_from`` is the URL whose links made it known, None for a seed. ``changes`` counts the crawls that found
    another content hash than the one before. ``errors`` counts failures since the last success, ``error`` tells
    the last one. ``noindex`` and ``nofollow`` are what the page asked of robots when it was crawled last.
    """

    url: str
    id: int
    state: str
    score: float
    depth: int
    linked_from: str | None
    first_crawl: float | None
    last_crawl: float | None
    crawls: int
    changes: int
    content_hash: bytes
    status: int
    errors: int
    error: str | None
    merged_into: str | None
    noindex: bool = False
    nofollow: bool = False


def describe(pages: "Pages", page: int) -> Page:
    """All that a crawl's columns and log say of a page."""
    visit = pages.visit(page)
    row = int(pages.answers[page])
    error, status = None, visit.status if visit else 0
    if row and pages.errors[page] and pages.failures[row]:
        failure = pages.frame(int(pages.failures[row]) - 1)
        status, error = failure.status, failure.payload[8:].decode("utf-8", "replace")
    return Page(
        pages.url(page),
        page,
        STATES[pages.states[page]],
        float(pages.scores[page]),
        int(pages.depths[page]),
        pages.linked_from(page),
        visit.first_crawl if visit else None,
        visit.time if visit else None,
        visit.crawls if visit else 0,
        visit.changes if visit else 0,
        visit.content_hash if visit else b"",
        status,
        int(pages.errors[page]),
        error,
        pages.url(pages.survivor(page)) if page in pages.merged else None,
        bool(visit and visit.flags & NOINDEX),
        bool(visit and visit.flags & NOFOLLOW),
    )
