"""Estimate betweenness from random shortest paths, with intervals that hold for all nodes together.

Let S be the nodes with outlinks, T those with inlinks, and P = |S|·|T| − |S ∩ T| the number of pairs (s, t) with s in
S, t in T and s ≠ t. Other pairs have no path. A pair is drawn at random, and then one of its shortest paths, each with
the same probability. If no path leads from s to t, the trial still counts. A node v lies inside this path with
probability ::

    b(v) = 1/P · Σ σ_st(v)/σ_st,    betweenness(v) = P·b(v), divided by (n − 1)(n − 2) if normalized            (1)

so the share of sampled paths through v, times a known factor, estimates its betweenness.

**Plain form.** Riondato & Kornaropoulos, "Fast approximation of betweenness centrality through sampling", Data Mining
and Knowledge Discovery 2016, take a fixed number of paths ::

    ω = c/ε² · (⌊log₂(VD − 2)⌋ + 1 + ln(1/δ))                                                              (2)

for an error of at most ε at all nodes with probability 1 − δ. VD is the number of nodes on the longest shortest path.
The constant c = 1/2 was estimated by experiments (Löffler & Phillips 2009), so (2) is not proven with it.

**Adaptive form.** KADABRA (Borassi & Natale, ESA 2016; ACM JEA 2019) stops after τ ≤ ω paths once f and g are at most ε
at each node, where b̂ is the share of paths through it and L = ln(1/δ_v) ::

    f = (L/τ)(1/3 − ω/τ + √((1/3 − ω/τ)² + 2b̂ω/L)),    g = (L/τ)(1/3 + ω/τ + √((1/3 + ω/τ)² + 2b̂ω/L))    (3)

The δ_v come from paths that are not used otherwise, and have a sum of at most δ/2. The other δ/2 is for (2), with
ln(2/δ). (3) holds at any time before ω. The price is that its width at τ contains the variance of ω paths.

**The method of this module.** The numbers of paths after which the counts are looked at are fixed beforehand. Each is a
factor times the one before. At each look, all nodes get the intervals of :mod:`inlink.rank.intervals`. These use
Σ_v b(v) ≤ ρ, where ρ is the largest number of nodes inside a shortest path. Sampling stops when no interval ends more
than ε from its estimate. The last planned number suffices for any graph. It is about (1/2ε²)·ln(4rρ/δ), with r looks.
Neither (2) nor a first phase is needed, and all constants are proven. Only the logarithm of ρ counts, so a rough bound
is enough:

**A bound on the length of shortest paths.** A path passes through strongly connected components in the order of their
condensation, which has no cycles. Within a component it has at most as many arcs as lead from the farthest node to a
fixed node and from there to the farthest node, and fewer than the component has nodes. The largest sum along the
condensation is a bound, in O(n + m).
"""

from typing import NamedTuple

import numpy as np

from inlink.base.arrays import aligned
from inlink.base.progress import track
from inlink.errors import ParameterError
from inlink.graph.components import ordered_components
from inlink.graph.graph import Graph
from inlink.rank.inputs import VECTORS, require_vectors
from inlink.rank.intervals import intervals, planned_trials

__all__ = ["PathSample", "path_length_bound", "path_sample"]

# The number of paths in a block, times the number of arcs and nodes of the graph. Most searches visit a small part of
# the graph, so a block takes a few hundredths of a second. Ctrl-C waits for its end.
_STRETCH = 1 << 27
_BLOCK = 4096
# Each thread counts the paths through a node in 32 bits.
_MOST_PATHS = (1 << 32) - 1


class PathSample(NamedTuple):
    """A sample of random shortest paths: the number of paths through each node, and what its intervals need.

    Attributes
    ----------
    counts : int64[n]
        The number of paths through each node.
    paths : int
        The number of pairs that were drawn.
    pairs : int
        P, the number of pairs to draw from.
    constant : float
        C of the intervals of :mod:`inlink.rank.intervals`.
    width : float
        The largest distance between a share of paths and an end of its interval.
    """

    counts: np.ndarray[tuple[int], np.dtype[np.int64]]
    paths: int
    pairs: int
    constant: float
    width: float


def path_length_bound(graph: Graph) -> int:
    """Return a number of arcs that no shortest path exceeds, as the module describes; 0 for a graph without arcs."""
    from inlink.rank.kernels.pathsampling import farthest_within, longest_chain

    require_vectors(graph, node=44)
    label, order = ordered_components(graph.out_rows)
    inside = np.zeros(graph.num_nodes, np.uint32)
    for rows in (graph.out_rows, graph.in_rows):
        farthest_within(rows.offsets, rows.nodes, label, inside)
    sizes = np.bincount(label, minlength=graph.num_nodes)
    np.minimum(inside, np.maximum(sizes - 1, 0), out=inside, casting="unsafe")
    return int(longest_chain(graph.out_rows.offsets, graph.out_rows.nodes, label, order, inside))


def path_sample(
    graph: Graph,
    epsilon: float,
    endpoints: bool,
    confidence: float,
    seed: int,
    threads: int | None,
) -> PathSample:
    """Draw shortest paths until the share of paths through each node is known well enough.

    Parameters
    ----------
    graph : Graph
        The graph.
    epsilon : float
        The largest error of Σ σ_st(v)/σ_st, in parts of the n(n − 1) pairs with ``endpoints``, else (n − 1)(n − 2).
    endpoints : bool
        Whether a path counts for its ends too.
    confidence : float
        1 − δ.
    seed : int
        Seed of the random numbers.
    threads : int or None
        None uses all processors. The result does not depend on it.

    Raises
    ------
    inlink.errors.ParameterError
        If more paths may be needed than can be counted.
    """
    from inlink.base.jit import num_threads
    from inlink.rank.kernels.blocks import each_block
    from inlink.rank.kernels.pathsampling import PairSearch, sample_paths

    n = graph.num_nodes
    require_vectors(graph, **VECTORS["betweenness, sampled"], threads=threads)
    sources = np.flatnonzero(graph.outdegrees).astype(np.uint32)
    targets = np.flatnonzero(graph.indegrees).astype(np.uint32)
    pairs = len(sources) * len(targets) - len(np.intersect1d(sources, targets, assume_unique=True))
    longest = path_length_bound(graph) if pairs else 0
    most = longest + 1 if endpoints else longest - 1
    if longest == 0 or most <= 0:
        # No path has a node that would be counted.
        return PathSample(np.zeros(n, np.int64), 0, pairs, 1.0, 0.0)
    others = n * (n - 1) if endpoints else (n - 1) * (n - 2)
    width = min(epsilon * others / pairs, 0.5)
    odds = 2 * most / (1 - confidence)
    looks = planned_trials(width, odds)
    if looks[-1] > _MOST_PATHS:
        raise ParameterError(
            f"`epsilon` {epsilon:g} may need {looks[-1]:,} paths on this graph, and at most {_MOST_PATHS:,} are "
            "counted: choose a larger one, or leave it out for exact values"
        )
    constant = len(looks) * odds
    key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    out, into = graph.out_rows, graph.in_rows
    rows = out.offsets, out.nodes, into.offsets, into.nodes
    size = min(max(_STRETCH // (n + graph.num_arcs), 4), _BLOCK)
    spaces: list[PairSearch] = []
    idle: list[PairSearch] = []

    def scratch() -> PairSearch:
        try:
            return idle.pop()
        except IndexError:
            space = PairSearch(
                np.zeros(n, np.uint32), aligned(n, np.float64), np.empty(n, np.uint32), np.zeros(n, np.uint32)
            )
            spaces.append(space)
            return space

    counts, done, furthest = np.zeros(n, np.int64), 0, 0.0
    with track("betweenness", looks[-1], "paths at most") as task:
        for look in looks:

            def work(own: PairSearch, block: int, begin: int = done, end: int = look) -> int:
                first = begin + block * size
                last = min(first + size, end)
                sample_paths(*rows, sources, targets, key, np.uint64(first), np.uint64(last), endpoints, own)
                return last - first

            idle[:] = spaces
            for drawn in each_block(-(-(look - done) // size), num_threads(threads), scratch, work):
                task.advance(drawn, f"error {furthest:.2g}" if furthest else "")
            done = look
            counts = np.zeros(n, np.int64)
            for space in spaces:
                counts += space.counts
            furthest = _furthest(counts, done, constant)
            if furthest <= width:
                break
    return PathSample(counts, done, pairs, constant, furthest)


def _furthest(counts: np.ndarray[tuple[int], np.dtype[np.int64]], paths: int, constant: float) -> float:
    """Return the largest distance between a share and an end of its interval."""
    different = np.flatnonzero(np.bincount(counts))
    low, high = intervals(different, paths, constant)
    share = different / paths
    return float(np.maximum(share - low, high - share).max())
