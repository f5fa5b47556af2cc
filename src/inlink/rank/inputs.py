"""What rankings take besides a graph, checked in one place: a value for each node, damping, tolerance, rounds."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from inlink.errors import ParameterError, UnknownNodeError
from inlink.graph.graph import Graph, Rows

__all__ = ["arc_weights", "check_rounds", "distribution", "node_values", "strengths", "use_weights"]


def node_values(graph: Graph, values: Any, what: str, default: float = 0.0) -> npt.NDArray[np.float64]:
    """A finite value of at least 0 for each node, float64[n].

    Parameters
    ----------
    graph : Graph
        Whose nodes they belong to.
    values : float[n], mapping of node (name or number) to float, or Ranking
        The values; a node that a mapping does not name gets ``default``.
    what : str
        What they are, for messages: ``"scores"``, ``"personalization"``.

    Raises
    ------
    ParameterError
        If there are not n of them, or one is negative or not finite; the first such node is named.
    UnknownNodeError
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


def distribution(graph: Graph, values: Any, what: str) -> npt.NDArray[np.float64]:
    """Node values divided by their sum, float64[n]; ParameterError where the sum is 0."""
    result = node_values(graph, values, what)
    if not len(result):
        return result
    largest = float(result.max())
    if largest == 0:
        raise ParameterError(f"{what}: every value is 0, and at least one must be above")
    result /= largest  # so that the sum is finite
    result /= math.fsum(result)
    return result


def arc_weights(rows: Rows, use: bool) -> npt.NDArray[Any]:
    """The weights of rows, or an empty array, which the kernels take for 1 each."""
    return rows.weights if use and rows.weights is not None else np.empty(0)


def use_weights(graph: Graph, weighted: bool | None) -> bool:
    """Whether to use arc weights: as asked, and by default where there are any."""
    if weighted and not graph.is_weighted:
        raise ParameterError("weighted=True, but the graph's arcs have no weights: build it with counts")
    return graph.is_weighted if weighted is None else weighted


def strengths(graph: Graph, weighted: bool) -> npt.NDArray[Any]:
    """The sum of each node's outlink weights: float64[n], or uint32[n] where each arc counts 1; 0 if dangling.

    Raises
    ------
    ParameterError
        If a sum is too large or too small to be divided by.
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
    """Refuse a tolerance or a number of rounds without meaning."""
    if tol is not None and not (
        isinstance(tol, int | float | np.floating) and math.isfinite(tol) and tol > 0
    ):
        raise ParameterError(f"tol must be a finite number above 0, or None, not {tol!r}")
    whole = isinstance(max_iter, int | np.integer) and not isinstance(max_iter, bool)
    if max_iter is not None and not (whole and max_iter >= 0):
        raise ParameterError(f"max_iter must be a whole number of at least 0, or None, not {max_iter!r}")
    if tol is None and max_iter is None:
        raise ParameterError("give tol, max_iter or both: without either the rounds would never end")
