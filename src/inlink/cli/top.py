"""``inlink top``: the best nodes of a ranking."""

from pathlib import Path

import click

from inlink.cli.options import graph_argument
from inlink.cli.show import show_json, show_table


@click.command()
@graph_argument
@click.option("--by", "name", default="pagerank", show_default=True, help="A ranking stored with the graph.")
@click.option(
    "-n", "--number", "count", type=click.IntRange(0), default=10, show_default=True, help="How many nodes."
)
@click.option("--hubs", is_flag=True, help="The best hubs first, of a ranking by HITS or SALSA.")
@click.option("--all", "every", is_flag=True, help="Of a crawl, also pages that were not crawled.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def top(graph: Path, name: str, count: int, hubs: bool, every: bool, as_json: bool) -> None:
    """Show the best nodes of GRAPH or a crawl: place, value, name. Tab-separated unless shown on a terminal.

    Of a crawl, the pages that were crawled are shown, with their places among all known pages.

    A ranking by HITS or SALSA has the hub score behind the value, which is the authority score.

    If the ranking has an error bound, one more column says which places are certain: the values of the neighbours there
    are further apart than the bound, so no exact computation would change them.
    """
    from inlink.sources.rankings import crawled_top, stored_ranking
    from inlink.store.reader import is_crawl

    if is_crawl(graph) and not every:
        best = crawled_top(graph, name, count, "hubs" if hubs else None)
    else:
        best = [(place, *row) for place, row in enumerate(_best(graph, name, count, hubs), 1)]
    ranking = stored_ranking(graph, name)
    places = None if hubs else ranking.places(best[-1][0] if best else 0)
    certain = None if places is None else places.certain.tolist()
    columns, rows = ["place", name, "node"], []
    for place, node, label, _ in best:
        row: dict[str, object] = {"place": place, "node": label, "value": float(ranking.values[node])}
        if "hubs" in ranking.columns:
            row["hub"] = float(ranking.hubs[node])
        if certain is not None:
            row["certain"] = certain[place - 1]
        rows.append(row)
    if as_json:
        show_json(rows)
        return
    if "hubs" in ranking.columns:
        columns.insert(2, "hub")
    if certain is not None:
        columns.append("place is")
    # A value of 0 says that no walk from the pages that were given reaches the node.
    trust = ranking.algorithm in ("trustrank", "anti-trustrank")
    show_table(columns, [_cells(row, trust) for row in rows], right=(0, 1, 2) if "hub" in columns else (0, 1))


def _cells(row: dict[str, object], trust: bool) -> list[object]:
    value = "not reached" if trust and not row["value"] else f"{row['value']:.6g}"
    cells = [row["place"], value, row["node"]]
    if "hub" in row:
        cells.insert(2, f"{row['hub']:.6g}")
    if "certain" in row:
        cells.append("certain" if row["certain"] else "open")
    return cells


def _best(graph: Path, name: str, count: int, hubs: bool) -> list[tuple[int, str | int, float]]:
    from inlink.crawl.view import MOST_ROWS, CrawlView
    from inlink.sources.rankings import top_of
    from inlink.store.reader import is_crawl

    if hubs or not (is_crawl(graph) and 0 < count <= MOST_ROWS):
        return top_of(graph, name, count, "hubs" if hubs else None)
    view = CrawlView.open(graph)
    part = view.top(name, count)
    while part.cursor is not None:
        part = view.top(name, count, part.cursor)
    return [(row.page, row.url, row.value) for row in part.rows]
