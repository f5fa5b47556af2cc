"""Count the nodes, arcs, dangling nodes, islands, components and bytes of a graph."""

from dataclasses import dataclass

import numpy as np

from inlink.base.arrays import AnyArray
from inlink.graph.components import components
from inlink.graph.graph import Graph

__all__ = ["GraphInfo", "info"]


@dataclass(frozen=True)
class GraphInfo:
    """The counts of :func:`info`.

    Attributes
    ----------
    nodes, arcs : int
        Number of nodes, and of arcs. Duplicates are counted once.
    dangling : int
        Number of nodes without outlinks.
    islands : int
        Number of nodes without links from or to another node.
    self_loops : int
        Number of nodes that link to themselves.
    max_outdegree, max_indegree : int
        The largest degrees.
    max_outdegree_node, max_indegree_node : str or int or None
        The first nodes with these degrees, by name if there are names; None without nodes.
    components : int
        Number of weakly connected components.
    largest_component : int
        Number of nodes in the largest component.
    weighted, named : bool
        Whether arcs have weights and nodes have names.
    crawled : int or None
        Number of pages that were crawled; None if this is unknown.
    level : str or None
        The kind of the names.
    bytes : int
        Number of bytes on disk, or in memory for a graph without a folder.
    link_bytes : int
        Number of these bytes that store links: all but names, marks of crawled pages, and nodes of a parent.
    compressed : bool
        Whether the rows of links are compressed.
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
    link_bytes: int
    compressed: bool


def info(graph: Graph) -> GraphInfo:
    """Return the counts of a graph. Its outlinks are read twice, and a few numbers for each node are kept in memory."""
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
        link_bytes=_link_bytes(graph),
        compressed=graph.coded_in_rows is not None,
    )


def _link_bytes(graph: Graph) -> int:
    if graph._folder is None:
        names = graph.names
        arrays: list[AnyArray | None] = [] if names is None else [names.text, names.offsets, names.order]
        return graph.num_bytes - sum(array.nbytes for array in arrays if array is not None)
    files = graph._folder.header.files
    return sum(
        entry.length * np.dtype(entry.dtype).itemsize
        for name, entry in files.items()
        if name.startswith(("in.", "out.", "linking", "shape"))
    )
