"""Arcs in tables: Parquet files (pyarrow) and SQLite databases (standard library)."""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from inlink.base.extras import load
from inlink.base.progress import track
from inlink.base.strings import Strings, from_arrow
from inlink.errors import DamageError, InputError, ParameterError
from inlink.graph.batches import ArcBatch
from inlink.graph.names import Names
from inlink.graph.source import Source
from inlink.sources.edgelist import MAX_NODES, SOURCE_WORDS, TARGET_WORDS, WEIGHT_WORDS, words

_ROWS = 1 << 18


def nodes_beside(path: Path) -> Path:
    """Return the path of the nodes beside a Parquet file of arcs: ``links.parquet`` → ``links.nodes.parquet``."""
    return path.with_name(f"{path.name.removesuffix('.parquet')}.nodes.parquet")


def parquet(path: str | os.PathLike[str], *, columns: Sequence[str] | None = None) -> Source:
    """Read arcs from a Parquet file, or from a folder of Parquet files.

    Nodes are numbers if both columns hold integers, and names if they hold strings or bytes. If there is a
    ``links.nodes.parquet`` beside ``links.parquet``, its nodes are read too, so that nodes without arcs are kept. Its
    column is ``name``, or ``node`` for numbers.

    Parameters
    ----------
    path : path-like
        The file or folder.
    columns : sequence of str or None
        Source, target and, if wanted, weight. None: found by their names, else the first two.

    Raises
    ------
    inlink.errors.InputError
        If the columns are missing or of another type, or hold a null or a number out of range.
    inlink.errors.DamageError
        If a file is truncated or damaged.
    inlink.errors.ParameterError
        If `columns` has not two or three names.
    """
    path = Path(path)
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{path}: this folder has no .parquet files")
    if path.is_dir():
        files = [file for file in files if not file.name.endswith(".nodes.parquet")] or files
    first = _open_parquet(files[0]).schema_arrow
    chosen = _chosen(columns) or _choose(first.names)
    if chosen is None or len(chosen) < 2:
        raise InputError(f"{files[0]}: expected at least two columns, source and target; got {first.names}")
    beside = nodes_beside(path)
    nodes = beside if path.is_file() and beside.is_file() else None
    number = first.names.index(chosen[0]) if chosen[0] in first.names else 0
    numbers = load("pyarrow", "arrow", "Parquet").types.is_integer(first.types[number])
    num_nodes = _open_parquet(nodes).metadata.num_rows if nodes is not None and numbers else None
    if numbers and num_nodes == 0:
        num_nodes = None
    return Source(_parquet_batches(files, chosen, None if numbers else nodes), None, num_nodes)


def _chosen(columns: Sequence[str] | None) -> list[str]:
    """Return the two or three given columns as a list, which is empty for None."""
    if columns is not None and len(columns) not in (2, 3):
        raise ParameterError(
            f"`columns` must name source, target and, if wanted, weight; got {', '.join(columns) or 'none'}"
        )
    return list(columns or ())


def _choose(names: list[str]) -> list[str] | None:
    """Return source, target and perhaps weight among the columns of a table; None if there are fewer than two."""
    return _choose_named(names) or (names[:2] if len(names) >= 2 else None)


def _choose_named(names: list[str]) -> list[str] | None:
    def first(words_of: frozenset[str]) -> list[str]:
        return [name for name in names if words(name) in words_of][:1]

    ends = first(SOURCE_WORDS) + first(TARGET_WORDS)
    return ends + first(WEIGHT_WORDS) if len(ends) == 2 else None


def _open_parquet(path: Path) -> Any:
    pa, pq = load("pyarrow", "arrow", "Parquet"), load("pyarrow.parquet", "arrow", "Parquet")
    try:
        file = pq.ParquetFile(path)
        # The schema is read when it is asked for.
        _ = file.schema_arrow.names
        return file
    except (pa.ArrowException, ValueError) as error:
        # A ValueError means that the name of a column is not UTF-8.
        raise DamageError(f"{path}: not a Parquet file, or damaged ({_first_line(error)})") from None
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
    pa = load("pyarrow", "arrow", "Parquet")
    with track("reading Parquet", sum(file.stat().st_size for file in files), "B") as task:
        for file in files:
            source = _open_parquet(file)
            missing = [name for name in columns if name not in source.schema_arrow.names]
            if missing:
                raise InputError(
                    f"{file}: no column {missing[0]!r}; the columns are {source.schema_arrow.names}"
                )
            row = 0
            try:
                for batch in source.iter_batches(_ROWS, columns=columns):
                    yield f"{file}, rows from {row:,}", batch.select(columns)
                    row += batch.num_rows
            except (pa.ArrowException, OSError, ValueError) as error:
                raise DamageError(f"{file}, after row {row:,}: damaged ({_first_line(error)})") from None
            task.advance(file.stat().st_size)


def _arcs(columns: list[Any], place: str) -> ArcBatch:
    """Return a batch of the columns source, target and perhaps weight."""
    pa = load("pyarrow", "arrow", "Parquet")
    for column in columns:
        if column.null_count:
            raise InputError(f"{place}: source, target or weight is null")
    weights = None
    if len(columns) > 2:
        try:
            weights = columns[2].cast(pa.float64()).to_numpy(zero_copy_only=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InputError(f"{place}: weights must be numbers; their type is {columns[2].type}") from None
        check_weights(weights, place)
    if all(pa.types.is_integer(column.type) for column in columns[:2]):
        sources, targets = (_numbers(column, place) for column in columns[:2])
        return ArcBatch(sources, targets, None, weights)
    ends = Strings.concat([_names(column, place) for column in columns[:2]])
    places = np.arange(len(ends), dtype=np.uint32)
    return ArcBatch(places[: len(ends) // 2], places[len(ends) // 2 :], ends, weights)


def check_weights(weights: np.ndarray[Any, Any], place: str) -> None:
    """Refuse weights that cannot be ranked with.

    Raises
    ------
    inlink.errors.InputError
        If a weight is not a finite number above 0. The message has `place` and the weight.
    """
    wrong = ~(np.isfinite(weights) & (weights > 0))
    if wrong.any():
        raise InputError(
            f"{place}: weight must be a finite number above 0; got {weights[int(np.argmax(wrong))]}"
        )


def _numbers(column: Any, place: str) -> Any:
    values = column.to_numpy(zero_copy_only=False)
    if len(values):
        low, high = int(values.min()), int(values.max())
        if low < 0 or high >= MAX_NODES:
            wrong = low if low < 0 else high
            raise InputError(f"{place}: node number must be from 0 to {MAX_NODES - 1:,}; got {wrong:,}")
    return values.astype(np.uint32)


def _names(column: Any, place: str) -> Strings:
    pa = load("pyarrow", "arrow", "Parquet")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count:
        raise InputError(f"{place}: name is null")
    kind = column.type
    if pa.types.is_integer(kind):
        column = column.cast(pa.string())
    elif not (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    ):
        raise InputError(f"{place}: nodes must be integers, strings or bytes; their type is {kind}")
    return from_arrow(column)


# -- SQLite -----------------------------------------------------------------------------------------------------

# Names of the column that holds the names, in a table of nodes.
_NAME_WORDS = ("link", "url", "name")
# If several tables fit, the first of these is taken.
_TABLES = ["arcs", "edges", "links", "wikigraph", "graph"]


def sqlite(
    path: str | os.PathLike[str],
    *,
    table: str | None = None,
    columns: Sequence[str] | None = None,
) -> Source:
    """Read arcs from a table of an SQLite database.

    Nodes are numbers if the first row has two integers, and names otherwise. Numbered nodes get their names from a
    table ``nodes(id, name)``, as inlink writes it, if there is one. A table of names with a column ``crawled``, such as
    ``WikiLinks(link, title, crawled)``, says which pages were crawled: those where the column is not 0. Without
    ``table``, all its rows are nodes. With ``table``, only the names that occur in that table are nodes.

    Parameters
    ----------
    path : path-like
        The database. It is opened read-only.
    table : str or None
        The table. None finds the table whose columns have the names of a source and a target, such as
        ``WikiGraph(fromLink, toLink)``. Among several such tables, the one called arcs, edges, links, WikiGraph or
        graph is taken.
    columns : sequence of str or None
        Source, target and, if wanted, weight. None: found by their names, else the first two.

    Raises
    ------
    inlink.errors.InputError
        If no table or several fit, a column is missing, or a row holds a null, a wrong weight or a number out of range.
    inlink.errors.DamageError
        If the database is damaged.
    """
    path = Path(path)
    database = _Database(path)
    tables = database.tables()
    named = table
    if table is None:
        table = _choose_table(path, tables)
    elif table not in tables:
        raise InputError(f"{path}: no table {table!r}; the tables are {', '.join(tables)}")
    chosen = _chosen(columns) or _choose(tables[table])
    if chosen is None or len(chosen) < 2 or any(name not in tables[table] for name in chosen):
        raise InputError(
            f"{path}: table {table} has the columns {', '.join(tables[table])}. "
            "Use --columns to name source and target."
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
        batches = chain(batches, _crawled_batches(database, tables, named, chosen))
    return Source(batches, names, num_nodes)


class _Database:
    """An SQLite file, opened read-only. Errors of SQLite become a DamageError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise InputError(f"{path} does not exist" if not path.exists() else f"{path} is not a file")

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
        """Return the tables in order of creation, each with its columns."""
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

    def rows(self, table: str, columns: Iterable[str], clause: str = "") -> Iterator[tuple[Any, ...]]:
        """Yield the rows of some columns: all rows, or those that a clause of SQL selects."""
        return self.run(f"SELECT {', '.join(map(_quoted, columns))} FROM {_quoted(table)} {clause}")

    def count(self, tables: dict[str, list[str]]) -> int | None:
        """Return the number of nodes if there is a table of nodes, else None."""
        if tables.get("nodes", [])[:1] != ["id"]:
            return None
        (highest,) = next(self.run('SELECT max("id") FROM "nodes"'))
        return highest + 1 if type(highest) is int and 0 <= highest < MAX_NODES else None

    def names(self, tables: dict[str, list[str]]) -> Names | None:
        """Return the names of a table of nodes whose ids count from 0; None if there is no such table."""
        if {"id", "name"} - {column.lower() for column in tables.get("nodes", [])}:
            return None
        names = []
        for number, (node, name) in enumerate(self.rows("nodes", ["id", "name"], 'ORDER BY "id"')):
            if node != number or not isinstance(name, bytes | str):
                raise InputError(
                    f"{self.path}: table nodes: expected id {number} and a name; got {node!r}, {name!r}"
                )
            names.append(name)
        return Names.of(names)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _choose_table(path: Path, tables: dict[str, list[str]]) -> str:
    fitting = [name for name, columns in tables.items() if _choose_named(columns)]
    if not fitting and len(tables) == 1:
        return next(iter(tables))
    usual = [name for wanted in _TABLES for name in fitting if name.lower() == wanted]
    if len(fitting) == 1 or usual:
        return usual[0] if usual else fitting[0]
    if fitting:
        raise InputError(
            f"{path}: several tables could hold arcs ({', '.join(fitting)}). Use --table to name one."
        )
    raise InputError(
        f"{path}: no table has columns for source and target (tables: {', '.join(tables) or 'none'}). "
        "Use --table and --columns to name them."
    )


def _sqlite_batches(
    database: _Database, table: str, columns: list[str], by_number: bool, num_nodes: int | None
) -> Iterator[ArcBatch]:
    limit = MAX_NODES if num_nodes is None else num_nodes
    rows, count = database.rows(table, columns), 0
    with track(f"reading {database.path.name}", None, "arcs") as task:
        while part := list(islice(rows, _ROWS)):
            yield _sqlite_batch(part, by_number, limit, f"{database.path}, table {table}", count)
            count += len(part)
            task.advance(len(part))


def _crawled_batches(
    database: _Database, tables: dict[str, list[str]], arcs: str | None, columns: Sequence[str]
) -> Iterator[ArcBatch]:
    """Yield the names of a table with a column ``crawled``, if there is one.

    If ``arcs`` names a table, only names in its first two ``columns`` are yielded.
    """
    only = ""
    if arcs is not None:
        ends = (f"SELECT {_quoted(column)} FROM {_quoted(arcs)}" for column in columns[:2])
        only = " UNION ".join(ends)
    for table, its_columns in tables.items():
        by_word = {column.lower(): column for column in its_columns}
        name = next((by_word[word] for word in _NAME_WORDS if word in by_word), None)
        if name is None or "crawled" not in by_word:
            continue
        where = f"WHERE {_quoted(name)} IN ({only})" if only else ""
        rows = database.rows(table, [name, by_word["crawled"]], where)
        while part := list(islice(rows, _ROWS)):
            if any(not isinstance(node, bytes) for node, _ in part):
                raise InputError(f"{database.path}, table {table}: {name} must be text")
            crawled = np.flatnonzero([mark not in (None, 0, b"", b"0") for _, mark in part])
            none = np.empty(0, np.uint32)
            names = Strings.of(node for node, _ in part)
            yield ArcBatch(none, none, names, crawled=crawled.astype(np.uint32))
        return


def _sqlite_batch(
    rows: list[tuple[Any, ...]], by_number: bool, limit: int, where: str, before: int
) -> ArcBatch:
    for number, row in enumerate(rows, before + 1):
        if by_number:
            for end in row[:2]:
                if type(end) is not int or not 0 <= end < limit:
                    raise InputError(
                        f"{where}, row {number:,}: expected a node number below {limit:,}; got {end!r}"
                    )
        elif any(end is None or isinstance(end, float) for end in row[:2]):
            raise InputError(
                f"{where}, row {number:,}: node must be text or an integer; it is null or a fraction"
            )
        if len(row) > 2 and not (isinstance(row[2], int | float) and 0 < row[2] < float("inf")):
            raise InputError(
                f"{where}, row {number:,}: weight must be a finite number above 0; got {row[2]!r}"
            )
    weights = np.array([row[2] for row in rows], np.float64) if len(rows[0]) > 2 else None
    if by_number:
        ends = np.array([row[:2] for row in rows], np.uint32)
        return ArcBatch(ends[:, 0].copy(), ends[:, 1].copy(), None, weights)
    names = [end if isinstance(end, bytes) else str(end).encode() for row in rows for end in row[:2]]
    places = np.arange(len(names), dtype=np.uint32)
    return ArcBatch(places[::2].copy(), places[1::2].copy(), Strings.of(names), weights)
