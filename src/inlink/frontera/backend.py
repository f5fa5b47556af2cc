"""Frontera's backend over a crawl's folder.

Frontera reports a page in two calls, ``page_crawled`` and ``links_extracted``. A crawl takes both in one event. So the
backend keeps the first call until the second, or until any other call.
"""

import logging
import math
import operator
import tempfile
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import frontera
from frontera.core.models import Request

from inlink.base.settings import rows_of
from inlink.crawl.aduana import DEFAULTS, NAMES, crawl_arguments
from inlink.crawl.crawl import Crawl
from inlink.crawl.settings import SpiderSettings, checked, is_there, lay_over
from inlink.frontier.settings import Settings
from inlink.protocol import (
    LARGEST_SCORE,
    OWNER,
    Answer,
    Crawled,
    Excluded,
    Failed,
    Receipt,
    Redirected,
)

__all__ = ["Backend"]

logger = logging.getLogger("inlink.frontera")

LEASE = b"inlink_lease"
"""Key in a request's meta of the number of its lease."""

REFUSED = frozenset({"IgnoreRequest", "NotSupported", "UnsupportedURLSchemeError", "DownloadCancelledError"})
"""Exceptions by which a spider refuses a page: forbidden by robots.txt, on another site, too large."""

# Requests may wait for long in Scrapy. Those of a process that died are taken back at the next start.
LEASE_SECONDS = 86_400.0
MAX_WAIT = rows_of(SpiderSettings)["max_wait"].default
"""Seconds. If nothing is due within this time, the crawl ends and can be continued later."""


class Backend(frontera.Backend):  # type: ignore[misc]  # Frontera is untyped
    """A backend of Frontera over an :class:`inlink.Crawl`. One process holds the crawl; if it dies, nothing is lost.

    Parameters
    ----------
    settings : object
        With ``get(name)``, as Frontera's and Scrapy's have it. Aduana's settings (:mod:`inlink.crawl.aduana`)
        hold, with Aduana's defaults. ``INLINK_CRAWL`` is the folder, instead of ``PAGE_DB_PATH``; without either it
        is a temporary one. Any other keyword of ``Crawl`` is read from ``INLINK_`` and its name in capitals, as a
        Python value: ``INLINK_RETRY_SECONDS = 5.0``; objects may be dicts of what they take, and
        ``INLINK_POLITENESS = {"delay": 2.0}`` leaves Aduana's limits as they are. A setting that is not given stays as
        the folder has it; Aduana's defaults are those of a new crawl. A crawl ends if nothing is due within
        ``INLINK_MAX_WAIT`` seconds (60; if pages are revisited, it does not end).

    Notes
    -----
    As with Aduana, what a spider yields are links, and a page is fetched by its URL alone: methods other than GET,
    bodies, headers and callbacks of links are not kept. ``score`` in a request's meta is the link's score (0, and 1
    for a seed, where there is none), ``score`` and ``content_hash`` in a response's meta are the page's.

    Statuses from 400 on and failed downloads are failures, kept with their reason, and tried again as the crawl's
    settings say; Aduana dropped them. What a downloader middleware sends back while it holds its lease, a
    redirect or a retry, is handed out again at once.

    Attributes
    ----------
    forgotten : deque of Request
        Requests that the spider has no more, answered for or not; anybody may append to it at any time. Those that
        were not answered for are excluded: a middleware dropped them without a word.
    wait : callable or None
        Told the seconds until something may be due, when there was nothing to hand out.

    Raises
    ------
    inlink.errors.ParameterError
        If one of Aduana's settings lies outside its meaning.
    """

    component_name = "inlink"
    queue = metadata = states = None  # all three are the crawl's

    def __init__(self, settings: Any) -> None:
        values = _values(settings, {name: name for name in NAMES})
        folder = settings.get("INLINK_CRAWL") or values.get("PAGE_DB_PATH")
        self.arguments: dict[str, Any] = {}
        if folder is None or not is_there(Path(folder)):  # a crawl that is there keeps its own
            self.arguments, values = {"lease_seconds": LEASE_SECONDS}, {**DEFAULTS, **values}
        self.arguments |= crawl_arguments(values)
        for name, value in _values(
            settings, {f"INLINK_{one.upper()}": one for one in rows_of(Settings)}
        ).items():
            lay_over(self.arguments, name, checked(name, value, f"INLINK_{name.upper()}", texts=True))
        self.arguments |= {} if folder is None else {"folder": folder}
        self._max_wait = float(settings.get("INLINK_MAX_WAIT") or 0.0)
        self.forgotten: deque[Request] = deque()
        self.wait: Callable[[float], None] | None = None
        self._stack = ExitStack()
        self._out: dict[int, Request] = {}  # by the number of its lease, what is not answered for
        self._again: deque[Request] = deque()  # sent back, to be handed out again
        self._page: Crawled | None = None  # its links are yet to come
        self._owner = str(settings.get("INLINK_OWNER") or OWNER)

    @classmethod
    def from_manager(cls, manager: Any) -> "Backend":
        """What Frontera calls."""
        return cls(manager.settings)

    def frontier_start(self) -> None:
        """Open the crawl and begin a session.

        Raises
        ------
        inlink.errors.FolderError, inlink.errors.ParameterError
            If the folder is in use or holds something else, or a setting lies outside its meaning.
        """
        arguments = dict(self.arguments)
        if "folder" not in arguments:
            logger.warning("neither PAGE_DB_PATH nor INLINK_CRAWL is set: the crawl is forgotten at its end")
            top = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="inlink-"))
            arguments["folder"] = f"{top}/crawl"
        self._crawl = self._stack.enter_context(Crawl(**arguments))
        if not self._max_wait:
            self._max_wait = MAX_WAIT if self._crawl.settings.revisit is None else math.inf
        logger.info(self._crawl.recovered)
        self._session = self._crawl.desk.hello(self._owner).number

    def frontier_stop(self) -> None:
        """Give back what is out, and close the crawl."""
        with self._stack:
            self._finish()
            self._crawl.desk.bye(self._session)
        for reason, count in self._crawl.refused.items():
            logger.info("refused %d: %s", count, reason)

    def add_seeds(self, seeds: list[Request]) -> None:
        """Make seeds known, or take back what a middleware sends back."""
        self._finish()
        new = []
        for seed in seeds:
            lease = seed.meta.get(LEASE)
            if lease is not None:
                self._take_back(seed, lease)
            elif seed.method == b"GET":
                new.append((seed.url, _score(seed, 1.0)))
        if new:
            self._crawl.seed(new)

    def page_crawled(self, response: Any) -> None:
        """A page was fetched, or answered with an error."""
        lease = self._lease(response)
        if lease is None:
            return
        if self._page is not None and self._page.lease != lease:
            self._finish()
        status = response.status_code
        if status >= 400:
            after = response.headers.get("Retry-After")
            if isinstance(after, bytes):
                after = after.decode("latin-1")
            self._answer(Failed(lease, status=status, retry_after=after))
            return
        content = response.meta[b"scrapy_meta"].get("content_hash")
        self._page = Crawled(lease, score=_score(response, 0.0), content_hash=_hash(content), status=status)

    def links_extracted(self, request: Request, links: list[Request]) -> None:
        """The links of the page that :meth:`page_crawled` told of."""
        if self._page is not None and self._page.lease == request.meta.get(LEASE):
            self._page.links = [(link.url, _score(link, 0.0)) for link in links if link.method == b"GET"]
            self._finish()

    def request_error(self, request: Request, error: str) -> None:
        """A page could not be fetched, or the spider will not have it; ``error`` is the exception's name."""
        self._finish()
        lease = self._lease(request)
        if lease is None:
            return
        self._answer(Excluded(lease, error) if error in REFUSED else Failed(lease, error))

    def get_next_requests(self, max_n_requests: int, **_: Any) -> list[Request]:
        """The next requests; hosts that Frontera calls overused are the business of the crawl's politeness."""
        self._finish()
        requests = [self._again.popleft() for _ in range(min(len(self._again), max_n_requests))]
        found = self._crawl.desk.next(self._session, max_n_requests - len(requests))
        for task in found.tasks:
            meta = {b"scrapy_meta": {"depth": task.depth}, LEASE: task.lease}
            self._out[task.lease] = Request(task.given or task.url, meta=meta)
            requests.append(self._out[task.lease])
        if not requests and self.wait is not None:
            self.wait(math.inf if found.due_in is None else found.due_in)
        return requests

    def finished(self) -> bool:
        """Whether no request is out, none is due soon, and no other session may bring one."""
        self._drop()
        if self._again or self._out:
            return False
        found = self._crawl.desk.next(self._session, 0)
        if found.out_elsewhere or found.paused:
            return False
        return found.due_in is None or found.due_in > self._max_wait

    # -- inside -----------------------------------------------------------------------------------------------------

    def _lease(self, answer: Any) -> int | None:
        """The lease of a request or response that is not answered for."""
        lease: int | None = answer.meta.get(LEASE)
        return lease if lease in self._out else None

    def _answer(self, answer: Crawled | Failed | Excluded | Redirected) -> Receipt:
        """Answer for a page; its request is not out any more."""
        del self._out[answer.lease]
        answers: list[Answer] = [answer]
        return self._crawl.desk.report(self._session, answers)[0]

    def _finish(self) -> None:
        """Answer for the page that :meth:`page_crawled` told of, with the links that are known by now."""
        if self._page is not None:
            page, self._page = self._page, None
            self._answer(page)
        self._drop()

    def _drop(self) -> None:
        """Exclude pages whose requests are forgotten, but for one that was told of."""
        while self.forgotten:
            request = self.forgotten.popleft()
            lease = request.meta[LEASE]
            told = self._page is not None and self._page.lease == lease
            if not told and self._out.get(lease) is request:
                self._answer(Excluded(lease, "dropped by a middleware"))

    def _take_back(self, request: Request, lease: int) -> None:
        """Hand out again what a middleware of the spider made of a request: a redirect, or a retry."""
        if lease not in self._out:
            return  # The page has failed, and the crawl tries it again when it is due.
        meta, url = dict(request.meta), request.url
        chain = meta.pop(b"redirect_urls", None)
        if chain:
            if url == chain[0]:  # Frontera's solver has put the first URL, and the target at the end
                url = chain[-1]
            task = self._answer(Redirected(lease, url)).task
            if task is None:
                return
            lease = meta[LEASE] = task.lease
            meta[b"scrapy_meta"].pop("redirect_urls", None)  # the next redirect begins here
        again = Request(url, request.method, request.headers, request.cookies, meta, request.body)
        self._out[lease] = again
        self._again.append(again)


def _values(settings: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """The settings that are given, by the name that each has here."""
    found = {here: settings.get(name) for name, here in names.items()}
    return {here: value for here, value in found.items() if value is not None}


def _score(tells: Any, default: float) -> float:
    """The score that a spider put into the meta of a request or response."""
    value = tells.meta.get(b"scrapy_meta", {}).get("score", default)
    try:
        score = float(value)
    except (TypeError, ValueError):
        score = math.nan
    if not abs(score) < LARGEST_SCORE:
        logger.warning("%s: score must be a finite number, not %r: taken for %g", tells.url, value, default)
        return default
    return score


def _hash(value: object) -> bytes:
    """A content hash as bytes; Aduana's were whole numbers of 64 bits."""
    if value is None:
        return b""
    if isinstance(value, bytes):
        return value
    try:
        return (operator.index(value) % 2**64).to_bytes(8, "little")  # type: ignore[arg-type]
    except TypeError:
        return str(value).encode("utf-8", "surrogatepass")
