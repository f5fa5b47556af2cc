"""Common Crawl's link graphs: vertices ``id TAB reversed name [TAB number of hosts]``, edges ``from TAB to``.

Both are gzip files, whole or in parts. Ids count from 0 in byte order of names.
"""

import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from inlink.base.opening import Stream, head, text_blocks
from inlink.errors import InputError
from inlink.graph.batches import Level
from inlink.graph.names import Names
from inlink.graph.source import Source
from inlink.sources.edgelist import MAX_NODES, number_batches
from inlink.sources.inputs import Location, find_parts
from inlink.sources.releases import graph_files, is_release


def common_crawl(path: str | os.PathLike[str]) -> Source:
    """Read a graph in Common Crawl's form.

    Its nodes are pages if names are URLs, domains if there is a third column or the file's name contains ``domain``,
    else hosts.

    Parameters
    ----------
    path : path-like
        A folder that holds vertices and edges; or one of two files named alike; or the beginning of their names
        (``cc-main-2026-apr-may-jun-domain``); or a pattern such as ``"host-*.txt.gz"``; or the name of a release, whose
        files are read from Common Crawl's servers: see :mod:`inlink.sources.releases`.

    Raises
    ------
    inlink.errors.InputError
        If vertices or edges are missing, ids do not count from 0 without gaps, or (while batches are read) an arc ends
        at an unknown id.
    """
    vertex_files: Sequence[Location]
    edge_files: Sequence[Location]
    vertex_files, edge_files = graph_files(path) if is_release(path) else find_parts(path)
    if not vertex_files or not edge_files:
        missing = "edges" if vertex_files else "vertices"
        raise InputError(
            f"{path}: no {missing} found. Name a folder that holds vertices and edges, or one of two files named alike."
        )
    names = _read_names(vertex_files)
    batches = chain.from_iterable(number_batches(Path(file), len(names)) for file in edge_files)
    return Source(batches, names, len(names), _level(vertex_files[0]))


def _level(vertices: Location) -> Level:
    line = head(vertices).partition(b"\n")[0]
    if b"://" in line:
        return "page"
    return "domain" if line.count(b"\t") > 1 or "domain" in Path(vertices).name else "host"


def _read_names(files: Sequence[Location]) -> Names:
    from inlink.graph.kernels.names import order_of
    from inlink.sources.kernels import text as kernels

    text, offsets = np.empty(1 << 20, np.uint8), np.zeros(1 << 16, np.uint64)
    count, ordered = 0, True
    for file in files:
        with Stream(file, f"reading {Path(file).name}") as stream:
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
                        f"{file}, line {carry.line + int(added):,}: expected vertex {count + int(added):,}, a tab "
                        f"and a name; got {shown!r}. Ids must count from 0 without gaps."
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
