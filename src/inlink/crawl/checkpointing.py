"""Write a crawl's checkpoint: see :mod:`inlink.store.checkpoint`."""

import logging
from itertools import chain

from inlink.errors import OutputError
from inlink.frontier import saved
from inlink.frontier.frontier import Frontier
from inlink.store.checkpoint import LEAST_PAGES, Extent, code, write
from inlink.store.log import Log

__all__ = ["is_due", "save"]

_log = logging.getLogger("inlink.crawl")

_GROWTH = 32
"""A new checkpoint is due when a file of the log has grown by one part in so many."""


def is_due(frontier: Frontier) -> bool:
    """Whether a new checkpoint is worth its cost."""
    pages = frontier.pages
    if pages.num_pages < LEAST_PAGES:
        return False
    if pages.checkpoint is None:
        return True
    last = pages.checkpoint.extent
    return (
        pages.urls_end - last.urls_end > last.urls_end // _GROWTH
        or pages.events_end - last.events_end > last.events_end // _GROWTH
    )


def save(frontier: Frontier, log: Log) -> None:
    """Write a checkpoint of all events. If it cannot be written, the one before is kept, and this is logged.

    Parameters
    ----------
    frontier : Frontier
        Agrees with the log.
    log : Log
    """
    pages = frontier.pages
    extent = Extent(
        pages.num_pages,
        log.urls_end,
        log.events_end,
        log.urls_check,
        log.events_check,
        str(pages.hash_seed),
        code(),
    )
    try:
        log.sync()
        write(
            pages.folder,
            extent,
            chain(pages.parts(), saved.parts(frontier)),
            {**pages.small_parts(), **saved.small_parts(frontier)},
        )
    except (OSError, OutputError) as error:
        told = error.strerror if isinstance(error, OSError) else error
        _log.warning(
            "%s: cannot write a checkpoint (%s); the next opening of this crawl takes longer",
            pages.folder,
            told,
        )
