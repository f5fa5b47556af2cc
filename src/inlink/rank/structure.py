"""The structure of a graph: components, bow tie, cores, and how far apart its nodes are.

The *neighbourhood function* N(t) is the number of pairs (u, v) with a path of at most t arcs from u to v. It counts the
n pairs (u, u), for which t = 0 suffices. With T the largest distance of two nodes ::

    average distance      = Σ_{t ≥ 1} (N(t) − N(t − 1))·t / (N(T) − n)                                      (1)
    effective diameter    = the smallest t ≥ 0 with N(t) ≥ 0.9·N(T)                                         (2)

In (2), N is interpolated linearly between whole t. Boldi, Rosa & Vigna, "HyperANF: approximating the neighbourhood
function of very large graphs on a budget", WWW 2011, call this the interpolated effective diameter at 90%.

**Exact**: a breadth-first search from every node, as for exact harmonic centrality.

**Estimated**: the balls of HyperBall (:mod:`inlink.rank.hyperball`) add up to N. The relative standard error of N(t) is
at most that of one ball, because all balls of a run may be wrong in the same way. N is the mean over several runs with
different hashes. Where the estimate of N(2) is below N(1), which is exact, N(1) replaces it. The standard errors of (1)
and (2) come from the jackknife over the runs, as in HyperANF: with θ_i the value that the runs other than i give, the
squared error is Σ (θ_i − mean of θ)² · (r − 1)/r. No estimate has a bound.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from inlink.base.arrays import Float64Array, UInt8Array, UInt32Array
from inlink.base.declare import checked
from inlink.base.table import counted, html_table
from inlink.errors import ParameterError
from inlink.graph.components import bow_tie, components
from inlink.graph.cores import core_numbers
from inlink.graph.graph import Graph
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.closeness import EXACT_NODES, Exact, Log2m, Runs, distance_sums
from inlink.rank.inputs import require_vectors
from inlink.rank.parameters import Seed, ThreadCount

__all__ = ["PARTS", "Structure", "structure"]

PARTS = ("core", "in", "out", "tubes", "tendrils", "disconnected")
"""The names of the parts of the bow tie, by their numbers in :attr:`Structure.parts`."""

LOG2M = 7
"""Log₂ of the number of registers of an estimate's counters, if not given."""

SHARE = 0.9
"""The share of the reachable pairs within the effective diameter."""


@dataclass(frozen=True, eq=False, repr=False)
class Structure:
    """The structure of a graph of n nodes; :func:`structure` computes it.

    Attributes
    ----------
    strong, weak : uint32[n]
        A representative node of each node's strongly and weakly connected component, the same for the whole component.
    parts : uint8[n]
        The part of the bow tie that each node belongs to: 0 core, 1 in, 2 out, 3 tubes, 4 tendrils, 5 disconnected;
        see :func:`inlink.graph.components.bow_tie`.
    cores : uint32[n]
        The core number of each node; see :func:`inlink.graph.cores.core_numbers`.
    pairs : float64[T + 1]
        The neighbourhood function N(0), N(1), …, N(T).
    average_distance : float
        The mean distance (1) of the pairs of different nodes with a path; nan if there are no such pairs.
    effective_diameter : float
        The number of arcs (2) within which 90% of the pairs with a path are.
    pairs_error : float
        An upper bound on the relative standard error of N(t), from theory; 0 if exact.
    average_distance_error, effective_diameter_error : float or None
        The relative standard errors, estimated from the spread of the runs; 0 if exact, None with one run.
    """

    strong: UInt32Array
    weak: UInt32Array
    parts: UInt8Array
    cores: UInt32Array
    pairs: Float64Array
    average_distance: float
    effective_diameter: float
    pairs_error: float
    average_distance_error: float | None
    effective_diameter_error: float | None

    def figures(self) -> dict[str, Any]:
        """Return the figures without the arrays of nodes, in plain types.

        Sizes are numbers of nodes: ``bow_tie`` has one for each part, and ``largest_core_size`` is the number of nodes
        with the largest core number. ``pairs`` is a list.
        """
        strong, weak = (np.bincount(label, minlength=1) for label in (self.strong, self.weak))
        sizes = np.bincount(self.parts, minlength=len(PARTS)).tolist()
        largest = int(self.cores.max(initial=0))
        return {
            "strong_components": int(np.count_nonzero(strong)),
            "largest_strong_component": int(strong.max()),
            "weak_components": int(np.count_nonzero(weak)),
            "largest_weak_component": int(weak.max()),
            "bow_tie": dict(zip(PARTS, sizes, strict=True)),
            "largest_core_number": largest,
            "largest_core_size": int(np.count_nonzero(self.cores == largest)),
            "average_distance": self.average_distance,
            "average_distance_error": self.average_distance_error,
            "effective_diameter": self.effective_diameter,
            "effective_diameter_error": self.effective_diameter_error,
            "pairs": self.pairs.tolist(),
            "pairs_error": self.pairs_error,
        }

    def __repr__(self) -> str:
        core, largest = int(np.count_nonzero(self.parts == 0)), int(self.cores.max(initial=0))
        return (
            f"<inlink structure: {counted(len(self.parts), 'node')}, {core:,} in the core; largest core number "
            f"{largest:,}; effective diameter {self.effective_diameter:.4g}>"
        )

    def _repr_html_(self) -> str:
        figures = self.figures()
        rows = [*figures.pop("bow_tie").items(), *figures.items()]
        shown = [(name.replace("_", " "), value) for name, value in rows if name != "pairs"]
        return html_table("inlink structure", [], shown)


@checked
def structure(
    graph: GraphLike,
    *,
    exact: Exact = None,
    log2m: Log2m = None,
    runs: Runs = 4,
    seed: Seed = 0,
    threads: ThreadCount = None,
) -> Structure:
    """Compute components, bow tie, core numbers, neighbourhood function, average distance and effective diameter.

    Memory: at most 60 bytes a node. An estimate needs 2^(log2m + 1) bytes more for each node with inlinks and outlinks,
    and an exact result 232 bytes more for each node and thread. Rows of a graph's folder are read where they are, in no
    order. Rows of a compressed folder are decoded into memory: 8 bytes an arc, and 16 a node.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        In a matrix A[i, j] is the arc i → j. Weights are ignored: each arc has length 1.
    exact : bool or None
        Whether to search from every node, in about n · m steps, or to estimate distances by HyperBall. None searches if
        ``log2m`` is None and n is at most 100,000. Everything else is always exact.
    log2m : int or None
        Log₂ of the number of registers of HyperBall's counters, from 4 to 16. None is 7.
    runs : int
        The number of estimates with different hashes, at least 1. The time grows with ``runs · 2^log2m``, the memory
        does not depend on ``runs``.
    seed : int
        Seed of the hashes, at least 0.
    threads : int or None
        None uses all processors. The result has the same bits with any number of threads.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is out of range, ``exact`` is given together with ``log2m``, or memory does not suffice.

    Examples
    --------
    >>> import inlink
    >>> shape = inlink.structure([("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")])
    >>> shape.figures()["bow_tie"]
    {'core': 2, 'in': 1, 'out': 1, 'tubes': 0, 'tendrils': 0, 'disconnected': 0}
    >>> shape.pairs.tolist(), round(shape.effective_diameter, 2)
    ([4.0, 8.0, 10.0, 11.0], 1.95)
    """
    graph = as_graph(graph)
    if exact and log2m is not None:
        raise ParameterError("`log2m` applies only to estimates: give `exact` or `log2m`, not both")
    require_vectors(graph, node=60)
    rows, inlinks = graph.out_rows, graph.split_in_rows
    strong, weak = components(rows, strong=True), components(rows)
    parts, cores = bow_tie(rows, inlinks, strong, weak), core_numbers(rows, inlinks)
    if exact or (exact is None and log2m is None and graph.num_nodes <= EXACT_NODES):
        sums, _ = distance_sums(graph, "distances", inwards=True, threads=threads)
        functions = np.cumsum([[graph.num_nodes, *sums.pairs[1:]]], 1, np.float64)
        error = 0.0
    else:
        log2m = LOG2M if log2m is None else log2m
        functions, error = _estimates(graph, log2m, runs, seed, threads)
    average, average_error = _with_error(functions, _average_distance)
    diameter, diameter_error = _with_error(functions, _effective_diameter)
    pairs = functions.mean(0)
    if error == 0:
        average_error = diameter_error = 0.0
    return Structure(
        strong=strong,
        weak=weak,
        parts=parts,
        cores=cores,
        pairs=pairs[: 1 + np.searchsorted(pairs, pairs[-1])],
        average_distance=average,
        effective_diameter=diameter,
        pairs_error=error,
        average_distance_error=average_error,
        effective_diameter_error=diameter_error,
    )


def _estimates(
    graph: Graph, log2m: int, runs: int, seed: int, threads: int | None
) -> tuple[Float64Array, float]:
    """Return the neighbourhood function by each run, float64[runs, T + 1], and the relative error of their mean."""
    from inlink.rank.hyperball import STANDARD_ERROR, HyperBall

    balls = HyperBall(graph.split_in_rows, graph.out_rows, log2m, threads)
    functions = []
    for done, key in enumerate(np.random.SeedSequence(seed).generate_state(runs, np.uint64), 1):
        pairs = balls.run(int(key), inverse=True, label=f"distances, run {done} of {runs}").pairs
        functions.append(np.maximum.accumulate(pairs))
    longest = max(map(len, functions))
    padded = [np.pad(function, (0, longest - len(function)), mode="edge") for function in functions]
    return np.stack(padded), STANDARD_ERROR / math.sqrt((1 << log2m) * runs)


def _with_error(
    functions: Float64Array, value_of: Callable[[Float64Array], float]
) -> tuple[float, float | None]:
    """Return a value of the mean of neighbourhood functions, and its relative standard error by the jackknife."""
    runs = len(functions)
    value = value_of(functions.mean(0))
    if runs == 1:
        return value, None
    total = functions.sum(0)
    others = np.array([value_of((total - function) / (runs - 1)) for function in functions])
    error = math.sqrt(float(((others - others.mean()) ** 2).sum()) * (runs - 1) / runs)
    return value, error / value if value else error


def _average_distance(pairs: Float64Array) -> float:
    """Return (1); nan if no node reaches another."""
    reached = pairs[-1] - pairs[0]
    return float(np.diff(pairs) @ np.arange(1.0, len(pairs)) / reached) if reached else math.nan


def _effective_diameter(pairs: Float64Array) -> float:
    """Return (2)."""
    goal = SHARE * pairs[-1]
    after = int(np.searchsorted(pairs, goal))
    if after == 0:
        return 0.0
    return float(after - 1 + (goal - pairs[after - 1]) / (pairs[after] - pairs[after - 1]))
