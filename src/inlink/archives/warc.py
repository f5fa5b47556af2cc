"""Pages from WARC and ARC records: HTTP responses, and the links of those that hold HTML.

Every response to a request for an HTTP URL is a page, whatever its status and content. Only HTML with a 2xx status has
links. With ``links="all"``, the headers ``Location``, ``Link`` and ``Content-Location`` are links too.
"""

import io
import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple, cast

from isal import isal_zlib

from inlink.archives.html import (
    MAX_DOCUMENT,
    TANGLED,
    UNTYPED,
    LinkSet,
    html_links,
    looks_like_html,
    no_follow,
)
from inlink.archives.records import Record
from inlink.base.damage import Tally

# The stub of isal calls the class an instance.
_BadDeflateError = cast(type[Exception], isal_zlib.error)

_MAX_HTTP_HEADER = 1 << 18
_HEADER_END = re.compile(rb"\r?\n\r?\n")
HTML_TYPE = re.compile(rb"(text/html|application/xhtml\+xml)\b")
_STATUS = re.compile(rb"HTTP/[^\s]{0,20}[ \t]+(\d{3})\b")
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{1,40})", re.I)
_LINK_HEADER = re.compile(r"<([^>]*)>")
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9a-fA-F]{1,15})[ \t]*(?:;[^\n]{0,1000})?\r?\n")

NO_HTTP = "response record without an HTTP header"
BAD_CODING = "page with damaged Content-Encoding or chunks"
UNKNOWN_CODING = "page with an unknown Content-Encoding"
LONG_DOCUMENT = f"rest of a page beyond {MAX_DOCUMENT:,} bytes"


class RawPage(NamedTuple):
    """A page with its links as written.

    Attributes
    ----------
    url : bytes or str
        The page's URL, as written.
    base : str or None
        Its ``<base href>``.
    links : list of str
        Links to resolve against the base.
    header_links : list of str
        Links to resolve against the page's URL.
    offset : int
        Byte offset of its record, or of the gzip member that holds it.
    """

    url: bytes | str
    base: str | None
    links: list[str]
    header_links: list[str]
    offset: int


class Http(NamedTuple):
    """An HTTP response: status, all values of each header field by lower-case name, and the body as sent."""

    status: bytes
    fields: dict[bytes, list[bytes]]
    body: memoryview


def parse_http(block: bytes) -> Http | None:
    """Split a response into header and body. Return None if the bytes do not begin with a status line."""
    if not block.startswith(b"HTTP/"):
        return None
    match = _HEADER_END.search(block, 0, _MAX_HTTP_HEADER)
    end = match.end() if match else len(block)
    fields: dict[bytes, list[bytes]] = {}
    for line in block[: match.start() if match else min(end, _MAX_HTTP_HEADER)].split(b"\n")[1:]:
        name, colon, value = line.partition(b":")
        if colon:
            fields.setdefault(name.strip().lower(), []).append(value.strip())
    status = _STATUS.match(block)
    return Http(status[1] if status else b"", fields, memoryview(block)[end:])


def page_of_response(record: Record, tally: Tally, path: str, *, links: LinkSet, nofollow: bool) -> RawPage:
    """Return the page in a response record. Problems are counted in the tally under `path`."""
    http = parse_http(record.body)
    if http is None:
        tally.skip(path, record.offset, NO_HTTP)
        return RawPage(record.url, None, [], [], record.offset)
    from_header = []
    if links == "all":
        text = {name: [v.decode("utf-8", "replace") for v in values] for name, values in http.fields.items()}
        from_header = header_links(
            text.get(b"location", []), text.get(b"content-location", []), text.get(b"link", [])
        )
    nothing = RawPage(record.url, None, [], from_header, record.offset)
    if not nofollow and any(no_follow(v.decode("latin-1")) for v in http.fields.get(b"x-robots-tag", [])):
        return nothing._replace(header_links=[])
    content_type = b" ".join(http.fields.get(b"content-type", [])[:1]).lower()
    untyped = not content_type or content_type.partition(b";")[0].strip().decode("latin-1") in UNTYPED
    if not is_success(http.status) or not (untyped or HTML_TYPE.search(content_type)):
        return nothing
    document, problem = decoded(http)
    # The server or the crawler made the problem. The archive itself is not damaged.
    if problem:
        tally.skip(path, record.offset, problem)
    if untyped and not looks_like_html(document):
        return nothing
    charset = _CHARSET.search(content_type)
    page = html_links(
        document, links=links, nofollow=nofollow, charset=charset[1].decode("ascii") if charset else None
    )
    if page is None:
        tally.skip(path, record.offset, TANGLED)
        return nothing
    return RawPage(record.url, page.base, page.links, from_header, record.offset)


def is_success(status: bytes) -> bool:
    """Return whether a status is 2xx or missing (HTTP 0.9, or a header that lost it)."""
    return status[:1] in (b"2", b"")


def header_links(location: list[str], content_location: list[str], link: list[str]) -> list[str]:
    """Return the links in HTTP headers: redirect targets, content locations, and ``Link: <…>; rel=…``."""
    return [*location, *content_location, *(href for value in link for href in _LINK_HEADER.findall(value))]


def decoded(http: Http) -> tuple[bytes, str | None]:
    """Return at most MAX_DOCUMENT bytes of the decoded document of a response, and the problem met, if any."""
    body, problem = bytes(http.body), None
    if b"chunked" in b",".join(http.fields.get(b"transfer-encoding", [])).lower():
        body, problem = _dechunked(body)
    codings = b",".join(http.fields.get(b"content-encoding", [])).lower().replace(b" ", b"").split(b",")
    for coding in reversed([c for c in codings if c and c != b"identity"][:3]):
        body, trouble = _unpacked(body, coding)
        problem = problem or trouble
    if len(body) > MAX_DOCUMENT:
        body, problem = body[:MAX_DOCUMENT], problem or LONG_DOCUMENT
    return body, problem


def _dechunked(body: bytes) -> tuple[bytes, str | None]:
    parts: list[bytes] = []
    at = 0
    while True:
        size = _CHUNK_SIZE.match(body, at)
        if not size:
            if at == 0:
                # Many archivers keep the header but store the body without chunks.
                return body, None
            return b"".join(parts), None if at >= len(body) else BAD_CODING
        length = int(size[1], 16)
        if length == 0:
            return b"".join(parts), None
        part = body[size.end() : size.end() + length]
        parts.append(part)
        if len(part) < length:
            return b"".join(parts), BAD_CODING
        at = size.end() + length
        at += 2 if body[at : at + 2] == b"\r\n" else 1 if body[at : at + 1] == b"\n" else 0


def _unpacked(body: bytes, coding: bytes) -> tuple[bytes, str | None]:
    """Undo one Content-Encoding. A body that is not compressed stays as it is, since archivers store such bodies."""
    if coding in (b"gzip", b"x-gzip"):
        return _collected(_inflated(body, 31)) if body.startswith(b"\x1f\x8b") else (body, None)
    if coding not in (b"deflate", b"br", b"zstd"):
        return body, UNKNOWN_CODING
    if looks_like_html(body):
        return body, None
    if coding == b"deflate":
        whole = len(body) > 1 and body[0] & 15 == 8 and (body[0] * 256 + body[1]) % 31 == 0
        return _collected(_inflated(body, 15 if whole else -15))
    return _collected(_unpacked_brotli(body) if coding == b"br" else _unpacked_zstd(body))


class _CodingError(Exception):
    """A body cannot be unpacked to its end."""


def _collected(parts: Iterator[bytes]) -> tuple[bytes, str | None]:
    """Join parts until they are long enough. Return the problem met, if any."""
    out = bytearray()
    try:
        for part in parts:
            out += part
            if len(out) > MAX_DOCUMENT:
                break
    except _CodingError:
        return bytes(out), BAD_CODING
    return bytes(out), None


def _inflated(body: bytes, wbits: int) -> Iterator[bytes]:
    unpacker = isal_zlib.decompressobj(wbits=wbits)
    try:
        while not unpacker.eof:
            part = unpacker.decompress(body, 1 << 20)
            body = unpacker.unconsumed_tail
            if not part and not body:
                raise _CodingError
            yield part
    except _BadDeflateError:
        raise _CodingError from None


def _unpacked_brotli(body: bytes) -> Iterator[bytes]:
    import brotli

    unpacker = brotli.Decompressor()
    try:
        while not unpacker.is_finished():
            part = unpacker.process(body, output_buffer_limit=1 << 18)
            if not (part or body):
                raise _CodingError
            body = b""
            yield part
    except brotli.error:
        raise _CodingError from None


def _unpacked_zstd(body: bytes) -> Iterator[bytes]:
    from inlink.base.zstd import ZstdError, ZstdFile

    try:
        with ZstdFile(io.BytesIO(body)) as stream:
            yield from iter(partial(stream.read, 1 << 18), b"")
    except (ZstdError, EOFError):
        raise _CodingError from None
