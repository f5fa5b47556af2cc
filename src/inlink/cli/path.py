"""``inlink path``: the links through which a crawl discovered a page, or a shortest path between two nodes."""

from collections.abc import Iterator
from pathlib import Path

import click

from inlink.cli.lookups import (
    Row,
    asked,
    graph_at,
    label,
    names_graph,
    node_argument,
    node_in,
    node_rows,
    page_rows,
    place_argument,
)
from inlink.cli.options import json_option
from inlink.cli.remote import refuse_url, view_of
from inlink.cli.show import note, say_rows, show_answer


@click.command()
@place_argument
@node_argument
@click.option("--from", "origin", metavar="NAME", help="Print a shortest path of links from this node.")
@json_option
def path(folder: Path | str, page: str, origin: str | None, as_json: bool) -> None:
    """Print the links through which a crawl discovered a page: the page, its first linking page, and so on to a seed.

    With --from, print a shortest path of links instead: the page, the page that links to it, and so on. For a graph,
    --from is required. If there is no path, the exit code is 1.
    """
    from inlink.errors import ParameterError

    if origin is not None:
        refuse_url(folder, "--from needs the crawl's folder: run it on the machine where the folder is")
        rows = _shortest(Path(folder), page, origin)
    elif names_graph(folder):
        raise ParameterError(
            f"{folder} is a graph and has no seeds: use --from to name the node where the path begins"
        )
    else:
        rows = _discovery(folder, page)
    show_answer(rows, as_json, say_rows)


def _discovery(folder: Path | str, page: str) -> Iterator[Row]:
    """The page, the page whose links made it known, and so on to a seed."""
    from inlink.crawl.questions.table import parts

    view = view_of(folder)
    number = asked(view, lambda name: view.path(name, 1), page, folder).rows[0].page
    for part in parts(lambda cursor: view.path(number, cursor=cursor)):
        yield from page_rows(part.rows)


def _shortest(folder: Path, page: str, origin: str) -> Iterator[Row]:
    """A shortest chain of links to a node: the node, the node that links to it, and so on to the origin."""
    from inlink.graph.neighbours import chain

    graph = graph_at(folder)
    begin, end = node_in(graph, origin, folder), node_in(graph, page, folder)
    nodes = chain(graph, begin, end)
    if nodes is None:
        note(f"no links lead from {label(graph, begin)} to {label(graph, end)}")
        click.get_current_context().exit(1)
    return node_rows(graph, reversed(nodes))
