"""``inlink publish``: a graph and its rankings as a data set for others."""

from itertools import groupby
from pathlib import Path

import click

from inlink.base.table import counted
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

    paths = publish_(graph_in(graph), output, rankings=rankings or None, title=title, licence=licence)
    for folder, files in groupby(paths, lambda path: path.parent):
        sizes = [(path, path.stat().st_size) for path in files]
        if folder != output:
            say(f"{folder}: {counted(len(sizes), 'part')}, {sum(size for _, size in sizes):,} bytes")
            continue
        for path, size in sizes:
            say(f"{path}: {size:,} bytes")
