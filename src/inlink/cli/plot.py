"""``inlink plot``: pictures of graphs and rankings."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from inlink.cli.options import graph_argument
from inlink.cli.show import say

__all__ = ["plot"]

_picture = click.option(
    "--output", "-o", required=True, type=click.Path(path_type=Path), help="The picture: .png or .svg."
)
_by = click.option(
    "--by", "name", default="pagerank", show_default=True, help="A ranking that is stored with the graph."
)


@click.group()
def plot() -> None:
    """Pictures of graphs and rankings, as PNG or SVG; needs pip install 'inlink[plot]'.

    \b
    inlink plot degrees web -o degrees.png
    inlink plot ranks web --by pagerank -o ranks.svg
    inlink plot rank-against-degree web --by pagerank -o ranks.png
    inlink plot convergence web -o convergence.png
    inlink plot compare web pagerank hits -o both.png
    inlink plot neighbourhood web https://example.org/ -o around.png

    GRAPH may be a crawl's folder.
    """  # noqa: D301


def _draw(output: Path, graph: Path, draw: Callable[[ModuleType, Any], Any]) -> None:
    """Draw what ``draw(inlink.plot, graph)`` makes; an output that cannot be is told before the work."""
    from inlink import plot as room
    from inlink.plot.saving import check
    from inlink.sources.crawl import graph_in

    check(output)
    room.save(draw(room, graph_in(graph)), output)
    say(f"{output}: {output.stat().st_size:,} bytes")


def _ranking(graph: Any, name: str) -> Any:
    from inlink.sources.crawl import load_ranking

    return load_ranking(graph, name)


@plot.command()
@graph_argument
@_picture
def degrees(graph: Path, output: Path) -> None:
    """How many inlinks and outlinks the nodes have: the share of nodes with at least so many."""
    _draw(output, graph, lambda room, opened: room.degrees(opened))


@plot.command()
@graph_argument
@_by
@_picture
def ranks(graph: Path, name: str, output: Path) -> None:
    """A ranking's values over their places."""
    _draw(output, graph, lambda room, opened: room.ranks(_ranking(opened, name), name=name))


@plot.command()
@graph_argument
@_by
@_picture
def rank_against_degree(graph: Path, name: str, output: Path) -> None:
    """Each node's rank over its number of inlinks."""
    _draw(
        output,
        graph,
        lambda room, opened: room.rank_against_degree(opened, _ranking(opened, name), name=name),
    )


@plot.command()
@graph_argument
@click.option("--damping", type=float, default=0.85, show_default=True, help="PageRank's.")
@click.option("--tol", type=float, default=1e-9, show_default=True, help="The error to stop at.")
@click.option(
    "--max-iter",
    type=int,
    default=1000,
    show_default=True,
    help="Stop after so many sweeps, converged or not.",
)
@_picture
def convergence(graph: Path, output: Path, **options: Any) -> None:
    """The error of PageRank after each sweep, by both of its methods; ranks the graph anew, and keeps nothing."""
    _draw(output, graph, lambda room, opened: room.convergence(opened, **options))


@plot.command()
@graph_argument
@click.argument("one")
@click.argument("other")
@_picture
def compare(graph: Path, one: str, other: str, output: Path) -> None:
    """Two rankings that are stored with the graph, ONE and OTHER, against each other, and how far they agree."""
    _draw(
        output,
        graph,
        lambda room, opened: room.compare(_ranking(opened, one), _ranking(opened, other), names=(one, other)),
    )


@plot.command()
@graph_argument
@click.argument("node", required=False)
@click.option("--top", type=click.IntRange(1), help="The best so many, in place of a NODE; 10 if not given.")
@_by
@click.option(
    "-n", "--number", "nodes", type=click.IntRange(1), default=50, show_default=True,
    help="How many nodes to draw at most.",
)  # fmt: skip
@_picture
def neighbourhood(
    graph: Path, node: str | None, top: int | None, name: str, nodes: int, output: Path
) -> None:
    """NODE, or the best by a ranking, with the best of those that link there or are linked from there.

    NODE is a name, or a number where the graph has no names.
    """
    if node is not None and top is not None:
        raise click.UsageError("give a NODE or --top, not both")

    def draw(room: ModuleType, opened: Any) -> Any:
        numbered = node is not None and opened.names is None and node.isdecimal() and len(node) < 20
        wanted = int(node) if node is not None and numbered else node
        return room.neighbourhood(opened, _ranking(opened, name), wanted, top=top, nodes=nodes, name=name)

    _draw(output, graph, draw)
