"""``inlink why``: where a page of a crawl stands in the order, and why."""

from pathlib import Path
from typing import Any

import click

from inlink.cli.crawls import crawl_argument, policy_given
from inlink.cli.options import set_option, settings_given
from inlink.cli.show import printable, say, say_json


@click.command()
@crawl_argument
@click.argument("page", metavar="URL|HASH")
@set_option
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def why(folder: Path, page: str, as_json: bool, **options: Any) -> None:
    """Print the place of a page of DIR in the order, and why: priority, links, penalties, politeness, leases."""
    from inlink.crawl.view import CrawlView

    view = CrawlView.open(folder, policy=policy_given(settings_given(options)))
    reasons = view.why(page)
    while not reasons.inlinks_complete:
        reasons = view.why(page)
    if as_json:
        say_json(reasons)
        return
    for line in str(reasons).split("\n"):
        say(printable(line))
