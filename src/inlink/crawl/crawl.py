"""A crawl joins the store, which keeps all events, and the frontier, which orders the pages to fetch.

:class:`Crawl` is synchronous, belongs to one thread, and is its folder's only writer. It never sleeps and takes the
time from its clock. Each change is first an event of the log. Columns, policy and queue are folded from the events.
"""

import logging
import os
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from inlink.base.clock import VirtualClock
from inlink.base.declare import parameters_of
from inlink.base.disk import described_errors
from inlink.crawl.admission import Admission
from inlink.crawl.answers import Answers
from inlink.crawl.arguments import argument, check_flags, moment
from inlink.crawl.core import Core
from inlink.crawl.desk import Desk
from inlink.crawl.folder import create, local, unmake
from inlink.crawl.gate import Gate
from inlink.crawl.intake import listed
from inlink.crawl.journal import Journal
from inlink.crawl.lists import GivenLists
from inlink.crawl.reporting import Reporting
from inlink.crawl.seeding import checked_entries
from inlink.crawl.settings import NOT_GIVEN, Chosen, NotGiven, choose, event_of, names_lists, save
from inlink.crawl.snapshot import LiveCrawl
from inlink.crawl.steering import Steering
from inlink.crawl.upkeep import Upkeep
from inlink.crawl.view import CrawlView
from inlink.errors import ParameterError
from inlink.frontier.explain import Why
from inlink.frontier.frontier import Frontier
from inlink.frontier.leases import Lease
from inlink.frontier.policies import Policy
from inlink.frontier.restoring import restore
from inlink.frontier.revisit import Schedule
from inlink.frontier.rules import Rules
from inlink.frontier.settings import Politeness, Settings
from inlink.frontier.visits import plan_visits
from inlink.protocol import AnyLink, Standing
from inlink.store import format as kinds
from inlink.store import log as logs
from inlink.store.log import Log
from inlink.store.opening import recover
from inlink.store.pages import Page
from inlink.store.reader import hash_seed_of, open_pages
from inlink.urls.canonical import UrlRules

__all__ = ["Crawl"]

_log = logging.getLogger("inlink.crawl")
SETTINGS = parameters_of(Settings)


class Crawl(Reporting, Steering):
    """A crawl in a folder: decides which URL to fetch next, and records the result of each fetch.

    Use it from one thread at a time, in the process that opened it. A call during another call is refused with
    :class:`inlink.errors.InUseError`, and so is any call in the child of a fork. After a change was interrupted, for
    example by Ctrl-C, the crawl refuses all calls but :meth:`close`. Close it and open it again.

    Parameters
    ----------
    folder : path-like
        The crawl's folder, made if it does not exist. An existing crawl goes on where it was, with its settings. All
        parameters below but ``clock`` are settings. A setting that is not given keeps the folder's value, or gets its
        default in a new crawl.
    policy : str, Policy class or instance
        Decides the order, ``"host-diverse"`` by default: see :mod:`inlink.frontier.policies`. The folder keeps the name
        of an inlink policy, and ``module:Class`` of your own.
    use_scores : bool
        Mix content scores into ``pagerank``, ``host-diverse`` or ``hits``; False by default.
    cross_domain_only : bool
        Count only links between hosts in the ranking, as Aduana does; False by default.
    trust : path-like or None
        A file of trusted pages with weights. The pages become seeds, and the only teleport targets of ``pagerank`` and
        ``host-diverse``, as in TrustRank. The file is read when it is given. None, the default, is no file.
    spam_mass : bool
        With ``trust``, lower the priorities of hosts that get little of their rank from trusted pages: see
        :mod:`inlink.factors.mass`. False by default.
    distrust : path-like or None
        A file of hosts that are known as spam: see :mod:`inlink.factors.distrust`. It is read once and kept.
    prior : path-like or None
        An earlier ranking of hosts: see :func:`inlink.sources.hostplaces.host_places`. It raises the priorities of the
        hosts' pages under ``pagerank`` and ``host-diverse`` as long as the crawl knows few links to them: see
        :mod:`inlink.factors.prior`. It is read once and kept in the folder. None, the default: no prior.
    damping : float
        Damping of PageRank, in (0, 1); 0.85 by default.
    politeness : Politeness or dict
        Delays, budgets and rates for each host. A dict changes the fields that it names.
    rules : Rules, dict or None
        Which URLs may be fetched; None, the default, is all. Rules also apply to URLs that are known already: a refused
        page is excluded when its turn comes. It waits again once the crawl is opened with rules that allow it.
    revisit : schedule, dict or None
        When crawled pages are fetched again: see :mod:`inlink.frontier.revisit`. None, the default, is never.
    url_rules : UrlRules, dict or None
        Further rules for the canonical form of URLs; None, the default, is the standard form. They cannot change later.
    self_links : bool
        Keep links to a place on the page itself (``#top``), as links of the page to itself; False by default.
    sink_duplicates : bool
        Lower the priorities of pages beside near-duplicates: see :mod:`inlink.factors.copies`. False by default.
    lease_seconds : float
        Seconds after which a page that was handed out is lost if it was not answered for; 600 by default. While the
        crawl is closed, no lease expires.
    max_retries : int
        How often a page that failed is tried again before it is ``failed``, at most 254; 3 by default.
    retry_seconds : float
        Seconds before the first retry; they double each time. 60 by default.
    max_losses : int
        How often a page may be lost before it is ``failed``, from 1 to 254; 3 by default. A lost page waits as long as
        before a retry, and is then handed out alone.
    rerank_share, rerank_seconds : float or None
        A new ranking starts when this share more pages were crawled (0.1 by default), or after so many seconds (None by
        default). None is never.
    sync : {"second", "full"}
        When the log is synced to disk, which protects it from a power cut: within a second, which is the default, or at
        once. If only the process dies, nothing is lost in either case.
    clock : callable
        Unix time in seconds; a value below an earlier one is ignored. In virtual time, rankings are made at once.

    Attributes
    ----------
    desk : Desk
        Sessions, tasks and answers of spiders: see :class:`inlink.crawl.desk.Desk`.
    folder : Path
    recovered : str
        One line: the folder's content, the settings that were kept from it, and those that were changed.
    refused : Counter
        Number of URLs that were refused, by reason.

    Raises
    ------
    inlink.errors.InUseError
        If another process crawls in this folder.
    inlink.errors.FolderError
        If the folder holds other data, or its settings cannot be read.
    inlink.errors.ParameterError
        If a setting is outside its range; then no folder is made.

    Examples
    --------
    >>> import tempfile, inlink
    >>> with inlink.Crawl(tempfile.mkdtemp() + "/c") as crawl:
    ...     crawl.seed(["https://example.org/"])
    ...     lease = crawl.next(1)[0]
    ...     crawl.crawled(lease, links=["/a", "/b#top"])
    ...     crawl.page("https://example.org/b").state
    1
    True
    'discovered'
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        policy: str | type[Policy] | Policy | NotGiven = NOT_GIVEN,
        use_scores: bool | NotGiven = NOT_GIVEN,
        cross_domain_only: bool | NotGiven = NOT_GIVEN,
        trust: str | os.PathLike[str] | NotGiven | None = NOT_GIVEN,
        spam_mass: bool | NotGiven = NOT_GIVEN,
        distrust: str | os.PathLike[str] | NotGiven | None = NOT_GIVEN,
        prior: str | os.PathLike[str] | NotGiven | None = NOT_GIVEN,
        damping: float | NotGiven = NOT_GIVEN,
        politeness: Politeness | Mapping[str, Any] | NotGiven = NOT_GIVEN,
        rules: Rules | Mapping[str, Any] | NotGiven | None = NOT_GIVEN,
        revisit: Schedule | Mapping[str, Any] | NotGiven | None = NOT_GIVEN,
        url_rules: UrlRules | Mapping[str, Any] | NotGiven | None = NOT_GIVEN,
        self_links: bool | NotGiven = NOT_GIVEN,
        sink_duplicates: bool | NotGiven = NOT_GIVEN,
        lease_seconds: float | NotGiven = NOT_GIVEN,
        max_retries: int | NotGiven = NOT_GIVEN,
        retry_seconds: float | NotGiven = NOT_GIVEN,
        max_losses: int | NotGiven = NOT_GIVEN,
        rerank_share: float | NotGiven | None = NOT_GIVEN,
        rerank_seconds: float | NotGiven | None = NOT_GIVEN,
        sync: Literal["second", "full"] | NotGiven = NOT_GIVEN,
        clock: Callable[[], float] = time.time,
    ) -> None:
        given = {
            name: value for name, value in locals().items() if name in SETTINGS and value is not NOT_GIVEN
        }
        self.folder = local(folder)
        self._clock = clock
        # All arguments are checked before anything is made.
        chosen = choose(self.folder, given)
        started = moment(clock())
        self.refused: Counter[str] = Counter()
        lists = GivenLists.read(given, chosen.settings, self.refused)
        self._gate = gate = Gate(str(self.folder))
        with described_errors(self.folder), ExitStack() as stack:
            made = list[Path]()
            chosen = self._claim(stack, given, chosen, started, made)
            self._settings = settings = chosen.settings
            log = Log(self.folder, settings.sync, hash_seed_of(self.folder))
            stack.callback(log.close)
            gate.in_child(log.abandon)
            self._pages = open_pages(self.folder)
            stack.callback(self._pages.close)
            self.recovered = recover(self._pages, log) + chosen.told
            _log.info("%s", self.recovered)
            lists.keep(self._pages, log, started, settings)
            self._frontier = Frontier(self._pages, settings, chosen.policy)
            journal = Journal(log, self._frontier, gate, settings.url_rules, settings.rules)
            self._upkeep = Upkeep(journal, clock)
            answers = Answers(journal, Admission(journal))
            self._core = core = Core(journal, answers, self._upkeep, clock, self.refused)
            restore(self._frontier, core.tick())
            # Times in the log never go back, even if the clock does while the crawl is closed.
            journal.now = max(journal.now, self._frontier.last_event)
            self._upkeep.opened(journal.now)
            if chosen.before is not None and settings.rules != chosen.before.rules:
                answers.readmit()
            if settings != chosen.before or not names_lists(self._pages, settings):
                journal.append(kinds.SETTINGS, payload=event_of(self.folder, settings))
                save(self.folder, settings)
            stack.callback(self._upkeep.finish)
            gate.in_child(self._upkeep.abandon)
            journal.admit_last(answers.admission.unchecked)
            self.desk = Desk(core)
            # Without a cycle, a crawl that nobody closed leaves memory as soon as nobody uses it.
            core.desk = weakref.proxy(self.desk)
            if settings.revisit is not None:
                plan_visits(self._frontier, settings.revisit)
            journal.merge_last()
            self.view = CrawlView(LiveCrawl(self._frontier, core.tick, settings.url_rules, gate))
            stack.callback(self.view.stop)
            gate.changing = False
            made.clear()
            self._stack = stack.pop_all()

    def _claim(
        self, stack: ExitStack, given: Mapping[str, Any], chosen: Chosen, started: float, made: list[Path]
    ) -> Chosen:
        """Lock the folder, which is made if it does not exist and is then in ``made``; return the settings in force."""
        there = self.folder.exists()
        is_new = create(self.folder, started, chosen.settings)
        lock = logs.lock(self.folder)
        stack.enter_context(lock)
        self._gate.in_child(partial(lock.__exit__, None, None, None))
        if not is_new:
            # Until now another process may have changed the settings.
            return choose(self.folder, given)
        if not there:
            made.append(self.folder)
            stack.push(partial(unmake, made))
        return chosen

    @property
    def settings(self) -> Settings:
        """The settings in force: a given value, else the folder's value, else the default."""
        return self._settings

    # -- what comes in ----------------------------------------------------------------------------------------------

    def seed(self, urls: Iterable[AnyLink]) -> int:
        """Add URLs at which the crawl begins; return the number of new URLs.

        Parameters
        ----------
        urls : iterable of str, (str, float) or Link
            Absolute URLs, with scores or without; the default score is 1. Invalid URLs are counted in ``refused``.

        Raises
        ------
        inlink.errors.ParameterError
            If ``urls`` is a single string, or an item has another form or a score that is not finite.
        inlink.errors.StoreError
            If the log cannot be written.
        """
        urls = listed(urls)
        with self._gate:
            return self._core.seed(urls)

    def sitemap(self, entries: Iterable[tuple[str, float | None, float | None]]) -> int:
        """Take in a sitemap: add its URLs, and let changed pages wait again; return the number of new URLs.

        Parameters
        ----------
        entries : iterable of (str, float or None, float or None)
            URL, lastmod as Unix time in seconds, priority from 0 to 1 (None is 0.5, the protocol's default). The
            priority counts as the score of a link to the page. A page that was crawled before its lastmod waits
            again.

        Raises
        ------
        inlink.errors.ParameterError
            If an entry is not such a triple, or a value is outside its range.
        inlink.errors.StoreError
            If the log cannot be written.
        """
        rows = checked_entries(listed(entries, "entries"))
        with self._gate:
            return self._core.sitemap(rows)

    # -- what goes out ------------------------------------------------------------------------------------------------

    def next(self, count: int = 1) -> list[Lease]:
        """Lease the next URLs to fetch: at most ``count``, fewer or none if politeness allows no more now.

        The list is empty while the crawl is paused, while the caller holds the lease of a lost page, and while the
        caller must answer its leases before it gets a lost page.
        """
        count = argument("count", count)
        with self._gate:
            return self._core.hand_out(count)

    def due_in(self) -> float | None:
        """Seconds until :meth:`next` may return a lease; None at the end: no page waits and no page is leased.

        While the crawl is paused, only the leases that are out count.
        """
        with self._gate:
            return self._core.due_in()

    def page(self, url: str) -> Page | None:
        """The page of a URL; None if this crawl does not know the URL."""
        return self.view.page(url)

    def why(self, url: str) -> Why:
        """The place of a URL in the order, and all reasons for it: see :meth:`CrawlView.why`."""
        return self.view.why(url)

    def standing(self, hosts: int = 5, top: int | None = None, within: float = 0.0) -> Standing:
        """The crawl's progress, and with ``top`` a certificate of its best places: see :meth:`CrawlView.standing`."""
        return self.view.standing(hosts, top, within)

    def rerank(self, *, wait: bool = False) -> None:
        """Start a new ranking, which :meth:`next` adopts once it is finished.

        With ``wait``, rank at once, in this process and on one thread, and give all waiting pages their new
        priorities. The same events then give the same priorities, bit by bit.
        """
        check_flags(wait=wait)
        with self._gate:
            self._core.rerank(wait)

    def wait(self) -> float | None:
        """Advance a :class:`~inlink.base.clock.VirtualClock` until something may be due, and return the seconds.

        None is the end of the crawl: no page waits and no page is leased.

        Raises
        ------
        inlink.errors.ParameterError
            If the crawl's clock is not a :class:`~inlink.base.clock.VirtualClock`.
        """
        clock = self._clock
        if not isinstance(clock, VirtualClock):
            raise ParameterError(
                "Crawl.wait needs Crawl(clock=VirtualClock()): no other clock can be advanced"
            )
        with self._gate:
            return self._core.wait(clock)

    @property
    def ranking(self) -> bool:
        """True while a ranking is being computed, or is adopted but not yet applied to all waiting pages."""
        return self._upkeep.ranking

    def close(self) -> None:
        """Sync the log, release the folder, and give all memory and address space back.

        Later calls are refused, also those on the crawl's desk and view. A second call, or a call in the child of a
        fork, does nothing.

        Raises
        ------
        inlink.errors.InUseError
            If a call on this crawl has not returned.
        inlink.errors.StoreError
            If a file cannot be written, or another process writes the crawl. The crawl is closed all the same.
        """
        if self._gate.close():
            try:
                with described_errors(self.folder):
                    self._stack.close()
            finally:
                self._gate.empty(self, "_core", "_frontier", "_pages", "_upkeep")
                self.desk.close()
                self.view.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
