"""Check the rows, weights and names of a graph that a caller gave. :mod:`inlink.graph.checks` checks folders."""

from typing import Any

import numpy as np

from inlink.base.arrays import AnyArray, UInt32Array, UInt64Array
from inlink.base.table import counted
from inlink.errors import ParameterError
from inlink.graph.checks import RowCheck
from inlink.graph.names import MAX_NODES, Names
from inlink.graph.rows import Rows, SplitRows


def sound_graph(
    out_rows: Rows, in_rows: Rows | SplitRows | None, names: Names | None, level: object
) -> tuple[Rows, Rows | None]:
    """Check the rows, names and level that a caller made a graph of, and return the rows as sound arrays.

    Raises
    ------
    inlink.errors.ParameterError
        If they are not sound, or do not fit together.
    """
    if level not in (None, "page", "host", "domain"):
        raise ParameterError(f"`level` must be 'page', 'host', 'domain' or None; got {level!r}")
    arrays, total = sound_rows(*out_rows, "`out_rows`", turned=False)
    if names is not None:
        check_names(names, len(arrays[0]) - 1)
    if in_rows is None:
        return Rows(*arrays), None
    if isinstance(in_rows, SplitRows):
        raise ParameterError("`in_rows` must be plain rows of inlinks; got split rows")
    turned, turned_total = sound_rows(*in_rows, "`in_rows`", turned=True)
    if len(turned[0]) != len(arrays[0]) or turned_total != total:
        raise ParameterError("`in_rows` must hold the same arcs as `out_rows`, reversed; got others")
    return Rows(*arrays), Rows(*turned)


def sound_rows(
    offsets: Any, nodes: Any, weights: Any, what: str, *, turned: bool
) -> tuple[tuple[UInt64Array, UInt32Array, AnyArray | None], int]:
    """Check rows that a caller gave; return them as contiguous arrays in this machine's byte order.

    Returns
    -------
    (uint64[n + 1], uint32[m], uint32[m] or float64[m] or None), int
        Offsets, nodes and weights, copied only where needed; and the sum of the arcs' hashes.

    Raises
    ------
    inlink.errors.ParameterError
        If the rows are not sound. ``what`` is their name in the message.
    """
    offsets, nodes = (
        integers(offsets, f"{what}: offsets", np.uint64, 2**63),
        integers(nodes, f"{what}: nodes", np.uint32, MAX_NODES),
    )
    if not 1 <= len(offsets) <= MAX_NODES + 1:
        raise ParameterError(f"{what}: there must be one offset more than nodes; got {len(offsets):,}")
    if offsets[0] != 0 or offsets[-1] != len(nodes) or (offsets[1:] < offsets[:-1]).any():
        raise ParameterError(f"{what}: offsets must increase from 0 to the number of arcs, {len(nodes):,}")
    if weights is not None:
        weights = np.asarray(weights)
        if weights.shape != nodes.shape or weights.dtype.kind not in "biuf":
            raise ParameterError(
                f"{what}: weights must be {counted(len(nodes), 'number')}; got {weights.dtype} of shape {weights.shape}"
            )
        kind = np.uint32 if weights.dtype.kind == "u" and weights.dtype.itemsize == 4 else np.float64
        with np.errstate(over="ignore"):
            weights = np.ascontiguousarray(weights, kind)
    rows = RowCheck(offsets, turned)
    wrong = rows.wrong(0, nodes, weights)
    if wrong is not None:
        raise ParameterError(f"{what}: {wrong}")
    return (offsets, nodes, weights), rows.total


def integers(values: Any, what: str, dtype: type[np.unsignedinteger[Any]], limit: int) -> AnyArray:
    """Check integers in ``range(limit)``; return them as a contiguous unsigned array, copied only if needed.

    Raises
    ------
    inlink.errors.ParameterError
        If the values are not such integers. ``what`` is their name in the message.
    """
    values = np.asarray(values)
    if values.ndim != 1 or (values.dtype.kind not in "iu" and values.size):
        raise ParameterError(
            f"{what} must be a list of whole numbers; got {values.dtype} of shape {values.shape}"
        )
    if values.size and (int(values.min()) < 0 or int(values.max()) >= limit):
        wrong = values.min() if values.min() < 0 else values.max()
        raise ParameterError(f"{what} must be in [0, {limit:,}); got {wrong}")
    # If the size and the byte order are the same, a view has the same bytes.
    if (
        values.dtype.isnative
        and values.flags.c_contiguous
        and values.dtype.itemsize == np.dtype(dtype).itemsize
    ):
        same_bytes: AnyArray = values.view(dtype)
        return same_bytes
    return np.ascontiguousarray(values, dtype)


def check_weights(weights: AnyArray, place: str) -> None:
    """Check that weights can be used in rankings.

    Raises
    ------
    inlink.errors.ParameterError
        If a weight is not finite or not above 0.
    """
    wrong = ~(np.isfinite(weights) & (weights > 0))
    if wrong.any():
        where = int(np.argmax(wrong))
        raise ParameterError(
            f"{place}: weights must be finite and above 0; got {weights[where]} at arc {where}"
        )


def check_names(names: Names, nodes: int) -> None:
    """Check names that a caller gave.

    Raises
    ------
    inlink.errors.ParameterError
        If there is not one name for each node, their offsets do not increase, or two names are the same.
    """
    from inlink.graph.kernels.checks import wrong_name

    if not isinstance(names, Names) or len(names) != nodes:
        raise ParameterError(f"`names` must be the names of {nodes:,} nodes; got {names!r:.60}")
    text, offsets = names.text, names.offsets
    order = np.empty(0, np.uint32) if names.order is None else names.order
    types = (text.dtype == np.uint8, offsets.dtype == np.uint64, order.dtype == np.uint32)
    if (
        not all(types)
        or (names.order is not None and len(order) != nodes)
        or offsets[-1] > len(text)
        or (offsets[1:] < offsets[:-1]).any()
        or wrong_name(text, offsets, order, np.uint64(0), np.uint64(nodes)) < nodes
    ):
        raise ParameterError(
            "`names` must have increasing offsets and the order of the names; make them by Names.of"
        )
