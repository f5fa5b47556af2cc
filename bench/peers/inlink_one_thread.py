"""inlink on one thread: the baseline that every parallel program has to be measured against (COST)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from bench.peers import inlink
from bench.peers.base import TOLERANCES

NAME = "inlink, one thread"
COMPUTES = "the same on one thread, reproducible to the bit"
SETTINGS = TOLERANCES
LARGEST = inlink.LARGEST
available = inlink.available
load = inlink.load


def run(graph: Any, setting: float) -> npt.NDArray[np.float64]:
    return inlink.run(graph, setting, threads=1)
