"""The crawl's handle on its ranking process: starts it, asks it, and reads its answers between two calls.

The process is a new Python (:mod:`inlink.reranking.process`), never a fork. It ends when its input closes.
"""

import contextlib
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["Reranker"]

_log = logging.getLogger("inlink.crawl")


class Reranker:
    """Runs one ranking process.

    Parameters
    ----------
    folder : Path
        The crawl's folder.
    options : list of str
        Arguments of the process's command line.
    """

    def __init__(self, folder: Path, options: list[str]) -> None:
        self.folder, self.options = folder, options
        self.busy = False
        self.failed: str | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._heard = b""

    def ask(self) -> None:
        """Ask for a new ranking; :meth:`answer` returns the answer."""
        if self.failed is not None or self.busy:
            return
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "inlink.reranking.process", str(self.folder), *self.options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Ctrl-C is for the crawl, which then closes the process's input.
                start_new_session=True,
            )
            assert self._process.stdout is not None
            os.set_blocking(self._process.stdout.fileno(), False)
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(b"rank\n")
            self._process.stdin.flush()
            self.busy = True
        except OSError as error:
            self._give_up(f"cannot be asked ({error.strerror})")

    def answer(self) -> dict[str, Any] | None:
        """The answer of the process, None if there is none yet; never waits."""
        if not self.busy or self._process is None or self._process.stdout is None:
            return None
        with contextlib.suppress(BlockingIOError):
            self._heard += self._process.stdout.read() or b""
        line, newline, rest = self._heard.partition(b"\n")
        if not newline:
            if self._process.poll() is not None:
                self._give_up(f"ended with code {self._process.returncode}")
            return None
        self._heard, self.busy = rest, False
        told: dict[str, Any] = json.loads(line)
        if "error" in told and "ready" not in told:
            self._give_up(told["error"])
            return None
        return told

    def _give_up(self, why: str) -> None:
        self.failed, self.busy = why, False
        _log.warning("the ranking process %s; pages keep their present priorities", why)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            with contextlib.suppress(OSError):
                assert self._process.stdin is not None
                self._process.stdin.close()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None

    def abandon(self) -> None:
        """Close the pipes of the process in the child of a fork; the process is the parent's."""
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.raw.close()  # type: ignore[attr-defined]
