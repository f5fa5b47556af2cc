"""igraph's PRPACK."""

from typing import Any

import numpy as np
import numpy.typing as npt

from bench.peers.base import DAMPING, needs
from bench.webgraph import Arrays

NAME = "igraph"
COMPUTES = "PRPACK, float64, all processors (OpenMP); dangling mass spread; no tolerance to set"
SETTINGS = [0.0]
LARGEST = 1 << 62


def available() -> str | None:
    return needs("igraph")


def load(arrays: Arrays) -> Any:
    import igraph

    pairs = np.empty((arrays.num_arcs, 2), np.int64)
    pairs[:, 0] = np.repeat(np.arange(arrays.num_nodes), np.diff(arrays.offsets).astype(np.int64))
    pairs[:, 1] = arrays.targets
    return igraph.Graph(n=arrays.num_nodes, edges=pairs, directed=True)


def run(graph: Any, setting: float) -> npt.NDArray[np.float64]:
    return np.array(graph.pagerank(damping=DAMPING, implementation="prpack"))
