"""Unfinished files and folders: each belongs to one process, and is removed after that process has ended.

An unfinished file or folder is hidden, and its name ends in ``.inlink-unfinished``. The process that makes it holds a
lock on it (``flock``), which the system releases when the process ends, even by kill -9. The process that makes the
next unfinished file in the same folder removes those without a lock. A process id could not replace the lock, because
another program may get the same id, and the id has no meaning on another host or in another container. On a file system
without locks, and on Windows, unfinished files are not removed.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from inlink.base.disk import fcntl, remove_folder

SUFFIX = ".inlink-unfinished"

# A name may have 255 bytes.
_LONGEST = 40


@contextlib.contextmanager
def unfinished_file(target: Path) -> Iterator[Path]:
    """Make an empty file beside ``target``, which the caller writes and renames. Remove it if it was not renamed.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    # A process that only reads need not wait for this import.
    import tempfile

    def make(prefix: str) -> str:
        descriptor, name = tempfile.mkstemp(SUFFIX, prefix, target.parent)
        os.close(descriptor)
        return name

    with _held(target, make, os.O_RDWR) as path:
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def unfinished_folder(target: Path) -> Iterator[Path]:
    """Make a folder beside ``target``, which the caller fills and renames. Remove it if it was not renamed.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    import tempfile

    with _held(target, lambda prefix: tempfile.mkdtemp(SUFFIX, prefix, target.parent), os.O_RDONLY) as path:
        try:
            yield path
        finally:
            remove_folder(path)


@contextlib.contextmanager
def _held(target: Path, make: Callable[[str], str], mode: int) -> Iterator[Path]:
    remove_abandoned(target.parent)
    prefix = f".{target.name[:_LONGEST].lstrip('.')}."
    while True:
        path = Path(make(prefix))
        if fcntl is None:
            yield path
            return
        try:
            descriptor = os.open(path, mode | os.O_NOFOLLOW)
        except FileNotFoundError:
            # Another process removed it before it was locked.
            continue
        except OSError:
            with contextlib.suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
            raise
        try:
            # A process that is just looking at it holds it for a moment.
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_at(path, descriptor):
                yield path
                return
        finally:
            os.close(descriptor)


def remove_abandoned(folder: Path) -> None:
    """Remove the unfinished files and folders in a folder that are this user's and that no process holds."""
    if fcntl is None:
        return
    try:
        entries = [entry for entry in os.scandir(folder) if entry.name.endswith(SUFFIX)]
    except OSError:
        return
    for entry in entries:
        with contextlib.suppress(OSError):
            if entry.name[0] == "." and entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                _remove_if_free(Path(entry.path), entry.is_dir(follow_symlinks=False))


def _remove_if_free(path: Path, is_folder: bool) -> None:
    descriptor = os.open(path, (os.O_RDONLY if is_folder else os.O_RDWR) | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_at(path, descriptor):
            return
        if is_folder:
            remove_folder(path)
        else:
            path.unlink()
    finally:
        os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
