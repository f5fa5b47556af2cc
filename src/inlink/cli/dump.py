"""``inlink dump``: all that a crawl knows, as text."""

import sys
from pathlib import Path

import click

from inlink.cli.crawls import crawl_argument, write_all


@click.command()
@click.argument("what", type=click.Choice(["pages", "links"]))
@crawl_argument
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="The file; standard output if not given."
)
@click.option("--aduana", is_flag=True, help="In the columns of Aduana's page_db_dump.")
@click.option(
    "--depth", is_flag=True, help="With --aduana: the depth before the score, where the real tool has it."
)
def dump(what: str, folder: Path, output: Path | None, aduana: bool, depth: bool) -> None:
    """Print the pages of DIR, or the links between them (FROM, TO: pages by number), tab-separated under a header."""
    from inlink.base.folder import atomic_file
    from inlink.base.progress import track
    from inlink.sources.crawl import known_pages
    from inlink.sources.dumping import link_lines, page_lines

    if depth and not (aduana and what == "pages"):
        raise click.UsageError("--depth goes with dump pages --aduana")
    pages = known_pages(folder)
    blocks = (
        link_lines(pages, aduana=aduana) if what == "links" else page_lines(pages, aduana=aduana, depth=depth)
    )
    if output is None:
        out = sys.stdout.buffer
        for block, _ in blocks:
            write_all(out, block)
        return
    with atomic_file(output) as work, work.open("wb") as file, track(f"writing {what}", unit=what) as task:
        for block, count in blocks:
            file.write(block)
            task.advance(count)
