"""CheiRank: PageRank of the graph with every arc turned round. It ranks by outlinks what PageRank ranks by inlinks.

x = F(x) as in :mod:`inlink.rank.pagerank`, on the transposed graph, with its bound. A walk goes from a page to one that
links to it; a page without inlinks teleports. The best are pages from which much of what is worth a visit
can be reached soon: directories, indexes, good places to start a crawl.

Sources: Chepelianskii, "Towards physical laws for software architecture", arXiv:1003.5455, 2010; Ermann, Frahm &
Shepelyansky, "Google matrix analysis of directed networks", Rev. Mod. Phys. 2015. Fogaras, "Where to
start browsing the web?", 2003, had the idea before.
"""

from typing import Any

from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.pagerank import pagerank
from inlink.rank.ranking import Ranking

__all__ = ["cheirank"]


def cheirank(graph: GraphLike, *, damping: float = 0.85, **options: Any) -> Ranking:
    """PageRank of the reversed graph.

    Parameters
    ----------
    graph : Graph, SciPy sparse matrix or array, or NetworkX graph
        In a matrix A[i, j] is the arc i → j. It is not copied to be turned round.
    damping : float
        The probability of following a link backwards.
    **options
        ``personalization``, ``tol``, ``max_iter``, ``method``, ``start``, ``weighted``, ``threads``: see
        :func:`inlink.pagerank`.

    Returns
    -------
    Ranking
        float64[n], sum 1, with the error bound of :func:`inlink.pagerank`.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is outside its meaning.
    inlink.errors.UnknownNodeError
        If a mapping names a node that is not there.

    Examples
    --------
    >>> from inlink.rank.cheirank import cheirank
    >>> from inlink import Graph
    >>> cheirank(Graph.from_arcs([("index", "a"), ("index", "b"), ("a", "b")])).top(1)
    [('index', 0.5...)]
    """
    graph = as_graph(graph)
    ranking = pagerank(graph.transpose(), damping=damping, **options)
    ranking.algorithm = "cheirank"
    ranking.graph_uuid = graph.uuid
    return ranking
