"""``inlink replay``: which order would have collected more."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from inlink.base.declare import parameters_of
from inlink.base.table import counted
from inlink.cli.options import Output, declared_options, json_option, set_option, settings_given
from inlink.cli.remote import FolderOrUrl
from inlink.cli.show import say, show_answer, show_table
from inlink.replaying.arguments import ReplayArguments

if TYPE_CHECKING:
    from inlink.replaying.replay import Replaying
    from inlink.replaying.result import Replay


INTERRUPTED = 130


def _listed(text: tuple[str, ...]) -> list[str]:
    return [name.strip() for part in text for name in part.split(",") if name.strip()]


def _share(text: str, name: str) -> float:
    """A share, from a text such as 50% or 0.5."""
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        from inlink.errors import ParameterError

        raise ParameterError(f"{name} takes shares such as 50% or 0.5; got {text!r}") from None


def _schedule(text: str) -> dict[str, Any]:
    """The data of a schedule, from seconds or JSON."""
    import json

    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found
    if isinstance(found, int | float) and not isinstance(found, bool):
        return {"schedule": "FixedInterval", "seconds": float(found)}
    from inlink.errors import ParameterError

    raise ParameterError(
        f'--revisit takes seconds such as 86400, or JSON such as {{"schedule": "ByValue", "budget": 9000}}; '
        f"got {text!r}"
    )


class _Sizes(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    name = "sizes"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        """Return the sizes."""
        if not isinstance(value, str):
            return value
        parts = [part.strip() for part in value.split(",")]
        if not all(part.isdecimal() and len(part) < 10 for part in parts):
            self.fail(f"takes whole numbers such as 256 or 64,256,4096; got {value!r}", param, context)
        return tuple(int(part) for part in parts)


@click.command()
@click.argument(
    "source",
    metavar="SOURCE",
    type=FolderOrUrl("a replay reads a graph, a crawl's folder or an archive on this machine"),
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAMES",
    help="Policies, separated by commas: names or module:Class; host-diverse,breadth-first if not given.",
)
@click.option(
    "--seeds",
    default="20x10",
    show_default=True,
    metavar="SEEDS",
    help="SETSxPAGES: sets of pages to begin at, drawn at random; front: the front page of each host; "
    "front:SETSxPAGES; recorded: the recorded crawl's own; or a file of URLs, with an empty line between sets.",
)
@click.option(
    "--budget",
    default="50%",
    show_default=True,
    help="Where to stop: a share of the pages that the seeds reach, or a number of fetches.",
)
@click.option(
    "--at",
    "marks",
    default="1%,2%,5%,10%,20%,50%",
    show_default=True,
    help="Shares at which values are kept.",
)
@click.option(
    "--host-pages",
    type=_Sizes(),
    help="Sizes of guessed hosts, for a graph without URLs; 0 is one host; 256 if not given.",
)
@click.option("--measure", default="pagerank", show_default=True, help="The measure that is shown and drawn.")
@click.option(
    "--revisit",
    metavar="SECONDS|JSON",
    help='Fetch pages again: after this time, or by a schedule such as {"schedule": "ByValue", "budget": 9000}.',
)
@declared_options({name: row for name, row in parameters_of(ReplayArguments).items() if row.help})
@set_option
@click.option(
    "--output",
    "-o",
    type=Output(),
    help="Folder for replay.json, replay.csv and, with inlink[plot], replay.png.",
)
@click.option(
    "--html",
    "report",
    type=Output(),
    help="File for a report: curves and tables of all measures, and which differences are certain.",
)
@json_option
def replay(
    source: Path, output: Path | None, measure: str, report: Path | None, as_json: bool, **options: Any
) -> None:
    """Replay crawls of SOURCE by several policies, and show the pages that each fetches over time.

    SOURCE is a graph in any form that inlink build reads, a crawl's folder, or a WARC, WACZ or ARC file. Nothing is
    fetched: inlink's own crawl is stepped in virtual time, and pages answer what SOURCE says. The same arguments give
    the same files.

    Values are shares of what the seeds reach, as means over seed sets with their standard errors. The difference to the
    baseline is that of the areas under the curves.
    """
    from inlink.replaying.checks import checked
    from inlink.replaying.replay import Replaying, webs_of

    draw = _drawing(output, report)
    plan = checked(_arguments(options))
    work = Replaying(webs_of(source, plan), plan)
    work.check_measure(measure)
    interrupted = False
    try:
        work.run()
    except KeyboardInterrupt:
        interrupted = True
    found = work.result()
    for what, count in found.notes.items():
        click.echo(f"{found.web}: {count:,} {what}", err=True)
    show_answer(found, as_json, lambda _: _show(found, measure))
    _say_speeds(work)
    if output is not None and found.seeds:
        paths = found.save(output)
        for hosts in found.hosts if draw else ():
            paths.append(output / ("replay.png" if hosts == found.hosts[0] else f"replay-hosts-{hosts}.png"))
            draw(found, measure, hosts, paths[-1])
        for path in paths:
            say(f"{path}: {path.stat().st_size:,} bytes", err=as_json)
    if report is not None and found.seeds:
        from inlink.replaying.report import write_report

        write_report(found, report, draw and partial(draw, found))
        say(f"{report}: {report.stat().st_size:,} bytes", err=as_json)
    if interrupted:
        click.echo(
            f"inlink: interrupted; {len(found.seeds)} of {work.num_sets} seed sets are complete and shown",
            err=True,
        )
        raise SystemExit(INTERRUPTED)


def _arguments(options: dict[str, Any]) -> ReplayArguments:
    """The command's options in the form for :func:`inlink.replay`."""
    settings = settings_given(options)
    if (revisit := options.pop("revisit")) is not None:
        settings["revisit"] = _schedule(revisit)
    policies, budget = _listed(options.pop("policies")), options.pop("budget")
    whole = budget.isdecimal() and len(budget) < 12
    marks = [_share(share, "--at") for share in _listed((options.pop("marks"),))]
    arguments: dict[str, Any] = {name: row.default for name, row in parameters_of(ReplayArguments).items()}
    arguments |= {name: value for name, value in options.items() if value is not None} | {
        "budget": int(budget) if whole else _share(budget, "--budget"),
        "host_pages": options["host_pages"],
        "marks": marks,
        "settings": settings,
    }
    if policies:
        arguments["policies"] = policies
    return cast(ReplayArguments, arguments)


def _drawing(output: Path | None, report: Path | None) -> Any:
    """A function that draws a measure of a replay into a file; None if no pictures are wanted, or none can be drawn."""
    from inlink.errors import OutputError

    if output is None and report is None:
        return None
    if output is not None and output.exists() and not output.is_dir():
        raise OutputError(f"{output} is a file: name a folder")
    if report is not None and report.is_dir():
        raise OutputError(f"{report} is a folder: name a file")
    try:
        from inlink import plot as room
    except ImportError as error:
        click.echo(f"inlink: no picture is drawn: {error}", err=True)
        return None

    def draw(result: "Replay", measure: str, hosts: str, path: Path) -> None:
        room.save(room.orders(result, measure=measure, hosts=hosts), path)

    return draw


def _show(found: "Replay", measure: str) -> None:
    if not found.seeds:
        return
    for hosts in found.hosts:
        if len(found.hosts) > 1:
            say(f"hosts of {hosts} pages" if hosts != "all" else "one host")
        heads, rows = found.table(measure, hosts)
        # Elsewhere than on a terminal, tables have no heads, and these numbers need theirs.
        rows = rows if sys.stdout.isatty() else [heads, *rows]
        show_table(heads, rows, right=range(1, len(heads)))


def _say_speeds(work: "Replaying") -> None:
    for name, (fetches, cpu) in work.speeds.items():
        if cpu > 0:
            click.echo(
                f"{name}: {counted(fetches, 'fetch', 'fetches')}, {fetches / cpu:,.0f} a CPU second", err=True
            )
