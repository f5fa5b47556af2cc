"""``inlink replay``: which order would have collected more."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlink.cli.options import Output, set_option, settings_given
from inlink.cli.remote import FolderOrUrl
from inlink.cli.show import say, show_table

if TYPE_CHECKING:
    from inlink.replaying.replay import Replaying
    from inlink.replaying.result import Replay

__all__ = ["replay"]

INTERRUPTED = 130


def _listed(text: tuple[str, ...]) -> list[str]:
    return [name.strip() for part in text for name in part.split(",") if name.strip()]


def _share(text: str, name: str) -> float:
    """A share, from a text such as 50% or 0.5.

    Raises
    ------
    inlink.errors.ParameterError
        If ``text`` is not a share.
    """
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        from inlink.errors import ParameterError

        raise ParameterError(f"{name} takes shares such as 50% or 0.5; got {text!r}") from None


def _schedule(text: str) -> dict[str, Any]:
    """The data of a schedule, from seconds or JSON.

    Raises
    ------
    inlink.errors.ParameterError
        If ``text`` is neither.
    """
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
        f'--revisit takes seconds such as 86400, or JSON such as {{"schedule": "Adaptive"}}; got {text!r}'
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
    help="SETSxPAGES: sets of pages to begin at, drawn at random; or recorded, the recorded crawl's own.",
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
@click.option("--baseline", help="The policy to compare with; host-diverse, else the first, if not given.")
@click.option(
    "--host-pages",
    type=_Sizes(),
    help="Sizes of guessed hosts, for a graph without URLs; 0 is one host; 256 if not given.",
)
@click.option(
    "--lines/--no-lines", default=True, help="Add clairvoyant greedy, look-ahead and the sort bound."
)
@click.option(
    "--tau/--no-tau", default=True, help="Compare the ranks of the crawled part with those of the whole."
)
@click.option("--measure", default="pagerank", show_default=True, help="The measure that is shown and drawn.")
@click.option(
    "--relevant",
    type=float,
    default=0.5,
    show_default=True,
    help="The least content score of a relevant page.",
)
@click.option(
    "--wasted", metavar="REGEX", help="Count fetches of URLs that this expression matches as wasted."
)
@click.option("--parallel", type=int, default=1, show_default=True, help="Fetches under way at a time.")
@click.option(
    "--fetch-seconds",
    type=float,
    default=0.0,
    show_default=True,
    help="Seconds that a fetch takes, if there is no recording of the time.",
)
@click.option(
    "--changes",
    "change_seconds",
    type=float,
    help="Mean seconds between two changes of a page, drawn at random; the recorded changes if not given.",
)
@click.option(
    "--revisit",
    metavar="SECONDS|JSON",
    help='Fetch pages again: after this time, or by a schedule such as {"schedule": "Adaptive"}.',
)
@click.option(
    "--noise",
    type=float,
    default=0.0,
    show_default=True,
    help="Standard deviation of the errors in the scores that a crawl gets; measures use the true scores.",
)
@click.option(
    "--random-seed",
    type=int,
    default=1,
    show_default=True,
    help="Seed of the random numbers that draw seed sets and changes.",
)
@click.option(
    "--jobs", type=int, default=1, show_default=True, help="Processes that replay at the same time."
)
@set_option
@click.option(
    "--output",
    "-o",
    type=Output(),
    help="Folder for replay.json, replay.csv and, with inlink[plot], replay.png.",
)
def replay(source: Path, output: Path | None, measure: str, **options: Any) -> None:
    """Replay crawls of SOURCE by several policies, and show the pages that each fetches over time.

    SOURCE is a graph in any form that inlink build reads, a crawl's folder, or a WARC or ARC file. Nothing is fetched:
    inlink's own crawl is stepped in virtual time, and pages answer what SOURCE says. The same arguments give the same
    files.

    Values are shares of what the seeds reach, as means over seed sets with their standard errors. The difference to the
    baseline is that of the areas under the curves.
    """
    from inlink.replaying.checks import checked
    from inlink.replaying.replay import Replaying, webs_of

    draw = _picture(output)
    plan = checked(**_arguments(options))
    work = Replaying(webs_of(source, plan), plan)
    work.check_measure(measure)
    interrupted = False
    try:
        work.run()
    except KeyboardInterrupt:
        interrupted = True
    found = work.result()
    _show(found, measure)
    _say_speeds(work)
    if output is not None and found.seeds:
        for path in [*found.save(output), *(draw(found, output, measure) if draw else [])]:
            say(f"{path}: {path.stat().st_size:,} bytes")
    if interrupted:
        click.echo(
            f"inlink: interrupted; {len(found.seeds)} of {work.num_sets} seed sets are complete and shown",
            err=True,
        )
        raise SystemExit(INTERRUPTED)


def _arguments(options: dict[str, Any]) -> dict[str, Any]:
    """The command's options in the form for :func:`inlink.replay`."""
    settings = settings_given(options)
    if (revisit := options.pop("revisit")) is not None:
        settings["revisit"] = _schedule(revisit)
    changes = options.pop("change_seconds")
    policies = _listed(options.pop("policies")) or ["host-diverse", "breadth-first"]
    budget = options.pop("budget")
    whole = budget.isdecimal() and len(budget) < 12
    marks = [_share(share, "--at") for share in _listed((options.pop("marks"),))]
    return options | {
        "policies": policies,
        "budget": int(budget) if whole else _share(budget, "--budget"),
        "marks": marks,
        "settings": settings,
        "changes": changes,
    }


def _picture(output: Path | None) -> Any:
    """A function that draws the pictures; None if no pictures are wanted."""
    if output is None:
        return None
    if output.exists() and not output.is_dir():
        from inlink.errors import OutputError

        raise OutputError(f"{output} is a file: name a folder")
    try:
        from inlink import plot as room
    except ImportError as error:
        click.echo(f"inlink: no picture is drawn: {error}", err=True)
        return None

    def draw(found: "Replay", folder: Path, measure: str) -> list[Path]:
        paths = []
        for hosts in found.hosts:
            path = folder / ("replay.png" if hosts == found.hosts[0] else f"replay-hosts-{hosts}.png")
            room.save(room.orders(found, measure=measure, hosts=hosts), path)
            paths.append(path)
        return paths

    return draw


def _show(found: "Replay", measure: str) -> None:
    for what, count in found.notes.items():
        click.echo(f"{found.web}: {count:,} {what}", err=True)
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
            click.echo(f"{name}: {fetches:,} fetches, {fetches / cpu:,.0f} a CPU second", err=True)
