"""A crawl's checkpoint: the state that is folded from its log, so that opening the crawl folds later events only.

A checkpoint is a folder of arrays (:mod:`inlink.base.folder`). It holds for one event of the log, its *extent*. It is
used only if nothing speaks against it:

- This user's inlink wrote it here, and no file of it has changed since (:mod:`inlink.base.checked`). So its numbers
  need no checks, although kernels check no bounds. A copy, or a folder from elsewhere, is folded from its log.
- The same version of inlink wrote it, for this crawl, and the log is not shorter.
- In both files of the log, the last block before the extent has the same checksum. This shows that the log is the same.
- The checksums of its files hold.

Otherwise all events are folded, as if there were no checkpoint. A new one is written beside it and renamed.

A crawl compares all files of the checkpoint when it is opened. A reader that looks up a few pages compares each file
before its first use, and refuses damage then. The log before the extent is not read at the opening. The checkpoint has
a checksum of each block of it (:mod:`inlink.store.blocksums`), and a block is compared before its first use.

Its columns are not read but mapped privately, so that pages of memory that are not used can be dropped.
"""

import os
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from isal.isal_zlib import crc32

import inlink
from inlink.base.arrays import AnyArray, UInt32Array, slices
from inlink.base.checked import is_remembered, remember
from inlink.base.columns import PAGE_SIZE, is_reserved, map_file
from inlink.base.decoding import converted
from inlink.base.folder import Folder, FolderWriter, building
from inlink.base.jit import stamp
from inlink.errors import FolderError
from inlink.store.blocksums import BlockGuard, BlockSums, num_blocks
from inlink.store.log import EVENTS, URLS
from inlink.store.mapped import Mapped

CHECKPOINT, VERSION = "checkpoint", 3

LEAST_BYTES = 8 << 20
"""Bytes of the log after a checkpoint below which a new one costs more than it saves. Opening folds them in 0.1 s."""

_BLOCK = 1 << 20
_OFTEN_EMPTY = frozenset({"errors", "losses", "answers", "scores", "carriers", "failures", "traps"})
_SPARSE = 16
"""If less than one number in so many of a column that is often empty is not 0, their places and values are kept."""

StatePart = tuple[str, Sequence[AnyArray]]
"""A named part of the state: one array, or the filled stretches of an array, in order."""

Stretches = Callable[[str, AnyArray], Sequence[AnyArray]]


class Extent(msgspec.Struct, frozen=True):
    """The place in the log up to which a checkpoint holds.

    Attributes
    ----------
    pages : int
        Number of known pages.
    urls_end, events_end : int
        Bytes of urls.txt and events.log.
    seed : str
        The crawl's seed of hashes.
    code : str
        The version of inlink, and the checksum of its kernels.
    """

    pages: int
    urls_end: int
    events_end: int
    seed: str
    code: str


def code() -> str:
    """Return the version of inlink, and the checksum of its kernels."""
    return f"{inlink.__version__} {stamp()}"


class Deferred:
    """An object whose attributes can be filled later. Afterwards they are usual attributes, and cost nothing more."""

    _empty: dict[str, tuple[Any, Callable[[], object]]]

    def defer(self, name: str, fill: Callable[[], object]) -> None:
        """Hide an attribute until its first use. Then ``fill`` is called. If it fails, the attribute stays hidden."""
        self.__dict__.setdefault("_empty", {})[name] = self.__dict__.pop(name), fill

    @property
    def deferred(self) -> bool:
        """True while an attribute is still to be filled."""
        return bool(self.__dict__.get("_empty"))

    # Type checkers must still refuse unknown attributes.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            empty = self.__dict__.get("_empty", {})
            if name not in empty:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            value, fill = empty[name]
            fill()
            self.__dict__[name] = value
            empty.pop(name, None)
            return value


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
        If it must not be used. Its files are compared with their checksums later, when they are read.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._log, self._files = folder, Folder(folder / CHECKPOINT, CHECKPOINT, VERSION)
        self._sound: set[str] = set()
        self.mapped: dict[int, int] = {}
        self.meta: dict[str, Any] = self._files.header.meta
        try:
            self.extent = converted(self.meta.get("extent"), Extent)
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

    def guard(self, file: Mapped) -> None:
        """Let a file of the log compare each block up to the extent before its first use.

        Raises
        ------
        inlink.errors.FolderError
            If the file is shorter, or differs in the last block, so that it is another log.
        """
        name = file.path.name
        sums, end = self._sums(name)
        if len(file.map(end)) < end:
            raise self._refused(f"{name} is shorter than it was")
        guard = BlockGuard(file.path, sums, end)
        try:
            guard.check(file.bytes, end - 1, end)
        except FolderError:
            raise self._refused(f"{name} is not as it was") from None
        file.guard = guard

    def _sums(self, name: str) -> tuple[UInt32Array, int]:
        """The checksums of a file of the log, uint32[blocks], and the bytes that they cover."""
        end = self.extent.urls_end if name == URLS else self.extent.events_end
        sums = self.array(f"log.{name}")
        if len(sums) != num_blocks(end):
            raise self._refused(f"`log.{name}` does not fit the crawl")
        return sums, end

    def block_sums(self) -> tuple[BlockSums, BlockSums]:
        """The checksums of both files of the log up to the extent, urls.txt first."""
        urls, events = BlockSums(*self._sums(URLS)), BlockSums(*self._sums(EVENTS))
        return urls, events

    def check_rest(self) -> None:
        """Compare the checksums of the files that were not read yet.

        Raises
        ------
        inlink.errors.FolderError
            If they differ.
        """
        for name in self._open:
            if name not in self._sound:
                if self._checksum(name) != self._files.header.files[name].crc32:
                    raise self._refused(f"`{name}` is damaged")
                self._sound.add(name)

    def release(self) -> None:
        """Close the files. Nothing can be read any more."""
        self._finalizer()

    def fill(self, parts: Iterable[StatePart]) -> None:
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

    def fill_later(self, owner: Deferred, parts: Iterable[str], stretches: Stretches) -> None:
        """Read parts into an object's attributes of the same names, each before its first use.

        Parameters
        ----------
        owner : Deferred
        parts : iterable of str
        stretches : callable
            Returns the filled stretches of an attribute, from its name and its array. It is called now, because the
            stretches grow with later events.
        """
        for name in parts:
            owner.defer(name, partial(self.fill, [(name, stretches(name, vars(owner)[name]))]))

    def stretch(self, name: str, lengths: Sequence[int], number: int) -> AnyArray:
        """Read one stretch of a part that has several, as a new array. ``lengths`` are those of all its stretches.

        Raises
        ------
        inlink.errors.FolderError
            If the stretch is damaged.
        """
        entry, sums = self._files.header.files[name], self.array(f"{name}.sums")
        values = np.empty(lengths[number], entry.dtype)
        begin = sum(lengths[:number]) * values.itemsize
        whole = not len(values) or self._preadv(name, values.view(np.uint8).data, begin) == values.nbytes
        if not whole or crc32(values.data) != sums[number]:
            raise self._refused(f"`{name}` is damaged")
        return values

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
        file, known = self._open[name], name in self._sound
        at = self._map(stretches[0], file) if len(stretches) == 1 else 0
        check, skipped = 0, at
        if not known:
            check = crc32(stretches[0].view(np.uint8)[:at].data) if at else 0
        for stretch in stretches:
            raw = stretch.view(np.uint8)[skipped:]
            for part in slices(len(raw), _BLOCK):
                block = raw[part].data
                if self._preadv(name, block, at) != len(block):
                    raise self._refused(f"`{name}` ends too early")
                check, at = check if known else crc32(block, check), at + len(block)
        if not known and check != entry.crc32:
            raise self._refused(f"`{name}` is damaged")
        self._sound.add(name)

    def _checksum(self, name: str) -> int:
        """The CRC-32 of a file."""
        buffer, at, check = np.empty(_BLOCK >> 3, np.uint8), 0, 0
        while size := self._preadv(name, buffer.data, at):
            check, at = crc32(buffer[:size].data, check), at + size
        return int(check)

    def _preadv(self, name: str, block: memoryview, at: int) -> int:
        """Read bytes of a file from byte ``at`` on; return their number, which is less than asked for at its end."""
        read = 0
        try:
            while read < len(block) and (size := os.preadv(self._open[name], [block[read:]], at + read)):
                read += size
        except OSError as error:
            raise self._refused(f"`{name}` cannot be read ({error.strerror})") from None
        return read

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


def write(
    folder: Path,
    extent: Extent,
    sums: tuple[BlockSums, BlockSums],
    parts: Iterable[StatePart],
    meta: dict[str, Any],
) -> None:
    """Write a checkpoint, in place of the one before.

    Parameters
    ----------
    folder : Path
        The crawl's folder.
    extent : Extent
    sums : (BlockSums, BlockSums)
        The checksums of urls.txt and events.log up to the extent.
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
        logs = [(f"log.{name}", [one.all()]) for name, one in zip((URLS, EVENTS), sums, strict=True)]
        for name, stretches in chain(parts, logs):
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
            for part in slices(len(stretch), _BLOCK):
                file.append(stretch[part])
    if len(stretches) > 1:
        writer.write(
            f"{name}.sums", np.array([crc32(one.view(np.uint8).data) for one in stretches], np.uint32)
        )
