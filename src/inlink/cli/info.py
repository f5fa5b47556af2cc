"""``inlink info``: the figures of a graph."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inlink.cli.crawl_info import show_crawl
from inlink.cli.options import graph_argument, json_option
from inlink.cli.show import printable, say, show_json

if TYPE_CHECKING:
    from inlink.graph.graph import Graph, GraphInfo


@click.command()
@graph_argument
@click.option("--verify", is_flag=True, help="Check every file, even if the folder was checked before.")
@json_option
def info(graph: Path, verify: bool, as_json: bool) -> None:
    """Show the figures of GRAPH: nodes, arcs, degrees, components, origin, rankings. For a crawl, see crawl-info.

    If a ranking is damaged, the command reports it at the end, with exit code 2.
    """
    from inlink.base.folder import Folder
    from inlink.graph.graph import Graph
    from inlink.rank.ranking import FORMAT, KIND, list_rankings
    from inlink.store.reader import is_crawl

    if is_crawl(graph):
        if verify:
            from inlink.store.verify import verify as verify_crawl

            verify_crawl(graph)
        show_crawl(graph, as_json)
        return
    opened = Graph.open(graph, verify=verify)
    found = opened.info()
    rankings = list_rankings(opened)
    if as_json:
        show_json({**asdict(found), "rankings": rankings, "origin": opened.meta})
    else:
        _show(opened, found, rankings)
    # Damaged rankings are not in the list: opening one raises the error that names it.
    for header in sorted(graph.glob("rankings/[!.]*/header.json")):
        Folder(header.parent, KIND, FORMAT)


def _show(opened: "Graph", found: "GraphInfo", rankings: list[str]) -> None:
    def share(part: int, whole: int) -> str:
        return f"{part:,} ({part / whole:.1%})" if whole else f"{part:,}"

    rows = [
        ("nodes", f"{found.nodes:,}" + (f" ({found.level}s)" if found.level else "")),
        ("arcs", f"{found.arcs:,}" + (", weighted" if found.weighted else "")),
        ("dangling", share(found.dangling, found.nodes)),
        ("islands", share(found.islands, found.nodes)),
        ("self-loops", share(found.self_loops, found.nodes)),
        ("largest outdegree", f"{found.max_outdegree:,}  {_named(found.max_outdegree_node)}"),
        ("largest indegree", f"{found.max_indegree:,}  {_named(found.max_indegree_node)}"),
        (
            "weak components",
            f"{found.components:,}, the largest of {share(found.largest_component, found.nodes)} nodes",
        ),
        (
            "on disk",
            f"{found.bytes:,} bytes" + (f", {found.bytes / found.arcs:.1f} an arc" if found.arcs else ""),
        ),
        (
            "links",
            f"{found.link_bytes:,} bytes"
            + (f", {found.link_bytes / found.arcs:.2f} an arc" if found.arcs else "")
            + (", compressed" if found.compressed else ""),
        ),
        ("rankings", ", ".join(rankings) or "none"),
    ]
    if found.crawled is not None:
        rows.insert(2, ("crawled", share(found.crawled, found.nodes)))
    rows += [("source", printable(source)) for source in opened.meta.get("sources", [])]
    rows += [
        ("skipped", f"{count:,} × {printable(why)}") for why, count in opened.meta.get("skipped", {}).items()
    ]
    for label, value in rows:
        say(f"{label:<18} {value}")


def _named(node: str | int | None) -> str:
    return "" if node is None else printable(node)
