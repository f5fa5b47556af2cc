"""Rankings as tables: CSV, TSV and Parquet files, Arrow tables and pandas data frames. A row is a node.

The description of a ranking is in the metadata of a Parquet file, and beside a text file: ``ranks.csv.meta.json``.
"""

import contextlib
import csv
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TextIO

import numpy as np

from inlink.base.arrays import Float64Array, slices
from inlink.base.arrow import Column, capsule
from inlink.base.extras import load
from inlink.base.folder import atomic_file
from inlink.base.opening import Stream, head
from inlink.base.strings import to_arrow
from inlink.base.table import counted
from inlink.errors import DamageError, FormatError, InputError, OutputError
from inlink.graph.names import Names, decode
from inlink.graph.views import name_batches

if TYPE_CHECKING:
    import pandas
    import pyarrow


# The first line of CSV files of versions before November 2026 begins with this text. The rest of the line is JSON.
_MARK = b"# inlink ranking "
_HEADER = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:node([,\t])(?:name\1)?|name([,\t]))(?:value|authorities[,\t]hubs)\r?\n"
)
# The key of the description in the metadata of the Parquet schema.
_KEY = b"inlink.ranking"
_BATCH = 1 << 16

Columns = dict[str, Float64Array]


class RankTable(NamedTuple):
    """A ranking that was read from a file.

    Attributes
    ----------
    meta : dict or None
        The description; None if a text file has none beside it.
    columns : dict of str to float64[k]
        The values, by the names of columns.
    names : Names or None
        The names of the nodes, if the file has them.
    complete : bool
        Whether the rows are the nodes 0, 1, 2, … . Otherwise rows were removed, or the file has no numbers of nodes.
    """

    meta: dict[str, Any] | None
    columns: Columns
    names: Names | None
    complete: bool


def _description(path: Path) -> Path:
    return path.with_name(f"{path.name}.meta.json")


class _Lines(NamedTuple):
    """A text file that drops the last character of each line, a CR that makes Python 3.11 quote cells with a CR."""

    file: TextIO

    def write(self, line: str) -> None:
        self.file.write(line[:-1])


def write_csv(
    path: str | os.PathLike[str],
    names: Names | None,
    columns: Columns,
    meta: dict[str, Any] | None,
    *,
    safe_cells: bool = False,
) -> None:
    """Write CSV, or TSV if the file's name ends so. Without a description, write only quoted names and values.

    Raises
    ------
    inlink.errors.OutputError
        If a file cannot be written.
    """
    path = Path(path)
    named, plain = names is not None, meta is None
    size = len(next(iter(columns.values())))
    quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if plain else csv.QUOTE_MINIMAL
    with contextlib.ExitStack() as stack:
        try:
            if meta is not None:
                text = json.dumps(meta | {"nodes": size}, indent=1) + "\n"
                stack.enter_context(atomic_file(_description(path))).write_text(text)
            work = stack.enter_context(atomic_file(path))
            with work.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
                delimiter = "\t" if path.suffix == ".tsv" else ","
                writer = csv.writer(_Lines(file), lineterminator="\n\r", quoting=quoting, delimiter=delimiter)
                if not plain:
                    writer.writerow(["node"] + (["name"] if named else []) + list(columns))
                for batch in slices(size, _BATCH):
                    start, stop = batch.start, batch.stop
                    parts: list[Any] = [] if plain and named else [range(start, stop)]
                    if names is not None:
                        cells = names.column(start, stop)
                        cells = cells.safe_cells() if safe_cells else cells
                        parts.append([decode(raw) for raw in cells.to_pylist()])
                    parts += [column[start:stop].tolist() for column in columns.values()]
                    writer.writerows(zip(*parts, strict=True))
            # The files get their names one after the other, and an old description must not describe new values.
            _description(path).unlink(missing_ok=True)
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
        fields.append(pa.field("name", pa.large_string() if names.is_utf8() else pa.large_binary()))
    fields += [pa.field(name, pa.float64()) for name in columns]
    return pa.schema(fields, metadata={_KEY: json.dumps(meta).encode()})


def _batches(
    names: Names | None, columns: Columns, schema: "pyarrow.Schema"
) -> "Iterator[pyarrow.RecordBatch]":
    pa = load("pyarrow", "arrow", "an Arrow table")
    text = names is not None and pa.types.is_large_string(schema.field("name").type)
    size = len(next(iter(columns.values())))
    for batch in slices(size, _BATCH):
        arrays = [pa.array(np.arange(batch.start, batch.stop, dtype=np.uint32))]
        if names is not None:
            arrays.append(to_arrow(names.column(batch.start, batch.stop), text=text))
        arrays += [pa.array(np.ascontiguousarray(column[batch])) for column in columns.values()]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def is_table(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is Parquet, or begins as text that :func:`write_csv` wrote.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read.
    """
    start = head(path, 1 << 10)
    return start.startswith((b"PAR1", _MARK)) or _HEADER.match(start) is not None


def read_table(path: str | os.PathLike[str]) -> RankTable:
    """Read a file that was written by a function of this module. Rows of a text file may be sorted, or removed.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read, was not written by inlink, or is damaged.
    """
    if not is_table(path):
        raise FormatError(f"{path}: not a ranking that inlink wrote (CSV, TSV or Parquet)")
    try:
        with Path(path).open("rb") as file:
            packed = file.read(4) == b"PAR1"
        table = _read_parquet(path) if packed else _read_text(Path(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    for column in table.columns.values():
        wrong = np.flatnonzero(~np.isfinite(column))
        if len(wrong):
            raise DamageError(
                f"{path}: the value of node {wrong[0]:,} is {column[wrong[0]]}: export the ranking again"
            )
    return table


def _read_parquet(path: str | os.PathLike[str]) -> RankTable:
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
        columns = {name: table[name].to_numpy().astype(np.float64) for name in meta["columns"]}
    except (pa.ArrowException, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamageError(
            f"{path}: damaged ({str(error).partition(chr(10))[0]}): export the ranking again"
        ) from None
    return RankTable(meta, columns, names, complete=True)


def _meta_beside(path: Path, columns: list[str]) -> dict[str, Any] | None:
    """Return the description beside a text file; None if there is none, as after the file was moved."""
    beside = _description(path)
    if not beside.is_file():
        return None
    with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
        meta: dict[str, Any] = json.loads(beside.read_bytes())
        if meta["columns"] == columns:
            return meta
    raise DamageError(f"{beside} does not describe {path.name}: remove it, or export the ranking again")


def _read_text(path: Path) -> RankTable:
    line, before = 1, 0
    try:
        with Stream(path, f"reading {path.name}") as stream, stream.text() as file:
            first, meta = file.readline(), None
            if first.startswith(_MARK.decode()):
                meta, first, before = json.loads(first[len(_MARK) :]), file.readline(), 1
            delimiter = "\t" if "\t" in first else ","
            heads = first.rstrip("\r\n").split(delimiter)
            numbered, named = "node" in heads, "name" in heads
            kept = heads[numbered + named :]
            if not before:
                meta = _meta_beside(path, kept)
            elif meta is None or meta["columns"] != kept:
                raise ValueError("the columns are not those of a ranking")
            numbers: list[int] = []
            names: list[str] = []
            columns: list[list[float]] = [[] for _ in kept]
            reader = csv.reader(file, delimiter=delimiter)
            for row in reader:
                line = before + 1 + reader.line_num
                if len(row) != len(heads):
                    raise ValueError(f"expected {counted(len(heads), 'field')}; got {len(row)}")
                if numbered:
                    numbers.append(int(row[0]))
                if named:
                    names.append(row[numbered])
                for column, text in zip(columns, row[numbered + named :], strict=True):
                    column.append(float(text))
        order = np.argsort(numbers, kind="stable")
        complete = numbered and np.array_equal(np.array(numbers)[order], np.arange(len(order)))
        if not complete:
            if not named:
                raise ValueError("the nodes are not 0, 1, 2, …, and have no names")
            order = np.arange(len(names))
        values = {
            name: np.array(column, np.float64)[order] for name, column in zip(kept, columns, strict=True)
        }
        complete = complete and (meta is None or meta.get("nodes", len(order)) == len(order))
        in_order = Names.of([names[row] for row in order.tolist()]) if named else None
        return RankTable(meta, values, in_order, complete)
    except (ValueError, KeyError, TypeError, RecursionError, csv.Error) as error:
        raise DamageError(f"{path}, line {line}: {error or 'cut short'}: export the ranking again") from None
