"""What makes pages known: visits with their links, seeds, and sitemaps, and the answers that spiders give.

They are checked before anything changes. Links get their canonical form, and each visit is written as an event.
"""

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any, SupportsIndex, cast, get_args

import msgspec
import numpy as np
from msgspec.structs import replace

from inlink.base.arrays import Float32Array, UInt32Array, distinct
from inlink.base.decoding import converted
from inlink.crawl.arguments import (
    LARGEST_ID,
    LATEST,
    argument,
    check_flags,
    check_text,
    check_texts,
)
from inlink.crawl.journal import Answered, Journal, encoded_list
from inlink.crawl.links import (
    LinkIntake,
    Numbered,
    SplitLinks,
    carried_data,
    check_canonical,
    check_link,
    checked_score,
    split_links,
)
from inlink.crawl.upkeep import Upkeep
from inlink.errors import ParameterError
from inlink.frontier import backoff
from inlink.frontier.visits import plan_visit
from inlink.protocol import (
    LARGEST_SCORE,
    PLACES,
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
from inlink.store.facts import encode_facts
from inlink.store.format import CRAWLED, NO_PAGE, DateRecord, VisitRecord, struct_of
from inlink.store.page import LatestVisit
from inlink.urls.canonical import MAX_LENGTH, canonical, refusal

LONGEST_HASH = 255
"""Maximum number of bytes of a content hash that are kept."""

NOT_MODIFIED = 304
"""HTTP status of an answer without a body: the page is as it was at its last visit."""

MOST_ITEMS = 1 << 20
"""Maximum number of bytes of a page's items, as JSON lines."""

_FACTS = attrgetter(
    *("title", "heading", "robots", "language", "content_type"),
    *("alternates", "canonicals", "insecure", "nofollow_links"),
    *("headings", "size", "seconds", "cut"),
)
_NO_LISTS: tuple[list[Any], ...] = ([], [], [], [])
_VISIT = struct_of(VisitRecord)
_ITEM = msgspec.json.Decoder(dict[str, msgspec.Raw])
# A record stores numbers of visits and changes as uint32.
_LARGEST_COUNT = (1 << 32) - 1
_OK = backoff.OUTCOMES["ok"]


def checked_visit(visit: Crawled) -> Crawled:
    """Return a visit with its values in their own types. Its links are not checked.

    Raises
    ------
    inlink.errors.ParameterError
        If a value is out of range.
    """
    score, status = visit.score, visit.status
    content_hash, fingerprint = visit.content_hash, visit.fingerprint
    # The first tests are quick, and nearly always enough.
    if (
        type(score) is not float
        or not -LARGEST_SCORE < score < LARGEST_SCORE
        or type(status) is not int
        or not 0 <= status <= 999
        or type(content_hash) is not bytes
        or type(fingerprint) is not int
        or not 0 <= fingerprint < 1 << 64
    ):
        if not isinstance(content_hash, bytes | bytearray | memoryview):
            raise ParameterError(
                f"content_hash must be bytes; got {type(content_hash).__name__} {content_hash!r:.80}"
            )
        is_integer = isinstance(fingerprint, SupportsIndex) and not isinstance(fingerprint, bool)
        if not is_integer or not 0 <= int(fingerprint) < 1 << 64:
            raise ParameterError(
                "fingerprint must be an integer from 0 to 2**64 - 1, such as that of "
                f"inlink.scoring.fingerprint.fingerprint; got {fingerprint!r:.80}"
            )
        visit = replace(
            visit,
            score=checked_score(score),
            status=checked_status(status),
            content_hash=bytes(content_hash),
            fingerprint=int(fingerprint),
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
    if visit.items != b"":
        check_items(visit.items)
    return visit


def check_items(items: bytes) -> None:
    """Refuse items that are not JSON lines: objects in UTF-8, each with a newline after it, at most :data:`MOST_ITEMS`.

    Raises
    ------
    inlink.errors.ParameterError
        The message names the line.
    """
    if not isinstance(items, bytes):
        raise ParameterError(f"`items` must be JSON lines as bytes; got {type(items).__name__} {items!r:.80}")
    if len(items) > MOST_ITEMS:
        raise ParameterError(f"`items` take {len(items):,} bytes as JSON: a page has at most {MOST_ITEMS:,}")
    *lines, rest = items.split(b"\n")
    if rest:
        raise ParameterError(f"`items` must end with a newline; got {rest[-80:]!r}")
    for number, line in enumerate(lines, 1):
        try:
            line.decode()
            _ITEM.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ParameterError(
                f"`items`, line {number}: not a JSON object in UTF-8 ({error}); got {line[:80]!r}"
            ) from None


def check_facts(facts: PageFacts) -> None:
    """Refuse facts with a value of another type or out of its range."""
    if not isinstance(facts, PageFacts):
        raise ParameterError(f"`facts` must be PageFacts; got {facts!r:.200}")
    texts, lists, numbers = _FACTS(facts)[:5], _FACTS(facts)[5:9], _FACTS(facts)[9:]
    # This is enough for facts without lists.
    if (
        lists == _NO_LISTS
        and set(map(type, texts)) == {str}
        and tuple(map(type, numbers)) == (int, int, float, bool)
        and 0 <= facts.headings <= LARGEST_ID
        and 0 <= facts.size <= LARGEST_ID
        and 0 <= facts.seconds < LATEST
    ):
        return
    try:
        sound = converted(msgspec.to_builtins(facts), PageFacts)
    except (msgspec.ValidationError, TypeError) as error:
        raise ParameterError(f"`facts` must be PageFacts with values as it declares: {error}") from None
    places = {place for _, _, place in sound.nofollow_links}
    in_range = (
        0 <= sound.headings <= LARGEST_ID and 0 <= sound.size <= LARGEST_ID and 0 <= sound.seconds < LATEST
    )
    if not in_range or not places <= {"", *PLACES}:
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
        self_links = journal.frontier.settings.self_links
        self._links = LinkIntake(journal.pages, journal.url_rules, self_links, refused)

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
        if links_are_canonical:
            check_canonical(links)
        number, out = journal.answered(page)
        if number == NO_PAGE:
            return False
        target = number
        is_moved = out is not None and out.page != number
        if (visit.redirected_to is not None or is_moved) and journal.is_elsewhere(
            number, visit.redirected_to
        ):
            # The owner of the target fetches it, with its data. A visit here would count its links twice.
            if visit.redirected_to is not None:
                journal.redirect(number, visit.redirected_to, lease=0 if out is None else out.number)
            journal.note_outcome(out, _OK)
            return visit.redirected_to is not None
        if visit.redirected_to is not None:
            target = journal.redirect(number, visit.redirected_to)
        if visit.canonical_link is not None or target in pages_of.canonicals:
            journal.name_canonical(target, visit.canonical_link, visit.status)
        # The URL that answered, against which relative links are resolved.
        base = partial(pages_of.table.url, number)
        if visit.redirected_to:
            base = partial(_redirected, base, visit.redirected_to)
        flags = kinds.NOINDEX * visit.noindex | kinds.NOFOLLOW * visit.nofollow
        if visit.items:
            # Written first, so that no crash can separate them from the visit, which makes them count.
            journal.append(kinds.ITEMS, target, listed=visit.items.count(b"\n"), payload=visit.items)
            flags |= kinds.HAS_ITEMS
        listed = self._links.number(links, base, canonical=links_are_canonical and not links.carried)
        facts = b"" if visit.facts is None else encode_facts(visit.facts, listed.places)
        content_hash = visit.content_hash[:LONGEST_HASH]
        first_crawl, crawls, changes, previous = journal.now, 1, 0, 0
        before = pages_of.visit(target) if pages_of.answers[target] else None
        if before is not None:
            if visit.status == NOT_MODIFIED:
                if not content_hash:
                    # Otherwise this visit and the next would count as changes.
                    content_hash = before.content_hash
                if not links.hrefs:
                    visit, listed = self._unmodified(visit, before)
                    facts = facts or pages_of.frames.raw_facts(before.place)
                    flags |= before.flags & (kinds.NOINDEX | kinds.NOFOLLOW)
            first_crawl, previous = before.first_crawl, before.place + 1
            # Only a crafted log contains so large a number.
            crawls = min(before.crawls + 1, _LARGEST_COUNT)
            changes = min(before.changes + (before.content_hash != content_hash), _LARGEST_COUNT)
        pages, new = listed.pages, listed.new
        head = _VISIT.pack(
            first_crawl,
            crawls,
            changes,
            previous,
            visit.fingerprint,
            listed.anchors_size,
            len(content_hash) if content_hash else 0,
        )
        journal.append(
            kinds.VISIT,
            target,
            is_answer=True,
            flags=flags | listed.flags,
            status=visit.status,
            score=visit.score,
            listed=listed.count,
            payload=head + content_hash + listed.payload,
            lease=out.number if out is not None else 0,
            new=new,
            urls=listed.urls,
        )
        if facts:
            journal.append(kinds.FACTS, target, payload=facts)
        # The first test is quick, and nearly always enough.
        if out is not None and front.note_outcome(out, _OK, None, journal.now):
            journal.append(kinds.HOST, out.page, **front.hosts.frame(out.slot, journal.now))
        if new and front.settings.rules:
            journal.admit(pages_of.num_pages - new, new, listed.urls)
        front.prioritise(pages, journal.now)
        # This is `Settings.revisits` without a call, because each answer passes here.
        if front.settings.revisit is not None or front.settings.revisit_rules:
            plan_visit(front, target, front.settings.revisit)
        if pages_of.canonicals:
            journal.merge_canonicals(target)
        self.upkeep.after_visit(journal.now)
        return True

    def _unmodified(self, visit: Crawled, before: LatestVisit) -> tuple[Crawled, Numbered]:
        """The visit with the score and the fingerprint of the visit before it, and the links of that visit."""
        frames = self.journal.pages.frames
        score, links, anchors_size, payload = frames.content(before)
        flags = before.flags & (kinds.HAS_SCORES | kinds.HAS_ANCHORS)
        visit = replace(
            visit, score=visit.score or score, fingerprint=visit.fingerprint or before.fingerprint
        )
        return visit, Numbered(links, len(links), 0, b"", flags, payload, anchors_size)

    def seed(self, urls: Sequence[AnyLink], flags: int = 0) -> int:
        """Take in seeds; return the number of new URLs. See :meth:`inlink.Crawl.seed`.

        ``flags`` are those of the event, beside the flags that follow from the seeds.
        """
        journal = self.journal
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
        return self.seed_forms(forms, scores, carried, flags, given=given)[1]

    def seed_forms(
        self,
        forms: Sequence[str],
        scores: Float32Array,
        carried: Mapping[int, bytes],
        flags: int = 0,
        *,
        depth: int = 0,
        given: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[UInt32Array, int]:
        """Take in seeds in canonical form; return their pages, and the number of new pages.

        Parameters
        ----------
        forms, scores : sequence of str, float32[n]
        carried : mapping of int to bytes
            Carried data, by place.
        flags : int
            Flags of the event, beside those that follow from the seeds.
        depth : int
            Depth of new pages.
        given : mapping of str to str
            Texts that differ from the canonical forms, by these forms.
        """
        journal, pages_of = self.journal, self.journal.pages
        journal.gate.changing = True
        pages, new, text = pages_of.table.number(forms)
        first = pages_of.num_pages - new
        count, payload = encoded_list(pages.copy(), scores)
        has_data, data = carried_data(pages_of, pages, carried)
        flags |= kinds.HAS_SCORES | has_data
        payload += data
        journal.append(
            kinds.SEED, flags=flags, status=depth, listed=count, payload=payload, new=new, urls=text
        )
        numbers = dict(zip(forms, pages.tolist(), strict=True)) if given else {}
        for form, url in given.items():
            page = numbers[form]
            if page >= first:
                pages_of.given[page] = url
                journal.append(kinds.GIVEN, page, payload=url.encode("utf-8", "surrogatepass"))
        journal.admit(first, new, text)
        journal.frontier.prioritise(distinct(pages), journal.now)
        return pages, new

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
            if front.values is None:
                front.forget_plan(page)
                front.wait_again(page, journal.now)
            elif not pages.errors[page]:
                # With ByValue, a report changes the date to the extent that earlier reports were right. A retry stays.
                front.forget_plan(page)
                plan_visit(front, page, front.settings.revisit)


def _redirected(page_url: Callable[[], str], to: str) -> str:
    """The target of a page's redirect; the page's own URL if the target is not valid."""
    url = page_url()
    return canonical(to, url) or url
