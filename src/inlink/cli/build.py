"""``inlink build``: a graph's folder from archives or graph files."""

from pathlib import Path

import click

from inlink.cli.options import folder_output
from inlink.cli.show import printable, say, summary


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path))
@folder_output
@click.option(
    "--level",
    type=click.Choice(["page", "host", "domain"]),
    help="What becomes one node; pages, or what the input has.",
)
@click.option(
    "--format", "format_", metavar="NAME", help="The input's format, instead of recognising it by content."
)
@click.option(
    "--links", type=click.Choice(["a", "all"]), default="a", show_default=True, help="Anchors, or every tag."
)
@click.option("--drop-nofollow", is_flag=True, help="Leave out links that ask not to be followed.")
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse damaged archives, instead of skipping damaged records and counting them.",
)
@click.option("--count", is_flag=True, help="Keep how often a link stood in the input, as the arc's weight.")
@click.option(
    "--crawled-only", is_flag=True, help="Only pages that were crawled, and the links between them."
)
@click.option(
    "--nodes",
    type=click.Choice(["ids", "names"]),
    help="What an edge list's columns are, instead of guessing.",
)
@click.option("--separator", help="What stands between an edge list's fields, instead of guessing.")
@click.option("--no-weights", is_flag=True, help="An edge list's third column is no weight.")
@click.option("--table", help="A SQLite file's table with a row an arc, instead of guessing.")
@click.option(
    "--strip-www", is_flag=True, help="Take www. off hosts, as Common Crawl did before the end of 2025."
)
@click.option(
    "--private-suffixes", is_flag=True, help="Domains by the suffix list's private section too (github.io)."
)
def build(
    sources: tuple[Path, ...],
    output: Path,
    level: str | None,
    format_: str | None,
    links: str,
    drop_nofollow: bool,
    strict: bool,
    count: bool,
    crawled_only: bool,
    nodes: str | None,
    separator: str | None,
    no_weights: bool,
    table: str | None,
    strip_www: bool,
    private_suffixes: bool,
) -> None:
    """Build the graph of SOURCES: WARC, WAT and ARC archives, BVGraph, edge lists, and what docs/formats.md lists."""
    from inlink.sources.read import read

    graph = read(
        list(sources),
        level=level,  # type: ignore[arg-type]
        format=format_,
        links=links,  # type: ignore[arg-type]
        nofollow=not drop_nofollow,
        strict=strict,
        count=count,
        crawled_only=crawled_only,
        nodes=nodes,  # type: ignore[arg-type]
        separator=separator,
        weights=False if no_weights else None,
        table=table,
        strip_www=strip_www,
        private_suffixes=private_suffixes,
        into=output,
    )
    say(summary(graph, str(output)))
    for reason, number in graph.meta.get("skipped", {}).items():
        say(f"skipped {number:,}: {printable(reason)}")
