"""GAP's PageRank with its scores in float64: ``ScoreT`` and ``kDamp`` changed from float to double, nothing else.

``GAPBS_PR_DOUBLE`` and ``GAPBS_PR_DOUBLE_SCORES`` name the binaries, as :mod:`bench.peers.gap` has them. float32 sums
of many inlinks lose more than 1e-6 on cnr-2000, so that the unmodified program never gets there.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from bench.peers import gap

NAME = "GAP `pr`, float64"
COMPUTES = "GAP's `pr` with double in place of float for ranks and damping"
SETTINGS = gap.SETTINGS
VARIES = gap.VARIES
LARGEST = gap.LARGEST
BINARY = "GAPBS_PR_DOUBLE"
load = gap.load


def available() -> str | None:
    return gap.available(BINARY)


def run(graph: Any, setting: float) -> npt.NDArray[np.float64]:
    return gap.run(graph, setting, BINARY)


def seconds(graph: Any, setting: float, trials: int) -> tuple[float, int]:
    return gap.seconds(graph, setting, trials, BINARY)
