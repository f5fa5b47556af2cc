"""``inlink build``: a graph's folder from archives or graph files."""

import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlink.base.table import counted
from inlink.cli.options import compress_option, declared_options, folder_output
from inlink.cli.remote import is_crawl, is_url, refuse_url
from inlink.cli.show import printable, say, say_folding, summary
from inlink.cli.then import as_of_option, then
from inlink.sources.formats import FORMATS, SITES

if TYPE_CHECKING:
    from inlink.graph.graph import Graph

__all__ = ["Grouped", "build", "show_reading"]


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


def show_reading(read: Callable[[], "Graph"], name: str, err: bool = False) -> "Graph":
    """Read a graph. Print the finished parts of a resumed build, one line about the graph, and the skipped records.

    ``err``: print to standard error.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        left_out: list[str] = []

        def show(message: Warning | str, *_: Any, **__: Any) -> None:
            line = printable(str(message))
            if line.startswith("left out"):
                left_out.append(line)
            else:
                say(line, err or not line.startswith("going on"))

        warnings.showwarning = show
        graph = read()
    say(summary(graph, name), err)
    say_folding(graph, err)
    for line in left_out:
        say(line.partition(". ")[0], err)
    for reason, number in graph.meta.get("skipped", {}).items():
        say(f"skipped {number:,}: {printable(reason)}", err)
    return graph
