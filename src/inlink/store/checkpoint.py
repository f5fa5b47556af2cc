"""A crawl's checkpoint: the state that is folded from its log, so that opening the crawl folds later events only.

A checkpoint is a folder of arrays (:mod:`inlink.base.folder`). It holds for one event of the log, its *extent*. It is
used only if nothing speaks against it:

- This user's inlink wrote it here, and no file of it has changed since (:mod:`inlink.base.checked`). So its numbers
  need no checks, although kernels check no bounds. A copy, or a folder from elsewhere, is folded from its log.
- The same version of inlink wrote it, for this crawl, and the log is not shorter.
- The checksums of all its files hold, and those of both files of the log up to its extent. So the events before the
  extent are those that it was folded from, and damage in them is found before they are used.

Its columns are not read but mapped privately, so that pages of memory that are not used can be dropped.

Otherwise all events are folded, as if there were no checkpoint. A new one is written beside it and renamed.
"""

import os
import weakref
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from isal.isal_zlib import crc32

import inlink
from inlink.base.arrays import AnyArray
from inlink.base.checked import is_remembered, remember
from inlink.base.columns import PAGE_SIZE, is_reserved, map_file
from inlink.base.folder import Folder, FolderWriter, building
from inlink.base.jit import stamp
from inlink.errors import FolderError
from inlink.store.log import EVENTS, URLS, checksum

__all__ = ["CHECKPOINT", "LEAST_PAGES", "Checkpoint", "Extent", "Part", "code", "write"]

CHECKPOINT, VERSION = "checkpoint", 1

LEAST_PAGES = 1 << 20
"""Number of pages below which a checkpoint costs more than it saves."""

_BLOCK = 1 << 20
_OFTEN_EMPTY = frozenset({"errors", "losses", "answers", "scores", "carriers", "failures", "traps"})
_SPARSE = 16
"""If less than one number in so many of a column that is often empty is not 0, their places and values are kept."""

Part = tuple[str, Sequence[AnyArray]]
"""A named part of the state: one array, or the filled stretches of an array, in order."""


class Extent(msgspec.Struct, frozen=True):
    """The place in the log up to which a checkpoint holds.

    Attributes
    ----------
    pages : int
        Number of known pages.
    urls_end, events_end : int
        Bytes of urls.txt and events.log.
    urls_check, events_check : int
        CRC-32 of these bytes.
    seed : str
        The crawl's seed of hashes.
    code : str
        The version of inlink, and the checksum of its kernels.
    """

    pages: int
    urls_end: int
    events_end: int
    urls_check: int
    events_check: int
    seed: str
    code: str


def code() -> str:
    """Return the version of inlink, and the checksum of its kernels."""
    return f"{inlink.__version__} {stamp()}"


class Checkpoint:
    """A checkpoint of a crawl's folder.

    Parameters
    ----------
    folder : Path
        The crawl's folder.
    seed : int
        The crawl's seed of hashes.

    Attributes
    ----------
    extent : Extent
    meta : dict
        The small parts of the state.
    mapped : dict of int to int
        By address of a column that is mapped from its file, the number of its mapped bytes.

    Raises
    ------
    inlink.errors.FolderError
        If it must not be used. Its files and the log are compared with their checksums later, when they are read.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._log, self._files = folder, Folder(folder / CHECKPOINT, CHECKPOINT, VERSION)
        self._seen: set[str] = set()
        self.mapped: dict[int, int] = {}
        self.meta: dict[str, Any] = self._files.header.meta
        try:
            self.extent = msgspec.convert(self.meta.get("extent"), Extent)
        except msgspec.ValidationError as error:
            raise self._refused(str(error)) from None
        if self._files.header.version != VERSION or self.extent.code != code():
            raise self._refused("another version of inlink made it")
        if self.extent.seed != str(seed):
            raise self._refused("it belongs to another crawl")
        if not is_remembered(self._files, VERSION):
            raise self._refused("it was not made here, or was changed")
        # Another process may replace the checkpoint before the last file is read.
        self._open: dict[str, int] = {}
        self._finalizer = weakref.finalize(self, _close, self._open)
        try:
            for name in self._files.header.files:
                self._open[name] = os.open(self._files.data / f"{name}.bin", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise self._refused(f"`{name}` cannot be read ({error.strerror})") from None

    def _refused(self, why: str) -> FolderError:
        return FolderError(f"{self._files.path}: {why}: remove this folder, and it is made again")

    def check_log(self) -> None:
        """Compare both files of the log, up to the extent, with their checksums.

        Raises
        ------
        inlink.errors.FolderError
            If they differ, or a file is shorter.
        """
        extent = self.extent
        for name, end, check in (
            (EVENTS, extent.events_end, extent.events_check),
            (URLS, extent.urls_end, extent.urls_check),
        ):
            with (self._log / name).open("rb", buffering=0) as file:
                if os.fstat(file.fileno()).st_size < end or checksum(file.fileno(), 0, end) != check:
                    raise self._refused(f"{name} is not as it was")

    def check_rest(self) -> None:
        """Compare the checksums of the files that were not read yet.

        Raises
        ------
        inlink.errors.FolderError
            If they differ.
        """
        for name, file in self._open.items():
            if name not in self._seen:
                size = os.fstat(file).st_size
                if checksum(file, 0, size) != self._files.header.files[name].crc32:
                    raise self._refused(f"`{name}` is damaged")

    def release(self) -> None:
        """Close the files. Nothing can be read any more."""
        self._finalizer()

    def fill(self, parts: Iterable[Part]) -> None:
        """Read parts into their arrays. A part is computed after the parts before it are read.

        Raises
        ------
        inlink.errors.FolderError
            If a file is missing, damaged, or of another length or type than its array.
        """
        for name, stretches in parts:
            places = f"{name}.at"
            if places in self._files:
                at, values = self.array(places), self.array(name)
                stretches[0][at] = values
            else:
                self._read(name, stretches)

    def array(self, name: str) -> AnyArray:
        """Read a part as a new array.

        Raises
        ------
        inlink.errors.FolderError
            If its file is missing or damaged.
        """
        if name not in self._files:
            raise self._refused(f"`{name}` is missing")
        entry = self._files.header.files[name]
        values = np.empty(entry.length, entry.dtype)
        self._read(name, [values])
        return values

    def _read(self, name: str, stretches: Sequence[AnyArray]) -> None:
        entry = self._files.header.files.get(name)
        if (
            entry is None
            or entry.length != sum(map(len, stretches))
            or any(one.dtype != entry.dtype for one in stretches)
        ):
            raise self._refused(f"`{name}` does not fit the crawl")
        self._seen.add(name)
        file = self._open[name]
        at = self._map(stretches[0], file) if len(stretches) == 1 else 0
        check, skipped = checksum(file, 0, at), at
        for stretch in stretches:
            raw = stretch.view(np.uint8)[skipped:]
            for begin in range(0, len(raw), _BLOCK):
                block = raw[begin : begin + _BLOCK].data
                if os.preadv(file, [block], at) != len(block):
                    raise self._refused(f"`{name}` ends too early")
                check, at = crc32(block, check), at + len(block)
        if check != entry.crc32:
            raise self._refused(f"`{name}` is damaged")

    def _map(self, column: AnyArray, file: int) -> int:
        """Map the pages of memory that a column fills from its file; return their bytes, or 0 if they must be read."""
        size = column.nbytes // PAGE_SIZE * PAGE_SIZE
        if not size or not is_reserved(column):
            return 0
        try:
            map_file(column, 0, size, file, 0)
        except OSError:
            return 0
        self.mapped[column.ctypes.data] = size
        return size


def _close(files: dict[str, int]) -> None:
    while files:
        os.close(files.popitem()[1])


def write(folder: Path, extent: Extent, parts: Iterable[Part], meta: dict[str, Any]) -> None:
    """Write a checkpoint, in place of the one before.

    Parameters
    ----------
    folder : Path
        The crawl's folder.
    extent : Extent
    parts : iterable of (str, sequence of arrays)
    meta : dict
        The small parts of the state, for JSON.

    Raises
    ------
    inlink.errors.OutputError
        If it cannot be written. The one before is kept.
    """
    path = folder / CHECKPOINT
    # It is not synced: after a power cut, checksums tell whether it is whole.
    with building(path, CHECKPOINT, VERSION, sync=False) as writer:
        writer.header.meta = {**meta, "extent": msgspec.to_builtins(extent)}
        for name, stretches in parts:
            _write(writer, name, stretches)
    with suppress(FolderError):
        remember(Folder(path, CHECKPOINT, VERSION), VERSION, written=True)


def _write(writer: FolderWriter, name: str, stretches: Sequence[AnyArray]) -> None:
    first = stretches[0]
    if name in _OFTEN_EMPTY and np.count_nonzero(first) * _SPARSE < len(first):
        at = np.flatnonzero(first)
        writer.write(f"{name}.at", at)
        writer.write(name, first[at])
        return
    with writer.create(name, first.dtype) as file:
        for stretch in stretches:
            for begin in range(0, len(stretch), _BLOCK):
                file.append(stretch[begin : begin + _BLOCK])
