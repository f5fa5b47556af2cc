"""``inlink top``: the best nodes of a ranking."""

from pathlib import Path

import click

from inlink.cli.options import graph_argument
from inlink.cli.show import show_json, show_table


@click.command()
@graph_argument
@click.option(
    "--by", "name", default="pagerank", show_default=True, help="A ranking that is stored with the graph."
)
@click.option(
    "-n", "--number", "count", type=click.IntRange(0), default=10, show_default=True, help="How many."
)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def top(graph: Path, name: str, count: int, as_json: bool) -> None:
    """Show the best nodes of GRAPH or a crawl: place, value, name. Tab-separated where the output is no terminal."""
    from inlink.sources.crawl import top_of

    best = top_of(graph, name, count)
    if as_json:
        show_json([{"place": k + 1, "node": node, "value": value} for k, (node, value) in enumerate(best)])
        return
    rows = [(k + 1, f"{value:.6g}", node) for k, (node, value) in enumerate(best)]
    show_table(["place", name, "node"], rows, right=(0, 1))
