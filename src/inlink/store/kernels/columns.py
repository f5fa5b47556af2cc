"""What the store's loops work on: the columns of :class:`inlink.store.pages.Pages`, as one argument."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from inlink.base.jit import array_at, kernel

__all__ = ["Columns", "Table", "columns_at", "table_at"]

U8A = npt.NDArray[np.uint8]
U16A = npt.NDArray[np.uint16]
U32A = npt.NDArray[np.uint32]
U64A = npt.NDArray[np.uint64]
F32A = npt.NDArray[np.float32]


class Table(NamedTuple):
    """The table of known URLs, and that of hosts; see :mod:`inlink.store.kernels.table`."""

    tally: U64A  # its places are named in inlink.store.layout
    slots: U64A
    sizes: U64A  # of each shard: slots, and how many are taken
    counts: U64A
    checks: U32A  # of each page, as hosts
    hosts: U32A
    marks: U64A  # where every 32nd URL begins in urls.txt
    host_slots: U32A
    host_text: U8A
    host_ends: U64A


class Columns(NamedTuple):
    """What events make of pages; see :class:`inlink.store.pages.Pages`."""

    tally: U64A
    states: U8A
    depths: U16A
    errors: U8A
    answers: U32A
    answered: U32A
    visits: U64A
    failures: U64A
    scores: F32A
    makers: U32A
    maker_places: U64A


@kernel
def table_at(at: U64A) -> Table:
    """The table, from the addresses of its arrays."""
    return Table(
        array_at(at, 0, np.uint64),
        array_at(at, 1, np.uint64),
        array_at(at, 2, np.uint64),
        array_at(at, 3, np.uint64),
        array_at(at, 4, np.uint32),
        array_at(at, 5, np.uint32),
        array_at(at, 6, np.uint64),
        array_at(at, 7, np.uint32),
        array_at(at, 8, np.uint8),
        array_at(at, 9, np.uint64),
    )


@kernel
def columns_at(at: U64A) -> Columns:
    """The columns, from the addresses of their arrays."""
    return Columns(
        array_at(at, 0, np.uint64),
        array_at(at, 1, np.uint8),
        array_at(at, 2, np.uint16),
        array_at(at, 3, np.uint8),
        array_at(at, 4, np.uint32),
        array_at(at, 5, np.uint32),
        array_at(at, 6, np.uint64),
        array_at(at, 7, np.uint64),
        array_at(at, 8, np.float32),
        array_at(at, 9, np.uint32),
        array_at(at, 10, np.uint64),
    )
