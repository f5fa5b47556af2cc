"""``inlink diff``: what changed between two rankings."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlink.cli.options import Output, json_option
from inlink.cli.rank import ranked_then
from inlink.cli.remote import Ranks
from inlink.cli.show import printable, say, show_answer, show_table
from inlink.cli.then import as_of_options

if TYPE_CHECKING:
    from inlink.sources.diff import Change, Diff


@click.command()
@click.argument("a", type=Ranks())
@click.argument("b", type=Ranks(), required=False)
@click.option(
    "--by",
    "by",
    multiple=True,
    help="The stored ranking, or pagerank or harmonic of Common Crawl's ranks. Twice: A's and B's. Default: pagerank.",
)
@click.option(
    "-n",
    "--number",
    "count",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    help="Rows of each kind.",
)
@click.option(
    "--within",
    type=click.IntRange(0),
    default=1000,
    show_default=True,
    help="Show movers only among this many first nodes of A or B; 0: among all.",
)
@click.option("--risen", is_flag=True, help="Of the movers, show those whose place in B is better.")
@as_of_options
@click.option(
    "--persistence", type=float, default=0.9, show_default=True, help="The p of the rank-biased overlap."
)
@click.option(
    "--plot", "picture", type=Output(), help="Also draw the places against each other: .png, .svg or .pdf."
)
@json_option
def diff(
    a: Path | str,
    b: Path | str | None,
    by: tuple[str, ...],
    count: int,
    within: int,
    risen: bool,
    moments: tuple[str, ...],
    persistence: float,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Compare two rankings A and B: who moved, who is new or gone, and how far they agree.

    A and B are folders of graphs or crawls with rankings, folders of rankings, exported rankings, or Common Crawl's
    ranks as a file, a URL or a release (cc-main-2026-apr-may-jun/domain). Of a release or URL, the first 1,000,000
    lines are read.

    With --as-of, A is the folder of a crawl, and there is no B. The crawl as it was then is compared with the crawl
    now, or with the crawl at a later moment if --as-of is given twice. The pages are ranked anew for both, by the
    algorithm that --by names.
    """
    if len(by) > 2:
        raise click.UsageError("--by is given once, or twice: for A and for B")
    if moments and (b is not None or len(moments) > 2):
        raise click.UsageError("--as-of compares a crawl with itself: name one crawl, and one moment or two")
    if b is None and not moments:
        raise click.UsageError("Missing argument 'B'. A crawl is compared with itself by --as-of.")
    if picture is not None:
        from inlink import plot
        from inlink.plot.saving import check

        check(picture)
    from inlink.sources.diff import diff as compare

    names = ((by or ("pagerank",)) * 2)[:2]
    if moments:
        a, b = (ranked_then(a, name, when) for name, when in zip(names, (*moments, None), strict=False))
    assert b is not None
    found = compare(a, b, by=(names[0], names[1]), persistence=persistence)
    moved = "risen" if risen else "moved"
    tables = {
        f"{moved} by place": found.movers(count, by="place", within=within, risen=risen),
        f"{moved} by value": found.movers(count, by="value", within=within, risen=risen),
        "only in B": found.new(count),
        "only in A": found.gone(count),
    }

    def show(_: object) -> None:
        for line in found.facts():
            say(printable(line))
        rows = [[what, *_cells(change)] for what, changes in tables.items() for change in changes]
        columns = ["", "place A", "place B", "value A", "value B", "node"]
        show_table(columns, rows, right=(1, 2, 3, 4))

    show_answer(_as_json(found, tables), as_json, show)
    if picture is not None:
        plot.save(plot.diff(found), picture)
        if not as_json:
            say(f"{picture}: {picture.stat().st_size:,} bytes")


def _cells(change: "Change") -> list[object]:
    """Return the cells of a row; the cell for the list that lacks the node says what that means."""
    places = [change.told if place is None else place for place in (change.place_a, change.place_b)]
    values = ["" if value is None else f"{value:.6g}" for value in (change.value_a, change.value_b)]
    return [*places, *values, change.name]


def _as_json(found: "Diff", tables: "dict[str, list[Change]]") -> dict[str, Any]:
    lists = {
        side: {"name": ranks.name, "nodes": len(ranks), "complete": ranks.complete, "whole": ranks.whole}
        for side, ranks in (("a", found.a), ("b", found.b))
    }
    return {
        **lists,
        "common": found.common,
        "overlaps": [overlap._asdict() for overlap in found.overlaps],
        "kendall": found.kendall,
        "spearman": found.spearman,
        "rank_biased_overlap": found.rank_biased_overlap,
        "persistence": found.persistence,
        **{what.replace(" ", "_").lower(): [row._asdict() for row in rows] for what, rows in tables.items()},
    }
