"""igraph, which has one thread here."""

from typing import Any

import numpy as np

from bench.measurers.base import TOLERANCES, Inputs, Measurement, Vector
from bench.peers import igraph as peer
from bench.peers import sknetwork_default
from bench.webgraph import Arrays

NAME = "igraph"
ABOUT = "a search from each node, C; ARPACK; hubs from authorities by a product of SciPy's"
THREADS = 1
available = peer.available


def load(arrays: Arrays, measure: str) -> Any:
    graph = peer.load(arrays)
    return (graph, sknetwork_default.load(arrays)) if measure == "hits" else graph


def _degree(graph: Any, inputs: Inputs, setting: float) -> Vector:
    return np.array(graph.indegree()) / (inputs.num_nodes - 1)


def _closeness_within(graph: Any, inputs: Inputs, setting: float) -> Vector:
    # not a number where nothing reaches a node
    return np.nan_to_num(np.array(graph.closeness(mode="in", normalized=True), np.float64))


def _harmonic(graph: Any, inputs: Inputs, setting: float) -> Vector:
    return np.array(graph.harmonic_centrality(mode="in", normalized=False))


def _betweenness(graph: Any, inputs: Inputs, setting: float) -> Vector:
    return np.array(graph.betweenness()) / inputs.pairs


def _betweenness_sample(graph: Any, inputs: Inputs, setting: float) -> Vector:
    sources = inputs.sources
    sums = np.array(graph.betweenness(sources=sources.tolist()))
    return sums * (len(inputs.linking) / len(sources) / inputs.pairs)


def _arpack(setting: float) -> Any:
    import igraph

    options = igraph.ARPACKOptions()
    options.tol = setting
    return options


def _eigenvector(graph: Any, inputs: Inputs, setting: float) -> Vector:
    return np.array(graph.eigenvector_centrality(arpack_options=_arpack(setting)))


def _hits(graph: Any, inputs: Inputs, setting: float) -> Vector:
    # `hub_score` would solve the same problem again. A product of the links and the authorities gives the hubs.
    graph, matrix = graph
    authorities = np.array(graph.authority_score(arpack_options=_arpack(setting)))
    hubs = matrix @ authorities
    return np.concatenate([authorities / authorities.sum(), hubs / hubs.sum()])


def _pagerank(graph: Any, inputs: Inputs, setting: float) -> Vector:
    return peer.run(graph, setting)


MEASURES = {
    "degree": Measurement(_degree),
    "closeness_within": Measurement(_closeness_within),
    "harmonic": Measurement(_harmonic),
    "betweenness": Measurement(_betweenness),
    "betweenness_sample": Measurement(_betweenness_sample),
    "eigenvector": Measurement(_eigenvector, TOLERANCES),
    "hits": Measurement(_hits, TOLERANCES),
    "pagerank": Measurement(_pagerank),
}
