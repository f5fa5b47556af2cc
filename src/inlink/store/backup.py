"""Copy a crawl's folder up to its last complete event. Another process may be writing the crawl."""

import os
import shutil
from pathlib import Path
from typing import NamedTuple

from inlink.base.folder import HEADER, Folder, new_folder
from inlink.errors import FolderError
from inlink.store.checks import last_whole, refuse_damage
from inlink.store.format import salt_of
from inlink.store.inbox import INBOX
from inlink.store.log import EVENTS, RANKS, URLS, write_end
from inlink.store.mapped import mapped
from inlink.store.prior import DISTRUST, LISTS, PRIOR
from inlink.store.reader import hash_seed_of

_BLOCK = 1 << 22
_TRIES = 5
"""The largest number of attempts to copy a folder that may be replaced during the copy."""


class Copied(NamedTuple):
    """The content of a backup: numbers of pages and events, and bytes of both files of the log."""

    pages: int
    events: int
    size: int


def backup(folder: str | os.PathLike[str], target: str | os.PathLike[str]) -> Copied:
    """Copy a crawl's folder, also while another process crawls.

    The copy has all events that were complete when it began, and may have later events. All checksums in the copy are
    compared before it gets its name. The lock, the index, the checkpoint and torn tails are not copied.

    Parameters
    ----------
    folder : path-like
        The crawl's folder.
    target : path-like
        The folder of the copy. It must not exist.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl, or it is damaged.
    inlink.errors.OutputError
        If ``target`` exists or cannot be written. Then no files are left.
    """
    source = Path(folder)
    salt = salt_of(hash_seed_of(source))
    with new_folder(target) as work:
        # Requests in the inbox are either in the copy's inbox, or were done before the log was copied.
        copy_beside_log(source, work)
        # The URLs of an event are written before it, so they are copied after it.
        for name in (EVENTS, URLS):
            _copy_now(source / name, work / name)
        events, urls = (mapped(work / name) for name in (EVENTS, URLS))
        reached = last_whole(urls, events, salt)
        refuse_damage(source, events, reached)
        pages, count, ends = reached.pages, reached.frames, (reached.place, reached.text_place)
        del events, urls
        for name, end in zip((EVENTS, URLS), ends, strict=True):
            os.truncate(work / name, end)
        write_end(work, ends[1], ends[0], count, pages)
        hash_seed_of(work)
    return Copied(pages, count, sum(ends))


def copy_beside_log(source: Path, work: Path) -> None:
    """Copy the files of a crawl's folder besides its log: header, settings, inbox, ranking and places of hosts.

    Raises
    ------
    inlink.errors.FolderError
        If a file cannot be read.
    """
    try:
        (work / HEADER).write_bytes((source / HEADER).read_bytes())
        for name in ("settings.json", "addresses.json"):
            if (source / name).exists():
                (work / name).write_bytes((source / name).read_bytes())
        if (source / INBOX).is_dir():
            shutil.copytree(source / INBOX, work / INBOX, ignore=shutil.ignore_patterns(".*"))
    except (shutil.Error, FileNotFoundError):
        # A request was done while it was copied; it is in the log then.
        pass
    copy_lists(source, work, RANKS)


def copy_lists(source: Path, work: Path, *others: str) -> None:
    """Copy the lists of hosts that a crawl's folder keeps, and other folders in it that may be replaced meanwhile."""
    kinds = {name: name for name in (*others, PRIOR, DISTRUST)}
    for name in (PRIOR, DISTRUST):
        kinds |= {f"{LISTS}/{one.name}": name for one in (source / LISTS).glob(f"{name}-*")}
    for name, kind in kinds.items():
        for _ in range(_TRIES):
            if copy_folder(source / name, work / name, kind):
                break


def copy_folder(source: Path, target: Path, kind: str) -> bool:
    """Copy a folder that may be replaced during the copy. Return True if the copy is complete or there is no folder."""
    shutil.rmtree(target, ignore_errors=True)
    try:
        Folder(source, kind, 1)
        shutil.copytree(source, target)
        Folder(target, kind, 1).verify()
    except (FolderError, shutil.Error, FileNotFoundError):
        shutil.rmtree(target, ignore_errors=True)
        return not source.exists()
    return True


def _copy_now(source: Path, target: Path) -> None:
    """Copy a growing file up to its present length."""
    try:
        file = source.open("rb", buffering=0)
    except OSError as error:
        raise FolderError(f"{source} cannot be read ({error.strerror}): it is a part of the crawl") from None
    with file, target.open("wb") as out:
        left = os.fstat(file.fileno()).st_size
        while left and (block := file.read(min(left, _BLOCK))):
            out.write(block)
            left -= len(block)
