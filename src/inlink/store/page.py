"""What is known of one page."""

from dataclasses import dataclass

__all__ = ["Page"]


@dataclass(frozen=True, slots=True)
class Page:
    """What a crawl knows of one page. Times are seconds since 1970; None is not yet.

    ``score`` is its content's where it was crawled, else the best of the scores that links to it were given.
    ``linked_from`` is the URL whose links made it known, None for a seed. ``changes`` counts the crawls that found
    another content hash than the one before. ``errors`` counts failures since the last success, ``error`` tells
    the last one.
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
