"""The checks of an audit. Each check is a function that yields rows. :data:`CHECKS` contains all checks.

A row names a fault and the page to edit. The first columns of a row are its key, by which two audits are compared.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from inlink.audit.site import REFUSALS, UNREACHED, CrawledSite
from inlink.audit.templates import template_links
from inlink.base.arrays import BoolArray, Float64Array, UInt16Array, UInt32Array, UInt64Array
from inlink.graph.components import CORE, IN, OUT, bow_tie, components
from inlink.store.facts import place_named
from inlink.store.format import CRAWLED, EXCLUDED, FAILED_PAGE, GONE
from inlink.store.near import MOST_BITS
from inlink.urls import labels

__all__ = ["CHECKS", "DEEP", "Check", "Evidence", "Level"]

Level = Literal["error", "warning", "notice", "table"]

Row = tuple[Any, ...]

DEEP = 3
"""Maximum number of clicks from the front page that is not reported."""

_LEAST_STARVED = 10


class Evidence:
    """A site, with data that several checks use.

    Parameters
    ----------
    site : CrawledSite
    foreign : bool
        Whether to check links to pages of other hosts too, if the crawl has fetched these pages.
    earlier : set of str
        URLs of pages of an earlier crawl.
    """

    def __init__(
        self, site: CrawledSite, *, foreign: bool = False, earlier: frozenset[str] = frozenset()
    ) -> None:
        self.site, self.foreign, self.earlier = site, foreign, earlier

    @cached_property
    def template(self) -> BoolArray:
        """Whether each link is a template link, bool[links]."""
        return template_links(self.site)

    @cached_property
    def content_inlinks(self) -> UInt32Array:
        """The number of content links to each page, uint32[n]."""
        return self.site.inlinks_of(~self.template)

    @cached_property
    def rank(self) -> Float64Array:
        """The PageRank of each page by content links, float64[n]."""
        from inlink.rank.pagerank import pagerank

        return pagerank(self.site.graph(~self.template)).values

    @cached_property
    def clicks(self) -> UInt16Array:
        """The fewest clicks from the front page to each page, uint16[n]."""
        return self.site.depths()

    def indexable(self) -> list[int]:
        """The indexable pages."""
        return np.flatnonzero(self.site.indexable).tolist()

    def links_to(self, wrong: BoolArray) -> Iterator[tuple[int, int, str, str]]:
        """Yield the links whose raw target is among some pages: target, page, text, place."""
        links = self.site.links
        rows = np.flatnonzero(wrong[links.targets])
        texts = self.site.texts_of(rows)
        for k in np.argsort(links.targets[rows], kind="stable").tolist():
            row = int(rows[k])
            place = place_named(int(links.places[row]))
            yield int(links.targets[row]), int(links.sources[row]), texts[k], place


class Check(NamedTuple):
    """A check.

    Attributes
    ----------
    name, title, why : str
        Name in options, heading, and the reason why a finding matters, in one line.
    level : {"error", "warning", "notice", "table"}
        How bad a finding is. A table has no findings.
    columns : tuple of str
        The columns of its rows.
    key : int
        Number of columns that form the key of a row.
    needs : {"", "facts", "sitemap"}
        Data that the check requires beside pages and links.
    rows : callable
        Yields the rows.
    """

    name: str
    title: str
    why: str
    level: Level
    columns: tuple[str, ...]
    key: int
    needs: str
    rows: Callable[[Evidence], Iterable[Row]]


CHECKS: dict[str, Check] = {}
"""All checks by name, in the order of a report."""


def _check(
    title: str, why: str, level: Level, columns: str, key: int, needs: str = ""
) -> Callable[[Callable[[Evidence], Iterable[Row]]], Callable[[Evidence], Iterable[Row]]]:
    def declare(rows: Callable[[Evidence], Iterable[Row]]) -> Callable[[Evidence], Iterable[Row]]:
        name = rows.__name__.strip("_").replace("_", "-")
        CHECKS[name] = Check(name, title, why, level, tuple(columns.split()), key, needs, rows)
        return rows

    return declare


# -- broken links and redirects ---------------------------------------------------------------------------------------


def _broken(evidence: Evidence) -> tuple[BoolArray, BoolArray]:
    """Pages that are broken after redirects, and pages that deny access to the crawler, bool[n] each."""
    site = evidence.site
    judged = np.ones(len(site.own), np.bool_) if evidence.foreign else site.own
    failed = (site.states == GONE) | (site.states == FAILED_PAGE)
    failed |= (site.states == CRAWLED) & (site.status >= 400)
    refused = failed & np.isin(site.status, REFUSALS)
    end = site.survivor
    return (judged & failed & ~refused)[end], (judged & refused)[end]


def _links_to_failed(evidence: Evidence, wrong: BoolArray) -> Iterator[Row]:
    site = evidence.site
    for target, page, text, place in evidence.links_to(wrong):
        end = int(site.survivor[target])
        status = int(site.status[end])
        problem = str(status) if status else site.error(end) or "no answer"
        if end != target:
            problem = f"redirects to {site.url(end)}, which answers: {problem}"
        yield site.url(target), site.url(page), problem, text, place


@_check(
    "Broken links",
    "Visitors who follow them get an error.",
    "error",
    "target page problem text place",
    key=2,
)
def broken(evidence: Evidence) -> Iterator[Row]:
    return _links_to_failed(evidence, _broken(evidence)[0])


@_check(
    "Links to pages that denied access",
    "The server answered 401, 403, 407, 429 or 451. Open these pages in a browser: other visitors may see them.",
    "notice",
    "target page problem text place",
    key=2,
)
def refused(evidence: Evidence) -> Iterator[Row]:
    return _links_to_failed(evidence, _broken(evidence)[1])


@_check(
    "Links to redirects",
    "Each redirect makes visitors wait, and a loop never ends. Link to the last page.",
    "warning",
    "target page problem end text place",
    key=2,
)
def redirects(evidence: Evidence) -> Iterator[Row]:
    site = evidence.site
    moved = np.zeros(len(site.own), np.bool_)
    endless = {
        page: f"no end: {error}"
        for page in np.flatnonzero((site.states == EXCLUDED) | (site.states == FAILED_PAGE)).tolist()
        if site.own[page] and "redirect" in (error := site.error(page)).lower()
    }
    problems = {page: (problem, "") for page, problem in endless.items()}
    for page in np.flatnonzero(site.own & (site.survivor != np.arange(len(site.own)))).tolist():
        hops = [hop for hop in site.hops(page) if hop.reason in ("redirect", "refresh")]
        last = int(site.survivor[page])
        if last in endless:
            problems[page] = endless[last], ""
        elif hops and hops[0].page == page:
            end = site.url(last)
            kind = f"chain of {len(hops)}: " if len(hops) > 1 else ""
            if site.url(page).startswith("https:") and end.startswith("http:"):
                kind = f"https to http, {kind}"
            problems[page] = f"{kind}{', '.join(str(hop.status or 'redirect') for hop in hops)}", end
    moved[list(problems)] = True
    for target, page, text, place in evidence.links_to(moved):
        yield site.url(target), site.url(page), *problems[target], text, place


@_check(
    "http on https",
    "Browsers block resources that a secure page loads by http. Links by http lead to pages without encryption.",
    "warning",
    "url page kind text",
    key=2,
    needs="facts",
)
def insecure(evidence: Evidence) -> Iterator[Row]:
    site = evidence.site
    plain = np.zeros(len(site.own), np.bool_)
    targets = np.unique(site.links.targets)
    for target in targets[site.own[targets]].tolist():
        plain[target] = site.url(target).startswith("http:")
    for target, page, text, _ in evidence.links_to(plain):
        if (url := site.url(page)).startswith("https:"):
            yield site.url(target), url, "link", text
    for page, facts in site.facts.items():
        for source in facts.insecure:
            yield source, site.url(page), "loaded", ""


# -- pages that cannot be found ---------------------------------------------------------------------------------------


@_check(
    "Orphans",
    "No page of the site links to these pages, so visitors cannot find them.",
    "warning",
    "page from problem",
    key=1,
    needs="sitemap",
)
def orphans(evidence: Evidence) -> Iterator[Row]:
    site = evidence.site
    homes = set(site.homes.tolist())
    # The same URL with or without a slash at the end may have links.
    lonely = [
        page
        for page in np.flatnonzero(site.in_sitemap & site.own & (site.inlinks[site.survivor] == 0)).tolist()
        if site.indexable[page] and page not in homes
    ]
    for page in lonely:
        url = site.url(page)
        other = site.pages.table.page_of(url.removesuffix("/") if url.endswith("/") else f"{url}/")
        linked = other < len(site.own) and site.inlinks[site.survivor[other]]
        yield url, "sitemap", f"links lead to {site.url(other)}" if linked else "no links"
    for url in sorted(evidence.earlier):
        page = site.pages.table.page_of(url)
        is_known = page < len(site.own)
        if is_known and (site.in_sitemap[page] or site.inlinks[site.survivor[page]] or page in homes):
            continue
        yield url, "earlier crawl", "no links" if is_known else "no longer known"


@_check(
    "Pages without content links",
    "Only menus and footers, nofollow links, or redirects lead to these pages. Link to them in a text.",
    "notice",
    "page problem links",
    key=1,
)
def indirect(evidence: Evidence) -> Iterator[Row]:
    site = evidence.site
    outside = site.links.targets != site.links.sources
    plain = np.bincount(site.links.targets[outside], minlength=len(site.own))
    nofollow = Counter(
        site.pages.table.page_of(url) for facts in site.facts.values() for url, _, _ in facts.nofollow_links
    )
    homes = set(site.homes.tolist())
    for page in evidence.indexable():
        number = int(site.inlinks[page])
        if page in homes:
            continue
        if number and not plain[page]:
            yield site.url(page), "only by redirects or canonical links", number
        elif number and not evidence.content_inlinks[page]:
            yield site.url(page), "only by menus and footers", number
        elif not number and nofollow[page]:
            yield site.url(page), "only by nofollow links", nofollow[page]


@_check(
    "Deep pages",
    f"These pages are more than {DEEP} clicks away from the front page. Few visitors reach them.",
    "notice",
    "page clicks without_menus",
    key=1,
)
def depth(evidence: Evidence) -> Iterator[Row]:
    site, clicks = evidence.site, evidence.clicks
    content = site.depths(~evidence.template)
    deep = site.indexable & (clicks > DEEP) & (clicks != UNREACHED)
    for page in np.flatnonzero(deep)[np.argsort(-clicks[deep].astype(int), kind="stable")].tolist():
        alone = int(content[page])
        yield site.url(page), int(clicks[page]), "none" if alone == UNREACHED else alone


@_check(
    "Dead ends",
    "These pages link to no other page of the site, so visitors leave.",
    "notice",
    "page",
    key=1,
)
def dead_ends(evidence: Evidence) -> Iterator[Row]:
    site = evidence.site
    inside = site.own[site.targets] & (site.targets != site.links.sources)
    out = np.bincount(site.links.sources[inside], minlength=len(site.own))
    for page in evidence.indexable():
        if not out[page]:
            yield (site.url(page),)


# -- metadata of pages ------------------------------------------------------------------------------------------------


@_check(
    "Canonical URLs in conflict",
    "Search engines ignore a canonical URL that contradicts itself, and may index the wrong page.",
    "warning",
    "page problem canonical",
    key=2,
    needs="facts",
)
def canonical(evidence: Evidence) -> Iterator[Row]:
    site = evidence.site
    for page, facts in site.facts.items():
        url = site.url(page)
        if len(facts.canonicals) > 1:
            yield url, "names several", " ".join(facts.canonicals)
            continue
        for named in facts.canonicals:
            if named != url:
                for problem in _wrong_canonical(site, named):
                    yield url, problem, named
    # Links and sitemaps should name the canonical page, and not a page that was merged into it.
    linked = np.bincount(site.links.targets, minlength=len(site.own))
    for page in site.pages.merged:
        hops = site.hops(page)
        if site.own[page] and hops and hops[0].reason == "canonical":
            survivor = site.url(int(site.survivor[page]))
            if site.in_sitemap[page]:
                yield site.url(page), "the sitemap names this page", survivor
            if linked[page]:
                yield site.url(page), "links lead to this page", survivor


def _wrong_canonical(site: CrawledSite, named: str) -> Iterator[str]:
    target = site.pages.table.page_of(named)
    if target >= len(site.own):
        return
    end = int(site.survivor[target])
    state, facts = int(site.states[end]), site.facts.get(end)
    if not site.own[target]:
        yield "names a page of another host"
    if end != target:
        yield "names a page that redirects"
    if state in (GONE, FAILED_PAGE) or (state == CRAWLED and site.status[end] >= 400):
        yield f"names a page that answers {int(site.status[end]) or 'nothing'}"
    elif state == EXCLUDED and "robots" in site.error(end):
        yield "names a page that robots.txt forbids"
    elif site.fetched[end] and not site.indexable[end]:
        yield "names a page with noindex"
    elif facts is not None and facts.canonicals and facts.canonicals != [site.url(end)]:
        yield "names a page that names another"


@_check(
    "Language versions without a link back",
    "Search engines ignore hreflang unless both versions name each other.",
    "warning",
    "page alternate language problem",
    key=2,
    needs="facts",
)
def hreflang(evidence: Evidence) -> Iterator[Row]:
    site = evidence.site
    for page, facts in site.facts.items():
        url = site.url(page)
        for language, alternate in dict(facts.alternates).items():
            if alternate == url:
                continue
            target = site.pages.table.page_of(alternate)
            if target >= len(site.own) or not site.own[target]:
                continue
            end = int(site.survivor[target])
            if not site.fetched[end] and site.states[end] not in (GONE, FAILED_PAGE):
                continue
            if not site.indexable[end]:
                yield url, alternate, language, "not indexable"
            elif end in site.facts and url not in {back for _, back in site.facts[end].alternates}:
                yield url, alternate, language, "does not name this page"


@_check(
    "Hidden pages that are linked",
    "Links or sitemaps lead to pages that robots directives hide from search engines.",
    "notice",
    "page problem links in_sitemap",
    key=1,
)
def hidden(evidence: Evidence) -> Iterator[Row]:
    site = evidence.site
    asked = site.own & ((site.inlinks > 0) | site.in_sitemap)
    for page in np.flatnonzero(asked).tolist():
        problem = ""
        if site.states[page] == EXCLUDED and "robots" in (error := site.error(page)):
            problem = error
        elif site.fetched[page] and not site.indexable[page] and 200 <= site.status[page] < 300:
            problem = "noindex"
        elif page in site.facts and {"nofollow", "none"} & set(site.facts[page].robots.split(", ")):
            problem = "nofollow"
        if problem:
            yield site.url(page), problem, int(site.inlinks[page]), "yes" if site.in_sitemap[page] else "no"


def _repeated(evidence: Evidence, texts: dict[int, str]) -> Iterator[Row]:
    """Yield a row for each indexable page whose text is missing, or the same as that of another page."""
    site = evidence.site
    pages_of: dict[str, list[int]] = defaultdict(list)
    for page in evidence.indexable():
        if page in site.facts:
            pages_of[texts[page]].append(page)
    for page in pages_of.pop("", []):
        yield site.url(page), "missing", "", 1
    for text, pages in pages_of.items():
        for page in pages if len(pages) > 1 else ():
            yield site.url(page), "shared", text, len(pages)


@_check(
    "Titles",
    "Search engines and browser tabs show the title. Each page needs a title of its own.",
    "warning",
    "page problem title pages",
    key=2,
    needs="facts",
)
def titles(evidence: Evidence) -> Iterator[Row]:
    return _repeated(evidence, {page: facts.title for page, facts in evidence.site.facts.items()})


@_check(
    "Headings",
    "The first heading tells visitors the topic of a page.",
    "notice",
    "page problem heading pages",
    key=2,
    needs="facts",
)
def headings(evidence: Evidence) -> Iterator[Row]:
    site = evidence.site
    yield from _repeated(evidence, {page: facts.heading for page, facts in site.facts.items()})
    for page in evidence.indexable():
        if page in site.facts and site.facts[page].headings > 1:
            yield site.url(page), "several on the page", site.facts[page].heading, 1


# -- content ----------------------------------------------------------------------------------------------------------


@_check(
    "Near-duplicates",
    "Search engines show only one of several pages with nearly the same text. Merge them, or set a canonical URL.",
    "warning",
    "page like bits",
    key=1,
)
def duplicates(evidence: Evidence) -> Iterator[Row]:
    site = evidence.site
    pages, prints = site.fingerprints
    named = {page: facts.canonicals[0] for page, facts in site.facts.items() if len(facts.canonicals) == 1}
    for group in _near_groups(prints):
        members = [int(pages[k]) for k in group]
        forms = {named.get(page, site.url(page)) for page in members}
        if len(forms) > 1:
            first = prints[group[0]]
            for k in group[1:]:
                bits = int(np.bitwise_count(prints[k] ^ first))
                yield site.url(int(pages[k])), site.url(members[0]), bits


def _near_groups(prints: UInt64Array) -> list[list[int]]:
    """The groups of fingerprints that are joined by differences of at most three bits, each in increasing order.

    Two such fingerprints are equal in one of four blocks of 16 bits (Manku, Jain & Das Sarma, WWW 2007).
    """
    distinct, inverse = np.unique(prints, return_inverse=True)
    parent = np.arange(len(distinct))

    def root(k: int) -> int:
        while parent[k] != k:
            parent[k] = parent[parent[k]]
            k = int(parent[k])
        return k

    for block in range(4):
        keys = (distinct >> np.uint64(16 * block)).astype(np.uint16)
        order = np.argsort(keys, kind="stable")
        for run in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
            for at, k in enumerate(run.tolist()):
                near = np.bitwise_count(distinct[run[at + 1 :]] ^ distinct[k]) <= MOST_BITS
                for other in run[at + 1 :][near].tolist():
                    parent[root(other)] = root(k)
    groups: dict[int, list[int]] = defaultdict(list)
    for k, number in enumerate(inverse.tolist()):
        groups[root(number)].append(k)
    return [group for group in groups.values() if len(group) > 1]


@_check(
    "Starved pages",
    "These pages are in the sitemap, but their rank by content links is in the lowest tenth. Link to them in texts.",
    "notice",
    "page rank content_links",
    key=1,
    needs="sitemap",
)
def starved(evidence: Evidence) -> Iterator[Row]:
    site = evidence.site
    pages = np.flatnonzero(site.indexable)
    if len(pages) < _LEAST_STARVED:
        return
    values = evidence.rank[pages]
    limit = np.partition(values, len(pages) // 10)[len(pages) // 10]
    # The front page needs no links but those of menus.
    low = (values < limit) & site.in_sitemap[pages] & ~np.isin(pages, site.homes)
    for k in np.flatnonzero(low)[np.argsort(values[low], kind="stable")].tolist():
        page = int(pages[k])
        yield site.url(page), float(f"{values[k]:.3g}"), int(evidence.content_inlinks[page])


# -- tables -----------------------------------------------------------------------------------------------------------


@_check(
    "Sections",
    "The sections of the site, with their shares of the rank by content links.",
    "table",
    "section pages share_of_rank",
    key=1,
)
def sections(evidence: Evidence) -> Iterator[Row]:
    site = evidence.site
    chosen = evidence.indexable()
    pages: Counter[str] = Counter()
    ranks: dict[str, float] = defaultdict(float)
    whole = float(evidence.rank[chosen].sum())
    for page, folder in zip(chosen, labels.sections([site.url(page) for page in chosen]), strict=True):
        pages[folder] += 1
        ranks[folder] += float(evidence.rank[page]) / whole
    for folder, number in pages.most_common():
        yield folder, number, float(f"{ranks[folder]:.3g}")


@_check(
    "External links by host",
    "The hosts that the site links to most.",
    "table",
    "host links pages",
    key=1,
)
def external(evidence: Evidence) -> Iterator[Row]:
    site = evidence.site
    outside = ~site.own[site.links.targets]
    hosts = site.pages.hosts[site.links.targets[outside]]
    pairs = np.unique(np.column_stack([hosts, site.links.sources[outside]]), axis=0)
    numbers, links = np.unique(hosts, return_counts=True)
    pages = np.bincount(pairs[:, 0], minlength=int(numbers.max(initial=0)) + 1)
    for k in np.argsort(-links, kind="stable").tolist():
        example = site.links.targets[outside][hosts == numbers[k]][0]
        yield urlsplit(site.url(int(example))).netloc, int(links[k]), int(pages[numbers[k]])


@_check(
    "Structure",
    "Core: the largest group of pages that reach each other. IN: pages that reach it. OUT: pages that it reaches.",
    "table",
    "part pages",
    key=1,
)
def structure(evidence: Evidence) -> Iterator[Row]:
    site = evidence.site
    graph = site.graph()
    rows = graph.out_rows
    strong, weak = components(rows, strong=True), components(rows)
    parts = bow_tie(rows, graph.split_in_rows, strong, weak, counted=site.fetched)[site.fetched]
    for name, part in (("core", CORE), ("IN", IN), ("OUT", OUT)):
        yield name, int(np.count_nonzero(parts == part))
    yield "others", int(np.count_nonzero(parts > OUT))
