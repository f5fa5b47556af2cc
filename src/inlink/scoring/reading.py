"""Read a fetched page: title, text, links with the words around them, and directives for robots.

HTML is parsed as in :mod:`inlink.archives.html`, so that a crawl and its archive have the same links. Reading a page
finds its head and its links. Its text, and the words of each link, are found in one walk when they are first used,
because most crawls do not use them.

The cost of a page is bounded: :data:`MAX_PAGE` bytes are parsed, :data:`MAX_TEXT` characters of text are kept, and
pages built to slow parsers down are not parsed at all. Links after those characters have no words.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from selectolax.lexbor import LexborHTMLParser, LexborNode

from inlink.archives.html import TANGLED, UNTYPED, decode_html, looks_like_html, no_follow, tangled
from inlink.protocol import PageFacts
from inlink.urls.canonical import Base, canonical

__all__ = ["AROUND", "MAX_PAGE", "MAX_TEXT", "PageLink", "Reading", "read_page"]

MAX_PAGE = 1 << 24
"""Maximum number of bytes of a document that are parsed. It is lower than for archives, because a crawl must not wait
long, and parsing can take 80 bytes of memory a byte."""

MAX_TEXT = 1 << 20
"""Maximum number of characters of text that are kept."""

AROUND = 80
"""Number of characters before a link, and after it, that count as the words around it, cut at the start of a word."""

LONG_PAGE = f"rest of a page beyond {MAX_PAGE:,} bytes"

NOT_TEXT = "content is neither HTML nor text"

_MAX_TITLE = 1000
_NOT_SEEN = frozenset(
    ("head", "script", "style", "noscript", "template", "iframe", "noembed", "noframes", "svg", "math")
)
# <b>J</b>ohn is one word. Any other tag separates words.
_WITHIN_WORDS = (
    "-comment -text a abbr acronym area b bdi bdo big cite code data del dfn em font i img ins kbd mark nobr q s samp"
    " small span strike strong sub sup time tt u var wbr"
)
_WITHIN = frozenset(_WITHIN_WORDS.split())
_HTML_TYPES = frozenset(("", "text/html", "application/xhtml+xml"))
_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([a-zA-Z0-9_:.-]{1,40})""", re.I)
_BOMS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link of a page. Its words are found when they are first used.

    Attributes
    ----------
    url : str
        Its target, in canonical form (:mod:`inlink.urls.canonical`).
    nofollow : bool
        Whether its ``rel`` contains ``nofollow``.
    """

    url: str
    nofollow: bool
    _words: "_Words" = field(repr=False, compare=False)
    _number: int = field(repr=False, compare=False)

    @property
    def place(self) -> str:
        """Its place in the page, one of :data:`inlink.protocol.PLACES`: the innermost part that HTML or ARIA marks."""
        return self._words.place(self._number)

    @property
    def text(self) -> str:
        """The visible text of the link, with the alternative texts of its images."""
        text, spans = self._words.found
        begin, end = spans.get(self._number, (0, 0))
        return text[begin:end].strip()

    @property
    def around(self) -> str:
        """The page's words before and after the link, up to :data:`AROUND` characters each."""
        text, spans = self._words.found
        if self._number not in spans:
            return ""
        begin, end = spans[self._number]
        first, last = max(begin - AROUND, 0), end + AROUND
        before, after = text[first:begin], text[end:last]
        if first and text[first - 1] != " ":
            before = before.partition(" ")[2] or before
        if last < len(text) and text[last] != " ":
            after = after.rpartition(" ")[0] or after
        return f"{before.strip()} {after.strip()}".strip()


@dataclass(frozen=True, slots=True)
class Reading:
    """The data that were read from a page.

    Attributes
    ----------
    url : str
        Its URL, as given.
    title : str
        Its title, white space collapsed.
    canonical : str or None
        The canonical URL that the page names, in its head or in an HTTP ``Link`` header, in canonical form. None if
        it names several, as search engines treat it.
    noindex, nofollow : bool
        Its directives for robots, in its head (``robots`` or ``inlink``) or in ``X-Robots-Tag``.
    problem : str or None
        The reason why all or part of the page was not read, as a fixed phrase that can be counted.
    facts : PageFacts
        The data for an audit, without the nofollow links and the time of the answer.
    """

    url: str
    title: str = ""
    canonical: str | None = None
    noindex: bool = False
    nofollow: bool = False
    problem: str | None = None
    _links: "_Links | None" = field(default=None, repr=False, compare=False)
    facts: PageFacts = field(default=PageFacts(), compare=False)

    @property
    def text(self) -> str:
        """The visible text of the body, with the alternative texts of images. White space is collapsed."""
        return self._links.words.found[0] if self._links else ""

    @property
    def links(self) -> list[PageLink]:
        """Links of ``a`` and ``area`` with ``href``, in the order of the page. Repeated links are repeated here.

        Links to a place on the page itself are left out, unless :func:`read_page` was called with ``self_links``.
        """
        return self._links.found[0] if self._links else []

    @property
    def tree(self) -> LexborHTMLParser | None:
        """The parsed document; None if the page is not HTML, or was not parsed."""
        return self._links.words.tree if self._links else None

    @property
    def refused(self) -> Counter[str]:
        """Number of links left out of :attr:`links`, by reason (not HTTP, not a URL, too long)."""
        return self._links.found[1] if self._links else Counter()


class _Words:
    """The text of a page and the place of each link's text in it, found when first used."""

    def __init__(self, tree: LexborHTMLParser | None, plain: str = "") -> None:
        self.anchors: list[LexborNode] = []
        self.tree, self._plain = tree, plain
        # The place of each element above a link, by its id.
        self._places: dict[int, str] = {}

    def place(self, number: int) -> str:
        """The place of a link in the page. A step to another page or language, by its ``rel``, is in ``nav``."""
        rel = self.anchors[number].attributes.get("rel")
        if rel and not _STEPS.isdisjoint(rel.lower().split()):
            return "nav"
        passed, node = [], self.anchors[number].parent
        while node is not None and node.mem_id not in self._places and (own := _place_of(node)) is None:
            passed.append(node.mem_id)
            node = node.parent
        place = "body" if node is None else self._places.get(node.mem_id) or own or "body"
        self._places.update(dict.fromkeys(passed, place))
        return place

    @cached_property
    def found(self) -> tuple[str, dict[int, tuple[int, int]]]:
        if self.tree is None:
            return " ".join(self._plain.split())[:MAX_TEXT], {}
        return _walk(self.tree, {node.mem_id: k for k, node in enumerate(self.anchors)})


class _Links:
    """The links of a page, resolved when they are first used.

    They refer to :class:`_Words` but not to the reading, so there is no reference cycle: the tree is freed with the
    reading.
    """

    def __init__(self, base: Base | None, words: _Words) -> None:
        self.words, self._base = words, base

    @cached_property
    def found(self) -> tuple[list[PageLink], Counter[str]]:
        links: list[PageLink] = []
        refused: Counter[str] = Counter()
        if self._base is not None:
            anchors = [node.attributes for node in self.words.anchors]
            forms = self._base.forms([anchor.get("href") or "" for anchor in anchors], refused)
            for number, (anchor, url) in enumerate(zip(anchors, forms, strict=True)):
                if url is not None:
                    nofollow = "rel" in anchor and no_follow(anchor["rel"])
                    links.append(PageLink(url, nofollow, self.words, number))
        return links, refused


def read_page(
    body: bytes,
    url: str,
    *,
    content_type: str | None = None,
    charset: str | None = None,
    robots_header: str | Iterable[str] = (),
    link_header: str | Iterable[str] = (),
    self_links: bool = False,
) -> Reading:
    """Read a page.

    Parameters
    ----------
    body : bytes
        The document, with its content encoding (such as gzip) removed.
    url : str
        The URL of the page. Links are resolved against it. If it is not an HTTP URL, there are no links.
    content_type : str or None
        The ``Content-Type`` header. HTML is parsed, and so is ``application/octet-stream`` that begins like HTML. Other
        ``text/*`` has text but no links. Other types are not read, and :attr:`Reading.problem` is set. A document
        without a type, or of ``text/plain``, is not read if it contains null bytes.
    charset : str or None
        The encoding. It takes precedence over header and document, but not over a byte order mark.
    robots_header, link_header : str or iterable of str
        The ``X-Robots-Tag`` and ``Link`` headers.
    self_links : bool
        Keep links to a place on the page itself (``#top``).

    Returns
    -------
    Reading
        The reading. No input raises an exception.

    Examples
    --------
    >>> page = read_page(b"<title>Sea</title><p>Of <a href='/cod#top'>cod</a> and kelp", "https://example.org/")
    >>> page.title, page.text
    ('Sea', 'Of cod and kelp')
    >>> [(link.url, link.text, link.around) for link in page.links]
    [('https://example.org/cod', 'cod', 'Of and kelp')]
    """
    kind, _, parameters = (content_type or "").partition(";")
    kind = kind.strip().lower()
    robots = robots_words(robots_header)
    form = canonical(url)
    named = canonicals_in_header(link_header, form)
    if charset is None and (match := _CHARSET.search(parameters)):
        charset = match[1]
    if kind in UNTYPED and looks_like_html(body):
        kind = "text/html"
    readable = kind in _HTML_TYPES or kind.startswith("text/")
    if kind in ("", "text/plain") and b"\0" in body[:1024] and not body.startswith(_BOMS):
        readable = False
    facts = PageFacts(robots=", ".join(sorted(robots)), content_type=kind, size=len(body))
    if not readable:
        return Reading(url, "", only(named), *asks(robots), NOT_TEXT if body else None, facts=facts)
    problem = LONG_PAGE if len(body) > MAX_PAGE else None
    text = decode_html(body[:MAX_PAGE], charset)
    if kind not in _HTML_TYPES:
        return Reading(url, "", only(named), *asks(robots), problem, _Links(None, _Words(None, text)), facts)
    if tangled(text):
        return Reading(url, "", only(named), *asks(robots), TANGLED, facts=facts)
    tree = LexborHTMLParser(text)
    seen, base = _Words(tree), None
    title, href, canonicals = None, None, []
    heading, headings, language = "", 0, ""
    alternates: list[tuple[str, str]] = []
    insecure: list[str] = []
    secure = form is not None and form.startswith("https:")
    in_head = True
    for node in tree.root.traverse() if tree.root else ():
        tag = node.tag
        if tag == "a" or tag == "area":
            if "href" in node.attrs:
                seen.anchors.append(node)
        elif tag == "body" or tag == "frameset":
            in_head = False
        elif tag == "title" and title is None:
            title = " ".join(node.text()[: 4 * _MAX_TITLE].split())[:_MAX_TITLE]
        elif tag == "base" and href is None:
            if "href" in (attributes := node.attributes):
                href = attributes["href"] or ""
        elif tag == "meta":
            attributes = node.attributes
            if (attributes.get("name") or "").strip().lower() in OUR_NAMES:
                robots.update((attributes.get("content") or "").lower().replace(",", " ").split())
        elif tag == "link" and in_head:
            attributes = node.attributes
            relations, address = (attributes.get("rel") or "").lower().split(), attributes.get("href")
            if address and "canonical" in relations:
                canonicals.append(address)
            elif address and "alternate" in relations and attributes.get("hreflang"):
                alternates.append((attributes["hreflang"] or "", address))
        elif tag == "h1":
            headings += 1
            heading = heading or " ".join(node.text()[: 4 * _MAX_TITLE].split())
        elif tag == "html":
            language = node.attributes.get("lang") or ""
        elif secure and tag in _LOADS:
            source = (node.attributes.get("src") or "").strip()
            if source[:5].lower() == "http:":
                insecure.append(source)
    if form is not None:
        base = Base(form, href, self_links=self_links)
        named.update(base.canonical(address) for address in canonicals)
        alternates = [(code, there) for code, address in alternates if (there := base.canonical(address))]
    facts = PageFacts(
        title=title or "",
        heading=heading,
        headings=headings,
        robots=", ".join(sorted(robots)),
        language=language,
        alternates=alternates,
        canonicals=sorted(address for address in named if address is not None),
        insecure=insecure,
        content_type=kind,
        size=len(body),
    )
    return Reading(url, title or "", only(named), *asks(robots), problem, _Links(base, seen), facts)


_STEPS = frozenset(("alternate", "next", "prev", "previous", "up"))
_LOADS = frozenset(("img", "script", "iframe", "source", "video", "audio", "embed"))
_BY_TAG = {"nav": "nav", "header": "header", "footer": "footer", "aside": "aside", "main": "main"}
_BY_ROLE = {
    "navigation": "nav",
    "menu": "nav",
    "menubar": "nav",
    "banner": "header",
    "contentinfo": "footer",
    "complementary": "aside",
    "main": "main",
}
_BY_NAME = {
    "nav": "nav",
    "navbar": "nav",
    "navigation": "nav",
    "menu": "nav",
    "breadcrumb": "nav",
    "breadcrumbs": "nav",
    "header": "header",
    "navheader": "header",
    "masthead": "header",
    "banner": "header",
    "footer": "footer",
    "navfooter": "footer",
    "sidebar": "aside",
}
_NAME = re.compile(r"[A-Z]?[a-z]+")
_SECTIONS = frozenset(("article", "section", "main"))


def _place_of(node: LexborNode) -> str | None:
    """The place that an element marks by its tag, its role, or a word in its ``id`` or ``class``; None if none.

    A header or footer of an article, a section or the main part is none of the page: see the HTML Standard, 4.3.8.
    """
    attributes, tag = node.attributes, node.tag or ""
    place = _BY_ROLE.get((attributes.get("role") or "").lower()) or _BY_TAG.get(tag)
    if place is None and tag not in ("html", "body"):
        names = f"{attributes.get('id') or ''} {attributes.get('class') or ''}"[:500]
        words = _NAME.findall(names) if len(names) > 1 else ()
        place = next((_BY_NAME[word] for name in words if (word := name.lower()) in _BY_NAME), None)
    if place in ("header", "footer"):
        above = node.parent
        while above is not None:
            if above.tag in _SECTIONS or above.attributes.get("role") == "main":
                return None
            above = above.parent
    return place


def _walk(tree: LexborHTMLParser, numbers: dict[int, int]) -> tuple[str, dict[int, tuple[int, int]]]:
    """Return the text of a page, and where the text of each link begins and ends in it."""
    parts: list[str] = []
    spans: dict[int, tuple[int, int]] = {}
    # `apart`: white space comes before the next text.
    length, apart = 0, False
    node = tree.root
    # For each open element, whether it separates words, and its number if it is a link. A tree may have any depth.
    opened: list[tuple[bool, int | None]] = []
    while node is not None:
        tag, number, child = node.tag or "", None, None
        separates = tag not in _WITHIN
        apart = apart or separates
        if tag == "-text":
            text = node.text_content or ""
        else:
            text = f" {node.attributes.get('alt') or ''} " if tag == "img" or tag == "area" else ""
            if (tag == "a" or tag == "area") and (number := numbers.get(node.mem_id)) is not None:
                spans[number] = (length, MAX_TEXT)
            if tag not in _NOT_SEEN:
                child = node.first_child
        if collapsed := " ".join(text.split()):
            if length and (apart or text[0].isspace()):
                collapsed = " " + collapsed
            parts.append(collapsed)
            length += len(collapsed)
            if length >= MAX_TEXT:
                break
            apart = text[-1].isspace()
        elif text:
            apart = True
        if child is not None:
            opened.append((separates, number))
            node = child
            continue
        following = None
        while True:
            apart = apart or separates
            if number is not None:
                spans[number] = (spans[number][0], length)
            if not opened or (following := node.next) is not None or (above := node.parent) is None:
                break
            node, (separates, number) = above, opened.pop()
        node = following
    return "".join(parts)[:MAX_TEXT], spans


OUR_NAMES = frozenset(("robots", "inlink"))
"""Names of robots that mean inlink."""

_MAX_HEADER = 8192
_WITH_VALUES = frozenset(("max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"))
_LINK = re.compile(r"""<([^<>]*)>\s*((?:;[^;,"<>]*(?:"[^"]*")?)*)""")
_REL = re.compile(r""";\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]*))""", re.I)


def robots_words(header: str | Iterable[str]) -> set[str]:
    """Return the directives of ``X-Robots-Tag`` for all robots and for inlink, in lower case.

    A value may begin with the name of a robot. It then applies only to that robot:
    https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag

    Examples
    --------
    >>> sorted(robots_words(["noarchive, NOFOLLOW", "otherbot: noindex, nosnippet"]))
    ['noarchive', 'nofollow']
    """
    directives: set[str] = set()
    for line in [header] if isinstance(header, str) else header:
        for_us = True
        for part in line[:_MAX_HEADER].lower().split(","):
            name, colon, rest = part.partition(":")
            named = bool(colon) and name.strip() not in _WITH_VALUES
            if named:
                for_us = name.strip() in OUR_NAMES
            if for_us:
                directives.update((rest if named else part).split())
    return directives


def asks(words: set[str]) -> tuple[bool, bool]:
    """Return whether robots are asked not to index, and whether not to follow.

    Examples
    --------
    >>> asks({"none"}), asks({"nofollow", "noarchive"})
    ((True, True), (False, True))
    """
    return not words.isdisjoint(("noindex", "none")), not words.isdisjoint(("nofollow", "none"))


def canonicals_in_header(header: str | Iterable[str], base: str | None) -> set[str | None]:
    """Return the canonical forms of the URLs in ``Link: <…>; rel="canonical"`` (RFC 6596, RFC 8288).

    Parameters
    ----------
    header : str or iterable of str
        The values of the header.
    base : str or None
        The page's URL in canonical form. None: the result is empty.
    """
    canonicals: set[str | None] = set()
    for line in [header] if isinstance(header, str) else header:
        for target, parameters in _LINK.findall(line[:_MAX_HEADER]):
            rel = _REL.search(parameters)
            if rel and "canonical" in (rel[1] or rel[2] or "").lower().split() and base is not None:
                canonicals.add(canonical(target, base))
    return canonicals


def only(named: set[str | None]) -> str | None:
    """Return the URL if exactly one is named, else None. A None in the input stands for a name that is not a URL."""
    urls = [url for url in named if url is not None]
    return urls[0] if len(urls) == 1 else None
