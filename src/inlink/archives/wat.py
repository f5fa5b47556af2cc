"""Pages from WAT records: the JSON that Common Crawl's extractor writes about each response.

A record describes one record of the WARC file. For a response it holds the headers and every link that
``ExtractingParseObserver`` of ia-web-commons found, as ``TAG@/attribute`` and the URL as written. Only the needed
fields are decoded, into typed structs (msgspec). A record of another shape is decoded in full and
searched (:func:`_loose`).

Real files have records without ``Links``, empty link objects, repeated headers as lists (since CC-MAIN-2024-51),
numbers as strings, and, if written before July 2019, URLs with HTML entities.
"""

import json
import re
from html import unescape
from html.entities import html5
from typing import Any, NamedTuple, get_args, get_origin

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


class _Link(msgspec.Struct, gc=False):
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
    link: list[_Link] = []
    scripts: list[_Link] = []
    metas: list[_PageMetadata] = []


class _Html(msgspec.Struct, rename="pascal"):
    head: _Head | None = None
    links: list[_Link] = []


class _Message(msgspec.Struct, rename="pascal"):
    status: str | int = ""


class _Response(msgspec.Struct):
    message: _Message | None = msgspec.field(name="Response-Message", default=None)
    html: _Html | None = msgspec.field(name="HTML-Metadata", default=None)
    headers: dict[str, str | list[str]] = msgspec.field(name="Headers", default={})


class _Payload(msgspec.Struct):
    response: _Response | None = msgspec.field(name="HTTP-Response-Metadata", default=None)


class _WarcHeader(msgspec.Struct):
    kind: str = msgspec.field(name="WARC-Type", default="")
    url: str = msgspec.field(name="WARC-Target-URI", default="")


class _ArcHeader(msgspec.Struct):
    url: str = msgspec.field(name="Target-URI", default="")


class _Envelope(msgspec.Struct):
    payload: _Payload | None = msgspec.field(name="Payload-Metadata", default=None)
    warc: _WarcHeader | None = msgspec.field(name="WARC-Header-Metadata", default=None)
    arc: _ArcHeader | None = msgspec.field(name="ARC-Header-Metadata", default=None)


class _Wat(msgspec.Struct):
    envelope: _Envelope | None = msgspec.field(name="Envelope", default=None)


_decoder = msgspec.json.Decoder(_Wat)

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
            wat = _decoder.decode(body)
        except (msgspec.DecodeError, RecursionError):
            # The record has another shape or a lone surrogate, or is not JSON.
            wat = _loose(_Wat, _dict(json.loads(body)))
        page = _page(wat, record.offset, links, nofollow, rules)
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


def _page(wat: _Wat, offset: int, links: LinkSet, nofollow: bool, rules: WatRules) -> RawPage | None:
    """Return the page of a decoded record; None if the record describes something else."""
    envelope = wat.envelope or _Envelope()
    response = None if envelope.payload is None else envelope.payload.response
    header: _WarcHeader | _ArcHeader | None = envelope.warc
    is_page = envelope.warc is not None and envelope.warc.kind.lower() == "response"
    if header is None:
        header, is_page = envelope.arc, response is not None
    if header is None or not is_page:
        return None
    url = header.url
    response = response or _Response()
    succeeded = response.message is None or is_success(str(response.message.status).encode())
    html = response.html if response.html and (rules.any_status or succeeded) else _Html()
    head = html.head or _Head()
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


def _loose(kind: Any, value: dict[str, Any]) -> Any:
    """Convert a record of another shape to a struct: numbers instead of texts, single values instead of lists."""
    fields: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        item, (inner, *_) = value.get(field.encode_name), get_args(field.type) or (str,)
        several = item if isinstance(item, list) else [] if item is None else [item]
        if get_origin(field.type) is list:
            fields[field.name] = [_loose(inner, _dict(each)) for each in several]
        elif get_origin(field.type) is dict:
            fields[field.name] = {name: _texts(texts) for name, texts in _dict(item).items()}
        elif inner is str:
            if texts := [] if isinstance(item, list) else _texts(item):
                fields[field.name] = texts[0]
        elif isinstance(item, dict):
            fields[field.name] = _loose(inner, item)
    return kind(**fields)


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [str(text) for text in values if isinstance(text, str | int | float)]


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


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
