"""Connected components, and the nodes that can be reached from others."""

from collections.abc import Iterable

import numpy as np

from inlink.base.arrays import BoolArray, UInt32Array
from inlink.base.memory import require_memory
from inlink.graph.rows import Rows


def components(rows: Rows, *, strong: bool = False) -> UInt32Array:
    """Return for each node a representative node of its component, uint32[n]: the same for the whole component.

    Parameters
    ----------
    rows : Rows
        The outlinks.
    strong : bool
        Strongly connected components, in which each node reaches all others along arcs. False: weakly connected
        components, which ignore the direction of arcs. Then the representative is the component's first node.

    References
    ----------
    Weak: union-find. Strong: Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1972.
    """
    from inlink.graph.kernels.walks import strong_components, weak_components

    nodes = len(rows.offsets) - 1
    require_memory(24 * nodes, f"components of {nodes:,} nodes")
    label = np.empty(nodes, np.uint32)
    search = strong_components if strong else weak_components
    search(rows.offsets, rows.nodes, label)
    return label


def largest_component(rows: Rows, *, strong: bool = False) -> BoolArray:
    """Return a mask of the nodes in the largest component, bool[n].

    If several components are equally large, it is the one with the first node.
    """
    label = components(rows, strong=strong)
    if len(label) == 0:
        return np.zeros(0, np.bool_)
    sizes = np.bincount(label, minlength=len(label))
    # The first node of a largest component.
    first = int(np.argmax(sizes[label] == sizes.max()))
    same: BoolArray = label == label[first]
    return same


def reachable(rows: Rows, sources: Iterable[int]) -> BoolArray:
    """Return a mask of the nodes that can be reached from ``sources`` along outlinks, bool[n], sources included.

    The sources are numbers of nodes that exist: loops check no bounds.
    """
    from inlink.graph.kernels.walks import reach

    nodes = len(rows.offsets) - 1
    require_memory(5 * nodes, f"a search of {nodes:,} nodes")
    seen = np.zeros(nodes, np.bool_)
    for source in sources:
        seen[source] = True
    first = np.flatnonzero(seen).astype(np.uint32)
    queue = np.empty(nodes, np.uint32)
    queue[: len(first)] = first
    reach(rows.offsets, rows.nodes, queue, np.uint64(len(first)), seen)
    return seen
