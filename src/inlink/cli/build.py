"""``inlink build``: a graph's folder from archives or graph files."""

import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from inlink.cli.options import folder_output, format_option
from inlink.cli.remote import Place
from inlink.cli.show import printable, say, summary
from inlink.cli.then import as_of_option, then
from inlink.sources.formats import FORMATS, SITES


class _Grouped(click.Command):
    """A command whose help lists the options of formats separately, under the names of the formats."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
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
        for option in entry.options:
            formats.setdefault(option.name, []).append(entry.name)
    titles = {name: f"Options of {', '.join(names)}" for name, names in formats.items()}
    return titles | {option.name: "Options of --level host and --level domain" for option in SITES}


_GROUPS = _groups()


def _format_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of all formats to a command."""
    declared = {option.name: option for entry in FORMATS.values() for option in entry.options}
    for option in reversed([*declared.values(), *SITES]):
        command = format_option(option)(command)
    return command


_SOURCE = Place(
    "sources must be files or folders on this machine: download the file, or build where the crawl's folder is"
)


@click.command(cls=_Grouped)
@click.argument("sources", nargs=-1, required=True, type=_SOURCE)
@folder_output
@click.option(
    "--level",
    type=click.Choice(["page", "host", "domain"]),
    help="The kind of a node. Default: page for archives, else the level of the input.",
)
@click.option(
    "--format", "format_", metavar="NAME", help="The input's format. Default: recognised by content."
)
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
@_format_options
def build(
    sources: tuple[Path, ...],
    output: Path,
    moment: str | None,
    level: str | None,
    format_: str | None,
    count: bool,
    crawled_only: bool,
    self_loops: bool | None,
    strict: bool,
    **of_formats: Any,
) -> None:
    """Build the graph of SOURCES: WARC, WAT and ARC archives, BVGraph, edge lists, and the rest of docs/formats.md.

    Several archives, edge lists, or folders of graphs and crawls become one graph. Use - for standard input.
    """
    from inlink.sources.read import read

    for path, times in Counter(sources).items():
        if times > 1:
            say(f"{printable(path)} is named {times} times, so its links count {times} times")
    if moment is not None:
        sources = tuple(then(path, moment).folder for path in sources)
    with warnings.catch_warnings():
        # The reasons are printed below.
        warnings.simplefilter("ignore", UserWarning)
        graph = read(
            list(sources),
            level=level,  # type: ignore[arg-type]
            format=format_,
            count=count,
            crawled_only=crawled_only,
            self_loops=self_loops,
            strict=strict,
            into=output,
            **of_formats,
        )
    say(summary(graph, str(output)))
    if "files_left_out" in graph.meta:
        say(f"left out {graph.meta['files_left_out']:,} of {len(sources):,} files")
    for reason, number in graph.meta.get("skipped", {}).items():
        say(f"skipped {number:,}: {printable(reason)}")
