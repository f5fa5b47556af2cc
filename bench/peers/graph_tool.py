"""graph-tool, which is not on PyPI: run where its own packages are installed."""

from typing import Any

import numpy as np
import numpy.typing as npt

from bench.peers.base import DAMPING, TOLERANCES, needs
from bench.webgraph import Arrays

NAME = "graph-tool"
COMPUTES = "power method, float64, all processors (OpenMP); dangling mass spread"
SETTINGS = TOLERANCES
LARGEST = 1 << 62


def available() -> str | None:
    return needs("graph_tool")


def load(arrays: Arrays) -> Any:
    import graph_tool

    pairs = np.empty((arrays.num_arcs, 2), np.int64)
    pairs[:, 0] = np.repeat(np.arange(arrays.num_nodes), np.diff(arrays.offsets).astype(np.int64))
    pairs[:, 1] = arrays.targets
    graph = graph_tool.Graph(directed=True)
    graph.add_vertex(arrays.num_nodes)
    graph.add_edge_list(pairs)
    return graph


def run(graph: Any, setting: float) -> npt.NDArray[np.float64]:
    import graph_tool.centrality

    values = np.array(graph_tool.centrality.pagerank(graph, damping=DAMPING, epsilon=setting).a)
    return np.asarray(values / values.sum())
