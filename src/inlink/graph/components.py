"""Connected components, the nodes that can be reached from others, and the bow tie of a graph."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from inlink.base.arrays import BoolArray, UInt8Array, UInt32Array, UInt64Array
from inlink.base.memory import require_memory
from inlink.graph.rows import Rows, SplitRows, row_places

CORE, IN, OUT, TUBES, TENDRILS, DISCONNECTED = range(6)
"""The parts of a bow tie; see :func:`bow_tie`."""


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
    from inlink.graph.kernels.walks import weak_components

    if strong:
        return ordered_components(rows)[0]
    nodes = len(rows.offsets) - 1
    require_memory(4 * nodes, f"components of {nodes:,} nodes")
    label = np.empty(nodes, np.uint32)
    weak_components(rows.offsets, rows.nodes, label)
    return label


def ordered_components(rows: Rows) -> tuple[UInt32Array, UInt32Array]:
    """Return the labels of the strongly connected components, uint32[n], as :func:`components` does, and all nodes by
    components, uint32[n], each component after all that it reaches.
    """
    from inlink.graph.kernels.walks import strong_components

    nodes = len(rows.offsets) - 1
    require_memory(29 * nodes, f"components of {nodes:,} nodes")
    label, order = np.empty(nodes, np.uint32), np.empty(nodes, np.uint32)
    strong_components(rows.offsets, rows.nodes, label, order)
    return label, order


def reach_bounds(rows: Rows) -> UInt64Array:
    """Return an upper bound on the number of other nodes that each node reaches along these rows, uint64[n].

    All nodes that the largest strongly connected component reaches are counted exactly, once. Other nodes are counted
    for each path of components that leads to them, but at most as often as there are such nodes.

    References
    ----------
    Borassi, Crescenzi & Marino, "Fast and simple computation of top-k closeness centralities", arXiv:1507.01490, 2015.
    """
    from inlink.graph.kernels import walks

    label, order = ordered_components(rows)
    common = reachable(rows, np.flatnonzero(_largest(label)))
    require_memory(28 * len(label), f"bounds of {len(label):,} nodes")
    bounds = np.empty(len(label), np.uint64)
    walks.reach_bounds(rows.offsets, rows.nodes, label, order, common, bounds)
    return bounds - 1


def largest_component(rows: Rows, *, strong: bool = False) -> BoolArray:
    """Return a mask of the nodes in the largest component, bool[n].

    If several components are equally large, it is the one with the first node.
    """
    return _largest(components(rows, strong=strong))


def _largest(label: UInt32Array, counted: BoolArray | None = None) -> BoolArray:
    """A mask of the first component with the most nodes. If a mask ``counted`` is given, only its nodes count."""
    if len(label) == 0:
        return np.zeros(0, np.bool_)
    sizes = np.bincount(label if counted is None else label[counted], minlength=len(label))
    first = int(np.argmax(sizes[label] == sizes.max()))
    same: BoolArray = label == label[first]
    return same


def bow_tie(
    rows: Rows,
    inlinks: SplitRows,
    strong: UInt32Array,
    weak: UInt32Array,
    counted: BoolArray | None = None,
) -> UInt8Array:
    """Return the part of the bow tie to which each node belongs, uint8[n].

    :data:`CORE` is the largest strongly connected component. If several are equally large, it is the one with the first
    node. Nodes of :data:`IN` reach the core, and the core reaches nodes of :data:`OUT`. :data:`TUBES` lead from IN to
    OUT without passing through the core. :data:`TENDRILS` are the other nodes of the core's weakly connected component,
    and :data:`DISCONNECTED` are those of other components.

    Parameters
    ----------
    rows : Rows
        The outlinks.
    inlinks : SplitRows
        The inlinks.
    strong, weak : uint32[n]
        Representatives of the strongly and of the weakly connected components, by :func:`components`.
    counted : bool[n] or None
        The nodes that count for the size of a component; None: all.

    References
    ----------
    Broder et al., "Graph structure in the Web", Computer Networks 2000. There tendrils hang directly from IN or OUT,
    but those that are reported are the rest of the weakly connected component, as here.
    """
    core = _largest(strong, counted)
    parts = np.full(len(core), DISCONNECTED, np.uint8)
    if not len(core):
        return parts
    parts[weak == weak[np.argmax(core)]] = TENDRILS
    nodes = np.flatnonzero(core)
    out, into = reachable(rows, nodes), reaching(inlinks, nodes)
    tubes = reachable(rows, np.flatnonzero(into & ~core))
    tubes &= reaching(inlinks, np.flatnonzero(out & ~core))
    # The order matters: a node of IN or OUT may also be on a path from IN to OUT, and the core is in both.
    for part, mask in ((TUBES, tubes), (IN, into), (OUT, out), (CORE, core)):
        parts[mask] = part
    return parts


def reaching(inlinks: SplitRows, targets: Iterable[int]) -> BoolArray:
    """Return a mask of the nodes that reach ``targets``, bool[n], the targets included, as :func:`reachable`."""
    numbers = np.asarray(_numbers(targets), np.uint32)
    seen = reachable(Rows(inlinks.offsets, inlinks.nodes), inlinks.places(numbers))
    return seen[row_places(inlinks.linking, len(seen))] if len(inlinks.linking) else seen


def reachable(rows: Rows, sources: Iterable[int]) -> BoolArray:
    """Return a mask of the nodes that can be reached from ``sources`` along outlinks, bool[n], sources included.

    The sources are numbers of nodes that exist: loops check no bounds.
    """
    from inlink.graph.kernels.walks import reach

    nodes = len(rows.offsets) - 1
    require_memory(5 * nodes, f"a search of {nodes:,} nodes")
    seen = np.zeros(nodes, np.bool_)
    seen[_numbers(sources)] = True
    first = np.flatnonzero(seen).astype(np.uint32)
    queue = np.empty(nodes, np.uint32)
    queue[: len(first)] = first
    reach(rows.offsets, rows.nodes, queue, np.uint64(len(first)), seen)
    return seen


def _numbers(nodes: Iterable[int]) -> npt.NDArray[np.integer]:
    """Return node numbers as an array. An array is returned unchanged."""
    return nodes if isinstance(nodes, np.ndarray) else np.fromiter(nodes, np.int64)
