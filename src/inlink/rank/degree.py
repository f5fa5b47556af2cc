"""Degree: the number of links of a page, a quick approximation of its rank.

A node's value is its number of inlinks, of outlinks, or of both together. A self-loop counts as inlink and as outlink.
With ``normalized``, the value is divided by n − 1, as in NetworkX's ``degree_centrality``. NetworkX counts all parallel
arcs of a multigraph. Here this is ``weighted=True`` on a graph that was built with counts.
"""

from typing import Annotated, Literal

import numpy as np

from inlink.base.declare import Parameter
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.inputs import VECTORS, require_vectors, strengths, use_weights
from inlink.rank.parameters import Normalized
from inlink.rank.ranking import ROUNDOFF, Ranking, ranking_of, timed


@timed
def degree(
    graph: GraphLike,
    *,
    direction: Annotated[Literal["in", "out", "both"], Parameter("Links that are counted.")] = "in",
    normalized: Normalized = True,
    weighted: Annotated[bool, Parameter("Add up the weights of the arcs.")] = False,
) -> Ranking:
    """The degree of each node.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        In a matrix A[i, j] is the arc i → j.
    direction : {"in", "out", "both"}
        The links to count.
    normalized : bool
        Divide by n − 1 (by 1 if there is one node only).
    weighted : bool
        Add up the weights of the arcs, instead of counting each as 1.

    Returns
    -------
    Ranking
        ``values`` float64[n]. Counts are exact; ``error_bound`` bounds the rounding of weights and of the division, in
        L1.

    Raises
    ------
    inlink.errors.ParameterError
        If the direction is not one of these, or ``weighted`` is set and the graph has no weights.
    """
    graph = as_graph(graph)
    use = use_weights(graph, weighted)
    require_vectors(graph, **VECTORS["degree"])
    values = np.zeros(graph.num_nodes)
    if direction in ("out", "both"):
        values += strengths(graph, use)
    if direction in ("in", "both"):
        values += strengths(graph.transpose(), use)
    if normalized:
        values /= max(graph.num_nodes - 1, 1)
    # the largest number of roundings of each value
    roundings = 4 * use + 2 * normalized
    return ranking_of(
        graph,
        "degree",
        values,
        error_bound=float(roundings * ROUNDOFF * values.sum()),
        parameters={"direction": direction, "normalized": normalized, "weighted": use},
    )
