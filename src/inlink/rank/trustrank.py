"""TrustRank: personalized PageRank whose teleports go to trusted pages only.

x = F(x) as in :mod:`inlink.rank.pagerank`, with v the same for each trusted page and 0 elsewhere. Dangling nodes
teleport to the trusted pages too. Pages that cannot be reached from a trusted page have rank 0.

Source: Gyöngyi, Garcia-Molina & Pedersen, "Combating web spam with TrustRank", VLDB 2004, Algorithm 1. In the
paper dangling mass is lost; here it goes back to the trusted pages, as in personalized PageRank. The two results
differ by a factor only, so the order of the nodes is the same.
"""

from inlink.base.declare import checked
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.inputs import marked
from inlink.rank.pagerank import pagerank
from inlink.rank.parameters import (
    DampingTo1,
    MaxIter,
    Method,
    Start,
    ThreadCount,
    Tolerance,
    Trusted,
    Weighted,
)
from inlink.rank.ranking import Ranking


@checked
def trustrank(
    graph: GraphLike,
    trusted: Trusted,
    *,
    damping: DampingTo1 = 0.85,
    tol: Tolerance = 1e-6,
    max_iter: MaxIter = None,
    method: Method = "gauss-seidel",
    start: Start = None,
    weighted: Weighted = None,
    threads: ThreadCount = None,
) -> Ranking:
    """TrustRank from a set of trusted pages.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        In a matrix A[i, j] is the arc i → j.
    trusted : iterable of node names or numbers
        Pages that are known to be good; each counts once.
    damping : float
        c, the probability of following a link: 0 ≤ c < 1.
    tol, max_iter, method, start, weighted, threads
        See :func:`inlink.pagerank`.

    Returns
    -------
    Ranking
        ``values`` float64[n], which sum to 1, with the error bound of :func:`inlink.pagerank`.
        ``parameters["trusted"]`` is the number of trusted pages.

    Raises
    ------
    inlink.errors.ParameterError
        If no page is trusted, or a parameter is out of range.
    inlink.errors.UnknownNodeError
        If a trusted page is not in the graph.
    """
    graph = as_graph(graph)
    marks = marked(graph, trusted, "trusted")
    ranking = pagerank(
        graph,
        damping=damping,
        personalization=marks,
        tol=tol,
        max_iter=max_iter,
        method=method,
        start=start,
        weighted=weighted,
        threads=threads,
    )
    ranking.algorithm = "trustrank"
    ranking.parameters["trusted"] = int(marks.sum())
    return ranking
