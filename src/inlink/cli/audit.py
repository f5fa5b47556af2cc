"""``inlink audit``: find faults of a crawled site, and name the pages to edit."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlink.cli.options import Output, json_option
from inlink.cli.remote import FolderOrUrl
from inlink.cli.show import note, show_json, show_table
from inlink.errors import ParameterError

if TYPE_CHECKING:
    from inlink.audit.audit import Audit


class _Checks(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """Names of checks, separated by commas."""

    name = "checks"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """Return the names, and refuse unknown ones."""
        if isinstance(value, list):
            return value
        from inlink.audit.checks import CHECKS

        names = [name.strip() for name in str(value).split(",")]
        for name in names:
            if name not in CHECKS:
                self.fail(f"{name!r} is not one of {', '.join(CHECKS)}", param, ctx)
        return names


@click.command()
@click.argument("site", type=FolderOrUrl("the audit reads the crawl's log: run it where the folder is"))
@click.option("--output", "-o", type=Output(), help="Write a report to this file, as one HTML page.")
@click.option(
    "--csv",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write a CSV file for each check to this folder.",
)
@click.option(
    "--only",
    type=_Checks(),
    metavar="CHECKS",
    help="Run these checks, separated by commas, and print their rows.",
)
@click.option(
    "--fail-on",
    type=_Checks(),
    metavar="CHECKS",
    help="Exit with 1 if one of these checks has findings; with --since, new findings.",
)
@click.option(
    "--since",
    metavar="OTHER",
    help="Compare with an earlier crawl, a saved audit (--json), or this crawl at an earlier time or #EVENT.",
)
@click.option(
    "--foreign", is_flag=True, help="Check links to other hosts too, if their targets were fetched."
)
@click.option(
    "--safe-cells",
    is_flag=True,
    help="With --csv: write ' before texts that spreadsheets would read as a formula.",
)
@json_option
@click.pass_context
def audit(
    context: click.Context,
    site: Path,
    output: Path | None,
    folder: Path | None,
    only: list[str] | None,
    fail_on: list[str] | None,
    since: str | None,
    foreign: bool,
    safe_cells: bool,
    as_json: bool,
) -> None:
    """Find faults of a crawled site, and name the pages to edit.

    SITE is the crawl's folder. The output has the number of findings and a verdict for each check. The verdict is
    "inconclusive" if own pages were not fetched, so that there may be more findings. --only CHECK prints the findings.
    """
    from inlink.audit.audit import audit as run
    from inlink.audit.report import write_csv, write_html

    if safe_cells and folder is None:
        raise click.UsageError("--safe-cells needs --csv")
    names = None if only is None else list(dict.fromkeys([*only, *(fail_on or ())]))
    other, earlier = (None, []) if since is None else _earlier(site, since, names, foreign)
    result = run(site, only=names, foreign=foreign, earlier=earlier)
    if other is not None and since is not None:
        result.compare(other, since)
    if output is not None:
        write_html(result, output)
    if folder is not None:
        write_csv(result, folder, safe_cells=safe_cells)
    if as_json:
        show_json(result)
    elif only is not None:
        for check in result.checks:
            if check.name in only:
                show_table(check.columns, check.rows)
                if check.verdict != "complete" and check.level != "table":
                    note(f"{check.name}: {check.verdict}: {'; '.join(check.reasons)}")
    else:
        _say(result)
    if fail_on and (failing := result.failing(fail_on)):
        note(f"checks with findings: {', '.join(failing)}")
        context.exit(1)


def _say(result: "Audit") -> None:
    compared = result.since is not None
    columns = ["check", "level", "found", *(["new", "mended"] if compared else []), "verdict"]
    rows: list[list[Any]] = []
    for check in result.checks:
        if check.level == "table":
            continue
        counts: list[Any] = ["–" if check.verdict == "not judged" else len(check.rows)]
        if compared:
            counts += [check.new, None if check.mended is None else len(check.mended)]
        rows.append(
            [check.name, check.level, *("" if count is None else count for count in counts), check.verdict]
        )
    show_table(columns, rows, right=range(2, len(columns) - 1))
    if result.gaps:
        note(f"not all pages were fetched: {'; '.join(result.gaps)}")
    reasons = {reason for check in result.checks if check.verdict == "not judged" for reason in check.reasons}
    for reason in sorted(reasons - set(result.gaps)):
        note(f"not judged: {reason}")


def _earlier(site: Path, since: str, names: list[str] | None, foreign: bool) -> tuple["Audit", list[str]]:
    """Return the earlier audit, and the URLs of the pages of the earlier crawl."""
    from inlink.audit.audit import audit as run
    from inlink.audit.audit import fetched_urls, load_audit
    from inlink.cli.remote import then

    path = Path(since)
    if path.is_file():
        return load_audit(path), []
    try:
        folder = path if path.exists() else then(site, since).folder
    except ParameterError:
        raise ParameterError(
            f"--since takes a crawl's folder, a file of `inlink audit --json`, or a moment of {site} (a time such as "
            f"2026-11-22T16:00:00, or an event such as #1200); got {since!r}"
        ) from None
    return run(folder, only=names, foreign=foreign), fetched_urls(folder)
