"""Encode and read carried data: bytes that a spider gives with a link, and that the lease of the page returns.

Carried data are at the end of the frame that holds the links, which has the flag ``HAS_CARRIED``::

    all carried bytes     n times CarriedRecord     n as uint32

The records are in the order of their pages, so that the bytes of one page are found without reading all records.
"""

from collections.abc import Mapping

import numpy as np

from inlink.base.arrays import UInt8Array
from inlink.store.format import CarriedRecord, dtype_of


def encode_carried(data: Mapping[int, bytes]) -> bytes:
    """Encode the data of pages as the end of a frame; empty if there are no data."""
    if not data:
        return b""
    pages = sorted(data)
    table = np.empty(len(pages), dtype_of(CarriedRecord))
    table["page"] = pages
    contents = list(map(data.__getitem__, pages))
    table["end"] = np.cumsum(list(map(len, contents)))
    return b"".join(contents) + table.tobytes() + len(pages).to_bytes(4, "little")


def carried_in(frame: UInt8Array, page: int) -> bytes | None:
    """Return the data of a page in a frame, or in its payload; None if the page has no data there."""
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
