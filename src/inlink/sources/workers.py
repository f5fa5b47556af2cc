"""Processes that make parts.

``python -m inlink.sources.workers`` reads a job as a line of JSON from its standard input, and answers with a line on
its standard output: ``null``, or the error's type and text. It ends as soon as its standard input closes.
"""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeAlias

import msgspec

import inlink.errors
from inlink.base.remote import UnreachableError
from inlink.errors import InlinkError, InputError
from inlink.sources.partjob import PartJob, make_part

__all__ = ["DeadWorkerError", "Done", "Runner", "answer", "ask", "error_in", "finished_jobs", "main"]


class DeadWorkerError(InlinkError):
    """A process that read a file died each time."""


Done: TypeAlias = tuple[PartJob, InputError | None]
"""A job that was done, and the error if its file cannot be read."""

Runner: TypeAlias = Callable[[Iterator[PartJob]], Generator[Done]]
"""Does jobs elsewhere, such as in the tasks of a cluster."""


def answer(job: PartJob, then: Callable[[], None] | None = None) -> bytes:
    """Make a part, and call `then`. Return ``null``, or the error's type and text, as JSON."""
    try:
        make_part(job)
        if then is not None:
            then()
    except InlinkError as wrong:
        return msgspec.json.encode([type(wrong).__name__, str(wrong)])
    return b"null"


def error_in(answer: bytes) -> InlinkError | None:
    """Return the error in the answer to a job; None if the part was made."""
    decoded: list[str] | None = msgspec.json.decode(answer)
    if decoded is None:
        return None
    kind, text = decoded
    kinds: dict[str, Any] = {name: getattr(inlink.errors, name) for name in inlink.errors.__all__}
    error: InlinkError = (kinds | {"UnreachableError": UnreachableError})[kind](text)
    return error


def finished_jobs(jobs: Iterator[PartJob], workers: int) -> Generator[Done]:
    """Do jobs, in any order, and yield each with the error if its file cannot be read.

    Parameters
    ----------
    jobs : iterator of PartJob
        The jobs.
    workers : int
        The number of processes; 1 is this process.

    Raises
    ------
    inlink.errors.InlinkError
        If the work cannot go on: the disk is full, or a process died twice on one file.
    """
    if workers == 1:
        for job in jobs:
            try:
                make_part(job)
            except InputError as error:
                yield job, error
            else:
                yield job, None
        return
    pool = _Pool(jobs, workers)
    try:
        yield from pool.results()
    finally:
        pool.stop()


class _Pool:
    """Some processes, each with a thread that hands it jobs."""

    def __init__(self, jobs: Iterator[PartJob], workers: int) -> None:
        self._jobs, self._lock = jobs, threading.Lock()
        self._done: queue.Queue[Done | Exception | None] = queue.Queue()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._stopped = False
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def results(self) -> Iterator[Done]:
        """Yield each job that was done, and raise the error that keeps the work from going on."""
        left = len(self._threads)
        while left:
            done = self._done.get()
            if done is None:
                left -= 1
            elif isinstance(done, Exception):
                raise done
            else:
                yield done

    def stop(self) -> None:
        """End all processes."""
        with self._lock:
            self._stopped = True
            for process in self._processes:
                process.kill()
        for thread in self._threads:
            thread.join()

    def _start(self) -> "subprocess.Popen[bytes] | None":
        with self._lock:
            if self._stopped:
                return None
            process = subprocess.Popen(
                [sys.executable, "-m", "inlink.sources.workers"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Ctrl-C on the terminal is for the process that started it, which ends this one.
                start_new_session=True,
            )
            self._processes.add(process)
            return process

    def _end(self, process: "subprocess.Popen[bytes] | None") -> int:
        if process is None:
            return 0
        process.communicate()
        with self._lock:
            self._processes.discard(process)
        return process.returncode

    def _next(self) -> PartJob | None:
        with self._lock:
            return None if self._stopped else next(self._jobs, None)

    def _serve(self) -> None:
        """Hand jobs to a process until there are no more. Start another process if it dies."""
        process: subprocess.Popen[bytes] | None = None
        try:
            while (job := self._next()) is not None:
                deaths = 0
                while not (reply := b"" if process is None else ask(process, job)):
                    code = self._end(process)
                    deaths += process is not None
                    if deaths == 2:
                        self._done.put(DeadWorkerError(_death(job, code)))
                        return
                    process = self._start()
                    if process is None:
                        return
                error = error_in(reply)
                self._done.put((job, error) if error is None or isinstance(error, InputError) else error)
        except Exception as error:
            # An error in this thread alone would lose the job without a word.
            self._done.put(error)
        finally:
            self._end(process)
            self._done.put(None)


def ask(process: "subprocess.Popen[bytes]", job: PartJob) -> bytes:
    """Hand a job to a process. Return its answer; empty if it died."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(OSError):
        process.stdin.write(msgspec.json.encode(job) + b"\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        if answer.endswith(b"\n"):
            return answer
    return b""


def _death(job: PartJob, code: int) -> str:
    why = f"exit code {code}"
    if code < 0:
        # Real-time signals have no names.
        name = next((member.name for member in signal.Signals if member == -code), str(-code))
        why = f"signal {name}" + (", out of memory?" if code == -signal.SIGKILL else "")
    return (
        f"{job.name}: the process that read it died twice ({why}). Use fewer workers, or leave the file out"
    )


def main() -> None:
    """Do the jobs on standard input until it closes."""
    answers = os.fdopen(os.dup(1), "wb")
    # Nothing else may write between the answers.
    os.dup2(2, 1)
    jobs: queue.Queue[bytes] = queue.Queue()

    def listen() -> None:
        for line in sys.stdin.buffer:
            jobs.put(line)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        answers.write(answer(msgspec.json.decode(jobs.get(), type=PartJob)) + b"\n")
        answers.flush()


if __name__ == "__main__":
    main()
