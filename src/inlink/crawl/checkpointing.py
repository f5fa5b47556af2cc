"""Decide when a crawl needs a checkpoint, and write it: see :mod:`inlink.store.checkpoint`.

When a crawl is closed, :func:`save` writes a checkpoint of its memory. While it runs, ``python -m
inlink.crawl.checkpointing FOLDER`` does, in a process of its own: it restores the crawl from its folder, as any reader
does, and never from the memory of the crawl. So the crawl does not wait, and the checkpoint holds what the log holds.
The process ends as soon as its standard input closes. It prints one line of JSON: the bytes of both files of the log
that the checkpoint covers, or an error.
"""

import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
from itertools import chain
from pathlib import Path

from inlink.base.memory import give_way, memory_left
from inlink.base.unfinished import remove_abandoned
from inlink.crawl.settings import stored
from inlink.errors import InlinkError
from inlink.frontier import saved
from inlink.frontier.frontier import Frontier
from inlink.frontier.policies import POLICIES, Policy
from inlink.frontier.restoring import restore_columns
from inlink.store.blocks import num_links
from inlink.store.blocksums import BlockSums
from inlink.store.checkpoint import LEAST_BYTES, Extent, code, write
from inlink.store.log import EVENTS, URLS, Log
from inlink.store.pages import Pages
from inlink.store.reader import open_pages

__all__ = ["LEAST_BYTES", "Checkpointer", "main", "save", "save_from_log"]

_log = logging.getLogger("inlink.crawl")

_AT_THE_END = 32
"""At the end, a new checkpoint is due when the log has grown by one part in so many."""

_WHILE_RUNNING = 4
"""While a crawl runs, a new checkpoint is due when the log has grown by one part in so many."""

MOST_BYTES = 1 << 29
"""Bytes of the log after which a new checkpoint is due at the latest. Opening folds them in about two seconds."""

_BYTES_A_PAGE = 64
"""Memory of the process for each page that the crawl knows."""


class Checkpointer:
    """Keeps a crawl's checkpoint recent.

    Parameters
    ----------
    pages : Pages
        As they were restored from the log.
    log : Log

    Attributes
    ----------
    look_at : int
        The number of bytes of the log from which on the caller calls :meth:`step`.
    """

    def __init__(self, pages: Pages, log: Log) -> None:
        self._pages, self._log = pages, log
        last = pages.checkpoint
        # The bytes of the log that the last checkpoint covers.
        self._covered = 0 if last is None else last.extent.urls_end + last.extent.events_end
        self._wait(self._covered)
        self._process: subprocess.Popen[bytes] | None = None
        # `look_at` after the process has ended. While it runs, each step looks whether it has.
        self._next = self.look_at

    @property
    def busy(self) -> bool:
        """True while a checkpoint is being written."""
        return self._process is not None

    def step(self) -> None:
        """Begin a checkpoint, which is due, or take note of one that was written. This takes microseconds."""
        if self._process is None:
            self._begin()
        elif self._process.poll() is not None:
            self._take_note(self._process)

    def _wait(self, begun: int) -> None:
        """Wait until the log has grown, since it had ``begun`` bytes, so much that a checkpoint is worth its cost."""
        self.look_at = begun + max(LEAST_BYTES, min(begun // _WHILE_RUNNING, MOST_BYTES))

    @property
    def _bytes(self) -> int:
        return self._log.urls_end + self._log.events_end

    def _begin(self) -> None:
        self._wait(self._bytes)
        left = memory_left()
        if left is not None and left <= self._pages.num_pages * _BYTES_A_PAGE:
            return
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "inlink.crawl.checkpointing", str(self._pages.folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Ctrl-C is meant for the crawl, which then ends this process.
                start_new_session=True,
            )
            self._next, self.look_at = self.look_at, 0
        except OSError as error:
            self._warn(str(error.strerror))

    def _take_note(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self.look_at = self._next
        try:
            told = json.loads(process.stdout.read() or b"{}")
        except ValueError:
            told = {}
        self.close()
        if process.returncode == 0 and "events_end" in told:
            self._covered = told["urls_end"] + told["events_end"]
        else:
            self._warn(told.get("error", f"its process ended with code {process.returncode}"))

    def _warn(self, why: str) -> None:
        _log.warning(
            "%s: cannot write a checkpoint while the crawl runs (%s); it is tried again later, and when the crawl is "
            "closed",
            self._pages.folder,
            why,
        )

    def is_due(self) -> bool:
        """Return whether a new checkpoint is worth its cost at the end."""
        return self._bytes - self._covered > max(LEAST_BYTES, self._covered // _AT_THE_END)

    def close(self) -> None:
        """End the process, if it runs, and remove its unfinished checkpoint."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            with contextlib.suppress(OSError):
                remove_abandoned(self._pages.folder)

    def abandon(self) -> None:
        """Close the pipes of the process in the child of a fork. The process belongs to the parent."""
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.raw.close()  # type: ignore[attr-defined]


def save(frontier: Frontier, log: Log) -> None:
    """Write a checkpoint of all events. If that fails, the one before is kept, and this is logged.

    It fails on a full disk, and if the log is damaged.

    Parameters
    ----------
    frontier : Frontier
        Agrees with the log.
    log : Log
    """
    try:
        log.sync()
        _write(frontier, (log.urls_sums, log.events_sums))
    except (OSError, InlinkError) as error:
        told = error.strerror if isinstance(error, OSError) else error
        _log.warning(
            "%s: cannot write a checkpoint (%s); the next opening of this crawl takes longer",
            frontier.pages.folder,
            told,
        )


def _write(frontier: Frontier, sums: tuple[BlockSums, BlockSums]) -> None:
    pages = frontier.pages
    seed = str(pages.hash_seed)
    extent = Extent(pages.num_pages, sums[0].end, sums[1].end, seed, code())
    write(
        pages.folder,
        extent,
        sums,
        chain(pages.parts(), saved.parts(frontier)),
        {**pages.small_parts(), **saved.small_parts(frontier), "links": num_links(pages)},
    )


def save_from_log(folder: Path) -> tuple[int, int]:
    """Write a checkpoint of all complete events in a folder, which another process may be crawling in.

    Returns
    -------
    (int, int)
        The bytes of urls.txt and of events.log that it covers.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl, or its log is damaged.
    inlink.errors.OutputError
        If the checkpoint cannot be written. The one before is kept.
    """
    settings = stored(folder)
    pages = open_pages(folder)
    try:
        pages.recover()
        # The columns of a policy of the user's own are not kept, and its code is not imported here.
        frontier = Frontier(pages, settings, None if settings.policy in POLICIES else Policy)
        restore_columns(frontier)
        _write(frontier, _sums(pages))
        return pages.tally.url_bytes, pages.frames.end
    finally:
        pages.close()


def _sums(pages: Pages) -> tuple[BlockSums, BlockSums]:
    """The checksums of both files of the log as far as they are taken in."""
    sums = (BlockSums(), BlockSums()) if pages.checkpoint is None else pages.checkpoint.block_sums()
    for name, one, end in zip((URLS, EVENTS), sums, (pages.tally.url_bytes, pages.frames.end), strict=True):
        with (pages.folder / name).open("rb", buffering=0) as file:
            one.add_file(file.fileno(), end)
    return sums


def _end_with_input() -> None:
    """End this process when standard input closes. An unfinished checkpoint is removed by the next one."""
    while os.read(0, 1 << 12):
        pass
    os._exit(0)


def main(arguments: list[str]) -> int:
    """Write one checkpoint; return the exit code, which is 0, or 2 after an error."""
    give_way()
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        urls_end, events_end = save_from_log(Path(arguments[0]))
    except (InlinkError, OSError, MemoryError) as error:
        told = "not enough memory" if isinstance(error, MemoryError) else " ".join(str(error).split())
        _tell({"error": told})
        return 2
    _tell({"urls_end": urls_end, "events_end": events_end})
    return 0


def _tell(answer: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
