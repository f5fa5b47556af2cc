"""scikit-network's PageRank with its default solver."""

from typing import Any

import numpy as np
import numpy.typing as npt

from bench.peers.base import DAMPING, ROUNDS, needs
from bench.webgraph import Arrays

NAME = "scikit-network, default"
COMPUTES = "power method, float64; gives dangling nodes a larger teleport, which is another question"
SETTINGS = ROUNDS
LARGEST = 1 << 62
SOLVER = "piteration"


def available() -> str | None:
    return needs("sknetwork")


def load(arrays: Arrays) -> Any:
    import scipy.sparse

    n = arrays.num_nodes
    values, indices = np.ones(arrays.num_arcs), np.array(arrays.targets).view(np.int32)
    return scipy.sparse.csr_matrix((values, indices, arrays.offsets.astype(np.int32)), shape=(n, n))


def run(graph: Any, setting: float, solver: str = SOLVER) -> npt.NDArray[np.float64]:
    from sknetwork.ranking import PageRank

    ranking = PageRank(damping_factor=DAMPING, solver=solver, n_iter=int(setting), tol=0)
    return np.asarray(ranking.fit_predict(graph), np.float64)
