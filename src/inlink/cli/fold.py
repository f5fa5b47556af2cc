"""``inlink fold``: the graph of hosts or domains of a graph of pages or hosts."""

from pathlib import Path
from typing import Any

import click

from inlink.cli.lookups import graph_at
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
def fold(graph: Path, output: Path, level: Any, **options: Any) -> None:
    """Fold GRAPH to hosts or registered domains. The weight of an arc is its number of links."""
    chosen = {name: value for name, value in options.items() if value is not None}
    folded = graph_at(graph).fold(level, into=output, **chosen)
    say(summary(folded, str(output)))
    say_folding(folded)
