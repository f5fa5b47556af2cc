"""Seeds and sitemaps: URLs that become known without a link to them."""

from collections.abc import Iterable, MutableMapping
from typing import Any

import numpy as np

from inlink.base.arrays import distinct
from inlink.crawl.arguments import argument, check_text
from inlink.crawl.intake import apart, carried_forms, coded, hrefs_and_scores, order_of
from inlink.crawl.journal import Journal
from inlink.errors import ParameterError
from inlink.protocol import AnyLink
from inlink.store import format as kinds
from inlink.store.format import CRAWLED, DateRecord, struct_of
from inlink.urls.canonical import MAX_LENGTH, canonical, refusal

__all__ = ["checked_entries", "hint", "seed"]


def seed(journal: Journal, urls: Iterable[AnyLink], refused: MutableMapping[str, int]) -> int:
    """See :meth:`inlink.Crawl.seed`; ``refused`` counts invalid URLs by reason."""
    pages_of, rules = journal.pages, journal.url_rules
    forms, scores, given = [], [], {}
    kept = []
    plain, carried, _ = apart(urls)
    hrefs, found = hrefs_and_scores([(url, 1.0) if isinstance(url, str) else url for url in plain])
    for place, (url, score) in enumerate(zip(hrefs, found.tolist(), strict=True)):
        form = canonical(url, None, rules)
        if form is None:
            reason = refusal(url) or "link is no valid URL"
            refused[reason] = refused.get(reason, 0) + 1
            continue
        if url.strip() != form and len(url) <= 2 * MAX_LENGTH:
            given[form] = url
        forms.append(form)
        scores.append(score)
        kept.append(place)
    more = carried_forms(carried, None, rules, refused)
    forms += more
    scores += [link.score for link in more.values()]
    if not forms:
        return 0
    journal.gate.changing = True
    order = order_of(kept, len(hrefs), carried, more)
    pages, new, text = pages_of.number([forms[k] for k in order.tolist()])
    pages = pages[np.argsort(order)]
    first = pages_of.num_pages - new
    count, payload = coded(pages.copy(), np.array(scores, np.float32))
    flags, end = journal.carrying(pages, more)
    flags |= kinds.HAS_SCORES
    journal.append(kinds.SEED, flags=flags, listed=count, payload=payload + end, new=new, urls=text)
    numbers = dict(zip(forms, pages.tolist(), strict=True)) if given else {}
    for form, url in given.items():
        page = numbers[form]
        if page >= first:
            pages_of.given[page] = url
            journal.append(kinds.GIVEN, page, payload=url.encode("utf-8", "surrogatepass"))
    journal.admit(first, new, text)
    journal.frontier.prioritise(distinct(pages), journal.now)
    return new


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


def hint(journal: Journal, rows: list[tuple[str, float | None, float]]) -> None:
    """Let pages wait again that changed after their last crawl, according to their sitemap."""
    for url, lastmod, _ in rows:
        if lastmod is not None:
            # Each change is whole by itself.
            journal.gate.changing = False
            _hint(journal, url, lastmod)


def _hint(journal: Journal, url: str, lastmod: float) -> None:
    pages, front = journal.pages, journal.frontier
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
        front.back(page, journal.now)
