"""``inlink reload``: let pages that failed, are gone or were excluded wait again."""

from pathlib import Path
from typing import Any

import click

from inlink.cli.crawls import crawl_argument, reopened
from inlink.cli.options import set_option, settings_given
from inlink.cli.remote import refuse_settings, remote
from inlink.cli.show import say


@click.command()
@crawl_argument
@set_option
def reload(folder: Path | str, **options: Any) -> None:
    """Let the pages of DIR that failed, are gone or were excluded wait again. A running crawl does this itself."""
    from inlink.errors import InUseError
    from inlink.store.inbox import RELOAD, post
    from inlink.store.reader import crawl_folder

    given = settings_given(options)
    if isinstance(folder, str):
        refuse_settings(folder, given)
        say(_told(remote(folder).reload()))
        return
    # This command must not make a crawl.
    crawl_folder(folder)
    try:
        crawl = reopened(folder, given)
    except InUseError:
        if given:
            raise
        post(folder, RELOAD)
        say(f"the request is left in {folder}'s inbox: the running crawl carries it out within seconds")
        return
    with crawl:
        say(_told(crawl.reload()))


def _told(count: int) -> str:
    return "1 page waits again" if count == 1 else f"{count:,} pages wait again"
