"""Arguments and lines of the commands that look up single nodes, in the folder of a crawl or a graph."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inlink.base.table import printable
from inlink.cli.remote import FolderOrUrl

if TYPE_CHECKING:
    from inlink.graph.graph import Graph

__all__ = ["label", "local_argument", "node_argument", "node_in", "place_argument", "rows_of"]

place_argument = click.argument("folder", metavar="DIR|GRAPH|URL", type=FolderOrUrl())

local_argument = click.argument(
    "folder",
    metavar="DIR|GRAPH",
    type=FolderOrUrl("this command reads a folder: run it on the machine where the folder is"),
)

node_argument = click.argument("page", metavar="NAME")


def label(graph: "Graph", node: int) -> str:
    """The name of a node, or its number in a graph without names, with control characters escaped."""
    return str(node) if graph.names is None else printable(graph.names[node])


def node_in(folder: Path, name: str) -> "tuple[Graph, int]":
    """Open a graph and look up a node; return both."""
    from inlink.graph.graph import Graph
    from inlink.graph.neighbours import node_of

    graph = Graph.open(folder)
    return graph, node_of(graph, name)


def rows_of(graph: "Graph", nodes: Iterable[int]) -> Iterator[tuple[int, str]]:
    """The numbers and labels of nodes."""
    return ((node, label(graph, node)) for node in nodes)
