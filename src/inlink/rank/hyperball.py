"""Sums over the distances to each node, estimated by HyperBall; for harmonic and closeness centrality.

Let B(v, t) be the number of nodes within t steps of v, with v ::

    Σ_{u ≠ v} 1 / d(u, v) = Σ_{t ≥ 1} (B(v, t) − B(v, t − 1)) / t                                          (1)
    Σ_{u ≠ v} d(u, v)     = Σ_{t ≥ 1} (B(v, t) − B(v, t − 1)) · t                                          (2)

B(v, 0) and B(v, 1) are known. The others are estimated by counters of m = 2^log2m registers
(:mod:`inlink.rank.kernels.hyperball`). The relative standard error of a size is 1.06/√m, and that of (1) is at most
this (Boldi & Vigna, "In-core computation of geometric centralities with HyperBall", 2013, section 5).
This is no bound: an estimate may be off by any amount. All balls of a run share their hashes, and large balls are
largely the same, so the errors of a run have mostly the same sign and hardly change the order. Runs with other hashes
have independent errors: the mean of r runs has 1/√r of the error, and the spread of the runs shows it.

Memory: 2m bytes for each node that has inlinks and outlinks, m for a node without outlinks but with more than 32
inlinks, and 20 bytes for each node; 16 more with several runs, and 8 more if inlinks are split. With
``direction="out"`` inlinks and outlinks change places. Rows are read as they are stored, and are not copied. The
results have the same bits with any number of threads.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from inlink.base.arrays import AnyArray, Float64Array, UInt8Array, UInt32Array, aligned
from inlink.base.jit import chunks_by_arcs, num_threads
from inlink.base.memory import require_memory
from inlink.base.progress import track
from inlink.graph.rows import Rows, SplitRows, nodes_at_places, row_places
from inlink.rank.kernels.blocks import each_block
from inlink.rank.kernels.hyperball import (
    LONG,
    NONE,
    Balls,
    Counting,
    Numbering,
    Readers,
    few_steps,
    first_step,
    next_step,
)

STANDARD_ERROR = 1.06
"""√m times the relative standard error of a ball's size, for m of at least 64 (Flajolet et al. 2007, theorem 1)."""

# Arcs between two looks at Ctrl-C.
_ARCS = 1 << 24


class Sums(NamedTuple):
    """The result of a run.

    Attributes
    ----------
    sums : float64[n]
        (1) or (2) for each node.
    reached : float64[n]
        The number of other nodes that reach each node.
    steps : int
        The number of steps until nothing changed.
    pairs : float64[steps + 1]
        The sum of the sizes of all balls after each step: the number of pairs of nodes that are at most that many steps
        apart, including the n pairs of a node with itself. It is exact for 0 and 1 steps.
    """

    sums: Float64Array
    reached: Float64Array
    steps: int
    pairs: Float64Array


class HyperBall:
    """The balls of a graph, and the room for their counters. Runs use the room one after the other.

    Parameters
    ----------
    rows : Rows or SplitRows
        The row of v holds the neighbours whose balls v takes over: inlinks for distances to v.
    readers : Rows or SplitRows
        The rows of the reversed arcs. At most one of the two is split.
    log2m : int
        Log₂ of the number of registers of a counter, from 4 to 16.
    threads : int or None
        None uses all processors.
    few : int or None
        A step goes from the nodes that changed to their readers, instead of over all rows, if at most this number of
        arcs lead to readers. None is n / 8 + 64.
    """

    def __init__(
        self,
        rows: Rows | SplitRows,
        readers: Rows | SplitRows,
        log2m: int,
        threads: int | None = None,
        few: int | None = None,
    ) -> None:
        self._rows, self._readers = rows, readers
        self._numbering = _numbering(rows, readers)
        self._threads = num_threads(threads)
        self._log2m = log2m
        lengths, read = np.diff(rows.offsets), np.diff(readers.offsets) > 0
        if len(self._numbering.reading_of):
            read = read[self._numbering.reading_of]
        self._slots: UInt32Array = np.full(len(lengths), NONE, np.uint32)
        inner, ends = (lengths > 0) & read, (lengths > LONG) & ~read
        pairs, single = int(inner.sum()), int(ends.sum())
        self._slots[inner] = np.arange(pairs, dtype=np.uint32)
        self._slots[ends] = np.arange(pairs, pairs + single, dtype=np.uint32)
        m = 1 << log2m
        require_memory((2 * pairs + single) * m, f"counters of {pairs + single:,} nodes")
        self._counters = [aligned(pairs * m, np.uint8) for _ in range(2)]
        self._ends = np.empty(single * m, np.uint8)
        self._flags = [np.zeros(-(-len(lengths) // 64), np.uint64) for _ in range(2)]
        self._few = len(lengths) // 8 + 64 if few is None else few

    def run(self, key: int, *, inverse: bool, label: str) -> Sums:
        """Do the steps until no counter changes.

        Parameters
        ----------
        key : int
            Chooses the hashes; at least 0 and below 2⁶⁴.
        inverse : bool
            True: sum the inverse distances, (1). False: sum the distances, (2).
        label : str
            Label of the progress display.
        """
        n, m = len(self._slots), 1 << self._log2m
        sums, sizes = np.empty(n), np.empty(n, np.float32)
        (now, next_), (changed, fresh) = self._counters, self._flags
        balls = Balls(self._slots, now, next_, self._ends, changed, fresh, sums, sizes)
        scale = 0.7213 / (1 + 1.079 / m) * m * m
        empty = np.array([m * _sigma(zeros / m) for zeros in range(m + 1)])
        counting = Counting(np.uint64(key), np.uint64(64 - self._log2m), scale, empty, inverse)
        with track(label, None, "steps") as task:
            count, arcs, balls = self._sweep(1, balls, counting)
            step, pairs = 2, [np.array([n, sizes.sum(dtype=np.float64)])]
            few: Readers | None = None
            task.advance(1)
            while count:
                before = step
                if arcs > self._few:
                    few = None
                    count, arcs, balls = self._sweep(step, balls, counting)
                    step += 1
                    pairs.append(np.array([sizes.sum(dtype=np.float64)]))
                else:
                    few = few or self._readers_of(balls)
                    gains = np.empty((_ARCS >> 6) + 1)
                    step, count, arcs, balls = self._follow(step, count, balls, counting, few, gains)
                    pairs.append(pairs[-1][-1] + np.cumsum(gains[: step - before]))
                task.advance(step - before)
        reached = np.maximum(self._by_node(sizes).astype(np.float64) - 1, 0)
        return Sums(self._by_node(sums), reached, step - 1, np.concatenate(pairs))

    def _by_node(self, values: AnyArray) -> AnyArray:
        """Return values that are by index in the order of the nodes."""
        return values[self._numbering.index_of] if len(self._numbering.node_of) else values

    def _sweep(self, step: int, balls: Balls, counting: Counting) -> tuple[int, int, Balls]:
        """Do a step over all rows. Return the number of changed balls, of arcs to their readers, and the new state."""
        offsets, nodes = self._rows.offsets, self._rows.nodes
        blocks = 1 + len(nodes) // _ARCS
        bounds = chunks_by_arcs(offsets, max(blocks, 4 * self._threads if self._threads > 1 else 1))
        # Chunks begin at multiples of 64, so that two threads never write to the same word of marks.
        bounds[1:-1] &= ~np.uint64(63)

        def scratch() -> UInt8Array:
            return np.empty(1 << self._log2m, np.uint8)

        def work(own: UInt8Array, block: int) -> tuple[int, int]:
            low, high = bounds[block], bounds[block + 1]
            rows = offsets, nodes, self._readers.offsets, self._numbering, low, high
            if step == 1:
                count, arcs = first_step(*rows, balls, counting)
            else:
                count, arcs = next_step(*rows, np.uint64(step), balls, counting, own)
            return int(count), int(arcs)

        done = list(each_block(len(bounds) - 1, self._threads, scratch, work))
        if step > 1:
            balls = balls._replace(now=balls.next, next=balls.now, changed=balls.fresh, fresh=balls.changed)
        return sum(count for count, _ in done), sum(arcs for _, arcs in done), balls

    def _follow(
        self, step: int, count: int, balls: Balls, counting: Counting, few: Readers, gains: Float64Array
    ) -> tuple[int, int, int, Balls]:
        """Do steps from node to node. Return the number of the next step, and what :meth:`_sweep` returns.

        The growth of all balls in each step is written to ``gains``.
        """
        state = np.uint64(step), np.uint64(count), np.uint64(_ARCS), balls, counting
        scratch = np.empty(1 << self._log2m, np.uint8)
        after, changed, arcs = few_steps(
            self._rows.offsets, self._rows.nodes, *state, scratch, self._numbering, few, gains
        )
        if (int(after) - step) % 2:
            balls = balls._replace(now=balls.next, next=balls.now)
        return int(after), int(changed), int(arcs), balls

    def _readers_of(self, balls: Balls) -> Readers:
        """Return work space with the indices of the balls that changed in the last step."""
        changed, reached = (np.empty(self._few, np.uint32) for _ in range(2))
        moved = np.flatnonzero(np.unpackbits(balls.changed.view(np.uint8), bitorder="little"))
        changed[: len(moved)] = moved
        seen = np.zeros(len(self._slots), np.bool_)
        return Readers(self._readers.offsets, self._readers.nodes, changed, reached, seen)


def _numbering(rows: Rows | SplitRows, readers: Rows | SplitRows) -> Numbering:
    """Return the numbers of nodes by index. Rows that are split are in the order of places."""
    none = np.empty(0, np.uint32)
    nodes = len(rows.offsets) - 1
    if isinstance(rows, SplitRows) and len(rows.linking):
        node_of = nodes_at_places(rows.linking, nodes)
        return Numbering(node_of, node_of, row_places(rows.linking, nodes))
    if isinstance(readers, SplitRows) and len(readers.linking):
        return Numbering(none, row_places(readers.linking, nodes), readers.linking)
    return Numbering(none, none, none)


def mean_of_runs(
    rows: Rows | SplitRows,
    readers: Rows | SplitRows,
    log2m: int,
    runs: int,
    seed: int,
    threads: int | None,
    values_of: Callable[[Float64Array, Float64Array], Float64Array],
    *,
    inverse: bool,
) -> tuple[Float64Array, float | None, int]:
    """Return the mean over several runs of a function of their sums.

    Parameters
    ----------
    rows, readers : Rows or SplitRows
        As in :class:`HyperBall`.
    log2m, runs, seed, threads
        As for :func:`inlink.rank.closeness.harmonic`. The first runs of a seed are the same for any number of runs.
    values_of : callable
        Computes the values, float64[n], from the sums, float64[n], and the numbers of other nodes that reach each node.
    inverse : bool
        True: the sums are those of the inverse distances, (1). False: those of the distances, (2).

    Returns
    -------
    values : float64[n]
        The mean.
    spread : float or None
        The standard error of the mean by the spread of the runs, relative to the value. It is the root of the mean
        square over the nodes whose value is not 0. None with one run.
    steps : int
        The largest number of steps of a run.
    """
    balls = HyperBall(rows, readers, log2m, threads)
    mean, squares, steps = np.zeros(0), np.zeros(0), 0
    label = "harmonic" if inverse else "closeness"
    for done, key in enumerate(np.random.SeedSequence(seed).generate_state(runs, np.uint64), 1):
        shown = label if runs == 1 else f"{label}, run {done} of {runs}"
        sums = balls.run(int(key), inverse=inverse, label=shown)
        steps = max(steps, sums.steps)
        values = values_of(sums.sums, sums.reached)
        if done == 1:
            mean, squares = values, np.zeros(len(values) if runs > 1 else 0)
            continue
        # Welford, "Note on a method for calculating corrected sums of squares and products", Technometrics 1962
        change = values - mean
        mean = mean + change / done
        squares += change * (values - mean)
    if runs == 1:
        return mean, None, steps
    nodes = max(int(np.count_nonzero(mean)), 1)
    relative = np.divide(squares, mean**2, out=np.zeros(len(mean)), where=mean > 0)
    return mean, math.sqrt(float(relative.sum()) / (nodes * (runs - 1) * runs)), steps


def _sigma(x: float) -> float:
    """Return x + Σ_{k ≥ 1} 2^(k − 1) · x^(2^k); see Ertl 2017, algorithm 4."""
    if x == 1:
        return math.inf
    total, factor = x, 1.0
    while True:
        x *= x
        before, total, factor = total, total + x * factor, 2 * factor
        if total == before:
            return total
