"""Functions that the commands on a crawl's folder share."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from inlink.cli.remote import FolderOrUrl

if TYPE_CHECKING:
    from inlink.crawl.crawl import Crawl

__all__ = [
    "crawl_argument",
    "folder_argument",
    "reopened",
    "write_all",
]

crawl_argument = click.argument("folder", metavar="DIR|URL", type=FolderOrUrl())

folder_argument = click.argument(
    "folder",
    metavar="DIR",
    type=FolderOrUrl("this command works on a crawl's folder: run it on the machine where the folder is"),
)


def reopened(folder: Path, given: Mapping[str, Any] | None = None) -> "Crawl":
    """Open a crawl as its only writer, with the settings in its folder. A crawl that does not exist is made.

    Parameters
    ----------
    folder : Path
    given : mapping or None
        Settings to change.

    Raises
    ------
    inlink.errors.FolderError
        If the folder holds other data, or its settings cannot be read.
    inlink.errors.InUseError
        If another process is writing it.
    inlink.errors.ParameterError
        If a setting is outside its range, or the crawl's policy cannot be imported here.
    """
    from inlink.crawl.crawl import Crawl

    return Crawl(folder, **(given or {}))


def write_all(out: BinaryIO, lines: bytes) -> None:
    """Write lines and flush, so that an error for a closed pipe is raised here."""
    out.write(lines)
    out.flush()
