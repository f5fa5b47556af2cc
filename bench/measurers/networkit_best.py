"""NetworKit's search for the most central nodes only, which gives up a search as soon as a node cannot be among them.

Bergamini, Borassi, Crescenzi, Marino & Meyerhenke, "Computing top-k closeness centrality faster in unweighted
graphs", ALENEX 2016; with the bounds that its documentation recommends for complex networks.
"""

from typing import Any

import numpy as np

from bench.measurers import networkit
from bench.measurers.base import BEST, Inputs, Measurement, Vector

NAME = f"NetworKit, the best {BEST}"
ABOUT = "`TopCloseness` and `TopHarmonicCloseness`: exact, but only for these nodes"
THREADS = 0
available = networkit.available
load = networkit.load


def _best(algorithm: Any) -> Vector:
    algorithm.run()
    return np.array(algorithm.topkScoresList())


def _closeness(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from networkit.centrality import TopCloseness

    return _best(TopCloseness(graph, min(BEST, inputs.num_nodes), True, False))


def _harmonic(graph: Any, inputs: Inputs, setting: float) -> Vector:
    from networkit.centrality import TopHarmonicCloseness

    return _best(TopHarmonicCloseness(graph, min(BEST, inputs.num_nodes), False))


MEASURES = {"closeness": Measurement(_closeness), "harmonic": Measurement(_harmonic)}
