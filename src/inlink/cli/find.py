"""``inlink find``: the pages of a crawl, or the nodes of a graph, whose names match a regular expression."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inlink.cli.lookups import Row, graph_at, names_graph, page_rows, place_argument
from inlink.cli.options import json_option
from inlink.cli.remote import view_of
from inlink.cli.show import note, say_rows, show_answer

if TYPE_CHECKING:
    from inlink.graph.graph import Graph
    from inlink.urls.matching import Kind

Matches = Iterator[tuple[list[Row], int, int]]
"""Parts of a search: rows that match, the number of names that were searched so far, and the number of all names."""


@click.command()
@place_argument
@click.argument("expression", metavar="REGEX")
@click.option("-n", "--number", "count", type=click.IntRange(1), help="Stop after this many pages.")
@click.option(
    "--seconds", type=click.FloatRange(0), default=10.0, show_default=True, help="Time limit of the search."
)
@click.option("--glob", is_flag=True, help="REGEX is a pattern with * and ? for the whole URL.")
@click.option("--text", is_flag=True, help="REGEX is text that occurs in the URL, in upper or lower case.")
@json_option
def find(
    folder: Path | str,
    expression: str,
    count: int | None,
    seconds: float,
    glob: bool,
    text: bool,
    as_json: bool,
) -> None:
    """Print the hash and the URL or name of each page whose URL or name matches REGEX (RE2's syntax) anywhere."""
    if glob and text:
        raise click.UsageError("--glob and --text cannot be combined: give one of them")
    kind: Kind = "glob" if glob else "text" if text else "regex"
    if names_graph(folder):
        parts, names = _nodes(graph_at(folder), expression, kind), "names"
    else:
        parts, names = _pages(folder, expression, kind, count), "URLs"
    show_answer(_rows(parts, names, expression, count, seconds), as_json, say_rows)


def _rows(parts: Matches, names: str, expression: str, count: int | None, seconds: float) -> Iterator[Row]:
    """The rows, at most ``count``. A line on standard error says that there are none.

    Raises
    ------
    inlink.errors.ParameterError
        If the search takes longer than ``seconds``.
    """
    from inlink.errors import ParameterError

    stop, shown, known = time.monotonic() + seconds, 0, 0
    for rows, searched, known in parts:
        for row in rows:
            yield row
            shown += 1
            if shown == count:
                return
        if time.monotonic() > stop and searched < known:
            raise ParameterError(
                f"{expression!r}: searched {searched:,} of {known:,} {names} in {seconds:g} seconds: "
                "use --seconds to search longer"
            )
    if not shown:
        note(f"none of the {known:,} {names} matches {expression!r}")


def _pages(folder: Path | str, expression: str, kind: "Kind", count: int | None) -> Matches:
    from inlink.crawl.arguments import MOST_ROWS
    from inlink.crawl.questions.table import parts

    view, most = view_of(folder), min(count or MOST_ROWS, MOST_ROWS)
    for part in parts(lambda cursor: view.find(expression, kind, most, cursor)):
        yield list(page_rows(part.rows)), part.searched, part.known


def _nodes(graph: "Graph", expression: str, kind: "Kind") -> Matches:
    from inlink.graph import neighbours

    for nodes, searched in neighbours.find(graph, expression, kind):
        yield [{"node": node, "name": name} for node, name in nodes], searched, graph.num_nodes
