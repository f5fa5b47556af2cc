"""``inlink path``: how a crawl came to know a page."""

from pathlib import Path

import click

from inlink.cli.crawls import crawl_argument
from inlink.cli.show import say


@click.command()
@crawl_argument
@click.argument("page", metavar="URL|HASH")
def path(folder: Path, page: str) -> None:
    """Print the chain of first links to a page of DIR: the page, the page that made it known, and so on to a seed."""
    from inlink.crawl.view import CrawlView

    view, cursor = CrawlView.open(folder), None
    while True:
        part = view.path(page, cursor=cursor)
        for row in part.rows:
            say(f"{row.page:016x} {row.url}")
        cursor = part.cursor
        if cursor is None:
            return
