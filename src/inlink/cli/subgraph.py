"""``inlink subgraph``: some nodes of a graph and the arcs between them, or all nodes and some arcs."""

from pathlib import Path

import click

from inlink.cli.options import folder_output, graph_argument
from inlink.cli.show import say, summary


@click.command()
@graph_argument
@folder_output
@click.option("--crawled", is_flag=True, help="The pages that were crawled, not only linked to.")
@click.option("--nodes", type=click.Path(path_type=Path), help="The nodes named in this file, one a line.")
@click.option("--largest-component", type=click.Choice(["weak", "strong"]), help="The largest component.")
@click.option(
    "--reachable-from", "seeds", multiple=True, help="What a node leads to; may be given several times."
)
@click.option(
    "--without-internal",
    type=click.Choice(["host", "domain"]),
    help="All nodes, without links inside one site.",
)
def subgraph(
    graph: Path,
    output: Path,
    crawled: bool,
    nodes: Path | None,
    largest_component: str | None,
    seeds: tuple[str, ...],
    without_internal: str | None,
) -> None:
    """Cut GRAPH to the nodes or arcs that one of the options names."""
    given = [
        crawled,
        nodes is not None,
        largest_component is not None,
        bool(seeds),
        without_internal is not None,
    ]
    if sum(given) != 1:
        raise click.UsageError(
            "give one of --crawled, --nodes, --largest-component, --reachable-from and --without-internal"
        )
    from inlink.errors import InputError
    from inlink.graph.graph import Graph

    whole = Graph.open(graph)
    if crawled:
        if whole.crawled is None:
            raise InputError(f"{graph} does not know which pages were crawled: its source did not say")
        made = whole.subgraph(whole.crawled, into=output)
    elif nodes is not None:
        made = whole.subgraph([whole.node(name) for name in _lines(nodes)], into=output)
    elif largest_component is not None:
        made = whole.largest_component(strong=largest_component == "strong", into=output)
    elif seeds:
        made = whole.reachable(seeds, into=output)
    else:
        made = whole.without_internal("host" if without_internal == "host" else "domain", into=output)
    say(summary(made, str(output)))


def _lines(path: Path) -> list[bytes]:
    return [line.rstrip(b"\r") for line in path.read_bytes().split(b"\n") if line.rstrip(b"\r")]
