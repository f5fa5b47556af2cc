"""``inlink dump``: all pages, links or adopted rankings of a crawl, as text."""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from inlink.cli.options import Output, crawl_argument, declared_options, json_option
from inlink.cli.remote import refuse_url, view_of
from inlink.cli.show import show_answer
from inlink.sources.formats import CELLS

if TYPE_CHECKING:
    from inlink.base.progress import Work

_TEXTS = {"url", "state", "content_hash", "error", "merge_reason", "algorithm", "checksum", "anchor"}
"""Columns of text. The other columns are numbers."""


@click.command()
@click.argument("what", type=click.Choice(["pages", "links", "rankings"]))
@crawl_argument
@click.option(
    "--output", "-o", type=Output(dash=True), help="The file to write. Default: - (standard output)."
)
@click.option("--aduana", is_flag=True, help="Print the columns of Aduana's page_db_dump.")
@click.option(
    "--depth", is_flag=True, help="With --aduana: print the depth before the score, as Aduana's tool does."
)
@declared_options(CELLS)
@json_option
def dump(
    what: Literal["pages", "links", "rankings"],
    folder: Path | str,
    output: Path | None,
    aduana: bool,
    depth: bool,
    anchors: bool | None,
    safe_cells: bool | None,
    as_json: bool,
) -> None:
    """Print the pages of DIR, or the links between them (FROM, TO: pages by number), tab-separated with a header.

    ``dump rankings`` prints the rankings that the crawl adopted, with the number of the event. It needs the folder.
    """
    from inlink.base.folder import atomic_file
    from inlink.base.progress import track

    if depth and not (aduana and what == "pages"):
        raise click.UsageError("--depth needs `dump pages --aduana`")
    if anchors and (aduana or what != "links"):
        raise click.UsageError("--anchors needs `dump links` without --aduana")
    if safe_cells and (aduana or what == "rankings"):
        raise click.UsageError("--safe-cells needs `dump pages` or `dump links` without --aduana")
    if as_json and aduana:
        raise click.UsageError("--json prints inlink's columns: leave out --aduana")
    if what == "rankings":
        if aduana:
            raise click.UsageError("--aduana needs `dump pages` or `dump links`")
        blocks = _rankings(folder)
    else:
        columns = {"anchors": anchors is True, "safe_cells": safe_cells is True}
        blocks = _parts(folder, what, aduana=aduana, depth=depth, **columns)
    if output is None or str(output) == "-":
        show_answer(_rows(blocks), as_json, lambda _: _write(blocks))
        return
    with ExitStack() as stack:
        work = stack.enter_context(atomic_file(output))
        stack.enter_context(redirect_stdout(stack.enter_context(work.open("w"))))
        done = _advancing(blocks, stack.enter_context(track(f"writing {what}", unit="pages")))
        show_answer(_rows(done), as_json, lambda _: _write(done))


def _advancing(blocks: Iterator[tuple[bytes, int]], task: "Work") -> Iterator[tuple[bytes, int]]:
    for block, count in blocks:
        yield block, count
        task.advance(count)


def _write(blocks: Iterator[tuple[bytes, int]]) -> None:
    for block, _ in blocks:
        sys.stdout.buffer.write(block)
        # An error for a closed pipe is raised here.
        sys.stdout.buffer.flush()


def _rows(blocks: Iterator[tuple[bytes, int]]) -> Iterator[dict[str, Any]]:
    """The lines as dicts by the names in the header. Unknown values, which are empty, are None."""
    names: list[str] = []
    for block, _ in blocks:
        for line in block.decode("utf-8", "surrogateescape").split("\n")[:-1]:
            cells = line.split("\t")
            if names:
                yield {name: _value(name, cell) for name, cell in zip(names, cells, strict=True)}
            names = names or cells


def _value(name: str, cell: str) -> Any:
    if name == "anchor" and cell.startswith('"'):
        return cell[1:-1].replace('""', '"')
    return None if not cell else cell if name in _TEXTS else json.loads(cell)


def _parts(
    folder: Path | str, what: Literal["pages", "links"], **columns: bool
) -> Iterator[tuple[bytes, int]]:
    """All parts, and the number of pages in each. Parts larger than a server's save a third of the time."""
    from inlink.crawl.questions.table import parts

    view, done = view_of(folder), 0
    for part in parts(lambda cursor: view.dump(what, cursor, seconds=0.5, **columns)):
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
