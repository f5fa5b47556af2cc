"""``inlink dump``: all pages, links or adopted rankings of a crawl, as text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import click

from inlink.cli.options import Output, crawl_argument
from inlink.cli.remote import refuse_url, view_of
from inlink.cli.show import write_all


@click.command()
@click.argument("what", type=click.Choice(["pages", "links", "rankings"]))
@crawl_argument
@click.option("--output", "-o", type=Output(), help="The file to write. Default: standard output.")
@click.option("--aduana", is_flag=True, help="Print the columns of Aduana's page_db_dump.")
@click.option(
    "--depth", is_flag=True, help="With --aduana: print the depth before the score, as Aduana's tool does."
)
def dump(
    what: Literal["pages", "links", "rankings"],
    folder: Path | str,
    output: Path | None,
    aduana: bool,
    depth: bool,
) -> None:
    """Print the pages of DIR, or the links between them (FROM, TO: pages by number), tab-separated with a header.

    ``dump rankings`` prints the rankings that the crawl adopted, with the number of the event. It needs the folder.
    """
    from inlink.base.folder import atomic_file
    from inlink.base.progress import track

    if depth and not (aduana and what == "pages"):
        raise click.UsageError("--depth needs `dump pages --aduana`")
    if what == "rankings":
        if aduana:
            raise click.UsageError("--aduana needs `dump pages` or `dump links`")
        blocks = _rankings(folder)
    else:
        blocks = _parts(folder, what, aduana, depth)
    if output is None:
        for block, _ in blocks:
            write_all(block)
        return
    with atomic_file(output) as work, work.open("wb") as file, track(f"writing {what}", unit="pages") as task:
        for block, count in blocks:
            file.write(block)
            task.advance(count)


def _parts(
    folder: Path | str, what: Literal["pages", "links"], aduana: bool, depth: bool
) -> Iterator[tuple[bytes, int]]:
    """All parts, and the number of pages in each. Parts larger than a server's save a third of the time."""
    from inlink.crawl.questions.table import parts

    view, done = view_of(folder), 0
    for part in parts(lambda cursor: view.dump(what, cursor, aduana=aduana, depth=depth, seconds=0.5)):
        yield part.text.encode("utf-8", "surrogateescape"), part.done - done
        done = part.done


def _rankings(folder: Path | str) -> Iterator[tuple[bytes, int]]:
    from inlink.crawl.adopted import COLUMNS, ranking_rows
    from inlink.store.reader import known_pages

    refuse_url(folder, "the rankings are read from the crawl's log: run the command where the folder is")
    pages = known_pages(folder, with_urls=False)
    try:
        rows = ranking_rows(pages)
    finally:
        pages.close()
    lines = ["\t".join(map(str, row)) + "\n" for row in (COLUMNS, *rows)]
    yield "".join(lines).encode(), pages.num_pages
