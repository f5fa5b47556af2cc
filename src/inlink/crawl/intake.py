"""What makes pages known: visits with their links, seeds, and sitemaps. Each is written as an event."""

from collections.abc import Callable, MutableMapping, Sequence
from functools import partial

import numpy as np

from inlink.base.arrays import UInt32Array, distinct
from inlink.crawl.journal import Answered, Journal, encoded_list
from inlink.crawl.links import SplitLinks, canonical_lines, split_links, to_lines
from inlink.crawl.upkeep import Upkeep
from inlink.frontier import backoff
from inlink.frontier.visits import plan_visit
from inlink.protocol import AnyLink, Crawled
from inlink.store import format as kinds
from inlink.store.anchors import encode_labels
from inlink.store.carried import encode_carried
from inlink.store.facts import encode_facts
from inlink.store.format import CRAWLED, NO_PAGE, DateRecord, VisitRecord, struct_of
from inlink.store.pages import Pages
from inlink.urls.canonical import MAX_LENGTH, canonical, refusal

__all__ = ["PageIntake"]

_VISIT = struct_of(VisitRecord)
_OK = backoff.OUTCOMES["ok"]


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
        if visit.facts is not None:
            journal.append(kinds.FACTS, target, payload=encode_facts(visit.facts, places))
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
