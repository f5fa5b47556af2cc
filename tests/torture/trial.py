"""One trial: a command in a forked process, and whether it ended as it may."""

import contextlib
import os
import re
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from random import Random

from inlink.cli import main
from patience import PATIENCE

__all__ = ["Count", "Ended", "Kind", "command", "forked", "one_line", "scratch", "until", "verdict", "warm"]

LARGEST = 3000
"""Megabytes of memory that no trial may take: what is attacked is small."""

ADDRESSES = re.compile(r"/\S*/torture-\w+/")


@dataclass(frozen=True)
class Ended:
    """The end of a process: its exit code, or minus the signal that ended it; its output; its memory in MB."""

    code: int
    out: str
    error: str
    memory: int
    hung: bool = False


@dataclass
class Count:
    """The results of the trials of one kind."""

    trials: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def add(self, outcome: str, trial: str) -> None:
        """Count a trial; any outcome but the two that are allowed is a violation."""
        self.trials += 1
        self.outcomes[outcome if outcome in ("right", "refused") else "violation"] += 1
        if outcome not in ("right", "refused"):
            self.violations.append(f"{trial}: {outcome}")


@dataclass(frozen=True)
class Kind:
    """A kind of attack: ``attack(random, place)`` makes one trial within a folder, and returns its outcomes."""

    name: str
    what: str
    attack: Callable[[Random, Path], list[str]]
    weight: float = 1.0


def forked(work: Callable[[], None], *, kill_after: float | None = None) -> Ended:
    """Run some work in a forked process, and wait for it; kill it after some seconds, or when it hangs.

    A fork shares the loops that this process has compiled, so that a trial takes milliseconds.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if not pid:
            code = 70
            try:
                os.setpgid(0, 0)
                os.dup2(out.fileno(), 1)
                os.dup2(error.fileno(), 2)
                sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
                work()
                code = 0
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 0
            except BaseException:
                traceback.print_exc()
            finally:
                with contextlib.suppress(BaseException):
                    sys.stdout.flush()
                    sys.stderr.flush()
                os._exit(code)
        status, memory, hung = _wait(pid, kill_after)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        texts = []
        for file in (out, error):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "backslashreplace"))
    return Ended(os.waitstatus_to_exitcode(status), texts[0], texts[1], memory, hung)


def _wait(pid: int, kill_after: float | None) -> tuple[int, int, bool]:
    """The status of a process that ended or was killed, its largest memory in MB, and whether it hung."""
    over, greedy = until(PATIENCE if kill_after is None else kill_after), False
    descriptor = os.pidfd_open(pid)
    try:
        while not (ready := wait([descriptor], min(kill_after or 0.1, 0.1))):
            greedy = _memory(pid) > LARGEST
            if greedy or over():
                os.kill(pid, signal.SIGKILL)
                break
    finally:
        os.close(descriptor)
    _, status, usage = os.wait4(pid, 0)
    return status, max(usage.ru_maxrss // 1024, (LARGEST + 1) * greedy), not (ready or greedy or kill_after)


def _memory(pid: int) -> int:
    """The memory of a process, in MB."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
    except (OSError, IndexError):
        return 0


def command(*arguments: object, kill_after: float | None = None) -> Ended:
    """Run a command of inlink in a forked process."""

    def work() -> None:
        sys.argv = ["inlink", "-q", *map(str, arguments)]
        main()

    return forked(work, kill_after=kill_after)


def warm(*arguments: object) -> None:
    """Run a command in this process, so that forked ones find its loops compiled and loaded."""
    handler, told = signal.getsignal(signal.SIGTERM), sys.argv
    sys.argv = ["inlink", "-q", *map(str, arguments)]
    try:
        with (
            contextlib.suppress(SystemExit),
            Path(os.devnull).open("w") as nowhere,
            contextlib.redirect_stdout(nowhere),
        ):
            main()
    finally:
        sys.argv = told
        signal.signal(signal.SIGTERM, handler)
    assert threading.active_count() == 1, "a process with threads cannot be forked safely"


def one_line(error: str) -> bool:
    """Return whether a command's standard error ends in one line of inlink's, and holds no traceback."""
    lines = [line for line in error.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("inlink: ")]
    usage = bool(lines) and lines[-1].startswith("Error: ")
    return "Traceback" not in error and (usage or (len(told) == 1 and lines[-1] == told[0]))


def verdict(ended: Ended, right: str | None) -> str:
    """Name the end of a command: ``right``, ``refused``, or its fault.

    ``right`` is the answer that an untouched folder gives; None where any answer will do.
    """
    shown = (ended.error or ended.out).strip().splitlines()
    last = shown[-1][:300] if shown else ""
    if ended.hung:
        return "hung"
    if ended.memory > LARGEST:
        return f"took more than {LARGEST:,} MB of memory"
    if ended.code < 0:
        return f"killed by {signal.Signals(-ended.code).name}: {last}"
    if "Traceback" in ended.error:
        return f"traceback: {last}"
    if ended.code == 2:
        return "refused" if one_line(ended.error) else f"not one line: {ended.error[:300]!r}"
    if ended.code != 0:
        return f"exit code {ended.code}: {last}"
    if right is not None and _plain(ended.out) != _plain(right):
        return f"another answer: {_difference(_plain(right), _plain(ended.out))}"
    return "right"


def _plain(text: str) -> str:
    """A command's output without the names of scratch folders."""
    return ADDRESSES.sub("", text)


def _difference(right: str, given: str) -> str:
    for a, b in zip([*right.splitlines(), "the end"], [*given.splitlines(), "the end"], strict=False):
        if a != b:
            return f"{b[:120]!r} instead of {a[:120]!r}"
    return "nothing that can be seen"


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder for some trials, in memory where the system has that."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="torture-", dir=base) as folder:
        yield Path(folder)


def until(seconds: float) -> Callable[[], bool]:
    """Return a function that tells whether some seconds have passed since this call."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end
