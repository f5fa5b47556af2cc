"""Take in items of PutURLs and PutDiscovered, in the crawl's thread."""

import asyncio
import math
import time
from collections.abc import Generator
from dataclasses import dataclass, field

from inlink.base.arrays import slices
from inlink.crawl.crawl import Crawl
from inlink.crawl.questions.table import parts
from inlink.crawl.queues import DiscoveredUrl, is_key
from inlink.errors import ParameterError, UnknownNodeError
from inlink.protocol import Answer, Crawled, Failed, Redirected, Released
from inlink.server.urlfrontier.wire import FAIL, OK, OWNER, SKIPPED
from inlink.urls.canonical import canonical

AT_ONCE = 500
"""Maximum number of discovered URLs in one event, which takes about two milliseconds."""

NEVER = 1e9
"""A date that is further ahead than these seconds (thirty years) means never."""

STEP_SECONDS = 0.002
"""Seconds after which other calls get a turn."""


@dataclass(slots=True)
class Known:
    """A URL that a client has fetched, or wants to be fetched at a date.

    Parameters
    ----------
    url, key : str
    date : int
        Unix time at which it is due again; 0 is never, also for a URL that had another date.
    error : str or None
        The error; None if the URL was fetched.
    status : int or None
        HTTP status.
    redirects_to : str or None
    data : bytes
        Its metadata.
    links : list of str
        The URLs that it links to.
    """

    url: str
    key: str
    date: int
    error: str | None = None
    status: int | None = None
    redirects_to: str | None = None
    data: bytes = b""
    links: list[str] = field(default_factory=list)

    @property
    def is_only_date(self) -> bool:
        """Whether the item has a date, but no metadata about a fetch."""
        return self.date > 0 and self.status is None and self.error is None and self.redirects_to is None


@dataclass(slots=True)
class Put:
    """The content of a message: discovered URLs or a known URL; and the status of each, when it is decided."""

    found: list[DiscoveredUrl]
    known: Known | None
    statuses: "asyncio.Future[list[int]]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


def session_of(opened: Crawl) -> int:
    """The session of all clients of URLFrontier. It never ends, and goes on after a restart."""
    return opened.desk.hello(OWNER, rejoin=True).number


def take_in(opened: Crawl, puts: list[Put]) -> Generator[None, None, list[list[int]]]:
    """Take in the content of messages, the discovered URLs first; return the statuses of each message.

    Yields
    ------
    None
        Between steps.
    """
    found = [discovered for put in puts for discovered in put.found]
    statuses: list[int] = []
    for part in slices(len(found), AT_ONCE):
        told = opened.queues.discover(found[part])
        statuses += [OK if new else SKIPPED for new in told]
        if len(statuses) < len(found):
            yield
    result, at, session = [], 0, 0
    stop = time.perf_counter() + STEP_SECONDS
    for put in puts:
        if put.known is None:
            result.append(statuses[at : at + len(put.found)])
            at += len(put.found)
            continue
        session = session or session_of(opened)
        result.append([_known(opened, session, put.known)])
        if time.perf_counter() > stop:
            yield
            stop = time.perf_counter() + STEP_SECONDS
    return result


def _known(opened: Crawl, session: int, known: Known) -> int:
    form = canonical(known.url, None, opened.settings.url_rules)
    if form is None or (known.key and not is_key(known.key, form)):
        return SKIPPED
    try:
        lease = opened.desk.lease_on(session, known.url)
        if lease is not None:
            _answer(opened, session, lease, known)
        elif not _answer_by_url(opened, known):
            return SKIPPED
        if known.redirects_to is None:
            _set_date(opened, known)
    except (ParameterError, UnknownNodeError):
        return FAIL
    return OK


def _answer(opened: Crawl, session: int, lease: int, known: Known) -> None:
    answer: Answer
    if known.error is not None:
        answer = Failed(lease, known.error, known.status, known.date > 0)
    elif known.redirects_to is not None:
        answer = Redirected(lease, known.redirects_to, status=known.status or 0)
    else:
        answer = Crawled(lease, [*known.links], status=known.status or 200)
    (receipt,) = opened.desk.report(session, [answer])
    if receipt.task is not None:
        # The client discovers the target of a redirect and asks for it in its turn.
        opened.desk.report(session, [Released(receipt.task.lease)])


def _answer_by_url(opened: Crawl, known: Known) -> bool:
    """Take in an answer for a URL that no client has leased; return False if no answer is possible."""
    page = opened.page(known.url)
    if page is None:
        # The URL may come from the operator or from another frontier. No page of this crawl links to it.
        if opened.queues.discover([(known.url, known.key, 1.0, known.data)]) == [None]:
            return False
        if known.is_only_date:
            # The dump of a frontier has discovered URLs in this form. They were not fetched.
            return True
    elif page.state == "leased":
        # Another spider has leased the page.
        return False
    elif page.state != "discovered":
        # Only the date counts.
        return True
    if known.error is not None:
        opened.failed(known.url, known.error, status=known.status, retry=known.date > 0)
    elif known.redirects_to is not None:
        lease = opened.redirected(known.url, known.redirects_to, status=known.status or 0)
        if lease is not None:
            opened.release(lease)
    else:
        opened.crawled(known.url, known.links, status=known.status or 200)
    return True


def _set_date(opened: Crawl, known: Known) -> None:
    if known.date > 0:
        opened.set_due(known.url, max(known.date - time.time(), -NEVER))
        if known.data:
            opened.queues.replace_data(known.url, known.data)
    elif opened.queues.waits(known.url):
        # An earlier date, a retry, or the schedule would let the page be fetched again.
        opened.set_due(known.url, math.inf)


def add_late(opened: Crawl, trails: dict[str, list[str]]) -> Generator[None, None, list[str]]:
    """Add late links to pages that have an answer; return the pages that have no answer yet.

    The page's visit is written once more, with all of its links.

    Yields
    ------
    None
        Between steps.
    """
    waiting = []
    for url, links in trails.items():
        page = opened.page(url)
        if page is not None and page.state in ("leased", "discovered"):
            waiting.append(url)
        elif page is not None and page.state == "crawled":
            forms = [canonical(link, page.url, opened.settings.url_rules) for link in links]
            before = _links_of(opened, page.url)
            if not set(forms) - {None} <= set(before):
                opened.crawled(
                    page.url,
                    [*before, *links],
                    score=page.score,
                    content_hash=page.content_hash,
                    fingerprint=page.fingerprint,
                    status=page.status,
                )
        yield
    return waiting


def _links_of(opened: Crawl, url: str) -> list[str]:
    linked = parts(lambda cursor: opened.view.links(url, "from", 1000, cursor))
    return [row.url for part in linked for row in part.rows]
