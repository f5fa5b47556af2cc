"""``inlink path``: the links through which a crawl discovered a page, or a shortest path between two nodes."""

from collections.abc import Iterator
from pathlib import Path

import click

from inlink.cli.lookups import label, node_argument, place_argument, rows_of
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
    from inlink.crawl.questions.table import parts
    from inlink.errors import ParameterError
    from inlink.graph.graph import is_graph

    if isinstance(folder, str) and origin is not None:
        raise ParameterError(
            f"{folder}: --from needs the crawl's folder: run it on the machine where the folder is"
        )
    if isinstance(folder, Path) and (origin is not None or is_graph(folder)):
        rows = _shortest(folder, page, origin)
    else:
        view = view_of(folder)
        steps = parts(lambda cursor: view.path(page, cursor=cursor))
        rows = ((row.page, row.url) for part in steps for row in part.rows)
    for number, name in rows:
        say(f"{number:016x} {name}")


def _shortest(folder: Path, page: str, origin: str | None) -> Iterator[tuple[int, str]]:
    """A shortest chain of links to a node: the node, the node that links to it, and so on to the origin."""
    from inlink.errors import ParameterError
    from inlink.graph.neighbours import chain, node_of
    from inlink.sources.crawlgraph import graph_in

    if origin is None:
        raise ParameterError(
            f"{folder} is a graph and has no seeds: use --from to name the node where the path begins"
        )
    graph = graph_in(folder)
    begin, end = node_of(graph, origin), node_of(graph, page)
    nodes = chain(graph, begin, end)
    if nodes is None:
        click.echo(f"no links lead from {label(graph, begin)} to {label(graph, end)}", err=True)
        click.get_current_context().exit(1)
    return rows_of(graph, reversed(nodes))
