"""A graph that was built before as a source of arcs, so that graphs can be merged."""

import os
from collections.abc import Iterator

import numpy as np

from inlink.graph.batches import ArcBatch
from inlink.graph.derive import row_blocks
from inlink.graph.graph import Graph
from inlink.graph.source import Source

__all__ = ["graph_source", "source_of"]


def graph_source(path: str | os.PathLike[str]) -> Source:
    """Return a graph's folder as a source.

    Raises
    ------
    inlink.errors.FolderError
        If the folder is missing, damaged or holds no graph.
    """
    return source_of(Graph.open(path))


def source_of(graph: Graph) -> Source:
    """Return a graph as a source: its names, arcs and weights, and which pages were crawled."""
    weights = graph.out_rows.weights

    def batches() -> Iterator[ArcBatch]:
        none = np.empty(0, np.uint32)
        if graph.num_nodes or graph.names is not None:
            crawled = None if graph.crawled is None else np.flatnonzero(graph.crawled).astype(np.uint32)
            yield ArcBatch(none, none, None, None if weights is None else np.empty(0), crawled)
        for near, far, part in row_blocks(graph.out_rows):
            yield ArcBatch(near, far, None, None if part is None else part.astype(np.float64))

    return Source(
        batches(),
        graph.names,
        graph.num_nodes,
        graph.level,
        fractional=weights is not None and weights.dtype.kind == "f",
        origin=graph.meta,
    )
