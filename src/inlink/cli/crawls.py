"""What the commands on a crawl's folder share: the crawl and its pages, whoever is writing them."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

if TYPE_CHECKING:
    from inlink.crawl import Crawl
    from inlink.errors import UnknownNodeError
    from inlink.frontier.frontier import Settings
    from inlink.store.pages import Page, Pages

__all__ = [
    "crawl_argument",
    "hash_line",
    "looked_up",
    "page_alone",
    "page_given",
    "reopened",
    "stored_settings",
    "write_all",
    "writer_of",
]

_HASH = re.compile(r"[0-9a-fA-F]{16}")

crawl_argument = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))


def hash_line(pages: "Pages", page: int) -> str:
    """A page as ``HASH URL``; its hash is its id in 16 hexadecimal digits, which stays for ever."""
    return f"{page:016x} {pages.url(page)}"


def page_given(pages: "Pages", given: str) -> int:
    """The page that a URL or a hash names.

    Raises
    ------
    inlink.errors.UnknownNodeError
        If this crawl does not know it.
    """
    from inlink.store.pages import NO_PAGE

    wanted = _number_or_form(pages.folder, given)
    if isinstance(wanted, str):
        wanted = int(pages.find([wanted])[0])
    if wanted is None or wanted == NO_PAGE or wanted >= pages.num_pages:
        raise _unknown(pages.folder, given)
    return wanted


def page_alone(folder: Path, given: str) -> tuple["Pages", int]:
    """The page that a URL or a hash names, found without folding the others: see :func:`inlink.store.lookup.look_up`.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl.
    inlink.errors.UnknownNodeError
        If this crawl does not know it.
    """
    from inlink.store.lookup import look_up
    from inlink.store.pages import NO_PAGE

    wanted = _number_or_form(folder, given)
    if wanted is None:
        raise _unknown(folder, given)
    pages, page = look_up(folder, wanted)
    if page == NO_PAGE:
        raise _unknown(folder, given)
    return pages, page


def _number_or_form(folder: Path, given: str) -> int | str | None:
    """The number that a hash is, or a URL's canonical form; None for what is neither."""
    from inlink.store.reader import url_rules_of
    from inlink.urls.canonical import canonical

    rules = url_rules_of(folder)
    return int(given, 16) if _HASH.fullmatch(given) else canonical(given, None, rules)


def _unknown(folder: Path, given: str) -> "UnknownNodeError":
    from inlink.errors import UnknownNodeError

    return UnknownNodeError(f"{given!r} is not known in {folder}: look with inlink find")


def stored_settings(folder: Path) -> "Settings":
    """What decides a crawl's order, as its last writer kept it; the defaults where nobody did.

    Raises
    ------
    inlink.errors.FolderError
        If they cannot be read.
    """
    import msgspec

    from inlink.errors import FolderError
    from inlink.frontier.folder import SETTINGS
    from inlink.frontier.frontier import Settings

    try:
        return msgspec.json.decode((folder / SETTINGS).read_bytes(), type=Settings)
    except FileNotFoundError:
        return Settings()
    except msgspec.MsgspecError as error:
        raise FolderError(f"{folder / SETTINGS} cannot be read ({error}): remove it") from None


def reopened(folder: Path) -> "Crawl":
    """A crawl, opened as its only writer with the settings that it has; made if there is nothing.

    A policy of the user's own cannot be had here: pages wait in the order of discovery, under that policy's name.

    Raises
    ------
    inlink.errors.FolderError
        If there is something else.
    inlink.errors.InUseError
        If another process is writing it.
    """
    from dataclasses import fields

    from inlink.base.folder import Folder
    from inlink.crawl import Crawl
    from inlink.frontier.frontier import Settings
    from inlink.frontier.policies import POLICIES, Policy
    from inlink.frontier.revisit import revisit_of
    from inlink.store.reader import KIND, VERSION

    settings = Settings()
    if (folder / "header.json").exists():
        Folder(folder, KIND, VERSION)  # before anything is put into it
        settings = stored_settings(folder)
    given = {one.name: getattr(settings, one.name) for one in fields(settings)}
    given["revisit"] = revisit_of(settings.revisit)
    if settings.policy not in POLICIES:
        given["policy"] = type("Theirs", (Policy,), {"name": settings.policy})
    return Crawl(folder, **given)


def writer_of(folder: Path) -> str | None:
    """The pid of the process that is writing a crawl, ``"unknown"`` if it left none; None if nobody writes."""
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
    """Write and pass on, so that a reader who has had enough is noticed here."""
    out.write(lines)
    out.flush()


def looked_up(folder: Path, given: str) -> "Page":
    """What a crawl knows of the page that a URL or a hash names, found without folding the others.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl.
    inlink.errors.UnknownNodeError
        If this crawl does not know it.
    """
    pages, page = page_alone(folder, given)
    return pages.page(page)
