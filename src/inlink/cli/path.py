"""``inlink path``: how a crawl came to know a page."""

from pathlib import Path

import click

from inlink.cli.crawls import crawl_argument, hash_line, page_alone
from inlink.cli.show import say


@click.command()
@crawl_argument
@click.argument("page", metavar="URL|HASH")
def path(folder: Path, page: str) -> None:
    """Print the chain of first links that led to a page of DIR: itself, the page that made it known, … a seed."""
    from inlink.store.pages import NO_PAGE

    pages, number = page_alone(folder, page)
    while number != NO_PAGE:
        say(hash_line(pages, number))
        number = pages.maker(number)  # always an older page: the chain ends
