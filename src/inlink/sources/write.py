"""Write graphs in other programs' formats.

A file is written under a temporary name and renamed when it is complete. Rows are written in blocks, so memory does not
grow with the arcs. The same graph gives the same bytes. A name that a format cannot hold is refused before anything is
written. Formats that list only arcs leave out nodes without arcs; :class:`Written` has their number.
"""

import contextlib
import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, NoReturn, Unpack, cast

import msgspec
import numpy as np

from inlink.base.arrays import AnyArray, BoolArray, UInt32Array, slices
from inlink.base.declare import keywords
from inlink.base.extras import load
from inlink.base.folder import atomic_file
from inlink.base.memory import require_memory
from inlink.base.progress import track
from inlink.base.strings import Strings, bytes_in, to_arrow
from inlink.errors import OutputError, ParameterError
from inlink.graph.graph import Graph
from inlink.graph.names import Names
from inlink.graph.views import arc_batches
from inlink.rank.ranking import Ranking
from inlink.sources.formats import (
    FORMATS,
    AnchorOptions,
    BVGraphOptions,
    CellOptions,
    PageOptions,
    check_options,
    format_named,
    implementation,
)
from inlink.sources.matrixmarket import names_beside
from inlink.sources.tables import nodes_beside

# Number of arcs or nodes that are converted at a time.
ARCS = 1 << 18
Columns = Mapping[str, AnyArray]
# For each ranking among the columns its description.
Notes = Mapping[str, dict[str, Any]]


@dataclass(frozen=True)
class Written:
    """The files that a writer made.

    Attributes
    ----------
    paths : list of Path
        The files.
    left_out : int
        Number of nodes left out because the format cannot hold nodes without arcs.
    """

    paths: list[Path]
    left_out: int = 0


class WriteOptions(BVGraphOptions, PageOptions, CellOptions, AnchorOptions, total=False):
    """Those keywords of :func:`write_graph` that only some formats have."""


@keywords(WriteOptions)
def write_graph(
    graph: Graph,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    columns: Mapping[str, AnyArray | Ranking] | None = None,
    **options: Unpack[WriteOptions],
) -> Written:
    """Write a graph in the format of the file's extension.

    ========================== ======================================================================================
    ``.tsv``, ``.txt``         edge list: ``source TAB target [TAB weight]``; also ``.gz`` and ``.zst``
    ``.csv``                   edge list with a header, fields quoted where needed (also names that are numbers)
    ``.parquet``               an arc in each row; nodes with their columns in ``NAME.nodes.parquet`` beside it
    ``.sqlite``                tables ``nodes(id, name, …)`` and ``arcs(source, target, weight)`` with keys and indexes,
                               and ``meta(about, key, value)``
    ``.graphml``, ``.gexf``    nodes with labels and columns, arcs with weights; also ``.gml``, ``.dot`` (``.gv``)
    ``.json``                  ``nodes`` and ``links``, as D3 and NetworkX's ``node_link_graph`` read them
    ``.net``                   Pajek
    ``.html``                  a page with a map of the best nodes, and a table that can be searched
    ``.mtx``                   Matrix Market; names, one per line, in ``NAME.names.txt`` beside it
    ``.graph``                 WebGraph's BVGraph: ``.graph``, ``.properties`` and ``.offsets``, without weights; names,
                               one per line, in ``NAME.urls.gz``
    ``format="commoncrawl"``   a folder with vertices, edges and ranks; see :mod:`inlink.sources.write_commoncrawl`
    ========================== ======================================================================================

    Parameters
    ----------
    graph : Graph
        The graph to write.
    path : path-like
        The file or folder.
    format : str or None
        A name in :data:`inlink.sources.formats.FORMATS`; None: by the extension.
    columns : mapping of str to number[n], object[n] of str, or Ranking, or None
        A number for each node to write beside it. Parquet and SQLite get the description of a ranking too. Pajek,
        Matrix Market, BVGraph and edge lists cannot hold columns.
    window : int or None
        BVGraph: a list may be copied from one of this many nodes before it, from 0 (none is copied) to 2²⁰. None means
        7.
    max_references : int or None
        BVGraph: the largest number of lists that decoding one list may lead through. None means 3.
    min_interval : int or None
        BVGraph: the shortest run of consecutive successors that is an interval; 0: none is. None means 4.
    zeta_k : int or None
        BVGraph: the parameter of ζ codes, from 1 to 60. None means 3.
    codes : sequence of str or None
        BVGraph: codes other than WebGraph's, such as ``"RESIDUALS_GAMMA"``; see :data:`inlink.graph.encoder.FIELDS`.
    safe_cells : bool
        Edge lists: write ``'`` before names that spreadsheets would read as a formula.
    anchors : bool
        CSV, Parquet and SQLite, for a crawl: write the text of each link, as far as the crawl keeps it.
    around : str or None
        HTML: a node, by name or number, to show with the best nodes within two links. None: the best nodes of the whole
        graph, by the first column, or without columns by inlinks.
    most : int or None
        HTML: the largest number of nodes on the page, from 1 to 1000. None means 200.

    Returns
    -------
    Written
        The files, and the number of nodes that an edge list leaves out because they have no arcs.

    Raises
    ------
    inlink.errors.OutputError
        If the format cannot be written, or cannot hold a name or columns; or if the path cannot be written.
    inlink.errors.ParameterError
        If no format has the name, a column has not one number (or text, for Parquet and SQLite) for each node, or its
        name is one that formats use; or
        an option does not apply to the format, or is out of its range.
    """
    path = Path(path)
    entry = format_named(format or _format_of(path))
    if entry.writer is None:
        writable = ", ".join(name for name, other in FORMATS.items() if other.writer)
        raise OutputError(f"{path}: format {entry.name} cannot be written; choose from {writable}")
    wanted = check_options(path, entry, options, writing=True)
    given = (columns or {}).items()
    figures = {
        name: value.values if isinstance(value, Ranking) else np.asarray(value) for name, value in given
    }
    for name, values in figures.items():
        texts = values.dtype == object and entry.name in ("parquet", "sqlite")
        texts = texts and all(isinstance(value, str) for value in values)
        if len(values) != graph.num_nodes or not (texts or values.dtype.kind in "iuf"):
            raise ParameterError(
                f"column {name} must have one number for each of {graph.num_nodes:,} nodes; "
                f"got {values.dtype}[{len(values):,}]"
            )
        if name.lower() in ("id", "node", "name", "label"):
            raise ParameterError(f"column {name}: the format uses this name itself. Rename the column.")
    if entry.name in ("parquet", "sqlite"):
        wanted["notes"] = {name: value.description() for name, value in given if isinstance(value, Ranking)}
    require_memory(50 * graph.num_nodes, f"columns of {graph.num_nodes:,} nodes")
    writer: Callable[..., Written] = implementation(entry.writer)
    try:
        return writer(graph, path, figures, **wanted)
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"{path}: cannot be written ({reason})") from None


def _format_of(path: Path) -> str:
    name = path.name.lower()
    for entry in FORMATS.values():
        if any(name.endswith((extension, f"{extension}.gz")) for extension in entry.extensions):
            return entry.name
    extensions = sorted({extension for e in FORMATS.values() if e.writer for extension in e.extensions})
    raise OutputError(
        f"{path}: unknown extension. Use one of {', '.join(extensions)}, or name the format with --format."
    )


# -- blocks of arcs and nodes as text ------------------------------------------------------------------------


def arc_blocks(
    graph: Graph,
) -> Iterator[tuple[UInt32Array, UInt32Array, AnyArray | None]]:
    """Yield blocks of arcs in order of sources: sources uint32[k], targets uint32[k], weights number[k] or None."""
    with track("writing arcs", graph.num_arcs, "arcs") as task:
        for block in arc_batches(graph, ARCS):
            yield block
            task.advance(len(block[0]))


def anchors_in(graph: Graph, path: Path) -> Callable[[UInt32Array, UInt32Array], Strings]:
    """Return a function that gives the texts of links, by their sources and targets.

    Raises
    ------
    inlink.errors.ParameterError
        If the graph is not that of a crawl.
    """
    from inlink.sources.crawlgraph import CrawlGraph
    from inlink.store.blocks import anchors_of
    from inlink.store.reader import known_pages

    if not isinstance(graph, CrawlGraph):
        raise ParameterError(f"{path}: `anchors` applies only to a crawl: a graph keeps no texts of links")
    return partial(anchors_of, known_pages(graph.path, with_urls=False))


def node_blocks(graph: Graph) -> Iterator[tuple[int, int]]:
    """Yield the first node of each block of nodes, and the node behind it."""
    for part in slices(graph.num_nodes, ARCS):
        yield part.start, part.stop


def as_text(values: AnyArray) -> Strings:
    """Convert numbers to the shortest text that reads back as the same number; whole ones without a fraction."""
    if values.dtype == np.float32 or not np.isfinite(values).all():
        # A float32 would have more digits as a Python float, and JSON has no NaN.
        return Strings.of([text.removesuffix(b".0") for text in values.astype("S").tolist()])
    raw = msgspec.json.encode(values.tolist())[1:].replace(b"]", b",").replace(b".0,", b",")
    text = np.frombuffer(raw, np.uint8)
    ends = np.flatnonzero(text == ord(","))[: len(values)]
    offsets = np.zeros(len(values) + 1, np.uint64)
    # The commas before a number are left out.
    offsets[1:] = ends - np.arange(len(ends))
    return Strings(text[text != ord(",")], offsets)


def join_columns(*parts: Strings | bytes) -> Strings:
    """Return a column whose rows are the parts one after the other. Bytes are the same in each row."""
    columns = [Strings.of([part]) if isinstance(part, bytes) else part for part in parts]
    count = max(len(part) for part in parts if not isinstance(part, bytes))
    whole = Strings.concat(columns)
    places = np.empty((count, len(parts)), np.uint32)
    first = 0
    for place, column in enumerate(columns):
        places[:, place] = first + (np.arange(count) if isinstance(parts[place], Strings) else 0)
        first += len(column)
    joined = Names(whole.text, whole.offsets).take(places.ravel())
    return Strings(joined.text, joined.offsets[:: len(parts)])


def join_rows(*parts: Strings | bytes) -> bytes:
    """Return rows of text as bytes. Each row is the parts one after the other."""
    return join_columns(*parts).to_bytes()


@contextlib.contextmanager
def packed(path: Path, target: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing, compressed as the name of `target` says, with neither a time nor a name inside."""
    with path.open("wb") as raw:
        if target.suffix == ".gz":
            from isal import igzip

            with igzip.IGzipFile("", "wb", compresslevel=2, fileobj=raw, mtime=0) as out:  # type: ignore[no-untyped-call]
                yield cast(IO[bytes], out)
        elif target.suffix == ".zst":
            from inlink.base.zstd import ZstdFile

            with ZstdFile(raw, "w") as packer:
                yield cast(IO[bytes], packer)
        else:
            yield raw


@contextlib.contextmanager
def written(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that gets its name when it is complete, compressed as the name says."""
    with atomic_file(path) as work, packed(work, path) as file:
        yield file


def arc_rows(
    graph: Graph,
    start: bytes,
    middle: bytes,
    weight: bytes,
    end: bytes,
    text: Callable[[UInt32Array], Strings] = as_text,
    anchors: Callable[[UInt32Array, UInt32Array], Strings] | None = None,
    number: bytes | None = None,
) -> Iterator[bytes]:
    """Yield a row for each arc, in blocks.

    ``weight`` stands before weights and anchors, and ``text`` converts nodes. Rows begin with ``number`` and the number
    of the arc if it is given.
    """
    count = 0
    for sources, targets, weights in arc_blocks(graph):
        row: list[Strings | bytes] = [start, text(sources), middle, text(targets)]
        if number is not None:
            row = [number, as_text(np.arange(count, count + len(sources))), *row]
        row += [] if weights is None else [weight, as_text(weights)]
        row += [] if anchors is None else [weight, anchors(sources, targets)]
        yield join_rows(*row, end)
        count += len(sources)


def from_one(nodes: UInt32Array) -> Strings:
    """Return the text of nodes that are counted from 1."""
    return as_text(nodes.astype(np.uint64) + np.uint64(1))


def write_names(names: Names, file: IO[bytes]) -> None:
    """Write a name per line."""
    for _, column in names.columns():
        file.write(join_rows(column, b"\n"))


# -- what a format can hold ----------------------------------------------------------------------------------


def refuse_bytes(path: Path, names: Names | None, wrong: bytes, what: str, remedy: str) -> None:
    """Refuse names that contain one of the wrong bytes."""
    table = bytes_in(wrong)
    for low, column in () if names is None else names.columns():
        if len(rows := np.flatnonzero(column.count(table))):
            assert names is not None
            refuse(path, names, low + int(rows[0]), what, remedy)


def refuse(path: Path, names: Names, node: int, what: str, remedy: str) -> NoReturn:
    """Refuse the name of a node."""
    shown = repr(names.raw(node)[:200]).removeprefix("b")
    raise OutputError(f"{path}: the name {shown} of node {node:,} {what}. {remedy}.")


def refuse_columns(path: Path, columns: Columns) -> None:
    """Refuse columns."""
    if columns:
        raise OutputError(
            f"{path}: this format cannot hold columns ({', '.join(columns)}). "
            "Write .parquet, .sqlite, .graphml, .gexf, .gml, .json or .dot."
        )


def _left_out(graph: Graph) -> int:
    if graph.names is None:
        # The comment on top of the file gives the number of nodes.
        return 0
    with_arcs = np.diff(graph.out_rows.offsets) > 0
    for _, targets, _ in arc_blocks(graph):
        with_arcs[targets] = True
    return int(np.count_nonzero(~with_arcs))


# -- edge lists ----------------------------------------------------------------------------------------------

_PLAIN = re.compile(rb"https?://|[a-z0-9-]+(\.[a-z0-9-]+)+$")


def write_edge_list(
    graph: Graph, path: Path, columns: Columns, *, safe_cells: bool = False, anchors: bool = False
) -> Written:
    """See :func:`write_graph`."""
    refuse_columns(path, columns)
    comma = ".csv" in path.suffixes
    if anchors and not comma:
        raise OutputError(f"{path}: texts of links need a header: write .csv, .parquet or .sqlite")
    names, texts = graph.names, anchors_in(graph, path) if anchors else None

    def cells(column: Strings) -> Strings:
        column = column.safe_cells() if safe_cells else column
        return _quoted(column) if comma else column

    if names is not None and not comma:
        remedy = "Write .csv or .parquet"
        refuse_bytes(path, names, b"\t\n\r", "contains a tab or a line end", remedy)
        linking = np.flatnonzero(np.diff(graph.out_rows.offsets))
        linking = linking[names.offsets[linking] < names.offsets[linking + 1]]
        comments = linking[names.text[names.offsets[linking]] == ord("#")]
        if len(comments):
            refuse(path, names, int(comments[0]), "begins with #, as a comment does", remedy)
    with written(path) as file:
        file.write(_comment(graph, comma))
        if comma:
            heads = b",weight" * graph.is_weighted + b",anchor" * anchors
            file.write(b"source,target" + heads + b"\n")
        separator = b"," if comma else b"\t"
        text = as_text if names is None else lambda nodes: cells(names.take(nodes))
        links = None if texts is None else lambda sources, targets: cells(texts(sources, targets))
        file.writelines(arc_rows(graph, b"", separator, separator, b"\n", text, links))
    return Written([path], _left_out(graph))


def _comment(graph: Graph, comma: bool) -> bytes:
    """Return the comment that :func:`inlink.sources.edgelist.edge_list` needs if the arcs alone would be misread."""
    if graph.names is None:
        largest = int(np.flatnonzero(np.diff(graph.out_rows.offsets))[-1]) if graph.num_arcs else -1
        for _, targets, _ in arc_blocks(graph):
            largest = max(largest, int(targets.max()))
        return (
            b""
            if largest == graph.num_nodes - 1 and largest >= 0
            else b"# inlink: nodes=%d\n" % graph.num_nodes
        )
    if comma and graph.num_arcs:
        # Header and quotes are enough.
        return b""
    for sources, targets, _ in arc_blocks(graph):
        if all(_PLAIN.match(graph.names.raw(int(node))) for node in (sources[0], targets[0])):
            return b""
        break
    return b"# inlink: names\n"


_SPECIAL = bytes_in(b'",;\r\n\t#%')
_DIGITS = bytes_in(b"0123456789")


def _quoted(names: Strings) -> Strings:
    """Return fields of a CSV file, in quotes where they would otherwise be misread."""
    begins, ends = names.offsets[:-1], names.offsets[1:]
    # An empty name has only digits.
    plain = (names.count(_SPECIAL) == 0) & (names.count(~_DIGITS) > 0)
    plain[plain] = (names.text[begins[plain]] != ord(" ")) & (
        names.text[ends[plain] - np.uint64(1)] != ord(" ")
    )
    return in_quotes(names, ~plain)


def in_quotes(cells: Strings, odd: BoolArray) -> Strings:
    """Return fields of a CSV file, with those where `odd`, bool[n], is True in quotes."""
    rows = np.flatnonzero(odd)
    if not len(rows):
        return cells
    return cells.with_rows(rows, join_columns(b'"', cells.take(rows).replace(b'"', b'""'), b'"'))


# -- tables --------------------------------------------------------------------------------------------------


def _about(graph: Graph) -> dict[str, Any]:
    """Return the description of a graph, for the tables that it is written to."""
    where = {"source": None if graph.path is None else str(graph.path), "sources": graph.meta.get("sources")}
    return {**where, "level": graph.level, "nodes": graph.num_nodes, "arcs": graph.num_arcs}


def write_parquet(
    graph: Graph, path: Path, columns: Columns, *, notes: Notes, anchors: bool = False
) -> Written:
    """See :func:`write_graph`."""
    texts = anchors_in(graph, path) if anchors else None
    pa, pq = load("pyarrow", "arrow", "Parquet"), load("pyarrow.parquet", "arrow", "Parquet")
    names, beside = graph.names, nodes_beside(path)
    text = names is not None and names.is_utf8()
    kind = pa.uint32() if names is None else pa.large_string() if text else pa.large_binary()
    fields = [pa.field("source", kind, False), pa.field("target", kind, False)]
    if graph.out_rows.weights is not None:
        fields.append(pa.field("weight", pa.from_numpy_dtype(graph.out_rows.weights.dtype), False))
    if texts is not None:
        fields.append(pa.field("anchor", pa.large_string(), False))
    about = {"inlink.graph": _about(graph)}
    arcs = pa.schema(fields, metadata={name: json.dumps(value) for name, value in about.items()})
    about |= {f"inlink.ranking.{name}": note for name, note in notes.items()}
    nodes = pa.schema(
        [pa.field("node" if names is None else "name", kind, False)]
        + [pa.field(name, _arrow_type(pa, values), False) for name, values in columns.items()],
        metadata={name: json.dumps(value) for name, value in about.items()},
    )
    with atomic_file(path) as arc_work, atomic_file(beside) as node_work:
        with pq.ParquetWriter(node_work, nodes, compression="zstd") as file:
            for low, high in node_blocks(graph):
                key = (
                    pa.array(np.arange(low, high, dtype=np.uint32))
                    if names is None
                    else to_arrow(names.column(low, high), text=text)
                )
                arrays = [
                    key,
                    *(pa.array(values[low:high], _arrow_type(pa, values)) for values in columns.values()),
                ]
                file.write_batch(pa.record_batch(arrays, schema=nodes))
        with pq.ParquetWriter(arc_work, arcs, compression="zstd") as file:
            for sources, targets, weights in arc_blocks(graph):
                ends = [
                    pa.array(side) if names is None else to_arrow(names.take(side), text=text)
                    for side in (sources, targets)
                ]
                extra = [] if weights is None else [pa.array(weights)]
                extra += [] if texts is None else [to_arrow(texts(sources, targets), text=True)]
                file.write_batch(pa.record_batch([*ends, *extra], schema=arcs))
    return Written([path, beside])


def _arrow_type(pa: Any, values: AnyArray) -> Any:
    return pa.large_string() if values.dtype == object else pa.from_numpy_dtype(values.dtype)


def write_sqlite(
    graph: Graph, path: Path, columns: Columns, *, notes: Notes, anchors: bool = False
) -> Written:
    """See :func:`write_graph`."""
    texts = anchors_in(graph, path) if anchors else None
    if len({name.lower() for name in columns}) < len(columns):
        raise OutputError(
            f"{path}: SQLite does not distinguish upper and lower case in the names of columns: {', '.join(columns)}"
        )
    names = graph.names
    declared = ["id INTEGER PRIMARY KEY"] + (["name TEXT NOT NULL"] if names is not None else [])
    for name, values in columns.items():
        kind = {"f": "REAL", "O": "TEXT NOT NULL"}.get(values.dtype.kind, "INTEGER")
        declared.append(f'"{name.replace(chr(34), chr(34) * 2)}" {kind}')
    marks = ", ".join("?" * len(declared))
    end = "INTEGER NOT NULL REFERENCES nodes (id)"
    of_arcs = [f"source {end}", f"target {end}"] + ["weight NOT NULL"] * graph.is_weighted
    of_arcs += ["anchor TEXT NOT NULL"] * anchors
    # Columns are described by the name of their table and their own.
    about = {"graph": _about(graph)} | {f"nodes.{name}": note for name, note in notes.items()}
    with atomic_file(path) as work:
        connection = sqlite3.connect(work, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN")
            connection.execute(f"CREATE TABLE nodes ({', '.join(declared)})")
            # Arcs come in the order of this key, so the table is its own index.
            key = "PRIMARY KEY (source, target)"
            connection.execute(f"CREATE TABLE arcs ({', '.join(of_arcs)}, {key}) WITHOUT ROWID")
            connection.execute("CREATE TABLE meta (about TEXT, key TEXT, value, PRIMARY KEY (about, key))")
            for name, note in about.items():
                rows = [(name, key, _plain(value)) for key, value in note.items() if value is not None]
                connection.executemany("INSERT INTO meta VALUES (?, ?, ?)", rows)
            for low, high in node_blocks(graph):
                parts: list[list[Any]] = [list(range(low, high))]
                if names is not None:
                    parts.append([text_or_blob(raw) for raw in names.column(low, high).to_pylist()])
                parts += [values[low:high].tolist() for values in columns.values()]
                connection.executemany(f"INSERT INTO nodes VALUES ({marks})", zip(*parts, strict=True))
            for arc in arc_blocks(graph):
                parts = [values.tolist() for values in arc if values is not None]
                if texts is not None:
                    parts.append([text.decode() for text in texts(*arc[:2]).to_pylist()])
                marks = ", ".join("?" * len(parts))
                connection.executemany(f"INSERT INTO arcs VALUES ({marks})", zip(*parts, strict=True))
            if names is not None:
                connection.execute("CREATE UNIQUE INDEX nodes_name ON nodes (name)")
            connection.execute("CREATE INDEX arcs_target ON arcs (target)")
            connection.execute("COMMIT")
        finally:
            connection.close()
    return Written([path])


def _plain(value: object) -> object:
    """Return a value as SQLite can hold it: lists and dicts as JSON."""
    return json.dumps(value) if isinstance(value, list | dict) else value


def text_or_blob(raw: bytes) -> str | bytes:
    """Decode a name; return its bytes if they are not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


# -- Matrix Market -------------------------------------------------------------------------------------------


def write_matrix_market(graph: Graph, path: Path, columns: Columns) -> Written:
    """See :func:`write_graph`."""
    refuse_columns(path, columns)
    beside, names = names_beside(path), graph.names
    if names is None and beside.exists():
        raise OutputError(f"{beside} exists and would give this graph wrong names. Remove the file.")
    refuse_bytes(path, names, b"\n", "contains a line end", "Write .parquet or .csv")
    kind = b"pattern"
    if graph.out_rows.weights is not None:
        kind = b"real" if graph.out_rows.weights.dtype.kind == "f" else b"integer"
    with contextlib.ExitStack() as stack:
        work = stack.enter_context(atomic_file(path))
        if names is not None:
            with stack.enter_context(atomic_file(beside)).open("wb") as file:
                write_names(names, file)
        with packed(work, path) as out:
            out.write(b"%%MatrixMarket matrix coordinate " + kind + b" general\n")
            out.write(b"%d %d %d\n" % (graph.num_nodes, graph.num_nodes, graph.num_arcs))
            out.writelines(arc_rows(graph, b"", b" ", b" ", b"\n", from_one))
    return Written([path, beside] if names is not None else [path])
