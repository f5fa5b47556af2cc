"""TrustRank: personalized PageRank whose teleports go to trusted pages only.

x = F(x) as in :mod:`inlink.rank.pagerank`, with v uniform on the seed set and 0 elsewhere; dangling nodes
teleport to the seeds too. What no seed reaches has rank 0.

Source: Gyöngyi, Garcia-Molina & Pedersen, "Combating web spam with TrustRank", VLDB 2004, Algorithm 1. The
paper lets dangling mass vanish; here it goes back to the seeds, as in personalized PageRank. The order of the
nodes is the same, as the two differ by a factor only.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from inlink.errors import ParameterError
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.pagerank import pagerank
from inlink.rank.ranking import Ranking

__all__ = ["trustrank"]


def trustrank(
    graph: GraphLike, seeds: Iterable[int | str | bytes], *, damping: float = 0.85, **options: Any
) -> Ranking:
    """TrustRank from a set of trusted pages.

    Parameters
    ----------
    graph : Graph, SciPy sparse matrix or array, or NetworkX graph
        In a matrix A[i, j] is the arc i → j.
    seeds : iterable of node names or numbers
        The trusted pages, each counted once.
    damping : float
        The probability of following a link.
    **options
        ``tol``, ``max_iter``, ``method``, ``start``, ``weighted``, ``threads``: see :func:`inlink.pagerank`.

    Returns
    -------
    Ranking
        float64[n], sum 1, with the error bound of :func:`inlink.pagerank`.

    Raises
    ------
    inlink.errors.ParameterError
        If there is no seed, or a parameter is outside its meaning.
    inlink.errors.UnknownNodeError
        If a seed is not in the graph.
    """
    graph = as_graph(graph)
    if isinstance(seeds, str | bytes | Mapping):
        raise ParameterError(f"seeds: expected several nodes, not {type(seeds).__name__}")
    trusted = np.zeros(graph.num_nodes)
    for seed in seeds:
        trusted[graph.node(seed)] = 1.0
    if not trusted.any():
        raise ParameterError("seeds: TrustRank needs at least one trusted page")
    ranking = pagerank(graph, damping=damping, personalization=trusted, **options)
    ranking.algorithm = "trustrank"
    ranking.parameters["seeds"] = int(trusted.sum())
    return ranking
