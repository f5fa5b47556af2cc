"""``inlink find``: the pages of a crawl, or the nodes of a graph, whose names match a regular expression."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inlink.cli.crawls import write_all
from inlink.cli.lookups import place_argument, print_found
from inlink.cli.remote import view_of

if TYPE_CHECKING:
    from inlink.urls.matching import Kind


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
    if isinstance(folder, Path) and is_graph(folder):
        print_found(folder, expression, kind, count, seconds)
        return
    from inlink.crawl.arguments import MOST_ROWS

    view, stop, cursor = view_of(folder), time.monotonic() + seconds, None
    left = count
    while True:
        part = view.find(
            expression,
            kind,
            MOST_ROWS if left is None else min(left, MOST_ROWS),
            cursor,
        )
        if part.rows:
            lines = "".join(f"{row.page:016x} {row.url}\n" for row in part.rows)
            write_all(sys.stdout.buffer, lines.encode())
        cursor = part.cursor
        left = None if left is None else left - len(part.rows)
        if cursor is None or left == 0:
            return
        if time.monotonic() > stop:
            raise ParameterError(
                f"{expression!r}: searched {part.searched:,} of {part.known:,} URLs in {seconds:g} seconds: "
                "use --seconds to search longer"
            )
