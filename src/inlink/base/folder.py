"""Versioned folders: how inlink lays out, replaces and checks its data on disk.

A folder holds a small ``header.json`` and one generation subfolder with the data::

    california/
        header.json          kind, format version, uuid, generation, and each file's dtype, length, checksum
        1/out.offsets.bin …  plain little-endian arrays

Data are written to a hidden folder beside their place, and moved there when they are complete. Replacing the header
is the commit: a reader sees the old generation or the new one, and never a part of one.
"""

import contextlib
import os
import shutil
import tempfile
import uuid as uuids
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
import numpy.typing as npt

from inlink.base.arrays import AnyArray
from inlink.errors import FolderError, OutputError

__all__ = ["FileEntry", "Folder", "Header", "atomic_file", "building"]

HEADER = "header.json"
_CHUNK = 1 << 22


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


class Folder:
    """A complete inlink folder. Its arrays are mapped when they are used.

    Parameters
    ----------
    path : path-like
        The folder.
    kind : str
        What the folder must hold, such as ``"graph"``.
    version : int
        The newest format version of this kind that this program reads.

    Raises
    ------
    FolderError
        If the folder is missing, of another kind, newer than this program, or if a file's length is not the
        one in the header.
    """

    def __init__(self, path: str | os.PathLike[str], kind: str, version: int) -> None:
        self.path = Path(path)
        self.header = _read_header(self.path)
        if self.header.kind != kind:
            raise FolderError(f"{self.path} holds a {self.header.kind}, not a {kind}")
        if self.header.version > version:
            raise FolderError(
                f"{self.path} has format version {self.header.version} and this inlink reads up to {version}: "
                "upgrade inlink"
            )
        self.data = self.path / str(self.header.generation)
        for name, entry in self.header.files.items():
            self._check_length(name, entry)

    def _check_length(self, name: str, entry: FileEntry) -> None:
        file = self._file(name)
        wanted = entry.length * np.dtype(entry.dtype).itemsize
        try:
            found = file.stat().st_size
        except OSError:
            raise FolderError(f"{file} is missing: build {self.path} again") from None
        if found != wanted:
            raise FolderError(
                f"{file} has {found:,} bytes and the header says {wanted:,}: build {self.path} again"
            )

    def _file(self, name: str) -> Path:
        # A header is data: it must not lead out of its folder.
        if Path(name).name != name:
            raise FolderError(f"{self.path / HEADER}: a file name {name!r} with a path in it")
        return self.data / f"{name}.bin"

    def __contains__(self, name: str) -> bool:
        return name in self.header.files

    def array(self, name: str) -> AnyArray:
        """A data file as a read-only memory-mapped array: dtype[length], as its header says."""
        entry = self.header.files[name]
        # An empty file cannot be mapped.
        if entry.length == 0:
            return np.empty(0, entry.dtype)
        mapped = np.memmap(self._file(name), dtype=entry.dtype, mode="r", shape=(entry.length,))
        return mapped.view(np.ndarray)

    def verify(self) -> None:
        """Read every file and compare its checksum.

        Raises
        ------
        FolderError
            If the bytes of a file are not those that were written; the first such file is named.
        """
        for name, entry in self.header.files.items():
            crc = 0
            with self._file(name).open("rb") as stream:
                while block := stream.read(_CHUNK):
                    crc = zlib.crc32(block, crc)
            if crc != entry.crc32:
                raise FolderError(f"{self._file(name)} is damaged (checksum): build {self.path} again")

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
        raise FolderError(f"{path} is a file, not an inlink folder") from None
    try:
        header = msgspec.json.decode(raw, type=Header)
        for entry in header.files.values():
            np.dtype(entry.dtype)
            if entry.length < 0 or "O" in entry.dtype:
                raise ValueError(f"an array of dtype {entry.dtype!r} and length {entry.length}")
    except (msgspec.MsgspecError, TypeError, ValueError, SyntaxError) as error:
        raise FolderError(f"{file} cannot be read ({error}): build {path} again") from None
    return header


class FolderWriter:
    """Collects the files of one generation; made by :func:`building`."""

    def __init__(self, data: Path, kind: str, version: int) -> None:
        self.data = data
        # files that the build needs and the folder does not
        self.scratch = data.with_name("scratch")
        data.mkdir()
        self.scratch.mkdir()
        self.header = Header(kind, version, str(uuids.uuid4()), 1, {}, {})
        self._open: dict[str, ArrayWriter] = {}

    def create(self, name: str, dtype: npt.DTypeLike) -> "ArrayWriter":
        """Begin a data file that is written from front to back."""
        self._open[name] = writer = ArrayWriter(self.data / f"{name}.bin", np.dtype(dtype))
        return writer

    def write(self, name: str, values: AnyArray) -> None:
        """Write a whole data file."""
        with self.create(name, values.dtype) as file:
            for start in range(0, len(values), 1 << 22):
                file.append(values[start : start + (1 << 22)])

    def _seal(self, sync: bool) -> None:
        for name, writer in self._open.items():
            writer.close()
            self.header.files[name] = FileEntry(writer.dtype.str, writer.length, writer.crc32)
            if sync:
                with writer.path.open("rb") as file:
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
    path: str | os.PathLike[str], kind: str, version: int, *, sync: bool = True
) -> Iterator[FolderWriter]:
    """Build a folder beside its place, and move it there when the block ends without an error.

    An existing folder of the same kind is kept until the new data are complete. If the block raises, nothing of
    the new data remains. After a kill, hidden folders remain beside ``path``; the next build removes them.

    Raises
    ------
    OutputError
        If ``path`` is a file, a folder of another kind that is not empty, or cannot be written.
    """
    target = Path(path)
    _refuse_strangers(target, kind)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep_leftovers(target)
        work = Path(
            tempfile.mkdtemp(prefix=f".{target.name}.{os.getpid()}.", suffix=".building", dir=target.parent)
        )
    except OSError as error:
        raise OutputError(f"{target}: cannot be written ({error.strerror})") from None
    writer: FolderWriter | None = None
    try:
        writer = FolderWriter(work / "data", kind, version)
        yield writer
        writer._seal(sync)
        _commit(writer, work, target, sync)
    finally:
        if writer is not None:
            writer._abandon()
        shutil.rmtree(work, ignore_errors=True)


def _refuse_strangers(target: Path, kind: str) -> None:
    if not target.exists() and not target.is_symlink():
        return
    if not target.is_dir():
        raise OutputError(f"{target} is a file: name another output, or remove it")
    if not any(target.iterdir()):
        return
    try:
        found = _read_header(target).kind
    except FolderError:
        found = "something else"
    if found != kind:
        raise OutputError(
            f"{target} exists and holds {found}, not a {kind}: name another output, or remove it"
        )


def _sweep_leftovers(target: Path) -> None:
    """Remove the folders of killed builds of this target; those of running processes stay."""
    for leftover in target.parent.glob(f".{target.name}.*.building"):
        pid = leftover.name[len(target.name) + 2 :].split(".")[0]
        if pid.isdigit() and not _alive(int(pid)):
            shutil.rmtree(leftover, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _commit(writer: FolderWriter, work: Path, target: Path, sync: bool) -> None:
    header = writer.header
    with contextlib.suppress(FolderError):
        header.generation = _read_header(target).generation + 1
    data = work / str(header.generation)
    writer.data.rename(data)
    shutil.rmtree(writer.scratch)
    raw = msgspec.json.format(msgspec.json.encode(header), indent=1)
    if header.generation == 1:
        with atomic_file(work / HEADER, sync=sync) as file:
            file.write_bytes(raw)
        work.chmod(0o777 & ~_umask())
        # one step, which also replaces an empty folder
        work.rename(target)
    else:
        place = target / data.name
        # A build may have been killed between its last two steps.
        shutil.rmtree(place, ignore_errors=True)
        data.rename(place)
        try:
            with atomic_file(target / HEADER, sync=sync) as file:
                file.write_bytes(raw)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        for other in target.iterdir():
            if other.is_dir() and other.name.isdigit() and other.name != place.name:
                # Readers that have the old files mapped keep them.
                shutil.rmtree(other, ignore_errors=True)
    if sync:
        _sync_folder(target.parent)


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str], *, sync: bool = True) -> Iterator[Path]:
    """Yield a hidden path beside ``path`` to write to, and rename it to ``path`` when the block ends without an error.

    Raises
    ------
    OutputError
        If ``path`` is a folder, or cannot be written.
    """
    target = Path(path)
    if target.is_dir():
        raise OutputError(f"{target} is a folder: name a file")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".writing", dir=target.parent)
    except OSError as error:
        raise OutputError(f"{target}: cannot be written ({error.strerror})") from None
    os.close(handle)
    work = Path(name)
    try:
        yield work
        # mkstemp makes private files
        work.chmod(0o666 & ~_umask())
        if sync:
            with work.open("rb") as file:
                os.fsync(file.fileno())
        work.replace(target)
        if sync:
            _sync_folder(target.parent)
    finally:
        work.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        # Some file systems cannot sync a folder; the rename is done all the same.
        pass
    finally:
        os.close(descriptor)
