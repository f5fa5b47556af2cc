"""Read the pages of web archives (WARC, ARC, WAT) with their links, or batches of arcs.

All functions read binary streams, so that a local file, a pipe and an object in S3 are read alike.
"""

import re
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import BinaryIO, Literal, NamedTuple, cast

import numpy as np

from inlink.archives.html import LinkSet
from inlink.archives.period import ALWAYS, Period, moment
from inlink.archives.records import Members, Record, archive_start, records, records_at
from inlink.archives.revisits import UNKNOWN_CONTENT, Originals
from inlink.archives.scanner import RecordBlock, rule_bits
from inlink.archives.streams import Readable, Rewindable, name_of
from inlink.archives.warc import RawPage, page_of_response
from inlink.archives.wat import COMMON_CRAWL, ENTITIES_UNTIL, INLINK, WatRules, page_of_wat, written_on
from inlink.base.arrays import AnyArray, Int64Array, UInt8Array, UInt64Array
from inlink.base.damage import Tally
from inlink.base.strings import Strings
from inlink.errors import FormatError, ParameterError
from inlink.graph.batches import ArcBatch, Level
from inlink.urls.canonical import MAX_LENGTH, NOT_HTTP, Base, canonical, refusal
from inlink.urls.classes import byte_classes
from inlink.urls.hosts import domain_of, host_of, reverse_host

__all__ = ["ArchiveKind", "PageLinks", "archive_batches", "archive_kind", "page_links", "raw_pages"]

ArchiveKind = Literal["warc", "arc", "wat", "wet"]

BATCH = 100_000
"""The number of links after which a batch ends, at the end of a page."""

NOT_A_PAGE = "response to a request that was not HTTP"
NO_DATE = "record without a valid date"


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
        if record.is_json and b'"Envelope"' in record.body[:100_000]:
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
    rules: WatRules = INLINK,
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
    rules : WatRules
        Rules that select the links of WAT records.

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
    name = name_of(stream, name)
    decoder = _Decoder(tally, name, links, nofollow, rules, Originals.of_stream(stream))
    for record in records(stream, tally, name=name, size=size):
        page = decoder.page(record)
        if page is not None:
            yield page


class _Decoder:
    """Decodes the records of an archive, in order. The parameters are those of :func:`raw_pages`."""

    def __init__(
        self,
        tally: Tally,
        name: str,
        links: LinkSet,
        nofollow: bool,
        rules: WatRules,
        originals: Originals,
        period: Period = ALWAYS,
    ) -> None:
        if links not in ("a", "all"):
            raise ParameterError(f"`links` must be 'a' or 'all'; got {links!r}")
        self._tally, self._name = tally, name
        self._links, self._nofollow, self._rules = links, nofollow, rules
        self._originals, self._period = originals, period
        # Whether the program that wrote the archive left entities in links. None: unknown, so dates of records decide.
        self.entities: bool | None = None

    def page(self, record: Record) -> RawPage | None:
        """Return the page of a record; None if it describes none."""
        if record.kind == "response":
            # A later revisit record may refer to a response of any date.
            self._originals.add(record.digest, record.offset, self._name)
        if not self._is_wanted(record):
            return None
        if record.kind == "revisit":
            response = self._originals.response(record)
            if response is None:
                self._tally.skip(self._name, record.offset, UNKNOWN_CONTENT)
                return None
            record = response
        if record.kind == "response":
            if record.url[:7].lower().startswith((b"http://", b"https:/")):
                return page_of_response(
                    record, self._tally, self._name, links=self._links, nofollow=self._nofollow
                )
            self._tally.skip(self._name, record.offset, NOT_A_PAGE)
        elif record.is_json:
            return self.page_of_json(record, self.has_entities(record))
        elif record.kind == "warcinfo":
            written = written_on(record)
            if written is not None:
                self.entities = written < ENTITIES_UNTIL
        elif _is_wet(record):
            raise FormatError(
                f"{self._name}: WET archives hold text without links. Use the WAT or WARC archive of the same name."
            )
        return None

    def _is_wanted(self, record: Record) -> bool:
        """Return whether a record is of the period, or describes no page."""
        if self._period == ALWAYS or not (record.kind in ("response", "revisit") or record.is_json):
            return True
        try:
            return self._period.holds(moment(record.date))
        except ValueError:
            self._tally.skip(self._name, record.offset, NO_DATE)
            return False

    def has_entities(self, record: Record) -> bool:
        """Return whether entities in the links of a record of JSON must be decoded."""
        if self.entities is not None:
            return self.entities
        day = record.date[:10].replace(b"-", b"").decode("ascii", "replace")
        return len(day) == 8 and day.isdigit() and day < ENTITIES_UNTIL

    def page_of_json(self, record: Record, entities: bool) -> RawPage | None:
        """Return the page of a record of JSON; None if it describes none."""
        return page_of_wat(
            record,
            self._tally,
            self._name,
            links=self._links,
            nofollow=self._nofollow,
            entities=entities,
            rules=self._rules,
        )


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


def _page_url(raw: RawPage, name: str, tally: Tally) -> str | None:
    url = canonical(raw.url)
    if url is None:
        tally.skip(name, raw.offset, _page_refusal(raw.url))
    else:
        tally.pages += 1
    return url


def _page_refusal(url: str | bytes) -> str:
    return (refusal(url) or "").replace("link is", "page's URL is", 1)


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
    since: str | None = None,
    until: str | None = None,
    repeats: bool = True,
    scan: bool = True,
    tally: Tally | None = None,
    places: Sequence[int] | None = None,
    originals: Originals | None = None,
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
    since, until : str or None
        Take only pages whose record has a date from `since` on, and before `until`: years, months, days or ISO times in
        UTC. Records without a valid date are left out and counted.
    repeats : bool
        Yield an arc as often as it occurs in the archive, so that arcs can be counted. False yields most arcs once in a
        batch, which makes batches half as long.
    scan : bool
        Scan WAT records for links. The arcs are the same as those of decoded records, in a third of the time. With
        `since` or `until`, records are decoded.
    tally : Tally or None
        Counts the records that were read and those that were skipped.
    places : sequence of int or None
        Read only the records at these byte offsets, in this order. The stream must seek.
    originals : Originals or None
        The responses that revisit records may refer to. None: earlier ones of the stream, if it can seek.

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
        If `level` or `links` is none of the values above, a date is invalid, or the stream gives something else than
        bytes.
    """
    period = Period.of(since, until)
    tally = Tally() if tally is None else tally
    tally.strict = tally.strict or strict
    name = name_of(stream, name)
    if level not in ("page", "host", "domain"):
        raise ParameterError(f"`level` must be 'page', 'host' or 'domain'; got {level!r}")
    if like not in (None, "commoncrawl"):
        raise ParameterError(f"`like` must be 'commoncrawl' or None; got {like!r}")
    links = links or ("all" if like else "a")
    options = {"any_status": any_status, "location": location, "exact_schemes": exact_schemes}
    rules = (COMMON_CRAWL if like else INLINK)._replace(**{k: v for k, v in options.items() if v is not None})
    bits = rule_bits(links == "all", nofollow, rules)
    arcs: PageArcs | HostArcs
    if level == "page":
        arcs = PageArcs(name, tally, bits, self_links, repeats)
    else:
        numbers = HostNumbers(level, strip_www, private_suffixes)
        arcs = HostArcs(name, tally, bits, numbers, self_loops, repeats)
    originals = originals or Originals.of_stream(stream)
    decoder = _Decoder(tally, name, links, nofollow, rules, originals, period)
    # The scanner reads no dates.
    scan = scan and period == ALWAYS
    wanted: Iterator[Record | Members]
    if places is None:
        wanted = records(stream, tally, name=name, size=size, ahead=scan)
    else:
        wanted = records_at(cast("BinaryIO", stream), places, tally, name)
    return _batches(wanted, arcs, decoder, scan)


# -- arcs between pages --------------------------------------------------------------------------------------


def canonical_links(page: RawPage, url: str, self_links: bool, refused: dict[str, int]) -> list[str]:
    """Return the canonical forms of a page's links, and count the refused ones by reason."""
    targets = Base(url, page.base, self_links=self_links).canonical_links(page.links, refused)
    if page.header_links:
        targets += Base(url, self_links=self_links).canonical_links(page.header_links, refused)
    return targets


def _tally_links(tally: Tally, name: str, refused: list[tuple[int, str, int]]) -> None:
    """Count refused pages and links in the order of their offsets. Each has a byte offset, a reason and a number."""
    for offset, reason, count in sorted(refused, key=itemgetter(0)):
        tally.skip(name, offset, reason, count)


def _longer(array: AnyArray) -> AnyArray:
    """Return a copy of an array, extended by zeros to twice its length."""
    return np.append(array, np.zeros_like(array))


class PageArcs:
    """Collects the arcs between the pages of a batch.

    Parameters
    ----------
    name : str
        The archive's name, for the tally.
    tally : Tally
        Counts the pages and links, and those that are left out.
    rules : int
        As :func:`inlink.archives.scanner.rule_bits` returns them.
    self_links : bool
        Keep links to a place on the page itself.
    repeats : bool
        Collect an arc as often as the page has it. False collects it once, unless it is written in two ways.
    """

    def __init__(self, name: str, tally: Tally, rules: int, self_links: bool, repeats: bool) -> None:
        self._name, self._tally, self._rules = name, tally, rules
        self._self_links, self._repeats = self_links, repeats
        self._classes: UInt8Array | None = None
        self._work, self._base = np.zeros(0, np.uint64), np.zeros(1 << 12, np.uint8)
        self._links, self._odd = np.zeros(1 << 12, np.uint64), np.zeros(1 << 13, np.uint64)
        self._slots, self._stamp = np.zeros(1 << 14, np.uint64), 0
        # The URLs of the pages, and the forms of their links.
        self._urls, self._url_ends = np.zeros(1 << 16, np.uint8), np.zeros(1 << 10, np.int64)
        self._arena, self._ends = np.zeros(1 << 16, np.uint8), np.zeros(1 << 12, np.int64)
        self._begin()

    def _begin(self) -> None:
        self._pages = self._forms = self.size = 0
        # The number of targets of each page in the arena, and among the others.
        self._written: list[int] = []
        self._lengths: list[int] = []
        self._others: list[str] = []

    def decoded(self, page: RawPage | None) -> None:
        """Add a page that was decoded."""
        url = None if page is None else _page_url(page, self._name, self._tally)
        if page is None or url is None:
            return
        refused: dict[str, int] = {}
        others = canonical_links(page, url, self._self_links, refused)
        self._tally.skip_all(self._name, page.offset, refused)
        if not self._room_for_url():
            self._longer_urls()
        end = int(self._url_ends[self._pages]) + len(url)
        self._urls[end - len(url) : end] = np.frombuffer(url.encode(), np.uint8)
        self._pages += 1
        self._url_ends[self._pages] = end
        self._written.append(0)
        self._add_others(others)
        self.size += 1

    def _room_for_url(self) -> bool:
        room = len(self._urls) - int(self._url_ends[self._pages])
        return room >= 2 * MAX_LENGTH and self._pages + 1 < len(self._url_ends)

    def _longer_urls(self) -> None:
        self._urls, self._url_ends = _longer(self._urls), _longer(self._url_ends)

    def _add_others(self, others: list[str]) -> None:
        self._tally.links += len(others)
        if not self._repeats:
            others = list(dict.fromkeys(others))
        self._lengths.append(len(others))
        self._others += others
        self.size += len(others)

    def scan(self, block: RecordBlock, first: int) -> int:
        """Add the pages of a block, beginning with record ``first``. Return the next record that must be decoded.

        The forms of plain links are written into the arena. The other links are parsed.
        """
        from inlink.archives.kernels import forms as kernels
        from inlink.archives.kernels.wat import WORK

        if self._classes is None:
            self._classes, self._work = byte_classes(), np.zeros(WORK, np.uint64)
        options = self._self_links | self._repeats << 1
        table = np.zeros(5 * (len(block) - first), np.uint64)
        state = np.array([0, 0, self._pages, self._forms, 0, 0, self._stamp])
        while True:
            answer = kernels.page_forms(
                block.text,
                block.frames[3 * first :],
                self._rules,
                options,
                self._classes,
                self._work,
                self._links,
                self._slots,
                self._base,
                self._urls,
                self._url_ends,
                self._arena,
                self._ends,
                self._odd,
                table,
                state,
            )
            if answer == kernels.FULL_FORMS:
                self._arena, self._ends = _longer(self._arena), _longer(self._ends)
            elif answer == kernels.FULL_URLS:
                self._longer_urls()
            elif answer == kernels.FULL:
                self._links, self._odd = _longer(self._links), _longer(self._odd)
                self._slots = np.zeros(2 * len(self._slots), np.uint64)
            else:
                break
        records, count, pages, forms, odds, kept, self._stamp = state.tolist()
        rows = table[: 5 * count].reshape(-1, 5)
        self._tally.pages += count
        self._tally.links += kept
        self.size += count + forms - self._forms
        self._written += rows[:, 1].tolist()
        refused = [
            (block.offsets[first + record], NOT_HTTP, number)
            for record, number in rows[rows[:, 2] > 0][:, [0, 2]].tolist()
        ]
        odd: dict[int, list[int]] = {}
        for entry, page in self._odd[: 2 * odds].reshape(-1, 2).tolist():
            odd.setdefault(page, []).append(entry)
        for page in range(count) if odd else ():
            self._add_others(
                self._parsed(block, first, rows[page], self._pages + page, odd[page], refused)
                if page in odd
                else []
            )
        if not odd:
            self._lengths += [0] * count
        _tally_links(self._tally, self._name, refused)
        self._pages, self._forms = pages, forms
        return first + int(records)

    def _parsed(
        self,
        block: RecordBlock,
        first: int,
        row: UInt64Array,
        page: int,
        odd: list[int],
        refused: list[tuple[int, str, int]],
    ) -> list[str]:
        """Return the canonical forms of the odd links of a page."""
        record, _, _, _, base_entry = row.tolist()
        entities = block.entities(first + record)
        url = self._urls[int(self._url_ends[page]) : int(self._url_ends[page + 1])].tobytes().decode()
        hrefs: list[str] = []
        from_header: list[str] = []
        for entry in odd:
            href, header = block.href(entry, entities)
            (from_header if header else hrefs).append(href)
        base = block.href(base_entry, entities)[0] if base_entry else None
        counts: dict[str, int] = {}
        others = canonical_links(RawPage(url, base, hrefs, from_header, 0), url, self._self_links, counts)
        refused += [(block.offsets[first + record], reason, count) for reason, count in counts.items()]
        return others

    def take(self) -> ArcBatch:
        """Return the batch, and begin another one."""
        pages, forms, others = self._pages, self._forms, len(self._others)
        columns = [Strings(self._urls, self._url_ends[: pages + 1].view(np.uint64))]
        if forms:
            columns.append(Strings(self._arena, self._ends[: forms + 1].view(np.uint64)))
        if others:
            columns.append(Strings.of(self._others))
        names = Strings.concat(columns)
        places = np.arange(pages, dtype=np.uint32)
        sources = np.concatenate([np.repeat(places, self._written), np.repeat(places, self._lengths)])
        targets = np.arange(pages, pages + forms + others, dtype=np.uint32)
        self._begin()
        return ArcBatch(sources, targets, names, crawled=places)


# -- arcs between hosts or domains ---------------------------------------------------------------------------

NO_HOST = "link without a host for a host graph (IP address, single label, or unknown top-level domain)"
NO_DOMAIN = "link to a host without a registered domain"
PAGE_ELSEWHERE = "page, with its links, without a host for a host graph"

# The largest number of origins that are kept from one batch to the next.
MAX_HOSTS = 2_000_000

# A shorter URL stays within MAX_LENGTH in canonical form on any host, since a character takes at most 12 bytes there.
_SHORT = 140
_SURROGATE = re.compile("[\ud800-\udfff]")


class HostNumbers:
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
        """Return the number of URLs with this origin; None if the whole URL must be parsed."""
        if not origin or min(origin) <= " ":
            return None
        self.by_origin[origin] = code = self.of_url(f"http://{origin}/")
        return code

    def of_url(self, url: str, base: Base | None = None) -> int:
        """Return the number of a URL, parsed as a whole."""
        form = base.canonical(url) if base else canonical(url)
        if form is None:
            return self.refuse(refusal(url, base.url if base else None) or "")
        return self.of_form(form)

    def of_form(self, form: str) -> int:
        """Return the number of a canonical URL."""
        origin = form.split("/", 3)[2]
        code = self.by_origin.get(origin)
        if code is None:
            host = host_of(form, strip_www=self.strip_www)
            name = None if host is None else reverse_host(host)
            if name is not None and self.level == "domain":
                name = domain_of(name, private=self.private)
            if name is None:
                code = self.refuse(NO_HOST if host is None else NO_DOMAIN)
            else:
                code = self._by_name.setdefault(name, len(self.names))
                if code == len(self.names):
                    self.names.append(name)
            self.by_origin[origin] = code
        return code

    def refuse(self, reason: str) -> int:
        """Return the negative number of a reason why a URL has no node."""
        if reason not in self.reasons:
            self.reasons.append(reason)
        return -1 - self.reasons.index(reason)


class _Origins:
    """The origins of links as the kernel knows them, with the numbers of their hosts."""

    def __init__(self, room: int = 1 << 12) -> None:
        self.slots = np.zeros(4 * room, np.uint32)
        self.arena = np.zeros(32 * room, np.uint8)
        self.origins = np.zeros(2 * room + 2, np.uint64)
        self.known = np.zeros(room, np.int64)
        # The number of origins that have the number of a host.
        self.count = 0

    def grow(self) -> None:
        """Make room for twice as many origins."""
        from inlink.archives.kernels.links import fill_slots

        old = self.arena, self.origins, self.known
        room, count = 2 * len(self.known), self.count
        self.__init__(room)  # type: ignore[misc]
        self.count = count
        self.arena[: len(old[0])], self.known[: len(old[2])] = old[0], old[2]
        self.origins[: len(old[1]) - 2], self.origins[-2:] = old[1][:-2], old[1][-2:]
        fill_slots(self.slots, self.origins)

    def look_up(self, hosts: HostNumbers) -> None:
        """Look up the hosts of new origins."""
        for number in range(self.count, int(self.origins[-2])):
            place, size = divmod(int(self.origins[2 * number + 1]), 256)
            origin = self.arena[place : place + size].tobytes().decode()
            code = hosts.by_origin.get(origin)
            if code is None:
                code = hosts.of_origin(origin)
            # The kernel knows no origins with white space.
            assert code is not None
            self.known[number] = code
        self.count = int(self.origins[-2])


class HostArcs:
    """Collects the arcs between the hosts or domains of a batch of pages.

    Parameters
    ----------
    name : str
        The archive's name, for the tally.
    tally : Tally
        Counts the pages and links, and those that are left out.
    rules : int
        As :func:`inlink.archives.scanner.rule_bits` returns them.
    hosts : HostNumbers
        The numbers of hosts.
    self_loops : bool
        Keep the arcs from a node to itself.
    repeats : bool
        Collect an arc as often as the archive has it. False collects it once in a batch.
    """

    def __init__(
        self, name: str, tally: Tally, rules: int, hosts: HostNumbers, self_loops: bool, repeats: bool
    ) -> None:
        self._name, self._tally, self._rules, self._hosts = name, tally, rules, hosts
        self._self_loops, self._repeats = self_loops, repeats
        self._origins: _Origins | None = None
        self._stamps, self._stamp = np.zeros(0, np.uint32), 1
        self._work, self._links = np.zeros(0, np.uint64), np.zeros(1 << 12, np.uint64)
        self._codes, self._odd = np.zeros(1 << 13, np.int64), np.zeros(1 << 14, np.uint64)
        self._begin()

    def _begin(self) -> None:
        # For each page, the number of its host, the number of its targets, and the targets.
        self._sources: list[Int64Array] = []
        self._lengths: list[Int64Array] = []
        self._targets: list[Int64Array] = []
        self.size = 0

    def _add(self, sources: Int64Array, lengths: Int64Array, targets: Int64Array) -> None:
        self._sources.append(sources)
        self._lengths.append(lengths)
        self._targets.append(targets)
        self.size += int(np.maximum(lengths, 1).sum())

    def decoded(self, page: RawPage | None) -> None:
        """Add a page that was decoded."""
        url = None if page is None else _page_url(page, self._name, self._tally)
        if page is None or url is None:
            return
        own = self._hosts.of_form(url)
        if own < 0:
            self._tally.skip(self._name, page.offset, PAGE_ELSEWHERE)
            return
        targets = self._decoded(page, url, own)
        self._add(np.array([own]), np.array([len(targets)]), targets)

    def _decoded(self, page: RawPage, url: str, own: int) -> Int64Array:
        hosts = self._hosts
        base: Base | None = None
        # The host of relative links.
        here = own
        if page.base is not None:
            base = Base(url, page.base)
            here = hosts.of_form(base.url)
        codes: list[int] = []
        add, code_of = codes.append, hosts.by_origin.get
        for href in page.links:
            code: int | None = None
            if len(href) < _SHORT and (href.isascii() or not _SURROGATE.search(href)):
                if href.startswith(("http://", "https://")):
                    origin = href.split("/", 3)[2]
                    code = code_of(origin)
                    if code is None:
                        code = hosts.of_origin(origin)
                elif href[:1] == "/" and href[1:2].isalnum():
                    code = here
            if code is None:
                base = base or Base(url)
                code = hosts.of_url(href, base)
            add(code)
        if page.header_links:
            itself = Base(url)
            codes += [hosts.of_url(href, itself) for href in page.header_links]
        targets = np.array(codes, np.int64)
        refused = targets < 0
        if refused.any():
            self._refuse(targets[refused], page.offset)
            targets = targets[~refused]
        self._tally.links += len(targets)
        return targets if self._self_loops else targets[targets != own]

    def scan(self, block: RecordBlock, first: int) -> int:
        """Add the pages of a block, beginning with record ``first``. Return the next record that must be decoded."""
        from inlink.archives.kernels import links as kernels
        from inlink.archives.kernels.wat import WORK

        hosts = self._hosts
        if self._origins is None:
            self._origins, self._work = _Origins(), np.zeros(WORK, np.uint64)
        origins = self._origins
        table, state = np.zeros(5 * (len(block) - first), np.uint64), np.zeros(4, np.int64)
        while True:
            answer = kernels.host_links(
                block.text,
                block.frames[3 * first :],
                self._rules,
                hosts.refuse(NOT_HTTP),
                self._work,
                self._links,
                origins.slots,
                origins.origins,
                origins.arena,
                origins.known,
                self._codes,
                self._odd,
                table,
                state,
            )
            if answer == kernels.FULL:
                self._links, self._codes = _longer(self._links), _longer(self._codes)
                self._odd = _longer(self._odd)
            elif answer == kernels.FULL_ORIGINS:
                origins.grow()
            elif answer == kernels.NEW_BASE:
                origins.look_up(hosts)
            else:
                break
        records, count, used, odds = state.tolist()
        if not count:
            return first + records
        origins.look_up(hosts)
        rows = table[: 5 * count].reshape(-1, 5)
        self._parse_odd(block, first, rows, odds)
        if len(hosts.names) > len(self._stamps):
            self._stamps = np.append(self._stamps, np.zeros(len(hosts.names), np.uint32))
        sources, lengths = np.zeros(count, np.int64), np.zeros(count, np.int64)
        reasons = np.zeros(2 * len(hosts.reasons), np.int64)
        kept = kernels.keep_hosts(
            self._codes,
            used,
            table,
            count,
            origins.known,
            self._self_loops,
            self._repeats,
            self._stamps,
            self._stamp,
            sources,
            lengths,
            reasons,
        )
        self._stamp += count
        offsets = [block.offsets[first + record] for record in rows[:, 0].tolist()]
        refused = [
            (offsets[page], reason, number)
            for reason, (number, page) in zip(hosts.reasons, reasons.reshape(-1, 2).tolist(), strict=True)
            if number
        ]
        self._tally.pages += count
        self._tally.links += used - int(reasons[::2].sum())
        has_host = sources >= 0
        if not has_host.all():
            begins = np.append(rows[:, 2], np.uint64(used)).astype(np.int64)
            self._tally.links -= int(np.diff(begins)[~has_host].sum())
            for page in np.flatnonzero(~has_host).tolist():
                url = block.href(int(rows[page, 3]), False)[0]
                valid = canonical(url) is not None
                self._tally.pages -= not valid
                refused.append((offsets[page], PAGE_ELSEWHERE if valid else _page_refusal(url), 1))
            sources, lengths = sources[has_host], lengths[has_host]
        _tally_links(self._tally, self._name, refused)
        self._add(sources, lengths, self._codes[:kept].copy())
        return first + records

    def _parse_odd(self, block: RecordBlock, first: int, rows: UInt64Array, odds: int) -> None:
        """Parse the links that the kernel left, and write the codes of their hosts."""
        odd = self._odd[: 2 * odds].reshape(-1, 2)
        pages = np.searchsorted(rows[:, 2], odd[:, 1], "right") - 1
        last, entities = -1, False
        for (entry, place), page in zip(odd.tolist(), pages.tolist(), strict=True):
            if page != last:
                record, _, _, url_entry, base_entry = rows[page].tolist()
                last, entities = page, block.entities(first + record)
                url = canonical(block.href(url_entry, False)[0])
                # A page without a valid URL has no host, so its links do not count.
                itself = base = None if url is None else Base(url)
                if url is not None and base_entry:
                    base = Base(url, block.href(base_entry, entities)[0])
            if base is not None:
                href, header = block.href(entry, entities)
                self._codes[place] = self._hosts.of_url(href, itself if header else base)

    def _refuse(self, codes: Int64Array, offset: int) -> None:
        """Count links that have no host."""
        refused: dict[str, int] = {}
        for code in codes.tolist():
            reason = self._hosts.reasons[-1 - code]
            refused[reason] = refused.get(reason, 0) + 1
        self._tally.skip_all(self._name, offset, refused)

    def take(self) -> ArcBatch:
        """Return the batch, and begin another one."""
        pages = np.concatenate(self._sources).astype(np.uint32)
        tails = np.repeat(pages, np.concatenate(self._lengths))
        heads = np.concatenate(self._targets).astype(np.uint32)
        if not self._repeats:
            pairs = np.sort(tails.astype(np.uint64) << np.uint64(32) | heads)
            pairs = pairs[np.diff(pairs, prepend=~pairs[:1]) != 0]
            tails, heads = (pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.uint32)
        used = np.zeros(len(self._hosts.names), np.bool_)
        used[pages] = used[heads] = True
        places = np.cumsum(used, dtype=np.uint32) - np.uint32(1)
        names = Strings.of(self._hosts.names[k] for k in np.flatnonzero(used).tolist())
        crawled = np.unique(places[pages])
        self._begin()
        if len(self._hosts.by_origin) > MAX_HOSTS:
            self._hosts.forget()
            self._origins, self._stamps = None, np.zeros(0, np.uint32)
        return ArcBatch(places[tails], places[heads], names, crawled=crawled)


def _scan(block: RecordBlock, arcs: PageArcs | HostArcs, decoder: _Decoder) -> None:
    """Add the pages of a block. Records that cannot be scanned are decoded."""
    first = 0
    while first < len(block):
        place = arcs.scan(block, first)
        if place < len(block):
            arcs.decoded(decoder.page_of_json(block.record(place), block.entities(place)))
        first = place + 1


def _batches(
    records: Iterator[Record | Members], arcs: PageArcs | HostArcs, decoder: _Decoder, scan: bool
) -> Iterator[ArcBatch]:
    for record in records:
        if isinstance(record, Members):
            _scan(RecordBlock.of_members(record, decoder.entities), arcs, decoder)
        elif scan and record.is_json:
            _scan(RecordBlock.of_record(record, decoder.has_entities(record)), arcs, decoder)
        else:
            arcs.decoded(decoder.page(record))
        if arcs.size >= BATCH:
            yield arcs.take()
    if arcs.size:
        yield arcs.take()
