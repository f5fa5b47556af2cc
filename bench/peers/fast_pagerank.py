"""fast-pagerank's power method."""

from typing import Any

import numpy as np
import numpy.typing as npt

from bench.peers.base import DAMPING, TOLERANCES, needs
from bench.webgraph import Arrays

NAME = "fast-pagerank"
COMPUTES = "power method by SciPy, float64, one thread; dangling mass spread"
SETTINGS = TOLERANCES
LARGEST = 1 << 62


def available() -> str | None:
    return needs("fast_pagerank")


def load(arrays: Arrays) -> Any:
    import scipy.sparse

    n = arrays.num_nodes
    values, indices = np.ones(arrays.num_arcs), np.array(arrays.targets).view(np.int32)
    return scipy.sparse.csr_matrix((values, indices, arrays.offsets.astype(np.int32)), shape=(n, n))


def run(graph: Any, setting: float) -> npt.NDArray[np.float64]:
    from fast_pagerank import pagerank_power

    return np.asarray(pagerank_power(graph, p=DAMPING, tol=setting, max_iter=1000), np.float64).ravel()
