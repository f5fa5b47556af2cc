"""A page that was fetched: its links taken in, and its visit written as one event."""

from collections.abc import Iterable, MutableMapping
from functools import partial

from inlink.crawl.arguments import check_flags, check_texts, checked_hash, checked_score, checked_status
from inlink.crawl.intake import (
    apart,
    canonical_lines,
    carried_forms,
    coded,
    hrefs_and_scores,
    to_lines,
    with_carried,
)
from inlink.crawl.journal import Answered, Journal
from inlink.frontier import backoff
from inlink.frontier.visits import plan_visit
from inlink.protocol import AnyLink
from inlink.store import format as kinds
from inlink.store.format import VisitRecord, struct_of
from inlink.store.pages import NO_PAGE

__all__ = ["take_visit"]

_VISITED = struct_of(VisitRecord)


def take_visit(
    journal: Journal,
    refused: MutableMapping[str, int],
    page: Answered,
    links: Iterable[AnyLink],
    *,
    score: float,
    content_hash: bytes,
    status: int,
    redirected_to: str | None,
    canonical_link: str | None,
    noindex: bool,
    nofollow: bool,
    links_are_canonical: bool,
) -> bool:
    """See :meth:`inlink.Crawl.crawled`; ``refused`` counts the links that are refused, by reason."""
    # All arguments are checked before anything changes.
    plain, carried = apart(links)
    hrefs, scores = hrefs_and_scores(plain)
    score, status, content_hash = checked_score(score), checked_status(status), checked_hash(content_hash)
    if redirected_to is not None or canonical_link is not None:
        check_texts(redirected_to=redirected_to, canonical_link=canonical_link)
    if not (noindex is nofollow is links_are_canonical is False):
        check_flags(noindex=noindex, nofollow=nofollow, links_are_canonical=links_are_canonical)
    ready = canonical_lines(hrefs) if links_are_canonical else None
    front = journal.frontier
    number, out = journal.answered(page)
    if number == NO_PAGE:
        return False
    lease = out.number if out is not None else 0
    target = journal.merge(number, redirected_to, canonical_link)
    base = partial(journal.base, number, redirected_to)
    if ready is None:
        lines, found, scores = to_lines(
            hrefs, scores, base, journal.url_rules, refused, front.settings.self_links
        )
    else:
        lines, found = ready, len(hrefs)
    more: dict[str, tuple[float, bytes]] = {}
    if carried:
        more = carried_forms(carried, base, journal.url_rules, refused, front.settings.self_links)
        lines, found, scores = with_carried(lines, found, scores, more)
    pages, new, text = journal.pages.number_lines(lines, found)
    flags, end = journal.carrying(pages, more)
    count, listed = coded(pages, scores)
    before = journal.pages.visit(target)
    first_crawl, crawls, changes, previous = journal.now, 1, 0, 0
    if before is not None:
        first_crawl, crawls, previous = before.first_crawl, before.crawls + 1, before.place + 1
        changes = before.changes + (before.content_hash != content_hash)
    fingerprint, anchor_size = 0, 0
    payload = _VISITED.pack(
        first_crawl, crawls, changes, previous, fingerprint, anchor_size, len(content_hash)
    )
    journal.append(
        kinds.VISIT,
        target,
        flags=flags
        | kinds.HAS_SCORES * bool(len(scores))
        | kinds.NOINDEX * noindex
        | kinds.NOFOLLOW * nofollow,
        status=status,
        score=score,
        listed=count,
        payload=payload + content_hash + listed + end,
        lease=lease,
        new=new,
        urls=text,
    )
    journal.landed(out, backoff.OUTCOMES["ok"])
    front.forget_plan(target)
    if target in front.queue:
        front.queue.remove(target, journal.now)
    if front.lost:
        front.lost.forget(target, journal.now)
    journal.admit(journal.pages.num_pages - new, new, text)
    front.prioritise(pages[:count], journal.now)
    if front.settings.revisit is not None:
        plan_visit(front, target, front.settings.revisit)
    return True
