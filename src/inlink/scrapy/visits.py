"""What came of the requests that were handed out, gathered while Scrapy deals with them."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.spidermiddlewares.httperror import HttpError

from inlink.client import Answer, Crawled, Excluded, Failed, Released, Task
from inlink.frontier.intake import CarriedLink, Link
from inlink.scoring.choose import ScoreLinks, ScorePage
from inlink.scoring.reading import Reading, read_page
from inlink.scrapy.robots import FORBIDDEN, RobotsUnreachable
from inlink.urls.canonical import canonical

__all__ = ["Visit", "answer_for", "reading", "usable_score"]

log = logging.getLogger("inlink.scrapy")

_readings: WeakKeyDictionary[Response, Reading] = WeakKeyDictionary()


@dataclass(eq=False)
class Visit:
    """A request that was handed out, and what is known of it so far."""

    task: Task
    request: Request
    response: Response | None = None  # as the spider gets it
    status: int | None = None  # of the last answer from the network, also where a retry follows
    retry_after: str | None = None
    failure: BaseException | None = None
    trouble: str = ""  # what the network said last
    error: str | None = None  # of the callback
    links: list[Link] = field(default_factory=list)
    alias: str | None = None  # the URL of which this is one more request
    over: bool = False  # answered for already: by a redirect, or by a retry


def reading(response: Response) -> Reading:
    """What a page says, read once for each response: :class:`inlink.scoring.reading.Reading`."""
    found = _readings.get(response)
    if found is None:
        headers, kind = response.headers, response.headers.get("Content-Type")
        found = read_page(
            response.body,
            response.url,
            content_type=None if kind is None else kind.decode("latin-1"),
            robots_header=[one.decode("latin-1") for one in headers.getlist("X-Robots-Tag")],
            link_header=[one.decode("latin-1") for one in headers.getlist("Link")],
        )
        _readings[response] = found
    return found


def answer_for(
    visit: Visit, scorer: ScorePage | None, link_scorer: ScoreLinks | None, retries: bool
) -> Answer:
    """What to tell the crawl of a request that has been dealt with.

    Parameters
    ----------
    visit : Visit
    scorer, link_scorer : callable or None
    retries : bool
        Scrapy's own retry middleware decides what is tried again, and has decided.
    """
    lease = visit.task.lease
    if visit.failure is not None and not isinstance(visit.failure, HttpError):
        told = f"{type(visit.failure).__name__}: {visit.failure}"
        if isinstance(visit.failure, RobotsUnreachable):
            return Failed(lease, str(visit.failure))
        if isinstance(visit.failure, IgnoreRequest):
            reason = str(visit.failure)
            return Excluded(lease, reason if reason.startswith(FORBIDDEN) else told)
        return Failed(lease, told, visit.status, False if retries else None, visit.retry_after)
    if visit.response is None:
        return Released(lease)  # it never left: the spider was closed
    return _fetched(visit, visit.response, scorer, link_scorer, retries)


def _fetched(
    visit: Visit,
    response: Response,
    scorer: ScorePage | None,
    link_scorer: ScoreLinks | None,
    retries: bool,
) -> Answer:
    lease, status = visit.task.lease, response.status
    if status >= 400 and not visit.links and visit.error is None:
        return Failed(lease, "", status, False if retries else None, visit.retry_after)
    page = reading(response)
    score = usable_score(response.meta.get("score"))
    if score is None:
        score = _page_score(page, scorer) if scorer is not None and status < 400 else None
    text = page.text.encode("utf-8", "replace") or response.body
    return Crawled(
        lease,
        _scored(visit.links, page, score or 0.0, link_scorer),
        score or 0.0,
        blake2b(text, digest_size=8).digest(),
        status,
        visit.alias,
        page.canonical if visit.alias is None else None,
        page.noindex,
        page.nofollow,
        visit.error,
    )


def _scored(links: list[Link], page: Reading, score: float, scorer: ScoreLinks | None) -> list[Link]:
    """Links; those that have no score of their own with the best that the scorer gives those to the same URL."""
    best: dict[str | None, float] = {}
    if scorer is not None and links:
        for link, value in zip(page.links, _link_scores(page, score, scorer), strict=False):
            given = usable_score(value) or 0.0
            best[link.url] = max(given, best.get(link.url, given))
    found: list[Link] = []
    for one in links:
        if isinstance(one, str):
            found.append((one, best.get(canonical(one, page.url), 0.0)) if best else one)
        elif isinstance(one, CarriedLink) and math.isnan(one.score):
            found.append(one._replace(score=best.get(canonical(one.url, page.url), 0.0)))
        else:
            found.append(one)
    return found


def _page_score(page: Reading, scorer: ScorePage) -> float | None:
    try:
        return usable_score(scorer(page))
    except Exception:  # whatever a user's scorer may raise: the page is there
        log.exception("the content scorer failed on %s", page.url)
        return None


def _link_scores(page: Reading, score: float, scorer: ScoreLinks) -> Sequence[float]:
    try:
        return scorer(page, score)
    except Exception:
        log.exception("the link scorer failed on %s", page.url)
        return ()


def usable_score(value: Any) -> float | None:
    """A score as a crawl takes it; None for what is none."""
    try:
        score = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return score if abs(score) < 3e38 else None
