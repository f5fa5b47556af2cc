"""Blocks of rows: the data of one task for a round of PageRank.

A block has the inlinks of the nodes ``low``, ``low + 1``, …, split as in :mod:`inlink.graph.rows`. Its own linking
nodes have the local places 0, 1, …. After them come the linking nodes of other blocks from which its arcs come
(``outside``). So a task takes a few numbers out of the whole vector, and then runs the kernels of
:mod:`inlink.rank.kernels.pagerank` on a small equation.
"""

from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from inlink.base.arrays import AnyArray, Float64Array, UInt32Array, UInt64Array
from inlink.errors import ParameterError
from inlink.graph.rows import SplitRows, row_places
from inlink.rank.kernels.pagerank import Equation


class Block(NamedTuple):
    """Rows of inlinks, and their share of the equation.

    Attributes
    ----------
    low : int
        The first node.
    first : int
        The place of its first linking node among all linking nodes.
    equation : Equation
        The rows, by local place. Nodes are counted from `low`.
    outside : uint32[k]
        The places of the linking nodes of other blocks, increasing.
    """

    low: int
    first: int
    equation: Equation
    outside: UInt32Array

    @property
    def size(self) -> int:
        """The number of nodes."""
        return len(self.equation.offsets) - 1

    def local(self, z: Float64Array) -> Float64Array:
        """The values of a vector by place, float64[l], that the block's arcs read."""
        own = z[self.first : self.first + len(self.equation.strengths)]
        return np.concatenate([own, z[self.outside]])


class Rest(NamedTuple):
    """The rest of the equation, the same for all blocks: see :class:`inlink.rank.kernels.pagerank.Equation`.

    Attributes
    ----------
    linking : uint32[l]
        All linking nodes.
    strengths : uint32[l] or float64[l]
        By place.
    teleport : float64[n] or float64[1]
        By node.
    damping : float
        The probability of following a link.
    """

    linking: UInt32Array
    strengths: AnyArray
    teleport: Float64Array
    damping: float


def block_of_rows(rows: SplitRows, weighted: bool, rest: Rest, low: int, high: int) -> Block:
    """Cut the nodes [low, high) out of a graph's inlinks."""
    first, last = (int(k) for k in np.searchsorted(rows.linking, [low, high]))
    others = len(rows.linking) + low - first, len(rows.linking) + high - last
    offsets: list[UInt64Array] = [np.zeros(1, np.uint64)]
    sources, weights = [], []
    before = np.uint64(0)
    for begin, end in ((first, last), others):
        span = rows.offsets[begin : end + 1]
        arcs = slice(int(span[0]), int(span[-1]))
        offsets.append(span[1:] - span[0] + before)
        before += span[-1] - span[0]
        sources.append(rows.nodes[arcs])
        weights.append(rows.weights[arcs] if weighted and rows.weights is not None else np.empty(0))
    return _block(low, high, first, np.concatenate(offsets), np.concatenate(sources), _joined(weights), rest)


def _joined(weights: list[AnyArray]) -> AnyArray:
    return np.concatenate(weights) if len(weights[0]) or len(weights[1]) else np.empty(0)


def block_of_arcs(
    sources: UInt32Array, targets: UInt32Array, weights: AnyArray, rest: Rest, low: int, high: int
) -> Block:
    """Make the rows of the nodes [low, high) of arcs in any order. The weights of equal arcs are added up."""
    first, last = (int(k) for k in np.searchsorted(rest.linking, [low, high]))
    own = rest.linking[first:last] - np.uint32(low)
    places = np.searchsorted(rest.linking, sources).astype(np.uint64)
    keys = row_places(own, high - low)[targets - np.uint32(low)].astype(np.uint64) << np.uint64(32) | places
    arcs, back = np.unique(keys, return_inverse=True)
    sums = np.bincount(back, weights, len(arcs)) if len(weights) else np.empty(0)
    offsets = np.searchsorted(arcs >> np.uint64(32), np.arange(high - low + 1)).astype(np.uint64)
    return _block(low, high, first, offsets, arcs.astype(np.uint32), sums, rest)


def _block(
    low: int,
    high: int,
    first: int,
    offsets: UInt64Array,
    sources: UInt32Array,
    weights: AnyArray,
    rest: Rest,
) -> Block:
    last = int(np.searchsorted(rest.linking, high))
    if len(sources) and int(sources.max()) >= len(rest.linking):
        raise ParameterError("an arc comes from a node that does not link: the graph has changed, rank again")
    inside = (sources >= first) & (sources < last)
    outside = np.unique(sources[~inside])
    local = np.where(
        inside, sources - np.uint32(first), np.uint32(last - first) + np.searchsorted(outside, sources)
    ).astype(np.uint32)
    teleport = rest.teleport[low:high] if len(rest.teleport) > 1 else rest.teleport
    equation = Equation(
        offsets,
        local,
        weights,
        rest.linking[first:last] - np.uint32(low),
        rest.strengths[first:last],
        np.array(teleport),
        rest.damping,
    )
    return Block(low, first, equation, outside)


# -- blocks as rows of a table ------------------------------------------------------------------------------

_ARRAYS = ("offsets", "nodes", "weights", "linking", "strengths", "teleport")
SCHEMA = f"head string, {', '.join(f'{name} binary' for name in _ARRAYS)}, outside binary"
"""The columns of packed blocks, as Spark writes them."""


def pack(block: Block) -> pa.RecordBatch:
    """Return a block as a row of a table."""
    arrays = {name: getattr(block.equation, name) for name in _ARRAYS} | {"outside": block.outside}
    types = {name: array.dtype.str for name, array in arrays.items()}
    head = msgspec.json.encode([block.low, block.first, block.equation.damping, types]).decode()
    columns = {name: pa.array([array.tobytes()], pa.binary()) for name, array in arrays.items()}
    return pa.RecordBatch.from_pydict({"head": pa.array([head]), **columns})


def unpack(batch: pa.RecordBatch, row: int) -> Block:
    """Return the block in a row of a table."""
    low, first, damping, types = msgspec.json.decode(batch.column("head")[row].as_py())

    def array(name: str) -> Any:
        # A copy, because the bytes need not lie at a multiple of eight.
        return np.frombuffer(batch.column(name)[row].as_buffer(), types[name]).copy()

    equation = Equation(**{name: array(name) for name in _ARRAYS}, damping=damping)
    return Block(low, first, equation, array("outside"))
