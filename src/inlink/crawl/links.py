"""The links of a page, on their way from the caller to the list of a visit.

:func:`split_links` checks them and splits them into columns. :class:`LinkIntake` joins them with the page's URL, and
gives them pages. One call of a kernel does nearly all of this. Links whose canonical form is not certain are parsed.
"""

import re
from collections.abc import Callable, Container, Iterable, Mapping, MutableMapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from inlink.base.arrays import Float32Array, UInt32Array
from inlink.crawl.arguments import ARGUMENTS
from inlink.errors import ParameterError
from inlink.protocol import LARGEST_SCORE, PLACES, VARIANT, AnyLink, Link
from inlink.store import format as kinds
from inlink.store.anchors import encode_labels
from inlink.store.carried import encode_carried
from inlink.store.format import NO_PAGE
from inlink.store.pages import Pages
from inlink.store.urls import TakenLinks
from inlink.urls.canonical import MAX_LENGTH, NOT_HTTP, Base, UrlRules
from inlink.urls.canonical import canonical as canonical_form
from inlink.urls.classes import byte_classes
from inlink.urls.kernels import AS_THEY_ARE, KEEP_PLACES, MANY_LINES, READY, join_lines

MOST_CARRIED = 1 << 16
"""Maximum number of bytes of data of a link."""

_CANONICAL = re.compile(rf"https?://[!-~]{{1,{MAX_LENGTH + 81}}}")
"""Matches what may be a canonical URL. The parts of the URL are not checked."""

_COLUMNS = attrgetter("url", "score", "data", "variant", "text", "place")
_CODES = {place: code for code, place in enumerate(("", *PLACES))}
_PLACES = frozenset(_CODES)
_VARIANT = re.compile(f"(?:{VARIANT.pattern})?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_SCORES, _NO_PAGES = np.empty(0, np.float32), np.empty(0, np.uint32)
_NO_TEXT = np.empty(0, np.uint8)


def listed(links: Any, what: str = "URLs") -> list[Any]:
    """Return the items of an argument as a list.

    Raises
    ------
    inlink.errors.ParameterError
        If ``links`` is a single text, or not iterable.
    """
    if isinstance(links, str | bytes):
        raise ParameterError(f"{what} must be a list, such as [url]; got the single string {links!r}")
    if not isinstance(links, Iterable):
        raise ParameterError(f"{what} must be a list, such as [url]; got {links!r}")
    return list(links)


class SplitLinks(msgspec.Struct, frozen=True, gc=False):
    """Links of a page, checked.

    ``hrefs`` are their URLs, and ``scores`` their scores (empty if no link has a score, data or a variant). ``texts``
    are their texts, and ``places`` the codes of their places in the page: 0, or 1 + the number of the place. Both are
    empty if no link has a text or a place. ``carried`` are the links with data or a variant, by their positions.
    """

    hrefs: Sequence[str]
    scores: Float32Array
    texts: Sequence[str]
    places: bytes
    carried: dict[int, Link]


def split_links(links: Iterable[AnyLink], default: float = 0.0) -> SplitLinks:
    """Check links, and split them into columns. If only some links have a score, the others get ``default``.

    Raises
    ------
    inlink.errors.ParameterError
        If a link is neither a string, a string with a finite number, nor a Link, or has too much data, an invalid
        variant, or a score that is not finite.
    """
    if type(links) is not list:
        links = listed(links)
    types = set(map(type, links))
    if types <= {str}:
        return SplitLinks(links, _NO_SCORES, (), b"", {})
    # Most lists have links of one type, with usual values. Such lists are checked by column.
    split = None
    if types == {tuple}:
        split = _split_pairs(links)
    elif types <= {Link, str}:
        if str in types:
            links = [Link(link) if type(link) is str else link for link in links]
        split = _split_columns(links, default)
    return _split_each(links, default) if split is None else split


def _split_pairs(links: list[Any]) -> SplitLinks | None:
    """Split pairs of URL and score; return None if one is not usual."""
    if set(map(len, links)) != {2}:
        return None
    hrefs, scores = zip(*links, strict=True)
    column = _column_of(scores, 0.0)
    return (
        None if column is None or set(map(type, hrefs)) != {str} else SplitLinks(hrefs, column, (), b"", {})
    )


def _split_columns(links: list[Any], default: float) -> SplitLinks | None:
    """Split links; return None if one is not usual."""
    hrefs, scores, data, variants, texts, places = zip(*map(_COLUMNS, links), strict=True)
    if set(map(type, (*hrefs, *variants, *texts, *places))) != {str} or set(map(type, data)) != {bytes}:
        return None
    carried: dict[int, Link] = {}
    if set(data) != {b""} or set(variants) != {""}:
        if max(map(len, data)) > MOST_CARRIED or not all(map(_VARIANT.fullmatch, variants)):
            return None
        carried = {place: link for place, link in enumerate(links) if link.data or link.variant}
    column: Float32Array | None = _NO_SCORES
    if carried or set(map(type, scores)) != {type(None)}:
        column = _column_of(scores, default)
    known = set(places)
    if column is None or not known <= _PLACES:
        return None
    if known == {""} and set(texts) == {""}:
        texts, codes = (), b""
    else:
        codes = bytes(map(_CODES.__getitem__, places))
    return SplitLinks(hrefs, column, texts, codes, carried)


def _column_of(scores: Sequence[Any], default: float) -> Float32Array | None:
    """Return scores as a column, with ``default`` for None; None if one is not a usual score."""
    filled = scores if None not in scores else [default if score is None else score for score in scores]
    if set(map(type, filled)) != {float} or not -LARGEST_SCORE < min(filled) <= max(filled) < LARGEST_SCORE:
        return None
    # Depending on its place, a NaN may pass these comparisons.
    return np.array(filled, np.float32) if (total := sum(filled)) == total else None


def _split_each(links: list[Any], default: float) -> SplitLinks:
    """Split links of any form."""
    hrefs: list[str] = []
    scores: list[float | None] = []
    texts: list[str] = []
    codes = bytearray()
    carried: dict[int, Link] = {}
    for place, link in enumerate(links):
        text, code = "", 0
        if isinstance(link, Link):
            check_link(link)
            if link.data or link.variant:
                carried[place] = link
            href, score, text, code = link.url, link.score, link.text, _CODES[link.place or ""]
        elif isinstance(link, str):
            href, score = link, None
        elif isinstance(link, tuple | list) and len(link) == 2 and isinstance(link[0], str):
            href, score = link[0], checked_score(link[1], f"the score of {link[0]!r}")
        else:
            raise ParameterError(f"a link must be a URL, (URL, number) or a Link; got {link!r:.200}")
        hrefs.append(href)
        scores.append(score)
        texts.append(text)
        codes.append(code)
    scored = carried or any(score is not None for score in scores)
    filled = [default if score is None else score for score in scores] if scored else []
    labelled = any(texts) or any(codes)
    column = np.array(filled, np.float32) if scored else _NO_SCORES
    return SplitLinks(hrefs, column, texts if labelled else (), bytes(codes) if labelled else b"", carried)


def check_link(link: Link) -> None:
    """Refuse a link with a value of another type or out of its range."""
    url, score, data, variant = link.url, link.score, link.data, link.variant
    text = link.text
    typed = isinstance(url, str) and isinstance(variant, str) and isinstance(text, str)
    if not (typed and isinstance(data, bytes)):
        raise ParameterError(
            f"a Link has bytes `data`, and `url`, `variant` and `text` that are str; got {link!r:.200}"
        )
    if len(data) > MOST_CARRIED:
        raise ParameterError(
            f"`data` must have at most {MOST_CARRIED:,} bytes; got {len(data):,} for {url!r}"
        )
    if score is not None:
        checked_score(score, f"the score of {url!r}")
    if link.place and link.place not in PLACES:
        raise ParameterError(
            f"`place` must be one of {', '.join(PLACES)}, or empty; got {link.place!r:.80} for {url!r}"
        )
    if variant and not VARIANT.fullmatch(variant):
        raise ParameterError(
            f"`variant` must be at most 80 characters of [A-Za-z0-9.:=_-]; got {variant!r} for {url!r}"
        )


def checked_score(score: Any, place: str = "score") -> float:
    """Return a score as a float."""
    if type(score) is float and abs(score) < LARGEST_SCORE:
        return score
    return float(ARGUMENTS["score"].check(score, place))


class Numbered(msgspec.Struct, frozen=True, gc=False):
    """The links of a page, as its visit lists them.

    ``pages`` are the ``count`` linked pages, increasing, of which ``new`` were unknown before. ``urls`` are the lines
    of the new ones for urls.txt. ``flags`` are those of the event. ``payload`` is the event's payload from the list on;
    ``anchors_size`` of its bytes are texts of links, and ``places`` has a byte for each page if places are known.
    """

    pages: UInt32Array
    count: int
    new: int
    urls: bytes
    flags: int
    payload: bytes
    anchors_size: int = 0
    places: bytes = b""


_NONE = Numbered(_NO_PAGES, 0, 0, b"", 0, b"")


class LinkIntake:
    """Gives the links of pages their canonical form and their pages.

    Parameters
    ----------
    pages : Pages
    rules : UrlRules or None
        Rules beyond the standard for the canonical form.
    self_links : bool
        Whether links to a place on the page itself are kept.
    refused : mutable mapping of str to int
        Counts the refused links, by reason.
    """

    def __init__(
        self, pages: Pages, rules: UrlRules | None, self_links: bool, refused: MutableMapping[str, int]
    ) -> None:
        self._pages, self._rules, self._refused = pages, rules, refused
        self._options = KEEP_PLACES * self_links

    def number(self, links: SplitLinks, page_url: Callable[[], str], *, canonical: bool = False) -> Numbered:
        """Give the links of a page their pages. Unknown URLs become pages.

        Parameters
        ----------
        links : SplitLinks
        page_url : callable
            Returns the URL with which relative links are joined. It is called only if a link needs it.
        canonical : bool
            Whether :meth:`check_canonical` has accepted the links.
        """
        hrefs, scores, carried = links.hrefs, links.scores, links.carried
        if not hrefs:
            return _NONE
        if canonical or carried or self._rules is not None:
            taken = self._taken(links, page_url, canonical)
        else:
            try:
                text = "\n".join(hrefs).encode()
            except UnicodeEncodeError:
                text = _text(hrefs, ())
            taken = self._pages.table.take_links(text, len(hrefs), self._options, scores, page_url)
            if taken.status or taken.foreign:
                taken = self._parsed(links, taken, page_url, {})
        pages, count, new, urls, payload = taken.pages, taken.count, taken.new, taken.urls, taken.coded
        flags, texts = kinds.HAS_SCORES if count and scores is not _NO_SCORES else 0, links.texts
        if not texts and not carried:
            return Numbered(pages, count, new, urls, flags, payload)
        anchors, anchors_size, places = b"", 0, b""
        if texts:
            anchors, anchors_size, places = encode_labels(taken.linked, texts, links.places, pages)
            payload += anchors
            flags |= kinds.HAS_ANCHORS if anchors else 0
        if carried:
            more, data = carried_data(
                self._pages, taken.linked, {place: link.data for place, link in carried.items()}
            )
            payload, flags = payload + data, flags | more
        return Numbered(pages, count, new, urls, flags, payload, anchors_size, places)

    def _taken(self, links: SplitLinks, page_url: Callable[[], str], canonical: bool) -> TakenLinks:
        """Number links that are canonical already, carry data, or have a form by further rules."""
        hrefs, scores, num_links, table = links.hrefs, links.scores, len(links.hrefs), self._pages.table
        if canonical:
            return table.take_links(
                "\n".join((*hrefs, "")).encode("ascii"), num_links, READY, scores, page_url
            )
        variants = {place: link.variant for place, link in links.carried.items() if link.variant}
        taken = None
        if self._rules is None:
            text = _text(hrefs, variants) if variants else _encoded(hrefs)
            taken = table.take_links(text, num_links, self._options, scores, page_url)
        return self._parsed(links, taken, page_url, variants)

    def _parsed(
        self,
        links: SplitLinks,
        taken: TakenLinks | None,
        page_url: Callable[[], str],
        variants: Mapping[int, str],
    ) -> TakenLinks:
        """Parse the links that were not certain, or all links if none was tried, and number all."""
        hrefs, scores, num_links, table = links.hrefs, links.scores, len(links.hrefs), self._pages.table
        if taken is None:
            rows, odd = [b""] * (num_links + 1), list(range(num_links))
        else:
            if taken.status == MANY_LINES:
                # The parser drops newlines too.
                hrefs = [href.replace("\n", "") for href in hrefs]
                text = _text(hrefs, variants)
                taken = table.take_links(text, num_links, self._options, scores, page_url)
            if taken.foreign:
                self._refused[NOT_HTTP] = self._refused.get(NOT_HTTP, 0) + taken.foreign
            if not taken.status:
                return taken
            rows, odd = taken.rows(), taken.odd()
        url, self_links = page_url(), self._options == KEEP_PLACES
        plain = [place for place in odd if place not in variants]
        forms = Base(url, rules=self._rules, self_links=self_links).forms(
            [hrefs[place] for place in plain], self._refused
        )
        for place, form in zip(plain, forms, strict=True):
            rows[place] = (form or "").encode("ascii")
        if variants:
            # A link with a variant stands for a request of its own, such as a form's, perhaps to the page itself.
            whole = Base(url, rules=self._rules, self_links=True)
            forms = whole.forms([hrefs[place] for place in variants], self._refused)
            for (place, variant), form in zip(variants.items(), forms, strict=True):
                rows[place] = f"{form}#{variant}".encode("ascii") if form else b""
        return table.take_links(b"\n".join(rows), num_links, READY, scores, page_url)


def carried_data(pages_of: Pages, linked: UInt32Array, carried: Mapping[int, bytes]) -> tuple[int, bytes]:
    """The flag and the end of a frame of links with data. The first data that a page gets are kept.

    Parameters
    ----------
    pages_of : Pages
    linked : uint32[n]
        The page of each link; NO_PAGE for a link that is left out.
    carried : mapping of int to bytes
        The data of links, by their positions.
    """
    data: dict[int, bytes] = {}
    carriers, pages = pages_of.carriers, linked[list(carried)].tolist()
    for page, content in zip(pages, carried.values(), strict=True):
        if page != NO_PAGE and page not in data and not carriers[page]:
            data[page] = content
    return (kinds.HAS_CARRIED, encode_carried(data)) if data else (0, b"")


def check_canonical(links: SplitLinks) -> None:
    """Check links that the caller declares canonical. Links with data or a variant are left out.

    Raises
    ------
    inlink.errors.ParameterError
        If a link cannot be in canonical form. The check is not complete.
    """
    hrefs = [href for place, href in enumerate(links.hrefs) if place not in links.carried]
    if not hrefs:
        return
    text = "\n".join(hrefs).encode("utf-8", "surrogatepass")
    raw, odd = np.frombuffer(text, np.uint8), np.empty(len(hrefs), np.uint32)
    lines = np.empty(len(text) + 4 * MAX_LENGTH, np.uint8)
    odds, _, _ = join_lines(raw, _NO_TEXT, AS_THEY_ARE, byte_classes(), lines, odd, len(hrefs))
    for href in hrefs if odds < 0 else [hrefs[place] for place in odd[:odds].tolist()]:
        if not _CANONICAL.fullmatch(href):
            raise ParameterError(
                f"links_are_canonical is True, but {href!r:.200} is not in canonical form: "
                "leave links_are_canonical out"
            )


def are_canonical(urls: Sequence[str], rules: UrlRules | None) -> bool:
    """Return whether URLs without variants are in canonical form. Without further rules, this is fast."""
    text = ("\n".join(urls) + "\n").encode("utf-8", "surrogatepass")
    if rules is None and len(urls) == text.count(b"\n"):
        lines, odd = np.empty(2 * len(text) + MAX_LENGTH, np.uint8), np.empty(len(urls), np.uint32)
        raw = np.frombuffer(text, np.uint8)[:-1]
        odds, used, _ = join_lines(raw, _NO_TEXT, KEEP_PLACES, byte_classes(), lines, odd, len(urls))
        if odds == 0 and lines[:used].tobytes() == text:
            return True
    return all(canonical_form(url, None, rules) == url for url in urls)


def _encoded(hrefs: Sequence[str]) -> bytes:
    """The links in UTF-8, with a newline between each two."""
    try:
        return "\n".join(hrefs).encode()
    except UnicodeEncodeError:
        return _text(hrefs, ())


def _text(hrefs: Sequence[str], left_out: Container[int]) -> bytes:
    """The links in UTF-8, with a newline between each two. A space stands for a link that must be parsed."""
    return "\n".join(
        " " if place in left_out or _SURROGATE.search(href) else href for place, href in enumerate(hrefs)
    ).encode()
