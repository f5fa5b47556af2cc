"""Requests to a crawl that another process is running: files in its folder, which the crawl reads between two calls.

A process that is not the writer can request two things: to add seeds, and to let failed pages wait again. A request is
one file in ``inbox/``. Its name is the time and the process id, with the kind of request as extension. A file becomes
visible only when it is complete. The crawl carries out the request, then removes the file. So each request is carried
out at least once, and doing it twice does no harm.
"""

import math
import os
import time
from pathlib import Path

from inlink.base.folder import atomic_file
from inlink.errors import InputError
from inlink.protocol import LARGEST_SCORE

INBOX = "inbox"
SEED, RELOAD = "seed", "reload"
"""The kinds of request."""


def post(folder: Path, kind: str, text: str = "") -> Path:
    """Put a request into a crawl's inbox. It is safe on disk when this returns.

    Parameters
    ----------
    folder : Path
        The crawl's folder.
    kind : {"seed", "reload"}
        The kind of the request.
    text : str
        The content of the request: for ``seed``, lines that :func:`seeds_in` reads; for ``reload``, the states of the
        pages that shall wait again, one a line.

    Raises
    ------
    inlink.errors.OutputError
        If the request cannot be written.
    """
    path = folder / INBOX / f"{time.time_ns():020d}-{os.getpid()}.{kind}"
    with atomic_file(path) as file:
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
    return path


def pending(folder: Path) -> list[tuple[Path, str, str]]:
    """Return the requests in a crawl's inbox, oldest first: (path, kind, text). Remove the path of a done request."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder / INBOX) if entry.name[0] != ".")
    except FileNotFoundError:
        return []
    requests = []
    for name in names:
        path = folder / INBOX / name
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            # The writer has done the request since.
            continue
        requests.append((path, path.suffix[1:], raw.decode("utf-8", "surrogateescape")))
    return requests


def seeds_in(text: str, place: str) -> list[tuple[str, float]]:
    """Read URLs and scores: one URL a line, optionally followed by a tab and its score.

    Blank lines, and lines that begin with ``#``, are ignored.

    Raises
    ------
    inlink.errors.InputError
        If a score is not a number below 3e38 in size; the message names ``place`` and the line.
    """
    seeds = []
    for number, line in enumerate(text.split("\n"), 1):
        url, tab, score = line.strip().partition("\t")
        if not url or url.startswith("#"):
            continue
        try:
            value = float(score) if tab else 1.0
        except ValueError:
            value = math.nan
        if not abs(value) < LARGEST_SCORE:
            raise InputError(
                f"{place}, line {number}: {score[:80]!r} is not a score: give a number between -3e38 and 3e38 after "
                "the tab"
            )
        seeds.append((url, value))
    return seeds


def seeds_of(path: str | None) -> list[tuple[str, float]]:
    """Read the file of seeds that a project's settings name, as :func:`seeds_in` does; an empty list without a file.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read, or a score is not a number.
    """
    if path is None:
        return []
    try:
        text = Path(path).read_text("utf-8-sig", "surrogateescape")
    except OSError as error:
        raise InputError(f"INLINK_SEEDS or SEEDS_SOURCE: {path}: {error.strerror}") from None
    return seeds_in(text, path)
