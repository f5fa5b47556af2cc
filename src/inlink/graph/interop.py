"""Graphs of pairs in memory, of SciPy, NetworkX and igraph, and of data frames."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from inlink.base.arrays import AnyArray, Float64Array, UInt32Array, UInt64Array
from inlink.base.declare import Parameter
from inlink.base.extras import load
from inlink.base.strings import Strings
from inlink.errors import ParameterError
from inlink.graph.batches import ArcBatch
from inlink.graph.checks import check_names, check_weights, integers
from inlink.graph.frames import ArrowTable, graph_of_table, is_table
from inlink.graph.graph import Graph, Rows
from inlink.graph.names import MAX_NODES, Names

if TYPE_CHECKING:
    import networkx


class SparseMatrix(Protocol):
    """A SciPy sparse matrix or array of any format: A[i, j] is the arc i → j."""

    @property
    def shape(self) -> Any:
        """Rows and columns."""

    def tocsr(self) -> Any:
        """The matrix in compressed sparse rows."""


class NetworkXGraph(Protocol):
    """A NetworkX graph of any kind."""

    def is_directed(self) -> bool:
        """Return whether an edge is one arc, or two."""

    def adjacency(self) -> Any:
        """The nodes, and the neighbours of each."""


class IgraphGraph(Protocol):
    """A graph of igraph."""

    def get_edgelist(self) -> Any:
        """The edges as pairs of numbers."""


GraphLike: TypeAlias = (
    Graph | Iterable[tuple[Any, Any]] | AnyArray | SparseMatrix | NetworkXGraph | IgraphGraph | ArrowTable
)
"""Graphs that ranking functions accept. The definition imports none of these libraries."""


def as_graph(graph: GraphLike) -> Graph:
    """Return a Graph itself, or make one of pairs, a SciPy matrix, a NetworkX or igraph graph, or a table of arcs.

    Raises
    ------
    inlink.errors.ParameterError
        If ``graph`` is none of these, a matrix is not square, a table has not two or three columns, or a weight is not
        a finite number above 0.
    """
    links: Any = graph
    if isinstance(links, Graph):
        return links
    if hasattr(links, "tocsr"):
        return from_scipy(links)
    if hasattr(links, "adjacency") and hasattr(links, "is_directed"):
        return from_networkx(links)
    if hasattr(links, "get_edgelist"):
        return _from_igraph(links)
    if is_table(links):
        return graph_of_table(links)
    remedy = ""
    if isinstance(links, str | os.PathLike):
        remedy = ". inlink.read makes a Graph of a file or folder."
    elif isinstance(links, np.ndarray) and links.ndim == 2 and links.shape[0] == links.shape[1]:
        remedy = f" of shape {links.shape}. scipy.sparse.csr_array(array) makes a matrix of it"
    elif isinstance(links, Mapping):
        remedy = ". Give pairs: [(node, target) for node, targets in links.items() for target in targets]"
    elif lazy := [name for name in ("collect", "compute") if hasattr(links, name)]:
        remedy = f". Call its .{lazy[0]}() first"
    elif isinstance(links, Iterable) and not isinstance(links, bytes):
        return graph_of_pairs(links, None, None, False, None)
    raise ParameterError(
        "`graph` must be a Graph, pairs of nodes, a SciPy sparse matrix or array, a graph of NetworkX or igraph, or a "
        f"data frame of arcs; got {type(links).__name__}{remedy}"
    )


def from_scipy(matrix: Any, names: Names | None = None) -> Graph:
    """Make a Graph of a sparse adjacency matrix: A[i, j] ≠ 0 is the arc i → j. If all entries are 1, it has no weights.

    A CSR matrix with sorted indices and no duplicates is used without a copy if its dtypes allow it.

    Raises
    ------
    inlink.errors.ParameterError
        If the matrix is not square, its indices do not fit, or an entry is not a finite number of at least 0.
    """
    shape = getattr(matrix, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2 or shape[0] != shape[1] or shape[0] > MAX_NODES:
        raise ParameterError(
            f"an adjacency matrix must be square, of at most {MAX_NODES:,} nodes; got shape {shape}"
        )
    if matrix.dtype.kind not in "biuf":
        raise ParameterError(f"an adjacency matrix must have numbers as entries; got {matrix.dtype}")
    # SciPy's own loops check no bounds.
    _check_indices(matrix)
    csr = matrix.tocsr()
    offsets, nodes = _check_indices(csr)
    if not _increase(offsets, nodes) or not csr.data[: len(nodes)].all():
        # The flags of a matrix on the order of its indices may be wrong.
        csr = type(csr)((csr.data.astype(np.float64), csr.indices, csr.indptr), shape=shape, copy=True)
        csr.has_canonical_format = csr.has_sorted_indices = False
        csr.sum_duplicates()
        csr.eliminate_zeros()
        offsets, nodes = _check_indices(csr)
    data = csr.data[: len(nodes)]
    weights = None
    if len(nodes) and not (data == 1).all():
        check_weights(data, "adjacency matrix")
        weights = np.ascontiguousarray(data, np.float64)
    if names is not None:
        check_names(names, shape[0])
    return Graph(Rows(offsets, nodes, weights), names=names, checked=True)


def _check_indices(matrix: Any) -> tuple[UInt64Array, UInt32Array]:
    """Check the indices of a matrix that a caller may have made or changed by hand.

    Returns
    -------
    uint64[n + 1], uint32[m]
        The offsets and nodes of a CSR matrix; meaningless for other formats.
    """
    what = f"a SciPy matrix in {getattr(matrix, 'format', 'unknown')} format"
    none = np.empty(0, np.uint64), np.empty(0, np.uint32)
    kind = getattr(matrix, "format", "")
    if kind == "coo":
        for side, ends in enumerate((matrix.row, matrix.col)):
            integers(ends, f"{what}: indices", np.uint32, max(matrix.shape[side], 1))
            if np.shape(ends) != np.shape(matrix.data):
                raise ParameterError(f"{what}: rows, columns and values must have the same length")
        return none
    if kind not in ("csr", "csc", "bsr"):
        return none
    shape = matrix.shape if kind != "csc" else matrix.shape[::-1]
    height, width = matrix.blocksize if kind == "bsr" else (1, 1)
    indices = np.asarray(matrix.indices)
    offsets = integers(matrix.indptr, f"{what}: indptr", np.uint64, len(indices) + 1)
    if len(offsets) != shape[0] // height + 1 or offsets[0] != 0 or (offsets[1:] < offsets[:-1]).any():
        raise ParameterError(f"{what}: indptr must increase from 0, with one entry more than rows")
    nodes = integers(indices[: int(offsets[-1])], f"{what}: indices", np.uint32, max(shape[1] // width, 1))
    if len(matrix.data) < len(nodes):
        raise ParameterError(
            f"{what}: data must be as long as indices; got {len(matrix.data):,} of {len(nodes):,}"
        )
    return offsets, nodes


def _increase(offsets: UInt64Array, nodes: UInt32Array) -> bool:
    """Return whether each row is in increasing order, and has no node twice."""
    rises = np.ones(len(nodes) + 1, np.bool_)
    rises[1:-1] = nodes[1:] > nodes[:-1]
    # From one row to the next, the nodes need not increase.
    rises[offsets] = True
    return bool(rises.all())


def from_networkx(graph: "networkx.Graph[Any]", weight: str | None = "weight") -> Graph:
    """Make a Graph of a NetworkX graph: nodes keep their order, and an undirected edge becomes two arcs.

    If the nodes are 0, 1, … n − 1 in this order, the Graph has no names; otherwise the names are ``str(node)``. The
    weights of parallel edges of a multigraph are added; an edge without a weight counts 1.

    Raises
    ------
    inlink.errors.InputError
        If two nodes have the same ``str(node)``.
    inlink.errors.ParameterError
        If a weight is not a finite number above 0.
    """
    nx = load("networkx", "networkx", "a NetworkX graph")
    load("scipy", "networkx", "a NetworkX graph")
    nodes = list(graph)
    names = None if nodes == list(range(len(nodes))) else _names_of(nodes)
    if not nodes:
        return Graph(Rows(np.zeros(1, np.uint64), np.empty(0, np.uint32)), names=names)
    try:
        matrix = nx.to_scipy_sparse_array(graph, nodelist=nodes, weight=weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"the weights of a NetworkX graph must be numbers: {error}") from None
    return from_scipy(matrix, names)


def _names_of(nodes: Iterable[Any]) -> Names:
    return Names.of(node if isinstance(node, str | bytes) else str(node) for node in nodes)


def _from_igraph(graph: Any) -> Graph:
    """Make a Graph of an igraph graph: vertices keep their order, and an undirected edge becomes two arcs."""
    from inlink.graph.build import build_graph

    arcs = np.array(graph.get_edgelist(), np.uint32).reshape(-1, 2)
    weights = _weights(graph.es["weight"]) if "weight" in graph.es.attributes() else None
    if not graph.is_directed():
        # A loop is one arc.
        back = arcs[:, 0] != arcs[:, 1]
        arcs = np.concatenate([arcs, arcs[back, ::-1]])
        weights = None if weights is None else np.concatenate([weights, weights[back]])
    names = _names_of(graph.vs["name"]) if "name" in graph.vs.attributes() else None
    # As in NetworkX, parallel edges without weights count.
    return build_graph(
        [ArcBatch(arcs[:, 0], arcs[:, 1], None, weights)],
        names=names,
        num_nodes=graph.vcount() if names is None else None,
        count=graph.has_multiple(),
    )


_NUM_NODES = Parameter(name="num_nodes", kind=int, at_least=0, at_most=MAX_NODES)


def _weights(weights: npt.ArrayLike | None) -> Float64Array | None:
    if weights is None:
        return None
    try:
        array = np.asarray(weights)
    except ValueError:
        array = np.empty(0, object)
    if array.ndim != 1 or (array.dtype.kind not in "biuf" and array.size):
        raise ParameterError(f"`weights` must be a list of numbers; got {array.dtype} of shape {array.shape}")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, np.float64)


def graph_of_pairs(
    arcs: Iterable[tuple[Any, Any]] | AnyArray,
    num_nodes: int | None,
    weights: npt.ArrayLike | None,
    count: bool,
    into: str | os.PathLike[str] | None,
) -> Graph:
    """See :meth:`inlink.Graph.from_arcs`.

    Raises
    ------
    inlink.errors.ParameterError
        If an arc is not a pair, names and numbers are mixed, or weights and arcs do not fit together.
    """
    # Rankings import this module, and most of them get a graph that is built already.
    from inlink.graph.build import build_graph

    values = _weights(weights)
    if num_nodes is not None:
        num_nodes = int(_NUM_NODES.check(num_nodes, "`num_nodes`"))
    # An array of names is read as a list.
    if not isinstance(arcs, np.ndarray) or (arcs.ndim and arcs.dtype.kind in "OSTU"):
        if isinstance(arcs, str | bytes | Mapping) or not isinstance(arcs, Iterable):
            raise ParameterError(f"`arcs` must be pairs (source, target); got {type(arcs).__name__}")
        arcs = arcs.tolist() if isinstance(arcs, np.ndarray) else list(arcs)
        for arc in arcs:
            if isinstance(arc, str | bytes) or not isinstance(arc, Sequence | np.ndarray) or len(arc) != 2:
                remedy = "Weights go apart: inlink.Graph.from_arcs(pairs, weights=weights)"
                if isinstance(arc, str | os.PathLike):
                    remedy = "If these are paths, use inlink.read"
                raise ParameterError(f"an arc must be a pair (source, target); got {arc!r:.60}. {remedy}")
        named = {isinstance(end, str | bytes) for arc in arcs for end in arc}
        if named == {True}:
            if num_nodes is not None:
                raise ParameterError(
                    "`num_nodes` applies only to nodes by number: leave it out for nodes by name"
                )
            places = np.arange(2 * len(arcs), dtype=np.uint32).reshape(-1, 2)
            batch = ArcBatch(
                places[:, 0],
                places[:, 1],
                Strings.of(end for arc in arcs for end in arc),
                values,
            )
            return build_graph([batch], count=count, into=into)
        if len(named) > 1:
            raise ParameterError("nodes must be all numbers or all names; got both")
    try:
        pairs = np.asarray(arcs)
    except ValueError:
        raise ParameterError("nodes must be whole numbers or names; got lists") from None
    if not pairs.size:
        pairs = np.empty((0, 2), np.uint32)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ParameterError(f"`arcs` must be pairs (source, target); got an array of shape {pairs.shape}")
    sources, targets = (integers(pairs[:, side], "a node", np.uint32, MAX_NODES) for side in (0, 1))
    batch = ArcBatch(sources, targets, None, values)
    return build_graph([batch], num_nodes=num_nodes, count=count, into=into)
