"""Graphs of tables in memory: data frames of pandas and Polars, relations of DuckDB, Arrow tables of any library."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from inlink.base.arrays import AnyArray
from inlink.base.arrow import batches_of
from inlink.base.strings import Strings, from_arrow
from inlink.errors import ParameterError
from inlink.graph.batches import ArcBatch
from inlink.graph.checks import check_weights, integers
from inlink.graph.graph import Graph
from inlink.graph.names import MAX_NODES

# The number of rows whose names are collected at a time.
_ROWS = 1 << 16


class ArrowTable(Protocol):
    """A table that gives its rows as an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a PyCapsule."""


def is_table(value: object) -> bool:
    """Return whether a value is a data frame of pandas or Dask, or gives an Arrow stream."""
    return hasattr(value, "__arrow_c_stream__") or _is_pandas(value)


def _is_pandas(value: object) -> bool:
    return hasattr(value, "iloc") and hasattr(value, "columns")


def graph_of_table(
    table: Any,
    *,
    columns: Sequence[str] | None = None,
    count: bool = False,
) -> Graph:
    """Return the graph of a table whose rows are arcs.

    Parameters
    ----------
    table : table
        A data frame of pandas or Polars, a relation of DuckDB, an Arrow table, or any other object with
        ``__arrow_c_stream__``. pandas and Dask are read through NumPy, Dask one partition after the other.
    columns : sequence of str or None
        Source, target and, if wanted, weight. None: all columns, in this order.
    count : bool
        Use the number of times that an arc occurs as its weight.

    Raises
    ------
    inlink.errors.ParameterError
        If the columns are not two or three, or the ends are not all integers or all strings, or a value is missing, or
        a weight is not a finite number above 0.
    """
    names, batches = _pandas(table) if _is_pandas(table) else batches_of(table)
    chosen = list(columns) if columns is not None else names
    missing = [name for name in chosen if name not in names]
    if len(chosen) not in (2, 3) or missing:
        raise ParameterError(
            f"a table of arcs must have the columns source, target and, if wanted, weight; got "
            f"{', '.join(missing or chosen) or 'none'}. Select them: inlink.read(table, columns=[…])"
        )
    places = [names.index(name) for name in chosen]
    from inlink.graph.build import build_graph

    return build_graph(_arcs(batches(places), chosen), count=count)


def _arcs(batches: Iterator[list[AnyArray | Strings]], names: list[str]) -> Iterator[ArcBatch]:
    named = None
    for source, target, *rest in batches:
        weights = None
        if rest:
            if isinstance(rest[0], Strings) or rest[0].dtype.kind not in "iuf":
                raise ParameterError(f"column {names[2]!r} must have numbers as weights")
            weights = rest[0].astype(np.float64)
            check_weights(weights, f"column {names[2]!r}")
        kinds = {isinstance(side, Strings) for side in (source, target)}
        if len(kinds) > 1 or named not in (None, kinds == {True}):
            raise ParameterError(
                f"columns {names[0]!r} and {names[1]!r} must both have integers, or both strings"
            )
        named = kinds == {True}
        if isinstance(source, Strings) and isinstance(target, Strings):
            # A frame may come as a single batch.
            for begin in range(0, max(len(source), 1), _ROWS):
                rows = slice(begin, begin + _ROWS)
                ends = Strings.concat([source[rows], target[rows]])
                numbers = np.arange(len(ends), dtype=np.uint32)
                half = len(ends) // 2
                some = None if weights is None else weights[rows]
                yield ArcBatch(numbers[:half], numbers[half:], ends, some)
        else:
            pairs = zip(names[:2], (source, target), strict=True)
            sides = [integers(side, f"column {name!r}", np.uint32, MAX_NODES) for name, side in pairs]
            yield ArcBatch(sides[0], sides[1], None, weights)


def _pandas(frame: Any) -> tuple[list[str], Callable[[Sequence[int]], Iterator[list[AnyArray | Strings]]]]:
    """Return the names of a frame's columns, and a function that reads some of them, as of :func:`batches_of`."""
    names = [str(name) for name in frame.columns]

    def batches(places: Sequence[int]) -> Iterator[list[AnyArray | Strings]]:
        # The partitions of a frame of Dask become frames of pandas.
        dask = hasattr(frame, "__dask_graph__")
        for part in (part.compute() for part in frame.partitions) if dask else [frame]:
            if len(part):
                yield [_column(part.iloc[:, place], names[place]) for place in places]

    return names, batches


def _column(series: Any, name: str) -> AnyArray | Strings:
    kind = series.dtype
    in_arrow = getattr(kind, "storage", "") == "pyarrow" or str(kind).endswith("string[pyarrow]")
    if in_arrow and not series.hasnans:
        return from_arrow(series.array.__arrow_array__())
    values = series.to_numpy()
    if values.dtype.kind in "iuf":
        return np.ascontiguousarray(values)
    rows: list[str] = values.tolist()
    for row in rows:
        if not isinstance(row, str | bytes):
            raise ParameterError(
                f"column {name!r} of dtype {series.dtype} must have strings in each row; got {row!r:.60}. Drop rows "
                "without a value, and convert numbers: frame.astype('int64')"
            )
    return Strings.of(rows)
