"""The loop that finds the pages that events are about."""

import numpy as np
from numpy import uint32, uint64

from inlink.base.arrays import UInt8Array, UInt32Array
from inlink.base.jit import U0, U1, kernel
from inlink.store.format import MERGE, SEED, VISIT
from inlink.store.kernels.fold import does_to_listed, entry
from inlink.store.kernels.frames import NO_PAGE, head_at, links_at, list_start

__all__ = ["touched"]


@kernel
def touched(log: UInt8Array) -> UInt32Array:
    """Mention each page that the frames in ``log`` are about, list, or make known: uint32[k], with repeats."""
    pages, count = np.empty(uint64(1024), uint32), U0
    place, end = U0, uint64(len(log))
    while place < end:
        head = head_at(log, place)
        kind, listed = head.kind, uint64(head.listed)
        room = count + listed + uint64(head.new) + U1
        if room > uint64(len(pages)):
            longer = np.empty(room * uint64(2), uint32)
            longer[:count] = pages[:count]
            pages = longer
        if head.page != NO_PAGE:
            pages[count] = head.page
            count += U1
        for page in range(uint64(head.first), uint64(head.first) + uint64(head.new)):
            pages[count] = uint32(page)
            count += U1
        if kind == VISIT or kind == SEED or kind == MERGE:
            count += links_at(log, place, pages[count:])
        elif does_to_listed(kind):
            begin = list_start(log, place)
            for i in range(U0, listed):
                page, _ = entry(log, kind, begin, i)
                pages[count] = uint32(page)
                count += U1
        place += uint64(head.length)
    return pages[:count].copy()
