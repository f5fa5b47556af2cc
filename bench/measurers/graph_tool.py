"""graph-tool, which is not on PyPI. Written from its documentation; not run by us.

Its adjacency matrix has A[i, j] = 1 for the arc j → i, so that eigenvector, Katz and HITS go along inlinks; its
distances go along outlinks, so that closeness is that of the graph turned round.
"""

from typing import Any

import numpy as np

from bench.measurers.base import TOLERANCES, Inputs, Measurement, Vector
from bench.peers import graph_tool as peer
from bench.webgraph import Arrays

NAME = "graph-tool"
ABOUT = "C++ and OpenMP"
THREADS = 0
available = peer.available


def load(arrays: Arrays, measure: str) -> Any:
    if measure.startswith(("closeness", "harmonic")):
        arrays = Arrays(arrays.in_offsets, arrays.in_sources, arrays.offsets, arrays.targets)
    return peer.load(arrays)


def _degree(graph: Any, inputs: Inputs, setting: float) -> Vector:
    return np.asarray(graph.get_in_degrees(graph.get_vertices()), np.float64) / (inputs.num_nodes - 1)


def _closeness_within(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from graph_tool.centrality import closeness

    found: Vector = np.array(closeness(graph, norm=True).a)
    return np.nan_to_num(found)


def _harmonic(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from graph_tool.centrality import closeness

    found: Vector = np.array(closeness(graph, norm=False, harmonic=True).a)
    return np.nan_to_num(found)


def _betweenness(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from graph_tool.centrality import betweenness

    return np.array(betweenness(graph, norm=False)[0].a) / inputs.pairs


def _betweenness_sample(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from graph_tool.centrality import betweenness

    found = np.array(betweenness(graph, pivots=inputs.sources.tolist(), norm=False)[0].a)
    # The peer takes the pivots for a sample of all nodes.
    return found * (len(inputs.linking) / inputs.num_nodes / inputs.pairs)


def _eigenvector(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from graph_tool.centrality import eigenvector

    return np.array(eigenvector(graph, epsilon=setting)[1].a)


def _katz(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from graph_tool.centrality import katz

    return np.array(katz(graph, alpha=inputs.alpha, epsilon=setting, norm=False).a) - 1


def _hits(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from graph_tool.centrality import hits

    _, authorities, hubs = hits(graph, epsilon=setting)
    return np.concatenate([authorities.a / authorities.a.sum(), hubs.a / hubs.a.sum()])


def _pagerank(graph: Any, inputs: Inputs, setting: float) -> Vector:
    return peer.run(graph, setting)


MEASURES = {
    "degree": Measurement(_degree),
    "closeness_within": Measurement(_closeness_within),
    "harmonic": Measurement(_harmonic),
    "betweenness": Measurement(_betweenness),
    "betweenness_sample": Measurement(_betweenness_sample),
    "eigenvector": Measurement(_eigenvector, TOLERANCES),
    "katz": Measurement(_katz, TOLERANCES),
    "hits": Measurement(_hits, TOLERANCES),
    "pagerank": Measurement(_pagerank, TOLERANCES),
}
