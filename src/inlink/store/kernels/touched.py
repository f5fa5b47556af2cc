"""The loop that finds the pages that events are about."""

import numpy as np

from inlink.base.arrays import UInt8Array, UInt32Array
from inlink.base.jit import U0, U1, kernel
from inlink.store.format import MERGE, SEED, VISIT
from inlink.store.kernels.fold import does_to_listed, entry
from inlink.store.kernels.frames import NO_PAGE, head_at, links_at, list_start

__all__ = ["touched"]


@kernel
def touched(log: UInt8Array) -> UInt32Array:
    """Mention each page that the frames in ``log`` are about, list, or make known: uint32[k], with repeats."""
    pages, count = np.empty(np.uint64(1024), np.uint32), U0
    place, end = U0, np.uint64(len(log))
    while place < end:
        head = head_at(log, place)
        kind, listed = head.kind, np.uint64(head.listed)
        room = count + listed + np.uint64(head.new) + U1
        if room > np.uint64(len(pages)):
            longer = np.empty(room * np.uint64(2), np.uint32)
            longer[:count] = pages[:count]
            pages = longer
        if head.page != NO_PAGE:
            pages[count] = head.page
            count += U1
        for page in range(np.uint64(head.first), np.uint64(head.first) + np.uint64(head.new)):
            pages[count] = np.uint32(page)
            count += U1
        if kind == VISIT or kind == SEED or kind == MERGE:
            count += links_at(log, place, pages[count:])
        elif does_to_listed(kind):
            begin = list_start(log, place)
            for i in range(U0, listed):
                page, _ = entry(log, kind, begin, i)
                pages[count] = np.uint32(page)
                count += U1
        place += np.uint64(head.length)
    return pages[:count].copy()
