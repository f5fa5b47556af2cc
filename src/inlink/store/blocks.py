"""Read the pages of a crawl in blocks: their links as arcs, their URLs, their columns.

This is for code that reads a whole crawl, such as the builder of its graph, or a dump.
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from inlink.base.arrays import (
    AnyArray,
    Float64Array,
    Int64Array,
    UInt8Array,
    UInt32Array,
    UInt64Array,
    slices,
)
from inlink.base.strings import Strings
from inlink.store.facts import place_named
from inlink.store.format import HEAD_SIZE, MERGE, NO_PAGE, Head, VisitRecord, size_of
from inlink.store.frames import fields_at
from inlink.store.pages import Pages

# Number of bytes of URLs that are read at a time.
BLOCK = 1 << 22
# Number of arcs that are read at a time.
ARCS = 1 << 18
NEWLINE = 10
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
COLUMNS = (
    "state",
    "score",
    "depth",
    "linked_from",
    "first_crawl",
    "last_crawl",
    "crawls",
    "changes",
    "status",
    "errors",
)
"""The columns of :func:`page_columns`."""
FACT_COLUMNS = (
    "title",
    "heading",
    "headings",
    "robots",
    "language",
    "content_type",
    "size",
    "seconds",
    "alternates",
    "canonicals",
)
"""Further columns of pages: the data of :class:`inlink.protocol.PageFacts`. Lists are separated by blanks."""


def crawled_rows(
    pages: Pages, first_row: int = 1, end_row: int | None = None
) -> tuple[UInt32Array, UInt64Array]:
    """Return the pages that were crawled and not merged, and the places of their latest visits: uint32[k], uint64[k].

    Only pages in rows ``first_row``, …, ``end_row`` - 1 of the crawl's answered pages are returned.
    """
    crawled, places = pages.crawled(first_row, end_row)
    if pages.merged:
        kept = np.fromiter((page not in pages.merged for page in crawled.tolist()), bool, len(crawled))
        crawled, places = crawled[kept], places[kept]
    return crawled, places


def arcs_of(
    pages: Pages, first_row: int = 1, end_row: int | None = None
) -> Iterator[tuple[UInt32Array, UInt32Array, int]]:
    """Yield the links of all latest visits. A link to a merged page becomes a link to the page it was merged into.

    Parameters
    ----------
    pages : Pages
        The pages of a crawl.
    first_row, end_row : int
        Read only the visits in these rows of the crawl's answered pages, which are 1, 2, ….

    Yields
    ------
    sources, targets : uint32[k]
        Sources in the order in which they were first crawled. A link may occur twice if it led to a merged page.
    done : int
        Number of bytes of the log that have been read so far.
    """
    crawled, places = crawled_rows(pages, first_row, end_row)
    merged = np.sort(np.fromiter(pages.merged, np.uint32))
    survivors = np.array([pages.survivor(page) for page in merged.tolist()], np.uint32)
    at = 0
    for counts, targets, lengths in _lists_at(pages.frames.at(places), places, "length"):
        if len(merged):
            place = np.minimum(np.searchsorted(merged, targets), len(merged) - 1)
            targets = np.where(merged[place] == targets, survivors[place], targets)
        yield np.repeat(crawled[at : at + len(counts)], counts), targets, int(lengths.sum())
        at += len(counts)


class LinkRows:
    """The links of fetched pages. Each iteration decodes them from the log, in blocks.

    Parameters
    ----------
    log : uint8[bytes]
        The crawl's log.
    pages, places : uint32[k], uint64[k]
        Crawled pages, each once, and the places of their latest visits in the log, which must be sound: see
        :func:`inlink.store.kernels.sound.row_sound`.
    hosts : uint32[num_pages] or None
        The pages' hosts. If given, links within a host do not count.
    between : callable or None
        Called without arguments every few milliseconds of work.
    """

    def __init__(
        self,
        log: UInt8Array,
        pages: UInt32Array,
        places: UInt64Array,
        hosts: UInt32Array | None,
        between: Callable[[], None] | None = None,
    ) -> None:
        self.log, self.pages, self.places, self._hosts, self._between = log, pages, places, hosts, between

    def __iter__(self) -> Iterator[tuple[UInt32Array, Int64Array, UInt32Array]]:
        """Yield pages, uint32[k], their numbers of links, int64[k], and the links of all of them, uint32[…]."""
        at = 0
        for counts, targets, kinds in _lists_at(self.log, self.places, "kind"):
            pages = self.pages[at : at + len(counts)]
            at += len(counts)
            if self._hosts is not None:
                sources = np.repeat(np.arange(len(pages)), counts)
                kept = (self._hosts[targets] != self._hosts[pages[sources]]) | (kinds[sources] == MERGE)
                targets, counts = targets[kept], np.bincount(sources[kept], minlength=len(pages))
            yield pages, counts, targets
            if self._between is not None:
                self._between()

    def means(self, values: Float64Array) -> Iterator[tuple[UInt32Array, Float64Array]]:
        """Yield pages with links, uint32[k], and the means of the values of the pages that they link to, float64[k].

        The values of a block's means are read when the block is reached, so values may change between two blocks.
        """
        for pages, counts, targets in self:
            linking = counts > 0
            if linking.any():
                starts = (np.cumsum(counts) - counts)[linking]
                yield pages[linking], np.add.reduceat(values[targets], starts) / counts[linking]


def _lists_at(
    log: UInt8Array, places: UInt64Array, field: str
) -> Iterator[tuple[npt.NDArray[np.int64], UInt32Array, npt.NDArray[Any]]]:
    """Yield blocks of lists: their lengths int64[k], their pages uint32[…], and a field of their heads [k]."""
    from inlink.store.kernels.frames import link_count, links_of_frames

    out = np.empty(ARCS, np.uint32)
    at = 0
    while at < len(places):
        block = places[at : at + ARCS // 16]
        offsets = np.empty(len(block) + 1, np.uint64)
        done = int(links_of_frames(log, block, offsets, out))
        if done == 0:
            out = np.empty(int(link_count(log, block[0])), np.uint32)
            continue
        counts = np.diff(offsets[: done + 1]).astype(np.int64)
        yield counts, out[: int(offsets[done])].copy(), fields_at(log, block[:done], Head, field)
        at += done


def anchors_of(pages: Pages, sources: UInt32Array, targets: UInt32Array) -> Strings:
    """Return the text of each link from ``sources`` to ``targets``, uint32[k]; empty if it has none.

    The links are those of :func:`arcs_of`, and those of a source are adjacent. Control characters become blanks.
    """
    rows = pages.answers[sources]
    places = np.where(rows > 0, pages.visits[rows], np.uint64(0))
    runs = np.flatnonzero(np.diff(sources, prepend=sources[:1] + np.uint32(1)))
    texts: list[str] = []
    for begin, end in pairwise([*runs.tolist(), len(sources)]):
        of_page = pages.frames.anchors(int(places[begin]) - 1) if places[begin] else {}
        if pages.merged:
            # A link with a text comes last, so that it counts.
            listed = sorted(of_page.items(), key=lambda item: item[1] != "")
            of_page = {pages.survivor(page): text for page, text in listed}
        texts += [of_page.get(page, "") for page in targets[begin:end].tolist()]
    return Strings.of(_CONTROLS.sub(" ", text) for text in texts)


class RawLink(NamedTuple):
    """A link before redirects and merges.

    ``target`` is its page; None for a link that is not followed, which is no page by itself. ``place`` is one of
    :data:`inlink.protocol.PLACES`, or empty.
    """

    target: int | None
    url: str
    text: str
    place: str
    nofollow: bool


def raw_links(pages: Pages, place: int) -> list[RawLink]:
    """Return the links of the visit at ``place``, those with ``rel=nofollow`` last.

    Raises
    ------
    inlink.errors.FolderError
        If the log is damaged there.
    """
    frames = pages.frames
    targets, texts, stored = frames.list_at(place).tolist(), frames.anchors(place), frames.facts(place)
    codes = (
        stored.places if stored is not None and len(stored.places) == len(targets) else bytes(len(targets))
    )
    links = [
        RawLink(target, url, texts.get(target, ""), place_named(code), False)
        for target, url, code in zip(targets, pages.urls(targets), codes, strict=True)
    ]
    if stored is not None:
        links += [RawLink(None, url, text, there, True) for url, text, there in stored.facts.nofollow_links]
    return links


def facts_at(pages: Pages, visit: int) -> list[Any] | None:
    """The values of :data:`FACT_COLUMNS` of a visit, which is given by its place plus 1; None if it has no facts."""
    stored = pages.frames.facts(visit - 1) if visit else None
    if stored is None:
        return None
    values = {name: getattr(stored.facts, name) for name in FACT_COLUMNS}
    values["alternates"] = " ".join(f"{language}={url}" for language, url in stored.facts.alternates)
    values["canonicals"] = " ".join(stored.facts.canonicals)
    return list(values.values())


def fact_columns(pages: Pages, visits: UInt64Array) -> dict[str, AnyArray]:
    """Return :data:`FACT_COLUMNS` of pages with these visits as arrays; empty if no page has facts.

    Texts are object[n] of str, ``headings`` and ``size`` int64[n], ``seconds`` float64[n]. Pages without facts have
    empty texts and zeros.
    """
    rows = [facts_at(pages, visit) for visit in visits.tolist()]
    example = next((row for row in rows if row is not None), None)
    if example is None:
        return {}
    none = [type(value)() for value in example]
    kinds = {str: object, int: np.int64, float: np.float64}
    values = zip(*(row or none for row in rows), strict=True)
    return {
        name: np.array(column, kinds[type(value)])
        for name, column, value in zip(FACT_COLUMNS, values, example, strict=True)
    }


def num_links(pages: Pages, first_row: int = 1, end_row: int | None = None) -> int:
    """Return the number of links of the latest visits in rows ``first_row``, …, ``end_row`` - 1 of answered pages."""
    _, places = crawled_rows(pages, first_row, end_row)
    parts = (places[part] for part in slices(len(places), ARCS))
    return sum(
        int(fields_at(pages.frames.at(part), part, Head, "listed").sum(dtype=np.int64)) for part in parts
    )


def url_blocks(
    pages: Pages, size: int = BLOCK, first: int = 0
) -> Iterator[tuple[int, UInt8Array, UInt64Array]]:
    """Yield the URLs of all pages in order, in blocks.

    Parameters
    ----------
    pages : Pages
        The pages of a crawl.
    size : int
        Maximum number of bytes of a block; a longer URL is a block of its own.
    first : int
        The page to begin with. If it is not 0, ``pages`` must have been read with their URLs.

    Yields
    ------
    first : int
        The page of the block's first URL.
    text : uint8[…]
        The URLs, one right after the other.
    offsets : uint64[k + 1]
        The place in the text where each URL begins, and the end of the last.
    """
    begin, wanted = 0, size
    if first:
        begin = pages.table.url_begin(first) if first < pages.num_pages else pages.tally.url_bytes
    while begin < pages.tally.url_bytes:
        raw = pages.table.text(begin, min(begin + wanted, pages.tally.url_bytes))
        ends = np.flatnonzero(raw == NEWLINE)
        if not len(ends):
            wanted *= 2
            continue
        raw = raw[: int(ends[-1]) + 1]
        offsets = np.zeros(len(ends) + 1, np.uint64)
        offsets[1:] = ends - np.arange(len(ends))
        yield first, raw[raw != NEWLINE], offsets
        first, begin, wanted = first + len(ends), begin + len(raw), size


def content_hash_at(pages: Pages, place: int) -> bytes:
    """Return the content hash of the visit whose frame is at ``place``."""
    begin = place + HEAD_SIZE
    log = pages.frames.at(np.array([place]))
    (size,) = fields_at(log, np.array([begin], np.uint64), VisitRecord, "hash_size").tolist()
    begin += size_of(VisitRecord)
    return log[begin : begin + int(size)].tobytes()


def page_columns(pages: Pages, low: int, high: int) -> tuple[dict[str, npt.NDArray[Any]], UInt64Array]:
    """Return the columns of pages low, …, high - 1.

    Returns
    -------
    columns : dict
        By the names in :data:`COLUMNS`: state uint8 (places in :data:`inlink.store.pages.STATES`), score float32, depth
        uint16, linked_from uint32 (a page, or NO_PAGE), first_crawl and last_crawl float64 (seconds since 1970,
        NaN for never), crawls and changes uint32, status uint16 (0 if there is none), errors uint8.
    visits : uint64[high − low]
        The place of each page's latest visit in the log, plus 1; 0 if there is none.
    """
    count, rows = high - low, pages.answers[low:high]
    visits = np.where(rows > 0, pages.visits[rows], np.uint64(0))
    merged = np.array([page - low for page in range(low, high) if page in pages.merged], np.int64)
    merges = visits[merged] - np.uint64(1)
    visits[merged] = 0
    seen = np.flatnonzero(visits)
    places = visits[seen] - np.uint64(1)
    log = pages.frames.at(places)
    times = np.full((2, count), np.nan)
    figures = np.zeros((2, count), np.uint32)
    status = np.zeros(count, np.uint16)
    payloads = places + np.uint64(HEAD_SIZE)
    times[0, seen], times[1, seen] = (
        fields_at(log, payloads, VisitRecord, "first_crawl"),
        fields_at(log, places, Head, "time"),
    )
    figures[0, seen], figures[1, seen] = (
        fields_at(log, payloads, VisitRecord, "crawls"),
        fields_at(log, payloads, VisitRecord, "changes"),
    )
    status[seen] = fields_at(log, places, Head, "status")
    errors = pages.errors[low:high]
    failed = np.flatnonzero((errors > 0) & (rows > 0))
    failed = failed[pages.failures[rows[failed]] > 0]
    failures = pages.failures[rows[failed]] - np.uint64(1)
    status[failed] = fields_at(pages.frames.at(failures), failures, Head, "status")
    led = fields_at(pages.frames.at(merges), merges, Head, "status")
    status[merged[led > 0]] = led[led > 0]
    made = pages.tally.makers
    makers = np.searchsorted(pages.makers[:made], np.arange(low, high, dtype=np.uint32), "right") - 1
    made_by = pages.maker_places[makers] if made else np.empty(0, np.uint64)
    linked_from = (
        fields_at(pages.frames.at(made_by), made_by, Head, "page") if made else np.full(count, NO_PAGE, "<u4")
    )
    columns = {
        "state": pages.states[low:high],
        "score": pages.scores[low:high],
        "depth": pages.depths[low:high],
        "linked_from": linked_from.astype(np.uint32),
        "first_crawl": times[0],
        "last_crawl": times[1],
        "crawls": figures[0],
        "changes": figures[1],
        "status": status,
        "errors": errors,
    }
    return columns, visits
