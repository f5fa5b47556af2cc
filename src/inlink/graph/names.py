"""Names of nodes on disk: name to number and number to name, without loading all names.

Names are bytes: URLs, hosts, or any other strings of the input. ``names.text`` has them one after the other, and
name *i* is ``text[offsets[i]:offsets[i + 1]]``. If they are not in byte order, ``names.order`` has the
nodes in the order of their names, so that names can be found by bisection.
"""

import operator
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, SupportsIndex, cast, overload

import numpy as np
import numpy.typing as npt

from inlink.base.arrays import Int64Array, UInt8Array, UInt32Array, UInt64Array, slices
from inlink.base.memory import require_memory
from inlink.base.strings import Strings, column_of
from inlink.base.table import counted
from inlink.errors import InputError, ParameterError, UnknownNodeError

NO_NODE = 2**32 - 1
# Numbers are uint32, and the last one means "no node".
MAX_NODES = NO_NODE


def encode(name: str | bytes) -> bytes:
    """A name as bytes; reverses :func:`decode`, also for bytes that are not UTF-8.

    Raises
    ------
    inlink.errors.ParameterError
        If the name has a surrogate that stands for no byte.
    """
    try:
        return name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ParameterError(f"a name must be text that UTF-8 can encode; got {name!r:.200}") from None


def decode(raw: bytes) -> str:
    """Bytes as a name; bytes that are not UTF-8 become lone surrogates (PEP 383)."""
    return raw.decode("utf-8", "surrogateescape")


def node_number(node: object, nodes: int) -> int:
    """A node's number, checked.

    Parameters
    ----------
    node : int
        An integer of any type except bool.
    nodes : int
        The number of nodes.

    Raises
    ------
    inlink.errors.ParameterError
        If ``node`` is not an integer.
    inlink.errors.UnknownNodeError
        If there is no such node.
    """
    try:
        if isinstance(node, bool | np.bool_):
            raise TypeError
        number = operator.index(cast("SupportsIndex", node))
    except TypeError:
        raise ParameterError(f"a node must be a whole number or a name; got {node!r}") from None
    if not 0 <= number < nodes:
        raise UnknownNodeError(f"no node {number}: there are {nodes:,}, numbered from 0")
    return number


class Names(Sequence[str]):
    """The names of a graph's nodes: a sequence of str. :meth:`find` gives the node of a name.

    Parameters
    ----------
    text : uint8[number of bytes]
        All names, one after the other.
    offsets : uint64[n + 1]
        The place where each name begins.
    order : uint32[n] or None
        The nodes in the byte order of their names; None if that is 0, 1, 2, …
    """

    def __init__(
        self,
        text: UInt8Array,
        offsets: UInt64Array,
        order: UInt32Array | None = None,
    ) -> None:
        self.text, self.offsets, self.order = text, offsets, order
        self._next = 0

    @classmethod
    def of(cls, names: Iterable[str | bytes]) -> "Names":
        """Names held in memory, in the order given.

        Raises
        ------
        inlink.errors.InputError
            If two names are the same.
        """
        from inlink.graph.kernels.names import order_of

        column = Strings.of(names)
        return cls(column.text, column.offsets, order_of(column.text, column.offsets))

    def raw(self, node: int) -> bytes:
        """A node's name as bytes."""
        return bytes(self.text[int(self.offsets[node]) : int(self.offsets[node + 1])])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, node: int) -> str: ...
    @overload
    def __getitem__(self, node: slice) -> list[str]: ...
    def __getitem__(self, node: int | slice) -> str | list[str]:
        if isinstance(node, slice):
            return [self[i] for i in range(*node.indices(len(self)))]
        index = operator.index(node)
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"there are {counted(len(self), 'name')}, and no number {node}")
        return decode(self.raw(index))

    def __iter__(self) -> Iterator[str]:
        for _, column in self.columns():
            for raw in column.to_pylist():
                yield decode(raw)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str | bytes) and self._search(name) is not None

    def find(self, name: str | bytes) -> int:
        """The node with this name.

        Raises
        ------
        UnknownNodeError
            If no node has this name.
        """
        node = self._search(name)
        if node is None:
            raise UnknownNodeError(f"no node is named {name!r}")
        return node

    def index(self, name: object, start: int = 0, stop: int | None = None) -> int:
        """The node with this name, as :meth:`find`. Raises ValueError if there is none, as the index of a list does."""
        node = self._search(name) if isinstance(name, str | bytes) else None
        if node is None or not start <= node < (len(self) if stop is None else stop):
            raise ValueError(f"no node is named {name!r}")
        return node

    def _search(self, name: str | bytes) -> int | None:
        try:
            wanted = encode(name)
        except ParameterError:
            return None
        low, high, guess = 0, len(self), self._next
        # Callers mostly ask for all names in their order: `dict(ranking)`, `[graph.degree(node) for node in graph]`.
        if guess < high and self.raw(guess) == wanted:
            self._next = guess + 1
            return guess
        while low < high:
            middle = (low + high) // 2
            node = middle if self.order is None else int(self.order[middle])
            raw = self.raw(node)
            if raw == wanted:
                self._next = node + 1
                return node
            if raw < wanted:
                low = middle + 1
            else:
                high = middle
        return None

    def find_all(self, names: Strings | Any) -> Int64Array:
        """Find many names at once: int64[len(names)], -1 if no node has the name."""
        from inlink.graph.kernels.names import find_many

        column = column_of(names)
        order = self.order if self.order is not None else np.empty(0, np.uint32)
        nodes: Int64Array = find_many(self.text, self.offsets, order, column.text, column.offsets)
        return nodes

    def column(self, start: int = 0, stop: int | None = None) -> Strings:
        """The names of the nodes in ``range(start, stop)``, without copying the text."""
        stop = len(self) if stop is None else stop
        return Strings(self.text, np.ascontiguousarray(self.offsets[start : stop + 1]))

    def columns(self, size: int = 1 << 16) -> Iterator[tuple[int, Strings]]:
        """All names in columns of ``size``, each with the number of its first node."""
        for part in slices(len(self), size):
            yield part.start, self.column(part.start, part.stop)

    def is_utf8(self) -> bool:
        """Whether all names are UTF-8."""
        return all(column.is_utf8() for _, column in self.columns())

    def take(self, nodes: npt.NDArray[np.integer]) -> Strings:
        """The names of nodes, integer[k]."""
        from inlink.graph.kernels.names import gather

        return Strings(*gather(self.text, self.offsets, np.asarray(nodes, np.uint32)))


class NameTable:
    """A table that numbers names in the order in which they first occur."""

    def __init__(self) -> None:
        # The seed is random, so that nobody can make names that all have the same place in the table.
        self._seed = np.uint64(int.from_bytes(os.urandom(8)))
        self._slots = np.full(1 << 12, 0xFFFFFFFF, np.uint32)
        self._prints = np.empty(1 << 12, np.uint32)
        self._text = np.empty(1 << 16, np.uint8)
        self._offsets = np.zeros(1 << 12, np.uint64)
        self.known = 0

    def number(self, names: Strings | Any) -> UInt32Array:
        """The provisional numbers of a batch of names, uint32[len(names)]."""
        from inlink.graph.kernels.names import number

        column = column_of(names)
        text, offsets = column.text, column.offsets
        ids = np.empty(len(offsets) - 1, np.uint32)
        done = np.uint64(0)
        while True:
            done, count = number(
                text, offsets, self._seed, self._slots, self._prints, self._text, self._offsets,
                np.uint64(self.known), np.uint64(done), ids,
            )  # fmt: skip
            self.known = int(count)
            if int(done) == len(ids):
                return ids
            self._grow(int(offsets[int(done) + 1] - offsets[int(done)]))

    def _grow(self, next_name: int) -> None:
        from inlink.graph.kernels.names import refill

        if self.known >= MAX_NODES - 1:
            raise InputError(f"more than {MAX_NODES - 1:,} different names: node numbers have 32 bits")
        used = int(self._offsets[self.known])
        what = f"more than {self.known:,} different names"
        # With resize(), the system moves pages of memory instead of copying them.
        if used + next_name > len(self._text):
            length = max(used + next_name, len(self._text) * 3 // 2)
            require_memory(length - len(self._text), what)
            self._text.resize(length, refcheck=False)
        if self.known + 1 >= len(self._offsets):
            require_memory(4 * len(self._offsets), what)
            self._offsets.resize(len(self._offsets) * 3 // 2, refcheck=False)
        if self.known >= len(self._slots) * 7 // 10:
            size = len(self._slots) * (4 if len(self._slots) < 1 << 24 else 2)
            require_memory(8 * size, what)
            self._slots = np.full(size, 0xFFFFFFFF, np.uint32)
            self._prints = np.empty(size, np.uint32)
            refill(self._slots, self._prints, self._seed, self._text, self._offsets, np.uint64(self.known))

    def sorted(self) -> tuple[Names, UInt32Array]:
        """The names in the order of their numbers, and the numbers in byte order, uint32[count]. Empties the table."""
        from inlink.graph.kernels.names import sort_names

        del self._slots, self._prints
        text, offsets = self._text, self._offsets[: self.known + 1]
        order = np.arange(self.known, dtype=np.uint32)
        sort_names(text, offsets, order, np.empty(self.known, np.uint64))
        return Names(text, offsets), order
