"""Fetch the sitemaps of the sites of a crawl, and hand their URLs to the crawl.

The sitemaps are those that a host's robots.txt names and, if asked for, ``/sitemap.xml``. They are fetched one after
the other for each host, through Scrapy's downloader, which keeps the delay, robots.txt and the rules for addresses.
Only URLs on the host's own registered domain count, so a sitemap cannot lead the crawl to other sites. An index may
name sitemaps and further indexes. At most :data:`MOST_FILES` files are fetched for a host.

The format is that of https://www.sitemaps.org/protocol.html: XML or plain text, also gzipped. A sitemap may come from
anybody, so its size is bounded: at most :data:`LONGEST` bytes are unpacked and :data:`MOST_URLS` URLs are read. A
document that declares entities is refused. Reading stops at the first error. The entries before it are kept.

A sitemap may take a second to parse, so a worker thread parses it, one sitemap at a time. Meanwhile the event loop goes
on with other fetches. No further sitemap is fetched while more than :data:`MOST_UNREAD` bytes wait to be parsed.
"""

import asyncio
import logging
import re
import zlib
from collections.abc import Callable, Iterator, Set
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from xml.parsers import expat

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http.request import NO_CALLBACK

from inlink.base.table import counted
from inlink.scrapy.causes import Causes
from inlink.urls.canonical import MAX_LENGTH, canonical
from inlink.urls.hosts import same_domain

LONGEST = 50 << 20
"""Maximum number of unpacked bytes of a sitemap that are read, which is the protocol's own limit."""

MOST_URLS = 50_000
"""Maximum number of URLs of a sitemap that are read, which is the protocol's own limit."""

_PIECE = 1 << 16
_MOST_CHARACTERS = 2 * MAX_LENGTH
_FIELDS = ("loc", "lastmod", "priority")


class Entry(NamedTuple):
    """A URL of a sitemap, the Unix time of its page's last change or None, and its priority in [0, 1] or None."""

    url: str
    lastmod: float | None = None
    priority: float | None = None


class SitemapFile(NamedTuple):
    """The content of a sitemap.

    Attributes
    ----------
    entries : list of Entry
        The pages; for an index, the sitemaps.
    is_index : bool
        Whether it is an index of sitemaps.
    problem : str or None
        The reason why it was not read completely; None if it was.
    """

    entries: list[Entry]
    is_index: bool = False
    problem: str | None = None


def read_sitemap(body: bytes) -> SitemapFile:
    """Read a sitemap. Any bytes give a result; they never raise.

    Examples
    --------
    >>> read_sitemap(b"<urlset><url><loc>http://a.example/</loc><priority>0.8</priority></url></urlset>").entries
    [Entry(url='http://a.example/', lastmod=None, priority=0.8)]
    """
    reader = _SitemapReader()
    read = 0
    try:
        for piece in _pieces(body):
            read += len(piece)
            if read > LONGEST:
                reader.problem = f"longer than {LONGEST:,} bytes"
            if reader.problem is not None:
                break
            reader.feed(piece)
        reader.end()
    except zlib.error:
        reader.problem = reader.problem or "damaged"
    except expat.ExpatError:
        reader.problem = reader.problem or ("damaged" if reader.rooted else "no sitemap")
    return SitemapFile(reader.entries, reader.index, reader.problem)


def _pieces(body: bytes) -> Iterator[bytes]:
    """The pieces of a document, unpacked if it is gzipped. Each piece has at most 64 KiB after unpacking."""
    if not body.startswith(b"\x1f\x8b"):
        yield from (body[at : at + _PIECE] for at in range(0, len(body), _PIECE))
        return
    unpacker = zlib.decompressobj(31)
    while not unpacker.eof:
        piece = unpacker.decompress(body, _PIECE)
        body = unpacker.unconsumed_tail
        if not piece and not body:
            raise zlib.error("cut short")
        yield piece


class _SitemapReader:
    """Takes the pieces of a sitemap in turn."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.index = False
        # True once the root element has begun.
        self.rooted = False
        self.problem: str | None = None
        self._parser: expat.XMLParserType | None = None
        self._line = ""
        self._begun = False
        self._fields: dict[str, str] = {}
        self._field = ""
        self._depth = 0

    def feed(self, piece: bytes) -> None:
        if not self._begun:
            self._begun = True
            if piece.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<":
                self._parser = self._xml()
                piece = piece.lstrip()
        if self._parser is not None:
            self._parser.Parse(piece)
            return
        *lines, self._line = (self._line + piece.decode("utf-8", "replace")).split("\n")
        for line in lines:
            self._add_line(line)
        self._line = self._line[:_MOST_CHARACTERS]

    def end(self) -> None:
        if self._parser is not None and self.problem is None:
            self._parser.Parse(b"", True)
        elif self._line:
            self._add_line(self._line)

    def _xml(self) -> expat.XMLParserType:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._stop
        parser.CharacterDataHandler = self._text
        parser.EntityDeclHandler = self._entity
        return parser

    def _entity(self, *_: object) -> None:
        self._give_up("it declares entities")

    def _give_up(self, problem: str) -> None:
        self.problem = self.problem or problem
        raise expat.ExpatError(problem)

    def _start(self, name: str, _: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2].lower()
        self._depth += 1
        if self._depth == 1:
            if tag not in ("urlset", "sitemapindex"):
                self._give_up("no sitemap")
            self.index, self.rooted = tag == "sitemapindex", True
        elif self._depth == 2:
            self._fields = {}
        elif self._depth > 100:
            self._give_up("nested too deeply")
        self._field = tag if self._depth == 3 and tag in _FIELDS else ""

    def _stop(self, name: str) -> None:
        self._depth -= 1
        self._field = ""
        if self._depth == 1 and self._fields.get("loc"):
            fields, self._fields = self._fields, {}
            self._add(
                fields["loc"], _moment(fields.get("lastmod", "")), _priority(fields.get("priority", ""))
            )

    def _text(self, text: str) -> None:
        if self._field:
            before = self._fields.get(self._field, "")
            self._fields[self._field] = (before + text)[:_MOST_CHARACTERS]

    def _add_line(self, line: str) -> None:
        if self.problem is None and line.strip().startswith(("http://", "https://")):
            self._add(line, None, None)

    def _add(self, url: str, lastmod: float | None, priority: float | None) -> None:
        if len(self.entries) >= MOST_URLS:
            self.problem = f"more than {MOST_URLS:,} URLs"
            return
        self.entries.append(Entry(url.strip(), lastmod, priority))


def _moment(text: str) -> float | None:
    """A W3C date as Unix time; None if the text is not a date. A date without a time means the beginning of the day."""
    text = text.strip()
    if re.fullmatch(r"\d{4}(-\d\d)?", text):
        text += "-01" * (2 - text.count("-"))
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _priority(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if 0 <= found <= 1 else None


log = logging.getLogger("inlink.sitemaps")

MOST_FILES = 100
"""Maximum number of sitemaps that are fetched for a host."""

DEEPEST = 2
"""Maximum depth of nested indexes above a sitemap."""

MOST_UNREAD = 64 << 20
"""Number of bytes of fetched sitemaps that wait to be parsed, beyond which no further sitemap is fetched."""


class Sitemaps:
    """The sitemaps of a run.

    Parameters
    ----------
    hosts : set of str or None
        Hosts whose sitemaps are read; None is all.
    guess : bool
        Also ask a host for ``/sitemap.xml`` if its robots.txt names no sitemap.
    causes : Causes
        Counts the sitemaps that cannot be read.
    scored : bool
        Whether the crawl scores links. If it does, priorities in sitemaps count as 0. Otherwise their pages would come
        before the most promising links.

    Attributes
    ----------
    give : callable
        Takes in entries; set by the scheduler.
    """

    def __init__(self, hosts: Set[str] | None, guess: bool, causes: Causes, *, scored: bool = False) -> None:
        self._hosts, self._guess, self._causes, self._scored = hosts, guess, causes, scored
        self._begun: set[str] = set()
        self._running: set[asyncio.Task[None]] = set()
        self._parsing, self._room, self._unread = asyncio.Lock(), asyncio.Event(), 0
        self._room.set()
        self.give: Callable[[list[Entry]], None] = lambda entries: None

    @property
    def busy(self) -> bool:
        """True while sitemaps are being fetched."""
        return bool(self._running)

    def found(self, crawler: Crawler, robotparser: Any, request: Request) -> None:
        """Begin to fetch the sitemaps of a host after its robots.txt was parsed."""
        parts = urlsplit(request.url)
        if parts.netloc in self._begun or not (self._hosts is None or parts.hostname in self._hosts):
            return
        self._begun.add(parts.netloc)
        origin = f"{parts.scheme}://{parts.netloc}/"
        try:
            named = [str(url) for url in robotparser.rp.sitemaps]
        except (AttributeError, TypeError):
            # This parser knows no sitemaps.
            named = []
        urls = dict.fromkeys(form for url in named[:MOST_FILES] if (form := canonical(url, origin)))
        if not urls and not self._guess:
            return
        work = self._read(crawler, origin, list(urls) or [f"{origin}sitemap.xml"], bool(urls))
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def stop(self) -> None:
        """Stop fetching sitemaps."""
        for task in self._running:
            task.cancel()

    async def _read(self, crawler: Crawler, origin: str, urls: list[str], named: bool) -> None:
        waiting = [(url, 0) for url in reversed(urls)]
        seen, files, count = set(urls), 0, 0
        while waiting and files < MOST_FILES:
            url, depth = waiting.pop()
            files += 1
            await self._room.wait()
            body = await self._fetch(crawler, url, named or depth > 0)
            if body is None:
                continue
            sitemap = await self._parsed(body, url, origin)
            if sitemap.problem is not None and (named or depth or sitemap.entries):
                self._causes.add(f"sitemap not read completely, {sitemap.problem}", url, url)
            if not sitemap.is_index:
                count += len(sitemap.entries)
                self.give(sitemap.entries)
            elif depth < DEEPEST:
                new = [entry.url for entry in sitemap.entries if entry.url not in seen]
                new = list(dict.fromkeys(new))[: MOST_FILES - files]
                seen.update(new)
                waiting += [(url, depth + 1) for url in reversed(new)]
        if count:
            log.info("%s: %s in %s", origin, counted(count, "URL"), counted(files, "sitemap"))

    async def _parsed(self, body: bytes, url: str, origin: str) -> SitemapFile:
        """Parse a sitemap in a worker thread, and keep the entries that are on the host's own registered domain."""
        self._unread += len(body)
        if self._unread > MOST_UNREAD:
            self._room.clear()
        try:
            async with self._parsing:
                return await asyncio.to_thread(self._parse, body, url, origin)
        finally:
            self._unread -= len(body)
            if self._unread <= MOST_UNREAD:
                self._room.set()

    def _parse(self, body: bytes, url: str, origin: str) -> SitemapFile:
        sitemap = read_sitemap(body)
        entries = [
            entry._replace(url=form, priority=0.0 if self._scored else entry.priority)
            for entry in sitemap.entries
            if (form := canonical(entry.url, url)) is not None and same_domain(form, origin)
        ]
        return sitemap._replace(entries=entries)

    async def _fetch(self, crawler: Crawler, url: str, named: bool) -> bytes | None:
        """The body of a sitemap; None if it cannot be fetched. The failure is counted only if the sitemap was named."""
        engine: Any = crawler.engine
        try:
            response = await engine.download_async(Request(url, callback=NO_CALLBACK, dont_filter=True))
        except Exception as error:
            log.debug("%s: %s", url, error)
            response = None
        if response is not None and response.status == 200:
            return bytes(response.body)
        if named:
            self._causes.add("sitemap not fetched", url, url)
        return None
