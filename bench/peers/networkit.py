"""NetworKit's PageRank with its sinks distributed."""

from typing import Any

import numpy as np
import numpy.typing as npt

from bench.peers.base import DAMPING, TOLERANCES, needs
from bench.webgraph import Arrays

NAME = "NetworKit"
COMPUTES = "power method, float64, all processors (OpenMP); dangling mass spread"
SETTINGS = TOLERANCES
LARGEST = 1 << 62


def available() -> str | None:
    return needs("networkit")


def load(arrays: Arrays) -> Any:
    import networkit

    rows = np.repeat(np.arange(arrays.num_nodes, dtype=np.uint64), np.diff(arrays.offsets).astype(np.int64))
    columns = arrays.targets.astype(np.uint64)
    graph = networkit.GraphFromCoo((rows, columns), n=arrays.num_nodes, directed=True)
    if graph.numberOfEdges() != arrays.num_arcs:
        raise RuntimeError(f"NetworKit took {graph.numberOfEdges():,} of {arrays.num_arcs:,} arcs")
    return graph


def run(graph: Any, setting: float) -> npt.NDArray[np.float64]:
    import networkit

    spread = networkit.centrality.SinkHandling.DistributeSinks
    algorithm = networkit.centrality.PageRank(graph, DAMPING, setting, False, spread)
    algorithm.run()
    return np.array(algorithm.scores())
