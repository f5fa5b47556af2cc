"""SALSA: authorities and hubs by random walks that follow one link backwards and another link forwards.

The authority walk goes from page j back to a page k that links to it, drawn by the weight of k's link to j, and from
there along one of k's links ::

    Ã[j, l] = Σ_k w(k→j) / w_in(j) · w(k→l) / w_out(k)                                                      (1)

The hub walk goes forwards first and then back. Authorities and hubs are the limit distributions of the walks. The
authority walk starts at each page with an inlink with the same probability; the hub walk at each page with an outlink.

**In closed form.** (1) is in balance with respect to w_in: w_in(j)·Ã[j, l] is the same in both directions. So within a
component of the bipartite graph of links from hubs to authorities, the limit is in proportion to w_in. No walk leaves
its component, so a component keeps the share of walks that started there ::

    authority(j) = |A_c| / |A| · w_in(j) / W_c,      hub(k) = |H_c| / |H| · w_out(k) / W_c                   (2)

A are the pages with an inlink, H the pages with an outlink, A_c and H_c those of component c, and W_c is the weight of
all links of c. A page without inlinks has authority 0, and a page without outlinks has hub value 0. If there are no
links, all values are 0. Nothing is iterated. A step may end where it began, so a limit always exists. LAW's
Salsa has the same authorities.

Unlike HITS, SALSA does not concentrate on the most tightly knit community. If the graph is one component, the values
are in proportion to the degrees.

Source: Lempel & Moran, "SALSA: the stochastic approach for link-structure analysis", ACM Trans. Inf. Syst. 2001.
"""

import numpy as np

from inlink.base.arrays import AnyArray, Float64Array, UInt32Array
from inlink.errors import ParameterError
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.inputs import require_vectors, strengths, use_weights
from inlink.rank.parameters import Weighted
from inlink.rank.ranking import ROUNDOFF, Ranking, ranking_of, timed


@timed
def salsa(graph: GraphLike, *, weighted: Weighted = None) -> Ranking:
    """Authorities and hubs of every node, in closed form.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        In a matrix A[i, j] is the arc i → j.
    weighted : bool or None
        Whether a walk follows arcs in proportion to their weights; None: if the graph has weights.

    Returns
    -------
    Ranking
        ``values`` (also ``authorities``) and ``hubs``, float64[n], each with sum 1, or all 0 where there are no arcs.
        ``error_bound`` bounds the rounding error of either, in L1. ``parameters["components"]`` is the number of
        components of the walks. The result has the same bits each time.

    Raises
    ------
    inlink.errors.ParameterError
        If ``weighted`` is set and the graph has no weights, or their sums are too large or too small to divide by.

    Examples
    --------
    >>> from inlink.rank.salsa import salsa
    >>> from inlink import Graph
    >>> ranking = salsa(Graph.from_arcs([("h", "a"), ("h", "b"), ("g", "a"), ("x", "y")]))
    >>> ranking.top(3)
    [('a', 0.444...), ('y', 0.333...), ('b', 0.222...)]
    """
    from inlink.rank.kernels.salsa import cited_together

    graph = as_graph(graph)
    use = use_weights(graph, weighted)
    require_vectors(graph, node=80)
    rows = graph.out_rows
    label = np.empty(graph.num_nodes, np.uint32)
    cited_together(rows.offsets, rows.nodes, label)
    authorities = _shares(label, strengths(graph.transpose(), use))
    linking = np.flatnonzero(graph.outdegrees)
    count = len(np.unique(label[rows.nodes[rows.offsets[linking]]]))
    # A hub belongs to the component of the pages that it links to.
    label[linking] = label[rows.nodes[rows.offsets[linking]]]
    hubs = _shares(label, strengths(graph, use))
    return ranking_of(
        graph,
        "salsa",
        authorities,
        hubs=hubs,
        error_bound=(12 if use else 4) * ROUNDOFF if count else 0.0,
        parameters={"weighted": use, "components": count},
    )


def _shares(label: UInt32Array, strength: AnyArray) -> Float64Array:
    """Return (2), from each node's component and weight. Nodes of weight 0 do not count."""
    from inlink.rank.kernels.salsa import component_sums

    n = len(label)
    weight = strength.astype(np.float64)
    total = np.zeros(n)
    component_sums(label, weight, total, np.zeros(n))
    if not np.isfinite(total).all():
        raise ParameterError("the weights of a component's arcs add up to inf: rescale them")
    on = weight > 0
    sizes = np.bincount(label[on], minlength=n)
    values = np.zeros(n)
    np.divide(weight, total[label], out=values, where=on)
    values *= sizes[label] / max(int(on.sum()), 1)
    return values
