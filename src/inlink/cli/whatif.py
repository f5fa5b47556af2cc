"""``inlink whatif``: changes of PageRank by adding and removing links, and links that raise pages most."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlink.base.table import counted
from inlink.cli.changes import change_cells, change_row, stored
from inlink.cli.lookups import graph_at, local_argument, node_in, resolver
from inlink.cli.options import json_option, number_option
from inlink.cli.show import note, show_answer, show_table

if TYPE_CHECKING:
    from inlink.graph.graph import Graph

_NAMED = 5
"""New pages that a message names."""


@click.command()
@local_argument
@click.argument("changes", required=False, type=click.Path(path_type=Path))
@click.option(
    "--page", "pages", multiple=True, metavar="NAME", help="Show this page; may be given several times."
)
@number_option("Without --page: number of best pages after the changes.")
@click.option(
    "--suggest",
    type=click.IntRange(1),
    metavar="N",
    help="Print N links that raise the pages of --raise most.",
)
@click.option(
    "--raise", "targets", type=click.Path(path_type=Path), help="File of pages to raise, one a line."
)
@click.option(
    "--from",
    "sources",
    type=click.Path(path_type=Path),
    help="File of pages that may get links. Default: pages near the raised page, in its language.",
)
@json_option
def whatif(
    folder: Path,
    changes: Path | None,
    pages: tuple[str, ...],
    count: int,
    suggest: int | None,
    targets: Path | None,
    sources: Path | None,
    as_json: bool,
) -> None:
    """Print how PageRank would change if CHANGES of links were made in a graph or a crawl. The command changes nothing.

    Each line of CHANGES has a source, a target, and + or -, separated by tabs. Pages are named as in inlink links, and
    may be new. The output has places and PageRanks before and after, and the change, for each page. The last column is
    the maximum error of the change, which is at most 0.5%, or the reason why the change is not decided.

    With --suggest and --raise instead of CHANGES, print the links that raise the sum of some pages most, the best
    first, with their gains. The links before a link are taken as added. The output can be used as CHANGES.

    A stored ranking named pagerank saves time. Its damping and use of weights are used.
    """
    if suggest is None:
        if changes is None or targets is not None or sources is not None:
            raise click.UsageError("give a file of changes, or --suggest N with --raise FILE")
        graph = graph_at(folder)
        _changes(graph, folder, changes, pages, count, as_json)
    else:
        if changes is not None or targets is None or pages:
            raise click.UsageError("--suggest takes --raise FILE, and neither a file of changes nor --page")
        graph = graph_at(folder)
        _suggestions(graph, folder, suggest, targets, sources, as_json)


def _changes(
    graph: "Graph", folder: Path, file: Path, pages: tuple[str, ...], count: int, as_json: bool
) -> None:
    import inlink
    from inlink.errors import InlinkError, InputError, UnknownNodeError
    from inlink.graph.edits import Edits
    from inlink.sources.changes import read_changes

    add, remove = read_changes(file, graph, resolver(graph, folder))
    try:
        edits = Edits(graph, add, remove)
    except InlinkError as error:
        raise InputError(f"{file}: {error}") from None

    def number(page: str) -> int:
        try:
            return edits.node(page if graph.names is not None else int(page))
        except (UnknownNodeError, ValueError):
            return node_in(graph, page, folder)

    nodes = [number(page) for page in pages] or None
    change = inlink.whatif(graph, add, remove, nodes=nodes, top=count, **stored(graph))
    if change.new:
        more = ", …" if len(change.new) > _NAMED else ""
        note(f"{counted(len(change.new), 'new page')}: {', '.join(map(str, change.new[:_NAMED]))}{more}")
    if repeated := len(add) - change.added:
        note(f"{counted(repeated, 'link')} to add: already in the graph")
    answer = {
        "added": change.added,
        "removed": change.removed,
        "new": change.new,
        "nodes": [change_row(row) for row in change],
    }
    show_answer(
        answer, as_json, lambda _: show_table(_COLUMNS, list(map(change_cells, change)), right=range(6))
    )


_COLUMNS = ["place before", "after", "PageRank before", "after", "change", "", "page", "exact to"]


def _suggestions(
    graph: "Graph", folder: Path, count: int, targets: Path, sources: Path | None, as_json: bool
) -> None:
    from inlink.rank.suggest import MOST_LINKS, filters_of, left_out, suggest
    from inlink.sources.scores import read_nodes
    from inlink.store.reader import is_crawl

    files = [file for file in (targets, sources) if file is not None]
    lists = [read_nodes(file, graph) for file in files]
    for file, (_, unknown) in zip(files, lists, strict=True):
        if unknown:
            note(f"{file}: names that are not in {folder}: {unknown:,}")
    may_link, filters = lists[1][0] if sources is not None else None, None
    if sources is None:
        if is_crawl(folder):
            from inlink.audit.plausible import crawl_filters

            filters = crawl_filters(graph, folder)
        else:
            filters = filters_of(graph)
        counts = left_out(graph, lists[0][0], filters)
        plausible = counts.pop("")
        reasons = "; ".join(f"{number:,} {reason}" for reason, number in counts.items() if number)
        note(
            f"{plausible:,} of {counted(graph.num_nodes, 'page')} may link"
            + (f"; left out: {reasons}" if reasons else "")
        )
    rows: list[dict[str, Any]] = []

    def links() -> Iterator[dict[str, Any]]:
        for link in suggest(graph, lists[0][0], count, sources=may_link, filters=filters, **stored(graph)):
            rows.append({**link._asdict(), "place": len(rows) + 1})
            yield rows[-1]

    show_answer(links(), as_json, _show_links)
    if len(rows) < count:
        note(
            f"{counted(len(rows), 'link')} of {count}: no other plausible page with fewer than {MOST_LINKS} links is "
            "proven to raise the pages; --from names pages that may link"
        )


def _show_links(links: Iterator[dict[str, Any]]) -> None:
    rows = list(links)
    cells = [
        [
            row["source"],
            row["target"],
            "+",
            f"{row['gain'].middle:+.4g}",
            f"{row['gain'].middle / row['before']:+.2%}",
        ]
        for row in rows
    ]
    show_table(["source", "target", "", "gain", "of the pages' PageRank"], cells, right=(3, 4))
