"""A crawl's folder beside its log: made, its settings kept, looked at by others."""

import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from inlink.base.folder import Folder, atomic_file, building
from inlink.errors import FolderError
from inlink.frontier.frontier import Frontier, Settings
from inlink.frontier.policies import POLICIES
from inlink.frontier.revisit import revisit_of
from inlink.frontier.visits import plan_visits
from inlink.store.reader import KIND, VERSION, open_pages
from inlink.urls.canonical import UrlRules

__all__ = ["create", "look", "save_settings"]

SETTINGS = "settings.json"


def create(folder: Path, started: float, url_rules: UrlRules | None) -> None:
    """Make a crawl's folder, unless it is there.

    Raises
    ------
    inlink.errors.FolderError, inlink.errors.OutputError
        If something else is there.
    """
    if folder.is_file():
        raise FolderError(f"{folder} is a file, not a crawl's folder: name another")
    if (folder / "header.json").exists():
        Folder(folder, KIND, VERSION)  # a crawl's, or refused before anything is put into it
        return
    with building(folder, KIND, VERSION) as writer:
        writer.header.meta = {
            "hash_seed": str(secrets.randbits(63)),
            "started": started,
            "url_rules": None if url_rules is None else msgspec.to_builtins(url_rules),
        }


def save_settings(folder: Path, settings: Settings) -> None:
    """Keep what decides the order, for those who look."""
    with atomic_file(folder / SETTINGS, sync=False) as file:
        file.write_bytes(msgspec.json.format(msgspec.json.encode(settings), indent=1))


def look(folder: str | os.PathLike[str], clock: Callable[[], float] = time.time) -> Frontier:
    """The frontier of a crawl as its folder tells it, to look at: also while another process crawls.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl.
    """
    pages = open_pages(folder)
    pages.recover()
    try:
        settings = msgspec.json.decode((Path(folder) / SETTINGS).read_bytes(), type=Settings)
    except (OSError, msgspec.MsgspecError):
        settings = Settings()
    if settings.policy not in POLICIES:  # one of the user's own, which is not here
        settings.policy = "first-come"
    frontier = Frontier(pages, settings)
    frontier.restore(clock())
    schedule = revisit_of(settings.revisit)
    if schedule is not None:
        plan_visits(frontier, schedule)
    return frontier
