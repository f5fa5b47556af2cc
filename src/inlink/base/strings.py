"""Columns of strings as bytes and offsets, without a Python object for each string.

The layout is that of Arrow's large arrays of bytes, so pyarrow's arrays are converted without copying their text.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from inlink.base.arrays import BoolArray, Int64Array, UInt8Array, UInt64Array
from inlink.base.extras import load
from inlink.errors import ParameterError


class Strings:
    """A column of strings of bytes: row i is ``text[offsets[i]:offsets[i + 1]]``.

    Parameters
    ----------
    text : uint8[number of bytes]
        All strings, one after the other. It may have more bytes than the offsets use. The column keeps a read-only
        view.
    offsets : uint64[n + 1]
        The place where each string begins, and the end of the last.
    valid : bool[n] or None
        False for rows without a value; the string of such a row is empty. None: all rows have a value.
    """

    __slots__ = ("offsets", "text", "valid")

    def __init__(self, text: UInt8Array, offsets: UInt64Array, valid: BoolArray | None = None) -> None:
        self.text, self.offsets, self.valid = text.view(), offsets.view(), valid
        # So kernels always get arrays of the same type.
        self.text.flags.writeable = self.offsets.flags.writeable = False

    @classmethod
    def of(cls, values: Iterable[str | bytes | None]) -> "Strings":
        """Make a column of strings and bytes; None is a row without a value."""
        rows = list(values)
        kinds = set(map(type, rows))
        valid = None
        if type(None) in kinds:
            valid = np.array([row is not None for row in rows], np.bool_)
        if kinds - {bytes}:
            rows = [
                row.encode("utf-8", "surrogateescape") if isinstance(row, str) else row or b"" for row in rows
            ]
        offsets = np.zeros(len(rows) + 1, np.uint64)
        np.cumsum(np.fromiter(map(len, rows), np.uint64, len(rows)), out=offsets[1:])  # type: ignore[arg-type]
        return cls(np.frombuffer(b"".join(rows), np.uint8), offsets, valid)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, rows: int) -> bytes | None: ...
    @overload
    def __getitem__(self, rows: slice) -> "Strings": ...
    def __getitem__(self, rows: int | slice) -> "bytes | Strings | None":
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step != 1:
                raise IndexError(f"a slice of a column has step 1; got {step}")
            valid = None if self.valid is None else self.valid[start:stop]
            return Strings(self.text, self.offsets[start : max(stop, start) + 1], valid)
        if not -len(self) <= rows < len(self):
            raise IndexError(f"row {rows} of {len(self):,}")
        row = rows % len(self)
        if self.valid is not None and not self.valid[row]:
            return None
        return self.text[int(self.offsets[row]) : int(self.offsets[row + 1])].tobytes()

    def __iter__(self) -> Iterator[bytes | None]:
        return iter(self.to_pylist())

    def to_bytes(self) -> bytes:
        """Return all strings, one after the other."""
        return self.text[int(self.offsets[0]) : int(self.offsets[-1])].tobytes()

    def lines(self) -> bytes | None:
        """Return all strings, each followed by a newline; None if a string has a newline."""
        text = self.text[int(self.offsets[0]) : int(self.offsets[-1])]
        if (text == 10).any():
            return None
        joined = np.full(len(text) + len(self), 10, np.uint8)
        kept = np.ones(len(joined), np.bool_)
        kept[(self.offsets[1:] - self.offsets[0]).astype(np.int64) + np.arange(len(self))] = False
        joined[kept] = text
        return joined.tobytes()

    def to_pylist(self) -> list[Any]:
        """Return the rows as bytes, and None for those without a value."""
        text, places = self.to_bytes(), (self.offsets - self.offsets[0]).tolist()
        rows: list[bytes | None] = [text[low:high] for low, high in pairwise(places)]
        if self.valid is not None:
            for row in np.flatnonzero(~self.valid).tolist():
                rows[row] = None
        return rows

    def is_valid(self) -> BoolArray:
        """Return whether each row has a value, bool[n]."""
        return np.ones(len(self), np.bool_) if self.valid is None else self.valid

    def take(self, rows: npt.ArrayLike) -> "Strings":
        """Return the rows with these numbers, integer[k], in this order."""
        chosen = np.asarray(rows).astype(np.int64)
        begins = self.offsets[:-1][chosen].astype(np.int64)
        lengths = self.offsets[1:][chosen].astype(np.int64) - begins
        offsets = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        places = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], lengths)
        valid = None if self.valid is None else self.valid[chosen]
        return Strings(self.text[places], offsets.view(np.uint64), valid)

    def filter(self, mask: BoolArray) -> "Strings":
        """Return the rows where a mask, bool[n], is True."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def with_rows(self, rows: npt.NDArray[np.integer], column: "Strings") -> "Strings":
        """Return the column with the rows of these numbers, integer[k], replaced by those of another column of k."""
        places = np.arange(len(self))
        places[rows] = len(self) + np.arange(len(rows))
        return Strings.concat([self, column]).take(places)

    def by_value(self, function: Callable[[bytes], str | bytes | None]) -> "Strings":
        """Return the results of a function for each row, called once for each distinct value."""
        rows = self.to_pylist()
        results = {row: None if row is None else function(row) for row in dict.fromkeys(rows)}
        return Strings.of([results[row] for row in rows])

    def count(self, table: BoolArray) -> Int64Array:
        """Return the number of bytes of each row that a table, bool[256], contains: int64[n]."""
        first = int(self.offsets[0])
        places_of_bytes = np.flatnonzero(table[self.text[first : int(self.offsets[-1])]])
        counts: Int64Array = np.diff(
            np.searchsorted(places_of_bytes, (self.offsets - self.offsets[0]).astype(np.int64))
        )
        return counts

    def replace(self, old: bytes, new: bytes) -> "Strings":
        """Return the column with each occurrence of one byte replaced."""
        text = self.to_bytes()
        places = (self.offsets - self.offsets[0]).astype(np.int64)
        occurrences = np.flatnonzero(np.frombuffer(text, np.uint8) == old[0])
        if not len(occurrences):
            return self
        places += (len(new) - 1) * np.searchsorted(occurrences, places)
        return Strings(np.frombuffer(text.replace(old, new), np.uint8), places.view(np.uint64), self.valid)

    def safe_cells(self) -> "Strings":
        """Return the column with ``'`` before each row that spreadsheets would read as a formula (CSV injection)."""
        rows = np.flatnonzero(self.offsets[:-1] < self.offsets[1:])
        rows = rows[bytes_in(b"=+-@\t\r\n")[self.text[self.offsets[:-1][rows]]]]
        return self.with_rows(rows, Strings.of(b"'" + row for row in self.take(rows).to_pylist()))

    def is_utf8(self) -> bool:
        """Return whether all rows are UTF-8."""
        try:
            self.to_bytes().decode()
        except UnicodeDecodeError:
            return False
        # A character may not be cut by the end of a row.
        begins = self.offsets[:-1][self.offsets[:-1] < self.offsets[1:]]
        return not (self.text[begins] & 0xC0 == 0x80).any()

    @staticmethod
    def concat(columns: Iterable["Strings"]) -> "Strings":
        """Return the rows of several columns, one after the other."""
        parts = list(columns)
        valid = None
        if any(part.valid is not None for part in parts):
            valid = np.concatenate([part.is_valid() for part in parts])
        offsets, end = [np.zeros(1, np.uint64)], np.uint64(0)
        for part in parts:
            offsets.append(part.offsets[1:] - part.offsets[0] + end)
            end = offsets[-1][-1] if len(part) else end
        texts = [part.text[int(part.offsets[0]) : int(part.offsets[-1])] for part in parts]
        text: UInt8Array = np.concatenate(texts) if parts else np.empty(0, np.uint8)
        return Strings(text, np.concatenate(offsets), valid)


def bytes_in(wanted: Iterable[int]) -> BoolArray:
    """Return a table, bool[256], that is True for these bytes."""
    table = np.zeros(256, np.bool_)
    table[list(wanted)] = True
    return table


def column_of(values: Any) -> Strings:
    """Return a column of strings: a :class:`Strings`, an Arrow array of any library, or an iterable of str and bytes.

    Raises
    ------
    inlink.errors.ParameterError
        If a value is not a string.
    """
    if isinstance(values, Strings):
        return values
    if type(values).__module__.startswith("pyarrow"):
        return from_arrow(values)
    rows = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    wrong = next((row for row in rows if not isinstance(row, str | bytes | None)), None)
    if wrong is not None:
        raise ParameterError(f"names must be strings or bytes; got {wrong!r:.60}")
    return Strings.of(rows)


def from_arrow(array: Any) -> Strings:
    """Return a column of a pyarrow array of strings or bytes (normal, large or chunked); null has no value."""
    pa = load("pyarrow", "arrow", "an Arrow array")
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if not pa.types.is_large_binary(array.type):
        array = array.cast(pa.large_binary())
    valid = None
    if array.null_count:
        valid = np.asarray(array.is_valid())
        array = array.fill_null(b"")
    _, places, data = array.buffers()
    offsets = np.zeros(1, np.int64)
    if places is not None and len(array):
        offsets = np.frombuffer(places, np.int64)[array.offset : array.offset + len(array) + 1]
    text = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    return Strings(text, offsets.view(np.uint64), valid)


def to_arrow(column: Strings, *, text: bool = False) -> Any:
    """Return a pyarrow array: ``large_binary``, or ``large_string`` if ``text`` is set; rows must be UTF-8 then."""
    pa = load("pyarrow", "arrow", "an Arrow array")
    kind = pa.large_string() if text else pa.large_binary()
    offsets = np.ascontiguousarray(column.offsets).view(np.int64)
    valid, nulls = None, 0
    if column.valid is not None:
        nulls = int(np.count_nonzero(~column.valid))
        valid = pa.py_buffer(np.packbits(column.valid, bitorder="little"))
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(column.text))]
    return pa.Array.from_buffers(kind, len(column), buffers, nulls)
