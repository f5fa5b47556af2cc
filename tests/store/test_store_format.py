"""The log's format as it is declared, and as docs/on-disk.md shows it."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from inlink.store import format as layout
from inlink.store.format import CHECKED, HEAD, HEAD_SIZE, KINDS, Head, dtype_of, size_of, struct_of

PAGE = (Path(__file__).parents[2] / "docs" / "on-disk.md").read_text()
RECORDS = {name: getattr(layout, name) for name in layout.__all__ if name.endswith("Record")}


def rows(pattern: str) -> list[tuple[str, ...]]:
    return [match.groups() for match in re.finditer(pattern, PAGE, re.M)]


def fields_of(record: Any) -> str:
    dtype = dtype_of(record)
    return ", ".join(f"`{name}` {dtype[name].name}" for name in dtype.names or ())


def test_the_byte_map_of_the_head_is_true():
    assert HEAD.fields is not None
    told = rows(r"^\| (\d+) \| `(\w+)` \| (\w+) \| .+ \|$")
    assert told == [(str(offset), name, dtype.name) for name, (dtype, offset) in HEAD.fields.items()]


def test_the_table_of_kinds_is_true():
    told = rows(r"^\| `(\w+)` \| (\d+) \| .+ \|$")
    assert [(name, int(number)) for name, number in told if name in KINDS] == [
        (name, number) for number, name in enumerate(KINDS) if number
    ]
    named = set(re.findall(r"`(\w+Record)`", PAGE))
    assert named == set(RECORDS)


def test_the_table_of_records_is_true():
    told = {
        name: (int(size), fields) for name, size, fields in rows(r"^\| `(\w+Record)` \| (\d+) \| (.+) \|$")
    }
    assert told == {name: (size_of(record), fields_of(record)) for name, record in RECORDS.items()}


def test_python_and_kernels_see_the_same_bytes():
    for record in (Head, *RECORDS.values()):
        dtype = dtype_of(record)
        assert dtype.itemsize == size_of(record)
        values = [0.5 + k if dtype[name].kind == "f" else 1 + k for k, name in enumerate(dtype.names or ())]
        packed = struct_of(record).pack(*values)
        seen = np.frombuffer(packed, dtype)[0]
        assert [seen[name].item() for name in dtype.names or ()] == values
    assert CHECKED.size + 4 == HEAD_SIZE
