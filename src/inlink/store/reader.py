"""Read a crawl's folder from another process while the crawl writes: all complete events."""

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from inlink.base.decoding import converted
from inlink.base.folder import Folder, is_kind
from inlink.errors import FolderError, ParameterError
from inlink.store.checkpoint import CHECKPOINT, Checkpoint
from inlink.store.log import KIND, UPGRADED, VERSION
from inlink.urls.canonical import UrlRules

if TYPE_CHECKING:
    from inlink.store.pages import Pages


_log = logging.getLogger("inlink.crawl")


def is_crawl(path: str | os.PathLike[str]) -> bool:
    """Return whether a folder is a crawl's, of any format version."""
    return is_kind(path, KIND)


def crawl_folder(path: str | os.PathLike[str]) -> Folder:
    """A crawl's folder, if this program can read it. A folder of format version 2 is upgraded.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl, or it has another format version, or it cannot be upgraded.
    """
    folder = Folder(path, KIND, VERSION)
    if folder.header.version == VERSION - 1 or (folder.path / UPGRADED).exists():
        from inlink.store.opening import upgrade

        return upgrade(folder)
    if folder.header.version < VERSION:
        raise FolderError(
            f"{folder.path} holds a crawl of format version {folder.header.version}, and this inlink reads only "
            f"versions {VERSION - 1} and {VERSION}: crawl into a new folder, or open this one with the inlink that "
            "made it"
        )
    return folder


def open_pages(folder: str | os.PathLike[str], *, with_urls: bool = True, lazily: bool = False) -> "Pages":
    """The pages of a crawl's folder up to its checkpoint, before the rest of its log is read.

    Without a checkpoint that may be used, and without URLs, no events are folded yet.

    Parameters
    ----------
    folder : path-like
    with_urls : bool
        If False, pages are known only by their ids.
    lazily : bool
        Read each column of the checkpoint before its first use, for a reader that uses few. A column that is damaged
        is refused then. By default, all events are folded if any file of the checkpoint is damaged.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl, or its header or a file of it cannot be read.
    """
    # Whoever only asks for the kind of a folder need not wait for the loops over its log.
    from inlink.store.pages import Pages

    path, meta = Path(folder), _meta_of(folder)[0]
    if with_urls and (path / CHECKPOINT).exists():
        pages = Pages(path, int(meta.hash_seed), meta.started)
        try:
            pages.restore(Checkpoint(path, int(meta.hash_seed)), lazily=lazily)
        except (FolderError, OSError) as error:
            pages.close()
            _log.info("not used: %s. All events are folded, which takes longer", error)
        else:
            return pages
    return Pages(path, int(meta.hash_seed), meta.started, with_urls=with_urls)


def url_rules_of(folder: str | os.PathLike[str]) -> UrlRules | None:
    """The rules for canonical URLs of a crawl; None if it has none.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl, or its header cannot be read.
    """
    return _meta_of(folder)[1]


def hash_seed_of(folder: str | os.PathLike[str]) -> int:
    """The seed of a crawl's table of URLs.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl, or its header cannot be read.
    """
    return int(_meta_of(folder)[0].hash_seed)


class _Meta(msgspec.Struct):
    """The data on the crawl in the header of its folder."""

    hash_seed: Annotated[str, msgspec.Meta(pattern="^[0-9]{1,19}$")]
    # The years 1 to 9999.
    started: Annotated[float, msgspec.Meta(gt=-62135596800, lt=253402300800)]
    url_rules: dict[str, Any] | None = None


def _meta_of(path: str | os.PathLike[str]) -> tuple[_Meta, UrlRules | None]:
    folder = crawl_folder(path)
    try:
        meta = converted(folder.header.meta, _Meta)
        return meta, UrlRules(**meta.url_rules) if meta.url_rules else None
    except (msgspec.ValidationError, TypeError, ParameterError) as error:
        raise FolderError(
            f"{folder.path / 'header.json'} cannot be read ({error}): take the crawl's folder from a backup"
        ) from None


def known_pages(folder: str | os.PathLike[str], *, with_urls: bool = True) -> "Pages":
    """The pages of a crawl's folder as they are now. :meth:`.Pages.refresh` takes in later events.

    Parameters and errors are those of :func:`open_pages`.
    """
    pages = open_pages(folder, with_urls=with_urls)
    pages.recover()
    return pages
