"""Sums along rows on a pool of threads: the product of the adjacency matrix, or its transpose, with a vector."""

from contextlib import ExitStack
from functools import partial

import numpy as np

from inlink.base.arrays import Float64Array
from inlink.base.threads import Threads
from inlink.graph.rows import Rows, SplitRows, node_bounds, unsplit
from inlink.rank.inputs import arc_weights

# With fewer arcs than this, threads cost more time than they save.
SMALL = 100_000


class RowSums(ExitStack):
    """The function y_i = Σ_k w_ik · x_k, summed along rows; a context manager.

    Each row is summed by one thread, in the row's order. So the result has the same bits with any number of threads.

    Parameters
    ----------
    rows : Rows or SplitRows
        Rows of n nodes.
    weighted : bool
        Whether to use the weights of the rows.
    threads : int or None
        None uses all processors.

    Raises
    ------
    inlink.errors.ParameterError
        If ``threads`` is below 1.
    """

    def __init__(self, rows: Rows | SplitRows, weighted: bool, threads: int | None) -> None:
        from inlink.base.jit import num_threads
        from inlink.rank.kernels.gather import Inlinks

        super().__init__()
        rows = rows if isinstance(rows, SplitRows) else unsplit(rows)
        self.rows = Inlinks(rows.offsets, rows.nodes, arc_weights(rows, weighted), rows.linking)
        count = num_threads(threads) if len(rows.nodes) >= SMALL else 1
        self.bounds = node_bounds(rows.offsets, rows.linking, 4 * count)
        self.pool = self.enter_context(Threads(count)) if count > 1 else None

    def __call__(self, x: Float64Array) -> Float64Array:
        """Return the sum of each row for the values x, float64[n]; the result is float64[n]."""
        from inlink.base.jit import on_threads
        from inlink.rank.kernels.gather import pull

        y = np.empty(len(x))
        sources = x[self.rows.linking] if len(self.rows.linking) else x
        on_threads(partial(pull, self.rows, sources, y), self.bounds, self.pool)
        return y
