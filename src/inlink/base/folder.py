"""Versioned folders: how inlink lays out, replaces and checks its data on disk.

A folder holds a small ``header.json`` and one generation subfolder with the data::

    california/
        header.json          kind, format version, uuid, generation, and each file's dtype, length, checksum
        1/out.offsets.bin …  plain little-endian arrays

Data are written to a hidden folder beside their place, and moved there when they are complete. Replacing the header
is the commit: a reader sees the old generation or the new one, and never a part of one.
"""

import contextlib
import errno
import io
import os
import stat
import time
import uuid as uuids
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
import numpy.typing as npt

from inlink.base.arrays import AnyArray, slices
from inlink.base.decoding import decoded
from inlink.base.disk import remove_folder, sync_path, umask, unwritable
from inlink.base.unfinished import unfinished_file, unfinished_folder
from inlink.errors import FolderError, InUseError, OutputError

HEADER = "header.json"
# Bytes read or written at a time: they stay in the processor's cache while they are checked.
_BLOCK = 1 << 20
# NumPy's names of the types that data files may have.
_DTYPES = frozenset(
    np.dtype(kind).newbyteorder("<").str
    for kind in ("?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8")
)


class FileEntry(msgspec.Struct, frozen=True):
    """One data file: its dtype (NumPy's name), its length in elements, and the CRC-32 of its bytes."""

    dtype: str
    length: int
    crc32: int


class Header(msgspec.Struct):
    """The contents of ``header.json``."""

    kind: str
    version: int
    uuid: str
    generation: int
    files: dict[str, FileEntry]
    meta: dict[str, Any] = {}
    # CRC-32 of the header's JSON without this field. Older folders do not have it.
    check: int | None = None

    def checksum(self) -> int:
        """The CRC-32 of all fields of the header but ``check``."""
        return zlib.crc32(msgspec.json.encode(msgspec.structs.replace(self, check=None)))


class Folder:
    """A complete inlink folder. Its arrays are mapped when they are used.

    The header, and the length of each file, are checked here; :meth:`verify` and :meth:`blocks` check the contents.

    Parameters
    ----------
    path : path-like
        The folder.
    kind : str
        The kind that the folder must have, such as ``"graph"``.
    version : int
        The newest format version of this kind that this program reads.

    Attributes
    ----------
    opened : float
        Unix time before the first file was read.
    stamps : dict of str to os.stat_result
        The status of each data file when the folder was opened.

    Raises
    ------
    FolderError
        If the folder is missing, of another kind, newer than this program, or if a file's length is not the
        one in the header.
    """

    def __init__(self, path: str | os.PathLike[str], kind: str, version: int) -> None:
        self.path = Path(path)
        self.opened = time.time()
        self.header = _read_header(self.path)
        if self.header.kind != kind:
            raise FolderError(f"{self.path} holds a {self.header.kind}, not a {kind}")
        if self.header.version > version:
            raise FolderError(
                f"{self.path} has format version {self.header.version} and this inlink reads up to {version}: "
                "upgrade inlink"
            )
        self._check_header()
        self.data = self.path / str(self.header.generation)
        self.stamps = {name: self._stamp(name, entry) for name, entry in self.header.files.items()}

    def _check_header(self) -> None:
        header = self.header
        if header.check is not None and header.check != header.checksum():
            wrong = "wrong checksum"
        elif header.version < 1:
            wrong = f"format version {header.version}"
        else:
            return
        raise FolderError(f"{self.path / HEADER} is damaged ({wrong}): build {self.path} again")

    def _stamp(self, name: str, entry: FileEntry) -> os.stat_result:
        file = self._file(name)
        wanted = entry.length * np.dtype(entry.dtype).itemsize
        try:
            status = file.stat()
        except OSError:
            raise FolderError(f"{file} is missing: build {self.path} again") from None
        if not stat.S_ISREG(status.st_mode):
            raise self.damaged(name, "it is not a regular file")
        if status.st_size != wanted:
            raise FolderError(
                f"{file} has {status.st_size:,} bytes and the header says {wanted:,}: build {self.path} again"
            )
        return status

    def _file(self, name: str) -> Path:
        # The names in a header are untrusted. They must not lead out of the folder.
        if not name.isascii() or "/" in name or "\\" in name or "\0" in name:
            raise FolderError(
                f"{self.path / HEADER} is damaged (no data file is named {name!r}): build {self.path} again"
            )
        return self.data / f"{name}.bin"

    def damaged(self, name: str, what: str) -> FolderError:
        """Make the error for a damaged data file; ``what`` describes the damage."""
        return FolderError(f"{self._file(name)} is damaged ({what}): build {self.path} again")

    def __contains__(self, name: str) -> bool:
        return name in self.header.files

    def array(self, name: str) -> AnyArray:
        """A data file as a read-only memory-mapped array: dtype[length], as its header says."""
        entry = self.header.files[name]
        # An empty file cannot be mapped.
        if entry.length == 0:
            return np.empty(0, entry.dtype)
        try:
            mapped = np.memmap(self._file(name), dtype=entry.dtype, mode="r", shape=(entry.length,))
        except (OSError, ValueError) as error:
            raise self.damaged(name, f"cannot be read: {error}") from None
        return mapped.view(np.ndarray)

    def blocks(self, name: str, length: int) -> Iterator[tuple[int, AnyArray]]:
        """Read a data file once from front to back, and compare its checksum at the end.

        Parameters
        ----------
        name : str
            The data file.
        length : int
            The number of elements of a block.

        Yields
        ------
        int, dtype[length]
            The place of the block's first element, and the block. It is valid until the next block is read.

        Raises
        ------
        FolderError
            If the file cannot be read, or its bytes differ from those that were written. A difference is found only
            after the last block.
        """
        # python-isal, several times as fast as zlib
        from isal.isal_zlib import crc32

        entry = self.header.files[name]
        dtype = np.dtype(entry.dtype)
        buffer = np.empty(min(length, entry.length), dtype)
        crc = 0
        with self._open(name) as file:
            for part in slices(entry.length, length):
                block = buffer[: part.stop - part.start]
                raw = block.data.cast("B")
                try:
                    size = file.readinto(raw)
                except OSError as error:
                    raise self.damaged(name, f"cannot be read: {error.strerror}") from None
                if size != len(raw):
                    raise self.damaged(name, "it became shorter while it was read")
                crc = crc32(raw, crc)
                yield part.start, block
        if crc != entry.crc32:
            raise self.damaged(name, "wrong checksum")

    def _open(self, name: str) -> io.BufferedReader:
        try:
            # A buffered file reads into a larger buffer directly, and repeats short reads.
            return self._file(name).open("rb")
        except OSError as error:
            raise FolderError(f"{self._file(name)}: cannot be read ({error.strerror})") from None

    def verify(self, names: Iterable[str] | None = None) -> None:
        """Read data files and compare their checksums.

        Parameters
        ----------
        names : iterable of str, or None
            The files; None is all.

        Raises
        ------
        FolderError
            If the bytes of a file differ from those that were written. The message names the first such file.
        """
        for name in self.header.files if names is None else names:
            size = max(np.dtype(self.header.files[name].dtype).itemsize, 1)
            for _ in self.blocks(name, max(_BLOCK // size, 1)):
                pass

    @property
    def num_bytes(self) -> int:
        """The number of bytes of all data files."""
        return sum(e.length * np.dtype(e.dtype).itemsize for e in self.header.files.values())


def _read_header(path: Path) -> Header:
    file = path / HEADER
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        if not path.exists():
            raise FolderError(f"{path} does not exist") from None
        raise FolderError(f"{path} is not an inlink folder: it has no {HEADER}") from None
    except NotADirectoryError:
        raise FolderError(
            f"{path} is a file, not an inlink folder: inlink build makes a folder of a file of links"
        ) from None
    except OSError as error:
        raise FolderError(f"{file}: cannot be read ({error.strerror})") from None
    try:
        header = decoded(raw, Header)
        for entry in header.files.values():
            if entry.dtype not in _DTYPES or not 0 <= entry.length < 1 << 48:
                raise ValueError(f"an array of dtype {entry.dtype!r} and length {entry.length}")
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise FolderError(f"{file} is damaged ({error}): build {path} again") from None
    return header


def is_kind(path: str | os.PathLike[str], kind: str) -> bool:
    """Return whether a folder is of a kind, whatever its format version. A damaged header is of no kind."""
    file = Path(path) / HEADER
    try:
        # A named pipe would be read for ever.
        return file.is_file() and decoded(file.read_bytes(), Header).kind == kind
    except (OSError, ValueError, RecursionError):
        return False


class FolderWriter:
    """Collects the files of one generation; made by :func:`building`."""

    def __init__(self, data: Path, kind: str, version: int) -> None:
        self.data = data
        # Temporary files of the build, which are not kept in the folder.
        self.scratch = data.with_name("scratch")
        data.mkdir()
        self.scratch.mkdir()
        self.header = Header(kind, version, str(uuids.uuid4()), 1, {}, {})
        self._open: dict[str, ArrayWriter] = {}

    def create(self, name: str, dtype: npt.DTypeLike) -> "ArrayWriter":
        """Begin a data file that is written from front to back."""
        self._open[name] = writer = ArrayWriter(self.data / f"{name}.bin", np.dtype(dtype))
        return writer

    def write(self, name: str, values: AnyArray, dtype: npt.DTypeLike | None = None) -> None:
        """Write a whole data file, with numbers of the type of the values, or of another one."""
        with self.create(name, values.dtype if dtype is None else dtype) as file:
            for part in slices(len(values), _BLOCK):
                file.append(values[part])

    def _seal(self, sync: bool) -> None:
        for name, writer in self._open.items():
            writer.close()
            self.header.files[name] = FileEntry(writer.dtype.str, writer.length, writer.crc32)
            if sync:
                # Windows syncs only files that are open for writing.
                with writer.path.open("r+b") as file:
                    os.fsync(file.fileno())

    def _abandon(self) -> None:
        for writer in self._open.values():
            # A full disk fails again at the flush; the first error is the one to report.
            with contextlib.suppress(OSError):
                writer.close()


class ArrayWriter:
    """A data file that grows at its end; a context manager."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self.path, self.dtype = path, dtype.newbyteorder("<")
        self.length = 0
        self.crc32 = 0
        self._file = path.open("wb")

    def append(self, values: AnyArray) -> None:
        """Write values at the end."""
        raw = np.ascontiguousarray(values, self.dtype)
        data = raw.data.cast("B") if raw.size else b""
        self.crc32 = zlib.crc32(data, self.crc32)
        self._file.write(data)
        self.length += len(raw)

    def close(self) -> None:
        """Write the buffered values and close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def building(
    path: str | os.PathLike[str], kind: str, version: int, *, sync: bool = True, new: bool = False
) -> Iterator[FolderWriter]:
    """Build a folder beside its place, and move it there when the block ends without an error.

    An existing folder of the same kind is kept until the new data are complete. If the block raises, nothing of
    the new data remains. After a kill, a hidden folder remains beside ``path``; the next build there removes it.
    With ``new``, a folder of the same kind that another process makes in the meantime is left alone.

    Raises
    ------
    InUseError
        If another process made the folder in the meantime.
    OutputError
        If ``path`` is a file, a folder of another kind that is not empty, or cannot be written.
    """
    target = Path(path)
    check_target(target, kind)
    with _beside(target, unfinished_folder) as work:
        writer = FolderWriter(work / "data", kind, version)
        try:
            yield writer
            writer._seal(sync)
            _commit(writer, work, target, sync, new)
        finally:
            writer._abandon()


@contextlib.contextmanager
def new_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield an empty folder beside ``path``, and move it there when the block ends without an error.

    Raises
    ------
    OutputError
        If ``path`` exists or cannot be written.
    """
    target = Path(path)
    if target.exists() or target.is_symlink():
        raise OutputError(f"{target} exists: name a folder that does not exist, or remove it")
    with _beside(target, unfinished_folder) as work:
        yield work
        work.chmod(0o777 & ~umask())
        for file in (*work.rglob("*"), work):
            sync_path(file)
        work.rename(target)
        sync_path(target.parent)


@contextlib.contextmanager
def _beside(
    target: Path, unfinished: Callable[[Path], contextlib.AbstractContextManager[Path]]
) -> Iterator[Path]:
    """Yield an unfinished file or folder beside its place. An error of the system in the block is an OutputError."""
    with contextlib.ExitStack() as stack:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            work = stack.enter_context(unfinished(target))
        except OSError as error:
            raise OutputError(f"{target}: cannot be written ({error.strerror})") from None
        try:
            yield work
        except OSError as error:
            raise unwritable(target, error) from None


def check_target(target: Path, kind: str) -> None:
    """Check that a folder may be built here.

    Raises
    ------
    OutputError
        If ``target`` is a file, or a folder of another kind that is not empty.
    """
    if not target.exists() and not target.is_symlink():
        return
    if not target.is_dir():
        raise OutputError(f"{target} is a file: name another output, or remove it")
    if not any(target.iterdir()):
        return
    try:
        present = _read_header(target).kind
    except FolderError:
        present = "something else"
        for inside in sorted(target.iterdir()):
            if is_kind(inside, kind):
                raise OutputError(
                    f"{target} is not a {kind} but contains {kind}s: name a {kind}, such as {inside}, or another output"
                ) from None
    if present != kind:
        raise OutputError(
            f"{target} exists and holds {present}, not a {kind}: name another output, or remove it"
        )


def _commit(writer: FolderWriter, work: Path, target: Path, sync: bool, new: bool) -> None:
    header = writer.header
    # A folder whose header cannot be read now must not be taken for a new one.
    if not new and (target / HEADER).exists():
        header.generation = _read_header(target).generation + 1
    data = work / str(header.generation)
    writer.data.rename(data)
    remove_folder(writer.scratch)
    header.check = header.checksum()
    # The header is also written in the hidden folder. The next build removes that folder after a kill.
    with atomic_file(work / HEADER, sync=sync) as file:
        file.write_bytes(msgspec.json.format(msgspec.json.encode(header), indent=1))
    if header.generation == 1:
        work.chmod(0o777 & ~umask())
        # A rename is one step. It also replaces an empty folder.
        try:
            work.rename(target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            raise InUseError(
                f"{target}: another process made this folder in the meantime: name another output, or remove it"
            ) from None
    else:
        place = target / data.name
        # A build may have been killed between its last two steps.
        remove_folder(place)
        data.rename(place)
        try:
            (work / HEADER).replace(target / HEADER)
        except BaseException:
            # An interrupt may come after the header has moved.
            if (work / HEADER).exists():
                remove_folder(place)
            raise
        if sync:
            sync_path(target)
        for other in target.iterdir():
            if other.is_dir() and other.name.isdigit() and other.name != place.name:
                # Readers that have the old files mapped keep them.
                remove_folder(other)
    if sync:
        sync_path(target.parent)


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str], *, sync: bool = True, secret: bool = False) -> Iterator[Path]:
    """Yield a hidden path beside ``path`` to write to, and rename it to ``path`` when the block ends without an error.

    After a kill the hidden file remains; the next call for a path in the same folder removes it. A ``secret`` file can
    be read by this user only.

    Raises
    ------
    OutputError
        If ``path`` is a folder, or cannot be written.
    """
    target = Path(path)
    if target.is_dir():
        raise OutputError(f"{target} is a folder: name a file")
    with _beside(target, unfinished_file) as work:
        yield work
        if sync:
            with work.open("r+b") as file:
                os.fsync(file.fileno())
        # The folder was made for this user alone.
        if not secret:
            work.chmod(0o666 & ~umask())
        work.replace(target)
        if sync:
            sync_path(target.parent)
