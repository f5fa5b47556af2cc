"""``inlink export``: a graph or a ranking in another program's format."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlink.base.table import counted
from inlink.cli.options import Output, declared_options, graph_argument
from inlink.cli.show import say
from inlink.errors import OutputError, ParameterError
from inlink.sources.formats import FORMATS

if TYPE_CHECKING:
    from inlink.base.arrays import AnyArray, Float64Array
    from inlink.graph.graph import Graph
    from inlink.rank.ranking import Ranking
    from inlink.sources.write import Written


@click.command()
@graph_argument
@click.option(
    "--output",
    "-o",
    required=True,
    type=Output(dash=True),
    help="The file. Its extension selects the format. - is standard output.",
)
@click.option(
    "--format",
    "format_",
    metavar="NAME",
    help="The format. Default: by the extension. With -o - it may be an extension, such as tsv. Default there: csv.",
)
@click.option(
    "--ranking",
    "rankings",
    multiple=True,
    help="Write this stored ranking beside the nodes. May be repeated.",
)
@click.option("--by", "by", help="Write only this stored ranking, one node a row, as .csv, .tsv or .parquet.")
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
    from inlink.base.opening import STDIN
    from inlink.sources.crawlgraph import graph_in

    safe_cells, piped = of_formats["safe_cells"] is True, str(output) == STDIN
    others = [name for name, value in of_formats.items() if value is not None and name != "safe_cells"]
    if by is not None and (rankings or others or (format_ and not piped)):
        raise click.UsageError(
            "--by writes only one ranking: --ranking, --format and most options of formats do not apply"
        )
    with _standard_output(format_) if piped else nullcontext((output, format_)) as (path, format_):
        if plain and (by is None or path.suffix != ".csv"):
            raise click.UsageError("--plain applies only to --by with a .csv file")
        if by is None:
            written = _export(graph_in(graph), graph, path, format_, rankings, of_formats)
        else:
            written = _export_ranking(graph_in(graph), path, by, plain, safe_cells)
        if piped and len(written.paths) > 1:
            raise click.UsageError(f"{path.suffix} would be more than one file: name the file with -o")
    if not piped:
        for path in written.paths:
            say(f"{path}: {path.stat().st_size:,} bytes")
    if written.left_out:
        line = f"left out: {counted(written.left_out, 'node')} without arcs. This format cannot hold them."
        click.echo(line, err=piped)


def _export(
    opened: "Graph",
    graph: Path,
    path: Path,
    format_: str | None,
    names: tuple[str, ...],
    of_formats: dict[str, Any],
) -> "Written":
    from inlink.sources.crawlgraph import columns_for
    from inlink.sources.rankings import load_ranking, values_of
    from inlink.sources.write import write_graph

    columns: dict[str, AnyArray | Ranking] = {**columns_for(opened, path, format_)}
    for name in names:
        columns[name] = ranking = load_ranking(opened, name)
        ranking.values = values_of(ranking, opened, float("nan"))
    if format_ == "commoncrawl" and not names:
        columns |= _ranks(opened, graph)
    return write_graph(opened, path, format=format_, columns=columns, **of_formats)


def _export_ranking(opened: "Graph", path: Path, by: str, plain: bool, safe_cells: bool) -> "Written":
    from inlink.sources.rankings import load_ranking
    from inlink.sources.write import Written

    ranking = load_ranking(opened, by)
    if path.suffix in (".csv", ".tsv"):
        ranking.to_csv(path, plain=plain, safe_cells=safe_cells)
    elif path.suffix != ".parquet" or safe_cells:
        kinds = ".csv or .tsv with --safe-cells" if safe_cells else ".csv, .tsv or .parquet"
        raise click.UsageError(f"--by writes {kinds}; got {path.name}")
    else:
        ranking.to_parquet(path)
    return Written([path])


@contextmanager
def _standard_output(format_: str | None) -> Iterator[tuple[Path, str | None]]:
    """Yield a temporary file for a format or an extension, and the format's name; print the file at the end."""
    from inlink.base.unfinished import unfinished_folder

    if format_ in ("bvgraph", "commoncrawl"):
        raise click.UsageError(f"format {format_} has several files: name the first, or the folder, with -o")
    name = format_ if format_ in FORMATS else None
    ending = f".{format_ or 'csv'}" if name is None else FORMATS[name].extensions[0]
    binary = ending.endswith((".gz", ".zst", ".parquet", ".sqlite", ".sqlite3", ".db"))
    if binary and sys.stdout.isatty():
        raise click.UsageError(
            f"{ending} is not text, so it is not written to a terminal: name a file with -o"
        )
    with unfinished_folder(Path(tempfile.gettempdir(), "inlink")) as folder:
        path = folder / f"stdout{ending}"
        try:
            yield path, name
        except (OutputError, ParameterError) as error:
            raise type(error)(str(error).replace(str(path), "standard output")) from None
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


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
