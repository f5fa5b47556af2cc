"""``--as-of``: commands that show a crawl as it was at an earlier event."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from inlink.crawl.asof import AsOf
    from inlink.crawl.view import CrawlView

__all__ = ["as_of_option", "then", "view_then"]

as_of_option = click.option(
    "--as-of",
    "moment",
    metavar="TIME|EVENT",
    help="Show the crawl as it was at a time (2026-11-22T16:00:00 in UTC, or Unix seconds) or at an event (#1200).",
)


def then(folder: Path | str, moment: str) -> "AsOf":
    """A crawl's folder as it was, in a temporary copy that is removed when the command ends.

    What is approximate is said on standard error.

    Raises
    ------
    inlink.errors.ParameterError
        If the crawl is on a server, or the moment is none of its log.
    inlink.errors.FolderError
        If there is no crawl.
    """
    from inlink.crawl.asof import as_of, moment_of
    from inlink.errors import ParameterError
    from inlink.replaying.play import memory_folder

    when = moment_of(moment)
    if isinstance(folder, str):
        raise ParameterError(f"{folder}: --as-of reads the crawl's log: run the command where the folder is")
    found = click.get_current_context().with_resource(as_of(folder, when, memory_folder()))
    if found.approximate:
        click.echo(f"inlink: approximate: {found.approximate}", err=True)
    return found


def view_then(folder: Path | str, moment: str, given: dict[str, Any]) -> "CrawlView":
    """A view of a crawl as it was; the parameters are those of :func:`then` and :func:`.remote.view_of`."""
    from inlink.cli.crawls import policy_given
    from inlink.crawl.view import CrawlView

    policy = policy_given(given)
    was = then(folder, moment)
    return CrawlView.open(was.folder, lambda: was.time, policy)
