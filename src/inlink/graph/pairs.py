"""A graph of pairs in memory, by number or by name."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inlink.base.arrays import AnyArray, Float64Array
from inlink.base.settings import Setting, check, plain
from inlink.base.strings import Strings
from inlink.errors import ParameterError
from inlink.graph.batches import ArcBatch
from inlink.graph.build import build_graph
from inlink.graph.given import integers
from inlink.graph.graph import Graph
from inlink.graph.names import MAX_NODES

__all__ = ["graph_of_pairs"]

_NUM_NODES = Setting("num_nodes", int, 0, "", at_least=0, at_most=MAX_NODES)


def _weights(weights: npt.ArrayLike | None) -> Float64Array | None:
    if weights is None:
        return None
    try:
        given = np.asarray(weights)
    except ValueError:
        given = np.empty(0, object)
    if given.ndim != 1 or (given.dtype.kind not in "biuf" and given.size):
        raise ParameterError(f"`weights` must be a list of numbers; got {given.dtype} of shape {given.shape}")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(given, np.float64)


def graph_of_pairs(
    arcs: Iterable[tuple[Any, Any]] | AnyArray,
    *,
    num_nodes: int | None = None,
    weights: npt.ArrayLike | None = None,
    count: bool = False,
    into: str | os.PathLike[str] | None = None,
) -> Graph:
    """See :meth:`inlink.Graph.from_arcs`.

    Raises
    ------
    inlink.errors.ParameterError
        If an arc is not a pair, names and numbers are mixed, or weights and arcs do not fit together.
    """
    values = _weights(weights)
    if num_nodes is not None:
        num_nodes = int(check(_NUM_NODES, plain(num_nodes), "`num_nodes`"))
    if not isinstance(arcs, np.ndarray):
        if isinstance(arcs, str | bytes | Mapping) or not isinstance(arcs, Iterable):
            raise ParameterError(f"`arcs` must be pairs (source, target); got {type(arcs).__name__}")
        arcs = list(arcs)
        for arc in arcs:
            if isinstance(arc, str | bytes) or not isinstance(arc, Sequence | np.ndarray) or len(arc) != 2:
                raise ParameterError(
                    f"an arc must be a pair (source, target); got {arc!r:.60}. Use weights= for weights"
                )
        named = {isinstance(end, str | bytes) for arc in arcs for end in arc}
        if named == {True}:
            if num_nodes is not None:
                raise ParameterError(
                    "`num_nodes` applies only to nodes by number: leave it out for nodes by name"
                )
            places = np.arange(2 * len(arcs), dtype=np.uint32).reshape(-1, 2)
            batch = ArcBatch(
                places[:, 0],
                places[:, 1],
                Strings.of(end for arc in arcs for end in arc),
                values,
            )
            return build_graph([batch], count=count, into=into)
        if len(named) > 1:
            raise ParameterError("nodes must be all numbers or all names; got both")
    try:
        pairs = np.asarray(arcs)
    except ValueError:
        raise ParameterError("nodes must be whole numbers or names; got lists") from None
    if not pairs.size:
        pairs = np.empty((0, 2), np.uint32)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ParameterError(f"`arcs` must be pairs (source, target); got an array of shape {pairs.shape}")
    sources, targets = (integers(pairs[:, side], "a node", np.uint32, MAX_NODES) for side in (0, 1))
    batch = ArcBatch(sources, targets, None, values)
    return build_graph([batch], num_nodes=num_nodes, count=count, into=into)
