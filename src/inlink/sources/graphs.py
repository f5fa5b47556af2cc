"""A graph that was built before as a source of arcs, so that graphs can be merged."""

import os
from collections.abc import Iterator

import numpy as np

from inlink.base.arrays import UInt32Array, UInt64Array, slices
from inlink.graph.batches import ArcBatch
from inlink.graph.graph import Graph
from inlink.graph.part import NAMES, ArcBlock, NameBlock, PartHeader
from inlink.graph.source import Source
from inlink.graph.views import arc_blocks

# Number of nodes that are read at a time.
_BLOCK = 1 << 18


def graph_source(path: str | os.PathLike[str]) -> Source:
    """Return a graph's folder as a source.

    Raises
    ------
    inlink.errors.FolderError
        If the folder is missing, damaged or holds no graph.
    """
    return source_of(Graph.open(path))


def source_of(graph: Graph) -> Source:
    """Return a graph as a source: its names, arcs and weights, and the pages that were crawled."""
    weights = graph.out_weights

    def batches() -> Iterator[ArcBatch]:
        none = np.empty(0, np.uint32)
        if graph.num_nodes or graph.names is not None:
            crawled = None if graph.crawled is None else np.flatnonzero(graph.crawled).astype(np.uint32)
            yield ArcBatch(none, none, None, None if weights is None else np.empty(0), crawled)
        for near, far, part in arc_blocks(graph):
            yield ArcBatch(near, far, None, None if part is None else part.astype(np.float64))

    return Source(
        batches(),
        graph.names,
        graph.num_nodes,
        graph.level,
        fractional=weights is not None and weights.dtype.kind == "f",
        origin=graph.meta,
        part=GraphPart(graph) if graph.names is None or graph.names.order is None else None,
    )


class GraphPart:
    """A graph as a part: its names, if it has any, are in byte order.

    Parameters
    ----------
    graph : Graph
        The graph.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        weights = graph.out_weights
        with np.errstate(over="ignore"):
            total = float(graph.num_arcs if weights is None else weights.sum(dtype=np.float64))
        self.header = PartHeader(
            named=graph.names is not None if graph.num_nodes else None,
            num_nodes=graph.num_nodes,
            num_arcs=graph.num_arcs,
            weighted=weights is not None,
            whole=weights is None or weights.dtype.kind != "f",
            total=total,
            keeps=True,
            marked=graph.crawled is not None,
        )

    def names(self) -> Iterator[NameBlock]:
        """The names in byte order."""
        names = self._graph.names
        if names is not None:
            for _, column in names.columns(NAMES):
                yield NameBlock(column.text, column.offsets)

    def degrees(self) -> Iterator[tuple[UInt64Array, UInt64Array]]:
        """All nodes, and the number of arcs of each."""
        degrees = self._graph.outdegrees
        for part in slices(self._graph.num_nodes, _BLOCK):
            yield np.arange(part.start, part.stop, dtype=np.uint64), degrees[part].astype(np.uint64)

    def arcs(self) -> Iterator[ArcBlock]:
        """The arcs in order."""
        for near, far, weights in arc_blocks(self._graph):
            arcs = near.astype(np.uint64) << np.uint64(32) | far
            yield ArcBlock(arcs, None if weights is None else weights.astype(np.float64))

    def crawled(self) -> UInt32Array:
        """The nodes that were crawled, increasing."""
        crawled = self._graph.crawled
        return np.empty(0, np.uint32) if crawled is None else np.flatnonzero(crawled).astype(np.uint32)
