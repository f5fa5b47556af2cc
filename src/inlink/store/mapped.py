"""A file that another hand appends to, mapped as far as it goes."""

import mmap
import os
import weakref
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = ["Mapped"]


class Mapped:
    """A file that grows, mapped: what lies behind the mapping is read the ordinary way."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        self._finalizer = weakref.finalize(self, os.close, self.file)  # readers are often dropped, not closed
        self.bytes: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
        self.map(os.fstat(self.file).st_size)

    def map(self, size: int) -> npt.NDArray[np.uint8]:
        """Map ``size`` bytes, if so many are not mapped yet."""
        if size > len(self.bytes):
            space = mmap.mmap(self.file, size, access=mmap.ACCESS_READ)
            self.bytes = np.frombuffer(space, np.uint8)
        return self.bytes

    def read(self, begin: int, size: int) -> bytes:
        """Some bytes; the mapping is renewed only when much lies behind it."""
        stop = begin + size
        if stop <= len(self.bytes):
            return self.bytes[begin:stop].tobytes()
        if stop > len(self.bytes) * 5 // 4 + (64 << 20):
            self.map(os.fstat(self.file).st_size)
        return os.pread(self.file, size, begin)

    def close(self) -> None:
        """Let go of the file; it may be said twice."""
        self.bytes = np.empty(0, np.uint8)
        self._finalizer()
