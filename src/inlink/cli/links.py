"""``inlink links``: the pages that link to a page of a crawl, and the pages that it links to."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inlink.cli.crawls import crawl_argument
from inlink.cli.show import say

if TYPE_CHECKING:
    from inlink.crawl.shown import PageList, PageRow


@click.command()
@crawl_argument
@click.argument("page", metavar="URL|HASH")
def links(folder: Path, page: str) -> None:
    """Print which pages of DIR link to a page, and to which pages it links, as of each page's latest visit."""
    from inlink.crawl.view import MOST_ROWS, CrawlView

    view = CrawlView.open(folder)
    number = view.number(page)
    say(f"->{number:016x}")
    linkers = {row.page: row.url for row in _all(lambda cursor: view.links(number, "to", MOST_ROWS, cursor))}
    for linker, url in sorted(linkers.items()):
        say(f"    {linker:016x} {url}")
    say(f"{number:016x}->")
    for row in _all(lambda cursor: view.links(number, "from", MOST_ROWS, cursor)):
        say(f"    {row.page:016x} {row.url}")


def _all(part: "Callable[[str | None], PageList]") -> "Iterator[PageRow]":
    """The rows of all parts."""
    cursor = None
    while True:
        rows = part(cursor)
        yield from rows.rows
        cursor = rows.cursor
        if cursor is None:
            return
