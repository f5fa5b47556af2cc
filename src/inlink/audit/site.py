"""The pages of a crawled site, and their links before redirects and merges.

A page is the site's *own* if it is on a host of a seed, or of the page that a seed redirects to. An own page is
*indexable* if it was fetched with a status of 200 to 299, is not merged into another page, and has no
``noindex``.
"""

import os
from collections import Counter
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from inlink.base.arrays import BoolArray, Int64Array, UInt8Array, UInt16Array, UInt32Array, UInt64Array
from inlink.base.progress import track
from inlink.base.table import counted
from inlink.crawl.settings import stored
from inlink.frontier.rules import Rules
from inlink.graph.graph import Graph
from inlink.protocol import PageFacts
from inlink.store.blocks import page_columns
from inlink.store.format import (
    BY_SITEMAP,
    CRAWLED,
    DISCOVERED,
    EXCLUDED,
    FAILED_PAGE,
    HEAD_SIZE,
    LEASED,
    NOINDEX,
    SEED,
    TRUSTED,
    Head,
    VisitRecord,
)
from inlink.store.frames import fields_at
from inlink.store.page import error_of, merge_reason
from inlink.store.pages import Pages
from inlink.store.reader import known_pages

__all__ = ["REFUSALS", "UNREACHED", "CrawledSite", "Hop", "SiteLinks"]

UNREACHED = 0xFFFF
"""Depth of pages that cannot be reached from the front pages."""

REFUSALS = (401, 403, 407, 429, 451)
"""HTTP statuses that deny access to the crawler. Other visitors may be able to see the page."""

_MOST_REASONS = 2000
"""Maximum number of excluded pages whose reasons are read. The other counts are estimated from them."""


class SiteLinks(NamedTuple):
    """The links of all fetched own pages, sorted by source, without links of a page to itself.

    ``targets`` are pages before redirects and merges. ``texts`` are hashes of the texts, 0 for links without a text:
    :meth:`CrawledSite.texts_of` reads the texts. ``places`` are the bytes of
    :attr:`inlink.store.facts.StoredFacts.places`.
    """

    sources: UInt32Array
    targets: UInt32Array
    texts: Int64Array
    places: UInt8Array


class Hop(NamedTuple):
    """A step of a redirect: page, HTTP status of its answer (0: unknown), and reason of the merge."""

    page: int
    status: int
    reason: str | None


class CrawledSite:
    """A crawl's own pages and their links. Use it in a ``with`` statement, which closes the crawl's files.

    Parameters
    ----------
    folder : path-like
        The crawl's folder, which may be in use.

    Attributes
    ----------
    states : uint8[n]
        The states of all known pages (:data:`inlink.store.format.STATES`).
    status : uint16[n]
        The last HTTP status of each page; 0 if there is none.
    own, fetched, indexable : bool[n]
        Own pages; own pages that were fetched and are not merged; indexable pages.
    in_sitemap : bool[n]
        Pages that are in a sitemap.
    survivor : uint32[n]
        The page that each page was merged into; the page itself if it was not merged.
    homes : uint32[k]
        The seeds, as the pages that they were merged into.
    facts : dict of int to PageFacts
        The facts of fetched pages, if the crawl has them.
    links : SiteLinks
        The links of fetched pages.

    Raises
    ------
    inlink.errors.FolderError
        If the folder holds no crawl, or is damaged.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.pages: Pages = known_pages(folder)
        pages, count = self.pages, self.pages.num_pages
        self.url = pages.url
        columns, self._visits = page_columns(pages, 0, count)
        self.states: UInt8Array = columns["state"]
        self.status: UInt16Array = columns["status"]
        self.survivor: UInt32Array = np.arange(count, dtype=np.uint32)
        for page in pages.merged:
            self.survivor[page] = pages.survivor(page)
        self.in_sitemap: BoolArray = np.zeros(count, np.bool_)
        seeds = self._read_seeds()
        self.homes: UInt32Array = np.unique(self.survivor[seeds])
        hosts = np.unique(np.concatenate([pages.hosts[seeds], pages.hosts[self.homes]]))
        self.own: BoolArray = np.isin(pages.hosts[:count], hosts)
        self.fetched: BoolArray = self.own & (self._visits > 0)
        noindex = np.zeros(count, np.bool_)
        self.facts: dict[int, PageFacts] = {}
        self.links = self._read(noindex)
        succeeded = (self.status >= 200) & (self.status < 300)
        self.indexable: BoolArray = self.fetched & (self.states == CRAWLED) & succeeded & ~noindex

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.pages.close()

    def _read_seeds(self) -> UInt32Array:
        """Return the seeds, and mark the pages of sitemaps."""
        pages, seeds = self.pages, []
        for place in pages.frames.of_kind(SEED):
            flags, listed = pages.frames.frame(place).flags, pages.frames.list_at(place)
            if flags & BY_SITEMAP:
                self.in_sitemap[listed] = True
            elif not flags & TRUSTED:
                seeds.append(listed)
        return np.unique(np.concatenate([np.empty(0, np.uint32), *seeds]))

    def _read(self, noindex: BoolArray) -> SiteLinks:
        """Read the visits of fetched pages: their links, directives and facts."""
        frames = self.pages.frames
        fetched = np.flatnonzero(self.fetched).astype(np.uint32)
        visits = self._visits[fetched] - np.uint64(1)
        log = frames.at(visits)
        noindex[fetched] = (fields_at(log, visits, Head, "flags") & NOINDEX) != 0
        counts = fields_at(log, visits, Head, "listed").astype(np.int64)
        ends = np.cumsum(counts)
        total = int(counts.sum())
        targets, texts = np.empty(total, np.uint32), np.zeros(total, np.int64)
        places = np.zeros(total, np.uint8)
        with track("reading pages", len(fetched), "pages") as task:
            for page, place, end, count in zip(
                fetched.tolist(), visits.tolist(), ends.tolist(), counts.tolist(), strict=True
            ):
                row = slice(end - count, end)
                targets[row] = frames.list_at(place)
                if words := frames.anchors(place).values():
                    # The hash of an empty text is 0.
                    texts[row] = np.fromiter(map(hash, words), np.int64, count)
                stored = frames.facts(place)
                if stored is not None:
                    self.facts[page] = stored.facts
                    if len(stored.places) == count:
                        places[row] = np.frombuffer(stored.places, np.uint8)
                task.advance(1)
        frames.unload()
        sources = np.repeat(fetched, counts)
        others = targets != sources
        return SiteLinks(sources[others], targets[others], texts[others], places[others])

    # -- pages --------------------------------------------------------------------------------------------------------

    @cached_property
    def targets(self) -> UInt32Array:
        """The pages that the links lead to, after redirects and merges, uint32[links]."""
        return self.survivor[self.links.targets]

    @cached_property
    def inlinks(self) -> UInt32Array:
        """The number of links from other own pages to each page, after redirects and merges, uint32[n]."""
        return self.inlinks_of(np.ones(len(self.targets), np.bool_))

    def inlinks_of(self, chosen: BoolArray) -> UInt32Array:
        """The number of chosen links to each page from other own pages, uint32[n]."""
        outside = chosen & (self.targets != self.links.sources)
        return np.bincount(self.targets[outside], minlength=len(self.own)).astype(np.uint32)

    def texts_of(self, rows: Int64Array) -> list[str]:
        """Return the texts of links by their rows in :attr:`links`. Increasing rows are read fastest."""
        texts, of_page, page = [], dict[int, str](), -1
        for source, target in zip(
            self.links.sources[rows].tolist(), self.links.targets[rows].tolist(), strict=True
        ):
            if source != page:
                page, of_page = source, self.pages.frames.anchors(int(self._visits[source]) - 1)
            texts.append(of_page.get(target, ""))
        self.pages.frames.unload()
        return texts

    def hops(self, page: int) -> list[Hop]:
        """The steps from a page to the page that it was merged into, by redirects and canonical links."""
        steps, passed = [], {page}
        while page in self.pages.merged:
            merge = self.pages.merge_of(page)
            assert merge is not None
            steps.append(Hop(page, merge.status, merge_reason(merge)))
            page = self.pages.merged[page]
            if page in passed:
                break
            passed.add(page)
        return steps

    def error(self, page: int) -> str:
        """The text of a page's last failure, or the reason for which it was excluded."""
        row = int(self.pages.answers[page])
        failure = int(self.pages.failures[row]) if row else 0
        if failure and (text := error_of(self.pages.frames.frame(failure - 1))):
            return text
        rules = self._rules
        verdict = rules.verdict(self.url(page), int(self.pages.depths[page])) if rules else None
        return verdict or self.pages.exclusion_of(page) or ""

    @cached_property
    def _rules(self) -> Rules | None:
        return stored(self.pages.folder).rules

    @cached_property
    def fingerprints(self) -> tuple[UInt32Array, UInt64Array]:
        """The indexable pages with a fingerprint of their text, uint32[k], and the fingerprints, uint64[k]."""
        pages = np.flatnonzero(self.indexable).astype(np.uint32)
        payloads = self._visits[pages] - np.uint64(1) + np.uint64(HEAD_SIZE)
        prints = fields_at(
            self.pages.frames.at(self._visits[pages] - np.uint64(1)), payloads, VisitRecord, "fingerprint"
        )
        self.pages.frames.unload()
        return pages[prints != 0], prints[prints != 0]

    # -- the site as a graph ------------------------------------------------------------------------------------------

    def depths(self, chosen: BoolArray | None = None) -> UInt16Array:
        """The fewest clicks from a front page to each page, uint16[n]; :data:`UNREACHED` if no path leads there.

        A redirect is no click. The front pages are the seeds.

        Parameters
        ----------
        chosen : bool[links] or None
            The links that count. Default: all.
        """
        sources, targets = self.links.sources, self.targets
        if chosen is not None:
            sources, targets = sources[chosen], targets[chosen]
        starts = np.searchsorted(sources, np.arange(len(self.own) + 1))
        depths = np.full(len(self.own), UNREACHED, np.uint16)
        level, reached = 0, self.homes
        while len(reached) and level < UNREACHED:
            depths[reached] = level
            counts = starts[reached + 1] - starts[reached]
            firsts = np.repeat(starts[reached] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
            following = targets[firsts + np.arange(int(counts.sum()))]
            reached = np.unique(following[depths[following] == UNREACHED])
            level += 1
        return depths

    def graph(self, chosen: BoolArray | None = None) -> Graph:
        """The graph of the links between known pages, with the pages as nodes, after redirects and merges."""
        kept = np.ones(len(self.targets), np.bool_) if chosen is None else chosen
        return Graph.from_arcs(
            np.column_stack([self.links.sources[kept], self.targets[kept]]), num_nodes=len(self.own)
        )

    # -- pages that were not fetched -----------------------------------------------------------------------------------

    @cached_property
    def gaps(self) -> list[str]:
        """Reasons why own pages were not fetched, with numbers; empty if all own pages with links were fetched."""
        own = self.own
        waiting = int(np.count_nonzero(own & ((self.states == DISCOVERED) | (self.states == LEASED))))
        failed = own & (self.states == FAILED_PAGE)
        refused = int(np.count_nonzero(failed & np.isin(self.status, REFUSALS)))
        excluded = np.flatnonzero(own & (self.states == EXCLUDED)).tolist()
        reasons = [f"{counted(waiting, 'page')} not fetched yet"] if waiting else []
        if refused:
            reasons.append(f"{counted(refused, 'page')} denied access")
        if errors := int(np.count_nonzero(failed)) - refused:
            reasons.append(f"{counted(errors, 'page')} failed with a temporary error")
        causes = Counter(self.error(page) or "excluded" for page in excluded[:_MOST_REASONS])
        # Behind a redirect loop there is no page.
        causes = Counter(
            {cause: number for cause, number in causes.items() if "redirect" not in cause.lower()}
        )
        for cause, number in causes.most_common(5):
            about = "about " if len(excluded) > _MOST_REASONS else ""
            share = number * len(excluded) // min(len(excluded), _MOST_REASONS)
            reasons.append(f"{about}{counted(share, 'page')} excluded: {cause}")
        return reasons

    @property
    def without_facts(self) -> int:
        """Number of fetched pages without facts."""
        return int(np.count_nonzero(self.fetched)) - len(self.facts)
