"""A crawl: the store that loses nothing and the frontier that knows what comes next, joined.

:class:`Crawl` is synchronous, belongs to one thread, and is its folder's only writer. It never sleeps and knows no
other time than its clock's. Each change is an event in the log before it is anything else; columns, policy and
queue are folded from events, live as after a crash.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Literal, Self

from inlink.errors import ParameterError, UnknownNodeError
from inlink.frontier import backoff
from inlink.frontier.answers import Answers, lease_pages
from inlink.frontier.explain import Why, explain
from inlink.frontier.folder import create, look, save_settings
from inlink.frontier.frontier import Frontier, Settings
from inlink.frontier.intake import (
    CarriedLink,
    Link,
    apart,
    carried_forms,
    check_answer,
    coded,
    hrefs_and_scores,
    to_lines,
    with_carried,
)
from inlink.frontier.journal import Journal
from inlink.frontier.leases import Lease
from inlink.frontier.policies import Policy
from inlink.frontier.queue import Politeness
from inlink.frontier.revisit import Schedule, revisit_as_data
from inlink.frontier.rules import Rules
from inlink.frontier.seeding import hint, seed
from inlink.frontier.standing import Standing, standing
from inlink.frontier.upkeep import Upkeep
from inlink.frontier.visits import plan_visit, plan_visits
from inlink.store import inbox
from inlink.store import layout as kinds
from inlink.store import log as logs
from inlink.store.log import Log
from inlink.store.opening import recover
from inlink.store.pages import NO_PAGE, Page
from inlink.store.reader import open_pages, url_rules_of
from inlink.urls.canonical import UrlRules

__all__ = ["CarriedLink", "Crawl", "look"]


class Crawl:
    """Which URL to fetch next, and what came of it: an embedded library over one folder.

    Parameters
    ----------
    folder : path-like
        Made if it is not there; else the crawl goes on where it was.
    policy : str, Policy class or instance
        What decides the order: see :mod:`inlink.frontier.policies`.
    use_scores : bool
        Mix content scores into ``pagerank``, ``host-diverse`` or ``hits``.
    cross_domain_only : bool
        Let only links between hosts count in the ranking, as Aduana does.
    damping : float
        Of PageRank.
    politeness : Politeness
        Delays, budgets, crawl rates.
    rules : Rules or None
        Which URLs may be fetched at all.
    revisit : schedule or None
        When crawled pages are fetched again: :mod:`inlink.frontier.revisit`. None is never.
    url_rules : UrlRules or None
        More of what makes two URLs one; kept in the folder, where it cannot change any more.
    lease_seconds : float
        After which a URL that was handed out and not answered for waits again.
    max_retries : int
        How often a page that failed is tried again before it is ``failed``.
    retry_seconds : float
        Wait before the first retry; it doubles each time.
    rerank_share, rerank_seconds : float or None
        A new ranking starts when this share more pages were crawled, or so many seconds have passed.
    sync : {"second", "full"}
        Both survive the death of the process. A power cut takes at most the last second, or nothing with "full".
    clock : callable
        Seconds since 1970; what it tells is taken never to go back.

    Attributes
    ----------
    recovered : str
        One line on what was found in the folder.
    refused : Counter
        URLs that were refused at the door, by reason.

    Raises
    ------
    inlink.errors.InUseError
        If another process crawls in this folder.
    inlink.errors.FolderError
        If the folder holds something else.
    inlink.errors.ParameterError
        If a parameter is outside its meaning.

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
        policy: str | type[Policy] | Policy = "host-diverse",
        use_scores: bool = False,
        cross_domain_only: bool = False,
        damping: float = 0.85,
        politeness: Politeness | None = None,
        rules: Rules | None = None,
        revisit: Schedule | None = None,
        url_rules: UrlRules | None = None,
        lease_seconds: float = 600.0,
        max_retries: int = 3,
        retry_seconds: float = 60.0,
        rerank_share: float | None = 0.1,
        rerank_seconds: float | None = None,
        sync: Literal["second", "full"] = "second",
        clock: Callable[[], float] = time.time,
    ) -> None:
        if sync not in ("second", "full"):
            raise ParameterError(f"sync must be 'second' or 'full', not {sync!r}")
        if not lease_seconds > 0:
            raise ParameterError(f"lease_seconds must be above 0, not {lease_seconds!r}")
        self.folder = Path(folder)
        self.revisit = revisit
        self.refused: Counter[str] = Counter()
        self._clock = clock
        self.settings = Settings(
            policy if isinstance(policy, str) else policy.name,
            use_scores,
            cross_domain_only,
            damping,
            lease_seconds,
            max_retries,
            retry_seconds,
            rerank_share,
            rerank_seconds,
            politeness or Politeness(),
            rules,
            revisit_as_data(revisit),
        )
        with ExitStack() as stack:
            create(self.folder, float(clock()), url_rules)
            stack.enter_context(logs.lock(self.folder))
            log = Log(self.folder, sync)
            stack.callback(log.close)
            self.pages = open_pages(self.folder)
            stack.callback(self.pages.close)
            self.url_rules = url_rules_of(self.folder)
            self.recovered = recover(self.pages, log)
            self.frontier = Frontier(self.pages, self.settings, policy)
            self._journal = Journal(log, self.frontier, self.url_rules, rules)
            self.frontier.restore(self._tick())
            save_settings(self.folder, self.settings)
            self._answers = Answers(self._journal)
            self._upkeep = Upkeep(self.frontier, log, self._journal.now)
            stack.callback(self._upkeep.finish)
            self._journal.admit_last()
            if revisit is not None:
                plan_visits(self.frontier, revisit)
            self._stack = stack.pop_all()

    def _tick(self) -> float:
        self._journal.now = max(self._journal.now, float(self._clock()))
        return self._journal.now

    # -- what comes in ----------------------------------------------------------------------------------------------

    def seed(self, urls: Iterable[Link]) -> int:
        """Make URLs known, as places to begin at; returns how many are new.

        Parameters
        ----------
        urls : iterable of str, (str, float) or CarriedLink
            Absolute URLs, with scores or without; a seed without has 1. Those that are no links are counted in
            ``refused``.
        """
        self._tick()
        return seed(self._journal, urls, self.refused)

    def sitemap(self, entries: Iterable[tuple[str, float | None, float | None]]) -> int:
        """Take in a sitemap: make its URLs known, and fetch again what it says has changed; returns how many are new.

        Parameters
        ----------
        entries : iterable of (str, float or None, float or None)
            URL, lastmod in seconds since 1970, priority from 0 to 1 (None counts 0.5, as the protocol has it). The
            priority counts as the score of a link to the page. A page that was crawled before its lastmod waits
            again.
        """
        rows = list(entries)
        new = self.seed([(url, 0.5 if priority is None else priority) for url, _, priority in rows])
        for url, lastmod, _ in rows:
            if lastmod is not None:
                hint(self._journal, url, lastmod)
        return new

    def crawled(
        self,
        page: Lease | str,
        links: Iterable[Link] = (),
        *,
        score: float = 0.0,
        content_hash: bytes = b"",
        status: int = 200,
        redirected_to: str | None = None,
        canonical_link: str | None = None,
        noindex: bool = False,
        nofollow: bool = False,
        links_are_canonical: bool = False,
    ) -> bool:
        """A page was fetched: take in its links, and end its lease.

        Parameters
        ----------
        page : Lease or str
            The lease, or the URL, that this answers.
        links : iterable of str, (str, float) or CarriedLink
            Its links, relative or not, with scores or without, in any order; they replace those of an earlier visit.
        score : float
            How good its content is.
        content_hash : bytes
            Of at most 255 bytes: another one than last time counts as a change.
        status : int
            HTTP status.
        redirected_to : str or None
            The URL that answered in the end: the page is merged into that one, whose visit this is.
        canonical_link : str or None
            What the page calls its canonical URL: the same, if it lies in the same registered domain.
        noindex, nofollow : bool
            What the page asks of robots; kept, and nothing more.
        links_are_canonical : bool
            The links are strings in canonical form already.

        Returns
        -------
        bool
            Whether it counted. An answer to a lease that was answered for, or after which the page was crawled by
            another, does not.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If a URL is given that this crawl does not know.
        inlink.errors.StoreError
            If it cannot be written.
        """
        self._tick()
        plain, carried = apart(links)
        hrefs, scores = hrefs_and_scores(plain)
        check_answer(score, status, content_hash)
        number, out = self._journal.answered(page)
        if number == NO_PAGE:
            return False
        target = self._journal.merge(number, redirected_to, canonical_link)
        base = partial(self._journal.base, number, redirected_to)
        lines, found, scores = to_lines(
            hrefs, scores, base, self.url_rules, self.refused, links_are_canonical
        )
        more: dict[str, tuple[float, bytes]] = {}
        if carried:
            more = carried_forms(carried, base, self.url_rules, self.refused)
            lines, found, scores = with_carried(lines, found, scores, more)
        pages, new, text = self.pages.number_lines(lines, found)
        flags, end = self._journal.carrying(pages, more)
        count, listed = coded(pages, scores)
        before = self.pages.visit(target)
        first_crawl, crawls, changes, previous = self._journal.now, 1, 0, 0
        if before is not None:
            first_crawl, crawls, previous = before.first_crawl, before.crawls + 1, before.place + 1
            changes = before.changes + (before.content_hash != content_hash[:255])
        payload = kinds.VISITED.pack(first_crawl, crawls, changes, previous, len(content_hash[:255]))
        self._journal.append(
            kinds.VISIT,
            target,
            flags=flags
            | kinds.HAS_SCORES * bool(len(scores))
            | kinds.NOINDEX * noindex
            | kinds.NOFOLLOW * nofollow,
            status=status,
            score=score,
            count=count,
            payload=payload + content_hash[:255] + listed + end,
            new=new,
            urls=text,
        )
        self._journal.landed(out, backoff.OUTCOMES["ok"])
        self.frontier.plans.pop(target, None)
        if target in self.frontier.queue:
            self.frontier.queue.remove(target, self._journal.now)
        self._journal.admit(self.pages.num_pages - new, new, text)
        self.frontier.prioritise(pages[:count], self._journal.now)
        if self.revisit is not None:
            plan_visit(self.frontier, target, self.revisit)
        self._upkeep.after_visit(self._journal.now)
        return True

    def failed(
        self,
        page: Lease | str,
        error: str = "",
        *,
        status: int | None = None,
        retry: bool | None = None,
        retry_after: str | float | None = None,
    ) -> bool:
        """A page could not be fetched; returns whether the answer counted.

        Parameters
        ----------
        page : Lease or str
        error : str
            What happened, for ``crawl.page(url).error``.
        status : int or None
            HTTP status, if there was an answer. 404 and 410 make a page ``gone``; 429 and 503 make its host wait.
        retry : bool or None
            Whether to try again (None: as the status tells), up to ``max_retries`` times, then the page is ``failed``.
        retry_after : str, float or None
            The header of that name, or seconds.
        """
        self._tick()
        return self._answers.failed(page, error, status, retry, retry_after)

    def exclude(self, page: Lease | str, reason: str = "") -> bool:
        """A page must not be fetched, as by robots.txt: it waits no more; returns whether the answer counted."""
        self._tick()
        return self._answers.excluded(page, reason)

    def redirected(
        self, lease: Lease, to: str, *, carried: bytes | None = None, again: bool = False
    ) -> Lease | None:
        """A page answered with a redirect, which the spider wants to follow at once.

        Parameters
        ----------
        lease : Lease
            It ends.
        to : str
            The target; the page is merged into it.
        carried : bytes or None
            What the target is to carry, see :class:`CarriedLink`.
        again : bool
            Follow even where the target was fetched, or is being fetched.

        Returns
        -------
        Lease or None
            Of the target, whatever politeness says; None if it need not, or must not, be fetched.
        """
        self._tick()
        return self._answers.redirected(lease, to, carried, again)

    def release(self, page: Lease | str) -> bool:
        """Give a lease back unused: the page waits again at once. Returns whether there was one."""
        self._tick()
        return self._answers.release(page)

    def release_all(self) -> int:
        """Give back all leases that are out, as after the death of the only spider; returns how many."""
        self._tick()
        return self._answers.release_all()

    def reload(self) -> int:
        """Let pages that failed, are gone, or were excluded wait again; returns how many."""
        self._tick()
        return self._answers.reload()

    def host_delay(self, page: Lease | str, seconds: float) -> bool:
        """A page's host asks for more seconds between two fetches, as by Crawl-delay; returns whether that is new."""
        self._tick()
        return self._answers.host_delay(page, seconds)

    # -- what goes out ------------------------------------------------------------------------------------------------

    def next(self, count: int = 1) -> list[Lease]:
        """The next URLs to fetch, at most ``count``, leased; fewer, or none, if politeness allows no more now."""
        now = self._tick()
        front = self.frontier
        front.advance(now)
        self._do_requests()
        self._upkeep.before_next(now)
        pages, slots = front.queue.take(count, now)
        if not len(pages):
            return []
        return lease_pages(self._journal, pages, slots)

    def due_in(self) -> float | None:
        """Seconds until :meth:`next` may have something; None if nothing waits and nothing is out: the end."""
        now = self._tick()
        self._do_requests()
        return self.frontier.due_in(now)

    # -- looking ------------------------------------------------------------------------------------------------------

    def page(self, url: str) -> Page | None:
        """All that is known of a URL; None if it is not known."""
        try:
            return self.pages.page(self._journal.known(url))
        except UnknownNodeError:
            return None

    def why(self, url: str) -> Why:
        """Where a URL stands in the order, and every reason for it.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If this crawl does not know it.
        """
        return explain(self.frontier, self._journal.known(url), self._tick())

    def standing(self, hosts: int = 5) -> Standing:
        """How far the crawl has come: pages by state, its fullest ``hosts``, the harvest so far; takes a moment."""
        return standing(self.frontier, self._tick(), hosts)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _do_requests(self) -> None:
        """Do what other processes have asked for."""
        for kind, seeds in self._upkeep.requests():
            if kind == inbox.SEED:
                self.seed(seeds)
            elif kind == inbox.RELOAD:
                self.reload()

    def rerank(self) -> None:
        """Ask the ranking process for a new ranking now; the order takes it over when it is there."""
        self._upkeep.rerank(self._tick())

    @property
    def ranking(self) -> bool:
        """Whether a ranking is under way, or taken over but not yet in force everywhere."""
        return self._upkeep.reranker.busy or self.frontier.queue.rekeying

    # -- the end ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Make everything safe and let go of the folder."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
