"""GraphML, GEXF and GML, the formats of drawing programs.

All three are read as a stream into arrays: NetworkX takes gigabytes for a million arcs, and refuses GML files with
repeated arcs. Nodes are named by their labels if labels are unique, else by their ids. Nodes without labels whose ids
count from 0 keep their numbers. An undirected edge becomes two arcs. Nested graphs are not read. Entity declarations
are refused, so that a small file cannot expand without bound.
"""

import html
import os
import re
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from inlink.base.opening import MAX_LINE, Stream, place_of, text_blocks
from inlink.errors import DamageError, FormatError, InputError
from inlink.graph.batches import ArcBatch
from inlink.graph.names import Names, encode
from inlink.graph.source import Source, level_of
from inlink.sources.edgelist import WEIGHT_WORDS
from inlink.sources.inputs import Location

_BYTES = 1 << 18
# Attributes that name a node. The first that is present counts.
_LABELS = ("label", "name", "url")
_WEIGHTS = sorted(WEIGHT_WORDS)


class _Collector:
    """Collects nodes and edges in the order of the file."""

    def __init__(self, path: Location) -> None:
        self.path = path
        self.line: Callable[[], int] = lambda: 0
        self.ids: dict[str, int] = {}
        self.labels: dict[int, str] = {}
        self.ends, self.weights, self.both = array("L"), array("d"), bytearray()
        self.weighted = False

    def fail(self, what: str) -> InputError:
        return InputError(f"{self.path}, line {self.line():,}: {what}")

    def node(self, key: str | None, label: str | None = None) -> int:
        if key is None:
            raise self.fail("node without id")
        number = self.ids.setdefault(key, len(self.ids))
        if label is not None:
            self.labels[number] = label
        return number

    def edge(self, source: str | None, target: str | None, weight: str | None, both: bool) -> None:
        if source is None or target is None:
            raise self.fail("edge without source or target")
        value = 1.0
        if weight is not None:
            try:
                value = float(weight)
            except ValueError:
                value = -1.0
            if not 0 < value < float("inf"):
                raise self.fail(f"weight of an edge must be a finite number above 0; got {weight[:100]!r}")
            self.weighted = True
        self.ends.append(self.node(source))
        self.ends.append(self.node(target))
        self.weights.append(value)
        self.both.append(both)

    def source(self) -> Source:
        ends = np.array(self.ends, np.uint32).reshape(-1, 2)
        turned = np.array(self.both, bool) & (ends[:, 0] != ends[:, 1])
        weights = np.array(self.weights) if self.weighted else None
        batches = [ArcBatch(ends[:, 0].copy(), ends[:, 1].copy(), None, weights)]
        if turned.any():
            again = None if weights is None else weights[turned]
            batches.append(ArcBatch(ends[turned, 1], ends[turned, 0], None, again))
        count = len(self.ids)
        names: list[str] = list(self.ids)
        if len(set(self.labels.values())) == count:
            names = [self.labels[number] for number in range(count)]
        elif not self.labels and all(name == str(number) for number, name in enumerate(names)):
            return Source(iter(batches), None, count)
        raw = [encode(name) for name in names]
        return Source(iter(batches), Names.of(raw), count, level_of(raw))


def _read_xml(path: str | os.PathLike[str], kind: "type[_GraphML | _GEXF]") -> Source:
    path = place_of(path)
    collector = _Collector(path)
    reader = kind(collector)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    collector.line = lambda: parser.CurrentLineNumber

    def refuse(*_: Any) -> None:
        raise FormatError(
            f"{path}, line {parser.CurrentLineNumber:,}: the file declares an entity. Remove the declaration."
        )

    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = lambda name, values: reader.start(name.rpartition(" ")[2], values)
    parser.EndElementHandler = lambda name: reader.end(name.rpartition(" ")[2])
    parser.CharacterDataHandler = reader.text
    fed = 0
    try:
        with Stream(path, f"reading {Path(path).name}") as stream:
            while block := stream.read(_BYTES):
                parser.Parse(block, False)
                fed += len(block)
                if fed - parser.CurrentByteIndex > MAX_LINE:
                    raise collector.fail(f"tag of more than {MAX_LINE >> 20} MB")
            parser.Parse(b"", True)
    except expat.ExpatError as error:
        what = expat.errors.messages[error.code]
        raise DamageError(
            f"{path}, line {error.lineno:,}: not well-formed XML ({what}): the file is truncated or damaged"
        ) from None
    except (LookupError, ValueError) as error:
        # Python does not know the encoding.
        raise FormatError(f"{path}: cannot be read ({error}): convert it to UTF-8 first") from None
    return collector.source()


class _GraphML:
    """Elements of GraphML: ``key`` declares attributes, ``data`` holds their values."""

    def __init__(self, collector: _Collector) -> None:
        self.to = collector
        self.undirected = False
        # Keys of labels, with their places in _LABELS, and keys of weights, with their defaults.
        self.labels: dict[str, int] = {}
        self.weights: dict[str, str | None] = {}
        # The key that is being declared.
        self.key = ""
        self.node: str | None = None
        self.best = len(_LABELS)
        self.label: str | None = None
        self.edge: dict[str, str] | None = None
        self.weight: str | None = None
        # The key of the data that are being read.
        self.data: str | None = None
        self.parts: list[str] = []
        self.length = 0

    def start(self, name: str, values: dict[str, str]) -> None:
        if name == "node":
            self.node, self.label, self.best = values.get("id"), None, len(_LABELS)
            self.to.node(self.node)
        elif name == "edge":
            self.edge, self.weight = values, None
        elif name in ("data", "default"):
            self.data = values.get("key", "") if name == "data" else "default"
            self.parts, self.length = [], 0
        elif name == "graph":
            self.undirected = values.get("edgedefault") == "undirected"
        elif name == "key":
            self.key = values.get("id", "")
            title, kind = values.get("attr.name", self.key).lower(), values.get("for", "all")
            if kind in ("node", "all") and title in _LABELS:
                self.labels[self.key] = _LABELS.index(title)
            if kind in ("edge", "all") and title in WEIGHT_WORDS:
                self.weights[self.key] = None
        elif name == "hyperedge":
            raise self.to.fail("hyperedges cannot be read, only edges between two nodes")

    def text(self, text: str) -> None:
        if self.data is not None:
            self.parts.append(text)
            self.length += len(text)
            if self.length > MAX_LINE:
                raise self.to.fail(f"text of more than {MAX_LINE >> 20} MB")

    def end(self, name: str) -> None:
        if name == "data":
            key, text, self.data = self.data or "", "".join(self.parts), None
            if self.edge is not None:
                if key in self.weights:
                    self.weight = text.strip()
            elif self.node is not None and self.labels.get(key, self.best) < self.best:
                self.label, self.best = text, self.labels[key]
        elif name == "default":
            self.data = None
            if self.key in self.weights:
                self.weights[self.key] = "".join(self.parts).strip()
        elif name == "edge" and self.edge is not None:
            if self.weight is None:
                self.weight = next(filter(None, self.weights.values()), None)
            directed = self.edge.get("directed")
            both = self.undirected if directed is None else directed == "false"
            self.to.edge(self.edge.get("source"), self.edge.get("target"), self.weight, both)
            self.edge = None
        elif name == "node":
            if self.label is not None:
                self.to.node(self.node, self.label)
            self.node = None


class _GEXF:
    """Elements of GEXF: ids, labels and weights are attributes of ``node`` and ``edge``."""

    def __init__(self, collector: _Collector) -> None:
        self.to = collector
        # The default of the schema.
        self.undirected = True
        self.weight_key: str | None = None
        # True if the declared attributes belong to edges.
        self.edges = False
        self.edge: dict[str, str] | None = None

    def start(self, name: str, values: dict[str, str]) -> None:
        if name == "node":
            self.to.node(values.get("id"), values.get("label"))
        elif name == "edge":
            self.edge = values
        elif name == "attributes":
            self.edges = values.get("class") == "edge"
        elif name == "attribute" and self.edges and values.get("title", "").lower() in WEIGHT_WORDS:
            self.weight_key = values.get("id")
        elif name == "attvalue" and self.edge is not None and self.weight_key is not None:
            if values.get("for", values.get("id")) == self.weight_key:
                self.edge.setdefault("weight", values.get("value", ""))
        elif name == "graph":
            self.undirected = values.get("defaultedgetype", "undirected") != "directed"

    def text(self, text: str) -> None:
        pass

    def end(self, name: str) -> None:
        if name == "edge" and self.edge is not None:
            kind = self.edge.get("type")
            both = self.undirected if kind is None else kind in ("undirected", "mutual")
            self.to.edge(self.edge.get("source"), self.edge.get("target"), self.edge.get("weight"), both)
            self.edge = None


def graphml(path: str | os.PathLike[str]) -> Source:
    """Read GraphML. The label of a node is its attribute ``label``, ``name`` or ``url``; an arc's weight is ``weight``.

    Raises
    ------
    inlink.errors.InputError
        If a weight is not a finite number above 0, a node or edge has no ids, or the file has hyperedges or entities.
    inlink.errors.DamageError
        If the file is not well-formed XML.
    """
    return _read_xml(path, _GraphML)


def gexf(path: str | os.PathLike[str]) -> Source:
    """Read GEXF of any version. Raises as :func:`graphml`."""
    return _read_xml(path, _GEXF)


# -- GML --------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(rb'\s+|#[^\n]*\n|([A-Za-z_]\w*)|([+-]?[\d.][^\s\[\]"]*)|"([^"]*)"|([\[\]])')
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{0,31});")


def gml(path: str | os.PathLike[str]) -> Source:
    """Read GML. An arc's weight is its ``weight`` or ``value``. Files without ``directed 1`` are undirected.

    Raises
    ------
    inlink.errors.InputError
        If a line is not GML, a weight is not a finite number above 0, or a node or edge has no ids.
    inlink.errors.DamageError
        If a bracket or a quote is open when the file ends.
    """
    path = place_of(path)
    collector = _Collector(path)
    stack: list[str] = []
    item: dict[str, str] = {}
    key: str | None = None
    directed = False
    for kind, value in _tokens(collector):
        if value == "]" and kind == 4:
            if key is not None or not stack:
                raise collector.fail("] without [")
            closed = stack.pop()
            if stack == ["graph"] and closed == "node":
                collector.node(item.get("id"), item.get("label"))
            elif stack == ["graph"] and closed == "edge":
                weight = next((item[word] for word in [*_WEIGHTS, "value"] if word in item), None)
                collector.edge(item.get("source"), item.get("target"), weight, True)
        elif kind == 4:
            if key is None or len(stack) > 100:
                raise collector.fail("[ without a key before it, or nested too deep")
            stack.append(key)
            key = None
            if len(stack) == 2:
                item = {}
        elif key is None:
            if kind != 1:
                raise collector.fail(f"expected a key; got {value[:100]!r}")
            key = value
        else:
            if len(stack) == 2:
                item[key] = value
            elif stack == ["graph"] and key == "directed":
                directed = value == "1"
            key = None
    if stack or key is not None:
        raise DamageError(
            f"{path}: the file ends inside {' '.join(stack) or key}: it is truncated or damaged"
        )
    if directed:
        collector.both = bytearray(len(collector.both))
    return collector.source()


def _tokens(collector: _Collector) -> Iterator[tuple[int, str]]:
    """Yield the tokens of a GML file: kind (1 word, 2 number, 3 string, 4 bracket) and text."""
    path, line = collector.path, 1
    collector.line = lambda: line
    with Stream(path, f"reading {Path(path).name}") as stream:
        for block, last, carry in text_blocks(stream):
            data = block.tobytes()
            at = 0
            while at < len(data):
                match = _TOKEN.match(data, at)
                if match is None:
                    quote = data[at : at + 1] == b'"'
                    if quote and not last:
                        # The string continues in the next block.
                        break
                    if quote:
                        raise DamageError(
                            f"{path}, line {line:,}: the quote is not closed: the file is truncated or damaged"
                        )
                    raise collector.fail(f"not GML: {data[at : at + 20].decode('utf-8', 'replace')!r}")
                if match.lastindex:
                    text = match[match.lastindex].decode("utf-8", "surrogateescape")
                    if match.lastindex == 3:
                        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
                    yield match.lastindex, text
                line += match[0].count(b"\n")
                at = match.end()
            carry.at, carry.line = at, line
