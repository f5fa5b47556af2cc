"""Checks of the inputs of rankings besides the graph: values and sets of nodes, weights, tolerance, rounds."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from inlink.base.arrays import AnyArray, Float64Array, slices
from inlink.base.memory import require_memory
from inlink.base.table import counted
from inlink.errors import ParameterError, UnknownNodeError
from inlink.graph.coded import linking_outdegrees
from inlink.graph.graph import Graph
from inlink.graph.rows import Rows, SplitRows

# Nodes whose strengths are computed at a time.
_BLOCK = 1 << 16


VECTORS: dict[str, dict[str, int]] = {
    "degree": {"node": 32},
    "harmonic": {"node": 64, "thread": 232},
    "harmonic, estimated": {"node": 44},
    "pagerank": {"node": 12, "linking": 58},
    "katz": {"node": 48, "arc": 32},
    "eigenvector": {"node": 160},
    "betweenness": {"node": 32, "thread": 180},
    "betweenness, sampled": {"node": 44, "thread": 20},
}
"""The memory of each measure of :mod:`inlink.rank.plan` with its defaults: arguments of :func:`vector_bytes`."""


def vector_bytes(
    graph: Graph, node: int, linking: int = 0, arc: int = 0, thread: int = 0, threads: int | None = None
) -> int:
    """Return the bytes of memory that :func:`require_vectors` asks for."""
    from inlink.base.jit import num_threads

    places = 0
    if linking:
        rows = graph.split_in_rows if graph.coded_in_rows is None else graph.coded_in_rows
        places = len(rows.linking) or graph.num_nodes
    node += thread * num_threads(threads) if thread else 0
    return node * graph.num_nodes + linking * places + arc * graph.num_arcs


def require_vectors(
    graph: Graph, node: int, linking: int = 0, arc: int = 0, thread: int = 0, threads: int | None = None
) -> None:
    """Refuse a graph if memory does not suffice for vectors of its nodes. Rows in memory are checked elsewhere.

    Parameters
    ----------
    graph : Graph
        The graph.
    node, linking, arc, thread : int
        Bytes of memory for each node, for each node with outlinks besides, for each arc, and for each node and thread.
        They were measured.
    threads : int or None
        None: all processors.

    Raises
    ------
    inlink.errors.ParameterError
        If they do not suffice.
    """
    needed = vector_bytes(graph, node, linking, arc, thread, threads)
    require_memory(needed, f"vectors of {graph.num_nodes:,} nodes")


class HasValues(Protocol):
    """A ranking, or anything else with a value for each node."""

    @property
    def values(self) -> Float64Array:
        """The values, float64[n]."""


NodeValues: TypeAlias = npt.ArrayLike | Mapping[Any, float] | HasValues
"""A value for each node: float[n], a mapping of nodes (names or numbers) to values, or a ranking."""

Nodes: TypeAlias = Iterable[int | str | bytes]
"""Several nodes, by name or by number."""


def node_values(graph: Graph, values: NodeValues, what: str) -> Float64Array:
    """Return a finite value of at least 0 for each node, float64[n].

    Parameters
    ----------
    graph : Graph
        The graph whose nodes have the values.
    values : float[n], mapping of node (name or number) to float, or Ranking
        The values. A node that a mapping lacks gets 0.
    what : str
        The name of the parameter, for messages: ``"scores"``, ``"personalization"``.

    Raises
    ------
    inlink.errors.ParameterError
        If there are not n values, or a value is negative or not finite; the first such node is named.
    inlink.errors.UnknownNodeError
        If a mapping names a node that the graph does not have.
    """
    if isinstance(values, Mapping):
        result = np.zeros(graph.num_nodes)
        for node, value in values.items():
            number = _node(graph, node, what)
            try:
                # float() accepts text, such as "1", which is not a number.
                result[number] = math.nan if isinstance(cast("object", value), str | bytes) else float(value)
            except (TypeError, ValueError, OverflowError):
                result[number] = math.nan
            if math.isnan(result[number]):
                raise ParameterError(
                    f"`{what}` must have finite numbers of at least 0; got {value!r} for node {node!r}"
                )
    else:
        try:
            array = np.asarray(getattr(values, "values", values))
            if array.dtype.kind not in "biuf":
                raise TypeError
            # Make a contiguous copy in this machine's byte order.
            with np.errstate(over="ignore"):
                result = np.array(array, np.float64, order="C")
        except (TypeError, ValueError):
            raise ParameterError(
                f"`{what}` must be an array of numbers, a mapping of nodes to numbers, or a ranking; "
                f"got {_short(values)}"
            ) from None
        if result.shape != (graph.num_nodes,):
            raise ParameterError(
                f"`{what}` must have {counted(graph.num_nodes, 'number')}, one for each node; got shape {array.shape}"
            )
    wrong = ~(np.isfinite(result) & (result >= 0))
    if wrong.any():
        node = int(np.argmax(wrong))
        name = repr(graph.names[node]) if graph.names is not None else str(node)
        raise ParameterError(
            f"`{what}` must have finite numbers of at least 0; got {result[node]} for node {name}"
        )
    return result


def _short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _node(graph: Graph, node: Any, what: str) -> int:
    try:
        return graph.node(node)
    except (UnknownNodeError, ParameterError) as error:
        raise type(error)(f"`{what}`: {error}") from None


def distribution(graph: Graph, values: NodeValues, what: str) -> Float64Array:
    """Return node values divided by their sum, float64[n].

    Raises
    ------
    inlink.errors.ParameterError
        For the reasons of :func:`node_values`, or if all values are 0.
    inlink.errors.UnknownNodeError
        If a mapping names a node that the graph does not have.
    """
    result = node_values(graph, values, what)
    if not len(result):
        return result
    largest = float(result.max())
    if largest == 0:
        raise ParameterError(f"`{what}` must have a value above 0; all are 0")
    # With values of at most 1 the sum is finite.
    result /= largest
    result /= math.fsum(result)
    return result


def marked(graph: Graph, nodes: Nodes, what: str) -> Float64Array:
    """Return 1 for each node in ``nodes`` and 0 for all other nodes: float64[n].

    Raises
    ------
    inlink.errors.ParameterError
        If ``nodes`` is empty, or an element of ``nodes`` cannot be a node.
    inlink.errors.UnknownNodeError
        If a node is not in the graph.
    """
    if isinstance(nodes, str | bytes | Mapping) or not isinstance(nodes, Iterable):
        raise ParameterError(f"`{what}` must be a list of nodes; got {_short(nodes)}")
    marks = np.zeros(graph.num_nodes)
    for node in nodes:
        marks[_node(graph, node, what)] = 1.0
    if not marks.any():
        raise ParameterError(f"`{what}` must have at least one page; got none")
    return marks


def arc_weights(rows: Rows | SplitRows, use: bool) -> AnyArray:
    """Return the weights of rows: number[m], or float64[0], which kernels read as weight 1 for each arc."""
    return rows.weights if use and rows.weights is not None else np.empty(0)


def use_weights(graph: Graph, weighted: bool | None) -> bool:
    """Return whether to use arc weights: ``weighted``, or if it is None, whether the graph has weights.

    Raises
    ------
    inlink.errors.ParameterError
        If ``weighted`` is set and the graph has no weights.
    """
    if weighted and not graph.is_weighted:
        raise ParameterError(
            "`weighted` is set, but the arcs have no weights: build the graph with count=True or --count"
        )
    return graph.is_weighted if weighted is None else weighted


def strengths(graph: Graph, weighted: bool) -> AnyArray:
    """The sum of each node's outlink weights: float64[n], or uint32[n] if each arc counts 1; 0 for dangling nodes.

    Raises
    ------
    inlink.errors.ParameterError
        If a sum is too large or too small to divide by.
    """
    # The weights of a reversed graph would make a copy of its rows.
    if not weighted or (weights := graph.out_weights) is None:
        return graph.outdegrees
    from inlink.rank.kernels.gather import row_strengths

    rows, result = graph.out_rows, np.empty(graph.num_nodes)
    row_strengths(rows.offsets, weights, result, np.uint64(0), np.uint64(graph.num_nodes))
    wrong = ~np.isfinite(result) | ((result < 1e-250) & (graph.outdegrees > 0))
    if wrong.any():
        node = int(np.argmax(wrong))
        raise ParameterError(
            f"the weights of the outlinks of node {node} add up to {result[node]}: rescale them"
        )
    return result


def strengths_by_place(graph: Graph, weighted: bool) -> AnyArray:
    """:func:`strengths` by the places of ``graph.split_in_rows``: of the linking nodes only if its rows are split."""
    if graph.coded_in_rows is not None and graph.num_arcs and not weighted:
        return linking_outdegrees(graph.coded_in_rows, graph.num_nodes)
    linking = graph.split_in_rows.linking
    if not len(linking):
        return strengths(graph, weighted)
    if weighted:
        return strengths(graph, weighted)[linking]
    offsets, degrees = graph.out_rows.offsets, np.empty(len(linking), np.uint32)
    # In blocks, because each step makes 8 bytes a node.
    for part in slices(len(linking), _BLOCK):
        nodes = linking[part].astype(np.int64)
        degrees[part] = offsets[nodes + 1] - offsets[nodes]
    return degrees
