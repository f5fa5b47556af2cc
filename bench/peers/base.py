"""The interface of peers in the ranking benchmark, and a function that loads one by name.

A peer may add ``VARIES``, how often its error is measured, the worst counting; and ``seconds(graph, setting,
trials)``, its wall seconds and peak bytes, if it is a program that takes its own time.
"""

import importlib
import importlib.util
from collections.abc import Sequence
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from bench.webgraph import Arrays

__all__ = ["ALL", "DAMPING", "PASSIVE", "ROUNDS", "TOLERANCES", "Peer", "needs", "peer"]

DAMPING = 0.85
# By default OpenMP's threads spin while they wait. This costs CPU time, and on a busy machine wall time too.
PASSIVE = {"OMP_WAIT_POLICY": "passive"}
TOLERANCES = [10.0 ** (-k / 2) for k in range(4, 33)]
ROUNDS = list(range(1, 301))

# The order in which they run and stand in the tables
ALL = [
    "inlink", "inlink_certified", "inlink_one_thread", "gap", "gap_double", "scipy_power", "igraph", "networkit",
    "fast_pagerank", "sknetwork_default", "sknetwork_diteration", "graph_tool", "networkx",
]  # fmt: skip


class Peer(Protocol):
    """A module of this package."""

    # The name in the tables.
    NAME: str
    # Its kind of PageRank, precision and threads.
    COMPUTES: str
    # From loose to tight: a tolerance, or a number of rounds.
    SETTINGS: Sequence[float]
    # The largest number of arcs that is tried.
    LARGEST: int

    def available(self) -> str | None:
        """None, or the reason why it cannot run here."""
        ...

    def load(self, arrays: Arrays) -> Any:
        """The graph as the peer holds it."""
        ...

    def run(self, graph: Any, setting: float) -> npt.NDArray[np.float64]:
        """The ranking: what is timed."""
        ...


def peer(name: str) -> Peer:
    """A peer by the name of its file."""
    if name not in ALL:
        raise SystemExit(f"no peer {name!r}: there are {', '.join(ALL)}")
    return cast(Peer, importlib.import_module(f"bench.peers.{name}"))


def needs(module: str) -> str | None:
    """None if a module can be imported, else the reason to give."""
    return None if importlib.util.find_spec(module) else f"{module} is not installed"
