"""NetworKit. Its distances go along outlinks, so closeness is that of the graph turned round."""

from typing import Any

import numpy as np

from bench.measurers.base import SOURCES, TOLERANCES, Inputs, Measurement, Vector
from bench.peers import networkit as peer
from bench.webgraph import Arrays

NAME = "NetworKit"
ABOUT = "a search from each node, C++ and OpenMP; power iterations"
THREADS = 0
available = peer.available


def load(arrays: Arrays, measure: str) -> Any:
    if measure.startswith(("closeness", "harmonic")):
        arrays = Arrays(arrays.in_offsets, arrays.in_sources, arrays.offsets, arrays.targets)
    return peer.load(arrays)


def _scores(algorithm: Any) -> Vector:
    algorithm.run()
    return np.array(algorithm.scores())


def _degree(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from networkit.centrality import DegreeCentrality

    return _scores(DegreeCentrality(graph, False, outDeg=False, ignoreSelfLoops=False)) / (
        inputs.num_nodes - 1
    )


def _closeness(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from networkit.centrality import Closeness, ClosenessVariant

    return _scores(Closeness(graph, True, ClosenessVariant.GENERALIZED))


def _harmonic(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from networkit.centrality import HarmonicCloseness

    return _scores(HarmonicCloseness(graph, False))


def _betweenness(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from networkit.centrality import Betweenness

    return _scores(Betweenness(graph, True))


def _betweenness_sample(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from networkit.centrality import EstimateBetweenness

    return _scores(EstimateBetweenness(graph, int(setting), True, True))


def _eigenvector(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from networkit.centrality import EigenvectorCentrality

    return _scores(EigenvectorCentrality(graph, setting))


def _katz(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from networkit.centrality import KatzCentrality

    return _scores(KatzCentrality(graph, inputs.alpha, 0.0, setting))


def _pagerank(graph: Any, inputs: Inputs, setting: float) -> Vector:
    return peer.run(graph, setting)


MEASURES = {
    "degree": Measurement(_degree),
    "closeness": Measurement(_closeness),
    "harmonic": Measurement(_harmonic),
    "betweenness": Measurement(_betweenness),
    "betweenness_sample": Measurement(
        _betweenness_sample,
        [SOURCES],
        "`EstimateBetweenness` weights a node by its position on a path, from 0 to 2, which evens out only in "
        "undirected graphs",
    ),
    "eigenvector": Measurement(
        _eigenvector, TOLERANCES, "power iteration, stopped when the length of the vector hardly changes"
    ),
    "katz": Measurement(_katz, TOLERANCES),
    "pagerank": Measurement(_pagerank, TOLERANCES),
}
