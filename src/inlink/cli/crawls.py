"""What the commands on a crawl's folder share."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from inlink.cli.remote import Place

if TYPE_CHECKING:
    from inlink.crawl.crawl import Crawl
    from inlink.errors import UnknownNodeError

__all__ = [
    "crawl_argument",
    "folder_argument",
    "policy_given",
    "reopened",
    "unknown_page",
    "write_all",
]

crawl_argument = click.argument("folder", metavar="DIR|URL", type=Place())

folder_argument = click.argument(
    "folder",
    metavar="DIR",
    type=Place("this command works on a crawl's folder: run it on the machine where the folder is"),
)


def unknown_page(folder: Path | str, page: str) -> "UnknownNodeError":
    """The error for a page that a crawl does not know."""
    from inlink.crawl.known import unknown

    return unknown(folder, page)


def reopened(folder: Path, given: Mapping[str, Any] | None = None) -> "Crawl":
    """A crawl, opened as its only writer with the settings that it has; made if there is nothing.

    Parameters
    ----------
    folder : Path
    given : mapping or None
        Settings to change.

    Raises
    ------
    inlink.errors.FolderError
        If there is something else, or its settings cannot be read.
    inlink.errors.InUseError
        If another process is writing it.
    inlink.errors.ParameterError
        If a setting is outside its range, or the crawl's policy cannot be imported here.
    """
    from inlink.crawl.crawl import Crawl

    return Crawl(folder, **(given or {}))


def policy_given(given: Mapping[str, Any]) -> str | None:
    """The policy among the settings that a command which only looks was given.

    Raises
    ------
    inlink.errors.ParameterError
        If there is another setting: nothing is changed.
    """
    others = [name for name in given if name != "policy"]
    if others:
        from inlink.errors import ParameterError

        raise ParameterError(
            f"this command changes nothing, so --set takes the crawl's own policy only; got {', '.join(others)}"
        )
    return given.get("policy")


def write_all(out: BinaryIO, lines: bytes) -> None:
    """Write and flush, so that a closed pipe is noticed here."""
    out.write(lines)
    out.flush()
