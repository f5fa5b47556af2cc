"""scikit-network, most of which is SciPy on one thread."""

from typing import Any

import numpy as np

from bench.measurers.base import TOLERANCES, Inputs, Measurement, Vector
from bench.peers import sknetwork_diteration as peer
from bench.webgraph import Arrays

NAME = "scikit-network"
ABOUT = "SciPy's sparse products and singular values"
THREADS = 1
CONNECTED = "only for graphs in which every node reaches every other"
available = peer.available


def load(arrays: Arrays, measure: str) -> Any:
    return peer.load(arrays)


def _degree(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from sknetwork.utils import get_degrees

    return np.asarray(get_degrees(graph, transpose=True), np.float64) / (inputs.num_nodes - 1)


def _closeness(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from sknetwork.ranking import Closeness

    return np.asarray(Closeness().fit_predict(graph.T.tocsr()), np.float64)


def _betweenness(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from sknetwork.ranking import Betweenness

    return np.asarray(Betweenness().fit_predict(graph), np.float64) * (2 / inputs.pairs)


def _katz(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from sknetwork.ranking import Katz

    return np.asarray(
        Katz(damping_factor=inputs.alpha, path_length=int(setting)).fit_predict(graph), np.float64
    )


def _hits(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from sknetwork.linalg import LanczosSVD
    from sknetwork.ranking import HITS

    ranking = HITS(solver=LanczosSVD(tol=setting)).fit(graph)
    authorities, hubs = ranking.scores_col_, ranking.scores_row_
    return np.concatenate([authorities / authorities.sum(), hubs / hubs.sum()])


def _pagerank(graph: Any, inputs: Inputs, setting: float) -> Vector:
    return peer.run(graph, setting)


MEASURES = {
    "degree": Measurement(_degree),
    "closeness": Measurement(_closeness, how=CONNECTED),
    "betweenness": Measurement(_betweenness, how=CONNECTED),
    "katz": Measurement(_katz, list(range(5, 301, 5)), "sums walks up to a length"),
    "hits": Measurement(_hits, TOLERANCES),
    "pagerank": Measurement(_pagerank, [200], "D-iteration in float32"),
}
