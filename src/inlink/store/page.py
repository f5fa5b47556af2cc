"""The stored data of one page."""

from dataclasses import dataclass
from typing import NamedTuple

from inlink.protocol import PageFacts
from inlink.store.format import (
    BY_CANONICAL,
    BY_REDIRECT,
    FailedRecord,
    size_of,
)


class Frame(NamedTuple):
    """One frame of the log: the fields of its :class:`~inlink.store.format.Head`, and its payload."""

    kind: int
    time: float
    page: int
    flags: int
    status: int
    score: float
    lease: int
    listed: int
    payload: bytes


class LatestVisit(NamedTuple):
    """A page's latest visit. Times are Unix times. ``place`` is the place of its frame in the log."""

    time: float
    status: int
    first_crawl: float
    crawls: int
    changes: int
    place: int
    content_hash: bytes
    flags: int
    fingerprint: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """All stored data of one page. Times are Unix times; None if the page was not crawled.

    ``score`` is the score of its content if it was crawled, else the best score of a link to it. ``linked_from`` is the
    URL whose links made it known, None for a seed. ``changes`` is the number of crawls that found another content hash
    than the crawl before. ``errors`` is the number of failures since the last success. ``error`` is the text of the
    last failure; for an excluded page, the reason for the exclusion. ``noindex`` and ``nofollow`` are the page's robots
    directives at its last crawl. ``fingerprint`` is that of its text at its last crawl (see
    :mod:`inlink.scoring.fingerprint`), 0 if the spider gave none. ``near_duplicate_of`` is the URL of a page that was
    first crawled before it and has nearly the same text, None if there is none; ``searched`` is whether all earlier
    pages were compared. ``linked_text`` is the text of the link that made it known, None if it is not known.
    ``merged_into`` is the URL of the page that it was merged into. ``merge_reason`` says why (see
    :func:`merge_reason`), and ``status`` is then that of the answer that led there. ``canonical`` is the URL of another
    page that its latest visit names as its canonical page. ``facts`` is what the spider read from the page at its last
    crawl, None if it gave none.
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
    fingerprint: int = 0
    near_duplicate_of: str | None = None
    searched: bool = True
    linked_text: str | None = None
    merge_reason: str | None = None
    canonical: str | None = None
    facts: PageFacts | None = None


def merge_reason(merge: Frame) -> str | None:
    """Return why a page was merged into another, by the event of the merge.

    ``"redirect"``, ``"refresh"`` (a page with status 200 that sends browsers on, as by ``<meta http-equiv=refresh>``),
    ``"canonical"``, or None if the log does not say: earlier versions did not keep the reason, and the variant of a URL
    is merged into its page without any.
    """
    if merge.flags & BY_CANONICAL:
        return "canonical"
    if not merge.flags & BY_REDIRECT:
        return None
    return "refresh" if 200 <= merge.status < 300 else "redirect"


def error_of(failure: Frame) -> str:
    """Return the error text in a failure's frame."""
    return failure.payload[size_of(FailedRecord) :].decode("utf-8", "replace")
