"""NetworkX, on small graphs only: its dictionaries need some hundred bytes an arc."""

from typing import Any

import numpy as np
import numpy.typing as npt

from bench.peers.base import DAMPING, TOLERANCES, needs
from bench.webgraph import Arrays

NAME = "NetworkX"
COMPUTES = (
    "power method by SciPy, float64, one thread; dangling mass spread; its tolerance is multiplied by n"
)
SETTINGS = TOLERANCES
LARGEST = 5_000_000


def available() -> str | None:
    return needs("networkx")


def load(arrays: Arrays) -> Any:
    import networkx

    graph = networkx.DiGraph()
    graph.add_nodes_from(range(arrays.num_nodes))
    rows = np.repeat(np.arange(arrays.num_nodes), np.diff(arrays.offsets).astype(np.int64))
    graph.add_edges_from(zip(rows.tolist(), arrays.targets.tolist(), strict=True))
    return graph


def run(graph: Any, setting: float) -> npt.NDArray[np.float64]:
    import networkx

    ranks = networkx.pagerank(graph, alpha=DAMPING, tol=setting / len(graph), max_iter=1000)
    return np.fromiter(ranks.values(), np.float64, len(ranks))
