"""``inlink plot``: pictures of graphs and rankings."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from inlink.cli.lookups import graph_at
from inlink.cli.options import Output, graph_argument
from inlink.cli.sections import Uncut
from inlink.cli.show import say


def _picture(draw: Callable[..., Any]) -> Callable[..., None]:
    """Save the picture that ``draw(inlink.plot, graph, …)`` returns. The output path is checked before the work."""

    @wraps(draw)
    def command(graph: Path, output: Path, **options: Any) -> None:
        from inlink import plot as room
        from inlink.plot.style import check

        check(output)
        room.save(draw(room, graph_at(graph), **options), output)
        say(f"{output}: {output.stat().st_size:,} bytes")

    return click.option(
        "--output", "-o", required=True, type=Output(), help="File to write, .png, .svg or .pdf."
    )(command)


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


def _ranking(graph: Any, name: str) -> Any:
    from inlink.sources.rankings import load_ranking

    return load_ranking(graph, name)


@plot.command()
@graph_argument
@_picture
def degrees(room: ModuleType, graph: Any) -> Any:
    """Draw the distributions of inlinks and outlinks: the share of nodes with at least each degree."""
    return room.degrees(graph)


@plot.command()
@graph_argument
@_by
@_picture
def ranks(room: ModuleType, graph: Any, name: str) -> Any:
    """Draw the values of a ranking over their places."""
    return room.ranks(_ranking(graph, name), name=name)


@plot.command()
@graph_argument
@_by
@_picture
def rank_against_degree(room: ModuleType, graph: Any, name: str) -> Any:
    """Draw the rank of each node over its number of inlinks."""
    return room.rank_against_degree(graph, _ranking(graph, name), name=name)


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
def convergence(room: ModuleType, graph: Any, **options: Any) -> Any:
    """Draw the error of PageRank after each sweep, for both methods. Ranks the graph and keeps no ranking."""
    return room.convergence(graph, **options)


@plot.command()
@graph_argument
@click.argument("one")
@click.argument("other")
@_picture
def compare(room: ModuleType, graph: Any, one: str, other: str) -> Any:
    """Draw two stored rankings of the graph, ONE and OTHER, against each other, with their agreement."""
    return room.compare(_ranking(graph, one), _ranking(graph, other), names=(one, other))


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
    room: ModuleType, graph: Any, node: str | None, top: int | None, name: str, nodes: int
) -> Any:
    """Draw NODE, or the best nodes of a ranking, with the best of their neighbours.

    NODE is a name, or a number if the graph has no names.
    """
    if node is not None and top is not None:
        raise click.UsageError("give a NODE or --top, not both")
    numbered = node is not None and graph.names is None and node.isdecimal() and len(node) < 20
    wanted = int(node) if node is not None and numbered else node
    return room.neighbourhood(graph, _ranking(graph, name), wanted, top=top, nodes=nodes, name=name)
