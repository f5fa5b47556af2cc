"""Percolation centrality: betweenness for a process that spreads from the pages that it has already reached.

Let x_s ≥ 0 be the state of node s (its degree of percolation), and δ_s(v) the share of shortest paths from s that go
through v, as in :mod:`inlink.rank.betweenness` ::

    percolation(v) = 1/(n − 2) · Σ_{s ≠ v} δ_s(v) · x_s / (Σ_i x_i − x_v)

Source: Piraveenan, Prokopenko & Hossain, "Percolation centrality: quantifying graph-theoretic impact of nodes
during percolation in networks", PLoS ONE 2013, in NetworkX's form. Equal states give betweenness. If no other node is
percolated, the formula is 0/0. Here the value is 0 then, because nothing can pass through v. NetworkX divides by zero
in this case, and for graphs of two nodes.

**A sample** draws k sources in proportion to x, with replacement. With X = Σ_i x_i, the value is X/(X − x_v) times the
mean of δ_s(v)/(n − 2). The terms of this mean lie between 0 and 1, so Hoeffding's inequality ("Probability
inequalities for sums of bounded random variables", J. Amer. Statist. Assoc. 1963, Theorem 1) bounds its error. The
error probability is divided equally among the nodes, so the bound holds for all nodes together.
"""

import math
from typing import Annotated, Any

import numpy as np

from inlink.base.arrays import Float64Array
from inlink.base.declare import Parameter
from inlink.base.table import counted
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.betweenness import check_sample, dependency_sums, rounding, sample_note
from inlink.rank.inputs import NodeValues, node_values, require_vectors
from inlink.rank.parameters import Confidence, Sample, Seed, ThreadCount
from inlink.rank.ranking import Ranking, ranking_of, timed


@timed
def percolation(
    graph: GraphLike,
    states: Annotated[
        NodeValues | None, Parameter("the percolation state of each node", option="--scores")
    ] = None,
    *,
    k: Sample = None,
    confidence: Confidence = 0.95,
    seed: Seed = 0,
    threads: ThreadCount = None,
) -> Ranking:
    """The share of the percolated shortest paths on which a node lies.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        In a matrix A[i, j] is the arc i → j. Arc weights are no lengths: each arc is one step.
    states : float[n], mapping of nodes to values, Ranking, or None
        The percolation of each node: finite, at least 0, and usually at most 1. Nodes that a mapping lacks have 0.
        None is 1 for each node.
    k : int or None
        The number of sources to draw. None takes all percolated nodes, which is exact.
    confidence : float
        Probability that the error of a sample is below the reported one: above 0 and below 1.
    seed : int
        Seed of the random numbers, at least 0. The same seed draws the same sources.
    threads : int or None
        None uses all processors. The result has the same bits with any number of threads.

    Returns
    -------
    Ranking
        float64[n], each at least 0. If exact, ``error_bound`` bounds the rounding error, in L1. A sample has no certain
        bound: ``parameters["max_error"]`` bounds the error of every value with the given confidence, and ``note``
        reports it. ``iterations`` is the number of sources, and ``converged`` is False.

    Raises
    ------
    inlink.errors.ParameterError
        If a state is negative or not finite, k is not between 1 and n, or confidence or seed are out of
        range.
    inlink.errors.UnknownNodeError
        If a mapping names a node that the graph does not have.

    Examples
    --------
    >>> from inlink.rank.percolation import percolation
    >>> from inlink import Graph
    >>> chain = Graph.from_arcs([(0, 1), (1, 2), (2, 3)])
    >>> percolation(chain, [1, 0, 0, 0]).values.tolist()
    [0.0, 1.0, 0.5, 0.0]
    """
    graph = as_graph(graph)
    n = graph.num_nodes
    require_vectors(graph, node=48)
    check_sample(n, k)
    x = np.ones(n) if states is None else node_values(graph, states, "states")
    if n and x.max() > 0:
        # This does not change the result, and prevents overflow.
        x = x / x.max()
    others = math.fsum(x) - x
    for node in np.flatnonzero(others < x):
        # For a node with more than half of the sum, the difference has lost its digits to rounding.
        others[node] = math.fsum(np.delete(x, node))
    weight = np.divide(1.0, others, out=np.zeros(n), where=others > 0) / max(n - 2, 1)
    percolated = np.flatnonzero((x > 0) & (graph.outdegrees > 0)).astype(np.uint32)
    parameters: dict[str, Any] = {"states": states is not None, "k": k}
    shares: Float64Array = x[percolated]
    sources, draws, note = percolated, 0, ""
    if k is not None and k < len(percolated):
        draws, sum_ = k, math.fsum(shares)
        drawn = np.random.default_rng(seed).choice(percolated, draws, p=shares / sum_)
        sources, times = np.unique(drawn, return_counts=True)
        shares = np.asarray(times * (sum_ / draws), np.float64)
        between = (graph.indegrees > 0) & (graph.outdegrees > 0)
        most = float((weight[between] * (max(n - 2, 1) * sum_)).max(initial=0.0))
        nodes = max(int(between.sum()), 1)
        error = most * math.sqrt(math.log(2 * nodes / (1 - confidence)) / (2 * draws))
        parameters |= {"confidence": confidence, "seed": seed, "max_error": error}
        note = sample_note(f"{counted(draws, 'draw')} of {len(percolated):,} sources", confidence, error)
    sums = dependency_sums(graph, sources, shares, False, False, threads, "percolation")
    values = sums.total * weight
    return ranking_of(
        graph,
        "percolation",
        values,
        error_bound=None if draws else rounding(graph) * float(values.sum()),
        iterations=draws,
        converged=not draws,
        note=note,
        parameters=parameters,
    )
