"""Strings from and to pyarrow's arrays, without copying their text. The extra ``arrow`` installs pyarrow."""

from typing import Any

import numpy as np

from inlink.base.extras import load
from inlink.base.strings import Strings

__all__ = ["arrow", "from_arrow", "to_arrow"]


def arrow(purpose: str) -> Any:
    """Return the module pyarrow.

    Raises
    ------
    inlink.errors.MissingExtraError
        If it is not installed. The message begins with ``purpose``.
    """
    return load("pyarrow", "arrow", purpose)


def from_arrow(array: Any) -> Strings:
    """Return a column of a pyarrow array of strings or bytes (normal, large or chunked); null has no value."""
    pa = arrow("an Arrow array")
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
    pa = arrow("an Arrow array")
    kind = pa.large_string() if text else pa.large_binary()
    offsets = np.ascontiguousarray(column.offsets).view(np.int64)
    valid, nulls = None, 0
    if column.valid is not None:
        nulls = int(np.count_nonzero(~column.valid))
        valid = pa.py_buffer(np.packbits(column.valid, bitorder="little"))
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(column.text))]
    return pa.Array.from_buffers(kind, len(column), buffers, nulls)
