"""``inlink find``: the pages of a crawl whose URLs match a regular expression."""

import sys
import time
from pathlib import Path

import click

from inlink.cli.crawls import crawl_argument, write_all


@click.command()
@crawl_argument
@click.argument("expression", metavar="REGEX")
@click.option("-n", "--number", "count", type=click.IntRange(1), help="Stop after this many pages.")
@click.option(
    "--seconds", type=click.FloatRange(0), default=10.0, show_default=True, help="Time limit of the search."
)
@click.option("--glob", is_flag=True, help="The expression is a pattern with * and ? for the whole URL.")
@click.option("--text", is_flag=True, help="The expression is text that occurs in the URL, in any case.")
def find(folder: Path, expression: str, count: int | None, seconds: float, glob: bool, text: bool) -> None:
    """Print the hash and the URL of each page of DIR whose URL matches REGEX (RE2's syntax) anywhere."""
    from inlink.crawl.view import MOST_ROWS, CrawlView
    from inlink.errors import ParameterError

    if glob and text:
        raise click.UsageError("--glob and --text exclude each other")
    view, stop, cursor = CrawlView.open(folder), time.monotonic() + seconds, None
    left = count
    while True:
        part = view.find(
            expression,
            "glob" if glob else "text" if text else "regex",
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
