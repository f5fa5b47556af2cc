"""The questions to all peers in the benchmark of the measures, and the interface of a peer.

A measure is one question with one answer: a float64[n], or for HITS authorities and hubs one after the other. A peer
says what it can answer, from loose to tight settings, and takes the options with which it answers *this* question.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from bench.webgraph import Arrays

__all__ = [
    "ALL", "BEST", "EXACT", "MEASURES", "OWN", "SOURCES", "TOLERANCES", "WALKS", "Inputs", "Measure", "Measurement",
    "Peer", "inputs_of", "peer",
]  # fmt: skip

Vector = npt.NDArray[np.float64]

# Number of sources of sampled betweenness.
SOURCES = 256
# Number of walks from each node.
WALKS = 10
# Number of values of a peer that finds only the best.
BEST = 100
TOLERANCES = [10.0**-k for k in range(2, 16)]
# The settings of exact measures.
EXACT = [0.0]

# The order in which they run and stand in the tables
ALL = [
    "inlink", "networkit", "networkit_best", "networkit_paths", "graph_tool", "inlink_one_thread", "igraph",
    "sknetwork", "networkx",
]  # fmt: skip


class Inputs(NamedTuple):
    """Input of a peer, in addition to its form of the graph."""

    num_nodes: int
    # The nodes with outlinks.
    linking: npt.NDArray[np.uint32]
    # The attenuation of Katz centrality.
    alpha: float

    @property
    def pairs(self) -> float:
        """The number of pairs of other nodes, by which betweenness is divided."""
        return max(float(self.num_nodes - 1) * (self.num_nodes - 2), 1.0)

    @property
    def sources(self) -> npt.NDArray[np.uint32]:
        """The sources of sampled betweenness: those that inlink draws with seed 0."""
        if len(self.linking) <= SOURCES:
            return self.linking
        return np.sort(np.random.default_rng(0).choice(self.linking, SOURCES, replace=False))

    @property
    def states(self) -> Vector:
        """The percolation of each node: 0, 1/6, … 1, by its number."""
        return (np.arange(self.num_nodes) % 7) / 6


def inputs_of(arrays: Arrays, alpha: float) -> Inputs:
    """Return the input of peers for a graph."""
    return Inputs(arrays.num_nodes, np.flatnonzero(np.diff(arrays.offsets)).astype(np.uint32), alpha)


# -- how far an answer is off ---------------------------------------------------------------------------


def each(answer: Vector, reference: Vector) -> float:
    """The largest relative error of a value; an answer of the best only is held against the best.

    A value that is 0 may be 1e-21 of the largest, as rounding.
    """
    if len(answer) < len(reference):
        answer, reference = np.sort(answer)[::-1], np.sort(reference)[::-1][: len(answer)]
    if answer.shape != reference.shape or not np.isfinite(answer).all():
        return np.inf
    size = np.maximum(np.abs(reference), 1e-12 * np.abs(reference).max(initial=0.0))
    apart = np.abs(answer - reference)
    return float(
        np.divide(apart, size, out=np.where(apart > 0, np.inf, 0.0), where=size > 0).max(initial=0.0)
    )


def in_sum(answer: Vector, reference: Vector) -> float:
    """The L1 distance of the two, each with sum 1: as the benchmark of PageRank has it."""
    if answer.shape != reference.shape or not np.isfinite(answer).all() or answer.sum() <= 0:
        return np.inf
    return float(np.abs(answer / answer.sum() - reference / reference.sum()).sum())


def at_most(answer: Vector, reference: Vector) -> float:
    """The largest error of a value, in parts of the largest value."""
    if answer.shape != reference.shape or not np.isfinite(answer).all():
        return np.inf
    return float(np.abs(answer - reference).max() / reference.max())


class Measure(NamedTuple):
    """A question."""

    # The name in the tables.
    title: str
    # The formula.
    asked: str
    error: Callable[[Vector, Vector], float]
    # The largest error of an answer that counts as right.
    target: float
    # Whether an exact answer needs a search from each node.
    searches: bool

    def fits(self, nodes: int, arcs: int) -> bool:
        """Return whether a graph is neither too large for it nor too small to tell, so that it need not be named."""
        return nodes * arcs <= LARGEST if self.searches else arcs >= SMALLEST


# As a target: inlink's own error, because these measures are estimates.
OWN = np.nan
# Nodes · arcs, and arcs.
LARGEST, SMALLEST = 10**9, 10**6

MEASURES = {
    "degree": Measure("degree", "inlinks / (n − 1)", each, 1e-9, False),
    "closeness": Measure(
        "closeness", "r² / ((n − 1)·Σ d) over the r nodes that reach a node, d their distances", each, 1e-9, True
    ),
    "closeness_within": Measure(
        "closeness, within", "the same with r / Σ d: `wf_improved=False`", each, 1e-9, True
    ),
    "harmonic": Measure("harmonic", "Σ 1/d over the same nodes", each, 1e-9, True),
    "betweenness": Measure("betweenness", "Σ σ_st(v)/σ_st, divided by the number of pairs", each, 1e-9, True),
    "percolation": Measure(
        "percolation", "node i percolated by (i mod 7)/6", each, 1e-9, True
    ),
    "betweenness_sample": Measure(
        "betweenness, sampled",
        f"estimated from {SOURCES} sources, or by another method with at most 1.25 times their error",
        at_most, OWN, False,
    ),
    "eigenvector": Measure("eigenvector", "Aᵀx = λ₁x", in_sum, 1e-6, False),
    "katz": Measure("Katz", "((I − αAᵀ)⁻¹ − I)·1", in_sum, 1e-6, False),
    "hits": Measure("HITS", "authorities and hubs", in_sum, 1e-6, False),
    "pagerank": Measure("PageRank", "damping 0.85, dangling mass spread", in_sum, 1e-6, False),
    "mcmc": Measure("PageRank by walks", f"{WALKS} random walks from each node", in_sum, OWN, False),
}  # fmt: skip


# -- peers ----------------------------------------------------------------------------------------------


class Measurement(NamedTuple):
    """The function of a peer that answers a question, and its settings."""

    # A function of the peer's graph, the other input, and a setting.
    run: Callable[[Any, Inputs, float], Vector]
    # From loose to tight.
    settings: Sequence[float] = EXACT
    # Peculiarities of the peer.
    how: str = ""


class Peer(Protocol):
    """A module of this package."""

    # The name in the tables.
    NAME: str
    # The method.
    ABOUT: str
    # 1, or 0 for all processors.
    THREADS: int
    MEASURES: Mapping[str, Measurement]

    def available(self) -> str | None:
        """None, or the reason why it cannot run here."""
        ...

    def load(self, arrays: Arrays, measure: str) -> Any:
        """The graph as the peer holds it."""
        ...


def peer(name: str) -> Peer:
    """A peer by the name of its file."""
    if name not in ALL:
        raise SystemExit(f"no peer {name!r}: there are {', '.join(ALL)}")
    return cast(Peer, importlib.import_module(f"bench.measurers.{name}"))
