"""``inlink links``: the pages that link to a page of a crawl or graph, and the pages that it links to."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import click

from inlink.cli.lookups import node_argument, node_in, place_argument, rows_of
from inlink.cli.remote import view_of
from inlink.cli.show import say

Rows = Iterable[tuple[int, str]]


@click.command()
@place_argument
@node_argument
def links(folder: Path | str, page: str) -> None:
    """Print the pages that link to a page, and the pages that it links to. For a crawl: of each page's latest visit."""
    from inlink.graph.folders import is_graph

    linkers: Rows
    linked: Rows
    if isinstance(folder, Path) and is_graph(folder):
        graph, number = node_in(folder, page)
        linkers, linked = (rows_of(graph, row(number).tolist()) for row in (graph.inlinks, graph.outlinks))
    else:
        number, linkers, linked = _links_in_crawl(folder, page)
    say(f"->{number:016x}")
    for linker, name in linkers:
        say(f"    {linker:016x} {name}")
    say(f"{number:016x}->")
    for target, name in linked:
        say(f"    {target:016x} {name}")


def _links_in_crawl(folder: Path | str, page: str) -> tuple[int, Rows, Rows]:
    """The number of a page, the pages that link to it, and the pages that it links to."""
    from inlink.crawl.arguments import MOST_ROWS
    from inlink.crawl.questions.table import parts

    view = view_of(folder)
    number = view.number(page)

    def rows(direction: Literal["from", "to"]) -> Rows:
        for part in parts(lambda cursor: view.links(number, direction, MOST_ROWS, cursor)):
            yield from ((row.page, row.url) for row in part.rows)

    return number, sorted(dict(rows("to")).items()), rows("from")
