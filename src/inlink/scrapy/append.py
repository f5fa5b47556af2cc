"""Files to which each run of a crawl appends complete records. The next run removes an incomplete record."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Self

from inlink.errors import InUseError, OutputError

__all__ = ["Appended"]


class Appended:
    """A regular file that this process alone appends to; a context manager.

    Parameters
    ----------
    path : path-like
        The file, made if it does not exist.
    whole : callable
        Called with the file, open for reading at its beginning. Returns the position after its last complete record;
        the rest is removed. Raises OutputError if the file is of another kind.

    Attributes
    ----------
    size : int
        Size of the file in bytes.

    Raises
    ------
    inlink.errors.OutputError
        If the file cannot be written, or is not a regular file.
    inlink.errors.InUseError
        If another process appends to it.
    """

    def __init__(self, path: str | os.PathLike[str], whole: Callable[[BinaryIO], int]) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_file():
            raise OutputError(f"{self.path} is not a regular file: name another file")
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise OutputError(
                f"{self.path}: cannot be written ({error.strerror}): name another file"
            ) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with self.path.open("rb") as file:
                self.size = whole(file)
            os.ftruncate(self._file, self.size)
        except BlockingIOError:
            os.close(self._file)
            raise InUseError(f"{self.path} is being written by another process: name another file") from None
        except BaseException as error:
            os.close(self._file)
            if isinstance(error, OSError):
                raise OutputError(f"{self.path}: {error.strerror}: name another file") from None
            raise

    def append(self, record: bytes) -> None:
        """Append a record. When this returns, the operating system has the data.

        Raises
        ------
        inlink.errors.OutputError
            If the record cannot be written. Then no part of it is in the file.
        """
        done = 0
        try:
            while done < len(record):
                done += os.write(self._file, memoryview(record)[done:])
        except OSError as error:
            os.ftruncate(self._file, self.size)
            raise OutputError(
                f"{self.path}: cannot be written ({error.strerror}): free some space, and run the command again"
            ) from None
        self.size += done

    def close(self) -> None:
        """Sync the file to disk, and close it."""
        try:
            os.fsync(self._file)
        except OSError:
            # The operating system has all bytes.
            pass
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
