"""What rankings are given besides the graph: values a node, checked once for all algorithms."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from inlink.errors import ParameterError
from inlink.graph.graph import Graph

__all__ = ["check_damping", "check_rounds", "check_tol", "distribution", "edge_weights", "node_values"]


def node_values(graph: Graph, values: Any, what: str) -> npt.NDArray[np.float64]:
    """Values of nodes as float64[n], from an array of that length or a mapping of nodes (0 for those not in it).

    Raises
    ------
    ParameterError
        If the length is wrong, or a value is negative or not finite; the message names the first such node.
    inlink.errors.UnknownNodeError
        If a mapping names a node that the graph lacks.
    """
    if isinstance(values, Mapping):
        array = np.zeros(graph.num_nodes)
        for node, value in values.items():
            array[graph.node(node)] = value
    else:
        array = np.array(getattr(values, "values", values), np.float64)  # a Ranking has values
    if array.shape != (graph.num_nodes,):
        raise ParameterError(f"{what}: {array.shape} values for {graph.num_nodes:,} nodes")
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        node = int(np.argmax(wrong))
        name = node if graph.names is None else repr(graph.names[node])
        raise ParameterError(f"{what}: node {name} has {array[node]}; values must be finite and not negative")
    return array


def distribution(graph: Graph, values: Any, what: str) -> npt.NDArray[np.float64]:
    """Values of nodes, normalised to sum 1.

    Raises
    ------
    ParameterError
        As :func:`node_values`, and if all are 0.
    """
    array = node_values(graph, values, what)
    largest = array.max(initial=0.0)
    if graph.num_nodes and largest == 0:
        raise ParameterError(f"{what}: all values are 0; at least one must be above")
    if largest > 0:
        array /= largest  # so that the sum cannot overflow
        array /= array.sum()
    return array


def edge_weights(graph: Graph, weighted: bool | None) -> bool:
    """Whether to use the arcs' weights: if there are any, unless told otherwise.

    Raises
    ------
    ParameterError
        If weights are asked for and there are none.
    """
    if weighted and not graph.is_weighted:
        raise ParameterError("weighted=True, and the arcs have no weights")
    return graph.is_weighted if weighted is None else weighted


def check_damping(damping: float) -> float:
    """Refuse a damping outside [0, 1].

    Raises
    ------
    ParameterError
        If it is.
    """
    if not 0 <= damping <= 1:
        raise ParameterError(f"damping must lie between 0 and 1, not {damping}")
    return float(damping)


def check_tol(tol: float | None) -> None:
    """Refuse a tolerance that is not above 0.

    Raises
    ------
    ParameterError
        If it is not.
    """
    if tol is not None and not tol > 0:
        raise ParameterError(f"tol must be above 0, not {tol}")


def check_rounds(max_iter: int) -> None:
    """Refuse a number of rounds below 0.

    Raises
    ------
    ParameterError
        If it is.
    """
    if max_iter < 0 or max_iter != int(max_iter):
        raise ParameterError(f"max_iter must be a whole number from 0, not {max_iter}")
