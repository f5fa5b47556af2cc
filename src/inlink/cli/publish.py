"""``inlink publish``: a graph and its rankings as a data set for others."""

from pathlib import Path

import click

from inlink.cli.options import Output, graph_argument
from inlink.cli.show import say


@click.command()
@graph_argument
@click.option("--output", "-o", required=True, type=Output(), help="The folder to write. It must not exist.")
@click.option(
    "--ranking",
    "rankings",
    multiple=True,
    help="Write this stored ranking. May be repeated. Default: all.",
)
@click.option("--title", metavar="TEXT", help="The title of the card. Default: the name of the folder.")
@click.option("--licence", metavar="TEXT", help="The licence of the data, such as CC-BY-4.0.")
def publish(
    graph: Path, output: Path, rankings: tuple[str, ...], title: str | None, licence: str | None
) -> None:
    """Write GRAPH and its rankings as sorted Parquet tables, with a card that describes them, and checksums."""
    from inlink.sources.crawlgraph import graph_in
    from inlink.sources.publish import publish as publish_

    for path in publish_(graph_in(graph), output, rankings=rankings or None, title=title, licence=licence):
        say(f"{path}: {path.stat().st_size:,} bytes")
