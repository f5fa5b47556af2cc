"""Remember which folders were checked, so that an unchanged folder is not read as a whole again.

A checked folder is remembered as an empty file in the user's cache, ``$XDG_CACHE_HOME/inlink/checked`` or
``~/.cache/inlink/checked``. The name of that file is a hash of the folder's header and of the device, inode, size,
mtime and ctime of each data file. Nothing is read from the cache, so damage there can only cause another check.
"""

import contextlib
import os
from hashlib import blake2b
from pathlib import Path

import msgspec

from inlink.base.folder import Folder

MOST = 4096
"""The number of folders that are remembered. Beyond it the older half is forgotten."""

# A file that changes twice within one tick of the file system's clock keeps its ctime. Two seconds is the longest tick.
_TICK = 2.0


def is_remembered(folder: Folder, rules: int) -> bool:
    """Return whether a folder was checked by these rules, and has not changed since."""
    place = _checked()
    return place is not None and is_noted(place, _parts(folder, rules))


def remember(folder: Folder, rules: int, *, written: bool = False) -> None:
    """Remember that a folder was checked. Do nothing if the cache cannot be written.

    A folder is not remembered if it changed within the two seconds before it was opened.

    Parameters
    ----------
    folder : Folder
        The folder, opened before it was checked.
    rules : int
        The version of the checks.
    written : bool
        Whether the caller has just written the folder, and compares its checksums at each use. Then it is remembered
        at once.
    """
    newest = max((max(stamp.st_mtime, stamp.st_ctime) for stamp in folder.stamps.values()), default=0.0)
    place = _checked()
    if place is None or (newest > folder.opened - _TICK and not written):
        return
    with contextlib.suppress(OSError):
        note(place, _parts(folder, rules))


def user_folder(variable: str, below_home: str) -> Path | None:
    """The user's folder for inlink, below the one that a variable of the XDG specification names; None without a home.

    Parameters
    ----------
    variable : str
        Such as ``XDG_CACHE_HOME``.
    below_home : str
        The default in the home folder, such as ``.cache``.
    """
    base = Path(os.environ.get(variable, ""))
    # The XDG specification says to ignore a relative path.
    if base.is_absolute():
        return base / "inlink"
    try:
        return Path.home() / below_home / "inlink"
    except RuntimeError:
        return None


def note(place: Path, parts: list[object]) -> None:
    """Make an empty file in a folder, named by a hash of the parts. Of many such files, the older ones are removed.

    Raises
    ------
    OSError
        If the file cannot be made.
    """
    place.mkdir(parents=True, exist_ok=True)
    _forget_some(place)
    (place / _name(parts)).touch()


def is_noted(place: Path, parts: list[object]) -> bool:
    """Return whether :func:`note` made a file for these parts."""
    # Unlike Path.is_file, this is False for a path that cannot be read.
    return os.path.isfile(place / _name(parts))  # noqa: PTH113


def _checked() -> Path | None:
    cache = user_folder("XDG_CACHE_HOME", ".cache")
    return None if cache is None else cache / "checked"


def _parts(folder: Folder, rules: int) -> list[object]:
    header = folder.header
    parts: list[object] = [rules, header.kind, header.version, header.uuid, msgspec.json.encode(header.meta)]
    for name, entry in header.files.items():
        stamp = folder.stamps[name]
        parts += [name, entry.dtype, entry.length, entry.crc32]
        parts += [stamp.st_dev, stamp.st_ino, stamp.st_size, stamp.st_mtime_ns, stamp.st_ctime_ns]
    return parts


def _name(parts: list[object]) -> str:
    return blake2b(repr(parts).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _forget_some(place: Path) -> None:
    entries = [entry for entry in os.scandir(place) if entry.is_file(follow_symlinks=False)]
    if len(entries) >= MOST:
        entries.sort(key=lambda entry: entry.stat(follow_symlinks=False).st_mtime)
        for entry in entries[: len(entries) - MOST // 2]:
            with contextlib.suppress(OSError):
                Path(entry).unlink()
