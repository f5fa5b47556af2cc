"""The nodes and the edges of a graph as Python collections, and as tables for Arrow's readers."""

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from inlink.base.arrays import AnyArray, UInt32Array
from inlink.base.arrow import Column, capsule
from inlink.base.strings import Strings
from inlink.graph.names import Names

if TYPE_CHECKING:
    from inlink.graph.graph import Graph

__all__ = ["Edges", "Nodes", "arc_batches", "arc_blocks", "name_batches"]

# Number of rows of a batch.
_BATCH = 1 << 16


def name_batches(names: Names | None, size: int) -> tuple[list[tuple[str, Any]], Iterator[list[Column]]]:
    """Return the fields ``node`` and, if there are names, ``name``; and their columns in batches of 65,536 nodes."""
    fields: list[tuple[str, Any]] = [("node", np.uint32)]
    kind = _kind(names)
    if names is not None:
        fields.append(("name", kind))

    def batches() -> Iterator[list[Column]]:
        for low in range(0, size, _BATCH):
            high = min(low + _BATCH, size)
            columns: list[Column] = [np.arange(low, high, dtype=np.uint32)]
            if names is not None:
                columns.append(_strings(names.column(low, high), kind))
            yield columns

    return fields, batches()


def arc_blocks(graph: "Graph") -> Iterator[tuple[UInt32Array, UInt32Array, AnyArray | None]]:
    """Yield all arcs in order, about a million at a time. Compressed rows are decoded a block at a time.

    A block holds complete rows, so the longest row bounds its memory.

    Yields
    ------
    uint32[k], uint32[k], number[k] or None
        Sources, targets and weights of a block.
    """
    from inlink.graph.kernels.arcs import unpack_rows

    for first, offsets, targets, weights in graph.out_blocks():
        sources = np.empty(len(targets), np.uint32)
        unpack_rows(offsets, targets, np.uint64(0), np.uint64(len(offsets) - 1), sources)
        sources += np.uint32(first)
        yield sources, targets, weights


def arc_batches(graph: "Graph", size: int) -> Iterator[tuple[UInt32Array, UInt32Array, AnyArray | None]]:
    """Yield the arcs of :func:`arc_blocks`, at most ``size`` at a time."""
    for sources, targets, weights in arc_blocks(graph):
        for low in range(0, len(sources), size):
            part = slice(low, low + size)
            yield sources[part], targets[part], None if weights is None else weights[part]


class Nodes(Collection[str | int]):
    """The nodes of a graph in the order of their numbers: names, or numbers if there are no names.

    As a table for Arrow's readers, it has the columns ``node`` (uint32) and, if there are names, ``name`` (strings, or
    bytes unless all names are UTF-8).
    """

    def __init__(self, graph: "Graph") -> None:
        self._graph = graph
        self._all: Sequence[str | int] = range(graph.num_nodes) if graph.names is None else graph.names

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, place: int) -> str | int: ...
    @overload
    def __getitem__(self, place: slice) -> list[str | int]: ...
    def __getitem__(self, place: int | slice) -> str | int | list[str | int]:
        return list(self._all[place]) if isinstance(place, slice) else self._all[place]

    def __iter__(self) -> Iterator[str | int]:
        return iter(self._all)

    def __contains__(self, node: object) -> bool:
        return node in self._all

    def __repr__(self) -> str:
        return f"<{len(self):,} nodes of an inlink graph>"

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return capsule(*name_batches(self._graph.names, len(self)))


class Edges(Collection[tuple[Any, Any]]):
    """The arcs of a graph in the order of sources, then of targets: pairs of nodes.

    As a table for Arrow's readers, it has the columns ``source``, ``target`` and, if the arcs have weights, ``weight``.

    Parameters
    ----------
    graph : Graph
        The graph.
    by_number : bool
        Whether the ends are numbers of nodes (uint32), even if nodes have names.
    """

    def __init__(self, graph: "Graph", *, by_number: bool = False) -> None:
        self._graph = graph
        self._names = None if by_number else graph.names

    @property
    def numbers(self) -> "Edges":
        """The same arcs with numbers of nodes, even if nodes have names."""
        return Edges(self._graph, by_number=True)

    def __len__(self) -> int:
        return self._graph.num_arcs

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        names = self._names
        for sources, targets, _ in arc_batches(self._graph, _BATCH):
            if names is None:
                yield from zip(sources.tolist(), targets.tolist(), strict=True)
            else:
                yield from (
                    (names[i], names[j]) for i, j in zip(sources.tolist(), targets.tolist(), strict=True)
                )

    def __contains__(self, edge: object) -> bool:
        if not isinstance(edge, tuple) or len(edge) != 2:
            return False
        nodes = Nodes(self._graph) if self._names is not None else range(self._graph.num_nodes)
        if edge[0] not in nodes or edge[1] not in nodes:
            return False
        row = self._graph.outlinks(edge[0])
        end = self._graph.node(edge[1])
        place = int(np.searchsorted(row, end))
        return place < len(row) and int(row[place]) == end

    def __repr__(self) -> str:
        return f"<{len(self):,} edges of an inlink graph>"

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        names, weights = self._names, self._graph.out_weights
        kind: Any = np.uint32 if names is None else _kind(names)
        fields = [("source", kind), ("target", kind)]
        if weights is not None:
            fields.append(("weight", weights.dtype))

        def columns() -> Iterator[list[Column]]:
            for sources, targets, values in arc_batches(self._graph, _BATCH):
                ends: list[Column] = [sources, targets]
                if names is not None:
                    ends = [_strings(names.take(side), kind) for side in (sources, targets)]
                yield ends if values is None else [*ends, values]

        return capsule(fields, columns())


def _kind(names: Names | None) -> type:
    """Return str if all names are UTF-8, else bytes."""
    size = 0 if names is None else len(names)
    parts = (names.column(low, min(low + _BATCH, size)) for low in range(0, size, _BATCH) if names)
    return str if all(part.is_utf8() for part in parts) else bytes


def _strings(names: Strings, kind: type) -> Column:
    rows: list[bytes] = names.to_pylist()
    return rows if kind is bytes else [row.decode() for row in rows]
