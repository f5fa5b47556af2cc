"""``inlink spark``: builds and rankings on a Spark cluster."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlink.cli.build import Grouped, build, show_reading
from inlink.cli.options import Output
from inlink.cli.show import say
from inlink.sources.formats import ARCHIVES, FORMATS, SITES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from inlink.graph.graph import Graph

__all__ = ["spark"]

# Options of `inlink build` that apply to archives.
_SHARED = {"sources", "level", "format_", "count", "crawled_only", "self_loops", "strict", "base"}
_SHARED |= {option.name for name in ARCHIVES for option in FORMATS[name].options} | {
    option.name for option in SITES
}


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


@click.group()
def spark() -> None:
    """Build graphs and rank them on a Spark cluster.

    \b
    inlink spark build @wat.paths.gz -o release --level host --master yarn
    inlink spark rank release --master yarn
    """  # noqa: D301


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
    format_: str | None,
    **options: Any,
) -> None:
    """Build the graph of archives (WARC, WAT, ARC), each of which is read by a task of Spark.

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
            lambda: build(sources, folder, session=session, parts=parts, format=format_, **options),
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
