"""Loops: the links on short cycles, which LinkRank can leave out.

For depth k, the link u→o is a loop of u if a walk of 1 … k arcs leads from o back to u. Depth 1 finds reciprocal links
and links of a page to itself. Depth 2 also finds triangles.

Source: Nutch's program of that name (org.apache.nutch.scoring.webgraph.Loops, until Nutch 1.11), which sends a copy of
each link along every route and so takes exponential time and space. Here one bounded breadth-first search per node,
along inlinks and within the node's strong component, finds the same links.
"""

import os
import time
from itertools import pairwise
from typing import Annotated

import numpy as np

from inlink.base.arrays import AnyArray, BoolArray, UInt32Array
from inlink.base.checked import is_remembered, remember
from inlink.base.declare import Parameter, checked
from inlink.base.folder import Folder, building
from inlink.base.progress import track
from inlink.base.threads import Threads
from inlink.errors import FolderError, OutputError
from inlink.graph.checks import RULES, check_mask
from inlink.graph.components import components
from inlink.graph.graph import Graph
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.inputs import require_vectors
from inlink.rank.parameters import ThreadCount

KIND = "loops"
FORMAT = 1


class Loops:
    """The arcs of a graph that are loops, up to a depth.

    Attributes
    ----------
    graph : Graph
        The graph.
    depth : int
        The largest number of arcs on the way back.
    marks : bool[m]
        Whether each arc is a loop, in the order of ``graph.out_rows``.
    elapsed : float
        The seconds that the search took.
    """

    def __init__(self, graph: Graph, depth: int, marks: BoolArray, elapsed: float = 0.0) -> None:
        self.graph, self.depth, self.marks, self.elapsed = graph, depth, marks, elapsed

    def __len__(self) -> int:
        return int(np.count_nonzero(self.marks))

    def __repr__(self) -> str:
        return f"<inlink loops of depth {self.depth}: {len(self):,} of {len(self.marks):,} arcs>"

    def of(self, node: int | str | bytes) -> UInt32Array:
        """Return a node's loop set as in Nutch: the targets of its arcs that are loops, uint32[k], increasing."""
        rows, number = self.graph.out_rows, self.graph.node(node)
        row = slice(int(rows.offsets[number]), int(rows.offsets[number + 1]))
        targets: UInt32Array = rows.nodes[row][self.marks[row]]
        return targets

    def save(self) -> None:
        """Save the loops in the graph's folder, as ``loops``. Earlier loops are replaced.

        Raises
        ------
        inlink.errors.OutputError
            If the graph is in memory only, or its folder cannot be written.
        """
        if self.graph.path is None:
            raise OutputError("this graph is in memory only: build it with into=, and its loops can be saved")
        with building(self.graph.path / "loops", KIND, FORMAT) as folder:
            folder.write("marks", self.marks)
            folder.header.meta = {"depth": self.depth, "graph_uuid": self.graph.uuid}

    @classmethod
    def load(cls, graph: Graph | str | os.PathLike[str]) -> "Loops":
        """Read the loops that :meth:`save` wrote.

        Raises
        ------
        inlink.errors.FolderError
            If no loops were saved, or the graph has been rebuilt since.
        """
        graph = graph if isinstance(graph, Graph) else Graph.open(graph)
        if graph.path is None or not (graph.path / "loops").exists():
            raise FolderError(
                f"{graph.path or 'this graph'} has no loops: find them first (inlink nutch loops)"
            )
        folder = Folder(graph.path / "loops", KIND, FORMAT)
        depth, uuid = folder.header.meta.get("depth"), folder.header.meta.get("graph_uuid")
        if "marks" not in folder or not isinstance(depth, int):
            raise FolderError(f"{folder.path} is damaged: find the loops again (inlink nutch loops)")
        marks = folder.array("marks")
        if uuid != graph.uuid or marks.shape != (graph.num_arcs,) or marks.dtype != np.bool_:
            raise FolderError(
                f"{folder.path} belongs to an earlier version of {graph.path}: find them again (inlink nutch loops)"
            )
        if not is_remembered(folder, RULES):
            check_mask(folder, "marks")
            remember(folder, RULES)
        return cls(graph, depth, marks)


@checked
def loops(
    graph: GraphLike, *, depth: Annotated[int, Parameter(at_least=0)] = 2, threads: ThreadCount = None
) -> Loops:
    """Find the links that lie on cycles of at most ``depth`` + 1 links.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        In a matrix A[i, j] is the arc i → j.
    depth : int
        The largest number of arcs of a walk from a link's target back to its source, at least 0; Nutch's
        ``link.loops.depth``.
    threads : int or None
        None uses all processors; the result is the same.

    Returns
    -------
    Loops
        bool[m]. The search takes 8 bytes a node for each thread.

    Raises
    ------
    inlink.errors.ParameterError
        If ``depth`` is not an integer of at least 0.

    Examples
    --------
    >>> from inlink import Graph
    >>> from inlink.rank.loops import loops
    >>> found = loops(Graph.from_arcs([("a", "b"), ("b", "a"), ("b", "c")]), depth=1)
    >>> found, found.of("b").tolist()
    (<inlink loops of depth 1: 2 of 3 arcs>, [0])
    """
    from inlink.base.jit import chunks_by_arcs, num_threads, on_threads
    from inlink.rank.kernels.gather import WeightedRows
    from inlink.rank.kernels.loops import find_loops

    began = time.perf_counter()
    graph = as_graph(graph)
    require_vectors(graph, node=32 + 8 * num_threads(threads), arc=1)
    n = graph.num_nodes
    outlinks, inlinks = (
        WeightedRows(rows.offsets, rows.nodes, np.empty(0)) for rows in (graph.out_rows, graph.in_rows)
    )
    # A shortest way back has at most n arcs.
    deepest = np.uint64(min(depth, n))
    marks = np.zeros(graph.num_arcs, np.bool_)
    component = components(graph.out_rows, strong=True)
    count = num_threads(threads) if graph.num_arcs >= 10_000 else 1

    with track("searching for loops", n, "nodes") as task:

        def work(low: np.uint64, high: np.uint64) -> None:
            stamps, queue = np.zeros(n, np.uint32), np.empty(n, np.uint32)
            offsets = outlinks.offsets[int(low) : int(high) + 1]
            parts = chunks_by_arcs(offsets - offsets[0], 64) + low
            # The work is divided into parts so that Ctrl-C works quickly.
            for begin, end in pairwise(parts):
                find_loops(outlinks, inlinks, component, deepest, marks, stamps, queue, begin, end)
                task.advance(int(end - begin))

        # Rows differ much in work. Each thread gets several chunks, so that no thread waits long for the others.
        bounds: AnyArray = chunks_by_arcs(outlinks.offsets, 4 * count if count > 1 else 1)
        with Threads(count) as pool:
            on_threads(work, bounds, pool if count > 1 else None)
    return Loops(graph, depth, marks, time.perf_counter() - began)
