"""``inlink top``: the best nodes of a ranking."""

from pathlib import Path

import click

from inlink.cli.options import json_option
from inlink.cli.rank import ranked_then
from inlink.cli.remote import FolderOrUrl, remote
from inlink.cli.show import show_json, show_table
from inlink.cli.then import as_of_option


@click.command()
@click.argument("graph", metavar="GRAPH|DIR|URL", type=FolderOrUrl())
@click.option(
    "--by",
    "name",
    default="pagerank",
    show_default=True,
    help="Name of a ranking that is stored with the graph.",
)
@click.option(
    "-n", "--number", "count", type=click.IntRange(0), default=10, show_default=True, help="Number of nodes."
)
@click.option("--hubs", is_flag=True, help="Sort by hub score. Needs a ranking by HITS or SALSA.")
@click.option("--all", "every", is_flag=True, help="For a crawl, include pages that were not crawled.")
@as_of_option
@json_option
def top(
    graph: Path | str, name: str, count: int, hubs: bool, every: bool, moment: str | None, as_json: bool
) -> None:
    """Show the best nodes of GRAPH or a crawl: place, value, name. The output is tab-separated unless on a terminal.

    For a crawl, only the pages that were crawled are shown, with their places among all known pages.

    For a ranking by HITS or SALSA, the value is the authority score. A further column has the hub score.

    If the ranking has an error bound, a further column shows which places are certain. A place is certain if its value
    differs from its neighbours' values by more than the bound, so that the exact values have the same order.

    With --as-of, the pages of a crawl are ranked anew as of that moment. That ranking is not stored.
    """
    if moment is not None:
        graph = ranked_then(graph, name, moment)
    if isinstance(graph, str):
        show_best(*_best_there(graph, name, count, hubs, every), name, as_json)
        return
    from inlink.sources.rankings import crawled_top, stored_ranking, top_of
    from inlink.store.reader import is_crawl

    by = "hubs" if hubs else None
    if is_crawl(graph) and not every:
        best = crawled_top(graph, name, count, by)
    else:
        best = [(place, *row) for place, row in enumerate(top_of(graph, name, count, by), 1)]
    ranking = stored_ranking(graph, name)
    places = None if hubs else ranking.places(best[-1][0] if best else 0)
    certain = None if places is None else places.certain.tolist()
    rows = []
    for place, node, label, _ in best:
        row: dict[str, object] = {"place": place, "node": label, "value": float(ranking.values[node])}
        if "hubs" in ranking.columns:
            row["hub"] = float(ranking.hubs[node])
        if certain is not None:
            row["certain"] = certain[place - 1]
        rows.append(row)
    show_best(rows, ranking.algorithm, name, as_json)


def show_best(rows: "list[dict[str, object]]", algorithm: str | None, name: str, as_json: bool) -> None:
    """Print the best nodes of a ranking."""
    if as_json:
        show_json(rows)
        return
    columns, fields = ["place", name, "node"], {field for row in rows for field in row}
    if "hub" in fields:
        columns.insert(2, "hub")
    if "certain" in fields:
        columns.append("place is")
    # A value of 0 means that no walk from the given pages reaches the node.
    trust = algorithm in ("trustrank", "anti-trustrank")
    show_table(columns, [_cells(row, trust) for row in rows], right=(0, 1, 2) if "hub" in columns else (0, 1))


def _best_there(
    url: str, name: str, count: int, hubs: bool, every: bool
) -> "tuple[list[dict[str, object]], str | None]":
    """The best pages of a ranking of a crawl on a server, and the algorithm that made it."""
    from inlink.crawl.arguments import MOST_ROWS
    from inlink.crawl.questions.table import parts
    from inlink.errors import ParameterError

    if hubs or not 0 < count <= MOST_ROWS:
        raise ParameterError(
            f"{url}: --hubs, and -n beyond {MOST_ROWS:,}, need the crawl's folder: run it where the folder is"
        )
    view = remote(url)
    looked_at = count if every else MOST_ROWS
    *_, part = parts(lambda cursor: view.top(name, looked_at, cursor))
    rows: list[dict[str, object]] = []
    for k, page in enumerate(part.rows):
        if len(rows) == count or not (every or page.crawled):
            continue
        row: dict[str, object] = {"place": page.place, "node": page.url, "value": page.value}
        if part.hubs is not None:
            row["hub"] = part.hubs[k]
        if part.certain is not None:
            row["certain"] = part.certain[k]
        rows.append(row)
    return rows, part.algorithm


def _cells(row: dict[str, object], trust: bool) -> list[object]:
    value = "not reached" if trust and not row["value"] else f"{row['value']:.6g}"
    cells = [row["place"], value, row["node"]]
    if "hub" in row:
        cells.insert(2, f"{row['hub']:.6g}")
    if "certain" in row:
        cells.append("certain" if row["certain"] else "open")
    return cells
