"""Kleinberg's query graphs: ``n ID URL`` per node, ``e FROM TO`` per arc; read in plain Python."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from inlink.base.opening import Stream, lines, place_of
from inlink.errors import InputError
from inlink.graph.batches import ArcBatch
from inlink.graph.names import Names, encode
from inlink.graph.source import Source, level_of


def kleinberg(path: str | os.PathLike[str]) -> Source:
    """Read a graph in Kleinberg's format.

    Nodes keep the order of their ``n`` lines. A repeated name gets ``#`` and its id appended, like the fragment of a
    URL, so that its host stays the same.

    Parameters
    ----------
    path : path-like
        The file.

    Raises
    ------
    inlink.errors.InputError
        If a line is neither of the two, an id is repeated, or an arc ends at a node without a name.
    """
    path = place_of(path)
    names: list[bytes] = []
    node_of: dict[int, int] = {}
    ends: list[int] = []
    at_line: list[int] = []
    with Stream(path, f"reading {Path(path).name}") as stream:
        for number, line in lines(stream):
            kind, _, rest = line.partition(b" ")
            if not line.strip() or line.startswith(b"#"):
                continue
            first, _, second = rest.strip().partition(b" ")
            if kind == b"n" and first.isdigit() and second and len(first) < 19:
                if int(first) in node_of:
                    raise InputError(f"{path}, line {number:,}: node {int(first)} already has a name")
                node_of[int(first)] = len(names)
                names.append(second.strip())
            elif kind == b"e" and first.isdigit() and second.strip().isdigit() and len(rest) < 40:
                ends += [int(first), int(second)]
                at_line.append(number)
            else:
                shown = line[:100].decode("utf-8", "replace")
                raise InputError(
                    f"{path}, line {number:,}: expected 'n ID URL' or 'e FROM TO'; got {shown!r}"
                )
    for place, end in enumerate(ends):
        if end not in node_of:
            raise InputError(
                f"{path}, line {at_line[place // 2]:,}: arc of node {end}, but no n line names this node"
            )
    nodes = np.array([node_of[end] for end in ends], np.uint32).reshape(-1, 2)
    batch = ArcBatch(nodes[:, 0].copy(), nodes[:, 1].copy())
    unique = Names.of(_unique(names, node_of))
    return Source(iter([batch]), unique, len(names), level_of(names))


def _unique(names: list[bytes], ids: Iterable[int]) -> Iterator[bytes]:
    """Yield the names, with ``#`` and the id appended to repeated ones."""
    taken = set(names)
    used: set[bytes] = set()
    for name, key in zip(names, ids, strict=True):
        if name in used:
            name += b"#" + encode(str(key))
            while name in taken or name in used:
                name += b"'"
        used.add(name)
        yield name
