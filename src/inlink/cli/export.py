"""Data to and from other programs: ``inlink export``, ``dump`` and ``import-ranking``."""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from inlink.base.table import counted
from inlink.cli.options import (
    Output,
    crawl_argument,
    declared_options,
    folder_argument,
    graph_argument,
    json_option,
)
from inlink.cli.remote import Ranks, refuse_url, view_of
from inlink.cli.show import say, show_answer
from inlink.errors import OutputError, ParameterError
from inlink.sources.formats import CELLS, FORMATS

if TYPE_CHECKING:
    from inlink.base.arrays import AnyArray, Float64Array
    from inlink.base.progress import Work
    from inlink.graph.graph import Graph
    from inlink.rank.ranking import Ranking
    from inlink.sources.write import Written


@click.command()
@graph_argument
@click.option(
    "--output",
    "-o",
    required=True,
    type=Output(dash=True),
    help="The file. Its extension selects the format. - is standard output.",
)
@click.option(
    "--format",
    "format_",
    metavar="NAME",
    help="The format. Default: by the extension. With -o - it may be an extension, such as tsv. Default there: csv.",
)
@click.option(
    "--ranking",
    "rankings",
    multiple=True,
    help="Write this stored ranking beside the nodes. May be repeated.",
)
@click.option("--by", "by", help="Write only this stored ranking, one node a row, as .csv, .tsv or .parquet.")
@click.option(
    "--plain", is_flag=True, help='With --by and .csv: write only "name",value lines, without a header.'
)
@declared_options({name: row for entry in FORMATS.values() for name, row in entry.write_options.items()})
def export(
    graph: Path,
    output: Path,
    format_: str | None,
    rankings: tuple[str, ...],
    by: str | None,
    plain: bool,
    **of_formats: Any,
) -> None:
    """Write GRAPH, or a ranking of it, to a file. For a crawl, .parquet and .sqlite get the pages' columns too."""
    from inlink.base.opening import STDIN
    from inlink.sources.crawlgraph import graph_in

    safe_cells, piped = of_formats["safe_cells"] is True, str(output) == STDIN
    others = [name for name, value in of_formats.items() if value is not None and name != "safe_cells"]
    if by is not None and (rankings or others or (format_ and not piped)):
        raise click.UsageError(
            "--by writes only one ranking: --ranking, --format and most options of formats do not apply"
        )
    with _standard_output(format_) if piped else nullcontext((output, format_)) as (path, format_):
        if plain and (by is None or path.suffix != ".csv"):
            raise click.UsageError("--plain applies only to --by with a .csv file")
        if by is None:
            written = _export(graph_in(graph), graph, path, format_, rankings, of_formats)
        else:
            written = _export_ranking(graph_in(graph), path, by, plain, safe_cells)
        if piped and len(written.paths) > 1:
            raise click.UsageError(f"{path.suffix} would be more than one file: name the file with -o")
    if not piped:
        for path in written.paths:
            say(f"{path}: {path.stat().st_size:,} bytes")
    if written.left_out:
        line = f"left out: {counted(written.left_out, 'node')} without arcs. This format cannot hold them."
        click.echo(line, err=piped)


def _export(
    opened: "Graph",
    graph: Path,
    path: Path,
    format_: str | None,
    names: tuple[str, ...],
    of_formats: dict[str, Any],
) -> "Written":
    from inlink.sources.crawlgraph import columns_for
    from inlink.sources.rankings import load_ranking, values_of
    from inlink.sources.write import write_graph

    columns: dict[str, AnyArray | Ranking] = {**columns_for(opened, path, format_)}
    for name in names:
        columns[name] = ranking = load_ranking(opened, name)
        ranking.values = values_of(ranking, opened, float("nan"))
    if format_ == "commoncrawl" and not names:
        columns |= _ranks(opened, graph)
    return write_graph(opened, path, format=format_, columns=columns, **of_formats)


def _export_ranking(opened: "Graph", path: Path, by: str, plain: bool, safe_cells: bool) -> "Written":
    from inlink.sources.rankings import load_ranking
    from inlink.sources.write import Written

    ranking = load_ranking(opened, by)
    if path.suffix in (".csv", ".tsv"):
        ranking.to_csv(path, plain=plain, safe_cells=safe_cells)
    elif path.suffix != ".parquet" or safe_cells:
        kinds = ".csv or .tsv with --safe-cells" if safe_cells else ".csv, .tsv or .parquet"
        raise click.UsageError(f"--by writes {kinds}; got {path.name}")
    else:
        ranking.to_parquet(path)
    return Written([path])


@contextmanager
def _standard_output(format_: str | None) -> Iterator[tuple[Path, str | None]]:
    """Yield a temporary file for a format or an extension, and the format's name; print the file at the end."""
    from inlink.base.unfinished import unfinished_folder

    if format_ in ("bvgraph", "commoncrawl"):
        raise click.UsageError(f"format {format_} has several files: name the first, or the folder, with -o")
    name = format_ if format_ in FORMATS else None
    ending = f".{format_ or 'csv'}" if name is None else FORMATS[name].extensions[0]
    binary = ending.endswith((".gz", ".zst", ".parquet", ".sqlite", ".sqlite3", ".db"))
    if binary and sys.stdout.isatty():
        raise click.UsageError(
            f"{ending} is not text, so it is not written to a terminal: name a file with -o"
        )
    with unfinished_folder(Path(tempfile.gettempdir(), "inlink")) as folder:
        path = folder / f"stdout{ending}"
        try:
            yield path, name
        except (OutputError, ParameterError) as error:
            raise type(error)(str(error).replace(str(path), "standard output")) from None
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _ranks(opened: "Graph", graph: Path) -> dict[str, "Float64Array"]:
    """Return the rankings that Common Crawl publishes. If one is missing, return none, and say how to make them."""
    from inlink.rank.ranking import Ranking, list_rankings
    from inlink.sources.crawlgraph import CrawlGraph
    from inlink.sources.write_commoncrawl import RANKS

    # A crawl's rankings are those of its policy, and need not cover all pages.
    if isinstance(opened, CrawlGraph):
        return {}
    missing = [name for name in RANKS if name not in list_rankings(opened)]
    if missing:
        # Common Crawl counts an arc once, however many links it stands for.
        unweighted = " --unweighted" if "pagerank" in missing and opened.is_weighted else ""
        say(
            f"no file of ranks: {graph} has no ranking {' and no ranking '.join(missing)}. "
            f"Make it with: inlink rank {graph} --algorithm {','.join(missing)}{unweighted}"
        )
        return {}
    return {name: Ranking.load(opened, name).values for name in RANKS}


_TEXTS = {
    *(
        "url",
        "state",
        "content_hash",
        "error",
        "merge_reason",
        "algorithm",
        "checksum",
        "anchor",
        "place",
        "rel",
    ),
    *("title", "heading", "robots", "language", "content_type", "alternates", "canonicals"),
}
"""Columns of text. The other columns are numbers."""


@click.command()
@click.argument("what", type=click.Choice(["pages", "links", "items", "rankings"]))
@crawl_argument
@click.option(
    "--output", "-o", type=Output(dash=True), help="The file to write. Default: - (standard output)."
)
@click.option("--aduana", is_flag=True, help="Print the columns of Aduana's page_db_dump.")
@click.option(
    "--depth", is_flag=True, help="With --aduana: print the depth before the score, as Aduana's tool does."
)
@click.option(
    "--facts", is_flag=True, help="With pages: add title, heading, robots and other data of the last visit."
)
@click.option(
    "--raw",
    is_flag=True,
    help="With links: before redirects and merges, with URL, text, place, and nofollow links.",
)
@click.option("--latest", is_flag=True, help="With items: only those of each page's last visit.")
@declared_options(CELLS)
@json_option
def dump(
    what: Literal["pages", "links", "items", "rankings"],
    folder: Path | str,
    output: Path | None,
    aduana: bool,
    depth: bool,
    facts: bool,
    raw: bool,
    latest: bool,
    anchors: bool | None,
    safe_cells: bool | None,
    as_json: bool,
) -> None:
    """Print the pages of DIR, or the links between them (FROM, TO: pages by number), tab-separated with a header.

    ``dump items`` prints what spiders with INLINK_ITEMS extracted, as JSON lines. ``dump rankings`` prints the rankings
    that the crawl adopted, with the number of the event. Both need the folder.
    """
    from inlink.base.folder import atomic_file
    from inlink.base.progress import track

    if depth and not (aduana and what == "pages"):
        raise click.UsageError("--depth needs `dump pages --aduana`")
    if facts and (aduana or what != "pages"):
        raise click.UsageError("--facts needs `dump pages` without --aduana")
    if raw and (aduana or anchors or what != "links"):
        raise click.UsageError(
            "--raw needs `dump links` without --aduana; it has the texts without --anchors"
        )
    if anchors and (aduana or what != "links"):
        raise click.UsageError("--anchors needs `dump links` without --aduana")
    if latest and what != "items":
        raise click.UsageError("--latest needs `dump items`")
    if safe_cells and (aduana or what not in ("pages", "links")):
        raise click.UsageError("--safe-cells needs `dump pages` or `dump links` without --aduana")
    if as_json and aduana:
        raise click.UsageError("--json prints inlink's columns: leave out --aduana")
    if aduana and what not in ("pages", "links"):
        raise click.UsageError("--aduana needs `dump pages` or `dump links`")
    rows = _rows
    if what == "items":
        blocks, rows = _items(folder, latest), _objects
    elif what == "rankings":
        blocks = _rankings(folder)
    else:
        columns = {
            "anchors": anchors is True,
            "facts": facts,
            "raw": raw,
            "safe_cells": safe_cells is True,
        }
        blocks = _parts(folder, what, aduana=aduana, depth=depth, **columns)
    if output is None or str(output) == "-":
        show_answer(rows(blocks), as_json, lambda _: _write(blocks))
        return
    with ExitStack() as stack:
        work = stack.enter_context(atomic_file(output))
        stack.enter_context(redirect_stdout(stack.enter_context(work.open("w"))))
        done = _advancing(
            blocks, stack.enter_context(track(f"writing {what}", unit="B" if what == "items" else "pages"))
        )
        show_answer(rows(done), as_json, lambda _: _write(done))


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


def _objects(blocks: Iterator[tuple[bytes, int]]) -> Iterator[dict[str, Any]]:
    """The objects of JSON lines."""
    return (json.loads(line) for block, _ in blocks for line in block.split(b"\n")[:-1])


def _value(name: str, cell: str) -> Any:
    if name == "anchor" and cell.startswith('"'):
        return cell[1:-1].replace('""', '"')
    if not cell:
        return None
    # Shards name other pages by URL.
    return cell if name in _TEXTS or cell.startswith("http") else json.loads(cell)


def _parts(
    folder: Path | str, what: Literal["pages", "links"], **columns: bool
) -> Iterator[tuple[bytes, int]]:
    """All parts, and the number of pages in each. Parts larger than a server's save a third of the time."""
    from inlink.crawl.questions.table import parts

    view, done = view_of(folder), 0
    for part in parts(lambda cursor: view.dump(what, cursor, seconds=0.5, **columns)):
        yield part.text.encode("utf-8", "surrogateescape"), part.done - done
        done = part.done


def _items(folder: Path | str, latest: bool) -> Iterator[tuple[bytes, int]]:
    from inlink.sources.dumping import item_lines
    from inlink.store.reader import open_pages

    refuse_url(folder, "items are read from the crawl's log: run the command where the folder is")
    pages = open_pages(folder, lazily=True)
    try:
        pages.recover()
        yield from item_lines(pages, latest=latest)
    finally:
        pages.close()


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
