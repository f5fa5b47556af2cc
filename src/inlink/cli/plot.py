"""``inlink plot``: pictures of graphs and rankings."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from inlink.cli.lookups import graph_at
from inlink.cli.options import Output, graph_argument
from inlink.cli.sections import Uncut
from inlink.cli.show import say

__all__ = ["plot"]

_picture = click.option(
    "--output", "-o", required=True, type=Output(), help="File to write, .png, .svg or .pdf."
)
_by = click.option(
    "--by",
    "name",
    default="pagerank",
    show_default=True,
    help="Name of a ranking that is stored with the graph.",
)


@click.group(cls=Uncut)
def plot() -> None:
    """Draw pictures of graphs and rankings, as PNG, SVG or PDF. Needs pip install 'inlink[plot]'.

    GRAPH may be a crawl's folder.
    """


def _draw(output: Path, graph: Path, draw: Callable[[ModuleType, Any], Any]) -> None:
    """Draw the picture of ``draw(inlink.plot, graph)``. The output path is checked before the work."""
    from inlink import plot as room
    from inlink.plot.saving import check

    check(output)
    room.save(draw(room, graph_at(graph)), output)
    say(f"{output}: {output.stat().st_size:,} bytes")


def _ranking(graph: Any, name: str) -> Any:
    from inlink.sources.rankings import load_ranking

    return load_ranking(graph, name)


@plot.command()
@graph_argument
@_picture
def degrees(graph: Path, output: Path) -> None:
    """Draw the distributions of inlinks and outlinks: the share of nodes with at least each degree."""
    _draw(output, graph, lambda room, opened: room.degrees(opened))


@plot.command()
@graph_argument
@_by
@_picture
def ranks(graph: Path, name: str, output: Path) -> None:
    """Draw the values of a ranking over their places."""
    _draw(output, graph, lambda room, opened: room.ranks(_ranking(opened, name), name=name))


@plot.command()
@graph_argument
@_by
@_picture
def rank_against_degree(graph: Path, name: str, output: Path) -> None:
    """Draw the rank of each node over its number of inlinks."""
    _draw(
        output,
        graph,
        lambda room, opened: room.rank_against_degree(opened, _ranking(opened, name), name=name),
    )


@plot.command()
@graph_argument
@click.option("--damping", type=float, default=0.85, show_default=True, help="Damping of PageRank.")
@click.option("--tol", type=float, default=1e-9, show_default=True, help="Bound on the L1 error to reach.")
@click.option(
    "--max-iter",
    type=int,
    default=1000,
    show_default=True,
    help="Stop after this number of sweeps, converged or not.",
)
@_picture
def convergence(graph: Path, output: Path, **options: Any) -> None:
    """Draw the error of PageRank after each sweep, for both methods. Ranks the graph and keeps no ranking."""
    _draw(output, graph, lambda room, opened: room.convergence(opened, **options))


@plot.command()
@graph_argument
@click.argument("one")
@click.argument("other")
@_picture
def compare(graph: Path, one: str, other: str, output: Path) -> None:
    """Draw two stored rankings of the graph, ONE and OTHER, against each other, with their agreement."""
    _draw(
        output,
        graph,
        lambda room, opened: room.compare(_ranking(opened, one), _ranking(opened, other), names=(one, other)),
    )


@plot.command()
@graph_argument
@click.argument("node", required=False)
@click.option("--top", type=click.IntRange(1), help="Number of best nodes, instead of a NODE. Default: 10.")
@_by
@click.option(
    "-n", "--number", "nodes", type=click.IntRange(1), default=50, show_default=True,
    help="Maximum number of nodes to draw.",
)  # fmt: skip
@_picture
def neighbourhood(
    graph: Path, node: str | None, top: int | None, name: str, nodes: int, output: Path
) -> None:
    """Draw NODE, or the best nodes of a ranking, with the best of their neighbours.

    NODE is a name, or a number if the graph has no names.
    """
    if node is not None and top is not None:
        raise click.UsageError("give a NODE or --top, not both")

    def draw(room: ModuleType, opened: Any) -> Any:
        numbered = node is not None and opened.names is None and node.isdecimal() and len(node) < 20
        wanted = int(node) if node is not None and numbered else node
        return room.neighbourhood(opened, _ranking(opened, name), wanted, top=top, nodes=nodes, name=name)

    _draw(output, graph, draw)
