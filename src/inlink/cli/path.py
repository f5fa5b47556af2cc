"""``inlink path``: how a crawl came to know a page, or a shortest chain of links between two nodes."""

from pathlib import Path

import click

from inlink.cli.lookups import node_argument, place_argument, print_chain
from inlink.cli.remote import view_of
from inlink.cli.show import say


@click.command()
@place_argument
@node_argument
@click.option("--from", "origin", metavar="NAME", help="Print a shortest chain of links from this node.")
def path(folder: Path | str, page: str, origin: str | None) -> None:
    """Print the chain of first links to a page of a crawl: the page, the page that made it known, and so on to a seed.

    With --from, which a graph needs, print a shortest chain instead: the page, the page that links to it, and so on. If
    there is none, the exit code is 1.
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
