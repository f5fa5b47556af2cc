"""A graph with every arc reversed, over the arrays of another graph."""

from functools import cached_property

from inlink.base.arrays import UInt32Array
from inlink.graph.graph import Graph
from inlink.graph.rows import Rows

__all__ = ["Transposed"]


class Transposed(Graph):
    """A graph with every arc reversed. Its outlinks are made in memory when they are first used."""

    def __init__(self, graph: Graph) -> None:
        # `out_rows` hides the first argument.
        super().__init__(graph.out_rows, graph.out_rows, graph.names, level=graph.level, checked=True)
        self._graph = graph

    @property
    def out_rows(self) -> Rows:
        """The outlinks: the inlinks of the other graph."""
        return self._graph.in_rows

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self._graph.num_nodes

    @property
    def num_arcs(self) -> int:
        """The number of arcs."""
        return self._graph.num_arcs

    @property
    def is_weighted(self) -> bool:
        """True if arcs have weights."""
        return self._graph.is_weighted

    @cached_property
    def outdegrees(self) -> UInt32Array:
        """The number of outlinks of each node, uint32[n]."""
        return self._graph.indegrees

    def transpose(self) -> Graph:
        """The other graph."""
        return self._graph
