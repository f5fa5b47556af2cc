"""One page of a crawl, looked up without folding all the others.

The index tells which pages may have the URL, their lines in urls.txt which one has; behind the index the text is
searched. One walk over the log's frames, hopping from head to head, finds what happened to the page. So it costs a
few nanoseconds a frame and, behind the index, a fraction of one for each byte, where opening the crawl costs
tenths of a microsecond a URL.
"""

import os

import numpy as np
import numpy.typing as npt

from inlink.base.folder import Folder
from inlink.errors import FolderError
from inlink.store.layout import EVENT_PAGES, MAKERS, NO_PAGE, PAGES, URL_BYTES
from inlink.store.pages import INDEX, Pages
from inlink.store.reader import open_pages

__all__ = ["look_up"]

_CHUNK = 16 << 20


def look_up(folder: str | os.PathLike[str], given: str | int) -> tuple[Pages, int]:
    """A crawl's pages, of which only one is folded in, and that one's number.

    Parameters
    ----------
    folder : path-like
        The crawl's; another process may be writing it.
    given : str or int
        A canonical URL, or a page's number.

    Returns
    -------
    pages : Pages
        On which ``page(number)``, ``url`` and ``maker`` work for the page and those that led to it; nothing else does.
    page : int
        :data:`NO_PAGE` if it is not known.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl.
    """
    pages = open_pages(folder)
    urls = pages.map_urls()
    pages.tally[URL_BYTES] = len(urls)
    slots, counts, known, begin = _index(pages)
    if isinstance(given, str):
        page = _indexed(pages, given, slots, counts)
        if page == NO_PAGE:
            page = _behind(urls, given, begin, known)
    else:
        page = given
    if page == NO_PAGE:
        return pages, page
    if page >= known:
        _mark_lines(pages, urls, begin, known)
    return pages, page if _trace(pages, page) else NO_PAGE


def _index(pages: Pages) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], int, int]:
    """The index's slots and counts, the pages that it covers and the bytes of their URLs; sets the marks."""
    none = np.empty(0, np.uint64)
    try:
        index = Folder(pages.folder / INDEX, INDEX, 1)
        meta = index.header.meta
        slots, counts, marks = index.array("slots"), index.array("counts"), index.array("marks")
    except (FolderError, OSError):
        return none, none, 0, 0
    if meta["seed"] != str(int(pages.hash_seed)) or meta["urls_end"] > len(pages.map_urls()):
        return none, none, 0, 0
    pages.marks[: len(marks)] = marks
    return slots, counts, int(meta["pages"]), int(meta["urls_end"])


def _indexed(pages: Pages, url: str, slots: npt.NDArray[np.uint64], counts: npt.NDArray[np.uint64]) -> int:
    from inlink.store.kernels.table import PADDING, hash_of

    if not len(counts):
        return NO_PAGE
    shard, tag = hash_of(np.frombuffer(url.encode("ascii") + b"\n" + PADDING, np.uint8), pages.hash_seed)
    ends = np.cumsum(counts.astype(np.int64))
    row = slots[int(ends[shard] - counts[shard]) : int(ends[shard])]
    at = int(np.searchsorted(row, np.uint64(int(tag) << 32)))
    while at < len(row) and int(row[at]) >> 32 == int(tag):
        page = (int(row[at]) & 0xFFFFFFFF) - 1
        if pages.url(page) == url:
            return page
        at += 1
    return NO_PAGE


def _behind(urls: npt.NDArray[np.uint8], url: str, begin: int, known: int) -> int:
    """The page of a URL among the lines from ``begin`` on, the first of which is page ``known``."""
    wanted = b"\n" + url.encode("ascii") + b"\n"
    before, lines = b"\n", known  # the end of the line before the chunk, and the lines before it
    for at in range(begin, len(urls), _CHUNK):
        chunk = before + urls[at : at + _CHUNK].tobytes()
        found = chunk.find(wanted)
        if found >= 0:
            return lines + chunk.count(b"\n", 0, found)
        keep = chunk.rfind(b"\n")
        lines += chunk.count(b"\n", 0, keep)
        before = chunk[keep:]
    return NO_PAGE


def _mark_lines(pages: Pages, urls: npt.NDArray[np.uint8], begin: int, known: int) -> None:
    """The places of every 32nd line from ``begin`` on."""
    lines = known
    for at in range(begin, len(urls), _CHUNK):
        starts = np.flatnonzero(urls[at : at + _CHUNK] == 10) + (at + 1)
        numbers = np.arange(lines + 1, lines + 1 + len(starts))
        marked = numbers % 32 == 0
        pages.marks[numbers[marked] >> 5] = starts[marked]
        lines += len(starts)
    if known % 32 == 0:
        pages.marks[known >> 5] = begin


def _trace(pages: Pages, page: int) -> bool:
    """Fold what the log has on one page; False if no event made it known."""
    from inlink.store.kernels.frames import trace

    log = pages.map_events()
    size = len(log) // 40 + 1
    firsts, places = np.empty(size, np.uint32), np.empty(size, np.uint64)
    found = np.zeros(9, np.uint64)
    trace(log, np.uint64(page), firsts, places, found)
    makers, known, visit, failure, errors, state, merged, end, scored = map(int, found)
    if page >= known:
        return False
    pages.makers[:makers], pages.maker_places[:makers] = firsts[:makers], places[:makers]
    pages.tally[PAGES] = pages.tally[EVENT_PAGES] = known
    pages.tally[MAKERS], pages.events_end = makers, end
    pages.answers[page] = 1
    pages.visits[1], pages.failures[1] = visit, failure
    pages.errors[page], pages.states[page] = errors, state
    depth, one = 0, page
    while (one := pages.maker(one)) != NO_PAGE:
        depth += 1
    pages.depths[page] = min(depth, 0xFFFF)
    if merged:
        pages.merged[page] = int(pages.list_at(merged - 1)[0])
    pages.scores[page] = _score(pages, page, visit) if visit or scored else 0.0
    return True


def _score(pages: Pages, page: int, visit: int) -> float:
    """A crawled page's score, else the best that a link was given."""
    from inlink.store.kernels.frames import best_link_score

    if visit:
        return pages.frame(visit - 1).score
    return float(best_link_score(pages.log, np.uint64(pages.events_end), np.uint64(page)))
