"""``inlink why``: the place of a page of a crawl in the order, and the reasons for it."""

from pathlib import Path
from typing import Any

import click

from inlink.cli.lookups import asked
from inlink.cli.options import crawl_argument, json_option, set_option, settings_given
from inlink.cli.remote import view_of
from inlink.cli.show import printable, say, show_answer
from inlink.cli.then import as_of_option, view_then


@click.command()
@crawl_argument
@click.argument("page", metavar="URL|HASH")
@set_option
@as_of_option
@json_option
def why(folder: Path | str, page: str, moment: str | None, as_json: bool, **options: Any) -> None:
    """Print the place of a page of DIR in the order, and why: priority, links, penalties, politeness, leases."""
    given = settings_given(options)
    view = view_of(folder, given) if moment is None else view_then(folder, moment, given)
    reasons = asked(view, lambda name: view.why(name, seconds=1.0), page, folder)
    while not reasons.inlinks_complete:
        reasons = view.why(reasons.page, seconds=1.0)
    show_answer(reasons, as_json, _say)


def _say(reasons: object) -> None:
    for line in str(reasons).split("\n"):
        say(printable(line))
