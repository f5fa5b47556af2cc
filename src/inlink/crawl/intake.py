"""What makes pages known: visits with their links, seeds, and sitemaps. Each is written as an event."""

from collections.abc import MutableMapping, Sequence

import numpy as np

from inlink.base.arrays import UInt32Array, distinct
from inlink.crawl.journal import Answered, Journal, encoded_list
from inlink.crawl.links import (
    Carried,
    SplitLinks,
    canonical_lines,
    carried_forms,
    order_of,
    split_links,
    to_lines,
)
from inlink.crawl.upkeep import Upkeep
from inlink.frontier import backoff
from inlink.frontier.visits import plan_visit
from inlink.protocol import AnyLink, Crawled
from inlink.store import format as kinds
from inlink.store.anchors import encode_anchors
from inlink.store.carried import encode_carried
from inlink.store.format import CRAWLED, DateRecord, VisitRecord, struct_of
from inlink.store.pages import NO_PAGE, Pages
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
        ready = canonical_lines(links.hrefs) if links_are_canonical else None
        number, out = journal.answered(page)
        if number == NO_PAGE:
            return False
        target = number
        if visit.redirected_to is not None:
            target = journal.redirect(number, visit.redirected_to)
        if visit.canonical_link is not None or target in pages_of.canonicals:
            journal.name_canonical(target, visit.canonical_link, visit.status)

        def base() -> str:
            """The URL that answered, against which relative links are resolved."""
            url = pages_of.table.url(number)
            return (canonical(visit.redirected_to, url) or url) if visit.redirected_to else url

        rules, self_links = journal.url_rules, front.settings.self_links
        if ready is None:
            lines, kept, scores, texts = to_lines(links, base, rules, self.refused, self_links)
        else:
            lines, kept, scores, texts = ready, range(len(links.hrefs)), links.scores, links.texts
        flags, data = 0, b""
        if links.carried:
            more = carried_forms(links.carried, base, rules, self.refused, self_links)
            scores = scores if len(scores) else np.zeros(len(kept), np.float32)
            scores = np.append(scores, np.array([link.score for link in more.values()], np.float32))
            texts = (texts or [""] * len(kept)) + [link.text for link in more.values()]
            # Pages are numbered in the order of the links.
            order = order_of(kept, len(links.hrefs), links.carried, more)
            rows = [*lines.splitlines(keepends=True), *(form.encode("ascii") + b"\n" for form in more)]
            pages, new, text = pages_of.table.number_lines(
                b"".join(rows[k] for k in order.tolist()), len(rows)
            )
            pages = pages[np.argsort(order)]
            flags, data = _carried_data(pages_of, pages, more)
        else:
            pages, new, text = pages_of.table.number_lines(lines, len(kept))
        words_of: dict[int, str] = {}
        for linked, words in zip(pages.tolist(), texts, strict=True) if texts else ():
            if words:
                words_of.setdefault(linked, words)
        count, listed = encoded_list(pages, scores)
        pages = pages[:count]
        anchors = encode_anchors(words_of, pages.tolist()) if words_of else b""
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

    def seed(self, urls: Sequence[AnyLink]) -> int:
        """Take in seeds; return the number of new URLs. See :meth:`inlink.Crawl.seed`."""
        journal, pages_of = self.journal, self.journal.pages
        links = split_links(urls, default=1.0)
        scores = links.scores.tolist() or [1.0] * len(links.hrefs)
        forms: list[str] = []
        kept: list[int] = []
        given: dict[str, str] = {}
        for place, url in enumerate(links.hrefs):
            form = canonical(url, None, journal.url_rules)
            if form is None:
                reason = refusal(url) or "link is no valid URL"
                self.refused[reason] = self.refused.get(reason, 0) + 1
                continue
            if url.strip() != form and len(url) <= 2 * MAX_LENGTH:
                given[form] = url
            forms.append(form)
            kept.append(place)
        more = carried_forms(links.carried, None, journal.url_rules, self.refused)
        forms += more
        if not forms:
            return 0
        scores = [scores[place] for place in kept] + [link.score for link in more.values()]
        journal.gate.changing = True
        order = order_of(kept, len(links.hrefs), links.carried, more)
        pages, new, text = pages_of.number([forms[k] for k in order.tolist()])
        pages = pages[np.argsort(order)]
        first = pages_of.num_pages - new
        count, payload = encoded_list(pages.copy(), np.array(scores, np.float32))
        flags, data = _carried_data(pages_of, pages, more)
        flags |= kinds.HAS_SCORES
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
        new = self.seed([(url, priority) for url, _, priority in entries])
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
        page = pages.survivor(int(pages.find([form])[0]))
        visit = pages.visit(page)
        if visit is None or pages.states[page] != CRAWLED or page in front.queue or page in front.lost:
            return
        if visit.time < lastmod <= journal.now:
            journal.append(kinds.HINT, page, payload=struct_of(DateRecord).pack(lastmod))
            front.forget_plan(page)
            front.wait_again(page, journal.now)


def _carried_data(pages_of: Pages, pages: UInt32Array, more: dict[str, Carried]) -> tuple[int, bytes]:
    """The flag and the end of a frame whose last pages carry data. Pages that carry data already are left out."""
    last = pages[len(pages) - len(more) :].tolist()
    data = {
        page: link.data for page, link in zip(last, more.values(), strict=True) if not pages_of.carriers[page]
    }
    return (kinds.HAS_CARRIED, encode_carried(data)) if data else (0, b"")
