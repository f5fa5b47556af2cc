"""A page's links as they come from a spider, made into lines of canonical URLs."""

import re
from collections.abc import Callable, Iterable, MutableMapping
from typing import SupportsFloat, SupportsIndex

import numpy as np

from inlink.base.arrays import Float32Array, UInt32Array
from inlink.errors import ParameterError
from inlink.protocol import LARGEST_SCORE, AnyLink, Link
from inlink.store.kernels.frames import encode_links
from inlink.urls.canonical import MAX_LENGTH, Base, UrlRules, canonical, refusal
from inlink.urls.hosts import registered_domain
from inlink.urls.kernels import CLASSES, plain_lines

__all__ = [
    "apart",
    "carried_forms",
    "check_answer",
    "coded",
    "hrefs_and_scores",
    "same_domain",
    "to_lines",
    "with_carried",
]


MOST_CARRIED = 1 << 16
"""Bytes that a link may carry."""

_VARIANT = re.compile(r"[A-Za-z0-9.:=_-]{0,80}")


def apart(links: Iterable[AnyLink]) -> tuple[list[str | tuple[str, float]], list[Link]]:
    """Split links into those without data or variant, and those with either.

    Raises
    ------
    inlink.errors.ParameterError
        If a link has too much data, an invalid variant, or a score that is not finite.
    """
    if isinstance(links, str | bytes):
        raise ParameterError(f"several URLs are wanted, as [url]; got the one text {links!r}")
    links = list(links)
    if set(map(type, links)) <= {str}:
        return links, []  # type: ignore[return-value]
    plain: list[str | tuple[str, float]] = []
    carried: list[Link] = []
    for link in links:
        if isinstance(link, Link):
            _check_link(link)
            if link.data or link.variant:
                carried.append(link)
            else:
                plain.append(link.url if link.score is None else (link.url, link.score))
        else:
            plain.append(link)
    return plain, carried


def _check_link(link: Link) -> None:
    url, score, data, variant = link.url, link.score, link.data, link.variant
    if not (isinstance(url, str) and isinstance(data, bytes) and isinstance(variant, str)):
        raise ParameterError(f"a Link has a str `url`, bytes `data` and a str `variant`; got {link!r}")
    if len(data) > MOST_CARRIED:
        raise ParameterError(
            f"`data` must have at most {MOST_CARRIED:,} bytes; got {len(data):,} for {url!r}"
        )
    finite = score is None or (isinstance(score, SupportsFloat) and abs(float(score)) < LARGEST_SCORE)
    if not finite or not _VARIANT.fullmatch(variant):
        raise ParameterError(
            f"`variant` must be at most 80 characters of [A-Za-z0-9.:=_-] and `score` finite;"
            f" got {variant!r} and {score!r} for {url!r}"
        )


def carried_forms(
    links: list[Link],
    page_url: Callable[[], str] | None,
    rules: UrlRules | None,
    refused: MutableMapping[str, int],
) -> dict[str, tuple[float, bytes]]:
    """Map each canonical URL to its best score and to the data of the first link to it."""
    base = Base(page_url(), rules=rules) if page_url is not None else None
    usual = 1.0 if base is None else 0.0
    found: dict[str, tuple[float, bytes]] = {}
    for link in links:
        url, variant = link.url, link.variant
        score = usual if link.score is None else link.score
        if base is None and canonical(url) is None:  # seeds are absolute
            reason = refusal(url) or "link is no valid URL"
            refused[reason] = refused.get(reason, 0) + 1
            continue
        for form in (base or Base(url, rules=rules)).canonical_links([url], refused):
            key = f"{form}#{variant}" if variant else form
            before = found.get(key)
            found[key] = (score, link.data) if before is None else (max(score, before[0]), before[1])
    return found


def hrefs_and_scores(links: Iterable[str | tuple[str, float]]) -> tuple[list[str], Float32Array]:
    """Links apart: what they point to, and scores where any has one (0 for those that have none).

    Raises
    ------
    inlink.errors.ParameterError
        If one is neither a string nor a string with a finite number.
    """
    given = list(links)
    if set(map(type, given)) <= {str} or all(isinstance(one, str) for one in given):  # quicker than all alone
        return given, np.empty(0, np.float32)  # type: ignore[return-value]
    hrefs, scores = [], []
    for one in given:
        if isinstance(one, str):
            href, score = one, 0.0
        else:
            try:
                href, score = one
                score = float(score)
            except (TypeError, ValueError):
                raise ParameterError(
                    f"a link must be a text, (text, number) or a Link; got {one!r}"
                ) from None
            if not isinstance(href, str) or not abs(score) < LARGEST_SCORE:
                raise ParameterError(f"a link must be a text, (text, finite number) or a Link; got {one!r}")
        hrefs.append(href)
        scores.append(score)
    return hrefs, np.array(scores, np.float32)


def to_lines(
    hrefs: list[str],
    scores: Float32Array,
    page_url: Callable[[], str],
    rules: UrlRules | None,
    refused: MutableMapping[str, int],
    canonical: bool = False,
) -> tuple[bytes, int, Float32Array]:
    """Links in canonical form, one a line.

    Parameters
    ----------
    hrefs : list of str
    scores : float32[n] or float32[0]
    page_url : callable
        Tells what relative links are resolved against, if one has to be.
    rules : UrlRules or None
    refused : mutable mapping of str to int
        Counts what is refused, by reason.
    canonical : bool
        They are in canonical form already.

    Returns
    -------
    lines : bytes
        A newline behind each.
    count : int
        How many.
    scores : float32[count] or float32[0]
        Of those that are left.
    """
    count = len(hrefs)
    if not count:
        return b"", 0, scores
    lines = "\n".join(hrefs).encode("utf-8", "surrogatepass") + b"\n"
    if canonical and lines.count(b"\n") == count:
        return lines, count, scores
    plain = np.empty(count, np.bool_)
    if rules is None and plain_lines(lines, MAX_LENGTH, CLASSES, plain):
        return lines, count, scores  # nearly always, where a link extractor has made them absolute
    base = Base(page_url(), rules=rules)
    if not len(scores):
        forms = base.canonical_links(hrefs, refused)
    else:
        forms, kept = [], []
        for k, href in enumerate(hrefs):
            found = base.canonical_links([href], refused)
            forms += found
            kept += [k] * len(found)
        scores = scores[kept]
    return ("\n".join(forms) + "\n").encode("ascii") if forms else b"", len(forms), scores


def with_carried(
    lines: bytes, count: int, scores: Float32Array, more: dict[str, tuple[float, bytes]]
) -> tuple[bytes, int, Float32Array]:
    """The lines, count and scores of :func:`to_lines`, links that carry something behind them."""
    if not more:
        return lines, count, scores
    if not len(scores):
        scores = np.zeros(count, np.float32)
    found = np.concatenate([scores, np.array([score for score, _ in more.values()], np.float32)])
    return lines + ("\n".join(more) + "\n").encode("ascii"), count + len(more), found


def coded(pages: UInt32Array, scores: Float32Array) -> tuple[int, bytes]:
    """Pages and their scores as a frame holds them, and how many; sorts both in place, each page once."""
    out = np.empty(5 * len(pages) + 4 * len(scores), np.uint8)
    count, size = encode_links(pages, scores, out)
    return int(count), out[: int(size)].tobytes()


def same_domain(one: str, other: str) -> bool:
    """Whether two canonical URLs have the same host or registered domain."""
    hosts = [url.split("/", 3)[2].partition(":")[0] for url in (one, other)]
    domains = [registered_domain(host) for host in hosts]
    return hosts[0] == hosts[1] or (domains[0] is not None and domains[0] == domains[1])


def check_answer(score: float, status: int, content_hash: bytes) -> None:
    """Refuse values that no answer can have, before anything is changed.

    Raises
    ------
    inlink.errors.ParameterError
        If the score is not a finite number, the status no HTTP status, or the hash not bytes.
    """
    usual = type(score) is float and type(status) is int and type(content_hash) is bytes
    if usual and abs(score) < LARGEST_SCORE and 0 <= status <= 999:
        return  # quicker than to ask for protocols
    if not isinstance(score, SupportsFloat) or not abs(float(score)) < LARGEST_SCORE:
        raise ParameterError(f"score must be a finite number; got {score!r}")
    if not isinstance(status, SupportsIndex) or not 0 <= int(status) <= 999:
        raise ParameterError(f"status must be an HTTP status from 0 to 999; got {status!r}")
    if not isinstance(content_hash, bytes | bytearray | memoryview):
        raise ParameterError(f"content_hash must be bytes; got {type(content_hash).__name__}")
