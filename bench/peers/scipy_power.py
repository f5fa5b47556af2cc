"""The power method as one writes it with SciPy."""

from typing import Any

import numpy as np
import numpy.typing as npt

from bench.peers.base import DAMPING, ROUNDS, needs
from bench.webgraph import Arrays

NAME = "SciPy power iteration"
COMPUTES = "power method on a CSR matrix, float64, one thread; dangling mass spread"
SETTINGS = ROUNDS
LARGEST = 1 << 62


def available() -> str | None:
    return needs("scipy")


def load(arrays: Arrays) -> Any:
    import scipy.sparse

    degrees = np.diff(arrays.offsets).astype(np.float64)
    inverse = np.divide(1.0, degrees, out=np.zeros_like(degrees), where=degrees > 0)
    indices, starts = np.array(arrays.in_sources).view(np.int32), arrays.in_offsets.astype(np.int32)
    n = arrays.num_nodes
    return scipy.sparse.csr_array((inverse[indices], indices, starts), shape=(n, n)), degrees == 0


def run(graph: Any, setting: float) -> npt.NDArray[np.float64]:
    matrix, dangling = graph
    n = len(dangling)
    x = np.full(n, 1 / n)
    for _ in range(int(setting)):
        x = DAMPING * (matrix @ x) + (DAMPING * x[dangling].sum() + 1 - DAMPING) / n
    return np.asarray(x / x.sum())
