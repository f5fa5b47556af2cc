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
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def top(graph: Path, name: str, count: int, as_json: bool) -> None:
    """Show the best nodes of GRAPH or a crawl: place, value, name. Tab-separated unless shown on a terminal.

    If the ranking has an error bound, a fourth column says which places are certain: the values of the neighbours there
    are further apart than the bound, so no exact computation would change them.
    """
    best = _best(graph, name, count)
    certain = _certain(graph, name, count)
    if as_json:
        rows = [{"place": k + 1, "node": node, "value": value} for k, (node, value) in enumerate(best)]
        show_json(rows if certain is None else [{**row, "certain": certain[k]} for k, row in enumerate(rows)])
        return
    trust = _is_trust(graph, name)
    table: list[tuple[object, ...]] = [
        (k + 1, "not reached" if trust and not value else f"{value:.6g}", node)
        for k, (node, value) in enumerate(best)
    ]
    columns = ["place", name, "node"]
    if certain is not None:
        columns.append("place is")
        table = [(*row, "certain" if certain[k] else "open") for k, row in enumerate(table)]
    show_table(columns, table, right=(0, 1))


def _certain(graph: Path, name: str, count: int) -> list[bool] | None:
    """Whether each of the first places is certain; None without an error bound."""
    from inlink.sources.rankings import stored_ranking

    places = stored_ranking(graph, name).places(count)
    return None if places is None else places.certain.tolist()


def _is_trust(graph: Path, name: str) -> bool:
    """Whether a value of 0 says that no walk from the pages that were given reaches the node."""
    from inlink.sources.rankings import stored_ranking

    return stored_ranking(graph, name).algorithm in ("trustrank", "anti-trustrank")


def _best(graph: Path, name: str, count: int) -> list[tuple[str | int, float]]:
    from inlink.crawl.view import MOST_ROWS, CrawlView
    from inlink.sources.rankings import top_of
    from inlink.store.reader import is_crawl

    if not (is_crawl(graph) and 0 < count <= MOST_ROWS):
        return top_of(graph, name, count)
    view = CrawlView.open(graph)
    part = view.top(name, count)
    while part.cursor is not None:
        part = view.top(name, count, part.cursor)
    return [(row.url, row.value) for row in part.rows]
