"""Graphs from and to SciPy and NetworkX."""

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from inlink.base.arrays import AnyArray
from inlink.errors import ParameterError
from inlink.graph.graph import Graph, Rows, check_weights
from inlink.graph.names import Names

if TYPE_CHECKING:
    import networkx
    import scipy.sparse

__all__ = [
    "GraphLike",
    "NetworkXGraph",
    "SparseMatrix",
    "as_graph",
    "from_networkx",
    "from_scipy",
    "to_networkx",
    "to_scipy",
]


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
        """Whether an edge is one arc, or two."""

    def adjacency(self) -> Any:
        """The nodes, and the neighbours of each."""


GraphLike: TypeAlias = Graph | SparseMatrix | NetworkXGraph
"""What every function that ranks a graph takes. Neither SciPy nor NetworkX is imported for it."""


def as_graph(graph: GraphLike) -> Graph:
    """The Graph itself, or a SciPy sparse matrix or NetworkX graph as a Graph.

    Raises
    ------
    inlink.errors.ParameterError
        If it is none of these, a matrix is not square, or a weight is not a finite number above 0.
    """
    if isinstance(graph, Graph):
        return graph
    if hasattr(graph, "tocsr"):
        return from_scipy(graph)
    if hasattr(graph, "adjacency") and hasattr(graph, "is_directed"):
        return from_networkx(cast("networkx.Graph[Any]", graph))
    raise ParameterError(
        f"expected a Graph, a SciPy sparse matrix or array, or a NetworkX graph, not {type(graph).__name__}"
    )


def from_scipy(matrix: Any, names: Names | None = None) -> Graph:
    """A Graph of a sparse adjacency matrix: A[i, j] ≠ 0 is the arc i → j. If all entries are 1 there are no weights.

    A CSR matrix with sorted indices and no duplicates is used without a copy if its dtypes allow it.

    Raises
    ------
    inlink.errors.ParameterError
        If the matrix is not square, or an entry is not a finite number of at least 0.
    """
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ParameterError(f"an adjacency matrix must be square, not of shape {matrix.shape}")
    csr = matrix.tocsr()
    if not csr.has_canonical_format or (csr.nnz and not csr.data.all()):
        csr = csr.copy()
        csr.sum_duplicates()
        csr.eliminate_zeros()
    weights = None
    if csr.nnz and not (csr.data == 1).all():
        check_weights(csr.data, "adjacency matrix")
        weights = csr.data.astype(np.float64, copy=False)
    rows = Rows(_unsigned(csr.indptr, np.uint64), _unsigned(csr.indices, np.uint32), weights)
    return Graph(rows, names=names)


def _unsigned(values: AnyArray, dtype: type[np.unsignedinteger]) -> AnyArray:
    if values.dtype.itemsize == np.dtype(dtype).itemsize:
        return values.view(dtype)
    return values.astype(dtype)


def to_scipy(graph: Graph, dtype: npt.DTypeLike = np.float64) -> "scipy.sparse.csr_array":
    """See :meth:`inlink.Graph.to_scipy`."""
    import scipy.sparse

    rows, n = graph.out_rows, graph.num_nodes
    weights = (
        np.ones(len(rows.nodes), dtype) if rows.weights is None else rows.weights.astype(dtype, copy=False)
    )
    small = max(n, len(rows.nodes)) < 2**31
    indices = rows.nodes.view(np.int32) if small else rows.nodes.astype(np.int64)
    indptr = rows.offsets.astype(np.int32) if small else rows.offsets.view(np.int64)
    matrix = scipy.sparse.csr_array((weights, indices, indptr), shape=(n, n), copy=False)
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix


def from_networkx(graph: "networkx.Graph[Any]", weight: str | None = "weight") -> Graph:
    """A Graph of a NetworkX graph: nodes keep their order, and an undirected edge becomes two arcs.

    If the nodes are 0, 1, … n − 1 in this order, the Graph has no names; otherwise the names are ``str(node)``. The
    weights of parallel edges of a multigraph are added; an edge without a weight counts 1.

    Raises
    ------
    inlink.errors.InputError
        If two nodes have the same ``str(node)``.
    inlink.errors.ParameterError
        If a weight is not a finite number above 0.
    """
    import networkx as nx

    nodes = list(graph)
    names = (
        None
        if nodes == list(range(len(nodes)))
        else Names.of(n if isinstance(n, str | bytes) else str(n) for n in nodes)
    )
    if not nodes:
        return Graph(Rows(np.zeros(1, np.uint64), np.empty(0, np.uint32)), names=names)
    return from_scipy(nx.to_scipy_sparse_array(graph, nodelist=nodes, weight=weight, dtype=np.float64), names)


def to_networkx(graph: Graph) -> "networkx.DiGraph[Any]":
    """See :meth:`inlink.Graph.to_networkx`."""
    import networkx as nx

    result: networkx.DiGraph[Any] = nx.DiGraph()
    labels: list[Any] = list(range(graph.num_nodes)) if graph.names is None else list(graph.names)
    result.add_nodes_from(labels)
    rows = graph.out_rows
    for i, label in enumerate(labels):
        low, high = int(rows.offsets[i]), int(rows.offsets[i + 1])
        ends = rows.nodes[low:high].tolist()
        if rows.weights is None:
            result.add_edges_from((label, labels[j]) for j in ends)
        else:
            values = rows.weights[low:high].tolist()
            result.add_weighted_edges_from((label, labels[j], w) for j, w in zip(ends, values, strict=True))
    return result
