"""Check that a graph is sound before a kernel reads it: a folder, or what a caller gave. Kernels check no bounds.

A sound graph has offsets that increase from 0 to the number of arcs, rows that increase and hold only nodes that exist,
inlinks that hold the same arcs as the outlinks, weights above 0, and names that differ. Inlinks in a folder are split:
``in.linking`` holds the nodes with outlinks.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import repeat
from typing import Any, Literal

import msgspec
import numpy as np

from inlink.base.arrays import AnyArray, UInt32Array, UInt64Array
from inlink.base.checked import is_remembered, remember
from inlink.base.decoding import converted
from inlink.base.folder import Folder
from inlink.base.memory import require_memory
from inlink.base.table import counted
from inlink.errors import FolderError, ParameterError
from inlink.graph.coded import BIT_PAD, CodedOutlinks, coded_inlinks, decoded_blocks
from inlink.graph.names import MAX_NODES, NO_NODE, Names
from inlink.graph.rows import BLOCK, COMPRESSED, PAD, START, CodedRows, Rows, SplitRows, nodes_at_places

RULES = 2
"""The version of these checks. A folder that was checked by an earlier version is checked again."""

# Elements read at a time: 1 MB of nodes.
_BLOCK = 1 << 18
# Below this number of bytes a thread costs more than it saves.
_SMALL = 1 << 23

# The files of plain rows and of compressed rows, and then those that both kinds of folders may have; their dtypes.
_ROWS = {
    "out.offsets": "<u8",
    "out.nodes": "<u4",
    "in.linking": "<u4",
    "in.offsets": "<u8",
    "in.nodes": "<u4",
}
_CODED = {
    "shape": "<u8",
    "linking": "|u1",
    "in.starts": "|u1",
    "in.rows": "|u1",
    "in.blocks": "<u8",
    "out.records": "|u1",
    "out.blocks": "<u8",
}
_LAYOUT = {
    "out.weights": "<u4 or <f8",
    "in.weights": "<u4 or <f8",
    "names.text": "|u1",
    "names.offsets": "<u8",
    "names.order": "<u4",
    "crawled": "|b1",
    "from_parent": "<u4",
}
# Files that are there only with others.
_PARTNERS = {
    "out.weights": "in.weights",
    "in.weights": "out.weights",
    "names.text": "names.offsets",
    "names.offsets": "names.text",
    "names.order": "names.text",
}


class _Origin(msgspec.Struct):
    """The fields of a header that describe the graph's origin. Other fields are ignored."""

    level: Literal["page", "host", "domain"] | None = None
    sources: list[str] = []
    skipped: dict[str, int] = {}
    left_out: int = 0
    parent: str | None = None


def check_graph(folder: Folder, *, always: bool = False) -> None:
    """Check a graph's folder. Its files are read once, unless the folder is remembered as checked.

    Parameters
    ----------
    folder : Folder
        The folder, just opened.
    always : bool
        Read the files even if the folder is remembered.

    Raises
    ------
    inlink.errors.FolderError
        If the folder does not hold a sound graph, or a checksum is wrong.
    """
    _check_layout(folder)
    if always or not is_remembered(folder, RULES):
        _check_contents(folder)
        remember(folder, RULES)


def _check_layout(folder: Folder) -> None:
    files = folder.header.files
    try:
        converted(folder.header.meta, _Origin)
    except msgspec.ValidationError as error:
        raise wrong_header(folder, f"meta: {error}") from None
    compressed = folder.header.version == COMPRESSED
    rows = _CODED if compressed else _ROWS
    for name, dtypes in (rows | _LAYOUT).items():
        if name not in files:
            if name in rows:
                raise wrong_header(folder, f"{name} is missing")
        elif files[name].dtype not in dtypes.split(" or "):
            raise wrong_header(folder, f"{name} has dtype {files[name].dtype}")
        elif _PARTNERS.get(name, name) not in files:
            raise wrong_header(folder, f"it has {name} but not {_PARTNERS[name]}")
    lengths: dict[str, int] = {}
    if compressed:
        nodes, arcs = _coded_shape(folder)
    else:
        nodes, arcs = files["out.offsets"].length - 1, files["out.nodes"].length
        if not 0 <= nodes <= MAX_NODES:
            raise wrong_header(folder, counted(nodes, "node"))
        if files["in.linking"].length > nodes:
            raise wrong_header(
                folder, f"in.linking has {counted(files['in.linking'].length, 'element')} for {nodes:,} nodes"
            )
        lengths = {"in.offsets": nodes + 1, "in.nodes": arcs}
    lengths |= {"names.offsets": nodes + 1, "names.order": nodes, "crawled": nodes}
    _check_lengths(folder, lengths | {"out.weights": arcs, "in.weights": arcs})
    if "out.weights" in files and files["out.weights"].dtype != files["in.weights"].dtype:
        raise wrong_header(folder, "the weights of outlinks and inlinks have different dtypes")


def _check_lengths(folder: Folder, wanted: dict[str, int], more: str = "") -> None:
    """Check the numbers of elements of the files; ``more`` is "at least " if files may be longer."""
    for name, length in wanted.items():
        entry = folder.header.files.get(name)
        if entry is not None and (entry.length < length or (not more and entry.length > length)):
            raise wrong_header(
                folder, f"{name} has {counted(entry.length, 'element')} and should have {more}{length:,}"
            )


def wrong_header(folder: Folder, what: str) -> FolderError:
    """Make the error for a header that does not describe a graph; ``what`` describes the fault."""
    return FolderError(f"{folder.path}: the header is damaged ({what}): build {folder.path} again")


def _check_contents(folder: Folder) -> None:
    from inlink.base.jit import num_threads

    compressed = folder.header.version == COMPRESSED
    num_nodes = int(folder.array("shape")[0]) if compressed else folder.header.files["out.offsets"].length - 1
    require_memory(24 * num_nodes, f"{folder.path}: checks of {num_nodes:,} nodes")
    parts = (
        _coded_totals(folder) if compressed else [lambda: _rows(folder, "out"), lambda: _rows(folder, "in")]
    )
    if "names.text" in folder:
        parts.append(lambda: _names(folder))
    parts.append(lambda: _others(folder, num_nodes))
    threads = num_threads()
    if threads > 1 and folder.num_bytes > _SMALL:
        from inlink.base.threads import Threads

        with Threads(threads) as pool:
            sums = list(pool.map(lambda part: part(), parts))
    else:
        sums = [part() for part in parts]
    if sums[0] != sums[1]:
        raise folder.damaged(
            "in.rows" if compressed else "in.nodes", "the inlinks are not those of the outlinks"
        )


def _rows(folder: Folder, side: str) -> int:
    """Check the rows of one side, and return the sum of their arcs' hashes."""
    named, weighted = f"{side}.nodes", f"{side}.weights"
    check_offsets(folder, f"{side}.offsets", folder.header.files[named].length)
    turned = side == "in"
    rows = RowCheck(folder.array(f"{side}.offsets"), turned, _linking(folder) if turned else None)
    if weighted in folder:
        weights: Iterator[tuple[int, AnyArray | None]] = folder.blocks(weighted, _BLOCK)
    else:
        weights = repeat((0, None))
    # The first of the two ends last, so that both compare their checksums.
    for (first, nodes), (_, values) in zip(folder.blocks(named, _BLOCK), weights, strict=weighted in folder):
        wrong = rows.wrong(first, nodes, values)
        if wrong is not None:
            raise folder.damaged(*((weighted, wrong) if "weight" in wrong else (named, wrong)))
    return rows.total


def _linking(folder: Folder) -> UInt32Array:
    """Check that in.linking holds the nodes with outlinks, increasing, and return it."""
    offsets = folder.array("out.offsets")
    nodes, total = len(offsets) - 1, 0
    before = -1
    for start, block in folder.blocks("in.linking", _BLOCK):
        steps = np.diff(block.astype(np.int64), prepend=before)
        wrong = np.flatnonzero((steps <= 0) | (block >= nodes))
        if len(wrong):
            raise folder.damaged("in.linking", f"node {block[wrong[0]]:,} at place {start + int(wrong[0]):,}")
        before = int(block[-1])
        dangling = np.flatnonzero(offsets[block] == offsets[block.astype(np.int64) + 1])
        if len(dangling):
            raise folder.damaged("in.linking", f"node {block[dangling[0]]:,} has no outlinks")
        total += len(block)
    linking = sum(
        int(np.count_nonzero(np.diff(offsets[low : low + _BLOCK + 1]))) for low in range(0, nodes, _BLOCK)
    )
    if linking != total:
        raise folder.damaged(
            "in.linking", f"it has {counted(total, 'node')}, and {counted(linking, 'node')} have outlinks"
        )
    return folder.array("in.linking")


class RowCheck:
    """Checks rows, block by block."""

    def __init__(self, offsets: AnyArray, turned: bool, linking: UInt32Array | None = None) -> None:
        self.offsets, self.turned = offsets, turned
        self.limit = len(offsets) - 1 if linking is None else len(linking)
        self.nodes_at = np.empty(0, np.uint32)
        if linking is not None:
            self.nodes_at = nodes_at_places(linking, len(offsets) - 1)
        self.total = 0
        self._base = self._row = self._least = np.uint64(0)

    def begin(self, base: int, offsets: UInt64Array) -> None:
        """Go on with the rows from number ``base`` on, whose offsets begin with 0."""
        self.offsets, self._base = offsets, np.uint64(base)
        self._row = self._least = np.uint64(0)

    def wrong(self, first: int, nodes: UInt32Array, weights: AnyArray | None) -> str | None:
        """Describe the first fault of the next arcs in a few words; None if they are sound."""
        from inlink.graph.kernels.checks import wrong_arc

        bits, most = _bits(weights)
        place, row, least, total = wrong_arc(
            self.offsets,
            nodes,
            bits,
            np.uint64(most),
            self.turned,
            np.uint64(self.limit),
            self.nodes_at,
            self._base,
            np.uint64(first),
            self._row,
            self._least,
        )
        if int(place) < len(nodes):
            node = int(nodes[int(place)])
            if node >= self.limit:
                end, which = ("begins", "linking nodes") if len(self.nodes_at) else ("ends", "nodes")
                return (
                    f"arc {first + int(place):,} {end} at node {node:,}, and there are {self.limit:,} {which}"
                )
            if node < int(least):
                return f"the nodes of row {int(row):,} do not increase at arc {first + int(place):,}"
            assert weights is not None
            return f"the weight {weights[int(place)]} of arc {first + int(place):,} is not a finite number above 0"
        # Numba returns Python's integers, which would be signed in the next call.
        self._row, self._least = np.uint64(row), np.uint64(least)
        self.total = (self.total + int(total)) % 2**64
        return None


def _bits(weights: AnyArray | None) -> tuple[AnyArray, int]:
    """Weights as unsigned integers of the same order, and the largest of them that is sound."""
    if weights is None:
        return np.empty(0, np.uint32), 0
    if weights.dtype == np.float64:
        return weights.view(np.uint64), int(np.array(np.finfo(np.float64).max).view(np.uint64))
    return weights, 2**32 - 1


def check_offsets(folder: Folder, name: str, end: int) -> None:
    """Read a file of offsets, and check that they increase from 0 to ``end``.

    Raises
    ------
    inlink.errors.FolderError
        If the offsets do not increase, or the checksum is wrong.
    """
    last = np.uint64(0)
    for start, block in folder.blocks(name, _BLOCK):
        if start == 0 and block[0] != 0:
            raise folder.damaged(name, f"the first offset is {block[0]:,}")
        falls = np.flatnonzero(block[1:] < block[:-1])
        if block[0] < last or len(falls):
            place = start if block[0] < last else start + 1 + int(falls[0])
            raise folder.damaged(name, f"offset {place:,} is below the one before")
        last = block[-1]
    if int(last) != end:
        raise folder.damaged(name, f"the last offset is {last:,} and should be {end:,}")


def _names(folder: Folder) -> int:
    from inlink.graph.kernels.checks import wrong_name

    check_offsets(folder, "names.offsets", folder.header.files["names.text"].length)
    text, offsets = folder.array("names.text"), folder.array("names.offsets")
    ordered = "names.order" in folder
    order = folder.array("names.order") if ordered else np.empty(0, np.uint32)
    done = np.uint64(0)

    def check(name: str, stop: int) -> None:
        nonlocal done
        wrong = wrong_name(text, offsets, order, done, np.uint64(stop))
        if wrong < stop:
            raise folder.damaged(name, f"the names do not increase at place {wrong:,} of their order")
        done = np.uint64(stop)

    for start, block in folder.blocks("names.text", 4 * _BLOCK):
        if not ordered:
            # The names that end in this block, while it is in memory.
            check("names.text", int(np.searchsorted(offsets, np.uint64(start + len(block)), "right")) - 1)
    if ordered:
        for start, block in folder.blocks("names.order", _BLOCK):
            check("names.order", start + len(block))
    check("names.text", len(offsets) - 1)
    return 0


def _others(folder: Folder, nodes: int) -> int:
    """Check which nodes were crawled, and the nodes of the parent; read all other files."""
    if "crawled" in folder:
        check_mask(folder, "crawled")
    if "from_parent" in folder:
        for _, block in folder.blocks("from_parent", _BLOCK):
            wrong = block[(block >= nodes) & (block != NO_NODE)]
            if len(wrong):
                raise folder.damaged(
                    "from_parent", f"node {wrong[0]:,}, and there are {counted(nodes, 'node')}"
                )
    rows = _CODED if folder.header.version == COMPRESSED else _ROWS
    folder.verify(folder.header.files.keys() - _LAYOUT.keys() - rows.keys())
    return 0


def check_mask(folder: Folder, name: str) -> None:
    """Read a file of booleans, and check that each is 0 or 1.

    Raises
    ------
    inlink.errors.FolderError
        If a byte is neither 0 nor 1, or the checksum is wrong.
    """
    for start, block in folder.blocks(name, 4 * _BLOCK):
        wrong = np.flatnonzero(block.view(np.uint8) > 1)
        if len(wrong):
            raise folder.damaged(name, f"byte {start + int(wrong[0]):,} is neither 0 nor 1")


def _coded_shape(folder: Folder) -> tuple[int, int]:
    """Return the numbers of nodes and arcs, after checking them by the lengths of the files."""
    _check_lengths(folder, {"shape": 2})
    folder.verify(["shape"])
    nodes, arcs = (int(number) for number in folder.array("shape"))
    if nodes > MAX_NODES:
        raise folder.damaged("shape", counted(nodes, "node"))
    blocks = 2 * (-(-nodes // BLOCK) + 1)
    _check_lengths(folder, {"linking": -(-nodes // 8), "in.blocks": blocks, "out.blocks": blocks})
    least = {"in.rows": arcs + PAD, "in.starts": 8 - START, "out.records": BIT_PAD}
    _check_lengths(folder, least, "at least ")
    return nodes, arcs


def _coded_totals(folder: Folder) -> list[Callable[[], int]]:
    """Check the files of rows, and return for each side the function that decodes and checks its rows.

    The functions return a sum of hashes of all arcs, which is the same for both sides if they hold the same arcs.

    Raises
    ------
    inlink.errors.FolderError
        If a checksum is wrong, or the files do not fit together. The functions raise it if the rows are not sound.
    """
    nodes, arcs = (int(number) for number in folder.array("shape"))
    folder.verify(["linking", "in.starts", "in.rows", "in.blocks", "out.records", "out.blocks"])
    bits = folder.array("linking")
    if nodes % 8 and bits[-1] >> (nodes % 8):
        raise folder.damaged("linking", f"a bit after that of node {nodes - 1:,} is set")
    inlinks = coded_inlinks(folder, nodes)
    linking = len(inlinks.linking)
    if len(inlinks.starts) != START * linking + 8 - START:
        raise folder.damaged("in.starts", f"its length is not that of {linking:,} linking nodes")
    ends = {"in": len(folder.array("in.rows")) - PAD, "out": 8 * (len(folder.array("out.records")) - BIT_PAD)}
    for side, end in ends.items():
        _check_blocks(folder, f"{side}.blocks", end, arcs, 1 if side == "in" else 8)
    for name, pad in (("in.rows", PAD), ("out.records", BIT_PAD)):
        if folder.array(name)[-pad:].any():
            raise folder.damaged(name, "it does not end with zeros")
    outlinks = CodedOutlinks(folder.array("out.records"), folder.array("out.blocks"))
    return [partial(_coded_total, folder, coded, nodes, inlinks.linking) for coded in (outlinks, inlinks)]


def _check_blocks(folder: Folder, name: str, end: int, arcs: int, unit: int) -> None:
    """Check that blocks increase from 0 to the end of the file. The last unit of the file may be incomplete."""
    pairs = folder.array(name).reshape(-1, 2)
    falls = np.flatnonzero((pairs[1:] < pairs[:-1]).any(1))
    if len(falls):
        raise folder.damaged(name, f"block {falls[0] + 1:,} begins before the one before")
    first, last = pairs[0].tolist(), pairs[-1].tolist()
    if first != [0, 0] or not end - unit < last[0] <= end or last[1] != arcs:
        raise folder.damaged(name, "its ends are not those of the rows")


def _coded_total(
    folder: Folder, coded: CodedRows | CodedOutlinks, num_nodes: int, linking: UInt32Array
) -> int:
    """Decode and check the rows of one side; return the sum of their arcs' hashes."""
    inward = isinstance(coded, CodedRows)
    name, weighted = ("in.rows", "in.weights") if inward else ("out.records", "out.weights")
    rows = RowCheck(np.broadcast_to(np.uint64(0), num_nodes + 1), inward, linking if inward else None)
    weights = None
    if weighted in folder:
        weights = folder.array(weighted)
        folder.verify([weighted])
    for low, wrong, offsets, nodes, first in decoded_blocks(coded, num_nodes):
        if wrong >= 0:
            what = f"the row at place {wrong:,}" if inward else f"the record of node {wrong:,}"
            raise folder.damaged(name, f"{what} cannot be decoded")
        if not inward and not _links(linking, low, offsets):
            raise folder.damaged("linking", f"not the nodes with outlinks, from node {low:,} on")
        rows.begin(low, offsets)
        fault = rows.wrong(0, nodes, None if weights is None else weights[first : first + len(nodes)])
        if fault is not None:
            raise folder.damaged(weighted if "weight" in fault else name, fault)
    return rows.total


def _links(linking: UInt32Array, low: int, offsets: UInt64Array) -> bool:
    """Return whether the linking nodes from ``low`` on are those with arcs."""
    begin, end = np.searchsorted(linking, np.array([low, low + len(offsets) - 1], np.uint32))
    return np.array_equal(np.flatnonzero(np.diff(offsets)) + low, linking[begin:end])


# -- what a caller gave ---------------------------------------------------------------------------------------------


def sound_graph(
    out_rows: Rows, in_rows: Rows | SplitRows | None, names: Names | None, level: object
) -> tuple[Rows, Rows | None]:
    """Check the rows, names and level that a caller made a graph of, and return the rows as sound arrays.

    Raises
    ------
    inlink.errors.ParameterError
        If they are not sound, or do not fit together.
    """
    if level not in (None, "page", "host", "domain"):
        raise ParameterError(f"`level` must be 'page', 'host', 'domain' or None; got {level!r}")
    arrays, total = sound_rows(*out_rows, "`out_rows`", turned=False)
    if names is not None:
        check_names(names, len(arrays[0]) - 1)
    if in_rows is None:
        return Rows(*arrays), None
    if isinstance(in_rows, SplitRows):
        raise ParameterError("`in_rows` must be plain rows of inlinks; got split rows")
    turned, turned_total = sound_rows(*in_rows, "`in_rows`", turned=True)
    if len(turned[0]) != len(arrays[0]) or turned_total != total:
        raise ParameterError("`in_rows` must hold the same arcs as `out_rows`, reversed; got others")
    return Rows(*arrays), Rows(*turned)


def sound_rows(
    offsets: Any, nodes: Any, weights: Any, what: str, *, turned: bool
) -> tuple[tuple[UInt64Array, UInt32Array, AnyArray | None], int]:
    """Check rows that a caller gave; return them as contiguous arrays in this machine's byte order.

    Returns
    -------
    (uint64[n + 1], uint32[m], uint32[m] or float64[m] or None), int
        Offsets, nodes and weights, copied only where needed; and the sum of the arcs' hashes.

    Raises
    ------
    inlink.errors.ParameterError
        If the rows are not sound. ``what`` is their name in the message.
    """
    offsets, nodes = (
        integers(offsets, f"{what}: offsets", np.uint64, 2**63),
        integers(nodes, f"{what}: nodes", np.uint32, MAX_NODES),
    )
    if not 1 <= len(offsets) <= MAX_NODES + 1:
        raise ParameterError(f"{what}: there must be one offset more than nodes; got {len(offsets):,}")
    if offsets[0] != 0 or offsets[-1] != len(nodes) or (offsets[1:] < offsets[:-1]).any():
        raise ParameterError(f"{what}: offsets must increase from 0 to the number of arcs, {len(nodes):,}")
    if weights is not None:
        weights = np.asarray(weights)
        if weights.shape != nodes.shape or weights.dtype.kind not in "biuf":
            raise ParameterError(
                f"{what}: weights must be {counted(len(nodes), 'number')}; got {weights.dtype} of shape {weights.shape}"
            )
        kind = np.uint32 if weights.dtype.kind == "u" and weights.dtype.itemsize == 4 else np.float64
        with np.errstate(over="ignore"):
            weights = np.ascontiguousarray(weights, kind)
    rows = RowCheck(offsets, turned)
    wrong = rows.wrong(0, nodes, weights)
    if wrong is not None:
        raise ParameterError(f"{what}: {wrong}")
    return (offsets, nodes, weights), rows.total


def integers(values: Any, what: str, dtype: type[np.unsignedinteger[Any]], limit: int) -> AnyArray:
    """Check integers in ``range(limit)``; return them as a contiguous unsigned array, copied only if needed.

    Raises
    ------
    inlink.errors.ParameterError
        If the values are not such integers. ``what`` is their name in the message.
    """
    values = np.asarray(values)
    if values.ndim != 1 or (values.dtype.kind not in "iu" and values.size):
        raise ParameterError(
            f"{what} must be a list of whole numbers; got {values.dtype} of shape {values.shape}"
        )
    if values.size and (int(values.min()) < 0 or int(values.max()) >= limit):
        wrong = values.min() if values.min() < 0 else values.max()
        raise ParameterError(f"{what} must be in [0, {limit:,}); got {wrong}")
    # If the size and the byte order are the same, a view has the same bytes.
    if (
        values.dtype.isnative
        and values.flags.c_contiguous
        and values.dtype.itemsize == np.dtype(dtype).itemsize
    ):
        same_bytes: AnyArray = values.view(dtype)
        return same_bytes
    return np.ascontiguousarray(values, dtype)


def check_weights(weights: AnyArray, place: str) -> None:
    """Check that weights can be used in rankings.

    Raises
    ------
    inlink.errors.ParameterError
        If a weight is not finite or not above 0.
    """
    wrong = ~(np.isfinite(weights) & (weights > 0))
    if wrong.any():
        where = int(np.argmax(wrong))
        raise ParameterError(
            f"{place}: weights must be finite and above 0; got {weights[where]} at arc {where}"
        )


def check_names(names: Names, nodes: int) -> None:
    """Check names that a caller gave.

    Raises
    ------
    inlink.errors.ParameterError
        If there is not one name for each node, their offsets do not increase, or two names are the same.
    """
    from inlink.graph.kernels.checks import wrong_name

    if not isinstance(names, Names) or len(names) != nodes:
        raise ParameterError(f"`names` must be the names of {nodes:,} nodes; got {names!r:.60}")
    text, offsets = names.text, names.offsets
    order = np.empty(0, np.uint32) if names.order is None else names.order
    types = (text.dtype == np.uint8, offsets.dtype == np.uint64, order.dtype == np.uint32)
    if (
        not all(types)
        or (names.order is not None and len(order) != nodes)
        or offsets[-1] > len(text)
        or (offsets[1:] < offsets[:-1]).any()
        or wrong_name(text, offsets, order, np.uint64(0), np.uint64(nodes)) < nodes
    ):
        raise ParameterError(
            "`names` must have increasing offsets and the order of the names; make them by Names.of"
        )
