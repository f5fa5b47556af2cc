"""Find the nodes with the greatest closeness or harmonic centrality exactly, without a whole search from each node.

When all nodes within t steps of v are counted, the other nodes are at least t + 1 steps away. There are at most as many
of them as :func:`inlink.graph.components.reach_bounds` says, and at most as many at t + 1 steps as arcs lead to the
nodes at t steps. So both centralities of v have an upper bound long before the search from v ends. It need not go on
once the bound is below the k-th greatest exact value: Bergamini, Borassi, Crescenzi, Marino & Meyerhenke, "Computing
top-k closeness centrality faster in unweighted graphs", TKDD 2019.

There, one search after the other begins with the most promising node, and ends at its own bound. Here 512 searches run
at once (:mod:`inlink.rank.kernels.paths`), so all end after the same number of steps: 2 at first, and 2 more in each
round for the nodes whose bounds are not low enough.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from inlink.base.arrays import Float64Array, Int64Array
from inlink.base.jit import num_threads
from inlink.base.progress import track
from inlink.graph.components import reach_bounds
from inlink.graph.graph import Graph
from inlink.rank.certain import best_nodes
from inlink.rank.inputs import require_vectors
from inlink.rank.kernels.blocks import each_block
from inlink.rank.kernels.paths import SOURCES, WORDS, DistanceSearch, SourceSums, distances_around, unit_of
from inlink.rank.ranking import ROUNDOFF

_Values: TypeAlias = Callable[[Float64Array, Float64Array], Float64Array]

_ALL = (1 << 32) - 1
# Search to the end if the last round followed this share of the arcs of a whole search, or if so few nodes are left.
_SHARE = 0.25
_FEW = 2048
# The rounding errors of a bound are smaller than this increase.
_RAISED = 1 + 2.0**-40


def best_values(
    graph: Graph,
    label: str,
    top: int,
    values_of: _Values,
    *,
    inwards: bool,
    inverse: bool,
    threads: int | None,
) -> tuple[Float64Array, float]:
    """Return the exact values of the best nodes, and upper bounds for the other nodes.

    Parameters
    ----------
    graph : Graph
        The graph.
    label : str
        Label of the progress display.
    top : int
        The number of best nodes. All nodes that have the value of the last one are exact too.
    values_of : callable
        The centralities, from sums of distances (or of inverse distances) and numbers of nodes: closeness or
        harmonic centrality.
    inwards : bool
        Whether distances to each node count, or from it.
    inverse : bool
        Whether `values_of` takes sums of inverse distances.
    threads : int or None
        None uses all processors. The result has the same bits with any number of threads.

    Returns
    -------
    values : float64[n]
        Each upper bound is below the values of all the best nodes.
    error : float
        The largest rounding error of an exact value.
    """
    balls = _Balls(graph, label, inwards, inverse, threads)
    blocks = -(-top // SOURCES)
    promising = best_nodes(balls.bounds(values_of), blocks * SOURCES)
    whole = balls.search(np.sort(promising), _ALL) / blocks
    steps, part = 0, 0.0
    while True:
        values, exact = balls.bounds(values_of), balls.further == 0
        least = values[exact][best_nodes(values[exact], top)[-1:]].min(initial=np.inf)
        left = np.flatnonzero(~exact & (values >= least))
        if not len(left):
            rounding = len(values) / (2 * float(balls.unit)) if inverse else 0.0
            return values, rounding + 5 * ROUNDOFF * float(values.max(initial=0))
        steps += 2
        few = len(left) <= _FEW or part > _SHARE * whole
        part = balls.search(left, _ALL if few else steps) / -(-len(left) // SOURCES)


class _Balls:
    """The numbers of nodes near each node, and the sums of their distances.

    Attributes
    ----------
    sums, reached : float64[n]
        The sum of the distances, or of the inverse distances, to the nodes that were reached, and their number.
    further : float64[n]
        The number of arcs that lead further. If it is 0, the other two are final.
    steps : float64[n]
        The number of steps.
    """

    def __init__(self, graph: Graph, label: str, inwards: bool, inverse: bool, threads: int | None) -> None:
        n = graph.num_nodes
        self.threads = num_threads(threads)
        require_vectors(graph, node=140 + (12 + 24 * WORDS) * self.threads)
        self.rows = graph.in_rows if inwards else graph.out_rows
        self.label, self.inverse, self.unit = label, inverse, unit_of(n)
        self.most = reach_bounds(self.rows).astype(np.float64)
        self.sums, self.reached, self.steps = np.zeros((3, n))
        self.further = np.diff(self.rows.offsets).astype(np.float64)

    def search(self, sources: Int64Array, limit: int) -> int:
        """Count the nodes within ``limit`` steps of the sources. Return the number of arcs that were followed."""
        rows, n, nodes = self.rows, len(self.sums), sources.astype(np.uint32)

        def scratch() -> DistanceSearch:
            return DistanceSearch(np.zeros((3, n, WORDS), np.uint64), *np.empty((3, n), np.uint32))

        def work(own: DistanceSearch, block: int) -> tuple[int, int]:
            part = nodes[block * SOURCES : (block + 1) * SOURCES]
            around = SourceSums(*np.empty((4, len(part)), np.uint64))
            arcs = distances_around(rows.offsets, rows.nodes, part, np.uint64(limit), own, around, self.unit)
            self.sums[part] = around.inverse / float(self.unit) if self.inverse else around.far
            self.reached[part], self.further[part], self.steps[part] = around.reached, around.further, limit
            return len(part), int(arcs)

        followed = 0
        with track(self.label, len(nodes), "sources") as task:
            for done, arcs in each_block(-(-len(nodes) // SOURCES), self.threads, scratch, work):
                task.advance(done)
                followed += arcs
        return followed

    def bounds(self, values_of: _Values) -> Float64Array:
        """Return the exact value of each node whose search has ended, and an upper bound for each other node.

        Let r nodes be reached in all. The sum is best if as many as possible are at the next step, and the others at
        the one after it. Of the bounds for all possible r, the greatest is at an end of the two ranges of r in which
        the bound is a quotient of a square, or of r itself, and a linear function of r.
        """
        exact = self.further == 0
        most = np.where(exact, self.reached, self.most)
        bounds = np.zeros(len(most))
        next_step = np.minimum(self.further, most - self.reached)
        for count in (self.reached, self.reached + next_step, most):
            near = np.minimum(count - self.reached, next_step)
            far = count - self.reached - near
            if self.inverse:
                more = near / (self.steps + 1) + far / (self.steps + 2)
            else:
                more = near * (self.steps + 1) + far * (self.steps + 2)
            bounds = np.maximum(bounds, values_of(self.sums + more, count))
        rounding = len(most) / (2 * float(self.unit)) if self.inverse else 0.0
        return np.where(exact, bounds, bounds * _RAISED + rounding)
