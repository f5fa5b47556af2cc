"""From the records of web archives (WARC, ARC, WAT) to pages with their links, and to batches of arcs.

Everything here reads binary streams, so that a local file, a pipe and an object in S3 are read alike.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from inlink.archives.html import LinkSet
from inlink.archives.records import Record, archive_start, records
from inlink.archives.streams import Readable, Rewindable, name_of
from inlink.archives.warc import RawPage, page_of_response
from inlink.archives.wat import ENTITIES_UNTIL, page_of_wat, written_on
from inlink.base.damage import Tally
from inlink.errors import FormatError, ParameterError
from inlink.graph.batches import ArcBatch, Level
from inlink.urls import Base, canonical, domain_of, host_of, refusal, reverse_host

__all__ = ["ArchiveKind", "PageLinks", "archive_batches", "archive_kind", "page_links", "raw_pages"]

ArchiveKind = Literal["warc", "arc", "wat", "wet"]

BATCH = 100_000
"""Links in a batch, about."""

# Host names kept from one batch to the next.
_MAX_HOSTS = 2_000_000

NOT_A_PAGE = "response to a request that was not HTTP"
NO_HOST = "link without a host for a host graph (IP address, single label, or unknown top-level domain)"
NO_DOMAIN = "link to a host without a registered domain"
PAGE_ELSEWHERE = "page, with its links, without a host for a host graph"


class PageLinks(NamedTuple):
    """A page and its links.

    Attributes
    ----------
    url : str
        The page's canonical URL.
    links : list of str
        Canonical URLs in the order of the page. Repeated links are repeated here. Links to a place on the page itself
        (``#top``) are left out, unless `self_links` is set.
    offset : int
        Byte offset, in the stream, of the page's record or of the gzip member that holds it.
    """

    url: str
    links: list[str]
    offset: int


def archive_kind(stream: Readable, *, name: str | None = None) -> ArchiveKind | None:
    """Return which kind of web archive a stream holds, judged by its first records; None if it is no archive.

    The stream is read from its current place and not put back: open it again to read it.

    Raises
    ------
    inlink.errors.InputError
        If the stream cannot be read.
    """
    name = name_of(stream, name)
    source = Rewindable(stream, name)
    kind: ArchiveKind | None = archive_start(source)
    if kind is None:
        return None
    for place, record in enumerate(records(source, Tally(), name=name)):
        if _is_wet(record):
            return "wet"
        if _is_json(record) and b'"Envelope"' in record.body[:100_000]:
            return "wat"
        if record.kind == "response" or place == 20:
            break
    return kind


def raw_pages(
    stream: Readable,
    tally: Tally,
    *,
    name: str | None = None,
    size: int | None = None,
    links: LinkSet = "a",
    nofollow: bool = True,
) -> Iterator[RawPage]:
    """Read the pages of an archive, with their links as written, in the order of the archive.

    Parameters
    ----------
    stream : Readable
        A WARC, ARC or WAT archive, gzipped or not: any object with `read`. Its content decides which, not its name.
    tally : Tally
        Counts what was read and what was left out.
    name, size
        As in :func:`inlink.archives.records.records`.
    links, nofollow
        As in :func:`inlink.archives.html.html_links`.

    Raises
    ------
    inlink.errors.FormatError
        If the stream is no archive, or a WET archive, which holds no links.
    inlink.errors.DamageError
        If a record is damaged and the tally is strict.
    inlink.errors.InputError
        If the stream cannot be read.
    inlink.errors.ParameterError
        If `links` is neither ``"a"`` nor ``"all"``, or the stream gives something else than bytes.
    """
    if links not in ("a", "all"):
        raise ParameterError(f"`links` must be 'a' or 'all'; got {links!r}")
    name = name_of(stream, name)
    written: str | None = None
    for record in records(stream, tally, name=name, size=size):
        if record.kind == "response":
            if record.url[:7].lower().startswith((b"http://", b"https:/")):
                yield page_of_response(record, tally, name, links=links, nofollow=nofollow)
            else:
                tally.skip(name, record.offset, NOT_A_PAGE)
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
                f"{name}: WET archives hold text without links. Use the WAT or WARC archive of the same name."
            )


def _is_json(record: Record) -> bool:
    return record.kind == "metadata" and record.content_type.startswith(b"application/json")


def _is_wet(record: Record) -> bool:
    return record.kind == "conversion" and record.content_type.startswith(b"text/plain")


def page_links(
    stream: Readable,
    tally: Tally | None = None,
    *,
    name: str | None = None,
    size: int | None = None,
    links: LinkSet = "a",
    nofollow: bool = True,
    self_links: bool = False,
) -> Iterator[PageLinks]:
    """Read the pages of an archive with the canonical URLs that they link to, in the order of the archive.

    Parameters
    ----------
    stream : Readable
        A WARC, ARC or WAT archive, gzipped or not: any object with `read`.
    tally : Tally or None
        Counts what was read and what was left out. If it is strict, damage is an error.
    name, size
        As in :func:`inlink.archives.records.records`.
    links : {"a", "all"}
        Anchors (``a`` and ``area``), or every tag that Common Crawl counts; see :mod:`inlink.archives.html`.
    nofollow : bool
        Keep links marked ``nofollow``, as Common Crawl does. False leaves them out.
    self_links : bool
        Keep links to a place on the page itself.

    Raises
    ------
    inlink.errors.FormatError, inlink.errors.DamageError, inlink.errors.InputError, inlink.errors.ParameterError
        As :func:`raw_pages`.
    """
    tally = Tally() if tally is None else tally
    name = name_of(stream, name)
    for raw in raw_pages(stream, tally, name=name, size=size, links=links, nofollow=nofollow):
        url = _page_url(raw, name, tally)
        if url is None:
            continue
        refused: dict[str, int] = {}
        targets = Base(url, raw.base, self_links=self_links).canonical_links(raw.links, refused)
        if raw.header_links:
            targets += Base(url, self_links=self_links).canonical_links(raw.header_links, refused)
        if refused:
            tally.skip_all(name, raw.offset, refused)
        tally.links += len(targets)
        yield PageLinks(url, targets, raw.offset)


def _page_url(raw: RawPage, name: str, tally: Tally) -> str | None:
    url = canonical(raw.url)
    if url is None:
        tally.skip(name, raw.offset, (refusal(raw.url) or "").replace("link is", "page's URL is", 1))
    else:
        tally.pages += 1
    return url


def archive_batches(
    stream: Readable,
    *,
    name: str | None = None,
    size: int | None = None,
    level: Level = "page",
    links: LinkSet = "a",
    nofollow: bool = True,
    self_links: bool = False,
    strict: bool = False,
    strip_www: bool = False,
    private_suffixes: bool = False,
    self_loops: bool = False,
    tally: Tally | None = None,
) -> Iterator[ArcBatch]:
    """Read the arcs of an archive, in batches of about a hundred thousand.

    Every page becomes a node marked as crawled, even without links; link targets become nodes that are not marked.
    At page level a link to a place on the page itself is no arc, unless `self_links` is set. At host and domain level,
    names are reversed (``com.example.www``) and arcs from a node to itself are left out, as in Common Crawl's graphs,
    unless `self_loops` is set. Pages and links without such a host or domain (:mod:`inlink.urls.hosts`) are left out
    and counted.

    Parameters
    ----------
    stream : Readable
        A WARC, ARC or WAT archive, gzipped or not: any object with `read`. It need not seek, and it is not closed.
    name, size
        As in :func:`inlink.archives.records.records`.
    level : {"page", "host", "domain"}
        What the nodes are.
    links : {"a", "all"}
        Anchors, or every tag that Common Crawl counts; see :mod:`inlink.archives.html`.
    nofollow : bool
        Keep links marked ``nofollow``. False leaves them out.
    self_links : bool
        At page level, keep links to a place on the page itself (``#top``) as arcs from the page to itself.
    strict : bool
        Refuse a damaged archive. False leaves damaged records out and counts them.
    strip_www : bool
        Drop a leading ``www.`` of hosts.
    private_suffixes : bool
        Use the private section of the public suffix list too (``someone.github.io`` is then a domain).
    self_loops : bool
        At host and domain level, keep the arcs from a node to itself.
    tally : Tally or None
        Counts what was read and what was left out.

    Yields
    ------
    ArcBatch
        With `names` (large_string[…]), `sources` and `targets` (uint32[k]) and `crawled` (uint32[…]), no weights.

    Raises
    ------
    inlink.errors.FormatError
        If the stream is no archive, or a WET archive, which holds no links.
    inlink.errors.DamageError
        If a record is damaged and `strict` is set.
    inlink.errors.InputError
        If the stream cannot be read.
    inlink.errors.ParameterError
        If `level` or `links` is none of the values above, or the stream gives something else than bytes.
    """
    tally = Tally() if tally is None else tally
    tally.strict = tally.strict or strict
    name = name_of(stream, name)
    if level == "page":
        found = page_links(
            stream, tally, name=name, size=size, links=links, nofollow=nofollow, self_links=self_links
        )
        return _page_batches(found)
    if level not in ("host", "domain"):
        raise ParameterError(f"`level` must be 'page', 'host' or 'domain'; got {level!r}")
    pages = raw_pages(stream, tally, name=name, size=size, links=links, nofollow=nofollow)
    return _host_batches(name, pages, tally, _Hosts(level, strip_www, private_suffixes), self_loops)


def _page_batches(pages: Iterator[PageLinks]) -> Iterator[ArcBatch]:
    names: list[str] = []
    # The place of each page in `names`. Its links follow it.
    starts: list[int] = []
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
    """Numbers of the hosts (or domains) of URLs.

    The origin of a URL is the text between its second and third slash. An origin is parsed once: only 7% of the links
    of a WAT file lead to a new one, so most links cost a split and a look-up. A negative number means that the URL
    has no node; the reason is ``reasons[-1 - number]``.
    """

    def __init__(self, level: Level, strip_www: bool, private: bool) -> None:
        self.level, self.strip_www, self.private = level, strip_www, private
        self.forget()

    def forget(self) -> None:
        """Forget all hosts and their numbers."""
        self.names: list[str] = []
        self.reasons: list[str] = []
        self.by_origin: dict[str, int] = {}
        self._by_name: dict[str, int] = {}

    def of_origin(self, origin: str) -> int | None:
        """Return the number of URLs with this origin; None if the whole URL must be looked at."""
        if not origin or min(origin) <= " ":
            return None
        self.by_origin[origin] = code = self.of_url(f"http://{origin}/")
        return code

    def of_url(self, url: str, base: Base | None = None) -> int:
        """Return the number of a URL, parsed as a whole."""
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


# A shorter URL stays within MAX_LENGTH in canonical form on any host, since a character takes at most 12 bytes there.
_SHORT = 140


def _host_batches(
    name: str,
    pages: Iterator[RawPage],
    tally: Tally,
    hosts: _Hosts,
    self_loops: bool,
) -> Iterator[ArcBatch]:
    # The number of each page's host, and how many of the targets are its links.
    sources: list[int] = []
    lengths: list[int] = []
    targets: list[int] = []
    for raw in pages:
        url = _page_url(raw, name, tally)
        if url is None:
            continue
        page = hosts.of_url(url)
        if page < 0:
            tally.skip(name, raw.offset, PAGE_ELSEWHERE)
            continue
        before = len(targets)
        targets += _host_links(url, page, raw, hosts)
        if targets and min(targets[before:], default=0) < 0:
            _count_refused(name, raw.offset, targets, before, tally, hosts)
        tally.links += len(targets) - before
        sources.append(page)
        lengths.append(len(targets) - before)
        if len(targets) >= BATCH or len(sources) >= BATCH:
            yield _host_batch(sources, lengths, targets, hosts, self_loops)
            sources, lengths, targets = [], [], []
            if len(hosts.by_origin) > _MAX_HOSTS:
                hosts.forget()
    if sources:
        yield _host_batch(sources, lengths, targets, hosts, self_loops)


def _host_links(url: str, page: int, raw: RawPage, hosts: _Hosts) -> list[int]:
    """Return the number of each link's host. It is negative where there is none, as in :class:`_Hosts`."""
    base: Base | None = None
    # The host of relative links.
    here = page
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
    name: str, offset: int, targets: list[int], start: int, tally: Tally, hosts: _Hosts
) -> None:
    """Count the targets from `start` on that have no host, and remove them."""
    refused: dict[str, int] = {}
    for code in targets[start:]:
        if code < 0:
            reason = hosts.reasons[-1 - code]
            refused[reason] = refused.get(reason, 0) + 1
    targets[start:] = [code for code in targets[start:] if code >= 0]
    tally.skip_all(name, offset, refused)


def _host_batch(
    sources: list[int], lengths: list[int], targets: list[int], hosts: _Hosts, self_loops: bool
) -> ArcBatch:
    pages = np.array(sources, np.uint32)
    tails, heads = np.repeat(pages, lengths), np.array(targets, np.uint32)
    proper = (tails != heads) | self_loops
    used, places = np.unique(np.concatenate([pages, tails[proper], heads[proper]]), return_inverse=True)
    ends = places[len(pages) :].astype(np.uint32)
    names = pa.array([hosts.names[code] for code in used.tolist()], pa.large_string())
    half = len(ends) // 2
    crawled = np.unique(places[: len(pages)]).astype(np.uint32)
    return ArcBatch(ends[:half], ends[half:], names, crawled=crawled)
