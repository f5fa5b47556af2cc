"""The types of a kernel's arguments and result, as text that can be kept in a file.

A type is ``"none"``, ``"bool"``, a number such as ``"uint64"``, or a list:

- ``["array", dtype, dimensions, layout, "w" or "r"]``, where a record's dtype is written as
  ``[[[name, format, offset], …], size]``, and ``"r"`` is read-only. An array that is not aligned has a sixth entry.
- ``["bytes"]``, a bytes object.
- ``["tuple", [type, …]]``
- ``["named", "module:Name", [type, …]]``, a named tuple.
"""

import importlib
import inspect
import json
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
from numba.core import types
from numba.np import numpy_support

__all__ = ["FILE", "Text", "described", "merged", "read", "sound", "type_of", "write"]

FILE = Path(__file__).with_name("signatures.json")

Text = Any
"""A type as text: a string or a list."""


def described(numba_type: Any) -> Text:
    """Return a Numba type as text.

    Raises
    ------
    ValueError
        If machine code that was made ahead of time cannot take such an argument.
    """
    # Numba's classes of tuples do not declare their attributes.
    whole: Any = numba_type
    match numba_type:
        case types.NoneType() | types.Omitted():
            return "none"
        case types.Boolean() | types.BooleanLiteral():
            return "bool"
        case types.Integer() | types.Float():
            return str(numba_type)
        case types.Bytes():
            return ["bytes"]
        case types.Array():
            written = ["array", _dtype_text(numba_type.dtype), numba_type.ndim, numba_type.layout]
            written.append("w" if numba_type.mutable else "r")
            return written if numba_type.aligned else [*written, "unaligned"]
        case types.BaseNamedTuple():
            made = whole.instance_class
            return [
                "named",
                f"{made.__module__}:{made.__qualname__}",
                [described(part) for part in whole.types],
            ]
        case types.BaseTuple():
            return ["tuple", [described(part) for part in whole.types]]
    raise ValueError(f"machine code made ahead of time takes no {numba_type}")


def _dtype_text(item: Any) -> Text:
    if isinstance(item, types.Record):
        dtype = numpy_support.as_dtype(item)
        fields: Any = dtype.fields or {}
        return [[[name, fields[name][0].str, fields[name][1]] for name in dtype.names or ()], dtype.itemsize]
    return numpy_support.as_dtype(item).str


def dtype_of(text: Text) -> np.dtype[Any]:
    """Return the NumPy dtype that an array's text names."""
    if isinstance(text, str):
        return np.dtype(text)
    fields, size = text
    names, formats, offsets = zip(*fields, strict=True)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})


def type_of(text: Text) -> Any:
    """Return the Numba type of a text: the inverse of :func:`described`."""
    if isinstance(text, str):
        return types.boolean if text == "bool" else getattr(types, text)
    match text:
        case ["array", item, dimensions, layout, access, *unaligned]:
            return types.Array(
                numpy_support.from_dtype(dtype_of(item)),
                dimensions,
                layout,
                readonly=access == "r",
                aligned=not unaligned,
            )
        case ["bytes"]:
            return types.Bytes(types.uint8, 1, "C", readonly=True)
        case ["tuple", parts]:
            return types.Tuple([type_of(part) for part in parts])
        case ["named", place, parts]:
            return types.NamedTuple([type_of(part) for part in parts], _class_of(place))
    raise ValueError(f"no type: {text!r}")


def _class_of(place: str) -> Any:
    module, _, name = place.partition(":")
    found = getattr(importlib.import_module(module), name)
    assert isinstance(found, type(namedtuple)) or issubclass(found, tuple)
    return found


def read(path: Path = FILE) -> dict[str, list[list[Text]]]:
    """Return the recorded signatures: a list of the arguments' types for each call, by ``module:kernel``."""
    found: dict[str, list[list[Text]]] = json.loads(path.read_text())
    return found


def sound(path: Path = FILE) -> dict[str, list[list[Text]]]:
    """Return the recorded signatures of kernels that still exist and still take as many arguments."""
    kept: dict[str, list[list[Text]]] = {}
    for place, calls in read(path).items():
        count = _arguments(place)
        calls = [call for call in calls if len(call) == count]
        if calls:
            kept[place] = calls
    return kept


def _arguments(place: str) -> int | None:
    """Return the number of arguments of a kernel; None if it no longer exists."""
    module, _, name = place.partition(":")
    try:
        kernel = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return None
    return len(inspect.signature(inspect.unwrap(kernel)).parameters)


def write(signatures: dict[str, list[list[Text]]], path: Path = FILE) -> None:
    """Write signatures in an order that does not depend on the run."""
    lines = []
    for kernel, calls in sorted(signatures.items()):
        texts = sorted({json.dumps(call) for call in calls})
        lines.append(f"{json.dumps(kernel)}: [\n  " + ",\n  ".join(texts) + "\n]")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def merged(signatures: dict[str, list[list[Text]]]) -> dict[str, list[list[Text]]]:
    """Merge the signatures of a kernel that differ only in which arrays are read-only.

    An array of the merged signature is read-only if it is read-only in any of them. A kernel that accepts a read-only
    array does not write to it, and machine code for a read-only array also accepts a writable one.
    """
    return {place: _merged(calls) for place, calls in signatures.items()}


def _merged(calls: list[list[Text]]) -> list[list[Text]]:
    kept: dict[str, list[Text]] = {}
    for call in calls:
        key = json.dumps([_read_only(text) for text in call])
        kept[key] = _merged_text(kept.get(key, call), call)
    return list(kept.values())


def _read_only(text: Text) -> Text:
    """Return a type with all its arrays read-only."""
    match text:
        case ["array", item, dimensions, layout, _, *unaligned]:
            return ["array", item, dimensions, layout, "r", *unaligned]
        case [kind, *place, parts] if kind in ("tuple", "named"):
            return [kind, *place, [_read_only(part) for part in parts]]
    return text


def _merged_text(first: Text, second: Text) -> Text:
    """Merge two types that differ only in the access to arrays."""
    if isinstance(first, list):
        return [_merged_text(*pair) for pair in zip(first, second, strict=True)]
    # "r" comes before "w".
    return min(first, second)
