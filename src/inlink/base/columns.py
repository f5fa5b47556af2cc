"""Arrays that grow without moving: address space is reserved once, memory is used only where something was written.

A crawl keeps several numbers a page, for hundreds of millions of pages. Growing such an array by copying it would
double its memory for a moment and stop the crawl for seconds.
"""

import mmap
import os
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["most_pages", "reserve"]

_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)


def most_pages() -> int:
    """How many pages a machine with this memory can hold, generously: a power of two from 2²⁶ to 2³¹."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        memory = 1 << 34
    return 1 << min(max((memory // 32).bit_length(), 26), 31)


def reserve(dtype: Any, length: int) -> npt.NDArray[Any]:
    """An array of ``length`` zeros that takes memory only where it is written to.

    Parameters
    ----------
    dtype : dtype
        Of the elements.
    length : int
        How many there may ever be. Where the system limits the address space, fewer: half, a quarter, …

    Returns
    -------
    ndarray, at most length
        Its length says how many elements there is room for.

    Raises
    ------
    MemoryError
        If not even a 1,024th of it can be had.
    """
    size = np.dtype(dtype).itemsize
    for _ in range(11):
        try:
            if hasattr(mmap, "MAP_PRIVATE"):
                flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
                space = mmap.mmap(-1, max(length, 1) * size, flags=flags)
            else:  # Windows commits what it reserves: start small there
                return np.zeros(min(length, 1 << 24), dtype)
        except (OSError, ValueError):
            length //= 2
            continue
        return np.frombuffer(space, dtype)
    raise MemoryError(f"cannot reserve {length * size:,} bytes of address space")
