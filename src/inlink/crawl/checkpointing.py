"""Write a crawl's checkpoints: see :mod:`inlink.store.checkpoint`.

When a crawl is closed, :func:`save` writes a checkpoint of its memory. While it runs, ``python -m
inlink.crawl.checkpointing FOLDER`` does, in a process of its own: it restores the crawl from its folder, as any reader
does, and never from the memory of the crawl. So the crawl does not wait, and the checkpoint holds what the log holds.
The process ends as soon as its standard input closes. It prints one line of JSON: the bytes of both files of the log
that the checkpoint covers, or an error.
"""

import json
import logging
import os
import sys
import threading
from itertools import chain
from pathlib import Path

from inlink.base.memory import give_way
from inlink.crawl.settings import stored
from inlink.errors import InlinkError
from inlink.frontier import saved
from inlink.frontier.frontier import Frontier
from inlink.frontier.policies import POLICIES, Policy
from inlink.frontier.restoring import restore_columns
from inlink.store.blocks import num_links
from inlink.store.blocksums import BlockSums
from inlink.store.checkpoint import Extent, code, write
from inlink.store.log import EVENTS, URLS, Log
from inlink.store.pages import Pages
from inlink.store.reader import open_pages

__all__ = ["main", "save", "save_from_log"]

_log = logging.getLogger("inlink.crawl")


def save(frontier: Frontier, log: Log) -> None:
    """Write a checkpoint of all events. If that fails, the one before is kept, and this is logged.

    It fails on a full disk, and if the log is damaged.

    Parameters
    ----------
    frontier : Frontier
        Agrees with the log.
    log : Log
    """
    try:
        log.sync()
        _write(frontier, (log.urls_sums, log.events_sums))
    except (OSError, InlinkError) as error:
        told = error.strerror if isinstance(error, OSError) else error
        _log.warning(
            "%s: cannot write a checkpoint (%s); the next opening of this crawl takes longer",
            frontier.pages.folder,
            told,
        )


def _write(frontier: Frontier, sums: tuple[BlockSums, BlockSums]) -> None:
    pages = frontier.pages
    seed = str(pages.hash_seed)
    extent = Extent(pages.num_pages, sums[0].end, sums[1].end, seed, code())
    write(
        pages.folder,
        extent,
        sums,
        chain(pages.parts(), saved.parts(frontier)),
        {**pages.small_parts(), **saved.small_parts(frontier), "links": num_links(pages)},
    )


def save_from_log(folder: Path) -> tuple[int, int]:
    """Write a checkpoint of all complete events in a folder, which another process may be crawling in.

    Returns
    -------
    (int, int)
        The bytes of urls.txt and of events.log that it covers.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl, or its log is damaged.
    inlink.errors.OutputError
        If the checkpoint cannot be written. The one before is kept.
    """
    settings = stored(folder)
    pages = open_pages(folder)
    try:
        pages.recover()
        # The columns of a policy of the user's own are not kept, and its code is not imported here.
        frontier = Frontier(pages, settings, None if settings.policy in POLICIES else Policy)
        restore_columns(frontier)
        _write(frontier, _sums(pages))
        return pages.urls_end, pages.events_end
    finally:
        pages.close()


def _sums(pages: Pages) -> tuple[BlockSums, BlockSums]:
    """The checksums of both files of the log as far as they are taken in."""
    sums = (BlockSums(), BlockSums()) if pages.checkpoint is None else pages.checkpoint.block_sums()
    for name, one, end in zip((URLS, EVENTS), sums, (pages.urls_end, pages.events_end), strict=True):
        with (pages.folder / name).open("rb", buffering=0) as file:
            one.add_file(file.fileno(), end)
    return sums


def _end_with_input() -> None:
    """End this process when standard input closes. An unfinished checkpoint is removed by the next one."""
    while os.read(0, 1 << 12):
        pass
    os._exit(0)


def main(arguments: list[str]) -> int:
    """Write one checkpoint; return the exit code, which is 0, or 2 after an error."""
    give_way()
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        urls_end, events_end = save_from_log(Path(arguments[0]))
    except (InlinkError, OSError, MemoryError) as error:
        told = "not enough memory" if isinstance(error, MemoryError) else " ".join(str(error).split())
        _tell({"error": told})
        return 2
    _tell({"urls_end": urls_end, "events_end": events_end})
    return 0


def _tell(answer: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
