"""A recorded crawl as a web: its links and their scores, statuses, failures, redirects, delays and durations."""

import os
from collections import Counter
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from inlink.base.arrays import Float32Array, UInt32Array
from inlink.crawl.settings import stored
from inlink.factors.trust import seed_pages
from inlink.frontier.visits import visits_of
from inlink.graph.graph import Rows
from inlink.replaying.web import (
    EXCLUDED,
    FAILED,
    NO_PAGE,
    PAGE,
    REDIRECT,
    UNKNOWN,
    Web,
    change_columns,
    merged_graph,
    plain_columns,
)
from inlink.store import format as kinds
from inlink.store.blocks import crawled_rows, url_blocks
from inlink.store.format import HAS_SCORES, HostRecord, LeaseRecord, VisitRecord, size_of, struct_of
from inlink.store.life import GIVEN_UP
from inlink.store.pages import Pages
from inlink.store.reader import known_pages

_KEPT = ("use_scores", "cross_domain_only", "damping", "max_retries", "retry_seconds")
"""Settings of the recorded crawl that also apply to its replay, in addition to delays."""


def web_of_crawl(path: str | os.PathLike[str]) -> Web:
    """Return a crawl's folder as a web. Another process may be writing it.

    A page that was crawled has the links of its latest visit. A page that failed for good fails, and a page that failed
    before it was crawled fails as often again. A page without any answer is unknown.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl, or it cannot be read.
    """
    settings = stored(Path(path))
    pages = known_pages(path)
    try:
        return _web(pages, Path(path), settings)
    finally:
        pages.close()


def _web(pages: Pages, path: Path, settings: Any) -> Web:
    n = pages.num_pages
    urls = _urls(pages)
    columns = plain_columns(n)
    outcomes = np.full(n, UNKNOWN, np.uint8)
    states = np.asarray(pages.states[:n])
    outcomes[np.isin(states, GIVEN_UP)] = FAILED
    outcomes[states == kinds.EXCLUDED] = EXCLUDED
    crawled, places = crawled_rows(pages)
    outcomes[crawled] = PAGE
    offsets, links, link_scores = _visits(pages, crawled, places, columns)
    for page in pages.merged:
        target = pages.survivor(page)
        columns["targets"][page] = target
        outcomes[page] = REDIRECT if outcomes[target] == PAGE else UNKNOWN
    _failures(pages, outcomes, columns)
    columns["delays"] = _delays(pages)
    columns["seeds"] = seed_pages(pages)
    columns["link_scores"] = link_scores
    columns |= change_columns(n, {page: _hashes(pages, page) for page in crawled.tolist()})
    kept = {name: getattr(settings, name) for name in _KEPT}
    polite = {field.name: getattr(settings.politeness, field.name) for field in fields(settings.politeness)}
    return Web(
        name=path.resolve().name,
        hosts="real",
        urls=urls,
        graph=merged_graph(Rows(offsets, links), columns["targets"]),
        offsets=offsets,
        links=links,
        outcomes=outcomes,
        settings=kept | {"politeness": polite},
        url_rules=settings.url_rules,
        notes={
            "pages that are not recorded": int((outcomes == UNKNOWN).sum()),
            "pages whose time to fetch is not recorded": int(np.isnan(columns["seconds"][crawled]).sum()),
        },
        **columns,
    )


def _urls(pages: Pages) -> list[str]:
    urls: list[str] = []
    for _, text, ends in url_blocks(pages):
        raw, at = text.tobytes(), ends.tolist()
        urls += [raw[begin:end].decode("utf-8", "surrogateescape") for begin, end in pairwise(at)]
    return urls[: pages.num_pages]


def _visits(
    pages: Pages, crawled: UInt32Array, places: Any, columns: dict[str, Any]
) -> tuple[Any, UInt32Array, Float32Array]:
    """Return the links of all pages with their scores. Fill in the columns of statuses, scores and seconds."""
    from inlink.store.kernels.frames import link_scores_at

    n, leased = pages.num_pages, _leased(pages)
    rows: dict[int, UInt32Array] = {}
    scores: dict[int, Float32Array] = {}
    scored = False
    for page, place in zip(crawled.tolist(), places.tolist(), strict=True):
        frame = pages.frames.frame(place)
        columns["statuses"][page], columns["scores"][page] = frame.status, frame.score
        columns["fingerprints"][page] = pages.frames.visit(place).fingerprint
        if frame.lease in leased:
            columns["seconds"][page] = max(frame.time - leased[frame.lease], 0.0)
        rows[page] = pages.frames.list_at(place)
        scores[page] = np.ones(len(rows[page]), np.float32)
        if frame.flags & HAS_SCORES:
            link_scores_at(pages.frames.log, np.uint64(place), scores[page])
            scored = True
    counts = np.zeros(n + 1, np.uint64)
    for page, row in rows.items():
        counts[page + 1] = len(row)
    order = sorted(rows)
    links = np.concatenate([rows[page] for page in order]) if order else np.empty(0, np.uint32)
    of_links = np.concatenate([scores[page] for page in order]) if scored else np.empty(0, np.float32)
    return np.cumsum(counts, dtype=np.uint64), links.astype(np.uint32), of_links


def _hashes(pages: Pages, page: int) -> list[tuple[float, bytes]]:
    """Return the visits of a page with a content hash, oldest first: seconds since the crawl began, and the hash."""
    seen, begin = list[tuple[float, bytes]](), size_of(VisitRecord)
    for frame, visit in visits_of(pages, page):
        if visit.hash_size:
            seen.append((frame.time - pages.started, frame.payload[begin : begin + visit.hash_size]))
    return seen[::-1]


def _leased(pages: Pages) -> dict[int, float]:
    """Return the Unix time of each lease, by its number."""
    leased: dict[int, float] = {}
    for place in pages.frames.of_kind(kinds.LEASE):
        frame = pages.frames.frame(place)
        first = LeaseRecord._make(struct_of(LeaseRecord).unpack_from(frame.payload)).first_lease
        leased |= dict.fromkeys(range(first, first + frame.listed), frame.time)
    return leased


def _failures(pages: Pages, outcomes: Any, columns: dict[str, Any]) -> None:
    """Fill in the number of failures of each page before it was crawled, and the status of pages that only failed."""
    failures: Counter[int] = Counter()
    for place in pages.frames.of_kind(kinds.FAILED):
        frame = pages.frames.frame(place)
        if frame.page == NO_PAGE or frame.flags & kinds.EXCLUDED_ONE:
            continue
        if outcomes[frame.page] == PAGE:
            visit = pages.visit(frame.page)
            failures[frame.page] += visit is not None and frame.time <= visit.first_crawl
            continue
        if outcomes[frame.page] == UNKNOWN:
            outcomes[frame.page] = FAILED
        columns["statuses"][frame.page] = frame.status
    for page, count in failures.items():
        columns["tries"][page] = min(count, 255)


def _delays(pages: Pages) -> Float32Array:
    """Return the last delay that each page's host asked for, in seconds: float32[n]."""
    by_host = np.zeros(pages.tally.hosts, np.float32)
    hosts = np.asarray(pages.hosts[: pages.num_pages])
    for place in pages.frames.of_kind(kinds.HOST):
        frame = pages.frames.frame(place)
        if frame.page != NO_PAGE:
            delay = HostRecord._make(struct_of(HostRecord).unpack_from(frame.payload)).delay
            by_host[hosts[frame.page]] = max(delay, 0.0)
    delays: Float32Array = by_host[hosts]
    return delays
