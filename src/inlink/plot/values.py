"""Checked values of graphs and rankings, for pictures."""

import numpy as np

from inlink.base.arrays import Float64Array, Int64Array
from inlink.base.memory import require_memory
from inlink.base.table import counted
from inlink.errors import ParameterError
from inlink.graph.graph import Graph
from inlink.plot.style import cut
from inlink.rank.ranking import Ranking

# Larger values are refused, so that no limit of an axis overflows.
LARGEST = 1e300


def called(graph: Graph) -> str:
    """Describe a graph in a few words: its folder, nodes and arcs."""
    name = "" if graph.path is None else f"{cut(graph.path.name, 40)}: "
    return f"{name}{counted(graph.num_nodes, 'node')}, {counted(graph.num_arcs, 'arc')}"


def values_of(ranking: Ranking) -> Float64Array:
    """A ranking's values, float64[n], n > 0, all from 0 to 1e300.

    Raises
    ------
    inlink.errors.ParameterError
        If there are no values, or a value is negative, infinite or not a number.
    """
    require_memory(100 * len(ranking.values), f"a picture of {len(ranking.values):,} nodes")
    values = np.asarray(ranking.values, np.float64)
    if not len(values):
        raise ParameterError("the ranking has no nodes, so there is nothing to draw")
    wrong = ~((values >= 0) & (values <= LARGEST))
    if wrong.any():
        node = int(wrong.argmax())
        raise ParameterError(
            f"node {node} has the rank {values[node]}: only values from 0 to 1e300 can be drawn"
        )
    return values


def values_on(graph: Graph, ranking: Ranking) -> Float64Array:
    """The values of a graph's nodes, float64[k]; k < n if a crawl has found n − k pages since it was ranked.

    Raises
    ------
    inlink.errors.ParameterError
        As :func:`values_of`, and if the ranking is not of this graph.
    """
    values = values_of(ranking)
    apart = None not in (ranking.graph_uuid, graph.uuid) and ranking.graph_uuid != graph.uuid
    grown = len(values) < graph.num_nodes and ranking.graph_uuid is not None
    if apart or (len(values) != graph.num_nodes and not grown):
        raise ParameterError(
            f"this ranking of {len(values):,} nodes belongs to another graph, or to an earlier version of it: "
            "rank the graph again"
        )
    return values


def best(values: Float64Array, count: int) -> list[int]:
    """The nodes with the largest values, ties in the order of numbers."""
    return [int(node) for node, _ in Ranking(values, algorithm="").top(count)]


def thinned(count: int, most: int = 1000) -> Int64Array:
    """At most ``most`` of the places 0 … count − 1, even on a logarithmic axis, with both ends: int64[≤ most]."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.geomspace(1, count, most).round().astype(np.int64)) - 1
