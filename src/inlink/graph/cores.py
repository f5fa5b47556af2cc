"""The core number of each node: the largest k such that the node is in the k-core."""

from itertools import pairwise

import numpy as np

from inlink.base.arrays import UInt32Array
from inlink.base.jit import chunks_by_arcs
from inlink.base.memory import require_memory
from inlink.base.progress import track
from inlink.graph.rows import Rows, SplitRows, row_places

# The number of arcs after which Ctrl-C is handled.
_ARCS = 1 << 24


def core_numbers(rows: Rows, inlinks: SplitRows) -> UInt32Array:
    """Return the core number of each node, uint32[n].

    The k-core is the largest set of nodes that each have at least k neighbours in the set. Directions are ignored: two
    nodes that link to each other are one pair of neighbours, and self-loops do not count. So the numbers are those of
    NetworkX, igraph and NetworKit for the undirected graph without repeated edges and self-loops. For a directed graph,
    ``networkx.core_number`` and igraph's ``coreness`` count links in both directions as two neighbours instead.

    Memory: 20 bytes a node. The rows of both directions are read twice, the second time in random order.

    Parameters
    ----------
    rows : Rows
        The outlinks.
    inlinks : SplitRows
        The inlinks.

    References
    ----------
    Batagelj & Zaveršnik, "An O(m) algorithm for cores decomposition of networks", 2003, arXiv:cs/0310049.
    """
    from inlink.graph.kernels.cores import BothRows, Peeling, degrees_without_directions, peel, sort_by_degree

    n = len(rows.offsets) - 1
    require_memory(20 * n, f"cores of {n:,} nodes")
    places = row_places(inlinks.linking, n) if len(inlinks.linking) else np.empty(0, np.uint32)
    both = BothRows(rows.offsets, rows.nodes, inlinks.offsets, inlinks.nodes, inlinks.linking, places)
    degrees = np.empty(n, np.uint32)
    largest = 0
    with track("cores", 2 * n, "nodes") as task:
        bounds = chunks_by_arcs(rows.offsets, 1 + len(rows.nodes) // _ARCS)
        for low, high in pairwise(bounds):
            largest = max(largest, int(degrees_without_directions(both, low, high, degrees)))
            task.advance(int(high - low))
        order, position = (np.empty(n, np.uint32) for _ in range(2))
        peeling = Peeling(degrees, order, position, np.zeros(largest + 1, np.uint32))
        sort_by_degree(peeling)
        done = 0
        while done < n:
            before, done = done, int(peel(both, peeling, np.uint64(done), np.uint64(_ARCS)))
            task.advance(done - before)
    return degrees
