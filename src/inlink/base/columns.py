"""Arrays that grow without moving: address space is reserved once, and memory is used only for what was written.

A crawl keeps several numbers for each of hundreds of millions of pages. If such an array grew by copying, its memory
would double for a moment and the crawl would stop for seconds.
"""

import ctypes
import gc
import mmap
import os
from functools import cache
from typing import Any

import numpy as np

from inlink.base.arrays import AnyArray
from inlink.errors import StoreError

PAGE_SIZE = mmap.PAGESIZE
"""Bytes of a page of memory."""

# Older Pythons do not name MAP_NORESERVE.
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
# No Python names MAP_FIXED. It has this value on Linux, macOS and the BSDs.
_FIXED = 0x10


def most_pages() -> int:
    """An upper limit on the pages that this machine's memory can hold: a power of two from 2²⁶ to 2³¹.

    A limit of the process's address space (``ulimit -v``) lowers it, so that some crawls still fit into that limit.
    """
    try:
        import resource
    except ModuleNotFoundError:
        # Windows has no crawls, but commands on graphs load the declarations of a crawl's columns.
        return 1 << 26
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        memory = 1 << 34
    bits = min(max((memory // 32).bit_length(), 26), 31)
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        # A crawl has up to 150 bytes of columns for each page.
        bits = min(bits, (limit // 512).bit_length())
    return 1 << bits


class _Space(mmap.mmap):
    """The address space of a reserved array."""


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
    inlink.errors.StoreError
        If not even a 1,024th of the space is available.
    """
    size = np.dtype(dtype).itemsize
    wanted = length * size
    for tries in range(12):
        try:
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
            space = _Space(-1, max(length, 1) * size, flags=flags)
        except (OSError, ValueError):
            if tries:
                length //= 2
            else:
                # A crawl that was dropped in a reference cycle, such as an exception's, still has its space.
                gc.collect()
            continue
        return np.frombuffer(space, dtype)
    raise StoreError(
        f"cannot reserve {wanted:,} bytes of address space: close crawls and views that are open in this process, "
        "raise its limit (ulimit -v), or open fewer crawls in one process"
    )


def is_reserved(array: AnyArray) -> bool:
    """Return whether an array is :func:`reserve`'s, or a part of it that begins with its first element."""
    whole = array.base if isinstance(array.base, np.ndarray) else array
    buffer: Any = whole.base
    reserved = isinstance(buffer, memoryview) and isinstance(buffer.obj, _Space)
    return reserved and whole.ctypes.data == array.ctypes.data


def map_file(array: AnyArray, begin: int, end: int, file: int, offset: int) -> None:
    """Replace bytes ``begin`` … ``end`` - 1 of a reserved array by bytes of a file that are equal, mapped privately.

    The system reads pages of the file when they are used, and drops them when it needs memory. A page that is written
    later is copied into memory, and the file keeps its bytes. So a full disk cannot end the process.

    Parameters
    ----------
    array : AnyArray
        Made by :func:`reserve`, or the beginning of such an array.
    begin, end : int
        Multiples of :data:`PAGE_SIZE`.
    file : int
        Descriptor of a file. It may be closed later. These bytes of the file must not be changed.
    offset : int
        The byte of the file that becomes byte ``begin``, a multiple of :data:`PAGE_SIZE`.

    Raises
    ------
    OSError
        If the file cannot be mapped. Then the array is not changed.
    """
    # A mapping at a fixed place that fails may leave nothing mapped there. So the mapping is tried elsewhere first.
    mmap.mmap(file, end - begin, mmap.MAP_PRIVATE, mmap.PROT_READ, offset=offset).close()
    flags = mmap.MAP_PRIVATE | _NO_RESERVE | _FIXED
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    place = array.ctypes.data + begin
    if _mmap()(place, end - begin, protection, flags, file, offset) != place:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def drop_zeros(array: AnyArray, begin: int, end: int) -> None:
    """Give back the memory of bytes ``begin`` … ``end`` - 1 of a reserved array, which are all 0 and stay 0.

    Parameters
    ----------
    array : AnyArray
        Made by :func:`reserve`.
    begin, end : int
        Multiples of :data:`PAGE_SIZE`.
    """
    space: Any = array.base
    space.obj.madvise(mmap.MADV_DONTNEED, begin, end - begin)


@cache
def _mmap() -> Any:
    """The system's ``mmap``: Python's has no fixed places."""
    function = ctypes.CDLL(None, use_errno=True).mmap
    function.restype = ctypes.c_void_p
    function.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_long,
    ]
    return function
