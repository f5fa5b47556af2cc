"""``inlink fold``: the graph of hosts or domains of a graph of pages or hosts."""

from pathlib import Path
from typing import Any

import click

from inlink.cli.options import compress_option, declared_options, folder_output, graph_argument
from inlink.cli.show import say, say_folding, summary
from inlink.sources.formats import SITES


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
@declared_options(SITES)
@click.option("--keep-suffixes", is_flag=True, help="Keep hosts that are suffixes themselves (gov.uk).")
@compress_option
def fold(
    graph: Path,
    output: Path,
    level: str,
    self_loops: bool,
    keep_suffixes: bool,
    compress: bool,
    **of_sites: Any,
) -> None:
    """Fold GRAPH to hosts or registered domains. The weight of an arc is its number of links."""
    from inlink.graph.graph import Graph

    folded = Graph.open(graph).fold(
        "host" if level == "host" else "domain",
        self_loops=self_loops,
        keep_suffixes=keep_suffixes,
        into=output,
        compress=compress,
        **{name: value for name, value in of_sites.items() if value is not None},
    )
    say(summary(folded, str(output)))
    say_folding(folded)
