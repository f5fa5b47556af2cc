"""A crawl's folder as a graph: nodes are its pages, arcs the links of each page's latest visit.

The id of a page is its node. A page that was merged into another (a redirect, a canonical link) keeps its node but has
no arcs: its inlinks count for the page that it was merged into. The folder may belong to a running crawl; the graph
then shows what was written when the folder was opened.
"""

import os
from pathlib import Path

from inlink.graph.graph import Graph
from inlink.store.reader import crawl_folder, is_crawl

__all__ = ["CrawlGraph", "graph_in"]


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
