"""NetworkX: Python's dictionaries, but for HITS and PageRank, which are SciPy's."""

from typing import Any

import numpy as np

from bench.measurers.base import TOLERANCES, Inputs, Measurement, Vector
from bench.peers import networkx as peer
from bench.webgraph import Arrays

NAME = "NetworkX"
ABOUT = "Python; HITS and PageRank by SciPy"
THREADS = 1
ROUNDS = 10_000
available = peer.available


def load(arrays: Arrays, measure: str) -> Any:
    return peer.load(arrays)


def _values(found: dict[int, float]) -> Vector:
    return np.fromiter(found.values(), np.float64, len(found))


def _degree(graph: Any, inputs: Inputs, setting: float) -> Vector:
    import networkx

    return _values(networkx.in_degree_centrality(graph))


def _closeness(graph: Any, inputs: Inputs, setting: float) -> Vector:
    import networkx

    return _values(networkx.closeness_centrality(graph))


def _closeness_within(graph: Any, inputs: Inputs, setting: float) -> Vector:
    import networkx

    return _values(networkx.closeness_centrality(graph, wf_improved=False))


def _harmonic(graph: Any, inputs: Inputs, setting: float) -> Vector:
    import networkx

    return _values(networkx.harmonic_centrality(graph))


def _betweenness(graph: Any, inputs: Inputs, setting: float) -> Vector:
    import networkx

    return _values(networkx.betweenness_centrality(graph))


def _percolation(graph: Any, inputs: Inputs, setting: float) -> Vector:
    import networkx

    return _values(networkx.percolation_centrality(graph, states=dict(enumerate(inputs.states.tolist()))))


def _betweenness_sample(graph: Any, inputs: Inputs, setting: float) -> Vector:
    import networkx

    sources = inputs.sources
    sums = _values(networkx.betweenness_centrality_subset(graph, sources.tolist(), list(graph)))
    return sums * (len(inputs.linking) / len(sources) / inputs.pairs)


def _eigenvector(graph: Any, inputs: Inputs, setting: float) -> Vector:
    import networkx

    # it multiplies its tolerance by n
    return _values(networkx.eigenvector_centrality(graph, max_iter=ROUNDS, tol=setting / len(graph)))


def _katz(graph: Any, inputs: Inputs, setting: float) -> Vector:
    import networkx

    found = networkx.katz_centrality(
        graph, alpha=inputs.alpha, max_iter=ROUNDS, tol=setting, normalized=False
    )
    return _values(found) - 1


def _hits(graph: Any, inputs: Inputs, setting: float) -> Vector:
    import networkx

    hubs, authorities = networkx.hits(graph, max_iter=ROUNDS, tol=setting)
    return np.concatenate([_values(authorities), _values(hubs)])


def _pagerank(graph: Any, inputs: Inputs, setting: float) -> Vector:
    return peer.run(graph, setting)


MEASURES = {
    "degree": Measurement(_degree),
    "closeness": Measurement(_closeness),
    "closeness_within": Measurement(_closeness_within),
    "harmonic": Measurement(_harmonic),
    "betweenness": Measurement(_betweenness),
    "percolation": Measurement(_percolation),
    "betweenness_sample": Measurement(_betweenness_sample),
    "eigenvector": Measurement(_eigenvector, TOLERANCES),
    "katz": Measurement(_katz, TOLERANCES),
    "hits": Measurement(_hits, TOLERANCES),
    "pagerank": Measurement(_pagerank, TOLERANCES),
}
