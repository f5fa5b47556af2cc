"""scikit-network's PageRank with D-iteration, which is right on dangling nodes, but on one thread only.

On two, its threads overwrite each other's updates: the error stays near 1e-2 at any number of rounds (0.33.5).
"""

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.peers import sknetwork_default
from bench.peers.base import ROUNDS
from bench.webgraph import Arrays

NAME = "scikit-network, diteration"
COMPUTES = "D-iteration, float32, one thread (more lose updates); dangling mass dropped, then normalised"
SETTINGS = ROUNDS
LARGEST = 1 << 62
available = sknetwork_default.available


def load(arrays: Arrays) -> Any:
    # Read when the library is first loaded.
    os.environ["OMP_NUM_THREADS"] = "1"
    return sknetwork_default.load(arrays)


def run(graph: Any, setting: float) -> npt.NDArray[np.float64]:
    return sknetwork_default.run(graph, setting, solver="diteration")
