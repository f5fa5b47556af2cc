"""NetworKit's estimate of betweenness from single shortest paths between random pairs, instead of all from a source.

Riondato & Kornaropoulos, "Fast approximation of betweenness centrality through sampling", WSDM 2014.
"""

from typing import Any

import numpy as np

from bench.measurers import networkit
from bench.measurers.base import Inputs, Measurement, Vector

NAME = "NetworKit, paths"
ABOUT = "`ApproxBetweenness`: one shortest path of each of many random pairs"
THREADS = 0
available = networkit.available
load = networkit.load


def _betweenness_sample(graph: Any, inputs: Inputs, setting: float) -> Vector:
    import networkit as program

    program.setSeed(1, True)
    algorithm = program.centrality.ApproxBetweenness(graph, setting, 0.1)
    algorithm.run()
    return np.array(algorithm.scores())


MEASURES = {"betweenness_sample": Measurement(_betweenness_sample, [0.4 / 2 ** (k / 2) for k in range(9)])}
