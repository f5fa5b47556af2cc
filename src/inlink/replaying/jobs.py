"""Replays one after another, or several at a time in separate processes.

A process is a new Python (``python -m inlink.replaying.jobs FOLDER``), never a fork. It maps the web's arrays from a
temporary folder, reads one task after another as a line of JSON from its input, and writes each result to its output as
a line of JSON, in which arrays are Base64.
The results do not depend on the number of processes.
"""

import base64
import os
import queue
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np

from inlink.base.arrays import AnyArray, Float64Array
from inlink.base.decoding import decoded
from inlink.base.unfinished import unfinished_folder
from inlink.errors import ParameterError
from inlink.replaying.measures import agreement
from inlink.replaying.play import Played, ReplayTask, memory_folder, play
from inlink.replaying.web import Web

RANKS = "ranks.npy"
LONGEST_END = 10.0
"""Seconds after which a process that does not end is killed."""


class Done(msgspec.Struct, frozen=True):
    """The result of a task."""

    task: ReplayTask
    played: Played
    tau: list[float | None]


class _Reply(msgspec.Struct):
    """What a process writes: a result, or the message of a ParameterError or of another exception."""

    done: Done | None = None
    refused: str = ""
    error: str = ""


def perform(
    web: Web, ranks: Float64Array, task: ReplayTask, between: Callable[[int], None] = lambda count: None
) -> Done:
    """Do one task in this process."""
    played = play(web, task, between)
    tau = agreement(web.graph, played.home, task.counts, ranks, task.damping) if task.counts else []
    return Done(task, played, tau)


@contextmanager
def performed(
    web: Web, ranks: Float64Array, tasks: Sequence[ReplayTask], jobs: int, between: Callable[[int], None]
) -> Iterator[Iterator[Done]]:
    """Yield an iterator over the results of tasks, in the order of their ends. Processes end with the block."""
    if jobs == 1:
        yield (perform(web, ranks, task, between) for task in tasks)
        return
    with unfinished_folder(memory_folder() / "inlink-replay") as folder:
        web.save(folder)
        np.save(folder / RANKS, ranks)
        workers = [_Worker(folder) for _ in range(min(jobs, len(tasks)))]
        free: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        for worker in workers:
            free.put(worker)

        def perform_on_free(task: ReplayTask) -> Done:
            worker = free.get()
            try:
                return worker.perform(task)
            finally:
                free.put(worker)

        def results() -> Iterator[Done]:
            for future in as_completed([pool.submit(perform_on_free, task) for task in tasks]):
                done = future.result()
                between(len(done.played.fetched))
                yield done

        pool = ThreadPoolExecutor(len(workers))
        try:
            yield results()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.end()


class _Worker:
    """One process that performs tasks."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "inlink.replaying.jobs", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C is for the command, which then ends the process.
            start_new_session=True,
            # Policies of the user's own are found where this process finds them.
            env=os.environ | {"PYTHONPATH": os.pathsep.join(place or "." for place in sys.path)},
        )

    def perform(self, task: ReplayTask) -> Done:
        """Do a task in the process, and return its result.

        Raises
        ------
        inlink.errors.ParameterError
            If the code of the policy raised an exception.
        RuntimeError
            If the task failed for another reason; the message is that of the process.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(msgspec.json.encode(task) + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except (OSError, ValueError):
            line = b""
        reply = decoded(line, _Reply, _array) if line else _Reply()
        if reply.refused:
            raise ParameterError(reply.refused)
        if reply.done is None:
            raise RuntimeError(reply.error or "a replay's process ended early")
        return reply.done

    def end(self) -> None:
        """End the process, which removes its crawl."""
        self._process.terminate()
        try:
            self._process.wait(LONGEST_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


def _array(kind: Any, text: str) -> AnyArray:
    """Return an array of one of the types of :mod:`inlink.base.arrays` from its bytes in Base64."""
    return np.frombuffer(base64.b64decode(text), get_args(get_args(kind)[1])[0])


def main(folder: Path) -> None:
    """Answer each line of the input until it ends."""
    # The crawl's folder is removed on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # Output of a policy must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    web = Web.load(folder, name="", hosts="")
    ranks = np.load(folder / RANKS, mmap_mode="r")
    for line in sys.stdin.buffer:
        try:
            reply = _Reply(perform(web, ranks, decoded(line, ReplayTask)))
        except ParameterError as error:
            reply = _Reply(refused=str(error))
        except Exception as error:
            reply = _Reply(error=f"{type(error).__name__}: {error}")
        answers.write(msgspec.json.encode(reply, enc_hook=np.ndarray.tobytes) + b"\n")
        answers.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
