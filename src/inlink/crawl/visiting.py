"""A page that was fetched: its links taken in, and its visit written as one event."""

from collections.abc import Callable, Iterable, MutableMapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from inlink.base.arrays import Float32Array, UInt32Array
from inlink.crawl.arguments import (
    check_flags,
    checked_fingerprint,
    checked_hash,
    checked_score,
    checked_status,
)
from inlink.crawl.intake import (
    apart,
    canonical_lines,
    carried_forms,
    check_canonical,
    coded,
    hrefs_and_scores,
    order_of,
    to_lines,
    with_carried,
)
from inlink.crawl.journal import Answered, Journal
from inlink.frontier import backoff
from inlink.frontier.visits import plan_visit
from inlink.protocol import AnyLink, Link
from inlink.store import format as kinds
from inlink.store.anchors import encode_anchors
from inlink.store.format import VisitRecord, struct_of
from inlink.store.pages import NO_PAGE

__all__ = ["take_visit"]

_VISITED = struct_of(VisitRecord)


class _Given(NamedTuple):
    """The links of a page as they were given, checked: see :mod:`.intake`. ``ready`` are lines in canonical form."""

    hrefs: list[str]
    scores: Float32Array
    texts: list[str]
    carried: dict[int, Link]
    ready: bytes | None


class _Listed(NamedTuple):
    """The links of a page as its visit lists them.

    ``pages`` are increasing. ``new`` of them were not known, and ``text`` has their URLs. ``coded`` is the list
    with its scores, ``anchors`` the anchor texts, ``carried`` the carried data.
    """

    pages: UInt32Array
    new: int
    text: bytes
    flags: int
    coded: bytes
    anchors: bytes
    carried: bytes


def take_visit(
    journal: Journal,
    refused: MutableMapping[str, int],
    page: Answered,
    links: Iterable[AnyLink],
    *,
    score: float,
    content_hash: bytes,
    fingerprint: int,
    status: int,
    redirected_to: str | None,
    canonical_link: str | Link | None,
    noindex: bool,
    nofollow: bool,
    links_are_canonical: bool,
) -> bool:
    """See :meth:`inlink.Crawl.crawled`; ``refused`` counts the links that are refused, by reason."""
    # All arguments are checked before anything changes.
    plain, carried, texts = apart(links)
    hrefs, scores = hrefs_and_scores(plain)
    score, status, content_hash = checked_score(score), checked_status(status), checked_hash(content_hash)
    fingerprint = checked_fingerprint(fingerprint)
    check_canonical(redirected_to, canonical_link)
    if not (noindex is nofollow is links_are_canonical is False):
        check_flags(noindex=noindex, nofollow=nofollow, links_are_canonical=links_are_canonical)
    given = _Given(hrefs, scores, texts, carried, canonical_lines(hrefs) if links_are_canonical else None)
    front = journal.frontier
    number, out = journal.answered(page)
    if number == NO_PAGE:
        return False
    target = number if redirected_to is None else journal.redirect(number, redirected_to)
    journal.name_canonical(target, canonical_link, status)
    listed = _number_links(journal, refused, given, partial(journal.base, number, redirected_to))
    head = _head(journal, target, content_hash, fingerprint, len(listed.anchors))
    journal.answer(
        kinds.VISIT,
        target,
        flags=listed.flags | kinds.NOINDEX * noindex | kinds.NOFOLLOW * nofollow,
        status=status,
        score=score,
        listed=len(listed.pages),
        payload=head + listed.coded + listed.anchors + listed.carried,
        lease=out.number if out is not None else 0,
        new=listed.new,
        urls=listed.text,
    )
    journal.landed(out, backoff.OUTCOMES["ok"])
    journal.admit(journal.pages.num_pages - listed.new, listed.new, listed.text)
    front.prioritise(listed.pages, journal.now)
    if front.settings.revisit is not None:
        plan_visit(front, target, front.settings.revisit)
    journal.merge_canonicals(target)
    return True


def _number_links(
    journal: Journal, refused: MutableMapping[str, int], given: _Given, base: Callable[[], str]
) -> _Listed:
    """Give the links of a page their numbers. ``base`` returns the URL against which they are resolved."""
    rules, self_links = journal.url_rules, journal.frontier.settings.self_links
    scores, texts = given.scores, given.texts
    kept: Sequence[int]
    if given.ready is not None:
        lines, kept = given.ready, range(len(given.hrefs))
    else:
        lines, kept, scores, texts = to_lines(
            given.hrefs, scores, texts, base, rules, refused, self_links, tracked=bool(given.carried)
        )
    more = carried_forms(given.carried, base, rules, refused, self_links) if given.carried else {}
    lines, found, scores, texts = with_carried(lines, len(kept), scores, texts, more)
    if more:
        # Pages are numbered in the order of the links.
        order, rows = order_of(kept, len(given.hrefs), given.carried, more), lines.splitlines(keepends=True)
        pages, new, text = journal.pages.number_lines(b"".join(rows[k] for k in order.tolist()), found)
        pages = pages[np.argsort(order)]
    else:
        pages, new, text = journal.pages.number_lines(lines, found)
    flags, end = journal.carrying(pages, more)
    said: dict[int, str] = {}
    for page, words in zip(pages.tolist(), texts, strict=True) if texts else ():
        if words:
            said.setdefault(page, words)
    count, listed = coded(pages, scores)
    anchors = encode_anchors(said, pages[:count].tolist()) if said else b""
    flags |= kinds.HAS_SCORES * bool(len(scores)) | kinds.HAS_ANCHORS * bool(anchors)
    return _Listed(pages[:count], new, text, flags, listed, anchors, end)


def _head(journal: Journal, page: int, content_hash: bytes, fingerprint: int, anchor_size: int) -> bytes:
    """The beginning of a visit's payload, with the content hash."""
    before = journal.pages.visit(page)
    first_crawl, crawls, changes, previous = journal.now, 1, 0, 0
    if before is not None:
        first_crawl, crawls, previous = before.first_crawl, before.crawls + 1, before.place + 1
        changes = before.changes + (before.content_hash != content_hash)
    record = _VISITED.pack(
        first_crawl, crawls, changes, previous, fingerprint, anchor_size, len(content_hash)
    )
    return record + content_hash
