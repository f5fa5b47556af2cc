"""The pages whose URLs match, found among all URLs, a few milliseconds at a time."""

import time
from collections.abc import Callable

from inlink.base.arrays import AnyArray
from inlink.base.strings import Strings
from inlink.crawl import shown
from inlink.crawl.arguments import position_of
from inlink.store.blocks import url_blocks
from inlink.store.pages import Pages

__all__ = ["search"]

_URL_BYTES = 1 << 16


def search(
    pages: Pages,
    matches: Callable[[Strings], AnyArray],
    count: int,
    cursor: str | None,
    seconds: float,
) -> shown.MatchedPages:
    """The next pages whose URLs match, at most ``count``, found in about ``seconds`` of CPU time.

    Parameters
    ----------
    pages : Pages
    matches : callable
        Returns the positions of the URLs that match; made by :func:`inlink.urls.matching.matcher`.
    count : int
    cursor : str or None
        The cursor of the part before.
    seconds : float

    Raises
    ------
    inlink.errors.ParameterError
        If the cursor is of another call.
    """
    known = pages.num_pages
    position = position_of(cursor, known)
    rows: list[shown.PageRow] = []
    stop = time.thread_time() + seconds
    # Some expressions take RE2 14 µs a byte, so the first slices are short.
    at_once = 8
    for first, text, offsets in url_blocks(pages, _URL_BYTES, position):
        urls = Strings(text, offsets)
        done = 0
        while done < len(urls):
            part = urls[done : done + at_once]
            began = time.thread_time()
            for row in matches(part).tolist():
                rows.append(shown.PageRow(first + done + row, (part[row] or b"").decode("ascii")))
                if len(rows) == count:
                    return _found(rows, first + done + row + 1, known)
            done += len(part)
            position = first + done
            now = time.thread_time()
            if now > stop:
                return _found(rows, position, known)
            at_once = at_once * 2 if now - began < seconds / 4 else max(at_once // 2, 1)
    return _found(rows, known, known)


def _found(rows: list[shown.PageRow], position: int, known: int) -> shown.MatchedPages:
    return shown.MatchedPages(rows, position, known, str(position) if position < known else None)
