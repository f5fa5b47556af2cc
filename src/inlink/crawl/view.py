"""A read-only view of a crawl, which commands, servers and dashboards share.

A :class:`CrawlView` shows a live :class:`inlink.Crawl` (``crawl.view``), or a folder that any process may be writing
(:meth:`CrawlView.open`), as it was when it was first read.

Each call takes at most about ten milliseconds of CPU time in a crawl of ten million pages. Calls that would take longer
return a part, and a ``cursor``: pass it to the next call to go on, until it is None. All results are data that
:mod:`msgspec` can encode as JSON.

In a shard of a crawl, ``top``, ``hosts``, ``standing``, ``harvest`` and ``info`` are about the pages and hosts that the
shard owns. The other methods also show pages of other shards.
"""

import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec
import numpy as np

from inlink.base.table import html_table
from inlink.crawl.arguments import MOST_PLACES, MOST_ROWS, argument, check_flags, check_text, position_of
from inlink.crawl.certificate import CertificateWatch
from inlink.crawl.folder import local
from inlink.crawl.gate import inside
from inlink.crawl.questions import answers, whole
from inlink.crawl.questions.about import About, about
from inlink.crawl.questions.searches import ErrorSurvey, LinkSearch, NearSearch, matched_pages
from inlink.crawl.questions.source import FolderCrawl, LiveCrawl
from inlink.crawl.questions.table import QUESTIONS, question
from inlink.errors import ParameterError, UnknownNodeError
from inlink.frontier.explain import Why, explain, host_parts, page_parts
from inlink.frontier.frontier import Frontier
from inlink.frontier.inlinks import InlinkSearch
from inlink.frontier.owners import OwnPages
from inlink.frontier.policies import Policy
from inlink.frontier.standing import Harvest, Progress, state_counts
from inlink.frontier.standing import fullest as fullest_slots
from inlink.frontier.survey import LinkCount, Shown, Survey
from inlink.protocol import Standing
from inlink.store.blocks import BLOCK
from inlink.store.format import NO_PAGE
from inlink.store.page import Page
from inlink.store.pages import Pages
from inlink.store.received import sender

if TYPE_CHECKING:
    from inlink.rank.ranking import Ranking

__all__ = ["MOST_PLACES", "MOST_ROWS", "QUESTIONS", "CrawlView"]

_SECONDS = 0.005
"""CPU time after which a search pauses."""

_URL_BYTES = 1 << 16
_VISITS = 1 << 12


class CrawlView:
    """A read-only view of a crawl.

    Wherever a page is asked for, its URL in any form or its number in the order of discovery can be given.

    Parameters
    ----------
    crawl : LiveCrawl or FolderCrawl
        Use ``crawl.view`` or :meth:`open`.

    Examples
    --------
    >>> import tempfile, inlink
    >>> folder = tempfile.mkdtemp() + "/c"
    >>> with inlink.Crawl(folder) as crawl:
    ...     crawl.seed(["https://example.org/a", "https://example.org/b"])
    2
    >>> with inlink.CrawlView.open(folder) as view:
    ...     [(row.place, row.url) for row in view.order(10).rows]
    ...     [row.url for row in view.find("/b$").rows]
    [(1, 'https://example.org/a'), (2, 'https://example.org/b')]
    ['https://example.org/b']
    """

    def __init__(self, crawl: LiveCrawl | FolderCrawl) -> None:
        self._crawl, self._gate = crawl, crawl.gate
        self._surveys: dict[tuple[str | None, bool, bool, bool], tuple[object, Survey]] = {}

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        clock: Callable[[], float] = time.time,
        policy: str | type[Policy] | Policy | None = None,
    ) -> "CrawlView":
        """Open a view of a crawl's folder, which another process may be writing.

        No code that the folder names is imported. If the crawl's policy is one of your own, the order is shown only if
        ``policy`` names it again.

        Data are read by the first call that needs them. A look-up of one page reads that page only; the order needs all
        events. Events that are written later are not seen. The files stay open until :meth:`close`, which the end of a
        ``with`` block calls.

        Raises
        ------
        inlink.errors.FolderError
            If there is no crawl.
        """
        return cls(FolderCrawl(local(folder), clock, policy))

    def close(self) -> None:
        """Close the files of a view that :meth:`open` returned. Its later calls are refused.

        A second call does nothing. On ``crawl.view`` it does nothing either: the crawl closes its view with itself.

        Raises
        ------
        inlink.errors.InUseError
            If a call on this view has not returned.
        """
        crawl = self._crawl
        if crawl.close():
            self.stop()
            # Surveys and searches hold columns and maps of the files.
            vars(self).clear()
            self._crawl, self._gate = crawl, crawl.gate

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @inside
    def __len__(self) -> int:
        """The number of known pages."""
        return self._pages.num_pages

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<inlink view of {self._gate.what}{': closed' if self._gate.closed else ''}>"

    def _repr_html_(self) -> str:
        if self._gate.closed:
            return html_table(repr(self)[1:-1], [], [])
        counts = [("known pages", len(self)), *self.info().states.items()]
        try:
            # In a large crawl, the best pages of the first second are shown.
            stop, best = time.monotonic() + 1.0, self.top()
            while best.cursor is not None and time.monotonic() < stop:
                best = self.top(cursor=best.cursor)
            title, rows = "best pages", [(row.place, row.value, row.url) for row in best.rows]
        except ParameterError:
            # The policy does not rank pages.
            title, rows = "next pages", [(row.place, row.priority, row.url) for row in self.order(10).rows]
        column = "rank" if title == "best pages" else "priority"
        return "\n".join(
            [
                html_table(f"inlink crawl {self._gate.what}", [], counts),
                html_table(title, ["place", column, "page"], rows),
            ]
        )

    @inside
    def number(self, page: str | int) -> int:
        """The number of a page in the order of discovery.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If the crawl does not know it.
        """
        return self._crawl.number(page)

    # -- one page ---------------------------------------------------------------------------------------------------

    @question("page", whole.page)
    def page(self, page: str | int) -> Page | None:
        """All that is known of a page; None if the crawl does not know it."""
        try:
            number = self._crawl.number(page)
        except UnknownNodeError:
            return None
        data = self._pages.page(number)
        if data.fingerprint:
            original, searched = self._near.original(number, _SECONDS)
            url = None if original is None else self._pages.url(original)
            data = replace(data, near_duplicate_of=url, searched=searched)
        if data.state == "excluded" and (rules := self._crawl.rules):
            # The reason is in an event that lists many pages. Computing it again is faster than finding that event.
            data = replace(data, error=rules.verdict(data.url, data.depth) or data.error)
        return data

    @question("why", whole.why)
    def why(self, page: str | int, seconds: float = _SECONDS) -> Why:
        """The place of a page in the order, and all reasons for it.

        Parameters
        ----------
        page : str or int
        seconds : float
            CPU time limit of the searches for links to the page and for near-duplicates. The next call continues them.
            A server has a time limit of its own.

        Raises
        ------
        inlink.errors.ParameterError
            If ``seconds`` is negative or not a number.
        inlink.errors.UnknownNodeError
            If the crawl does not know it.
        """
        seconds = argument("cpu_seconds", seconds)
        number = self._crawl.number(page)
        inlinks, complete = self._inlinks.best(number, seconds / 2)
        original, searched = self._near.original(number, seconds / 2)
        return explain(self._frontier, number, self._now(), inlinks, complete and searched, original)

    @question("path", whole.path)
    def path(self, page: str | int, count: int = 100, cursor: str | None = None) -> answers.Path:
        """The path to a page's discovery: the page, the page whose links made it known, and so on to a seed.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If the crawl does not know it.
        inlink.errors.ParameterError
            If ``count`` is not in 1 … 1,000, or the cursor is of another call.
        """
        argument("rows", count)
        pages, number = self._pages, self._crawl.number(page)
        if cursor is not None:
            number = position_of(cursor, pages.num_pages)
        rows: list[answers.PageRow] = []
        while number != NO_PAGE and len(rows) < count:
            rows.append(answers.PageRow(number, pages.url(number)))
            # The page that made another known is always older, so the chain ends.
            number = pages.maker(number)
        if number != NO_PAGE:
            return answers.Path(rows, str(number))
        last = rows[-1].page
        return answers.Path(rows, None, sender(pages.frames, last, pages.maker_place(last)))

    @question("links", whole.links)
    def links(
        self,
        page: str | int,
        direction: Literal["from", "to"] = "from",
        count: int = 100,
        cursor: str | None = None,
    ) -> answers.PageList:
        """The pages that a page links to, or that link to it, as of each page's latest visit.

        A link to a merged page counts as a link to the page it was merged into.

        Parameters
        ----------
        page : str or int
        direction : {"from", "to"}
            "from": the pages that it links to, by number. "to": the pages that link to it, in the order in which they
            were first crawled. A part may have few or no rows while the search goes on.
        count : int
            Rows at most, 1 … 1,000.
        cursor : str or None
            Where to go on.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If the crawl does not know the page.
        inlink.errors.ParameterError
            If an argument is out of its range.
        """
        argument("rows", count)
        number, pages = self._crawl.number(page), self._pages
        if direction == "from":
            targets = [pages.survivor(number)] if number in pages.merged else pages.links(number).tolist()
            begin = position_of(cursor, len(targets))
            end = min(begin + count, len(targets))
            rows = [answers.PageRow(target, pages.url(target)) for target in targets[begin:end]]
            return answers.PageList(rows, str(end) if end < len(targets) else None)
        if direction != "to":
            raise ParameterError(f"`direction` must be 'from' or 'to'; got {direction!r}")
        return self._link_search.part(number, count, cursor, _SECONDS)

    # -- all pages --------------------------------------------------------------------------------------------------

    @question("find", whole.find)
    def find(
        self,
        expression: str,
        kind: Literal["regex", "glob", "text"] = "regex",
        count: int = 100,
        cursor: str | None = None,
    ) -> answers.MatchedPages:
        """The pages whose URLs match an expression, in the order of discovery.

        Parameters
        ----------
        expression : str
        kind : {"regex", "glob", "text"}
            See :func:`inlink.urls.matching.matcher`.
        count : int
            Rows at most, 1 … 1,000.
        cursor : str or None
            The cursor of the part before. A part may have few or no rows while the search goes on.

        Raises
        ------
        inlink.errors.ParameterError
            If an argument is out of its range, or the expression is not valid.
        """
        argument("rows", count)
        check_text("expression", expression)
        # Most views search for no expressions, and need no import of RE2.
        from inlink.urls.matching import matcher

        return matched_pages(self._pages, matcher(expression, kind), count, cursor, _SECONDS)

    @question("top", whole.top)
    def top(
        self,
        ranking: str | None = None,
        count: int = 10,
        cursor: str | None = None,
        *,
        foreign: bool = True,
        uncrawled: bool = True,
        hubs: bool = False,
    ) -> answers.Top:
        """The best pages of a ranking: of all known pages, or of crawled pages only.

        Parameters
        ----------
        ranking : str or None
            Name of a ranking that is stored with the crawl, or None for the ranks that order the crawl now.
        count : int
            Rows, 1 … 1,000.
        cursor : str or None
            The cursor of the part before. Until the result's cursor is None, its rows are the best pages found so far.
        foreign : bool
            Whether pages of hosts without crawled pages take part.
        uncrawled : bool
            Whether pages that were not crawled take part, of hosts with crawled pages.
        hubs : bool
            Sort by hub score. Needs a stored ranking by HITS or SALSA.

        Raises
        ------
        inlink.errors.FolderError
            If there is no ranking of that name.
        inlink.errors.ParameterError
            If an argument is out of its range, or the crawl's policy does not rank pages.
        """
        from inlink.sources.rankings import ranking_of

        argument("rows", count)
        check_flags(foreign=foreign, uncrawled=uncrawled, hubs=hubs)
        pages = self._pages
        stored, version = (None, None) if ranking is None else ranking_of(pages.folder, ranking)
        survey = self._survey(ranking, stored, version, foreign, uncrawled, hubs)
        complete = survey.proceed(_SECONDS)
        best, texts = survey.best_so_far()[:count], cache(pages.frames.anchors)

        def named(page: int) -> str:
            facts = pages.frames.page_facts(pages.visit(page))
            return (facts.title if facts else "") or texts(pages.maker_place(page)).get(page, "")

        rows = [
            answers.RankedPage(
                place,
                page,
                pages.url(page),
                value if stored is None else float(stored.values[page]),
                pages.visit_place(page) is not None,
                named(page) if place <= answers.TEXTS else "",
            )
            for place, (page, value) in enumerate(best, 1)
        ]
        looked_at = survey.result.pages if complete and survey.result else survey.position
        part = answers.Top(rows, looked_at, pages.num_pages, None if complete else str(looked_at))
        if stored is None or not complete:
            return part
        # A value more than there are rows shows whether the last place is certain.
        values = np.array([value for _, value in survey.best_so_far()])
        places = None if hubs else stored.places_among(values, len(rows))
        return msgspec.structs.replace(
            part,
            certain=None if places is None else places.certain.tolist(),
            hubs=[float(stored.hubs[row.page]) for row in rows] if "hubs" in stored.columns else None,
            algorithm=stored.algorithm,
        )

    def _survey(
        self,
        name: str | None,
        ranking: "Ranking | None",
        version: object,
        foreign: bool,
        uncrawled: bool,
        hubs: bool,
    ) -> Survey:
        """The survey that finds the best pages of a stored ranking, or of the live ranks."""
        pages, policy = self._pages, None if ranking is not None else self._frontier.policy
        if policy is not None and (policy.algorithm is None or hubs):
            raise ParameterError(
                f"policy {policy.name} does not rank {'hubs' if hubs else 'pages'}: name a stored ranking"
            )
        if policy is not None and self._own is not None and policy.algorithm != "pagerank":
            raise ParameterError(
                f"shards have no common order by policy {policy.name!r}, which ranks by the links of this shard only: "
                "choose a policy by PageRank"
            )
        shown = None if foreign and uncrawled else Shown(pages, foreign, uncrawled)
        if ranking is None and shown is None:
            return self._progress.ranks
        key = name, foreign, uncrawled, hubs
        made_for, survey = self._surveys.get(key, (None, None))
        if survey is None or made_for != version:
            if ranking is None:
                survey = self._progress.survey(shown)
            else:
                values = ranking.hubs if hubs else ranking.values
                survey = Survey(
                    pages,
                    lambda first, end: values[first:end],
                    lambda: len(values),
                    lambda: (shown or self._own) and pages.frames.end,
                    shown,
                    self._own,
                )
            self._surveys[key] = version, survey
        return survey

    @question("dump", whole.dump)
    def dump(
        self,
        what: Literal["pages", "links"] = "pages",
        cursor: str | None = None,
        *,
        aduana: bool = False,
        depth: bool = False,
        anchors: bool = False,
        facts: bool = False,
        raw: bool = False,
        safe_cells: bool = False,
        urls: bool = False,
        seconds: float = _SECONDS,
    ) -> answers.Dump:
        """All pages, or the links between them, as tab-separated lines; the first part has a header.

        Parameters
        ----------
        what : {"pages", "links"}
        cursor : str or None
            Where to go on.
        aduana : bool
            Write the columns of Aduana's ``page_db_dump``, without a header.
        depth : bool
            With ``aduana`` and pages, write the depth before the score.
        anchors : bool
            With links and without ``aduana``, write the text of each link, of which a crawl keeps the first 80
            characters, and 8 KiB a page. Texts with a quote are in quotes, as in CSV.
        facts : bool
            With pages and without ``aduana``, write title, heading and the other data of
            :class:`inlink.protocol.PageFacts`.
        raw : bool
            With links and without ``aduana``, write the links as their pages have them, before redirects and merges,
            with URL, text, place and ``nofollow``.
        safe_cells : bool
            Without ``aduana``, write ``'`` before texts that spreadsheets would read as a formula.
        urls : bool
            Without ``aduana``, name other pages by their URLs and not by their numbers.
        seconds : float
            CPU time after which the part ends. A server has a time limit of its own.

        Raises
        ------
        inlink.errors.ParameterError
            If an argument is out of its range.
        """
        from inlink.sources.dumping import ROWS, link_lines, page_lines, raw_link_lines

        check_flags(aduana=aduana, depth=depth, anchors=anchors, facts=facts, raw=raw)
        check_flags(safe_cells=safe_cells, urls=urls)
        if ((anchors or raw) and what != "links") or (facts and what != "pages"):
            raise ParameterError("`anchors` and `raw` apply only to links, and `facts` only to pages")
        if aduana and (anchors or raw or facts or safe_cells or urls):
            raise ParameterError("`aduana` has columns of its own: leave out the other options")
        seconds = argument("cpu_seconds", seconds)
        pages = self._pages
        size, rows = (_URL_BYTES, _VISITS // 16) if seconds <= _SECONDS else (BLOCK, ROWS)
        if what == "pages":
            position = position_of(cursor, pages.num_pages)
            blocks = page_lines(
                pages,
                aduana=aduana,
                depth=depth,
                facts=facts,
                safe_cells=safe_cells,
                urls=urls,
                first=position,
                size=size,
            )
            last = pages.num_pages
        elif what == "links":
            position = position_of(cursor, pages.tally.rows)
            part: dict[str, Any] = {
                "safe_cells": safe_cells,
                "urls": urls,
                "first_row": position + 1,
                "rows": rows,
            }
            blocks = (
                raw_link_lines(pages, **part)
                if raw
                else link_lines(pages, aduana=aduana, anchors=anchors, **part)
            )
            last = pages.tally.rows
        else:
            raise ParameterError(f"`what` must be 'pages' or 'links'; got {what!r}")
        lines = []
        stop = time.thread_time() + seconds
        for block, done in blocks:
            lines.append(block)
            position += done
            # The header is not a part of its own, because the next part would begin with it again.
            if done and time.thread_time() > stop:
                break
        else:
            position = last
        text = b"".join(lines).decode("utf-8", "surrogateescape")
        return answers.Dump(text, position, last, str(position) if position < last else None)

    @question("errors", whole.errors)
    def errors(self, cursor: str | None = None) -> answers.Errors:
        """Failures and exclusions by cause, with examples.

        Parameters
        ----------
        cursor : str or None
            The cursor of the part before. Until the result's cursor is None, only a part of the log was read.

        Raises
        ------
        inlink.errors.ParameterError
            If the cursor is of another call.
        """
        position_of(cursor, self._pages.frames.end)
        return self._errors.proceed(self._now(), _SECONDS)

    # -- the order --------------------------------------------------------------------------------------------------

    @question("next", whole.order)
    def order(self, count: int = 50) -> answers.Order:
        """The next pages by present priorities and politeness, best first, with reasons. No page is leased.

        Raises
        ------
        inlink.errors.ParameterError
            If ``count`` is not in 1 … 100.
        """
        argument("places", count)
        frontier, now = self._frontier, self._now()
        rows, seen = [], Counter[int]()
        for place, (page, priority, due_in) in enumerate(frontier.order(count, now), 1):
            slot = frontier.queue.slot(page)
            parts, shares = page_parts(frontier, page), host_parts(frontier, page, seen[slot])
            seen[slot] += 1
            rows.append(
                answers.OrderRow(place, page, frontier.pages.url(page), priority, due_in, parts, shares)
            )
        return answers.Order(rows)

    @question("hosts", whole.hosts)
    def hosts(self, count: int = 100, cursor: str | None = None, *, fullest: bool = False) -> answers.Hosts:
        """The hosts, or with ``by="domain"`` registered domains, in the order of discovery.

        Parameters
        ----------
        count : int
            Rows at most, 1 … 1,000.
        cursor : str or None
            Where to go on.
        fullest : bool
            Return only the hosts with the most waiting pages, fullest first. There is no next part.

        Raises
        ------
        inlink.errors.ParameterError
            If an argument is out of its range.
        """
        argument("rows", count)
        check_flags(fullest=fullest)
        frontier, now = self._frontier, self._now()
        num_slots, own = frontier.queue.num_slots, self._progress.own_slots(_SECONDS)
        known = num_slots if own is None else int(own.sum())
        if fullest:
            rows = [frontier.hosts.state(slot, now) for slot in fullest_slots(frontier, count, own)]
            return answers.Hosts(rows, known, None)
        begin = position_of(cursor, num_slots)
        slots = np.arange(begin, num_slots) if own is None else np.flatnonzero(own[begin:]) + begin
        rows = [frontier.hosts.state(slot, now) for slot in slots[:count].tolist()]
        return answers.Hosts(rows, known, str(slots[count]) if len(slots) > count else None)

    # -- the whole crawl --------------------------------------------------------------------------------------------

    @question("standing", whole.standing)
    def standing(self, hosts: int = 5, top: int | None = None, within: float = 0.0) -> Standing:
        """The crawl's progress: pages by state, the ``hosts`` hosts with the most waiting pages, and the harvest.

        In a crawl of more than a few million pages, the harvest may be a few calls old. It is None until the first
        calls have computed it.

        Parameters
        ----------
        hosts : int
            Number of hosts, 0 … 1,000.
        top : int or None
            Add a certificate of this number of places, 1 … 1,000. A thread computes it, with a tenth of one processor
            at most, as long as calls ask for it. It is None until the first is ready. Without ``top`` it costs nothing.
        within : float
            ε of the certificate, a share of all rank, 0 … 1.

        Raises
        ------
        inlink.errors.ParameterError
            If an argument is out of its range.
        """
        hosts, within = argument("hosts", hosts), argument("within", within)
        standing = self._progress.standing(self._crawl.now(), hosts, _SECONDS)
        if top is None:
            return standing
        return msgspec.structs.replace(standing, certificate=self._certificates.latest(top, within))

    @question("harvest", whole.harvest)
    def harvest(self) -> Harvest:
        """A curve: the fetched share of the rank of all pages that may be fetched, against the number of fetched pages.

        While the ``cursor`` of the result is not None, the curve is old or empty: call again.
        """
        return self._progress.harvest(_SECONDS)

    @question("info", whole.info)
    def info(self) -> answers.Info:
        """Figures of the crawl: numbers of pages by state, hosts, links and events, and the time of its beginning."""
        pages, own = self._pages, self._own
        states = state_counts(pages) if own is None else own.states(_SECONDS)
        return answers.Info(
            sum(states.values()),
            states,
            pages.tally.crawled,
            pages.tally.hosts if own is None else int(own.hosts.own().sum()),
            self._link_count.proceed(_SECONDS),
            pages.tally.events,
            pages.frames.end,
            pages.started,
        )

    @question("about", whole.about)
    def about(self) -> About:
        """The state of the crawl's folder: sizes, policy, writer, inbox, and the ranking that orders the crawl.

        Raises
        ------
        inlink.errors.FolderError
            If the settings in the folder cannot be read.
        """
        return about(self._pages.folder, self._pages.frames.end)

    def stop(self) -> None:
        """End the thread that computes certificates, if there is one."""
        if "_certificates" in self.__dict__:
            self._certificates.stop()

    # -- inside -----------------------------------------------------------------------------------------------------

    @property
    def _pages(self) -> Pages:
        return self._crawl.pages

    @property
    def _frontier(self) -> Frontier:
        return self._crawl.frontier

    def _now(self) -> float:
        return self._crawl.now()

    @cached_property
    def _inlinks(self) -> InlinkSearch:
        return InlinkSearch(self._frontier)

    @cached_property
    def _near(self) -> NearSearch:
        return NearSearch(self._pages)

    @cached_property
    def _link_search(self) -> LinkSearch:
        return LinkSearch(self._pages)

    @cached_property
    def _errors(self) -> ErrorSurvey:
        return ErrorSurvey(self._pages)

    @cached_property
    def _own(self) -> OwnPages | None:
        """The pages that the crawl owns if it is a shard. A crawl stays the shard that it is."""
        rules = self._crawl.rules
        return None if rules is None or rules.part is None else OwnPages(self._pages, rules.part)

    @cached_property
    def _progress(self) -> Progress:
        return Progress(self._frontier, self._own, self._crawl.stale)

    @cached_property
    def _link_count(self) -> LinkCount:
        return LinkCount(self._pages)

    @cached_property
    def _certificates(self) -> CertificateWatch:
        return CertificateWatch(self._pages.folder)
