"""A crawl's folder as a graph: nodes are its pages, arcs the links of each page's latest visit.

The id of a page is its node. A page that was merged into another (a redirect, a canonical link) keeps its node but has
no arcs: its inlinks count for the page that it was merged into. The folder may belong to a running crawl; the graph
then shows what was written when the folder was opened.
"""

import os
from pathlib import Path

import numpy as np

from inlink.base.arrays import AnyArray
from inlink.graph.graph import Graph
from inlink.store.format import NO_PAGE
from inlink.store.reader import crawl_folder, is_crawl


class CrawlGraph(Graph):
    """The graph of a crawl as it was when it was read. Its rankings are in the crawl's folder.

    Parameters
    ----------
    path : Path
        The crawl's folder.
    graph : Graph
        The graph read from it.
    """

    def __init__(self, path: Path, graph: Graph) -> None:
        super().__init__(
            graph.out_rows, graph._in_rows, graph.names, level="page", checked=True, folder=graph._folder
        )
        self._keep = graph
        self._crawl = crawl_folder(path)

    @property
    def path(self) -> Path:
        """The crawl's folder."""
        return self._crawl.path

    @property
    def uuid(self) -> str:
        """The uuid of the crawl."""
        return self._crawl.header.uuid


def graph_in(path: str | os.PathLike[str]) -> Graph:
    """Open the graph in a folder: a graph that inlink built, or the graph of a crawl, which is read from its log.

    Raises
    ------
    inlink.errors.FolderError
        If the folder holds neither.
    """
    if not is_crawl(path):
        return Graph.open(path)
    # Most graphs are only opened, and the modules that build a graph take long to import.
    from inlink.graph.build import build_graph
    from inlink.sources.crawlarcs import crawl_source

    source = crawl_source(path)
    graph = build_graph(
        source.batches,
        names=source.names,
        num_nodes=source.num_nodes,
        level=source.level,
        meta={"sources": [f"{os.fspath(path)} (crawl)"]},
    )
    return CrawlGraph(Path(path), graph)


def columns_for(graph: Graph, path: Path, format: str | None) -> dict[str, AnyArray]:
    """Return the columns to write beside a graph's nodes: those of the pages, for a crawl and a format with tables.

    The columns are those of :func:`inlink.store.blocks.page_columns`, but `linked_from` is int64 with -1 for a seed.
    The dict is empty for other graphs and formats.
    """
    from inlink.sources.formats import FORMATS
    from inlink.store.blocks import ARCS, COLUMNS, page_columns
    from inlink.store.reader import known_pages

    tables = ("parquet", "sqlite")
    named = format or next(
        (name for name in tables if path.name.lower().endswith(FORMATS[name].extensions)), None
    )
    if not isinstance(graph, CrawlGraph) or named not in tables:
        return {}
    pages = known_pages(graph.path, with_urls=False)
    parts = [
        page_columns(pages, low, min(low + ARCS, graph.num_nodes))[0]
        for low in range(0, max(graph.num_nodes, 1), ARCS)
    ]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}
    seeds = columns["linked_from"] == NO_PAGE
    columns["linked_from"] = np.where(seeds, -1, columns["linked_from"].astype(np.int64))
    return columns
