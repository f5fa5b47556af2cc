"""``inlink links``: what links to a page of a crawl, and what it links to."""

from pathlib import Path

import click

from inlink.cli.crawls import crawl_argument, hash_line, page_given
from inlink.cli.show import say


@click.command()
@crawl_argument
@click.argument("page", metavar="URL|HASH")
def links(folder: Path, page: str) -> None:
    """Print which pages of DIR link to a page, and to which it links, as of each page's latest visit."""
    from inlink.sources.crawl import known_pages, links_from, links_to

    pages = known_pages(folder, with_urls=True)
    number = page_given(pages, page)
    say(f"->{number:016x}")
    for one in links_to(pages, number).tolist():
        say(f"    {hash_line(pages, one)}")
    say(f"{number:016x}->")
    for one in links_from(pages, number).tolist():
        say(f"    {hash_line(pages, one)}")
