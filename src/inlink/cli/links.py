"""``inlink links``: the pages that link to a page of a crawl or graph, and the pages that it links to."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import click

from inlink.cli.lookups import (
    Row,
    asked,
    graph_at,
    names_graph,
    node_argument,
    node_in,
    node_rows,
    page_rows,
    place_argument,
)
from inlink.cli.options import json_option
from inlink.cli.remote import view_of
from inlink.cli.show import say, say_rows, show_answer


@click.command()
@place_argument
@node_argument
@json_option
def links(folder: Path | str, page: str, as_json: bool) -> None:
    """Print the pages that link to a page, and the pages that it links to. For a crawl: of each page's latest visit."""
    if names_graph(folder):
        graph = graph_at(folder)
        number = node_in(graph, page, folder)
        answer: dict[str, Any] = {"node": number}
        for name, row in (("inlinks", graph.inlinks), ("outlinks", graph.outlinks)):
            answer[name] = list(node_rows(graph, row(number).tolist()))
    else:
        answer = _of_page(folder, page)
    show_answer(answer, as_json, _show)


def _of_page(folder: Path | str, page: str) -> dict[str, Any]:
    """The number of a page, the pages that link to it, and the pages that it links to."""
    from inlink.crawl.arguments import MOST_ROWS
    from inlink.crawl.questions.table import parts

    view = view_of(folder)
    number = asked(view, view.number, page, folder)

    def rows(direction: Literal["from", "to"]) -> Iterator[Row]:
        for part in parts(lambda cursor: view.links(number, direction, MOST_ROWS, cursor)):
            yield from page_rows(part.rows)

    # A page that is crawled during the search may occur twice.
    inlinks = {row["page"]: row for row in rows("to")}
    return {
        "page": number,
        "inlinks": [inlinks[key] for key in sorted(inlinks)],
        "outlinks": list(rows("from")),
    }


def _show(answer: dict[str, Any]) -> None:
    number, inlinks, outlinks = answer.values()
    say(f"->{number:016x}")
    say_rows(inlinks, "    ")
    say(f"{number:016x}->")
    say_rows(outlinks, "    ")
