"""Check all files of a crawl's folder, also those that are not read when the crawl is opened."""

import logging
import os
from pathlib import Path

from inlink.base.folder import HEADER, Folder
from inlink.errors import FolderError
from inlink.store.checkpoint import CHECKPOINT
from inlink.store.checkpoint import VERSION as CHECKPOINT_VERSION
from inlink.store.checks import last_whole, no_end, refuse_damage
from inlink.store.format import salt_of
from inlink.store.log import EVENTS, INDEX, INDEX_VERSION, RANKS, URLS, ends_in
from inlink.store.mapped import mapped
from inlink.store.prior import DISTRUST, PRIOR
from inlink.store.reader import hash_seed_of

_log = logging.getLogger("inlink.crawl")
_AGAIN = "remove this folder, and the crawl makes it again"
_GIVEN = "open the crawl with the setting `{}` again, or take this folder from a backup"
_FOLDERS = {
    INDEX: (INDEX_VERSION, _AGAIN),
    CHECKPOINT: (CHECKPOINT_VERSION, _AGAIN),
    RANKS: (1, _AGAIN),
    PRIOR: (1, _GIVEN.format(PRIOR)),
    DISTRUST: (1, _GIVEN.format(DISTRUST)),
}
"""For each folder in a crawl's folder: the newest format version that this inlink reads, and what to do if damaged."""


def verify(folder: str | os.PathLike[str]) -> None:
    """Compare all checksums in a crawl's folder: of each event, of the URLs, and of the folders beside the log.

    Another process may be writing the crawl.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl, or a file is damaged. The message names the first such file and the remedy.
    """
    place = Path(folder)
    salt = salt_of(hash_seed_of(place))
    if not ends_in(place):
        _log.warning("%s", no_end(place))
    # The URLs of an event are written before it, so they are mapped after it.
    events = mapped(place / EVENTS)
    urls = mapped(place / URLS)
    refuse_damage(place, events, last_whole(urls, events, salt))
    for name, (version, remedy) in _FOLDERS.items():
        if (place / name).exists():
            _verify_folder(place / name, name, version, remedy)
    for header in sorted(place.glob(f"rankings/[!.]*/{HEADER}")):
        _verify_folder(header.parent, "ranking", 1, "rank the crawl again with the same name")


def _verify_folder(path: Path, kind: str, version: int, remedy: str) -> None:
    while True:
        before = _header(path)
        try:
            Folder(path, kind, version).verify()
        except FolderError as error:
            if _header(path) != before:
                # A running crawl has replaced the folder.
                continue
            fault = str(error).rpartition(": build ")[0] or str(error)
            raise FolderError(f"{fault}: {remedy}") from None
        return


def _header(path: Path) -> bytes | None:
    try:
        return (path / HEADER).read_bytes()
    except OSError:
        return None
