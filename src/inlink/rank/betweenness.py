"""Betweenness: the number of shortest paths through a page, exact or estimated from a sample of sources or of paths.

Let σ_st be the number of shortest paths from s to t, and σ_st(v) the number of these that go through v ::

    betweenness(v) = Σ_s δ_s(v),      δ_s(v) = Σ_t σ_st(v) / σ_st,      s ≠ v ≠ t                          (1)

With ``normalized``, the value is divided by (n − 1)(n − 2), the number of pairs (s, t). With ``endpoints``, a path
also counts for its two ends, and there are n(n − 1) pairs. This equals NetworkX's ``betweenness_centrality`` of a
directed graph. (For an undirected graph, NetworkX halves the values that are not normalised.) Arc weights are not
lengths: each arc is one step.

**Exact.** Brandes, "A faster algorithm for betweenness centrality", J. Math. Sociology 2001: a breadth-first
search runs from each node with outlinks, and δ_s is computed on the way back. All terms are at least 0, so the
rounding error is small. A σ is a sum along at most m arcs and is used twice. A δ is one more such sum, and n of them
are added. So the relative error of a value is at most (3m + 4n + 30)·2⁻⁵³.

**A sample.** k of the N nodes with outlinks, drawn without replacement (Brandes & Pich, "Centrality
estimation in large networks", 2007), each δ_s counted N/k times. As 0 ≤ δ_s(v) ≤ size of v's weak component −
2, two inequalities of Bardenet & Maillard ("Concentration inequalities for sampling without replacement",
Bernoulli 2015) bound the error of each node's mean: Hoeffding–Serfling (Corollary 2.5), and the empirical
Bernstein–Serfling (Theorem 4.3), which uses the sample's variance. Each inequality gets half of the error
probability, divided equally among the nodes. The lower of the two bounds is used. Without ``endpoints``, a node
without inlinks or outlinks has the value 0, for which no sample is needed.

**A sample of paths**, drawn until the error is small enough: :mod:`inlink.rank.pathsampling`.
"""

import math
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from msgspec.structs import replace

from inlink.base.arrays import Float64Array, UInt32Array, aligned
from inlink.base.declare import Parameter, parameters_of
from inlink.base.progress import track
from inlink.errors import ParameterError
from inlink.graph.components import components
from inlink.graph.graph import Graph
from inlink.graph.interop import GraphLike, as_graph
from inlink.rank.inputs import VECTORS, require_vectors
from inlink.rank.parameters import Confidence, Normalized, Sample, Seed, ThreadCount
from inlink.rank.ranking import ROUNDOFF, Ranking, ranking_of, timed

if TYPE_CHECKING:
    from inlink.rank.kernels.betweenness import DependencySums


# The number of arcs and nodes that are searched in one block, which has at least eight sources. A block takes about a
# quarter of a second on graphs of up to 4 million arcs. Ctrl-C waits for the end of a block.
STRETCH = 1 << 25


@timed
def betweenness(
    graph: GraphLike,
    *,
    k: Sample = None,
    epsilon: Annotated[
        float | None,
        Parameter(
            "Sample shortest paths until no normalized value is off by more than this.",
            at_least=1e-4,
            below=1,
            none="no sample of paths",
        ),
    ] = None,
    normalized: Normalized = True,
    endpoints: Annotated[bool, Parameter("Count a path for the nodes at its ends too.")] = False,
    confidence: Confidence = 0.95,
    seed: Seed = 0,
    threads: ThreadCount = None,
) -> Ranking:
    """The share of shortest paths on which a node lies.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        In a matrix A[i, j] is the arc i → j.
    k : int or None
        The number of sources to draw. None takes all: exact, in about n · m steps.
    epsilon : float or None
        Sample shortest paths until no value is off by more than this, with the given confidence for all nodes together:
        at least 0.0001 and below 1, in parts of the number of pairs. None samples no paths. It cannot be combined with
        ``k``.
    normalized : bool
        Whether to divide by the number of pairs of other nodes.
    endpoints : bool
        Whether a path counts for the nodes at its ends too.
    confidence : float
        Probability that the error of a sample is below the reported one: above 0 and below 1.
    seed : int
        Seed of the random numbers, at least 0. The same seed draws the same sources.
    threads : int or None
        None uses all processors. The result has the same bits with any number of threads.

    Returns
    -------
    Ranking
        ``values`` float64[n]. If exact, ``error_bound`` bounds the rounding error, in L1. A sample has no certain
        bound: ``parameters["max_error"]`` bounds the error of every value with the given confidence, and ``note``
        reports it. ``iterations`` is the number of sources or paths. ``converged`` is False for a sample of sources,
        and True for a sample of paths. The latter also has an interval for each node: :meth:`Ranking.intervals`.

    Raises
    ------
    inlink.errors.ParameterError
        If k is not between 1 and n, epsilon is not between 0.0001 and 1 or may need more than 2³² paths, the confidence
        is not between 0 and 1, the seed is not a whole number of at least 0, or both k and epsilon are given.

    Examples
    --------
    >>> from inlink.rank.betweenness import betweenness
    >>> from inlink import Graph
    >>> betweenness(Graph.from_arcs([(0, 1), (1, 2)])).values.tolist()
    [0.0, 0.5, 0.0]
    """
    graph = as_graph(graph)
    n = graph.num_nodes
    check_sample(n, k)
    if epsilon is not None:
        if k is not None:
            raise ParameterError("`k` draws sources and `epsilon` draws paths: give one of them")
        return _from_paths(graph, epsilon, normalized, endpoints, confidence, seed, threads)
    linking = np.flatnonzero(graph.outdegrees).astype(np.uint32)
    sampled = k is not None and k < len(linking)
    sources = linking
    if sampled:
        sources = np.sort(np.random.default_rng(seed).choice(linking, k, replace=False))
    scale = len(linking) / max(len(sources), 1)
    if normalized:
        scale /= _pairs(n, endpoints)
    sums = dependency_sums(graph, sources, None, endpoints, sampled, threads, "betweenness")
    parameters: dict[str, Any] = {
        "k": k,
        "epsilon": None,
        "normalized": normalized,
        "endpoints": endpoints,
    }
    note = ""
    if sampled:
        error = scale * _sampling_error(graph, sums, len(sources), len(linking), endpoints, confidence)
        parameters |= {"confidence": confidence, "seed": seed, "max_error": error}
        note = sample_note(f"{len(sources):,} of {len(linking):,} sources", confidence, error)
    values = sums.total * scale
    return ranking_of(
        graph,
        "betweenness",
        values,
        error_bound=None if sampled else rounding(graph) * float(values.sum()),
        iterations=len(sources) if sampled else 0,
        converged=not sampled,
        note=note,
        parameters=parameters,
    )


def _pairs(n: int, endpoints: bool) -> int:
    """Return the number of pairs of other nodes, or 1 if there are none. Normalized values are divided by it."""
    others = n if endpoints else n - 1
    return others * (others - 1) if others > 1 else 1


def _from_paths(
    graph: Graph,
    epsilon: float,
    normalized: bool,
    endpoints: bool,
    confidence: float,
    seed: int,
    threads: int | None,
) -> Ranking:
    """Return betweenness from a sample of shortest paths."""
    from inlink.rank.pathsampling import path_sample

    sample = path_sample(graph, epsilon, endpoints, confidence, seed, threads)
    # A node that lies on all paths has this value.
    scale = sample.pairs / (_pairs(graph.num_nodes, endpoints) if normalized else 1)
    error = scale * sample.width
    return ranking_of(
        graph,
        "betweenness",
        sample.counts.astype(np.float64) * (scale / max(sample.paths, 1)),
        iterations=sample.paths,
        note=sample_note(f"{sample.paths:,} shortest paths", confidence, error),
        parameters={
            "k": None,
            "epsilon": epsilon,
            "normalized": normalized,
            "endpoints": endpoints,
            "confidence": confidence,
            "seed": seed,
            "max_error": error,
            "paths": sample.paths,
            "scale": scale,
            "constant": sample.constant,
        },
    )


def check_sample(n: int, k: int | None) -> None:
    """Refuse a sample of more than n nodes.

    Raises
    ------
    inlink.errors.ParameterError
        If ``k`` is above n.
    """
    replace(parameters_of(betweenness)["k"], at_most=max(n, 1)).check(k, "`k`")


def sample_note(what: str, confidence: float, error: float) -> str:
    """Return the note of a ranking that was estimated from a sample."""
    return f"from {what}: with confidence {confidence:g} no value is off by more than {error:.2g}"


def rounding(graph: Graph) -> float:
    """Return a bound on the relative rounding error of a sum of dependencies; see the module."""
    return (3 * graph.num_arcs + 4 * graph.num_nodes + 30) * ROUNDOFF


def dependency_sums(
    graph: Graph,
    sources: UInt32Array,
    shares: Float64Array | None,
    endpoints: bool,
    squares: bool,
    threads: int | None,
    label: str,
) -> "DependencySums":
    """Return the sum of the dependencies on each node. Sources are weighted by ``shares``, or by 1."""
    from inlink.base.jit import num_threads
    from inlink.rank.kernels.betweenness import (
        LANES,
        PIECE,
        UNSEEN,
        DependencySums,
        ManyPathSearch,
        PathSearch,
        dependencies,
        dependencies_of_many_paths,
    )
    from inlink.rank.kernels.blocks import each_block

    require_vectors(graph, **VECTORS["betweenness"], threads=threads)
    n, rows = graph.num_nodes, graph.out_rows
    lanes = int(LANES)
    size = min(max(STRETCH // max(n + graph.num_arcs, 1) // lanes, 1), 32) * lanes
    shares = np.ones(len(sources)) if shares is None else shares

    def scratch() -> PathSearch:
        paths, behind = aligned(n * lanes, np.float64), aligned(n * lanes, np.float64)
        queue, reached = np.empty(n * lanes + 1, np.uint32), np.empty(n * lanes + 1, np.uint8)
        ends, part, near = np.empty(n + 2, np.uint64), np.empty(lanes), np.empty(int(PIECE), np.uint32)
        return PathSearch(np.zeros(n, np.uint16), paths, behind, queue, reached, ends, part, near)

    def work(own: PathSearch, block: int) -> DependencySums:
        part = slice(block * size, (block + 1) * size)
        sums = DependencySums(np.zeros(n), np.zeros(n if squares else 0))
        given = rows.offsets, rows.nodes, sources[part], shares[part], endpoints
        if not dependencies(*given, own, sums):
            for array in (own.marks, *sums):
                array[:] = 0
            paths, behind = np.empty(n), np.zeros(n)
            depths, powers, queue = np.full(n, UNSEEN), np.empty(n, np.uint32), np.empty(n, np.uint32)
            dependencies_of_many_paths(*given, ManyPathSearch(depths, paths, powers, behind, queue), sums)
        return sums

    result = DependencySums(np.zeros(n), np.zeros(n if squares else 0))
    with track(label, len(sources), "sources") as task:
        for sums in each_block(-(-len(sources) // size), num_threads(threads), scratch, work):
            result.total[:] += sums.total
            result.squares[:] += sums.squares
            task.advance(size)
    return result


def _sampling_error(
    graph: Graph, sums: "DependencySums", k: int, size: int, endpoints: bool, confidence: float
) -> float:
    """Return a bound, with a confidence, on the error of a sum of dependencies on k of ``size`` sources."""
    ends = 1 if endpoints else 2
    open_ = np.full(graph.num_nodes, True) if endpoints else (graph.indegrees > 0) & (graph.outdegrees > 0)
    nodes = np.count_nonzero(open_)
    if nodes == 0:
        return 0.0
    label = components(graph.out_rows)
    most = np.maximum(np.bincount(label)[label][open_] - float(ends), 0)
    # the error probability of each of the two inequalities
    wrong = (1 - confidence) / 2
    left, right = 1 - (k - 1) / size, (1 - k / size) * (1 + 1 / k)
    hoeffding = most * math.sqrt(min(left, right) * math.log(2 * nodes / wrong) / (2 * k))
    log = math.log(10 * nodes / wrong)
    variance = np.maximum(sums.squares[open_] / k - (sums.total[open_] / k) ** 2, 0)
    bernstein = np.sqrt(variance * (2 * (left if 2 * k <= size else right) * log / k))
    bernstein += (7 / 3 + 3 / math.sqrt(2)) * most * log / k
    return k * float(np.minimum(hoeffding, bernstein).max())
