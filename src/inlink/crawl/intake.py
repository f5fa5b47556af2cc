"""What makes pages known: visits with their links, seeds, and sitemaps, and the answers that spiders give.

They are checked before anything changes. Links get their canonical form, and each visit is written as an event.
"""

import re
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from functools import partial
from typing import Any, NamedTuple, SupportsIndex, cast, get_args

import msgspec
import numpy as np
from msgspec.structs import replace

from inlink.base.arrays import Float32Array, UInt32Array, distinct
from inlink.crawl.arguments import (
    ARGUMENTS,
    LARGEST_ID,
    LATEST,
    argument,
    check_flags,
    check_text,
    check_texts,
)
from inlink.crawl.journal import Answered, Journal, encoded_list
from inlink.crawl.upkeep import Upkeep
from inlink.errors import ParameterError
from inlink.frontier import backoff
from inlink.frontier.visits import plan_visit
from inlink.protocol import (
    LARGEST_SCORE,
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
from inlink.store import format as kinds
from inlink.store.anchors import encode_labels
from inlink.store.carried import encode_carried
from inlink.store.facts import encode_facts
from inlink.store.format import CRAWLED, NO_PAGE, DateRecord, VisitRecord, struct_of
from inlink.store.pages import Pages
from inlink.urls.canonical import MAX_LENGTH, Base, UrlRules, canonical, refusal
from inlink.urls.kernels import CLASSES, plain_lines

MOST_CARRIED = 1 << 16
"""Maximum number of bytes of data of a link."""

_VISIT = struct_of(VisitRecord)
_OK = backoff.OUTCOMES["ok"]
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
    numbers = (
        0 <= sound.headings <= LARGEST_ID and 0 <= sound.size <= LARGEST_ID and 0 <= sound.seconds < LATEST
    )
    if not numbers or not places <= {"", *PLACES}:
        raise ParameterError(
            "`facts` must have numbers from 0 to 2**63 - 1, and places of links out of "
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


def checked_score(score: Any, place: str = "score") -> float:
    """Return a score as a float."""
    if type(score) is float and abs(score) < LARGEST_SCORE:
        return score
    return float(ARGUMENTS["score"].check(score, place))


def checked_status(status: Any) -> int:
    """Return an HTTP status as an int."""
    if type(status) is int and 0 <= status <= 999:
        return status
    return int(argument("status", status))


def checked_failure(
    error: Any, status: Any, retry: Any, retry_after: Any
) -> tuple[int, str | bytes | float | None]:
    """Check the arguments of a failure; return the status, 0 for None, and ``retry_after``."""
    check_text("error", error)
    if retry is not None:
        check_flags(retry=retry)
    if not isinstance(retry_after, str | bytes):
        retry_after = argument("retry_after", retry_after)
    return 0 if status is None else checked_status(status), retry_after


class PageIntake:
    """Takes in visits, seeds and sitemaps.

    Parameters
    ----------
    journal : Journal
    upkeep : Upkeep
        Told of each visit.
    refused : mutable mapping of str to int
        Counts the URLs that are refused, by reason.
    """

    def __init__(self, journal: Journal, upkeep: Upkeep, refused: MutableMapping[str, int]) -> None:
        self.journal, self.upkeep, self.refused = journal, upkeep, refused

    def visit(
        self, page: Answered, visit: Crawled, links: SplitLinks, *, links_are_canonical: bool = False
    ) -> bool:
        """Take in a page that was fetched; return whether the answer counted. See :meth:`inlink.Crawl.crawled`.

        Parameters
        ----------
        page : Lease, int or str
        visit : Crawled
            Its values, which are checked. Its lease and its links are ignored.
        links : SplitLinks
            Its links.
        links_are_canonical : bool
            Whether the links are in canonical form already.
        """
        journal, front, pages_of = self.journal, self.journal.frontier, self.journal.pages
        ready = canonical_lines(links) if links_are_canonical else None
        number, out = journal.answered(page)
        if number == NO_PAGE:
            return False
        target = number
        if visit.redirected_to is not None:
            target = journal.redirect(number, visit.redirected_to)
        if visit.canonical_link is not None or target in pages_of.canonicals:
            journal.name_canonical(target, visit.canonical_link, visit.status)
        # The URL that answered, against which relative links are resolved.
        base = partial(pages_of.table.url, number)
        if visit.redirected_to:
            base = partial(_redirected, base, visit.redirected_to)
        rules, self_links = journal.url_rules, front.settings.self_links
        if ready is None or links.carried:
            lines, num_links, scores, labels, carried = to_lines(links, base, rules, self.refused, self_links)
        else:
            lines, num_links, scores, labels, carried = (
                ready,
                len(links.hrefs),
                links.scores,
                links.labels,
                {},
            )
        pages, new, text = pages_of.table.number_lines(lines, num_links)
        flags, data = _carried_data(pages_of, pages, carried) if carried else (0, b"")
        labelled = pages.tolist() if labels else []
        count, listed = encoded_list(pages, scores)
        pages = pages[:count]
        anchors, places = encode_labels(labelled, labels, pages.tolist()) if labels else (b"", b"")
        facts = b"" if visit.facts is None else encode_facts(visit.facts, places)
        flags |= kinds.HAS_SCORES * bool(len(scores)) | kinds.HAS_ANCHORS * bool(anchors)
        flags |= kinds.NOINDEX * visit.noindex | kinds.NOFOLLOW * visit.nofollow
        first_crawl, crawls, changes, previous = journal.now, 1, 0, 0
        before = pages_of.visit(target) if pages_of.answers[target] else None
        if before is not None:
            first_crawl, crawls, previous = before.first_crawl, before.crawls + 1, before.place + 1
            changes = before.changes + (before.content_hash != visit.content_hash)
        head = _VISIT.pack(
            first_crawl, crawls, changes, previous, visit.fingerprint, len(anchors), len(visit.content_hash)
        )
        journal.answer(
            kinds.VISIT,
            target,
            flags=flags,
            status=visit.status,
            score=visit.score,
            listed=count,
            payload=head + visit.content_hash + listed + anchors + data,
            lease=out.number if out is not None else 0,
            new=new,
            urls=text,
        )
        if facts:
            journal.append(kinds.FACTS, target, payload=facts)
        journal.note_outcome(out, _OK)
        if new and front.settings.rules:
            journal.admit(pages_of.num_pages - new, new, text)
        front.prioritise(pages, journal.now)
        if front.settings.revisit is not None:
            plan_visit(front, target, front.settings.revisit)
        if pages_of.canonicals:
            journal.merge_canonicals(target)
        self.upkeep.after_visit(journal.now)
        return True

    def seed(self, urls: Sequence[AnyLink], flags: int = 0) -> int:
        """Take in seeds; return the number of new URLs. See :meth:`inlink.Crawl.seed`.

        ``flags`` are those of the event, beside the flags that follow from the seeds.
        """
        journal, pages_of = self.journal, self.journal.pages
        links = split_links(urls, default=1.0)
        forms: list[str] = []
        kept: list[int] = []
        carried: dict[int, bytes] = {}
        given: dict[str, str] = {}
        for place, url in enumerate(links.hrefs):
            form, link = canonical(url, None, journal.url_rules), links.carried.get(place)
            if form is None:
                reason = refusal(url) or "link is no valid URL"
                self.refused[reason] = self.refused.get(reason, 0) + 1
                continue
            if link is not None:
                carried[len(forms)] = link.data
                form = f"{form}#{link.variant}" if link.variant else form
            elif url.strip() != form and len(url) <= 2 * MAX_LENGTH:
                given[form] = url
            forms.append(form)
            kept.append(place)
        if not forms:
            return 0
        scores = links.scores[kept] if len(links.scores) else np.ones(len(forms), np.float32)
        journal.gate.changing = True
        pages, new, text = pages_of.table.number(forms)
        first = pages_of.num_pages - new
        count, payload = encoded_list(pages.copy(), scores)
        has_data, data = _carried_data(pages_of, pages, carried)
        flags |= kinds.HAS_SCORES | has_data
        journal.append(kinds.SEED, flags=flags, listed=count, payload=payload + data, new=new, urls=text)
        numbers = dict(zip(forms, pages.tolist(), strict=True)) if given else {}
        for form, url in given.items():
            page = numbers[form]
            if page >= first:
                pages_of.given[page] = url
                journal.append(kinds.GIVEN, page, payload=url.encode("utf-8", "surrogatepass"))
        journal.admit(first, new, text)
        journal.frontier.prioritise(distinct(pages), journal.now)
        return new

    def sitemap(self, entries: Sequence[tuple[str, float | None, float]]) -> int:
        """Take in the checked entries of a sitemap; return the number of new URLs. See :meth:`inlink.Crawl.sitemap`."""
        new = self.seed([(url, priority) for url, _, priority in entries], kinds.BY_SITEMAP)
        for url, lastmod, _ in entries:
            if lastmod is not None:
                # Each change is whole by itself.
                self.journal.gate.changing = False
                self._let_changed_page_wait(url, lastmod)
        return new

    def _let_changed_page_wait(self, url: str, lastmod: float) -> None:
        """Let a page wait again if it changed after its last crawl, according to its sitemap."""
        journal, pages, front = self.journal, self.journal.pages, self.journal.frontier
        form = canonical(url, None, journal.url_rules)
        if form is None:
            return
        page = pages.survivor(int(pages.table.find([form])[0]))
        visit = pages.visit(page)
        if visit is None or pages.states[page] != CRAWLED or page in front.queue or page in front.lost:
            return
        if visit.time < lastmod <= journal.now:
            journal.append(kinds.HINT, page, payload=struct_of(DateRecord).pack(lastmod))
            front.forget_plan(page)
            front.wait_again(page, journal.now)


def _redirected(page_url: Callable[[], str], to: str) -> str:
    """The target of a page's redirect; the page's own URL if the target is not valid."""
    url = page_url()
    return canonical(to, url) or url


def _carried_data(pages_of: Pages, pages: UInt32Array, carried: dict[int, bytes]) -> tuple[int, bytes]:
    """The flag and the end of a frame of links with data. The first data that a page gets are kept."""
    data: dict[int, bytes] = {}
    for place, content in carried.items():
        if not pages_of.carriers[page := int(pages[place])]:
            data.setdefault(page, content)
    return (kinds.HAS_CARRIED, encode_carried(data)) if data else (0, b"")
