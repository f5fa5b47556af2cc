"""Edge lists: one arc per line, as names or as numbers.

Fields are separated by a tab, a comma, a semicolon or blanks. Files may be gzip or Zstandard. A line that begins with
``#`` is a comment. Before the first arc, a line that begins with ``%`` and a blank or another ``%`` is a comment too
(KONECT).
Fields separated by commas or semicolons may be in double quotes (RFC 4180).
A first line such as ``Source,Target,Weight`` names the columns. Without one, the columns are source, target and, if it
is a number in every line of the sample, weight. Further columns are skipped. A warning names a first line that looks
like a header of other words; the option `header` says what it is.

Nodes are numbers if every field of the first block is a plain decimal number, and names otherwise. A number in
quotes is a name. A comment ``# inlink: names`` or ``# inlink: nodes=1000`` overrides this; the second also gives the
number of nodes, including those without arcs. inlink writes such a comment if the arcs alone would be misread.
"""

import csv
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from inlink.base.arrays import UInt8Array
from inlink.base.opening import Carry, Stream, head, place_of, text_blocks
from inlink.base.strings import Strings
from inlink.errors import FormatError, InputError, ParameterError
from inlink.graph.batches import ArcBatch
from inlink.graph.source import Source
from inlink.sources.inputs import Location

MAX_NODES = 2**32 - 1

# Names of columns, in lower case and without underscores and blanks.
SOURCE_WORDS = frozenset(
    [
        "source",
        "src",
        "from",
        "fromid",
        "fromnode",
        "fromnodeid",
        "fromlink",
        "sourceid",
        "srcid",
        "tail",
        "citing",
    ]
)
TARGET_WORDS = frozenset(
    [
        "target",
        "dst",
        "dest",
        "destination",
        "to",
        "toid",
        "tonode",
        "tonodeid",
        "tolink",
        "targetid",
        "dstid",
        "head",
        "cited",
    ]
)
WEIGHT_WORDS = frozenset(["weight", "weights", "count", "counts"])

# The name of a column, word by word, if it is not known to be that of source or target.
_COLUMN_WORDS = re.compile(
    "(?:article|child|cited|citing|dest|destination|domain|dst|edge|end|from|head|host|id|in|inlinks?|label|landing|"
    "link|linked|linking|links|name|node|out|outlinks?|pages?|parent|refer+er|referring|site|source|src|start|tail|"
    "target|title|to|uri|urls?|vertex|[^A-Za-z])+",
    re.I,
)

_SEPARATORS = {"tab": "\t", "comma": ",", "semicolon": ";", "space": " "}
# Lines of the sample that the layout is detected from.
_SAMPLE = 200
_OURS = re.compile(rb"# inlink: (?:(names)|nodes=(\d{1,10}))$")
_MARKUP = re.compile(rb"\s*<(?:!doctype html|html|\?xml)[^\t\n]*(?:\n|$)", re.I)
_NO_COLUMN = 2**62


def edge_list(
    path: str | os.PathLike[str],
    *,
    nodes: Literal["ids", "names"] | None = None,
    separator: str | None = None,
    weights: bool | None = None,
    header: bool | None = None,
) -> Source:
    """Read an edge list.

    Parameters
    ----------
    path : path-like
        The file.
    nodes, separator, weights, header
        As in :func:`inlink.read`. ``"space"`` is any run of blanks.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read. While batches are read, naming the line: fewer than two fields, a node number that
        is not a number below 2³² − 1, a weight that is not a finite number above 0, an open quote, or a line of more
        than 16 MB.
    inlink.errors.ParameterError
        If `separator` is none of the values above.
    """
    path = place_of(path)
    layout = _layout(path, separator, weights, header)
    if nodes is not None:
        layout.ids = nodes == "ids"
        layout.sure = True
    num_nodes = layout.num_nodes if layout.ids else None
    stated = "" if num_nodes is None else f"{path}: its comment # inlink: nodes={num_nodes}"
    return Source(_batches(path, layout), None, num_nodes, stated=stated)


def number_batches(
    path: Location, limit: int, *, separator: str = "\t", weighted: bool = False, skip: int = 0
) -> Iterator[ArcBatch]:
    """Read arcs between numbers below `limit`, one per line, from byte `skip` on.

    A weight of 0 is kept. Raises InputError as :func:`edge_list`.
    """
    columns = [0, 1, 2 if weighted else _NO_COLUMN]
    return _batches(
        path, _Layout(separator, False, columns, ids=True, sure=True, limit=limit, skip=skip, zeros=True)
    )


@dataclass
class _Layout:
    separator: str
    quotes: bool
    # Columns of source, target and weight.
    columns: list[int]
    header: bool = False
    ids: bool = False
    # Whether `ids` is final. If not, a name in the first block may still change it.
    sure: bool = False
    # Whether a comment may begin with %.
    preamble: bool = True
    num_nodes: int | None = None
    limit: int = MAX_NODES
    # Bytes before the first line.
    skip: int = 0
    # Whether a weight of 0 is kept, for the caller to drop.
    zeros: bool = False

    @property
    def weighted(self) -> bool:
        return self.columns[2] != _NO_COLUMN


def words(field: str) -> str:
    """Return a column's name in lower case, without blanks, underscores and hyphens, as in :data:`SOURCE_WORDS`."""
    return re.sub(r"[\s_\-]", "", field).lower()


def _layout(path: Location, separator: str | None, weights: bool | None, header: bool | None) -> _Layout:
    """Detect the layout of a file by its first lines."""
    start = head(path).removeprefix(b"\xef\xbb\xbf")
    if not start.strip():
        raise FormatError(f"{path} is empty")
    if _MARKUP.match(start):
        raise FormatError(
            f"{path}, line 1: HTML or XML, not an edge list: is it an error page that was saved?"
        )
    all_lines = start.splitlines() if len(start) < 1 << 16 else start[: start.rfind(b"\n") + 1].splitlines()
    ours = next((match for line in all_lines[:5] if (match := _OURS.match(line))), None)
    data: list[str] = []
    for line in all_lines:
        if line and not _comment(line, not data and ours is None) and not _comment(line.lstrip(), False):
            # In Latin-1 every byte is a character. Only the layout is looked at here.
            data.append(line.decode("latin-1"))
    char, rows = _separate(data[:_SAMPLE], path, separator)
    layout = _Layout(char, char in ",;", [0, 1, _NO_COLUMN])
    named = (
        bool(rows)
        and header is not False
        and (ours is None or layout.quotes)
        and _read_header(rows[0], layout)
    )
    layout.header = named if header is None else header
    if header is None and ours is None and not named and _like_header(rows):
        first, second = (repr(end.encode("latin-1").decode("utf-8", "replace")[:40]) for end in rows[0][:2])
        warnings.warn(
            f"{path}: the first line ({first} and {second}) looks like names of columns and becomes an arc. "
            "Use `header` (--header) to skip the line, or --no-header if it is an arc.",
            stacklevel=2,
        )
    rows = rows[layout.header :]
    if not named and rows and all(len(row) > 2 and _is_number(row[2]) for row in rows):
        layout.columns[2] = 2
    if weights is False:
        layout.columns[2] = _NO_COLUMN
    elif weights and not layout.weighted:
        layout.columns[2] = 2
    if ours is not None:
        layout.sure, layout.preamble = True, False
        layout.ids = ours[1] is None
        layout.num_nodes = int(ours[2]) if layout.ids else None
    else:
        ends = [row[k] for row in rows for k in layout.columns[:2] if k < len(row)]
        layout.ids = all(end.isdecimal() and end.isascii() for end in ends)
    return layout


def _comment(line: bytes, first: bool) -> bool:
    return line[:1] == b"#" or (first and line[:1] == b"%" and line[1:2] in b" %\t")


def _separate(data: list[str], path: Location, separator: str | None) -> tuple[str, list[list[str]]]:
    """Return the separator and the cut lines: the first that gives all lines equally many fields, at least two."""
    if separator is not None:
        char = _SEPARATORS.get(separator, separator)
        if len(char) != 1 or not char.isascii() or char in '"\r\n':
            raise ParameterError(
                f"`separator` must be one ASCII character, or tab, comma, semicolon or space; got {separator!r}"
            )
        return char, _cut(data, char)
    candidates = "\t ,;"
    if ".csv" in [suffix.lower() for suffix in Path(path).suffixes]:
        candidates = ",;\t "
    some = None
    for char in candidates:
        rows = _cut(data, char)
        counts = {len(row) for row in rows}
        if counts and min(counts) >= 2:
            if len(counts) == 1:
                return char, rows
            if char != " ":
                some = some or (char, rows)
            elif some is None:
                least, most = min(counts), max(counts)
                raise InputError(
                    f"{path}: lines have from {least} to {most:,} fields. "
                    "If this is an edge list, name its --separator."
                )
    return some or (candidates[0], _cut(data, candidates[0]))


def _cut(data: list[str], char: str) -> list[list[str]]:
    if char == " ":
        return [line.split() for line in data]
    if char in ",;":
        try:
            rows = list(csv.reader((line + "\n" for line in data), delimiter=char))
        except csv.Error:
            # A field is too long for this module. The scan reports what is wrong.
            return [line.split(char) for line in data]
        # The last row may be cut within quotes.
        return rows[:-1] if len(rows) > 1 else rows
    return [line.split(char) for line in data]


def _read_header(row: list[str], layout: _Layout) -> bool:
    titles = [words(field) for field in row]
    sources = [k for k, word in enumerate(titles) if word in SOURCE_WORDS]
    targets = [k for k, word in enumerate(titles) if word in TARGET_WORDS]
    if not sources or not targets:
        return False
    layout.columns[:2] = [sources[0], targets[0]]
    layout.columns[2] = next((k for k, word in enumerate(titles) if word in WEIGHT_WORDS), _NO_COLUMN)
    return True


def _like_header(rows: list[list[str]]) -> bool:
    """Return whether the first row differs from all others as names of columns do: by type, or by its words."""
    first, rest = rows[0] if rows else [], rows[1:]
    if len(rest) < 2 or len(first) < 2 or first[0] == first[1] or "" in first[:2]:
        return False
    ends = [end for row in rest for end in row[:2]]
    for alike in (str.isdecimal, lambda end: "://" in end, lambda end: "." in end or "/" in end):
        if all(map(alike, ends)) and not any(map(alike, first[:2])):
            return True
    if (
        len(first) > 2
        and all(len(row) > 2 and _is_number(row[2]) for row in rest)
        and not _is_number(first[2])
    ):
        return True
    return not set(first[:2]) & set(ends) and all(
        len(end) < 40 and _COLUMN_WORDS.fullmatch(end) and re.search("[A-Za-z]", end) for end in first[:2]
    )


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field


def _batches(path: Location, layout: _Layout) -> Iterator[ArcBatch]:
    with Stream(path, f"reading {Path(path).name}") as stream:
        header = layout.header
        for block, last, carry in text_blocks(stream):
            if layout.skip:
                carry.line, carry.at = int(np.count_nonzero(block[: layout.skip] == 10)) + 1, layout.skip
                block, layout.skip = block[layout.skip :], 0
            if header:
                start, lines = _after_header(block)
                # The whole block may be comments.
                header = start == len(block)
                carry.line += lines
                carry.at = start
                block = block[start:]
            if len(block):
                batch = _scan(path, block, last, carry, layout)
                if len(batch.sources):
                    layout.sure, layout.preamble = True, False
                    yield batch


def _after_header(block: UInt8Array) -> tuple[int, int]:
    """Return where the line after the header begins, and the number of lines before it."""
    at = 0
    for count, line in enumerate(block.tobytes().splitlines(keepends=True), 1):
        at += len(line)
        if line.strip(b"\r\n") and not _comment(line, True):
            return at, count
    return len(block), int(np.count_nonzero(block == 10))


def _scan(path: Location, block: UInt8Array, last: bool, carry: Carry, layout: _Layout) -> ArcBatch:
    """Scan the arcs of a block."""
    from inlink.sources.kernels import text as kernels

    lines = int(np.count_nonzero(block == 10))
    names = np.empty(0 if layout.ids and not layout.quotes else len(block), np.uint8)
    offsets = np.empty(1 if layout.ids else 2 * lines + 1, np.uint64)
    sources, targets = np.empty(lines, np.uint32), np.empty(lines, np.uint32)
    weights = np.empty(lines if layout.weighted else 0, np.float64)
    hard = np.empty(3 * len(weights), np.uint64)
    reading = kernels.Layout(
        np.uint8(ord(layout.separator)),
        layout.quotes,
        np.array(layout.columns, np.uint64),
        np.uint64(layout.limit if layout.ids else 0),
        np.power(10.0, np.arange(23), dtype=np.float64),
    )
    room = kernels.ArcArrays(names, offsets, sources, targets, weights, hard)
    status, used, before, arcs, num_names, num_hard, start, stop = kernels.scan(
        block, reading, layout.preamble, room
    )
    if status == kernels.NOT_A_NUMBER and not layout.sure:
        layout.ids = False
        return _scan(path, block, last, carry, layout)
    place = f"{path}, line {carry.line + int(before):,}"
    if status not in (kernels.ALL, kernels.OPEN_QUOTE) or (status == kernels.OPEN_QUOTE and last):
        field = bytes(block[int(start) : min(int(stop), int(start) + 100)]).decode("utf-8", "replace")
        raise InputError(f"{place}: {_complaint(int(status), field, layout)}")
    for arc, low, high in hard[: 3 * int(num_hard)].reshape(-1, 3).tolist():
        weights[arc] = _weight(bytes(block[low:high]), layout.zeros, path, carry, block[:low])
    first_line, preamble = carry.line, layout.preamble

    def place_of_arc(arc: int) -> str:
        all_lines = enumerate(block.tobytes().splitlines(), first_line)
        arcs = (k for k, line in all_lines if line.strip() and not _comment(line.lstrip(), preamble))
        return f"{path}, line {next(islice(arcs, arc, None), first_line):,}"

    carry.line += int(before)
    carry.at += int(used)
    count = int(arcs)
    array = None
    if not layout.ids:
        offsets = offsets[: int(num_names) + 1]
        array = Strings(names, offsets)
    return ArcBatch(
        sources[:count],
        targets[:count],
        array,
        weights[:count] if layout.weighted else None,
        size=int(used),
        place=place_of_arc,
    )


def _weight(raw: bytes, zeros: bool, path: Location, carry: Carry, before: UInt8Array) -> float:
    try:
        value = float(raw) if b"_" not in raw else -1.0
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf") and not (zeros and value == 0):
        line = carry.line + int(np.count_nonzero(before == 10))
        shown = raw[:100].decode("utf-8", "replace")
        raise InputError(
            f"{path}, line {line:,}: weight must be a finite number above 0; got {shown!r}. "
            "Use --no-weights to ignore the column."
        )
    return value


def _complaint(status: int, field: str, layout: _Layout) -> str:
    from inlink.sources.kernels import text as kernels

    if status == kernels.NOT_A_NUMBER:
        return (
            f"expected a node number, as on the lines before; got {field!r}. Use --nodes names to read names."
        )
    if status == kernels.OUT_OF_RANGE:
        remedy = " Use --nodes names to read names." if layout.limit == MAX_NODES else ""
        return f"node number must be below {layout.limit:,}; got {field}.{remedy}"
    if status == kernels.FEW_FIELDS:
        name = {"\t": "tabs", " ": "blanks"}.get(layout.separator, repr(layout.separator))
        return f"expected two fields separated by {name}; got {field!r}. Use --separator to name another separator."
    if status == kernels.OPEN_QUOTE:
        return "the quote is not closed"
    if status == kernels.BAD_QUOTE:
        return f"expected {layout.separator!r} or the end of the line after the closing quote of {field!r}"
    return f"expected a weight, as on the lines before; got {field!r}. Use --no-weights to ignore the column."
