"""The figures of a graph."""

from dataclasses import dataclass

import numpy as np

from inlink.graph.components import components
from inlink.graph.graph import Graph

__all__ = ["GraphInfo", "info"]


@dataclass(frozen=True)
class GraphInfo:
    """The figures of :func:`info`.

    Attributes
    ----------
    nodes, arcs : int
        How many there are, duplicates counted once.
    dangling : int
        Nodes without outlinks.
    islands : int
        Nodes without any link from or to another node.
    self_loops : int
        Nodes that link to themselves.
    max_outdegree, max_indegree : int
        The largest degrees.
    max_outdegree_node, max_indegree_node : str or int or None
        The first nodes that have them, by name if there are names; None without nodes.
    components : int
        Weakly connected components.
    largest_component : int
        Nodes in the largest of them.
    weighted, named : bool
        Whether arcs have weights and nodes have names.
    crawled : int or None
        Pages that were crawled, where the graph knows.
    level : str or None
        What the names are.
    bytes : int
        What it takes on disk, or in memory if it lies there only.
    """

    nodes: int
    arcs: int
    dangling: int
    islands: int
    self_loops: int
    max_outdegree: int
    max_outdegree_node: str | int | None
    max_indegree: int
    max_indegree_node: str | int | None
    components: int
    largest_component: int
    weighted: bool
    named: bool
    crawled: int | None
    level: str | None
    bytes: int


def info(graph: Graph) -> GraphInfo:
    """The figures of a graph. Its outlinks are read twice; a few numbers a node are kept in memory."""
    from inlink.graph.kernels.walks import self_loops

    out, inn = graph.outdegrees, graph.indegrees
    loops = np.zeros(graph.num_nodes, np.bool_)
    count = int(self_loops(graph.out_rows.offsets, graph.out_rows.nodes, loops))
    label = components(graph)
    sizes = np.bincount(label, minlength=1)

    def largest(degrees: np.ndarray) -> tuple[int, str | int | None]:
        if len(degrees) == 0:
            return 0, None
        node = int(degrees.argmax())
        return int(degrees[node]), node if graph.names is None else graph.names[node]

    most_out, most_out_node = largest(out)
    most_in, most_in_node = largest(inn)
    return GraphInfo(
        nodes=graph.num_nodes,
        arcs=graph.num_arcs,
        dangling=int((out == 0).sum()),
        islands=int(((out == loops) & (inn == loops)).sum()),
        self_loops=count,
        max_outdegree=most_out,
        max_outdegree_node=most_out_node,
        max_indegree=most_in,
        max_indegree_node=most_in_node,
        components=int((sizes > 0).sum()),
        largest_component=int(sizes.max()),
        weighted=graph.is_weighted,
        named=graph.names is not None,
        crawled=None if graph.crawled is None else int(graph.crawled.sum()),
        level=graph.level,
        bytes=graph.num_bytes,
    )
