"""inlink, with as many threads as there are processors."""

from typing import Any

import numpy as np
import numpy.typing as npt

from bench.peers.base import DAMPING, TOLERANCES
from bench.webgraph import Arrays

NAME = "inlink"
COMPUTES = "Gauss–Seidel, float32 and then float64, all processors; dangling mass spread; error certified"
SETTINGS = TOLERANCES
# Asynchronous threads: the worst of three counts.
VARIES = 3
LARGEST = 1 << 62
THREADS: int | None = None


def available() -> str | None:
    return None


def load(arrays: Arrays) -> Any:
    from inlink.graph.graph import Graph, Rows

    graph = Graph(Rows(arrays.offsets, arrays.targets))
    # A graph that inlink has built holds its inlinks in this form on disk.
    _ = graph.split_in_rows
    return graph


def run(graph: Any, setting: float, threads: int | None = None) -> npt.NDArray[np.float64]:
    from inlink.rank.pagerank import pagerank

    # The graph keeps the degrees after the first call, but each run must count them.
    graph.__dict__.pop("outdegrees", None)
    return pagerank(graph, damping=DAMPING, tol=setting, threads=threads).values
