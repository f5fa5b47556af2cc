"""Look up nodes, links and ranks in a published graph, in a folder or behind a URL, without reading whole tables.

A look-up reads ``index.json``, the footers of the parts that it needs, and single row groups:

====== ===================================================================================================
node   the row group of ``nodes`` whose first and last name, in the footer's statistics, enclose the name
links  the row groups of ``arcs_by_target`` or ``arcs_by_source`` whose first and last id enclose the node
top    footers of all parts of ``nodes``, and row groups in the order of their largest values, until no
       other group can have a better node
find   the names of all row groups of ``nodes``
====== ===================================================================================================

The files may come from a stranger. Before sizes and places in them are used, they are compared with each other and with
the index. They limit how much is read.
"""

import io
import json
import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, repeat
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self

import msgspec
import numpy as np

from inlink.base.declare import Parameter
from inlink.base.decoding import converted
from inlink.base.extras import load
from inlink.base.memory import memory_bounded, require_memory
from inlink.base.opening import open_binary, read_span
from inlink.base.remote import UnreachableError, is_remote, restored
from inlink.base.strings import column_of
from inlink.base.table import counted, printable
from inlink.errors import DamageError, FolderError, InputError, ParameterError, UnknownNodeError
from inlink.graph.names import MAX_NODES, decode, encode, node_number
from inlink.graph.neighbours import names_for, number_for
from inlink.rank.ranking import Ranking
from inlink.sources.dataset import BY_SOURCE, BY_TARGET, FIRST_BYTES, FORMAT, INDEX, NODES, part_name
from inlink.sources.lookups import NamedNode, NodeFacts, RankedNode

if TYPE_CHECKING:
    from inlink.urls.matching import Kind

# The most bytes that an index, a footer, and a row group may have. For a row group, both packed and unpacked.
_MOST_INDEX, _MOST_FOOTER, _MOST_GROUP = 1 << 26, 1 << 24, 1 << 29
# The most bytes of memory for unpacking. In delta encoding, a file of 500 bytes can hold names of 300 MB.
_MOST_MEMORY = 1 << 31
# The most rows that a row group may have.
_MOST_ROWS = 1 << 20
# Footers and row groups that are kept for the next look-up.
_FOOTERS, _KEPT = 64, 4
_COUNT = Parameter(name="count", kind=int, at_least=0)
_BASIC = ("outdegree", "indegree")
_TEXTS = ("name", "source", "target")


class _Part(msgspec.Struct):
    """A part of a table, as the index describes it."""

    rows: int
    bytes: int
    footer: int
    id: int
    name: str = ""


class _Shape(msgspec.Struct):
    """The graph, as the index describes it."""

    nodes: int
    arcs: int
    named: bool
    level: str | None = None
    crawled: int | None = None


class _Described(msgspec.Struct):
    """A ranking, as the index describes it."""

    algorithm: str
    columns: list[str]
    parameters: dict[str, Any]
    iterations: int
    converged: bool
    error_bound: float | str | None = None
    residual: float | str | None = None


class _Index(msgspec.Struct):
    """``index.json``."""

    graph: _Shape
    rankings: dict[str, _Described]
    tables: dict[str, list[_Part]]


class _Window(io.RawIOBase):
    """A file whose bytes are known only in one span. Other reads fail."""

    def __init__(self, size: int, first: int, data: bytes) -> None:
        self._size, self._first, self._data, self._at = size, first, data, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        low = self._at - self._first
        if low < 0 or low + len(buffer) > len(self._data):
            raise OSError("a column is not where the footer says")
        buffer[:] = self._data[low : low + len(buffer)]
        self._at += len(buffer)
        return len(buffer)


class PublishedGraph:
    """A graph that ``inlink publish`` wrote, in a folder or behind a URL: nodes, links and ranks by look-ups.

    Each look-up reads only the parts of the tables that it needs. It needs pyarrow. Numbers of nodes are the ids of the
    tables.

    Attributes
    ----------
    place : str
        The folder or the URL.
    description : dict
        The content of ``index.json``.
    num_nodes, num_arcs : int
        The size of the graph.
    level : str or None
        ``"page"``, ``"host"`` or ``"domain"``; None if this is not known.
    rankings : list of str
        The names of the rankings.
    bytes_read, requests : int
        The number of bytes that were read so far, and the number of reads from files or requests to a server.
    """

    suggests = False

    def __init__(self, place: str, index: _Index, description: dict[str, Any], size: int) -> None:
        self.place, self.description = place, description
        self.num_nodes, self.num_arcs, self.level = index.graph.nodes, index.graph.arcs, index.graph.level
        self.rankings = list(index.rankings)
        self.bytes_read, self.requests = size, 1
        self._index = index
        self._versions: dict[str, str] = {}
        self._footers: dict[tuple[str, int], tuple[Any, dict[str, int]]] = {}
        self._groups: dict[tuple[Any, ...], list[Any]] = {}
        self._keeping = Lock()

    @classmethod
    def open(cls, place: str | os.PathLike[str]) -> Self:
        """Open a published graph.

        Parameters
        ----------
        place : path-like
            The folder, or its URL: ``https://``, ``http://`` or ``s3://``. The server must support range requests.

        Raises
        ------
        inlink.errors.FolderError
            If there is no published graph, or a newer version of inlink wrote it.
        inlink.errors.InputError
            If it cannot be read or is damaged. The methods raise this too.
        inlink.errors.MissingExtraError
            If pyarrow is not installed.
        """
        load("pyarrow.parquet", "arrow", "a published graph")
        where = os.fspath(place)
        where = restored(where) if is_remote(where) else where
        path = _file_in(where, INDEX)
        try:
            with open_binary(path) as file:
                data = file.read(_MOST_INDEX + 1)
        except UnreachableError:
            raise
        except InputError as error:
            raise FolderError(f"{where} is no published graph: {error}") from None
        if len(data) > _MOST_INDEX:
            raise DamageError(f"{path}: longer than {_MOST_INDEX >> 20} MB, so it is no index of inlink")
        try:
            description = json.loads(data)
            version = description["version"]
            if isinstance(version, int) and version > FORMAT:
                raise FolderError(
                    f"{where} has format version {version} and this inlink reads up to {FORMAT}: upgrade inlink"
                )
            if version != FORMAT:
                raise ValueError(f"version {version!r:.20}")
            index = converted(description, _Index)
            _check(index)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            why = printable(str(error) or type(error).__name__)
            raise DamageError(f"{path}: no index of a published graph ({why:.200}): fetch it again") from None
        return cls(where, index, description, len(data))

    def __repr__(self) -> str:
        size = f"{counted(self.num_nodes, 'node')}, {counted(self.num_arcs, 'arc')}"
        return f"<inlink published graph: {size}, {counted(len(self.rankings), 'ranking')}, {self.place}>"

    def node(self, text: str) -> int:
        """Return the number of the node that a text describes.

        Parameters
        ----------
        text : str
            A name, or the node's number as 16 hexadecimal digits. In a graph of pages, it may also be a URL with the
            same canonical form. In a graph of hosts or domains, it may also be a name that is not reversed. If nodes
            have no names, it may also be a decimal number.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If there is no such node.
        """
        named = self._index.graph.named
        if named:
            for name in names_for(text, self.level):
                number = self._named(name)
                if number is not None:
                    return number
        number = number_for(text, named)
        if number is None or number >= self.num_nodes:
            raise UnknownNodeError(f"{text!r} is not known in {self.place}: search with `inlink find`")
        return number

    def links(self, node: int | str, direction: Literal["in", "out"]) -> Iterator[NamedNode]:
        """Yield the nodes that link to a node, or that it links to, by number.

        Parameters
        ----------
        node : int or str
            The node's number, or what :meth:`node` takes.
        direction : {"in", "out"}
            ``"in"``: the nodes that link to it. ``"out"``: the nodes that it links to.

        Yields
        ------
        NamedNode
            The number and the name, None if nodes have no names.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If there is no such node.
        inlink.errors.ParameterError
            If ``direction`` is unknown.
        """
        if direction not in ("in", "out"):
            raise ParameterError(f"`direction` must be 'in' or 'out'; got {direction!r}")
        number = self._number(node)
        outdegree, indegree = (int(column[0]) for column in self._rows([number], _BASIC)[2:])
        table, key, other, left = BY_SOURCE, "source_id", "target", outdegree
        if direction == "in":
            table, key, other, left = BY_TARGET, "target_id", "source", indegree
        if left == 0:
            return
        firsts = [part.id for part in self._index.tables[table]]
        for part in range(max(bisect_left(firsts, number) - 1, 0), bisect_right(firsts, number)):
            for group, (least, most) in enumerate(self._bounds(table, part, key)):
                if not least <= number <= most:
                    continue
                wanted = [f"{other}_id", key, *([other] if self._index.graph.named else [])]
                ids, keys, *names = self._columns(table, part, group, wanted)
                low, high = np.searchsorted(keys, [number, number + 1]).tolist()
                left -= high - low
                if left < 0 or (ids[low:high] >= self.num_nodes).any():
                    self._damaged(table, part, "it does not fit the nodes")
                texts = map(decode, names[0][low:high].to_pylist()) if names else repeat(None)
                yield from map(NamedNode, ids[low:high].tolist(), texts)
        if left:
            raise DamageError(f"{self.place}: {table} lacks {counted(left, 'arc')} of node {number}")

    def facts(self, node: int | str) -> NodeFacts:
        """Return the data about a node: name, degrees, and values in the rankings.

        Parameters
        ----------
        node : int or str
            The node's number, or what :meth:`node` takes.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If there is no such node.
        """
        marks = [] if self._index.graph.crawled is None else ["crawled"]
        values = [column for ranking in self._index.rankings.values() for column in ranking.columns]
        (number,), names, *basic = self._rows([self._number(node)], _BASIC)
        more = dict(zip([*marks, *values], self._rows([number], [*marks, *values])[2:], strict=True))
        rankings = {
            name: {
                label: float(more[column][0])
                for label, column in zip(_labels(ranking), ranking.columns, strict=True)
            }
            for name, ranking in self._index.rankings.items()
        }
        outlinks, inlinks = (int(column[0]) for column in basic)
        crawled = bool(more["crawled"][0]) if marks else None
        return NodeFacts(number, names[0], inlinks, outlinks, crawled, rankings)

    def top(self, ranking: str, count: int = 10, *, hubs: bool = False) -> tuple[list[RankedNode], str]:
        """Return the best nodes of a ranking, best first. Nodes with equal values come in the order of their numbers.

        Parameters
        ----------
        ranking : str
            The name of a ranking.
        count : int
            The number of nodes, at least 0.
        hubs : bool
            Order by hub score, for a ranking by HITS or SALSA.

        Returns
        -------
        list of RankedNode
            Fewer than ``count`` if fewer nodes have a value.
        str
            The algorithm of the ranking.

        Raises
        ------
        inlink.errors.FolderError
            If there is no such ranking.
        inlink.errors.ParameterError
            If ``count`` is below 0, or the ranking has no hub scores.
        """
        _COUNT.check(count, "`count`")
        described = self._index.rankings.get(ranking)
        if described is None:
            others = f" (it has: {', '.join(self.rankings)})" if self.rankings else ""
            raise FolderError(f"{self.place} has no ranking {ranking!r}{others}")
        if hubs and len(described.columns) == 1:
            raise ParameterError(f"a ranking by {described.algorithm} has no hubs; it has value")
        require_memory(200 * min(count, self.num_nodes), "the places of the ranking")
        # Whether the last place is certain depends on the value after it.
        numbers, best = self._best(described.columns[hubs], count + 1)
        numbers = numbers[:count]
        # A single column was read already.
        both = described.columns if len(described.columns) == 2 else []
        _, names, *columns = self._rows(numbers.tolist(), both)
        columns = columns or [best]
        places = None if hubs else _stored(described, best).places(len(numbers))
        rows = [
            RankedNode(
                k + 1,
                int(number),
                names[k],
                float(columns[0][k]),
                float(columns[1][k]) if len(columns) == 2 else None,
                None if places is None else bool(places.certain[k]),
            )
            for k, number in enumerate(numbers)
        ]
        return rows, described.algorithm

    def find(self, expression: str, kind: "Kind" = "regex") -> Iterator[tuple[list[tuple[int, str]], int]]:
        """Yield the nodes whose names match an expression, in order, a row group at a time. It reads all names.

        Parameters
        ----------
        expression : str
            See :func:`inlink.urls.matching.matcher`.
        kind : {"regex", "glob", "text"}
            The kind of the expression.

        Yields
        ------
        nodes : list of (int, str)
            The numbers and names of the matching nodes of this row group.
        searched : int
            The number of names that were searched so far.

        Raises
        ------
        inlink.errors.ParameterError
            If the graph has no names, or the expression is not valid.
        """
        if not self._index.graph.named:
            raise ParameterError("this graph has no names to search, only numbers of nodes")
        from inlink.urls.matching import matcher

        matches = matcher(expression, kind)
        for part, _ in enumerate(self._index.tables[NODES]):
            for group, (first, rows) in enumerate(self._spans(part)):
                (names,) = self._columns(NODES, part, group, ["name"])
                at = matches(column_of(names)).tolist()
                yield [(first + row, decode(names[row].as_py())) for row in at], first + rows

    # -- nodes -----------------------------------------------------------------------------------------------

    def _number(self, node: int | str) -> int:
        return self.node(node) if isinstance(node, str) else node_number(node, self.num_nodes)

    def _named(self, text: str) -> int | None:
        """Return the node with this name, or None."""
        try:
            name = encode(text)
        except ParameterError:
            return None
        firsts = [encode(part.name) for part in self._index.tables[NODES]]
        part = bisect_right(firsts, name) - 1
        while part >= 0:
            spans = self._spans(part)
            for group, (least, most) in enumerate(self._bounds(NODES, part, "name")):
                if least is None or least <= name <= most:
                    _, names, *_ = self._columns(NODES, part, group, ["id", "name", *_BASIC])
                    texts = names.to_pylist()
                    row = bisect_left(texts, name)
                    if row < len(texts) and texts[row] == name:
                        return spans[group][0] + row
            # The first name of this part may be longer than the index says, and then this name may stand before it.
            if len(firsts[part]) < FIRST_BYTES or not name.startswith(firsts[part]):
                break
            part -= 1
        return None

    def _rows(self, nodes: Sequence[int], columns: Sequence[str]) -> list[Any]:
        """Return the numbers of nodes, their names (None if there are none), and columns of the table of nodes."""
        columns = list(columns)
        named = self._index.graph.named
        firsts = [part.id for part in self._index.tables[NODES]]
        places: dict[tuple[int, int], list[int]] = {}
        for k, node in enumerate(nodes):
            part = bisect_right(firsts, node) - 1
            # Several parts begin with the same id if they have no rows.
            spans = self._spans(part)
            group = bisect_right(spans, (node, MAX_NODES)) - 1
            if group < 0 or not spans[group][0] <= node < sum(spans[group]):
                self._damaged(NODES, part, "it lacks rows")
            places.setdefault((part, group), []).append(k)
        texts: list[str | None] = [None] * len(nodes)
        values: list[list[Any]] = [[None] * len(nodes) for _ in columns]
        for (part, group), rows in sorted(places.items()):
            first = self._spans(part)[group][0]
            at = np.array([nodes[k] for k in rows]) - first
            # A look-up by name reads these columns together, so they may be kept.
            basic = ["id", *(["name"] if named else []), *_BASIC]
            mine = [column for column in columns if column not in basic]
            have = dict(zip(basic, self._columns(NODES, part, group, basic), strict=True))
            if mine:
                have |= zip(mine, self._columns(NODES, part, group, mine), strict=True)
            if (have["id"][at] != at + first).any():
                self._damaged(NODES, part, "its ids are not those of its rows")
            if named:
                # Arrow's `take` would import pandas.
                for k, row in zip(rows, at.tolist(), strict=True):
                    texts[k] = decode(have["name"][row].as_py())
            for filled, column in zip(values, columns, strict=True):
                for k, value in zip(rows, have[column][at].tolist(), strict=True):
                    filled[k] = value
        return [list(nodes), texts, *values]

    def _best(self, column: str, count: int) -> tuple[Any, Any]:
        """Return the nodes with the largest values in a column but NaN, and the values. Equal values come by number."""
        groups = []
        for part, _ in enumerate(self._index.tables[NODES]):
            bounds = self._bounds(NODES, part, column)
            for group, ((first, rows), (_, most)) in enumerate(zip(self._spans(part), bounds, strict=True)):
                if rows:
                    groups.append((-np.inf if most is None else -most, first, part, group))
        nodes, values = np.empty(0, np.int64), np.empty(0)
        # Groups without statistics come first. Their values may all be NaN.
        for bound, first, part, group in sorted(groups):
            if len(nodes) == count and (-bound, -first) < (values[-1], -nodes[-1]):
                break
            (fresh,) = self._columns(NODES, part, group, [column])
            there = np.flatnonzero(~np.isnan(fresh))
            nodes = np.concatenate([nodes, there + first])
            values = np.concatenate([values, fresh[there]])
            order = np.lexsort((nodes, -values))[:count]
            nodes, values = nodes[order], values[order]
        return nodes, values

    # -- parts -----------------------------------------------------------------------------------------------

    def _damaged(self, table: str, part: int, why: str) -> NoReturn:
        raise DamageError(f"{_file_in(self.place, part_name(table, part))}: {why}: fetch it again")

    def _read(self, table: str, part: int, span: range) -> bytes:
        name = part_name(table, part)
        path = _file_in(self.place, name)
        size = self._index.tables[table][part].bytes
        data, stamp = read_span(path, span)
        self.bytes_read += len(data)
        self.requests += 1
        if stamp.size not in (-1, size) or len(data) != len(span):
            self._damaged(table, part, f"the file is cut, or is not the one of {INDEX}")
        if self._versions.setdefault(name, stamp.version) != stamp.version:
            raise InputError(f"{path} was replaced while it was read: read it again")
        return data

    def _footer(self, table: str, part: int) -> tuple[Any, dict[str, int]]:
        """Return the metadata of a part, checked, and the place of each column."""
        known = self._footers.get((table, part))
        if known is not None:
            return known
        pa, pq = load("pyarrow", "arrow", "Parquet"), load("pyarrow.parquet", "arrow", "Parquet")
        described = self._index.tables[table][part]
        data = self._read(table, part, range(described.bytes - described.footer, described.bytes))
        if data[-4:] != b"PAR1" or int.from_bytes(data[-8:-4], "little") + 8 != described.footer:
            self._damaged(table, part, f"its footer is not the one of {INDEX}")
        try:
            with memory_bounded(_MOST_MEMORY):
                metadata = pq.read_metadata(io.BytesIO(data))
            fields = {field.name: field.type for field in metadata.schema.to_arrow_schema()}
            names = [metadata.schema.column(k).name for k in range(len(metadata.schema))]
        except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
            self._damaged(table, part, f"its footer cannot be read ({_brief(error)})")
        columns = {name: k for k, name in enumerate(names)}
        for name, kinds in self._expected(pa, table).items():
            if name not in columns or fields.get(name) not in kinds:
                self._damaged(table, part, f"it has no column {name} of the right type")
        groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
        if metadata.num_rows != described.rows or sum(group.num_rows for group in groups) != described.rows:
            self._damaged(table, part, f"it has not the rows of {INDEX}")
        if any(not 0 <= group.num_rows <= _MOST_ROWS for group in groups):
            self._damaged(table, part, "a row group is too large")
        self._keep(self._footers, _FOOTERS, (table, part), (metadata, columns))
        return metadata, columns

    def _expected(self, pa: Any, table: str) -> dict[str, tuple[Any, ...]]:
        """Return the columns that look-ups read, and the types that they may have."""
        texts, number = (pa.string(), pa.binary()), (pa.uint32(),)
        if table == NODES:
            fields = dict.fromkeys(["id", *_BASIC], number)
            ends = ["name"]
            if self._index.graph.crawled is not None:
                fields["crawled"] = (pa.bool_(),)
            for ranking in self._index.rankings.values():
                fields |= dict.fromkeys(ranking.columns, (pa.float64(),))
        else:
            ends = ["source", "target"]
            fields = dict.fromkeys(["source_id", "target_id"], number)
        return fields | dict.fromkeys(ends, texts) if self._index.graph.named else fields

    def _spans(self, part: int) -> list[tuple[int, int]]:
        """Return the first node and the number of rows of each row group of a part of the nodes."""
        metadata, _ = self._footer(NODES, part)
        rows = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
        return list(zip(accumulate(rows, initial=self._index.tables[NODES][part].id), rows, strict=False))

    def _bounds(self, table: str, part: int, column: str) -> list[tuple[Any, Any]]:
        """Return the least and the largest value of a column in each row group, by its statistics.

        Without statistics they are None and None, and for ids the range of all nodes.
        """
        pa = load("pyarrow", "arrow", "Parquet")
        metadata, columns = self._footer(table, part)
        missing = (None, None) if table == NODES else (0, self.num_nodes)
        bounds = []
        for group in range(metadata.num_row_groups):
            try:
                statistics = metadata.row_group(group).column(columns[column]).statistics
                if statistics is None or not statistics.has_min_max:
                    bounds.append(missing)
                elif column == "name":
                    bounds.append((statistics.min_raw, statistics.max_raw))
                else:
                    bounds.append((statistics.min, statistics.max))
            except (pa.ArrowException, OSError, ValueError) as error:
                self._damaged(table, part, f"its statistics cannot be read ({_brief(error)})")
        return bounds

    def _columns(self, table: str, part: int, group: int, names: list[str]) -> list[Any]:
        """Return columns of a row group: numbers as NumPy arrays, names as Arrow's arrays of bytes."""
        key = table, part, group, *names
        known = self._groups.get(key)
        if known is not None:
            return known
        pa, pq = load("pyarrow", "arrow", "Parquet"), load("pyarrow.parquet", "arrow", "Parquet")
        metadata, columns = self._footer(table, part)
        rows = metadata.row_group(group)
        chunks = [rows.column(columns[name]) for name in names]
        begins = [chunk.data_page_offset for chunk in chunks]
        ends = [chunk.data_page_offset + chunk.total_compressed_size for chunk in chunks]
        size = self._index.tables[table][part].bytes
        unpacked = sum(chunk.total_uncompressed_size for chunk in chunks)
        if (
            not all(4 <= begin <= end <= size for begin, end in zip(begins, ends, strict=True))
            or any(chunk.has_dictionary_page for chunk in chunks)
            or not 0 <= unpacked <= _MOST_GROUP
            or max(ends) - min(begins) > _MOST_GROUP
        ):
            self._damaged(table, part, "its footer has wrong places or sizes")
        require_memory(3 * (unpacked + max(ends) - min(begins)), "the columns of a row group")
        data = self._read(table, part, range(min(begins), max(ends)))
        try:
            with memory_bounded(_MOST_MEMORY):
                file = pq.ParquetFile(
                    _Window(size, min(begins), data),
                    metadata=metadata,
                    pre_buffer=False,
                    page_checksum_verification=True,
                )
                read = file.read_row_group(group, columns=names, use_threads=False)
                arrays = [read.column(name).combine_chunks() for name in names]
            if read.nbytes > _MOST_GROUP:
                self._damaged(table, part, "a row group is too large")
            if any(len(array) != rows.num_rows or array.null_count for array in arrays):
                self._damaged(table, part, "its rows cannot be read")
            values = [
                _values(array.view(pa.binary()) if name in _TEXTS else array)
                for name, array in zip(names, arrays, strict=True)
            ]
        except (pa.ArrowException, OSError, ValueError, TypeError, EOFError, MemoryError) as error:
            self._damaged(table, part, f"its data cannot be read ({_brief(error)})")
        self._keep(self._groups, _KEPT, key, values)
        return values

    def _keep(self, cache: dict[Any, Any], most: int, key: Any, value: Any) -> None:
        """Keep a value for later look-ups, of any thread, in place of the oldest one."""
        with self._keeping:
            if len(cache) >= most:
                del cache[next(iter(cache))]
            cache[key] = value


def _check(index: _Index) -> None:
    """Check that the parts of an index fit together; if not, raise ValueError."""
    shape = index.graph
    if not (0 <= shape.nodes <= MAX_NODES and shape.arcs >= 0):
        raise ValueError("the numbers of nodes and arcs")
    for table, rows in ((NODES, shape.nodes), (BY_SOURCE, shape.arcs), (BY_TARGET, shape.arcs)):
        parts = index.tables[table]
        if not parts or sum(part.rows for part in parts) != rows:
            raise ValueError(f"the rows of {table}")
        for part in parts:
            if not (part.rows >= 0 and 12 <= part.footer <= min(part.bytes, _MOST_FOOTER)):
                raise ValueError(f"the sizes of {table}")
        ids, names = [part.id for part in parts], [encode(part.name) for part in parts]
        if ids != sorted(ids) or names != sorted(names) or not 0 <= ids[0] <= ids[-1] <= MAX_NODES:
            raise ValueError(f"the order of {table}")
    parts = index.tables[NODES]
    if [part.id for part in parts] != list(accumulate((part.rows for part in parts[:-1]), initial=0)):
        raise ValueError("the ids of nodes")
    for name, ranking in index.rankings.items():
        own = {"id", "name", "crawled", *_BASIC} & set(ranking.columns)
        if own or not (name.isprintable() and len(ranking.columns) in (1, 2)):
            raise ValueError("the rankings")
        stored = _stored(ranking, np.empty(0))
        # A bound below 0 would make places certain that are not.
        if not all(bound is None or bound >= 0 for bound in (stored.error_bound, stored.residual)):
            raise ValueError("the error bounds")


def _labels(ranking: _Described) -> list[str]:
    """Return the names of a ranking's columns in :class:`inlink.Ranking`."""
    return ["value"] if len(ranking.columns) == 1 else ["authorities", "hubs"]


def _stored(ranking: _Described, values: Any) -> Ranking:
    """Return a ranking with some of its values."""
    bounds = [None if bound is None else float(bound) for bound in (ranking.error_bound, ranking.residual)]
    return Ranking(
        values,
        algorithm=ranking.algorithm,
        error_bound=bounds[0],
        residual=bounds[1],
        iterations=ranking.iterations,
        converged=ranking.converged,
        parameters=ranking.parameters,
    )


def _file_in(place: str, name: str) -> str:
    """Return the path or the URL of a file of the data set. The query of a URL stays at its end."""
    if not is_remote(place):
        return str(Path(place, name))
    url, mark, query = place.partition("?")
    return f"{url.rstrip('/')}/{name}{mark}{query}"


def _values(array: Any) -> Any:
    """Return numbers as an array of NumPy, and bytes as Arrow's array.

    Arrow's methods `to_numpy` and `cast` would import pandas and Arrow's functions, which takes half a second.
    """
    pa = load("pyarrow", "arrow", "Parquet")
    if array.type == pa.binary():
        return array
    # DLPack has no booleans.
    return np.array(array.to_pylist(), bool) if array.type == pa.bool_() else np.from_dlpack(array)


def _brief(error: BaseException) -> str:
    return printable(str(error).partition("\n")[0][:200] or type(error).__name__)
