"""Batches of arcs, which sources hand to the builder of graphs.

A source iterates over :class:`ArcBatch`, and :func:`inlink.graph.build.build_graph` makes a graph of the batches. The
result does not depend on the order of the batches.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from inlink.base.arrays import Float64Array
from inlink.base.strings import Strings

Level = Literal["page", "host", "domain"]
"""The kinds of nodes that a graph can have."""


@dataclass(slots=True)
class ArcBatch:
    """A batch of arcs from ``sources[k]`` to ``targets[k]``.

    With ``names``, the ends are places in that array, so that a page with a hundred links has its own name only
    once: ``names = [page, link, link, …]``, ``sources = [0, 0, …]``, ``targets = [1, 2, …]``. A name may occur more
    than once. A name without an arc also becomes a node. Without ``names``, the ends are numbers of nodes.

    Attributes
    ----------
    sources, targets : unsigned integer[k]
        The ends of the arcs: uint32 or uint64.
    names : Strings, Arrow array or sequence of str or bytes, or None
        The names that the ends refer to. An Arrow array of any library is taken.
    weights : float64[k] or None
        Finite and above 0; None means 1 each.
    crawled : unsigned integer[…] or None
        The names (or nodes) that are pages that were crawled, not only linked to; None if this is unknown.
    size : int
        The bytes of unpacked input that the batch comes from; 0 if unknown, and then 16 an arc are assumed.
    place : function of int, or None
        Names the file and line of an arc of the batch.
    """

    sources: npt.NDArray[np.unsignedinteger]
    targets: npt.NDArray[np.unsignedinteger]
    names: Strings | Any | None = None
    weights: Float64Array | None = None
    crawled: npt.NDArray[np.unsignedinteger] | None = None
    size: int = 0
    place: Callable[[int], str] | None = None
