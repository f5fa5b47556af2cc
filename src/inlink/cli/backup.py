"""``inlink backup``: a consistent copy of a crawl, also while it runs."""

from pathlib import Path

import click

from inlink.base.table import counted
from inlink.cli.options import Output, folder_argument
from inlink.cli.show import say


@click.command()
@folder_argument
@click.option(
    "--output",
    "-o",
    required=True,
    type=Output(),
    help="The copy: a folder that does not exist yet.",
)
def backup(folder: Path, output: Path) -> None:
    """Copy the crawl in DIR, also while it runs, and check the copy.

    The copy holds all complete events, the settings, the inbox and the ranking. You can use it like any crawl's folder.
    """
    from inlink.store import backup as backups

    done = backups.backup(folder, output)
    say(f"{output}: {counted(done.pages, 'page')}, {counted(done.events, 'event')}, {done.size:,} bytes")
