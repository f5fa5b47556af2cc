"""Read a sitemap (https://www.sitemaps.org/protocol.html): XML or plain text, also gzipped.

A sitemap may come from anybody, so its size is bounded: at most :data:`LONGEST` bytes are unpacked and
:data:`MOST_URLS` URLs are read. A document that declares entities is refused. Reading stops at the first error. The
entries before it are kept.
"""

import re
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple
from xml.parsers import expat

from inlink.urls.canonical import MAX_LENGTH

__all__ = ["LONGEST", "MOST_URLS", "Entry", "SitemapFile", "read_sitemap"]

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
