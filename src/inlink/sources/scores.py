"""Files about nodes: content scores and lists of nodes."""

import csv
import io
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from inlink.base.arrays import Float64Array
from inlink.base.opening import open_binary
from inlink.base.table import counted
from inlink.errors import InputError, UnknownNodeError
from inlink.graph.graph import Graph
from inlink.graph.names import encode


def read_scores(path: Path, graph: Graph) -> tuple[Float64Array, int]:
    """Read scores of nodes from a CSV or TSV file: a node and its score per line, with or without a header.

    Returns
    -------
    scores : float64[n]
        The score of each node; 0 for nodes that are not in the file.
    unknown : int
        Number of nodes in the file that the graph does not have.

    Raises
    ------
    InputError
        If a line has not two fields, a score is negative or not finite, or a node is repeated; names the line.
    """
    scores = np.zeros(graph.num_nodes)
    seen = np.zeros(graph.num_nodes, np.bool_)
    unknown = 0
    for line, fields in _rows(path):
        if len(fields) != 2:
            raise InputError(
                f"{path}, line {line}: expected a node and its score; got {counted(len(fields), 'field')}"
            )
        try:
            score = float(fields[1])
        except ValueError:
            if line == 1:
                # The line is a header.
                continue
            raise InputError(f"{path}, line {line}: score must be a number; got {fields[1]!r}") from None
        if not (math.isfinite(score) and score >= 0):
            raise InputError(f"{path}, line {line}: score must be finite and not negative; got {fields[1]}")
        node = _find(graph, fields[0])
        if node is None:
            unknown += 1
            continue
        if seen[node]:
            raise InputError(f"{path}, line {line}: node {fields[0]!r} is repeated")
        seen[node], scores[node] = True, score
    return scores, unknown


def read_nodes(path: Path, graph: Graph) -> tuple[list[int], int]:
    """Read a list of nodes, one per line. Blank lines are skipped.

    Returns
    -------
    nodes : list of int
        The numbers of the nodes, in the order of the file.
    unknown : int
        Number of names in the file that the graph does not have.

    Raises
    ------
    InputError
        If the file cannot be read, or the graph has none of its nodes.
    """
    nodes: list[int] = []
    unknown, first = 0, ""
    with open_binary(path) as stream:
        for line, raw in enumerate(stream, 1):
            name = raw.rstrip(b"\r\n")
            if not name:
                continue
            node = _find(graph, name)
            if node is None:
                unknown += 1
                first = first or f"{name.decode('utf-8', 'replace')!r} in line {line}"
            else:
                nodes.append(node)
    if not nodes and unknown:
        raise InputError(f"{path}: this graph has none of the nodes that the file names, such as {first}")
    return nodes, unknown


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    with open_binary(path) as stream:
        tab = b"\t" in stream.readline()
    with io.TextIOWrapper(open_binary(path), "utf-8-sig", "surrogateescape", newline="") as text:
        reader = csv.reader(text, delimiter="\t" if tab else ",")
        try:
            for row in reader:
                if row:
                    yield reader.line_num, row
        except csv.Error as error:
            raise InputError(f"{path}, line {reader.line_num}: {error}") from None


def _find(graph: Graph, name: str | bytes) -> int | None:
    raw = encode(name)
    # Python converts no text of thousands of digits to a number.
    if graph.names is None and not (raw.isdigit() and len(raw) < 20):
        return None
    try:
        return graph.node(raw if graph.names is not None else int(raw))
    except UnknownNodeError:
        return None
