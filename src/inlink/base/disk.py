"""Writing to disks: full disks, permissions, and safety from a power cut."""

import errno
import os
from pathlib import Path

from inlink.errors import OutputError

__all__ = ["full_disk", "remove_folder", "sync_path", "umask"]


def full_disk(target: Path, error: OSError) -> Exception:
    """Return an OutputError that names the output if the disk was full; otherwise return the error itself."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return error
    return OutputError(
        f"{target}: cannot be written ({error.strerror}): free some space, or name an output on another disk"
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
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        # Some file systems cannot sync a folder; the rename is done all the same.
        pass
    finally:
        os.close(descriptor)
