"""``inlink page``: the stored data of one page of a crawl, or of one node of a graph."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlink.cli.lookups import asked, graph_at, names_graph, node_argument, node_in, place_argument
from inlink.cli.options import json_option
from inlink.cli.remote import view_of
from inlink.cli.show import say_fields, show_answer
from inlink.errors import UnknownNodeError

if TYPE_CHECKING:
    from inlink.store.page import Page


@click.command()
@place_argument
@node_argument
@json_option
def page(folder: Path | str, page: str, as_json: bool) -> None:
    """Show the stored data of one page. This is fast in a crawl or graph of any size.

    For a page of a crawl: state, score, depth, crawls. For a node of a graph: links, and values in stored rankings.
    """
    if names_graph(folder):
        _show_node(folder, page, as_json)
        return
    view = view_of(folder)

    def known(name: str) -> "Page":
        while (data := view.page(name)) and not data.searched:
            pass
        if data is None:
            raise UnknownNodeError(name)
        return data

    data = asked(view, known, page, folder)
    fields = asdict(data)
    fields["content_hash"] = fields["content_hash"].hex()
    fields["fingerprint"] = f"{data.fingerprint:016x}" if data.fingerprint else ""
    del fields["searched"]
    show_answer(fields, as_json, _say_page)


def _say_page(fields: dict[str, Any]) -> None:
    times = {
        name: datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds")
        for name, value in fields.items()
        if name.endswith("_crawl") and value is not None
    }
    say_fields((fields | times).items(), 17)


def _show_node(folder: Path, name: str, as_json: bool) -> None:
    """Print the data of a node: its name, numbers of links, and values in the rankings of the graph's folder.

    Damaged rankings are named in the JSON. The error of the first is raised at the end.
    """
    from inlink.base.folder import Folder
    from inlink.errors import FolderError
    from inlink.rank.ranking import FORMAT, KIND, Ranking

    graph = graph_at(folder)
    node = node_in(graph, name, folder)
    fields: dict[str, Any] = {
        "node": node,
        "name": None if graph.names is None else graph.names[node],
        "inlinks": len(graph.inlinks(node)),
        "outlinks": len(graph.outlinks(node)),
        "crawled": None if graph.crawled is None else bool(graph.crawled[node]),
    }
    rankings: dict[str, dict[str, float]] = {}
    damaged: dict[str, FolderError] = {}
    for header in sorted(folder.glob("rankings/[!.]*/header.json")):
        ranking = header.parent.name
        try:
            if Folder(header.parent, KIND, FORMAT).header.meta.get("graph_uuid") == graph.uuid:
                columns = Ranking.load(graph, ranking).columns
                rankings[ranking] = {column: float(values[node]) for column, values in columns.items()}
        except FolderError as error:
            damaged[ranking] = error
    show_answer({**fields, "rankings": rankings, "damaged": list(damaged)}, as_json, _say_node)
    if damaged:
        raise next(iter(damaged.values()))


def _say_node(answer: dict[str, Any]) -> None:
    values = {
        ranking: "  ".join(
            f"{'' if name == 'value' else f'{name} '}{value:.6g}" for name, value in columns.items()
        )
        for ranking, columns in answer["rankings"].items()
    }
    fields = {name: value for name, value in answer.items() if name not in ("rankings", "damaged")}
    say_fields([*fields.items(), *values.items()], 14)
