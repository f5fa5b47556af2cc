"""Finished parts of columns leave memory: they are written to a file, which is mapped in their places.

Most columns are written when a page becomes known, and rarely or never after that. Of such a column, only the last
stretch has to be in memory. All stretches before it are written to a file and mapped privately
(:func:`inlink.base.columns.map_file`). The system then drops their pages when it needs memory, and reads them again
when they are used. If such a number is changed later, its page is copied into memory.

The file has no name, so it disappears with the process, however that ends. It is never needed to open a crawl.
"""

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

from inlink.base.arrays import AnyArray
from inlink.base.columns import drop_zeros, map_file

_log = logging.getLogger("inlink.crawl")

STRETCH = 1 << 18
"""Number of bytes that are written at a time, in about a tenth of a millisecond; a multiple of the size of a page."""

REGION = 1 << 26
"""Number of bytes of a column that lie together in the file, so that there are few mappings: many stretches."""

LOOK = 1 << 16
"""Number of new pages after which finished stretches are looked for again."""

Finished = tuple[AnyArray, int]
"""A reserved column, and the number of its first elements that are finished."""


class Spill:
    """Moves the finished stretches of columns into a file, in steps.

    Parameters
    ----------
    folder : Path
        The file is made here.
    mapped : dict of int to int
        By address of a column, the number of its first bytes that are mapped from a file already.

    Attributes
    ----------
    look_at : int
        The number of known pages at which :meth:`step` looks for finished stretches again.
    """

    def __init__(self, folder: Path, mapped: dict[int, int] | None = None) -> None:
        self._folder = folder
        self._done = dict(mapped or {})
        self._file: IO[bytes] | None = None
        self._regions: dict[tuple[int, int], int] = {}
        self.look_at = 0

    def step(self, known: int, finished: Callable[[], Iterable[Finished]]) -> bool:
        """Write the next finished stretch, if there is one; return whether there was one.

        If it cannot be written, the columns stay in memory. The next attempt comes when there are more pages.

        Parameters
        ----------
        known : int
            Number of known pages.
        finished : callable
            Returns the columns, and the number of finished elements of each.
        """
        if known < self.look_at:
            return False
        try:
            for column, count in finished():
                if self._write(column, count):
                    return True
        except OSError as error:
            _log.warning(
                "%s: cannot write a temporary file (%s); the crawl takes more memory until there is space",
                self._folder,
                error.strerror,
            )
            self.look_at = known + max(known // 8, LOOK)
            return False
        self.look_at = known + LOOK
        return False

    def _write(self, column: AnyArray, count: int) -> bool:
        """Write the next finished stretch of a column; return whether there was one. Zeros need no file."""
        place = column.ctypes.data
        begin = self._done.get(place, 0)
        end = begin - begin % STRETCH + STRETCH
        if end > count * column.itemsize:
            return False
        stretch = column[begin // column.itemsize : end // column.itemsize]
        if stretch.any():
            region = place, begin // REGION
            offset = self._regions.setdefault(region, len(self._regions) * REGION) + begin % REGION
            file = self._descriptor()
            _write_at(file, stretch, offset)
            map_file(column, begin, end, file, offset)
        else:
            drop_zeros(column, begin, end)
        self._done[place] = end
        return True

    def _descriptor(self) -> int:
        """The descriptor of the file, which is made when it is needed first."""
        if self._file is None:
            # A small crawl needs no such file, and need not wait for this import.
            from tempfile import TemporaryFile

            self._file = TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
        return self._file.fileno()

    def close(self) -> None:
        """Close the file. The mappings of columns stay valid."""
        if self._file is not None:
            self._file.close()


def _write_at(file: int, values: AnyArray, begin: int) -> None:
    """Write values at a byte of a file."""
    raw = values.data.cast("B")
    while raw:
        written = os.pwrite(file, raw, begin)
        raw, begin = raw[written:], begin + written
