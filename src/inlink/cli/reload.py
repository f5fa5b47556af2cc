"""``inlink reload``: let pages that failed, are gone or were excluded wait again."""

from pathlib import Path
from typing import Any

import click

from inlink.base.table import counted
from inlink.cli.options import crawl_argument, set_option, settings_given
from inlink.cli.remote import refuse_settings, remote
from inlink.cli.show import say


@click.command()
@crawl_argument
@click.option(
    "--failed", "states", multiple=True, flag_value="failed", help="Pages that failed for good. The default."
)
@click.option("--gone", "states", flag_value="gone", multiple=True, help="Pages that are gone: 404, 410.")
@click.option(
    "--excluded",
    "states",
    flag_value="excluded",
    multiple=True,
    help="Pages that robots.txt, a rule, a refused address or an operator excluded, if the rules allow them now.",
)
@set_option
def reload(folder: Path | str, states: tuple[str, ...], **options: Any) -> None:
    """Let pages of DIR wait again: those that failed, or those that the options name.

    A running crawl does this itself.
    """
    from inlink.crawl.crawl import Crawl
    from inlink.errors import InUseError
    from inlink.store.inbox import RELOAD, post
    from inlink.store.reader import crawl_folder

    given = settings_given(options)
    if isinstance(folder, str):
        refuse_settings(folder, given)
        say(_told(remote(folder).reload(*states)))
        return
    # This command must not make a crawl.
    crawl_folder(folder)
    try:
        crawl = Crawl(folder, **given)
    except InUseError:
        if given:
            raise
        post(folder, RELOAD, "\n".join(states))
        say(f"the request is left in {folder}'s inbox: the running crawl carries it out within seconds")
        return
    with crawl:
        say(_told(crawl.reload(*states)))


def _told(count: int) -> str:
    return counted(count, "page waits again", "pages wait again")
