"""Writing to disks: full disks, permissions, and safety from a power cut."""

import errno
import os
from pathlib import Path
from typing import Any

from inlink.errors import InlinkError, OutputError, StoreError

# Windows has no such locks. Graphs are built there without locks, and crawls are refused.
fcntl: Any
try:
    import fcntl
except ModuleNotFoundError:
    fcntl = None

_REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space, or raise the quota",
    errno.EFBIG: "free some space",
    errno.EROFS: "mount the file system for writing",
    errno.EACCES: "allow this user to read and write it",
    errno.EPERM: "allow this user to read and write it",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "close some programs: the system has too many open files",
    errno.ENOMEM: "free some memory",
    errno.EIO: "look for faults of the disk in the system's log",
    errno.ENOENT: "put it back from a backup",
}


def described(error: OSError, place: object) -> str:
    """Describe an error of the system: the file, or else ``place``; the reason; and what to do."""
    remedy = _REMEDIES.get(error.errno or 0, "try again")
    return f"{error.filename or place}: {error.strerror or error}: {remedy}"


class DescribedErrors:
    """Context manager that raises an InlinkError in place of an OSError or MemoryError. ``place`` is a file or folder.

    A generator leaks on Python 3.12 and newer. After an error it forms a reference cycle with the frames of the block,
    which hold columns.
    """

    def __init__(self, place: object, kind: type[InlinkError] = StoreError) -> None:
        self._place, self._kind = place, kind

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise self._kind(described(error, self._place)) from error
        if isinstance(error, MemoryError):
            raise self._kind(
                f"{self._place}: not enough memory: close crawls and views that are open in this process, or raise its "
                "limit (ulimit -v)"
            ) from error


def unwritable(target: Path, error: OSError) -> OutputError:
    """Return the error of an output that the system did not write. It names the file that ``error`` names, if any."""
    remedy = _REMEDIES.get(error.errno or 0, "try again")
    name = str(error.filename or target)
    # The hidden name of an unfinished output means nothing to its user.
    place = target if ".inlink-unfinished" in name else name
    return OutputError(
        f"{place}: cannot be written ({error.strerror or error}): {remedy}, or name an output on another disk"
    )


def remove_folder(path: Path) -> None:
    """Remove a folder and its contents, as far as this is possible. A folder that does not exist is no error."""
    # A process that only reads need not wait for this import, which loads compressors.
    import shutil

    shutil.rmtree(path, ignore_errors=True)


def umask() -> int:
    """The permissions that new files of this process do not get."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def sync_path(path: Path) -> None:
    """Wait until a file or folder is safe from a power cut."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:
        # Windows opens no folders.
        if path.is_dir():
            return
        raise
    try:
        os.fsync(descriptor)
    except OSError:
        # Some file systems cannot sync a folder; the rename is done all the same.
        pass
    finally:
        os.close(descriptor)
