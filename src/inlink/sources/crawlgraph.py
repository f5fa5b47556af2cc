"""A crawl's folder as a graph: nodes are its pages, arcs the links of each page's latest visit.

The id of a page is its node. A page that was merged into another (a redirect, a canonical link) keeps its node but has
no arcs: its inlinks count for the page that it was merged into. The folder may belong to a running crawl; the graph
then shows what was written when the folder was opened.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from inlink.base.arrays import AnyArray
from inlink.base.progress import track
from inlink.errors import FolderError
from inlink.graph.batches import ArcBatch
from inlink.graph.graph import Graph
from inlink.graph.names import Names
from inlink.graph.source import Source
from inlink.sources.dataset import may_be_published
from inlink.store.blocks import ARCS, COLUMNS, arcs_of, crawled_rows, fact_columns, page_columns, url_blocks
from inlink.store.format import NO_PAGE
from inlink.store.pages import Pages
from inlink.store.reader import crawl_folder, is_crawl, known_pages


def crawl_source(path: str | os.PathLike[str]) -> Source:
    """Return a crawl's folder as a source of a graph.

    Raises
    ------
    inlink.errors.FolderError
        If the folder holds no crawl.
    """
    pages = known_pages(path, with_urls=False)

    def batches() -> Iterator[ArcBatch]:
        none = np.empty(0, np.uint32)
        yield ArcBatch(none, none, crawled=crawled_rows(pages)[0])
        with track("reading the crawl's links", pages.frames.end, "B") as task:
            for sources, targets, done in arcs_of(pages):
                yield ArcBatch(sources, targets)
                task.advance(done)

    # The header of a copy of a crawl as it was has the origin of the copy.
    origin = {"sources": [was]} if (was := crawl_folder(path).header.meta.get("as_of")) else {}
    return Source(batches(), names_of(pages), pages.num_pages, "page", origin=origin)


def names_of(pages: Pages) -> Names:
    """Return the URLs as the names of a graph.

    Their text is in an unnamed temporary file, which the system may drop from memory.
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


def graph_in(path: str | os.PathLike[str], *, verify: bool = False) -> Graph:
    """Open the graph in a folder: a graph that inlink built, or the graph of a crawl, which is read from its log.

    Parameters
    ----------
    path : str or PathLike
    verify : bool
        Check the checksums of a graph that inlink built.

    Raises
    ------
    inlink.errors.FolderError
        If the folder holds neither, or a published graph.
    """
    if not is_crawl(path):
        if may_be_published(path):
            raise FolderError(
                f"{path} is a published graph, for `inlink links`, `page`, `top`, `find`: name the graph's own folder"
            )
        return Graph.open(path, verify=verify)
    # Most graphs are only opened, and the modules that build a graph take long to import.
    from inlink.graph.build import build_graph

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
    If the crawl has facts, those of :data:`inlink.store.blocks.FACT_COLUMNS` follow; texts are object[n] of str. The
    dict is empty for other graphs and formats.
    """
    from inlink.sources.formats import FORMATS

    tables = ("parquet", "sqlite")
    named = format or next(
        (name for name in tables if path.name.lower().endswith(FORMATS[name].extensions)), None
    )
    if not isinstance(graph, CrawlGraph) or named not in tables:
        return {}
    pages = known_pages(graph.path, with_urls=False)
    parts = [
        page_columns(pages, low, min(low + ARCS, graph.num_nodes))
        for low in range(0, max(graph.num_nodes, 1), ARCS)
    ]
    columns: dict[str, AnyArray] = {
        name: np.concatenate([part[name] for part, _ in parts]) for name in COLUMNS
    }
    seeds = columns["linked_from"] == NO_PAGE
    columns["linked_from"] = np.where(seeds, -1, columns["linked_from"].astype(np.int64))
    return columns | fact_columns(pages, np.concatenate([visits for _, visits in parts]))
