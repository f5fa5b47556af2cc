"""Decide when a crawl needs a new checkpoint, and run the process that writes it while the crawl goes on."""

import contextlib
import json
import logging
import subprocess
import sys

from inlink.base.memory import memory_left
from inlink.base.unfinished import remove_abandoned
from inlink.store.checkpoint import LEAST_PAGES
from inlink.store.log import Log
from inlink.store.pages import Pages

__all__ = ["LEAST_PAGES", "Checkpointer"]

_log = logging.getLogger("inlink.crawl")

_AT_THE_END = 32
"""At the end, a new checkpoint is due when a file of the log has grown by one part in so many."""

_WHILE_RUNNING = 2
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
    """

    def __init__(self, pages: Pages, log: Log) -> None:
        self._pages, self._log = pages, log
        last = pages.checkpoint
        # The bytes of both files that the last checkpoint covers, and those that were there when the last was begun.
        self._covered = (0, 0) if last is None else (last.extent.urls_end, last.extent.events_end)
        self._begun = self._covered
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def busy(self) -> bool:
        """True while a checkpoint is being written."""
        return self._process is not None

    def step(self) -> None:
        """Begin a checkpoint if it is due, or take note of one that was written. This takes microseconds.

        A crawl of few pages needs none: the caller compares their number with ``LEAST_PAGES``.
        """
        if self._process is not None:
            if self._process.poll() is not None:
                self._take_note(self._process)
        else:
            before = sum(self._begun)
            later = self._log.urls_end + self._log.events_end - before
            if later >= min(before // _WHILE_RUNNING, MOST_BYTES):
                self._begin()

    def _begin(self) -> None:
        self._begun = self._log.urls_end, self._log.events_end
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
        except OSError as error:
            self._warn(str(error.strerror))

    def _take_note(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        try:
            told = json.loads(process.stdout.read() or b"{}")
        except ValueError:
            told = {}
        self.close()
        if process.returncode == 0 and "events_end" in told:
            self._covered = told["urls_end"], told["events_end"]
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
        return self._pages.num_pages >= LEAST_PAGES and (
            self._covered == (0, 0)
            or self._log.urls_end - self._covered[0] > self._covered[0] // _AT_THE_END
            or self._log.events_end - self._covered[1] > self._covered[1] // _AT_THE_END
        )

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
