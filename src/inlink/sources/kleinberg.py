"""Kleinberg's query graphs: ``n ID URL`` per node, ``e FROM TO`` per arc; read in plain Python."""

import os
from array import array
from pathlib import Path

import numpy as np

from inlink.base.opening import Stream, lines, place_of
from inlink.errors import InputError
from inlink.graph.batches import ArcBatch, Level
from inlink.graph.names import Names, encode
from inlink.graph.source import Source, level_of

__all__ = ["kleinberg", "unique_names"]


def kleinberg(path: str | os.PathLike[str], *, level: Level | None = None) -> Source:
    """Read a graph in Kleinberg's format.

    Nodes keep the order of their ``n`` lines. A repeated name gets ``#`` and its id appended, like the fragment of a
    URL, so that its host stays the same.

    Parameters
    ----------
    path : path-like
        The file.
    level : {"page", "host", "domain"} or None
        The kind of the nodes. None: pages if nine names in ten are URLs.

    Raises
    ------
    inlink.errors.InputError
        If a line is neither of the two, an id is repeated, or an arc ends at a node without a name.
    """
    path = place_of(path)
    names: list[bytes] = []
    node_of: dict[int, int] = {}
    ends, at_line = array("Q"), array("Q")
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
                ends.extend((min(int(first), 2**64 - 1), min(int(second), 2**64 - 1)))
                at_line.append(number)
            else:
                shown = line[:100].decode("utf-8", "replace")
                raise InputError(
                    f"{path}, line {number:,}: expected 'n ID URL' or 'e FROM TO'; got {shown!r}"
                )
    node_numbers = np.array(list(node_of), np.uint64)
    order = np.argsort(node_numbers)
    arcs = np.array(ends, np.uint64)
    place = np.searchsorted(node_numbers[order], arcs)
    missing = (
        np.append(node_numbers[order], 0)[place] != arcs if len(node_numbers) else np.ones(len(arcs), bool)
    )
    missing |= place == len(node_numbers)
    if missing.any():
        k = int(np.argmax(missing))
        raise InputError(
            f"{path}, line {at_line[k // 2]:,}: arc of node {arcs[k]}, but no n line names this node"
        )
    nodes = order.astype(np.uint32)[place].reshape(-1, 2) if len(arcs) else np.empty((0, 2), np.uint32)
    batch = ArcBatch(nodes[:, 0].copy(), nodes[:, 1].copy())
    unique = Names.of(unique_names(names, list(node_of)))
    return Source(iter([batch]), unique, len(names), level or level_of(names))


def unique_names(names: list[bytes], ids: list[int] | list[str]) -> list[bytes]:
    """Return the names, with ``#`` and the id appended to repeated ones."""
    seen = set(names) if len(set(names)) < len(names) else set()
    if not seen:
        return names
    used: set[bytes] = set()
    result = []
    for name, key in zip(names, ids, strict=True):
        if name in used:
            name += b"#" + encode(str(key))
            while name in seen or name in used:
                name += b"'"
        used.add(name)
        result.append(name)
    return result
