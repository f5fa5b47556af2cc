"""A crawl joins the store, which keeps all events, and the frontier, which orders the pages to fetch.

:class:`Crawl` is synchronous, belongs to one thread, and is its folder's only writer. It never sleeps and takes the
time from its clock. Each change is first an event of the log. Columns, policy and queue are folded from the events.
"""

import logging
import os
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial, wraps
from pathlib import Path
from typing import Any, Literal, Self, TypedDict, Unpack, cast

from inlink.base.clock import VirtualClock
from inlink.base.declare import keywords, parameters_of
from inlink.base.disk import DescribedErrors
from inlink.base.settings import NO_LIMIT
from inlink.crawl import operator
from inlink.crawl.admission import Admission
from inlink.crawl.answers import Answers
from inlink.crawl.arguments import (
    HostLimits,
    argument,
    check_flags,
    check_text,
    checked_ahead,
    checked_limits,
    checked_states,
    host_name,
    moment,
)
from inlink.crawl.desk import Desk
from inlink.crawl.exchange import Exchange
from inlink.crawl.folder import create, local, unmake
from inlink.crawl.gate import Gate, Method
from inlink.crawl.intake import PageIntake, checked_entries, checked_visit
from inlink.crawl.journal import Answered, Journal
from inlink.crawl.leasing import Leasing
from inlink.crawl.links import listed, split_links
from inlink.crawl.lists import keep_lists, keep_trust, read_lists
from inlink.crawl.operator import Activity, activity
from inlink.crawl.questions.source import LiveCrawl
from inlink.crawl.queues import QueueDesk
from inlink.crawl.settings import (
    Chosen,
    choose,
    differences,
    event_of,
    names_lists,
    save,
)
from inlink.crawl.upkeep import Upkeep
from inlink.crawl.view import CrawlView
from inlink.errors import ParameterError
from inlink.frontier.explain import Why
from inlink.frontier.frontier import Frontier
from inlink.frontier.hosts import HostState
from inlink.frontier.leases import Lease
from inlink.frontier.policies import Policy
from inlink.frontier.restoring import restore
from inlink.frontier.revisit import Schedule
from inlink.frontier.rules import Rules
from inlink.frontier.settings import Politeness, Settings
from inlink.frontier.visits import plan_visits
from inlink.protocol import AnyLink, Crawled, Link, PageFacts, Standing
from inlink.store import format as kinds
from inlink.store import log as logs
from inlink.store.log import Log
from inlink.store.opening import recover
from inlink.store.page import Page
from inlink.store.reader import hash_seed_of, open_pages
from inlink.urls.canonical import UrlRules

__all__ = ["Crawl"]

_log = logging.getLogger("inlink.crawl")


class CrawlSettings(TypedDict, total=False):
    """The settings that :class:`Crawl` takes, which describes them."""

    policy: str | type[Policy] | Policy
    use_scores: bool
    cross_domain_only: bool
    trust: str | os.PathLike[str] | None
    spam_mass: bool
    distrust: str | os.PathLike[str] | None
    prior: str | os.PathLike[str] | None
    damping: float
    politeness: Politeness | Mapping[str, Any]
    rules: Rules | Mapping[str, Any] | None
    revisit: Schedule | Mapping[str, Any] | None
    revisit_rules: Sequence[str]
    url_rules: UrlRules | Mapping[str, Any] | None
    self_links: bool
    sink_duplicates: bool
    lease_seconds: float
    max_retries: int
    retry_seconds: float
    max_losses: int
    rerank_share: float | None
    rerank_seconds: float | None
    sync: Literal["second", "full"]


def _change(method: Method) -> Method:
    """Decorate a method of a crawl, so that it enters the gate and reads the clock."""

    @wraps(method)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        with self._gate:
            self._journal.tick()
            return method(self, *arguments, **named)

    return cast(Method, call)


class Crawl:
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
        An earlier ranking of hosts: see :func:`inlink.sources.ranklists.host_places`. It raises the priorities of the
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
    revisit_rules : sequence of str
        Intervals by host or URL, which fix or bound those of the schedule: see
        :class:`inlink.frontier.revisit.RevisitRules`. None by default.
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
    queues : QueueDesk
        The crawl as one queue for each host: see :class:`inlink.crawl.queues.QueueDesk`.
    exchange : Exchange
        Pages for and from the other shards of the crawl: see :mod:`inlink.crawl.exchange`.
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

    @keywords(CrawlSettings, {name: row.default for name, row in parameters_of(Settings).items()})
    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        clock: Callable[[], float] = time.time,
        **given: Unpack[CrawlSettings],
    ) -> None:
        self.folder = local(folder)
        self._clock = clock
        # All arguments are checked before anything is made.
        chosen = choose(self.folder, given)
        started = moment(clock())
        self.refused: Counter[str] = Counter()
        trusted, places = read_lists(given, chosen.settings, self.refused)
        self._gate = gate = Gate(str(self.folder))
        with DescribedErrors(self.folder), ExitStack() as stack:
            made = list[Path]()
            chosen = self._claim(stack, given, chosen, started, made)
            self._settings = settings = chosen.settings
            log = Log(self.folder, settings.sync, hash_seed_of(self.folder))
            # The second call completes the first if Ctrl-C comes before the files are closed.
            stack.callback(log.close)
            stack.callback(log.close)
            gate.in_child(log.abandon)
            self._pages = open_pages(self.folder)
            stack.callback(self._pages.close)
            self.recovered = recover(self._pages, log) + chosen.told
            _log.info("%s", self.recovered)
            keep_trust(self._pages, log, started, trusted, settings)
            keep_lists(self.folder, places, settings)
            self._frontier = Frontier(self._pages, settings, chosen.policy)
            self._journal = journal = Journal(log, self._frontier, gate, clock)
            self._upkeep = Upkeep(journal)
            self._answers = answers = Answers(journal, Admission(journal))
            self._intake = PageIntake(journal, self._upkeep, self.refused)
            self._leasing = leasing = Leasing(answers, self._intake, self._upkeep)
            restore(self._frontier, journal.tick())
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
            self.desk = Desk(leasing)
            self.queues = QueueDesk(leasing)
            self.exchange = Exchange(journal, self._intake)
            if settings.revisits:
                plan_visits(self._frontier, settings.revisit)
            journal.merge_last()
            live = LiveCrawl(self._frontier, journal.tick, settings.url_rules, gate, self.exchange.stale)
            self.view = CrawlView(live)
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
        # A crawl that nobody closes gives its folder back, too.
        release = weakref.finalize(self._gate, lock.close)
        release.atexit = False
        # The first of these closes the file if Ctrl-C comes during the second, which is called before it.
        stack.callback(lock.close)
        stack.callback(release)
        self._gate.in_child(lock.close)
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

    # -- seeds and pages to fetch -----------------------------------------------------------------------------------

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
            self._journal.tick()
            return self._intake.seed(urls)

    def sitemap(self, entries: Iterable[tuple[str, float | None, float | None]]) -> int:
        """Take in a sitemap: add its URLs, and let changed pages wait again; return the number of new URLs.

        Parameters
        ----------
        entries : iterable of (str, float or None, float or None)
            URL, lastmod as Unix time in seconds, priority from 0 to 1 (None is 0.5, the protocol's default). The
            priority counts as the score of a link to the page. A page that was crawled before its lastmod waits
            again. By value it does so as far as earlier reports of its host came true. A lastmod in the future is
            ignored.

        Raises
        ------
        inlink.errors.ParameterError
            If an entry is not such a triple, or a value is outside its range.
        inlink.errors.StoreError
            If the log cannot be written.
        """
        rows = checked_entries(listed(entries, "entries"))
        with self._gate:
            self._journal.tick()
            return self._intake.sitemap(rows)

    # -- what goes out ------------------------------------------------------------------------------------------------

    def next(self, count: int = 1) -> list[Lease]:
        """Lease the next URLs to fetch: at most ``count``, fewer or none if politeness allows no more now.

        The list is empty while the crawl is paused, while the caller holds the lease of a lost page, and while the
        caller must answer its leases before it gets a lost page.
        """
        # The first test is quick, and nearly always enough.
        if type(count) is not int or not 0 <= count <= NO_LIMIT:
            count = argument("count", count)
        with self._gate:
            self._journal.tick()
            return self._leasing.hand_out(count)

    def due_in(self) -> float | None:
        """Seconds until :meth:`next` may return a lease; None at the end: no page waits and no page is leased.

        While the crawl is paused, only the leases that are out count.
        """
        with self._gate:
            return self._leasing.due_in()

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
            now = self._journal.tick()
            if wait:
                self._gate.changing = True
                self._upkeep.rerank_at_once(now)
            else:
                self._upkeep.rerank(now)

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
            return self._leasing.wait(clock)

    @property
    def ranking(self) -> bool:
        """True while a ranking is being computed, or is adopted but not yet applied to all waiting pages."""
        return self._upkeep.ranking

    # -- answers ------------------------------------------------------------------------------------------------------
    # All of these raise UnknownNodeError if a page is named by a URL that the crawl does not know, ParameterError if an
    # argument has another type or is out of its range, and StoreError if the log cannot be written.

    def crawled(
        self,
        page: Answered,
        links: Iterable[AnyLink] = (),
        *,
        score: float = 0.0,
        content_hash: bytes = b"",
        fingerprint: int = 0,
        status: int = 200,
        redirected_to: str | None = None,
        canonical_link: str | Link | None = None,
        noindex: bool = False,
        nofollow: bool = False,
        facts: PageFacts | None = None,
        items: bytes = b"",
        links_are_canonical: bool = False,
    ) -> bool:
        """Report a fetched page: take in its links, and end its lease.

        Parameters
        ----------
        page : Lease, int or str
            The lease, its number, or the URL that the answer is for. Only the number of a lease is used.
        links : iterable of str, (str, float) or Link
            The page's links, relative or absolute, with scores or without. They replace those of an earlier visit.
        score : float
            How good the page's content is.
        content_hash : bytes
            A hash of at most 255 bytes. A hash that differs from the last visit's counts as a change.
        fingerprint : int
            The fingerprint of the page's text: see :mod:`inlink.scoring.fingerprint`. 0 is none.
        status : int
            HTTP status. With status 304, the page keeps the hash of its last visit unless there is a new one. Without
            links it also keeps the links, score, fingerprint, facts and directives of that visit.
        redirected_to : str or None
            The last URL of a chain of redirects. The page is merged into it, and the visit belongs to that page.
        canonical_link : str, Link or None
            The canonical URL that the page names. It becomes known like a link, and is fetched. Then the page may be
            merged into it: see :doc:`/crawling`. The data of a Link are for its task.
        noindex, nofollow : bool
            The page's robots directives. They are only stored.
        facts : PageFacts or None
            Title, headings and other data for an audit of the site: see :class:`inlink.protocol.PageFacts`. They are
            only stored.
        items : bytes
            What the spider extracted from the page, as JSON lines in UTF-8: an object and a newline for each item, at
            most 1 MiB. They are only stored, and count only with the visit. ``inlink dump items`` prints them.
        links_are_canonical : bool
            Whether the links are strings in canonical form already.

        Returns
        -------
        bool
            Whether the answer counted. It does not if the lease was answered before, or if the page was crawled since
            the lease was given.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If this crawl does not know the URL.
        inlink.errors.ParameterError
            If an argument has another type or is out of its range. Then nothing changes.
        inlink.errors.StoreError
            If the log cannot be written.
        """
        split = split_links(links)
        visit = checked_visit(
            Crawled(
                0,
                score=score,
                content_hash=content_hash,
                fingerprint=fingerprint,
                status=status,
                redirected_to=redirected_to,
                canonical_link=canonical_link,
                noindex=noindex,
                nofollow=nofollow,
                facts=facts,
                items=items,
            )
        )
        if links_are_canonical is not False:
            check_flags(links_are_canonical=links_are_canonical)
        with self._gate:
            self._journal.tick()
            return self._intake.visit(page, visit, split, links_are_canonical=links_are_canonical)

    @_change
    def failed(
        self,
        page: Answered,
        error: str = "",
        *,
        status: int | None = None,
        retry: bool | None = None,
        retry_after: str | float | None = None,
    ) -> bool:
        """Report that a page could not be fetched; return whether the answer counted.

        Parameters
        ----------
        page : Lease, int or str
        error : str
            What happened; ``crawl.page(url).error`` shows it.
        status : int or None
            HTTP status, if there was an answer. 404 and 410 make a page ``gone``; 429 and 503 make its host wait.
        retry : bool or None
            Whether to retry, up to ``max_retries`` times; then the page is ``failed``. None: as the status says.
        retry_after : str, float or None
            The header ``Retry-After``, or seconds.
        """
        return self._answers.failed(page, error, status, retry, retry_after)

    @_change
    def exclude(self, page: Answered, reason: str = "") -> bool:
        """Report that a page must not be fetched, as by robots.txt; return whether the answer counted."""
        return self._answers.excluded(page, reason)

    @_change
    def redirected(
        self, lease: Answered, to: str, *, carried: bytes | None = None, again: bool = False, status: int = 0
    ) -> Lease | None:
        """Report a redirect that the spider wants to follow at once.

        Parameters
        ----------
        lease : Lease, int or str
            The lease of the page that redirects, its number, or the page's URL. The lease ends.
        to : str
            The target. The page is merged into it.
        carried : bytes or None
            Data for the target's task, see :class:`inlink.protocol.Link`.
        again : bool
            Whether to follow even if the target was fetched, or is being fetched.
        status : int
            HTTP status of the answer that redirects: 301, 302, 307, 308, …, or 200 for a page that sends browsers on,
            as by ``<meta http-equiv=refresh>``. 0 if it is not known.

        Returns
        -------
        Lease or None
            The target's lease, given regardless of politeness; None if the target need not or must not be fetched.
        """
        return self._answers.redirected(lease, to, carried, again, status)[1]

    @_change
    def release(self, page: Answered) -> bool:
        """Give a lease back unused, so that the page waits again; return whether the page had a lease."""
        return self._answers.release(page)

    @_change
    def host_delay(self, page: Answered, seconds: float) -> bool:
        """Set the delay between two fetches from a page's host, as Crawl-delay asks; return whether it changed."""
        return self._answers.host_delay(page, seconds)

    # -- for the operator ----------------------------------------------------------------------------------------------

    def activity(self) -> Activity:
        """Counts of the crawl since it was opened, and the sessions that work on it now."""
        with self._gate:
            return activity(self._journal, self._upkeep.ranking)

    @_change
    def pause(self) -> None:
        """Hand out no leases until :meth:`resume`, also after the crawl is opened again. Answers are still taken in."""
        operator.pause(self._journal, True)

    @_change
    def resume(self) -> None:
        """End a pause."""
        operator.pause(self._journal, False)

    @property
    def paused(self) -> bool:
        """True while the crawl is paused."""
        return self._frontier.paused

    @_change
    def release_all(self) -> int:
        """Give back all leases, whoever holds them; return their number."""
        return self._answers.release_all()

    @_change
    def reload(self, *states: str) -> int:
        """Let all pages of some states wait again if the rules allow them; return their number.

        Parameters
        ----------
        *states : {"failed", "gone", "excluded"}
            Without states: ``"failed"``.

        Raises
        ------
        inlink.errors.ParameterError
            If there is another state.
        """
        wanted = checked_states(states)
        return self._answers.reload(wanted)

    @keywords(HostLimits, {})
    @_change
    def set_host(self, host: str, **limits: Unpack[HostLimits]) -> HostState:
        """Set block, delay or budget of a host, or with ``by="domain"`` of its registered domain; return its state.

        A value that is not given stays as it is. The values also hold after the crawl is opened again.

        Parameters
        ----------
        host : str
            The host's name, or any URL of the host.
        block : float
            Seconds from now in which no page of the host is handed out; ``math.inf`` is for ever, 0 ends a block. Tasks
            that are out are not called back.
        delay : float or None
            Seconds between two fetches, regardless of the settings and robots.txt. None: settings and robots.txt apply
            again. A ``Retry-After`` of the host is kept in any case.
        budget : int or None
            Number of pages that may still be fetched from the host; None is no limit. A task that comes back (released,
            lost, or to be retried) is not counted again.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If this crawl knows no such host.
        inlink.errors.ParameterError
            If an argument is outside its range.
        """
        host_name(host)
        checked = checked_limits(limits)
        slot = operator.slot_named(self._journal, host)
        return operator.set_host(self._journal, slot, checked)

    @_change
    def exclude_host(self, host: str, reason: str = "", *, older_than: float | None = None) -> int:
        """Exclude all waiting pages of a host, or with ``by="domain"`` of its registered domain; return their number.

        These are the pages that wait in the queue, for a retry, or for their next visit. Tasks that are out go on.
        Pages that become known later wait as usual. ``reload("excluded")`` lets them wait again. A change of
        rules does not.

        Parameters
        ----------
        host : str
            The host's name, or any URL of the host.
        reason : str
            ``crawl.page(url).error`` shows it, up to 500 bytes.
        older_than : float or None
            Exclude only pages whose last crawl was more than this many seconds ago. For a page that was never crawled,
            its discovery counts. None: all pages.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If this crawl knows no such host.
        inlink.errors.ParameterError
            If an argument is outside its range.
        """
        host_name(host)
        check_text("reason", reason)
        older_than = argument("older_than", older_than)
        slot = operator.slot_named(self._journal, host)
        return operator.exclude_waiting(self._journal, slot, reason, older_than)

    @_change
    def set_due(self, url: str, seconds: float) -> bool:
        """Set when a page is due, instead of its retry or the revisit schedule; return whether the date was set.

        The date holds once: after the next answer for the page, retries and schedule apply again. A page that failed or
        is gone waits again. No date is set for a page that is leased or excluded, or was merged into such a page.

        Parameters
        ----------
        url : str
        seconds : float
            Seconds from now; ``math.inf`` is never. A value below 0 is a date in the past, for the policy ``date``.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If the URL is unknown to this crawl.
        inlink.errors.ParameterError
            If ``seconds`` is outside its range.
        """
        check_text("url", url)
        seconds = checked_ahead("due", seconds)
        return operator.set_due(self._answers, self._journal.page_of(url), seconds)

    def change_settings(self, **changes: Any) -> Settings:
        """Change settings of the running crawl, as if it were closed and opened with them; return those in force.

        Either all of them are changed, or none is.

        Parameters
        ----------
        **changes
            Settings as :class:`inlink.Crawl` takes them: ``politeness``, ``rules``, ``revisit``,
            ``revisit_rules``, ``lease_seconds``, ``max_retries``, ``retry_seconds``, ``max_losses``, ``rerank_share``,
            ``rerank_seconds``. A dict for ``politeness`` or ``rules`` changes the fields that it names. Open leases
            keep their time of expiry.

        Raises
        ------
        inlink.errors.ParameterError
            If a value is outside its range, or a setting can change only when the crawl is opened: ``policy``,
            ``use_scores``, ``cross_domain_only``, ``damping``, ``trust``, ``spam_mass``, ``distrust``, ``prior``,
            ``sink_duplicates``, ``url_rules``, ``sync`` and ``politeness.by``.
        """
        with self._gate:
            before, after = self._settings, operator.change_settings(self._answers, self.folder, changes)
            if after != before:
                self._settings = after
                _log.info("%s: changed: %s", self.folder, ", ".join(differences(before, after)))
            return after

    # -- the end ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Sync the log, release the folder, and give all memory and address space back.

        Later calls are refused, also those on the crawl's desk and view. A second call completes the first, if
        that was interrupted. A call in the child of a fork does nothing.

        Raises
        ------
        inlink.errors.InUseError
            If a call on this crawl has not returned.
        inlink.errors.StoreError
            If a file cannot be written, or another process writes the crawl. The crawl is closed all the same.
        """
        if self._gate.close():
            try:
                with DescribedErrors(self.folder):
                    self._stack.close()
            finally:
                parts = ("_journal", "_answers", "_intake", "_leasing", "_frontier", "_pages", "_upkeep")
                for holder in (self, self.desk, self.queues, self.exchange):
                    self._gate.empty(holder, *parts)
                self.view.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """The number of known pages."""
        return len(self.view)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        state = "closed" if self._gate.closed else f"{self._pages.num_pages:,} known pages"
        return f"<inlink crawl {self.folder}: {state}>"

    def _repr_html_(self) -> str:
        return self.view._repr_html_()
