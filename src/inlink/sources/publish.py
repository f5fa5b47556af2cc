"""Publish a graph and its rankings as a data set: Parquet tables, a card that describes them, and checksums.

=================== =============================================================================================
``nodes/``          ``id``, ``name``, ``outdegree``, ``indegree``, perhaps ``crawled``, and a column for each ranking
``arcs_by_source/`` ``source``, ``target`` (names), ``source_id``, ``target_id`` and perhaps ``weight``
``arcs_by_target/`` the same arcs by target, so that the links to a node stand together
``index.json``      the description of the graph and of its rankings, and the parts of each table
``sources.txt``     the inputs of the graph, a line each
``README.md``       the card: what the tables hold, how they were made, their limits and their licence
``SHA256SUMS``      for ``sha256sum --check SHA256SUMS``
=================== =============================================================================================

Ids count the nodes in the byte order of their names. Without names, nodes keep their numbers, and the columns with
names are left out. Each table is sorted, and cut into parts of 64 row groups: ``part-00000.parquet`` and so on. The
index says where each part begins, and the footer of a part says where each row group begins. So a reader finds a node
or its links by two small reads and a row group (:mod:`inlink.sources.published`). Page indexes
(https://parquet.apache.org/docs/file-format/pageindex/) are for readers that use them. The same graph gives the same
bytes.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from inlink.base.arrays import AnyArray, Float64Array, UInt32Array, slices
from inlink.base.extras import load
from inlink.base.folder import new_folder
from inlink.base.memory import require_memory
from inlink.base.progress import track
from inlink.base.strings import to_arrow
from inlink.base.table import counted
from inlink.errors import ParameterError
from inlink.graph.graph import Graph
from inlink.graph.interop import GraphLike, as_graph
from inlink.graph.names import Names, decode
from inlink.graph.views import arcs_in_order
from inlink.rank.ranking import Ranking, list_rankings
from inlink.sources.dataset import (
    BY_SOURCE,
    BY_TARGET,
    FIRST_BYTES,
    FORMAT,
    INDEX,
    KEY,
    NODES,
    part_name,
)
from inlink.sources.rankings import load_ranking

if TYPE_CHECKING:
    import pyarrow

# Rows of a row group. Most readers read columns of a whole group.
_NODES, _ARCS = 1 << 14, 1 << 16
# Row groups of a part. The footer of the part lists them, in about 50 kB.
_GROUPS = 64
# Bytes of names in a row group: Arrow's strings have at most 2 GB in a column.
_TEXT = 1 << 28
# Rows between two entries of a page index.
_PAGE = 1 << 13
_OWN = ("id", "name", "outdegree", "indegree", "crawled")
# Inputs that the card names.
_SOURCES = 10


def publish(
    graph: GraphLike,
    path: str | os.PathLike[str],
    *,
    rankings: Iterable[str] | None = None,
    title: str | None = None,
    licence: str | None = None,
) -> list[Path]:
    """Write a graph and its stored rankings to a new folder of tables with a card.

    Parameters
    ----------
    graph : Graph or what a ranking takes
        The graph, or the graph of a crawl.
    path : path-like
        The folder. It must not exist, and it gets its name when all files are complete.
    rankings : iterable of str or None
        The names of stored rankings. None: all of them.
    title : str or None
        The title of the card; None: the name of the folder.
    licence : str or None
        The licence of the data, such as ``"CC-BY-4.0"``. None: the card says that none is stated.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    inlink.errors.FolderError
        If there is no ranking of a name.
    inlink.errors.OutputError
        If the folder exists or cannot be written.
    inlink.errors.ParameterError
        If `graph` is not a graph, `rankings` is not a list of printable names, a ranking has the name of another
        column, or a title or a licence is not one line of text.
    inlink.errors.MissingExtraError
        If pyarrow is not installed.
    """
    path = Path(path)
    for name, line in (("title", title), ("licence", licence)):
        if line is not None and not (isinstance(line, str) and line.strip() and line.isprintable()):
            raise ParameterError(f"`{name}` must be one line of text; got {line!r:.60}")
    graph = as_graph(graph)
    if isinstance(rankings, str):
        raise ParameterError(
            f"`rankings` must be a list of names; got {rankings!r:.60}: write [{rankings!r:.60}]"
        )
    chosen = list(dict.fromkeys(list_rankings(graph) if rankings is None else rankings))
    for name in chosen:
        if not (isinstance(name, str) and name == _line(name)):
            raise ParameterError(f"`rankings`: a name must be printable text; got {name!r:.60}")
    loaded = {name: load_ranking(graph, name) for name in chosen}
    nodes = graph.num_nodes
    require_memory((16 + 16 * len(loaded)) * nodes, f"columns of {nodes:,} nodes")
    columns = _columns(loaded, graph)
    order = None if graph.names is None else graph.names.order
    description = _description(graph, loaded)
    metadata = {KEY: json.dumps(description, sort_keys=True)}
    sources = [_line(_without_folder(source)) for source in graph.meta.get("sources", [])]
    with new_folder(path) as work:
        tables = {
            NODES: _write_nodes(work, graph, order, columns, metadata),
            BY_SOURCE: _write_arcs(work, BY_SOURCE, graph, order, metadata),
            BY_TARGET: _write_arcs(work, BY_TARGET, graph.transpose(), order, metadata),
        }
        (work / INDEX).write_text(json.dumps(description | {"tables": tables}, sort_keys=True, indent=1))
        (work / "sources.txt").write_text("".join(f"{source}\n" for source in sources), "utf-8")
        card = _card(title or _line(path.name), licence, description, sources)
        (work / "README.md").write_text(card, "utf-8")
        names = sorted(str(file.relative_to(work)) for file in work.rglob("*") if file.is_file())
        sums = "".join(f"{_sha256(work / name)}  {name}\n" for name in names)
        (work / "SHA256SUMS").write_text(sums)
    return [path / name for name in [*names, "SHA256SUMS"]]


def _columns(rankings: dict[str, Ranking], graph: Graph) -> dict[str, Float64Array]:
    """Return the values by the names of their columns. Pages that a crawl found after its ranking get NaN."""
    columns: dict[str, Float64Array] = {}
    for name, ranking in rankings.items():
        later = np.full(graph.num_nodes - len(ranking), np.nan)
        for column, values in ranking.columns.items():
            named = f"{name}_hubs" if column == "hubs" else name
            if named.lower() in {*_OWN, *(other.lower() for other in columns)}:
                raise ParameterError(
                    f"ranking {name}: the table of nodes has another column {named}. Leave one of the two out, or save "
                    "the ranking under another name"
                )
            columns[named] = np.concatenate([values, later])
    return columns


def _description(graph: Graph, rankings: dict[str, Ranking]) -> dict[str, Any]:
    """Return the description in the index and in the metadata of each part."""
    from inlink import __version__

    crawled = graph.crawled
    kept = (
        "algorithm",
        "parameters",
        "dangling",
        "error_bound",
        "residual",
        "iterations",
        "converged",
        "note",
        "date",
    )
    return {
        "version": FORMAT,
        "inlink": __version__,
        "graph": {
            "uuid": graph.uuid,
            "level": graph.level,
            "nodes": graph.num_nodes,
            "arcs": graph.num_arcs,
            "named": graph.names is not None,
            "weighted": graph.is_weighted,
            "crawled": None if crawled is None else int(np.count_nonzero(crawled)),
            "skipped": graph.meta.get("skipped", {}),
        },
        "rankings": {
            name: {key: value for key, value in ranking.description().items() if key in kept}
            | {"columns": [name, f"{name}_hubs"][: len(ranking.columns)], "nodes": len(ranking)}
            for name, ranking in rankings.items()
        },
    }


def _without_folder(source: str) -> str:
    """Return a source, such as ``/home/me/links.tsv (edgelist)``, without its folder. URLs stay as they are."""
    place, space, kind = source.rpartition(" (")
    return source if "://" in source else place.rstrip("/").rpartition("/")[2] + space + kind


# -- tables --------------------------------------------------------------------------------------------------


def _fields(pa: Any, graph: Graph, ends: Iterable[str]) -> list["pyarrow.Field"]:
    """Return the fields of names: text if all names are UTF-8, else bytes; none if the nodes have no names."""
    names = graph.names
    if names is None:
        return []
    kind = pa.string() if names.is_utf8() else pa.binary()
    return [pa.field(end, kind, nullable=False) for end in ends]


class _Table:
    """Writes a table whose rows are sorted by the columns of ``by``, in parts. It is a context manager."""

    def __init__(
        self, folder: Path, name: str, schema: "pyarrow.Schema", by: list[str], metadata: dict[str, str]
    ) -> None:
        pa, pq = load("pyarrow", "arrow", "Parquet"), load("pyarrow.parquet", "arrow", "Parquet")
        self.parts: list[dict[str, Any]] = []
        self._folder, self._name, self._schema, self._metadata = folder, name, schema, metadata
        self._groups = 0
        self._writer: Any = None
        integers = [field.name for field in schema if pa.types.is_integer(field.type)]
        texts = [field.name for field in schema if field.type in (pa.string(), pa.binary())]
        encodings = dict.fromkeys(integers, "DELTA_BINARY_PACKED") | dict.fromkeys(texts, "DELTA_BYTE_ARRAY")
        self._options = {
            "compression": "zstd",
            "use_dictionary": False,
            "column_encoding": encodings,
            "sorting_columns": [pq.SortingColumn(schema.get_field_index(name)) for name in by],
            "write_page_index": True,
            "write_page_checksum": True,
            "max_rows_per_page": _PAGE,
            "store_schema": False,
        }
        (folder / name).mkdir()

    def write(self, columns: list[Any], first: dict[str, Any]) -> None:
        """Write a row group. If it begins a part, ``first`` describes its first row in the index."""
        pa = load("pyarrow", "arrow", "Parquet")
        if self._writer is None:
            self._begin(first)
        cast = [
            pa.array(column).cast(field.type) for column, field in zip(columns, self._schema, strict=True)
        ]
        self._writer.write_table(
            pa.Table.from_arrays(cast, schema=self._schema), row_group_size=len(columns[0])
        )
        self.parts[-1]["rows"] += len(columns[0])
        self._groups += 1
        if self._groups == _GROUPS:
            self._end()

    def _begin(self, first: dict[str, Any]) -> None:
        path = self._folder / part_name(self._name, len(self.parts))
        self._writer = load("pyarrow.parquet", "arrow", "Parquet").ParquetWriter(
            path, self._schema, **self._options
        )
        self.parts.append({"rows": 0, **first})

    def _end(self) -> None:
        # In the metadata of the schema, it would need an Arrow schema in the file, which changes the type of strings.
        self._writer.add_key_value_metadata(self._metadata)
        self._writer.close()
        with (self._folder / part_name(self._name, len(self.parts) - 1)).open("rb") as file:
            # The last eight bytes are the length of the metadata before them, and a signature.
            self.parts[-1]["bytes"] = file.seek(-8, os.SEEK_END) + 8
            self.parts[-1]["footer"] = int.from_bytes(file.read(4), "little") + 8
        self._groups, self._writer = 0, None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            if self._writer is not None:
                with suppress(Exception):
                    self._writer.close()
            return
        # An empty table has a part too, for readers that look for its columns.
        if not self.parts:
            self._begin({"id": 0})
        if self._writer is not None:
            self._end()


def _row_groups(names: Names | None, rows: int, *columns: AnyArray) -> Iterator[slice]:
    """Yield slices of columns of nodes: at most ``rows`` rows, and about :data:`_TEXT` bytes of names."""
    groups = np.arange(len(columns[0])) // rows
    if names is not None:
        lengths = sum(
            (names.offsets[1:][nodes] - names.offsets[:-1][nodes]).astype(np.int64) for nodes in columns
        )
        groups += np.cumsum(lengths) // _TEXT
    bounds = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]
    yield from (slice(low, high) for low, high in pairwise(bounds) if low < high)


def _write_nodes(
    folder: Path,
    graph: Graph,
    order: UInt32Array | None,
    columns: dict[str, Float64Array],
    metadata: dict[str, str],
) -> list[dict[str, Any]]:
    """Write the nodes, and return the index of their parts."""
    pa, names, crawled = load("pyarrow", "arrow", "Parquet"), graph.names, graph.crawled
    numbers = [pa.field(name, pa.uint32(), nullable=False) for name in ("id", "outdegree", "indegree")]
    fields = [numbers[0], *_fields(pa, graph, ["name"]), *numbers[1:]]
    fields += [] if crawled is None else [pa.field("crawled", pa.bool_(), nullable=False)]
    fields += [pa.field(name, pa.float64(), nullable=False) for name in columns]
    of_nodes = [graph.outdegrees, graph.indegrees, *([] if crawled is None else [crawled]), *columns.values()]
    by = ["id" if names is None else "name"]
    with (
        track("writing nodes", graph.num_nodes, "nodes") as task,
        _Table(folder, NODES, pa.schema(fields), by, metadata) as table,
    ):
        for places in slices(graph.num_nodes, _NODES):
            block = np.arange(places.start, places.stop, dtype=np.uint32)
            for part in _row_groups(names, _NODES, block if order is None else order[block]):
                ids = block[part]
                nodes = ids if order is None else order[ids]
                texts = [] if names is None else [to_arrow(names.take(nodes))]
                first: dict[str, Any] = {"id": int(ids[0])}
                if names is not None:
                    # In JSON, a byte that is not UTF-8 is the escape of a lone surrogate.
                    first["name"] = decode(names.raw(int(nodes[0]))[:FIRST_BYTES])
                table.write([ids, *texts, *(values[nodes] for values in of_nodes)], first)
            task.advance(len(block))
    return table.parts


def _write_arcs(
    folder: Path, name: str, graph: Graph, order: UInt32Array | None, metadata: dict[str, str]
) -> list[dict[str, Any]]:
    """Write the arcs by source, or by target if ``graph`` is transposed. Return the index of the parts."""
    pa, names = load("pyarrow", "arrow", "Parquet"), graph.names
    fields = _fields(pa, graph, ("source", "target"))
    fields += [pa.field(name, pa.uint32(), nullable=False) for name in ("source_id", "target_id")]
    if graph.out_weights is not None:
        fields.append(pa.field("weight", pa.from_numpy_dtype(graph.out_weights.dtype), nullable=False))
    ends = ["source", "target"] if name == BY_SOURCE else ["target", "source"]
    by = [f"{end}_id" for end in ends] if names is None else ends
    with (
        track(f"writing arcs by {ends[0]}", graph.num_arcs, "arcs") as task,
        _Table(folder, name, pa.schema(fields), by, metadata) as table,
    ):
        for first, second, weights in arcs_in_order(graph, order, _ARCS):
            ids = (first, second) if name == BY_SOURCE else (second, first)
            nodes = ids if order is None else (order[ids[0]], order[ids[1]])
            # A row of the graph may be longer than a row group.
            for part in _row_groups(names, _ARCS, *nodes):
                texts = [] if names is None else [to_arrow(names.take(end[part])) for end in nodes]
                columns = [*texts, ids[0][part], ids[1][part], *([] if weights is None else [weights[part]])]
                table.write(columns, {"id": int(first[part][0])})
                task.advance(part.stop - part.start)
    return table.parts


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


# -- the card ------------------------------------------------------------------------------------------------

_USE = """\
## How to use it

The ten nodes with the most inlinks, and the links to one of them, in DuckDB:

```sql
SELECT {key}, indegree FROM 'nodes/*.parquet' ORDER BY indegree DESC LIMIT 10;
SELECT {source} FROM 'arcs_by_target/*.parquet' WHERE {target} = {example};
```

With Polars: `polars.scan_parquet("arcs_by_target/*.parquet").filter(polars.col("{target}") == {example}).collect()`.
With pandas and pyarrow, name the folder: `pandas.read_parquet("nodes")`, `pyarrow.parquet.read_table("nodes")`.

`inlink links FOLDER NAME`, `page`, `top` and `find` answer from this folder or from its URL. They read only the parts
that they need.

`index.json` has the description of the graph and of its rankings, and the rows, bytes and first row of each part. Each
part has the same description in its metadata, under the key `inlink`. `sha256sum --check SHA256SUMS` checks the files.
"""


def _card(title: str, licence: str | None, description: dict[str, Any], sources: list[str]) -> str:
    """Return the card as Markdown. Its head is the YAML that data set hubs read."""
    graph, rankings = description["graph"], description["rankings"]
    head = [f"pretty_name: {json.dumps(title, ensure_ascii=False)}"]
    head += [] if licence is None else [f"license: {json.dumps(licence, ensure_ascii=False)}"]
    head += ["tags:", "- graph", "- web-graph", "configs:"]
    for table in (NODES, BY_SOURCE, BY_TARGET):
        head += [f"- config_name: {table}", f"  data_files: {table}/*.parquet"]
    kind = graph["level"] or "node"
    count = counted(graph["nodes"], kind)
    made = f"A link graph of {count} and {counted(graph['arcs'], 'arc')}, with {counted(len(rankings), 'ranking')}"
    use = {"key": "name", "source": "source", "target": "target", "example": "'…'"}
    if not graph["named"]:
        use = {"key": "id", "source": "source_id", "target": "target_id", "example": "0"}
    return "\n".join(
        [
            "---",
            *head,
            "---",
            "",
            f"# {title}",
            "",
            f"{made}, written by inlink {description['inlink']}. It was built from:",
            "",
            *(f"- {_code(source)}" for source in sources[:_SOURCES] or ["a graph in memory"]),
            *[f"- and {len(sources) - _SOURCES:,} more, which are in `sources.txt`"]
            * (len(sources) > _SOURCES),
            "",
            "## Tables",
            "",
            *_tables(graph),
            "",
            "## Rankings",
            "",
            *_rankings(rankings),
            "",
            _USE.format(**use),
            "## Limits",
            "",
            *_limits(description),
            "",
            "## Licence",
            "",
            licence or "No licence is stated. Ask whoever published this data set.",
            "",
        ]
    )


def _code(text: object) -> str:
    """Return text as code in Markdown. Characters that would end the code or a cell of a table are replaced."""
    return f"`{_line(text).replace('`', 'ˋ').replace('|', '¦')}`"


def _line(text: object) -> str:
    return "".join(character if character.isprintable() else "\ufffd" for character in str(text))


def _tables(graph: dict[str, Any]) -> list[str]:
    named = graph["named"]
    order = ", in the byte order of names" if named else ""
    nodes = ["`id` | uint32 | the node's number" + order]
    nodes += ["`name` | string | the name; bytes if a name is not UTF-8"] * named
    nodes += [
        "`outdegree` | uint32 | number of nodes that it links to",
        "`indegree` | uint32 | number of nodes that link to it",
        *["`crawled` | boolean | whether the node was crawled"] * (graph["crawled"] is not None),
        "… | float64 | a column for each ranking, as the next table says",
    ]
    arcs = [
        "`source` | string | name of the linking node",
        "`target` | string | name of the linked node",
    ] * named
    arcs += ["`source_id` | uint32 | id of the linking node", "`target_id` | uint32 | id of the linked node"]
    arcs += ["`weight` | number | weight of the arc"] * graph["weighted"]
    lines = []
    for files, rows in ((f"`{NODES}/`", nodes), (f"`{BY_SOURCE}/`, `{BY_TARGET}/`", arcs)):
        lines += [f"{files}:", "", "| column | type | meaning |", "|---|---|---|"]
        lines += [*(f"| {row} |" for row in rows), ""]
    return [
        *lines,
        "The two tables of arcs have the same rows, each in the order of its name. A table is cut into parts.",
    ]


def _rankings(rankings: dict[str, Any]) -> list[str]:
    if not rankings:
        return ["None."]
    lines = ["| columns | algorithm | parameters | error | date |", "|---|---|---|---|---|"]
    for ranking in rankings.values():
        stated = {key: value for key, value in ranking["parameters"].items() if value is not None}
        parameters = ", ".join(f"{key} = {value}" for key, value in stated.items())
        bound = ranking["error_bound"]
        # JSON has "inf" if no bound can exist.
        error = f"at most {bound:.2g}" if isinstance(bound, float) else "no bound"
        columns = ", ".join(map(_code, ranking["columns"]))
        cells = [columns, _code(ranking["algorithm"]), _code(parameters), error, ranking["date"] or "unknown"]
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "An error is a proved bound on the L1 distance to the exact values: the sum of all nodes' errors.",
    ]
    notes = [
        f"- {_code(name)}: {_line(ranking['note'])}" for name, ranking in rankings.items() if ranking["note"]
    ]
    return [*lines, *(["", *notes] if notes else [])]


def _limits(description: dict[str, Any]) -> list[str]:
    graph = description["graph"]
    limits = ["- An arc stands once, however many links there are from its source to its target."]
    if graph["level"] in ("host", "domain"):
        limits.append(f"- Names of {graph['level']}s are reversed, such as `com.example.www`.")
    if graph["crawled"] is not None:
        limits.append(
            f"- {graph['crawled']:,} of {graph['nodes']:,} nodes were crawled. The others have no outlinks here, "
            "whatever their pages link to."
        )
    limits += [
        f"- Left out when the graph was built: {count:,} × {why}." for why, count in graph["skipped"].items()
    ]
    limits.append("- The rankings are those of this graph, not of the web.")
    for name, ranking in description["rankings"].items():
        if later := graph["nodes"] - ranking["nodes"]:
            limits.append(
                f"- {_code(name)} has no value (NaN) for {counted(later, 'node')} found after the ranking."
            )
    return limits
