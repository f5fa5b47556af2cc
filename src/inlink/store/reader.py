"""A crawl's folder as other processes see it, while the crawl writes: every event that is whole, nothing else."""

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from inlink.base.folder import Folder
from inlink.store.pages import Pages
from inlink.urls.canonical import UrlRules

__all__ = ["KIND", "VERSION", "Reader", "open_pages", "url_rules_of"]

KIND, VERSION = "crawl", 1


def open_pages(folder: str | os.PathLike[str], *, with_urls: bool = True) -> Pages:
    """The pages of a crawl's folder, nothing read yet.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl.
    """
    meta = Folder(folder, KIND, VERSION).header.meta
    return Pages(Path(folder), int(meta["hash_seed"]), float(meta["started"]), with_urls=with_urls)


def url_rules_of(folder: str | os.PathLike[str]) -> UrlRules | None:
    """The rules for URLs that a crawl was begun with.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl.
    """
    ruled = Folder(folder, KIND, VERSION).header.meta.get("url_rules")
    return UrlRules(**ruled) if ruled else None


class Reader:
    """A view of a crawl that grows when it is asked to.

    Parameters
    ----------
    folder : path-like
        The crawl's.
    with_urls : bool
        Without, pages are known by their ids only; that spares most of the memory.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl.
    """

    def __init__(self, folder: str | os.PathLike[str], *, with_urls: bool = True) -> None:
        self.pages = open_pages(folder, with_urls=with_urls)
        self.pages.recover()

    def refresh(self) -> None:
        """Take in what was written since."""
        self.pages.refresh()

    @property
    def num_pages(self) -> int:
        """How many URLs are known: pages are 0 … num_pages − 1."""
        return self.pages.num_pages

    @property
    def end(self) -> int:
        """The byte behind the last whole event."""
        return self.pages.events_end

    @property
    def event_count(self) -> int:
        """How many events there are."""
        return self.pages.num_events

    @property
    def log(self) -> npt.NDArray[np.uint8]:
        """The mapped log, uint8[end or more]."""
        return self.pages.log

    @property
    def visits(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
        """Pages with links, each once, and the place of the frame that holds them: uint32[k], uint64[k]."""
        return self.pages.crawled()

    @property
    def hosts(self) -> npt.NDArray[np.uint32]:
        """The host of each page, uint32[num_pages]."""
        return self.pages.hosts[: self.num_pages]

    def scores(self) -> npt.NDArray[np.float32]:
        """A crawled page's content score, else the best that links to it were given: float32[num_pages]."""
        return self.pages.scores[: self.num_pages]

    def close(self) -> None:
        """Let go of the files."""
        self.pages.close()
