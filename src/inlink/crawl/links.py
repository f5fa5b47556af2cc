"""Links, visits and other answers as spiders give them: they are checked, and links get their canonical form."""

import re
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, NamedTuple, SupportsIndex, cast, get_args

import msgspec
import numpy as np
from msgspec.structs import replace

from inlink.base.arrays import Float32Array
from inlink.crawl.arguments import (
    LATEST,
    argument,
    check_flags,
    check_text,
    check_texts,
    checked_failure,
    checked_score,
    checked_status,
)
from inlink.errors import ParameterError
from inlink.protocol import (
    PLACES,
    VARIANT,
    Answer,
    AnyLink,
    Crawled,
    Excluded,
    Failed,
    HostDelay,
    Link,
    PageFacts,
    Redirected,
)
from inlink.urls.canonical import MAX_LENGTH, Base, UrlRules
from inlink.urls.kernels import CLASSES, plain_lines

__all__ = [
    "MOST_CARRIED",
    "LinkLines",
    "SplitLinks",
    "canonical_lines",
    "check_link",
    "checked_answers",
    "checked_entries",
    "checked_visit",
    "listed",
    "split_links",
    "to_lines",
]

MOST_CARRIED = 1 << 16
"""Maximum number of bytes of data of a link."""


_CANONICAL = re.compile(rb"(?:https?://[!-~]{1,%d}\n)+" % (MAX_LENGTH + 81))
"""Matches lines that may be canonical URLs. The parts of the URLs are not checked."""


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


class SplitLinks(NamedTuple):
    """Links of a page, checked.

    ``hrefs`` are their URLs, ``scores`` their scores (empty if no link has a score, data or a variant), and ``labels``
    their texts and their places in the page (empty if no link has either). ``carried`` are the links with data or a
    variant, by their positions.
    """

    hrefs: list[str]
    scores: Float32Array
    labels: list[tuple[str, str]]
    carried: dict[int, Link]


class LinkLines(NamedTuple):
    """Links in canonical form.

    ``lines`` are ``num_lines`` canonical URLs with their variants, each followed by a newline. ``scores`` and
    ``labels`` are theirs, or empty. ``data`` holds the data of links with data or a variant, by their lines.
    """

    lines: bytes
    num_lines: int
    scores: Float32Array
    labels: list[tuple[str, str]]
    data: dict[int, bytes]


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
    # This check of the types is enough for most calls.
    if set(map(type, links)) <= {str}:
        return SplitLinks(links, np.empty(0, np.float32), [], {})
    hrefs: list[str] = []
    scores: list[float | None] = []
    labels: list[tuple[str, str]] = []
    carried: dict[int, Link] = {}
    for place, link in enumerate(links):
        label = "", ""
        if isinstance(link, Link):
            check_link(link)
            if link.data or link.variant:
                carried[place] = link
            href, score, label = link.url, link.score, (link.text, link.place)
        elif isinstance(link, str):
            href, score = link, None
        elif isinstance(link, tuple | list) and len(link) == 2 and isinstance(link[0], str):
            href, score = link[0], checked_score(link[1], f"the score of {link[0]!r}")
        else:
            raise ParameterError(f"a link must be a URL, (URL, number) or a Link; got {link!r:.200}")
        hrefs.append(href)
        scores.append(score)
        labels.append(label)
    scored = carried or any(score is not None for score in scores)
    filled = [default if score is None else score for score in scores] if scored else []
    labelled = any(text or place for text, place in labels)
    return SplitLinks(hrefs, np.array(filled, np.float32), labels if labelled else [], carried)


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


def checked_visit(visit: Crawled) -> Crawled:
    """Return a visit with its values in their own types. Its links are not checked.

    Raises
    ------
    inlink.errors.ParameterError
        If a value is out of range.
    """
    score, status = checked_score(visit.score), checked_status(visit.status)
    content_hash, fingerprint = visit.content_hash, visit.fingerprint
    if not isinstance(content_hash, bytes | bytearray | memoryview):
        raise ParameterError(
            f"content_hash must be bytes; got {type(content_hash).__name__} {content_hash!r:.80}"
        )
    # The first test is quick, and nearly always enough.
    is_integer = type(fingerprint) is int or (
        isinstance(fingerprint, SupportsIndex) and not isinstance(fingerprint, bool)
    )
    if not is_integer or not 0 <= int(fingerprint) < 1 << 64:
        raise ParameterError(
            "fingerprint must be an integer from 0 to 2**64 - 1, such as that of "
            f"inlink.scoring.fingerprint.fingerprint; got {fingerprint!r:.80}"
        )
    if visit.redirected_to is not None or visit.canonical_link is not None:
        if isinstance(visit.canonical_link, Link):
            check_link(visit.canonical_link)
            check_texts(redirected_to=visit.redirected_to)
        else:
            check_texts(redirected_to=visit.redirected_to, canonical_link=visit.canonical_link)
    if visit.noindex is not False or visit.nofollow is not False:
        check_flags(noindex=visit.noindex, nofollow=visit.nofollow)
    if visit.facts is not None:
        check_facts(visit.facts)
    return replace(
        visit,
        score=score,
        status=status,
        content_hash=bytes(content_hash)[:255],
        fingerprint=int(fingerprint),
    )


def check_facts(facts: PageFacts) -> None:
    """Refuse facts with a value of another type or out of its range."""
    if not isinstance(facts, PageFacts):
        raise ParameterError(f"`facts` must be PageFacts; got {facts!r:.200}")
    try:
        sound = msgspec.convert(msgspec.to_builtins(facts), PageFacts)
    except (msgspec.ValidationError, TypeError) as error:
        raise ParameterError(f"`facts` must be PageFacts with values as it declares: {error}") from None
    places = {place for _, _, place in sound.nofollow_links}
    if sound.headings < 0 or sound.size < 0 or not 0 <= sound.seconds < LATEST or not places <= {"", *PLACES}:
        raise ParameterError(
            "`facts` must have numbers of at least 0, and places of links out of "
            f"{', '.join(PLACES)}; got {facts!r:.200}"
        )


def checked_answers(answers: Any) -> list[Answer]:
    """Return answers, visits with their values in their own types.

    Links are not checked, because an invalid link does not cost its page.

    Raises
    ------
    inlink.errors.ParameterError
        If an item is not an answer, or a value is out of range.
    """
    if isinstance(answers, str | bytes) or not isinstance(answers, Iterable):
        raise ParameterError(f"`answers` must be a list of answers; got {answers!r:.200}")
    return [_checked_answer(answer) for answer in list(answers)]


def _checked_answer(answer: Any) -> Answer:
    if not isinstance(answer, get_args(Answer)):
        raise ParameterError(
            f"an answer is a Crawled, Failed, Excluded, Redirected, Released or HostDelay; got {answer!r:.200}"
        )
    if isinstance(answer, HostDelay):
        check_text("url", answer.url)
        argument("seconds", answer.seconds)
        return answer
    argument("lease", answer.lease)
    if isinstance(answer, Crawled):
        check_texts(error=answer.error)
        return checked_visit(answer)
    if isinstance(answer, Failed):
        checked_failure(answer.error, answer.status, answer.retry, answer.retry_after)
    elif isinstance(answer, Excluded):
        check_text("reason", answer.reason)
    elif isinstance(answer, Redirected):
        check_link(Link(answer.to, data=b"" if answer.carried is None else answer.carried))
        check_flags(again=answer.again)
        checked_status(answer.status)
    return cast(Answer, answer)


def checked_entries(entries: list[Any]) -> list[tuple[str, float | None, float]]:
    """Check the entries of a sitemap; return URL, lastmod, and priority, which is 0.5 by default.

    Raises
    ------
    inlink.errors.ParameterError
        If an entry is not a triple, or a value is outside its range.
    """
    rows = []
    for entry in entries:
        if not isinstance(entry, tuple | list) or len(entry) != 3:
            raise ParameterError(
                "sitemap takes triples of URL, lastmod and priority; lastmod and priority may be None; "
                f"got {entry!r:.200}"
            )
        url, lastmod, priority = entry
        check_text("the URL of a sitemap's entry", url)
        lastmod, priority = argument("lastmod", lastmod), argument("priority", priority)
        rows.append((url, lastmod, 0.5 if priority is None else priority))
    return rows


def to_lines(
    links: SplitLinks,
    page_url: Callable[[], str],
    rules: UrlRules | None,
    refused: MutableMapping[str, int],
    self_links: bool = False,
) -> LinkLines:
    """Return links in canonical form.

    Parameters
    ----------
    links : SplitLinks
    page_url : callable
        Returns the URL against which relative links are resolved. It is called only if a link has to be resolved.
    rules : UrlRules or None
    refused : mutable mapping of str to int
        Counts the refused links, by reason.
    self_links : bool
        Whether links to a place on the page itself are kept.
    """
    hrefs, scores, labels, carried = links
    count = len(hrefs)
    if not count:
        return LinkLines(b"", 0, scores, labels, {})
    lines = "\n".join(hrefs).encode("utf-8", "surrogatepass") + b"\n"
    plain = np.zeros(count, np.bool_)
    variants = [place for place, link in carried.items() if link.variant] if carried else []
    data = {place: link.data for place, link in carried.items()} if carried else {}
    # Most links are plain if a link extractor has made them absolute.
    one_each = rules is None and lines.count(b"\n") == count
    if one_each and plain_lines(lines, MAX_LENGTH, CLASSES, plain) and not variants:
        return LinkLines(lines, count, scores, labels, data)
    plain[variants] = True
    odd = np.flatnonzero(~plain).tolist()
    base, forms = Base(page_url(), rules=rules, self_links=self_links), list[str | None](hrefs)
    for place, form in zip(odd, base.forms(map(hrefs.__getitem__, odd), refused), strict=True):
        forms[place] = form
    if variants:
        # A link with a variant stands for a request of its own, such as a form's, perhaps to the page itself.
        whole = Base(base.url, rules=rules, self_links=True)
        for place, form in zip(variants, whole.forms(map(hrefs.__getitem__, variants), refused), strict=True):
            forms[place] = form and f"{form}#{carried[place].variant}"
    if None in forms:
        kept = [place for place, form in enumerate(forms) if form is not None]
        forms = [forms[place] for place in kept]
        scores = scores[kept] if len(scores) else scores
        labels = [labels[place] for place in kept] if labels else labels
        data = {line: data[place] for line, place in enumerate(kept) if place in data}
    lines = "\n".join([*cast(list[str], forms), ""]).encode("ascii")
    return LinkLines(lines, len(forms), scores, labels, data)


def canonical_lines(links: SplitLinks) -> bytes:
    """Return links that the caller declares canonical, one a line. Links with data or a variant are left out.

    Raises
    ------
    inlink.errors.ParameterError
        If a link cannot be in canonical form. The check is not complete.
    """
    hrefs = [href for place, href in enumerate(links.hrefs) if place not in links.carried]
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
