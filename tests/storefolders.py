"""Folders of crawls for tests of the store, and the numbers that scatter their contents."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from inlink.store import log as logs
from inlink.store.pages import Pages

__all__ = ["empty_pages", "fnv", "folder"]


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


def fnv(raw: bytes) -> int:
    """FNV-1a, to scatter numbers the same way in every run."""
    value = 0xCBF29CE484222325
    for byte in raw:
        value = ((value ^ byte) * 0x100000001B3) & (2**64 - 1)
    return value
