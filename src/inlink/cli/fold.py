"""``inlink fold``: the graph of hosts or domains of a graph of pages or hosts."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from inlink.cli.options import compress_option, folder_output, graph_argument, site_options
from inlink.cli.show import say, say_folding, summary

if TYPE_CHECKING:
    from inlink.urls.columns import HostNames


@click.command()
@graph_argument
@folder_output
@click.option(
    "--level",
    type=click.Choice(["host", "domain"]),
    required=True,
    help="The kind of a node.",
)
@click.option("--self-loops", is_flag=True, help="Keep links within a host or domain as self-loops.")
@site_options
@compress_option
def fold(
    graph: Path,
    output: Path,
    level: str,
    self_loops: bool,
    hosts: "HostNames | None",
    strip_www: bool,
    private_suffixes: bool,
    keep_suffixes: bool,
    compress: bool,
) -> None:
    """Fold GRAPH to hosts or registered domains. The weight of an arc is its number of links."""
    from inlink.graph.graph import Graph

    folded = Graph.open(graph).fold(
        "host" if level == "host" else "domain",
        self_loops=self_loops,
        hosts=hosts,
        strip_www=strip_www,
        private_suffixes=private_suffixes,
        keep_suffixes=keep_suffixes,
        into=output,
        compress=compress,
    )
    say(summary(folded, str(output)))
    say_folding(folded)
