"""DuckDB: names numbered by a table, distinct pairs in order."""

from importlib import import_module
from pathlib import Path
from typing import Any

from bench.peers.base import needs

NAME = "DuckDB"
COMPUTES = "names numbered by a table and joined, distinct pairs in order, in a database file; one direction"
LARGEST = 1 << 62


def available() -> str | None:
    return needs("duckdb")


def run(path: Path, folder: Path) -> int:
    duckdb: Any = import_module("duckdb")

    with duckdb.connect(str(folder / "arcs.duckdb")) as base:
        source = "read_csv(?, delim='\t', header=false, quote='', columns={'s': 'VARCHAR', 't': 'VARCHAR'})"
        base.execute(f"create table arcs as from {source}", [str(path)])
        base.execute(
            "create table names as select name, row_number() over () as id from "
            "(select s as name from arcs union select t from arcs)"
        )
        base.execute(
            "create table pairs as select distinct a.id as i, b.id as j from arcs "
            "join names a on a.name = s join names b on b.name = t order by i, j"
        )
        row = base.execute("select count(*) from pairs").fetchone()
    return int(row[0]) if row else 0
