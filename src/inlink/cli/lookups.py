"""Look-ups of single nodes in a graph's folder, for commands that take the folder of a crawl or a graph."""

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlink.base.table import printable
from inlink.cli.crawls import write_all
from inlink.cli.remote import FolderOrUrl
from inlink.cli.show import say, show_json

if TYPE_CHECKING:
    from inlink.graph.graph import Graph
    from inlink.urls.matching import Kind

__all__ = [
    "label",
    "local_argument",
    "node_argument",
    "place_argument",
    "print_chain",
    "print_found",
    "print_links",
    "print_node",
]

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


def print_links(folder: Path, given: str) -> None:
    """Print the nodes that link to a node of a graph, and the nodes that it links to."""
    from inlink.graph.neighbours import node_of

    graph, node = _opened(folder, given, node_of)
    say(f"->{node:016x}")
    for line in _lines(graph, graph.inlinks(node).tolist()):
        say(f"    {line}")
    say(f"{node:016x}->")
    for line in _lines(graph, graph.outlinks(node).tolist()):
        say(f"    {line}")


def print_found(folder: Path, expression: str, kind: "Kind", count: int | None, seconds: float) -> None:
    """Print the nodes of a graph whose names match."""
    from inlink.errors import ParameterError
    from inlink.graph.graph import Graph
    from inlink.graph.neighbours import find

    graph, stop = Graph.open(folder), time.monotonic() + seconds
    for nodes, searched in find(graph, expression, kind):
        lines = "".join(f"{node:016x} {printable(name)}\n" for node, name in nodes[:count])
        write_all(sys.stdout.buffer, lines.encode())
        count = None if count is None else count - len(nodes)
        if count is not None and count <= 0:
            return
        if time.monotonic() > stop and searched < graph.num_nodes:
            raise ParameterError(
                f"{expression!r}: searched {searched:,} of {graph.num_nodes:,} names in {seconds:g} seconds: "
                "use --seconds to search longer"
            )


def print_chain(folder: Path, given: str, origin: str | None) -> None:
    """Print a shortest chain of links to a node: the node, the node that links to it, and so on to the origin."""
    from inlink.errors import ParameterError
    from inlink.graph.neighbours import chain, node_of
    from inlink.sources.crawlgraph import graph_in

    if origin is None:
        raise ParameterError(
            f"{folder} is a graph and has no seeds: use --from to name the node where the path begins"
        )
    graph = graph_in(folder)
    begin, end = node_of(graph, origin), node_of(graph, given)
    found = chain(graph, begin, end)
    if found is None:
        click.echo(f"no links lead from {label(graph, begin)} to {label(graph, end)}", err=True)
        click.get_current_context().exit(1)
    for line in _lines(graph, reversed(found)):
        say(line)


def print_node(folder: Path, given: str, as_json: bool) -> None:
    """Print the data of a node: its name, numbers of links, and values in the rankings of the graph's folder.

    Damaged rankings are named in the JSON. The error of the first is raised at the end.
    """
    from inlink.base.folder import Folder
    from inlink.errors import FolderError
    from inlink.graph.neighbours import node_of
    from inlink.rank.ranking import Ranking
    from inlink.rank.stored import FORMAT, KIND

    graph, node = _opened(folder, given, node_of)
    fields: dict[str, Any] = {
        "node": node,
        "name": None if graph.names is None else graph.names[node],
        "inlinks": len(graph.inlinks(node)),
        "outlinks": len(graph.outlinks(node)),
        "crawled": None if graph.crawled is None else bool(graph.crawled[node]),
    }
    rankings: dict[str, dict[str, float]] = {}
    damaged: dict[str, FolderError] = {}
    for header in sorted(folder.glob("rankings/[!.]*/header.json")):
        name = header.parent.name
        try:
            if Folder(header.parent, KIND, FORMAT).header.meta.get("graph_uuid") == graph.uuid:
                columns = Ranking.load(graph, name).columns
                rankings[name] = {column: float(values[node]) for column, values in columns.items()}
        except FolderError as error:
            damaged[name] = error
    if as_json:
        show_json({**fields, "rankings": rankings, "damaged": list(damaged)})
    else:
        for field, value in fields.items():
            say(f"{field:<14} {'' if value is None else printable(value)}")
        for name, values in rankings.items():
            row = "  ".join(_value(column, value) for column, value in values.items())
            say(f"{printable(name):<14} {row}")
    if damaged:
        raise next(iter(damaged.values()))


def _value(column: str, value: float) -> str:
    return f"{value:.6g}" if column == "value" else f"{column} {value:.6g}"


def _opened(folder: Path, given: str, node_of: Any) -> tuple["Graph", int]:
    from inlink.graph.graph import Graph

    graph = Graph.open(folder)
    return graph, node_of(graph, given)


def _lines(graph: "Graph", nodes: Iterable[int]) -> Iterator[str]:
    for node in nodes:
        yield f"{node:016x} {label(graph, node)}"
