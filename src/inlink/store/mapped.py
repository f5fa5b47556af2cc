"""A memory-mapped file that another process appends to."""

import mmap
import os
import weakref
from pathlib import Path

import numpy as np

from inlink.base.arrays import AnyArray, UInt8Array
from inlink.errors import FolderError
from inlink.store.blocksums import BlockGuard

__all__ = ["Mapped"]


class Mapped:
    """A growing file, memory-mapped. Bytes after the mapping are read with ``pread``.

    Attributes
    ----------
    bytes : uint8[…]
        The mapped bytes.
    guard : BlockGuard or None
        Compares the first bytes with checksums before :meth:`read`, :meth:`between` and :meth:`at` return them.

    Raises
    ------
    inlink.errors.FolderError
        If the file is missing or cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes: UInt8Array = np.empty(0, np.uint8)
        self.guard: BlockGuard | None = None
        try:
            self.file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            # Readers are often dropped, not closed.
            self._finalizer = weakref.finalize(self, os.close, self.file)
            self.map(os.fstat(self.file).st_size)
        except OSError as error:
            raise FolderError(
                f"{path} cannot be read ({error.strerror}): it is a part of the crawl; take the crawl's folder from a "
                "backup"
            ) from None

    def map(self, size: int) -> UInt8Array:
        """Map the first ``size`` bytes, unless they are mapped; return all mapped bytes, uint8[size or more].

        No checksums are compared here.
        """
        if size > len(self.bytes):
            space = mmap.mmap(self.file, size, access=mmap.ACCESS_READ)
            self.bytes = np.frombuffer(space, np.uint8)
        return self.bytes

    def read(self, begin: int, size: int) -> bytes:
        """Read ``size`` bytes from byte ``begin`` on. The file is mapped again only if it has grown much."""
        stop = begin + size
        if self.guard is not None:
            self.guard.check(self.bytes, begin, stop)
        if stop <= len(self.bytes):
            return self.bytes[begin:stop].tobytes()
        if stop > len(self.bytes) * 5 // 4 + (64 << 20):
            self.map(os.fstat(self.file).st_size)
        return os.pread(self.file, size, begin)

    def between(self, begin: int, end: int) -> UInt8Array:
        """Map the first ``end`` bytes; return all mapped bytes. Only bytes ``begin`` … ``end`` - 1 may be used."""
        raw = self.map(end)
        if self.guard is not None:
            self.guard.check(raw, begin, end)
        return raw

    def at(self, begins: AnyArray, ends: AnyArray, size: int) -> UInt8Array:
        """Map the first ``size`` bytes; return all mapped bytes. Only those in the stretches may be used.

        Parameters
        ----------
        begins, ends : int64[n]
            The first byte of each stretch, and the byte after its last.
        size : int
        """
        raw = self.map(size)
        if self.guard is not None:
            self.guard.check_each(raw, begins, ends)
        return raw

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        self.bytes = np.empty(0, np.uint8)
        self._finalizer()
