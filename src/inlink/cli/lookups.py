"""Graphs, pages and nodes that commands name, and the rows in which they print them."""

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import click

from inlink.base.table import printable
from inlink.cli.remote import FolderOrUrl
from inlink.cli.show import note
from inlink.errors import ParameterError, UnknownNodeError

if TYPE_CHECKING:
    from inlink.client.remote import RemoteCrawl
    from inlink.crawl.view import CrawlView
    from inlink.graph.graph import Graph
    from inlink.urls.matching import Kind

    Search = Callable[[str, Kind], Iterator[list[str]]]

__all__ = [
    "Row",
    "asked",
    "graph_at",
    "is_source",
    "label",
    "local_argument",
    "names_graph",
    "node_argument",
    "node_in",
    "node_rows",
    "page_rows",
    "place_argument",
]

Answer = TypeVar("Answer")
Row = dict[str, Any]
"""A page of a crawl, ``page`` and ``url``, or a node of a graph, ``node`` and ``name``."""

SECONDS = 10.0
"""Time limit of a search for URLs that end with a text."""

place_argument = click.argument("folder", metavar="DIR|GRAPH|URL", type=FolderOrUrl())

local_argument = click.argument(
    "folder",
    metavar="DIR|GRAPH",
    type=FolderOrUrl("this command reads a folder: run it on the machine where the folder is"),
)

node_argument = click.argument("page", metavar="NAME")


def graph_at(place: Path) -> "Graph":
    """The graph in a folder, of a crawl's folder, or of a file, which is read into a temporary folder.

    Raises
    ------
    inlink.errors.InlinkError
        If there is none, or it cannot be read.
    """
    from inlink.sources.crawlgraph import graph_in

    if not is_source(place):
        return graph_in(place)
    from inlink.cli.build import show_reading
    from inlink.sources.read import read

    return show_reading(lambda: read(str(place)), f"{place}, read for this command only", err=True)


def is_source(place: Path) -> bool:
    """Return whether a place is a file or standard input, and no folder."""
    return place.is_file() or str(place) == "-"


def names_graph(place: Path | str) -> TypeGuard[Path]:
    """Return whether a place is a graph's folder or a file, and no crawl."""
    from inlink.graph.folders import is_graph

    return isinstance(place, Path) and (is_graph(place) or is_source(place))


def label(graph: "Graph", node: int) -> str:
    """The name of a node, or its number in a graph without names, with control characters escaped."""
    return str(node) if graph.names is None else printable(graph.names[node])


def node_rows(graph: "Graph", nodes: Iterable[int]) -> Iterator[Row]:
    """Rows of nodes."""
    return ({"node": node, "name": None if graph.names is None else graph.names[node]} for node in nodes)


def page_rows(pages: Iterable[Any]) -> Iterator[Row]:
    """Rows of pages, from the rows of a view's answers."""
    return ({"page": row.page, "url": row.url} for row in pages)


def node_in(graph: "Graph", name: str, place: Path) -> int:
    """Look up a node, by the end of its name too."""
    from inlink.graph import neighbours

    def names(expression: str, kind: "Kind") -> Iterator[list[str]]:
        if graph.names is not None:
            for rows, _ in neighbours.find(graph, expression, kind):
                yield [name for _, name in rows]

    return _asked(partial(neighbours.node_of, graph), names, name, place)


def asked(
    view: "CrawlView | RemoteCrawl", ask: Callable[[str], Answer], page: str, place: Path | str
) -> Answer:
    """Ask about a page of a crawl, by the end of its URL too."""
    from inlink.crawl.questions.table import parts

    def urls(expression: str, kind: "Kind") -> Iterator[list[str]]:
        for part in parts(lambda cursor: view.find(expression, kind, _MOST, cursor)):
            yield [row.url for row in part.rows]

    return _asked(ask, urls, page, place)


_MOST = 4
"""Number of candidates after which a search ends."""


def _asked(ask: Callable[[str], Answer], search: "Search", name: str, place: Path | str) -> Answer:
    """Ask about a page or node. If no page has that name, ask about the only page whose URL ends with it.

    Raises
    ------
    inlink.errors.UnknownNodeError
        If there is none, or several. The message names a few whose URLs end with the name, or contain it.
    """
    try:
        return ask(name)
    except UnknownNodeError:
        advice = "search with `inlink find`"
        for ends in (True, False) if name else ():
            names, searched = _first(search, name, ends)
            if len(names) == 1 and searched and ends:
                note(f"{name} is {names[0]}")
                return ask(names[0])
            if names:
                more = ", …" if len(names) == _MOST else ""
                advice = f"did you mean {', '.join(map(printable, names[: _MOST - 1]))}{more}?"
                break
        raise UnknownNodeError(f"{name!r} is not known in {place}: {advice}") from None


def _first(search: "Search", text: str, ends: bool) -> tuple[list[str], bool]:
    """The first names that end with a text, or contain it, and whether all names were searched for so many.

    They are at most :data:`_MOST`.
    """
    stop = time.monotonic() + SECONDS
    first: list[str] = []
    try:
        for names in search(f"*{text}", "glob") if ends else search(text, "text"):
            # * and ? in the text stand for other characters too.
            first += [name for name in names if not ends or name.endswith(text)]
            if len(first) >= _MOST or time.monotonic() > stop:
                return first[:_MOST], len(first) >= _MOST
    except ParameterError:
        # The text is too long for a search.
        return [], True
    return first, True
