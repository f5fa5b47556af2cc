"""What is known of one page."""

from dataclasses import dataclass
from typing import NamedTuple

from inlink.store.format import NOFOLLOW, NOINDEX, STATES, FailedRecord, size_of

__all__ = ["Frame", "Page", "Visit", "describe", "error_of"]


class Frame(NamedTuple):
    """One frame of the log: what its :class:`~inlink.store.format.Head` says, and its payload."""

    kind: int
    time: float
    page: int
    flags: int
    status: int
    score: float
    lease: int
    listed: int
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
    another content hash than the one before. ``errors`` counts failures since the last success. ``error`` tells the
    last one; of an excluded page it says why the page was excluded. ``noindex`` and ``nofollow`` are what the page
    asked of robots when it was crawled last.
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


def error_of(failure: Frame) -> str:
    """What a failure's frame says of the error."""
    return failure.payload[size_of(FailedRecord) :].decode("utf-8", "replace")


def describe(
    page: int,
    url: str,
    state: int,
    score: float,
    depth: int,
    linked_from: str | None,
    visit: Visit | None,
    errors: int,
    failure: Frame | None,
    merged_into: str | None,
    reason: str | None = None,
) -> Page:
    """Put together what a crawl knows of a page; ``failure`` is its last one if there was none since the last visit.

    ``reason`` is the one for which an operator excluded it.
    """
    return Page(
        url,
        page,
        STATES[state],
        score,
        depth,
        linked_from,
        visit.first_crawl if visit else None,
        visit.time if visit else None,
        visit.crawls if visit else 0,
        visit.changes if visit else 0,
        visit.content_hash if visit else b"",
        failure.status if failure else visit.status if visit else 0,
        errors,
        error_of(failure) if failure and reason is None else reason,
        merged_into,
        bool(visit and visit.flags & NOINDEX),
        bool(visit and visit.flags & NOFOLLOW),
    )
