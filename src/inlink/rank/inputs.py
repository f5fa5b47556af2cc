"""Checks of what rankings take besides a graph: values and sets of nodes, weights, tolerance, rounds."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from inlink.base.arrays import AnyArray, Float64Array
from inlink.errors import ParameterError, UnknownNodeError
from inlink.graph.graph import Graph, Rows

__all__ = [
    "NodeValues",
    "Nodes",
    "arc_weights",
    "check_rounds",
    "distribution",
    "marked",
    "node_values",
    "strengths",
    "use_weights",
]


class HasValues(Protocol):
    """A ranking, or anything else with a value for each node."""

    @property
    def values(self) -> Float64Array:
        """The values, float64[n]."""


NodeValues: TypeAlias = npt.ArrayLike | Mapping[Any, float] | HasValues
"""A value for each node: float[n], a mapping of nodes (names or numbers) to values, or a ranking."""

Nodes: TypeAlias = Iterable[int | str | bytes]
"""Several nodes, by name or by number."""


def node_values(graph: Graph, values: NodeValues, what: str, default: float = 0.0) -> Float64Array:
    """A finite value of at least 0 for each node, float64[n].

    Parameters
    ----------
    graph : Graph
        The graph whose nodes have the values.
    values : float[n], mapping of node (name or number) to float, or Ranking
        The values. A node that a mapping lacks gets ``default``.
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
        result = np.full(graph.num_nodes, default, np.float64)
        for node, value in values.items():
            try:
                number = graph.node(node)
            except UnknownNodeError as error:
                raise UnknownNodeError(f"{what}: {error}") from None
            try:
                result[number] = value
            except (TypeError, ValueError):
                raise ParameterError(f"{what}: {value!r} of node {node!r} is no number") from None
    else:
        try:
            given = np.asarray(getattr(values, "values", values))
            if given.dtype.kind not in "biuf":
                raise TypeError
            result = given.astype(np.float64)
        except (TypeError, ValueError):
            raise ParameterError(
                f"{what}: expected an array of numbers or a mapping of nodes to numbers"
            ) from None
        if result.shape != (graph.num_nodes,):
            raise ParameterError(
                f"{what}: expected {graph.num_nodes:,} numbers, one a node, not shape {given.shape}"
            )
    wrong = ~(np.isfinite(result) & (result >= 0))
    if wrong.any():
        node = int(np.argmax(wrong))
        name = repr(graph.names[node]) if graph.names is not None else str(node)
        raise ParameterError(f"{what}: {result[node]} of node {name} is not a finite number of at least 0")
    return result


def distribution(graph: Graph, values: NodeValues, what: str) -> Float64Array:
    """Node values divided by their sum, float64[n].

    Raises
    ------
    inlink.errors.ParameterError
        As :func:`node_values`, and if all values are 0.
    inlink.errors.UnknownNodeError
        If a mapping names a node that the graph does not have.
    """
    result = node_values(graph, values, what)
    if not len(result):
        return result
    largest = float(result.max())
    if largest == 0:
        raise ParameterError(f"{what}: every value is 0, and at least one must be above")
    # The sum of values up to 1 is finite.
    result /= largest
    result /= math.fsum(result)
    return result


def marked(graph: Graph, nodes: Nodes, what: str) -> Float64Array:
    """1 for the nodes that are named, 0 for all others: float64[n].

    Raises
    ------
    inlink.errors.ParameterError
        If none is named, or an element of ``nodes`` cannot be a node.
    inlink.errors.UnknownNodeError
        If a node is not in the graph.
    """
    if isinstance(nodes, str | bytes | Mapping) or not isinstance(nodes, Iterable):
        raise ParameterError(f"{what}: expected several nodes, not {type(nodes).__name__}")
    marks = np.zeros(graph.num_nodes)
    for node in nodes:
        try:
            marks[graph.node(node)] = 1.0
        except UnknownNodeError as error:
            raise UnknownNodeError(f"{what}: {error}") from None
        except (TypeError, ValueError):
            raise ParameterError(f"{what}: {node!r} is not a node") from None
    if not marks.any():
        raise ParameterError(f"{what}: at least one page is needed")
    return marks


def arc_weights(rows: Rows, use: bool) -> AnyArray:
    """The weights of rows: number[m], or float64[0], which stands for 1 each in kernels."""
    return rows.weights if use and rows.weights is not None else np.empty(0)


def use_weights(graph: Graph, weighted: bool | None) -> bool:
    """Whether to use arc weights: ``weighted``, or if that is None whether the graph has weights.

    Raises
    ------
    inlink.errors.ParameterError
        If ``weighted`` is set and the graph has no weights.
    """
    if weighted and not graph.is_weighted:
        raise ParameterError("weighted=True, but the graph's arcs have no weights: build it with counts")
    return graph.is_weighted if weighted is None else weighted


def strengths(graph: Graph, weighted: bool) -> AnyArray:
    """The sum of each node's outlink weights: float64[n], or uint32[n] if each arc counts 1; 0 for dangling nodes.

    Raises
    ------
    inlink.errors.ParameterError
        If a sum is too large or too small to divide by.
    """
    rows = graph.out_rows
    if not weighted or rows.weights is None:
        return graph.outdegrees
    from inlink.rank.kernels.gather import row_strengths

    result = np.empty(graph.num_nodes)
    row_strengths(rows.offsets, rows.weights, result, np.uint64(0), np.uint64(graph.num_nodes))
    wrong = ~np.isfinite(result) | ((result < 1e-250) & (graph.outdegrees > 0))
    if wrong.any():
        node = int(np.argmax(wrong))
        raise ParameterError(
            f"the weights of the outlinks of node {node} add up to {result[node]}: rescale them"
        )
    return result


def check_rounds(tol: float | None, max_iter: int | None) -> None:
    """Check a tolerance and a number of rounds.

    Raises
    ------
    inlink.errors.ParameterError
        If ``tol`` is not a finite number above 0 or None, ``max_iter`` is not an integer of at least 0 or None, or both
        are None.
    """
    if tol is not None and not (
        isinstance(tol, int | float | np.floating) and math.isfinite(tol) and tol > 0
    ):
        raise ParameterError(f"tol must be a finite number above 0, or None, not {tol!r}")
    whole = isinstance(max_iter, int | np.integer) and not isinstance(max_iter, bool)
    if max_iter is not None and not (whole and max_iter >= 0):
        raise ParameterError(f"max_iter must be a whole number of at least 0, or None, not {max_iter!r}")
    if tol is None and max_iter is None:
        raise ParameterError("give tol, max_iter or both: without either the rounds would never end")
