"""`Graph`: a link graph as compressed sparse rows in both directions, memory-mapped, with the names of its nodes.

Node *i*'s outlinks are ``out_rows.nodes[out_rows.offsets[i]:out_rows.offsets[i + 1]]``, in increasing order and
each once; ``in_rows`` holds the inlinks in the same way. On disk inlinks are split, as :mod:`inlink.graph.rows` says.
Numbers of nodes are uint32 and offsets uint64, so a graph may have 2³² − 1 nodes and more than 2³² arcs.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from inlink.base.arrays import AnyArray, BoolArray, UInt32Array, UInt64Array
from inlink.base.extras import load
from inlink.base.folder import Folder, is_kind
from inlink.base.memory import require_memory
from inlink.base.table import counted, html_table
from inlink.errors import FolderError, ParameterError
from inlink.graph.batches import Level
from inlink.graph.coded import CodedOutlinks, coded_inlinks, decoded_blocks, decoded_row, linking_outdegrees
from inlink.graph.components import components, largest_component, reachable
from inlink.graph.names import Names
from inlink.graph.rows import (
    COMPRESSED,
    CodedRows,
    SplitRows,
    join_rows,
    places_of,
    row_places,
    split_transpose,
    unsplit,
)
from inlink.graph.rows import Rows as Rows
from inlink.graph.views import Degrees, Edges, Nodes, arc_batches

if TYPE_CHECKING:
    import igraph
    import networkx
    import scipy.sparse

    from inlink.graph.interop import GraphLike
    from inlink.urls.columns import HostNames

KIND = "graph"
FORMAT = 2
"""The format version of a folder with plain rows."""

# Arcs read at a time, unless a row has more.
_BLOCK = 1 << 20


def graph_folder(path: str | os.PathLike[str]) -> Folder:
    """A graph's folder, if this program can read it.

    Raises
    ------
    inlink.errors.FolderError
        If there is no graph, or it has another format version.
    """
    folder = Folder(path, KIND, COMPRESSED)
    if folder.header.version < FORMAT:
        raise FolderError(
            f"{folder.path} holds a graph of format version {folder.header.version}, and this inlink reads only "
            f"versions {FORMAT} and {COMPRESSED}: build {folder.path} again"
        )
    return folder


def is_graph(path: str | os.PathLike[str]) -> bool:
    """Return whether a folder is a graph's, of any format version."""
    return is_kind(path, KIND)


def _stored(folder: Folder | None, name: str) -> Any:
    """Return an array of a folder; None if there is no such array."""
    return folder.array(name) if folder is not None and name in folder else None


def require_copy(rows: Rows | SplitRows, node: int) -> None:
    """Refuse a copy of rows in memory if that does not suffice; ``node`` is the number of bytes for each node.

    Raises
    ------
    inlink.errors.ParameterError
        If it does not suffice.
    """
    arc = 4 if rows.weights is None else 4 + rows.weights.itemsize
    nodes = len(rows.offsets) - 1
    require_memory(node * nodes + arc * len(rows.nodes), f"rows of {nodes:,} nodes")


def _transposed(rows: Rows) -> Rows:
    """The rows of the reversed arcs. They take 4 bytes of memory an arc and 8 a node, and for a moment twice that."""
    from inlink.graph.kernels.arcs import count_nodes, transpose

    offsets = np.zeros(len(rows.offsets), np.uint64)
    count_nodes(rows.nodes, offsets)
    np.cumsum(offsets, out=offsets)
    nodes, weights = (
        np.empty(len(rows.nodes), np.uint32),
        np.empty(0) if rows.weights is None else rows.weights,
    )
    turned = np.empty_like(weights)
    transpose(rows.offsets, rows.nodes, weights, np.empty(0, np.uint32), offsets[:-1].copy(), nodes, turned)
    return Rows(offsets, nodes, None if rows.weights is None else turned)


def _same_names(names: Names | None, others: Names | None) -> bool:
    if names is None or others is None or names is others:
        return names is others
    end = int(names.offsets[-1])
    return np.array_equal(names.offsets, others.offsets) and np.array_equal(
        names.text[:end], others.text[:end]
    )


# What NetworkX and igraph call it, and what to use here.
_ELSEWHERE = {
    **dict.fromkeys(("number_of_nodes", "order", "vcount"), "graph.num_nodes"),
    **dict.fromkeys(("number_of_edges", "size", "ecount"), "graph.num_arcs"),
    **dict.fromkeys(("has_edge", "are_adjacent"), "(source, target) in graph.edges"),
    **dict.fromkeys(("adj", "adjacency", "succ"), "graph.successors(node)"),
    **dict.fromkeys(
        ("add_edge", "add_edges", "add_edges_from"), "inlink.Graph(links), because graphs do not change"
    ),
    "has_node": "node in graph",
    "pred": "graph.predecessors(node)",
    "vs": "graph.nodes",
    "es": "graph.edges",
    "get_edgelist": "list(graph.edges)",
    "indegree": "graph.in_degree(node)",
    "outdegree": "graph.out_degree(node)",
    "pagerank": "inlink.pagerank(graph)",
    "reverse": "graph.transpose()",
    "summary": "graph.info()",
    "write": "inlink.write(graph, path)",
}


@dataclass(frozen=True)
class GraphInfo:
    """The counts of :meth:`Graph.info`.

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


class Graph:
    """A directed link graph that does not change.

    :func:`inlink.read` builds graphs from files, :meth:`open` opens a graph's folder, and :meth:`from_arcs` builds a
    graph from pairs in memory. Both directions are read from disk as they are needed.

    A node is a name (str), or a number from 0 on if nodes have no names. ``for node in graph``, ``node in graph``,
    :meth:`successors` and :meth:`predecessors` deal with these. Whoever takes a node also takes its name as bytes, and
    its number. Arrays such as :meth:`outlinks` and :attr:`outdegrees` have numbers.

    Two graphs are equal if they have the same nodes in the same order, and the same arcs with the same weights.

    Parameters
    ----------
    links : Rows, or graph in memory
        The outlinks as rows. Anything else is read as :func:`inlink.read` does: pairs of nodes, a matrix, a data frame,
        a graph of NetworkX or igraph. It has no further arguments.
    in_rows : Rows, SplitRows or None
        The inlinks; None makes them from the outlinks when they are first used. Split rows must be ``checked``.
    names : Names or None
        The nodes' names.
    level : {"page", "host", "domain"} or None
        The kind of the names: URLs for ``"page"``; reversed names such as ``com.example.www`` for ``"host"`` and
        ``"domain"``; any names for None.
    checked : bool
        Whether rows and names are known to be sound. Otherwise they are checked, because loops check no bounds.
    folder : Folder or None
        The folder that holds the arrays; None for a graph in memory.

    Raises
    ------
    inlink.errors.ParameterError
        If rows or names are not sound. The message names the first wrong arc.

    Examples
    --------
    >>> from inlink import Graph
    >>> graph = Graph([("a", "b"), ("b", "c"), ("a", "c")])
    >>> list(graph), "d" in graph, graph.successors("a"), graph.in_degree("c")
    (['a', 'b', 'c'], False, ['b', 'c'], 2)
    """

    def __init__(
        self,
        links: "Rows | GraphLike",
        in_rows: Rows | SplitRows | None = None,
        names: Names | None = None,
        *,
        level: Level | None = None,
        checked: bool = False,
        folder: Folder | None = None,
    ) -> None:
        # Objects that must live as long as the graph: a temporary folder, a transposed graph.
        self._keep: object = None
        if not isinstance(links, Rows):
            from inlink.graph.interop import as_graph

            if any(value is not None for value in (in_rows, names, level, folder)):
                raise ParameterError(
                    "`in_rows`, `names`, `level` and `folder` apply only to Rows; got a "
                    f"{type(links).__name__} as `links`"
                )
            self._keep = graph = as_graph(links)
            links, in_rows, names = graph.out_rows, graph._in_rows, graph.names
            level, folder, checked = graph.level, graph._folder, True
        if not checked:
            from inlink.graph.checks import sound_graph

            links, in_rows = sound_graph(links, in_rows, names, level)
        self._out_rows = out_rows = links
        self._in_rows: SplitRows | None = unsplit(in_rows) if isinstance(in_rows, Rows) else in_rows
        self._shape = len(out_rows.offsets) - 1, len(out_rows.nodes)
        self._is_weighted = out_rows.weights is not None
        self.names: Names | None = names
        self.level: Level | None = level
        self._folder: Folder | None = folder

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, verify: bool = False) -> "Graph":
        """Open a graph's folder.

        The first opening reads each file once, and checks its checksum and that kernels can trust it. The user's
        cache remembers the folder, so later openings check only that no file has changed since.

        Parameters
        ----------
        path : path-like
            A folder that ``inlink build`` or :func:`inlink.read` with ``into=`` made.
        verify : bool
            Read and check every file, even if the folder was checked before and has not changed.

        Raises
        ------
        inlink.errors.FolderError
            If the folder is missing, damaged, of another kind or of another format version.
        """
        from inlink.graph.checks import check_graph

        folder = graph_folder(path)
        check_graph(folder, always=verify)
        return cls._of_folder(folder)

    @classmethod
    def _built(cls, path: Path) -> "Graph":
        """Open a folder that this process has just built."""
        return cls._of_folder(Folder(path, KIND, COMPRESSED))

    @classmethod
    def _of_folder(cls, folder: Folder) -> "Graph":
        names = None
        if "names.text" in folder:
            names = Names(
                folder.array("names.text"), folder.array("names.offsets"), _stored(folder, "names.order")
            )
        if folder.header.version == COMPRESSED:
            return CompressedGraph(folder, names)
        out_rows, in_rows = (
            Rows(*(_stored(folder, f"{side}.{part}") for part in ("offsets", "nodes", "weights")))
            for side in ("out", "in")
        )
        inlinks = SplitRows(*in_rows, folder.array("in.linking"))
        level = folder.header.meta.get("level")
        return cls(out_rows, inlinks, names, level=level, checked=True, folder=folder)

    @classmethod
    def from_arcs(
        cls,
        arcs: Iterable[tuple[Any, Any]] | AnyArray,
        *,
        num_nodes: int | None = None,
        weights: npt.ArrayLike | None = None,
        count: bool = False,
        into: str | os.PathLike[str] | None = None,
    ) -> "Graph":
        """Build a graph from pairs in memory.

        Parameters
        ----------
        arcs : iterable of (source, target), or integer[k, 2]
            Pairs of numbers, or of names, which are str or bytes. Integers are numbers of nodes, from 0 on, and not
            names: ``[(1, 2), (2, 3)]`` has the four nodes 0, 1, 2 and 3. Write ``("1", "2")`` for nodes with these
            names.
        num_nodes : int or None
            The number of nodes, if nodes are numbers; None is one more than the largest number.
        weights : float[k] or None
            The weights of the arcs, finite and above 0.
        count : bool
            Use the number of times that an arc occurs as its weight.
        into : path-like or None
            The folder to keep the graph in; None makes a temporary folder, which is removed with the graph.

        Raises
        ------
        inlink.errors.ParameterError
            If an arc is not a pair, names and numbers are mixed, or weights and arcs do not fit together.

        Examples
        --------
        >>> from inlink import Graph
        >>> graph = Graph.from_arcs([("a", "b"), ("b", "c"), ("a", "b")])
        >>> graph.num_nodes, graph.num_arcs, graph.outlinks("a").tolist()
        (3, 2, [1])
        >>> Graph.from_arcs([(1, 2), (2, 3)])
        <inlink graph: 4 nodes, 2 arcs; nodes 0 to 3>
        """
        from inlink.graph.interop import graph_of_pairs

        return graph_of_pairs(arcs, num_nodes, weights, count, into)

    # -- properties -----------------------------------------------------------------------------------

    @property
    def out_rows(self) -> Rows:
        """The outlinks."""
        return self._out_rows

    @property
    def out_weights(self) -> AnyArray | None:
        """The weights of the outlinks: uint32[m] or float64[m], or None."""
        return self.out_rows.weights

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self._shape[0]

    @property
    def num_arcs(self) -> int:
        """The number of arcs, duplicates counted once."""
        return self._shape[1]

    def __len__(self) -> int:
        return self.num_nodes

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[str | int]:
        return iter(self.nodes)

    def __contains__(self, node: object) -> bool:
        return node in self.nodes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        if self is other or (self.uuid is not None and self.uuid == other.uuid):
            return True
        if (*self._shape, self.is_weighted) != (*other._shape, other.is_weighted):
            return False
        return _same_names(self.names, other.names) and all(
            mine is None or theirs is None or np.array_equal(mine, theirs)
            for mine, theirs in zip(self.out_rows, other.out_rows, strict=True)
        )

    def __hash__(self) -> int:
        return hash(self._shape)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            remedy = f": use {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
            raise AttributeError(f"a Graph has no attribute {name!r}{remedy}", name=name, obj=self)

    @property
    def nodes(self) -> Nodes:
        """The nodes, by name, or by number if there are no names: a sequence, and a table for Arrow's readers."""
        return Nodes(self.names, self.num_nodes)

    @property
    def edges(self) -> Edges:
        """The arcs as pairs of nodes: a collection, and a table for Arrow's readers."""
        return Edges(self)

    @property
    def is_weighted(self) -> bool:
        """True if arcs have weights."""
        return self._is_weighted

    @cached_property
    def in_rows(self) -> Rows:
        """The inlinks as plain rows. If they are stored split, this makes a copy in memory: 4 bytes an arc."""
        if self._in_rows is None and self.coded_in_rows is None:
            require_copy(self.out_rows, 16)
            return _transposed(self.out_rows)
        rows = self.split_in_rows
        if len(rows.linking):
            require_copy(rows, 16)
        return join_rows(rows)

    @cached_property
    def split_in_rows(self) -> SplitRows:
        """The inlinks as rankings read them. They are split unless the graph was given plain rows."""
        if self._in_rows is not None:
            return self._in_rows
        if "in_rows" in self.__dict__:
            return unsplit(self.in_rows)
        require_copy(self.out_rows, 32)
        return split_transpose(self.out_rows)

    @property
    def coded_in_rows(self) -> CodedRows | None:
        """The inlinks as a compressed folder stores them; None if the rows are not compressed."""
        return None

    @property
    def path(self) -> Path | None:
        """The folder of the graph; None if it is in memory only."""
        return None if self._folder is None else self._folder.path

    @property
    def uuid(self) -> str | None:
        """An identifier of this graph that no other graph has, nor a later version of it; None in memory."""
        return None if self._folder is None else self._folder.header.uuid

    @property
    def num_bytes(self) -> int:
        """The bytes on disk, or for a graph in memory the bytes of its rows and names."""
        if self._folder is not None:
            return self._folder.num_bytes
        names: list[AnyArray | None] = (
            [] if self.names is None else [self.names.text, self.names.offsets, self.names.order]
        )
        return self._link_bytes() + sum(array.nbytes for array in names if array is not None)

    @property
    def meta(self) -> dict[str, Any]:
        """The origin of the graph: sources, what was skipped, the parent of a derived graph."""
        return {} if self._folder is None else self._folder.header.meta

    def __repr__(self) -> str:
        what = f"{self.level} graph" if self.level else "graph"
        # Integers given as nodes are numbers, which people take for names.
        numbers = f"; nodes 0 to {self.num_nodes - 1:,}" if self.names is None and self.num_nodes else ""
        return f"<inlink {what}: {counted(self.num_nodes, 'node')}, {counted(self.num_arcs, 'arc')}{numbers}>"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [("nodes", self.num_nodes), ("arcs", self.num_arcs)]
        # Up to this size the degrees take no noticeable time.
        if 0 < self.num_nodes <= 1 << 22:
            rows.append(("dangling", int((self.outdegrees == 0).sum())))
            sides = [("out", self.outdegrees)]
            # Making inlinks would take too long here.
            if self._in_rows is not None:
                sides.append(("in", self.indegrees))
            for side, degrees in sides:
                node = int(degrees.argmax())
                rows.append((f"largest {side}degree", f"{degrees[node]:,}: {self.nodes[node]}"))
        rows.append(("folder", "none, it is in memory" if self.path is None else self.path))
        return html_table(f"inlink {self.level or ''} graph".replace("  ", " "), [], rows)

    # -- nodes and their links --------------------------------------------------------------------------

    def node(self, node: int | str | bytes) -> int:
        """A node's number, given its number or its name.

        Raises
        ------
        inlink.errors.ParameterError
            If ``node`` is neither a whole number nor a name.
        inlink.errors.UnknownNodeError
            If there is no such node.
        """
        return self.nodes.number(node)

    def successors(self, node: int | str | bytes) -> list[Any]:
        """The nodes that a node links to, in the order of the nodes; :meth:`outlinks` has their numbers."""
        return self.nodes.at(self.outlinks(node))

    # Along the arcs, as in NetworkX. In igraph, the neighbours are those of both directions.
    neighbors = successors

    def predecessors(self, node: int | str | bytes) -> list[Any]:
        """The nodes that link to a node, in the order of the nodes; :meth:`inlinks` has their numbers."""
        return self.nodes.at(self.inlinks(node))

    @property
    def degree(self) -> Degrees:
        """The number of inlinks and outlinks of a node together, as :attr:`in_degree`. A self-loop counts twice."""

        def of_node(node: int | str | bytes) -> int:
            number = self.node(node)
            return self.in_degree[number] + self.out_degree[number]

        return Degrees(self.nodes, of_node, lambda: self.indegrees.astype(np.uint64) + self.outdegrees)

    @property
    def in_degree(self) -> Degrees:
        """The number of inlinks of a node: ``graph.in_degree(node)`` or ``graph.in_degree[node]``.

        In a loop, pairs of nodes and numbers: ``dict(graph.in_degree)``. :attr:`indegrees` is an array of all.
        """

        def of_node(node: int | str | bytes) -> int:
            if self._in_rows is None and self.coded_in_rows is None:
                # Counting takes less than making the inlinks.
                return int(self.indegrees[self.node(node)])
            return len(self.inlinks(node))

        return Degrees(self.nodes, of_node, lambda: self.indegrees)

    @property
    def out_degree(self) -> Degrees:
        """The number of outlinks of a node, as :attr:`in_degree`. :attr:`outdegrees` is an array of all."""
        return Degrees(self.nodes, lambda node: len(self.outlinks(node)), lambda: self.outdegrees)

    def outlinks(self, node: int | str | bytes) -> UInt32Array:
        """The nodes that a node links to, uint32[outdegree], increasing."""
        rows, number = self.out_rows, self.node(node)
        return rows.nodes[int(rows.offsets[number]) : int(rows.offsets[number + 1])]

    def inlinks(self, node: int | str | bytes) -> UInt32Array:
        """The nodes that link to a node, uint32[indegree], increasing."""
        rows = self.split_in_rows
        place = int(rows.places([self.node(node)])[0])
        return rows.named(rows.nodes[int(rows.offsets[place]) : int(rows.offsets[place + 1])])

    def out_blocks(self) -> Iterator[tuple[int, UInt64Array, UInt32Array, AnyArray | None]]:
        """Read the outlinks from front to back, about a million arcs at a time.

        Yields
        ------
        int, uint64[k + 1], uint32[…], number[…] or None
            The first node of a block, the offsets of its rows, and the nodes and weights of all its rows.
        """
        rows, low = self.out_rows, 0
        while low < self.num_nodes:
            goal = rows.offsets[low] + np.uint64(_BLOCK)
            high = max(int(np.searchsorted(rows.offsets, goal, "right")) - 1, low + 1)
            offsets = rows.offsets[low : high + 1]
            arcs = slice(int(offsets[0]), int(offsets[-1]))
            yield low, offsets, rows.nodes[arcs], None if rows.weights is None else rows.weights[arcs]
            low = high

    @cached_property
    def outdegrees(self) -> UInt32Array:
        """The number of outlinks of each node, uint32[n]."""
        return np.diff(self.out_rows.offsets).astype(np.uint32)

    @cached_property
    def indegrees(self) -> UInt32Array:
        """The number of inlinks of each node, uint32[n]."""
        if self._in_rows is None:
            from inlink.graph.kernels.arcs import count_nodes

            counts = np.zeros(len(self.out_rows.offsets), np.uint64)
            count_nodes(self.out_rows.nodes, counts)
            return counts[1:].astype(np.uint32)
        rows = self.split_in_rows
        degrees = np.diff(rows.offsets).astype(np.uint32)
        return degrees[row_places(rows.linking, self.num_nodes)] if len(rows.linking) else degrees

    @cached_property
    def crawled(self) -> BoolArray | None:
        """True for each node that is a crawled page, bool[n]; None if this is unknown."""
        return _stored(self._folder, "crawled")  # type: ignore[no-any-return]

    @cached_property
    def from_parent(self) -> UInt32Array | None:
        """For each node of the parent of a derived graph, its node in this graph: uint32[nodes of the parent].

        It is 2³² − 1 for nodes that are not in this graph. None for a graph that was not derived.
        ``values[from_parent]`` are the values of a ranking for the parent's nodes.
        """
        return _stored(self._folder, "from_parent")  # type: ignore[no-any-return]

    def info(self) -> GraphInfo:
        """Counts: nodes, arcs, dangling nodes, islands, self-loops, largest degrees, components, bytes.

        The outlinks are read twice, and a few numbers for each node are kept in memory.
        """
        from inlink.graph.kernels.walks import self_loops

        require_memory(32 * self.num_nodes, f"counts of {self.num_nodes:,} nodes")
        out, inn = self.outdegrees, self.indegrees
        loops = np.zeros(self.num_nodes, np.bool_)
        count = int(self_loops(self.out_rows.offsets, self.out_rows.nodes, loops))
        label = components(self.out_rows)
        sizes = np.bincount(label, minlength=1)

        def largest(degrees: np.ndarray) -> tuple[int, str | int | None]:
            if len(degrees) == 0:
                return 0, None
            node = int(degrees.argmax())
            return int(degrees[node]), self.nodes[node]

        most_out, most_out_node = largest(out)
        most_in, most_in_node = largest(inn)
        return GraphInfo(
            nodes=self.num_nodes,
            arcs=self.num_arcs,
            dangling=int((out == 0).sum()),
            islands=int(((out == loops) & (inn == loops)).sum()),
            self_loops=count,
            max_outdegree=most_out,
            max_outdegree_node=most_out_node,
            max_indegree=most_in,
            max_indegree_node=most_in_node,
            components=int((sizes > 0).sum()),
            largest_component=int(sizes.max()),
            weighted=self.is_weighted,
            named=self.names is not None,
            crawled=None if self.crawled is None else int(self.crawled.sum()),
            level=self.level,
            bytes=self.num_bytes,
            link_bytes=self._link_bytes(),
            compressed=self.coded_in_rows is not None,
        )

    def _link_bytes(self) -> int:
        if self._folder is None:
            arrays: list[AnyArray | None] = [*self._out_rows, *(self._in_rows or ())]
            return sum(array.nbytes for array in arrays if array is not None)
        files = self._folder.header.files
        return sum(
            entry.length * np.dtype(entry.dtype).itemsize
            for name, entry in files.items()
            if name.startswith(("in.", "out.", "linking", "shape"))
        )

    # -- derived graphs ---------------------------------------------------------------------------------

    def transpose(self) -> "Graph":
        """The graph with every arc reversed. No arrays are copied."""
        return TransposedGraph(self)

    def fold(
        self,
        level: Literal["host", "domain"],
        *,
        self_loops: bool = False,
        private_suffixes: bool = False,
        keep_suffixes: bool = False,
        strip_www: bool = False,
        hosts: "HostNames | None" = None,
        into: str | os.PathLike[str] | None = None,
        compress: bool = False,
    ) -> "Graph":
        """The graph of hosts or of registered domains; see :func:`inlink.graph.derive.fold`."""
        from inlink.graph.derive import fold

        return fold(
            self,
            level,
            self_loops=self_loops,
            private_suffixes=private_suffixes,
            keep_suffixes=keep_suffixes,
            strip_www=strip_www,
            hosts=hosts,
            into=into,
            compress=compress,
        )

    def without_internal(
        self,
        level: Literal["host", "domain"],
        *,
        into: str | os.PathLike[str] | None = None,
        compress: bool = False,
    ) -> "Graph":
        """The graph without the arcs that stay within one host or domain."""
        from inlink.graph.derive import without_internal

        return without_internal(self, level, into=into, compress=compress)

    def subgraph(
        self, nodes: npt.ArrayLike, *, into: str | os.PathLike[str] | None = None, compress: bool = False
    ) -> "Graph":
        """The graph of a set of nodes and the arcs between them; see :func:`inlink.graph.derive.subgraph`."""
        from inlink.graph.derive import subgraph

        return subgraph(self, nodes, into=into, compress=compress)

    def largest_component(
        self, *, strong: bool = False, into: str | os.PathLike[str] | None = None, compress: bool = False
    ) -> "Graph":
        """The subgraph of the largest weakly (or strongly) connected component."""
        return self.subgraph(largest_component(self.out_rows, strong=strong), into=into, compress=compress)

    def reachable(
        self,
        sources: Iterable[int | str | bytes],
        *,
        into: str | os.PathLike[str] | None = None,
        compress: bool = False,
    ) -> "Graph":
        """The subgraph of the nodes that can be reached from ``sources`` along outlinks, the sources included.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If a source is not in the graph.
        """
        nodes = [self.node(source) for source in sources]
        return self.subgraph(reachable(self.out_rows, nodes), into=into, compress=compress)

    # -- for other programs -----------------------------------------------------------------------------

    def to_scipy(self, dtype: npt.DTypeLike = np.float64) -> "scipy.sparse.csr_array":
        """The adjacency matrix: A[i, j] is the arc i → j.

        The column numbers are shared, not copied, if there are fewer than 2³¹ nodes and arcs (SciPy's limit for 32-bit
        indices). Row pointers and weights are made: 4 bytes a node, and one number of ``dtype`` an arc.
        """
        sparse = load("scipy.sparse", "scipy", "to_scipy")
        rows, n = self.out_rows, self.num_nodes
        weights = (
            np.ones(len(rows.nodes), dtype)
            if rows.weights is None
            else rows.weights.astype(dtype, copy=False)
        )
        small = max(n, len(rows.nodes)) < 2**31
        indices = rows.nodes.view(np.int32) if small else rows.nodes.astype(np.int64)
        indptr = rows.offsets.astype(np.int32) if small else rows.offsets.view(np.int64)
        matrix: scipy.sparse.csr_array = sparse.csr_array(
            (weights, indices, indptr), shape=(n, n), copy=False
        )
        matrix.has_sorted_indices = matrix.has_canonical_format = True
        return matrix

    def to_networkx(self) -> "networkx.DiGraph[Any]":
        """A NetworkX DiGraph whose nodes are this graph's names (or numbers), weights as ``weight``."""
        result: networkx.DiGraph[Any] = load("networkx", "networkx", "to_networkx").DiGraph()
        labels: list[Any] = list(self.nodes)
        result.add_nodes_from(labels)
        for sources, targets, weights in arc_batches(self, 1 << 16):
            ends = (map(labels.__getitem__, side.tolist()) for side in (sources, targets))
            if weights is None:
                result.add_edges_from(zip(*ends, strict=True))
            else:
                result.add_weighted_edges_from(zip(*ends, weights.tolist(), strict=True))
        return result

    def to_igraph(self) -> "igraph.Graph":
        """An igraph graph, directed, its vertices in the order of the nodes; names as ``name``, weights as ``weight``.

        Raises
        ------
        inlink.errors.MissingExtraError
            If igraph is not installed.
        """
        rows = self.out_rows
        sources = np.repeat(np.arange(self.num_nodes, dtype=np.int64), np.diff(rows.offsets).astype(np.int64))
        edges = np.column_stack([sources, rows.nodes.astype(np.int64)])
        result = load("igraph", None, "to_igraph()").Graph(n=self.num_nodes, edges=edges, directed=True)
        if self.names is not None:
            result.vs["name"] = list(self.names)
        if rows.weights is not None:
            result.es["weight"] = rows.weights.tolist()
        return result

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The arcs as a stream for Arrow's readers, such as Polars and DuckDB; the same as that of :attr:`edges`."""
        return self.edges.__arrow_c_stream__(requested_schema)

    # NetworkX passes its calls with an inlink graph on to inlink.networkx.
    __networkx_backend__ = "inlink"

    def is_directed(self) -> bool:
        """True: arcs have a direction."""
        return True

    def is_multigraph(self) -> bool:
        """False: equal arcs are one."""
        return False


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
        none = Rows(np.zeros(1, np.uint64), np.empty(0, np.uint32))
        super().__init__(
            none, None, names, level=folder.header.meta.get("level"), checked=True, folder=folder
        )
        self._shape = tuple(folder.array("shape").tolist())
        self._is_weighted = "out.weights" in folder
        self._coded_out = CodedOutlinks(folder.array("out.records"), folder.array("out.blocks"))

    @cached_property
    def coded_in_rows(self) -> CodedRows:
        """The coded inlinks, in the form for kernels. The numbers of the linking nodes take 4 bytes of memory each."""
        assert self._folder is not None
        return coded_inlinks(self._folder, self.num_nodes)

    @cached_property
    def out_rows(self) -> Rows:
        """The outlinks, decoded into memory: 4 bytes an arc and 8 a node."""
        return Rows(*self._decoded(self._coded_out), self.out_weights)

    @cached_property
    def split_in_rows(self) -> SplitRows:
        """The inlinks by place, decoded into memory: 4 bytes an arc and 8 a node."""
        weights = _stored(self._folder, "in.weights")
        return SplitRows(*self._decoded(self.coded_in_rows), weights, self.coded_in_rows.linking)

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
        return decoded_row(self._coded_out, self.num_nodes, self.node(node))

    def inlinks(self, node: int | str | bytes) -> UInt32Array:
        """The nodes that link to a node, uint32[indegree], increasing. The block of the node's place is decoded."""
        if "split_in_rows" in self.__dict__:
            return super().inlinks(node)
        coded = self.coded_in_rows
        place = int(places_of(coded.linking, [self.node(node)])[0])
        return coded.linking[decoded_row(coded, self.num_nodes, place)]

    def out_blocks(self) -> Iterator[tuple[int, UInt64Array, UInt32Array, AnyArray | None]]:
        """Decode the outlinks from front to back; see :meth:`Graph.out_blocks`."""
        weights = self.out_weights
        for first, _, offsets, nodes, arc in decoded_blocks(self._coded_out, self.num_nodes):
            yield first, offsets, nodes, None if weights is None else weights[arc : arc + len(nodes)]

    @property
    def out_weights(self) -> AnyArray | None:
        """The weights of the outlinks, number[m]; they are not compressed."""
        return _stored(self._folder, "out.weights")  # type: ignore[no-any-return]

    def _decoded(self, coded: CodedRows | CodedOutlinks) -> tuple[UInt64Array, UInt32Array]:
        """Decode all rows of one side."""
        require_memory(8 * self.num_nodes + 4 * self.num_arcs, f"rows of {self.num_nodes:,} nodes")
        offsets, nodes = np.zeros(self.num_nodes + 1, np.uint64), np.empty(self.num_arcs, np.uint32)
        for first, _, begins, part, arc in decoded_blocks(coded, self.num_nodes):
            nodes[arc : arc + len(part)] = part
            offsets[first : first + len(begins)] = begins + np.uint64(arc)
        return offsets, nodes


class TransposedGraph(Graph):
    """A graph with every arc reversed. Its outlinks are made in memory when they are first used."""

    def __init__(self, graph: Graph) -> None:
        # `out_rows` hides the first argument.
        super().__init__(graph.out_rows, graph.out_rows, graph.names, level=graph.level, checked=True)
        self._graph = graph

    @property
    def out_rows(self) -> Rows:
        """The outlinks: the inlinks of the other graph."""
        return self._graph.in_rows

    def outlinks(self, node: int | str | bytes) -> UInt32Array:
        """The nodes that a node links to, uint32[outdegree], increasing: the inlinks of the other graph."""
        return self._graph.inlinks(node)

    @cached_property
    def outdegrees(self) -> UInt32Array:
        """The number of outlinks of each node, uint32[n]."""
        return self._graph.indegrees

    def transpose(self) -> Graph:
        """The other graph."""
        return self._graph
