"""`CompressedGraph`: a graph whose folder has compressed rows.

PageRank and its variants read the coded inlinks. Single rows are decoded when they are asked for. Everything else gets
plain rows, which are decoded into memory when they are first used.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from inlink.base.arrays import AnyArray, UInt32Array, UInt64Array
from inlink.base.folder import Folder
from inlink.graph.coded import CodedOutlinks, decoded_inlinks, decoded_outlinks, linking_outdegrees, spans
from inlink.graph.graph import Graph
from inlink.graph.names import Names
from inlink.graph.rows import BLOCK, CodedRows, Rows, SplitRows, join_rows, places_of, row_places

__all__ = ["CompressedGraph", "linking_nodes"]


def linking_nodes(bits: AnyArray, num_nodes: int) -> UInt32Array:
    """The nodes whose bits are set, uint32[l]."""
    return np.flatnonzero(np.unpackbits(bits, count=num_nodes, bitorder="little")).astype(np.uint32)


class CompressedGraph(Graph):
    """A graph whose rows are compressed on disk; :meth:`Graph.open` makes it.

    Parameters
    ----------
    folder : Folder
        The folder, checked.
    names : Names or None
        The nodes' names.
    """

    def __init__(self, folder: Folder, names: Names | None) -> None:
        self._shape = [int(number) for number in folder.array("shape")]
        none = Rows(np.zeros(1, np.uint64), np.empty(0, np.uint32))
        super().__init__(
            none, None, names, level=folder.header.meta.get("level"), checked=True, folder=folder
        )
        self._coded_out = CodedOutlinks(
            folder.array("out.records"), folder.array("out.blocks"), self.num_nodes
        )

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self._shape[0]

    @property
    def num_arcs(self) -> int:
        """The number of arcs, duplicates counted once."""
        return self._shape[1]

    @property
    def is_weighted(self) -> bool:
        """True if arcs have weights."""
        return self._folder is not None and "out.weights" in self._folder

    @cached_property
    def coded_in_rows(self) -> CodedRows:
        """The coded inlinks, in the form for kernels. The numbers of the linking nodes take 4 bytes of memory each."""
        assert self._folder is not None
        file = self._folder.array
        linking = linking_nodes(file("linking"), self.num_nodes)
        return CodedRows(file("in.starts"), file("in.rows"), file("in.blocks"), linking)

    @cached_property
    def out_rows(self) -> Rows:
        """The outlinks, decoded into memory: 4 bytes an arc and 8 a node."""
        return Rows(*self._decoded(forward=True), self._weights("out"))

    @cached_property
    def split_in_rows(self) -> SplitRows:
        """The inlinks by place, decoded into memory: 4 bytes an arc and 8 a node."""
        return SplitRows(*self._decoded(forward=False), self._weights("in"), self.coded_in_rows.linking)

    @cached_property
    def in_rows(self) -> Rows:
        """The inlinks as plain rows, made in memory from the decoded rows."""
        return join_rows(self.split_in_rows)

    @cached_property
    def outdegrees(self) -> UInt32Array:
        """The number of outlinks of each node, uint32[n], counted in the coded inlinks."""
        degrees = np.zeros(self.num_nodes, np.uint32)
        degrees[self.coded_in_rows.linking] = linking_outdegrees(self.coded_in_rows, self.num_nodes)
        return degrees

    @cached_property
    def indegrees(self) -> UInt32Array:
        """The number of inlinks of each node, uint32[n]."""
        from inlink.graph.kernels.streamvbyte import row_lengths

        coded, degrees = self.coded_in_rows, np.empty(self.num_nodes, np.uint32)
        row_lengths(coded, np.uint64(0), np.uint64(self.num_nodes), degrees)
        return degrees[row_places(coded.linking, self.num_nodes)]

    def outlinks(self, node: int | str | bytes) -> UInt32Array:
        """The nodes that a node links to, uint32[outdegree], increasing. The block of the node is decoded."""
        if "out_rows" in self.__dict__:
            return super().outlinks(node)
        number = self.node(node)
        _, offsets, nodes = decoded_outlinks(self._coded_out, number // BLOCK, number // BLOCK + 1)
        row = number % BLOCK
        return nodes[int(offsets[row]) : int(offsets[row + 1])]

    def inlinks(self, node: int | str | bytes) -> UInt32Array:
        """The nodes that link to a node, uint32[indegree], increasing. The block of the node's place is decoded."""
        if "split_in_rows" in self.__dict__:
            return super().inlinks(node)
        coded = self.coded_in_rows
        place = int(places_of(coded.linking, [self.node(node)])[0])
        _, offsets, nodes = decoded_inlinks(coded, self.num_nodes, place // BLOCK, place // BLOCK + 1)
        row = place % BLOCK
        return coded.linking[nodes[int(offsets[row]) : int(offsets[row + 1])]]

    def coded_out_blocks(self) -> Iterator[tuple[int, UInt64Array, UInt32Array, AnyArray | None]]:
        """Decode the outlinks from front to back.

        Yields
        ------
        int, uint64[k + 1], uint32[…], number[…] or None
            The first node of a part, where each of its rows begins, and the nodes and weights of all its rows.
        """
        weights, blocks = self.out_weights, self._coded_out.blocks
        for low, high in spans(blocks, 0, len(blocks) // 2 - 1):
            _, offsets, nodes = decoded_outlinks(self._coded_out, low, high)
            first, last = int(blocks[2 * low + 1]), int(blocks[2 * high + 1])
            yield low * BLOCK, offsets, nodes, None if weights is None else weights[first:last]

    @property
    def out_weights(self) -> AnyArray | None:
        """The weights of the outlinks, number[m]; they are not compressed."""
        return self._weights("out")

    def _weights(self, side: str) -> AnyArray | None:
        assert self._folder is not None
        name = f"{side}.weights"
        return self._folder.array(name) if name in self._folder else None

    def _decoded(self, *, forward: bool) -> tuple[UInt64Array, UInt32Array]:
        """Decode all rows of one side."""
        offsets, nodes = np.zeros(self.num_nodes + 1, np.uint64), np.empty(self.num_arcs, np.uint32)
        blocks = self._coded_out.blocks if forward else self.coded_in_rows.blocks
        for low, high in spans(blocks, 0, len(blocks) // 2 - 1):
            if forward:
                _, begins, part = decoded_outlinks(self._coded_out, low, high)
            else:
                _, begins, part = decoded_inlinks(self.coded_in_rows, self.num_nodes, low, high)
            arcs, first = int(blocks[2 * low + 1]), low * BLOCK
            nodes[arcs : arcs + len(part)] = part
            offsets[first : first + len(begins)] = begins + np.uint64(arcs)
        return offsets, nodes
