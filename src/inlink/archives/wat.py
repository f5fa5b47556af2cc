"""Pages from WAT records: the JSON that Common Crawl's extractor writes about each response.

A record describes one record of the WARC file. For a response it holds the headers and every link that
``ExtractingParseObserver`` of ia-web-commons found, as ``TAG@/attribute`` and the URL as written. Only the needed
fields are decoded, into typed structs (msgspec, 0.5 µs per link including gunzip). A record of another shape is decoded
in full and searched (:func:`_loose`), which is also the oracle of the fast path.

Real files have records without ``Links``, empty link objects, repeated headers as lists (since CC-MAIN-2024-51),
numbers as strings, and, if written before July 2019, URLs with HTML entities.
"""

import json
import re
from html import unescape
from html.entities import html5
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from inlink.archives.html import LinkSet, absolute, meta_link, no_follow
from inlink.archives.records import Record
from inlink.archives.warc import RawPage, header_links, is_success
from inlink.base.damage import Tally

__all__ = [
    "COMMON_CRAWL",
    "ENTITIES_UNTIL",
    "INLINK",
    "WatRules",
    "page_of_wat",
    "unescape_attribute",
    "written_on",
]

BAD_TEXT = "WAT record that is not valid UTF-8"
BAD_JSON = "WAT record whose JSON is invalid"
NO_URL = "WAT record of a response without a URL"

ENTITIES_UNTIL = "20190708"
"""The day on which ia-web-commons began to decode entities. URLs in older WAT files contain ``&amp;``."""

L = TypeVar("L")


class _Link(msgspec.Struct, gc=False):
    path: str = ""
    url: str | None = None


class _FullLink(msgspec.Struct, gc=False):
    path: str = ""
    url: str | None = None
    href: str | None = None
    rel: str | None = None


class _PageMetadata(msgspec.Struct, gc=False):
    name: str | None = None
    property: str | None = None
    content: str | None = None


class _Head(msgspec.Struct, rename="pascal"):
    base: str | None = None


class _FullHead(msgspec.Struct, rename="pascal"):
    base: str | None = None
    link: list[_FullLink] = []
    scripts: list[_FullLink] = []
    metas: list[_PageMetadata] = []


class _Html(msgspec.Struct, rename="pascal"):
    head: _Head | None = None
    links: list[_Link] = []


class _FullHtml(msgspec.Struct, rename="pascal"):
    head: _FullHead | None = None
    links: list[_FullLink] = []


class _Message(msgspec.Struct, rename="pascal"):
    status: str | int = ""


class _Response(msgspec.Struct):
    message: _Message | None = msgspec.field(name="Response-Message", default=None)
    html: _Html | None = msgspec.field(name="HTML-Metadata", default=None)


class _FullResponse(msgspec.Struct):
    message: _Message | None = msgspec.field(name="Response-Message", default=None)
    html: _FullHtml | None = msgspec.field(name="HTML-Metadata", default=None)
    headers: dict[str, str | list[str]] = msgspec.field(name="Headers", default={})


class _Payload(msgspec.Struct, Generic[L]):
    response: L | None = msgspec.field(name="HTTP-Response-Metadata", default=None)


class _WarcHeader(msgspec.Struct):
    kind: str = msgspec.field(name="WARC-Type", default="")
    url: str = msgspec.field(name="WARC-Target-URI", default="")


class _ArcHeader(msgspec.Struct):
    url: str = msgspec.field(name="Target-URI", default="")


class _Envelope(msgspec.Struct, Generic[L]):
    payload: _Payload[L] | None = msgspec.field(name="Payload-Metadata", default=None)
    warc: _WarcHeader | None = msgspec.field(name="WARC-Header-Metadata", default=None)
    arc: _ArcHeader | None = msgspec.field(name="ARC-Header-Metadata", default=None)


class _Wat(msgspec.Struct, Generic[L]):
    envelope: _Envelope[L] | None = msgspec.field(name="Envelope", default=None)


_lean = msgspec.json.Decoder(_Wat[_Response])
_full = msgspec.json.Decoder(_Wat[_FullResponse])

_ANCHORS = ("A@/href", "AREA@/href")


class WatRules(NamedTuple):
    """Rules that select the links among the URLs of a WAT record.

    Attributes
    ----------
    any_status : bool
        Links of pages with any HTTP status count. False: only links of pages with a 2xx status.
    location : bool
        The header ``Location`` is a link.
    exact_schemes : bool
        A text in a ``<meta>`` or a ``<style>`` is a URL only if its scheme is in lower case.
    """

    any_status: bool = False
    location: bool = True
    exact_schemes: bool = False


INLINK, COMMON_CRAWL = WatRules(), WatRules(any_status=True, location=False, exact_schemes=True)
"""The default rules, and the rules of Common Crawl's own graphs."""


def page_of_wat(
    record: Record,
    tally: Tally,
    path: str,
    *,
    links: LinkSet,
    nofollow: bool,
    entities: bool,
    rules: WatRules = INLINK,
) -> RawPage | None:
    """Return the page that a WAT record describes; None if it describes something else.

    Parameters
    ----------
    record : Record
        A metadata record with JSON.
    tally : Tally
        Counts records with invalid UTF-8 or JSON, or without a URL, as damage.
    path : str
        Name of the file, for the tally.
    links, nofollow
        As in :func:`inlink.archives.html.html_links`.
    entities : bool
        Decode HTML entities in URLs; see :func:`written_on`.
    rules : WatRules
        Rules that select the links among a record's URLs.
    """
    body = record.body
    try:
        if not body.isascii():
            # The JSON decoder checks only the texts that it returns.
            body.decode()
        try:
            if links == "a" and nofollow and not rules.any_status:
                page = _anchors(_lean.decode(body), record.offset)
            else:
                page = _full_page(_full.decode(body), record.offset, links, nofollow, rules)
        except (msgspec.DecodeError, RecursionError):
            # The record has another shape or a lone surrogate, or is not JSON.
            page = _full_page(_loose(json.loads(body)), record.offset, links, nofollow, rules)
    except UnicodeError:
        tally.damage(path, record.offset, BAD_TEXT)
        return None
    except (ValueError, RecursionError):
        tally.damage(path, record.offset, BAD_JSON)
        return None
    if page is not None and not page.url:
        tally.damage(path, record.offset, NO_URL)
        return None
    if page is not None and entities:
        base = None if page.base is None else unescape_attribute(page.base)
        return page._replace(base=base, links=[unescape_attribute(link) for link in page.links])
    return page


def _success(message: _Message | None) -> bool:
    return message is None or is_success(str(message.status).encode())


def _url_of(envelope: _Envelope[Any] | None) -> str | None:
    """Return the URL of the response that a record describes; None if it describes something else."""
    if envelope is None:
        return None
    if envelope.warc is not None:
        return envelope.warc.url if envelope.warc.kind.lower() == "response" else None
    if envelope.arc is not None and envelope.payload is not None and envelope.payload.response is not None:
        return envelope.arc.url
    return None


def _anchors(wat: _Wat[_Response], offset: int) -> RawPage | None:
    envelope = wat.envelope
    url = _url_of(envelope)
    if envelope is None or url is None:
        return None
    response = None if envelope.payload is None else envelope.payload.response
    html = None if response is None else response.html
    if response is None or html is None or not _success(response.message):
        return RawPage(url, None, [], [], offset)
    urls = [link.url for link in html.links if link.path in _ANCHORS and link.url is not None]
    return RawPage(url, None if html.head is None else html.head.base, urls, [], offset)


def _full_page(
    wat: _Wat[_FullResponse], offset: int, links: LinkSet, nofollow: bool, rules: WatRules = INLINK
) -> RawPage | None:
    envelope = wat.envelope
    url = _url_of(envelope)
    if envelope is None or url is None:
        return None
    response = None if envelope.payload is None else envelope.payload.response
    response = response or _FullResponse()
    html = (
        response.html if response.html and (rules.any_status or _success(response.message)) else _FullHtml()
    )
    head = html.head or _FullHead()
    headers: dict[str, list[str]] = {}
    for name, value in response.headers.items():
        headers.setdefault(name.lower(), []).extend([value] if isinstance(value, str) else value)
    if not nofollow:
        robots = [meta.content for meta in head.metas if (meta.name or "").strip().lower() == "robots"]
        if any(no_follow(directive) for directive in [*robots, *headers.get("x-robots-tag", [])]):
            return RawPage(url, head.base, [], [], offset)
    kept = [link for link in html.links if nofollow or link.path not in _ANCHORS or not no_follow(link.rel)]
    if links == "a":
        anchors = [link.url for link in kept if link.path in _ANCHORS and link.url is not None]
        return RawPage(url, head.base, anchors, [], offset)
    hrefs = [link.url for link in (*head.link, *head.scripts) if link.url is not None]
    metas = (
        meta_link(meta.property, meta.name, meta.content, exact=rules.exact_schemes) for meta in head.metas
    )
    hrefs += [href for href in metas if href is not None]
    for link in kept:
        hrefs += [link.url] if link.url is not None else absolute([link.href], exact=rules.exact_schemes)
    from_header = header_links(
        headers.get("location", []) if rules.location else [],
        headers.get("content-location", []),
        headers.get("link", []),
    )
    return RawPage(url, head.base, hrefs, from_header, offset)


def _loose(value: object) -> _Wat[_FullResponse]:
    """Convert a record of another shape: numbers instead of texts, single values instead of lists."""
    envelope = _dict(_dict(value).get("Envelope"))
    warc, arc = _dict(envelope.get("WARC-Header-Metadata")), _dict(envelope.get("ARC-Header-Metadata"))
    payload = _dict(envelope.get("Payload-Metadata"))
    response = payload.get("HTTP-Response-Metadata")
    html = _dict(_dict(response).get("HTML-Metadata"))
    head = _dict(html.get("Head"))
    headers = _dict(_dict(response).get("Headers"))
    return _Wat(
        _Envelope(
            payload=_Payload(
                None
                if response is None
                else _FullResponse(
                    _Message(_text(_dict(_dict(response).get("Response-Message")).get("Status")) or ""),
                    _FullHtml(
                        _FullHead(
                            _text(head.get("Base")),
                            [_loose_link(item) for item in _list(head.get("Link"))],
                            [_loose_link(item) for item in _list(head.get("Scripts"))],
                            [
                                _PageMetadata(
                                    *(_text(_dict(item).get(key)) for key in ("name", "property", "content"))
                                )
                                for item in _list(head.get("Metas"))
                            ],
                        ),
                        [_loose_link(item) for item in _list(html.get("Links"))],
                    ),
                    {
                        name: [text for text in map(_text, _list(value)) if text is not None]
                        for name, value in headers.items()
                    },
                )
            ),
            warc=_WarcHeader(_text(warc.get("WARC-Type")) or "", _text(warc.get("WARC-Target-URI")) or "")
            if warc
            else None,
            arc=_ArcHeader(_text(arc.get("Target-URI")) or "") if arc else None,
        )
    )


def _loose_link(value: object) -> _FullLink:
    path, url, href, rel = (_text(_dict(value).get(key)) for key in ("path", "url", "href", "rel"))
    return _FullLink(path or "", url, href, rel)


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else str(value) if isinstance(value, int | float) else None


_STAMP = re.compile(rb"^Software-Info:[^\r\n]*?(20\d{6})\d{6}", re.M)


def written_on(warcinfo: Record) -> str | None:
    """Return the build day of the program that wrote a WAT file, such as ``"20190515"``; None if it is unknown."""
    stamp = _STAMP.search(warcinfo.body)
    return stamp[1].decode("ascii") if stamp else None


_ENTITY = re.compile(r"&(?:#[0-9]{1,10};?|#[xX][0-9a-fA-F]{1,10};?|[a-zA-Z][a-zA-Z0-9]{1,40}+(?:;|(?!=)))")


def unescape_attribute(text: str) -> str:
    """Decode the entities of an HTML attribute, by the HTML Standard's rules for attributes.

    A name without semicolon is an entity only if it is an old one and no ``=``, letter or digit follows:
    ``?a=1&copy=2`` stays as it is.

    Examples
    --------
    >>> unescape_attribute("/?a=1&amp;b=2&copy=3&#38;d")
    '/?a=1&b=2&copy=3&d'
    """
    return _ENTITY.sub(_entity, text) if "&" in text else text


def _entity(match: re.Match[str]) -> str:
    name = match[0]
    return unescape(name) if name[1] == "#" else html5.get(name[1:], name)
