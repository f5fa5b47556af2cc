"""Rankings kept with a graph or with a crawl: load one, align it with the graph, list the best nodes.

The rankings of a crawl are in its folder as ``rankings/NAME``, bound to the crawl's uuid. Page ids never change, so
a ranking stays valid for the pages that it knew, however many were discovered later.
"""

import os
from pathlib import Path
from typing import cast

import numpy as np

from inlink.base.arrays import Float64Array, UInt64Array
from inlink.base.folder import Folder
from inlink.graph.graph import Graph, Rows
from inlink.graph.names import Names
from inlink.rank.ranking import Ranking
from inlink.rank.stored import FORMAT, KIND
from inlink.sources.crawlgraph import CrawlGraph
from inlink.store.reader import is_crawl

__all__ = ["crawled_top", "load_ranking", "ranking_of", "stored_ranking", "top_of", "values_of"]


def load_ranking(graph: Graph, name: str) -> Ranking:
    """Load a ranking kept with a graph. A crawl's ranking is shorter than its graph if pages were discovered since.

    Raises
    ------
    inlink.errors.FolderError
        If there is no ranking of that name, or it belongs to another graph.
    """
    if not isinstance(graph, CrawlGraph):
        return Ranking.load(graph, name)
    ranking = _without_names(graph.path, name)
    if graph.names is not None:
        ranking.names = Names(graph.names.text, graph.names.offsets[: len(ranking) + 1])
    return ranking


def values_of(ranking: Ranking, graph: Graph, fill: float) -> Float64Array:
    """Return a ranking's values for each node of the graph, float64[num_nodes]; `fill` for pages discovered since."""
    more = graph.num_nodes - len(ranking)
    return np.concatenate([ranking.values, np.full(more, fill)]) if more else ranking.values


def ranking_of(path: Path, name: str) -> tuple[Ranking, object]:
    """Load a crawl's ranking of the pages that it knew, and its version, which changes when the ranking is replaced.

    Raises
    ------
    inlink.errors.FolderError
        If there is no ranking of that name, or it belongs to another crawl.
    """
    header = path / "rankings" / name / "header.json"
    version = (header.stat().st_mtime_ns, header.stat().st_ino) if header.is_file() else None
    return _without_names(path, name), version


def _without_names(path: Path, name: str) -> Ranking:
    """Load a crawl's ranking of the pages that it knew, without their names."""
    length = 0
    if (path / "rankings" / name).is_dir():
        header = Folder(path / "rankings" / name, KIND, FORMAT).header
        length = max((file.length for file in header.files.values()), default=0)
    offsets = cast("UInt64Array", np.broadcast_to(np.uint64(0), length + 1))
    return Ranking.load(CrawlGraph(path, Graph(Rows(offsets, np.empty(0, np.uint32)), checked=True)), name)


def stored_ranking(path: str | os.PathLike[str], name: str) -> Ranking:
    """Load a ranking kept in a graph's or a crawl's folder; that of a crawl has no names.

    Raises
    ------
    inlink.errors.FolderError
        If there is no graph or crawl, or no such ranking.
    """
    return _without_names(Path(path), name) if is_crawl(path) else Ranking.load(path, name)


def top_of(
    path: str | os.PathLike[str], name: str, count: int, by: str | None = None
) -> list[tuple[int, str | int, float]]:
    """Return the best nodes of a ranking kept in a graph's or a crawl's folder, best first.

    Parameters
    ----------
    path : path-like
        The folder.
    name : str
        The ranking.
    count : int
        The number of nodes.
    by : {"authorities", "hubs"} or None
        The column of a HITS or SALSA ranking that orders the nodes; None is the first.

    Returns
    -------
    list of (int, str or int, float)
        Number, name, and value in that column. The name is the number if the graph has no names.

    Raises
    ------
    inlink.errors.FolderError
        If there is no graph or crawl, or no such ranking.
    inlink.errors.ParameterError
        If the ranking has no such column.
    """
    ranking = stored_ranking(path, name)
    names = ranking.names
    best = _best(ranking, count, by)
    if is_crawl(path):
        # Rankings of graphs need no pages of a crawl.
        from inlink.store.reader import Reader

        pages = Reader(path, lazily=True).pages
        return [(page, pages.url(page), value) for page, value in best]
    return [(node, node if names is None else names[node], value) for node, value in best]


def _best(ranking: Ranking, count: int, by: str | None) -> list[tuple[int, float]]:
    """The numbers of the best nodes, and their values."""
    ranking.names = None
    return [(int(node), value) for node, value in ranking.top(count, by=by)]


def crawled_top(
    path: str | os.PathLike[str], name: str, count: int, by: str | None = None
) -> list[tuple[int, int, str | int, float]]:
    """Return the best pages of a crawl's ranking that were crawled, best first.

    Parameters
    ----------
    path, name, count, by
        As for :func:`top_of`.

    Returns
    -------
    list of (int, int, str, float)
        Place among all pages, from 1 on; number, URL and value.
    """
    from inlink.store.reader import Reader

    ranking, pages, looked_at = stored_ranking(path, name), Reader(path, lazily=True).pages, count
    while True:
        best = _best(ranking, looked_at, by)
        rows = pages.answers[np.array([page for page, _ in best], np.int64)]
        crawled = (rows > 0) & (pages.visits[rows] > 0)
        places = np.flatnonzero(crawled)[:count].tolist()
        if len(places) >= count or len(best) < looked_at:
            return [
                (place + 1, best[place][0], pages.url(best[place][0]), best[place][1]) for place in places
            ]
        looked_at = 4 * looked_at + 100
