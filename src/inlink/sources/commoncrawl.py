"""Common Crawl's link graphs: vertices ``id TAB reversed name [TAB number of hosts]``, edges ``from TAB to``.

Both gzip, in one file or in parts; ids count from 0 in the byte order of names.
"""

import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from inlink.errors import InputError
from inlink.graph.batches import ArcBatch
from inlink.graph.graph import Level
from inlink.graph.names import Names
from inlink.sources.edgelist import MAX_NODES, number_batches
from inlink.sources.opening import Stream, head, text_blocks
from inlink.sources.source import Source

__all__ = ["common_crawl", "find_parts"]


def common_crawl(
    path: str | os.PathLike[str], edges: str | os.PathLike[str] | None = None, *, level: Level | None = None
) -> Source:
    """Read a graph in Common Crawl's form.

    Parameters
    ----------
    path : path-like
        A folder that holds vertices and edges; or one of the files, the other then being named alike; or the
        beginning of their names (``cc-main-2026-apr-may-jun-domain``); or a pattern such as ``"host-*.txt.gz"``.
    edges : path-like or None
        The edges (a file, a folder of parts or a pattern), where ``path`` names the vertices only.
    level : {"page", "host", "domain"} or None
        None looks: pages if names are URLs, domains if there is a third column or ``domain`` in the file's name,
        else hosts.

    Raises
    ------
    inlink.errors.InputError
        If vertices or edges cannot be found, ids do not count from 0, or (from the batches) an arc ends outside.
    """
    if edges is None:
        vertex_files, edge_files = find_parts(path)
    else:
        vertex_files, edge_files = _parts(path), _parts(edges)
    if not vertex_files or not edge_files:
        missing = "edges" if vertex_files else "vertices"
        raise InputError(f"{path}: no {missing} found: give a folder with both, or the two files")
    names = _read_names(vertex_files)
    return Source(_batches(edge_files, len(names)), names, len(names), level or _level(vertex_files[0]))


def find_parts(path: str | os.PathLike[str]) -> tuple[list[Path], list[Path]]:
    """The files of vertices and of edges that a path stands for; empty where there are none."""
    path = Path(path)
    if path.is_dir():
        found = [file for pattern in ("*", "*/*") for file in path.glob(pattern)]
    elif "vertices" in path.name or "edges" in path.name or path.is_file():
        if not path.exists():
            return [], []
        turned = path.name.replace("edges", "\0").replace("vertices", "edges").replace("\0", "vertices")
        found = [path, path.with_name(turned)] if turned != path.name else []
    else:
        pattern = str(path) if re.search(r"[*?\[]", str(path)) else f"{glob.escape(str(path))}[-_.]*"
        found = [Path(name) for name in glob.glob(pattern)]
    files = [file for file in found if file.is_file() and re.search(r"\.(txt|tsv|gz|zst)$", file.name)]
    sides = []
    for side in ("vertices", "edges"):
        # the folder's name counts only for parts: host/vertices/part-00000.gz
        named = [file for file in files if side in file.name or file.parent.name == side]
        sides.append(sorted((f for f in named if ".paths" not in f.name), key=_natural))
    return sides[0], sides[1]


def _parts(path: str | os.PathLike[str]) -> list[Path]:
    path = Path(path)
    if path.is_dir():
        return sorted((file for file in path.iterdir() if not file.name.startswith((".", "_"))), key=_natural)
    if path.exists():
        return [path]
    return sorted((Path(name) for name in glob.glob(str(path))), key=_natural)


def _natural(path: Path) -> list[tuple[int, str]]:
    """Orders part-9 before part-10."""
    return [(int(piece), "") if piece.isdecimal() else (0, piece) for piece in re.split(r"(\d+)", str(path))]


def _level(vertices: Path) -> Level:
    line = head(vertices).partition(b"\n")[0]
    if b"://" in line:
        return "page"
    return "domain" if line.count(b"\t") > 1 or "domain" in vertices.name else "host"


def _read_names(files: list[Path]) -> Names:
    from inlink.graph.kernels.names import order_of
    from inlink.sources.kernels import text as kernels

    text, offsets = np.empty(1 << 20, np.uint8), np.zeros(1 << 16, np.uint64)
    count, ordered = 0, True
    for file in files:
        with Stream(file, f"reading {file.name}") as stream:
            for block, _, carry in text_blocks(stream):
                lines = int(np.count_nonzero(block == 10))
                if int(offsets[count]) + len(block) > len(text):
                    text.resize(max(int(offsets[count]) + len(block), len(text) * 3 // 2), refcheck=False)
                if count + lines + 1 > len(offsets):
                    offsets.resize(max(count + lines + 1, len(offsets) * 3 // 2), refcheck=False)
                used = offsets[count]
                fresh = np.empty(lines + 1, np.uint64)
                status, added, in_order, start, stop = kernels.scan_vertices(
                    block, np.uint64(count), np.uint64(MAX_NODES), text[int(used) :], fresh
                )
                if status != kernels.ALL:
                    shown = bytes(block[int(start) : min(int(stop), int(start) + 100)]).decode(
                        "utf-8", "replace"
                    )
                    raise InputError(
                        f"{file}, line {carry.line + int(added):,}: {shown!r}: expected vertex {count + int(added):,}, "
                        "a tab and its name (ids count from 0, without gaps)"
                    )
                before = bytes(text[int(offsets[count - 1]) : int(used)]) if count else None
                offsets[count : count + int(added) + 1] = fresh[: int(added) + 1] + used
                if before is not None:
                    ordered = ordered and before < bytes(text[int(offsets[count]) : int(offsets[count + 1])])
                ordered = ordered and in_order
                count += int(added)
                carry.line += int(added)
                carry.at = len(block)
    text, offsets = text[: int(offsets[count])], offsets[: count + 1]
    return Names(text, offsets, None if ordered else order_of(text, offsets))


def _batches(files: list[Path], num_nodes: int) -> Iterator[ArcBatch]:
    for file in files:
        yield from number_batches(file, num_nodes)
