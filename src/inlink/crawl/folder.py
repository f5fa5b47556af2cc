"""Make a crawl's folder, and look into it from another process."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from inlink.base.disk import remove_folder
from inlink.base.folder import building
from inlink.crawl.settings import FILE, encoded, stored
from inlink.errors import FolderError, InUseError, ParameterError
from inlink.frontier.frontier import Frontier
from inlink.frontier.policies import Policy, policy_of
from inlink.frontier.restoring import restore
from inlink.frontier.settings import Settings
from inlink.frontier.visits import plan_visits
from inlink.store.log import KIND, VERSION
from inlink.store.pages import Pages
from inlink.store.reader import crawl_folder, open_pages


def local(folder: str | os.PathLike[str]) -> Path:
    """The path of a folder.

    Raises
    ------
    inlink.errors.ParameterError
        If it is the URL of a server.
    """
    if "://" in os.fspath(folder):
        raise ParameterError(
            f"{os.fspath(folder)} is no folder: inlink.connect reaches a crawl on a server, and INLINK_CRAWL in Scrapy"
        )
    return Path(folder)


def create(folder: Path, started: float, settings: Settings) -> bool:
    """Make a crawl's folder unless it exists; return whether it was made.

    Raises
    ------
    inlink.errors.FolderError, inlink.errors.OutputError
        If the folder holds other data.
    """
    if folder.is_file():
        raise FolderError(f"{folder} is a file, not a crawl's folder: name another")
    if (folder / "header.json").exists():
        # A folder that holds anything else is refused before a file is written into it.
        crawl_folder(folder)
        return False
    rules = settings.url_rules
    try:
        with building(folder, KIND, VERSION, new=True) as writer:
            writer.header.meta = {
                "hash_seed": str(int.from_bytes(os.urandom(8)) >> 1),
                "started": started,
                "url_rules": None if rules is None else msgspec.to_builtins(rules),
            }
            (writer.data.parent / FILE).write_bytes(encoded(settings))
    except InUseError:
        # Of several processes that make the same crawl, one wins. The lock decides which of them writes it.
        crawl_folder(folder)
        return False
    return True


def unmake(made: list[Path], kind: type[BaseException] | None, *_: object) -> None:
    """Remove the folder that the opening of a crawl has made, if an exception ends it.

    Once the crawl is open, ``made`` must be empty: an exception while it is closed comes here too.
    """
    if kind is not None:
        for folder in made:
            remove_folder(folder)


def look(
    folder: str | os.PathLike[str],
    clock: Callable[[], float] = time.time,
    policy: "str | type[Policy] | Policy | None" = None,
) -> Frontier:
    """Restore a crawl's frontier from its folder, to read it only. Another process may be writing the crawl.

    A folder may come from anybody, so no code that it names is imported. If the crawl's policy is one of your own,
    ``policy`` must name it again. A schedule of your own plans no revisits here.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl, or its settings cannot be read.
    inlink.errors.ParameterError
        If its policy is not one of inlink's and ``policy`` does not name it, or if it cannot be imported here.
    """
    settings = stored(Path(folder))
    # The policy is checked first, because reading the log takes long.
    policy_of(folder, settings.policy, policy)
    pages = open_pages(folder)
    pages.recover()
    return frontier_of(pages, clock(), policy)


def frontier_of(pages: Pages, now: float, policy: "str | type[Policy] | Policy | None" = None) -> Frontier:
    """Restore a crawl's frontier from all events of its pages, with the settings that its folder keeps.

    Raises
    ------
    inlink.errors.FolderError
        If its settings cannot be read.
    inlink.errors.ParameterError
        If its policy is not one of inlink's and ``policy`` does not name it, or if it cannot be imported here.
    """
    settings = stored(pages.folder)
    frontier = Frontier(pages, settings, policy_of(pages.folder, settings.policy, policy))
    restore(frontier, now)
    if settings.revisits:
        plan_visits(frontier, settings.revisit)
    return frontier
