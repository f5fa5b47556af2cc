"""Extract links from HTML with a parser of the HTML Standard (lexbor, through selectolax).

The parser decodes entities, repairs broken markup, and finds no links in comments and scripts. Attributes are returned
as written; :class:`inlink.urls.canonical.Base` resolves them and cuts off white space and fragments.

There are two sets of links:

``"a"``
    Links that a visitor can follow: ``a`` and ``area`` with ``href``.
``"all"``
    Links that Common Crawl's WAT extractor records and its graphs use: also images, scripts, styles, frames, forms,
    ``link``, ``cite``, backgrounds, URLs in ``meta``, in ``onclick`` and in ``<style>``. The tables below follow
    ``ExtractingParseObserver`` of ia-web-commons and the selection of cc-pyspark.
"""

import codecs
import re
from collections.abc import Iterable
from functools import cache
from typing import Literal, NamedTuple

from selectolax.lexbor import LexborHTMLParser

LinkSet = Literal["a", "all"]

MAX_DOCUMENT = 1 << 26
"""The largest number of bytes of a document that are parsed. A million links take about 50 MB."""

TANGLED = "page whose HTML would take too long to parse (too many nested tags or attributes)"

# The attributes of each tag that hold a link.
_ALL = {
    "a": ("href",),
    "applet": ("codebase",),
    "area": ("href",),
    "audio": ("src",),
    "blockquote": ("cite",),
    "button": ("formaction",),
    "del": ("cite",),
    "embed": ("src",),
    "form": ("action",),
    "frame": ("src",),
    "iframe": ("src",),
    "img": ("src", "longdesc"),
    "input": ("src", "formaction"),
    "ins": ("cite",),
    "link": ("href",),
    "menuitem": ("icon",),
    "object": ("codebase", "data"),
    "q": ("cite",),
    "script": ("src",),
    "source": ("src",),
    "track": ("src",),
    "video": ("src", "poster"),
}
_ANY_TAG = ("background", "data-href", "data-uri")
_SELECT_A = "a[href],area[href]"
_SELECT_ALL = ",".join(
    [f"{tag}[{name}]" for tag, names in _ALL.items() for name in names] + [f"[{name}]" for name in _ANY_TAG]
)
_META_PROPERTIES = {
    *("og:url", "og:image", "og:image:secure_url", "og:video", "og:video:url", "og:video:secure_url"),
    *("twitter:url", "twitter:image:src"),
}
_META_NAMES = {
    *("twitter:image", "thumbnail", "application-url"),
    *("msapplication-starturl", "msapplication-TileImage", "vb_meta_bburl"),
}
_ABSOLUTE = re.compile(r"(?:https?:)?//", re.I | re.A)
_ABSOLUTE_EXACT = re.compile(r"(?:https?:)?//")
_ON_CLICK = (
    re.compile(
        r"(?:javascript:)?(?:(?:window|top|document|self|parent)\.)?location(?:\.href)?\s*=\s*'([^'\"]{3,256})'\Z",
        re.I,
    ),
    re.compile(
        r"(?:javascript:)?(?:window|parent)\.open\((?:'([^\"']{3,256})'|\"([^\"']{3,256})\")[,)]", re.I
    ),
)
_STYLE_URL = re.compile(r"""url\s*\(\s*["']?([^)\s"']{1,8000})["']?\s*\)|@import\s+["']([^"']{1,8000})["']""")
_STYLE_CHARS = 100_000


class HtmlLinks(NamedTuple):
    """The links of a document.

    Attributes
    ----------
    base : str or None
        The first ``<base href>``.
    links : list of str
        Links as written, with entities decoded. Repeated links are repeated here. An ``<a>`` that is still open
        where a block or another link begins may be repeated too, as it is in the tree of the standard.
    """

    base: str | None
    links: list[str]


def html_links(
    document: bytes, *, links: LinkSet = "a", nofollow: bool = True, charset: str | None = None
) -> HtmlLinks | None:
    """Extract the links of an HTML document.

    Parameters
    ----------
    document : bytes
        The document. Bytes beyond :data:`MAX_DOCUMENT` are not read.
    links : {"a", "all"}
        The set of links; see the module.
    nofollow : bool
        Keep links with ``rel=nofollow`` and those of a page whose ``<meta name=robots>`` says ``nofollow`` or
        ``none``, as Common Crawl does. False leaves them out; in the second case, all links of the page.
    charset : str or None
        The encoding named in the HTTP header.

    Returns
    -------
    HtmlLinks or None
        None for a document built to slow parsers down: the HTML Standard's algorithm takes time and memory quadratic
        in nesting, in unclosed formatting tags and in the attributes of one tag (14 kB can fill 375 MB).
    """
    text = decode_html(document[:MAX_DOCUMENT], charset)
    if tangled(text):
        return None
    tree = LexborHTMLParser(text)
    node = tree.css_first("base[href]")
    base = None if node is None else node.attributes.get("href")
    if not nofollow and any(
        no_follow(meta.attributes.get("content"))
        for meta in tree.css("meta[name][content]")
        if (meta.attributes["name"] or "").strip().lower() == "robots"
    ):
        return HtmlLinks(base, [])
    if links == "all":
        return HtmlLinks(base, _all_links(tree, nofollow))
    nodes = tree.css(_SELECT_A)
    if not nofollow:
        nodes = [node for node in nodes if not no_follow(node.attributes.get("rel"))]
    # The selector also matches an SVG's xlink:href, which is not a link here.
    attributes = [node.attributes for node in nodes]
    return HtmlLinks(base, [each["href"] or "" for each in attributes if "href" in each])


def no_follow(value: object) -> bool:
    """Return whether a ``rel`` attribute, or a directive for robots, asks not to follow links.

    Examples
    --------
    >>> no_follow("ugc NoFollow"), no_follow("noindex,nofollow"), no_follow("none"), no_follow("follow")
    (True, True, True, False)
    """
    if not isinstance(value, str):
        return False
    words = value.lower().replace(",", " ").split()
    return "nofollow" in words or words == ["none"]


def _all_links(tree: LexborHTMLParser, nofollow: bool) -> list[str]:
    urls: list[str | None] = []
    # The tree returns a node once for each selector that it matches.
    nodes = {node.mem_id: node for node in tree.css(_SELECT_ALL)}
    for node in nodes.values():
        attributes, tag = node.attributes, node.tag or ""
        if not nofollow and tag in ("a", "area") and no_follow(attributes.get("rel")):
            continue
        names = (*_ALL.get(tag, ()), *_ANY_TAG)
        urls += [attributes[name] or "" for name in names if name in attributes]
    for node in tree.css("meta[content]"):
        urls += [meta_link(*(node.attributes.get(key) for key in ("property", "name", "content")))]
    for node in tree.css("div[onclick],input[onclick]"):
        for pattern in _ON_CLICK:
            match = pattern.match(node.attributes["onclick"] or "")
            urls += [group for group in match.groups() if group] if match else []
    for node in tree.css("style"):
        for pair in _STYLE_URL.findall(node.text()[:_STYLE_CHARS]):
            urls += absolute(pair)
    return [link for link in urls if link is not None]


def absolute(hrefs: Iterable[object], *, exact: bool = False) -> list[str]:
    """Return the URLs that begin with ``http://``, ``https://`` or ``//``; with `exact`, in lower case."""
    pattern = _ABSOLUTE_EXACT if exact else _ABSOLUTE
    return [href for href in hrefs if isinstance(href, str) and pattern.match(href)]


def meta_link(
    property: object = None, name: object = None, content: object = None, *, exact: bool = False
) -> str | None:
    """Return the link in a ``<meta>`` tag, recognised by property, name or content; None if there is none."""
    if not isinstance(content, str):
        return None
    if property in _META_PROPERTIES or name in _META_NAMES or absolute([content], exact=exact):
        return content
    return None


UNTYPED = frozenset(("application/octet-stream", "binary/octet-stream", "application/x-unknown-content-type"))
"""Content types without a meaning: servers send them for files whose type they do not know."""

_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--.{0,1000}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b",
    re.I | re.S,
)


def looks_like_html(document: bytes) -> bool:
    r"""Return whether a document of unknown type begins as HTML does: with its doctype, ``html``, ``head`` or ``body``.

    Examples
    --------
    >>> looks_like_html(b"\n<!DOCTYPE html><p>x"), looks_like_html(b"PK\x03\x04<html>")
    (True, False)
    """
    return _START.match(document[:4096]) is not None


# Encodings: https://encoding.spec.whatwg.org/ and https://html.spec.whatwg.org/#determining-the-character-encoding

_META_CHARSET = re.compile(rb"""<meta[^>]{1,500}?charset\s*=\s*["']?\s*([a-zA-Z0-9_:.-]{1,40})""", re.I)
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# The encoding that browsers use if a page names the first one.
_SUPERSETS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
}
# Python's other codecs are not encodings of pages. Some are not encodings of text at all.
_KNOWN = re.compile(
    r"utf-8|utf-16(-[lb]e)?|cp(125\d|866|874|932|949)|iso8859-\d+|koi8-[ru]|euc_jp|iso2022_jp|gb18030|big5hkscs"
    r"|mac-(roman|cyrillic)"
)


def decode_html(document: bytes, charset: str | None = None) -> str:
    """Decode a document. Bytes that cannot be decoded become U+FFFD.

    The encoding is that of the byte order mark, else of the HTTP header (`charset`), else of a ``<meta>`` in the first
    4,096 bytes. If none of them names a known encoding, UTF-8 is tried, and windows-1252 if the bytes are not UTF-8.
    """
    for bom, name in _BOMS:
        if document.startswith(bom):
            return document[len(bom) :].decode(name, "replace")
    encoding = _encoding(charset)
    if encoding is None:
        match = _META_CHARSET.search(document[:4096])
        encoding = _encoding(match[1].decode("ascii")) if match else None
        if encoding is not None and encoding.startswith("utf-16"):
            # The <meta> itself could not have been read in UTF-16.
            encoding = "utf-8"
    if encoding is not None:
        return document.decode(encoding, "replace")
    try:
        return document.decode()
    except UnicodeDecodeError:
        return document.decode("cp1252", "replace")


def _encoding(label: str | None) -> str | None:
    try:
        name = codecs.lookup((label or "").strip()).name
    except (LookupError, ValueError):
        # The label is unknown, or contains a null byte.
        return None
    name = _SUPERSETS.get(name, name)
    return name if _KNOWN.fullmatch(name) else None


# Documents that would take a parser too long.

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]{0,20})")
# Tags that are void, or closed by the next tag of their kind.
_NO_NESTING = re.compile(
    r"(?i:area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr"
    r"|a|p|li|dt|dd|tr|td|th|thead|tbody|tfoot|option|optgroup|html|head|body)"
)
_FORMATTING = re.compile(r"(?i:b|big|code|em|font|i|s|small|strike|strong|tt|u|nobr)")
_FORMATTING_TAG = re.compile(rf"<{_FORMATTING.pattern}(?![a-zA-Z0-9])")
_DEEPEST, _MOST_FORMATTED = 1_000_000_000, 5_000_000


@cache
def _crowded() -> re.Pattern[str]:
    """Return the pattern of a tag with a thousand attributes. It takes 15 ms to compile, and few documents need it."""
    # The quantifiers are possessive, so there is no backtracking.
    return re.compile(
        r"""<[a-zA-Z][^\s/>]*+(?:[\s/]++(?:[^\s/>=]++(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>]*+))?+)?+){1000}"""
    )


def tangled(text: str) -> bool:
    """Return whether parsing a document would take seconds.

    Measured: 5 ns for each tag and level above it, and 350 bytes for each tag and unclosed formatting tag before it.
    """
    if len(text) > 100_000 and _crowded().search(text):
        return True
    signs = text.count("<")
    # The number of tags bounds the depth. The count below takes longer than parsing, and few documents need it.
    if signs * signs <= _MOST_FORMATTED or (
        signs * signs <= _DEEPEST and signs * len(_FORMATTING_TAG.findall(text)) <= _MOST_FORMATTED
    ):
        return False
    unclosed: dict[str, int] = {}
    most: dict[str, int] = {}
    tags = _TAG.findall(text)
    for slash, name in tags:
        if slash:
            if unclosed.get(name, 0):
                unclosed[name] -= 1
        else:
            unclosed[name] = count = unclosed.get(name, 0) + 1
            if count > most.get(name, 0):
                most[name] = count
    depth = sum(count for name, count in most.items() if not _NO_NESTING.fullmatch(name))
    formatting = sum(count for name, count in most.items() if _FORMATTING.fullmatch(name))
    return depth * len(tags) > _DEEPEST or formatting * len(tags) > _MOST_FORMATTED
