"""Write a map of a graph's best nodes as one HTML page that needs no network, with a table that can be searched."""

import html
import re
from importlib.resources import files
from pathlib import Path

import numpy as np

from inlink.base.arrays import Float64Array
from inlink.base.declare import Parameter
from inlink.base.folder import atomic_file
from inlink.base.page import csp_hash
from inlink.errors import OutputError
from inlink.graph.graph import Graph
from inlink.graph.neighbours import near, node_of, specific_arcs
from inlink.rank.certain import best_nodes
from inlink.rank.ranking import title_of
from inlink.sources.write import Columns, Written
from inlink.sources.write_text import as_json
from inlink.urls.labels import sections, short_labels

_MOST = Parameter(name="most", kind=int, at_least=1, at_most=1000)
_DEFAULT = 200
# The most links in a page: about 200 kB.
_LINKS = 20_000
# The longest label in the table, in characters.
_LABEL = 80


def write_page(
    graph: Graph,
    path: Path,
    columns: Columns,
    *,
    around: str | None = None,
    most: int | None = None,
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
    most = int(_MOST.check(_DEFAULT if most is None else most, "`most`"))
    if not graph.num_nodes:
        raise OutputError(f"{path}: the graph has no nodes to draw")
    by, column = next(iter(columns.items()), ("inlinks", graph.indegrees))
    values = np.nan_to_num(np.asarray(column, np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    kind = f"{graph.level or 'node'}s"
    if around is None:
        chosen, where = best_nodes(values, most).tolist(), f"{graph.num_nodes:,} {kind}"
        every = len(chosen) == graph.num_nodes
    else:
        centre = node_of(graph, around)
        chosen, number = _around(graph, centre, values, most)
        every, where = (
            len(chosen) - 1 == number,
            f"{number + 1:,} {kind} within two links",
        )
    names = [_name(graph, node) for node in chosen]
    groups = sections(names)
    labels, left_out = short_labels(names, _LABEL)
    drawn, others = specific_arcs(graph, chosen, groups)
    links, by = len(drawn) + len(others), title_of(by)
    facts = [f"All {where}" if every else f"The {len(chosen):,} best of {where} by {by}"]
    facts.append(f"the {len(drawn):,} most specific of {links:,} links" if others else f"{links:,} links")
    if links > _LINKS:
        facts.append(f"a click shows links among the {_LINKS:,} most specific")
    if left_out:
        facts.append(f"names without {left_out}")
    headings = list(dict.fromkeys(groups))
    data = {
        "by": by,
        "facts": "; ".join(facts),
        "sections": [heading.removeprefix(left_out) or "other" for heading in headings],
        "nodes": [
            {
                "name": name,
                "label": label,
                "value": max(float(values[node]), 0.0),
                "section": headings.index(group),
                "into": int(graph.indegrees[node]),
                "out": int(graph.outdegrees[node]),
            }
            for node, name, label, group in zip(chosen, names, labels, groups, strict=True)
        ],
        # The links that are drawn come first.
        "links": drawn + others[: max(_LINKS - len(drawn), 0)],
        "drawn": len(drawn),
        "around": around is not None,
    }
    assets = files("inlink.sources") / "assets"
    texts = {kind: (assets / f"page.{kind}").read_text() for kind in ("html", "css", "js")}
    named = (
        names[0] if around is not None else "the links" if graph.path is None else graph.path.resolve().name
    )
    parts = {
        "title": html.escape(f"{'Map of' if around is None else 'Around'} {named}"),
        "data": as_json(data),
        "style": texts["css"],
        "script": texts["js"],
        "hash of style": csp_hash(texts["css"]),
        "hash of script": csp_hash(texts["js"]),
    }
    # One pass over the page alone, so that nothing is replaced within a part.
    text = re.sub(r"@([a-z ]+)@", lambda match: parts[match[1]], texts["html"])
    with atomic_file(path) as work:
        # The name of a graph's folder may have other bytes.
        work.write_text(text, encoding="utf-8", errors="replace")
    return Written([path])


def _name(graph: Graph, node: int) -> str:
    # A page in UTF-8 cannot hold other bytes.
    return str(node) if graph.names is None else graph.names.raw(node).decode(errors="replace")


def _around(graph: Graph, centre: int, values: Float64Array, most: int) -> tuple[list[int], int]:
    """Return the centre and the best nodes within two links, neighbours first; and the number of these nodes."""
    nodes, distances = near(graph, centre, 2)
    order = np.lexsort((nodes, -values[nodes], distances))[: most - 1]
    return [centre, *nodes[order].tolist()], len(nodes)
