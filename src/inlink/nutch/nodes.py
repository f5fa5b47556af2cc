"""Write a web graph's scores and degrees as Nutch's node database, the folder ``nodes`` of its own web graph.

Nutch's ScoreUpdater and its readers then take LinkRank's scores from there. The folder holds one part, a MapFile of URL
and Node: the numbers of inlinks and outlinks, the score in 32 bits, and no metadata.

Source: org.apache.nutch.scoring.webgraph.Node and WebGraph.NodeDb, Nutch 1.23.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from inlink.base.folder import new_folder
from inlink.errors import ParameterError
from inlink.graph.graph import Graph
from inlink.nutch.dumps import SCORES
from inlink.nutch.mapfile import write_mapfile
from inlink.rank.ranking import Ranking

__all__ = ["write_nodes"]

_NODE = "org.apache.nutch.scoring.webgraph.Node"
_PART = "part-r-00000"
_BLOCK = 1 << 16


def write_nodes(graph: Graph, output: str | os.PathLike[str]) -> int:
    """Write a web graph's nodes as Nutch's node database, and return their number.

    Parameters
    ----------
    graph : Graph
        A web graph that LinkRank was run on.
    output : path-like
        The folder to make.

    Raises
    ------
    inlink.errors.FolderError
        If LinkRank has not been run.
    inlink.errors.OutputError
        If the folder exists, or cannot be written.
    inlink.errors.ParameterError
        If the nodes have no names.
    """
    target = Path(output)
    if graph.names is None:
        raise ParameterError("the nodes of this graph have no names, so it is not a web graph")
    scores = np.asarray(Ranking.load(graph, SCORES).values)
    with new_folder(target) as work:
        return write_mapfile(work / _PART, _NODE, _entries(graph, scores))


def _entries(graph: Graph, scores: np.ndarray) -> Iterator[tuple[bytes, bytes]]:
    """Yield each URL and its serialised Node, in byte order of the URLs."""
    names = graph.names
    assert names is not None
    for start in range(0, graph.num_nodes, _BLOCK):
        stop = min(start + _BLOCK, graph.num_nodes)
        nodes = np.arange(start, stop) if names.order is None else names.order[start:stop]
        columns = (graph.indegrees[nodes], graph.outdegrees[nodes], scores[nodes])
        for name, *values in zip(
            names.take(nodes).to_pylist(), *(column.tolist() for column in columns), strict=True
        ):
            # The last number counts the entries of the metadata.
            yield name, struct.pack(">iifi", *values, 0)
