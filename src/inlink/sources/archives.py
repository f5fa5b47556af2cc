"""From web archives (WARC, ARC, WAT) to pages with their links, and to batches of arcs."""

import os
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from inlink.errors import FormatError, ParameterError
from inlink.graph.batches import ArcBatch
from inlink.graph.graph import Level
from inlink.sources.damage import Tally
from inlink.sources.html import LinkSet
from inlink.sources.records import Record, archive_start, records
from inlink.sources.source import Source
from inlink.sources.warc import RawPage, page_of_response
from inlink.sources.wat import ENTITIES_UNTIL, page_of_wat, written_on
from inlink.urls import Base, canonical, domain_of, host_of, refusal, reverse_host

__all__ = [
    "ArchiveKind",
    "PageLinks",
    "archive_batches",
    "archive_kind",
    "archive_source",
    "page_links",
    "raw_pages",
]

ArchiveKind = Literal["warc", "arc", "wat", "wet"]

BATCH = 100_000  # links
_MAX_HOSTS = 2_000_000  # host names kept from one batch to the next

NOT_A_PAGE = "response to no http request"
NO_HOST = "link to no host of a host graph (address, single label, unknown top-level domain)"
NO_DOMAIN = "link to a host without a registered domain"
PAGE_ELSEWHERE = "page on no host that the graph may hold, with its links"


class PageLinks(NamedTuple):
    """A page and where it links to.

    Attributes
    ----------
    url : str
        The page's canonical URL.
    links : list of str
        Canonical URLs, repeated ones as often as they stand; a link to the page itself is one.
    offset : int
        The byte of the file at which the page's record, or the gzip member that holds it, begins.
    """

    url: str
    links: list[str]
    offset: int


def archive_kind(path: str | os.PathLike[str]) -> ArchiveKind | None:
    """What kind of web archive a file is, by what its first records hold; None if it is none.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read.
    """
    kind: ArchiveKind | None = archive_start(path)
    if kind is None:
        return None
    for place, record in enumerate(records(path, Tally())):
        if _is_wet(record):
            return "wet"
        if _is_json(record) and b'"Envelope"' in record.body[:100_000]:
            return "wat"
        if record.kind == "response" or place == 20:
            break
    return kind


def raw_pages(
    path: str | os.PathLike[str], tally: Tally, *, links: LinkSet = "a", nofollow: bool = True
) -> Iterator[RawPage]:
    """The pages of an archive with their links as they stand, in the order of the file.

    Parameters
    ----------
    path : path-like
        A WARC, ARC or WAT file, gzipped or not; what is in it counts, not its name.
    tally : Tally
        Counts what was read and what was left out.
    links, nofollow
        As in :func:`inlink.sources.html.html_links`.

    Raises
    ------
    inlink.errors.FormatError
        If the file is no archive, or a WET file, which holds no links.
    inlink.errors.DamageError
        If something is damaged and the tally is strict.
    inlink.errors.InputError
        If the file cannot be read.
    """
    if links not in ("a", "all"):
        raise ParameterError(f"links is 'a' or 'all', not {links!r}")
    name = os.fspath(path)
    written: str | None = None
    for record in records(path, tally):
        if record.kind == "response":
            if record.url[:7].lower().startswith((b"http://", b"https:/")):
                yield page_of_response(record, tally, name, links=links, nofollow=nofollow)
            else:
                tally.skip(path, record.offset, NOT_A_PAGE)
        elif _is_json(record):
            day = written or record.date[:10].replace(b"-", b"").decode("ascii", "replace")
            old = len(day) == 8 and day.isdigit() and day < ENTITIES_UNTIL
            page = page_of_wat(record, tally, name, links=links, nofollow=nofollow, entities=old)
            if page is not None:
                yield page
        elif record.kind == "warcinfo":
            written = written_on(record) or written
        elif _is_wet(record):
            raise FormatError(
                f"{name} is a WET file: it holds texts without links; take the WAT or WARC file of the same name"
            )


def _is_json(record: Record) -> bool:
    return record.kind == "metadata" and record.content_type.startswith(b"application/json")


def _is_wet(record: Record) -> bool:
    return record.kind == "conversion" and record.content_type.startswith(b"text/plain")


def page_links(
    path: str | os.PathLike[str], tally: Tally | None = None, *, links: LinkSet = "a", nofollow: bool = True
) -> Iterator[PageLinks]:
    """The pages of an archive with the canonical URLs that they link to, in the order of the file.

    Parameters
    ----------
    path : path-like
        A WARC, ARC or WAT file, gzipped or not.
    tally : Tally or None
        Counts what was read and what was left out; where it is strict, damage is an error.
    links : {"a", "all"}
        Anchors (``a`` and ``area``), or all that Common Crawl takes for links; see :mod:`inlink.sources.html`.
    nofollow : bool
        Keep links that ask not to be followed, as Common Crawl does; False leaves them out.

    Raises
    ------
    inlink.errors.FormatError, inlink.errors.DamageError, inlink.errors.InputError
        As :func:`raw_pages`.
    """
    tally = Tally() if tally is None else tally
    for raw in raw_pages(path, tally, links=links, nofollow=nofollow):
        url = _page_url(raw, path, tally)
        if url is None:
            continue
        refused: dict[str, int] = {}
        found = Base(url, raw.base).canonical_links(raw.links, refused)
        if raw.header_links:
            found += Base(url).canonical_links(raw.header_links, refused)
        if refused:
            tally.skip_all(path, raw.offset, refused)
        tally.links += len(found)
        yield PageLinks(url, found, raw.offset)


def _page_url(raw: RawPage, path: str | os.PathLike[str], tally: Tally) -> str | None:
    url = canonical(raw.url)
    if url is None:
        tally.skip(path, raw.offset, (refusal(raw.url) or "").replace("link is", "page's URL is", 1))
    else:
        tally.pages += 1
    return url


def archive_batches(
    path: str | os.PathLike[str],
    *,
    level: Level = "page",
    links: LinkSet = "a",
    nofollow: bool = True,
    strict: bool = False,
    strip_www: bool = False,
    private_suffixes: bool = False,
    tally: Tally | None = None,
) -> Iterator[ArcBatch]:
    """The arcs of an archive, in batches of some hundred thousand.

    Every page is a node, with links or without, and marked as crawled; the others are only linked to. At the
    levels of hosts and domains, names are reversed
    (``com.example.www``), there are no arcs from a node to itself, as Common Crawl's graphs have none, and what is
    on no host (or domain) that such a graph may hold (:mod:`inlink.urls.hosts`) is left out and counted. At the
    level of pages a link to the page itself is an arc.

    Parameters
    ----------
    path : path-like
        A WARC, ARC or WAT file, gzipped or not.
    level : {"page", "host", "domain"}
        What the nodes are.
    links : {"a", "all"}
        Anchors, or all that Common Crawl takes for links; see :mod:`inlink.sources.html`.
    nofollow : bool
        Keep links that ask not to be followed; False leaves them out.
    strict : bool
        Refuse an archive with damage; else damaged records are left out and counted.
    strip_www : bool
        Leave out a leading ``www.`` of hosts.
    private_suffixes : bool
        Take the public suffix list's private section too (``someone.github.io`` is then a domain).
    tally : Tally or None
        Counts what was read and what was left out.

    Raises
    ------
    inlink.errors.FormatError
        If the file is no archive, or a WET file, which holds no links.
    inlink.errors.DamageError
        If something is damaged and ``strict``.
    inlink.errors.InputError
        If the file cannot be read.
    """
    tally = Tally() if tally is None else tally
    tally.strict = tally.strict or strict
    if level == "page":
        return _page_batches(page_links(path, tally, links=links, nofollow=nofollow))
    if level not in ("host", "domain"):
        raise ParameterError(f"level is 'page', 'host' or 'domain', not {level!r}")
    pages = raw_pages(path, tally, links=links, nofollow=nofollow)
    return _host_batches(path, pages, tally, _Hosts(level, strip_www, private_suffixes))


def archive_source(
    path: str | os.PathLike[str],
    *,
    level: Level = "page",
    links: LinkSet = "a",
    nofollow: bool = True,
    strict: bool = False,
    strip_www: bool = False,
    private_suffixes: bool = False,
    tally: Tally | None = None,
) -> Source:
    """An archive as a source of a graph; the parameters are those of :func:`archive_batches`."""
    batches = archive_batches(
        path,
        level=level,
        links=links,
        nofollow=nofollow,
        strict=strict,
        strip_www=strip_www,
        private_suffixes=private_suffixes,
        tally=tally,
    )
    return Source(batches, level=level)


def _page_batches(pages: Iterator[PageLinks]) -> Iterator[ArcBatch]:
    names: list[str] = []
    starts: list[int] = []  # where in names each page stands, its links after it
    for page in pages:
        starts.append(len(names))
        names.append(page.url)
        names += page.links
        if len(names) >= BATCH:
            yield _page_batch(names, starts)
            names, starts = [], []
    if names:
        yield _page_batch(names, starts)


def _page_batch(names: list[str], starts: list[int]) -> ArcBatch:
    first = np.array(starts, np.uint32)
    lengths = np.diff(first, append=np.uint32(len(names))) - 1
    is_link = np.ones(len(names), bool)
    is_link[first] = False
    array = pa.array(names, pa.large_string())
    links = np.flatnonzero(is_link).astype(np.uint32)
    return ArcBatch(np.repeat(first, lengths), links, array, crawled=first)


class _Hosts:
    """Numbers for the hosts (or domains) that URLs are on.

    A URL's origin, what stands between its second and third slash, is parsed when it is first met; links repeat
    hosts (7% of a WAT file's links are on a new one), so that a link costs a split and a look-up. A number below 0
    stands for a reason why there is no node: ``reasons[-1 - number]``.
    """

    def __init__(self, level: Level, strip_www: bool, private: bool) -> None:
        self.level, self.strip_www, self.private = level, strip_www, private
        self.forget()

    def forget(self) -> None:
        """Begin anew with no hosts."""
        self.names: list[str] = []
        self.reasons: list[str] = []
        self.by_origin: dict[str, int] = {}
        self._by_name: dict[str, int] = {}

    def of_origin(self, origin: str) -> int | None:
        """The number for URLs with this origin; None where it alone does not tell."""
        if not origin or min(origin) <= " ":
            return None
        self.by_origin[origin] = code = self.of_url(f"http://{origin}/")
        return code

    def of_url(self, url: str, base: Base | None = None) -> int:
        """The number for a URL, looked at as a whole."""
        form = base.canonical(url) if base else canonical(url)
        if form is None:
            return self._refuse(refusal(url, base.url if base else None) or "")
        origin = form.split("/", 3)[2]
        code = self.by_origin.get(origin)
        if code is None:
            host = host_of(form, strip_www=self.strip_www)
            name = None if host is None else reverse_host(host)
            if name is not None and self.level == "domain":
                name = domain_of(name, private=self.private)
            if name is None:
                code = self._refuse(NO_HOST if host is None else NO_DOMAIN)
            else:
                code = self._by_name.setdefault(name, len(self.names))
                if code == len(self.names):
                    self.names.append(name)
            self.by_origin[origin] = code
        return code

    def _refuse(self, reason: str) -> int:
        if reason not in self.reasons:
            self.reasons.append(reason)
        return -1 - self.reasons.index(reason)


# A URL shorter than this is within MAX_LENGTH in canonical form, on whatever host: a character takes 12 bytes at most.
_SHORT = 140


def _host_batches(
    path: str | os.PathLike[str],
    pages: Iterator[RawPage],
    tally: Tally,
    hosts: _Hosts,
) -> Iterator[ArcBatch]:
    sources: list[int] = []  # one for each page
    lengths: list[int] = []
    targets: list[int] = []
    for raw in pages:
        url = _page_url(raw, path, tally)
        if url is None:
            continue
        page = hosts.of_url(url)
        if page < 0:
            tally.skip(path, raw.offset, PAGE_ELSEWHERE)
            continue
        before = len(targets)
        targets += _host_links(url, page, raw, hosts)
        if targets and min(targets[before:], default=0) < 0:
            _count_refused(path, raw.offset, targets, before, tally, hosts)
        tally.links += len(targets) - before
        sources.append(page)
        lengths.append(len(targets) - before)
        if len(targets) >= BATCH or len(sources) >= BATCH:
            yield _host_batch(sources, lengths, targets, hosts)
            sources, lengths, targets = [], [], []
            if len(hosts.by_origin) > _MAX_HOSTS:
                hosts.forget()
    if sources:
        yield _host_batch(sources, lengths, targets, hosts)


def _host_links(url: str, page: int, raw: RawPage, hosts: _Hosts) -> list[int]:
    """The host of each link of a page, or what stands for why it has none."""
    base: Base | None = None
    here = page  # the host of relative links
    if raw.base is not None:
        base = Base(url, raw.base)
        here = hosts.of_url(base.url)
    codes: list[int] = []
    add, known = codes.append, hosts.by_origin.get
    for href in raw.links:
        code: int | None = None
        if len(href) < _SHORT:
            if href.startswith(("http://", "https://")):
                origin = href.split("/", 3)[2]
                code = known(origin)
                if code is None:
                    code = hosts.of_origin(origin)
            elif href[:1] == "/" and href[1:2].isalnum():
                code = here
        if code is None:
            base = base or Base(url)
            code = hosts.of_url(href, base)
        add(code)
    if raw.header_links:
        itself = Base(url)
        codes += [hosts.of_url(href, itself) for href in raw.header_links]
    return codes


def _count_refused(
    path: str | os.PathLike[str], offset: int, targets: list[int], start: int, tally: Tally, hosts: _Hosts
) -> None:
    """Count the links from ``start`` on that have no host, and take them out."""
    refused: dict[str, int] = {}
    for code in targets[start:]:
        if code < 0:
            reason = hosts.reasons[-1 - code]
            refused[reason] = refused.get(reason, 0) + 1
    targets[start:] = [code for code in targets[start:] if code >= 0]
    tally.skip_all(path, offset, refused)


def _host_batch(sources: list[int], lengths: list[int], targets: list[int], hosts: _Hosts) -> ArcBatch:
    pages = np.array(sources, np.uint32)
    tails, heads = np.repeat(pages, lengths), np.array(targets, np.uint32)
    proper = tails != heads
    used, places = np.unique(np.concatenate([pages, tails[proper], heads[proper]]), return_inverse=True)
    ends = places[len(pages) :].astype(np.uint32)
    names = pa.array([hosts.names[code] for code in used.tolist()], pa.large_string())
    half = len(ends) // 2
    crawled = np.unique(places[: len(pages)]).astype(np.uint32)
    return ArcBatch(ends[:half], ends[half:], names, crawled=crawled)
