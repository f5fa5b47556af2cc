"""Folders of crawls for tests of the store, and the numbers that scatter their contents."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from inlink.store import log as logs
from inlink.store.pages import Pages
from inlink.store.reader import Reader

__all__ = ["empty_pages", "fnv", "folder", "later_log", "links_from", "links_to"]


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as place:
        yield Path(place)


@contextlib.contextmanager
def empty_pages(seed: int = 7) -> Iterator[Pages]:
    with folder() as place:
        (place / logs.URLS).touch()
        (place / logs.EVENTS).touch()
        pages = Pages(place, seed)
        yield pages
        pages.close()


def later_log(folder: Path, *, synced: bool = True) -> logs.Log:
    """The log of a closed crawl, open for more events; with ``synced=False``, they are not synced by themselves."""
    reader = Reader(folder)
    pages = reader.pages
    log = logs.Log(folder, hash_seed=pages.hash_seed)
    log.go_on(pages.urls_end, pages.events_end, pages.tally.frames, pages.num_pages, pages.synced)
    if not synced:
        log._stop.set()
    reader.close()
    return log


def fnv(raw: bytes) -> int:
    """FNV-1a, to scatter numbers the same way in every run."""
    value = 0xCBF29CE484222325
    for byte in raw:
        value = ((value ^ byte) * 0x100000001B3) & (2**64 - 1)
    return value


def links_from(pages: Pages, page: int) -> npt.NDArray[np.uint32]:
    """The pages that a page's latest visit links to, or the page that it was merged into: uint32[k]."""
    if page in pages.merged:
        return np.array([pages.survivor(page)], np.uint32)
    return pages.links(page)


def links_to(pages: Pages, page: int) -> npt.NDArray[np.uint32]:
    """The pages whose latest visits link to a page, or to a page that was merged into it: uint32[k], increasing."""
    ends = [page, *(other for other in pages.merged if pages.survivor(other) == page)]
    found = np.unique(np.concatenate([pages.inlinks(end) for end in ends]))
    return found[~np.isin(found, np.fromiter(pages.merged, np.uint32))]
