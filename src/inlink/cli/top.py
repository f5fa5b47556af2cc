"""``inlink top`` and ``inlink diff``: the best nodes of a ranking, and what changed between two rankings."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from inlink.base.table import printable
from inlink.cli.lookups import lookups_at
from inlink.cli.options import Output, as_of_option, as_of_options, json_option, number_option
from inlink.cli.rank import ranked_then
from inlink.cli.remote import FolderOrUrl, Ranks, are_shards, view_of
from inlink.cli.sections import QUIET
from inlink.cli.show import note, say, show_answer, show_json, show_table
from inlink.errors import ParameterError

if TYPE_CHECKING:
    from inlink.sources.diff import Change, Diff


@click.command()
@click.argument("graph", metavar="GRAPH|DIR|URL", type=FolderOrUrl())
@click.option(
    "--by",
    "name",
    default="pagerank",
    show_default=True,
    help="Name of a ranking that is stored with the graph.",
)
@number_option("Number of nodes; at most 1,000 pages of a crawl.")
@click.option("--hubs", is_flag=True, help="Sort by hub score. Needs a ranking by HITS or SALSA.")
@click.option(
    "--uncrawled",
    is_flag=True,
    help="For a crawl: also pages that were not crawled, of hosts with crawled pages.",
)
@click.option("--foreign", is_flag=True, help="For a crawl: also pages of hosts without crawled pages.")
@click.option(
    "--content",
    is_flag=True,
    help="For a crawl: the ranking that inlink rank --content made, without links of menus and footers.",
)
@as_of_option
@json_option
def top(
    graph: Path | str,
    name: str,
    count: int,
    hubs: bool,
    uncrawled: bool,
    foreign: bool,
    content: bool,
    moment: str | None,
    as_json: bool,
) -> None:
    """Show the best nodes of GRAPH or a crawl: place, value, name. The output is tab-separated unless on a terminal.

    For a crawl, only crawled pages are shown, and the places are among them. --uncrawled and --foreign add other pages.
    For the first hundred pages, a last column has the title, or else the text of the link that led to the page.

    For a ranking by HITS or SALSA, the value is the authority score. A further column has the hub score.

    If the ranking has an error bound, a further column shows which places are certain. A place is certain if its value
    differs from its neighbours' values by more than the bound, so that the exact values have the same order.
    Betweenness with --epsilon has an interval for each node instead, and its places are certain with the confidence of
    the ranking.

    With --as-of, the pages of a crawl are ranked anew as of that moment. That ranking is not stored.
    """
    where = graph
    if content:
        if moment is not None:
            raise click.UsageError("--as-of ranks by all links: leave out --content")
        name = f"{name}-content"
    if moment is not None:
        graph = ranked_then(graph, name, moment)
    from inlink.store.reader import is_crawl

    rows: list[dict[str, object]] = []
    nodes = None if is_crawl(graph) else lookups_at(graph)
    if content and nodes is not None:
        raise ParameterError(f"{graph} is a graph: --content applies only to crawls")
    if content and isinstance(graph, Path) and not (graph / "rankings" / name).exists():
        raise ParameterError(f"{graph} has no ranking {name!r}: make it with inlink rank {graph} --content")
    if nodes is None:
        rows, algorithm = _best_pages(graph, where, name, count, hubs, uncrawled, foreign, as_json)
    elif uncrawled or foreign:
        raise ParameterError(f"{graph} is a graph: --uncrawled and --foreign apply only to crawls")
    else:
        best, algorithm = nodes.top(name, count, hubs=hubs)
        for ranked in best:
            label = ranked.node if ranked.name is None else ranked.name
            row: dict[str, object] = {"place": ranked.place, "node": label, "value": ranked.value}
            row |= {
                key: getattr(ranked, key) for key in ("hub", "certain") if getattr(ranked, key) is not None
            }
            rows.append(row)
    if as_json:
        show_json(rows)
        return
    columns, fields = ["place", name, "node"], {field for row in rows for field in row}
    if "hub" in fields:
        columns.insert(2, "hub")
    if "certain" in fields:
        columns.append("place is")
    if "text" in fields:
        columns.append("title")
    # A value of 0 means that no walk from the given pages reaches the node.
    trust = algorithm in ("trustrank", "anti-trustrank")
    show_table(columns, [_cells(row, trust) for row in rows], right=(0, 1, 2) if "hub" in columns else (0, 1))


def _best_pages(
    crawl: Path | str,
    where: Path | str,
    name: str,
    count: int,
    hubs: bool,
    uncrawled: bool,
    foreign: bool,
    as_json: bool,
) -> "tuple[list[dict[str, object]], str | None]":
    """The best pages of a ranking of a crawl, and the algorithm that made it. Say which pages take part."""
    from inlink.crawl.arguments import MOST_ROWS
    from inlink.crawl.questions.table import parts

    if count > MOST_ROWS:
        raise ParameterError(
            f"-n {count} is above {MOST_ROWS:,}, the most for a crawl: inlink export DIR --by {name} -o FILE writes all"
        )
    view = view_of(crawl)
    # Shards have an order in common by the ranks that order the crawl, and by no stored ranking.
    is_default = click.get_current_context().get_parameter_source("name") is ParameterSource.DEFAULT
    ranking = None if are_shards(crawl) and is_default and name == "pagerank" else name
    *_, part = parts(
        lambda cursor: view.top(
            ranking, max(count, 1), cursor, foreign=foreign, uncrawled=uncrawled, hubs=hubs
        )
    )
    if not (as_json or click.get_current_context().meta.get(QUIET)):
        options = {
            "uncrawled": (uncrawled, "other pages of their hosts"),
            "foreign": (foreign, "pages of other hosts"),
        }
        shown = "".join(f" and {pages}" for with_them, pages in options.values() if with_them)
        adds = "".join(
            f"; --{name} adds {pages}" for name, (with_them, pages) in options.items() if not with_them
        )
        menus = (
            ""
            if ranking is None or name.endswith("-content")
            else "; --content leaves out links of menus and footers"
        )
        note(f"{where}: crawled pages{shown}, best first{adds}{menus}")
    rows: list[dict[str, object]] = []
    for k, page in enumerate(part.rows[:count]):
        row: dict[str, object] = {"place": page.place, "node": page.url, "value": page.value}
        if part.hubs is not None:
            row["hub"] = part.hubs[k]
        if part.certain is not None:
            row["certain"] = part.certain[k]
        if any(other.text for other in part.rows):
            row["text"] = page.text
        rows.append(row)
    return rows, part.algorithm


def _cells(row: dict[str, object], trust: bool) -> list[object]:
    value = "not reached" if trust and not row["value"] else f"{row['value']:.6g}"
    cells = [row["place"], value, row["node"]]
    if "hub" in row:
        cells.insert(2, f"{row['hub']:.6g}")
    if "certain" in row:
        cells.append("certain" if row["certain"] else "open")
    if "text" in row:
        cells.append(row["text"])
    return cells


@click.command()
@click.argument("a", type=Ranks())
@click.argument("b", type=Ranks(), required=False)
@click.option(
    "--by",
    "by",
    multiple=True,
    help="The stored ranking, or pagerank or harmonic of Common Crawl's ranks. Twice: A's and B's. Default: pagerank.",
)
@number_option("Rows of each kind.")
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
        from inlink.plot.style import check

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
        rows = [[what, *_change_cells(change)] for what, changes in tables.items() for change in changes]
        columns = ["", "place A", "place B", "value A", "value B", "node"]
        show_table(columns, rows, right=(1, 2, 3, 4))

    show_answer(_as_json(found, tables), as_json, show)
    if picture is not None:
        plot.save(plot.diff(found), picture)
        if not as_json:
            say(f"{picture}: {picture.stat().st_size:,} bytes")


def _change_cells(change: "Change") -> list[object]:
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
