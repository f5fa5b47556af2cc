"""Read the successor lists of a compressed graph: BVGraph's records in blocks that can be decoded alone."""

from numpy import uint64

from inlink.base.arrays import UInt64Array
from inlink.base.jit import U0, U1, kernel
from inlink.graph.kernels.bits import DONE, BitStream, ListArrays, Shape, decode

__all__ = ["decode_blocks"]

_U2 = uint64(2)


@kernel(allocates=False)
def decode_blocks(
    stream: BitStream,
    shape: Shape,
    room: ListArrays,
    blocks: UInt64Array,
    size: uint64,
    offsets: UInt64Array,
) -> uint64:
    """Decode the lists of the nodes from ``shape.first`` to ``shape.stop``, which are in blocks of ``size`` nodes.

    Parameters
    ----------
    stream, shape, room
        See these classes. ``shape.first`` begins a block, and ``room.successors`` has room for just these lists.
    blocks : uint64[2 · (number of blocks + 1)]
        The first bit of each block, not after the end of the stream, and the number of arcs before it.
    size : uint64
        The number of nodes of a block.
    offsets : uint64[stop − first + 1]
        Gets where each list begins in ``room.successors``.

    Returns
    -------
    uint64
        The first node whose record is damaged, or is not where ``blocks`` says; ``shape.stop`` if there is none.
    """
    num_nodes, window, min_interval, first, stop = shape
    filled, at, begin = U0, U0, first
    before = blocks[_U2 * (first // size) + U1]
    offsets[U0] = U0
    for node in range(first, stop):
        if node % size == U0:
            begin = uint64(node)
            block = _U2 * (begin // size)
            if node > first and blocks[block] != at:
                return uint64(node)
            at = blocks[block]
            if blocks[block + U1] != before + filled:
                return uint64(node)
        single = Shape(num_nodes, window, min_interval, begin, uint64(node) + U1)
        status, _, at, filled, _ = decode(stream, single, room, at, uint64(node), filled)
        if status != DONE:
            return uint64(node)
        offsets[uint64(node) + U1 - first] = filled
    block = _U2 * ((stop + size - U1) // size)
    if blocks[block] != at or blocks[block + U1] != before + filled:
        return stop - U1
    return stop
