"""Control a crawl's ranking process: start it, request rankings, and read its answers between two calls.

The process is a new Python (:mod:`inlink.reranking.process`), never a fork. It ends when its input closes. If it dies,
or if its ranking cannot be used, it is started again after a wait that doubles each time. The log reports this once.
"""

import contextlib
import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from inlink.base.memory import memory_left
from inlink.reranking.process import RankingOptions

_log = logging.getLogger("inlink.crawl")

FIRST_WAIT, LONGEST_WAIT = 1.0, 600.0
"""Seconds before a process that failed is started again: the first wait and the longest wait."""

_BYTES_A_PAGE = 44
"""Memory of the process for each page that the crawl knows."""

GRACE = 5.0
"""Seconds that a process has to end after its input was closed. Then it is killed."""


class Reranker:
    """Runs one ranking process.

    Parameters
    ----------
    folder : Path
        The crawl's folder.
    options : RankingOptions

    Attributes
    ----------
    busy : bool
        Whether an answer is awaited.
    failed : str or None
        The reason why the last try failed; None after a ranking was made.
    """

    def __init__(self, folder: Path, options: RankingOptions) -> None:
        self.folder, self.options = folder, options
        self.busy = False
        self.failed: str | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._heard = b""
        self._wait, self._again_at = 0.0, 0.0

    @property
    def again_due(self) -> bool:
        """True if it is time to ask again after a failure."""
        return self.failed is not None and not self.busy and time.monotonic() >= self._again_at

    def ask(self, num_pages: int) -> None:
        """Request a new ranking of so many pages. :meth:`answer` returns the answer."""
        if self.busy or (self.failed is not None and not self.again_due):
            return
        try:
            if self._process is None:
                needed, left = num_pages * _BYTES_A_PAGE, memory_left()
                if left is not None and left <= needed:
                    self.give_up(f"needs {needed / 1e9:,.1f} GB of memory, and {left / 1e9:,.1f} GB are left")
                    return
                self._start()
            assert self._process is not None
            assert self._process.stdin is not None
            self._process.stdin.write(b"rank\n")
            self._process.stdin.flush()
            self.busy = True
        except OSError as error:
            self.give_up(f"cannot be asked ({error.strerror})")

    def _start(self) -> None:
        self._heard = b""
        options = msgspec.json.encode(self.options).decode()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "inlink.reranking.process", str(self.folder), options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C is meant for the crawl. The crawl then closes the process's input.
            start_new_session=True,
        )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)

    def answer(self) -> dict[str, Any] | None:
        """The answer of the process; None if there is no answer yet. This method never waits."""
        if not self.busy or self._process is None or self._process.stdout is None:
            return None
        # The state is read first, because a process that has ended writes no further answer.
        ended = self._process.poll() is not None
        with contextlib.suppress(BlockingIOError):
            self._heard += self._process.stdout.read() or b""
        line, newline, rest = self._heard.partition(b"\n")
        if not newline:
            if ended:
                self.give_up(f"ended with code {self._process.returncode}")
            return None
        self._heard, self.busy = rest, False
        try:
            answer: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, ValueError):
            answer = {}
        if "ready" in answer:
            return answer
        self.give_up(str(answer.get("error", "answered nonsense")))
        return None

    def succeeded(self) -> None:
        """Note that a ranking was made and is used."""
        if self.failed is not None:
            _log.info("%s: the ranking process works again", self.folder)
        self.failed, self._wait = None, 0.0

    def give_up(self, why: str) -> None:
        """End the process, and start another process after the wait."""
        if self.failed is None:
            _log.warning(
                "%s: the ranking process %s; it is started again later, and pages keep their present priorities",
                self.folder,
                why,
            )
        self.failed, self.busy = why, False
        self._wait = min(max(2 * self._wait, FIRST_WAIT), LONGEST_WAIT)
        self._again_at = time.monotonic() + self._wait
        if self._process is not None:
            self._process.kill()
        self.close()

    def close(self) -> None:
        """End the process. It may have published a ranking without an answer."""
        self.busy = False
        if self._process is not None:
            with contextlib.suppress(OSError):
                assert self._process.stdin is not None
                self._process.stdin.close()
            try:
                self._process.wait(GRACE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None

    def abandon(self) -> None:
        """Close the pipes of the process in the child of a fork. The process belongs to the parent."""
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.raw.close()  # type: ignore[attr-defined]
