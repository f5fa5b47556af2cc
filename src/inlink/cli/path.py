"""``inlink path``: the links through which a crawl discovered a page, or a shortest path between two nodes."""

from pathlib import Path

import click

from inlink.cli.lookups import node_argument, place_argument, print_chain
from inlink.cli.remote import view_of
from inlink.cli.show import say


@click.command()
@place_argument
@node_argument
@click.option("--from", "origin", metavar="NAME", help="Print a shortest path of links from this node.")
def path(folder: Path | str, page: str, origin: str | None) -> None:
    """Print the links through which a crawl discovered a page: the page, its first linking page, and so on to a seed.

    With --from, print a shortest path of links instead: the page, the page that links to it, and so on. For a graph,
    --from is required. If there is no path, the exit code is 1.
    """
    from inlink.errors import ParameterError
    from inlink.graph.graph import is_graph

    if isinstance(folder, str) and origin is not None:
        raise ParameterError(
            f"{folder}: --from needs the crawl's folder: run it on the machine where the folder is"
        )
    if isinstance(folder, Path) and (origin is not None or is_graph(folder)):
        print_chain(folder, page, origin)
        return
    view, cursor = view_of(folder), None
    while True:
        part = view.path(page, cursor=cursor)
        for row in part.rows:
            say(f"{row.page:016x} {row.url}")
        cursor = part.cursor
        if cursor is None:
            return
