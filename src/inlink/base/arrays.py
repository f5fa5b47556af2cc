"""Types of arrays, by the names of NumPy's dtypes. Every signature uses these; no module makes aliases of its own."""

from typing import Any

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
