"""The loops of SALSA: which pages are cited together, and sums over such a component."""

import numpy as np
import numpy.typing as npt

from inlink.base.jit import U0, U1, kernel

__all__ = ["cited_together", "component_sums"]

F8 = npt.NDArray[np.float64]
U8 = npt.NDArray[np.uint64]
U4 = npt.NDArray[np.uint32]


@kernel
def cited_together(offsets: U8, nodes: U4, root: U4) -> None:
    """Give each node the least node that it is joined with, where the nodes of each row are joined.

    Union-find with path halving. A row's nodes are joined one after the other, so that it takes as many steps as there
    are arcs.
    """
    n = np.uint64(len(root))
    for i in range(U0, n):
        root[i] = np.uint32(i)
    for i in range(U0, n):
        if offsets[i] == offsets[i + U1]:
            continue
        a = np.uint64(nodes[offsets[i]])
        for k in range(offsets[i], offsets[i + U1]):
            b = np.uint64(nodes[k])
            while np.uint64(root[a]) != a:
                root[a] = root[np.uint64(root[a])]
                a = np.uint64(root[a])
            while np.uint64(root[b]) != b:
                root[b] = root[np.uint64(root[b])]
                b = np.uint64(root[b])
            if a < b:
                root[b] = np.uint32(a)
            elif b < a:
                root[a] = np.uint32(b)
    for i in range(U0, n):  # a root is the least of its component, so the ones before i are final
        root[i] = root[np.uint64(root[i])]


@kernel
def component_sums(label: U4, values: F8, sums: F8, lost: F8) -> None:
    """Add to sums[label[i]] each values[i] ≥ 0, compensated (Neumaier 1974): exact to two roundings.

    ``sums`` and ``lost`` are 0 before; ``lost`` is work space.
    """
    for i in range(U0, np.uint64(len(label))):
        c = np.uint64(label[i])
        total, value = sums[c], values[i]
        raised = total + value
        lost[c] += (total - raised) + value if total >= value else (value - raised) + total
        sums[c] = raised
    for i in range(U0, np.uint64(len(sums))):
        sums[i] += lost[i]
