"""Commands that make a graph's folder: ``inlink build``, ``fold`` and ``subgraph``."""

from collections import Counter
from pathlib import Path
from typing import Any

import click

from inlink.base.table import counted, printable
from inlink.cli.lookups import graph_at
from inlink.cli.options import (
    as_of_option,
    compress_option,
    declared_options,
    folder_output,
    graph_argument,
)
from inlink.cli.remote import is_crawl, is_url, refuse_url, then
from inlink.cli.show import say, say_folding, show_reading, summary
from inlink.sources.formats import FORMATS, SITES


class Grouped(click.Command):
    """A command whose help lists the options of formats separately, under the names of the formats."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, those of formats under the names of the formats."""
        groups: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                groups.setdefault(_GROUPS.get(parameter.name or "", "Options"), []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _groups() -> dict[str, str]:
    """Return the title under which each option is shown, by the option's name."""
    formats: dict[str, list[str]] = {}
    for entry in FORMATS.values():
        for name in entry.options:
            formats.setdefault(name, []).append(entry.name)
    titles = {name: f"Options of {', '.join(names)}" for name, names in formats.items()}
    return titles | dict.fromkeys(SITES, "Options of --level host and --level domain")


_GROUPS = _groups()


class _Source(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A file or folder, a pattern, a list of paths (@FILE), or a URL."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        """Return the place as it is given.

        Raises
        ------
        inlink.errors.ParameterError
            If it is the URL of something that cannot be read.
        """
        from inlink.base.remote import is_remote

        if is_url(value) and not is_remote(str(value).removeprefix("@")):
            raise click.BadParameter(f"{value}: a URL must begin with https://, http:// or s3://")
        if is_crawl(value):
            refuse_url(value, "this is a crawl on a server: build where the crawl's folder is")
        return str(value)


@click.command(cls=Grouped)
@click.argument("sources", nargs=-1, required=True, type=_Source())
@folder_output
@click.option(
    "--level",
    type=click.Choice(["page", "host", "domain"]),
    help="The kind of a node. Default: page for archives, else the level of the input.",
)
@click.option("--format", metavar="NAME", help="The input's format. Default: recognised by content.")
@click.option(
    "--count", is_flag=True, help="Use the number of times that a link occurs in the input as its weight."
)
@click.option("--crawled-only", is_flag=True, help="Keep only crawled pages and the links between them.")
@click.option(
    "--self-loops/--no-self-loops",
    default=None,
    help="Keep or drop the links of a node to itself. Default: keep; drop if --level makes hosts or domains of pages.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse damaged archives, and any file that cannot be read. Without it they are left out and counted.",
)
@as_of_option
@click.option(
    "--base", metavar="PREFIX", help="A folder or URL to put before the relative paths of lists (@FILE)."
)
@click.option(
    "--workers",
    type=int,
    default=1,
    show_default=True,
    help="Several archives: the processes that read them.",
)
@click.option(
    "--max-node",
    type=int,
    help="The largest number of a node, if nodes have no names. Default: bounded by the size of the input.",
)
@compress_option
@declared_options({name: row for entry in FORMATS.values() for name, row in entry.options.items()} | SITES)
def build(sources: tuple[str, ...], output: Path, moment: str | None, **options: Any) -> None:
    """Build the graph of SOURCES: archives (WARC, WACZ, WAT, ARC), BVGraph, edge lists, and others of docs/formats.md.

    Several archives, edge lists, or folders of graphs and crawls become one graph. Use - for standard input, @FILE for
    a list of paths, and URLs (https://, s3://) for files elsewhere.
    """
    from inlink.sources.read import read

    for path, times in Counter(sources).items():
        if times > 1:
            say(f"{printable(path)} is named more than once, so its links count {counted(times, 'time')}")
    if moment is not None:
        sources = tuple(str(then(Path(path), moment).folder) for path in sources)
    show_reading(
        lambda: read(list(sources), into=output, **options),
        str(output),
    )


@click.command()
@graph_argument
@folder_output
@click.option(
    "--level",
    type=click.Choice(["host", "domain"]),
    required=True,
    help="The kind of a node.",
)
@click.option("--self-loops", is_flag=True, help="Keep links within a host or domain as self-loops.")
@declared_options(SITES)
@click.option("--keep-suffixes", is_flag=True, help="Keep hosts that are suffixes themselves (gov.uk).")
@compress_option
def fold(graph: Path, output: Path, level: Any, **options: Any) -> None:
    """Fold GRAPH to hosts or registered domains. The weight of an arc is its number of links."""
    chosen = {name: value for name, value in options.items() if value is not None}
    folded = graph_at(graph).fold(level, into=output, **chosen)
    say(summary(folded, str(output)))
    say_folding(folded)


@click.command()
@graph_argument
@folder_output
@click.option("--crawled", is_flag=True, help="Keep the pages that were crawled.")
@click.option("--nodes", type=click.Path(path_type=Path), help="Keep the nodes in this file, one a line.")
@click.option(
    "--largest-component", type=click.Choice(["weak", "strong"]), help="Keep the largest component."
)
@click.option(
    "--reachable-from",
    "sources",
    multiple=True,
    help="Keep the nodes that can be reached from this node. May be repeated.",
)
@click.option(
    "--without-internal",
    type=click.Choice(["host", "domain"]),
    help="Keep all nodes, and the links between different sites.",
)
@compress_option
def subgraph(
    graph: Path,
    output: Path,
    crawled: bool,
    nodes: Path | None,
    largest_component: str | None,
    sources: tuple[str, ...],
    without_internal: Any,
    **options: Any,
) -> None:
    """Cut GRAPH to the nodes or arcs that one of the options names."""
    if sum(map(bool, (crawled, nodes, largest_component, sources, without_internal))) != 1:
        raise click.UsageError(
            "give one of --crawled, --nodes, --largest-component, --reachable-from and --without-internal"
        )
    from inlink.errors import InputError

    whole = graph_at(graph)
    if crawled:
        if whole.crawled is None:
            raise InputError(
                f"{graph} does not record which pages were crawled, because its source has no such data: use --nodes"
            )
        made = whole.subgraph(whole.crawled, into=output, **options)
    elif nodes:
        made = whole.subgraph([whole.node(name) for name in _lines(nodes)], into=output, **options)
    elif largest_component:
        made = whole.largest_component(strong=largest_component == "strong", into=output, **options)
    elif sources:
        made = whole.reachable(sources, into=output, **options)
    else:
        made = whole.without_internal(without_internal, into=output, **options)
    say(summary(made, str(output)))


def _lines(path: Path) -> list[bytes]:
    from inlink.base.opening import open_binary

    with open_binary(path) as file:
        return [line.rstrip(b"\r\n") for line in file if line.rstrip(b"\r\n")]
