"""The loops of SALSA: components of pages that are cited together, and sums over each component."""

from numpy import uint64

from inlink.base.arrays import Float64Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, kernel
from inlink.graph.kernels.walks import begin_union, finish_union, join
from inlink.rank.kernels.gather import add_compensated

__all__ = ["cited_together", "component_sums"]


@kernel
def cited_together(offsets: UInt64Array, nodes: UInt32Array, root: UInt32Array) -> None:
    """Write to ``root``, for each node, the least node of its component if the nodes of each row are joined.

    A row's nodes are joined one after the other, so that there are as many steps as arcs.
    """
    begin_union(root)
    for i in range(U0, uint64(len(root))):
        for k in range(offsets[i] + U1, offsets[i + U1]):
            join(root, uint64(nodes[k - U1]), uint64(nodes[k]))
    finish_union(root)


@kernel
def component_sums(label: UInt32Array, values: Float64Array, sums: Float64Array, lost: Float64Array) -> None:
    """Add each values[i] ≥ 0 to sums[label[i]], compensated: exact to two roundings.

    ``sums`` and ``lost`` must be 0; ``lost`` is work space.
    """
    for i in range(U0, uint64(len(label))):
        c = uint64(label[i])
        sums[c], lost[c] = add_compensated(sums[c], lost[c], values[i])
    for i in range(U0, uint64(len(sums))):
        sums[i] += lost[i]
