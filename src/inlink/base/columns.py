"""Arrays that grow without moving: address space is reserved once, and memory is used only for what was written.

A crawl keeps several numbers for each of hundreds of millions of pages. If such an array grew by copying, its memory
would double for a moment and the crawl would stop for seconds.
"""

import mmap
import os
from typing import Any

import numpy as np

from inlink.base.arrays import AnyArray

__all__ = ["most_pages", "reserve"]

# Older Pythons do not name MAP_NORESERVE.
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)


def most_pages() -> int:
    """An upper limit on the pages that this machine's memory can hold: a power of two from 2²⁶ to 2³¹."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        memory = 1 << 34
    return 1 << min(max((memory // 32).bit_length(), 26), 31)


def reserve(dtype: Any, length: int) -> AnyArray:
    """An array of zeros that takes memory only for what is written.

    Parameters
    ----------
    dtype : dtype
        The type of the elements.
    length : int
        The largest number of elements. If the system limits the address space, it is halved up to ten times.

    Returns
    -------
    dtype[≤ length]
        The zeros. The length of the array is the number of elements there is room for.

    Raises
    ------
    MemoryError
        If not even a 1,024th of the space is available.
    """
    size = np.dtype(dtype).itemsize
    for _ in range(11):
        try:
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
            space = mmap.mmap(-1, max(length, 1) * size, flags=flags)
        except (OSError, ValueError):
            length //= 2
            continue
        return np.frombuffer(space, dtype)
    raise MemoryError(f"cannot reserve {length * size:,} bytes of address space")
