"""What links carry: bytes that a spider gave with a link, and gets back with the lease.

They stand at the end of the frame that told of the links, which has the flag ``HAS_CARRIED``::

    the bytes, one after the other     n × (u32 page, u32 where its bytes end)     u32 n

by increasing page, so that one page's are found without reading the others'.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

__all__ = ["carried_in", "encode_carried"]

U8 = npt.NDArray[np.uint8]


def encode_carried(data: Mapping[int, bytes]) -> bytes:
    """What pages carry, by page, as the end of a frame; nothing is nothing."""
    if not data:
        return b""
    pages = sorted(data)
    table = np.empty((len(pages), 2), "<u4")
    table[:, 0] = pages
    table[:, 1] = np.cumsum([len(data[page]) for page in pages])
    return b"".join(data[page] for page in pages) + table.tobytes() + len(pages).to_bytes(4, "little")


def carried_in(frame: U8, page: int) -> bytes | None:
    """What a page carries by a frame, given as its bytes; None if the frame does not say."""
    count = int(frame[-4:].view("<u4")[0])
    begin = len(frame) - 4 - 8 * count
    table = frame[begin : begin + 8 * count].view("<u4").reshape(count, 2)
    row = int(np.searchsorted(table[:, 0], page))
    if row == count or table[row, 0] != page:
        return None
    first = begin - int(table[-1, 1])
    return frame[first + (int(table[row - 1, 1]) if row else 0) : first + int(table[row, 1])].tobytes()
