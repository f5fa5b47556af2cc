"""Files about nodes: content scores, and lists of nodes."""

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from inlink.errors import InputError, UnknownNodeError
from inlink.graph.graph import Graph
from inlink.graph.names import encode

__all__ = ["read_nodes", "read_scores"]


def read_scores(path: Path, graph: Graph) -> tuple[npt.NDArray[np.float64], int]:
    """Scores of nodes: a CSV or TSV file, a node and its score a line, with or without a header.

    Returns
    -------
    scores : float64[n]
        0 for nodes that the file lacks.
    unknown : int
        How many of the file's nodes the graph lacks.

    Raises
    ------
    InputError
        If a line has not two fields, a score is no finite number from 0, or a node stands twice; with the line.
    """
    scores = np.zeros(graph.num_nodes)
    seen = np.zeros(graph.num_nodes, np.bool_)
    unknown = 0
    for line, fields in _rows(path):
        if len(fields) != 2:
            raise InputError(f"{path}, line {line}: {len(fields)} fields, not a node and its score")
        try:
            score = float(fields[1])
        except ValueError:
            if line == 1:
                continue  # a header
            raise InputError(f"{path}, line {line}: {fields[1]!r} is not a number") from None
        if not (math.isfinite(score) and score >= 0):
            raise InputError(f"{path}, line {line}: score {fields[1]} must be finite and not negative")
        node = _find(graph, fields[0])
        if node is None:
            unknown += 1
            continue
        if seen[node]:
            raise InputError(f"{path}, line {line}: node {fields[0]!r} stands twice")
        seen[node], scores[node] = True, score
    return scores, unknown


def read_nodes(path: Path, graph: Graph) -> list[int]:
    """A list of nodes, one a line; blank lines are passed over.

    Raises
    ------
    InputError
        If the graph lacks one, with the line.
    """
    nodes = []
    with _open(path) as stream:
        for line, raw in enumerate(stream, 1):
            name = raw.rstrip(b"\r\n")
            if not name:
                continue
            node = _find(graph, name)
            if node is None:
                raise InputError(
                    f"{path}, line {line}: no node {name.decode('utf-8', 'replace')!r} in this graph"
                )
            nodes.append(node)
    return nodes


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    with _open(path) as stream:
        tab = b"\t" in stream.readline()
    with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as text:
        reader = csv.reader(text, delimiter="\t" if tab else ",")
        try:
            for row in reader:
                if row:
                    yield reader.line_num, row
        except csv.Error as error:
            raise InputError(f"{path}, line {reader.line_num}: {error}") from None


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


def _find(graph: Graph, name: str | bytes) -> int | None:
    raw = encode(name)
    if graph.names is None and not raw.isdigit():
        return None
    try:
        return graph.node(raw if graph.names is not None else int(raw))
    except UnknownNodeError:
        return None
