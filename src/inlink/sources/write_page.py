"""Write a neighbourhood as one HTML page that needs no network: its nodes can be dragged, searched and followed."""

import base64
import hashlib
import html
import re
from importlib.resources import files
from pathlib import Path

import numpy as np

from inlink.base.arrays import Float64Array
from inlink.base.declare import Parameter
from inlink.base.folder import atomic_file
from inlink.errors import OutputError
from inlink.graph.graph import Graph
from inlink.graph.neighbours import arcs_between, near, node_of
from inlink.rank.certain import best_nodes
from inlink.sources.write import Columns, Written
from inlink.sources.write_networks import as_json
from inlink.urls.labels import short_labels

__all__ = ["write_page"]

_MOST = Parameter(name="most", kind=int, at_least=1, at_most=1000)


def write_page(
    graph: Graph, path: Path, columns: Columns, *, around: str | None = None, most: int | None = None
) -> Written:
    """See :func:`inlink.sources.write.write_graph`. The first column gives the areas of the discs.

    Raises
    ------
    inlink.errors.OutputError
        If the graph has no nodes.
    inlink.errors.ParameterError
        If `most` is out of range.
    inlink.errors.UnknownNodeError
        If there is no node `around`.
    """
    most = int(_MOST.check(100 if most is None else most, "`most`"))
    if not graph.num_nodes:
        raise OutputError(f"{path}: the graph has no nodes to draw")
    by, column = next(iter(columns.items()), ("inlinks", graph.indegrees))
    values = np.nan_to_num(np.asarray(column, np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    centre = int(best_nodes(values, 1)[0]) if around is None else node_of(graph, around)
    chosen, all_near = _chosen(graph, centre, values, most)
    names = [_name(graph, node) for node in chosen]
    arcs = arcs_between(graph, chosen)
    shown = (
        "all nodes" if len(chosen) - 1 == all_near else f"the {len(chosen) - 1:,} best of {all_near:,} nodes"
    )
    labels, left_out = short_labels(names)
    without = f"; labels without {left_out}" if left_out else ""
    data = {
        "by": by,
        "facts": f"{shown} within two links; {len(arcs):,} links; areas by {by}{without}",
        "nodes": [
            {"name": name, "label": label, "value": max(float(values[node]), 0.0)}
            for node, name, label in zip(chosen, names, labels, strict=True)
        ],
        "links": arcs,
    }
    assets = files("inlink.sources") / "assets"
    script = (assets / "page.js").read_text()
    page = (assets / "page.html").read_text()
    parts = {
        "title": html.escape(f"Around {names[0]}"),
        "hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "data": as_json(data),
        "script": script,
    }
    # One pass over the page alone, so that nothing is replaced within a part.
    text = re.sub(r"@(title|hash|data|script)@", lambda match: parts[match[1]], page)
    with atomic_file(path) as work:
        work.write_text(text, encoding="utf-8")
    return Written([path])


def _name(graph: Graph, node: int) -> str:
    # A page in UTF-8 cannot hold other bytes.
    return str(node) if graph.names is None else graph.names.raw(node).decode(errors="replace")


def _chosen(graph: Graph, centre: int, values: Float64Array, most: int) -> tuple[list[int], int]:
    """Return the centre and the best nodes within two links, neighbours first; and the number of these nodes."""
    nodes, distances = near(graph, centre, 2)
    order = np.lexsort((nodes, -values[nodes], distances))[: most - 1]
    return [centre, *nodes[order].tolist()], len(nodes)
