"""``inlink near``: the neighbourhood of a node of a graph or crawl, or the nodes that share inlinks with it."""

from pathlib import Path
from typing import Any

import click

from inlink.cli.lookups import Row, graph_at, label, local_argument, node_argument, node_in, node_rows
from inlink.cli.options import json_option
from inlink.cli.show import note, show_answer, show_table


@click.command()
@local_argument
@node_argument
@click.option("--hops", type=click.IntRange(1), help="Maximum number of links from the node. Default: 1.")
@click.option(
    "--direction",
    type=click.Choice(["both", "in", "out"]),
    help="Follow links in both directions (the default), backwards (in) or forwards (out).",
)
@click.option(
    "--sharing", is_flag=True, help="Show nodes that share inlinks with the node, instead of its neighbours."
)
@click.option(
    "--by", "ranking", help="Sort the nodes at each distance by this stored ranking, and show its values."
)
@click.option(
    "-n", "--number", "count", type=click.IntRange(1), default=100, show_default=True, help="Number of nodes."
)
@json_option
def near(
    folder: Path,
    page: str,
    hops: int | None,
    direction: str | None,
    sharing: bool,
    ranking: str | None,
    count: int,
    as_json: bool,
) -> None:
    """Show the nodes around a node: distances in links, and names. The output is tab-separated unless on a terminal.

    With --sharing, show the nodes that share inlinks with NAME (co-citation), each with the number of nodes that link
    to both. The graph of a crawl is built each time, in a temporary folder.
    """
    import numpy as np

    from inlink.graph import neighbours
    from inlink.sources.rankings import load_ranking, values_of

    if sharing and (hops or direction):
        raise click.UsageError("--sharing cannot be combined with --hops or --direction: leave them out")
    graph = graph_at(folder)
    node = node_in(graph, page, folder)
    figures: Any
    if sharing:
        nodes, figures = neighbours.sharing(graph, node)
    else:
        nodes, figures = neighbours.near(graph, node, hops or 1, direction or "both")  # type: ignore[arg-type]
    values = None
    if ranking is not None:
        values = values_of(load_ranking(graph, ranking), graph, 0.0)[nodes]
        order = np.lexsort((nodes, -values, -figures.astype(np.int64) if sharing else figures))
        nodes, figures, values = nodes[order], figures[order], values[order]
    head = "shared" if sharing else "hops"
    rows: list[Row] = [
        {head: int(figures[k]), **row} | ({} if values is None else {"value": float(values[k])})
        for k, row in enumerate(node_rows(graph, nodes[:count].tolist()))
    ]

    def show(_: object) -> None:
        table = [
            [
                row[head],
                *([] if values is None else [f"{row['value']:.6g}"]),
                row["node"] if row["name"] is None else row["name"],
            ]
            for row in rows
        ]
        columns = [head, *([] if ranking is None else [ranking]), "name"]
        show_table(columns, table, right=range(len(columns) - 1))
        if len(nodes) > count:
            note(f"{len(nodes) - count:,} more: use -n to see them")

    show_answer({"nodes": len(nodes), "rows": rows}, as_json, show)
    if not rows:
        note(
            f"{label(graph, node)} {'shares no inlinks with another node' if sharing else 'has no such neighbours'}"
        )
