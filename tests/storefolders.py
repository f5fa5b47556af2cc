"""Folders of crawls for tests of the store, and the numbers that scatter their contents."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from inlink import CrawlView
from inlink.store import log as logs
from inlink.store.checks import FAULTS
from inlink.store.format import Head, struct_of
from inlink.store.kernels import checks as kernels
from inlink.store.kernels.frames import rows_with
from inlink.store.page import Page
from inlink.store.pages import Pages
from inlink.store.reader import known_pages

__all__ = [
    "Stretch",
    "empty_pages",
    "flip",
    "fnv",
    "folder",
    "frames",
    "inlinks",
    "later_log",
    "links_from",
    "links_to",
    "look_up",
]

_HEAD = struct_of(Head)


def flip(file: Path, byte: int, bits: int = 4) -> None:
    """Flip bits of a byte of a file."""
    raw = bytearray(file.read_bytes())
    raw[byte] ^= bits
    file.write_bytes(raw)


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
    pages = known_pages(folder)
    log = logs.Log(folder, hash_seed=pages.hash_seed)
    log.go_on(pages.tally.url_bytes, pages.frames.end, pages.tally.frames, pages.num_pages, pages.synced)
    if not synced:
        log._stop.set()
    pages.close()
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
    found = np.unique(np.concatenate([inlinks(pages, end) for end in ends]))
    return found[~np.isin(found, np.fromiter(pages.merged, np.uint32))]


def inlinks(pages: Pages, page: int) -> npt.NDArray[np.uint32]:
    """The pages whose latest visits link to a page, uint32[k], increasing."""
    crawled, places = pages.crawled()
    return np.sort(crawled[rows_with(pages.frames.log, places, np.uint64(page))])


def look_up(place: Path, asked: str | int) -> Page | None:
    """All stored data of a page, as ``inlink page`` shows them to someone who opens the folder."""
    with CrawlView.open(place) as view:
        return view.page(asked)


class Stretch(NamedTuple):
    """A part of events.log: a sound frame with its head, or damage, which may have a sound head too."""

    begin: int
    end: int
    head: Head | None
    fault: str


def frames(urls: npt.NDArray[np.uint8], events: npt.NDArray[np.uint8], salt: int) -> Iterator[Stretch]:
    """Yield the parts of a log in order. After damage, the next part begins at the next sound head."""
    at, size = 0, len(events)
    while at < size:
        fault = int(kernels.fault_at(events, urls, np.uint64(at), np.uint64(0), np.uint64(salt)))
        head, end = None, size
        if fault in (kernels.SOUND, kernels.BAD_PAYLOAD, kernels.BAD_URLS, kernels.WILD):
            head = Head._make(_HEAD.unpack_from(events.data, at))
            end = at + head.length
        if fault not in (kernels.SOUND, kernels.BAD_URLS, kernels.WILD):
            # The bytes of a damaged event may hold the next one.
            end = int(kernels.next_head(events, np.uint64(at + 1), np.uint64(salt)))
        yield Stretch(at, end, None if fault == kernels.WILD else head, FAULTS[fault])
        at = end
