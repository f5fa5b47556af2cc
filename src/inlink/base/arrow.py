"""Tables to and from Polars, DuckDB, pyarrow and other libraries, by Arrow's C stream interface.

An object with ``__arrow_c_stream__`` gives a PyCapsule, from which readers take batches of columns
(https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html). arro3-core makes and reads the capsules.
Functions of ctypes cannot do it: a reader may let go of a batch while an exception is on its way, and Python code that
runs at this moment destroys the exception.
"""

import contextlib
import ctypes
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from inlink.base.arrays import AnyArray
from inlink.base.strings import Strings
from inlink.errors import ParameterError

Column = AnyArray | list[str] | list[bytes]
"""Numbers, or strings."""


def capsule(fields: Sequence[tuple[str, Any]], batches: Iterable[Sequence[Column]]) -> Any:
    """Return a PyCapsule ``arrow_array_stream`` of batches, which are made one by one as they are read.

    Parameters
    ----------
    fields : sequence of (str, dtype, str or bytes)
        The name of each column, and the dtype of its numbers or the type of its strings.
    batches : iterable of sequences of columns
        The columns of each batch, in the order of ``fields``. Numbers are not copied.
    """
    from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema

    strings = {str: DataType.large_utf8(), bytes: DataType.large_binary()}
    types = [
        strings[kind] if kind in strings else Array.from_numpy(np.empty(0, kind)).type for _, kind in fields
    ]
    schema = Schema(
        [Field(name, kind, nullable=False) for (name, _), kind in zip(fields, types, strict=True)]
    )

    def array(column: Column, kind: Any) -> Any:
        if isinstance(column, list):
            return Array(column, kind)
        return Array.from_numpy(np.ascontiguousarray(column))

    made = (
        RecordBatch.from_arrays([array(*pair) for pair in zip(columns, types, strict=True)], schema=schema)
        for columns in batches
    )
    return RecordBatchReader.from_batches(schema, made).__arrow_c_stream__()


def batches_of(table: Any) -> tuple[list[str], Callable[[Sequence[int]], Iterator[list[AnyArray | Strings]]]]:
    """Return the names of the columns of an object with ``__arrow_c_stream__``, and a function that reads some of them.

    The function takes the places of columns, and iterates over the batches of these columns. Other columns may have
    any type. It can be called once.

    Raises
    ------
    inlink.errors.ParameterError
        If the object gives no table. The function raises it if a column has missing values, or neither numbers nor
        strings, or if the stream ends with an error.
    """
    from arro3.core import RecordBatchReader

    with _as_parameter_error():
        reader = RecordBatchReader.from_arrow(table)
    names: list[str] = reader.schema.names

    def batches(places: Sequence[int]) -> Iterator[list[AnyArray | Strings]]:
        for place in places:
            _check_type(reader.schema.field(place).type, names[place])
        while True:
            with _as_parameter_error():
                batch = next(reader, None)
            if batch is None:
                return
            yield [_column(batch.column(place), names[place]) for place in places]

    return names, batches


@contextlib.contextmanager
def _as_parameter_error() -> Iterator[None]:
    """Raise ParameterError instead of an error of the library that makes the stream."""
    try:
        yield
    except ParameterError:
        raise
    except Exception as error:
        line = str(error).strip().partition("\n")[0]
        raise ParameterError(
            f"the Arrow stream cannot be read ({line.rstrip('.')}): pass a table whose columns have integers or "
            "strings"
        ) from error


def _is_string(kind: Any) -> bool:
    from arro3.core import DataType

    # The stubs declare these static methods as methods of instances.
    is_a: Any = DataType
    if is_a.is_dictionary(kind):
        kind = kind.value_type
    strings = (is_a.is_string, is_a.is_large_string, is_a.is_string_view)
    return any(test(kind) for test in (*strings, is_a.is_binary, is_a.is_large_binary, is_a.is_binary_view))


def _check_type(kind: Any, name: str) -> None:
    from arro3.core import DataType

    is_a: Any = DataType
    if not (_is_string(kind) or is_a.is_integer(kind) or is_a.is_floating(kind)):
        shown = str(kind).strip().removeprefix("arro3.core.DataType<").removesuffix(">")
        raise ParameterError(
            f"column {name!r} must have numbers or strings; its Arrow type is {shown}. Cast it first"
        )


def _column(array: Any, name: str) -> AnyArray | Strings:
    if array.null_count:
        row = array.to_pylist().index(None)
        raise ParameterError(f"column {name!r} has no value in row {row:,} of a batch: drop such rows first")
    if _is_string(array.type):
        return _strings(array)
    numbers: AnyArray = array.to_numpy()
    return numbers


class _ArrowArray(ctypes.Structure):
    """The beginning of an array in Arrow's C interface."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
        ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    )


def _strings(array: Any) -> Strings:
    """Return a copy of a column of strings, without an object of Python for each string."""
    from arro3.core import DataType

    # arro3 does not show the bytes of strings itself.
    _, capsule = array.cast(DataType.large_binary()).__arrow_c_array__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    layout = _ArrowArray.from_address(pointer(capsule, b"arrow_array"))
    _, places, text = layout.buffers[:3]
    if not layout.length or not places:
        return Strings.of([])
    size = (layout.length + 1) * 8
    offsets = np.frombuffer(ctypes.string_at(places + 8 * layout.offset, size), np.uint64)
    first, length = int(offsets[0]), int(offsets[-1] - offsets[0])
    raw = ctypes.string_at(text + first, length) if length else b""
    return Strings(np.frombuffer(raw, np.uint8), offsets - offsets[0])
