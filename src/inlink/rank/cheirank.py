"""CheiRank: PageRank of the graph with every arc reversed. It ranks nodes by outlinks; PageRank ranks by inlinks.

x = F(x) as in :mod:`inlink.rank.pagerank`, on the transposed graph, with its bound. A walk goes from a page to a page
that links to it; a page without inlinks teleports. From the best pages many good pages can be reached in few steps.
They are directories, indexes and good places to start a crawl.

Sources: Chepelianskii, "Towards physical laws for software architecture", arXiv:1003.5455, 2010; Ermann, Frahm &
Shepelyansky, "Google matrix analysis of directed networks", Rev. Mod. Phys. 2015. Fogaras, "Where to
start browsing the web?", 2003, described the idea earlier.
"""

from inlink.base.declare import checked
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.pagerank import pagerank
from inlink.rank.parameters import (
    DampingTo1,
    MaxIter,
    Method,
    Start,
    Teleport,
    ThreadCount,
    Tolerance,
    Weighted,
)
from inlink.rank.ranking import Ranking


@checked
def cheirank(
    graph: GraphLike,
    *,
    damping: DampingTo1 = 0.85,
    personalization: Teleport = None,
    tol: Tolerance = 1e-6,
    max_iter: MaxIter = None,
    method: Method = "gauss-seidel",
    start: Start = None,
    weighted: Weighted = None,
    threads: ThreadCount = None,
) -> Ranking:
    """PageRank of the reversed graph.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        In a matrix A[i, j] is the arc i → j. The graph is not copied.
    damping : float
        c, the probability of following a link backwards: 0 ≤ c < 1.
    personalization, tol, max_iter, method, start, weighted, threads
        See :func:`inlink.pagerank`.

    Returns
    -------
    Ranking
        ``values`` float64[n], which sum to 1, with the error bound of :func:`inlink.pagerank`.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is out of range.
    inlink.errors.UnknownNodeError
        If a mapping names a node that the graph does not have.

    Examples
    --------
    >>> from inlink.rank.cheirank import cheirank
    >>> from inlink import Graph
    >>> cheirank(Graph.from_arcs([("index", "a"), ("index", "b"), ("a", "b")])).top(1)
    [('index', 0.5...)]
    """
    graph = as_graph(graph)
    ranking = pagerank(
        graph.transpose(),
        damping=damping,
        personalization=personalization,
        tol=tol,
        max_iter=max_iter,
        method=method,
        start=start,
        weighted=weighted,
        threads=threads,
    )
    ranking.algorithm = "cheirank"
    ranking.graph_uuid = graph.uuid
    return ranking
