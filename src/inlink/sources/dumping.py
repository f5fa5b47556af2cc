"""A crawl as lines of text: inlink's own columns, or those of Aduana's ``page_db_dump``."""

from collections.abc import Iterator

import numpy as np

from inlink.base.arrays import AnyArray, BoolArray, Float32Array, Float64Array, UInt64Array, slices
from inlink.base.strings import Strings, bytes_in
from inlink.sources.write import as_text, in_quotes, join_columns, join_rows
from inlink.store.blocks import (
    BLOCK,
    COLUMNS,
    FACT_COLUMNS,
    anchors_of,
    arcs_of,
    content_hash_at,
    crawled_rows,
    facts_at,
    page_columns,
    raw_links,
    url_blocks,
)
from inlink.store.format import NO_PAGE, STATES
from inlink.store.page import error_of, merge_reason
from inlink.store.pages import Pages

PAGE_COLUMNS = ("page", "url", *COLUMNS, "content_hash", "error", "merged_into", "merge_reason", "canonical")
ROWS = 1 << 16
"""Number of crawled pages whose links are written at a time."""

_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


def page_lines(
    pages: Pages,
    *,
    aduana: bool = False,
    depth: bool = False,
    facts: bool = False,
    safe_cells: bool = False,
    urls: bool = False,
    first: int = 0,
    size: int = BLOCK,
) -> Iterator[tuple[bytes, int]]:
    """Yield pages as text, one line per page, in blocks: see :meth:`inlink.CrawlView.dump` for the other parameters.

    Parameters
    ----------
    first : int
        The first page. The header comes only before page 0.
    size : int
        Bytes of URLs in a block.

    Yields
    ------
    bytes, int
        A block of lines, and the number of pages in it.
    """
    names = PAGE_COLUMNS + FACT_COLUMNS if facts else PAGE_COLUMNS
    if not aduana and first == 0:
        yield ("\t".join(names) + "\n").encode(), 0
    for begin, text, offsets in url_blocks(pages, size, first):
        count = len(offsets) - 1
        own_urls = Strings(text, offsets)
        columns, visits = page_columns(pages, begin, begin + count)
        if aduana:
            cells = _of_aduana(begin, own_urls, columns, pages.started, depth)
        else:
            cells = _of_inlink(begin, own_urls, columns, pages, visits, urls)
            if facts:
                cells += _of_facts(pages, visits)
            if safe_cells:
                texts = ("url", "error", "title", "heading", "robots", "language", "content_type")
                named = zip(names, cells, strict=True)
                cells = [cell.safe_cells() if name in texts else cell for name, cell in named]
        yield join_rows(*_row(cells, aduana)), count


def link_lines(
    pages: Pages,
    *,
    aduana: bool = False,
    anchors: bool = False,
    safe_cells: bool = False,
    urls: bool = False,
    first_row: int = 1,
    rows: int = ROWS,
) -> Iterator[tuple[bytes, int]]:
    """Yield the links of latest visits, one pair of pages per line, in blocks; parameters as of :func:`page_lines`.

    Parameters
    ----------
    first_row : int
        The first row of the crawl's answered pages. The header comes only before row 1.
    rows : int
        Rows in a block.

    Yields
    ------
    bytes, int
        A block of lines, and the number of rows in it.
    """
    if not aduana and first_row == 1:
        yield b"from\tto\tanchor\n" if anchors else b"from\tto\n", 0
    for part in slices(pages.tally.rows + 1, rows, first_row):
        lines = []
        for sources, targets, _ in arcs_of(pages, part.start, part.stop):
            if not len(sources):
                continue
            cells = [_named(pages, ends) if urls else as_text(ends) for ends in (sources, targets)]
            if anchors:
                texts = anchors_of(pages, sources, targets)
                texts = texts.safe_cells() if safe_cells else texts
                cells.append(in_quotes(texts, texts.count(bytes_in(b'"')) > 0))
            lines.append(join_rows(*_row(cells, aduana)))
        yield b"".join(lines), part.stop - part.start


def raw_link_lines(
    pages: Pages, *, safe_cells: bool = False, urls: bool = False, first_row: int = 1, rows: int = ROWS
) -> Iterator[tuple[bytes, int]]:
    """Yield the links of latest visits, before redirects and merges, in blocks of lines.

    The columns are the page, the linked page (empty for a link that is not followed), its URL, the text and the place
    of the link, and ``nofollow`` or nothing. The parameters are those of :func:`link_lines`.

    Yields
    ------
    bytes, int
        A block of lines, and the number of rows in it.
    """
    if first_row == 1:
        yield b"from\tto\turl\tanchor\tplace\trel\n", 0
    for part in slices(pages.tally.rows + 1, rows, first_row):
        crawled, places = crawled_rows(pages, part.start, part.stop)
        cells: list[list[str]] = [[] for _ in range(6)]
        name = pages.url if urls else str
        for page, place in zip(crawled.tolist(), places.tolist(), strict=True):
            for link in raw_links(pages, place):
                target = "" if link.target is None else name(link.target)
                values = (name(page), target, link.url, link.text, link.place)
                for column, value in zip(cells, (*values, "nofollow" * link.nofollow), strict=True):
                    column.append(_line(value))
        columns = [Strings.of(texts) for texts in cells]
        columns[3] = columns[3].safe_cells() if safe_cells else columns[3]
        columns[3] = in_quotes(columns[3], columns[3].count(bytes_in(b'"')) > 0)
        yield join_rows(*_row(columns)) if cells[0] else b"", part.stop - part.start


def item_lines(pages: Pages, *, latest: bool = False) -> Iterator[tuple[bytes, int]]:
    """Yield the items of visits as JSON lines, in the order of the log, in blocks.

    Parameters
    ----------
    pages : Pages
        The pages of a crawl.
    latest : bool
        Leave out the items of earlier visits, and of pages that were merged into another page later.

    Yields
    ------
    bytes, int
        A block of lines, and the number of bytes of the log that were read for it.

    Raises
    ------
    inlink.errors.FolderError
        If the log is damaged.
    """
    begin = 0
    for visits, of_pages, places, done in pages.frames.items():
        if latest:
            places = places[pages.visits[pages.answers[of_pages]] == visits + np.uint64(1)]
        for place in places.tolist():
            yield pages.frames.frame(place).payload, 0
        yield b"", done - begin
        begin = done


def _line(text: str) -> str:
    """A text without control characters, for a cell of a line."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _of_facts(pages: Pages, visits: UInt64Array) -> list[Strings]:
    """The columns :data:`FACT_COLUMNS` of pages with these visits; empty where there are none."""
    rows = [facts_at(pages, visit) for visit in visits.tolist()]
    none = [""] * len(FACT_COLUMNS)
    cells = [[_line(str(value)) for value in row] if row is not None else none for row in rows]
    return [Strings.of(column) for column in zip(*cells, strict=True)]


def _row(cells: list[Strings], aduana: bool = False) -> list[Strings | bytes]:
    """Return the cells of a row, each with its separator or line end."""
    separator = b" " if aduana else b"\t"
    return [part for cell in cells for part in (cell, separator)][:-1] + [b"\n"]


def _of_inlink(
    first: int,
    urls: Strings,
    columns: dict[str, AnyArray],
    pages: Pages,
    visits: UInt64Array,
    by_url: bool,
) -> list[Strings]:
    count = len(urls)
    name = pages.url if by_url else str
    times = [_where(~np.isnan(columns[name]), columns[name]) for name in ("first_crawl", "last_crawl")]
    seeds = columns["linked_from"] == NO_PAGE
    states = Strings.of(STATES)
    hashes, errors, into, reasons, canonicals = ([b""] * count for _ in range(5))
    for k in np.flatnonzero(visits).tolist():
        hashes[k] = content_hash_at(pages, int(visits[k]) - 1).hex().encode()
    for k in np.flatnonzero(columns["errors"]).tolist():
        failure = int(pages.failures[pages.answers[first + k]])
        if failure:
            errors[k] = _line(error_of(pages.frames.frame(failure - 1))).encode()
    for k in range(count if pages.merged or pages.canonicals else 0):
        merge = pages.merge_of(first + k)
        if merge is not None:
            into[k] = name(pages.survivor(first + k)).encode()
            reasons[k] = (merge_reason(merge) or "").encode()
        canonical = pages.canonicals.get(first + k)
        canonicals[k] = b"" if canonical is None else name(canonical).encode()
    linkers = _where(~seeds, columns["linked_from"])
    if by_url:
        linkers = linkers.with_rows(np.flatnonzero(~seeds), _named(pages, columns["linked_from"][~seeds]))
    return [
        as_text(np.arange(first, first + count, dtype=np.uint32)),
        urls,
        states.take(columns["state"]),
        as_text(columns["score"]),
        as_text(columns["depth"]),
        linkers,
        *times,
        *(as_text(columns[name]) for name in ("crawls", "changes", "status", "errors")),
        *(Strings.of(cells) for cells in (hashes, errors, into, reasons, canonicals)),
    ]


def _of_aduana(
    first: int, urls: Strings, columns: dict[str, AnyArray], started: float, depth: bool
) -> list[Strings]:
    numbers = np.arange(first, first + len(urls), dtype=np.uint32)
    digits = _DIGITS[(numbers[:, None] >> np.arange(28, -4, -4, dtype=np.uint32)) & np.uint32(15)]
    hashes = np.concatenate([np.full((len(urls), 8), ord("0"), np.uint8), digits], axis=1)
    ends = np.arange(0, hashes.size + 1, 16, dtype=np.uint64)
    return [
        Strings(hashes.ravel(), ends),
        as_text(numbers),
        urls,
        _seconds(columns["first_crawl"] - started),
        _seconds(columns["last_crawl"] - started),
        as_text(columns["changes"]),
        as_text(columns["crawls"]),
        *([as_text(columns["depth"].astype(np.uint32) + np.uint32(1))] if depth else []),
        _scientific(columns["score"]),
    ]


def _named(pages: Pages, numbers: AnyArray) -> Strings:
    """The URLs of pages, text[n]."""
    return Strings.of(pages.table.urls(numbers.astype(np.uint32)))


def _where(present: BoolArray, values: AnyArray) -> Strings:
    """Return numbers as text, empty where they are not known."""
    unknown = np.flatnonzero(~present)
    return as_text(np.where(present, values, 0)).with_rows(unknown, Strings.of([b""] * len(unknown)))


def _seconds(values: Float64Array) -> Strings:
    """Format times as ``%.1f``; 0.0 if there is none, as in Aduana."""
    tenths = np.rint(np.nan_to_num(np.maximum(values, 0)) * 10).astype(np.int64)
    return join_columns(as_text(tenths // 10), b".", as_text(tenths % 10))


def _scientific(values: Float32Array) -> Strings:
    """Format numbers as ``%.3e``. Each distinct value is formatted once."""
    different, place = np.unique(values, return_inverse=True)
    return Strings.of([b"%.3e" % value for value in different.tolist()]).take(place)
