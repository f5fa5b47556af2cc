"""``inlink spark``: builds and rankings on a Spark cluster."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlink.cli.build import Grouped, build
from inlink.cli.options import Output
from inlink.cli.rank import options_of, values_given
from inlink.cli.sections import Uncut
from inlink.cli.show import say, show_reading
from inlink.sources.formats import ARCHIVES, FORMATS, SITES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from inlink.graph.graph import Graph


# Options of `inlink build` that apply to archives. --to has another meaning here, so there are no dates.
_SHARED = {"sources", "level", "format", "count", "crawled_only", "self_loops", "strict", "base"}
_SHARED |= {option for name in ARCHIVES for option in FORMATS[name].options} - {"since", "until"}
_SHARED |= SITES.keys() - {"hosts"}


def _cluster(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where Spark runs to a command."""
    for option in (
        click.option(
            "--conf", "conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark. May be repeated."
        ),
        click.option(
            "--master",
            help="The cluster: local[2], yarn, spark://HOST:7077, … Default: that of spark-submit or of Spark's "
            "configuration, or else all processors of this machine.",
        ),
    ):
        command = option(command)
    return command


@contextmanager
def _session(master: str | None, conf: tuple[str, ...]) -> "Iterator[SparkSession]":
    """Start Spark, and stop it at the end. A session that is active already stays."""
    from inlink.errors import ParameterError
    from inlink.spark import active, session

    settings = {}
    for given in conf:
        key, equals, value = given.partition("=")
        if not equals or not key:
            raise ParameterError(f"--conf takes KEY=VALUE, such as spark.driver.memory=4g; got {given!r}")
        settings[key] = value
    before = active()
    started = before or session(master, settings)
    try:
        yield started
    finally:
        if before is None:
            started.stop()


@click.group(cls=Uncut)
def spark() -> None:
    """Build graphs and rank them on a Spark cluster."""


@spark.command(
    "build", cls=Grouped, params=[option for option in build.params if (option.name or "") in _SHARED]
)
@click.option(
    "--output",
    "-o",
    required=True,
    type=Output(),
    help="The folder to build, or with --to the file or folder to write. It is replaced when the new one is complete.",
)
@click.option(
    "--to",
    "to",
    type=click.Choice(["graph", "parquet", "commoncrawl"]),
    default="graph",
    show_default=True,
    help="Write a graph's folder, a Parquet file, or a folder as Common Crawl publishes it.",
)
@click.option(
    "--parts",
    metavar="s3://BUCKET/PREFIX",
    help="Pass parts from the executors to the driver through S3. Default: the folder NAME.parts, which they share.",
)
@_cluster
def spark_build(
    sources: tuple[str, ...],
    output: Path,
    to: str,
    parts: str | None,
    master: str | None,
    conf: tuple[str, ...],
    **options: Any,
) -> None:
    """Build a graph from archives (WARC, WAT, ARC). Spark reads each archive in a task of its own.

    The result is that of `inlink build` with the same options.
    """
    from inlink.base.folder import check_target
    from inlink.graph.graph import KIND
    from inlink.spark import build

    folder = output if to == "graph" else output.with_name(f"{output.name}.graph")
    check_target(folder, KIND)
    if to == "parquet" and output.is_dir():
        raise click.UsageError(f"{output} is a folder: --to parquet writes a file")
    with _session(master, conf) as session:
        graph = show_reading(
            lambda: build(sources, folder, session=session, parts=parts, **options),
            str(output),
        )
    if to != "graph":
        _export(graph, folder, output, to)


def _export(graph: "Graph", folder: Path, output: Path, to: str) -> None:
    """Write the graph of a folder in another format, and remove the folder."""
    from inlink.errors import InlinkError
    from inlink.sources.write import write_graph

    try:
        written = write_graph(graph, output, format=to)
    except InlinkError as error:
        raise type(error)(
            f"{error}. The graph is complete in {folder}: write it with inlink export"
        ) from None
    for path in written.paths:
        say(f"{path}: {path.stat().st_size:,} bytes")
    shutil.rmtree(folder)


class _Rank(click.Command):
    """A command with the options of PageRank that apply to a cluster."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The options, which are imported when the command is called."""
        own = [option for option in options_of("pagerank") if option.name not in ("threads", "certain")]
        return [*own, *super().get_params(ctx)]


@spark.command("rank", cls=_Rank)
@click.argument("graph")
@click.option(
    "--output", "-o", type=Output(), help="For a table of arcs: the ranking's file, .csv or .parquet."
)
@click.option("--name", help="Name of the ranking in the graph's folder; pagerank if not given.")
@click.option("--num-nodes", type=int, help="For a table of arcs: the number of nodes.")
@click.option("--blocks", type=int, help="Number of blocks of rows. Default: by arcs and processors.")
@_cluster
def spark_rank(
    graph: str,
    output: Path | None,
    name: str | None,
    num_nodes: int | None,
    blocks: int | None,
    master: str | None,
    conf: tuple[str, ...],
    **options: Any,
) -> None:
    """Rank GRAPH by PageRank on the cluster.

    GRAPH is a graph's folder, which the executors share, and gets the ranking. Or it is a table of arcs between node
    numbers: Parquet with the columns source, target and perhaps weight, or text with a tab between the numbers, as
    Common Crawl publishes it.
    """
    from inlink.errors import ParameterError
    from inlink.graph.graph import Graph, is_graph
    from inlink.spark import rank, read_arcs

    given = {key: value for key, value in options.items() if value is not None}
    folder = Path(graph)
    if is_graph(folder):
        if output is not None or num_nodes is not None:
            raise click.UsageError(
                f"{graph} is a graph: --output and --num-nodes apply only to a table of arcs"
            )
        opened = Graph.open(folder)
        given = values_given(given, opened, folder)
        with _session(master, conf) as session:
            ranking = rank(opened, session=session, blocks=blocks, **given)
        ranking.save(opened, name or "pagerank")
        say(f"{name or 'pagerank'}: {ranking.verdict()}")
        return
    if output is None or output.suffix not in (".csv", ".parquet"):
        raise click.UsageError(
            f"{graph} is no graph's folder: as a table of arcs it needs -o NAME.csv or NAME.parquet"
        )
    for key in ("personalization", "start"):
        if key in given:
            raise ParameterError(f"`{key}` applies only to a graph's folder")
    with _session(master, conf) as session:
        arcs = read_arcs(session, graph)
        ranking = rank(arcs, session=session, num_nodes=num_nodes, blocks=blocks, **given)
    (ranking.to_csv if output.suffix == ".csv" else ranking.to_parquet)(output)
    say(f"{output}: {ranking.verdict()}")
