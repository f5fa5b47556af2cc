"""Types of arrays, by the names of NumPy's dtypes, for all signatures; and arrays without duplicates."""

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = [
    "AnyArray",
    "BoolArray",
    "Float32Array",
    "Float64Array",
    "Int64Array",
    "UInt8Array",
    "UInt16Array",
    "UInt32Array",
    "UInt64Array",
    "aligned",
    "distinct",
    "slices",
]

AnyArray = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]
UInt8Array = npt.NDArray[np.uint8]
UInt16Array = npt.NDArray[np.uint16]
UInt32Array = npt.NDArray[np.uint32]
UInt64Array = npt.NDArray[np.uint64]

N = TypeVar("N", bound=np.generic)


def aligned(count: int, dtype: type[N]) -> npt.NDArray[N]:
    """Return an uninitialised array of ``count`` numbers whose address is a multiple of 64, the size of a cache line.

    Addresses of `numpy.empty` are multiples of 16, so a row of 64 bytes could lie in two lines.
    """
    size = count * np.dtype(dtype).itemsize
    room = np.empty(size + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + size].view(dtype)


def distinct(values: npt.NDArray[N]) -> npt.NDArray[N]:
    """Return the distinct values of an array of integers in increasing order.

    `numpy.unique` does the same, but its first call imports `numpy.ma`, which takes a short command 10 ms.

    Examples
    --------
    >>> distinct(np.array([3, 1, 3], np.uint32)).tolist()
    [1, 3]
    """
    ordered = np.sort(values, axis=None)
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def slices(end: int, size: int, begin: int = 0) -> Iterator[slice]:
    """Cut ``range(begin, end)`` into slices of ``size`` places. The last slice may be shorter.

    Examples
    --------
    >>> [(part.start, part.stop) for part in slices(7, 3)]
    [(0, 3), (3, 6), (6, 7)]
    """
    for start in range(begin, end, size):
        yield slice(start, min(start + size, end))
