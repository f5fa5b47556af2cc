"""``inlink page``: what a crawl knows of one page."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from inlink.cli.crawls import crawl_argument, unknown_page
from inlink.cli.show import say, show_json


@click.command()
@crawl_argument
@click.argument("url", metavar="URL|HASH")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def page(folder: Path, url: str, as_json: bool) -> None:
    """Show what the crawl in DIR knows of one page: state, score, depth, crawls. Fast in a crawl of any size."""
    from inlink.crawl.view import CrawlView

    known = CrawlView.open(folder).page(url)
    if known is None:
        raise unknown_page(folder, url)
    fields = asdict(known)
    fields["content_hash"] = fields["content_hash"].hex()
    if as_json:
        show_json(fields)
        return
    for name, value in fields.items():
        if name.endswith("_crawl") and value is not None:
            value = datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds")
        say(f"{name:<14} {'' if value is None else value}")
