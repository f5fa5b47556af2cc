"""Arcs in tables: Parquet files by pyarrow, SQLite databases by the standard library."""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inlink.base.progress import track
from inlink.errors import DamageError, InputError
from inlink.graph.batches import ArcBatch
from inlink.graph.graph import Level
from inlink.graph.names import Names
from inlink.sources.edgelist import MAX_NODES, SOURCE_WORDS, TARGET_WORDS, WEIGHT_WORDS, words
from inlink.sources.source import Source

__all__ = ["nodes_beside", "parquet", "sqlite"]

_ROWS = 1 << 18


def nodes_beside(path: Path) -> Path:
    """Where the nodes of a Parquet file of arcs lie: ``links.parquet`` → ``links.nodes.parquet``."""
    return path.with_name(f"{path.name.removesuffix('.parquet')}.nodes.parquet")


def parquet(
    path: str | os.PathLike[str], *, columns: list[str] | None = None, level: Level | None = None
) -> Source:
    """Read arcs from a Parquet file, or from a folder of Parquet files.

    Nodes are numbers where both columns hold integers, and names where they hold strings or bytes. Where
    ``links.nodes.parquet`` lies beside ``links.parquet``, its nodes are taken in too, so that those without arcs
    are not lost: by the column ``name``, or ``node`` for numbers.

    Parameters
    ----------
    path : path-like
        The file or folder.
    columns : list of str or None
        Source, target and, if wanted, weight; None finds them by their names, else takes the first two.
    level : {"page", "host", "domain"} or None
        What the names are.

    Raises
    ------
    inlink.errors.InputError
        If there are no such columns, or they hold something else; at a null or a number out of range.
    inlink.errors.DamageError
        If a file is cut or damaged.
    """
    path = Path(path)
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{path}: no .parquet files in it")
    if path.is_dir():
        files = [file for file in files if not file.name.endswith(".nodes.parquet")] or files
    first = _open_parquet(files[0]).schema_arrow
    chosen = columns or _choose(first.names)
    if chosen is None or len(chosen) < 2:
        raise InputError(f"{files[0]}: needs two columns, a source and a target, and has {first.names}")
    beside = nodes_beside(path)
    nodes = beside if path.is_file() and beside.is_file() else None
    number = first.names.index(chosen[0]) if chosen[0] in first.names else 0
    numbers = pa.types.is_integer(first.types[number])
    num_nodes = _open_parquet(nodes).metadata.num_rows if nodes is not None and numbers else None
    if numbers and num_nodes == 0:
        num_nodes = None
    return Source(_parquet_batches(files, chosen, None if numbers else nodes), None, num_nodes, level)


def _choose(names: list[str]) -> list[str] | None:
    """Source, target and weight among a table's columns; None where there are not two."""
    found = _choose_named(names)
    return found or (names[:2] if len(names) >= 2 else None)


def _choose_named(names: list[str]) -> list[str] | None:
    def first(known: frozenset[str]) -> list[str]:
        return [name for name in names if words(name) in known][:1]

    ends = first(SOURCE_WORDS) + first(TARGET_WORDS)
    return ends + first(WEIGHT_WORDS) if len(ends) == 2 else None


def _open_parquet(path: Path) -> Any:
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        _ = file.schema_arrow.names  # read when asked for
        return file
    except (pa.ArrowException, ValueError) as error:  # ValueError: names of columns that are no UTF-8
        raise DamageError(f"{path}: no whole Parquet file ({_first_line(error)})") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({_first_line(error)})") from None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")


def _parquet_batches(files: list[Path], columns: list[str], nodes: Path | None) -> Iterator[ArcBatch]:
    if nodes is not None:
        for _, table in _rows([nodes], ["name"]):
            none = np.empty(0, np.uint32)
            yield ArcBatch(none, none, _names(table.column(0), f"{nodes}"))
    for place, table in _rows(files, columns):
        yield _arcs([table.column(k) for k in range(table.num_columns)], place)


def _rows(files: list[Path], columns: list[str]) -> Iterator[tuple[str, Any]]:
    with track("reading Parquet", sum(file.stat().st_size for file in files), "B") as task:
        for file in files:
            source = _open_parquet(file)
            missing = [name for name in columns if name not in source.schema_arrow.names]
            if missing:
                raise InputError(f"{file}: has no column {missing[0]!r}, only {source.schema_arrow.names}")
            row = 0
            try:
                for batch in source.iter_batches(_ROWS, columns=columns):
                    yield f"{file}, rows from {row:,}", batch.select(columns)
                    row += batch.num_rows
            except (pa.ArrowException, OSError, ValueError) as error:
                raise DamageError(f"{file}, after row {row:,}: damaged ({_first_line(error)})") from None
            task.advance(file.stat().st_size)


def _arcs(columns: list[Any], place: str) -> ArcBatch:
    """A batch from columns of sources, targets and perhaps weights."""
    for column in columns:
        if column.null_count:
            raise InputError(f"{place}: a source, target or weight is null: every arc needs them")
    weights = None
    if len(columns) > 2:
        try:
            weights = columns[2].cast(pa.float64()).to_numpy(zero_copy_only=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InputError(f"{place}: weights are of type {columns[2].type}, not numbers") from None
        check_weights(weights, place)
    if all(pa.types.is_integer(column.type) for column in columns[:2]):
        sources, targets = (_numbers(column, place) for column in columns[:2])
        return ArcBatch(sources, targets, None, weights)
    ends = pa.concat_arrays([_names(column, place) for column in columns[:2]])
    places = np.arange(len(ends), dtype=np.uint32)
    return ArcBatch(places[: len(ends) // 2], places[len(ends) // 2 :], ends, weights)


def check_weights(weights: np.ndarray[Any, Any], place: str) -> None:
    """Refuse weights that no rank can be made of, saying where they stand.

    Raises
    ------
    inlink.errors.InputError
        Naming the first that is not a finite number above 0.
    """
    wrong = ~(np.isfinite(weights) & (weights > 0))
    if wrong.any():
        raise InputError(f"{place}: weight {weights[int(np.argmax(wrong))]} is not a finite number above 0")


def _numbers(column: Any, place: str) -> Any:
    if len(column):
        bounds = pc.min_max(column)
        low, high = bounds["min"].as_py(), bounds["max"].as_py()
        if low < 0 or high >= MAX_NODES:
            wrong = low if low < 0 else high
            raise InputError(f"{place}: node {wrong:,} is out of range (from 0, below {MAX_NODES:,})")
    return column.cast(pa.uint32()).to_numpy(zero_copy_only=False)


def _names(column: Any, place: str) -> Any:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count:
        raise InputError(f"{place}: a name is null")
    kind = column.type
    if pa.types.is_integer(kind):
        column = column.cast(pa.string())
    elif not (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    ):
        raise InputError(f"{place}: nodes are of type {kind}: expected integers, strings or bytes")
    return column.cast(pa.large_binary())


# -- SQLite -----------------------------------------------------------------------------------------------------

_NAME_WORDS = ("link", "url", "name")  # the column of a table of names
_TABLES = ["arcs", "edges", "links", "wikigraph", "graph"]  # which of several fitting tables is meant


def sqlite(
    path: str | os.PathLike[str],
    *,
    table: str | None = None,
    columns: list[str] | None = None,
    level: Level | None = None,
) -> Source:
    """Read arcs from a table of an SQLite database.

    Nodes are numbers where the first row has two integers, and names otherwise. With a table ``nodes(id, name)``
    beside a table of numbers, as inlink writes them, nodes take their names from there. With a table of names that
    has a column ``crawled``, such as ``WikiLinks(link, title, crawled)``, its rows are nodes too, and those are crawled
    where it is not 0.

    Parameters
    ----------
    path : path-like
        The database; it is opened for reading only.
    table : str or None
        The table; None finds the one whose columns are called as a source and a target, such as ``WikiGraph(fromLink,
        toLink)``; of several the one called arcs, edges, links, WikiGraph or graph.
    columns : list of str or None
        Source, target and, if wanted, weight; None finds them.
    level : {"page", "host", "domain"} or None
        What the names are.

    Raises
    ------
    inlink.errors.InputError
        If no table or no column fits, or several do; at a null, a weight that is none, a number out of range.
    inlink.errors.DamageError
        If the database is damaged.
    """
    path = Path(path)
    database = _Database(path)
    tables = database.tables()
    if table is None:
        table = _choose_table(path, tables)
    elif table not in tables:
        raise InputError(f"{path}: has no table {table!r}, only {', '.join(tables)}")
    chosen = columns or _choose(tables[table])
    if chosen is None or len(chosen) < 2 or any(name not in tables[table] for name in chosen):
        raise InputError(
            f"{path}: table {table} has the columns {', '.join(tables[table])}: name source and target"
        )
    names = None
    first = next(iter(database.rows(table, chosen[:2])), None)
    by_number = first is not None and all(type(end) is int for end in first)
    if by_number or first is None:
        names = database.names(tables)
    num_nodes = len(names) if names is not None else None
    if names is None and (by_number or first is None):
        num_nodes = database.count(tables)
    batches = _sqlite_batches(database, table, chosen, by_number, num_nodes)
    if not by_number:
        batches = chain(batches, _crawled_batches(database, tables))
    return Source(batches, names, num_nodes, level)


class _Database:
    """An SQLite file, opened for reading; what SQLite complains of becomes a DamageError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise InputError(f"{path} does not exist" if not path.exists() else f"{path} is no file")

    def run(self, query: str) -> Iterator[tuple[Any, ...]]:
        connection = None
        try:
            connection = sqlite3.connect(f"file:{quote(str(self.path.resolve()))}?mode=ro", uri=True)
            connection.text_factory = bytes
            connection.execute("PRAGMA trusted_schema = OFF")
            yield from connection.execute(query)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise DamageError(f"{self.path}: cannot be read as SQLite ({error})") from None
        finally:
            if connection is not None:
                connection.close()

    def tables(self) -> dict[str, list[str]]:
        """Tables in the order of their making, and their columns."""
        query = (
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        )
        names = [name.decode("utf-8", "replace") for (name,) in self.run(query)]
        return {
            name: [
                row[1].decode("utf-8", "replace") for row in self.run(f"PRAGMA table_info({_quoted(name)})")
            ]
            for name in names
        }

    def rows(self, table: str, columns: Iterable[str], order: str = "") -> Iterator[tuple[Any, ...]]:
        """All rows of some columns."""
        return self.run(f"SELECT {', '.join(map(_quoted, columns))} FROM {_quoted(table)} {order}")

    def count(self, tables: dict[str, list[str]]) -> int | None:
        """How many nodes there are, where a table says so."""
        if tables.get("nodes", [])[:1] != ["id"]:
            return None
        (highest,) = next(self.run('SELECT max("id") FROM "nodes"'))
        return highest + 1 if type(highest) is int and 0 <= highest < MAX_NODES else None

    def names(self, tables: dict[str, list[str]]) -> Names | None:
        """The names of nodes that an ``id`` counts from 0, where there are."""
        if {"id", "name"} - {column.lower() for column in tables.get("nodes", [])}:
            return None
        names = []
        for number, (node, name) in enumerate(self.rows("nodes", ["id", "name"], 'ORDER BY "id"')):
            if node != number or not isinstance(name, bytes | str):
                raise InputError(
                    f"{self.path}: table nodes: expected id {number} and a name, not {node!r}, {name!r}"
                )
            names.append(name)
        return Names.of(names)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _choose_table(path: Path, tables: dict[str, list[str]]) -> str:
    fitting = [name for name, columns in tables.items() if _choose_named(columns)]
    if not fitting and len(tables) == 1:
        return next(iter(tables))
    known = [name for wanted in _TABLES for name in fitting if name.lower() == wanted]
    if len(fitting) == 1 or known:
        return known[0] if known else fitting[0]
    if fitting:
        raise InputError(
            f"{path}: several tables could hold arcs ({', '.join(fitting)}): name one with --table"
        )
    raise InputError(
        f"{path}: no table has a source and a target ({', '.join(tables) or 'no tables'}): name one with --table"
    )


def _sqlite_batches(
    database: _Database, table: str, columns: list[str], by_number: bool, num_nodes: int | None
) -> Iterator[ArcBatch]:
    limit = MAX_NODES if num_nodes is None else num_nodes
    rows: list[tuple[Any, ...]] = []
    count = 0
    with track(f"reading {database.path.name}", None, "arcs") as task:
        for row in database.rows(table, columns):
            rows.append(row)
            if len(rows) == _ROWS:
                yield _sqlite_batch(rows, by_number, limit, f"{database.path}, table {table}", count)
                count += len(rows)
                task.advance(len(rows))
                rows = []
        if rows:
            yield _sqlite_batch(rows, by_number, limit, f"{database.path}, table {table}", count)


def _crawled_batches(database: _Database, tables: dict[str, list[str]]) -> Iterator[ArcBatch]:
    """Which names were crawled, where a table says so."""
    for table, columns in tables.items():
        by_word = {column.lower(): column for column in columns}
        name = next((by_word[word] for word in _NAME_WORDS if word in by_word), None)
        if name is None or "crawled" not in by_word:
            continue
        rows = database.rows(table, [name, by_word["crawled"]])
        while part := list(islice(rows, _ROWS)):
            if any(not isinstance(node, bytes) for node, _ in part):
                raise InputError(f"{database.path}, table {table}: a {name} is no text")
            crawled = np.flatnonzero([mark not in (None, 0, b"", b"0") for _, mark in part])
            none = np.empty(0, np.uint32)
            names = pa.array([node for node, _ in part], pa.large_binary())
            yield ArcBatch(none, none, names, crawled=crawled.astype(np.uint32))
        return


def _sqlite_batch(
    rows: list[tuple[Any, ...]], by_number: bool, limit: int, where: str, before: int
) -> ArcBatch:
    for number, row in enumerate(rows, before + 1):
        if by_number:
            for end in row[:2]:
                if type(end) is not int or not 0 <= end < limit:
                    raise InputError(f"{where}, row {number:,}: {end!r} is no node number below {limit:,}")
        elif any(end is None or isinstance(end, float) for end in row[:2]):
            raise InputError(f"{where}, row {number:,}: a node is null or a fraction: expected text")
        if len(row) > 2 and not (isinstance(row[2], int | float) and 0 < row[2] < float("inf")):
            raise InputError(f"{where}, row {number:,}: weight {row[2]!r} is not a finite number above 0")
    weights = np.array([row[2] for row in rows], np.float64) if len(rows[0]) > 2 else None
    if by_number:
        ends = np.array([row[:2] for row in rows], np.uint32)
        return ArcBatch(ends[:, 0].copy(), ends[:, 1].copy(), None, weights)
    names = [end if isinstance(end, bytes) else str(end).encode() for row in rows for end in row[:2]]
    places = np.arange(len(names), dtype=np.uint32)
    return ArcBatch(places[::2].copy(), places[1::2].copy(), pa.array(names, pa.large_binary()), weights)
