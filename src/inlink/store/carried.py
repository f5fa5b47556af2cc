"""Encode and read carried data: bytes that a spider gives with a link, and that the lease of the page returns.

Carried data are at the end of the frame that holds the links, which has the flag ``HAS_CARRIED``::

    all carried bytes     n times CarriedRecord     n as uint32

The records are in the order of their pages, so that the bytes of one page are found without reading all records.
"""

from collections.abc import Mapping

import numpy as np

from inlink.base.arrays import AnyArray, Int64Array, UInt8Array
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


def all_carried(frame: UInt8Array) -> dict[int, bytes]:
    """Return the data of all pages in a frame, or in its payload, by page."""
    table, begins = _table(frame)
    return {
        page: frame[begins[row] : begins[row + 1]].tobytes()
        for row, page in enumerate(table["page"].tolist())
    }


def carried_in(frame: UInt8Array, page: int) -> bytes | None:
    """Return the data of a page in a frame, or in its payload; None if the page has no data there."""
    table, begins = _table(frame)
    row = int(np.searchsorted(table["page"], page))
    if row == len(table) or table["page"][row] != page:
        return None
    return frame[begins[row] : begins[row + 1]].tobytes()


def _table(frame: UInt8Array) -> tuple[AnyArray, Int64Array]:
    """Return the records of a frame, and the bytes at which their data begin, with the end of the last data."""
    count = int.from_bytes(frame[-4:].tobytes(), "little")
    record = dtype_of(CarriedRecord)
    end = len(frame) - 4 - record.itemsize * count
    table = frame[end : len(frame) - 4].view(record)
    begins = np.append(0, table["end"].astype(np.int64))
    return table, begins + (end - begins[-1])
