"""The nodes and the edges of a graph as Python collections, and as tables for Arrow's readers."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from inlink.base.arrays import AnyArray, UInt32Array, slices
from inlink.base.arrow import Column, capsule
from inlink.base.strings import Strings
from inlink.base.table import counted
from inlink.errors import UnknownNodeError
from inlink.graph.names import Names, decode, node_number

if TYPE_CHECKING:
    from inlink.graph.graph import Graph

# Number of rows of a batch.
_BATCH = 1 << 16


def name_batches(names: Names | None, size: int) -> tuple[list[tuple[str, Any]], Iterator[list[Column]]]:
    """Return the fields ``node`` and, if there are names, ``name``; and their columns in batches of 65,536 nodes."""
    fields: list[tuple[str, Any]] = [("node", np.uint32)]
    kind = _kind(names)
    if names is not None:
        fields.append(("name", kind))

    def batches() -> Iterator[list[Column]]:
        for part in slices(size, _BATCH):
            columns: list[Column] = [np.arange(part.start, part.stop, dtype=np.uint32)]
            if names is not None:
                columns.append(_strings(names.column(part.start, part.stop), kind))
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
        for part in slices(len(sources), size):
            yield sources[part], targets[part], None if weights is None else weights[part]


def arcs_in_order(
    graph: "Graph", order: UInt32Array | None, size: int
) -> Iterator[tuple[UInt32Array, UInt32Array, AnyArray | None]]:
    """Yield the arcs by source and target, as if node ``order[i]`` had the number i, about ``size`` at a time.

    If ``order`` is None, nodes keep their numbers. In another order, compressed rows are decoded into memory.

    Yields
    ------
    uint32[k], uint32[k], number[k] or None
        Sources and targets of a block by the new numbers, and the weights.
    """
    if order is None:
        yield from arc_batches(graph, size)
        return
    place = np.empty(len(order), np.uint32)
    place[order] = np.arange(len(order), dtype=np.uint32)
    rows = graph.out_rows
    starts = rows.offsets[:-1][order]
    degrees = (rows.offsets[1:][order] - starts).astype(np.int64)
    ends = np.cumsum(degrees)
    first = 0
    while first < len(order):
        done = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, done + size, "right")), first + 1)
        count = degrees[first:last]
        sources = np.repeat(np.arange(first, last, dtype=np.uint32), count)
        within = np.arange(len(sources)) - np.repeat(np.cumsum(count) - count, count)
        arcs = np.repeat(starts[first:last].astype(np.int64), count) + within
        key = sources.astype(np.uint64) << np.uint64(32) | place[rows.nodes[arcs]]
        weights = None
        if rows.weights is None:
            key.sort()
        else:
            by_key = np.argsort(key)
            key, weights = key[by_key], rows.weights[arcs[by_key]]
        if len(key):
            yield (key >> np.uint64(32)).astype(np.uint32), key.astype(np.uint32), weights
        first = last


class Nodes(Collection[str | int]):
    """The nodes of a graph in the order of their numbers: names, or numbers if there are no names.

    A name is str; ``in`` and :meth:`number` take its bytes too. As a table for Arrow's readers, it has the columns
    ``node`` (uint32) and, if there are names, ``name`` (strings, or bytes unless all names are UTF-8).
    """

    def __init__(self, names: Names | None, size: int) -> None:
        self._names, self._size = names, size
        self._all: Sequence[str | int] = range(size) if names is None else names

    def number(self, node: int | str | bytes) -> int:
        """The number of a node, given its number or its name; see :meth:`inlink.Graph.node`.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If there is no such node.
        """
        if isinstance(node, str | bytes):
            if self._names is None:
                raise UnknownNodeError(f"there are no names here: give a number instead of {node!r}")
            return self._names.find(node)
        return node_number(node, self._size)

    def at(self, numbers: npt.NDArray[np.integer]) -> list[Any]:
        """The nodes with these numbers, integer[k]."""
        if self._names is None:
            return list(numbers.tolist())
        return [decode(name) for name in self._names.take(numbers).to_pylist()]

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, place: int) -> str | int: ...
    @overload
    def __getitem__(self, place: slice) -> list[str | int]: ...
    def __getitem__(self, place: int | slice) -> str | int | list[str | int]:
        return list(self._all[place]) if isinstance(place, slice) else self._all[place]

    def __iter__(self) -> Iterator[str | int]:
        return iter(self._all)

    def __contains__(self, node: object) -> bool:
        if self._names is not None:
            return node in self._names
        # A range looks for a number of NumPy one place after the other.
        return (
            isinstance(node, int | np.integer) and not isinstance(node, bool) and 0 <= int(node) < self._size
        )

    def __call__(self) -> "Nodes":
        """The same nodes, for callers used to ``nodes()`` of NetworkX."""
        return self

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'node')} of an inlink graph>"

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return capsule(*name_batches(self._names, self._size))


class Degrees:
    """The degrees of a graph's nodes: ``degrees[node]`` or ``degrees(node)``, and pairs of nodes and degrees in a loop.

    Parameters
    ----------
    nodes : Nodes
        The nodes.
    of_node : function of (node) -> int
        Returns the degree of a single node, without those of the others.
    of_all : function of () -> integer[n]
        Returns all degrees.
    """

    def __init__(
        self, nodes: Nodes, of_node: Callable[[int | str | bytes], int], of_all: Callable[[], AnyArray]
    ) -> None:
        self._nodes, self._of_node, self._of_all = nodes, of_node, of_all

    def __getitem__(self, node: int | str | bytes) -> int:
        return self._of_node(node)

    @overload
    def __call__(self, node: None = None) -> "Degrees": ...
    @overload
    def __call__(self, node: int | str | bytes) -> int: ...
    def __call__(self, node: int | str | bytes | None = None) -> "Degrees | int":
        """The degree of a node; without a node the degrees of all."""
        return self if node is None else self._of_node(node)

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[tuple[str | int, int]]:
        return zip(self._nodes, self._of_all().tolist(), strict=True)

    def __repr__(self) -> str:
        return f"<degrees of {len(self):,} nodes of an inlink graph>"


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
        nodes = Nodes(self._names, self._graph.num_nodes)
        if edge[0] not in nodes or edge[1] not in nodes:
            return False
        row = self._graph.outlinks(edge[0])
        end = self._graph.node(edge[1])
        place = int(np.searchsorted(row, end))
        return place < len(row) and int(row[place]) == end

    def __call__(self) -> "Edges":
        """The same arcs, for callers used to ``edges()`` of NetworkX."""
        return self

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'edge')} of an inlink graph>"

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
    return str if names is None or names.is_utf8() else bytes


def _strings(names: Strings, kind: type) -> Column:
    rows: list[bytes] = names.to_pylist()
    return rows if kind is bytes else [row.decode() for row in rows]
