"""Replays one after another, or several at a time in separate processes.

A process is a new Python (``python -m inlink.replaying.jobs FOLDER``), never a fork. It maps the web's arrays from a
temporary folder, reads one task after another as a line of JSON from its input, and writes their results to its output.
The results do not depend on the number of processes.
"""

import json
import os
import queue
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from inlink.base.arrays import Float64Array
from inlink.base.unfinished import unfinished_folder
from inlink.errors import ParameterError
from inlink.replaying.changes import changes_of
from inlink.replaying.measures import agreement
from inlink.replaying.play import Played, memory_folder, play
from inlink.replaying.web import Web

__all__ = ["Done", "ReplayTask", "main", "perform", "performed"]

RANKS = "ranks.npy"
COLUMNS = ("home", "fetched", "times", "copies", "stale")
"""The arrays of :class:`.play.Played`."""

LONGEST_END = 10.0
"""Seconds after which a process that does not end is killed."""


class ReplayTask(msgspec.Struct, frozen=True):
    """One replay to make.

    ``counts`` are the numbers of fetches after which the ranks of the crawled part are compared with those of the
    whole; empty if that is not wanted. ``changes`` and ``change_seed`` are arguments of
    :func:`.changes.changes_of`. The other fields are parameters of :func:`.play.play`.
    """

    policy: Any
    set: int
    seeds: list[int]
    budget: int
    settings: dict[str, Any]
    parallel: int
    fetch_seconds: float
    counts: list[int]
    damping: float
    changes: float | None
    change_seed: int


class Done(msgspec.Struct, frozen=True):
    """The result of a task."""

    task: ReplayTask
    played: Played
    tau: list[float | None]


def perform(
    web: Web, ranks: Float64Array, task: ReplayTask, between: Callable[[int], None] | None = None
) -> Done:
    """Do one task in this process."""
    played = play(
        web,
        task.policy,
        np.array(task.seeds, np.uint32),
        task.budget,
        task.settings,
        parallel=task.parallel,
        fetch_seconds=task.fetch_seconds,
        changes=changes_of(web, task.changes, task.change_seed),
        between=between,
    )
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
        workers = [_Worker(folder, number) for number in range(min(jobs, len(tasks)))]
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

    def __init__(self, folder: Path, number: int) -> None:
        self._folder, self._number = folder, number
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
        out = self._folder / f"{self._number}.npz"
        try:
            self._process.stdin.write(msgspec.json.encode({"task": task, "out": str(out)}) + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except (OSError, ValueError):
            line = b""
        reply: dict[str, Any] = json.loads(line) if line else {"error": "a replay's process ended early"}
        if "refused" in reply:
            raise ParameterError(reply["refused"])
        if "error" in reply:
            raise RuntimeError(reply["error"])
        with np.load(out) as arrays:
            columns = {name: arrays[name] for name in COLUMNS}
            played = Played(**columns, counts=reply["counts"], cpu=reply["cpu"])
        return Done(task, played, reply["tau"])

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


class _Request(msgspec.Struct):
    task: ReplayTask
    out: str


def main(folder: Path) -> None:
    """Answer each line of the input until it ends."""
    # The crawl's folder is removed on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # Output of a policy must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "wb", 0)
    os.dup2(2, 1)
    web = Web.load(folder, name="", hosts="")
    ranks = np.load(folder / RANKS, mmap_mode="r")
    for line in sys.stdin.buffer:
        request = msgspec.json.decode(line, type=_Request)
        try:
            done = perform(web, ranks, request.task)
        except ParameterError as error:
            answers.write(msgspec.json.encode({"refused": str(error)}) + b"\n")
            continue
        except Exception as error:
            answers.write(msgspec.json.encode({"error": f"{type(error).__name__}: {error}"}) + b"\n")
            continue
        played = done.played
        np.savez(request.out, **{name: getattr(played, name) for name in COLUMNS})
        reply = {"counts": played.counts, "cpu": played.cpu, "tau": done.tau}
        answers.write(msgspec.json.encode(reply) + b"\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
