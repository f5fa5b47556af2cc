"""``inlink links``: the pages that link to a page of a crawl or graph, and the pages that it links to."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inlink.cli.lookups import node_argument, place_argument, print_links
from inlink.cli.remote import view_of
from inlink.cli.show import say

if TYPE_CHECKING:
    from inlink.crawl.shown import PageList, PageRow


@click.command()
@place_argument
@node_argument
def links(folder: Path | str, page: str) -> None:
    """Print the pages that link to a page, and the pages that it links to. For a crawl: of each page's latest visit."""
    from inlink.graph.folders import is_graph

    if isinstance(folder, Path) and is_graph(folder):
        print_links(folder, page)
        return
    from inlink.crawl.arguments import MOST_ROWS

    view = view_of(folder)
    number = view.number(page)
    say(f"->{number:016x}")
    linkers = {row.page: row.url for row in _all(lambda cursor: view.links(number, "to", MOST_ROWS, cursor))}
    for linker, url in sorted(linkers.items()):
        say(f"    {linker:016x} {url}")
    say(f"{number:016x}->")
    for row in _all(lambda cursor: view.links(number, "from", MOST_ROWS, cursor)):
        say(f"    {row.page:016x} {row.url}")


def _all(part: "Callable[[str | None], PageList]") -> "Iterator[PageRow]":
    """The rows of all parts."""
    cursor = None
    while True:
        rows = part(cursor)
        yield from rows.rows
        cursor = rows.cursor
        if cursor is None:
            return
