"""Rankings as tables: CSV and Parquet files, Arrow tables and pandas data frames. A row is a node."""

import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from inlink.base.arrays import Float64Array
from inlink.base.arrow import Column, capsule
from inlink.base.extras import load
from inlink.base.folder import atomic_file
from inlink.base.strings import to_arrow
from inlink.errors import DamageError, FormatError, InputError, OutputError
from inlink.graph.names import Names, decode
from inlink.graph.views import name_batches

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["arrow_stream", "arrow_table", "data_frame", "read_table", "write_csv", "write_parquet"]

# The first line of a CSV file begins with this text. The rest of the line is JSON.
_MARK = "# inlink ranking "
# The key of the description in the metadata of the Parquet schema.
_KEY = b"inlink.ranking"
_BATCH = 1 << 16

Columns = dict[str, Float64Array]
Table = tuple[dict[str, Any], list[Float64Array], Names | None]


def write_csv(
    path: str | os.PathLike[str], names: Names | None, columns: Columns, meta: dict[str, Any] | None
) -> None:
    """Write CSV. Without a description, write only quoted names and values.

    Raises
    ------
    inlink.errors.OutputError
        If the file cannot be written.
    """
    named, plain = names is not None, meta is None
    size = len(next(iter(columns.values())))
    heads = ["node"] + (["name"] if named else []) + list(columns)
    with atomic_file(path) as work:
        try:
            with work.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
                quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if plain else csv.QUOTE_MINIMAL
                writer = csv.writer(file, lineterminator="\n", quoting=quoting)
                if meta is not None:
                    file.write(_MARK + json.dumps(meta) + "\n")
                    writer.writerow(heads)
                for start in range(0, size, _BATCH):
                    stop = min(start + _BATCH, size)
                    parts: list[Any] = [] if plain and named else [range(start, stop)]
                    if names is not None:
                        parts.append([decode(raw) for raw in names.column(start, stop).to_pylist()])
                    parts += [column[start:stop].tolist() for column in columns.values()]
                    writer.writerows(zip(*parts, strict=True))
        except OSError as error:
            raise OutputError(f"{path}: cannot be written ({error.strerror})") from None


def write_parquet(
    path: str | os.PathLike[str], names: Names | None, columns: Columns, meta: dict[str, Any]
) -> None:
    """Write Parquet, with the description in the schema's metadata.

    Raises
    ------
    inlink.errors.OutputError
        If the file cannot be written.
    """
    pq = load("pyarrow.parquet", "arrow", "Parquet")
    schema = _schema(names, columns, meta)
    with atomic_file(path) as work:
        try:
            with pq.ParquetWriter(work, schema) as writer:
                for batch in _batches(names, columns, schema):
                    writer.write_batch(batch)
        except OSError as error:
            raise OutputError(f"{path}: cannot be written ({error.strerror or error})") from None


def arrow_table(names: Names | None, columns: Columns, meta: dict[str, Any]) -> "pyarrow.Table":
    """Return the table that :func:`write_parquet` writes, as an Arrow table in memory."""
    pa = load("pyarrow", "arrow", "an Arrow table")
    schema = _schema(names, columns, meta)
    return pa.Table.from_batches(_batches(names, columns, schema), schema)


def arrow_stream(names: Names | None, columns: Columns) -> object:
    """Return a capsule with the columns node, name (if there are names) and the values, as an Arrow stream."""
    fields, nodes = name_batches(names, len(next(iter(columns.values()))))

    def batches() -> Iterator[list[Column]]:
        start = 0
        for batch in nodes:
            stop = start + len(batch[0])
            yield [*batch, *(np.ascontiguousarray(values[start:stop]) for values in columns.values())]
            start = stop

    return capsule([*fields, *((name, np.float64) for name in columns)], batches())


def data_frame(names: Names | None, columns: Columns) -> "pandas.DataFrame":
    """Return the columns as a pandas data frame, indexed by name, or by number if there are no names.

    Raises
    ------
    inlink.errors.MissingExtraError
        If pandas is not installed.
    """
    pandas = load("pandas", None, "to_pandas()")
    if names is None:
        index = pandas.RangeIndex(len(next(iter(columns.values()))), name="node")
    else:
        index = pandas.Index(list(names), dtype=object, name="name")
    return pandas.DataFrame(columns, index=index)


def _schema(names: Names | None, columns: Columns, meta: dict[str, Any]) -> "pyarrow.Schema":
    pa = load("pyarrow", "arrow", "an Arrow table")
    fields = [pa.field("node", pa.uint32())]
    if names is not None:
        blocks = (names.column(low, min(low + _BATCH, len(names))) for low in range(0, len(names), _BATCH))
        text = all(block.is_utf8() for block in blocks)
        fields.append(pa.field("name", pa.large_string() if text else pa.large_binary()))
    fields += [pa.field(name, pa.float64()) for name in columns]
    return pa.schema(fields, metadata={_KEY: json.dumps(meta).encode()})


def _batches(
    names: Names | None, columns: Columns, schema: "pyarrow.Schema"
) -> "Iterator[pyarrow.RecordBatch]":
    pa = load("pyarrow", "arrow", "an Arrow table")
    text = names is not None and pa.types.is_large_string(schema.field("name").type)
    size = len(next(iter(columns.values())))
    for start in range(0, size, _BATCH):
        stop = min(start + _BATCH, size)
        arrays = [pa.array(np.arange(start, stop, dtype=np.uint32))]
        if names is not None:
            arrays.append(to_arrow(names.column(start, stop), text=text))
        arrays += [pa.array(np.ascontiguousarray(column[start:stop])) for column in columns.values()]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read the description, columns and names from a file that was written by a function of this module.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read, was not written by inlink, or is damaged.
    """
    try:
        with Path(path).open("rb") as file:
            head = file.read(len(_MARK))
        if head[:4] == b"PAR1":
            return _read_parquet(path)
        if head == _MARK.encode():
            return _read_csv(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    raise FormatError(f"{path}: not a ranking that inlink wrote (CSV or Parquet)")


def _read_parquet(path: str | os.PathLike[str]) -> Table:
    pa, pq = load("pyarrow", "arrow", "Parquet"), load("pyarrow.parquet", "arrow", "Parquet")
    try:
        table = pq.read_table(path)
        raw = (table.schema.metadata or {}).get(_KEY)
        if raw is None:
            raise FormatError(f"{path}: a Parquet file, but not of a ranking that inlink wrote")
        meta = json.loads(raw)
        if table["node"].to_pylist() != list(range(len(table))):
            raise DamageError(f"{path}: the nodes are not 0, 1, 2, …: export the ranking again")
        names = None
        if "name" in table.column_names:
            names = Names.of(table["name"].cast(pa.large_binary()).to_pylist())
        columns = [table[c].to_numpy().astype(np.float64) for c in meta["columns"]]
    except (pa.ArrowException, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamageError(
            f"{path}: damaged ({str(error).partition(chr(10))[0]}): export the ranking again"
        ) from None
    return meta, columns, names


def _read_csv(path: str | os.PathLike[str]) -> Table:
    line = 1
    try:
        with Path(path).open(encoding="utf-8", errors="surrogateescape", newline="") as file:
            meta = json.loads(file.readline()[len(_MARK) :])
            reader = csv.reader(file)
            heads = next(reader)
            named = "name" in heads
            if heads != ["node", *(["name"] if named else []), *meta["columns"]]:
                raise ValueError("the columns are not those of a ranking")
            names: list[str] = []
            columns: list[list[float]] = [[] for _ in meta["columns"]]
            for expected, row in enumerate(reader):
                line = 1 + reader.line_num
                if len(row) != len(heads) or int(row[0]) != expected:
                    raise ValueError(f"expected node {expected} and {len(heads)} fields")
                if named:
                    names.append(row[1])
                for column, text in zip(columns, row[1 + named :], strict=True):
                    column.append(float(text))
    except (ValueError, KeyError, TypeError, RecursionError, StopIteration, csv.Error) as error:
        raise DamageError(f"{path}, line {line}: {error or 'cut short'}: export the ranking again") from None
    return meta, [np.array(c, np.float64) for c in columns], Names.of(names) if named else None
