"""``inlink import-ranking``: a ranking for a crawl, from a file."""

from pathlib import Path

import click

from inlink.cli.options import folder_argument
from inlink.cli.remote import Ranks
from inlink.cli.show import counted, say


@click.command("import-ranking")
@folder_argument
@click.argument("file", type=Ranks())
@click.option("--name", required=True, help="Name of the ranking.")
@click.option(
    "--hosts", "by_host", is_flag=True, help="Lines name hosts. Each page gets the value of its host."
)
@click.option(
    "--domains",
    "by_domain",
    is_flag=True,
    help="Lines name registered domains. Each page gets the value of its domain.",
)
@click.option(
    "--column",
    type=click.Choice(["harmonic", "pagerank"]),
    default="harmonic",
    show_default=True,
    help="Column of Common Crawl's ranks to store.",
)
def import_ranking(
    folder: Path, file: Path | str, name: str, by_host: bool, by_domain: bool, column: str
) -> None:
    """Store the values in FILE as a ranking of the crawl in DIR, for ``--policy ranking:NAME``.

    FILE has a URL, a tab and a value in each line, is a ranking that `inlink export --by` wrote, or is Common Crawl's
    ranks of hosts. With --domains it is the ranks of domains. FILE may also be a URL, or a release of Common Crawl
    (cc-main-2026-apr-may-jun/host).
    """
    from inlink.sources.rankings import import_ranking as import_

    found = import_(folder, file, name, by_host=by_host, by_domain=by_domain, column=column)
    unknown = ""
    if found.unknown:
        what = "pages or hosts that the crawl does not know"
        unknown = f"; {counted(found.unknown, f'line names {what}', f'lines name {what}')}"
    pages = counted(found.pages, f"page of {folder} has", f"pages of {folder} have")
    say(f"{name}: {pages} a value{unknown}")
