"""Make parts of archives, and merge them: the work of this process, of several, or of the tasks of a cluster.

``python -m inlink.sources.workers`` reads a job as a line of JSON from its standard input, and answers with a line on
its standard output: ``null``, or the error's type and text. It ends as soon as its standard input closes.
"""

import contextlib
import errno
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec

import inlink.errors
from inlink.base.damage import Tally
from inlink.base.decoding import decoded
from inlink.base.disk import unwritable
from inlink.base.folder import atomic_file
from inlink.base.remote import UnreachableError, is_remote
from inlink.base.table import counted
from inlink.base.unfinished import unfinished_folder
from inlink.errors import InlinkError, InputError
from inlink.graph.batches import ArcBatch, Level
from inlink.graph.collect import write_part
from inlink.graph.merging import merged_file
from inlink.graph.part import PartFile
from inlink.sources.files import read_source
from inlink.sources.inputs import Location

T = TypeVar("T")


class SourceEntry(msgspec.Struct):
    """Description of a source file, stored in its part.

    Attributes
    ----------
    name : str
        The file, as it was named.
    time : int
        1 for the first time that this name was given, 2 for the second, …
    stamp : list of int and str
        The version of the file: size and time, or size and ETag.
    tally : Tally
        The counts of its records and links.
    """

    name: str
    time: int
    stamp: list[int | str]
    tally: Tally


class PartJob(msgspec.Struct, tag=True):
    """A part to be made of an archive.

    Attributes
    ----------
    level, options, strict
        As in :func:`inlink.sources.files.read_source`.
    archive_loops : bool
        Keep the links within a host or domain.
    self_loops : bool
        Keep the arcs from a node to itself.
    count : bool
        Keep the number of times that each arc occurs in the file.
    place : int
        The place of the file among all.
    name : str
        The file, or its URL.
    format : str
        Its format.
    time : int
        As in :class:`SourceEntry`.
    part : str
        The file to write.
    """

    level: Level | None
    options: dict[str, Any]
    strict: bool
    archive_loops: bool
    self_loops: bool
    count: bool
    place: int = 0
    name: str = ""
    format: str = ""
    time: int = 1
    part: str = ""


class MergeJob(msgspec.Struct, tag=True):
    """A part to be made of other parts, which stay.

    Attributes
    ----------
    parts : list of str
        The parts.
    part : str
        The file to write.
    """

    parts: list[str]
    part: str

    @property
    def name(self) -> str:
        """The name in messages."""
        return f"{self.part}, merged from {counted(len(self.parts), 'part')}"


Job: TypeAlias = PartJob | MergeJob
"""Makes the file ``job.part``, and can be encoded as JSON."""


def stamp(path: Location) -> list[int | str]:
    """Return the stamp of a file, which differs between its versions: size and time, or size and ETag.

    Raises
    ------
    inlink.errors.InputError
        If the file is not there, or the server does not answer.
    """
    if is_remote(path):
        from inlink.base.urlfiles import stamp_of

        return list(stamp_of(str(path)))
    try:
        status = Path(path).stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    return [status.st_size, str(status.st_mtime_ns)]


def make_part(job: PartJob) -> PartFile:
    """Read an archive, and write its part. An existing part is replaced.

    Raises
    ------
    inlink.errors.InputError
        If the archive cannot be read, or changes while it is read.
    inlink.errors.OutputError
        If the part cannot be written.
    """
    path: Location = job.name if is_remote(job.name) else Path(job.name)
    before = stamp(path)
    tally = Tally(job.strict)
    source = read_source(
        path,
        job.format,
        level=job.level,
        tally=tally,
        self_loops=job.archive_loops,
        repeats=job.count,
        options=job.options,
    )
    meta: dict[str, Any] = {"level": source.level}

    def batches() -> Iterator[ArcBatch]:
        yield from source.batches
        if not is_remote(path) and stamp(path) != before:
            raise InputError(f"{path} was changed while it was read: read it again")
        meta["inputs"] = [msgspec.to_builtins(SourceEntry(job.name, job.time, before, tally))]

    try:
        with unfinished_folder(Path(job.part)) as scratch:
            return write_part(
                job.part,
                replace(source, batches=batches()),
                scratch,
                keep=job.count,
                self_loops=job.self_loops,
                meta=meta,
            )
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise unwritable(Path(job.part), error) from None
        raise InputError(
            f"{error.filename or job.name}: cannot be read ({error.strerror or error})"
        ) from None


def _merge(job: MergeJob) -> None:
    target = Path(job.part)
    parts = [PartFile(part) for part in job.parts]
    # The order of the parts does not show.
    inputs = sorted(
        (entry for part in parts for entry in part.header.meta["inputs"]), key=itemgetter("name", "time")
    )
    try:
        with unfinished_folder(target) as scratch, atomic_file(target) as work:
            merged_file(parts, work, scratch, {"inputs": inputs})
    except OSError as error:
        raise unwritable(target, error) from None


def do(job: Job) -> None:
    """Do a job.

    Raises
    ------
    inlink.errors.InputError
        If the archive or a part cannot be read.
    inlink.errors.OutputError
        If the part cannot be written.
    """
    if isinstance(job, MergeJob):
        _merge(job)
    else:
        make_part(job)


class DeadWorkerError(InlinkError):
    """A process that did a job died each time."""


Done: TypeAlias = tuple[Job, InputError | None]
"""A job that was done, and the error if its files cannot be read."""

Runner: TypeAlias = Callable[[Iterator[Job]], Generator[Done]]
"""Does jobs elsewhere, such as in the tasks of a cluster."""


def answer(work: Callable[[], None]) -> bytes:
    """Call a function. Return ``null``, or the type and text of its error, as JSON."""
    try:
        work()
    except InlinkError as wrong:
        return msgspec.json.encode([type(wrong).__name__, str(wrong)])
    return b"null"


def error_in(answer: bytes) -> InlinkError | None:
    """Return the error in the answer to a job; None if the part was made."""
    refusal: list[str] | None = msgspec.json.decode(answer)
    if refusal is None:
        return None
    kind, text = refusal
    error: InlinkError = getattr(inlink.errors, kind, UnreachableError)(text)
    return error


def finished_jobs(jobs: Iterator[Job], workers: int) -> Generator[Done]:
    """Do jobs, in any order, and yield each with the error if its files cannot be read.

    Parameters
    ----------
    jobs : iterator of Job
        The jobs.
    workers : int
        The number of processes; 1 is this process.

    Raises
    ------
    inlink.errors.InlinkError
        If the work cannot go on: the disk is full, or a process died twice on one job.
    """
    if workers > 1:
        with _Processes() as processes:
            calls = (partial(processes.do, job) for job in jobs)
            yield from results_of(calls, workers, processes.kill)
        return
    for job in jobs:
        error = None
        try:
            do(job)
        except InputError as wrong:
            error = wrong
        yield job, error


def results_of(calls: Iterable[Callable[[], T]], threads: int, stop: Callable[[], None]) -> Generator[T]:
    """Make calls in threads, and yield their results as they come.

    At the end, or if a call raises an error, `stop` is called. Then no further call begins.
    """
    remaining = iter(calls)
    running: set[Future[T]] = set()
    with ThreadPoolExecutor(threads) as pool:
        try:
            while True:
                # As many calls wait, so that no thread does while the results are worked on.
                running |= {pool.submit(call) for call in islice(remaining, 2 * threads - len(running))}
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            stop()


class _Processes(contextlib.ExitStack):
    """Processes that do jobs, as many as there are threads that hand them out; a context manager."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._started: list[subprocess.Popen[bytes]] = []
        self._idle: list[subprocess.Popen[bytes]] = []
        self._killed = False

    def do(self, job: Job) -> Done:
        """Have a job done. If its process dies, another one tries it."""
        code = 0
        for _ in range(2):
            process = self._take()
            if reply := ask(process, job):
                break
            code = process.wait()
        else:
            raise DeadWorkerError(_death(job, code))
        self._idle.append(process)
        error = error_in(reply)
        if error is None or isinstance(error, InputError):
            return job, error
        raise error

    def _take(self) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._killed:
                raise DeadWorkerError("the build has ended")
            if self._idle:
                return self._idle.pop()
            process = subprocess.Popen(
                [sys.executable, "-m", "inlink.sources.workers"],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Ctrl-C on the terminal is for the process that started it, which ends this one.
                start_new_session=True,
            )
            self._started.append(self.enter_context(process))
            return process

    def kill(self) -> None:
        """End all processes."""
        with self._lock:
            self._killed = True
            for process in self._started:
                process.kill()


def ask(process: "subprocess.Popen[bytes]", job: Job) -> bytes:
    """Hand a job to a process. Return its answer; empty if it died."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(OSError):
        process.stdin.write(msgspec.json.encode(job) + b"\n")
        answer = process.stdout.readline()
        if answer.endswith(b"\n"):
            return answer
    return b""


def _death(job: Job, code: int) -> str:
    why = f"exit code {code}"
    if code < 0:
        # Real-time signals have no names.
        name = next((member.name for member in signal.Signals if member == -code), str(-code))
        why = f"signal {name}" + (", out of memory?" if code == -signal.SIGKILL else "")
    remedy = "" if isinstance(job, MergeJob) else ", or leave the file out"
    return f"{job.name}: its process died twice ({why}). Use fewer workers{remedy}"


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
        job: Job = decoded(jobs.get(), Job)
        answers.write(answer(partial(do, job)) + b"\n")
        answers.flush()


if __name__ == "__main__":
    main()
