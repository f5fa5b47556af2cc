"""Pages from WAT records: the JSON that Common Crawl's extractor writes about each response.

A record describes one record of the WARC file. For a response it holds the headers and every link that
``ExtractingParseObserver`` of ia-web-commons found, as ``TAG@/attribute`` and the URL as written. The scanner
(:mod:`inlink.archives.scanner`) reads most records faster.

Real files have records without ``Links``, empty link objects, repeated headers as lists (since CC-MAIN-2024-51),
numbers as strings, and, if written before July 2019, URLs with HTML entities.
"""

import json
import re
from html import unescape
from html.entities import html5
from typing import Any, NamedTuple

import msgspec

from inlink.archives.html import LinkSet, absolute, meta_link, no_follow
from inlink.archives.records import Record
from inlink.archives.warc import RawPage, header_links, is_success
from inlink.base.damage import Tally

BAD_TEXT = "WAT record that is not valid UTF-8"
BAD_JSON = "WAT record whose JSON is invalid"
NO_URL = "WAT record of a response without a URL"

ENTITIES_UNTIL = "20190708"
"""The day on which ia-web-commons began to decode entities. URLs in older WAT files contain ``&amp;``."""


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
            wat = msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError):
            # The record has a lone surrogate, or is not JSON.
            wat = json.loads(body)
        page = _page(_dict(wat), record.offset, links, nofollow, rules)
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


def _page(
    wat: dict[str, Any], offset: int, links: LinkSet, nofollow: bool, rules: WatRules
) -> RawPage | None:
    """Return the page of a decoded record; None if the record describes something else."""
    envelope = _dict(wat.get("Envelope"))
    response = _dict(envelope.get("Payload-Metadata")).get("HTTP-Response-Metadata")
    warc, arc = envelope.get("WARC-Header-Metadata"), envelope.get("ARC-Header-Metadata")
    if isinstance(warc, dict):
        url, is_page = _text(warc, "WARC-Target-URI"), (_text(warc, "WARC-Type") or "").lower() == "response"
    else:
        url, is_page = _text(_dict(arc), "Target-URI"), isinstance(arc, dict) and isinstance(response, dict)
    if not is_page:
        return None
    url, response = url or "", _dict(response)
    status = _text(_dict(response.get("Response-Message")), "Status") or ""
    counts = rules.any_status or is_success(status.encode())
    html = _dict(response.get("HTML-Metadata")) if counts else {}
    head = _dict(html.get("Head"))
    base, metas = _text(head, "Base"), _dicts(head, "Metas")
    headers: dict[str, list[str]] = {}
    for name, value in _dict(response.get("Headers")).items():
        headers.setdefault(name.lower(), []).extend(_texts(value))
    if not nofollow:
        robots = [
            _text(meta, "content")
            for meta in metas
            if (_text(meta, "name") or "").strip().lower() == "robots"
        ]
        if any(no_follow(directive) for directive in [*robots, *headers.get("x-robots-tag", [])]):
            return RawPage(url, base, [], [], offset)
    kept = []
    for link in _dicts(html, "Links"):
        anchor = _text(link, "path") in _ANCHORS
        if (anchor or links == "all") and (nofollow or not anchor or not no_follow(_text(link, "rel"))):
            kept.append(link)
    if links == "a":
        return RawPage(
            url, base, [href for link in kept if (href := _text(link, "url")) is not None], [], offset
        )
    hrefs = [_text(link, "url") for link in (*_dicts(head, "Link"), *_dicts(head, "Scripts"))]
    for meta in metas:
        texts = (_text(meta, key) for key in ("property", "name", "content"))
        hrefs.append(meta_link(*texts, exact=rules.exact_schemes))
    for link in kept:
        href = _text(link, "url")
        hrefs += [href] if href is not None else absolute([_text(link, "href")], exact=rules.exact_schemes)
    from_header = header_links(
        headers.get("location", []) if rules.location else [],
        headers.get("content-location", []),
        headers.get("link", []),
    )
    return RawPage(url, base, [href for href in hrefs if href is not None], from_header, offset)


def _text(value: dict[str, Any], key: str) -> str | None:
    """Return a field as text, also if it is a number; None if it is neither."""
    item = value.get(key)
    return item if isinstance(item, str) else str(item) if isinstance(item, int | float) else None


def _dicts(value: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return a field that is a list of objects, also if it is a single one."""
    item = value.get(key)
    return [_dict(each) for each in (item if isinstance(item, list) else [] if item is None else [item])]


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
