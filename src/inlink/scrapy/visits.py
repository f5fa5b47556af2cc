"""Collect the outcomes of requests while Scrapy processes them, and make the crawl's answers of them."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from io import BytesIO
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from scrapy import Request
from scrapy.exceptions import DownloadCancelledError, IgnoreRequest
from scrapy.exporters import JsonLinesItemExporter
from scrapy.http import Response
from scrapy.spidermiddlewares.httperror import HttpError

from inlink.crawl.intake import check_items
from inlink.protocol import (
    LARGEST_SCORE,
    PLACES,
    Answer,
    AnyLink,
    Crawled,
    Excluded,
    Failed,
    Link,
    PageFacts,
    Released,
    Task,
)
from inlink.scoring.choose import ScoreLinks, ScorePage
from inlink.scoring.fingerprint import fingerprint
from inlink.scoring.reading import PageLink, Reading, read_page
from inlink.scrapy.addresses import AddressNotAllowed
from inlink.scrapy.robots import FORBIDDEN, RobotsUnreachable
from inlink.store.anchors import LONGEST_ANCHOR
from inlink.urls.canonical import canonical

log = logging.getLogger("inlink.scrapy")

LEASE = "inlink_lease"
"""The key in a request's meta that names its lease."""

_readings: WeakKeyDictionary[Response, Reading] = WeakKeyDictionary()


class Withdrawn(IgnoreRequest):
    """A request was taken back before it was sent, because its host asked for a pause."""


class Visit(msgspec.Struct, eq=False):
    """A request that was handed out, and its outcome so far."""

    task: Task
    request: Request
    # Whether the request passed all middlewares and went to the network.
    sent: bool = False
    # The response that the spider gets.
    response: Response | None = None
    # The status of the last response from the network, even if a retry follows.
    status: int | None = None
    retry_after: str | None = None
    failure: BaseException | None = None
    # The last error of the network.
    trouble: str = ""
    # The error of the callback.
    error: str | None = None
    links: list[AnyLink] = []
    # JSON lines.
    items: bytearray = msgspec.field(default_factory=bytearray)
    # The request's URL, if the same URL is requested once more (`dont_filter`).
    alias: str | None = None
    # Whether method or body distinguish the request from other requests to its URL.
    form: bool = False
    # Whether the crawl has an answer already, because of a redirect or a retry.
    over: bool = False

    def forget(self) -> None:
        """Drop the reference to the page, which may be large."""
        self.response = self.failure = None
        self.links, self.items = [], bytearray()


class Network:
    """A downloader middleware that records the outcomes of requests, both next to the network and next to the engine.

    Parameters
    ----------
    visits : mapping of Request to Visit
        The requests that Scrapy is processing.
    """

    def __init__(self, visits: Mapping[Request, Visit]) -> None:
        self._visits = visits

    def process_request(self, request: Request) -> None:
        """Record that a request goes to the network."""
        visit = self._visits.get(request)
        if visit is not None:
            visit.sent = True

    def process_response(self, request: Request, response: Response) -> Response:
        """Record a response of the network."""
        visit = self._visits.get(request)
        if visit is not None:
            wait = response.headers.get(b"Retry-After")
            visit.status, visit.trouble = usable_status(response.status), ""
            visit.retry_after = wait.decode("latin-1") if wait else None
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Record an error of the network."""
        visit = self._visits.get(request)
        if visit is not None and visit.sent:
            visit.status, visit.trouble = None, f"{type(exception).__name__}: {exception}"

    def received(self, request: Request, response: Response) -> Response:
        """Record the response that the spider will get, after all other downloader middlewares."""
        visit = self._visits.get(request)
        if visit is not None:
            visit.response = response
            if response.request is not None:
                # A middleware made its own request.
                response.request.meta[LEASE] = visit.task.lease
        return response


def reading(response: Response, *, self_links: bool = False) -> Reading:
    """The content of a page, as a :class:`inlink.scoring.reading.Reading`; each response is parsed once.

    Parameters
    ----------
    response : Response
    self_links : bool
        Keep links to a place on the page itself (``#top``). The first call for a response decides.
    """
    found = _readings.get(response)
    if found is None:
        headers, kind = response.headers, response.headers.get("Content-Type")
        found = read_page(
            response.body,
            response.url,
            content_type=None if kind is None else kind.decode("latin-1"),
            robots_header=[value.decode("latin-1") for value in headers.getlist("X-Robots-Tag")],
            link_header=[value.decode("latin-1") for value in headers.getlist("Link")],
            self_links=self_links,
        )
        _readings[response] = found
    return found


def answer_for(
    visit: Visit, scorer: ScorePage | None, link_scorer: ScoreLinks | None, retries: bool
) -> Answer:
    """The crawl's answer for a request that Scrapy has finished.

    Parameters
    ----------
    visit : Visit
    scorer, link_scorer : callable or None
    retries : bool
        Whether Scrapy's own retry middleware decides about retries. If so, it has decided by now.
    """
    lease, failure = visit.task.lease, visit.failure
    if failure is not None and not isinstance(failure, HttpError):
        return _failed(visit, failure, retries) or _fetched(visit, scorer, link_scorer, retries)
    if visit.response is None:
        return Excluded(lease, "dropped by a middleware: its target must not be fetched")
    return _fetched(visit, scorer, link_scorer, retries)


def _failed(visit: Visit, failure: BaseException, retries: bool) -> Answer | None:
    """The answer after a failure; None if the page was fetched nevertheless."""
    lease, told = visit.task.lease, f"{type(failure).__name__}: {failure}"
    if isinstance(failure, Withdrawn):
        return Released(lease)
    if isinstance(failure, RobotsUnreachable):
        # One of the requests that waited fails. If all did, the host would seem to fail as often.
        if failure.asked:
            return Failed(lease, str(failure), retry_after=failure.retry_after)
        return Released(lease)
    if isinstance(failure, AddressNotAllowed):
        return Excluded(lease, str(failure))
    if isinstance(failure, IgnoreRequest | DownloadCancelledError) or not visit.sent:
        return Excluded(lease, str(failure) if str(failure).startswith(FORBIDDEN) else told)
    if visit.trouble:
        return Failed(lease, told, visit.status, False if retries else None, visit.retry_after)
    # Scrapy does not accept the target's URL.
    if visit.response is None and 300 <= (visit.status or 0) < 400:
        return Failed(lease, f"redirects to what must not be fetched ({told})", visit.status, retry=False)
    # This is the fault of a middleware, not of the host.
    visit.error = visit.error or told
    return None


def _fetched(visit: Visit, scorer: ScorePage | None, link_scorer: ScoreLinks | None, retries: bool) -> Answer:
    lease, response = visit.task.lease, visit.response
    if response is None:
        return Crawled(lease, status=visit.status or 0, error=visit.error)
    status = usable_status(response.status)
    location = response.headers.get(b"Location")
    if location and isinstance(visit.failure, HttpError) and 300 <= status < 400:
        # Scrapy follows redirects to http URLs only, and hands the others on.
        target = location.decode("utf-8", "replace")[:200]
        return Failed(lease, f"redirects to {target!r}, which must not be fetched", status, retry=False)
    if status >= 400 and not visit.links and not visit.items and visit.error is None:
        return Failed(lease, "", status, False if retries else None, visit.retry_after)
    page = reading(response)
    score = usable_score(response.meta.get("score"))
    if score is None:
        score = _page_score(page, scorer) if scorer is not None and status < 400 else None
    text = page.text.encode("utf-8", "replace") or response.body
    # Responses wait for the garbage collector. Their parsed trees, of 100 kB and more, must not.
    _readings.pop(response, None)
    return Crawled(
        lease,
        _described(visit.links, page, score or 0.0, link_scorer),
        score or 0.0,
        blake2b(text, digest_size=8).digest(),
        status,
        visit.alias,
        page.canonical if visit.alias is None else None,
        page.noindex,
        page.nofollow,
        visit.error,
        fingerprint(page.text),
        _facts(page, response),
        bytes(visit.items),
    )


def item_line(item: Any) -> bytes:
    """An item as a line of JSON, as Scrapy's own exporter of JSON lines writes it.

    Raises
    ------
    Exception
        If the item cannot be written as JSON. Serializers of the project may raise anything.
    """
    file = BytesIO()
    # JSON has no NaN, although Python writes it by default.
    JsonLinesItemExporter(file, encoding="utf-8", allow_nan=False).export_item(item)
    line = file.getvalue()
    check_items(line)
    return line


def _facts(page: Reading, response: Response) -> PageFacts:
    """The data of a page for an audit."""
    texts = {link.url: (link.url, link.text[:LONGEST_ANCHOR], link.place) for link in _not_followed(page)}
    seconds = response.meta.get("download_latency") if response.request is not None else None
    return msgspec.structs.replace(
        page.facts,
        nofollow_links=list(texts.values()),
        seconds=float(seconds) if isinstance(seconds, int | float) and seconds >= 0 else 0.0,
    )


def _not_followed(page: Reading) -> Iterator[PageLink]:
    """The first thousand links of a page that must not be followed."""
    return islice((link for link in page.links if page.nofollow or link.nofollow), 1000)


def _described(links: list[AnyLink], page: Reading, score: float, scorer: ScoreLinks | None) -> list[AnyLink]:
    """Add texts and scores to links.

    If the page has several links to a URL, place and text are chosen as in
    :func:`inlink.store.anchors.encode_labels`. A link without a score gets the best
    score that the scorer gives to a link to its URL.
    """
    if not links:
        return links
    best: dict[str | None, float] = {}
    texts: dict[str | None, str] = {}
    places: dict[str | None, str] = {}
    for there in page.links:
        place, before = there.place, places.get(there.url)
        if before is None or PLACES.index(place) > PLACES.index(before):
            places[there.url] = place
            texts[there.url] = there.text[:LONGEST_ANCHOR] or texts.get(there.url, "")
    if scorer is not None:
        for there, scored in zip(page.links, _link_scores(page, score, scorer), strict=False):
            given = usable_score(scored) or 0.0
            best[there.url] = max(given, best.get(there.url, given))
    found: list[AnyLink] = []
    for told in links:
        link = _as_link(told)
        if link is None:
            found.append(told)
            continue
        form: str | None = link.url.partition("#")[0]
        if form not in texts:
            form = canonical(link.url, page.url)
        value = best.get(form, 0.0) if best and link.score is None else link.score
        text, place = link.text or texts.get(form, ""), link.place or places.get(form, "")
        found.append(Link(link.url, value, link.data, link.variant, text, place))
    return found


def _as_link(given: AnyLink) -> Link | None:
    """Convert a spider's link to a Link. Return None for anything else; the crawl then refuses it with a message."""
    if isinstance(given, str):
        return Link(given)
    if isinstance(given, tuple) and len(given) == 2:
        given = Link(*given)
    return given if isinstance(given, Link) and isinstance(given.url, str) else None


def _page_score(page: Reading, scorer: ScorePage) -> float | None:
    try:
        return usable_score(scorer(page))
    except Exception:
        # A user's scorer may raise anything. The page counts without a score.
        log.exception("the content scorer failed on %s", page.url)
        return None


def _link_scores(page: Reading, score: float, scorer: ScoreLinks) -> Sequence[float]:
    try:
        return scorer(page, score)
    except Exception:
        log.exception("the link scorer failed on %s", page.url)
        return ()


def usable_status(status: int) -> int:
    """An HTTP status, clipped to the range that a crawl accepts."""
    return min(max(status, 0), 999)


def usable_score(value: Any) -> float | None:
    """A score as a finite float; None if the value is not a score."""
    try:
        score = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return score if abs(score) < LARGEST_SCORE else None
