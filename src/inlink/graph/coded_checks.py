"""Check that the compressed rows of a graph's folder are sound, before a kernel trusts them.

All rows of both sides are decoded once by loops that check every bound. A sound folder has blocks and rows where its
files say, the arcs of the inlinks are those of the outlinks, and the linking nodes are those with outlinks.
"""

from collections.abc import Callable, Iterator

import numpy as np

from inlink.base.arrays import AnyArray, UInt32Array, UInt64Array
from inlink.base.folder import Folder
from inlink.graph.checks import RowCheck, wrong_header
from inlink.graph.coded import BIT_PAD, CodedOutlinks, decoded_inlinks, decoded_outlinks, spans
from inlink.graph.compressed import linking_nodes
from inlink.graph.names import MAX_NODES
from inlink.graph.rows import BLOCK, PAD, START, CodedRows

__all__ = ["checked_shape", "side_totals"]


def checked_shape(folder: Folder) -> tuple[int, int]:
    """Return the numbers of nodes and arcs, after checking them by the lengths of the files.

    Raises
    ------
    inlink.errors.FolderError
        If a file has another length, or the checksum of the numbers is wrong.
    """
    files = folder.header.files
    if files["shape"].length != 2:
        raise wrong_header(folder, f"shape has {files['shape'].length:,} elements and should have 2")
    folder.verify(["shape"])
    nodes, arcs = (int(number) for number in folder.array("shape"))
    if nodes > MAX_NODES:
        raise folder.damaged("shape", f"{nodes:,} nodes")
    blocks = 2 * (-(-nodes // BLOCK) + 1)
    for name, length in (("linking", -(-nodes // 8)), ("in.blocks", blocks), ("out.blocks", blocks)):
        if files[name].length != length:
            raise wrong_header(
                folder, f"{name} has {files[name].length:,} elements and should have {length:,}"
            )
    for name, least in (("in.rows", arcs + PAD), ("in.starts", 8 - START), ("out.records", BIT_PAD)):
        if files[name].length < least:
            raise wrong_header(
                folder, f"{name} has {files[name].length:,} elements and should have at least {least:,}"
            )
    return nodes, arcs


def side_totals(folder: Folder) -> list[Callable[[], int]]:
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
    linking = linking_nodes(bits, nodes)
    if folder.header.files["in.starts"].length != START * len(linking) + 8 - START:
        raise folder.damaged("in.starts", f"its length is not that of {len(linking):,} linking nodes")
    ends = {"in": len(folder.array("in.rows")) - PAD, "out": 8 * (len(folder.array("out.records")) - BIT_PAD)}
    for side, end in ends.items():
        _check_blocks(folder, f"{side}.blocks", end, arcs, 1 if side == "in" else 8)
    for name, pad in (("in.rows", PAD), ("out.records", BIT_PAD)):
        if folder.array(name)[-pad:].any():
            raise folder.damaged(name, "it does not end with zeros")
    return [lambda: _total(folder, "out", nodes, linking), lambda: _total(folder, "in", nodes, linking)]


def _check_blocks(folder: Folder, name: str, end: int, arcs: int, unit: int) -> None:
    """Check that blocks increase from 0 to the end of the file. The last unit of the file may be incomplete."""
    pairs = folder.array(name).reshape(-1, 2)
    falls = np.flatnonzero((pairs[1:] < pairs[:-1]).any(1))
    if len(falls):
        raise folder.damaged(name, f"block {falls[0] + 1:,} begins before the one before")
    first, last = pairs[0].tolist(), pairs[-1].tolist()
    if first != [0, 0] or not end - unit < last[0] <= end or last[1] != arcs:
        raise folder.damaged(name, "its ends are not those of the rows")


def _total(folder: Folder, side: str, num_nodes: int, linking: UInt32Array) -> int:
    """Decode and check the rows of one side; return the sum of their arcs' hashes."""
    name = "in.rows" if side == "in" else "out.records"
    rows = RowCheck(
        np.broadcast_to(np.uint64(0), num_nodes + 1), side == "in", linking if side == "in" else None
    )
    weights = folder.array(f"{side}.weights") if f"{side}.weights" in folder else None
    if weights is not None:
        folder.verify([f"{side}.weights"])
    for low, wrong, offsets, nodes, first in _decoded(folder, side, num_nodes, linking):
        if wrong >= 0:
            what = f"the row at place {wrong:,}" if side == "in" else f"the record of node {wrong:,}"
            raise folder.damaged(name, f"{what} cannot be decoded")
        if side == "out" and not _links(linking, low, offsets):
            raise folder.damaged("linking", f"not the nodes with outlinks, from node {low:,} on")
        rows.begin(low, offsets)
        told = rows.wrong(0, nodes, None if weights is None else weights[first : first + len(nodes)])
        if told is not None:
            raise folder.damaged(f"{side}.weights" if "weight" in told else name, told)
    return rows.total


def _links(linking: UInt32Array, low: int, offsets: UInt64Array) -> bool:
    """Return whether the linking nodes from ``low`` on are those with arcs."""
    begin, end = np.searchsorted(linking, np.array([low, low + len(offsets) - 1], np.uint64))
    return np.array_equal(np.flatnonzero(np.diff(offsets)) + low, linking[begin:end])


def _decoded(
    folder: Folder, side: str, num_nodes: int, linking: UInt32Array
) -> Iterator[tuple[int, int, UInt64Array, AnyArray, int]]:
    """Yield spans of rows: the first row, the first wrong one or −1, offsets, nodes, and number of the first arc."""
    blocks = folder.array(f"{side}.blocks")
    inlinks = CodedRows(
        folder.array("in.starts"), folder.array("in.rows"), folder.array("in.blocks"), linking
    )
    outlinks = CodedOutlinks(folder.array("out.records"), folder.array("out.blocks"), num_nodes)
    for low, high in spans(blocks, 0, len(blocks) // 2 - 1):
        if side == "in":
            decoded = decoded_inlinks(inlinks, num_nodes, low, high)
        else:
            decoded = decoded_outlinks(outlinks, low, high)
        yield low * BLOCK, *decoded, int(blocks[2 * low + 1])
