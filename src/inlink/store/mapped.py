"""A memory-mapped file that another process appends to."""

import errno
import mmap
import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from inlink.base.arrays import AnyArray, UInt8Array
from inlink.base.disk import described
from inlink.errors import FolderError
from inlink.store.blocksums import BlockGuard


class Mapped:
    """A growing file, memory-mapped.

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
            raise self._refused(error) from None

    def map(self, size: int) -> UInt8Array:
        """Map the first ``size`` bytes, unless they are mapped; return all mapped bytes, uint8[size or more].

        No checksums are compared here.
        """
        # To touch a page behind the file's end would end the process (SIGBUS).
        if os.lseek(self.file, 0, os.SEEK_END) < size:
            raise FolderError(
                f"{self.path} is shorter than {size:,} bytes, which it had: another program has cut it; take the "
                "crawl's folder from a backup"
            )
        if size > len(self.bytes):
            try:
                space = mmap.mmap(self.file, size, access=mmap.ACCESS_READ)
            except (OSError, ValueError) as error:
                raise self._refused(error) from None
            self.bytes = np.frombuffer(space, np.uint8)
        return self.bytes

    def _refused(self, error: OSError | ValueError) -> FolderError:
        if isinstance(error, OSError) and error.errno not in (None, errno.ENOENT):
            return FolderError(described(error, self.path))
        return FolderError(
            f"{self.path} cannot be read ({getattr(error, 'strerror', error)}): it is a part of the crawl; take the "
            "crawl's folder from a backup"
        )

    def read(self, begin: int, size: int) -> bytes:
        """Read ``size`` bytes from byte ``begin`` on, fewer at the end of the file.

        They are not taken from the mapping, because another program may cut the file (SIGBUS).
        """
        if self.guard is not None:
            self.guard.check(self.map(self.guard.end), begin, begin + size)
        try:
            return os.pread(self.file, size, begin)
        except OSError as error:
            raise self._refused(error) from None

    def between(self, begin: int, end: int) -> UInt8Array:
        """Map the first ``end`` bytes; return all mapped bytes. Only bytes ``begin`` … ``end`` - 1 may be used."""
        raw = self.map(end)
        if self.guard is not None:
            self.guard.check(self.map(self.guard.end), begin, end)
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
            self.guard.check_each(self.map(self.guard.end), begins, ends)
        return raw

    def unload(self) -> None:
        """Release the memory of the mapped bytes. The system reads them from the file again when they are used."""
        if len(self.bytes):
            space: Any = self.bytes.base
            space.obj.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        self.bytes = np.empty(0, np.uint8)
        self._finalizer()


def mapped(path: Path) -> UInt8Array:
    """Map a file that no process writes: uint8[bytes].

    Raises
    ------
    inlink.errors.FolderError
        If the file cannot be read.
    """
    try:
        # An empty file cannot be mapped.
        if not path.stat().st_size:
            return np.empty(0, np.uint8)
        return np.memmap(path, np.uint8, "r").view(np.ndarray)
    except OSError as error:
        raise FolderError(f"{path} cannot be read ({error.strerror}): it is a part of the crawl") from None
