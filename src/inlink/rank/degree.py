"""Degree: how many links a page has, the quick approximation of a rank.

A node's value is its number of inlinks, of outlinks, or of both together (a self-loop counts in both), and
with ``normalized`` that divided by n − 1, as NetworkX's ``degree_centrality`` has it, where a multigraph's
parallel arcs all count (here: ``weighted=True`` on a graph that was built with counts).
"""

import time
from typing import Literal

import numpy as np

from inlink.errors import ParameterError
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.inputs import strengths, use_weights
from inlink.rank.ranking import Ranking

__all__ = ["degree"]


def degree(
    graph: GraphLike,
    *,
    direction: Literal["in", "out", "both"] = "in",
    normalized: bool = True,
    weighted: bool = False,
) -> Ranking:
    """The degree of each node.

    Parameters
    ----------
    graph : Graph, SciPy sparse matrix or array, or NetworkX graph
        In a matrix A[i, j] is the arc i → j.
    direction : {"in", "out", "both"}
        Which links count.
    normalized : bool
        Divide by n − 1 (by 1 if there is one node only).
    weighted : bool
        Add up the arcs' weights instead of counting each as 1.

    Returns
    -------
    Ranking
        float64[n]. Counts are exact; ``error_bound`` is what dividing and adding weights can have rounded, in L1.

    Raises
    ------
    inlink.errors.ParameterError
        If the direction is none of these, or weights are asked for where there are none.
    """
    began = time.perf_counter()
    graph = as_graph(graph)
    if direction not in ("in", "out", "both"):
        raise ParameterError(f"direction must be 'in', 'out' or 'both', not {direction!r}")
    use = use_weights(graph, weighted)
    values = np.zeros(graph.num_nodes)
    if direction in ("out", "both"):
        values += strengths(graph, use)
    if direction in ("in", "both"):
        values += strengths(graph.transpose(), use)
    if normalized:
        values /= max(graph.num_nodes - 1, 1)
    roundings = 4 * use + 2 * normalized  # of each value at most
    return Ranking(
        values,
        algorithm="degree",
        names=graph.names,
        error_bound=float(roundings * 2.0**-53 * values.sum()),
        parameters={"direction": direction, "normalized": normalized, "weighted": use},
        graph_uuid=graph.uuid,
        elapsed=time.perf_counter() - began,
    )
