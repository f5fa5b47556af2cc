"""Read the pages of web archives (WARC, ARC, WAT) with their links, or batches of arcs.

All functions read binary streams, so that a local file, a pipe and an object in S3 are read alike.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from inlink.archives.hosts import HostArcs, HostNumbers
from inlink.archives.html import LinkSet
from inlink.archives.pages import PageArcs, canonical_links
from inlink.archives.records import Record, archive_start, records
from inlink.archives.scanner import ScannedPage, Scanner, rule_bits
from inlink.archives.streams import Readable, Rewindable, name_of
from inlink.archives.warc import RawPage, page_of_response
from inlink.archives.wat import COMMON_CRAWL, ENTITIES_UNTIL, INLINK, WatRules, page_of_wat, written_on
from inlink.base.damage import Tally
from inlink.errors import FormatError, ParameterError
from inlink.graph.batches import ArcBatch, Level
from inlink.urls import canonical, refusal

__all__ = ["ArchiveKind", "PageLinks", "archive_batches", "archive_kind", "page_links", "raw_pages"]

ArchiveKind = Literal["warc", "arc", "wat", "wet"]

BATCH = 100_000
"""The number of links after which a batch ends, at the end of a page."""

NOT_A_PAGE = "response to a request that was not HTTP"


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
    """Return the kind of web archive that a stream holds, by its first records; None if it is no archive.

    The stream is read from its current place, and does not go back. Open it again to read it.

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
        Counts the records that were read and those that were skipped.
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
    for page in _pages(stream, tally, name_of(stream, name), size, links, nofollow, INLINK, None):
        assert isinstance(page, RawPage)
        yield page


def _pages(
    stream: Readable,
    tally: Tally,
    name: str,
    size: int | None,
    links: LinkSet,
    nofollow: bool,
    rules: WatRules,
    scanner: Scanner | None,
) -> Iterator[RawPage | ScannedPage]:
    """Yield the pages of an archive. With a scanner, WAT records are scanned where possible, and decoded otherwise."""
    if links not in ("a", "all"):
        raise ParameterError(f"`links` must be 'a' or 'all'; got {links!r}")
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
            page: RawPage | ScannedPage | Literal[False] | None = False
            if scanner is not None:
                page = scanner.page(record.body, record.offset, old)
            if page is False:
                page = page_of_wat(
                    record, tally, name, links=links, nofollow=nofollow, entities=old, rules=rules
                )
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
        Counts the records that were read and those that were skipped. If it is strict, damage is an error.
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
        targets = canonical_links(raw, url, self_links, refused)
        if refused:
            tally.skip_all(name, raw.offset, refused)
        tally.links += len(targets)
        yield PageLinks(url, targets, raw.offset)


def _page_url(raw: RawPage | ScannedPage, name: str, tally: Tally) -> str | None:
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
    links: LinkSet | None = None,
    nofollow: bool = True,
    self_links: bool = False,
    strict: bool = False,
    strip_www: bool = False,
    private_suffixes: bool = False,
    self_loops: bool = False,
    like: Literal["commoncrawl"] | None = None,
    any_status: bool | None = None,
    location: bool | None = None,
    exact_schemes: bool | None = None,
    repeats: bool = True,
    scan: bool = True,
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
        The kind of the nodes.
    links : {"a", "all"} or None
        Anchors, or every tag that Common Crawl counts; see :mod:`inlink.archives.html`. None means anchors; all with
        `like`.
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
    like : {"commoncrawl"} or None
        Take the links of WAT records by the rules of Common Crawl's own graphs. It sets `links` to ``"all"``,
        `any_status` and `exact_schemes` to True, and `location` to False, unless they are given.
    any_status : bool or None
        WAT: take the links of pages with any HTTP status. None means False: those of successful fetches only.
    location : bool or None
        WAT: with all links, the header ``Location`` is a link. None means True.
    exact_schemes : bool or None
        WAT: with all links, a text in a ``<meta>`` or ``<style>`` is a link only if its scheme is in lower case. None
        means False: in any case.
    repeats : bool
        Yield an arc as often as it occurs in the archive, so that arcs can be counted. False yields most arcs once in a
        batch, which makes batches half as long.
    scan : bool
        Scan WAT records for links. The arcs are the same as those of decoded records, in a third of the time.
    tally : Tally or None
        Counts the records that were read and those that were skipped.

    Yields
    ------
    ArcBatch
        A batch with `names` (Strings), `sources` and `targets` (uint32[k]) and `crawled` (uint32[…]), without weights.

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
    arcs: PageArcs | HostArcs
    if level == "page":
        arcs = PageArcs(name, tally, self_links, repeats)
    elif level in ("host", "domain"):
        arcs = HostArcs(name, tally, HostNumbers(level, strip_www, private_suffixes), self_loops, repeats)
    else:
        raise ParameterError(f"`level` must be 'page', 'host' or 'domain'; got {level!r}")
    if like not in (None, "commoncrawl"):
        raise ParameterError(f"`like` must be 'commoncrawl' or None; got {like!r}")
    links = links or ("all" if like else "a")
    options = {"any_status": any_status, "location": location, "exact_schemes": exact_schemes}
    rules = (COMMON_CRAWL if like else INLINK)._replace(**{k: v for k, v in options.items() if v is not None})
    scanner = Scanner(rule_bits(links == "all", nofollow, rules)) if scan else None
    return _batches(_pages(stream, tally, name, size, links, nofollow, rules, scanner), arcs, name, tally)


def _batches(
    pages: Iterator[RawPage | ScannedPage], arcs: PageArcs | HostArcs, name: str, tally: Tally
) -> Iterator[ArcBatch]:
    for page in pages:
        url = _page_url(page, name, tally)
        if url is not None:
            arcs.add(page, url)
            if arcs.size >= BATCH:
                yield arcs.take()
    if arcs.size:
        yield arcs.take()
