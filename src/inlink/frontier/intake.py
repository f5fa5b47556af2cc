"""A page's links as they come from a spider, made into lines of canonical URLs."""

import re
from collections.abc import Callable, Iterable, MutableMapping
from typing import NamedTuple, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt

from inlink.errors import ParameterError
from inlink.store.kernels.frames import encode_links
from inlink.urls.canonical import MAX_LENGTH, Base, UrlRules, canonical, refusal
from inlink.urls.hosts import registered_domain
from inlink.urls.kernels import CLASSES, plain_lines

__all__ = [
    "CarriedLink",
    "Link",
    "apart",
    "carried_forms",
    "check_answer",
    "coded",
    "hrefs_and_scores",
    "same_domain",
    "to_lines",
    "with_carried",
]

F32 = npt.NDArray[np.float32]

MOST_CARRIED = 1 << 16  # bytes
_VARIANT = re.compile(r"[A-Za-z0-9.:=_-]{0,80}")


class CarriedLink(NamedTuple):
    """A link that carries something: bytes that the lease of its page gives back.

    Parameters
    ----------
    url : str
        Absolute, or relative to the page that it stands on.
    score : float
    data : bytes
        At most 65,536. What the first link to a page carried is kept.
    variant : str
        Tells requests apart that have one URL, such as those that send a form: each is a page of its own, whose
        URL has this as its fragment. Letters, digits and ``.-_:=`` only, at most 80.
    """

    url: str
    score: float
    data: bytes
    variant: str = ""


Link = str | tuple[str, float] | CarriedLink


def apart(links: Iterable[Link]) -> tuple[list[str | tuple[str, float]], list[CarriedLink]]:
    """Links that carry nothing, and those that carry something.

    Raises
    ------
    inlink.errors.ParameterError
        If one carries too much, or its variant or score is none.
    """
    links = list(links)
    if set(map(type, links)) <= {str}:
        return links, []  # type: ignore[return-value]
    plain: list[str | tuple[str, float]] = []
    carried: list[CarriedLink] = []
    for one in links:
        if not isinstance(one, CarriedLink):
            plain.append(one)
            continue
        if len(one.data) > MOST_CARRIED:
            raise ParameterError(f"{one.url!r} carries {len(one.data):,} bytes: at most {MOST_CARRIED:,}")
        if not _VARIANT.fullmatch(one.variant) or not abs(float(one.score)) < 3e38:
            raise ParameterError(f"a carried link has a short variant and a finite score, not {one[1::2]!r}")
        carried.append(one)
    return plain, carried


def carried_forms(
    links: list[CarriedLink],
    page_url: Callable[[], str] | None,
    rules: UrlRules | None,
    refused: MutableMapping[str, int],
) -> dict[str, tuple[float, bytes]]:
    """By canonical URL the best score, and what the first link to it carries."""
    base = Base(page_url(), rules=rules) if page_url is not None else None
    found: dict[str, tuple[float, bytes]] = {}
    for url, score, data, variant in links:
        if base is None and canonical(url) is None:  # seeds are absolute
            reason = refusal(url) or "link is no valid URL"
            refused[reason] = refused.get(reason, 0) + 1
            continue
        for form in (base or Base(url, rules=rules)).canonical_links([url], refused):
            key = f"{form}#{variant}" if variant else form
            before = found.get(key)
            found[key] = (score, data) if before is None else (max(score, before[0]), before[1])
    return found


def hrefs_and_scores(links: Iterable[str | tuple[str, float]]) -> tuple[list[str], F32]:
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
                raise ParameterError(f"a link is a string, or a string and a number, not {one!r}") from None
            if not isinstance(href, str) or not abs(score) < 3e38:  # a float32
                raise ParameterError(f"a link is a string, or a string and a finite number, not {one!r}")
        hrefs.append(href)
        scores.append(score)
    return hrefs, np.array(scores, np.float32)


def to_lines(
    hrefs: list[str],
    scores: F32,
    page_url: Callable[[], str],
    rules: UrlRules | None,
    refused: MutableMapping[str, int],
    canonical: bool = False,
) -> tuple[bytes, int, F32]:
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
    lines: bytes, count: int, scores: F32, more: dict[str, tuple[float, bytes]]
) -> tuple[bytes, int, F32]:
    """The lines, count and scores of :func:`to_lines`, links that carry something behind them."""
    if not more:
        return lines, count, scores
    if not len(scores):
        scores = np.zeros(count, np.float32)
    found = np.concatenate([scores, np.array([score for score, _ in more.values()], np.float32)])
    return lines + ("\n".join(more) + "\n").encode("ascii"), count + len(more), found


def coded(pages: npt.NDArray[np.uint32], scores: F32) -> tuple[int, bytes]:
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
    """Refuse what no page can have, before anything is changed.

    Raises
    ------
    inlink.errors.ParameterError
        If the score is no finite number, the status no HTTP status, the hash no bytes.
    """
    usual = type(score) is float and type(status) is int and type(content_hash) is bytes
    if usual and abs(score) < 3e38 and 0 <= status <= 999:
        return  # quicker than to ask for protocols
    if not isinstance(score, SupportsFloat) or not abs(float(score)) < 3e38:  # a float32
        raise ParameterError(f"score must be a finite number, not {score!r}")
    if not isinstance(status, SupportsIndex) or not 0 <= int(status) <= 999:
        raise ParameterError(f"status must be an HTTP status, not {status!r}")
    if not isinstance(content_hash, bytes | bytearray | memoryview):
        raise ParameterError(f"content_hash must be bytes, not {type(content_hash).__name__}")
