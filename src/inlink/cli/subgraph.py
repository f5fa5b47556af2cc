"""``inlink subgraph``: cut a graph to a set of nodes, or to the arcs between sites."""

from pathlib import Path
from typing import Any

import click

from inlink.cli.lookups import graph_at
from inlink.cli.options import compress_option, folder_output, graph_argument
from inlink.cli.show import say, summary


@click.command()
@graph_argument
@folder_output
@click.option("--crawled", is_flag=True, help="Keep the pages that were crawled.")
@click.option("--nodes", type=click.Path(path_type=Path), help="Keep the nodes in this file, one a line.")
@click.option(
    "--largest-component", type=click.Choice(["weak", "strong"]), help="Keep the largest component."
)
@click.option(
    "--reachable-from",
    "sources",
    multiple=True,
    help="Keep the nodes that can be reached from this node. May be repeated.",
)
@click.option(
    "--without-internal",
    type=click.Choice(["host", "domain"]),
    help="Keep all nodes, and the links between different sites.",
)
@compress_option
def subgraph(
    graph: Path,
    output: Path,
    crawled: bool,
    nodes: Path | None,
    largest_component: str | None,
    sources: tuple[str, ...],
    without_internal: Any,
    **options: Any,
) -> None:
    """Cut GRAPH to the nodes or arcs that one of the options names."""
    if sum(map(bool, (crawled, nodes, largest_component, sources, without_internal))) != 1:
        raise click.UsageError(
            "give one of --crawled, --nodes, --largest-component, --reachable-from and --without-internal"
        )
    from inlink.errors import InputError

    whole = graph_at(graph)
    if crawled:
        if whole.crawled is None:
            raise InputError(
                f"{graph} does not record which pages were crawled, because its source has no such data: use --nodes"
            )
        made = whole.subgraph(whole.crawled, into=output, **options)
    elif nodes:
        made = whole.subgraph([whole.node(name) for name in _lines(nodes)], into=output, **options)
    elif largest_component:
        made = whole.largest_component(strong=largest_component == "strong", into=output, **options)
    elif sources:
        made = whole.reachable(sources, into=output, **options)
    else:
        made = whole.without_internal(without_internal, into=output, **options)
    say(summary(made, str(output)))


def _lines(path: Path) -> list[bytes]:
    from inlink.base.opening import open_binary

    with open_binary(path) as file:
        return [line.rstrip(b"\r\n") for line in file if line.rstrip(b"\r\n")]
