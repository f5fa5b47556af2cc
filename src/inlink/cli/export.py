"""``inlink export``: a graph or a ranking in another program's format."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlink.cli.options import Output, declared_options, graph_argument
from inlink.cli.show import say
from inlink.sources.formats import FORMATS

if TYPE_CHECKING:
    from inlink.base.arrays import Float64Array
    from inlink.graph.graph import Graph


@click.command()
@graph_argument
@click.option(
    "--output",
    "-o",
    required=True,
    type=Output(),
    help="The file. Its extension selects the format.",
)
@click.option("--format", "format_", metavar="NAME", help="The format. Default: by the extension.")
@click.option(
    "--ranking",
    "rankings",
    multiple=True,
    help="Write this stored ranking beside the nodes. May be repeated.",
)
@click.option("--by", "by", help="Write only this stored ranking, one node a row, as .csv or .parquet.")
@click.option(
    "--plain", is_flag=True, help='With --by and .csv: write only "name",value lines, without a header.'
)
@declared_options({name: row for entry in FORMATS.values() for name, row in entry.write_options.items()})
def export(
    graph: Path,
    output: Path,
    format_: str | None,
    rankings: tuple[str, ...],
    by: str | None,
    plain: bool,
    **of_formats: Any,
) -> None:
    """Write GRAPH, or a ranking of it, to a file. For a crawl, .parquet and .sqlite get the pages' columns too."""
    from inlink.sources.crawlgraph import columns_for, graph_in
    from inlink.sources.rankings import load_ranking, values_of
    from inlink.sources.write import write_graph

    if plain and (by is None or output.suffix != ".csv"):
        raise click.UsageError("--plain applies only to --by with a .csv file")
    opened = graph_in(graph)
    if by is not None:
        if rankings or format_ or any(value is not None for value in of_formats.values()):
            raise click.UsageError(
                "--by writes only one ranking: --ranking, --format and the options of formats do not apply"
            )
        ranking = load_ranking(opened, by)
        if output.suffix not in (".csv", ".parquet"):
            raise click.UsageError(f"--by writes .csv or .parquet; got {output.name}")
        if output.suffix == ".csv":
            ranking.to_csv(output, plain=plain)
        else:
            ranking.to_parquet(output)
        say(f"{output}: {output.stat().st_size:,} bytes")
    else:
        columns = columns_for(opened, output, format_)
        columns |= {name: values_of(load_ranking(opened, name), opened, float("nan")) for name in rankings}
        if format_ == "commoncrawl" and not rankings:
            columns |= _ranks(opened, graph)
        written = write_graph(opened, output, format=format_, columns=columns, **of_formats)
        for path in written.paths:
            say(f"{path}: {path.stat().st_size:,} bytes")
        if written.left_out:
            say(f"left out: {written.left_out:,} nodes without arcs. This format cannot hold them.")


def _ranks(opened: "Graph", graph: Path) -> dict[str, "Float64Array"]:
    """Return the rankings that Common Crawl publishes. If one is missing, return none, and say how to make them."""
    from inlink.rank.ranking import Ranking, list_rankings
    from inlink.sources.crawlgraph import CrawlGraph
    from inlink.sources.write_commoncrawl import RANKS

    # A crawl's rankings are those of its policy, and need not cover all pages.
    if isinstance(opened, CrawlGraph):
        return {}
    missing = [name for name in RANKS if name not in list_rankings(opened)]
    if missing:
        # Common Crawl counts an arc once, however many links it stands for.
        unweighted = " --unweighted" if "pagerank" in missing and opened.is_weighted else ""
        say(
            f"no file of ranks: {graph} has no ranking {' and no ranking '.join(missing)}. "
            f"Make it with: inlink rank {graph} --algorithm {','.join(missing)}{unweighted}"
        )
        return {}
    return {name: Ranking.load(opened, name).values for name in RANKS}
