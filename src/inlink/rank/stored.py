"""Rankings in the folder of their graph: ``rankings/NAME`` holds the columns, and its header the description."""

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inlink.base.arrays import Float64Array
from inlink.base.checked import is_remembered, remember
from inlink.base.folder import Folder, building
from inlink.errors import FolderError, OutputError, ParameterError
from inlink.graph.names import Names, encode

if TYPE_CHECKING:
    from inlink.graph.graph import Graph

__all__ = ["FORMAT", "KIND", "list_rankings", "read_ranking", "write_ranking"]

KIND = "ranking"
FORMAT = 1

# The version of the checks of a folder's values.
_RULES = 1
_BATCH = 1 << 16


def list_rankings(graph: "Graph | str | os.PathLike[str]") -> list[str]:
    """Return the sorted names of the rankings saved with a graph, without rankings of its earlier versions."""
    graph = _opened(graph)
    if graph.path is None or not (graph.path / "rankings").is_dir():
        return []
    names = []
    for path in (graph.path / "rankings").iterdir():
        # A folder may be partly removed, or may not be a ranking.
        with contextlib.suppress(FolderError):
            if Folder(path, KIND, FORMAT).header.meta.get("graph_uuid") == graph.uuid:
                names.append(path.name)
    return sorted(name for name in names if name[0] != ".")


def write_ranking(
    graph: "Graph | str | os.PathLike[str]",
    name: str,
    columns: dict[str, Float64Array],
    meta: dict[str, Any],
) -> Path:
    """Write columns, float64[n], and the description of a ranking as ``rankings/<name>``; return that folder.

    Raises
    ------
    inlink.errors.OutputError
        If another graph was ranked, the graph is in memory only, or its folder cannot be written.
    inlink.errors.ParameterError
        If the name cannot be the name of a folder.
    """
    graph = _opened(graph)
    name = _checked(name)
    if graph.path is None:
        raise OutputError("this graph is in memory only: save the ranking with to_csv or to_parquet")
    size = len(next(iter(columns.values())))
    if meta["graph_uuid"] != graph.uuid or size != graph.num_nodes:
        raise OutputError(
            f"{graph.path}: this ranking belongs to another graph, or to an earlier version of this one"
        )
    target = graph.path / "rankings" / name
    with building(target, KIND, FORMAT) as folder:
        for column, values in columns.items():
            folder.write(column, values)
        folder.header.meta = meta
    return target


def read_ranking(
    graph: "Graph | str | os.PathLike[str]", name: str
) -> tuple[Path, dict[str, Any], list[Float64Array], Names | None]:
    """Read the ranking ``rankings/<name>`` of a graph.

    Returns
    -------
    (Path, dict, list of float64[n], Names or None)
        Its folder, its description, its columns, which are memory-mapped, and the graph's names.

    Raises
    ------
    inlink.errors.FolderError
        If there is no ranking of this name, it is damaged, or the graph has been rebuilt since.
    """
    graph = _opened(graph)
    if graph.path is None:
        raise FolderError("this graph is in memory only and keeps no rankings")
    path = graph.path / "rankings" / _checked(name)
    if not path.exists():
        others = f" (it has: {have})" if (have := ", ".join(list_rankings(graph))) else ""
        raise FolderError(
            f"{graph.path} has no ranking {name!r}{others}: make it with inlink rank {graph.path}"
        )
    folder = Folder(path, KIND, FORMAT)
    meta = folder.header.meta
    columns = [column for column in ("value", "authorities", "hubs") if column in folder]
    if meta.get("graph_uuid") != graph.uuid or any(
        folder.header.files[column].length != graph.num_nodes for column in columns
    ):
        raise FolderError(f"{path} belongs to an earlier version of {graph.path}: rank the graph again")
    if meta.get("columns") != columns:
        raise FolderError(f"{path}: the header is damaged (columns): rank the graph again")
    _check_values(folder, columns)
    return path, meta, [folder.array(column) for column in columns], graph.names


def _check_values(folder: Folder, columns: list[str]) -> None:
    """Check that all values are finite, in one read; do nothing if the folder is remembered as checked."""
    for column in columns:
        if folder.header.files[column].dtype != "<f8":
            raise folder.damaged(column, f"dtype {folder.header.files[column].dtype}")
    if is_remembered(folder, _RULES):
        return
    for column in columns:
        for start, block in folder.blocks(column, _BATCH):
            wrong = np.flatnonzero(~np.isfinite(block))
            if len(wrong):
                raise folder.damaged(
                    column, f"the value of node {start + int(wrong[0]):,} is {block[wrong[0]]}"
                )
    remember(folder, _RULES)


def _opened(graph: "Graph | str | os.PathLike[str]") -> "Graph":
    from inlink.graph.graph import Graph

    return graph if isinstance(graph, Graph) else Graph.open(graph)


def _checked(name: str) -> str:
    if name[:1] in ("", ".") or set(name) & set("/\\\0") or len(encode(name)) > 200:
        raise ParameterError(
            f"the name of a ranking must have at most 200 bytes, no slash, and no point at its beginning; got {name!r}"
        )
    return name
