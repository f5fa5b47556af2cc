"""A crawl's folder as a graph: nodes are its pages, arcs the links of each page's latest visit.

A page's id is its node. A page that was merged into another (a redirect, a canonical link) keeps its node and has no
arcs: its inlinks are the survivor's. All of this also works while another process crawls, and shows what it had written
when the folder was opened.

Rankings of a crawl lie in its folder, as ``rankings/NAME``, bound to the crawl's uuid. Ids stay, so a ranking holds
for the pages that it knew, however many came later.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import numpy.typing as npt

from inlink.base.folder import Folder, Header
from inlink.base.progress import track
from inlink.graph.batches import ArcBatch
from inlink.graph.graph import Graph, Rows
from inlink.graph.names import Names
from inlink.rank.ranking import FORMAT as RANKING_FORMAT
from inlink.rank.ranking import KIND as RANKING
from inlink.rank.ranking import Ranking
from inlink.sources.recognise import FORMATS
from inlink.sources.source import Source
from inlink.store.layout import MAKERS
from inlink.store.pages import NO_PAGE, Pages
from inlink.store.reader import KIND as CRAWL
from inlink.store.reader import VERSION as CRAWL_VERSION
from inlink.store.reader import open_pages

__all__ = [
    "COLUMNS",
    "CRAWL",
    "CRAWL_VERSION",
    "CrawlGraph",
    "arcs_of",
    "columns_for",
    "crawl_source",
    "graph_in",
    "is_crawl",
    "known_pages",
    "links_from",
    "links_to",
    "load_ranking",
    "num_links",
    "page_columns",
    "top_of",
    "url_blocks",
    "values_of",
]

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]

BLOCK = 1 << 22  # bytes of URLs at a time
ARCS = 1 << 18  # arcs at a time
NEWLINE = 10
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
"""What :func:`page_columns` tells of each page."""


def is_crawl(path: str | os.PathLike[str]) -> bool:
    """Whether a folder is a crawl's, of whatever version."""
    try:
        raw = (Path(path) / "header.json").read_bytes()
        return msgspec.json.decode(raw, type=Header).kind == CRAWL
    except (OSError, msgspec.MsgspecError):
        return False


def known_pages(path: str | os.PathLike[str], *, with_urls: bool = False) -> Pages:
    """All that a crawl's folder tells of its pages now.

    Parameters
    ----------
    path : path-like
    with_urls : bool
        Whether pages are to be found by their URLs, and URLs by their pages, which takes longer.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl.
    """
    pages = open_pages(path, with_urls=with_urls)
    pages.recover()
    return pages


# -- the graph ---------------------------------------------------------------------------------------------------


def crawl_source(path: str | os.PathLike[str]) -> Source:
    """A crawl's folder for the builder.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl.
    """
    pages = known_pages(path)

    def batches() -> Iterator[ArcBatch]:
        none = np.empty(0, np.uint32)
        yield ArcBatch(none, none, crawled=_crawled(pages)[0])
        with track("reading the crawl's links", pages.events_end, "B") as task:
            for sources, targets, done in arcs_of(pages):
                yield ArcBatch(sources, targets)
                task.advance(done)

    return Source(batches(), _names(pages), pages.num_pages, "page")


def _crawled(pages: Pages) -> tuple[U32, U64]:
    """The pages that were crawled and not merged, and where their latest visits are: uint32[k], uint64[k]."""
    found, places = pages.crawled()
    if pages.merged:
        kept = ~np.isin(found, np.fromiter(pages.merged, np.uint32))
        found, places = found[kept], places[kept]
    return found, places


def arcs_of(pages: Pages) -> Iterator[tuple[U32, U32, int]]:
    """The links of all latest visits, those to merged pages leading to their survivors.

    Yields
    ------
    sources, targets : uint32[k]
        Sources in the order in which they were first crawled. A link may come twice where it led to a merged page.
    done : int
        Bytes of the log behind us with these.
    """
    from inlink.store.kernels.frames import link_count, links_of_frames

    found, places = _crawled(pages)
    merged = np.sort(np.fromiter(pages.merged, np.uint32))
    survivors = np.array([pages.survivor(page) for page in merged.tolist()], np.uint32)
    out = np.empty(ARCS, np.uint32)
    at = 0
    while at < len(places):
        block = places[at : at + ARCS // 16]
        offsets = np.empty(len(block) + 1, np.uint64)
        done = int(links_of_frames(pages.log, block, offsets, out))
        if done == 0:
            out = np.empty(int(link_count(pages.log, block[0])), np.uint32)
            continue
        counts = np.diff(offsets[: done + 1])
        targets = out[: int(offsets[done])].copy()
        if len(merged):
            place = np.minimum(np.searchsorted(merged, targets), len(merged) - 1)
            targets = np.where(merged[place] == targets, survivors[place], targets)
        lengths = _field(pages.log, block[:done], 0, "<u4")
        yield np.repeat(found[at : at + done], counts.astype(np.int64)), targets, int(lengths.sum())
        at += done


def links_from(pages: Pages, page: int) -> U32:
    """The pages that a page's latest visit links to; of a merged page, the one that it was merged into: uint32[k]."""
    if page in pages.merged:
        return np.array([pages.survivor(page)], np.uint32)
    return pages.links(page)


def links_to(pages: Pages, page: int) -> U32:
    """The pages whose latest visits link to a page, or to one that was merged into it: uint32[k], increasing."""
    ends = [page, *(one for one in pages.merged if pages.survivor(one) == page)]
    found = np.unique(np.concatenate([pages.inlinks(end) for end in ends]))
    return found[~np.isin(found, np.fromiter(pages.merged, np.uint32))]


def num_links(pages: Pages) -> int:
    """How many links the latest visits of all pages have."""
    _, places = _crawled(pages)
    parts = (places[k : k + ARCS] for k in range(0, len(places), ARCS))
    return sum(int(_field(pages.log, part, 36, "<u4").sum(dtype=np.int64)) for part in parts)


def _names(pages: Pages) -> Names:
    """The URLs as a graph's names.

    Their text lies in a temporary file without a name, which the system may drop from memory.
    """
    from inlink.graph.kernels.names import order_of

    offsets = np.zeros(pages.num_pages + 1, np.uint64)
    with tempfile.TemporaryFile() as file:
        for first, text, ends in url_blocks(pages):
            offsets[first + 1 : first + len(ends)] = ends[1:] + offsets[first]
            file.write(text.data)
        file.flush()
        size = int(offsets[-1])
        text = (
            np.memmap(file, np.uint8, "r", shape=(size,)).view(np.ndarray) if size else np.empty(0, np.uint8)
        )
    return Names(text, offsets, order_of(text, offsets))


def url_blocks(pages: Pages, size: int = BLOCK) -> Iterator[tuple[int, U8, U64]]:
    """The URLs of all pages in order, some at a time.

    Parameters
    ----------
    pages : Pages
    size : int
        Bytes at a time, or what one URL takes.

    Yields
    ------
    first : int
        The page of the first of them.
    text : uint8[…]
        The URLs, one right after the other.
    offsets : uint64[k + 1]
        Where each begins in the text.
    """
    first, begin, wanted = 0, 0, size
    while begin < pages.urls_end:
        raw = pages.text(begin, min(begin + wanted, pages.urls_end))
        ends = np.flatnonzero(raw == NEWLINE)
        if not len(ends):
            wanted *= 2
            continue
        raw = raw[: int(ends[-1]) + 1]
        offsets = np.zeros(len(ends) + 1, np.uint64)
        offsets[1:] = ends - np.arange(len(ends))
        yield first, raw[raw != NEWLINE], offsets
        first, begin, wanted = first + len(ends), begin + len(raw), size


class CrawlGraph(Graph):
    """The graph of what a crawl held when it was read; its rankings lie in the crawl's folder.

    Parameters
    ----------
    path : Path
        The crawl's folder.
    graph : Graph
        What was read from it.
    """

    def __init__(self, path: Path, graph: Graph) -> None:
        super().__init__(graph.out_rows, graph._in_rows, graph.names, level="page", folder=graph._folder)
        self._keep = graph
        self._crawl = Folder(path, CRAWL, CRAWL_VERSION)

    @property
    def path(self) -> Path:
        """The crawl's folder."""
        return self._crawl.path

    @property
    def uuid(self) -> str:
        """The crawl's."""
        return self._crawl.header.uuid


def graph_in(path: str | os.PathLike[str]) -> Graph:
    """The graph in a folder: one that inlink built, or that of a crawl, read from its log each time.

    Raises
    ------
    inlink.errors.FolderError
        If there is neither.
    """
    if not is_crawl(path):
        return Graph.open(path)
    from inlink.sources.read import read

    return CrawlGraph(Path(path), read(path, format="crawl"))


# -- rankings ----------------------------------------------------------------------------------------------------


def load_ranking(graph: Graph, name: str) -> Ranking:
    """A ranking that is kept with a graph; one of a crawl may be shorter, by the pages that came after it.

    Raises
    ------
    inlink.errors.FolderError
        If there is none of that name, or it belongs to another graph.
    """
    if not isinstance(graph, CrawlGraph):
        return Ranking.load(graph, name)
    ranking = _without_names(graph.path, name)
    if graph.names is not None:
        ranking.names = Names(graph.names.text, graph.names.offsets[: len(ranking) + 1])
    return ranking


def values_of(ranking: Ranking, graph: Graph, fill: float) -> npt.NDArray[np.float64]:
    """A ranking's values as the graph is now, float64[num_nodes], ``fill`` for pages that came after it."""
    more = graph.num_nodes - len(ranking)
    return np.concatenate([ranking.values, np.full(more, fill)]) if more else ranking.values


def _without_names(path: Path, name: str) -> Ranking:
    """A crawl's ranking, of the pages that it knew."""
    length = 0
    if (path / "rankings" / name).is_dir():
        header = Folder(path / "rankings" / name, RANKING, RANKING_FORMAT).header
        length = max((file.length for file in header.files.values()), default=0)
    offsets = cast(U64, np.broadcast_to(np.uint64(0), length + 1))
    return Ranking.load(CrawlGraph(path, Graph(Rows(offsets, np.empty(0, np.uint32)))), name)


def top_of(path: str | os.PathLike[str], name: str, count: int) -> list[tuple[str | int, float]]:
    """The best nodes of a ranking that is kept in a graph's or a crawl's folder: (name, value).

    Raises
    ------
    inlink.errors.FolderError
        If there is no graph or crawl, or no such ranking.
    """
    if not is_crawl(path):
        return Ranking.load(path, name).top(count)
    best = _without_names(Path(path), name).top(count)
    pages = known_pages(path, with_urls=True)
    return [(pages.url(int(page)), value) for page, value in best]


# -- the pages' columns --------------------------------------------------------------------------------------------


def _field(log: U8, places: U64, offset: int, dtype: str) -> npt.NDArray[Any]:
    """The values of one field of the frames at ``places``."""
    size = np.dtype(dtype).itemsize
    where = places[:, None] + np.arange(offset, offset + size, dtype=np.uint64)
    found: npt.NDArray[Any] = log[where].view(dtype).ravel()
    return found


def page_columns(pages: Pages, low: int, high: int) -> tuple[dict[str, npt.NDArray[Any]], U64]:
    """What is known of pages low … high − 1.

    Returns
    -------
    columns : dict
        By the names in :data:`COLUMNS`: state uint8 (places in :data:`inlink.store.pages.STATES`), score float32, depth
        uint16, linked_from uint32 (a page, or NO_PAGE), first_crawl and last_crawl float64 (seconds since 1970,
        NaN where never), crawls and changes uint32, status uint16 (0 where never), errors uint8.
    visits : uint64[high − low]
        One more than the place of each page's latest visit in the log, 0 where there is none.
    """
    log, count = pages.log, high - low
    rows = pages.answers[low:high]
    visits = np.where(rows > 0, pages.visits[rows], np.uint64(0))
    if pages.merged:
        visits[[page - low for page in range(low, high) if page in pages.merged]] = 0
    seen = np.flatnonzero(visits)
    places = visits[seen] - np.uint64(1)
    times = np.full((2, count), np.nan)
    figures = np.zeros((2, count), np.uint32)
    status = np.zeros(count, np.uint16)
    times[0, seen], times[1, seen] = _field(log, places, 40, "<f8"), _field(log, places, 8, "<f8")
    figures[0, seen], figures[1, seen] = _field(log, places, 48, "<u4"), _field(log, places, 52, "<u4")
    status[seen] = _field(log, places, 30, "<u2")
    errors = pages.errors[low:high]
    failed = np.flatnonzero((errors > 0) & (rows > 0))
    failed = failed[pages.failures[rows[failed]] > 0]
    status[failed] = _field(log, pages.failures[rows[failed]] - np.uint64(1), 30, "<u2")
    made = int(pages.tally[MAKERS])
    makers = np.searchsorted(pages.makers[:made], np.arange(low, high, dtype=np.uint32), "right") - 1
    linked_from = (
        _field(log, pages.maker_places[makers], 16, "<u4") if made else np.full(count, NO_PAGE, "<u4")
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


def columns_for(graph: Graph, path: Path, format: str | None) -> dict[str, npt.NDArray[Any]]:
    """What to write beside the nodes of a graph: of a crawl its pages' columns, where the format is one of tables.

    As :func:`page_columns`; linked_from is int64, -1 for a seed.
    """
    tables = ("parquet", "sqlite")
    named = format or next(
        (name for name in tables if path.name.lower().endswith(FORMATS[name].extensions)), None
    )
    if not isinstance(graph, CrawlGraph) or named not in tables:
        return {}
    pages = known_pages(graph.path)
    parts = [
        page_columns(pages, low, min(low + ARCS, graph.num_nodes))[0]
        for low in range(0, max(graph.num_nodes, 1), ARCS)
    ]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}
    seeds = columns["linked_from"] == NO_PAGE
    columns["linked_from"] = np.where(seeds, -1, columns["linked_from"].astype(np.int64))
    return columns
