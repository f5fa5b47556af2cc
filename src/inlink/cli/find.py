"""``inlink find``: the pages of a crawl, or the nodes of a graph, whose names match a regular expression."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inlink.base.table import printable
from inlink.cli.lookups import place_argument
from inlink.cli.remote import view_of
from inlink.cli.show import write_all

if TYPE_CHECKING:
    from inlink.urls.matching import Kind

Matches = Iterator[tuple[list[tuple[int, str]], int, int]]
"""Parts of a search: numbers and names that match, and how many of all names were searched so far."""


@click.command()
@place_argument
@click.argument("expression", metavar="REGEX")
@click.option("-n", "--number", "count", type=click.IntRange(1), help="Stop after this many pages.")
@click.option(
    "--seconds", type=click.FloatRange(0), default=10.0, show_default=True, help="Time limit of the search."
)
@click.option("--glob", is_flag=True, help="REGEX is a pattern with * and ? for the whole URL.")
@click.option("--text", is_flag=True, help="REGEX is text that occurs in the URL, in upper or lower case.")
def find(
    folder: Path | str, expression: str, count: int | None, seconds: float, glob: bool, text: bool
) -> None:
    """Print the hash and the URL or name of each page whose URL or name matches REGEX (RE2's syntax) anywhere."""
    from inlink.errors import ParameterError
    from inlink.graph.folders import is_graph

    if glob and text:
        raise click.UsageError("--glob and --text cannot be combined: give one of them")
    kind: Kind = "glob" if glob else "text" if text else "regex"
    in_graph = isinstance(folder, Path) and is_graph(folder)
    stop = time.monotonic() + seconds
    for rows, searched, known in (_nodes if in_graph else _pages)(folder, expression, kind, count):
        lines = "".join(f"{number:016x} {name}\n" for number, name in rows[:count])
        write_all(lines.encode())
        count = None if count is None else count - len(rows)
        if count is not None and count <= 0:
            return
        if time.monotonic() > stop and searched < known:
            raise ParameterError(
                f"{expression!r}: searched {searched:,} of {known:,} {'names' if in_graph else 'URLs'} in "
                f"{seconds:g} seconds: use --seconds to search longer"
            )


def _pages(folder: Path | str, expression: str, kind: "Kind", count: int | None) -> Matches:
    from inlink.crawl.arguments import MOST_ROWS
    from inlink.crawl.questions.table import parts

    view, most = view_of(folder), min(count or MOST_ROWS, MOST_ROWS)
    for part in parts(lambda cursor: view.find(expression, kind, most, cursor)):
        yield [(row.page, row.url) for row in part.rows], part.searched, part.known


def _nodes(folder: Path | str, expression: str, kind: "Kind", _: int | None) -> Matches:
    from inlink.graph import neighbours
    from inlink.graph.graph import Graph

    graph = Graph.open(folder)
    for nodes, searched in neighbours.find(graph, expression, kind):
        yield [(node, printable(name)) for node, name in nodes], searched, graph.num_nodes
