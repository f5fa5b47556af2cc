"""``inlink info``: the figures of a graph."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from inlink.cli.crawl_info import show_crawl
from inlink.cli.lookups import graph_at, is_source
from inlink.cli.options import graph_argument, json_option
from inlink.cli.show import printable, say_fields, show_answer


@click.command()
@graph_argument
@click.option("--verify", is_flag=True, help="Check every file, even if the folder was checked before.")
@json_option
def info(graph: Path, verify: bool, as_json: bool) -> None:
    """Show the figures of GRAPH: nodes, arcs, degrees, components, origin, rankings. For a crawl, see crawl-info.

    GRAPH may also be a file that inlink build reads, or - for standard input.

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
    opened = graph_at(graph) if is_source(graph) else Graph.open(graph, verify=verify)
    figures = {**asdict(opened.info()), "rankings": list_rankings(opened), "origin": opened.meta}
    show_answer(figures, as_json, _say_figures)
    # Damaged rankings are not in the list: opening one raises the error that names it.
    for header in sorted(graph.glob("rankings/[!.]*/header.json")):
        Folder(header.parent, KIND, FORMAT)


def _say_figures(figures: dict[str, Any]) -> None:
    nodes, arcs, origin = figures["nodes"], figures["arcs"], figures["origin"]

    def share(part: int) -> str:
        return f"{part:,} ({part / nodes:.1%})" if nodes else f"{part:,}"

    def largest(side: str) -> tuple[str, str]:
        node = figures[f"max_{side}_node"]
        return f"largest {side}", f"{figures[f'max_{side}']:,}  {'' if node is None else printable(node)}"

    def size(name: str, digits: int) -> str:
        return f"{figures[name]:,} bytes" + (f", {figures[name] / arcs:.{digits}f} an arc" if arcs else "")

    fields = [
        ("nodes", f"{nodes:,}" + (f" ({figures['level']}s)" if figures["level"] else "")),
        ("arcs", f"{arcs:,}" + (", weighted" if figures["weighted"] else "")),
        *([] if figures["crawled"] is None else [("crawled", share(figures["crawled"]))]),
        ("dangling", share(figures["dangling"])),
        ("islands", share(figures["islands"])),
        ("self-loops", share(figures["self_loops"])),
        largest("outdegree"),
        largest("indegree"),
        (
            "weak components",
            f"{figures['components']:,}, the largest of {share(figures['largest_component'])} nodes",
        ),
        ("on disk", size("bytes", 1)),
        ("links", size("link_bytes", 2) + (", compressed" if figures["compressed"] else "")),
        ("rankings", ", ".join(figures["rankings"]) or "none"),
        *(("source", source) for source in origin.get("sources", [])),
        *(("skipped", f"{count:,} × {why}") for why, count in origin.get("skipped", {}).items()),
    ]
    say_fields(fields)
