"""``inlink page``: the stored data of one page of a crawl, or of one node of a graph."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from inlink.cli.lookups import node_argument, node_in, place_argument
from inlink.cli.options import json_option
from inlink.cli.remote import view_of
from inlink.cli.show import printable, say, show_json


@click.command()
@place_argument
@node_argument
@json_option
def page(folder: Path | str, page: str, as_json: bool) -> None:
    """Show the stored data of one page. This is fast in a crawl or graph of any size.

    For a page of a crawl: state, score, depth, crawls. For a node of a graph: links, and values in stored rankings.
    """
    from inlink.graph.folders import is_graph

    if isinstance(folder, Path) and is_graph(folder):
        _show_node(folder, page, as_json)
        return
    from inlink.crawl.questions.source import unknown

    view = view_of(folder)
    data = view.page(page)
    while data is not None and not data.searched:
        data = view.page(page)
    if data is None:
        raise unknown(folder, page)
    fields = asdict(data)
    fields["content_hash"] = fields["content_hash"].hex()
    fields["fingerprint"] = f"{data.fingerprint:016x}" if data.fingerprint else ""
    del fields["searched"]
    if as_json:
        show_json(fields)
        return
    for name, value in fields.items():
        if name.endswith("_crawl") and value is not None:
            value = datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds")
        say(f"{name:<17} {'' if value is None else printable(str(value))}")


def _show_node(folder: Path, name: str, as_json: bool) -> None:
    """Print the data of a node: its name, numbers of links, and values in the rankings of the graph's folder.

    Damaged rankings are named in the JSON. The error of the first is raised at the end.
    """
    from inlink.base.folder import Folder
    from inlink.errors import FolderError
    from inlink.rank.ranking import FORMAT, KIND, Ranking

    graph, node = node_in(folder, name)
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
    if as_json:
        show_json({**fields, "rankings": rankings, "damaged": list(damaged)})
    else:
        for field, value in fields.items():
            say(f"{field:<14} {'' if value is None else printable(value)}")
        for ranking, values in rankings.items():
            row = "  ".join(
                f"{'' if name == 'value' else f'{name} '}{value:.6g}" for name, value in values.items()
            )
            say(f"{printable(ranking):<14} {row}")
    if damaged:
        raise next(iter(damaged.values()))
