"""``inlink reload``: pages that were given up wait again."""

from pathlib import Path

import click

from inlink.cli.crawls import crawl_argument, reopened
from inlink.cli.show import say


@click.command()
@crawl_argument
def reload(folder: Path) -> None:
    """Let the pages of DIR that failed, are gone or were excluded wait again; a running crawl is told to."""
    from inlink.base.folder import Folder
    from inlink.errors import InUseError
    from inlink.store.inbox import RELOAD, post
    from inlink.store.reader import KIND, VERSION

    Folder(folder, KIND, VERSION)  # nothing is made here
    try:
        crawl = reopened(folder)
    except InUseError:
        post(folder, RELOAD)
        say(f"left in {folder}'s inbox, for the process that is crawling to do")
        return
    with crawl:
        say(f"{crawl.reload():,} pages wait again")
