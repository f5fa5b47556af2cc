"""Requests to a crawl that another process is running: files in its folder, which it reads between two calls.

Whoever is not the writer may ask for little: that URLs be seeded, that failed pages wait again. A request is one
file in ``inbox/``, named by time and process, its kind behind the last point; it is there whole or not at all. The
crawl does what it asks and removes it then, so it is done at least once, and doing one of these twice does no harm.
"""

import math
import os
import time
from pathlib import Path

from inlink.base.folder import atomic_file
from inlink.errors import InputError

__all__ = ["RELOAD", "SEED", "pending", "post", "seeds_in"]

INBOX = "inbox"
SEED, RELOAD = "seed", "reload"  # the kinds of request there are


def post(folder: Path, kind: str, text: str = "") -> Path:
    """Put a request into a crawl's inbox; it is safe on disk when this returns.

    Parameters
    ----------
    folder : Path
        The crawl's.
    kind : {"seed", "reload"}
    text : str
        What it says: for ``seed`` lines that :func:`seeds_in` reads.

    Raises
    ------
    inlink.errors.OutputError
        If it cannot be written.
    """
    path = folder / INBOX / f"{time.time_ns():020d}-{os.getpid()}.{kind}"
    with atomic_file(path) as file:
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
    return path


def pending(folder: Path) -> list[tuple[Path, str, str]]:
    """The requests in a crawl's inbox, the oldest first: (path, kind, text). Remove a path once it is done."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder / INBOX) if entry.name[0] != ".")
    except FileNotFoundError:
        return []
    found = []
    for name in names:
        path = folder / INBOX / name
        try:
            raw = path.read_bytes()
        except FileNotFoundError:  # done by the writer meanwhile
            continue
        found.append((path, path.suffix[1:], raw.decode("utf-8", "surrogateescape")))
    return found


def seeds_in(text: str, place: str) -> list[tuple[str, float]]:
    """URLs and scores: one URL a line, with or without a tab and its score behind; blank lines are passed over.

    Raises
    ------
    inlink.errors.InputError
        If a score is no finite number; with ``place`` and the line.
    """
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        url, tab, score = line.strip().partition("\t")
        if not url:
            continue
        try:
            value = float(score) if tab else 1.0
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise InputError(
                f"{place}, line {number}: {score!r} is no score: give a finite number behind the tab"
            )
        found.append((url, value))
    return found
