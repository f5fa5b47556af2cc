"""``--as-of``: commands that show a crawl as it was at an earlier event."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from inlink.crawl.asof import AsOf
    from inlink.crawl.view import CrawlView

__all__ = ["as_of_option", "as_of_options", "then", "view_then"]

as_of_option = click.option(
    "--as-of",
    "moment",
    metavar="TIME|EVENT",
    help="Take the crawl as it was at a time (2026-11-22T16:00:00 in UTC, or Unix seconds) or at an event (#1200).",
)

as_of_options = click.option(
    "--as-of",
    "moments",
    multiple=True,
    metavar="TIME|EVENT",
    help="Compare crawl A as it was at this moment with A now. Twice: with A at the second moment.",
)


def then(folder: Path | str, moment: str | None, *, order: bool = False) -> "AsOf":
    """A crawl's folder as it was, in a temporary copy that is removed when the command ends.

    A message on standard error names what is approximate.

    Parameters
    ----------
    folder : Path or str
    moment : str or None
        None is now.
    order : bool
        Whether the order of waiting pages is needed.

    Raises
    ------
    inlink.errors.ParameterError
        If the crawl is on a server, or its log has no such moment.
    inlink.errors.FolderError
        If there is no crawl.
    """
    from inlink.crawl.asof import as_of, moment_of
    from inlink.errors import ParameterError
    from inlink.replaying.play import memory_folder

    when = math.inf if moment is None else moment_of(moment)
    if isinstance(folder, str):
        raise ParameterError(f"{folder}: --as-of reads the crawl's log: run the command where the folder is")
    temporary = memory_folder(sum(file.stat().st_size for file in folder.glob("*.*")))
    found = click.get_current_context().with_resource(as_of(folder, when, temporary, order=order))
    if found.approximate:
        click.echo(f"inlink: approximate: {found.approximate}", err=True)
    return found


def view_then(folder: Path | str, moment: str, given: dict[str, Any]) -> "CrawlView":
    """A view of a crawl as it was; the parameters are those of :func:`then` and :func:`.remote.view_of`."""
    from inlink.cli.remote import policy_given
    from inlink.crawl.view import CrawlView

    policy = policy_given(given)
    was = then(folder, moment, order=True)
    return CrawlView.open(was.folder, lambda: was.time, policy)
