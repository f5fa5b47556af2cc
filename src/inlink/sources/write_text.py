"""Write GraphML, GEXF, GML, JSON for D3, Pajek and DOT. Nodes are numbers with names as labels.

Rows are written one by one: a tree in memory would take gigabytes for a million arcs.
"""

import html
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from inlink.base.strings import Strings, bytes_in
from inlink.errors import OutputError
from inlink.graph.graph import Graph
from inlink.graph.names import Names
from inlink.sources.write import (
    Columns,
    Written,
    arc_rows,
    as_text,
    from_one,
    join_rows,
    node_blocks,
    refuse,
    refuse_bytes,
    refuse_columns,
    text_or_blob,
    written,
)

_REMEDY = "Write .parquet or .sqlite"

# The characters that stand for bytes that are not UTF-8.
_NOT_UTF8 = re.compile("[\udc80-\udcff]")


def _nodes(
    graph: Graph,
    path: Path,
    columns: Columns,
    row: Callable[[int, str | None, list[Any]], str],
    *,
    check: Callable[[str], object] | None = None,
    what: str = "",
) -> Iterator[bytes]:
    """Yield the row of each node: of its number, its name, and its columns. A value that is not finite is None.

    Names that are not UTF-8, and names that `check` does not
    accept, are refused.
    """
    names = graph.names
    for low, high in node_blocks(graph):
        parts = [
            [value if math.isfinite(value) else None for value in values[low:high].tolist()]
            for values in columns.values()
        ]
        labels = [None] * (high - low) if names is None else names[low:high]
        for node, name in enumerate(labels, low):
            if name is not None and names is not None:
                if not name.isascii() and _NOT_UTF8.search(name):
                    refuse(path, names, node, "is not UTF-8, as this format requires", _REMEDY)
                if check is not None and not check(name):
                    refuse(path, names, node, what, _REMEDY)
            yield row(node, name, [part[node - low] for part in parts]).encode()


def _write(path: Path, *parts: bytes | Iterable[bytes]) -> Written:
    """Write parts of a file, bytes or rows of bytes, one after the other."""
    with written(path) as file:
        for part in parts:
            file.writelines([part] if isinstance(part, bytes) else part)
    return Written([path])


# -- XML -----------------------------------------------------------------------------------------------------------

_ESCAPES = (
    (b"&", b"&amp;"),
    (b"<", b"&lt;"),
    (b">", b"&gt;"),
    (b'"', b"&quot;"),
    (b"\t", b"&#9;"),
    (b"\n", b"&#10;"),
    (b"\r", b"&#13;"),
)


def _escaped(values: Strings) -> Strings:
    for character, escape in _ESCAPES:
        values = values.replace(character, escape)
    return values


def _xml(text: str) -> bytes:
    return _escaped(Strings.of([text])).to_bytes()


def _check_xml(path: Path, names: Names | None) -> None:
    what = "contains characters that XML cannot represent"
    refuse_bytes(path, names, bytes(set(range(32)) - set(b"\t\n\r")), what, _REMEDY)
    if names is None:
        return
    for low, part in names.columns():
        # U+FFFE and U+FFFF.
        for node in np.flatnonzero(part.count(bytes_in(b"\xbe\xbf"))).tolist():
            if re.search(b"\xef\xbf[\xbe\xbf]", names.raw(low + node)):
                refuse(path, names, low + node, what, _REMEDY)
    if not names.is_utf8():
        node = next(k for k in range(len(names)) if isinstance(text_or_blob(names.raw(k)), bytes))
        refuse(path, names, node, "is not UTF-8, as XML requires", _REMEDY)


def _xml_nodes(
    graph: Graph, columns: Columns, row: Callable[[Strings, list[Any], list[Strings]], list[Any]]
) -> Iterator[bytes]:
    """Yield the rows of nodes in blocks: of their numbers, their escaped names (or nothing), and their columns."""
    for low, high in node_blocks(graph):
        names = [] if graph.names is None else [_escaped(graph.names.column(low, high))]
        values = [as_text(column[low:high]) for column in columns.values()]
        yield join_rows(*row(as_text(np.arange(low, high)), names, values))


def write_graphml(graph: Graph, path: Path, columns: Columns) -> Written:
    """See :func:`inlink.sources.write.write_graph`."""
    _check_xml(path, graph.names)

    def key(number: str, owner: str, name: str, kind: str = "double") -> bytes:
        return b'<key id="%b" for="%b" attr.name="%b" attr.type="%b"/>\n' % (
            *(text.encode() for text in (number, owner)),
            _xml(name),
            kind.encode(),
        )

    def row(numbers: Strings, names: list[Any], values: list[Strings]) -> list[Any]:
        parts: list[Any] = [b'<node id="', numbers, b'">']
        for name in names:
            parts += [b'<data key="label">', name, b"</data>"]
        for number, column in enumerate(values):
            parts += [b'<data key="c%d">' % number, column, b"</data>"]
        return [*parts, b"</node>\n"]

    end = b"</data></edge>\n" if graph.is_weighted else b'"/>\n'
    return _write(
        path,
        b'<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n',
        key("label", "node", "label", "string") + key("weight", "edge", "weight"),
        (key(f"c{number}", "node", name) for number, name in enumerate(columns)),
        b'<graph edgedefault="directed">\n',
        _xml_nodes(graph, columns, row),
        arc_rows(graph, b'<edge source="', b'" target="', b'"><data key="weight">', end),
        b"</graph>\n</graphml>\n",
    )


def write_gexf(graph: Graph, path: Path, columns: Columns) -> Written:
    """See :func:`inlink.sources.write.write_graph`."""
    _check_xml(path, graph.names)

    def row(numbers: Strings, names: list[Any], values: list[Strings]) -> list[Any]:
        parts: list[Any] = [b'<node id="', numbers]
        for name in names:
            parts += [b'" label="', name]
        if not values:
            return [*parts, b'"/>\n']
        parts.append(b'"><attvalues>')
        for number, column in enumerate(values):
            parts += [b'<attvalue for="%d" value="' % number, column, b'"/>']
        return [*parts, b"</attvalues></node>\n"]

    titles = b"".join(
        b'<attribute id="%d" title="%b" type="double"/>\n' % (number, _xml(name))
        for number, name in enumerate(columns)
    )
    attributes = b'<attributes class="node">\n%b</attributes>\n' % titles if titles else b""
    return _write(
        path,
        b'<?xml version="1.0" encoding="UTF-8"?>\n<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2">\n',
        b'<graph mode="static" defaultedgetype="directed">\n',
        attributes + b"<nodes>\n",
        _xml_nodes(graph, columns, row),
        b"</nodes>\n<edges>\n",
        arc_rows(graph, b'" source="', b'" target="', b'" weight="', b'"/>\n', number=b'<edge id="'),
        b"</edges>\n</graph>\n</gexf>\n",
    )


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

    def row(node: int, name: str | None, values: list[Any]) -> str:
        fields = {"id": node} | ({} if name is None else {"name": name})
        return (",\n" if node else "") + as_json(fields | dict(zip(columns, values, strict=True)))

    def links() -> Iterator[bytes]:
        first = True
        for rows in arc_rows(graph, b',\n{"source":', b',"target":', b',"weight":', b"}"):
            yield rows[2:] if first else rows
            first = False

    head = b'{"directed":true,"multigraph":false,"graph":{},"nodes":[\n'
    nodes = _nodes(graph, path, columns, row)
    return _write(path, head, nodes, b'\n],"links":[\n', links(), b"\n]}\n")


# -- Pajek ---------------------------------------------------------------------------------------------------------


def write_pajek(graph: Graph, path: Path, columns: Columns) -> Written:
    """See :func:`inlink.sources.write.write_graph`."""
    refuse_columns(path, columns)
    refuse_bytes(path, graph.names, b'"\\\r\n', "contains a quote, a backslash or a line end", _REMEDY)
    nodes = _nodes(graph, path, {}, lambda node, name, _: f'{node + 1} "{node if name is None else name}"\n')
    arcs = arc_rows(graph, b"", b" ", b" ", b"\n", from_one)
    return _write(path, b"*Vertices %d\n" % graph.num_nodes, nodes, b"*Arcs\n", arcs)


# -- DOT -----------------------------------------------------------------------------------------------------------


def _dot(text: str) -> str:
    # Graphviz reads \n, \N and entities of HTML in labels.
    text = text.replace("\\", "\\\\").replace("&", "&amp;").replace('"', '\\"')
    return '"' + text.replace("\r", "&#13;").replace("\n", "&#10;") + '"'


def write_dot(graph: Graph, path: Path, columns: Columns) -> Written:
    """See :func:`inlink.sources.write.write_graph`."""
    refuse_bytes(path, graph.names, b"\0", "contains a zero byte", _REMEDY)
    keys = [_dot(name) for name in columns]

    def row(node: int, name: str | None, values: list[Any]) -> str:
        parts = [] if name is None else [f"label={_dot(name)}"]
        parts += [f"{key}={value!r}" for key, value in zip(keys, values, strict=True) if value is not None]
        return f"{node} [{' '.join(parts)}]\n"

    end = b"]\n" if graph.is_weighted else b"\n"
    return _write(
        path,
        b'digraph {\ngraph [charset="UTF-8"]\n',
        _nodes(graph, path, columns, row),
        arc_rows(graph, b"", b" -> ", b" [weight=", end),
        b"}\n",
    )


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

    def row(node: int, name: str | None, values: list[Any]) -> str:
        label = "" if name is None else f' label "{_gml(name)}"'
        # In GML the point distinguishes real numbers from integers.
        rest = [f" {key} {value!r}" for key, value in zip(keys, values, strict=True) if value is not None]
        return f"  node [ id {node}{label}{''.join(rest)} ]\n"

    # Readers differ on control characters.
    what = "contains a control character or a code that is no character"
    return _write(
        path,
        b"graph [\n  directed 1\n",
        _nodes(graph, path, columns, row, check=lambda name: html.unescape(_gml(name)) == name, what=what),
        arc_rows(graph, b"  edge [ source ", b" target ", b" weight ", b" ]\n"),
        b"]\n",
    )
