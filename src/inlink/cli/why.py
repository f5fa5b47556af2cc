"""``inlink why``: where a page of a crawl stands in the order, and every reason for it."""

import time
from pathlib import Path

import click

from inlink.cli.crawls import crawl_argument, page_given
from inlink.cli.show import printable, say


@click.command()
@crawl_argument
@click.argument("page", metavar="URL|HASH")
def why(folder: Path, page: str) -> None:
    """Print where a page of DIR stands in the order, and why: ranks, scores, inlinks, politeness, penalties, leases."""
    from inlink.crawl import look
    from inlink.frontier.explain import explain

    frontier = look(folder)
    now = time.time()
    frontier.advance(now)
    for line in str(explain(frontier, page_given(frontier.pages, page), now)).split("\n"):
        say(printable(line))
