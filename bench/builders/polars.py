"""Polars: categories for numbers, sorted unique pairs."""

from importlib import import_module
from pathlib import Path
from typing import Any

from bench.peers.base import needs

NAME = "Polars"
COMPUTES = "names numbered by unique and join, pairs made unique and sorted; in memory, one direction"
LARGEST = 1 << 62


def available() -> str | None:
    return needs("polars")


def run(path: Path, folder: Path) -> int:
    pl: Any = import_module("polars")

    schema = {"source": pl.String, "target": pl.String}
    arcs = pl.read_csv(path, separator="\t", has_header=False, schema=schema, quote_char=None)
    names = pl.concat([arcs["source"], arcs["target"]]).unique().sort().to_frame("name").with_row_index("id")
    numbered = (
        arcs.join(names.rename({"id": "i"}), left_on="source", right_on="name")
        .join(names.rename({"id": "j"}), left_on="target", right_on="name")
        .select("i", "j")
    )
    return len(numbered.unique().sort("i", "j"))
