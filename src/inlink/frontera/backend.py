"""A backend for Frontera that stores the crawl in a folder.

Frontera reports a page in two calls, ``page_crawled`` and ``links_extracted``. A crawl takes both in one event. The
backend therefore keeps the first call until the second, or until any other call.
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

from inlink.base.declare import parameters_of
from inlink.crawl.aduana import DEFAULTS, NAMES, crawl_arguments
from inlink.crawl.crawl import Crawl
from inlink.crawl.settings import SpiderSettings, checked, is_there, lay_over
from inlink.crawl.unread import FRONTERA_READS, unread, warning
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
from inlink.store.inbox import seeds_of

logger = logging.getLogger("inlink.frontera")

LEASE = b"inlink_lease"
"""Key of the lease's number in a request's meta."""

REFUSED = frozenset({"IgnoreRequest", "NotSupported", "UnsupportedURLSchemeError", "DownloadCancelledError"})
"""Exceptions with which a spider refuses a page: forbidden by robots.txt, on another site, or too large."""

READ = frozenset(
    {
        *FRONTERA_READS,
        *NAMES,
        *(f"INLINK_{name.upper()}" for name in parameters_of(Settings)),
        *("INLINK_CRAWL", "INLINK_MAX_WAIT", "INLINK_OWNER", "INLINK_SEEDS", "SEEDS_SOURCE"),
    }
)
"""Settings that have an effect under Frontera with this backend."""

# Requests may wait for a long time in Scrapy. Leases of a process that died are taken back at the next start.
LEASE_SECONDS = 86_400.0
MAX_WAIT = parameters_of(SpiderSettings)["max_wait"].default
"""If no page is due within this many seconds, the crawl ends and can be continued later."""


class Backend(frontera.Backend):  # type: ignore[misc]  # Frontera is untyped
    """A Frontera backend on an :class:`inlink.Crawl`. One process holds the crawl; if it dies, nothing is lost.

    Parameters
    ----------
    settings : object
        An object with a method ``get(name)``, such as Frontera's or Scrapy's settings. Aduana's settings
        (:mod:`inlink.crawl.aduana`) apply, with Aduana's defaults. ``INLINK_CRAWL`` names the folder and replaces
        ``PAGE_DB_PATH``. If neither is set, the folder is temporary. Any other keyword argument of ``Crawl`` is read
        from ``INLINK_`` and its name in capitals, as a Python value: ``INLINK_RETRY_SECONDS = 5.0``. An object may be
        given as a dict of its arguments. ``INLINK_POLITENESS = {"delay": 2.0}`` keeps Aduana's limits. A setting that
        is not given keeps its value from the folder; Aduana's defaults apply to a new crawl only. A crawl ends if
        nothing is due within ``INLINK_MAX_WAIT`` seconds (default: 60; if pages are revisited, it does not end).
        ``INLINK_SEEDS`` or ``SEEDS_SOURCE`` is a file of seeds. Scrapy no longer calls Frontera's seed loaders.

    Notes
    -----
    As with Aduana, requests that a spider yields are links, and a page is fetched by its URL alone. Methods other than
    GET, bodies, headers and callbacks of links are not kept. ``score`` in a request's meta is the link's score. Its
    default is 0 for a link and 1 for a seed. ``score`` and ``content_hash`` in a response's meta belong to the page.

    Statuses from 400 on and failed downloads are failures. They are kept with their reason and retried as the crawl's
    settings say; Aduana dropped them. A redirect or a retry that a downloader middleware sends back while its lease is
    open is handed out again at once.

    Attributes
    ----------
    crawl : Crawl
        The crawl, once Frontera has started.
    forgotten : deque of Request
        Requests that the spider no longer has, answered or not. Other code may append to it at any time. The pages of
        unanswered requests are excluded, because a middleware dropped them without a report.
    wait : callable or None
        If there was no request to hand out, it is called with the seconds until a page may be due.

    Raises
    ------
    inlink.errors.ParameterError
        If one of Aduana's settings is outside its range.
    """

    component_name = "inlink"
    # Frontera expects these three components; the crawl itself does their work.
    queue = metadata = states = None

    def __init__(self, settings: Any) -> None:
        values = _values(settings, {name: name for name in NAMES})
        folder = settings.get("INLINK_CRAWL") or values.get("PAGE_DB_PATH")
        self.arguments: dict[str, Any] = {}
        # An existing crawl keeps its own settings.
        if folder is None or not is_there(Path(folder)):
            self.arguments, values = {"lease_seconds": LEASE_SECONDS}, {**DEFAULTS, **values}
        self.arguments |= crawl_arguments(values)
        for name, value in _values(
            settings, {f"INLINK_{one.upper()}": one for one in parameters_of(Settings)}
        ).items():
            lay_over(self.arguments, name, checked(name, value, f"INLINK_{name.upper()}", texts=True))
        self.arguments |= {} if folder is None else {"folder": folder}
        self._max_wait = float(settings.get("INLINK_MAX_WAIT") or 0.0)
        self.forgotten: deque[Request] = deque()
        self.wait: Callable[[float], None] | None = None
        self._stack = ExitStack()
        # Unanswered requests, by the number of their lease.
        self._out: dict[int, Request] = {}
        # Requests that were sent back. They are handed out again.
        self._again: deque[Request] = deque()
        # The page whose links Frontera has not reported yet.
        self._page: Crawled | None = None
        self._owner = str(settings.get("INLINK_OWNER") or OWNER)
        self._seeds = settings.get("INLINK_SEEDS") or settings.get("SEEDS_SOURCE")
        self._unread = unread(*_project(settings), READ)

    @classmethod
    def from_manager(cls, manager: Any) -> "Backend":
        """Make the backend; Frontera calls this."""
        return cls(manager.settings)

    def frontier_start(self) -> None:
        """Open the crawl, begin a session, and add the seeds of the file that the settings name.

        Raises
        ------
        inlink.errors.FolderError, inlink.errors.ParameterError, inlink.errors.InputError
            If the folder is in use or is not a crawl's folder, a setting is outside its range, or the file of seeds
            cannot be read.
        """
        seeds = seeds_of(None if not self._seeds else str(self._seeds))
        arguments = dict(self.arguments)
        if "folder" not in arguments:
            logger.warning(
                "neither PAGE_DB_PATH nor INLINK_CRAWL is set: the crawl's folder is removed at the end"
            )
            top = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="inlink-"))
            arguments["folder"] = f"{top}/crawl"
        self.crawl = self._stack.enter_context(Crawl(**arguments))
        if not self._max_wait:
            self._max_wait = math.inf if self.crawl.settings.revisits else MAX_WAIT
        logger.info(self.crawl.recovered)
        if self._unread:
            logger.warning(warning(self._unread))
        self._session = self.crawl.desk.hello(self._owner).number
        if seeds:
            self.crawl.seed(seeds)

    def frontier_stop(self) -> None:
        """Give back the open leases, and close the crawl."""
        with self._stack:
            self._finish()
            self.crawl.desk.bye(self._session)
        for reason, count in self.crawl.refused.items():
            logger.info("refused %d: %s", count, reason)

    def add_seeds(self, seeds: list[Request]) -> None:
        """Add seeds, or take back requests that a middleware sends back."""
        self._finish()
        new = []
        for seed in seeds:
            lease = seed.meta.get(LEASE)
            if lease is not None:
                self._take_back(seed, lease)
            elif seed.method == b"GET":
                new.append((seed.url, _score(seed, 1.0)))
        if new:
            self.crawl.seed(new)

    def page_crawled(self, response: Any) -> None:
        """Report a page that was fetched or that returned an error status."""
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
        """Report the links of the page that was passed to :meth:`page_crawled`."""
        if self._page is not None and self._page.lease == request.meta.get(LEASE):
            self._page.links = [(link.url, _score(link, 0.0)) for link in links if link.method == b"GET"]
            self._finish()

    def request_error(self, request: Request, error: str) -> None:
        """Report a page that could not be fetched or that the spider refused; ``error`` is the exception's name."""
        self._finish()
        lease = self._lease(request)
        if lease is None:
            return
        self._answer(Excluded(lease, error) if error in REFUSED else Failed(lease, error))

    def get_next_requests(self, max_n_requests: int, **_: Any) -> list[Request]:
        """Return the next requests. Frontera's overused hosts are ignored: the crawl's own politeness limits hosts."""
        self._finish()
        requests = [self._again.popleft() for _ in range(min(len(self._again), max_n_requests))]
        found = self.crawl.desk.next(self._session, max_n_requests - len(requests))
        for task in found.tasks:
            meta = {b"scrapy_meta": {"depth": task.depth}, LEASE: task.lease}
            self._out[task.lease] = Request(task.given or task.url, meta=meta)
            requests.append(self._out[task.lease])
        if not requests and self.wait is not None:
            self.wait(math.inf if found.due_in is None else found.due_in)
        return requests

    def finished(self) -> bool:
        """Return whether no request is open, no page is due soon, and no other session may bring new pages."""
        self._drop()
        if self._again or self._out:
            return False
        found = self.crawl.desk.next(self._session, 0)
        if found.out_elsewhere or found.paused:
            return False
        return found.due_in is None or found.due_in > self._max_wait

    # -- inside -----------------------------------------------------------------------------------------------------

    def _lease(self, answer: Any) -> int | None:
        """Return the lease of a request or response; None if it has no lease or was answered already."""
        lease: int | None = answer.meta.get(LEASE)
        return lease if lease in self._out else None

    def _answer(self, answer: Crawled | Failed | Excluded | Redirected) -> Receipt:
        """Answer for a page. Its request is no longer open."""
        del self._out[answer.lease]
        answers: list[Answer] = [answer]
        return self.crawl.desk.report(self._session, answers)[0]

    def _finish(self) -> None:
        """Answer for the page that was passed to :meth:`page_crawled`, with the links known by now."""
        if self._page is not None:
            page, self._page = self._page, None
            self._answer(page)
        self._drop()

    def _drop(self) -> None:
        """Exclude the pages of forgotten requests, except the page that waits for its links."""
        while self.forgotten:
            request = self.forgotten.popleft()
            lease = request.meta[LEASE]
            told = self._page is not None and self._page.lease == lease
            if not told and self._out.get(lease) is request:
                self._answer(Excluded(lease, "dropped by a middleware"))

    def _take_back(self, request: Request, lease: int) -> None:
        """Hand out again a request that a middleware of the spider sent back: a redirect or a retry."""
        if lease not in self._out:
            # The page has failed. The crawl retries it when it is due.
            return
        meta, url = dict(request.meta), request.url
        chain = meta.pop(b"redirect_urls", None)
        if chain:
            # Frontera's solver sets the first URL of the chain and appends the target.
            if url == chain[0]:
                url = chain[-1]
            # Scrapy names each redirect by its status, and others by words such as "meta refresh".
            reason = ([0, *meta[b"scrapy_meta"].get("redirect_reasons", ())])[-1]
            status = reason if isinstance(reason, int) else 200
            task = self._answer(Redirected(lease, url, status=status)).task
            if task is None:
                return
            lease = meta[LEASE] = task.lease
            # The next chain of redirects begins at this URL.
            meta[b"scrapy_meta"].pop("redirect_urls", None)
        again = Request(url, request.method, request.headers, request.cookies, meta, request.body)
        self._out[lease] = again
        self._again.append(again)


def _values(settings: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that are set, by their names in this module."""
    found = {here: settings.get(name) for name, here in names.items()}
    return {here: value for here, value in found.items() if value is not None}


def _project(settings: Any) -> tuple[dict[str, object], frozenset[str]]:
    """Return the settings that differ from Frontera's defaults, and those names that do not come from Scrapy."""
    own: dict[str, object] = dict(vars(settings).get("attributes", {}))
    scrapy: Any = vars(settings).get("_crawler_settings", {})
    found = {**{name: scrapy[name] for name in scrapy}, **own}
    usual = frontera.settings.DefaultSettings().attributes
    found = {name: value for name, value in found.items() if name not in usual or value != usual[name]}
    if isinstance(settings, frontera.settings.BaseSettings):
        return found, frozenset(own)
    return found, frozenset()


def _score(tells: Any, default: float) -> float:
    """Return the score that a spider put into the meta of a request or response."""
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
    """Return a content hash as bytes. Aduana's hashes were 64-bit integers."""
    if value is None:
        return b""
    if isinstance(value, bytes):
        return value
    try:
        return (operator.index(value) % 2**64).to_bytes(8, "little")  # type: ignore[arg-type]
    except TypeError:
        return str(value).encode("utf-8", "surrogatepass")
