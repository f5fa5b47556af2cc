"""Write JSON for D3, Pajek, DOT and GML. Nodes are numbers with names as labels. Each node and each arc is a line."""

import html
import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from inlink.errors import OutputError
from inlink.graph.graph import Graph
from inlink.sources.write import (
    Columns,
    Written,
    arc_blocks,
    as_text,
    from_one,
    join_rows,
    node_blocks,
    refuse,
    refuse_bytes,
    refuse_columns,
    write_arcs,
    written,
)

__all__ = ["as_json", "write_dot", "write_gml", "write_json", "write_pajek"]

_REMEDY = "Write .parquet or .sqlite"


def _nodes(
    graph: Graph, path: Path, columns: Columns, check: Callable[[str], bool] | None = None, what: str = ""
) -> Iterator[tuple[int, str | None, list[Any]]]:
    """Yield the number, the name and the columns of each node; None in place of a value that is not finite.

    Names that are not UTF-8, and names that ``check`` does not accept, are refused.
    """
    names = graph.names
    for low, high in node_blocks(graph):
        parts = [values[low:high].tolist() for values in columns.values()]
        labels = [None] * (high - low) if names is None else names[low:high]
        for node, name in enumerate(labels, low):
            if name is not None and names is not None:
                if any("\udc80" <= character <= "\udcff" for character in name):
                    refuse(path, names, node, "is not UTF-8, as this format requires", _REMEDY)
                if check is not None and not check(name):
                    refuse(path, names, node, what, _REMEDY)
            row = [part[node - low] for part in parts]
            yield node, name, [value if math.isfinite(value) else None for value in row]


# -- JSON ----------------------------------------------------------------------------------------------------------


def as_json(value: Any) -> str:
    """Return a value as JSON that can be put into an HTML page, between the tags of a script."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # These characters have no meaning in JSON, so they occur only in strings.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def write_json(graph: Graph, path: Path, columns: Columns) -> Written:
    """See :func:`inlink.sources.write.write_graph`."""
    with written(path) as file:
        file.write(b'{"directed":true,"multigraph":false,"graph":{},"nodes":[\n')
        for node, name, values in _nodes(graph, path, columns):
            row: dict[str, Any] = {"id": node} if name is None else {"id": node, "name": name}
            row |= zip(columns, values, strict=True)
            file.write((",\n" if node else "").encode() + as_json(row).encode())
        file.write(b'\n],"links":[\n')
        separator = b""
        for sources, targets, weights in arc_blocks(graph):
            extra: list[Any] = [] if weights is None else [b',"weight":', as_text(weights)]
            ends: list[Any] = [b'{"source":', as_text(sources), b',"target":', as_text(targets)]
            file.write(separator + join_rows(*ends, *extra, b"},\n")[:-2])
            separator = b",\n"
        file.write(b"\n]}\n")
    return Written([path])


# -- Pajek ---------------------------------------------------------------------------------------------------------


def write_pajek(graph: Graph, path: Path, columns: Columns) -> Written:
    """See :func:`inlink.sources.write.write_graph`."""
    refuse_columns(path, columns)
    refuse_bytes(path, graph.names, b'"\\\r\n', "contains a quote, a backslash or a line end", _REMEDY)
    with written(path) as file:
        file.write(b"*Vertices %d\n" % graph.num_nodes)
        for node, name, _ in _nodes(graph, path, {}):
            file.write(b'%d "%b"\n' % (node + 1, str(node if name is None else name).encode()))
        file.write(b"*Arcs\n")
        write_arcs(graph, file, b"", b" ", b" ", b"\n", from_one)
    return Written([path])


# -- DOT -----------------------------------------------------------------------------------------------------------


def _dot(text: str) -> str:
    # Graphviz reads \n, \N and entities of HTML in labels.
    text = text.replace("\\", "\\\\").replace("&", "&amp;").replace('"', '\\"')
    return '"' + text.replace("\r", "&#13;").replace("\n", "&#10;") + '"'


def write_dot(graph: Graph, path: Path, columns: Columns) -> Written:
    """See :func:`inlink.sources.write.write_graph`."""
    refuse_bytes(path, graph.names, b"\0", "contains a zero byte", _REMEDY)
    keys = [_dot(name) for name in columns]
    with written(path) as file:
        file.write(b'digraph {\ngraph [charset="UTF-8"]\n')
        for node, name, values in _nodes(graph, path, columns):
            parts = [] if name is None else [f"label={_dot(name)}"]
            parts += [
                f"{key}={value!r}" for key, value in zip(keys, values, strict=True) if value is not None
            ]
            file.write(f"{node} [{' '.join(parts)}]\n".encode())
        write_arcs(graph, file, b"", b" -> ", b" [weight=", b"\n" if not graph.is_weighted else b"]\n")
        file.write(b"}\n")
    return Written([path])


# -- GML -----------------------------------------------------------------------------------------------------------


def _gml(text: str) -> str:
    return re.sub(r'[^ -~]|[&"]', lambda match: f"&#{ord(match[0])};", text)


def _gml_keys(path: Path, columns: Columns) -> list[str]:
    """Return the names of columns as keys: letters, digits and underscores, a letter first."""
    keys = [re.sub(r"[^A-Za-z0-9_]", "_", name) for name in columns]
    keys = [key if key[:1].isalpha() else f"c{key}" for key in keys]
    if len({*keys, "id", "label"}) < len(keys) + 2:
        raise OutputError(f"{path}: columns {', '.join(columns)} have the same name in GML. Rename them.")
    return keys


def write_gml(graph: Graph, path: Path, columns: Columns) -> Written:
    """See :func:`inlink.sources.write.write_graph`."""
    keys = _gml_keys(path, columns)
    # Readers differ on control characters.
    what = "contains a control character or a code that is no character"
    nodes = _nodes(graph, path, columns, lambda name: html.unescape(_gml(name)) == name, what)
    with written(path) as file:
        file.write(b"graph [\n  directed 1\n")
        for node, name, values in nodes:
            label = "" if name is None else f' label "{_gml(name)}"'
            # In GML the point distinguishes real numbers from integers.
            rest = "".join(
                f" {key} {value!r}" for key, value in zip(keys, values, strict=True) if value is not None
            )
            file.write(f"  node [ id {node}{label}{rest} ]\n".encode())
        write_arcs(graph, file, b"  edge [ source ", b" target ", b" weight ", b" ]\n")
        file.write(b"]\n")
    return Written([path])
