"""A memory-mapped file that another process appends to."""

import mmap
import os
import weakref
from pathlib import Path

import numpy as np
import numpy.typing as npt

from inlink.errors import FolderError

__all__ = ["Mapped"]


class Mapped:
    """A growing file, memory-mapped. Bytes after the mapping are read with ``pread``.

    Raises
    ------
    inlink.errors.FolderError
        If the file is missing or cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
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

    def map(self, size: int) -> npt.NDArray[np.uint8]:
        """Map the first ``size`` bytes, unless they are mapped; return all mapped bytes, uint8[size or more]."""
        if size > len(self.bytes):
            space = mmap.mmap(self.file, size, access=mmap.ACCESS_READ)
            self.bytes = np.frombuffer(space, np.uint8)
        return self.bytes

    def read(self, begin: int, size: int) -> bytes:
        """Read ``size`` bytes from byte ``begin`` on. The file is mapped again only if it has grown much."""
        stop = begin + size
        if stop <= len(self.bytes):
            return self.bytes[begin:stop].tobytes()
        if stop > len(self.bytes) * 5 // 4 + (64 << 20):
            self.map(os.fstat(self.file).st_size)
        return os.pread(self.file, size, begin)

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        self.bytes = np.empty(0, np.uint8)
        self._finalizer()
