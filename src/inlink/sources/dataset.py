"""The layout of a published graph, which :mod:`inlink.sources.publish` writes and describes."""

import os
from pathlib import Path

from inlink.base.remote import is_remote

KEY = "inlink"
"""The key of the description in each part's metadata. The value is JSON."""
FORMAT = 1
INDEX = "index.json"
NODES, BY_SOURCE, BY_TARGET = "nodes", "arcs_by_source", "arcs_by_target"
FIRST_BYTES = 256
"""The index has at most this number of bytes of the first name of a part."""


def part_name(table: str, number: int) -> str:
    """Return the name of a part of a table, such as ``nodes/part-00000.parquet``."""
    return f"{table}/part-{number:05}.parquet"


def may_be_published(place: str | os.PathLike[str]) -> bool:
    """Return whether a place may be a published graph: its folder, or any URL."""
    return is_remote(place) or (Path(place) / INDEX).is_file()
