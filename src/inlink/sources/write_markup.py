"""Write GraphML and GEXF as text, row by row: a tree in memory would take gigabytes for a million arcs."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from inlink.base.strings import Strings, bytes_in
from inlink.graph.graph import Graph
from inlink.graph.names import Names
from inlink.sources.write import (
    ARCS,
    Columns,
    Written,
    all_utf8,
    arc_blocks,
    as_text,
    join_rows,
    node_blocks,
    refuse,
    refuse_bytes,
    text_or_blob,
    write_arcs,
    written,
)

__all__ = ["write_gexf", "write_graphml"]

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


def _escaped_one(text: str) -> bytes:
    raw = text.encode()
    for character, escape in _ESCAPES:
        raw = raw.replace(character, escape)
    return raw


def _check_xml(path: Path, names: Names | None) -> None:
    what, remedy = "contains characters that XML cannot represent", "Write .parquet or .sqlite"
    refuse_bytes(path, names, bytes(set(range(32)) - set(b"\t\n\r")), what, remedy)
    if names is None:
        return
    for low in range(0, len(names), ARCS):
        part = names.column(low, min(low + ARCS, len(names)))
        # U+FFFE and U+FFFF.
        for node in np.flatnonzero(part.count(bytes_in(b"\xbe\xbf"))).tolist():
            if re.search(b"\xef\xbf[\xbe\xbf]", names.raw(low + node)):
                refuse(path, names, low + node, what, remedy)
    if not all_utf8(names):
        node = next(k for k in range(len(names)) if isinstance(text_or_blob(names.raw(k)), bytes))
        refuse(path, names, node, "is not UTF-8, as XML requires", remedy)


def write_graphml(graph: Graph, path: Path, columns: Columns) -> Written:
    """See :func:`write_graph`."""
    names = graph.names
    _check_xml(path, names)
    with written(path) as file:
        file.write(
            b'<?xml version="1.0" encoding="UTF-8"?>\n'
            b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
            b'<key id="label" for="node" attr.name="label" attr.type="string"/>\n'
            b'<key id="weight" for="edge" attr.name="weight" attr.type="double"/>\n'
        )
        for number, name in enumerate(columns):
            file.write(
                b'<key id="c%d" for="node" attr.name="%b" attr.type="double"/>\n'
                % (number, _escaped_one(name))
            )
        file.write(b'<graph edgedefault="directed">\n')
        for low, high in node_blocks(graph):
            parts: list[Any] = [b'<node id="', as_text(np.arange(low, high)), b'">']
            if names is not None:
                parts += [b'<data key="label">', _escaped(names.column(low, high)), b"</data>"]
            for number, values in enumerate(columns.values()):
                parts += [b'<data key="c%d">' % number, as_text(values[low:high]), b"</data>"]
            file.write(join_rows(*parts, b"</node>\n"))
        end = b"</data></edge>\n" if graph.is_weighted else b'"/>\n'
        write_arcs(graph, file, b'<edge source="', b'" target="', b'"><data key="weight">', end)
        file.write(b"</graph>\n</graphml>\n")
    return Written([path])


def write_gexf(graph: Graph, path: Path, columns: Columns) -> Written:
    """See :func:`write_graph`."""
    names = graph.names
    _check_xml(path, names)
    with written(path) as file:
        file.write(
            b'<?xml version="1.0" encoding="UTF-8"?>\n'
            b'<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2">\n'
            b'<graph mode="static" defaultedgetype="directed">\n'
        )
        if columns:
            file.write(b'<attributes class="node">\n')
            for number, name in enumerate(columns):
                file.write(b'<attribute id="%d" title="%b" type="double"/>\n' % (number, _escaped_one(name)))
            file.write(b"</attributes>\n")
        file.write(b"<nodes>\n")
        for low, high in node_blocks(graph):
            parts: list[Any] = [b'<node id="', as_text(np.arange(low, high))]
            if names is not None:
                parts += [b'" label="', _escaped(names.column(low, high))]
            parts.append(b'">' if columns else b'"/>\n')
            if columns:
                parts.append(b"<attvalues>")
                for number, values in enumerate(columns.values()):
                    parts += [
                        b'<attvalue for="%d" value="' % number,
                        as_text(values[low:high]),
                        b'"/>',
                    ]
                parts.append(b"</attvalues></node>\n")
            file.write(join_rows(*parts))
        file.write(b"</nodes>\n<edges>\n")
        number = 0
        for sources, targets, weights in arc_blocks(graph):
            ids = as_text(np.arange(number, number + len(sources)))
            number += len(sources)
            parts = [b'<edge id="', ids, b'" source="', as_text(sources), b'" target="', as_text(targets)]
            if weights is not None:
                parts += [b'" weight="', as_text(weights)]
            file.write(join_rows(*parts, b'"/>\n'))
        file.write(b"</edges>\n</graph>\n</gexf>\n")
    return Written([path])
