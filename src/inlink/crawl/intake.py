"""Turn a page's links, as they come from a spider, into lines of canonical URLs."""

import re
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from inlink.base.arrays import Float32Array, Int64Array, UInt32Array
from inlink.crawl.arguments import check_texts, checked_score
from inlink.errors import ParameterError
from inlink.protocol import VARIANT, AnyLink, Link
from inlink.store.kernels.frames import encode_links
from inlink.urls.canonical import MAX_LENGTH, Base, UrlRules, canonical, refusal
from inlink.urls.kernels import CLASSES, plain_lines

__all__ = [
    "Carried",
    "apart",
    "canonical_lines",
    "carried_forms",
    "check_canonical",
    "coded",
    "hrefs_and_scores",
    "listed",
    "order_of",
    "to_lines",
    "with_carried",
]


MOST_CARRIED = 1 << 16
"""Maximum number of bytes of data of a link."""


_CANONICAL = re.compile(rb"(?:https?://[!-~]{1,%d}\n)+" % (MAX_LENGTH + 81))
"""Matches lines that may be canonical URLs. The parts of the URLs are not checked."""


class Carried(NamedTuple):
    """A link with data or a variant: its score, its data, its text, and its place among all links."""

    score: float
    data: bytes
    text: str
    place: int


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


def apart(links: Iterable[AnyLink]) -> tuple[list[str | tuple[str, float]], dict[int, Link], list[str]]:
    """Split links into links without data or variant, and links with either.

    Returns
    -------
    plain : list of str or (str, float)
        Links without data or variant.
    carried : dict of int to Link
        Links with either, by their places in ``links``.
    texts : list of str
        The texts of the links in ``plain``; empty if no link there has a text.

    Raises
    ------
    inlink.errors.ParameterError
        If a link has too much data, an invalid variant, or a score that is not finite.
    """
    if type(links) is not list:
        links = listed(links)
    if set(map(type, links)) <= {str}:
        return links, {}, []
    plain: list[str | tuple[str, float]] = []
    carried: dict[int, Link] = {}
    texts: list[str] = []
    for place, link in enumerate(links):
        if isinstance(link, Link):
            _check_link(link)
            if link.data or link.variant:
                carried[place] = link
                continue
            plain.append(link.url if link.score is None else (link.url, link.score))
            texts.append(link.text)
        else:
            plain.append(link)
            texts.append("")
    return plain, carried, texts if any(texts) else []


def _check_link(link: Link) -> None:
    url, score, data, variant = link.url, link.score, link.data, link.variant
    if not (isinstance(data, bytes) and all(isinstance(text, str) for text in (url, variant, link.text))):
        raise ParameterError(
            f"a Link has bytes `data`, and `url`, `variant` and `text` that are str; got {link!r:.200}"
        )
    if len(data) > MOST_CARRIED:
        raise ParameterError(
            f"`data` must have at most {MOST_CARRIED:,} bytes; got {len(data):,} for {url!r}"
        )
    if score is not None:
        checked_score(score, f"the score of {url!r}")
    if not VARIANT.fullmatch(variant):
        raise ParameterError(
            f"`variant` must be at most 80 characters of [A-Za-z0-9.:=_-]; got {variant!r} for {url!r}"
        )


def check_canonical(redirected_to: Any, canonical_link: Any) -> None:
    """Refuse values that are not URLs, or a canonical link that carries too much."""
    if isinstance(canonical_link, Link):
        apart([canonical_link])
        canonical_link = None
    check_texts(redirected_to=redirected_to, canonical_link=canonical_link)


def carried_forms(
    links: Mapping[int, Link],
    page_url: Callable[[], str] | None,
    rules: UrlRules | None,
    refused: MutableMapping[str, int],
    self_links: bool = False,
) -> dict[str, Carried]:
    """Map each canonical URL to its best score, and to the data and the text of the first link to it.

    Links to a place on the page itself are left out, unless ``self_links`` is set or they have a variant.
    """
    base = Base(page_url(), rules=rules, self_links=self_links) if page_url is not None else None
    # A link with a variant stands for a request of its own, such as a form's.
    whole = Base(base.url, rules=rules, self_links=True) if base is not None else None
    usual = 1.0 if base is None else 0.0
    found: dict[str, Carried] = {}
    for place, link in links.items():
        url, variant = link.url, link.variant
        score = usual if link.score is None else link.score
        # Without a page, the links are seeds, and seeds must be absolute.
        if base is None and canonical(url) is None:
            reason = refusal(url) or "link is no valid URL"
            refused[reason] = refused.get(reason, 0) + 1
            continue
        resolver = (whole if variant else base) or Base(url, rules=rules, self_links=True)
        for form in resolver.canonical_links([url], refused):
            key = f"{form}#{variant}" if variant else form
            before = found.get(key)
            found[key] = (
                Carried(score, link.data, link.text, place)
                if before is None
                else before._replace(score=max(score, before.score))
            )
    return found


def hrefs_and_scores(links: Iterable[str | tuple[str, float]]) -> tuple[list[str], Float32Array]:
    """Split links into their targets and their scores.

    A link without a score gets 0. If no link has a score, the array of scores is empty.

    Raises
    ------
    inlink.errors.ParameterError
        If a link is neither a string nor a string with a finite number.
    """
    given = list(links)
    # The check of the types is faster than `all` and is enough for most calls.
    if set(map(type, given)) <= {str} or all(isinstance(link, str) for link in given):
        return given, np.empty(0, np.float32)  # type: ignore[return-value]
    hrefs: list[str] = []
    scores: list[float] = []
    for link in given:
        if isinstance(link, str):
            href, score = link, 0.0
        elif isinstance(link, tuple | list) and len(link) == 2 and isinstance(link[0], str):
            href, score = link[0], checked_score(link[1], f"the score of {link[0]!r}")
        else:
            raise ParameterError(f"a link must be a URL, (URL, number) or a Link; got {link!r:.200}")
        hrefs.append(href)
        scores.append(score)
    return hrefs, np.array(scores, np.float32)


def to_lines(
    hrefs: list[str],
    scores: Float32Array,
    texts: list[str],
    page_url: Callable[[], str],
    rules: UrlRules | None,
    refused: MutableMapping[str, int],
    self_links: bool = False,
    tracked: bool = False,
) -> tuple[bytes, Sequence[int], Float32Array, list[str]]:
    """Return links in canonical form, one a line.

    Parameters
    ----------
    hrefs : list of str
    scores : float32[n] or float32[0]
    texts : list of str, n or none
    page_url : callable
        Returns the URL against which relative links are resolved. It is called only if a link has to be resolved.
    rules : UrlRules or None
    refused : mutable mapping of str to int
        Counts the refused links, by reason.
    self_links : bool
        Whether links to a place on the page itself are kept.
    tracked : bool
        Whether the caller needs ``kept``, not only its length.

    Returns
    -------
    lines : bytes
        The canonical URLs, each followed by a newline.
    kept : sequence of int
        For each line, the place of its link in ``hrefs``.
    scores : float32[count] or float32[0]
        Scores of the links that were kept.
    texts : list of str, count or none
        Texts of the links that were kept.
    """
    count = len(hrefs)
    if not count:
        return b"", (), scores, texts
    lines = "\n".join(hrefs).encode("utf-8", "surrogatepass") + b"\n"
    plain = np.empty(count, np.bool_)
    # This is nearly always true if a link extractor has made the links absolute.
    if rules is None and plain_lines(lines, MAX_LENGTH, CLASSES, plain):
        return lines, range(count), scores, texts
    base = Base(page_url(), rules=rules, self_links=self_links)
    kept: Sequence[int]
    if not len(scores) and not texts and not tracked:
        forms = base.canonical_links(hrefs, refused)
        kept = range(len(forms))
    else:
        forms, kept = [], []
        for k, href in enumerate(hrefs):
            found = base.canonical_links([href], refused)
            forms += found
            kept += [k] * len(found)
        scores = scores[kept] if len(scores) else scores
        texts = [texts[k] for k in kept] if texts else texts
    return ("\n".join(forms) + "\n").encode("ascii") if forms else b"", kept, scores, texts


def canonical_lines(hrefs: list[str]) -> bytes:
    """Return links that the caller declares canonical, one a line, each followed by a newline.

    Raises
    ------
    inlink.errors.ParameterError
        If a link cannot be in canonical form. The check is not complete.
    """
    if not hrefs:
        return b""
    lines = "\n".join(hrefs).encode("utf-8", "surrogatepass") + b"\n"
    if plain_lines(lines, MAX_LENGTH, CLASSES, np.empty(len(hrefs), np.bool_)):
        return lines
    if lines.count(b"\n") != len(hrefs) or not _CANONICAL.fullmatch(lines):
        encoded = [(href, href.encode("utf-8", "replace") + b"\n") for href in hrefs]
        wrong = next(
            href for href, line in encoded if not _CANONICAL.fullmatch(line) or line.count(b"\n") > 1
        )
        raise ParameterError(
            f"links_are_canonical is True, but {wrong!r:.200} is not in canonical form: leave links_are_canonical out"
        )
    return lines


def with_carried(
    lines: bytes, count: int, scores: Float32Array, texts: list[str], more: dict[str, Carried]
) -> tuple[bytes, int, Float32Array, list[str]]:
    """Append links with data or a variant to the result of :func:`to_lines`."""
    if not more:
        return lines, count, scores, texts
    if not len(scores):
        scores = np.zeros(count, np.float32)
    found = np.concatenate([scores, np.array([link.score for link in more.values()], np.float32)])
    texts = (texts or [""] * count) + [link.text for link in more.values()]
    return lines + ("\n".join(more) + "\n").encode("ascii"), count + len(more), found, texts


def order_of(
    kept: Sequence[int], plain: int, carried: Mapping[int, Link], more: Mapping[str, Carried]
) -> Int64Array:
    """The order in which links stood on their page, as places in the result of :func:`with_carried`, int64[n].

    Parameters
    ----------
    kept : sequence of int
        The result of :func:`to_lines`.
    plain : int
        Number of links that :func:`to_lines` got.
    carried, more : mapping
        The other links, and the result of :func:`carried_forms`.
    """
    places = np.delete(np.arange(plain + len(carried)), list(carried))[list(kept)]
    return np.argsort(np.append(places, [link.place for link in more.values()]), kind="stable")


def coded(pages: UInt32Array, scores: Float32Array) -> tuple[int, bytes]:
    """Return the number of distinct pages, and the pages and scores in a frame's encoding; sort both in place."""
    out = np.empty(5 * len(pages) + 4 * len(scores), np.uint8)
    count, size = encode_links(pages, scores, out)
    return int(count), out[: int(size)].tobytes()
