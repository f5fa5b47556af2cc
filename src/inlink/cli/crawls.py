"""What the commands on a crawl's folder share."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

if TYPE_CHECKING:
    from inlink.crawl.crawl import Crawl
    from inlink.errors import UnknownNodeError

__all__ = [
    "crawl_argument",
    "policy_given",
    "reopened",
    "unknown_page",
    "write_all",
    "writer_of",
]

crawl_argument = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))


def unknown_page(folder: Path, page: str) -> "UnknownNodeError":
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


def writer_of(folder: Path) -> str | None:
    """The process id of a crawl's writer, ``"unknown"`` if it cannot be read; None if nobody writes."""
    import fcntl

    from inlink.store.log import LOCK

    try:
        file = os.open(folder / LOCK, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.pread(file, 32, 0).decode("ascii", "replace").strip() or "unknown"
    finally:
        os.close(file)
    return None


def write_all(out: BinaryIO, lines: bytes) -> None:
    """Write and flush, so that a closed pipe is noticed here."""
    out.write(lines)
    out.flush()
