"""The state of a crawl's folder: sizes, policy, writer, inbox, ranking."""

import fcntl
import os
from pathlib import Path

import msgspec

from inlink.base.folder import Folder
from inlink.crawl.permissions import Kept, kept
from inlink.crawl.settings import stored
from inlink.errors import FolderError
from inlink.store.inbox import pending
from inlink.store.log import LOCK, RANKS

__all__ = ["About", "RankingInfo", "about", "writer_of"]


class RankingInfo(msgspec.Struct, frozen=True):
    """The ranking that orders a crawl. ``behind`` is the number of bytes that the log has grown by since."""

    algorithm: str | None
    pages: int
    behind: int
    error: float | None
    converged: bool | None


class About(msgspec.Struct, frozen=True):
    """A crawl's folder.

    Parameters
    ----------
    bytes : dict of str to int
        Sizes of its files and folders.
    policy : str
    writer : str or None
        Process id of the writer, "unknown" if the id cannot be read, None if no process writes.
    inbox : int
        Number of requests that wait for the writer.
    ranking : RankingInfo or None
        None if there is none yet.
    addresses : Kept or None
        The addresses that `inlink crawl` may connect to, and whether this holds here; None if there are no rules.
    """

    bytes: dict[str, int]
    policy: str
    writer: str | None
    inbox: int
    ranking: RankingInfo | None
    addresses: Kept | None


def about(folder: Path, end: int) -> About:
    """Describe a crawl's folder. ``end`` is the number of bytes of the log that were read.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl, or its settings cannot be read.
    """
    return About(
        _sizes(folder),
        stored(folder).policy,
        writer_of(folder),
        len(pending(folder)),
        _ranking(folder, end),
        kept(folder),
    )


def writer_of(folder: Path) -> str | None:
    """The process id of a crawl's writer: ``"unknown"`` if it cannot be read, None if no process writes."""
    try:
        file = os.open(folder / LOCK, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.pread(file, 32, 0).decode("ascii", "replace").strip() or "unknown"
    finally:
        os.close(file)
    return None


def _sizes(folder: Path) -> dict[str, int]:
    """Bytes of each file and folder in the crawl's folder; files that disappear meanwhile are not counted."""
    sizes: dict[str, int] = {}
    for path in sorted(folder.rglob("*")):
        try:
            size = path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
        if size:
            name = path.relative_to(folder).parts[0]
            sizes[name] = sizes.get(name, 0) + size
    return sizes


def _ranking(folder: Path, end: int) -> RankingInfo | None:
    try:
        ranks = Folder(folder / RANKS, RANKS, 1)
    except FolderError:
        return None
    meta = ranks.header.meta
    return RankingInfo(
        meta.get("algorithm"),
        ranks.header.files["rank"].length,
        max(end - int(meta.get("covers", 0)), 0),
        meta.get("error"),
        meta.get("converged"),
    )
