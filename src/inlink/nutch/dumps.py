"""Print a web graph as Nutch's NodeDumper, NodeReader and LinkDumper do, or write its scores as Nutch's node database.

Nutch's ScoreUpdater and its readers take LinkRank's scores from a node database, the folder ``nodes`` of its own web
graph. It holds one part, a MapFile of URL and Node: the numbers of inlinks and outlinks, the score in 32 bits, and no
metadata.

Source: the classes of these names, Node and WebGraph.NodeDb in org.apache.nutch.scoring.webgraph, Nutch 1.23.
docs/nutch.md lists their bugs and undefined orders, and what is done here instead.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from inlink.base.arrays import Float64Array, Int64Array, slices
from inlink.base.folder import new_folder
from inlink.errors import ParameterError
from inlink.graph.graph import Graph
from inlink.graph.names import NO_NODE, Names
from inlink.nutch.java import java_float
from inlink.nutch.mapfile import write_mapfile
from inlink.rank.nutch_sites import numbers_of
from inlink.rank.ranking import Ranking, list_rankings

# The name of the ranking that holds the scores of a web graph.
SCORES = "linkrank"

_BLOCK = 1 << 16


def dump_nodes(
    graph: Graph,
    what: Literal["inlinks", "outlinks", "scores"] = "scores",
    *,
    count: int | None = None,
    group: tuple[Literal["host", "domain"], Literal["sum", "max"]] | None = None,
    separator: str = "\t",
) -> Iterator[bytes]:
    """Yield the lines of NodeDumper: URL, host or domain and value, by descending value, then in byte order of names.

    Parameters
    ----------
    graph : Graph
        A web graph.
    what : {"inlinks", "outlinks", "scores"}
        The value.
    count : int or None
        Number of lines. None: all.
    group : ("host" or "domain", "sum" or "max") or None
        One line for all URLs of a host or domain, with the sum or maximum of their values. URLs without a host are
        left out.
    separator : str
        Text between name and value.

    Raises
    ------
    inlink.errors.FolderError
        If scores are asked for and LinkRank has not been run.
    inlink.errors.ParameterError
        If the graph has no names.
    """
    names = _names(graph)
    if what == "scores":
        values = np.asarray(Ranking.load(graph, SCORES).values)
    else:
        values = (graph.indegrees if what == "inlinks" else graph.outdegrees).astype(np.float64)
    if group is None:
        places = np.arange(graph.num_nodes) if names.order is None else np.argsort(names.order)
    else:
        values, names, places = _grouped(graph, values, *group)
    best = np.lexsort((places, -values))[:count]
    for block in slices(len(best), _BLOCK):
        part = best[block]
        for name, value in zip(names.take(part).to_pylist(), values[part].tolist(), strict=True):
            yield b"%b%b%b" % (name, separator.encode(), java_float(value).encode())


def _grouped(
    graph: Graph, values: Float64Array, site: Literal["host", "domain"], how: str
) -> tuple[Float64Array, Names, Int64Array]:
    """Return each site's value, the names of the sites, and their places in byte order."""
    ids, table = numbers_of(graph, site)
    there = ids != NO_NODE
    of_sites = np.zeros(table.known)
    if how == "sum":
        of_sites += np.bincount(ids[there], values[there], table.known)
    else:
        np.maximum.at(of_sites, ids[there], values[there])
    names, order = table.sorted()
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return of_sites, names, places


def read_node(graph: Graph, url: str | bytes) -> list[str]:
    """Return the lines of NodeReader: the scores and degrees of a URL.

    Raises
    ------
    inlink.errors.UnknownNodeError
        If the URL is not in the web graph.
    """
    node = graph.node(url)
    score = _scores(graph)[node]
    outdegree = int(graph.outdegrees[node])
    return [
        f"{_names(graph)[node]}:",
        f"  inlink score: {java_float(score)}",
        f"  outlink score: {java_float(score / max(outdegree, 1))}",
        f"  num inlinks: {int(graph.indegrees[node])}",
        f"  num outlinks: {outdegree}",
    ]


def read_links(graph: Graph, url: str | bytes) -> Iterator[str]:
    """Yield the lines of LinkDumper: the nodes that link to a URL, in byte order, with their scores and degrees.

    Raises
    ------
    inlink.errors.UnknownNodeError
        If the URL is not in the web graph.
    """
    node = graph.node(url)
    scores = _scores(graph)
    yield f"{_names(graph)[node]}:"
    for source in graph.inlinks(node).tolist():
        outdegree, score = int(graph.outdegrees[source]), float(scores[source])
        yield (
            f"  {_names(graph)[source]} - num inlinks: {int(graph.indegrees[source])}, num outlinks: {outdegree}, "
            f"inlink score: {java_float(score)}, outlink score: {java_float(score / max(outdegree, 1))}, metadata: "
        )


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
    names = _names(graph)
    scores = np.asarray(Ranking.load(graph, SCORES).values)

    def entries() -> Iterator[tuple[bytes, bytes]]:
        for block in slices(graph.num_nodes, _BLOCK):
            places = np.arange(block.start, block.stop)
            nodes = places if names.order is None else names.order[places]
            columns = (graph.indegrees[nodes], graph.outdegrees[nodes], scores[nodes])
            for name, *values in zip(
                names.take(nodes).to_pylist(), *(column.tolist() for column in columns), strict=True
            ):
                # The last number counts the entries of the metadata.
                yield name, struct.pack(">iifi", *values, 0)

    with new_folder(Path(output)) as work:
        return write_mapfile(work / "part-r-00000", "org.apache.nutch.scoring.webgraph.Node", entries())


def _scores(graph: Graph) -> Float64Array:
    """Return the scores of LinkRank; 0 for all nodes before it was run, as in Nutch's node database."""
    if SCORES in list_rankings(graph):
        return np.asarray(Ranking.load(graph, SCORES).values)
    return np.zeros(graph.num_nodes)


def _names(graph: Graph) -> Names:
    if graph.names is None:
        raise ParameterError("the nodes of this graph have no names, so it is not a web graph")
    return graph.names
