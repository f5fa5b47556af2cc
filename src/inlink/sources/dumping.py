"""A crawl as lines of text: inlink's own columns, or those of Aduana's ``page_db_dump``."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from inlink.sources.crawl import arcs_of, page_columns, url_blocks
from inlink.sources.write import as_text, join_rows
from inlink.store.pages import NO_PAGE, STATES, Pages

__all__ = ["PAGE_COLUMNS", "link_lines", "page_lines"]

PAGE_COLUMNS = (
    "page",
    "url",
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
    "content_hash",
    "error",
    "merged_into",
)
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_NONE, _POINT = pa.scalar(b"", pa.large_binary()), pa.scalar(b".", pa.large_binary())


def page_lines(pages: Pages, *, aduana: bool = False, depth: bool = False) -> Iterator[tuple[bytes, int]]:
    """All pages, a line each.

    Parameters
    ----------
    pages : Pages
    aduana : bool
        Blank-separated, without a header: hash (the page in 16 hexadecimal digits), page, URL, first and last crawl
        (seconds since the crawl began; 0.0 where never), changes, crawls, score.
    depth : bool
        The depth stands before the score; there a seed has 1.

    Yields
    ------
    bytes, int
        Some lines, and how many pages are in them.
    """
    if not aduana:
        yield ("\t".join(PAGE_COLUMNS) + "\n").encode(), 0
    for first, text, offsets in url_blocks(pages):
        count = len(offsets) - 1
        urls = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), count, [None, pa.py_buffer(offsets.view(np.int64)), pa.py_buffer(text)]
        )
        columns, visits = page_columns(pages, first, first + count)
        if aduana:
            cells = _of_aduana(first, urls, columns, pages.started, depth)
        else:
            cells = _of_inlink(first, urls, columns, pages, visits)
        separator = b" " if aduana else b"\t"
        row: list[Any] = [cells[0]]
        for cell in cells[1:]:
            row += [separator, cell]
        yield join_rows(*row, b"\n"), count


def link_lines(pages: Pages, *, aduana: bool = False) -> Iterator[tuple[bytes, int]]:
    """All links of latest visits as pairs of pages, a line each; with ``aduana`` blank-separated, without a header."""
    if not aduana:
        yield b"from\tto\n", 0
    for sources, targets, _ in arcs_of(pages):
        if len(sources):
            yield (
                join_rows(as_text(sources), b" " if aduana else b"\t", as_text(targets), b"\n"),
                len(sources),
            )


def _of_inlink(
    first: int,
    urls: pa.Array,
    columns: dict[str, npt.NDArray[Any]],
    pages: Pages,
    visits: npt.NDArray[np.uint64],
) -> list[pa.Array]:
    count = len(urls)
    times = [_where(~np.isnan(columns[name]), columns[name]) for name in ("first_crawl", "last_crawl")]
    seeds = columns["linked_from"] == NO_PAGE
    states = pa.array([name.encode() for name in STATES], pa.large_binary())
    hashes, errors, into = ([b""] * count for _ in range(3))
    log = pages.log.data
    for k in np.flatnonzero(visits).tolist():
        at = int(visits[k]) - 1 + 64
        hashes[k] = log[at + 1 : at + 1 + log[at]].hex().encode()
    for k in np.flatnonzero(columns["errors"]).tolist():
        failure = int(pages.failures[pages.answers[first + k]])
        if failure:
            told = pages.frame(failure - 1).payload[8:].decode("utf-8", "replace")
            errors[k] = " ".join("".join(c if c.isprintable() else " " for c in told).split()).encode()
    for k in range(count if pages.merged else 0):
        if first + k in pages.merged:
            into[k] = str(pages.survivor(first + k)).encode()
    return [
        as_text(np.arange(first, first + count, dtype=np.uint32)),
        urls,
        states.take(pa.array(columns["state"])),
        as_text(columns["score"]),
        as_text(columns["depth"]),
        _where(~seeds, columns["linked_from"]),
        *times,
        *(as_text(columns[name]) for name in ("crawls", "changes", "status", "errors")),
        *(pa.array(cells, pa.large_binary()) for cells in (hashes, errors, into)),
    ]


def _of_aduana(
    first: int, urls: pa.Array, columns: dict[str, npt.NDArray[Any]], started: float, depth: bool
) -> list[pa.Array]:
    numbers = np.arange(first, first + len(urls), dtype=np.uint32)
    digits = _DIGITS[(numbers[:, None] >> np.arange(28, -4, -4, dtype=np.uint32)) & np.uint32(15)]
    hashes = np.concatenate([np.full((len(urls), 8), ord("0"), np.uint8), digits], axis=1)
    ends = np.arange(0, hashes.size + 1, 16, dtype=np.int64)
    hash_text = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(urls), [None, pa.py_buffer(ends), pa.py_buffer(hashes)]
    )
    return [
        hash_text,
        as_text(numbers),
        urls,
        _seconds(columns["first_crawl"] - started),
        _seconds(columns["last_crawl"] - started),
        as_text(columns["changes"]),
        as_text(columns["crawls"]),
        *([as_text(columns["depth"].astype(np.uint32) + np.uint32(1))] if depth else []),
        _scientific(columns["score"]),
    ]


def _where(known: npt.NDArray[np.bool_], values: npt.NDArray[Any]) -> pa.Array:
    """Numbers as text, nothing where they are not known."""
    return pc.if_else(pa.array(known), as_text(values), _NONE)


def _seconds(values: npt.NDArray[np.float64]) -> pa.Array:
    """``%.1f`` of times; 0.0 where there is none, as Aduana has it."""
    tenths = np.rint(np.nan_to_num(np.maximum(values, 0)) * 10).astype(np.int64)
    return pc.binary_join_element_wise(as_text(tenths // 10), as_text(tenths % 10), _POINT)


def _scientific(values: npt.NDArray[np.float32]) -> pa.Array:
    """``%.3e``; each different value is made into text once."""
    different, place = np.unique(values, return_inverse=True)
    texts = pa.array([b"%.3e" % value for value in different.tolist()], pa.large_binary())
    return texts.take(pa.array(place))
