"""What links carry: bytes that a spider gave with a link, and gets back with the lease.

They are the end of the frame that told of the links, which has the flag ``HAS_CARRIED``::

    all carried bytes     n times CarriedRecord     n as uint32

The records are in the order of their pages, so that one page's bytes are found without reading the others'.
"""

from collections.abc import Mapping

import numpy as np

from inlink.base.arrays import UInt8Array
from inlink.store.format import CarriedRecord, dtype_of

__all__ = ["carried_in", "encode_carried"]


def encode_carried(data: Mapping[int, bytes]) -> bytes:
    """Code what pages carry, by page, as the end of a frame; empty if they carry nothing."""
    if not data:
        return b""
    pages = sorted(data)
    table = np.empty(len(pages), dtype_of(CarriedRecord))
    table["page"] = pages
    table["end"] = np.cumsum([len(data[page]) for page in pages])
    return b"".join(data[page] for page in pages) + table.tobytes() + len(pages).to_bytes(4, "little")


def carried_in(frame: UInt8Array, page: int) -> bytes | None:
    """What a page carries by a frame, or by a frame's payload; None if the frame does not say."""
    count = int.from_bytes(frame[-4:].tobytes(), "little")
    record = dtype_of(CarriedRecord)
    begin = len(frame) - 4 - record.itemsize * count
    table = frame[begin : len(frame) - 4].view(record)
    row = int(np.searchsorted(table["page"], page))
    if row == count or table["page"][row] != page:
        return None
    first = begin - int(table["end"][-1])
    return frame[
        first + (int(table["end"][row - 1]) if row else 0) : first + int(table["end"][row])
    ].tobytes()
