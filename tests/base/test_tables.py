"""Graphs in Parquet and SQLite."""

import sqlite3

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphfiles import content, read
from inlink.errors import DamageError, InputError


def test_parquet_columns(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({"when": [1, 2], "To": ["b", "c"], "From": pa.array(["a", "a"]).dictionary_encode()}), path
    )
    assert content(read(path))[1] == {(b"a", b"b"): 1, (b"a", b"c"): 1}
    assert content(read(path, columns=["To", "when"]))[1] == {(b"b", b"1"): 1, (b"c", b"2"): 1}
    pq.write_table(pa.table({"x": [0, 1], "y": [1, 5]}), path)
    assert content(read(path)) == (set(range(6)), {(0, 1): 1, (1, 5): 1})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"source": ["a"]}, "expected at least two columns"),
        ({"source": ["a", None], "target": ["b", "c"]}, "rows from 0: source, target or weight is null"),
        ({"source": [0, -1], "target": [1, 2]}, r"node number must be from 0 .* got -1"),
        ({"source": [0], "target": [2**32 - 1]}, r"node number must be from 0 .* got 4,294,967,295"),
        (
            {"source": [0.5], "target": [1.5]},
            r"nodes must be integers, strings or bytes; their type is double",
        ),
        ({"source": [0], "target": [1], "weight": [0.0]}, r"weight must be a finite number above 0; got 0.0"),
        ({"source": [0], "target": [1], "weight": ["x"]}, r"weights must be numbers; their type is string"),
    ],
)
def test_wrong_parquet(tmp_path, columns, message):
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=message):
        read(tmp_path / "t.parquet")


def test_damaged_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"source": np.arange(10_000), "target": np.arange(10_000)[::-1]}), path)
    raw = path.read_bytes()
    path.write_bytes(raw[:-100])
    with pytest.raises(DamageError, match="not a Parquet file"):
        read(path)
    path.write_bytes(raw[:100] + b"\xff" * 300 + raw[400:])
    with pytest.raises(DamageError, match=r"t\.parquet, after row"):
        read(path)


def database(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def test_the_wiki_graph_of_the_seeds(tmp_path):
    path = database(
        tmp_path / "WikiLinks.sqlite",
        "CREATE TABLE WikiLinks (link TEXT PRIMARY KEY, title TEXT, crawled INTEGER)",
        "CREATE TABLE WikiGraph (fromLink TEXT, toLink TEXT)",
        "CREATE TABLE subGraph AS SELECT * FROM WikiGraph",
        "INSERT INTO WikiLinks VALUES ('/wiki/A', 'A', 1)",
        "INSERT INTO WikiGraph VALUES ('/wiki/A', '/wiki/B'), ('/wiki/B', '/wiki/C')",
    )
    assert content(read(path))[1] == {(b"/wiki/A", b"/wiki/B"): 1, (b"/wiki/B", b"/wiki/C"): 1}
    assert read(path, table="subGraph").num_arcs == 0
    with pytest.raises(InputError, match="no table 'x'; the tables are WikiLinks, WikiGraph, subGraph"):
        read(path, table="x")


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (
            ["CREATE TABLE a (x)", "CREATE TABLE b (y)"],
            r"no table has columns for source and target \(tables: a, b\)",
        ),
        (
            [f"CREATE TABLE {name} (source, target)" for name in "ab"],
            r"several tables could hold arcs \(a, b\)",
        ),
        (["CREATE TABLE a (x)"], "table a has the columns x"),
        (
            ["CREATE TABLE a (x, y)", "INSERT INTO a VALUES (1, 2), (1, NULL)"],
            "table a, row 2: expected a node number below .* got None",
        ),
        (
            ["CREATE TABLE a (x, y)", "INSERT INTO a VALUES (1, 2), (1, -2)"],
            "table a, row 2: expected a node number below .* got -2",
        ),
        (
            ["CREATE TABLE a (x, y)", "INSERT INTO a VALUES ('u', NULL)"],
            "table a, row 1: node must be text or an integer",
        ),
        (
            ["CREATE TABLE a (source, target, weight)", "INSERT INTO a VALUES (1, 2, 'x')"],
            r"row 1: weight must be a finite number above 0; got b'x'",
        ),
    ],
)
def test_wrong_databases(tmp_path, statements, message):
    path = database(tmp_path / "w.db", *statements)
    with pytest.raises(InputError, match=message):
        read(path)


def test_damaged_database(tmp_path):
    path = database(tmp_path / "w.db", "CREATE TABLE a (source, target)")
    path.write_bytes(path.read_bytes()[:100] + bytes(500))
    with pytest.raises(DamageError, match=r"w\.db: cannot be read as SQLite"):
        read(path)
